//! What can go wrong with what a model wrote, and the hint it is given.

use crate::call::Call;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// An answer where a call was due.
    NoCall,
    /// No JSON of the expected form.
    Unparsable,
    /// A tool that does not exist or is not legal now.
    UnknownTool,
    /// A required argument is missing.
    MissingArgument,
    /// An argument has the wrong type.
    WrongType,
    /// An argument's value does not exist or is not allowed.
    OutsideDomain,
    /// Another constraint of the schema is broken.
    ConstraintBroken,
    /// The tool itself failed.
    ToolError,
    /// The policy or the person did not allow it.
    Refused,
    /// The same call with the same result as before.
    Repeated,
    /// The text ended before it was complete.
    Truncated,
    /// The task's check says that it is not done.
    VerificationFailed,
}

/// All kinds, in order.
const ALL: [FailureKind; 12] = [
    FailureKind::NoCall,
    FailureKind::Unparsable,
    FailureKind::UnknownTool,
    FailureKind::MissingArgument,
    FailureKind::WrongType,
    FailureKind::OutsideDomain,
    FailureKind::ConstraintBroken,
    FailureKind::ToolError,
    FailureKind::Refused,
    FailureKind::Repeated,
    FailureKind::Truncated,
    FailureKind::VerificationFailed,
];

impl FailureKind {
    /// All kinds.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Its label in journals, traces and pools.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoCall => "no_call",
            Self::Unparsable => "unparsable",
            Self::UnknownTool => "unknown_tool",
            Self::MissingArgument => "missing_argument",
            Self::WrongType => "wrong_type",
            Self::OutsideDomain => "outside_domain",
            Self::ConstraintBroken => "constraint_broken",
            Self::ToolError => "tool_error",
            Self::Refused => "refused",
            Self::Repeated => "repeated",
            Self::Truncated => "truncated",
            Self::VerificationFailed => "verification_failed",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No kind of failure has this label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kind of failure is called {0:?}")]
pub struct UnknownKind(String);

impl FromStr for FailureKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let found = ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// One failure, with what a hint needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// The tool concerned, where there is one.
    pub tool: Option<String>,
    /// Where in the arguments: their name, or a JSON Pointer.
    pub place: Option<String>,
    /// What was wrong, in one line: the value, the tool's message, the broken rule.
    pub detail: String,
}

/// Longest detail that a hint repeats, in characters.
const DETAIL_LIMIT: usize = 200;

impl Failure {
    /// What the model is told: what was wrong, where, and one correct call of that very tool (or
    /// of a tool that fits, where there is none).
    pub fn hint(&self, correct: Option<&Call>) -> String {
        let detail = one_line(&self.detail);
        let tool = self.tool.as_deref().unwrap_or("the tool");
        let place = self.place.as_deref().unwrap_or("an argument");
        let mut hint = match self.kind {
            FailureKind::NoCall => format!("A tool call is needed here, not an answer. {detail}"),
            FailureKind::Unparsable => format!("The reply was not valid JSON: {detail}"),
            FailureKind::UnknownTool => format!("There is no tool {tool} now. {detail}"),
            FailureKind::MissingArgument => format!("{tool} needs {place}. {detail}"),
            FailureKind::WrongType => format!("{tool}: {place} has the wrong type. {detail}"),
            FailureKind::OutsideDomain => {
                format!("{tool}: {place} must be one of the values that exist. {detail}")
            }
            FailureKind::ConstraintBroken => format!("{tool}: {place} breaks a rule. {detail}"),
            FailureKind::ToolError => format!("{tool} failed: {detail}"),
            FailureKind::Refused => format!("{tool} was not allowed: {detail}"),
            FailureKind::Repeated => format!(
                "{tool} was just called so, with the same result. Do something else or answer. {detail}"
            ),
            FailureKind::Truncated => format!("The reply was too long. Be shorter. {detail}"),
            FailureKind::VerificationFailed => format!("The task is not done yet: {detail}"),
        };
        hint.truncate(hint.trim_end().len());
        if let Some(call) = correct {
            let call = serde_json::json!({ "tool": call.tool, "arguments": call.arguments });
            hint.push_str(&format!(" A correct call: {call}"));
        }
        hint
    }
}

fn one_line(text: &str) -> String {
    text.chars()
        .take(DETAIL_LIMIT)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back() {
        for kind in FailureKind::all() {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
            let json = serde_json::to_string(kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
        }
        assert!("nothing".parse::<FailureKind>().is_err());
    }

    #[test]
    fn every_kind_has_its_hint() {
        let call = Call {
            tool: "set_brightness".into(),
            arguments: serde_json::json!({"device": "лампа", "brightness": 40})
                .as_object()
                .unwrap()
                .clone(),
        };
        let mut table = String::new();
        for kind in FailureKind::all() {
            let failure = Failure {
                kind: *kind,
                tool: Some("set_brightness".into()),
                place: Some("brightness".into()),
                detail: "Got \"much\".\n".into(),
            };
            table += &format!("{kind}: {}\n", failure.hint(None));
        }
        let failure = Failure {
            kind: FailureKind::UnknownTool,
            tool: None,
            place: None,
            detail: "x".repeat(1000),
        };
        assert!(failure.hint(None).len() < 300);
        table += &format!("with a call: {}\n", failure_with(&call));
        insta::assert_snapshot!(table);
    }

    fn failure_with(call: &Call) -> String {
        let failure = Failure {
            kind: FailureKind::MissingArgument,
            tool: Some("set_brightness".into()),
            place: Some("brightness".into()),
            detail: String::new(),
        };
        failure.hint(Some(call))
    }
}
