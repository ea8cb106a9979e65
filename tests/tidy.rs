//! The rules of the house that no compiler holds: who may import whom, how large a file may be,
//! what a file must say of itself.
//!
//! Plain text search, on purpose: it is fast, and what it misses a reader sees.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules, each with those that it may import: `ARCHITECTURE.md`'s table.
const LAYERS: [(&str, &[&str]); 15] = [
    ("files", &[]),
    ("grammar", &[]),
    ("vocab", &[]),
    ("mask", &["grammar", "vocab"]),
    ("model", &["files", "vocab", "grammar"]),
    ("decode", &["mask", "model", "grammar", "vocab"]),
    ("decide", &["decode", "model", "grammar"]),
    ("call", &["grammar"]),
    ("tool", &["files", "call"]),
    ("task", &["files", "call"]),
    ("fewshot", &["files", "call"]),
    ("trace", &[]),
    (
        "agent",
        &[
            "files", "grammar", "vocab", "mask", "model", "decode", "decide", "call", "tool",
            "task", "fewshot", "trace",
        ],
    ),
    (
        "bench",
        &[
            "files", "grammar", "vocab", "mask", "model", "decode", "decide", "call", "tool",
            "task", "fewshot", "trace", "agent",
        ],
    ),
    (
        "cli",
        &[
            "files", "grammar", "vocab", "mask", "model", "decode", "decide", "call", "tool",
            "task", "fewshot", "trace", "agent", "bench",
        ],
    ),
];

/// Lines that a file may have, its tests aside.
const MAX_LINES: usize = 600;

/// Files that may be longer: up to how many lines, and the reason.
const LONG_FILES: &[(&str, usize, &str)] = &[
    (
        "src/grammar/gbnf/parser.rs",
        650,
        "a recursive-descent parser reads as one",
    ),
    (
        "src/agent/run.rs",
        800,
        "the loop: one state machine, read from top to bottom",
    ),
    (
        "src/grammar/automaton.rs",
        850,
        "interning and stepping share the automaton's invariants",
    ),
    (
        "src/grammar/lower.rs",
        850,
        "one pass from rules to the program, with its checks",
    ),
    (
        "src/grammar/schema/algebra.rs",
        1000,
        "the intersection of every pair of keywords",
    ),
    (
        "src/grammar/schema/emit/numbers.rs",
        700,
        "one construction: intervals of decimals",
    ),
    (
        "src/grammar/schema/parse.rs",
        1000,
        "one keyword after another of two drafts",
    ),
    (
        "src/grammar/schema/text/automaton.rs",
        700,
        "one automaton and its operations",
    ),
    (
        "src/task/journal.rs",
        700,
        "every statement that touches the database, in one place",
    ),
];

struct Source {
    /// Relative to the repository, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// The text without its unit tests and comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.body()
            .lines()
            .enumerate()
            .map(|(number, line)| (number + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The text up to its unit tests, which come last.
    fn body(&self) -> &str {
        let end = self.text.find("#[cfg(test)]\nmod tests {");
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// Whether the whole file is a test, a benchmark or an example.
    fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        !self.path.starts_with("src/") || name == "tests.rs" || name.ends_with("_tests.rs")
    }

    /// `cli` for `src/cli/config/mod.rs`.
    fn module(&self) -> Option<&str> {
        let inner = self.path.strip_prefix("src/")?;
        let (module, _) = inner.split_once('/')?;
        Some(module)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for folder in ["src", "tests", "benches", "examples", "fuzz"] {
        collect(&root().join(folder), &mut found);
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root()).unwrap();
            found.push(Source {
                path: relative.to_string_lossy().replace('\\', "/"),
                text: fs::read_to_string(&path).unwrap(),
            });
        }
    }
}

fn fail_if_any(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// The names after each `prefix` in a line, as in `use crate::call` and `crate::call::json`.
fn names_after<'a>(line: &'a str, prefix: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, _) in line.match_indices(prefix) {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &line[at + prefix.len()..];
        // `use crate::{agent::Event, call::Call}` names its modules inside the braces.
        if let Some(list) = rest.strip_prefix('{') {
            names.extend(list.split([',', '}']).map(|item| first_name(item.trim())));
        } else {
            names.push(first_name(rest));
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn first_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

#[test]
fn modules_import_only_downward() {
    let layers: BTreeMap<&str, &[&str]> = LAYERS.into();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(module) = source.module().filter(|_| !source.is_test()) else {
            continue;
        };
        let Some(allowed) = layers.get(module) else {
            wrong.push(format!("{}: module {module} is in no layer", source.path));
            continue;
        };
        for (number, line) in source.code() {
            for name in names_after(line, "crate::") {
                if layers.contains_key(name) && name != module && !allowed.contains(&name) {
                    wrong.push(format!("{}:{number}: {module} imports {name}", source.path));
                }
            }
        }
    }
    fail_if_any("imports against the layers", &wrong);
}

/// The paths of a module's files as Rust names them: `call::turn` for `src/call/turn.rs`.
fn rust_path(path: &str) -> Option<String> {
    let inner = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    Some(
        inner
            .strip_suffix("/mod")
            .unwrap_or(inner)
            .replace('/', "::"),
    )
}

/// Files of one module must not import each other in a circle. `mod.rs` is the module's front: it
/// names its files, and they may use what it re-exports from elsewhere, so it is left out.
#[test]
fn files_of_a_module_form_no_circle() {
    let sources: Vec<Source> = sources().into_iter().filter(|s| !s.is_test()).collect();
    let files: BTreeSet<String> = sources
        .iter()
        .filter(|source| !source.path.ends_with("/mod.rs"))
        .filter_map(|source| rust_path(&source.path))
        .collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in &sources {
        let Some(from) = rust_path(&source.path).filter(|path| files.contains(path)) else {
            continue;
        };
        let parent = from.rsplit_once("::").map_or("", |(parent, _)| parent);
        let grandparent = parent.rsplit_once("::").map_or("", |(parent, _)| parent);
        let targets = edges.entry(from.clone()).or_default();
        for (_, line) in source.code() {
            for (prefix, base) in [("super::super::", grandparent), ("super::", parent)] {
                for name in names_after(line, prefix) {
                    let target = format!("{base}::{name}");
                    if files.contains(&target) && target != from {
                        targets.insert(target);
                    }
                }
            }
            for (at, prefix) in line.match_indices("crate::") {
                let path: String = line[at + prefix.len()..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':'))
                    .collect();
                let target = files
                    .iter()
                    .filter(|file| path == **file || path.starts_with(&format!("{file}::")))
                    .max_by_key(|file| file.len());
                if let Some(target) = target.filter(|target| **target != from) {
                    targets.insert(target.clone());
                }
            }
        }
    }
    // Whatever imports nothing that is left, or is imported by nothing that is left, is on no
    // circle.
    loop {
        let left: BTreeSet<String> = edges.keys().cloned().collect();
        for targets in edges.values_mut() {
            targets.retain(|target| left.contains(target));
        }
        let imported: BTreeSet<String> = edges.values().flatten().cloned().collect();
        edges.retain(|file, targets| !targets.is_empty() && imported.contains(file));
        if edges.len() == left.len() {
            break;
        }
    }
    let circle: Vec<String> = edges
        .iter()
        .map(|(from, to)| {
            format!(
                "{from} → {}",
                to.iter().cloned().collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    fail_if_any("files that import each other in a circle", &circle);
}

#[test]
fn files_are_of_bearable_size() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let lines = source.body().lines().count();
        let listed = LONG_FILES.iter().find(|(path, ..)| *path == source.path);
        let most = listed.map_or(MAX_LINES, |(_, most, _)| *most);
        if lines > most {
            wrong.push(format!("{}: {lines} lines, at most {most}", source.path));
        }
    }
    fail_if_any("long files (look for the second thing in them)", &wrong);
}

#[test]
fn files_say_what_they_are() {
    let mut wrong = Vec::new();
    for source in sources() {
        let first = source.text.lines().next().unwrap_or_default();
        if !first.starts_with("//! ") || first.contains("to be filled") {
            wrong.push(source.path);
        }
    }
    fail_if_any("files without a `//!` header", &wrong);
}

#[test]
fn nothing_panics_on_purpose() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let lines: Vec<(usize, &str)> = source.code().collect();
        // An item that only tests have ends where the next one of its indentation begins.
        let mut in_test_item = false;
        for (number, line) in lines {
            in_test_item |= line.trim() == "#[cfg(test)]";
            if in_test_item {
                in_test_item = line != "    }" && line != "}";
                continue;
            }
            for word in [".unwrap()", "todo!(", "unimplemented!(", "dbg!("] {
                if line.contains(word) {
                    wrong.push(format!("{}:{number}: {word}", source.path));
                }
            }
        }
    }
    fail_if_any("panics outside tests", &wrong);
}

#[test]
fn unsafe_code_is_in_the_llama_wrapper_alone() {
    let mut wrong = Vec::new();
    for source in sources() {
        if source.path.starts_with("src/model/llama/") || source.path == "tests/tidy.rs" {
            continue;
        }
        for (number, line) in source.code() {
            if line.contains("unsafe {")
                || line.contains("unsafe fn")
                || line.contains("unsafe impl")
            {
                wrong.push(format!("{}:{number}", source.path));
            }
        }
    }
    fail_if_any("unsafe code", &wrong);
}

#[test]
fn only_the_command_line_prints_and_exits() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        if source.module() == Some("cli") {
            continue;
        }
        for (number, line) in source.code() {
            for word in [
                "println!(",
                "print!(",
                "eprintln!(",
                "eprint!(",
                "process::exit",
            ] {
                if line.contains(word) {
                    wrong.push(format!("{}:{number}: {word}", source.path));
                }
            }
        }
    }
    fail_if_any("output outside cli", &wrong);
}

#[test]
fn nothing_names_a_machine() {
    // Spelled so that this file does not contain them.
    let banned = ["/home", "/root", "/Users"].map(|folder| format!("\"{folder}/"));
    let mut wrong = Vec::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            if banned.iter().any(|folder| line.contains(folder)) {
                wrong.push(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    fail_if_any("absolute paths of a machine", &wrong);
}

#[test]
fn imports_are_read_as_rust_reads_them() {
    for (line, prefix, expected) in [
        ("use crate::call::Call;", "crate::", &["call"][..]),
        (
            "use crate::{agent::Event, call};",
            "crate::",
            &["agent", "call"],
        ),
        ("let x = crate::trace::sanitize(a);", "crate::", &["trace"]),
        ("use super::super::limits::A;", "super::", &["super"]),
        ("mycrate::call", "crate::", &[]),
    ] {
        assert_eq!(names_after(line, prefix), expected, "{line}");
    }
}
