//! Generations from random logits: whatever a model says, the text is what the grammar allows.

use super::{SessionGenerator, TokenEvent};
use crate::grammar::ast::GrammarBuilder;
use crate::grammar::{CharClass, Expr, Grammar};
use crate::mask::{Lexicon, Limits, MaskStore};
use crate::model::format::Format;
use crate::model::generator::{
    Cancel, GenerateError, GenerateRequest, Generation, Generator, Sampling, Stop,
};
use crate::model::prompt::{Message, Part, Prompt, Rendered, Role, Segment};
use crate::model::random::RandomSession;
use crate::model::session::Session;
use crate::vocab::{Token, TokenId, TokenKind, Vocabulary};
use regex_syntax::hir::{Class, Hir, HirKind};
use std::sync::{Arc, Mutex};

const CORPUS: &str = "{\"tool\":\"turn_on\",\"arguments\":{\"device\":\"kitchen light\"}} answer the \
    question about temperature brightness 100 20 7 true false null [1, 2] кухня свет 厨房灯 🦊🦉 \
    turn_off set_brightness set_temperature lock unlock {\"answer\":\"yes\"} {\"ask\":\"which\"}";

/// All bytes, pieces of [`CORPUS`] that also cut characters in two, and three control tokens of
/// which two end a generation.
pub(super) fn vocabulary() -> Arc<Vocabulary> {
    let token = |bytes: &[u8], kind| Token {
        bytes: bytes.to_vec(),
        kind,
    };
    let mut tokens = vec![
        token(b"<end>", TokenKind::Control),
        token(b"<stop>", TokenKind::Control),
        token(b"<mark>", TokenKind::Control),
    ];
    for byte in 0..=255 {
        let kind = if byte < 128 {
            TokenKind::Text
        } else {
            TokenKind::Byte
        };
        tokens.push(token(&[byte], kind));
    }
    let mut seen = std::collections::HashSet::new();
    let corpus = CORPUS.as_bytes();
    for length in [2, 3, 4, 6, 9] {
        for start in (0..corpus.len() - length).step_by(2) {
            let piece = &corpus[start..start + length];
            if seen.insert(piece) {
                tokens.push(token(piece, TokenKind::Text));
            }
        }
    }
    Arc::new(Vocabulary::new(tokens, vec![0, 1]))
}

/// The grammar of what `pattern` matches, by an independent reading of it.
pub(super) fn grammar_of(pattern: &str) -> Grammar {
    let hir = regex_syntax::parse(pattern).unwrap();
    let mut builder = GrammarBuilder::new();
    let root = builder.add("root", expression(&hir));
    builder.finish(root)
}

fn expression(hir: &Hir) -> Expr {
    match hir.kind() {
        HirKind::Empty => Expr::Empty,
        HirKind::Literal(text) => Expr::literal(String::from_utf8(text.0.to_vec()).unwrap()),
        HirKind::Class(Class::Unicode(class)) => Expr::Class(CharClass::from_ranges(
            class.ranges().iter().map(|r| (r.start(), r.end())),
        )),
        HirKind::Class(Class::Bytes(class)) => Expr::Class(CharClass::from_ranges(
            class
                .ranges()
                .iter()
                .map(|r| (char::from(r.start()), char::from(r.end()))),
        )),
        HirKind::Repetition(repeat) => {
            Expr::repeat(expression(&repeat.sub), repeat.min, repeat.max)
        }
        HirKind::Capture(group) => expression(&group.sub),
        HirKind::Concat(parts) => Expr::seq(parts.iter().map(expression)),
        HirKind::Alternation(parts) => Expr::alt(parts.iter().map(expression)),
        HirKind::Look(_) => panic!("no assertions here"),
    }
}

pub(super) const PATTERNS: &[&str] = &[
    "yes",
    "yes|no|maybe",
    "[a-z]{3,8}",
    "(ab|abc|b)*c",
    r#"\{"tool":"(turn_on|turn_off|set_brightness|set_temperature)","arguments":\{"device":"(kitchen light|kitchen lamp|hall)"\}\}"#,
    r#"\{"(answer|ask)":"[^"\\\x00-\x1f]{0,12}"\}"#,
    r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,2})?",
    r"\[((1|2|10), ){2,4}(true|false|null)\]",
    "(кухня|кухонный свет|свет)( и (свет|кухня))?",
    "🦊|🦉|厨房灯|厨房",
    r"(a|aa|aaa){2}b?",
    "(the |the question |question )+about",
    "[а-яё]{2,5} [🦊🦉]",
    "x?y?z?",
    "(tool|to|tools|turn_on)(_|-)?(on|off)?",
];

struct Plain;

impl Format for Plain {
    fn render(&self, prompt: &Prompt) -> Result<Rendered, GenerateError> {
        let mut rendered = Rendered::default();
        for (number, message) in prompt.messages.iter().enumerate() {
            for (text, message) in [("<mark>", None), (message.content.as_str(), Some(number))] {
                rendered.segments.push(Segment {
                    text: text.to_owned(),
                    message,
                });
            }
            if number + 1 == prompt.stable {
                rendered.stable = rendered.segments.len();
            }
        }
        Ok(rendered)
    }
}

pub(super) fn prompt(text: &str) -> Prompt {
    Prompt {
        messages: vec![
            Message {
                role: Role::System,
                content: "the question".to_owned(),
            },
            Message {
                role: Role::User,
                content: text.to_owned(),
            },
        ],
        stable: 1,
    }
}

pub(super) fn generator(seed: u64) -> SessionGenerator {
    let vocabulary = vocabulary();
    SessionGenerator::new(
        "random",
        Box::new(RandomSession::new(Arc::clone(&vocabulary), 4096, seed)),
        Box::new(Plain),
        Arc::new(Lexicon::new(vocabulary)),
        Arc::new(MaskStore::new(1 << 20)),
        Limits::default(),
    )
}

#[derive(Clone, Copy)]
struct Asked {
    temperature: f32,
    seed: u64,
    max_tokens: usize,
    jump_ahead: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            seed: 0,
            max_tokens: 200,
            jump_ahead: true,
        }
    }
}

fn write(generator: &mut SessionGenerator, grammar: &Grammar, asked: Asked) -> Generation {
    generator
        .generate(&GenerateRequest {
            prompt: &prompt("about"),
            grammar: Some(grammar),
            sampling: Sampling {
                temperature: asked.temperature,
                seed: asked.seed,
                ..Sampling::default()
            },
            max_tokens: asked.max_tokens,
            jump_ahead: asked.jump_ahead,
            calibration: None,
            cancel: Cancel::default(),
        })
        .unwrap()
}

#[test]
fn every_text_matches_its_grammar() {
    let mut generator = generator(1);
    for pattern in PATTERNS {
        let grammar = grammar_of(pattern);
        let whole = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        let mut texts = std::collections::HashSet::new();
        for seed in 0..500 {
            for jump_ahead in [true, false] {
                let temperature = [0.0, 1.0, 3.0][seed as usize % 3];
                let said = write(
                    &mut generator,
                    &grammar,
                    Asked {
                        temperature,
                        seed,
                        jump_ahead,
                        ..Asked::default()
                    },
                );
                assert!(whole.is_match(&said.text), "{pattern}: {:?}", said.text);
                assert_eq!(said.stop, Stop::Complete, "{pattern}: {:?}", said.text);
                assert!(said.log_probability.unwrap() <= 0.0);
                texts.insert(said.text);
            }
        }
        assert!(*pattern == "yes" || texts.len() > 1, "{pattern}");
    }
}

/// Objects in objects, which no regular expression says.
fn nested() -> Grammar {
    let mut builder = GrammarBuilder::new();
    let value = builder.reserve("value");
    let key = expression(&regex_syntax::parse(r#""[a-zа-я]{1,3}""#).unwrap());
    let pair = Expr::seq([key, Expr::literal(":"), Expr::Rule(value)]);
    let list = |item: Expr| {
        Expr::optional(Expr::seq([
            item.clone(),
            Expr::repeat(Expr::seq([Expr::literal(","), item]), 0, None),
        ]))
    };
    let object = Expr::seq([Expr::literal("{"), list(pair), Expr::literal("}")]);
    let array = Expr::seq([
        Expr::literal("["),
        list(Expr::Rule(value)),
        Expr::literal("]"),
    ]);
    let scalar =
        expression(&regex_syntax::parse(r#"true|null|[1-9][0-9]*|"[^"\\\x00-\x1f]*""#).unwrap());
    builder.define(value, Expr::alt([object, array, scalar]));
    let root = builder.add(
        "root",
        Expr::seq([
            Expr::literal("{\"tool\":"),
            Expr::Rule(value),
            Expr::literal("}"),
        ]),
    );
    builder.finish(root)
}

#[test]
fn within_any_budget_a_text_is_complete_or_closed_or_too_long_from_the_start() {
    let mut generator = generator(2);
    let mut closed = 0;
    for (grammar, shortest) in [
        (nested(), r#"{"tool":1}"#),
        (grammar_of("[a-z ]{5,60}"), "aaaaa"),
        (grammar_of("(кухня ){1,9}свет"), "кухня свет"),
    ] {
        for max_tokens in 0..40 {
            for seed in 0..4 {
                let jump_ahead = seed % 2 == 0;
                let said = write(
                    &mut generator,
                    &grammar,
                    Asked {
                        max_tokens,
                        seed,
                        jump_ahead,
                        ..Asked::default()
                    },
                );
                let tokens = said.stats.forced + said.stats.chosen;
                assert!(tokens <= max_tokens);
                match said.stop {
                    Stop::Complete | Stop::Closed => {
                        let mut matcher = crate::mask::Matcher::new(
                            &grammar,
                            &Arc::new(Lexicon::new(vocabulary())),
                            &Arc::new(MaskStore::new(1 << 20)),
                            &Limits::default(),
                        )
                        .unwrap();
                        assert!(matcher.accept_bytes(said.text.as_bytes()).unwrap());
                        assert!(matcher.is_accepting(), "{:?}", said.text);
                        closed += usize::from(said.stop == Stop::Closed);
                    }
                    Stop::Budget => assert!(max_tokens < shortest.len(), "{max_tokens}"),
                    Stop::Cancelled => panic!("nobody did"),
                }
            }
        }
    }
    assert!(closed > 100, "{closed}");
}

#[test]
fn the_model_is_asked_only_where_there_is_a_choice() {
    let mut generator = generator(3);
    let grammar = grammar_of(PATTERNS[4]);
    let seen: Arc<Mutex<Vec<(TokenId, usize)>>> = Arc::default();
    let sink = Arc::clone(&seen);
    generator.on_token(Some(Box::new(move |event: &TokenEvent<'_>| {
        sink.lock().unwrap().push((event.token, event.allowed));
    })));
    let said = write(&mut generator, &grammar, Asked::default());
    assert!(said.stats.forced > said.stats.chosen, "{:?}", said.stats);
    assert!(said.stats.chosen >= 1);
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), said.stats.forced + said.stats.chosen);
    let vocabulary = vocabulary();
    let spelled: Vec<u8> = seen
        .iter()
        .flat_map(|&(token, _)| vocabulary.bytes(token).to_vec())
        .collect();
    assert_eq!(spelled, said.text.as_bytes());

    // One that leaves no choice asks nothing at all.
    let said = write(&mut generator, &grammar_of("yes, always"), Asked::default());
    assert_eq!((said.stats.chosen, said.stats.prompt_evaluated), (0, 0));
    assert_eq!(said.log_probability, Some(0.0));
}

#[test]
fn the_same_seed_writes_the_same_and_others_differ() {
    let grammar = grammar_of("[a-z]{12}");
    let text = |model, seed| {
        let asked = Asked {
            seed,
            ..Asked::default()
        };
        write(&mut generator(model), &grammar, asked).text
    };
    assert_eq!(text(1, 1), text(1, 1));
    assert_ne!(text(1, 1), text(1, 2));
    assert_ne!(text(1, 1), text(2, 1));
}

#[test]
fn cancelling_stops_after_the_current_token() {
    let mut generator = generator(4);
    let cancel = Cancel::default();
    let stop = cancel.clone();
    let mut told = 0;
    generator.on_token(Some(Box::new(move |_: &TokenEvent<'_>| {
        told += 1;
        if told == 3 {
            stop.cancel();
        }
    })));
    let prompt = prompt("about");
    let grammar = grammar_of("[a-z]{90}");
    let mut request = GenerateRequest {
        prompt: &prompt,
        grammar: Some(&grammar),
        sampling: Sampling::default(),
        max_tokens: 500,
        jump_ahead: true,
        calibration: None,
        cancel,
    };
    let said = generator.generate(&request).unwrap();
    assert_eq!(said.stop, Stop::Cancelled);
    assert_eq!(said.stats.chosen + said.stats.forced, 3);
    let said = generator.generate(&request).unwrap();
    assert_eq!((said.stop, said.text.as_str()), (Stop::Cancelled, ""));
    request.cancel = Cancel::default();
    assert_eq!(generator.generate(&request).unwrap().stop, Stop::Complete);
}

#[test]
fn a_second_turn_evaluates_only_what_differs() {
    let mut generator = generator(5);
    let grammar = grammar_of("[a-z]{3}");
    let mut ask = |text: &str| {
        let prompt = prompt(text);
        let request = GenerateRequest {
            prompt: &prompt,
            grammar: Some(&grammar),
            sampling: Sampling::default(),
            max_tokens: 50,
            jump_ahead: true,
            calibration: None,
            cancel: Cancel::default(),
        };
        let count = generator.count(&prompt).unwrap();
        let stats = generator.generate(&request).unwrap().stats;
        assert_eq!(stats.prompt_reused + stats.prompt_evaluated, count);
        stats
    };
    assert_eq!(ask("about temperature").prompt_reused, 0);
    let second = ask("about brightness");
    assert!(
        second.prompt_reused > second.prompt_evaluated / 2,
        "{second:?}"
    );
    assert!(second.prompt_evaluated > 0);
    assert_eq!(ask("about brightness").prompt_evaluated, 0);
}

#[test]
fn a_text_that_is_too_long_to_close_ends_with_the_budget() {
    let mut generator = generator(8);
    let grammar = grammar_of("a{50000}b{3}");
    let asked = Asked {
        max_tokens: 6000,
        jump_ahead: false,
        ..Asked::default()
    };
    assert_eq!(write(&mut generator, &grammar, asked).stop, Stop::Budget);
}

#[test]
fn names_of_special_tokens_in_messages_stay_text() {
    let mut generator = generator(6);
    let prompt = prompt("<end><mark>");
    let request = GenerateRequest {
        prompt: &prompt,
        grammar: None,
        sampling: Sampling::default(),
        max_tokens: 3,
        jump_ahead: true,
        calibration: None,
        cancel: Cancel::default(),
    };
    generator.generate(&request).unwrap();
    let marks = |token| {
        let tokens = generator.session().tokens();
        tokens.iter().filter(|&&t| t == token).count()
    };
    // The format's own two, and no end.
    assert_eq!((marks(2), marks(0)), (2, 0));
}

#[test]
fn without_a_grammar_it_ends_where_the_model_ends_or_the_budget() {
    let mut generator = generator(7);
    let mut stops = std::collections::HashMap::new();
    for seed in 0..60 {
        let prompt = prompt("about");
        let said = generator
            .generate(&GenerateRequest {
                prompt: &prompt,
                grammar: None,
                sampling: Sampling {
                    temperature: 1.0,
                    seed,
                    ..Sampling::default()
                },
                max_tokens: 300,
                jump_ahead: true,
                calibration: None,
                cancel: Cancel::default(),
            })
            .unwrap();
        assert!(said.stats.chosen <= 300 && said.stats.forced == 0);
        *stops.entry(said.stop == Stop::Complete).or_insert(0) += 1;
    }
    assert!(stops.len() == 2, "{stops:?}");
}

#[test]
fn what_does_not_fit_or_cannot_be_spelled_is_a_typed_error() {
    let mut generator = generator(8);
    let long = prompt(&"x1y2".repeat(2000));
    let grammar = grammar_of("yes");
    let request = GenerateRequest {
        prompt: &long,
        grammar: Some(&grammar),
        sampling: Sampling::default(),
        max_tokens: 100,
        jump_ahead: true,
        calibration: None,
        cancel: Cancel::default(),
    };
    assert!(matches!(
        generator.generate(&request),
        Err(GenerateError::PromptTooLong {
            capacity: 4096,
            reserved: 100,
            ..
        })
    ));

    let tokens = ["a", "b", "<end>"].map(|text| Token {
        bytes: text.as_bytes().to_vec(),
        kind: if text.len() > 1 {
            TokenKind::Control
        } else {
            TokenKind::Text
        },
    });
    let small = Arc::new(Vocabulary::new(tokens.to_vec(), vec![2]));
    let session = RandomSession::new(Arc::clone(&small), 100, 1);
    assert_eq!(session.vocabulary().len(), 3);
    let mut generator = SessionGenerator::new(
        "small",
        Box::new(session),
        Box::new(Plain),
        Arc::new(Lexicon::new(small)),
        Arc::new(MaskStore::new(1 << 20)),
        Limits::default(),
    );
    let prompt = prompt("ab");
    for (pattern, fits) in [("a(c|cc)", false), ("a[bc]", true), ("c", false)] {
        let grammar = grammar_of(pattern);
        let request = GenerateRequest {
            prompt: &prompt,
            grammar: Some(&grammar),
            max_tokens: 10,
            sampling: Sampling::default(),
            jump_ahead: true,
            calibration: None,
            cancel: Cancel::default(),
        };
        match generator.generate(&request) {
            Ok(said) => assert!(fits, "{pattern}: {said:?}"),
            Err(GenerateError::Grammar(_)) => assert!(!fits, "{pattern}"),
            Err(error) => panic!("{pattern}: {error}"),
        }
    }
}

#[test]
fn the_tokens_of_a_prompt_are_told_apart() {
    let part = |message, start| Part { message, start };
    // `the`, ` question` and so on are tokens: what begins inside of one counts where it begins.
    let asked = prompt("about свет\nquestion");
    let size = |text: &str| {
        let session = RandomSession::new(vocabulary(), 16, 0);
        session.tokenize(text.as_bytes(), false).unwrap().len()
    };
    let mut generator = generator(0);
    let whole = [size("the question"), size("about свет\nquestion")];
    for (parts, expected, template) in [
        (vec![part(0, 0), part(1, 0)], vec![whole[0], whole[1]], 2),
        (vec![part(1, 0)], vec![whole[1]], 2 + whole[0]),
        (vec![], vec![], 2 + whole[0] + whole[1]),
        (
            vec![part(1, 99), part(0, 0), part(1, 0)],
            vec![0, whole[0], whole[1]],
            2,
        ),
    ] {
        let counts = generator.count_parts(&asked, &parts).unwrap().unwrap();
        assert_eq!(
            (counts.parts.as_slice(), counts.template),
            (&*expected, template)
        );
    }
    let total = generator.count(&asked).unwrap();
    for first in 0..12 {
        for second in 0..22 {
            let parts = [part(0, 0), part(0, first), part(1, 0), part(1, second)];
            let counts = generator.count_parts(&asked, &parts).unwrap().unwrap();
            assert_eq!(counts.total(), total, "{parts:?}");
            assert_eq!(counts.template, 2);
        }
    }
}

/// A template may take the blanks around a content away: the places stay those of the content.
#[test]
fn what_a_template_trims_is_not_counted() {
    let vocabulary = Arc::new(Vocabulary::of_bytes());
    let mut generator = SessionGenerator::new(
        "random",
        Box::new(RandomSession::new(Arc::clone(&vocabulary), 4096, 0)),
        Box::new(crate::model::ChatTemplate::plain()),
        Arc::new(Lexicon::new(vocabulary)),
        Arc::new(MaskStore::new(1 << 20)),
        Limits::default(),
    );
    let asked = prompt("  one\ntwo \n");
    let parts = [(0, 0), (1, 0), (1, 6)].map(|(message, start)| Part { message, start });
    let counts = generator.count_parts(&asked, &parts).unwrap().unwrap();
    assert_eq!(
        counts.parts,
        ["the question".len(), "one\n".len(), "two".len()]
    );
    assert_eq!(counts.total(), generator.count(&asked).unwrap());
}

/// What is added to a first member's name decides which of them is written, and nothing else: the
/// rest is as it would be, and without a choice nothing is decided.
#[test]
fn a_first_name_is_chosen_with_what_is_added() {
    let grammar = grammar_of("\\{\"(calls|ask|answer|asking)\": \"(a|b){1,4}\"\\}");
    let said = |first_name: &[(&str, f64)], seed: u64, temperature: f32| {
        let own = first_name
            .iter()
            .map(|(name, nats)| ((*name).to_owned(), *nats));
        let said = generator(seed)
            .generate(&GenerateRequest {
                prompt: &prompt("about"),
                grammar: Some(&grammar),
                sampling: Sampling {
                    first_name: own.collect(),
                    temperature,
                    seed,
                    ..Sampling::default()
                },
                max_tokens: 60,
                jump_ahead: true,
                calibration: None,
                cancel: Cancel::default(),
            })
            .unwrap();
        assert_eq!(said.stop, Stop::Complete);
        let value: serde_json::Value = serde_json::from_str(&said.text).unwrap();
        value.as_object().unwrap().keys().next().unwrap().clone()
    };
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..20 {
        for name in ["calls", "ask", "answer", "asking"] {
            assert_eq!(said(&[(name, 200.0)], seed, 0.0), name);
        }
        // Nothing is added: the likeliest as a whole.
        let whole = said(&[("none", 3.0)], seed, 0.0);
        assert_ne!(said(&[(&whole, -200.0)], seed, 0.0), whole);
        seen.insert(whole);
    }
    assert!(seen.len() > 1, "{seen:?}");
    // Drawn, an advantage of a few nats shows in most draws.
    let drawn = (0..60)
        .filter(|&seed| said(&[("ask", 6.0)], seed, 1.0) == "ask")
        .count();
    assert!(drawn > 40, "{drawn} of 60");
}
