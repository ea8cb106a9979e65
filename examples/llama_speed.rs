//! Tokens a second of a model, without and with a grammar, as one line of JSON.
//!
//! `llama_speed MODEL.gguf [THREADS] [DEPTH]`; `scripts/compare-llama-bench` sets it beside
//! llama.cpp's own benchmark.
#![expect(clippy::print_stdout, reason = "a program")]

use snaffle::decode::{SessionGenerator, TokenEvent};
use snaffle::grammar::{Grammar, Limits, gbnf};
use snaffle::mask::{Lexicon, MaskStore};
use snaffle::model::llama::{LlamaModel, LlamaSettings};
use snaffle::model::{
    Cancel, ChatTemplate, GenerateRequest, Generation, Generator, Message, Prompt, Role, Sampling,
    Session,
};
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Text that must go on for longer than it is let, even in the vocabulary's longest tokens: what
/// can be closed within the budget is closed, and a token written so costs no evaluation.
const STRING: &str = r#"root ::= "{\"answer\":\"" [^"\\\x00-\x1F]{50000,60000} "\"}""#;

/// A call with few choices.
const CALL: &str = r#"
root ::= "{\"calls\":[{\"tool\":\"" call "}}]}"
call ::= ("turn_on" | "turn_off") "\",\"arguments\":{\"device\":\"" device "\"" |
  "set_brightness\",\"arguments\":{\"device\":\"" device "\",\"brightness\":" ("100" | [1-9] [0-9]? | "0")
device ::= "kitchen light" | "kitchen lamp" | "hall lamp" | "bedroom light" | "garage door"
"#;

/// Tokens written per measurement.
const WRITTEN: usize = 64;
const REPETITIONS: usize = 3;

struct Speed {
    generator: SessionGenerator,
    prompt: Prompt,
}

impl Speed {
    fn write(
        &mut self,
        grammar: Option<&Grammar>,
        jump_ahead: bool,
        seed: u64,
    ) -> Result<Generation, Box<dyn Error>> {
        Ok(self.generator.generate(&GenerateRequest {
            prompt: &self.prompt,
            grammar,
            sampling: Sampling {
                seed,
                ..Sampling::default()
            },
            max_tokens: WRITTEN,
            jump_ahead,
            calibration: None,
            cancel: Cancel::default(),
        })?)
    }

    /// The best rate of some repetitions; the first, which evaluates the prompt and computes
    /// masks, is left out.
    fn rate(&mut self, grammar: Option<&Grammar>, jump_ahead: bool) -> Result<f64, Box<dyn Error>> {
        let mut best = 0.0_f64;
        for repetition in 0..=REPETITIONS {
            let (mut tokens, mut time) = (0, Duration::ZERO);
            while tokens < WRITTEN {
                let said = self.write(grammar, jump_ahead, repetition as u64)?;
                let written = said.stats.forced + said.stats.chosen;
                if written == 0 {
                    return Err("the model writes nothing".into());
                }
                tokens += written;
                time += said.stats.total_time - said.stats.prefill_time;
            }
            if repetition > 0 {
                best = best.max(tokens as f64 / time.as_secs_f64());
            }
        }
        Ok(best)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: llama_speed MODEL.gguf [THREADS] [DEPTH]")?;
    let threads = arguments.next().map(|text| text.parse()).transpose()?;
    let depth: usize = arguments.next().map_or(Ok(512), |text| text.parse())?;
    let settings = LlamaSettings {
        threads,
        context: Some(depth + 512),
        ..LlamaSettings::default()
    };
    let model = LlamaModel::open(Path::new(&path), settings)?;
    let vocabulary = Arc::clone(model.vocabulary());

    // Prefill, as the session does it.
    let mut session = model.session()?;
    let text = "The lamps of the kitchen, the hall and the bedroom are on. ".repeat(depth);
    let mut tokens: Vec<u32> = session.begin().into_iter().collect();
    tokens.extend(session.tokenize(text.as_bytes(), false)?);
    tokens.truncate(depth);
    let mut prefill = 0.0_f64;
    for _ in 0..=REPETITIONS {
        session.set(&tokens[..1], &mut |_| true)?;
        let start = Instant::now();
        session.set(&tokens, &mut |_| true)?;
        prefill = prefill.max((tokens.len() - 1) as f64 / start.elapsed().as_secs_f64());
    }

    // Decoding at about that depth.
    let lexicon = Arc::new(Lexicon::new(Arc::clone(&vocabulary)));
    let store = Arc::new(MaskStore::new(32 << 20));
    let mut generator = SessionGenerator::new(
        "speed",
        Box::new(session),
        Box::new(ChatTemplate::plain()),
        Arc::clone(&lexicon),
        Arc::clone(&store),
        Limits::default(),
    );
    let mask_times: Arc<Mutex<Vec<u64>>> = Arc::default();
    let sink = Arc::clone(&mask_times);
    generator.on_token(Some(Box::new(move |event: &TokenEvent<'_>| {
        if !event.mask_time.is_zero() {
            let nanoseconds = u64::try_from(event.mask_time.as_nanos()).unwrap_or(u64::MAX);
            sink.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(nanoseconds);
        }
    })));
    let spelled: Vec<u8> = tokens
        .iter()
        .flat_map(|&token| vocabulary.bytes(token))
        .copied()
        .collect();
    let content = String::from_utf8_lossy(&spelled).into_owned();
    let mut prompt = Prompt {
        messages: vec![Message {
            role: Role::User,
            content,
        }],
        stable: 0,
    };
    while generator.count(&prompt)? > depth {
        let content = &mut prompt.messages[0].content;
        content.truncate(content.len() - 60.min(content.len()));
    }
    let mut speed = Speed { generator, prompt };
    let free = speed.rate(None, true)?;
    let string = gbnf::parse(STRING, &Limits::default())?.grammar;
    speed.write(Some(&string), false, 0)?;
    mask_times
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    let in_string = speed.rate(Some(&string), false)?;
    let call = gbnf::parse(CALL, &Limits::default())?.grammar;
    let jumping = speed.rate(Some(&call), true)?;

    let mut times = mask_times
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    times.sort_unstable();
    let percentile = |share: usize| times.get(times.len() * share / 100).copied();
    let overhead = speed.generator.bytes_held();
    let result = serde_json::json!({
        "prefill": prefill,
        "free": free,
        "string": in_string,
        "call": jumping,
        "mask_ns_p50": percentile(50),
        "mask_ns_p99": percentile(99),
        "overhead_mib": overhead as f64 / f64::from(1 << 20),
    });
    println!("{result}");
    Ok(())
}
