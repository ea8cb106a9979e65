//! Scores outputs that somebody else's model wrote: JSON Lines, one output a line.
//!
//! A line is `{"id": …, "result": …}`, as the leaderboard's result files have it (a text with
//! Python calls, or a list of `{name: arguments}`), or `{"id": …, "output": […]}` with the calls
//! decoded. Where it also says `valid` (and `error_type`), that verdict is compared with ours.

use super::checker::{ErrorType, Names, check};
use super::dataset::{Category, Question};
use super::value::Value;
use super::{decode, json};
use crate::bench::interval::Share;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The verdict on one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The line, counted from 1.
    pub line: usize,
    /// The question.
    pub id: String,
    /// Its category.
    pub category: Category,
    /// Why it is wrong; `None`: it is right.
    pub error: Option<ErrorType>,
    /// Whether the verdict that the line itself states is another one; `None`: it states none.
    pub differs: Option<bool>,
}

/// The verdicts on a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Line by line.
    pub lines: Vec<Scored>,
    /// Lines of categories that are not scored here, by what their ids begin with.
    pub other: BTreeMap<String, usize>,
    /// Questions of the categories that came up, and those of them without a line.
    pub unanswered: BTreeMap<Category, (usize, usize)>,
}

/// Sums of a category.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CategoryScore {
    /// Right lines among all.
    pub right: Share,
    /// Wrong ones by the leaderboard's name of the error.
    pub errors: BTreeMap<&'static str, usize>,
}

/// Why a file cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// A line is no output.
    #[error("line {line}: {message}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// There is nothing to score.
    #[error("there is no output of a category that is scored here")]
    Empty,
}

/// Scores every line of `text`.
///
/// # Errors
/// The first line that is no output, or that answers a question which does not exist.
pub fn score(text: &str, questions: &[Question], names: Names) -> Result<Scores, ScoreError> {
    let by_id: HashMap<&str, &Question> = questions
        .iter()
        .map(|question| (question.id.as_str(), question))
        .collect();
    let mut scores = Scores::default();
    let mut answered: HashSet<&str> = HashSet::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |message: String| ScoreError::Line {
            line: at + 1,
            message,
        };
        let value = json::read(line).map_err(|error| wrong(error.to_string()))?;
        let id = value
            .get("id")
            .and_then(Value::as_str)
            .ok_or_else(|| wrong("there is no `id`".to_owned()))?;
        let Some(category) = Category::of_id(id) else {
            let kind = id.rsplit_once('_').map_or(id, |(kind, _)| kind);
            *scores.other.entry(kind.to_owned()).or_default() += 1;
            continue;
        };
        let output = match (value.get("result"), value.get("output")) {
            (Some(result), None) => decode::foreign(result),
            (None, Some(output)) => Some(output.clone()),
            _ => {
                return Err(wrong("an output has `result` or `output`".to_owned()));
            }
        };
        let question = by_id
            .get(id)
            .ok_or_else(|| wrong(format!("there is no question {id:?}")))?;
        answered.insert(&question.id);
        let error = check(question, output.as_ref(), names).err();
        scores.lines.push(Scored {
            line: at + 1,
            id: id.to_owned(),
            category,
            error,
            differs: stated(&value, error),
        });
    }
    if scores.lines.is_empty() {
        return Err(ScoreError::Empty);
    }
    let scored: HashSet<Category> = scores.lines.iter().map(|scored| scored.category).collect();
    for question in questions {
        if scored.contains(&question.category) {
            let counts = scores.unanswered.entry(question.category).or_default();
            counts.0 += 1;
            counts.1 += usize::from(!answered.contains(question.id.as_str()));
        }
    }
    Ok(scores)
}

/// Whether the verdict in the line is another one.
fn stated(line: &Value, ours: Option<ErrorType>) -> Option<bool> {
    let Some(Value::Bool(valid)) = line.get("valid") else {
        return None;
    };
    let same_error = match line.get("error_type") {
        Some(Value::Str(theirs)) => ours.is_some_and(|ours| ours.as_str() == theirs),
        _ => true,
    };
    Some(*valid != ours.is_none() || !same_error)
}

impl Scores {
    /// Sums by category.
    pub fn by_category(&self) -> BTreeMap<Category, CategoryScore> {
        let mut sums: BTreeMap<Category, CategoryScore> = BTreeMap::new();
        for scored in &self.lines {
            let sum = sums.entry(scored.category).or_default();
            sum.right.count(scored.error.is_none());
            if let Some(error) = scored.error {
                *sum.errors.entry(error.as_str()).or_default() += 1;
            }
        }
        sums
    }

    /// Lines that state a verdict, and those of them where it is another one than ours.
    pub fn agreement(&self) -> (usize, usize) {
        let stated = self.lines.iter().filter_map(|scored| scored.differs);
        stated.fold((0, 0), |(all, different), differs| {
            (all + 1, different + usize::from(differs))
        })
    }

    /// Everything as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let categories: serde_json::Map<String, serde_json::Value> = self
            .by_category()
            .into_iter()
            .map(|(category, sum)| {
                let (low, high) = sum.right.interval();
                let (questions, unanswered) =
                    self.unanswered.get(&category).copied().unwrap_or_default();
                let value = serde_json::json!({
                    "right": sum.right.right, "of": sum.right.of, "rate": sum.right.rate(),
                    "low": low, "high": high, "errors": sum.errors,
                    "questions": questions, "unanswered": unanswered,
                });
                (category.name().to_owned(), value)
            })
            .collect();
        let (stated, different) = self.agreement();
        let lines: Vec<serde_json::Value> = self
            .lines
            .iter()
            .map(|scored| {
                serde_json::json!({
                    "line": scored.line, "id": scored.id, "valid": scored.error.is_none(),
                    "error_type": scored.error.map(ErrorType::as_str),
                })
            })
            .collect();
        serde_json::json!({
            "suite": "bfcl",
            "categories": categories,
            "other": self.other,
            "stated": stated,
            "different": different,
            "lines": lines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::bfcl::dataset::Function;

    fn questions() -> Vec<Question> {
        ["simple_python_0", "simple_python_1", "irrelevance_0", "parallel_0"]
            .map(|id| Question {
                id: id.into(),
                category: Category::of_id(id).unwrap(),
                messages: Vec::new(),
                functions: vec![Function {
                    name: "f".into(),
                    description: String::new(),
                    parameters: serde_json::json!({"type": "dict", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
                }],
                answers: vec![json::read(r#"{"f": {"a": [1]}}"#).unwrap()],
            })
            .into()
    }

    #[test]
    fn lines_are_scored_and_nothing_is_dropped_in_silence() {
        let text = r#"
{"id": "simple_python_0", "result": "[f(a=1)]", "valid": true}
{"id": "simple_python_0", "result": [{"f": "{\"a\": 2}"}], "valid": false, "error_type": "value_error:others"}
{"id": "simple_python_0", "result": "no", "valid": false, "error_type": "value_error:others"}
{"id": "irrelevance_0", "result": "I cannot."}
{"id": "simple_java_3", "result": ""}
"#;
        let scores = score(text, &questions(), Names::AsGiven).unwrap();
        let errors: Vec<_> = scores.lines.iter().map(|scored| scored.error).collect();
        assert_eq!(
            errors,
            [
                None,
                Some(ErrorType::ValueOther),
                Some(ErrorType::DecoderFailed),
                None
            ]
        );
        assert_eq!(scores.agreement(), (3, 1));
        assert_eq!(
            scores.other,
            BTreeMap::from([("simple_java".to_owned(), 1)])
        );
        assert_eq!(scores.unanswered[&Category::Simple], (2, 1));
        assert_eq!(scores.unanswered.get(&Category::Parallel), None);
        let value = scores.to_json();
        assert_eq!(value["categories"]["simple_python"]["right"], 1);
        assert_eq!(value["categories"]["simple_python"]["of"], 3);
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, says) in [
            ("\n{", "line 2: no JSON at byte 1"),
            ("{}", "line 1: there is no `id`"),
            (
                "{\"id\": \"simple_python_0\"}",
                "line 1: an output has `result` or `output`",
            ),
            (
                "{\"id\": \"simple_python_9\", \"output\": []}",
                "no question \"simple_python_9\"",
            ),
            ("", "there is no output"),
            ("{\"id\": \"x\"}", "there is no output"),
        ] {
            let error = score(text, &questions(), Names::AsGiven)
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
