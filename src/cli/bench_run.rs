//! What the benchmarks have in common: seeds, progress, results that are kept as they come, and the
//! report at the end.

use super::args_bench::{Part, Runs};
use super::context::Context;
use super::engine::Engine;
use super::error::Failure;
use super::exit::Exit;
use super::interrupt::Interrupts;
use super::progress::bar;
use super::settings::Settings;
use super::world;
use crate::agent::{FromPool, Settings as AgentSettings, ToolsInPrompt, Unsure};
use crate::bench::log::{LogError, ResultLog};
use crate::bench::record::{BASELINE, Record, Run};
use crate::model::{Cancel, Generator};
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;

/// Seed of the random logits, where `--seed` is 0.
const BASELINE_SEED: u64 = 1;

/// A benchmark under way.
#[derive(Debug)]
pub struct Measuring {
    log: Option<ResultLog>,
    bar: ProgressBar,
    cancel: Cancel,
}

impl Measuring {
    /// Begins; `what` is all that the results depend on.
    ///
    /// # Errors
    /// A file of results that is of another benchmark, or cannot be used.
    fn begin(
        context: &Context,
        runs: &Runs,
        what: &Map<String, Value>,
        cancel: Cancel,
    ) -> Result<Self, Failure> {
        let log = match &runs.resume {
            Some(path) => Some(ResultLog::open(path, what)?),
            None => None,
        };
        Ok(Self {
            log,
            bar: bar(context.terminal.shows_progress(), 0),
            cancel,
        })
    }

    /// Measures `items` once, those aside whose results are there already. `one` gives `None` where
    /// it was cancelled; then, what there is.
    ///
    /// # Errors
    /// Those of `one`, and a file of results that cannot be written.
    pub fn run<I, T: Serialize + DeserializeOwned>(
        &mut self,
        label: &str,
        repetition: usize,
        items: &[I],
        id: impl Fn(&I) -> &str,
        one: &mut dyn FnMut(&I) -> Result<Option<T>, Failure>,
    ) -> Result<Vec<T>, Failure> {
        self.bar.set_message(label.to_owned());
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            if self.cancel.is_cancelled() {
                break;
            }
            let known = self
                .log
                .as_ref()
                .and_then(|log| log.find(label, repetition, id(item)));
            let result = match known {
                Some(result) => result,
                None => {
                    let Some(result) = one(item)? else {
                        break;
                    };
                    if let Some(log) = &mut self.log {
                        log.add(label, repetition, id(item), &result)?;
                    }
                    result
                }
            };
            results.push(result);
            self.bar.inc(1);
        }
        Ok(results)
    }

    /// One request more is done, of which no result is kept.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Ends: `value` goes to `output` and, for machines, to standard output; people are shown
    /// `text`.
    ///
    /// # Errors
    /// A stream or file that cannot be written, and [`Exit::Cancelled`] where the figures are of a
    /// part.
    fn finish(
        self,
        context: &mut Context,
        output: Option<&Path>,
        value: &Value,
        text: &str,
    ) -> Result<Exit, Failure> {
        self.bar.finish_and_clear();
        if let Some(path) = output {
            fs_err::write(path, format!("{value}\n"))?;
        }
        let terminal = &mut context.terminal;
        if terminal.json {
            terminal.write_json(value)?;
        } else {
            write!(terminal.out, "{text}")?;
        }
        if self.cancel.is_cancelled() {
            return Err(Failure::new(
                Exit::Cancelled,
                "cancelled; the figures are of a part",
            ));
        }
        Ok(Exit::Success)
    }
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The model, with the harness less what is left out.
    Model,
    /// The model with a grammar of the tools' schemas and a growing history.
    GrammarAlone,
    /// Random logits under the grammar of the whole harness.
    Chance,
}

/// A model, or chance, about to answer all requests once.
pub struct Attempt<'e> {
    /// Its name in reports.
    pub model: String,
    /// The parts of the harness that it does without.
    pub without: Vec<String>,
    /// Who that is.
    pub who: Who,
    /// Which repetition, from 0.
    pub repetition: usize,
    /// What writes.
    pub generator: &'e mut dyn Generator,
    /// A fresh pool.
    pub examples: FromPool,
    /// With the seed of the repetition.
    pub agent: AgentSettings,
}

impl std::fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt")
            .field("model", &self.model)
            .field("repetition", &self.repetition)
            .finish_non_exhaustive()
    }
}

/// A suite about to be run: the model is open, the results of an earlier run are read.
pub struct Suite<'a> {
    /// The model.
    pub engine: Engine,
    /// What the model is run with. Nobody is asked: the world is a copy that is thrown away.
    pub agent: AgentSettings,
    /// Stops it.
    pub cancel: Cancel,
    settings: &'a Settings,
    runs: &'a Runs,
    without: Vec<Part>,
    who: Vec<Who>,
    requests: usize,
    what: Map<String, Value>,
    measuring: Measuring,
    /// Hears Ctrl-C.
    _interrupts: Interrupts,
}

impl std::fmt::Debug for Suite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suite")
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}

impl<'a> Suite<'a> {
    /// Opens the model for `requests` requests; `adjust` is what is particular to the suite.
    ///
    /// # Errors
    /// A model or a file of results that cannot be used.
    pub fn open(
        context: &Context,
        name: &str,
        settings: &'a Settings,
        runs: &'a Runs,
        without: &[Part],
        requests: usize,
        adjust: impl FnOnce(&mut AgentSettings),
    ) -> Result<Self, Failure> {
        let interrupts = Interrupts::install()?;
        let cancel = interrupts.begin();
        let engine = Engine::open(settings, &ProgressBar::hidden())?;
        let mut agent = world::agent_settings(settings, &engine, true)?;
        adjust(&mut agent);
        let without: Vec<Part> = Part::value_variants()
            .iter()
            .filter(|part| without.contains(part))
            .copied()
            .collect();
        let what = described(name, &engine.name(), &names(&without), &agent);
        let measuring = Measuring::begin(context, runs, &what, cancel.clone())?;
        let mut suite = Self {
            engine,
            agent,
            cancel,
            settings,
            runs,
            without,
            who: Vec::new(),
            requests,
            what,
            measuring,
            _interrupts: interrupts,
        };
        suite.has(&[Who::Model, Who::Chance]);
        Ok(suite)
    }

    /// These answer, in this order; chance not where it is to be left out.
    pub fn has(&mut self, who: &[Who]) {
        let baseline = !self.runs.no_baseline;
        self.who = who.to_vec();
        self.who.retain(|who| *who != Who::Chance || baseline);
        let requests = self.requests.saturating_mul(self.who.len());
        let total = requests.saturating_mul(self.runs.repeat as usize);
        self.measuring.bar.set_length(total as u64);
    }

    /// The model answers so many requests more, each time.
    pub fn also(&mut self, requests: usize) {
        let more = requests.saturating_mul(self.runs.repeat as usize);
        self.measuring.bar.inc_length(more as u64);
    }

    /// So many requests are answered, where that follows from the model.
    pub fn asks(&mut self, requests: usize) {
        self.requests = requests;
        self.has(&self.who.clone());
    }

    /// Takes the progress away, where there will be no report.
    pub fn abandon(&self) {
        self.measuring.bar.finish_and_clear();
    }

    /// Has each of those that answer do so as often as asked for.
    ///
    /// # Errors
    /// Those of `each`, and a pool or template that cannot be read.
    pub fn each(
        &mut self,
        each: &mut dyn FnMut(&mut Measuring, Attempt<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let name = self.engine.name();
        for who in self.who.clone() {
            let without = match who {
                Who::Model => self.without.clone(),
                Who::GrammarAlone => {
                    let all = Part::value_variants().iter().copied();
                    all.filter(|part| *part != Part::Grammar).collect()
                }
                // Chance is what it is under the whole harness, whatever the model does without.
                Who::Chance => Vec::new(),
            };
            for repetition in 0..self.runs.repeat {
                let seed = self.agent.sampling.seed.wrapping_add(u64::from(repetition));
                let mut examples = world::examples(self.settings)?;
                examples.seed = seed;
                examples.fixed = without.contains(&Part::Retrieval);
                let mut agent = self.agent.clone();
                agent.sampling.seed = seed;
                leave_out(&mut agent, &without);
                let mut baseline;
                let (model, generator): (String, &mut dyn Generator) = if who == Who::Chance {
                    baseline = self.engine.random(BASELINE_SEED.wrapping_add(seed))?;
                    (BASELINE.to_owned(), &mut baseline)
                } else {
                    (name.clone(), &mut self.engine.generator)
                };
                let attempt = Attempt {
                    model,
                    without: names(&without),
                    who,
                    repetition: repetition as usize,
                    generator,
                    examples,
                    agent,
                };
                each(&mut self.measuring, attempt)?;
                if self.cancel.is_cancelled() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// What the results depend on: the beginning of the report.
    pub fn head(&self) -> Value {
        Value::Object(self.what.clone())
    }

    /// As [`Measuring::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(self, context: &mut Context, value: &Value, text: &str) -> Result<Exit, Failure> {
        let output = self.runs.output.as_deref();
        self.measuring.finish(context, output, value, text)
    }
}

/// Takes parts of the harness away; retrieval is the pool's (see [`FromPool::fixed`]).
pub(super) fn leave_out(agent: &mut AgentSettings, parts: &[Part]) {
    for part in parts {
        match part {
            Part::Grammar => agent.grammar = false,
            Part::Domains => agent.domains = false,
            Part::Calibration => (agent.alpha, agent.call_bias) = (None, None),
            Part::Pool => agent.examples = 0,
            Part::Retrieval => {}
            Part::Grounding => agent.grounding = false,
            Part::Hints => agent.layout.hints = false,
            Part::State => agent.layout.state = false,
        }
    }
}

fn names(parts: &[Part]) -> Vec<String> {
    parts.iter().map(|part| part.name().to_owned()).collect()
}

/// Adds an attempt's records to the run of its model.
pub fn add(runs: &mut Vec<Run>, model: String, without: Vec<String>, records: Vec<Record>) {
    let same = |run: &&mut Run| run.model == model && run.without == without;
    match runs.iter_mut().find(same) {
        Some(run) => run.records.extend(records),
        None => runs.push(Run {
            model,
            without,
            records,
        }),
    }
}

/// What results depend on, for the head of a report and for `--resume`.
fn described(
    suite: &str,
    model: &str,
    without: &[String],
    agent: &AgentSettings,
) -> Map<String, Value> {
    let tools = match agent.layout.tools {
        ToolsInPrompt::None => "none",
        ToolsInPrompt::Names => "names",
        ToolsInPrompt::Full => "full",
    };
    let unsure = match agent.unsure {
        Unsure::Ask => "ask",
        Unsure::LookAgain => "look-again",
    };
    let value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "suite": suite,
        "model": model,
        "without": without,
        "seed": agent.sampling.seed,
        "temperature": agent.sampling.temperature,
        "alpha": agent.alpha,
        "ask_below": agent.ask_below,
        "unsure": unsure,
        "grounding": agent.grounding,
        "examples": agent.examples,
        "tools_in_prompt": tools,
        "max_calls": agent.max_calls,
        "max_tokens": agent.limits.turn_tokens,
    });
    let mut members = match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if let Some(bias) = agent.call_bias {
        members.insert("call_bias".to_owned(), bias.into());
    }
    members
}

/// Refuses to leave out a part that a suite does not have.
///
/// # Errors
/// It does not have one of them.
pub fn refuse_idle(without: &[Part], idle: &[Part]) -> Result<(), Failure> {
    match without.iter().find(|part| idle.contains(part)) {
        None => Ok(()),
        Some(part) => {
            let message = format!("there is no {} in this suite to leave out", part.name());
            Err(Failure::new(Exit::Usage, message))
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        match &error {
            LogError::Busy { .. } => Self::new(Exit::Busy, error.to_string()),
            LogError::File { .. } => Self::new(Exit::Files, error.to_string()),
            LogError::Line { .. } | LogError::Other { .. } => Self::input(error.to_string())
                .hint("name another file, or delete this one, to begin anew"),
        }
    }
}
