//! Tools: what they are, which exist, and the ones that ship.

use crate::call::{Domains, ToolSpec};
use serde_json::Value;

/// What running a tool gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What the model is shown and what the journal keeps.
    pub result: Value,
    /// What changed in the world, one line a change, for a person ("kitchen light: on false → true").
    pub changes: Vec<String>,
}

/// Why a tool could not do what a checked call asked for. It goes back to the model as a hint.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// One line, for the model and the person.
    pub message: String,
    /// Whether the effect may have happened all the same (a program that was killed).
    pub effect_unknown: bool,
}

/// Something that a model can call.
pub trait Tool: Send {
    /// Name, description, schema, effect.
    fn spec(&self) -> &ToolSpec;

    /// The values that exist right now, per argument. Called at every turn.
    ///
    /// # Errors
    /// Where the world cannot be read (a house file that is broken).
    fn domains(&self) -> Result<Domains, ToolError>;

    /// Does it. Only the gate makes a [`CheckedCall`](crate::call::gate::CheckedCall).
    ///
    /// # Errors
    /// Where the tool itself fails.
    fn run(&mut self, call: &crate::call::gate::CheckedCall) -> Result<Outcome, ToolError>;
}
