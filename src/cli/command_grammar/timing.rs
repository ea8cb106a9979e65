//! What a grammar costs with a model's vocabulary: compiling, masks that nothing knows yet, masks
//! that are known.

use super::source::Source;
use crate::bench::conformance::walk;
use crate::bench::histogram::{Histogram, time};
use crate::cli::context::Context;
use crate::cli::engine::Words;
use crate::cli::error::Failure;
use crate::cli::style::{FAINT, STRONG, paint};
use crate::grammar::{Limits, Recogniser, SampleLength, sample};
use crate::mask::{MaskStore, Matcher};
use crate::trace::sanitize_line;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Times that compiling is measured.
const ROUNDS: usize = 21;
/// Width of the longest bar.
const BAR: usize = 40;

/// Measures `source`, which `compile` makes anew, with each vocabulary along `samples` random texts
/// of the grammar.
///
/// # Errors
/// A grammar that cannot be compiled for a vocabulary or has no text short enough.
pub fn write(
    context: &mut Context,
    source: &Source,
    compile: &dyn Fn() -> Result<(), Failure>,
    vocabularies: &[Words],
    samples: usize,
    seed: u64,
    store_bytes: usize,
) -> Result<(), Failure> {
    let input = |error: &dyn std::error::Error| Failure::input(error.to_string());
    let limits = Limits::default();
    let compiled = median(compile)?;
    let mut recogniser =
        Recogniser::new(&source.grammar, &limits).map_err(|error| input(&error))?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let texts: Vec<String> = (0..samples)
        .map(|_| sample(&mut recogniser, &mut random, SampleLength::default()))
        .collect::<Result<_, _>>()
        .map_err(|error| input(&error))?;
    for words in vocabularies {
        let store = Arc::new(MaskStore::new(store_bytes));
        let lowered = median(&|| {
            Matcher::new(&source.grammar, &words.lexicon, &store, &limits)
                .map(drop)
                .map_err(|error| input(&error))
        })?;
        let tokens = texts
            .iter()
            .map(|text| Ok((text.clone(), words.tokenize(text)?)))
            .collect::<Result<Vec<_>, Failure>>()?;
        let masks = walk(&source.grammar, &tokens, 2, &words.lexicon, &store);
        if let Some(stopped) = &masks.stopped {
            return Err(Failure::input(stopped.clone()));
        }
        let terminal = &mut context.terminal;
        if terminal.json {
            terminal.write_json(&json!({
                "vocabulary": words.name,
                "tokens": words.lexicon.vocabulary().len(),
                "rules": source.grammar.rules().len(),
                "compile_us": compiled.as_secs_f64() * 1e6,
                "lower_us": lowered.as_secs_f64() * 1e6,
                "texts": masks.instances / 2,
                "unspellable": masks.unspellable / 2,
                "cold": masks.computed.to_json(),
                "known": masks.known.to_json(),
                "store_bytes": store.bytes(),
            }))?;
            continue;
        }
        writeln!(
            terminal.out,
            "{}",
            paint(
                STRONG,
                format!(
                    "{} ({} tokens)",
                    sanitize_line(&words.name),
                    words.lexicon.vocabulary().len()
                )
            )
        )?;
        writeln!(
            terminal.out,
            "compile    {:>9}  to {} rules",
            time(compiled),
            source.grammar.rules().len()
        )?;
        writeln!(terminal.out, "automaton  {:>9}", time(lowered))?;
        for (title, histogram) in [
            ("cold masks", &masks.computed),
            ("known masks", &masks.known),
        ] {
            writeln!(terminal.out, "{title}: {}", quantiles(histogram))?;
            for line in histogram.bars(BAR) {
                writeln!(terminal.out, "  {}", paint(FAINT, line))?;
            }
        }
        writeln!(
            terminal.out,
            "{} random texts, two rounds; the store holds {} KiB",
            masks.instances / 2,
            store.bytes() >> 10
        )?;
    }
    Ok(())
}

fn quantiles(times: &Histogram) -> String {
    format!(
        "{}, p50 {}, p99 {}, worst {}",
        times.count(),
        time(times.quantile(0.5)),
        time(times.quantile(0.99)),
        time(times.longest())
    )
}

/// The median time of `work`.
fn median(work: &dyn Fn() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times[ROUNDS / 2])
}
