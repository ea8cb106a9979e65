//! The grammar engine against a slow interpreter and against brute force.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by failing"
)]

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use snaffle::grammar::{
    CharClass, Expr, Grammar, GrammarBuilder, Limits, Member, Others, RuleId, TokenReference,
    Unordered, gbnf,
};
use snaffle::mask::{Lexicon, MaskStore, Matcher, MatcherError};
use snaffle::vocab::{Token, TokenId, TokenKind, Vocabulary};

// ---------------------------------------------------------------------------------------------
// The slow interpreter: which suffixes of a text remain after an expression matched a prefix.

struct Slow<'a> {
    grammar: &'a Grammar,
    text: &'a [char],
}

impl Slow<'_> {
    /// All positions at which `expr`, begun at `at`, can end. Where the text ends inside `expr`,
    /// `open` becomes true: some longer text matches.
    fn ends(&self, expr: &Expr, at: usize, open: &mut bool) -> BTreeSet<usize> {
        match expr {
            Expr::Empty => BTreeSet::from([at]),
            Expr::Literal(text) => {
                let mut at = at;
                for c in text.chars() {
                    match self.text.get(at) {
                        None => {
                            *open = true;
                            return BTreeSet::new();
                        }
                        Some(&here) if here == c => at += 1,
                        Some(_) => return BTreeSet::new(),
                    }
                }
                BTreeSet::from([at])
            }
            Expr::Class(class) => match self.text.get(at) {
                None => {
                    *open |= !class.is_empty();
                    BTreeSet::new()
                }
                Some(&c) if class.contains(c) => BTreeSet::from([at + 1]),
                Some(_) => BTreeSet::new(),
            },
            Expr::Seq(parts) => {
                let mut reached = BTreeSet::from([at]);
                for part in parts {
                    reached = reached
                        .into_iter()
                        .flat_map(|at| self.ends(part, at, open))
                        .collect();
                }
                reached
            }
            Expr::Alt(parts) => parts
                .iter()
                .flat_map(|part| self.ends(part, at, open))
                .collect(),
            Expr::Repeat { expr, min, max } => {
                // Positions after exactly `count` iterations, until nothing new can come.
                let mut all = BTreeSet::new();
                let mut reached = BTreeSet::from([at]);
                let mut before = Vec::new();
                for count in 0.. {
                    if count >= *min {
                        all.extend(reached.iter().copied());
                    }
                    if reached.is_empty()
                        || max.is_some_and(|max| count >= max)
                        || (count >= *min && before.contains(&reached))
                        || count > *min + 40
                    {
                        break;
                    }
                    before.push(reached.clone());
                    reached = reached
                        .into_iter()
                        .flat_map(|at| self.ends(expr, at, open))
                        .collect();
                }
                all
            }
            Expr::Rule(id) => self.ends(&self.grammar.rule(*id).body, at, open),
            Expr::Unordered(set) => {
                let mut all = BTreeSet::new();
                let mut taken = vec![false; set.members.len()];
                self.orders(set, at, &mut taken, (0, 0), open, &mut all);
                all
            }
            Expr::Token { .. } => BTreeSet::new(),
        }
    }

    /// Every order of the items that are left, one after the other. `counts`: items, and those of
    /// them that are no members.
    fn orders(
        &self,
        set: &Unordered,
        at: usize,
        taken: &mut Vec<bool>,
        counts: (u32, u32),
        open: &mut bool,
        all: &mut BTreeSet<usize>,
    ) {
        let (items, others) = counts;
        let missing = set
            .members
            .iter()
            .zip(&*taken)
            .any(|(m, &t)| m.required && !t);
        if !missing && items >= set.min {
            all.insert(at);
        }
        if set.max.is_some_and(|max| items >= max) {
            return;
        }
        let starts = if items == 0 {
            BTreeSet::from([at])
        } else {
            self.ends(&set.separator, at, open)
        };
        for start in starts {
            for (number, member) in set.members.iter().enumerate() {
                if taken[number] {
                    continue;
                }
                taken[number] = true;
                for behind in self.ends(&Expr::literal(&member.key), start, open) {
                    for end in self.ends(&member.value, behind, open) {
                        self.orders(set, end, taken, (items + 1, others), open, all);
                    }
                }
                taken[number] = false;
            }
            if let Some(other) = &set.others
                && other.guard.is_none_or(|guard| others < guard)
            {
                for end in self.ends(&other.item, start, open) {
                    if end > start {
                        self.orders(set, end, taken, (items + 1, others + 1), open, all);
                    }
                }
            }
        }
    }

    /// Whether the text matches, and whether a longer one may.
    fn run(&self) -> (bool, bool) {
        let mut open = false;
        let root = Expr::Rule(self.grammar.root());
        let ends = self.ends(&root, 0, &mut open);
        (ends.contains(&self.text.len()), open)
    }
}

// ---------------------------------------------------------------------------------------------
// Random grammars: rules call only later rules, or earlier ones behind a character, so that there
// is no left recursion; every rule can end.

const LETTERS: [char; 6] = ['a', 'b', '"', 'ж', '中', '🐎'];

fn class() -> impl Strategy<Value = CharClass> {
    prop::collection::vec((0..LETTERS.len(), any::<bool>()), 1..4).prop_map(|picked| {
        let class =
            CharClass::from_ranges(picked.iter().map(|&(at, _)| (LETTERS[at], LETTERS[at])));
        if picked[0].1 { class.negated() } else { class }
    })
}

fn expr(rule: u32, rules: u32) -> impl Strategy<Value = Expr> {
    let letter = (0..LETTERS.len()).prop_map(|at| LETTERS[at]);
    let leaf = prop_oneof![
        2 => Just(Expr::Empty),
        6 => prop::collection::vec(letter, 1..4).prop_map(|c| Expr::literal(c.iter().collect::<String>())),
        4 => class().prop_map(Expr::Class),
        3 => (rule + 1..rules + 1).prop_map(move |to| if to < rules {
            Expr::Rule(RuleId(to))
        } else {
            Expr::literal("a")
        }),
        // Recursion, behind a letter and beside a way out.
        2 => (0..rules).prop_map(|to| Expr::alt([
            Expr::seq([Expr::literal("b"), Expr::Rule(RuleId(to)), Expr::literal("\"")]),
            Expr::literal("中"),
        ])),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::seq),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::alt),
            (inner.clone(), 0_u32..4, prop::option::of(0_u32..4)).prop_map(|(expr, min, more)| {
                Expr::repeat(expr, min, more.map(|more| min + more))
            }),
            unordered(inner),
        ]
    })
}

/// Members in any order: keys that begin like others, required and optional ones, others that may
/// be taken for members.
fn unordered(inner: impl Strategy<Value = Expr> + Clone) -> impl Strategy<Value = Expr> {
    const KEYS: [&str; 7] = ["", "a", "ab", "b", "ж", "\"a", "中中"];
    let members = prop::sample::subsequence(&KEYS[..], 0..5)
        .prop_flat_map(move |keys| {
            let each = (inner.clone(), any::<bool>());
            (Just(keys.clone()), prop::collection::vec(each, keys.len()))
        })
        .prop_map(|(keys, values)| {
            keys.into_iter()
                .zip(values)
                .map(|(key, (value, required))| Member {
                    key: key.to_owned(),
                    // What is known by its value alone is not empty.
                    value: if key.is_empty() {
                        Expr::seq([Expr::literal("中"), value])
                    } else {
                        value
                    },
                    required,
                })
                .collect::<Vec<_>>()
        });
    let separator = prop_oneof![
        Just(Expr::Empty),
        Just(Expr::literal("\"")),
        Just(Expr::repeat(Expr::literal("b"), 0, Some(2))),
    ];
    let others = prop_oneof![
        Just(None),
        (0..LETTERS.len(), prop::option::of(0_u32..3)).prop_map(|(at, guard)| Some(Others {
            item: Expr::literal(LETTERS[at]),
            guard,
        })),
    ];
    let bounds = (0_u32..4, prop::option::of(0_u32..4));
    (members, separator, others, bounds).prop_map(|(members, separator, others, (min, more))| {
        Expr::Unordered(Box::new(Unordered {
            members,
            separator,
            others,
            min,
            max: more.map(|more| min + more),
        }))
    })
}

fn grammar() -> impl Strategy<Value = Grammar> {
    (1_u32..4).prop_flat_map(|rules| {
        (0..rules)
            .map(|rule| expr(rule, rules))
            .collect::<Vec<_>>()
            .prop_map(|bodies| {
                let mut builder = GrammarBuilder::new();
                for (at, body) in bodies.into_iter().enumerate() {
                    let hint = if at == 0 { "root" } else { "rule" };
                    builder.add(hint, body);
                }
                builder.finish(RuleId(0))
            })
    })
}

/// GBNF cannot say guards.
fn forget_guards(grammar: &mut Grammar) {
    fn forget(expr: &mut Expr) {
        match expr {
            Expr::Seq(parts) | Expr::Alt(parts) => parts.iter_mut().for_each(forget),
            Expr::Repeat { expr, .. } => forget(expr),
            Expr::Unordered(set) => {
                set.parts_mut().for_each(forget);
                if let Some(others) = &mut set.others {
                    others.guard = None;
                }
            }
            _ => {}
        }
    }
    let mut builder = GrammarBuilder::new();
    for rule in grammar.rules() {
        let mut body = rule.body.clone();
        forget(&mut body);
        builder.add(&rule.name, body);
    }
    *grammar = builder.finish(grammar.root());
}

fn text() -> impl Strategy<Value = Vec<char>> {
    prop::collection::vec((0..LETTERS.len()).prop_map(|at| LETTERS[at]), 0..7)
}

/// All single bytes, and tokens that cross characters and break them.
fn vocabulary() -> Vocabulary {
    let mut tokens: Vec<Token> = (0..=255_u8)
        .map(|byte| Token {
            bytes: vec![byte],
            kind: TokenKind::Byte,
        })
        .collect();
    let all: Vec<u8> = "ab\"жab中\"🐎ba中ж\"aab".bytes().collect();
    for len in 2..7 {
        for window in all.windows(len) {
            tokens.push(Token {
                bytes: window.to_vec(),
                kind: TokenKind::Text,
            });
        }
    }
    for name in ["<stop>", "<think>"] {
        tokens.push(Token {
            bytes: name.into(),
            kind: TokenKind::Control,
        });
    }
    Vocabulary::new(tokens, Vec::new())
}

fn lexicon() -> Arc<Lexicon> {
    Arc::new(Lexicon::new(Arc::new(vocabulary())))
}

fn matcher(grammar: &Grammar, lexicon: &Arc<Lexicon>) -> Result<Matcher, MatcherError> {
    let store = Arc::new(MaskStore::default());
    Matcher::new(grammar, lexicon, &store, &Limits::default())
}

fn from_gbnf(text: &str) -> Grammar {
    gbnf::parse(text, &Limits::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .grammar
}

/// Every token tried byte by byte on a copy.
fn brute_force(matcher: &Matcher, lexicon: &Lexicon) -> Vec<TokenId> {
    within_limits(matcher, lexicon).unwrap()
}

/// The same, where a token may lead to more readings than allowed.
fn within_limits(matcher: &Matcher, lexicon: &Lexicon) -> Result<Vec<TokenId>, MatcherError> {
    let mut found = Vec::new();
    for token in 0..lexicon.vocabulary().len() as TokenId {
        let bytes = lexicon.vocabulary().bytes(token);
        if !bytes.is_empty() && matcher.clone().accept_bytes(bytes)? {
            found.push(token);
        }
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn matches_what_the_slow_interpreter_matches(grammar in grammar(), texts in prop::collection::vec(text(), 8)) {
        let lexicon = lexicon();
        let Ok(start) = matcher(&grammar, &lexicon) else {
            // Only a grammar whose root cannot end is refused here.
            return Ok(());
        };
        for text in texts {
            let (whole, open) = Slow { grammar: &grammar, text: &text }.run();
            let spelled: String = text.iter().collect();
            let mut matcher = start.clone();
            let alive = matcher.accept_bytes(spelled.as_bytes()).unwrap();
            prop_assert_eq!(alive && matcher.is_accepting(), whole, "{:?} in\n{}", spelled, grammar);
            if alive {
                prop_assert!(whole || open, "{:?} should be dead in\n{}", spelled, grammar);
                let closing = matcher.closing_bytes().unwrap();
                prop_assert_eq!(Some(closing.len()), matcher.distance());
                prop_assert!(matcher.accept_bytes(&closing).unwrap() && matcher.is_accepting());
                let mut longer = spelled.into_bytes();
                longer.extend(closing);
                let longer: Vec<char> = String::from_utf8(longer).unwrap().chars().collect();
                let closed = Slow { grammar: &grammar, text: &longer }.run().0;
                prop_assert!(closed);
            }
        }
    }

    #[test]
    fn printing_and_parsing_keep_the_language(grammar in grammar(), texts in prop::collection::vec(text(), 8)) {
        let mut grammar = grammar;
        forget_guards(&mut grammar);
        let Ok(printed) = grammar.to_gbnf() else {
            return Ok(());
        };
        let again = from_gbnf(&printed);
        for text in texts {
            let before = Slow { grammar: &grammar, text: &text }.run().0;
            let after = Slow { grammar: &again, text: &text }.run().0;
            prop_assert_eq!(before, after, "{:?} in\n{}", text, printed);
        }
    }

    #[test]
    fn masks_are_what_brute_force_finds(grammar in grammar(), choices in prop::collection::vec(any::<prop::sample::Index>(), 12)) {
        let lexicon = lexicon();
        let Ok(mut matcher) = matcher(&grammar, &lexicon) else {
            return Ok(());
        };
        for choice in choices {
            // A few grammars are ambiguous beyond what is followed.
            let expected = match within_limits(&matcher, &lexicon) {
                Err(MatcherError::Limit(_)) => return Ok(()),
                expected => expected.unwrap(),
            };
            let mask = matcher.mask().unwrap();
            let tokens: Vec<TokenId> = mask.iter().collect();
            prop_assert_eq!(&tokens, &expected, "in\n{}", grammar);
            prop_assert_eq!(mask.len(), tokens.len());
            prop_assert_eq!(&tokens, &matcher.mask_plain().unwrap().iter().collect::<Vec<_>>());
            let forced = matcher.forced_bytes().unwrap();
            prop_assert!(matcher.clone().accept_bytes(&forced).unwrap());
            if tokens.is_empty() {
                prop_assert!(matcher.is_finished());
                break;
            }
            prop_assert!(matcher.accept_token(tokens[choice.index(tokens.len())]).unwrap());
        }
    }
}

// ---------------------------------------------------------------------------------------------
// One store for many grammars: what is remembered for one must be right for all.

#[test]
fn one_store_serves_many_grammars() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let lexicon = lexicon();
    let store = Arc::new(MaskStore::new(256 << 10));
    let mut runner = TestRunner::deterministic();
    for _ in 0..600 {
        let grammar = grammar().new_tree(&mut runner).unwrap().current();
        let Ok(mut matcher) = Matcher::new(&grammar, &lexicon, &store, &Limits::default()) else {
            continue;
        };
        for step in 0..10_usize {
            let tokens: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            let plain: Vec<TokenId> = matcher.mask_plain().unwrap().iter().collect();
            assert_eq!(tokens, plain, "in\n{grammar}");
            assert!(store.bytes() <= 256 << 10);
            if tokens.is_empty() {
                break;
            }
            assert!(
                matcher
                    .accept_token(tokens[step * 7919 % tokens.len()])
                    .unwrap()
            );
        }
    }
    let stats = store.stats();
    assert!(stats.hits > 100, "{stats:?}");
}

const STRING: &str = r#"string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1F] | "\\" ["\\/bfnrt]
"#;

#[test]
fn string_bodies_are_shared_by_different_grammars() {
    let lexicon = lexicon();
    let store = Arc::new(MaskStore::default());
    let grammars = [
        format!("root ::= \"[\" string \"]\"\n{STRING}"),
        format!("root ::= \"a\" string (\"b\" string)* \"中\"\n{STRING}"),
        "root ::= \"a\" \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" [\"\\\\/bfnrt])* \"\\\"ж\"\n"
            .to_owned(),
    ];
    let before = ["[\"ж", "a\"中\"b\"a", "a\"a"];
    let mut entries = Vec::new();
    for (grammar, before) in grammars.iter().zip(before) {
        let grammar = from_gbnf(grammar);
        let mut matcher = Matcher::new(&grammar, &lexicon, &store, &Limits::default()).unwrap();
        assert!(matcher.accept_bytes(before.as_bytes()).unwrap());
        let tokens: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
        assert_eq!(tokens, brute_force(&matcher, &lexicon), "in\n{grammar}");
        entries.push(store.stats());
    }
    // The first computes a mask and a part; the others find the part and add only their mask.
    assert_eq!(
        entries.iter().map(|s| s.entries).collect::<Vec<_>>(),
        [2, 3, 4]
    );
    assert_eq!(entries[2].hits, 2);
}

#[test]
fn changed_live_values_empty_nothing_else() {
    let lexicon = lexicon();
    let store = Arc::new(MaskStore::default());
    let build = |values: &[&str]| {
        let mut builder = GrammarBuilder::new();
        let device = builder.add(
            "device",
            Expr::alt(values.iter().map(|&v| Expr::literal(v))),
        );
        builder.rule_mut(device).volatile = true;
        let root = builder.add(
            "root",
            Expr::seq([
                Expr::repeat(
                    Expr::Class(CharClass::from_ranges([('a', 'b')])),
                    3,
                    Some(9),
                ),
                Expr::literal("\""),
                Expr::Rule(device),
                Expr::literal("\"中"),
                Expr::repeat(Expr::literal("ж"), 1, Some(5)),
            ]),
        );
        builder.finish(root)
    };
    let walk = |grammar: &Grammar, text: &str| {
        let mut matcher = Matcher::new(grammar, &lexicon, &store, &Limits::default()).unwrap();
        let mut computed = Vec::new();
        for (at, c) in text.char_indices() {
            let tokens: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            assert_eq!(
                tokens,
                brute_force(&matcher, &lexicon),
                "after {:?}",
                &text[..at]
            );
            computed.push(matcher.stats().computed);
            assert!(matcher.accept_bytes(c.to_string().as_bytes()).unwrap());
        }
        matcher.mask().unwrap();
        (matcher.stats().computed, computed)
    };
    let first = walk(&build(&["aa", "中"]), "aaaab\"aa\"中ж");
    assert_eq!(first.0, 12, "everything is computed: {first:?}");
    let again = walk(&build(&["aa", "中"]), "aaaab\"aa\"中ж");
    assert_eq!(again.0, 0, "nothing is computed: {again:?}");
    let changed = walk(&build(&["ab", "🐎"]), "aaaab\"ab\"中ж");
    // Before the values: only states whose longest tokens reach into them. After: nothing.
    let reached: Vec<u64> = changed.1.clone();
    assert_eq!(
        reached[0], 0,
        "the start does not reach the values: {changed:?}"
    );
    assert!(changed.0 <= 7, "{changed:?}");
    let back = walk(&build(&["aa", "中"]), "aaaab\"aa\"中ж");
    assert_eq!(back.0, 0, "the first values are still remembered: {back:?}");
}

#[test]
fn counters_are_not_unrolled() {
    let lexicon = lexicon();
    let grammar = from_gbnf("root ::= \"a\"{1000000000} | (\"b\" [\"中]{0,1000000000}){2,}\n");
    let mut matcher = matcher(&grammar, &lexicon).unwrap();
    assert_eq!(matcher.distance(), Some(2));
    assert!(matcher.accept_bytes(b"aaaa").unwrap());
    assert_eq!(matcher.distance(), Some(999_999_996));
    assert!(matcher.closing_bytes().is_err());
    assert_eq!(
        matcher.mask().unwrap().len(),
        brute_force(&matcher, &lexicon).len()
    );
}

#[test]
fn bytes_that_cannot_be_spelled() {
    let spell = |text: &str| Token {
        bytes: text.into(),
        kind: TokenKind::Text,
    };
    let vocabulary = Vocabulary::new(["a", "b", "c", "ab"].map(spell).into(), Vec::new());
    let lexicon = Arc::new(Lexicon::new(Arc::new(vocabulary)));
    let cases = [
        (
            "root ::= \"ax\"",
            Some("the vocabulary has no token for 0x78"),
        ),
        ("root ::= \"a\" [x-z]", Some("0x78, 0x79, 0x7A")),
        ("root ::= \"a\" root", Some("rule `root` cannot end")),
        ("root ::= \"ax\" | \"b\"", None),
        ("root ::= \"a\" [a-z]", None),
    ];
    for (text, expected) in cases {
        let result = matcher(&from_gbnf(text), &lexicon);
        match (result, expected) {
            (Err(error), Some(expected)) => {
                assert!(error.to_string().contains(expected), "{text}: {error}");
            }
            (Ok(mut matcher), None) => {
                let tokens: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
                assert_eq!(tokens, brute_force(&matcher, &lexicon), "{text}");
                assert!(!matcher.clone().accept_bytes(b"ax").unwrap(), "{text}");
            }
            (result, _) => panic!("{text}: {result:?}"),
        }
    }
}

#[test]
fn named_tokens_are_matched_by_themselves_alone() {
    let lexicon = lexicon();
    let think = lexicon.vocabulary().len() as TokenId - 1;
    let mut matcher_ = matcher(&from_gbnf("root ::= <think> \"a\" !<[97]>\n"), &lexicon).unwrap();
    assert_eq!(matcher_.mask().unwrap().iter().collect::<Vec<_>>(), [think]);
    assert!(!matcher_.accept_bytes(b"<think>").unwrap());
    assert!(!matcher_.accept_token(think - 1).unwrap());
    assert!(matcher_.accept_token(think).unwrap());
    assert!(matcher_.accept_token(97).unwrap());
    let mask = matcher_.mask().unwrap();
    assert!(!mask.contains(97) && !mask.contains(think) && mask.contains(98));
    assert_eq!(mask.len(), lexicon.vocabulary().len() - 3);
    assert!(matcher_.accept_token(98).unwrap() && matcher_.is_finished());
    let missing = Expr::Token {
        token: TokenReference::Text("<nothing>".into()),
        negated: false,
    };
    let mut builder = GrammarBuilder::new();
    let root = builder.add("root", missing);
    let error = matcher(&builder.finish(root), &lexicon).unwrap_err();
    assert!(error.to_string().contains("<nothing>"), "{error}");
}

#[test]
fn forced_bytes_and_extensions() {
    let lexicon = lexicon();
    let mut matcher = matcher(
        &from_gbnf("root ::= \"ab\\\"ж\" (\"中\" | \"🐎\" \"b\"?)\n"),
        &lexicon,
    )
    .unwrap();
    assert_eq!(matcher.forced_bytes().unwrap(), "ab\"ж".as_bytes());
    let start = matcher.checkpoint();
    assert!(matcher.accept_bytes(b"ab\"").unwrap());
    // `"жa` is a token, but only `"ж` fits.
    assert!(matcher.could_extend(b"\"").unwrap());
    assert!(matcher.accept_bytes("ж".as_bytes()).unwrap());
    assert!(!matcher.could_extend("b\"ж".as_bytes()).unwrap());
    assert!(matcher.accept_bytes("中".as_bytes()).unwrap() && matcher.is_finished());
    assert_eq!(matcher.forced_bytes().unwrap(), b"");
    matcher.rollback(start);
    assert!(matcher.accept_bytes("ab\"ж🐎".as_bytes()).unwrap());
    assert!(matcher.is_accepting() && !matcher.is_finished());
    assert_eq!(matcher.forced_bytes().unwrap(), b"", "the text may end");
    assert!(matcher.warm_up(10).is_ok());
}

#[test]
fn limits_are_errors() {
    let lexicon = lexicon();
    let store = Arc::new(MaskStore::default());
    let ambiguous = from_gbnf("root ::= (\"a\"{0,60} \"a\"{0,60}){0,60}\n");
    let limits = Limits {
        configurations: 200,
        ..Limits::default()
    };
    let mut matcher = Matcher::new(&ambiguous, &lexicon, &store, &limits).unwrap();
    let error = matcher.accept_bytes(&[b'a'; 500]).unwrap_err();
    assert!(error.to_string().contains("`configurations`"), "{error}");
    let nested = from_gbnf("root ::= \"a\" root \"b\" | \"c\"\n");
    let limits = Limits {
        frames: 100,
        ..Limits::default()
    };
    let mut matcher = Matcher::new(&nested, &lexicon, &store, &limits).unwrap();
    let error = matcher.accept_bytes(&[b'a'; 500]).unwrap_err();
    assert!(error.to_string().contains("`frames`"), "{error}");
    let mut deep = Expr::literal("a");
    for _ in 0..5000 {
        deep = Expr::repeat(deep, 0, None);
    }
    let mut builder = GrammarBuilder::new();
    let root = builder.add("root", deep);
    let error = Matcher::new(&builder.finish(root), &lexicon, &store, &limits).unwrap_err();
    assert!(error.to_string().contains("`nesting`"), "{error}");
}

#[test]
fn ten_thousand_values_are_one_state() {
    let lexicon = lexicon();
    let values = (0..10_000).map(|n| Expr::literal(format!("ж{n}中{}", "a".repeat(n % 50))));
    let mut builder = GrammarBuilder::new();
    let root = builder.add("root", Expr::alt(values));
    let mut matcher = matcher(&builder.finish(root), &lexicon).unwrap();
    assert_eq!(matcher.forced_bytes().unwrap(), "ж".as_bytes());
    assert!(matcher.accept_bytes("ж77中".as_bytes()).unwrap());
    assert_eq!(matcher.closing_bytes().unwrap(), "a".repeat(27).as_bytes());
}

#[test]
fn what_closes_a_text_can_be_read() {
    let lexicon = lexicon();
    for (grammar, closing) in [
        (r#"root ::= "\"" [^"\\]{2} "\"""#, "\"aa\""),
        (r#"root ::= [\x00-\x09 -/] | [\x01-\x7F] [0-9]"#, " "),
        (r#"root ::= [1-9] [0-9]{2}"#, "100"),
    ] {
        let grammar = gbnf::parse(grammar, &Limits::default()).unwrap().grammar;
        let mut matcher = matcher(&grammar, &lexicon).unwrap();
        assert_eq!(matcher.closing_bytes().unwrap(), closing.as_bytes());
    }
}
