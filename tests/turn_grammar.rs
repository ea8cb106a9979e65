//! The turn grammar against the engine and the gate: what must be writable is, what must not be
//! is not, and whatever can be written parses and passes.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use snaffle::call::{
    Dialect, Domains, Effect, Gate, Moves, Policy, Reply, ToolSpec, TurnOptions, turn_grammar,
};
use snaffle::grammar::{Grammar, Limits};
use snaffle::mask::{Lexicon, MaskStore, Matcher};
use snaffle::vocab::{Token, TokenKind, Vocabulary};
use std::sync::Arc;

/// A vocabulary of one token a byte.
fn bytes() -> Arc<Lexicon> {
    let tokens = (0..=255u8)
        .map(|byte| Token {
            bytes: vec![byte],
            kind: TokenKind::Text,
        })
        .collect();
    Arc::new(Lexicon::new(Arc::new(Vocabulary::new(tokens, vec![]))))
}

fn matcher(grammar: &Grammar) -> Matcher {
    let store = Arc::new(MaskStore::new(1 << 20));
    Matcher::new(grammar, &bytes(), &store, &Limits::default()).unwrap()
}

fn accepts(start: &Matcher, text: &str) -> bool {
    let mut matcher = start.clone();
    matcher.accept_bytes(text.as_bytes()).unwrap() && matcher.is_accepting()
}

/// A random text of the grammar: any allowed byte, until it is long; then the shortest way out.
fn random_text(start: &Matcher, rng: &mut ChaCha8Rng, longest: usize) -> String {
    let mut matcher = start.clone();
    let mut text = Vec::new();
    while !matcher.is_finished() {
        if matcher.is_accepting() && rng.random_bool(0.5) {
            break;
        }
        if text.len() > longest {
            let closing = matcher.closing_bytes().unwrap();
            assert!(matcher.accept_bytes(&closing).unwrap());
            text.extend(closing);
            break;
        }
        let allowed = matcher.allowed_bytes();
        let all: Vec<u8> = (0..=255u8)
            .filter(|&b| allowed[usize::from(b) / 64] >> (b % 64) & 1 == 1)
            .collect();
        let byte = all[rng.random_range(0..all.len())];
        assert!(matcher.accept_bytes(&[byte]).unwrap());
        text.push(byte);
    }
    assert!(matcher.is_accepting());
    String::from_utf8(text).expect("a grammar over code points matches UTF-8 only")
}

fn tool(name: &str, parameters: Value) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters,
        effect: Effect::Change,
        idempotent: true,
    })
}

fn live(argument: &str, values: &[&str]) -> Domains {
    Domains::from([(
        argument.to_owned(),
        values.iter().map(|&value| value.into()).collect(),
    )])
}

const DEVICES: [&str; 4] = [
    "kitchen light",
    "свет \"на\" кухне",
    "客厅灯 \\ 🦊",
    "tab\there",
];

/// A house, and tools of every shape.
fn moves() -> Moves {
    let policy = Policy::default();
    let device = json!({"type": "string"});
    let mut moves = Moves::default();
    for name in ["turn_on", "turn_off"] {
        let parameters = json!({
            "type": "object",
            "properties": {"device": device},
            "required": ["device"],
            "additionalProperties": false,
        });
        moves.add(tool(name, parameters), live("device", &DEVICES), &policy);
    }
    let level = json!({
        "type": "object",
        "properties": {
            "device": device,
            "level": {"type": "integer", "minimum": 0, "maximum": 100},
        },
        "required": ["device", "level"],
    });
    moves.add(
        tool("set_level", level),
        live("device", &DEVICES[..2]),
        &policy,
    );
    let optional = json!({
        "type": "object",
        "properties": {
            "a": {"type": "boolean"},
            "b": {"enum": ["x", 1, null]},
            "c": {"type": "string", "maxLength": 5},
            "d": {"$ref": "#/$defs/small"},
        },
        "required": ["c"],
        "$defs": {"small": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
    });
    moves.add(tool("optional.all", optional), Domains::new(), &policy);
    moves.add(
        tool("nothing", json!({"type": "object"})),
        Domains::new(),
        &policy,
    );
    moves
}

#[test]
fn what_is_right_can_be_written_and_nothing_else() {
    let mut moves = moves();
    moves.max_calls = 2;
    let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
    let start = matcher(&turn.grammar);
    let call = |call: &str| format!("{{\"calls\": [{call}]}}");
    let right = [
        r#"{"tool": "turn_on", "arguments": {"device": "kitchen light"}}"#,
        r#"{"tool": "turn_off", "arguments": {"device": "свет \"на\" кухне"}}"#,
        r#"{"tool": "turn_on", "arguments": {"device": "客厅灯 \\ 🦊"}}"#,
        r#"{"tool": "turn_on", "arguments": {"device": "tab\there"}}"#,
        r#"{"tool": "set_level", "arguments": {"device": "kitchen light", "level": 100}}"#,
        r#"{"tool": "optional.all", "arguments": {"c": ""}}"#,
        r#"{"tool": "optional.all", "arguments": {"a": true, "c": "灯"}}"#,
        r#"{"tool": "optional.all", "arguments": {"b": null, "c": "x", "d": [1, 2]}}"#,
        r#"{"tool": "optional.all", "arguments": {"a": false, "b": "x", "c": "x", "d": []}}"#,
        r#"{"tool": "nothing", "arguments": {}}"#,
    ];
    for text in right {
        assert!(accepts(&start, &call(text)), "{text}");
    }
    let two = format!("{}, {}", right[0], right[4]);
    assert!(accepts(&start, &call(&two)));
    for text in [
        r#"{"answer": "Done."}"#,
        r#"{"ask": "Какой \"свет\"?\nНа кухне?"}"#,
        r#"{"answer": "灯已打开 👩‍🍳"}"#,
    ] {
        assert!(accepts(&start, text), "{text}");
    }
    let wrong = [
        r#"{"tool": "turn_on", "arguments": {"device": "hall light"}}"#,
        r#"{"tool": "turn_on", "arguments": {}}"#,
        r#"{"tool": "turn_on", "arguments": {"device": "kitchen light", "x": 1}}"#,
        r#"{"tool": "turn_up", "arguments": {"device": "kitchen light"}}"#,
        r#"{"tool":"turn_on","arguments":{"device":"kitchen light"}}"#,
        r#"{"tool": "set_level", "arguments": {"device": "kitchen light", "level": 101}}"#,
        r#"{"tool": "set_level", "arguments": {"level": 1, "device": "kitchen light"}}"#,
        r#"{"tool": "set_level", "arguments": {"device": "客厅灯 \\ 🦊", "level": 1}}"#,
        r#"{"tool": "optional.all", "arguments": {}}"#,
        r#"{"tool": "optional.all", "arguments": {"a": true}}"#,
        r#"{"tool": "optional.all", "arguments": {"c": "abcdef"}}"#,
        r#"{"tool": "optional.all", "arguments": {"c": "x", "d": [1, 2, 3]}}"#,
        r#"{"tool": "optional.all", "arguments": {"c": "x", "b": 1}}"#,
        r#"{"tool": "nothing", "arguments": {"x": 1}}"#,
    ];
    for text in wrong {
        assert!(!accepts(&start, &call(text)), "{text}");
    }
    for text in [
        "",
        "{}",
        r#"{"calls": []}"#,
        r#"{"answer": ""}"#,
        r#"{"answer": " "}"#,
        r#"{"answer": "\n"}"#,
        "{\"answer\": \"a\u{7}\"}",
        "{\"answer\": \"a\u{202E}\"}",
        r#"{"answer": "a", "ask": "b"}"#,
        &format!("{{\"answer\": \"{}\"}}", "a".repeat(401)),
        &call(&format!("{}, {}, {}", right[0], right[0], right[0])),
    ] {
        assert!(!accepts(&start, text), "{text}");
    }
    assert!(accepts(
        &start,
        &format!("{{\"answer\": \"{}\"}}", "a".repeat(400))
    ));
}

#[test]
fn what_the_turn_forbids_cannot_be_written() {
    let mut moves = moves();
    moves.ask = false;
    moves.answer = false;
    let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
    let start = matcher(&turn.grammar);
    assert!(!accepts(&start, r#"{"answer": "Done."}"#));
    assert!(!accepts(&start, r#"{"ask": "Which?"}"#));
    moves.restrict(|_| false);
    assert!(turn_grammar(&moves, &TurnOptions::default()).is_err());
    moves.ask = true;
    let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
    let start = matcher(&turn.grammar);
    assert!(accepts(&start, r#"{"ask": "Which?"}"#));
    assert!(!accepts(
        &start,
        r#"{"calls": [{"tool": "nothing", "arguments": {}}]}"#
    ));
}

#[test]
fn whatever_can_be_written_passes_the_gate() {
    let mut moves = moves();
    moves.max_calls = 3;
    let policy = Policy::default();
    // Schemas that the compiler must see whole, and values that the schema forbids.
    let involved = json!({
        "type": "object",
        "properties": {"mode": {"enum": ["a", "b"]}, "n": {"type": "integer", "maximum": 9}},
        "required": ["n"],
        "additionalProperties": {"type": "boolean"},
    });
    let domains = Domains::from([("n".to_owned(), vec![json!(1), json!(7), json!(70)])]);
    moves.add(tool("involved", involved), domains.clone(), &policy);
    let plain = json!({
        "properties": {"n": {"type": "integer", "maximum": 9}, "s": {"type": "string"}},
        "required": ["n"],
    });
    moves.add(tool("filtered", plain), domains, &policy);
    let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
    let start = matcher(&turn.grammar);
    let mut gate = Gate::new();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut calls = 0;
    for _ in 0..2_000 {
        let text = random_text(&start, &mut rng, 300);
        let reply = Dialect::Snaffle
            .parse(&text)
            .unwrap_or_else(|failure| panic!("{text}: {failure}"));
        moves.check_reply(&reply).unwrap();
        if let Reply::Calls(all) = reply {
            for call in all {
                calls += 1;
                let verdict = gate.check(&moves, call);
                assert!(verdict.is_ok(), "{text}: {verdict:?}");
            }
        }
    }
    assert!(calls > 500, "{calls}");
}

#[test]
fn the_same_moves_give_the_same_grammar() {
    let first = turn_grammar(&moves(), &TurnOptions::default()).unwrap();
    let second = turn_grammar(&moves(), &TurnOptions::default()).unwrap();
    assert_eq!(first, second);
}

#[test]
fn hostile_names_stay_inside_their_quotes() {
    let policy = Policy::default();
    let names = [
        "\"",
        "\\",
        "\u{0}",
        "\n",
        "🦊",
        "a\": 1, \"b",
        "日本",
        "%",
        "",
        "\u{7f}",
    ];
    let properties: serde_json::Map<String, Value> = names
        .iter()
        .map(|&name| (name.to_owned(), json!({"type": "boolean"})))
        .collect();
    let parameters = json!({"type": "object", "properties": properties, "required": names});
    let mut moves = Moves {
        ask: false,
        answer: false,
        ..Moves::default()
    };
    moves.add(tool("t", parameters), Domains::new(), &policy);
    moves.add(
        tool(
            "u",
            json!({"properties": {"v": {"type": "string"}}, "required": ["v"]}),
        ),
        live("v", &names),
        &policy,
    );
    let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
    let start = matcher(&turn.grammar);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..200 {
        let text = random_text(&start, &mut rng, 10_000);
        let Ok(Reply::Calls(calls)) = Dialect::Snaffle.parse(&text) else {
            panic!("{text}");
        };
        for call in calls {
            assert!(moves.check(call).is_ok(), "{text}");
        }
    }
}

#[test]
fn four_hundred_tools_compile_quickly() {
    let policy = Policy::default();
    let mut moves = Moves::default();
    for number in 0..400 {
        let parameters = json!({
            "type": "object",
            "properties": {"device": {"type": "string"}, "n": {"type": "integer"}, "o": {}},
            "required": ["device"],
        });
        moves.add(
            tool(&format!("tool_{number}"), parameters),
            live("device", &DEVICES),
            &policy,
        );
    }
    let start = std::time::Instant::now();
    let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
    assert!(start.elapsed().as_secs() < 5);
    let text = r#"{"calls": [{"tool": "tool_399", "arguments": {"device": "kitchen light"}}]}"#;
    assert!(accepts(&matcher(&turn.grammar), text));
}
