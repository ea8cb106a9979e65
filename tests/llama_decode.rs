//! Constrained generations of real models.
#![cfg(feature = "llama")]
#![expect(clippy::unwrap_used, reason = "a test may")]

mod common;

use common::{GEMMA, SMOLLM2, alone, model_file};
use snaffle::decode::{SessionGenerator, TokenEvent};
use snaffle::grammar::{Grammar, Limits, gbnf};
use snaffle::mask::{Lexicon, MaskStore, Matcher};
use snaffle::model::llama::{LlamaModel, LlamaSettings};
use snaffle::model::{
    Cancel, Format, GenerateError, GenerateRequest, Generation, Generator, Message, Prompt,
    Rendered, Role, Sampling, Segment, Stop,
};
use snaffle::vocab::{TokenId, TokenKind, Vocabulary};
use std::sync::{Arc, Mutex};

/// "Request: … Answer:", as a base model understands it.
struct Plain;

impl Format for Plain {
    fn render(&self, prompt: &Prompt) -> Result<Rendered, GenerateError> {
        let mut rendered = Rendered::default();
        for (number, message) in prompt.messages.iter().enumerate() {
            let own = (message.content.as_str(), Some(number));
            for (text, message) in [("", None), own, ("\n", None)] {
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

struct Bench {
    generator: SessionGenerator,
    vocabulary: Arc<Vocabulary>,
    lexicon: Arc<Lexicon>,
    store: Arc<MaskStore>,
    events: Arc<Mutex<Vec<(TokenId, usize)>>>,
}

fn bench(name: &str) -> Option<Bench> {
    let path = model_file(name)?;
    let settings = LlamaSettings {
        context: Some(2048),
        ..LlamaSettings::default()
    };
    let model = LlamaModel::open(&path, settings).unwrap();
    let vocabulary = Arc::clone(model.vocabulary());
    let lexicon = Arc::new(Lexicon::new(Arc::clone(&vocabulary)));
    let store = Arc::new(MaskStore::new(32 << 20));
    let mut generator = SessionGenerator::new(
        name,
        Box::new(model.session().unwrap()),
        Box::new(Plain),
        Arc::clone(&lexicon),
        Arc::clone(&store),
        Limits::default(),
    );
    let events: Arc<Mutex<Vec<(TokenId, usize)>>> = Arc::default();
    let sink = Arc::clone(&events);
    generator.on_token(Some(Box::new(move |event: &TokenEvent<'_>| {
        sink.lock().unwrap().push((event.token, event.allowed));
    })));
    Some(Bench {
        generator,
        vocabulary,
        lexicon,
        store,
        events,
    })
}

impl Bench {
    fn write(&mut self, request: &str, grammar: &Grammar, how: How) -> Generation {
        let message = |role, content: &str| Message {
            role,
            content: content.to_owned(),
        };
        let prompt = Prompt {
            messages: vec![
                message(
                    Role::System,
                    "A house is run by calls.\nRequest: Switch off the hall lamp\nCall: \
                     {\"tool\":\"turn_off\",\"arguments\":{\"device\":\"hall lamp\"}}",
                ),
                message(Role::User, &format!("Request: {request}\nCall:")),
            ],
            stable: 1,
        };
        self.events.lock().unwrap().clear();
        self.generator
            .generate(&GenerateRequest {
                prompt: &prompt,
                grammar: Some(grammar),
                sampling: Sampling {
                    temperature: how.temperature,
                    seed: how.seed,
                    ..Sampling::default()
                },
                max_tokens: how.max_tokens,
                jump_ahead: how.jump_ahead,
                calibration: None,
                cancel: Cancel::default(),
            })
            .unwrap()
    }

    fn accepts(&self, grammar: &Grammar, text: &str) -> bool {
        let mut matcher =
            Matcher::new(grammar, &self.lexicon, &self.store, &Limits::default()).unwrap();
        matcher.accept_bytes(text.as_bytes()).unwrap() && matcher.is_accepting()
    }
}

fn grammar(source: &str) -> Grammar {
    gbnf::parse(source, &Limits::default()).unwrap().grammar
}

#[derive(Clone, Copy)]
struct How {
    temperature: f32,
    seed: u64,
    max_tokens: usize,
    jump_ahead: bool,
}

const GREEDY: How = How {
    temperature: 0.0,
    seed: 0,
    max_tokens: 120,
    jump_ahead: true,
};

const CALL: &str = r#"
root ::= "{\"tool\":\"" call "}}"
call ::= ("turn_on" | "turn_off") "\",\"arguments\":{\"device\":\"" device "\"" |
  "set_brightness\",\"arguments\":{\"device\":\"" device "\",\"brightness\":" number
device ::= "kitchen light" | "kitchen lamp" | "hall lamp" | "спальня" | "厨房灯"
number ::= "100" | [1-9] [0-9]? | "0"
"#;

const ANSWER: &str = r#"
root ::= "{\"answer\":\"" [^"\\\x00-\x1F]{1,80} "\"}"
"#;

const MIXED: &str = r#"
root ::= item (", " item){0,3} " " [🦊🦉😀-😎] "!"
item ::= "red" | "reddish" | "re" "d"? "-" [a-zа-я]{1,4} | "кот" | "коты"
"#;

#[test]
fn texts_match_with_and_without_jump_ahead() {
    let _alone = alone();
    for name in [SMOLLM2, GEMMA] {
        let Some(mut bench) = bench(name) else {
            continue;
        };
        let (mut same, mut all) = (0, 0);
        for source in [CALL, ANSWER, MIXED] {
            let grammar = grammar(source);
            for (request, temperature) in [
                ("Turn on the kitchen light", 0.0),
                ("Dim the lamp in the hall to 20", 0.0),
                ("Включи свет в спальне", 0.8),
                ("打开厨房的灯", 1.5),
            ] {
                let how = How {
                    temperature,
                    seed: 5,
                    ..GREEDY
                };
                let texts = [true, false].map(|jump_ahead| {
                    let said = bench.write(request, &grammar, How { jump_ahead, ..how });
                    assert_eq!(said.stop, Stop::Complete, "{name}: {}", said.text);
                    assert!(bench.accepts(&grammar, &said.text), "{name}: {}", said.text);
                    let events = bench.events.lock().unwrap();
                    assert_eq!(events.len(), said.stats.forced + said.stats.chosen);
                    let spelled: Vec<u8> = events
                        .iter()
                        .flat_map(|&(token, _)| bench.vocabulary.bytes(token).to_vec())
                        .collect();
                    assert_eq!(spelled, said.text.as_bytes());
                    for &(token, _) in events.iter() {
                        let kind = bench.vocabulary.token(token).unwrap().kind;
                        assert_ne!(kind, TokenKind::Control);
                    }
                    said.text
                });
                // Without jump-ahead the model may also choose how forced text is cut into
                // tokens, and then reads something else; mostly it does not.
                if temperature == 0.0 {
                    all += 1;
                    same += usize::from(texts[0] == texts[1]);
                }
            }
        }
        eprintln!("{name}: {same} of {all} the same without jump-ahead");
        assert!(same * 2 > all, "{name}: {same} of {all}");
    }
}

#[test]
fn a_call_costs_few_choices_and_a_second_turn_little_prefill() {
    let _alone = alone();
    let Some(mut bench) = bench(SMOLLM2) else {
        return;
    };
    let grammar = grammar(CALL);
    let first = bench.write("Turn on the kitchen light", &grammar, GREEDY);
    assert!(first.stats.chosen * 3 < first.stats.forced, "{first:?}");
    assert_eq!(first.stats.prompt_reused, 0);
    let second = bench.write("Switch on the light in the kitchen", &grammar, GREEDY);
    assert!(second.stats.prompt_reused > 2 * second.stats.prompt_evaluated);
    assert_eq!(second.stats.masks_computed, 0, "{:?}", second.stats);
    // The same again is the same again.
    let third = bench.write("Switch on the light in the kitchen", &grammar, GREEDY);
    assert_eq!(second.text, third.text);
    assert_eq!(third.stats.prompt_evaluated, 0);
}

#[test]
fn near_the_budget_an_answer_is_closed() {
    let _alone = alone();
    let Some(mut bench) = bench(SMOLLM2) else {
        return;
    };
    let grammar = grammar(ANSWER);
    let (mut closed, mut complete) = (0, 0);
    for max_tokens in 1..20 {
        let how = How {
            max_tokens,
            ..GREEDY
        };
        let said = bench.write("What do you know of lamps?", &grammar, how);
        assert!(said.stats.forced + said.stats.chosen <= max_tokens);
        match said.stop {
            Stop::Closed => closed += 1,
            Stop::Complete => complete += 1,
            Stop::Budget => assert!(max_tokens < 8, "{max_tokens}: {}", said.text),
            Stop::Cancelled => panic!("nobody did"),
        }
        if said.stop != Stop::Budget {
            assert!(bench.accepts(&grammar, &said.text), "{}", said.text);
        }
    }
    assert!(closed > 3, "{closed} {complete}");
}
