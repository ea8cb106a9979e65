//! The program with the tiny model: a real request, what it leaves, and what must leave nothing.
#![cfg(feature = "llama")]
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod common;

use common::{SMOLLM2, alone, model_file};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with a copy of a house, and the model.
struct Place {
    folder: tempfile::TempDir,
    model: PathBuf,
}

impl Place {
    fn new() -> Option<Self> {
        let model = model_file(SMOLLM2)?;
        let folder = tempfile::tempdir().unwrap();
        let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/houses/maple.toml");
        fs::copy(house, folder.path().join("house.toml")).unwrap();
        Some(Self { folder, model })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_snaffle"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("SNAFFLE_MODEL", &self.model)
            .env("SNAFFLE_HOUSE", "house.toml")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        read(&self.command(arguments).output().unwrap())
    }

    fn house(&self) -> String {
        fs::read_to_string(self.folder.path().join("house.toml")).unwrap()
    }

    /// Every task of the journal.
    fn tasks(&self) -> Vec<serde_json::Value> {
        let (code, out, err) = self.run(&["task", "list", "--json"]);
        assert_eq!(code, 0, "{err}");
        let lines = out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn read(output: &Output) -> (i32, String, String) {
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

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
fn what_the_policy_denies_cannot_be_called() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let before = place.house();
    let (code, out, _) = place.run(&["run", "--policy", "*=deny", "--max-turns", "2", REQUEST]);
    assert!(matches!(code, 0 | 6 | 9 | 11), "{code}: {out}");
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
    let (code, _, err) = place.run(&["run", REQUEST]);
    assert_eq!(code, 7, "{err}");
    assert!(err.contains("another run is acting on the house"), "{err}");
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
