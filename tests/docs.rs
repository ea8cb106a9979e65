//! What the documents say is what the code says.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn the_readme_has_the_exit_codes_and_the_settings() {
    let readme = read("README.md");
    for part in [
        snaffle::cli::exit::Exit::markdown(),
        snaffle::cli::explain_settings(),
    ] {
        assert!(
            readme.contains(&part),
            "README.md lacks this table:\n\n{part}"
        );
    }
}

#[test]
fn the_readme_names_the_make_targets_that_there_are() {
    let makefile = read("Makefile");
    for line in read("README.md").lines().chain(read(".ci/run").lines()) {
        if let Some(target) = line.trim().strip_prefix("make ") {
            let target = target.split_whitespace().next().unwrap_or_default();
            assert!(
                makefile.contains(&format!("\n{target}: ")),
                "no target {target}"
            );
        }
    }
}

/// Each invariant of `ARCHITECTURE.md` names the test that holds it, as `file::test`.
#[test]
fn invariants_are_held_by_tests_that_exist() {
    let mut found = 0;
    for line in read("ARCHITECTURE.md")
        .lines()
        .filter(|line| line.starts_with("- **"))
    {
        let (_, held) = line
            .rsplit_once("Held by ")
            .unwrap_or_else(|| panic!("no test: {line}"));
        for name in held.split('`').skip(1).step_by(2) {
            let (file, test) = name.rsplit_once("::").unwrap();
            let text = read(file);
            assert!(
                text.contains(&format!("fn {test}(")),
                "{name} does not exist"
            );
            found += 1;
        }
    }
    assert!(found >= 8, "only {found} invariants");
}

#[test]
fn every_folder_of_the_source_is_on_the_map() {
    let architecture = read("ARCHITECTURE.md");
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_dir() {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(
                architecture.contains(&format!("| `{name}` |")),
                "{name} is missing"
            );
        }
    }
}
