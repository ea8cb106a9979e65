//! Whatever a model prefers, what it writes under a schema parses and validates:
//! 100,000 generations from random logits, judged by the `jsonschema` crate.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use snaffle::decode::SessionGenerator;
use snaffle::grammar::schema::{Bounds, KeyOrder, SchemaOptions, Whitespace, compile};
use snaffle::mask::{Lexicon, Limits, MaskStore};
use snaffle::model::{
    Cancel, ChatTemplate, GenerateRequest, Generator, Message, Prompt, RandomSession, Role,
    Sampling, Stop,
};
use snaffle::vocab::{Token, TokenKind, Vocabulary};

/// Every byte, and pieces of texts that also cut characters in two.
fn vocabulary() -> Arc<Vocabulary> {
    let token = |bytes: &[u8], kind| Token {
        bytes: bytes.to_vec(),
        kind,
    };
    let mut tokens = vec![token(b"<end>", TokenKind::Control)];
    tokens.extend((0..=255).map(|byte| token(&[byte], TokenKind::Text)));
    let corpus = "{\"name\": \"свет 厨房灯 🦊\", \"on\": true, \"off\": false, \"none\": null, \
                  \"list\": [1, 2.5, -30, 1e5], \"deep\": {\"a\": {}}} \\n \\u00e9 \", \"}]}";
    let mut seen = HashSet::new();
    for length in [2, 3, 4, 7] {
        for piece in corpus.as_bytes().windows(length) {
            if seen.insert(piece) {
                tokens.push(token(piece, TokenKind::Text));
            }
        }
    }
    Arc::new(Vocabulary::new(tokens, vec![0]))
}

/// One schema for each construct, and for what goes together.
fn schemas() -> Vec<Value> {
    vec![
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}),
        json!({"type": "object", "properties": {"имя": {"type": "string", "minLength": 2, "maxLength": 5}}, "required": ["имя"]}),
        json!({"type": "array", "items": {"type": "integer", "minimum": -7, "maximum": 130}, "minItems": 1, "maxItems": 4}),
        json!({"type": "string", "minLength": 3, "maxLength": 6}),
        json!({"type": "string", "maxLength": 0}),
        json!({"type": "integer"}),
        json!({"type": "integer", "exclusiveMinimum": 99, "exclusiveMaximum": 10_001}),
        json!({"type": "number"}),
        json!({"type": "number", "minimum": -1.5, "maximum": 30}),
        json!({"type": "boolean"}),
        json!({"type": "null"}),
        json!({"enum": ["кухня", "厨房灯", "🦊", "a \"quoted\" \\ name", 1, 2.5, null, true, {"a": [1]}]}),
        json!({"const": {"tool": "turn_on", "list": [1, {"x": null}]}}),
        json!({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 5}, {"type": "null"}]}),
        json!({"type": ["string", "boolean", "null"], "maxLength": 4}),
        json!({"type": "object", "properties": {"deep": {"type": "object", "properties": {"er": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}}, "required": ["er"], "additionalProperties": false}}, "required": ["deep"], "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}, "d": {"type": "null"}}, "additionalProperties": false}),
        json!({"$defs": {"tree": {"type": "object", "properties": {"leaf": {"type": "integer", "minimum": 0, "maximum": 9}, "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}, "required": ["leaf"], "additionalProperties": false}}, "$ref": "#/$defs/tree"}),
        json!({"type": "array", "prefixItems": [{"type": "string", "maxLength": 2}, {"type": "boolean"}], "items": false, "minItems": 2}),
        json!({"type": "object", "properties": {"a": {"type": "boolean"}, "ab": {"type": "null"}, "б": {"type": "integer"}}, "required": ["ab"], "minProperties": 2, "maxProperties": 3, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}}, "required": ["b"], "maxProperties": 4, "patternProperties": {"^x": {"type": "integer"}}}),
        json!({"type": "array", "items": {"enum": ["кухня", "a", "ab", 1, 12, null]}, "uniqueItems": true, "minItems": 2, "maxItems": 5}),
        json!({"type": "array", "items": {"type": ["integer", "boolean"]}, "contains": {"type": "integer", "minimum": 5}, "minContains": 2, "maxItems": 4}),
        json!({"type": "object", "properties": {"device": {"enum": ["kitchen light", "свет"]}, "brightness": {"type": "integer", "minimum": 0, "maximum": 100}}, "required": ["device", "brightness"], "additionalProperties": false}),
    ]
}

#[test]
fn every_generation_parses_and_validates() {
    let schemas = schemas();
    let each = 100_000_usize.div_ceil(schemas.len());
    let vocabulary = vocabulary();
    let lexicon = Arc::new(Lexicon::new(Arc::clone(&vocabulary)));
    let store = Arc::new(MaskStore::new(32 << 20));
    let session = RandomSession::new(vocabulary, 8192, 7);
    let mut generator = SessionGenerator::new(
        "random logits",
        Box::new(session),
        Box::new(ChatTemplate::plain()),
        lexicon,
        store,
        Limits::default(),
    );
    let mut written = 0;
    for (number, schema) in schemas.iter().enumerate() {
        let ways = [
            (Whitespace::Spaced, KeyOrder::Schema),
            (Whitespace::Spaced, KeyOrder::Any),
            (Whitespace::Compact, KeyOrder::Schema),
            (Whitespace::Flexible { max: 2 }, KeyOrder::Any),
        ];
        let validator = jsonschema::options().build(schema).unwrap();
        for (way, &(whitespace, key_order)) in ways.iter().enumerate() {
            let options = SchemaOptions {
                whitespace,
                key_order,
                bounds: Bounds {
                    string: Some(20),
                    items: Some(5),
                    properties: Some(3),
                    ..Bounds::default()
                },
                ..SchemaOptions::default()
            };
            let grammar = compile(schema, &options).unwrap().grammar;
            for at in (way..each).step_by(ways.len()) {
                let prompt = Prompt {
                    messages: vec![Message {
                        role: Role::User,
                        content: format!("{number} {at}"),
                    }],
                    stable: 0,
                };
                let generation = generator
                    .generate(&GenerateRequest {
                        prompt: &prompt,
                        grammar: Some(&grammar),
                        sampling: Sampling {
                            temperature: 1.0,
                            seed: at as u64,
                            ..Sampling::default()
                        },
                        max_tokens: 4096,
                        jump_ahead: at % 2 == 0,
                        calibration: None,
                        cancel: Cancel::default(),
                    })
                    .unwrap();
                let text = &generation.text;
                assert!(
                    matches!(generation.stop, Stop::Complete | Stop::Closed),
                    "{schema}: {text}"
                );
                let value: Value = serde_json::from_str(text)
                    .unwrap_or_else(|error| panic!("{schema}: {error} in {text}"));
                assert!(
                    validator.is_valid(&value),
                    "{schema} does not hold for {text}"
                );
                written += 1;
            }
        }
    }
    assert!(written >= 100_000, "only {written} texts were written");
}
