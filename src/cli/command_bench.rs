//! `snaffle bench`: figures, always beside those of chance.

use super::args::{Bench as Command, BenchHome};
use super::command_conformance;
use super::context::Context;
use super::engine::Engine;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_text;
use super::interrupt::Interrupts;
use super::progress::bar;
use super::world;
use crate::agent::{Clock, Settings as AgentSettings, SystemClock};
use crate::bench::home::{Bench, run as run_home};
use crate::bench::report::{Report, table};
use crate::bench::suite::{Request, read};
use crate::model::{Cancel, Generator};
use crate::tool::Registry;
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The suite that ships.
const SUITE: &str = include_str!("../../benches/suites/home.jsonl");

/// The houses that ship.
const HOUSES: [(&str, &str); 5] = [
    ("dacha", include_str!("../../examples/houses/dacha.toml")),
    (
        "harbour",
        include_str!("../../examples/houses/harbour.toml"),
    ),
    ("loft", include_str!("../../examples/houses/loft.toml")),
    ("lou", include_str!("../../examples/houses/lou.toml")),
    ("maple", include_str!("../../examples/houses/maple.toml")),
];

/// Seed of the random logits.
const BASELINE_SEED: u64 = 1;

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
    }
}

fn home(context: &mut Context, args: &BenchHome) -> Result<Exit, Failure> {
    let settings = context.settings(&args.settings.given)?;
    let requests = requests(args)?;
    let houses = houses(args.houses.as_deref(), &requests)?;
    let interrupts = Interrupts::install()?;
    let cancel = interrupts.begin();
    let mut engine = Engine::open(&settings, &ProgressBar::hidden())?;
    // Nobody is asked: the world is a copy that is thrown away.
    let agent = world::agent_settings(&settings, &engine, true)?;
    let bar = bar(context.terminal.shows_progress(), requests.len());
    let mut reports = Vec::new();
    let mut baseline = engine.random(BASELINE_SEED)?;
    let name = engine.name();
    let mut runs: Vec<(String, &mut dyn Generator)> = vec![(name, &mut engine.generator)];
    if !args.no_baseline {
        runs.push(("random logits".to_owned(), &mut baseline));
    }
    for (model, generator) in runs {
        bar.reset();
        bar.set_message(model.clone());
        let mut examples = world::examples(&settings)?;
        let folder = tempfile::tempdir()?;
        let mut fresh = |request: &Request| fresh_house(folder.path(), &houses, request);
        let graded = run_home(
            &mut Bench {
                generator,
                examples: &mut examples,
                world: &mut fresh,
                clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
                settings: agent.clone(),
                cancel: cancel.clone(),
            },
            &requests,
            &mut |_| bar.inc(1),
        )
        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
        reports.push(Report {
            model,
            requests: graded,
        });
        if cancel.is_cancelled() {
            break;
        }
    }
    bar.finish_and_clear();
    write(context, args, &reports, &agent, &cancel)
}

fn write(
    context: &mut Context,
    args: &BenchHome,
    reports: &[Report],
    agent: &AgentSettings,
    cancel: &Cancel,
) -> Result<Exit, Failure> {
    let value = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "examples": agent.examples,
        "temperature": agent.sampling.temperature,
        "reports": reports.iter().map(Report::to_json).collect::<Vec<_>>(),
    });
    if let Some(path) = &args.output {
        fs_err::write(path, format!("{value}\n"))?;
    }
    let terminal = &mut context.terminal;
    if terminal.json {
        terminal.write_json(&value)?;
    } else {
        write!(terminal.out, "{}", table(reports))?;
    }
    if cancel.is_cancelled() {
        return Err(Failure::new(
            Exit::Cancelled,
            "cancelled; the figures are of a part",
        ));
    }
    Ok(Exit::Success)
}

/// The requests that the arguments pick.
fn requests(args: &BenchHome) -> Result<Vec<Request>, Failure> {
    let (name, text) = match &args.suite {
        Some(path) => (path.display().to_string(), read_text(path)?),
        None => ("the suite that ships".to_owned(), SUITE.to_owned()),
    };
    let all = read(&text).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let mut taken: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    let mut picked = Vec::new();
    for request in all {
        if args
            .language
            .as_ref()
            .is_some_and(|language| *language != request.lang)
        {
            continue;
        }
        let count = taken
            .entry((request.lang.clone(), request.kind.name()))
            .or_default();
        *count += 1;
        if args.limit.is_none_or(|limit| *count <= limit) {
            picked.push(request);
        }
    }
    if picked.is_empty() {
        return Err(Failure::input(format!("{name} has no such request")));
    }
    Ok(picked)
}

/// The texts of the houses that the requests name.
fn houses(
    folder: Option<&Path>,
    requests: &[Request],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut houses = BTreeMap::new();
    for request in requests {
        let name = &request.house;
        if houses.contains_key(name) {
            continue;
        }
        let text = match folder {
            Some(folder) => read_text(&folder.join(format!("{name}.toml")))?,
            None => HOUSES
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| {
                    Failure::input(format!("no house {name:?} ships"))
                        .hint("--houses names the folder of your own")
                })?,
        };
        houses.insert(name.clone(), text);
    }
    Ok(houses)
}

/// The tools over a fresh copy of the request's house.
fn fresh_house(
    folder: &Path,
    houses: &BTreeMap<String, String>,
    request: &Request,
) -> Result<Registry, String> {
    let text = houses.get(&request.house).map_or("", String::as_str);
    let path = folder.join("house.toml");
    fs_err::write(&path, text).map_err(|error| error.to_string())?;
    let tools = world::home_tools(&path).map_err(|failure| failure.message)?;
    let mut registry = Registry::new();
    registry
        .register_all(tools)
        .map_err(|error| error.to_string())?;
    Ok(registry)
}
