//! Command tools with real child processes.

use super::*;
use crate::call::{Approval, Call, Moves, Policy, Verdict};
use crate::tool::Registry;
use std::path::PathBuf;
use std::time::{Duration, Instant};

struct Tools {
    folder: tempfile::TempDir,
}

impl Tools {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.path().join(name);
        fs_err::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("tools.toml");
        fs_err::write(&path, text).unwrap();
        path
    }

    /// One tool `t` that runs `sh -c SCRIPT`.
    fn shell(&self, script: &str, more: &str) -> Registry {
        let program = toml::Value::from(vec!["sh", "-c", script]);
        let path = self.file(&format!(
            "[[tool]]\nname = 't'\ndescription = 'x'\nprogram = {program}\n{more}"
        ));
        let mut registry = Registry::new();
        registry.register_all(tools(&path).unwrap()).unwrap();
        registry
    }
}

fn run(registry: &mut Registry, arguments: &Value) -> Result<Outcome, ToolError> {
    let moves: Moves = registry.moves(&Policy::default()).unwrap();
    let call = Call {
        tool: "t".into(),
        arguments: arguments.as_object().unwrap().clone(),
    };
    let checked = match moves.check(call).unwrap() {
        Verdict::Checked(checked) => checked,
        Verdict::Ask(pending) => pending.approve(Approval::Person),
    };
    registry.run(&checked)
}

#[test]
fn results_are_json_or_text() {
    let cases = [
        ("echo '{\"a\": 1}'", json!({"a": 1})),
        ("echo 5", json!(5)),
        (
            "printf 'two\\nlines\\033[31m\\n'",
            json!({"text": "two\nlines[31m"}),
        ),
        ("true", json!({"text": ""})),
        ("printf '\\377x'", json!({"text": "\u{FFFD}x"})),
        ("cat; exec >&-; sleep 0.05", json!({})),
    ];
    for (script, expected) in cases {
        let tools = Tools::new();
        let outcome = run(&mut tools.shell(script, ""), &json!({})).unwrap();
        assert_eq!(outcome.result, expected, "{script}");
        assert_eq!(outcome.changes, ["t ran"]);
    }
}

#[test]
fn arguments_arrive_as_json() {
    let tools = Tools::new();
    let more = "effect = 'read'\n[tool.parameters]\ntype = 'object'\nrequired = ['text']\n\
        [tool.parameters.properties]\ntext = { type = 'string' }\nn = { type = 'integer' }\n";
    let mut registry = tools.shell("cat", more);
    // Larger than a pipe holds, both ways.
    let text = "ключ \"'\\$(touch x)🦊".repeat(1500);
    let arguments = json!({"text": text, "n": 7});
    let outcome = run(&mut registry, &arguments).unwrap();
    assert_eq!((outcome.result, outcome.changes), (arguments, vec![]));
    // A program that does not read is no fault.
    let mut deaf = tools.shell("echo 1", more);
    assert_eq!(run(&mut deaf, &json!({"text": text})).unwrap().result, 1);
}

#[test]
fn failures_say_why() {
    let cases = [
        (
            "echo one >&2; echo 'две \u{7}линии' >&2; exit 3",
            "t: failed with exit code 3: one; две линии",
            false,
        ),
        ("kill -9 $$", "t: ended by signal 9", true),
        ("exit 1", "t: failed with exit code 1", false),
        ("yes | head -c 300000 >&2; exit 2", "exit code 2", false),
    ];
    for (script, says, unknown) in cases {
        let tools = Tools::new();
        let error = run(&mut tools.shell(script, ""), &json!({})).unwrap_err();
        assert!(error.message.contains(says), "{}", error.message);
        assert!(error.message.len() < 700);
        assert_eq!(error.effect_unknown, unknown, "{script}");
    }
}

#[test]
fn what_hangs_is_killed_with_its_children() {
    let tools = Tools::new();
    let marker = tools.folder.path().join("late");
    let script = format!("(sleep 1; touch {}) & sleep 60", marker.display());
    let mut registry = tools.shell(&script, "timeout_seconds = 0.2\n");
    let start = Instant::now();
    let error = run(&mut registry, &json!({})).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(1));
    assert!(
        error.message.contains("killed after 0.2 s"),
        "{}",
        error.message
    );
    assert!(error.effect_unknown);
    std::thread::sleep(Duration::from_millis(1200));
    assert!(!marker.exists(), "a child of the killed program went on");
    // What only reads has done nothing that could be unknown.
    let mut reader = tools.shell("sleep 60", "timeout_seconds = 0.1\neffect = 'read'\n");
    assert!(!run(&mut reader, &json!({})).unwrap_err().effect_unknown);
}

#[test]
fn a_child_left_behind_is_not_waited_for() {
    let tools = Tools::new();
    let start = Instant::now();
    let outcome = run(&mut tools.shell("sleep 30 & echo 1", ""), &json!({})).unwrap();
    assert_eq!(outcome.result, 1);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn endless_output_is_cut() {
    let tools = Tools::new();
    let start = Instant::now();
    let error = run(
        &mut tools.shell("head -c 100000000 /dev/zero", ""),
        &json!({}),
    )
    .unwrap_err();
    assert!(
        error.message.contains("more than 65536 bytes"),
        "{}",
        error.message
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    let mut exact = tools.shell(
        "head -c 100 /dev/zero | tr '\\0' a",
        "max_output_bytes = 100\n",
    );
    assert_eq!(
        run(&mut exact, &json!({})).unwrap().result["text"],
        "a".repeat(100)
    );
}

#[test]
fn the_environment_is_reduced() {
    let tools = Tools::new();
    let outcome = run(
        &mut tools.shell("env", "environment = ['CARGO_MANIFEST_DIR']\n"),
        &json!({}),
    )
    .unwrap();
    let text = outcome.result["text"].as_str().unwrap().to_owned();
    assert!(text.contains("PATH=") && text.contains("CARGO_MANIFEST_DIR="));
    assert!(!text.contains("CARGO_PKG_NAME="), "{text}");
}

#[test]
fn live_values_come_from_lists_and_programs() {
    let tools = Tools::new();
    tools.script("list.sh", "#!/bin/sh\nprintf 'свет\\n\\nсвет\\nдверь\\n'\n");
    let more = "[tool.parameters.properties]\na = { type = 'string' }\nb = { type = 'integer' }\nc = {}\n\
        [tool.domains]\na = { program = ['./list.sh'] }\nb = [1, 2]\nc = { program = ['echo', '[1, \"x\"]'] }\n";
    let registry = tools.shell("cat", more);
    let moves = registry.moves(&Policy::default()).unwrap();
    let domains = &moves.moves[0].domains;
    assert_eq!(domains["a"], [json!("свет"), json!("дверь")]);
    assert_eq!(domains["b"], [json!(1), json!(2)]);
    assert_eq!(domains["c"], [json!(1), json!("x")]);
    tools.script("list.sh", "#!/bin/sh\necho broken >&2\nexit 1\n");
    let error = registry.moves(&Policy::default()).unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
    fs_err::remove_file(tools.folder.path().join("list.sh")).unwrap();
    let error = registry.moves(&Policy::default()).unwrap_err();
    assert!(error.to_string().contains("cannot start"), "{error}");
}

#[test]
fn wrong_declarations_are_named_with_their_line() {
    let tools = Tools::new();
    tools.script("fine.sh", "#!/bin/sh\n");
    fs_err::write(tools.folder.path().join("data.txt"), "x").unwrap();
    let head = "[[tool]]\nname = 't'\ndescription = 'x'\n";
    let cases = [
        (format!("{head}program = []\n"), 4, "`program` is empty"),
        (
            format!("{head}program = ['no-such-program-here']\n"),
            4,
            "no program \"no-such-program-here\" in PATH",
        ),
        (format!("{head}program = ['./none.sh']\n"), 4, "no program"),
        (
            format!("{head}program = ['./data.txt']\n"),
            4,
            "may not be executed",
        ),
        (
            format!("{head}program = ['./fine.sh']\nprogramme = 1\n"),
            5,
            "unknown field `programme`",
        ),
        (
            format!("{head}program = ['./fine.sh']\neffect = 'none'\n"),
            5,
            "unknown variant `none`",
        ),
        (
            format!("{head}program = ['./fine.sh']\ntimeout_seconds = 0\n"),
            5,
            "above 0",
        ),
        (
            format!("{head}program = ['./fine.sh']\nmax_output_bytes = 999999999\n"),
            5,
            "16 MiB",
        ),
        (
            format!("{head}program = ['./fine.sh']\nparameters_json = '{{'\n"),
            5,
            "parameters_json",
        ),
        (
            format!("{head}program = ['./fine.sh']\nparameters_json = '{{\"type\": 1}}'\n"),
            5,
            "schema of t's arguments",
        ),
        (
            format!("{head}program = ['./fine.sh']\n[tool.parameters]\ntype = 'string'\n"),
            5,
            "always an object",
        ),
        (
            format!("{head}program = ['./fine.sh']\n[tool.domains]\nx = ['a']\n"),
            6,
            "no argument `x`",
        ),
        (
            format!("{head}program = ['./fine.sh']\n{head}program = ['./fine.sh']\n"),
            6,
            "two tools called `t`, the first at line 2",
        ),
        (
            "[[tool]]\nname = 'a b'\ndescription = ''\nprogram = ['./fine.sh']\n".into(),
            2,
            "\"a b\"",
        ),
        ("[[tool]\n".into(), 1, ""),
        ("x = 1\n".into(), 1, "unknown field `x`"),
    ];
    for (text, line, says) in cases {
        let error = tools_error(&tools, &text);
        assert!(
            error.contains(&format!("tools.toml:{line}: ")) && error.contains(says),
            "{text}\n→ {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

fn tools_error(tools: &Tools, text: &str) -> String {
    super::tools(&tools.file(text))
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default()
}

#[test]
fn the_samples_load_and_run() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/tools");
    let mut registry = Registry::new();
    registry
        .register_all(tools(&folder.join("text.toml")).unwrap())
        .unwrap();
    let moves = registry.moves(&Policy::default()).unwrap();
    let call = Call::new("count_words", [("text", "раз два\nтри")]);
    let Ok(Verdict::Checked(checked)) = moves.check(call) else {
        panic!("counting words only reads");
    };
    let result = registry.run(&checked).unwrap().result;
    assert_eq!(result, json!({"words": 3, "characters": 11}));
}

#[test]
fn a_declared_check_tells_what_came_of_a_call() {
    let tools = Tools::new();
    let call = Call::new("t", [("n", 1)]);
    for (check, expected) in [
        (
            r#"echo '{"number": 7}'"#,
            Some((true, Some(json!({"number": 7})))),
        ),
        ("true", Some((true, None))),
        ("exit 1", Some((false, None))),
        ("exit 2", None),
        ("kill -9 $$", None),
    ] {
        let program = toml::Value::from(vec!["sh", "-c", check]);
        let mut registry = tools.shell("true", &format!("check = {program}"));
        let took = registry.took_effect(&call).ok().flatten();
        let took = took.map(|took| (took.happened, took.result));
        assert_eq!(took, expected, "{check}");
    }
    let mut registry = tools.shell("true", "");
    assert_eq!(registry.took_effect(&call), Ok(None));
}

#[test]
fn a_result_can_be_the_answer() {
    let tools = Tools::new();
    for (script, more, expected) in [
        ("echo done", "ends = true", Some("done")),
        ("echo '{\"n\": 1}'", "ends = true", Some("{\"n\": 1}")),
        ("echo done", "", None),
    ] {
        let mut registry = tools.shell(script, more);
        let moves = registry.moves(&Policy::default()).unwrap();
        let call = Call {
            tool: "t".into(),
            arguments: serde_json::Map::new(),
        };
        let Verdict::Ask(waiting) = moves.check(call).unwrap() else {
            panic!("a program is asked about");
        };
        let checked = waiting.approve(Approval::Person);
        let outcome = registry.run(&checked).unwrap();
        let answer = registry.answer_of(&checked, &outcome);
        assert_eq!(answer.as_deref(), expected, "{script}");
    }
}
