//! Tools: what they are, which exist, and the ones that ship.

pub mod assistant;
pub mod command;
pub mod home;
pub mod registry;
pub mod simulated;
pub mod text;

pub use registry::{RegisterError, Registry, Unavailable};

use crate::call::{Call, CheckedCall, Domains, Failure, FailureKind, ToolSpec};
use serde_json::Value;

/// What running a tool gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What the model is shown and what the journal keeps.
    pub result: Value,
    /// What changed in the world, one line a change, for a person
    /// ("kitchen light: on: false → true").
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
    /// Whether what the tool acts on cannot be written (a full disk, a read-only folder). No other
    /// call mends that: the run ends.
    pub storage: bool,
}

impl ToolError {
    /// The tool failed and changed nothing.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            effect_unknown: false,
            storage: false,
        }
    }

    /// The tool failed, and may have changed something all the same.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self {
            effect_unknown: true,
            ..Self::new(message)
        }
    }

    /// What the tool acts on cannot be written, and nothing was changed.
    pub fn storage(message: impl Into<String>) -> Self {
        Self {
            storage: true,
            ..Self::new(message)
        }
    }

    /// What the model is told of it.
    pub fn failure(&self, call: &Call) -> Failure {
        Failure::new(FailureKind::ToolError, &self.message).of_tool(&call.tool)
    }
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

    /// Does it. Only the gate makes a [`CheckedCall`].
    ///
    /// # Errors
    /// Where the tool itself fails.
    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError>;

    /// Looks whether a call that was interrupted took effect; changes nothing. `None`: the tool
    /// cannot tell.
    ///
    /// # Errors
    /// Where the world cannot be read.
    fn took_effect(&mut self, call: &Call) -> Result<Option<Took>, ToolError> {
        let _ = call;
        Ok(None)
    }

    /// What the person is told where this outcome ends the run without another turn; `None`: it
    /// does not.
    fn answer_of(&self, outcome: &Outcome) -> Option<String> {
        let _ = outcome;
        None
    }
}

/// What came of a call that was interrupted, as its tool sees it in the world.
#[derive(Clone, Debug, PartialEq)]
pub struct Took {
    /// Whether it took effect.
    pub happened: bool,
    /// What it would have given, where the tool can say so.
    pub result: Option<Value>,
}

/// An argument that the schema declares as text and requires; the gate has checked both.
fn text_argument<'c>(call: &'c CheckedCall, name: &str) -> Result<&'c str, ToolError> {
    call.call()
        .arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ToolError::new(format!("{name} is missing")))
}
