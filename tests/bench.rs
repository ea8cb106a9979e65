//! The benchmarks as a person runs them, and their verdicts on foreign data. No test here needs a
//! model.
//!
//! Foreign data is taken from the folder of `SNAFFLE_TEST_DATA` (`../shared/data` by default), and
//! the leaderboard's package from `SNAFFLE_BFCL` (`.snaffle/bfcl` by default; `scripts/fetch-bfcl`
//! fetches it). A test that needs one of them and does not find it says so and passes.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by failing; where foreign data is comes from outside"
)]

use serde_json::{Value, json};
use snaffle::bench::bfcl::score::score;
use snaffle::bench::bfcl::{Category, ErrorType, Names, dataset};
use snaffle::bench::home_assist;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit code and both streams of the program.
fn snaffle(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_snaffle"))
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

fn folder(variable: &str, default: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join(default),
    }
}

#[test]
fn verdicts_are_the_leaderboards_own() {
    let path = folder("SNAFFLE_TEST_DATA", "../shared/data").join("bfcl-golden.jsonl");
    let Ok(golden) = fs::read_to_string(&path) else {
        println!(
            "skipped: {} is not there (SNAFFLE_TEST_DATA names the folder)",
            path.display()
        );
        return;
    };
    let package = folder("SNAFFLE_BFCL", ".snaffle/bfcl");
    if !package.join("bfcl_eval/data").is_dir() {
        println!(
            "skipped: {} is not there (scripts/fetch-bfcl fetches it)",
            package.display()
        );
        return;
    }
    let categories: Vec<Category> = Category::ALL
        .into_iter()
        .filter(|category| category.has_answers())
        .collect();
    let questions = dataset::read(&package, &categories).unwrap();
    let scores = score(&golden, &questions, Names::AsGiven).unwrap();
    assert_eq!(scores.lines.len(), 17_859);
    let labelled: Vec<Value> = golden
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut different = Vec::new();
    let mut errors: BTreeMap<&str, usize> = BTreeMap::new();
    for (scored, label) in scores.lines.iter().zip(&labelled) {
        let ours = scored.error.map(ErrorType::as_str);
        *errors.entry(ours.unwrap_or("right")).or_default() += 1;
        if label["valid"] != ours.is_none() || label["error_type"].as_str() != ours {
            different.push(format!("line {}: {ours:?}, not {label}", scored.line));
        }
    }
    println!("{errors:#?}");
    assert!(
        different.is_empty(),
        "{} verdicts are others:\n{}",
        different.len(),
        different[..different.len().min(20)].join("\n")
    );
    assert_eq!(scores.agreement(), (17_859, 0));
}

/// Requests of the public data set by what becomes of them here.
#[test]
fn every_public_request_is_run_or_has_its_reason() {
    let data = folder("SNAFFLE_TEST_DATA", "../shared/data").join("home-assist");
    if !data.is_dir() {
        println!(
            "skipped: {} is not there (SNAFFLE_TEST_DATA names the folder)",
            data.display()
        );
        return;
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for case in home_assist::dataset::read(&data).unwrap() {
        let what = match home_assist::mapping::map(&case) {
            Ok(world) => {
                let path = tempfile::NamedTempFile::new().unwrap();
                fs::write(path.path(), &world.house).unwrap();
                snaffle::tool::home::HouseFile::open(path.path()).unwrap();
                home_assist::run::group(&case, &world)
            }
            Err(why) => format!("not run: {why}"),
        };
        *counts.entry(what).or_default() += 1;
    }
    let shown: Vec<String> = counts
        .iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    assert_eq!(shown, PUBLIC);
}

const PUBLIC: &[&str] = &[
    "11 cover",
    "6 fan",
    "11 light",
    "5 lock",
    "2 media-player",
    "8 not run: a media_player that is \"paused\" has no counterpart",
    "6 not run: it depends on the device that it is said to",
    "4 not run: media_player.media_track has no counterpart",
    "4 not run: media_player.volume_level has no counterpart",
    "9 not run: todo has no counterpart",
    "6 nothing to change",
    "14 vacuum",
    "9 valve",
];

#[test]
fn recorded_replies_come_out_as_recorded() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/suites/replay.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().count();
    assert!(lines >= 25, "{lines}");
    let folder = tempfile::tempdir().unwrap();
    let name = file.to_string_lossy();
    let (code, out, err) = snaffle(folder.path(), &["bench", "replay", &name]);
    assert_eq!(
        (code, out.as_str()),
        (0, format!("{lines} of {lines} as recorded\n").as_str()),
        "{err}"
    );
    // The same with another outcome expected.
    let changed = text.replacen("\"answered\"", "\"asked\"", 1);
    fs::write(folder.path().join("changed.jsonl"), changed).unwrap();
    let (code, out, err) = snaffle(folder.path(), &["bench", "replay", "changed.jsonl"]);
    assert_eq!(code, 6, "{err}");
    assert!(
        out.starts_with("right-at-once: end: asked expected, answered found\n"),
        "{out}"
    );
}

#[test]
fn foreign_outputs_are_scored_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("possible_answer")).unwrap();
    for category in Category::ALL {
        let name = format!("BFCL_v4_{}.json", category.name());
        let id = format!("{}_0", category.name());
        let question = json!({"id": id, "question": [[{"role": "user", "content": "Halve 8"}]],
            "function": [{"name": "halve", "description": "Halves.", "parameters":
                {"type": "dict", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}]});
        let answer = json!({"id": id, "ground_truth": [{"halve": {"n": [8]}}]});
        fs::write(data.join(&name), format!("{question}\n")).unwrap();
        fs::write(
            data.join("possible_answer").join(&name),
            format!("{answer}\n"),
        )
        .unwrap();
    }
    let outputs = "{\"id\": \"simple_python_0\", \"result\": \"halve(n=8)\"}\n\
        {\"id\": \"live_irrelevance_0\", \"result\": \"halve(n=8)\"}\n\
        {\"id\": \"simple_java_0\", \"result\": \"halve(8)\"}\n";
    fs::write(folder.path().join("outputs.jsonl"), outputs).unwrap();
    let arguments = [
        "bench",
        "score",
        "--suite",
        "bfcl",
        "--data",
        "data",
        "outputs.jsonl",
    ];
    let (code, out, err) = snaffle(folder.path(), &arguments);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("score", out);
    let (_, out, _) = snaffle(folder.path(), &[&arguments[..], &["--json"]].concat());
    fs::write(folder.path().join("scored.json"), out).unwrap();
    let report = ["bench", "report", "scored.json", "--html", "report.html"];
    let (code, _, err) = snaffle(folder.path(), &report);
    assert_eq!(
        (code, err.as_str()),
        (0, "report.html: runs 1, requests 2\n")
    );
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("live_irrelevance") && page.ends_with("</html>\n"));
}

#[test]
fn bad_input_of_a_benchmark_gets_one_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("words"), "just words\n").unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    let mut wrong = Vec::new();
    for (arguments, code, says) in [
        (&["bfcl", "--data", "."][..], 5, "no folder of bfcl-eval"),
        (
            &["bfcl", "--data", ".", "--category", "x"],
            2,
            "simple_python, multiple",
        ),
        (
            &["home-assist", "--data", "."],
            5,
            "no folder with a _fixtures.yaml",
        ),
        (&["home-assist", "--data", "none"], 5, "none"),
        (&["replay", "words"], 5, "words: line 1: expected value"),
        (
            &["replay", "empty"],
            5,
            "empty: there is no recorded request",
        ),
        (&["replay", "none"], 5, "none: No such file"),
        (
            &["score", "--suite", "bfcl", "--data", ".", "words"],
            5,
            "no folder of bfcl-eval",
        ),
        (
            &["report", "words", "--html", "x.html"],
            5,
            "words: expected value",
        ),
        (&["report", "empty", "--html", "x.html"], 5, "empty: EOF"),
        (&["report", "--html", "x.html"], 2, "RESULT"),
        (&["home", "--repeat", "0"], 2, "0 is not in 1..=1000"),
    ] {
        let all = [&["bench"], arguments].concat();
        let (found, out, err) = snaffle(folder.path(), &all);
        let right = found == code
            && out.is_empty()
            && err.starts_with("error: ")
            && err.contains(says)
            && err.lines().count() <= 8;
        if !right {
            wrong.push(format!(
                "{arguments:?}: code {found}, not {code}: {err}{out}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!folder.path().join("x.html").exists());
}
