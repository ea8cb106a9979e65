//! `snaffle fewshot` as a person meets it, and the file of what was learned: kept, bounded, read
//! past its damage. No test here needs a model.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod common;

use common::program::{outcome, snaffle};
use std::fs;
use std::path::Path;
use std::process::Stdio;

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let arguments = [&["fewshot"], arguments].concat();
    outcome(&snaffle(folder, &arguments).output().unwrap())
}

const CALL: &str = r#"{"tool": "turn_on", "arguments": {"device": "{device}"}}"#;

const LEARNED: &str = r#"{"request":"Fire up the {device}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}],"source":"learned","failure":"wrong_type"}"#;

/// A folder with a house, and with what was learned.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let house = "name = \"H\"\n[[area]]\nid = \"hall\"\n\n[[device]]\nid = \"lamp\"\nkind = \"switch\"\narea = \"hall\"\nstate = { on = false }\n";
    fs::write(folder.path().join("house.toml"), house).unwrap();
    fs::create_dir(folder.path().join(".snaffle")).unwrap();
    learn(folder.path(), &format!("{LEARNED}\n"));
    folder
}

fn learn(folder: &Path, text: &str) {
    fs::write(folder.join(".snaffle/learned.jsonl"), text).unwrap();
}

#[test]
fn help_reads_well() {
    let folder = place();
    for (name, arguments) in [
        ("help_fewshot", &["-h"][..]),
        ("help_fewshot_add", &["add", "-h"]),
    ] {
        let (code, out, err) = run(folder.path(), arguments);
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        insta::assert_snapshot!(name, out);
    }
    let completions = snaffle(folder.path(), &["completions", "bash"]);
    let (_, out, _) = outcome(&{ completions }.output().unwrap());
    assert!(
        out.contains("snaffle__fewshot__forget") || out.contains("fewshot"),
        "{out}"
    );
}

#[test]
fn examples_are_added_listed_forgotten_and_exported() {
    let folder = place();
    let at = folder.path();
    let (code, out, err) = run(at, &["list", "--source", "learned"]);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("list_learned", out);
    // One of one's own, by flags; the same again is there already.
    let add = [
        "add",
        "--house",
        "house.toml",
        "--request",
        "Spark up the {device}",
        "--call",
        CALL,
    ];
    let (code, out, err) = run(at, &add);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let id = out.split_whitespace().next().unwrap().to_owned();
    let (code, out, err) = run(at, &add);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.contains("there already"), "{err}");
    let (_, out, _) = run(at, &["list", "--tool", "turn_on", "--source", "added"]);
    assert!(out.contains(&id) && out.contains("Spark up"), "{out}");
    // All of them, and what is exported can be added elsewhere.
    let (code, lines, _) = run(at, &["export"]);
    assert_eq!(code, 0);
    assert!(lines.lines().count() > 100 && lines.contains("Spark up"));
    let (code, _, _) = run(at, &["export", "--source", "added", "-o", "mine.jsonl"]);
    assert_eq!(code, 0);
    let before = fs::read(at.join("mine.jsonl")).unwrap();
    let (code, _, err) = run(at, &["export", "-o", "mine.jsonl"]);
    assert_eq!(code, 8, "{err}");
    assert!(err.contains("exists already"), "{err}");
    assert_eq!(fs::read(at.join("mine.jsonl")).unwrap(), before);
    let other = tempfile::tempdir().unwrap();
    let file = at.join("mine.jsonl");
    let (code, out, err) = run(other.path(), &["add", &file.to_string_lossy()]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with(&id), "{out}");
    // A beginning is enough.
    let (code, out, err) = run(at, &["forget", &id[..6]]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("{id} is forgotten\n"));
    let (code, _, err) = run(at, &["forget", &id]);
    assert_eq!(code, 5, "{err}");
    let kept = fs::read_to_string(at.join(".snaffle/learned.jsonl")).unwrap();
    assert_eq!(kept, format!("{LEARNED}\n"));
}

#[test]
fn machines_get_json() {
    let folder = place();
    let (code, out, err) = run(folder.path(), &["--json", "list"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let mut sources = std::collections::BTreeSet::new();
    for line in out.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["id"].as_str().unwrap().len() == 8 && value["request"].is_string());
        sources.insert(value["source"].as_str().unwrap().to_owned());
    }
    assert_eq!(sources.into_iter().collect::<Vec<_>>(), ["learned", "seed"]);
}

#[test]
fn bad_input_gets_one_line_and_a_code_of_its_kind() {
    let folder = place();
    let at = folder.path();
    fs::write(
        at.join("bad.jsonl"),
        format!("{LEARNED}\n{{\"request\": 1}}\n"),
    )
    .unwrap();
    fs::write(at.join("empty.jsonl"), "\n").unwrap();
    fs::write(
        at.join("blank.jsonl"),
        "{\"request\":\" \",\"answer\":\"a\"}\n",
    )
    .unwrap();
    let (_, seed, _) = run(at, &["--json", "list", "--source", "seed"]);
    let seed: serde_json::Value = serde_json::from_str(seed.lines().next().unwrap()).unwrap();
    let seed = seed["id"].as_str().unwrap();
    let unknown = r#"{"tool": "turn_onn", "arguments": {}}"#;
    for (arguments, code, says) in [
        (&["add"][..], 2, "required"),
        (&["add", "--request", "x"], 2, "required"),
        (&["add", "bad.jsonl", "--request", "x"], 2, "cannot be used"),
        (&["forget"], 2, "required"),
        (&["add", "none.jsonl"], 5, "none.jsonl: No such file"),
        (&["add", "bad.jsonl"], 5, "bad.jsonl: line 2: invalid type"),
        (
            &["add", "empty.jsonl"],
            5,
            "empty.jsonl: it holds no example",
        ),
        (
            &["add", "blank.jsonl"],
            5,
            "blank.jsonl: line 1: the request is empty",
        ),
        (
            &["add", "--request", "x", "--call", "{"],
            5,
            "--call is not JSON",
        ),
        (
            &["add", "--request", "x", "--call", "{}"],
            5,
            "the example is wrong: missing field `tool`",
        ),
        (
            &["add", "--request", "{x}", "--ask", "y"],
            5,
            "nothing says what fills {x}",
        ),
        (
            &[
                "add",
                "--house",
                "house.toml",
                "--request",
                "x",
                "--call",
                unknown,
            ],
            5,
            "there is no tool \"turn_onn\"",
        ),
        (&["forget", "zzz"], 5, "there is no example \"zzz\""),
        (&["forget", ""], 5, "there is no example \"\""),
        (
            &["forget", seed],
            5,
            "ships with snaffle and cannot be forgotten",
        ),
        (&["export", "-o", "none/x.jsonl"], 8, "none/x.jsonl"),
        (&["list", "--learned", "."], 8, "."),
    ] {
        let (exit, out, err) = run(at, arguments);
        assert_eq!((exit, out.as_str()), (code, ""), "{arguments:?}: {err}");
        let first = err.lines().next().unwrap();
        assert!(
            first.starts_with("error: ") && first.contains(says),
            "{arguments:?}: {err}"
        );
    }
    let kept = fs::read_to_string(at.join(".snaffle/learned.jsonl")).unwrap();
    assert_eq!(
        kept,
        format!("{LEARNED}\n"),
        "what is refused changes nothing"
    );
}

#[test]
fn damage_is_told_in_one_line_and_the_rest_is_used() {
    let folder = place();
    learn(
        folder.path(),
        &format!("{{\"request\n\u{1b}[2J\n{LEARNED}\n"),
    );
    let (code, out, err) = run(folder.path(), &["list", "--source", "learned"]);
    assert_eq!(code, 0);
    assert!(out.contains("Fire up"), "{out}");
    assert_eq!(err.lines().count(), 1, "{err}");
    let says = "warning: .snaffle/learned.jsonl: 2 lines are damaged and left out: line 1: ";
    assert!(err.starts_with(says), "{err}");
}

#[test]
fn nothing_that_is_printed_moves_the_cursor() {
    let folder = place();
    let line = LEARNED.replace("Fire up", "\\u001b[2J\u{202e}Fire up");
    learn(folder.path(), &line);
    for arguments in [&["list", "--source", "learned"][..], &["export"]] {
        let (code, out, _) = run(folder.path(), arguments);
        assert_eq!(code, 0);
        assert!(!out.contains(['\u{1b}', '\u{202e}']), "{out:?}");
        assert!(out.contains("Fire up"), "{out:?}");
    }
}

#[test]
fn two_writers_at_once_lose_nothing() {
    let folder = place();
    let at = folder.path();
    let started: Vec<_> = (0..8)
        .map(|number| {
            let request = format!("Number {number} for the {{device}}");
            let arguments = ["fewshot", "add", "--request", &request, "--call", CALL];
            snaffle(at, &arguments)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    let kept = fs::read_to_string(at.join(".snaffle/learned.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 9, "{kept}");
}

#[test]
fn looking_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["list"][..], &["export"], &["list", "--tool", "none"]] {
        assert_eq!(run(folder.path(), arguments).0, 0);
    }
    assert!(!folder.path().join(".snaffle").exists());
}
