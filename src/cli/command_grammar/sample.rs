//! Random texts of a grammar, each judged where there is a judge.

use super::source::{Judge, Source};
use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::exit::Exit;
use crate::grammar::{Limits, Recogniser, SampleLength, sample};
use crate::trace::sanitize_line;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::io::{self, Write};

/// Writes `number` texts, a line each; the same seed gives the same texts.
///
/// # Errors
/// A grammar that has no text short enough, or, as a fault of this program, a text that is wrong
/// although the coverage says that the grammar says all.
pub fn write(
    context: &mut Context,
    source: &mut Source,
    number: usize,
    seed: u64,
    length: SampleLength,
) -> Result<(), Failure> {
    let input = |error: &dyn std::error::Error| Failure::input(error.to_string());
    let mut recogniser =
        Recogniser::new(&source.grammar, &Limits::default()).map_err(|error| input(&error))?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let complete = source.is_complete();
    let terminal = &mut context.terminal;
    if let Judge::Unusable(reason) = &source.judge {
        terminal.warn(&format!("texts are not validated: {reason}"));
    }
    let mut broken_texts = 0;
    for _ in 0..number {
        let text = sample(&mut recogniser, &mut random, length).map_err(|error| input(&error))?;
        let judged = matches!(source.judge, Judge::Schema(_) | Judge::Tools(_));
        let broken = source.judge.broken(&text);
        if terminal.json {
            terminal.write_json(&json!({
                "text": text,
                "valid": judged.then_some(broken.is_none()),
                "broken_rule": broken,
            }))?;
        } else {
            // A file gets the text as it is; a terminal nothing that it could obey.
            if terminal.out.is_terminal() {
                writeln!(terminal.out, "{}", sanitize_line(&text))?;
            } else {
                writeln!(io::stdout().lock(), "{text}")?;
            }
        }
        let Some(broken) = broken else {
            continue;
        };
        if complete {
            let text = crate::call::json::shortened(&text, 200);
            let message = format!("the grammar accepts {text}, which is wrong: {broken}");
            return Err(Failure::new(Exit::Internal, message));
        }
        broken_texts += 1;
        if !terminal.json {
            terminal.out.flush()?;
            terminal.note(&format!("  breaks a rule: {broken}"));
        }
    }
    if broken_texts > 0 && !terminal.json {
        terminal.note(&format!(
            "{broken_texts} of {number} break a rule that the grammar does not say: `snaffle grammar explain` lists them"
        ));
    }
    Ok(())
}
