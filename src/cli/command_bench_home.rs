//! `snaffle bench home`: requests to houses, each in a fresh copy.

use super::args::BenchHome;
use super::bench_houses::{fresh_house, houses};
use super::bench_requests;
use super::bench_run::{Attempt, Suite, Who};
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::world;
use crate::agent::{Clock, FromPool, Settings as AgentSettings, SystemClock};
use crate::bench::episode::Player;
use crate::bench::home::{Graded, grade};
use crate::bench::record::{LEARNING, label};
use crate::bench::replay::{Expected, Recorded, RecordedReply, Replies, recording};
use crate::bench::report::{Report, table};
use crate::bench::suite::Request;
use crate::call::Dialect;
use crate::model::{Cancel, Generator};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Runs it.
///
/// # Errors
/// A wrong suite or house, or a model that cannot be used.
pub fn run(context: &mut Context, args: &BenchHome) -> Result<Exit, Failure> {
    let settings = context.settings(&args.measured.settings.given)?;
    let all = bench_requests::read_suite(args.suite.as_deref())?;
    let all = bench_requests::pick(all, args.language.as_deref(), args.limit)?;
    let names = all.iter().map(|request| request.house.as_str());
    let houses = houses(args.houses.as_deref(), names)?;
    if args.record.is_some() && settings.ask_below > 0.0 {
        let message = "a recording does not say how sure the model was, and a replay would ask \
                       about nothing";
        return Err(
            Failure::new(Exit::Config, message).hint("leave out --record, or set --ask-below 0")
        );
    }
    let (lessons, requests) = match args.learn {
        true => bench_requests::halves(all)?,
        false => (Vec::new(), all),
    };
    let record = args.record.as_ref().map(fs_err::File::create).transpose()?;
    let name = match args.learn {
        true => "home after learning",
        false => "home",
    };
    let mut suite = Suite::open(
        context,
        name,
        &settings,
        &args.measured.runs,
        &args.measured.without,
        requests.len(),
        |_| {},
    )?;
    if args.learn {
        suite.also(lessons.len() + requests.len());
    }
    let folder = tempfile::tempdir()?;
    let mut work = Work {
        houses: &houses,
        folder: folder.path(),
        cancel: suite.cancel.clone(),
        record,
    };
    let mut reports: Vec<Report> = Vec::new();
    let mut learned = Vec::new();
    suite.each(&mut |measuring, attempt| {
        let Attempt {
            who,
            repetition,
            generator,
            examples,
            agent,
            model,
            without,
            ..
        } = attempt;
        let mut pools = Vec::new();
        if args.learn && who == Who::Model {
            let mut pupil = world::examples(&settings)?.learning(None);
            (pupil.seed, pupil.fixed) = (examples.seed, examples.fixed);
            // Not taken from an earlier run's results: those teach nothing.
            for lesson in &lessons {
                let done = work.one(generator, &mut pupil, &agent, false, lesson)?;
                if done.is_none() {
                    return Ok(());
                }
                measuring.advance();
            }
            learned.push(pupil.learned());
            pools.push((model.clone(), without.clone(), pupil.settled()));
            let mut without = without;
            without.push(LEARNING.to_owned());
            pools.push((label(&model, &without), without, examples));
        } else {
            pools.push((model.clone(), without, examples));
        }
        let recorded = who == Who::Model;
        for (run, without, mut examples) in pools {
            let graded: Vec<Graded> = measuring.run(
                &run,
                repetition,
                &requests,
                |request| &request.id,
                &mut |request| work.one(generator, &mut examples, &agent, recorded, request),
            )?;
            add(&mut reports, &model, without, graded);
        }
        Ok(())
    })?;
    let mut value = suite.head();
    value["reports"] = reports.iter().map(Report::to_json).collect();
    let held = suite.engine.bytes_held();
    value["bytes_held"] = held.into();
    let mut text = table(&reports);
    if args.learn {
        value["lessons"] = lessons.len().into();
        value["learned"] = learned.clone().into();
        let counts: Vec<String> = learned.iter().map(ToString::to_string).collect();
        text.push_str(&format!(
            "learned               {} examples from {} other requests\n",
            counts.join(", "),
            lessons.len(),
        ));
    }
    let mebibytes = held as f64 / f64::from(1 << 20);
    text.push_str(&format!(
        "memory                {mebibytes:.1} MiB beside the model, its cache and its buffers\n"
    ));
    suite.finish(context, &value, &text)
}

/// What requests are worked on with.
struct Work<'a> {
    houses: &'a BTreeMap<String, String>,
    /// Where the copies are.
    folder: &'a Path,
    cancel: Cancel,
    /// Lines for `bench replay`.
    record: Option<fs_err::File>,
}

impl Work<'_> {
    /// Has a request worked on and graded; `None` where that was cancelled.
    fn one(
        &mut self,
        generator: &mut dyn Generator,
        examples: &mut FromPool,
        agent: &AgentSettings,
        recorded: bool,
        request: &Request,
    ) -> Result<Option<Graded>, Failure> {
        let replies = Replies::default();
        let mut player = Player {
            generator: &mut recording(generator, &replies),
            examples,
            clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
            settings: agent.clone(),
            cancel: self.cancel.clone(),
        };
        let mut fresh = |request: &Request| fresh_house(self.folder, self.houses, &request.house);
        let graded = grade(&mut player, &mut fresh, request)
            .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
        if let (Some(file), Some(graded), true) = (&mut self.record, &graded, recorded) {
            let line = line(request, graded, replies.take(), agent.max_calls);
            writeln!(file, "{}", serde_json::json!(line))?;
        }
        Ok(graded)
    }
}

/// Adds the results of an attempt to those of its model.
fn add(reports: &mut Vec<Report>, model: &str, without: Vec<String>, graded: Vec<Graded>) {
    let same = |report: &&mut Report| report.model == model && report.without == without;
    match reports.iter_mut().find(same) {
        Some(report) => report.requests.extend(graded),
        None => reports.push(Report {
            model: model.to_owned(),
            without,
            requests: graded,
        }),
    }
}

/// A line for `bench replay`.
fn line(
    request: &Request,
    graded: &Graded,
    replies: Vec<RecordedReply>,
    max_calls: usize,
) -> Recorded {
    Recorded {
        id: request.id.clone(),
        house: request.house.clone(),
        request: request.request.clone(),
        grammar: true,
        dialect: Dialect::default(),
        max_calls,
        replies,
        expect: Expected {
            calls: graded.calls.clone(),
            failures: graded.failure_kinds.clone(),
            reason: graded.reason.clone(),
            text: graded.text.clone(),
        },
    }
}
