//! The compiler against a validator and a table of cases. Schemas from the wild and the official
//! suite are `tests/conformance.rs`.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::*;
use crate::grammar::{Limits as EngineLimits, Recogniser};

fn reason(error: &SchemaError) -> &'static str {
    match error {
        SchemaError::Malformed { .. } => "malformed",
        SchemaError::Unsatisfiable { .. } => "unsatisfiable",
        SchemaError::ExternalReference { .. } => "external",
        SchemaError::Limit { .. } => "limit",
    }
}

type Cases = Vec<(Value, Vec<&'static str>, Vec<&'static str>)>;

/// Schema, texts that match, texts that do not.
fn cases() -> Cases {
    vec![
        (
            json!({}),
            vec!["1", "\"a\"", "[1, {\"a\": null}]", "{}"],
            vec!["", "tru"],
        ),
        (
            json!({"type": "string"}),
            vec!["\"\"", "\"é\\n\""],
            vec!["1", "\"\n\"", "\"\\ud800\""],
        ),
        (
            json!({"type": "string", "minLength": 2, "maxLength": 3}),
            vec!["\"ab\"", "\"日本語\""],
            vec!["\"a\"", "\"abcd\""],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            vec!["\"a\"", "\"aaa\""],
            vec!["\"\"", "\"ab\"", "\"ba\""],
        ),
        (
            json!({"type": "string", "pattern": "b"}),
            vec!["\"b\"", "\"abc\"", "\"\\nb\""],
            vec!["\"\"", "\"ac\""],
        ),
        (
            json!({"type": "string", "pattern": "^(a|bc)*$", "maxLength": 3}),
            vec!["\"\"", "\"abc\""],
            vec!["\"abcbc\"", "\"b\""],
        ),
        (
            json!({"type": "string", "pattern": "^(?!ab)a"}),
            vec!["\"a\"", "\"acb\""],
            vec!["\"ab\"", "\"b\""],
        ),
        (
            json!({"type": "integer", "minimum": 5, "maximum": 123}),
            vec!["5", "9", "10", "99", "100", "123"],
            vec!["4", "124", "05", "1000", "-6"],
        ),
        (
            json!({"type": "integer", "minimum": -20, "exclusiveMaximum": 3}),
            vec!["-20", "-9", "0", "2"],
            vec!["-21", "3", "-0"],
        ),
        (
            json!({"type": "integer", "multipleOf": 7}),
            vec!["0", "7", "-14", "700"],
            vec!["8", "1"],
        ),
        (
            json!({"type": "number", "minimum": 0, "maximum": 1}),
            vec!["0", "1", "0.5", "1.0", "0.001", "1e-05"],
            vec!["1.01", "-0.1", "2"],
        ),
        (
            json!({"type": "number", "exclusiveMinimum": 1.25, "maximum": 1.5}),
            vec!["1.26", "1.251", "1.5", "1.50"],
            vec!["1.25", "1.2", "1.51", "1", "2"],
        ),
        (
            json!({"type": "number", "multipleOf": 0.01}),
            vec!["1", "1.5", "1.25"],
            vec!["1.255"],
        ),
        (
            json!({"enum": [1, "a", null, [1, 2], {"b": true}]}),
            vec!["1", "\"a\"", "null", "[1, 2]", "{\"b\": true}"],
            vec!["2", "[1]", "{}"],
        ),
        (
            json!({"type": ["boolean", "null"]}),
            vec!["true", "null"],
            vec!["1"],
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
            vec!["[1]", "[1, 2]"],
            vec!["[]", "[1, 2, 3]", "[true]"],
        ),
        (
            json!({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false}),
            vec!["[]", "[1]", "[1, 2]"],
            vec!["[2]", "[1, 2, 3]"],
        ),
        (
            json!({"type": "array", "contains": {"const": 1}}),
            vec!["[1]", "[2, 1, 3]"],
            vec!["[]", "[2]"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {}}, "required": ["b"], "additionalProperties": false}),
            vec![
                "{\"b\": 1}",
                "{\"a\": 1, \"b\": 2}",
                "{\"b\": 1, \"c\": []}",
            ],
            vec!["{}", "{\"a\": 1}", "{\"b\": 1, \"d\": 1}"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "null"}}}),
            vec![
                "{}",
                "{\"a\": 1}",
                "{\"c\": null}",
                "{\"a\": 1, \"c\": null}",
                "{\"ab\": \"x\"}",
                "{\"b\": 1, \"\": 2, \"bb\": 3}",
            ],
            vec![
                "{\"a\": \"x\"}",
                "{\"a\": 1, }",
                "{, \"a\": 1}",
                "{\"z\": 1, \"a\": \"x\"}",
            ],
        ),
        (
            json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false}),
            vec!["{}", "{\"x-a\": \"b\"}"],
            vec!["{\"y\": 1}", "{\"x-a\": 1}"],
        ),
        (
            json!({"type": "object", "minProperties": 1, "maxProperties": 2, "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": false}),
            vec!["{\"a\": 1}", "{\"a\": 1, \"c\": 1}"],
            vec!["{}", "{\"a\": 1, \"b\": 1, \"c\": 1}"],
        ),
        (
            json!({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}),
            vec!["{\"ab\": 1}"],
            vec!["{\"A\": 1}"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}),
            vec!["{}", "{\"a\": 1, \"b\": 2}"],
            vec!["{\"a\": 1, \"b\": 2, \"c\": 3}"],
        ),
        (
            json!({"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": false}}, "$ref": "#/$defs/node"}),
            vec!["{}", "{\"next\": {\"next\": {}}}"],
            vec!["{\"next\": 1}"],
        ),
        (
            json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
            vec!["{\"a\": 1, \"b\": \"\"}"],
            vec!["{\"a\": 1}", "{\"a\": 1, \"b\": 1}"],
        ),
        (
            json!({"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}], "properties": {"a": {}, "b": {}}}),
            vec!["{\"a\": 1}", "{\"b\": 1}"],
            vec!["{}", "{\"a\": 1, \"b\": 1}"],
        ),
        (
            json!({"type": "string", "not": {"enum": ["a", "bc"]}}),
            vec!["\"\"", "\"b\"", "\"bcd\"", "\"é\""],
            vec!["\"a\"", "\"bc\""],
        ),
        (
            json!({"type": "object", "properties": {"k": {"enum": ["x", "y"]}, "v": {}}, "required": ["k"], "if": {"properties": {"k": {"const": "x"}}}, "then": {"required": ["v"]}}),
            vec!["{\"k\": \"x\", \"v\": 1}", "{\"k\": \"y\"}"],
            vec!["{\"k\": \"x\"}"],
        ),
        (
            json!({"type": "string", "format": "date"}),
            vec!["\"2024-02-29\""],
            vec!["\"2023-02-29\"", "\"2023-13-01\""],
        ),
        (
            json!({"type": "string", "format": "uri"}),
            vec!["\"http://a.b/c?d#e\"", "\"urn:x:y\""],
            vec!["\"a b\"", "\"//a\""],
        ),
        (
            json!({"type": "string", "format": "ipv6"}),
            vec!["\"::1\"", "\"fe80::1:2\"", "\"1:2:3:4:5:6:7:8\""],
            vec!["\"1:2\"", "\":::\""],
        ),
    ]
}

/// A random text of the grammar.
fn sample(grammar: &Grammar, expr: &Expr, random: &mut StdRng, depth: usize, out: &mut String) {
    match expr {
        Expr::Empty => {}
        Expr::Literal(text) => out.push_str(text),
        Expr::Class(class) => {
            let ranges = class.ranges();
            let (low, high) = ranges[random.random_range(0..ranges.len())];
            // Mostly near the start of the range, where the odd characters are.
            let span = (u32::from(high) - u32::from(low)).min(300);
            let code = u32::from(low) + random.random_range(0..=span);
            out.push(char::from_u32(code).unwrap_or(low));
        }
        Expr::Seq(parts) => parts
            .iter()
            .for_each(|part| sample(grammar, part, random, depth, out)),
        Expr::Alt(parts) => {
            let at = if depth > 40 {
                parts.len() - 1
            } else {
                random.random_range(0..parts.len())
            };
            sample(grammar, &parts[at], random, depth + 1, out);
        }
        Expr::Repeat { expr, min, max } => {
            let more = if depth > 40 {
                0
            } else {
                random.random_range(0..4)
            };
            for _ in 0..min.saturating_add(more).min(max.unwrap_or(u32::MAX)) {
                sample(grammar, expr, random, depth + 1, out);
            }
        }
        Expr::Rule(rule) => sample(grammar, &grammar.rule(*rule).body, random, depth + 1, out),
        Expr::Unordered(set) => {
            let (required, least) = set.shortest(|_| Some(1)).unwrap();
            let mut items: Vec<Option<usize>> = required.into_iter().map(Some).collect();
            items.extend((0..least).map(|_| None));
            for at in 0..set.members.len() {
                if depth < 40 && random.random() && !items.contains(&Some(at)) {
                    items.push(Some(at));
                }
            }
            if depth < 40 && set.others.as_ref().is_some_and(|o| o.guard != Some(0)) {
                items.push(None);
            }
            items.truncate(set.max.map_or(usize::MAX, |max| max as usize));
            items.shuffle(random);
            for (number, item) in items.into_iter().enumerate() {
                if number > 0 {
                    sample(grammar, &set.separator, random, depth + 1, out);
                }
                match item {
                    Some(at) => {
                        out.push_str(&set.members[at].key);
                        sample(grammar, &set.members[at].value, random, depth + 1, out);
                    }
                    None => {
                        let others = set.others.as_ref().unwrap();
                        sample(grammar, &others.item, random, depth + 1, out);
                    }
                }
            }
        }
        Expr::Token { .. } => panic!("schemas name no tokens"),
    }
}

/// Whatever the grammar produces parses and, where nothing is left to check, validates.
#[test]
fn random_texts_validate() {
    let mut random = StdRng::seed_from_u64(7);
    let flexible = Whitespace::Flexible { max: 2 };
    for (schema, _, _) in cases() {
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let ways = [
            (Whitespace::Compact, KeyOrder::Schema),
            (Whitespace::Spaced, KeyOrder::Schema),
            (flexible, KeyOrder::Schema),
            (Whitespace::Spaced, KeyOrder::Any),
            (flexible, KeyOrder::Any),
        ];
        for (whitespace, key_order) in ways {
            let options = SchemaOptions {
                whitespace,
                key_order,
                ..SchemaOptions::default()
            };
            let compiled = compile(&schema, &options).unwrap();
            let grammar = &compiled.grammar;
            for _ in 0..100 {
                let mut text = String::new();
                sample(
                    grammar,
                    &grammar.rule(grammar.root()).body,
                    &mut random,
                    0,
                    &mut text,
                );
                let value: Value = serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{schema}: {text}: {error}"));
                if compiled.coverage.is_complete() {
                    assert!(validator.is_valid(&value), "{schema} does not admit {text}");
                }
            }
        }
    }
}

#[test]
fn table() {
    for (schema, good, bad) in cases() {
        let compiled = compile(&schema, &SchemaOptions::default()).unwrap();
        assert!(
            compiled
                .coverage
                .checked()
                .all(|c| c.keyword == "minProperties" || c.keyword == "maxProperties"),
            "{schema}: {:?}",
            compiled.coverage
        );
        let mut recogniser = Recogniser::new(&compiled.grammar, &EngineLimits::default()).unwrap();
        let mut accepts = |text: &str| recogniser.matches(text.as_bytes()).unwrap();
        for text in good {
            assert!(
                accepts(text),
                "{schema} must accept {text}\n{}",
                compiled.grammar
            );
        }
        for text in bad {
            assert!(
                !accepts(text),
                "{schema} must reject {text}\n{}",
                compiled.grammar
            );
        }
    }
}

#[test]
fn hostile_schemas_end_in_bounded_time() {
    let mut deep = json!({});
    for _ in 0..100_000 {
        deep = Value::Object([("not".to_owned(), deep)].into_iter().collect());
    }
    let refusal = compile(&deep, &SchemaOptions::default()).unwrap_err();
    // Dropping it would overflow the stack: that is the caller's to avoid.
    std::mem::forget(deep);
    assert!(matches!(refusal, SchemaError::Limit { .. }), "{refusal}");

    let many: Vec<String> = (0..10_000).map(|n| format!("value {n}")).collect();
    let branches: Vec<Value> = (0..5)
        .map(|n| json!({"required": [format!("p{n}")]}))
        .collect();
    let blow_up: Vec<Value> = (0..24).map(|_| json!({"anyOf": branches})).collect();
    let wide: serde_json::Map<String, Value> = (0..2_000)
        .map(|n| (format!("property{n}"), json!({"type": "integer"})))
        .collect();
    let fine = [
        json!({"enum": many}),
        json!({"not": {"enum": many}, "type": "string"}),
        json!({"type": "string", "maxLength": 1_000_000_000u64}),
        json!({"type": "string", "pattern": "^(a|aa)*b.{1000}c.{1000}$", "maxLength": 1_000_000}),
        json!({"type": "string", "pattern": "^((x{1000}){1000}){1000}$"}),
        json!({"type": "string", "pattern": "(a|b)*a(a|b){40}$", "minLength": 3}),
        json!({"allOf": blow_up}),
        json!({"type": "object", "properties": wide}),
        json!({"type": "object", "properties": wide, "minProperties": 3, "additionalProperties": false}),
        json!({"type": "object", "properties": {"\"\\\u{0}": {}, "🦀": {"type": "null"}, "": {}}, "required": ["\"\\\u{0}"]}),
        json!({"type": "integer", "minimum": -1e300, "maximum": 1e300}),
        json!({"type": "number", "minimum": 1e-300, "maximum": 1e300}),
    ];
    for schema in fine {
        let start = Instant::now();
        let shown: String = schema.to_string().chars().take(80).collect();
        let result = compile(&schema, &SchemaOptions::default());
        assert!(result.is_ok(), "{shown}: {:?}", result.err());
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{shown} took {:?}",
            start.elapsed()
        );
    }
    let refused = [
        (json!({"$ref": "#"}), "malformed"),
        (json!({"allOf": [{"$ref": "#"}]}), "malformed"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "malformed",
        ),
        (json!({"$ref": "#/nowhere"}), "malformed"),
        (json!({"$ref": "http://example.com/x.json"}), "external"),
        (json!(false), "unsatisfiable"),
        (
            json!({"type": "string", "minLength": 3, "maxLength": 2}),
            "unsatisfiable",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
            "unsatisfiable",
        ),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 2}),
            "unsatisfiable",
        ),
        (json!({"type": "string", "pattern": "("}), "malformed"),
        (json!({"type": "text"}), "malformed"),
        (json!({"type": "array", "minItems": 1u64 << 40}), "limit"),
    ];
    for (schema, expected) in refused {
        match compile(&schema, &SchemaOptions::default()) {
            Ok(_) => panic!("{schema} must be refused"),
            Err(error) => assert_eq!(reason(&error), expected, "{schema}: {error}"),
        }
    }
}
