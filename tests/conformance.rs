//! Outside suites against the engine: schemas from the wild, the official JSON Schema test suite,
//! and the parsing cases of JSONTestSuite. Each is skipped, with the reason, where the data is
//! absent.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test says why it is skipped, and what failed"
)]

use serde_json::Value;
use snaffle::grammar::{Limits, Recogniser, gbnf};
use std::path::PathBuf;
use std::process::Command;

/// A folder of the outside data.
fn data(folder: &str) -> Option<PathBuf> {
    let base = std::env::var_os("SNAFFLE_TEST_DATA")
        .map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let path = base.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: {} is absent", path.display());
    None
}

/// The report of `snaffle bench …`, which must end well.
fn report(arguments: &[&str], folder: &std::path::Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_snaffle"))
        .args(["--json", "bench"])
        .args(arguments)
        .arg("--data")
        .arg(folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rate(figures: &Value, name: &str) -> f64 {
    figures[name]["rate"].as_f64().unwrap()
}

fn count(figures: &Value, name: &str) -> u64 {
    figures[name].as_u64().unwrap()
}

/// No schema is lost to time, memory or a crash, whatever the others are refused for.
fn nothing_is_lost(figures: &Value) {
    for reason in ["time", "memory", "crash"] {
        assert_eq!(
            figures["refused"][reason], 0,
            "{reason}: {}",
            figures["refused"]
        );
    }
}

/// `SNAFFLE_MASKBENCH=all` takes all 5,602 schemas instead of the first hundred of each data set.
#[test]
fn schemas_from_the_wild_are_told_apart() {
    let Some(folder) = data("maskbench") else {
        return;
    };
    let all = std::env::var("SNAFFLE_MASKBENCH").is_ok_and(|value| value == "all");
    let limit = if all { "1000000" } else { "100" };
    let report = report(&["maskbench", "--limit", limit], &folder);
    let figures = &report["figures"]["all"];
    println!("{figures:#}");
    nothing_is_lost(figures);
    assert!(rate(figures, "right") >= 0.92);
    assert!(rate(figures, "right_with_both") >= 0.90);
    // Grammar and validator together accept nothing invalid.
    let together = &figures["invalid_rejected_with_validator"];
    assert_eq!(together["right"], together["of"]);
    assert_eq!(count(figures, "unreported"), 0);
    // In schema order, instances in another order are rejected; in any order next to none is.
    let arguments = ["maskbench", "--limit", limit, "--key-order", "any"];
    let report = self::report(&arguments, &folder);
    let figures = &report["figures"]["all"];
    nothing_is_lost(figures);
    let rejected = count(figures, "schemas_with_false_rejection");
    let schemas = count(figures, "schemas");
    assert!(rejected * 200 <= schemas, "{rejected} of {schemas}");
}

#[test]
fn the_official_suite_is_told_apart() {
    let Some(folder) = data("json-schema-test-suite") else {
        return;
    };
    let report = report(&["schema-suite"], &folder);
    let figures = &report["figures"]["all"];
    println!("{figures:#}");
    nothing_is_lost(figures);
    assert!(rate(figures, "valid_accepted") >= 0.90);
    assert!(rate(figures, "invalid_rejected") >= 0.80);
    // Whatever is invalid and accepted was reported as checked after generation.
    assert_eq!(count(figures, "unreported"), 0);
    for name in [
        "draft2020-12 pattern",
        "draft7 properties",
        "draft2020-12 required",
    ] {
        let figures = &report["figures"][name];
        assert!(figures["schemas"].as_u64() > Some(0), "{name}");
        assert_eq!(figures["right"]["right"], figures["right"]["of"], "{name}");
    }
}

/// Invalid cases that are not rejected but met by a named limit: some 100,000 brackets inside each
/// other, each level of which is a state and a stack frame.
const LIMITED: [&str; 2] = [
    "n_structure_100000_opening_arrays",
    "n_structure_open_array_object",
];

/// Cases that a parser may accept or reject and that the grammar accepts, by the beginnings of
/// their names: numbers however large or small are numbers, an escape of a lone surrogate is an
/// escape, and 500 levels are no limit.
const EITHER: [&str; 4] = [
    "i_number_",
    "i_string_",
    "i_object_key_lone_2nd_surrogate",
    "i_structure_500_nested_arrays",
];

#[test]
fn every_parsing_case_is_as_it_should_be() {
    let Some(folder) = data("jsontestsuite") else {
        return;
    };
    let limits = Limits::default();
    let text = fs_err::read_to_string("grammars/json.gbnf").unwrap();
    let grammar = gbnf::parse(&text, &limits).unwrap().grammar;
    let mut files: Vec<PathBuf> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 318);
    let mut wrong = Vec::new();
    let (mut yes, mut no, mut free) = (0, 0, 0);
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let bytes = fs_err::read(&file).unwrap();
        let mut recogniser = Recogniser::new(&grammar, &limits).unwrap();
        let matched = recogniser.push_all(&bytes);
        let limited = LIMITED.contains(&name.as_str());
        let accepted = match matched {
            Ok(matched) => matched == bytes.len() && recogniser.is_accepting(),
            Err(error) => {
                if !limited {
                    wrong.push(format!("{name}: {error}"));
                }
                no += usize::from(limited);
                continue;
            }
        };
        let word = if accepted { "accepted" } else { "rejected" };
        match name.chars().next() {
            Some('y') if accepted => yes += 1,
            Some('n') if !accepted && !limited => no += 1,
            Some('i') if !accepted || EITHER.iter().any(|start| name.starts_with(start)) => {
                free += 1;
            }
            _ => wrong.push(format!("{name} is {word}")),
        }
    }
    println!("{yes} y_ accepted, {no} n_ rejected, {free} i_ either way");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((yes, no, free), (95, 188, 35));
}
