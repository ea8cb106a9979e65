//! Schemas made to hurt: each ends in bounded time and memory, with a grammar or a typed error.
//!
//! They go through the program's own workers, which may take 10 seconds and a gibibyte each.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn snaffle(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_snaffle"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// What must become of a schema.
enum Expected {
    /// Compiled, and these instances told apart by the grammar alone: valid ones, invalid ones.
    Compiled(Vec<Value>, Vec<Value>),
    /// Refused for this reason.
    Refused(&'static str),
    /// Compiled or refused for a sound reason.
    Either,
}

use Expected::{Compiled, Either, Refused};

/// `schema` inside itself `depth` times.
fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({"type": "null"}), |inner, _| wrap(inner))
}

fn cases() -> Vec<(&'static str, Value, Expected)> {
    let odd = [
        "\"",
        "\\",
        "\u{0}",
        "🐎",
        "",
        "\u{202E}",
        "a\nb",
        "\\u0041",
        "{\"",
        "日本語",
    ];
    let odd_properties: Map<String, Value> = odd
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "integer"})))
        .collect();
    let odd_value: Map<String, Value> = odd
        .iter()
        .map(|name| ((*name).to_owned(), json!(1)))
        .collect();
    let mut odd_wrong = odd_value.clone();
    odd_wrong.insert("\u{0}".to_owned(), json!("text"));
    let values: Vec<String> = (0..10_000).map(|n| format!("value {n} значение")).collect();
    let wide: Map<String, Value> = (0..5_000)
        .map(|n| (format!("p{n}"), json!({"type": "string", "maxLength": n})))
        .collect();
    let any_of: Vec<Value> = (0..2_000)
        .map(|n| json!({"properties": {"kind": {"const": n}, "x": {"minimum": n}}, "required": ["kind"]}))
        .collect();
    let blow_up: Vec<Value> = (0..30)
        .map(|n| json!({"anyOf": [{"required": [format!("a{n}")]}, {"required": [format!("b{n}")]}]}))
        .collect();
    let doubled: Map<String, Value> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            let both = json!({"type": "object", "properties": {"l": next, "r": next}});
            (format!("d{n}"), both)
        })
        .chain([("d60".to_owned(), json!({"type": "integer"}))])
        .collect();
    vec![
        (
            "ten thousand values",
            json!({"enum": values}),
            Compiled(
                vec![json!("value 0 значение"), json!("value 9999 значение")],
                vec![json!("value 10000 значение"), json!(1)],
            ),
        ),
        (
            "all but three hundred values",
            json!({"type": "string", "not": {"enum": &values[..300]}}),
            Compiled(vec![json!("value")], vec![json!("value 77 значение")]),
        ),
        (
            "a billion characters",
            json!({"type": "string", "maxLength": 1_000_000_000}),
            Compiled(vec![json!("a")], vec![json!(1)]),
        ),
        (
            "at least a billion characters",
            json!({"type": "string", "minLength": 1_000_000_000}),
            Compiled(vec![], vec![json!("a")]),
        ),
        (
            "a billion items",
            json!({"type": "array", "maxItems": 1_000_000_000, "items": {"type": "array", "maxItems": 1_000_000_000}}),
            Compiled(vec![json!([[1]])], vec![json!([1])]),
        ),
        (
            "odd names",
            json!({"type": "object", "properties": odd_properties, "required": odd, "additionalProperties": false}),
            Compiled(
                vec![Value::Object(odd_value)],
                vec![Value::Object(odd_wrong), json!({})],
            ),
        ),
        (
            "five thousand properties",
            json!({"type": "object", "properties": wide, "additionalProperties": false}),
            Compiled(
                vec![json!({"p3": "abc"})],
                vec![json!({"p3": "abcd"}), json!({"q": ""})],
            ),
        ),
        (
            "two thousand alternatives",
            json!({"type": "object", "oneOf": any_of}),
            Either,
        ),
        ("two to the thirty", json!({"allOf": blow_up}), Either),
        (
            "two to the sixty",
            json!({"$defs": doubled, "$ref": "#/$defs/d0"}),
            Compiled(vec![json!({"l": {"r": {}}})], vec![json!({"l": 1})]),
        ),
        (
            "repeated repetition",
            json!({"type": "string", "pattern": "^((x{1000}){1000}){1000}$"}),
            Either,
        ),
        (
            "nested stars",
            json!({"type": "string", "pattern": "^(((a*)*)*)*b$"}),
            Compiled(
                vec![json!("b"), json!("aab")],
                vec![json!("a"), json!("aabc")],
            ),
        ),
        (
            "far look back",
            json!({"type": "string", "pattern": "(a|b)*a(a|b){60}$"}),
            Either,
        ),
        (
            "nothing but look-around",
            json!({"type": "string", "pattern": "^(?=.*a)(?=.*b)(?=.*c)(?!.*d).{3,9}$"}),
            Either,
        ),
        (
            "a pattern that is none",
            json!({"type": "string", "pattern": "(((("}),
            Refused("malformed"),
        ),
        (
            "many pattern properties",
            json!({"type": "object", "patternProperties":
            (0..40).map(|n| (format!("^.{{0,{n}}}a"), json!({"minimum": n}))).collect::<Map<_, _>>()}),
            Either,
        ),
        (
            "deep, as deep as a parser reads",
            nested(60, |inner| json!({"properties": {"a": inner}})),
            Either,
        ),
        (
            "deep allOf",
            nested(60, |inner| json!({"allOf": [inner]})),
            Either,
        ),
        (
            "deep not",
            nested(60, |inner| json!({"not": inner})),
            Either,
        ),
        (
            "a reference to itself",
            json!({"$ref": "#"}),
            Refused("malformed"),
        ),
        (
            "a circle of references",
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
            Refused("malformed"),
        ),
        (
            "an object that needs itself",
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
            Refused("unsatisfiable"),
        ),
        (
            "a reference to elsewhere",
            json!({"$ref": "https://example.com/schema.json"}),
            Refused("external"),
        ),
        (
            "a reference to a file",
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            Refused("external"),
        ),
        (
            "more items than there can be",
            json!({"type": "array", "minItems": 1_u64 << 40}),
            Refused("limit"),
        ),
        (
            "huge numbers",
            json!({"type": "number", "minimum": -1e308, "maximum": 1e308}),
            Compiled(vec![json!(1.5)], vec![json!("x")]),
        ),
        (
            "a multiple of almost nothing",
            json!({"type": "number", "multipleOf": 1e-300}),
            Either,
        ),
        (
            "a multiple of a prime",
            json!({"type": "integer", "multipleOf": 1_000_003}),
            Either,
        ),
    ]
}

#[test]
fn hostile_schemas_end_in_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let cases = cases();
    let lines: Vec<String> = cases
        .iter()
        .map(|(id, schema, expected)| {
            let tests: Vec<Value> = match expected {
                Compiled(valid, invalid) => {
                    let valid = valid
                        .iter()
                        .map(|data| json!({"valid": true, "data": data}));
                    let invalid = invalid
                        .iter()
                        .map(|data| json!({"valid": false, "data": data}));
                    valid.chain(invalid).collect()
                }
                Refused(_) | Either => Vec::new(),
            };
            json!({"id": id, "schema": schema, "tests": tests}).to_string()
        })
        .collect();
    fs_err::write(folder.path().join("hostile.jsonl"), lines.join("\n")).unwrap();
    let output = snaffle(
        folder.path(),
        &["--json", "bench", "maskbench", "--data", "."],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut wrong = Vec::new();
    for ((id, _, expected), schema) in cases.iter().zip(report["schemas"].as_array().unwrap()) {
        let judgement = &schema["judgement"];
        assert_eq!(judgement["id"], *id);
        let verdict = &judgement["verdict"];
        let refused = verdict["refused"]["reason"].as_str();
        let compared = &verdict["compiled"];
        let right = match expected {
            Compiled(..) => {
                compared["false_rejections"] == json!([])
                    && compared["false_acceptances"] == json!([])
            }
            Refused(reason) => refused == Some(reason),
            Either => !matches!(refused, Some("time" | "memory" | "crash")),
        };
        if !right {
            wrong.push(format!("{id}: {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_hundred_thousand_levels_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let deep = format!("{}{}", "{\"not\":".repeat(100_000), "}".repeat(100_000));
    let list = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (name, text) in [("deep.json", deep), ("list.json", list)] {
        fs_err::write(folder.path().join(name), text).unwrap();
        for command in ["compile", "explain", "sample"] {
            let output = snaffle(folder.path(), &["grammar", command, name]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(5), "{command} {name}: {errors}");
            assert!(
                errors.starts_with("error: ") && errors.lines().count() == 1,
                "{errors}"
            );
        }
    }
}

#[test]
fn five_hundred_tools_make_a_grammar() {
    let folder = tempfile::tempdir().unwrap();
    let tools: Vec<Value> = (0..500)
        .map(|n| {
            json!({"name": format!("tool_{n}"), "inputSchema": {
                "type": "object",
                "properties": {
                    "имя": {"type": "string", "maxLength": 40 + n},
                    "level": {"enum": ["low", "high", format!("custom {n}")]},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": n % 9 + 1},
                },
                "required": ["имя"],
            }})
        })
        .collect();
    fs_err::write(
        folder.path().join("tools.json"),
        json!({"tools": tools}).to_string(),
    )
    .unwrap();
    let output = snaffle(
        folder.path(),
        &["--json", "grammar", "sample", "tools.json", "-n", "50"],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let samples: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(samples.len(), 50);
    assert!(
        samples.iter().all(|sample| sample["valid"] == true),
        "{text}"
    );
    let call = "{\"calls\": [{\"tool\": \"tool_499\", \"arguments\": {\"имя\": \"дом\", \"level\": \"custom 499\"}}]}";
    let output = snaffle(folder.path(), &["grammar", "match", "tools.json", call]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let other = call.replace("custom 499", "custom 498");
    let output = snaffle(folder.path(), &["grammar", "match", "tools.json", &other]);
    assert_eq!(output.status.code(), Some(9));
}
