//! Licences, sources and bans of all dependencies, as `deny.toml` states them, without the tool
//! `cargo-deny`: so that they are checked wherever the tests run.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--all-features",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    if output.status.success() {
        return serde_json::from_slice(&output.stdout).unwrap();
    }
    // Crates that only other platforms need may not have been fetched.
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rules() -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml");
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether an SPDX expression is satisfied by the allowed licences. `/` is the old way to write OR.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = either(&tokens, &mut at, allowed);
    assert_eq!(at, tokens.len(), "not understood: {expression}");
    result
}

fn either(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut result = both(tokens, at, allowed);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        result |= both(tokens, at, allowed);
    }
    result
}

fn both(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut result = one(tokens, at, allowed);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        result &= one(tokens, at, allowed);
    }
    result
}

fn one(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    if tokens.get(*at) == Some(&"(") {
        *at += 1;
        let result = either(tokens, at, allowed);
        *at += 1;
        return result;
    }
    let mut name = tokens[*at].to_owned();
    *at += 1;
    if tokens.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", tokens[*at + 1]);
        *at += 2;
    }
    allowed.contains(&name.as_str())
}

#[test]
fn expressions_are_read_as_spdx_does() {
    let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("MIT AND GPL-3.0", false),
        ("MIT AND (GPL-3.0 OR Apache-2.0)", true),
        ("(MIT OR GPL-3.0) AND Zlib", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("GPL-3.0 WITH LLVM-exception", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn dependencies_keep_the_rules() {
    let rules = rules();
    let strings = |value: &toml::Value| -> Vec<String> {
        let items = value.as_array().unwrap().iter();
        items
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    };
    let allowed = strings(&rules["licenses"]["allow"]);
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let banned: Vec<String> = rules["bans"]["deny"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100);
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        if banned.iter().any(|banned| banned == name) {
            wrong.push(format!("{name} is banned"));
        }
        match package["license"].as_str() {
            Some(licence) if is_allowed(licence, &allowed) => {}
            other => wrong.push(format!("{name}: licence {other:?}")),
        }
        if let Some(source) = package["source"].as_str()
            && !source.starts_with("registry+")
        {
            wrong.push(format!("{name} comes from {source}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
