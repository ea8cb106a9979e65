//! Simulated worlds: what there is, and tools that look at it and change it, all in one TOML file.
//! For trying out a task's definition, for examples and for tests: nobody needs Rust, and nothing
//! real is touched.
//!
//! The file stays as it is; what changes is kept beside it (`flights.toml` → `flights.state.json`),
//! so that deleting that file begins anew. `file` reads the tools, `rule` is what they do, `store`
//! keeps the state.

mod error;
mod file;
mod rule;
mod store;

pub use error::SimulatedError;
pub use file::{is_world, load};
pub use store::WorldFile;

use crate::call::{Call, CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::{Outcome, Took, Tool, ToolError};
use rule::Rules;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A tool of a simulated world.
#[derive(Debug)]
pub struct SimulatedTool {
    world: Arc<WorldFile>,
    spec: ToolSpec,
    rules: Rules,
}

/// The tools of the world in the file at `path`.
///
/// # Errors
/// As [`load`].
pub fn tools(path: &Path) -> Result<Vec<Box<dyn Tool>>, SimulatedError> {
    let (world, declared) = load(path)?;
    let world = Arc::new(world);
    Ok(declared
        .into_iter()
        .map(|(spec, rules)| {
            Box::new(SimulatedTool {
                world: Arc::clone(&world),
                spec,
                rules,
            }) as Box<dyn Tool>
        })
        .collect())
}

impl Tool for SimulatedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let world = self.world.read().map_err(|error| self.error(&error))?;
        Ok(self.rules.domains(&world))
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let arguments = &call.call().arguments;
        let (result, changes) = if self.spec.effect == Effect::Read {
            let world = self.world.read().map_err(|error| self.error(&error))?;
            self.rules
                .require(&world, arguments)
                .map_err(ToolError::new)?;
            (self.rules.give(&world, arguments), Vec::new())
        } else {
            self.world
                .change(|world| {
                    self.rules.require(world, arguments)?;
                    let changes = self.rules.change(world, arguments);
                    Ok((self.rules.give(world, arguments), changes))
                })
                .map_err(|error| self.error(&error))?
        };
        Ok(Outcome { result, changes })
    }

    fn took_effect(&mut self, call: &Call) -> Result<Option<Took>, ToolError> {
        let world = self.world.read().map_err(|error| self.error(&error))?;
        Ok(self
            .rules
            .happened(&world, &call.arguments)
            .map(|happened| Took {
                happened,
                result: happened.then(|| self.rules.give(&world, &call.arguments)),
            }))
    }
}

impl SimulatedTool {
    fn error(&self, error: &SimulatedError) -> ToolError {
        match error {
            // A tool's own refusal is told as it is.
            SimulatedError::Refused(message) => ToolError::new(message.clone()),
            SimulatedError::Save { .. } => {
                ToolError::storage(format!("{}: {error}", self.spec.name))
            }
            SimulatedError::Unsynced { .. } => {
                ToolError::unknown(format!("{}: {error}", self.spec.name))
            }
            _ => ToolError::new(format!("{}: {error}", self.spec.name)),
        }
    }
}

/// A world's state or a part of it.
type World = Value;

#[cfg(test)]
mod tests;
