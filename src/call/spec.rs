//! What the harness knows of a tool before it runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a tool does to the world; decides its default permission and whether a call whose outcome
/// is unknown may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Changes nothing. Allowed by default.
    Read,
    /// Changes something that can be changed back (a light). Allowed by default.
    Change,
    /// Opens, sends, or runs something that cannot be taken back. Asked about by default.
    Risk,
}

impl Effect {
    /// `read`, `change` or `risk`, as in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Change => "change",
            Self::Risk => "risk",
        }
    }
}

/// A tool as the model and the gate see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// What the model writes: `[A-Za-z0-9_.-]{1,64}`.
    pub name: String,
    /// One or two sentences for the model.
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments: always an object schema.
    pub parameters: Value,
    /// What the tool does to the world.
    pub effect: Effect,
    /// Whether doing it twice is the same as doing it once.
    pub idempotent: bool,
}

impl ToolSpec {
    /// Whether a tool may be called that: `[A-Za-z0-9_.-]{1,64}`.
    pub fn is_name(name: &str) -> bool {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
    }

    /// Whether an argument must be given.
    pub fn requires(&self, argument: &str) -> bool {
        self.parameters
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|required| required.iter().any(|name| name == argument))
    }

    /// Whether a call whose outcome is unknown may simply be made again.
    pub fn repeatable(&self) -> bool {
        self.idempotent || self.effect == Effect::Read
    }
}

/// Live values: argument name → the values that exist right now. An argument that is not named
/// here is bounded by the schema alone; one with an empty list makes the tool impossible now.
pub type Domains = BTreeMap<String, Vec<Value>>;
