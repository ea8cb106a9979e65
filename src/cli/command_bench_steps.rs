//! `snaffle bench steps`.

use super::args_bench::{BenchSteps, Measured, Part};
use super::bench_run::{Attempt, Suite, Who, add, refuse_idle};
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::settings::Settings;
use crate::agent::{Clock, SystemClock, ToolsInPrompt};
use crate::bench::episode::Player;
use crate::bench::record::{self, Run, label};
use crate::bench::steps::{Comparison, Plan, Played, figures::Sums, play, table};

/// Tokens of context where the settings say nothing: room for most growing histories, and no more
/// than the tiny models were trained for.
const CONTEXT: usize = 8192;

/// Runs it.
///
/// # Errors
/// A model that cannot be used.
pub fn run(context: &mut Context, args: &BenchSteps) -> Result<Exit, Failure> {
    let settings = context.settings(&args.measured.settings.given)?;
    let settings = Settings {
        context: settings.context.or(Some(CONTEXT)),
        ..settings
    };
    let seed = settings.sampling.seed;
    let tasks = args.limit.unwrap_or(args.tasks);
    let plans: Vec<Plan> = (0..tasks).map(|number| Plan::new(seed, number)).collect();
    if plans.is_empty() {
        return Err(Failure::input("there is no task to work on"));
    }
    let Measured { runs, without, .. } = &args.measured;
    // What is to be done the tasks' definition says.
    refuse_idle(without, &[Part::Grounding])?;
    let who: &[Who] = if args.no_history {
        &[Who::Model, Who::Chance]
    } else {
        &[Who::Model, Who::GrammarAlone, Who::Chance]
    };
    let mut suite = Suite::open(
        context,
        "steps",
        &settings,
        runs,
        without,
        plans.len(),
        |_| {},
    )?;
    suite.has(who);
    let cancel = suite.cancel.clone();
    let mut runs: Vec<Run> = Vec::new();
    suite.each(&mut |measuring, attempt| {
        let Attempt {
            who,
            repetition,
            generator,
            mut examples,
            mut agent,
            model,
            without,
            ..
        } = attempt;
        if who == Who::GrammarAlone && settings.tools_in_prompt.is_none() {
            // Without examples nothing else says what there is.
            agent.layout.tools = ToolsInPrompt::Full;
        }
        let mut player = Player {
            generator,
            examples: &mut examples,
            clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
            settings: agent,
            cancel: cancel.clone(),
        };
        let mut one = |plan: &Plan| {
            play(&mut player, plan).map_err(|error| Failure::new(Exit::Internal, error.to_string()))
        };
        let name = label(&model, &without);
        let played: Vec<Played> =
            measuring.run(&name, repetition, &plans, |plan| &plan.id, &mut one)?;
        let records = played.into_iter().flat_map(|played| played.steps).collect();
        add(&mut runs, model, without, records);
        Ok(())
    })?;
    let comparisons = compared(&runs);
    let mut value = suite.head();
    value["reports"] = runs
        .iter()
        .map(|run| {
            let mut report = run.to_json();
            report["steps"] = serde_json::json!(Sums::of(run));
            report
        })
        .collect();
    value["comparisons"] = serde_json::json!(comparisons);
    let text = format!("{}{}", record::table(&runs), table(&runs, &comparisons));
    suite.finish(context, &value, &text)
}

/// The harness's run against those beside it.
fn compared(runs: &[Run]) -> Vec<Comparison> {
    let [harness, others @ ..] = runs else {
        return Vec::new();
    };
    let chance = |run: &&Run| run.model == record::BASELINE;
    let history = others.iter().find(|run| !chance(run));
    Comparison::all(harness, history, others.iter().find(chance))
}
