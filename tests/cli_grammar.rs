//! `snaffle grammar` as a person meets it: coverage, samples, matching, checks, and bad input.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by failing"
)]

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_snaffle"))
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that reads nothing may be gone already.
    _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({
        "type": "object",
        "description": "заказ",
        "properties": {
            "город": {"type": "string", "minLength": 1, "pattern": "^[А-Я]"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "\u{1b}[31m": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["город"],
        "additionalProperties": false,
    });
    let tools = json!([
        {"name": "turn_on", "parameters": {"type": "object",
            "properties": {"device": {"enum": ["лампа", "灯"]}}, "required": ["device"]}},
        {"name": "wait", "parameters": {"type": "object",
            "properties": {"seconds": {"type": "integer", "minimum": 1, "maximum": 60}}}},
    ]);
    for (name, text) in [
        ("schema.json", schema.to_string()),
        ("tools.json", tools.to_string()),
        ("list.gbnf", "root ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"\n".to_owned()),
        (
            "odd.gbnf",
            "root ::= a\na ::= \"x\" | b\nb ::= \"y\" b\nlost ::= also\nalso ::= lost2 | \"z\"\nlost2 ::= \"w\" also\n".to_owned(),
        ),
        ("circle.gbnf", "root ::= a \"x\"\na ::= empty b\nb ::= a | \"y\"\nempty ::= \"\"?\n".to_owned()),
        ("endless.gbnf", "root ::= \"x\" root\n".to_owned()),
        ("token.gbnf", "root ::= <think> \"x\"\n".to_owned()),
        ("long.gbnf", "root ::= \"x\"{100000}\n".to_owned()),
        ("refused.json", "{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 2}".to_owned()),
        ("twice.json", "[{\"name\": \"a\"}, {\"name\": \"a\"}]".to_owned()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Both streams and the code, as a person sees them.
fn shown(arguments: &[&str], input: &str) -> String {
    let folder = folder();
    let (code, out, err) = run(folder.path(), arguments, input);
    format!("$ snaffle {}\n{out}{err}({code})\n", arguments.join(" "))
}

#[test]
fn coverage_is_a_table() {
    insta::assert_snapshot!(
        "grammar_explain",
        shown(&["grammar", "explain", "schema.json"], "")
    );
    insta::assert_snapshot!(
        "grammar_explain_tools",
        shown(&["grammar", "explain", "tools.json"], "")
    );
}

#[test]
fn checks_say_what_is_wrong_and_what_is_odd() {
    let all: Vec<String> = [
        "list.gbnf",
        "odd.gbnf",
        "circle.gbnf",
        "endless.gbnf",
        "token.gbnf",
    ]
    .iter()
    .map(|file| shown(&["grammar", "check", file], ""))
    .collect();
    insta::assert_snapshot!("grammar_check", all.concat());
}

#[test]
fn a_text_that_does_not_match_says_where() {
    let cases: [(&[&str], &str); 9] = [
        (
            &["grammar", "match", "list.gbnf", "-"],
            "- молоко\n- 牛奶\n",
        ),
        (&["grammar", "match", "list.gbnf", "-"], "- молоко\n牛奶\n"),
        (&["grammar", "match", "list.gbnf", "- milk"], ""),
        (
            &[
                "grammar",
                "match",
                "schema.json",
                "{\"город\": \"Омск\", \"count\": 12}",
            ],
            "",
        ),
        (
            &["grammar", "match", "schema.json", "{\"город\": \"омск\"}"],
            "",
        ),
        (
            &["grammar", "match", "schema.json", "{\"город\": \"Омск\"}\n"],
            "",
        ),
        (
            &[
                "grammar",
                "match",
                "tools.json",
                "{\"calls\": [{\"tool\": \"turn_off\"",
            ],
            "",
        ),
        (&["grammar", "match", "list.gbnf", "\u{1b}[2J"], ""),
        (
            &[
                "--json",
                "grammar",
                "match",
                "schema.json",
                "{\"город\": \"Омск\", \"when\": \"2024-02-30\"}",
            ],
            "",
        ),
    ];
    let all: Vec<String> = cases
        .iter()
        .map(|(arguments, input)| shown(arguments, input))
        .collect();
    let all = all.concat();
    assert!(
        !all.replace("\u{1b}[2J\n", "").contains("\u{1b}[2J"),
        "a terminal would obey it"
    );
    insta::assert_snapshot!("grammar_match", all.replace('\u{1b}', "ESC"));
}

#[test]
fn a_text_may_come_from_a_file() {
    let folder = folder();
    fs::write(folder.path().join("text"), "- a\n").unwrap();
    let (code, out, _) = run(
        folder.path(),
        &["grammar", "match", "list.gbnf", "@text"],
        "",
    );
    assert_eq!((code, out.as_str()), (0, "accepted (4 bytes)\n"));
    fs::write(folder.path().join("bytes"), b"- \xFF\n").unwrap();
    let (code, out, _) = run(
        folder.path(),
        &["grammar", "match", "list.gbnf", "@bytes"],
        "",
    );
    assert_eq!(code, 9);
    assert!(out.contains("the byte 0xFF, which is not UTF-8"), "{out}");
}

#[test]
fn samples_match_and_validate() {
    let folder = folder();
    for file in ["schema.json", "tools.json", "list.gbnf"] {
        let arguments = [
            "--json", "grammar", "sample", file, "-n", "40", "--seed", "7",
        ];
        let (code, out, err) = run(folder.path(), &arguments, "");
        assert_eq!((code, err.as_str()), (0, ""), "{file}");
        let (_, again, _) = run(folder.path(), &arguments, "");
        assert_eq!(out, again, "the same seed, the same texts");
        let samples: Vec<Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(samples.len(), 40);
        for sample in &samples {
            let text = sample["text"].as_str().unwrap();
            let (code, out, _) = run(folder.path(), &["grammar", "match", file, "-"], text);
            assert_eq!(code, 0, "{file}: {text:?}: {out}");
            match file {
                "list.gbnf" => assert_eq!(sample["valid"], Value::Null),
                // `uniqueItems` is checked after generation.
                "schema.json" => {
                    assert!(sample["valid"] == true || text.contains("31m"), "{sample}");
                }
                _ => assert_eq!(sample["valid"], true, "{sample}"),
            }
        }
    }
}

#[test]
fn the_form_for_llama_cpp_is_the_same_language() {
    let folder = folder();
    let (code, out, err) = run(
        folder.path(),
        &["grammar", "compile", "--llama-cpp", "-"],
        "{\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": 5000}, \"maxItems\": 3000}",
    );
    assert_eq!((code, err.as_str()), (0, ""));
    fs::write(folder.path().join("array.gbnf"), out).unwrap();
    let text = |items: usize, length: usize| {
        json!(vec!["ж".repeat(length); items])
            .to_string()
            .replace(',', ", ")
    };
    for (items, length, expected) in [(3, 5000, 0), (3, 5001, 9), (3000, 1, 0), (3001, 1, 9)] {
        let arguments = ["grammar", "match", "array.gbnf", "-"];
        let (code, out, _) = run(folder.path(), &arguments, &text(items, length));
        assert_eq!(code, expected, "{items} of {length}: {out}");
    }
}

#[test]
fn bad_input_gets_one_line() {
    let folder = folder();
    for (arguments, code, says) in [
        (
            &["grammar", "sample", "long.gbnf"][..],
            5,
            "shortest text that the grammar accepts has 100000 bytes",
        ),
        (
            &["grammar", "sample", "token.gbnf"],
            5,
            "names the token <think>",
        ),
        (
            &["grammar", "sample", "endless.gbnf"],
            5,
            "accepts no text at all",
        ),
        (
            &["grammar", "match", "circle.gbnf", "x"],
            5,
            "left recursion: a → b → a",
        ),
        (
            &["grammar", "match", "list.gbnf", "@none"],
            5,
            "none: No such file",
        ),
        (
            &["grammar", "match", "none.gbnf", "x"],
            5,
            "none.gbnf: No such file",
        ),
        (
            &["grammar", "explain", "list.gbnf"],
            5,
            "list.gbnf: not JSON",
        ),
        (
            &["grammar", "explain", "refused.json"],
            5,
            "no value can satisfy the schema",
        ),
        (
            &["grammar", "compile", "twice.json"],
            5,
            "tool 2 is called a, like one before it",
        ),
        (
            &["grammar", "bench", "list.gbnf", "--vocab", "./none.gguf"],
            4,
            "no model file ./none.gguf",
        ),
        (&["bench", "maskbench", "--data", "none"], 5, "none"),
        (
            &["bench", "maskbench", "--data", "."],
            5,
            ". has no such data",
        ),
        (&["bench", "schema-suite", "--data", "."], 5, "draft2020-12"),
    ] {
        let (found, out, err) = run(folder.path(), arguments, "");
        assert_eq!((found, out.as_str()), (code, ""), "{arguments:?}: {err}");
        // A warning may stand before it.
        let error = err.lines().find(|line| line.starts_with("error: "));
        assert!(
            error.is_some_and(|error| error.contains(says)),
            "{arguments:?}: {err}"
        );
        assert!(err.lines().count() <= 4, "{err}");
    }
}

#[test]
fn schemas_are_judged_from_the_command_line() {
    let folder = folder();
    let line = |id: &str, schema: Value, tests: Value| {
        json!({"id": id, "schema": schema, "tests": tests}).to_string()
    };
    let lines = [
        line(
            "right",
            json!({"type": "integer"}),
            json!([{"valid": true, "data": 1}, {"valid": false, "data": "x"}]),
        ),
        line(
            "order",
            json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
            json!([{"valid": true, "data": {"b": 1, "a": 1}}]),
        ),
        line(
            "wrong",
            json!({"type": "integer"}),
            json!([{"valid": true, "data": "x"}]),
        ),
        line("refused", json!({"$ref": "other.json"}), json!([])),
    ];
    fs::write(folder.path().join("set.jsonl"), lines.join("\n")).unwrap();
    let report = folder.path().join("report.json");
    let arguments = [
        "bench",
        "maskbench",
        "--data",
        ".",
        "--list",
        "--jobs",
        "2",
        "-o",
        "report.json",
    ];
    let (code, out, err) = run(folder.path(), &arguments, "");
    assert_eq!((code, err.as_str()), (0, ""));
    for says in [
        "order instance 0 rejected (order)",
        "wrong instance 0 rejected: ⟂\"x\"",
        "refused refused, external:",
    ] {
        assert!(out.contains(says), "{says}: {out}");
    }
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let figures = &report["figures"]["set"];
    assert_eq!(figures["schemas"], 4);
    assert_eq!(figures["right"]["right"], 1);
    assert_eq!(figures["refused"]["external"], 1);
    assert_eq!(figures["schemas_with_false_rejection"], 2);
    assert_eq!(figures["of_them_by_order_alone"], 1);
    fs::write(folder.path().join("set.jsonl"), "{\"id\": 1}").unwrap();
    let (code, _, err) = run(folder.path(), &arguments, "");
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("set.jsonl: line 1: "), "{err}");
}

/// What a schema may take is really all that it gets.
#[test]
#[cfg(target_os = "linux")]
fn limits_of_time_and_memory_hold() {
    let folder = folder();
    // Values that have next to nothing in common.
    let values: Vec<String> = (1..=60_000_u64)
        .map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        .collect();
    let heavy = json!({"id": "heavy", "schema": {"enum": values}, "tests": []}).to_string();
    let light = json!({"id": "light", "schema": {"type": "null"}, "tests": []}).to_string();
    fs::write(
        folder.path().join("set.jsonl"),
        format!("{heavy}\n{light}\n"),
    )
    .unwrap();
    let arguments = [
        "--json",
        "bench",
        "maskbench",
        "--data",
        ".",
        "--memory",
        "32",
    ];
    let (code, out, err) = run(folder.path(), &arguments, "");
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        report["figures"]["all"]["refused"]["memory"], 1,
        "{}",
        report["figures"]["all"]
    );
    assert_eq!(report["figures"]["all"]["compiled"], 1);
}
