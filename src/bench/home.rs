//! Runs the requests of a home suite and grades them.
//!
//! A request is right if the calls that the run executed, in any order, are one of the
//! alternatives that the suite lists, and the first attempt at every turn was good: whatever a
//! hint had to repair does not count.

use super::episode::{Episode, Player};
use super::record::Spent;
use super::suite::Request;
use crate::agent::{AgentError, StopReason};
use crate::call::{Call, Effect};
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
    /// What it took.
    #[serde(flatten)]
    pub spent: Spent,
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

/// Has `player` work on a request in a fresh `world`, and grades what came of it. `None`: it was
/// cancelled.
///
/// # Errors
/// [`BenchError`]: the harness failed, not the model.
pub fn grade(
    player: &mut Player<'_>,
    world: &mut dyn FnMut(&Request) -> Result<Registry, String>,
    request: &Request,
) -> Result<Option<Graded>, BenchError> {
    let mut tools = world(request).map_err(|message| BenchError::World {
        id: request.id.clone(),
        message,
    })?;
    let Episode {
        calls,
        failures,
        reason,
        text,
        figures,
    } = player
        .play(&request.request, &mut tools)
        .map_err(|source| BenchError::Agent {
            id: request.id.clone(),
            source,
        })?;
    if reason == StopReason::Cancelled {
        return Ok(None);
    }
    let changes = |call: &Call| {
        tools
            .find(&call.tool)
            .is_some_and(|spec| spec.effect != Effect::Read)
    };
    let wrong_effects = calls
        .iter()
        .filter(|call| changes(call) && !request.wants(call))
        .count();
    Ok(Some(Graded {
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
        spent: Spent::from(&figures),
    }))
}
