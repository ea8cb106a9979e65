//! A file of requests with the calls that are right: JSON Lines, one request a line.
//!
//! ```json
//! {"id": "maple-001", "house": "maple", "lang": "en", "kind": "direct",
//!  "request": "Turn on the kitchen light",
//!  "right": [[{"tool": "turn_on", "arguments": {"device": "kitchen light"}}]]}
//! ```
//! `right` lists alternatives, each an unordered set of calls; an empty list means that no call is
//! right. An expected argument is a value, or `{"between": [low, high]}`, both ends included.

use crate::call::Call;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What a request is like.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A plain command.
    Direct,
    /// A command with a number.
    Value,
    /// A question about a state.
    Question,
    /// What is wanted is not said.
    Indirect,
    /// Two calls or more.
    Several,
    /// No call is right.
    None,
}

impl Kind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Direct,
        Self::Value,
        Self::Question,
        Self::Indirect,
        Self::Several,
        Self::None,
    ];

    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Value => "value",
            Self::Question => "question",
            Self::Indirect => "indirect",
            Self::Several => "several",
            Self::None => "none",
        }
    }
}

/// A call that would be right.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The tool.
    pub tool: String,
    /// Its arguments: values, or `{"between": [low, high]}`.
    pub arguments: Map<String, Value>,
}

impl Expected {
    /// Whether `call` is this one.
    pub fn fits(&self, call: &Call) -> bool {
        self.tool == call.tool
            && self.arguments.len() == call.arguments.len()
            && self.arguments.iter().all(|(name, expected)| {
                call.arguments
                    .get(name)
                    .is_some_and(|value| value_fits(expected, value))
            })
    }
}

fn value_fits(expected: &Value, value: &Value) -> bool {
    let bounds = expected
        .get("between")
        .and_then(Value::as_array)
        .map(Vec::as_slice);
    match (bounds, value.as_f64()) {
        (Some([low, high]), Some(number)) => {
            low.as_f64().is_some_and(|low| low <= number)
                && high.as_f64().is_some_and(|high| number <= high)
        }
        (Some(_), _) => false,
        (None, number) => match (number, expected.as_f64()) {
            // 21 and 21.0 are the same temperature.
            (Some(number), Some(expected)) => number == expected,
            _ => value == expected,
        },
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Unique in the file.
    pub id: String,
    /// The house, by the stem of its file.
    pub house: String,
    /// The language (BCP 47).
    pub lang: String,
    /// What it is like.
    pub kind: Kind,
    /// What the person says.
    pub request: String,
    /// The alternatives that are right.
    pub right: Vec<Vec<Expected>>,
    /// Why no call is right, for the reader.
    #[serde(default)]
    pub why: Option<String>,
}

impl Request {
    /// Whether `calls`, in any order, are what this request asks for and nothing else.
    pub fn is_right(&self, calls: &[Call]) -> bool {
        if self.right.is_empty() {
            return calls.is_empty();
        }
        self.right
            .iter()
            .any(|alternative| same_calls(alternative, calls))
    }

    /// Whether some right alternative holds this call.
    pub fn wants(&self, call: &Call) -> bool {
        self.right
            .iter()
            .flatten()
            .any(|expected| expected.fits(call))
    }
}

/// Whether every expected call fits a call of its own and none is left over. Alternatives have a
/// handful of calls: all assignments are tried, so that an overlapping range cannot take another's.
fn same_calls(expected: &[Expected], calls: &[Call]) -> bool {
    fn assign(expected: &[Expected], calls: &[Call], used: &mut Vec<bool>) -> bool {
        let Some((first, rest)) = expected.split_first() else {
            return true;
        };
        (0..calls.len()).any(|at| {
            if used[at] || !first.fits(&calls[at]) {
                return false;
            }
            used[at] = true;
            let fits = assign(rest, calls, used);
            used[at] = false;
            fits
        })
    }
    expected.len() == calls.len() && assign(expected, calls, &mut vec![false; calls.len()])
}

/// What is wrong with a suite.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A line is no request.
    #[error("line {line} of the suite: {message}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// There is no request.
    #[error("the suite has no request")]
    Empty,
}

/// Reads a suite. Blank lines are passed over.
///
/// # Errors
/// The first line that is no request or repeats an id.
pub fn read(text: &str) -> Result<Vec<Request>, SuiteError> {
    let mut requests: Vec<Request> = Vec::new();
    let mut ids = std::collections::HashSet::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |message: String| SuiteError::Line {
            line: at + 1,
            message,
        };
        let request: Request =
            serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if request.request.trim().is_empty() {
            return Err(wrong("the request is empty".to_owned()));
        }
        if !ids.insert(request.id.clone()) {
            return Err(wrong(format!("the id {:?} stands twice", request.id)));
        }
        if request.right.is_empty() != (request.kind == Kind::None) {
            return Err(wrong(
                "`right` is empty for kind `none`, and only there".to_owned(),
            ));
        }
        requests.push(request);
    }
    if requests.is_empty() {
        Err(SuiteError::Empty)
    } else {
        Ok(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(right: Value) -> Request {
        let kind = if right == json!([]) { "none" } else { "direct" };
        serde_json::from_value(json!({
            "id": "1", "house": "h", "lang": "en", "kind": kind, "request": "r", "right": right
        }))
        .unwrap()
    }

    fn calls(calls: Value) -> Vec<Call> {
        serde_json::from_value(calls).unwrap()
    }

    #[test]
    fn calls_are_right_as_a_set() {
        let on = json!({"tool": "turn_on", "arguments": {"device": "свет"}});
        let warm = json!({"tool": "set_temperature",
                          "arguments": {"device": "t", "temperature": {"between": [20, 24]}}});
        let at = |degrees: f64| {
            json!({"tool": "set_temperature",
                                       "arguments": {"device": "t", "temperature": degrees}})
        };
        for (right, said, expected) in [
            (json!([[on]]), json!([on]), true),
            (json!([[on]]), json!([on, on]), false),
            (json!([[on]]), json!([]), false),
            (json!([]), json!([]), true),
            (json!([]), json!([on]), false),
            (json!([[warm], [on]]), json!([at(20.0)]), true),
            (json!([[warm]]), json!([at(24.5)]), false),
            (json!([[on, warm]]), json!([at(22.0), on]), true),
            (json!([[on, warm]]), json!([on, on]), false),
            // The wide range must not take the call that only it and a narrow one fit.
            (json!([[warm, at(21.0)]]), json!([at(21.0), at(23.0)]), true),
        ] {
            assert_eq!(
                request(right.clone()).is_right(&calls(said.clone())),
                expected,
                "{right} {said}"
            );
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        let good = r#"{"id":"1","house":"h","lang":"en","kind":"none","request":"hi","right":[]}"#;
        for (text, message) in [
            (String::new(), "the suite has no request"),
            (
                format!("{good}\n{good}"),
                "line 2 of the suite: the id \"1\" stands twice",
            ),
            (
                good.replace("none", "direct"),
                "line 1 of the suite: `right` is empty for kind `none`, and only there",
            ),
            (
                good.replace("hi", " "),
                "line 1 of the suite: the request is empty",
            ),
        ] {
            assert_eq!(read(&text).unwrap_err().to_string(), message);
        }
        assert_eq!(read(&format!("\n{good}\n")).unwrap().len(), 1);
    }
}
