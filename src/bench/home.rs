//! Runs the requests of a home suite and grades them.
//!
//! A request is right if the calls that the run executed, in any order, are one of the
//! alternatives that the suite lists, and the first attempt at every turn was good: whatever a
//! hint had to repair does not count.

use super::episode::{Episode, Player};
use super::suite::Request;
use crate::agent::{AgentError, Clock, Examples, Settings, StopReason};
use crate::call::{Call, Effect};
use crate::model::{Cancel, Generator};
use crate::tool::Registry;
use serde::{Deserialize, Serialize};

/// How one request went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graded {
    /// Its id.
    pub id: String,
    /// What it is like.
    pub kind: super::suite::Kind,
    /// Its language.
    pub lang: String,
    /// The request.
    pub request: String,
    /// Whether it was right at the first attempt.
    pub right: bool,
    /// The calls that were executed, in order.
    pub calls: Vec<Call>,
    /// Why the run ended.
    pub reason: String,
    /// What the person was told or asked.
    pub text: Option<String>,
    /// Failures on the way.
    pub failures: usize,
    /// Their kinds, in order.
    #[serde(default)]
    pub failure_kinds: Vec<String>,
    /// Executed calls that change something and that no alternative asks for.
    pub wrong_effects: usize,
    /// Turns.
    pub turns: usize,
    /// Prompt tokens that were already evaluated.
    pub prompt_reused: usize,
    /// Prompt tokens evaluated.
    pub prompt_evaluated: usize,
    /// Tokens forced.
    pub forced: usize,
    /// Tokens chosen.
    pub chosen: usize,
    /// Wall time of the run, in seconds.
    pub seconds: f64,
}

/// What a suite is run with.
pub struct Bench<'a> {
    /// The model.
    pub generator: &'a mut dyn Generator,
    /// Where examples come from.
    pub examples: &'a mut dyn Examples,
    /// A fresh world for a request: its tools.
    pub world: &'a mut dyn FnMut(&Request) -> Result<Registry, String>,
    /// A clock that starts now.
    pub clock: &'a dyn Fn() -> Box<dyn Clock>,
    /// Settings of every run.
    pub settings: Settings,
    /// Stops after the current request.
    pub cancel: Cancel,
}

impl std::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Why a benchmark could not be run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A request's world could not be made.
    #[error("request {id}: {message}")]
    World {
        /// The request.
        id: String,
        /// Why.
        message: String,
    },
    /// A run could not go on.
    #[error("request {id}: {source}")]
    Agent {
        /// The request.
        id: String,
        /// Why.
        source: AgentError,
    },
}

/// Runs `requests` in order; `done` is told of each as it is graded. Stops early, with what there
/// is, where it is cancelled.
///
/// # Errors
/// [`BenchError`]: the harness failed, not the model.
pub fn run(
    bench: &mut Bench<'_>,
    requests: &[Request],
    done: &mut dyn FnMut(&Graded),
) -> Result<Vec<Graded>, BenchError> {
    let mut graded = Vec::with_capacity(requests.len());
    for request in requests {
        if bench.cancel.is_cancelled() {
            break;
        }
        let one = run_one(bench, request)?;
        if one.reason == StopReason::Cancelled.name() {
            break;
        }
        done(&one);
        graded.push(one);
    }
    Ok(graded)
}

fn run_one(bench: &mut Bench<'_>, request: &Request) -> Result<Graded, BenchError> {
    let mut tools = (bench.world)(request).map_err(|message| BenchError::World {
        id: request.id.clone(),
        message,
    })?;
    let Episode {
        calls,
        failures,
        reason,
        text,
        figures,
    } = Player {
        generator: bench.generator,
        examples: bench.examples,
        clock: bench.clock,
        settings: bench.settings.clone(),
        cancel: bench.cancel.clone(),
    }
    .play(&request.request, &mut tools)
    .map_err(|source| BenchError::Agent {
        id: request.id.clone(),
        source,
    })?;
    let changes = |call: &Call| {
        tools
            .find(&call.tool)
            .is_some_and(|spec| spec.effect != Effect::Read)
    };
    let wrong_effects = calls
        .iter()
        .filter(|call| changes(call) && !request.wants(call))
        .count();
    Ok(Graded {
        id: request.id.clone(),
        kind: request.kind,
        lang: request.lang.clone(),
        request: request.request.clone(),
        right: failures.is_empty() && request.is_right(&calls),
        calls,
        reason: reason.name().to_owned(),
        text,
        failures: failures.len(),
        failure_kinds: failures,
        wrong_effects,
        turns: figures.turns,
        prompt_reused: figures.prompt_reused,
        prompt_evaluated: figures.prompt_evaluated,
        forced: figures.forced,
        chosen: figures.chosen,
        seconds: figures.elapsed.as_secs_f64(),
    })
}
