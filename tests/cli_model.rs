//! The program with the tiny model: a real request, what it leaves, and what must leave nothing.
#![cfg(feature = "llama")]
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod common;

use common::place::{Place, read};
use common::{SMOLLM2, alone};
use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

const REQUEST: &str = "turn on the kitchen light";

#[test]
fn a_light_goes_on_and_everything_is_on_record() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let before = place.house();
    let (code, out, err) = place.run(&["run", REQUEST]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.starts_with(&format!(
            "› {REQUEST}\n\n  1  turn_on  device: kitchen light\n"
        )),
        "{out}"
    );
    assert!(out.contains("on: false → true"), "{out}");
    assert_ne!(place.house(), before);

    let tasks = place.tasks();
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0]["status"], "answered");
    let id = tasks[0]["id"].as_str().unwrap();
    let (code, out, err) = place.run(&["task", "show", id]);
    assert_eq!(code, 0, "{err}");
    let steps = ["  created  ", "  intent  ", "  outcome  ", "  answered  "];
    let places: Vec<usize> = steps
        .map(|step| out.find(step).unwrap_or(usize::MAX))
        .into();
    assert!(places.is_sorted() && places[3] < usize::MAX, "{out}");
    let (code, out, err) = place.run(&["trace", "show", id]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("kitchen light"), "{out}");

    // The second process takes up what the first evaluated.
    let (code, out, err) = place.run(&["run", "--json", REQUEST]);
    assert_eq!(code, 0, "{err}");
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let (reused, evaluated) = (&last["prompt_reused"], &last["prompt_evaluated"]);
    assert!(reused.as_u64() > evaluated.as_u64(), "{last}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let before = place.house();
    let (code, out, err) = place.run(&["run", "--dry-run", REQUEST]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("(dry run: not executed)"), "{out}");
    assert_eq!(place.house(), before);
    assert!(place.tasks().is_empty());
}

#[test]
fn what_was_cut_is_not_taken() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    // By the limit of the run, whatever was being written.
    for most in ["5", "30"] {
        let (code, out, err) = place.run(&["run", "--max-run-tokens", most, REQUEST]);
        assert_eq!(code, 11, "{most}: {out}{err}");
    }
    // By what an argument may hold: of 150 percent, 15.
    let before = place.house();
    let (code, out, err) = place.run(&["run", "dim the kitchen light to 150%"]);
    assert_eq!(code, 10, "{out}{err}");
    assert!(out.contains("brightness cannot be 150"), "{out}{err}");
    assert!(err.contains("--answer TEXT"), "{err}");
    assert_eq!(place.house(), before);
    // The answer that a script gives is taken like one at a terminal.
    let asks = |task: &serde_json::Value| task["goal"].as_str().unwrap().contains("150%");
    let task = place.tasks().into_iter().find(asks).unwrap();
    let id = task["id"].as_str().unwrap().to_owned();
    let (code, out, err) = place.run(&["task", "resume", &id, "--answer", "15%"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(place.house().contains("brightness = 15"), "{out}{err}");
    let (code, _, err) = place.run(&["task", "resume", &id, "--answer", " "]);
    assert_eq!((code, err.as_str()), (2, "error: --answer is empty\n"));
}

#[test]
fn a_prompt_is_explained_with_the_models_own_tokens() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let (code, out, err) = place.run(&["run", "--json", "--explain", REQUEST]);
    assert_eq!(code, 0, "{err}");
    let events: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| -> Vec<&serde_json::Value> {
        let own = events.iter().filter(|event| event["event"] == kind);
        own.collect()
    };
    let number = |event: &serde_json::Value, key: &str| event[key].as_u64().unwrap();
    assert_eq!(of("prompt").len(), 2);
    for (prompt, generated) in of("prompt").into_iter().zip(of("generated")) {
        let sections = prompt["sections"].as_array().unwrap();
        let own: u64 = sections
            .iter()
            .map(|section| number(section, "tokens"))
            .sum();
        let total = number(prompt, "tokens");
        assert_eq!(own + number(prompt, "template"), total);
        let (reused, evaluated) = (
            number(generated, "prompt_reused"),
            number(generated, "prompt_evaluated"),
        );
        assert_eq!(reused + evaluated, total);
        let request = sections.iter().find(|section| section["name"] == "request");
        // "turn on the kitchen light": a token a word.
        assert_eq!(number(request.unwrap(), "tokens"), 5);
    }
}

#[test]
fn questions_are_decided() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let capital = ["decide", "What is the capital of Italy?", "--options"];
    let (code, out, err) = place.run(&[&capital[..], &["Rome,Madrid,Berlin"]].concat());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "Rome\n", ""));
    let (code, out, err) = place.run(&[
        "decide",
        "Какого цвета трава?",
        "--json",
        "--options",
        "зелёная,红色的,💡",
    ]);
    assert_eq!((code, err.as_str()), (0, ""));
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    let options = value["options"].as_array().unwrap();
    let sum: f64 = options
        .iter()
        .map(|o| o["probability"].as_f64().unwrap())
        .sum();
    assert!((sum - 1.0).abs() < 1e-9, "{value}");
    let long = "word ".repeat(5000);
    let (code, out, err) = place.run(&["decide", "--yes-no", &long]);
    assert_eq!((code, out.as_str()), (5, ""), "{err}");
    assert!(err.starts_with("error: the prompt has "), "{err}");
}

#[test]
fn what_the_policy_denies_cannot_be_called() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let before = place.house();
    let (code, out, _) = place.run(&["run", "--policy", "*=deny", "--max-turns", "2", REQUEST]);
    assert!(matches!(code, 0 | 6 | 9 | 10 | 11), "{code}: {out}");
    assert!(!out.contains("turn_on"), "{out}");
    assert_eq!(place.house(), before);
}

#[test]
fn bad_input_leaves_journal_and_house_as_they_were() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let before = place.house();
    let long = "light ".repeat(20_000);
    let (code, _, err) = place.run(&["run", &long]);
    assert_eq!(code, 5, "{err}");
    assert!(err.starts_with("error: the request has "), "{err}");

    // Nobody reads: the run ends before it begins.
    let mut child = place.command(&["run", REQUEST]).spawn().unwrap();
    drop(child.stdout.take());
    let (code, _, err) = read(&child.wait_with_output().unwrap());
    assert_eq!(
        (code, err.as_str()),
        (141, "error: standard output was closed\n")
    );

    #[cfg(target_os = "linux")]
    {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = place
            .command(&["run", REQUEST])
            .stdout(full)
            .output()
            .unwrap();
        let (code, _, err) = read(&output);
        assert_eq!(code, 8, "{err}");
    }

    let (code, _, err) = place.run(&["run", "--context", "100000", REQUEST]);
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("more than the 8192 that the model was trained for"),
        "{err}"
    );

    // A journal that cannot be: its folder is a file.
    fs::write(place.folder.path().join("file"), "").unwrap();
    let (code, _, err) = place.run(&["run", "--journal", "file/journal.sqlite", REQUEST]);
    assert_eq!(code, 8, "{err}");

    assert_eq!(place.house(), before);
    assert!(place.tasks().is_empty());
}

#[test]
fn a_changed_model_file_is_refused() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let models = place.folder.path().join("models");
    fs::create_dir(&models).unwrap();
    let mut bytes = fs::read(&place.model).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(models.join(SMOLLM2), &bytes).unwrap();
    let arguments = [
        "run",
        "--models-dir",
        "models",
        "--model",
        "smollm2-135m",
        REQUEST,
    ];
    let (code, _, err) = place.run(&arguments);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("wrong hash"), "{err}");
    bytes.truncate(middle);
    fs::write(models.join(SMOLLM2), &bytes).unwrap();
    let (code, _, err) = place.run(&arguments);
    assert_eq!(code, 4, "{err}");
    assert!(place.tasks().is_empty());
}

/// A copy of the model whose chat template is this one.
fn with_template(place: &Place, template: &str) -> std::path::PathBuf {
    let mut bytes = fs::read(&place.model).unwrap();
    let info = snaffle::model::inspect(&place.model).unwrap();
    let old = info.chat_template.unwrap();
    let at = bytes
        .windows(old.len())
        .position(|window| window == old.as_bytes())
        .unwrap();
    assert!(template.len() <= old.len(), "{}", old.len());
    let padded = format!("{template:<width$}", width = old.len());
    bytes[at..at + old.len()].copy_from_slice(padded.as_bytes());
    let path = place.folder.path().join("changed.gguf");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_template_that_harms_is_stopped() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let before = place.house();
    for (template, says) in [
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "loops or explodes",
        ),
        (
            "{% set n = namespace(x='x') %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}\
             {% endfor %}{{ n.x }}",
            "loops or explodes",
        ),
        ("{{ 'a' * 99999999 }}", "explodes"),
        (
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "template",
        ),
        (
            "{{ raise_exception('no\\n\\x1b[2J') }}",
            "refuses the messages",
        ),
        (
            "{% for m in messages %}x{% endfor %}",
            "leaves out the content",
        ),
        ("{% for", "the chat template cannot be read"),
    ] {
        let model = with_template(&place, template);
        let model = model.to_string_lossy();
        let (code, out, err) = place.run(&["run", "--model", &model, REQUEST]);
        assert_eq!((code, out.as_str()), (4, ""), "{template}: {err}");
        assert!(
            err.starts_with("error: ") && err.contains(says),
            "{template}: {err}"
        );
        assert_eq!(err.lines().count(), 1, "{template}: {err}");
        assert!(!err.contains('\u{1b}'), "{err}");
    }
    assert_eq!(place.house(), before);
    assert!(place.tasks().is_empty());
}

#[test]
fn two_runs_on_one_house_do_not_meet() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let mut first = place
        .command(&["run", "--interactive"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = first.stdin.take().unwrap();
    writeln!(input, "{REQUEST}").unwrap();
    // Once the first one writes, it holds the house.
    let mut byte = [0];
    first
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut byte)
        .unwrap();
    for flags in [&[][..], &["--state-dir", "another"]] {
        let arguments = [&["run"], flags, &[REQUEST]].concat();
        let (code, out, err) = place.run(&arguments);
        assert_eq!((code, out.as_str()), (7, ""), "{err}");
        assert!(err.contains("another run is acting on the house"), "{err}");
    }
    drop(input);
    let (code, _, err) = read(&first.wait_with_output().unwrap());
    assert_eq!(code, 0, "{err}");
    assert_eq!(place.tasks().len(), 1);
}

#[test]
fn generated_text_matches_and_nothing_else_is_printed() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let grammar = place.folder.path().join("g.gbnf");
    fs::write(&grammar, "root ::= (\"да\" | \"нет\") \"!\"\n").unwrap();
    let (code, out, err) = place.run(&["generate", "--grammar", "g.gbnf", "Is the sky blue?"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(matches!(out.as_str(), "да!\n" | "нет!\n"), "{out:?}");
    let schema = place.folder.path().join("s.json");
    fs::write(
        &schema,
        r#"{"type":"object","properties":{"on":{"type":"boolean"},"room":{"enum":["hall","кухня"]}},
            "required":["on","room"],"additionalProperties":false}"#,
    )
    .unwrap();
    let (code, out, err) =
        place.run(&["generate", "--schema", "s.json", "The kitchen light is on."]);
    assert_eq!((code, err.as_str()), (0, ""));
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(
        value["on"].is_boolean() && value["room"].is_string(),
        "{out}"
    );
}
