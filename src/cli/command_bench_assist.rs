//! `snaffle bench home-assist`.

use super::args_bench::{BenchHomeAssist, Measured};
use super::bench_run::{Attempt, Suite, add};
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use crate::agent::{Clock, SystemClock};
use crate::bench::episode::Player;
use crate::bench::home_assist::dataset::{Case, DatasetError, read};
use crate::bench::home_assist::mapping::{World, map};
use crate::bench::home_assist::run::{group, run as run_case};
use crate::bench::record::{Record, Run, table};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        Self::input(error.to_string())
    }
}

/// What can be run and what cannot.
struct Requests {
    mapped: Vec<(Case, World)>,
    /// Requests with the reason.
    unmapped: Vec<(String, String)>,
    /// Entities that no house has, by home.
    left_out: BTreeMap<String, BTreeSet<String>>,
}

/// Runs it.
///
/// # Errors
/// A folder that is not the data set's, or a model that cannot be used.
pub fn run(context: &mut Context, args: &BenchHomeAssist) -> Result<Exit, Failure> {
    let settings = context.settings(&args.measured.settings.given)?;
    let requests = requests(args)?;
    let Measured { runs, without, .. } = &args.measured;
    let mut suite = Suite::open(
        context,
        "home-assist",
        &settings,
        runs,
        without,
        requests.mapped.len(),
        |_| {},
    )?;
    let cancel = suite.cancel.clone();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("house.toml");
    let mut runs: Vec<Run> = Vec::new();
    suite.each(&mut |measuring, attempt| {
        let Attempt {
            repetition,
            generator,
            mut examples,
            agent,
            model,
            without,
            ..
        } = attempt;
        let mut player = Player {
            generator,
            examples: &mut examples,
            clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
            settings: agent,
            cancel: cancel.clone(),
        };
        let mut one = |(case, world): &(Case, World)| {
            run_case(&mut player, case, world, &path)
                .map_err(|error| Failure::new(Exit::Internal, error.to_string()))
        };
        let records: Vec<Record> = measuring.run(
            &model,
            repetition,
            &requests.mapped,
            |(case, _)| &case.id,
            &mut one,
        )?;
        add(&mut runs, model, without, records);
        Ok(())
    })?;
    let mut value = suite.head();
    value["reports"] = runs.iter().map(Run::to_json).collect();
    value["unmapped"] = requests
        .unmapped
        .iter()
        .map(|(id, why)| json!({ "id": id, "why": why }))
        .collect();
    value["left_out"] = json!(requests.left_out);
    let text = format!("{}{}", table(&runs), notes(&requests));
    suite.finish(context, &value, &text)
}

/// The requests that the arguments pick, and what cannot be carried over.
fn requests(args: &BenchHomeAssist) -> Result<Requests, Failure> {
    let mut requests = Requests {
        mapped: Vec::new(),
        unmapped: Vec::new(),
        left_out: BTreeMap::new(),
    };
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for case in read(&args.data)? {
        match map(&case) {
            Err(why) => requests.unmapped.push((case.id, why)),
            Ok(world) => {
                let left_out = requests.left_out.entry(case.home.name.clone()).or_default();
                left_out.extend(world.left_out.iter().cloned());
                let count = taken.entry(group(&case, &world)).or_default();
                *count += 1;
                if args.limit.is_none_or(|limit| *count <= limit) {
                    requests.mapped.push((case, world));
                }
            }
        }
    }
    requests.left_out.retain(|_, entities| !entities.is_empty());
    if requests.mapped.is_empty() {
        return Err(Failure::input(format!(
            "{}: no request that can be mapped to a house",
            args.data.display()
        )));
    }
    Ok(requests)
}

/// What was not carried over, for a person.
fn notes(requests: &Requests) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, why) in &requests.unmapped {
        *reasons.entry(why).or_default() += 1;
    }
    let mut text = String::new();
    if !reasons.is_empty() {
        let _ = writeln!(text, "\n{} requests are not run:", requests.unmapped.len());
    }
    for (why, count) in reasons {
        let _ = writeln!(text, "{count:>5}  {}", crate::trace::sanitize_line(why));
    }
    for (home, entities) in &requests.left_out {
        let entities: Vec<&str> = entities.iter().map(String::as_str).collect();
        let line = format!("{home}: the house is without {}", entities.join(", "));
        let _ = writeln!(text, "{}", crate::trace::sanitize_line(&line));
    }
    text
}
