//! What a model says in a turn.

use serde_json::{Map, Value};

/// A tool call as a model wrote it: not checked, not to be run (see `gate`).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments by name.
    pub arguments: Map<String, Value>,
}

/// One turn of a model: calls, a question to the person, or the final answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// One or more calls, run in order.
    Calls(Vec<Call>),
    /// A question to the person: something is missing or impossible.
    Ask(String),
    /// The end: what the person is told.
    Answer(String),
}
