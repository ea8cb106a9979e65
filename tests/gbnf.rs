//! GBNF texts: what is read, what is refused, and what a person is shown.
#![expect(clippy::panic, reason = "a test says what went wrong by failing")]

use std::fmt::Write;

use snaffle::grammar::gbnf::{self, GbnfErrorKind};
use snaffle::grammar::{Bound, Limits};

fn error(text: &str) -> gbnf::GbnfError {
    match gbnf::parse(text, &Limits::default()) {
        Ok(parsed) => panic!("{text:?} was read as\n{}", parsed.grammar),
        Err(error) => error,
    }
}

/// Texts that are refused; what is shown for each is in the snapshot.
const WRONG: &[&str] = &[
    "",
    "# only a comment\n",
    "root",
    "root = \"a\"",
    "root ::= \"a\n",
    "root ::= \"a\" \"\\q\"",
    "root ::= [a-z",
    "root ::= []",
    "root ::= [^]",
    "root ::= (\"a\" | \"b\"\nnext ::= \"c\"",
    "root ::= \"a\")",
    "root ::= * \"a\"",
    "root ::= \"a\" | + \"b\"",
    "root ::= \"a\"{",
    "root ::= \"a\"{,3}",
    "root ::= \"a\"{3,2}",
    "root ::= \"a\"{99999999999}",
    "root ::= \"a\"{1;2}",
    "root ::= \"\\x4\"",
    "root ::= \"\\uD800\"",
    "root ::= \"\\U00110000\"",
    "root ::= <[12]",
    "root ::= <[99999999999]>",
    "root ::= !\"a\"",
    "root ::= <think",
    "root ::= object\nobjekt ::= \"a\"\n",
    "start ::= \"a\"",
    "root ::= root \"a\" | \"b\"",
    "root ::= \"a\" | one\none ::= two \"x\"\ntwo ::= \"b\"? three*\nthree ::= one\n",
    "root ::= empty root \"a\" | \"b\"\nempty ::= \"x\"*\n",
    "root ::= \"при\u{202E}вет\" \"中文\" ; \"x\"",
    "root ::= \"a\"\n  | \"b\"",
    "ro ot ::= \"a\"",
];

#[test]
fn errors_say_where_and_what_was_expected() {
    let mut shown = String::new();
    for text in WRONG {
        writeln!(shown, "{text:?}\n{}\n", error(text)).unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn warnings() {
    let text = "root ::= \"a\" [z-a]?\nold_name ::= \"b\"\nroot ::= \"c\"\n";
    let parsed = gbnf::parse(text, &Limits::default()).unwrap();
    let shown: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
    assert_eq!(
        parsed.grammar.to_string().lines().next(),
        Some("root ::= \"c\"")
    );
}

#[test]
fn printed_as_it_is_read() {
    let cases = [
        ("root ::= \"a\"", "root ::= \"a\"\n"),
        (
            "root::=\"a\"|\"b\" \"c\"|",
            "root ::= \"a\" | \"bc\" | \"\"\n",
        ),
        (
            "root ::= ( \"a\"\n | \"b\" )* # end\n",
            "root ::= (\"a\" | \"b\")*\n",
        ),
        (
            "root ::= \"a\"{2}{3,}? \"b\"{0,1}",
            "root ::= ((\"a\"{2}){3,})? \"b\"?\n",
        ),
        (
            "root ::= [^\\n\\]a-c\\\\-] . [\\x5E-]",
            "root ::= [^\\n\\x2D\\\\\\]a-c] . [\\x2D\\x5E]\n",
        ),
        (
            "root ::= \"\\x41\\u0416\\U0001F40E\\t\\r\\\"\\\\\"",
            "root ::= \"AЖ\\U0001F40E\\t\\r\\\"\\\\\"\n",
        ),
        ("root ::= <[7]> !<think>\n", "root ::= <[7]> !<think>\n"),
        (
            "# a list\n# of words\nroot ::= word (\",\" word)*\n\nword ::= [a-z]+\n",
            "# a list\n# of words\nroot ::= word (\",\" word)*\nword ::= [a-z]+\n",
        ),
        ("a ::= \"x\"\r\nroot ::= a\r\n", "root ::= a\na ::= \"x\"\n"),
        ("root ::=\n  \"a\" |\n  \"b\"\n", "root ::= \"a\" | \"b\"\n"),
    ];
    for (text, expected) in cases {
        let parsed =
            gbnf::parse(text, &Limits::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(parsed.grammar.to_string(), expected, "{text}");
        let again = gbnf::parse(expected, &Limits::default()).unwrap();
        assert_eq!(again.grammar.to_string(), expected);
    }
}

#[test]
fn hostile_texts_meet_a_limit() {
    let deep = format!(
        "root ::= {}\"a\"{}",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    let stars = format!("root ::= \"a\"{}", "*".repeat(100_000));
    let rules: String = (0..300_000).map(|n| format!("r{n} ::= \"a\"\n")).collect();
    let long = " ".repeat(17 << 20);
    let cases = [
        (deep, Bound::Nesting),
        (stars, Bound::Nesting),
        (rules, Bound::Rules),
        (long, Bound::GrammarBytes),
    ];
    for (text, bound) in cases {
        match error(&text).kind {
            GbnfErrorKind::Limit(error) => assert_eq!(error.bound, bound),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn any_bytes_are_read_or_refused() {
    use proptest::prelude::*;
    let piece = prop_oneof![
        Just("root ::= "),
        Just("\""),
        Just("["),
        Just("]"),
        Just("("),
        Just(")"),
        Just("{2,3}"),
        Just("*"),
        Just("|"),
        Just("\n"),
        Just("\\"),
        Just("x"),
        Just("-"),
        Just("<"),
        Just(">"),
        Just("ж"),
        Just("#"),
        Just("!"),
        Just("^"),
        Just("{"),
        Just(","),
        Just("1"),
        Just("\0"),
    ];
    proptest!(ProptestConfig::with_cases(4000), |(pieces in prop::collection::vec(piece, 0..24))| {
        let text = pieces.concat();
        match gbnf::parse(&text, &Limits::default()) {
            Ok(parsed) => {
                let printed = parsed.grammar.to_string();
                let again = gbnf::parse(&printed, &Limits::default());
                prop_assert!(again.is_ok(), "{} was printed as\n{}", text, printed);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    });
}
