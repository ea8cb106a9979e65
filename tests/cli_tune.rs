//! `snaffle model tune` as a person meets it. Random logits stand in for a model.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod common;

use common::program::{outcome, snaffle};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const HOUSE: &str = "name = \"H\"\n[[area]]\nid = \"hall\"\n\n[[device]]\nid = \"lamp\"\nkind = \"switch\"\narea = \"hall\"\nstate = { on = false }\n\n[[device]]\nid = \"fan\"\nkind = \"switch\"\narea = \"hall\"\nstate = { on = false }\n";

fn line(id: usize, request: &str, device: &str) -> String {
    json!({
        "id": format!("own-{id}"), "house": "own", "lang": "en", "kind": "direct",
        "request": request,
        "right": [[{ "tool": "turn_on", "arguments": { "device": device } }]],
    })
    .to_string()
}

/// A folder with a house and six requests.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("own.toml"), HOUSE).unwrap();
    let lines: Vec<String> = (0..6)
        .map(|at| {
            let device = if at % 2 == 0 { "lamp" } else { "fan" };
            let word = ["now", "at once", "quickly"][at / 2];
            line(at, &format!("power to the {device} {word}"), device)
        })
        .collect();
    fs::write(folder.path().join("own.jsonl"), lines.join("\n")).unwrap();
    folder
}

fn tune(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let all = [&["model", "tune", "random", "--houses=."], arguments].concat();
    outcome(&snaffle(folder, &all).output().unwrap())
}

#[test]
fn help_reads_well() {
    let folder = place();
    let (code, out, err) = tune(folder.path(), &["-h"]);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("help_model_tune", out);
}

#[test]
fn a_weight_is_fitted_and_nothing_is_changed() {
    let folder = place();
    let at = folder.path();
    let arguments = [
        "--suite=own.jsonl",
        "--folds=3",
        "--grid=0.5,0,0.5,1",
        "--max-turns=2",
    ];
    let (code, out, err) = tune(at, &arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for text in [
        "token by token",
        "as it is now",
        "\nα 0.5",
        "fitted, cross-validated",
        "3 folds",
        "better than now at",
        "\nalpha = ",
    ] {
        assert!(out.contains(text), "{text:?} is not in\n{out}");
    }
    assert_eq!(out.matches("\nα 0.5").count(), 1, "{out}");
    let (code, out, err) = tune(at, &[&arguments[..], &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["requests"], 6);
    assert_eq!(value["default"]["alpha"], Value::Null);
    let weights: Vec<f64> = value["weights"]
        .as_array()
        .unwrap()
        .iter()
        .map(|weight| weight["alpha"].as_f64().unwrap())
        .collect();
    assert_eq!(weights, [0.0, 0.5, 1.0]);
    assert_eq!(value["fold_alphas"].as_array().unwrap().len(), 3);
    assert_eq!(value["cross_validated"]["of"], 6);
    let fitted = value["fitted"].as_f64().unwrap();
    assert_eq!(value["line"], format!("alpha = {fitted}"));
    let mut left: Vec<String> = fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["own.jsonl", "own.toml"]);
}

#[test]
fn a_bias_of_calls_is_fitted_beside_it() {
    let folder = place();
    let at = folder.path();
    let arguments = [
        "--suite=own.jsonl",
        "--folds=3",
        "--fit=call-bias",
        "--grid=-8,8",
        "--max-turns=2",
    ];
    let (code, out, err) = tune(at, &arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for text in [
        "token by token",
        "\nbias 0",
        "\nbias -8",
        "\nbias 8",
        "\ncall_bias = ",
    ] {
        assert!(out.contains(text), "{text:?} is not in\n{out}");
    }
    let (code, out, _) = tune(at, &[&arguments[..], &["--json"]].concat());
    assert_eq!(code, 0);
    let value: Value = serde_json::from_str(&out).unwrap();
    let right = |bias: f64| {
        let weights = value["weights"].as_array().unwrap();
        let own = weights.iter().find(|weight| weight["call_bias"] == bias);
        own.unwrap()["share"]["right"].as_u64().unwrap()
    };
    // Who never calls is never right here.
    assert_eq!(right(-8.0), 0);
    let (code, _, err) = tune(at, &["--suite=own.jsonl", "--grid=-1"]);
    assert_eq!(code, 2);
    assert!(err.contains("between 0 and 1, not -1"), "{err}");
}

#[test]
fn results_are_taken_up_again_and_those_of_another_suite_are_not() {
    let folder = place();
    let at = folder.path();
    let arguments = [
        "--suite=own.jsonl",
        "--folds=2",
        "--grid=0,1",
        "--max-turns=2",
        "--resume=r.jsonl",
        "--json",
    ];
    let (code, first, err) = tune(at, &arguments);
    assert_eq!(code, 0, "{err}");
    let kept = fs::read_to_string(at.join("r.jsonl")).unwrap();
    // Three a request: token by token and two weights; and what was run.
    assert_eq!(kept.lines().count(), 1 + 6 * 3);
    let (code, again, _) = tune(at, &arguments);
    assert_eq!(code, 0);
    assert_eq!(first, again);
    assert_eq!(fs::read_to_string(at.join("r.jsonl")).unwrap(), kept);
    let suite = fs::read_to_string(at.join("own.jsonl")).unwrap();
    fs::write(at.join("own.jsonl"), suite.replace("quickly", "soon")).unwrap();
    let (code, _, err) = tune(at, &arguments);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("another suite"), "{err}");
}

#[test]
fn a_suite_that_the_benchmark_measures_is_refused() {
    let folder = place();
    let at = folder.path();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/suites/home.jsonl");
    let text = fs::read_to_string(&shipped).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let request = first["request"].as_str().unwrap();
    // The request alone, said louder, in another house.
    let copied = line(7, &format!("{}!!", request.to_uppercase()), "lamp");
    let own = fs::read_to_string(at.join("own.jsonl")).unwrap();
    fs::write(at.join("one.jsonl"), format!("{own}\n{copied}\n")).unwrap();
    for (suite, says) in [
        (shipped.to_str().unwrap(), "282 of 282 requests are"),
        ("one.jsonl", "1 of 7 requests is"),
    ] {
        let suite = format!("--suite={suite}");
        let (code, out, err) = tune(at, &[&suite, "--limit=1"]);
        assert_eq!((code, out.as_str()), (5, ""), "{err}");
        assert!(err.contains(says) && err.contains("bench home"), "{err}");
        assert_eq!(err.lines().count(), 2, "{err}");
    }
}

#[test]
fn what_cannot_be_fitted_is_said_before_a_model_is_opened() {
    let folder = place();
    let at = folder.path();
    fs::write(at.join("empty.jsonl"), "\n").unwrap();
    for (arguments, code, says) in [
        (&["--suite=missing.jsonl"][..], 5, "missing.jsonl"),
        (&["--suite=empty.jsonl"], 5, "no request"),
        (&["--suite=own.toml"], 5, "line 1"),
        (
            &["--suite=own.jsonl", "--folds=9"],
            5,
            "6 different requests",
        ),
        (&["--suite=own.jsonl", "--folds=1"], 2, "2..=100"),
        (&["--suite=own.jsonl", "--grid=2"], 2, "between 0 and 1"),
        (&["--suite=own.jsonl", "--alpha=1"], 2, "--alpha"),
        (&[], 2, "--suite"),
    ] {
        let all = [&["model", "tune", "no-such-model", "--houses=."], arguments].concat();
        let (found, _, err) = outcome(&snaffle(at, &all).output().unwrap());
        assert_eq!(found, code, "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
    let (code, _, err) = outcome(
        &snaffle(
            at,
            &[
                "model",
                "tune",
                "no-such-model",
                "--houses=.",
                "--suite=own.jsonl",
            ],
        )
        .output()
        .unwrap(),
    );
    assert_eq!(code, 4, "{err}");
}
