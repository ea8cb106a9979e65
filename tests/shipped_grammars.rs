//! The grammars that ship: read without a warning, the same when printed, and matching what they
//! say.

use std::sync::Arc;

use snaffle::grammar::{Limits, gbnf};
use snaffle::mask::{Lexicon, MaskStore, Matcher};
use snaffle::vocab::{Token, TokenKind, Vocabulary};

/// Grammar, texts that match, texts that do not.
const CASES: &[(&str, &[&str], &[&str])] = &[
    (
        "json",
        &[
            "0",
            " {\"a\" : [1, -2.5e+3, \"\\u00e9ж🐎\"], \"\":null}\n",
            "[]",
            "\"\\\\\"",
            "[ ]",
        ],
        &[
            "",
            "01",
            "{a:1}",
            "[1,]",
            "\"\t\"",
            "'a'",
            "1 2",
            "nul",
            "{\"a\":1,}",
        ],
    ),
    (
        "json-lines",
        &["1\n", "{\"a\": [1, 2]}\n[]\n"],
        &["1", "1\n\n2\n", "[1,\n2]\n"],
    ),
    (
        "list",
        &["- milk\n", "- хлеб\n- 牛奶 2\n"],
        &["milk\n", "- \n", "-milk\n", "- a"],
    ),
    (
        "date",
        &[
            "2026-11-30",
            "08:30",
            "2024-02-29T23:59:59.5Z",
            "1999-12-31T00:00+03:00",
        ],
        &[
            "2026-11-31",
            "2026-02-30",
            "2026-13-01",
            "24:00",
            "2026-1-1",
            "12:60",
        ],
    ),
    (
        "arithmetic",
        &["1", "-(a + 2)*3.5", "x1/y2 - -z"],
        &["", "1 +", "(1", "1 2", "A", "1."],
    ),
    (
        "chess",
        &["1. e4 e5 2. Nf3 Nc6 3. O-O", "40. exd8=Q+ R1a3#"],
        &["e4", "1. i4", "1. e9", "0. e4", "1. e4 e5 e6"],
    ),
    (
        "tool-call",
        &["{\"tool\": \"turn_on\", \"arguments\": {\"device\": \"客厅灯\"}}"],
        &[
            "{\"tool\": \"\", \"arguments\": {}}",
            "{\"tool\": \"a\", \"arguments\": []}",
        ],
    ),
];

#[test]
fn shipped_grammars_match_what_they_say() {
    let bytes = |byte| Token {
        bytes: vec![byte],
        kind: TokenKind::Byte,
    };
    let vocabulary = Vocabulary::new((0..=255).map(bytes).collect(), Vec::new());
    let lexicon = Arc::new(Lexicon::new(Arc::new(vocabulary)));
    let store = Arc::new(MaskStore::default());
    let limits = Limits::default();
    let mut shipped: Vec<String> = fs_err::read_dir("grammars")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    shipped.sort();
    let mut tested: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    tested.sort_unstable();
    assert_eq!(shipped, tested, "every grammar is tested");
    for (name, right, wrong) in CASES {
        let text = fs_err::read_to_string(format!("grammars/{name}.gbnf")).unwrap();
        let parsed = gbnf::parse(&text, &limits).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(parsed.warnings.is_empty(), "{name}: {:?}", parsed.warnings);
        let printed = gbnf::parse(&parsed.grammar.to_string(), &limits).unwrap();
        assert_eq!(printed.grammar, parsed.grammar, "{name}");
        let start = Matcher::new(&parsed.grammar, &lexicon, &store, &limits).unwrap();
        let matches = |text: &str| {
            let mut matcher = start.clone();
            matcher.accept_bytes(text.as_bytes()).unwrap() && matcher.is_accepting()
        };
        for text in *right {
            assert!(matches(text), "{name} should match {text:?}");
        }
        for text in *wrong {
            assert!(!matches(text), "{name} should not match {text:?}");
        }
    }
}
