//! What fuzzing found, as tests; the same checks over what ships and over random texts.
#![expect(clippy::panic, reason = "a test says what went wrong by failing")]

#[path = "../fuzz/checks.rs"]
mod checks;

use proptest::prelude::*;
use std::path::Path;

type Check = fn(&[u8]);

const CHECKS: [(&str, Check); 3] = [
    ("gbnf", checks::gbnf),
    ("schema", checks::schema),
    ("matching", checks::matching),
];

#[test]
fn what_fuzzing_found_holds() {
    for (name, check) in CHECKS {
        let folder = Path::new("fuzz/found").join(name);
        let mut files: Vec<_> = fs_err::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            check(&fs_err::read(&file).unwrap());
        }
    }
}

#[test]
fn shipped_grammars_hold() {
    for folder in ["grammars", "tests/grammars"] {
        for entry in fs_err::read_dir(folder).unwrap() {
            let text = fs_err::read(entry.unwrap().path()).unwrap();
            checks::gbnf(&text);
            for input in ["", "a", "{\"a\": [1, \"ж\"]}", "1 + 2", "\u{FFFF}"] {
                let mut data = text.clone();
                data.push(0);
                data.extend_from_slice(input.as_bytes());
                checks::matching(&data);
            }
        }
    }
}

/// Pieces of GBNF, so that a random text is often nearly a grammar.
fn gbnf_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => Just("root ::= "),
        4 => Just("\na ::= "),
        4 => Just("a "),
        4 => Just("\"x\" "),
        2 => Just("\"жx\" "),
        4 => Just("[a-z] "),
        2 => Just("[^ж\"] "),
        2 => Just(". "),
        4 => Just("| "),
        3 => Just("( "),
        3 => Just(") "),
        2 => Just("* "),
        2 => Just("? "),
        2 => Just("+ "),
        2 => Just("{2} "),
        2 => Just("{0,3000} "),
        1 => Just("{1,} "),
        1 => Just("\\"),
        1 => Just("# c\n"),
    ];
    prop::collection::vec(piece, 1..14).prop_map(|pieces| format!("root ::= {}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nearly_grammars_hold(text in gbnf_text(), input in "[axzж\"]{0,8}") {
        checks::gbnf(text.as_bytes());
        checks::matching(format!("{text}\0{input}").as_bytes());
    }
}
