//! What can be wrong with a turn, as a kind that hints and examples are chosen by.

use super::json::spaced;
use super::reply::{Call, Reply};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of failure that the harness tells apart. Those that a grammar rules out still matter
/// for backends that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A call was due and there is none.
    NoCall,
    /// The text is not in the dialect.
    Unparsable,
    /// No such tool, or not now.
    UnknownTool,
    /// A required argument is not there.
    MissingArgument,
    /// An argument has the wrong JSON type.
    WrongType,
    /// An argument's value is not one of those that exist.
    OutsideDomain,
    /// Another constraint of the schema is broken.
    Constraint,
    /// The tool ran and failed.
    ToolError,
    /// The policy or the person said no.
    Refused,
    /// The same call again with the same result.
    Repeated,
    /// The text was cut off.
    Truncated,
    /// The task says it is done, and a check says it is not.
    VerificationFailed,
}

impl FailureKind {
    /// Every kind, in a fixed order.
    pub const ALL: [Self; 12] = [
        Self::NoCall,
        Self::Unparsable,
        Self::UnknownTool,
        Self::MissingArgument,
        Self::WrongType,
        Self::OutsideDomain,
        Self::Constraint,
        Self::ToolError,
        Self::Refused,
        Self::Repeated,
        Self::Truncated,
        Self::VerificationFailed,
    ];

    /// The name used in files: `missing_argument`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoCall => "no_call",
            Self::Unparsable => "unparsable",
            Self::UnknownTool => "unknown_tool",
            Self::MissingArgument => "missing_argument",
            Self::WrongType => "wrong_type",
            Self::OutsideDomain => "outside_domain",
            Self::Constraint => "constraint",
            Self::ToolError => "tool_error",
            Self::Refused => "refused",
            Self::Repeated => "repeated",
            Self::Truncated => "truncated",
            Self::VerificationFailed => "verification_failed",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// What the model is told first.
    fn lead(self) -> &'static str {
        match self {
            Self::NoCall => "A call is needed.",
            Self::Unparsable => "That was not a call.",
            Self::UnknownTool => "That tool cannot be called.",
            Self::MissingArgument => "An argument is missing.",
            Self::WrongType => "An argument has the wrong type.",
            Self::OutsideDomain => "An argument has a value that does not exist.",
            Self::Constraint => "An argument breaks a rule.",
            Self::ToolError => "The tool failed.",
            Self::Refused => "That is not allowed.",
            Self::Repeated => "That was just done, with the same result.",
            Self::Truncated => "That was too long and was cut off.",
            Self::VerificationFailed => "It is not done yet.",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that went wrong in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Failure {
    /// Which kind.
    pub kind: FailureKind,
    /// The tool it is about, as the model wrote it.
    pub tool: Option<String>,
    /// Where in the arguments, as a JSON Pointer (`/device`); empty for the arguments as a whole.
    pub pointer: Option<String>,
    /// One line: what was wrong.
    pub message: String,
    /// One correct call of that very tool.
    pub example: Option<Box<Call>>,
}

impl Failure {
    /// A failure without place or example.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            tool: None,
            pointer: None,
            message: message.into(),
            example: None,
        }
    }

    /// About this tool.
    #[must_use]
    pub fn of_tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// At this place in the arguments.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// With a correct call to show.
    #[must_use]
    pub fn with_example(mut self, example: Option<Call>) -> Self {
        self.example = example.map(Box::new);
        self
    }

    /// What the model is told: what was wrong, where, and one correct call.
    pub fn hint(&self) -> String {
        let mut hint = self.kind.lead().to_owned();
        if !self.message.is_empty() {
            hint.push(' ');
            hint.push_str(&self.message);
            if !self.message.ends_with(['.', '!', '?', '。']) {
                hint.push('.');
            }
        }
        if let Some(pointer) = self
            .pointer
            .as_deref()
            .filter(|pointer| !pointer.is_empty())
        {
            hint.push_str(" At ");
            hint.push_str(pointer);
            hint.push('.');
        }
        if let Some(example) = &self.example {
            hint.push_str(" A correct call: ");
            hint.push_str(&Reply::Calls(vec![Call::clone(example)]).to_text());
        }
        hint
    }
}

impl Call {
    /// The call as one JSON object, spaced as the turn grammar writes it.
    pub fn to_text(&self) -> String {
        spaced(&self.to_value())
    }
}

impl Reply {
    /// The reply as the turn grammar writes it: `{"answer": "Done."}`.
    pub fn to_text(&self) -> String {
        spaced(&match self {
            Self::Calls(calls) => serde_json::json!({
                "calls": calls.iter().map(Call::to_value).collect::<Vec<_>>()
            }),
            Self::Ask(text) => serde_json::json!({ "ask": text }),
            Self::Answer(text) => serde_json::json!({ "answer": text }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_kind() {
        for kind in FailureKind::ALL {
            assert_eq!(FailureKind::from_name(kind.as_str()), Some(kind));
            assert_eq!(
                serde_json::to_string(&kind).unwrap(),
                format!("\"{}\"", kind.as_str())
            );
        }
        assert_eq!(FailureKind::from_name("other"), None);
    }

    #[test]
    fn every_kind_has_its_hint() {
        let example = Call::new("turn_on", [("device", "kitchen light")]);
        let hints: Vec<String> = FailureKind::ALL
            .into_iter()
            .map(|kind| {
                Failure::new(kind, format!("what {kind} says"))
                    .of_tool("turn_on")
                    .at("/device")
                    .with_example(Some(example.clone()))
                    .hint()
            })
            .collect();
        insta::assert_snapshot!(hints.join("\n"));
    }

    #[test]
    fn a_hint_without_place_or_example_is_whole() {
        let failure = Failure::new(FailureKind::NoCall, "");
        assert_eq!(failure.hint(), "A call is needed.");
    }
}
