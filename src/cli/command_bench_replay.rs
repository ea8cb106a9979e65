//! `snaffle bench replay`: recorded replies through the harness, without a model.

use super::args_bench::BenchReplay;
use super::bench_houses::{fresh_house, houses};
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_text;
use crate::agent::{Clock, Settings, SystemClock};
use crate::bench::replay::{Replayed, read, replay};
use crate::trace::sanitize_line;
use std::io::Write;

/// Replays every line.
///
/// # Errors
/// A file that is no recording, and [`Exit::Unfinished`] where something came out otherwise.
pub fn run(context: &mut Context, args: &BenchReplay) -> Result<Exit, Failure> {
    let named =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", args.file.display()));
    let mut lines = read(&read_text(&args.file)?).map_err(|error| named(&error))?;
    lines.truncate(args.limit.unwrap_or(usize::MAX));
    let names = lines.iter().map(|line| line.house.as_str());
    let houses = houses(args.houses.as_deref(), names)?;
    let folder = tempfile::tempdir()?;
    let mut replayed: Vec<Replayed> = Vec::with_capacity(lines.len());
    for line in &lines {
        let mut tools =
            fresh_house(folder.path(), &houses, &line.house).map_err(|error| named(&error))?;
        let clock = || -> Box<dyn Clock> { Box::new(SystemClock::start()) };
        // The harness's own defaults: a regression must not depend on a person's settings.
        let settings = Settings::default();
        replayed.push(replay(line, &mut tools, &settings, &clock).map_err(|error| named(&error))?);
    }
    let different = replayed.iter().filter(|one| one.difference.is_some());
    let count = different.clone().count();
    let terminal = &mut context.terminal;
    if terminal.json {
        let value = serde_json::json!({
            "suite": "replay", "requests": replayed.len(), "different": count, "lines": replayed,
        });
        terminal.write_json(&value)?;
    } else {
        for one in different {
            let difference = one.difference.as_deref().unwrap_or_default();
            let line = format!("{}: {difference}", one.id);
            writeln!(terminal.out, "{}", sanitize_line(&line))?;
        }
        let same = replayed.len() - count;
        writeln!(terminal.out, "{same} of {} as recorded", replayed.len())?;
    }
    if count == 0 {
        return Ok(Exit::Success);
    }
    Err(Failure::new(
        Exit::Unfinished,
        format!("{count} of {} requests came out otherwise", replayed.len()),
    ))
}
