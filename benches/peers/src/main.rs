//! Snaffle's masks beside llguidance's, in one run: `cargo run --release -- DATA MODEL.gguf…`, where
//! DATA is the folder of MaskBench. A table is printed, and `peers.json` written.

mod measure;
mod peer;
mod vocabulary;

use std::alloc::System;
use std::path::Path;
use std::time::{Duration, Instant};

use measure::{Case, Times};
use peer::{LlGuidance, Peer, Snaffle};
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
    let data = arguments.next().ok_or("DATA MODEL.gguf…")?;
    let mut report = Vec::new();
    for model in arguments {
        let words = Words::read(Path::new(&model))?;
        let cases = cases(Path::new(&data), &words)?;
        report.push(compare(&words, &cases)?);
    }
    fs_err::write("peers.json", format!("{:#}\n", Value::from(report)))?;
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

fn compare(words: &Words, cases: &[Case]) -> Result<Value, Failed> {
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
    let mut other = LlGuidance::new(words)?;
    let other_start = (started.elapsed(), held());

    let mut refused = [0, 0];
    let mut both = Vec::new();
    for case in cases {
        let taken = [measure::takes(&own, case), measure::takes(&other, case)];
        for (refused, taken) in refused.iter_mut().zip(&taken) {
            *refused += usize::from(taken.is_err());
        }
        if taken.iter().all(Result::is_ok) {
            both.push(case);
        }
    }
    let turns = measure::session(&both, words);
    held();
    println!(
        "{}: {} tokens; {} schemas with a valid instance, {} taken by both (not by snaffle {}, not by llguidance {}); a session of {} calls",
        words.name,
        words.tokens.len(),
        cases.len(),
        both.len(),
        refused[0],
        refused[1],
        turns.len()
    );
    let mut rows = Vec::new();
    let mut peers: [(&mut dyn Peer, (Duration, i64)); 2] =
        [(&mut own, own_start), (&mut other, other_start)];
    for (peer, start) in &mut peers {
        held();
        let (compiling, masks) = measure::replay(&mut **peer, &turns)?;
        let kept = held();
        let known = measure::known(&mut **peer, &both)?;
        let cold = measure::first_seen(&mut **peer, &both, true)?;
        let warm = measure::first_seen(&mut **peer, &both, false)?;
        rows.push((
            peer.name(),
            figures(start, kept, &compiling, &masks, &known, &cold, &warm),
        ));
    }
    println!("{:34}{:>20}{:>20}{:>10}", "", rows[0].0, rows[1].0, "ratio");
    for (at, (name, value)) in rows[0].1.iter().enumerate() {
        let other = rows[1].1[at].1;
        println!("{name:34}{value:>20.3}{other:>20.3}{:>10.2}", other / value);
    }
    println!();
    let peers = rows.iter().map(|(name, figures)| {
        let figures: serde_json::Map<String, Value> = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        ((*name).to_owned(), Value::from(figures))
    });
    Ok(json!({
        "vocabulary": words.name, "tokens": words.tokens.len(), "schemas": cases.len(),
        "taken_by_both": both.len(), "not_taken": refused, "calls": turns.len(),
        "peers": peers.collect::<serde_json::Map<_, _>>(),
    }))
}

/// Rows of the table, in the same order for each peer.
fn figures(
    start: &(Duration, i64),
    kept: i64,
    compiling: &Times,
    masks: &Times,
    known: &Times,
    cold: &Times,
    warm: &Times,
) -> Vec<(&'static str, f64)> {
    let micro = |time: Duration| time.as_secs_f64() * 1e6;
    let milli = |time: Duration| time.as_secs_f64() * 1e3;
    let mebi = |bytes: i64| bytes as f64 / f64::from(1 << 20);
    vec![
        ("set-up per vocabulary, ms", milli(start.0)),
        ("held per vocabulary, MiB", mebi(start.1)),
        ("session: masks", masks.count() as f64),
        ("session: all masks, ms", milli(masks.total())),
        ("session: mask p50, µs", micro(masks.quantile(0.5))),
        ("session: mask p99, µs", micro(masks.quantile(0.99))),
        ("session: compiling, ms", milli(compiling.total())),
        ("session: held at its end, MiB", mebi(kept)),
        ("known states: mask p50, µs", micro(known.quantile(0.5))),
        ("known states: mask p99, µs", micro(known.quantile(0.99))),
        ("first seen, cold: p50, ms", milli(cold.quantile(0.5))),
        ("first seen, cold: p99, ms", milli(cold.quantile(0.99))),
        ("first seen, cold: total, ms", milli(cold.total())),
        ("first seen, warm: p50, ms", milli(warm.quantile(0.5))),
        ("first seen, warm: p99, ms", milli(warm.quantile(0.99))),
        ("first seen, warm: total, ms", milli(warm.total())),
    ]
}
