//! Works on a request and compares the states of the devices afterwards.
//!
//! A request is right if every device is in the state in which it should be, what is ignored aside,
//! and the first attempt at every turn was good.

use super::dataset::Case;
use super::mapping::{States, World};
use crate::agent::{AgentError, StopReason};
use crate::bench::episode::Player;
use crate::bench::record::{Record, Spent};
use crate::tool::home::{HouseError, HouseFile, tools};
use crate::tool::{RegisterError, Registry};
use std::path::Path;
use std::sync::Arc;

/// Why a request could not be worked on: the harness failed, not the model.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The house file cannot be written.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The house cannot be used.
    #[error("request {id}: {source}")]
    House {
        /// The request.
        id: String,
        /// Why.
        source: HouseError,
    },
    /// Its tools cannot be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The run could not go on.
    #[error("request {id}: {source}")]
    Agent {
        /// The request.
        id: String,
        /// Why.
        source: AgentError,
    },
}

/// Works on `case` in its `world`, whose house is written to `path`. `None`: cancelled.
///
/// # Errors
/// [`RunError`].
pub fn run(
    player: &mut Player<'_>,
    case: &Case,
    world: &World,
    path: &Path,
) -> Result<Option<Record>, RunError> {
    let broken = |source| RunError::House {
        id: case.id.clone(),
        source,
    };
    fs_err::write(path, &world.house)?;
    let house = Arc::new(HouseFile::open(path).map_err(broken)?);
    let mut registry = Registry::new();
    registry.register_all(tools(&house))?;
    let episode = player
        .play(&case.sentence, &mut registry)
        .map_err(|source| RunError::Agent {
            id: case.id.clone(),
            source,
        })?;
    if episode.reason == StopReason::Cancelled {
        return Ok(None);
    }
    let states: States = house
        .house()
        .map_err(broken)?
        .devices
        .iter()
        .map(|device| (device.id.clone(), device.state.clone()))
        .collect();
    let (error, wrong_effects) = judged(world, &states, &episode.failures);
    Ok(Some(Record {
        id: case.id.clone(),
        group: group(case, world),
        request: case.sentence.clone(),
        right: error.is_none(),
        error,
        calls: episode.calls,
        text: episode.text,
        wrong_effects,
        spent: Spent::from(&episode.figures),
        step: None,
    }))
}

/// The data set's category; requests that must change nothing are a group of their own.
pub fn group(case: &Case, world: &World) -> String {
    if world.is_unchanged() {
        "nothing to change".to_owned()
    } else {
        case.category.clone()
    }
}

/// What is wrong, and how many devices are in a state that is neither the old nor the right one.
fn judged(world: &World, states: &States, failures: &[String]) -> (Option<String>, usize) {
    let mut wrong = Vec::new();
    let mut effects = 0;
    for device in world.before.keys() {
        let off = world.differing(device, states, &world.after);
        if off.is_empty() {
            continue;
        }
        effects += usize::from(!world.differing(device, states, &world.before).is_empty());
        wrong.push(format!("{device}: {}", off.join(", ")));
    }
    let error = if !wrong.is_empty() {
        Some(wrong.join("; "))
    } else if !failures.is_empty() {
        Some(format!("not at the first attempt: {}", failures.join(", ")))
    } else {
        None
    };
    (error, effects)
}
