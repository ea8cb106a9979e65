//! What a model says in a turn.

use serde_json::{Map, Value, json};

/// A tool call as a model wrote it: not checked, not to be run (see `gate`).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments by name.
    pub arguments: Map<String, Value>,
}

impl Call {
    /// A call of `tool` with these arguments, in this order.
    pub fn new<K: Into<String>, V: Into<Value>>(
        tool: impl Into<String>,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self {
            tool: tool.into(),
            arguments: arguments
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }

    /// `{"tool": …, "arguments": {…}}`.
    pub fn to_value(&self) -> Value {
        json!({ "tool": self.tool, "arguments": self.arguments })
    }
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

impl Reply {
    /// The name under which a reply has its calls.
    pub const CALLS: &str = "calls";
}
