//! `snaffle bench`: figures, always beside those of chance.

use super::args::{Bench as Command, BenchHome};
use super::bench_houses::{fresh_house, houses};
use super::bench_requests;
use super::bench_run::{Attempt, Suite, Who};
use super::command_conformance;
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::{
    command_bench_assist, command_bench_bfcl, command_bench_replay, command_bench_report,
    command_bench_steps,
};
use crate::agent::{Clock, SystemClock};
use crate::bench::episode::Player;
use crate::bench::home::{Graded, grade};
use crate::bench::replay::{Expected, Recorded, RecordedReply, Replies, recording};
use crate::bench::report::{Report, table};
use crate::bench::suite::Request;
use crate::call::Dialect;
use std::io::Write;

/// Runs it.
///
/// # Errors
/// A wrong suite or house, or a model that cannot be used.
pub fn run(context: &mut Context, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Home(args) => home(context, args),
        Command::Maskbench(args) => command_conformance::maskbench(context, args),
        Command::SchemaSuite(args) => command_conformance::schema_suite(context, args),
        Command::Worker(args) => command_conformance::work(context, args),
        Command::HomeAssist(args) => command_bench_assist::run(context, args),
        Command::Steps(args) => command_bench_steps::run(context, args),
        Command::Bfcl(args) => command_bench_bfcl::run(context, args),
        Command::Replay(args) => command_bench_replay::run(context, args),
        Command::Score(args) => command_bench_bfcl::score_file(context, args),
        Command::Report(args) => command_bench_report::run(context, args),
    }
}

fn home(context: &mut Context, args: &BenchHome) -> Result<Exit, Failure> {
    let settings = context.settings(&args.measured.settings.given)?;
    let all = bench_requests::read_suite(args.suite.as_deref())?;
    let requests = bench_requests::pick(all, args.language.as_deref(), args.limit)?;
    let names = requests.iter().map(|request| request.house.as_str());
    let houses = houses(args.houses.as_deref(), names)?;
    if args.record.is_some() && settings.ask_below > 0.0 {
        let message = "a recording does not say how sure the model was, and a replay would ask \
                       about nothing";
        return Err(
            Failure::new(Exit::Config, message).hint("leave out --record, or set --ask-below 0")
        );
    }
    let mut record = args.record.as_ref().map(fs_err::File::create).transpose()?;
    let mut suite = Suite::open(
        context,
        "home",
        &settings,
        &args.measured.runs,
        &args.measured.without,
        requests.len(),
        |_| {},
    )?;
    let cancel = suite.cancel.clone();
    let folder = tempfile::tempdir()?;
    let mut reports: Vec<Report> = Vec::new();
    suite.each(&mut |measuring, attempt| {
        let Attempt {
            who,
            repetition,
            generator,
            mut examples,
            agent,
            model,
            without,
            ..
        } = attempt;
        let replies = Replies::default();
        let max_calls = agent.max_calls;
        let mut recording = recording(generator, &replies);
        let mut fresh = |request: &Request| fresh_house(folder.path(), &houses, &request.house);
        let mut player = Player {
            generator: &mut recording,
            examples: &mut examples,
            clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
            settings: agent,
            cancel: cancel.clone(),
        };
        let mut one = |request: &Request| {
            let graded = grade(&mut player, &mut fresh, request)
                .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
            let replies = replies.take();
            if let (Some(file), Some(graded), true) = (&mut record, &graded, who == Who::Model) {
                let line = recorded(request, graded, replies, max_calls);
                writeln!(file, "{}", serde_json::json!(line))?;
            }
            Ok(graded)
        };
        let graded: Vec<Graded> = measuring.run(
            &model,
            repetition,
            &requests,
            |request| &request.id,
            &mut one,
        )?;
        match reports.iter_mut().find(|report| report.model == model) {
            Some(report) => report.requests.extend(graded),
            None => reports.push(Report {
                model,
                without,
                requests: graded,
            }),
        }
        Ok(())
    })?;
    let mut value = suite.head();
    value["reports"] = reports.iter().map(Report::to_json).collect();
    let held = suite.engine.bytes_held();
    value["bytes_held"] = held.into();
    let mut text = table(&reports);
    let mebibytes = held as f64 / f64::from(1 << 20);
    text.push_str(&format!(
        "memory                {mebibytes:.1} MiB beside the model, its cache and its buffers\n"
    ));
    suite.finish(context, &value, &text)
}

/// A line for `bench replay`.
fn recorded(
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
