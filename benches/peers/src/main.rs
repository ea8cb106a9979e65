//! Snaffle's masks beside those of llguidance and of llama.cpp's grammar sampler, in one run:
//! `snaffle-peers DATA OUT MODEL.gguf…`, where DATA is the folder of MaskBench. A table is printed
//! for each model's vocabulary; in the folder OUT, `peers.json` has the figures and `NAME.inputs.json`
//! the very inputs, for libraries that are not Rust's.

mod measure;
mod peer;
mod vocabulary;

use std::alloc::System;
use std::path::Path;
use std::time::{Duration, Instant};

use llama_cpp_2::llama_backend::LlamaBackend;
use measure::{Case, Replayed, Times};
use peer::{LlGuidance, LlamaCpp, Peer, Snaffle};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use vocabulary::Words;

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The data sets of tool calls.
const SETS: [&str; 4] = ["Glaiveai2K", "BFCL", "JME", "MCPspec"];

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: DATA OUT MODEL.gguf…");
    let (data, out) = (next()?, next()?);
    let mut backend = LlamaBackend::init()?;
    backend.void_logs();
    let mut report = Vec::new();
    for model in arguments {
        let words = Words::read(Path::new(&model))?;
        let cases = cases(Path::new(&data), &words)?;
        report.push(compare(&words, &cases, &backend, Path::new(&out))?);
        let text = format!("{:#}\n", Value::from(report.clone()));
        fs_err::write(Path::new(&out).join("peers.json"), text)?;
    }
    Ok(())
}

fn cases(data: &Path, words: &Words) -> Result<Vec<Case>, Failed> {
    let mut cases = Vec::new();
    for set in SETS {
        let text = fs_err::read_to_string(data.join(format!("{set}.jsonl")))?;
        for line in text.lines() {
            let mut case: Value = serde_json::from_str(line)?;
            let tests = case["tests"].as_array_mut().into_iter().flatten();
            let Some(test) = tests.into_iter().find(|test| test["valid"] == true) else {
                continue;
            };
            let value = test["data"].take();
            if let Some(tokens) = words.tokenize(&snaffle::call::json::spaced(&value)) {
                let schema = case["schema"].take();
                cases.push(Case {
                    schema,
                    value,
                    tokens,
                });
            }
        }
    }
    Ok(cases)
}

fn compare(
    words: &Words,
    cases: &[Case],
    backend: &LlamaBackend,
    out: &Path,
) -> Result<Value, Failed> {
    let mut memory = Region::new(MEMORY);
    let mut held = || {
        let change = memory.change_and_reset();
        change.bytes_allocated as i64 - change.bytes_deallocated as i64
    };
    held();
    let started = Instant::now();
    let mut own = Snaffle::new(words);
    let own_start = (started.elapsed(), held());
    let started = Instant::now();
    let mut guidance = LlGuidance::new(words)?;
    let guidance_start = (started.elapsed(), held());
    let started = Instant::now();
    let mut llama = LlamaCpp::new(words, backend)?;
    let llama_start = (started.elapsed(), held());

    let mut refused = [0, 0];
    let mut both = Vec::new();
    for case in cases {
        let taken = [measure::takes(&own, case), measure::takes(&guidance, case)];
        for (refused, taken) in refused.iter_mut().zip(&taken) {
            *refused += usize::from(taken.is_err());
        }
        if taken.iter().all(Result::is_ok) {
            both.push(case);
        }
    }
    let turns = measure::session(&both, words);
    export(words, &both, &turns, out)?;
    println!(
        "{}: {} tokens; {} schemas with a valid instance, {} taken by both (not by snaffle {}, \
         not by llguidance {}); a session of {} calls",
        words.name,
        words.tokens.len(),
        cases.len(),
        both.len(),
        refused[0],
        refused[1],
        turns.len()
    );
    let mut columns = Vec::new();
    let mut peers: [(&mut dyn Peer, (Duration, i64)); 3] = [
        (&mut own, own_start),
        (&mut guidance, guidance_start),
        (&mut llama, llama_start),
    ];
    for (peer, start) in &mut peers {
        eprintln!("{}…", peer.name());
        let replayed = measure::replay(&mut **peer, &turns, &mut held)?;
        let measured = Measured {
            start: start.0,
            held: [start.1, replayed.kept],
            whole: replayed.calls == turns.len(),
            replayed,
            known: measure::known(&mut **peer, &both),
            cold: measure::first_seen(&mut **peer, &both, true),
            warm: measure::first_seen(&mut **peer, &both, false),
        };
        columns.push((peer.name(), measured.figures(peer.is_counted())));
    }
    print(&columns);
    let peers = columns.iter().map(|(name, figures)| {
        let figures = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)));
        ((*name).to_owned(), Value::Object(figures.collect()))
    });
    Ok(json!({
        "vocabulary": words.name, "tokens": words.tokens.len(), "schemas": cases.len(),
        "taken_by_both": both.len(), "not_taken": refused, "calls": turns.len(),
        "peers": Value::Object(peers.collect()),
    }))
}

/// What others are measured on: the vocabulary (bytes in hexadecimal digits), the schemas, the
/// session.
fn export(words: &Words, cases: &[&Case], turns: &[Case], out: &Path) -> Result<(), Failed> {
    let hex = |token: &Vec<u8>| token.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let tokens: Vec<Option<String>> = words.tokens.iter().map(|t| t.as_ref().map(hex)).collect();
    let plain = |case: &Case| json!({ "schema": case.schema, "tokens": case.tokens });
    let inputs = json!({
        "vocabulary": words.name, "end": words.end, "tokens": tokens,
        "cases": cases.iter().map(|case| plain(case)).collect::<Vec<_>>(),
        "turns": turns.iter().map(plain).collect::<Vec<_>>(),
    });
    let path = out.join(format!("{}.inputs.json", words.name));
    fs_err::write(path, inputs.to_string())?;
    Ok(())
}

/// Rows of the table, each with the figure of every peer and how many times the first one's it is.
fn print(columns: &[(&str, Vec<(&'static str, Option<f64>)>)]) {
    print!("{:32}", "");
    for (name, _) in columns {
        print!("{name:>26}");
    }
    println!();
    let rows = columns.first().map_or(0, |(_, figures)| figures.len());
    for at in 0..rows {
        print!("{:32}", columns[0].1[at].0);
        let own = columns[0].1[at].1;
        for (column, (_, figures)) in columns.iter().enumerate() {
            let cell = match (figures[at].1, own) {
                (Some(value), _) if column == 0 => format!("{value:.3}"),
                (Some(value), Some(own)) if own > 0.0 => {
                    format!("{value:.3} ({:>7.2}×)", value / own)
                }
                (Some(value), _) => format!("{value:.3}"),
                (None, _) => "–".to_owned(),
            };
            print!("{cell:>26}");
        }
        println!();
    }
    println!();
}

/// What was measured of one peer.
struct Measured {
    /// Set-up per vocabulary.
    start: Duration,
    /// Bytes after set-up, and what a session adds.
    held: [i64; 2],
    replayed: Replayed,
    /// Whether those are all calls of the session.
    whole: bool,
    known: Times,
    cold: Times,
    warm: Times,
}

impl Measured {
    /// Rows of the table, in the same order for each peer.
    fn figures(&self, counted: bool) -> Vec<(&'static str, Option<f64>)> {
        let micro = |time: Duration| Some(time.as_secs_f64() * 1e6);
        let milli = |time: Duration| Some(time.as_secs_f64() * 1e3);
        let mebi = |bytes: i64| counted.then_some(bytes as f64 / f64::from(1 << 20));
        let whole = |figure: Option<f64>| figure.filter(|_| self.whole);
        let count = |times: &Times| Some(times.count() as f64);
        vec![
            ("set-up per vocabulary, ms", milli(self.start)),
            ("held per vocabulary, MiB", mebi(self.held[0])),
            ("session: calls", Some(self.replayed.calls as f64)),
            ("session: masks", count(&self.replayed.masks)),
            (
                "session: all masks, ms",
                whole(milli(self.replayed.masks.total())),
            ),
            ("session: mask mean, µs", micro(self.replayed.masks.mean())),
            (
                "session: mask p50, µs",
                micro(self.replayed.masks.quantile(0.5)),
            ),
            (
                "session: mask p99, µs",
                micro(self.replayed.masks.quantile(0.99)),
            ),
            ("session: compiles", count(&self.replayed.compiling)),
            (
                "session: compiling, ms",
                whole(milli(self.replayed.compiling.total())),
            ),
            (
                "session: compile mean, ms",
                milli(self.replayed.compiling.mean()),
            ),
            ("session: held at its end, MiB", mebi(self.held[1])),
            ("known states: masks", count(&self.known)),
            (
                "known states: mask p50, µs",
                micro(self.known.quantile(0.5)),
            ),
            (
                "known states: mask p99, µs",
                micro(self.known.quantile(0.99)),
            ),
            ("first seen: schemas", count(&self.cold)),
            ("first seen, cold: p50, ms", milli(self.cold.quantile(0.5))),
            ("first seen, cold: p99, ms", milli(self.cold.quantile(0.99))),
            ("first seen, cold: mean, ms", milli(self.cold.mean())),
            ("first seen, warm: p50, ms", milli(self.warm.quantile(0.5))),
            ("first seen, warm: p99, ms", milli(self.warm.quantile(0.99))),
            ("first seen, warm: mean, ms", milli(self.warm.mean())),
        ]
    }
}
