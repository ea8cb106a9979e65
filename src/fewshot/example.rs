//! One example: a request and the reply that was right for it.
//!
//! A file holds one a line, as JSON, in the shape of the reply itself:
//!
//! ```json
//! {"lang":"en","request":"Turn on the {device}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}]}
//! {"lang":"en","request":"Turn on the {missing}","ask":"There is no {missing} here.","holes":{"missing":{"missing":["sauna"]}}}
//! ```
//!
//! `{name}` is a hole, filled when the example is shown (see `fill`).

use crate::call::{Call, FailureKind, Reply};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// Names an example: the start of a hash of its request and reply, so it stays the same wherever
/// the example stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExampleId(String);

impl fmt::Display for ExampleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where an example comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Written beforehand.
    #[default]
    Seed,
    /// A retry that succeeded.
    Learned,
    /// Written by a person for this project: `snaffle fewshot add`.
    Added,
}

impl Source {
    /// `seed`, `learned` or `added`, as in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Learned => "learned",
            Self::Added => "added",
        }
    }
}

/// How a hole is filled, beyond what the calls say: a hole that stands for a whole argument takes
/// that argument's live values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hole {
    /// Live values of this tool's argument (the one called as the hole, digits at its end aside).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// But not those that this tool takes: for what a device cannot do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<String>,
    /// Only values that contain one of these words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub like: Vec<String>,
    /// What another hole's value is called beside the word of `like`: of "kitchen light" and
    /// `like = ["light"]`, "kitchen".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Names to choose from that do not exist now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Values where the live ones are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<Value>,
}

/// A request and its right reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// What was asked, holes included.
    pub request: String,
    /// What was right, holes included.
    pub reply: Reply,
    /// Language of the request (BCP 47); informative.
    pub lang: String,
    /// Words for people and tests: `direct`, `value`, `question`, …
    pub tags: Vec<String>,
    /// How holes are filled.
    pub holes: BTreeMap<String, Hole>,
    /// Where it comes from.
    pub source: Source,
    /// The failure that it corrected.
    pub failure: Option<FailureKind>,
}

/// What is wrong with an example.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExampleError {
    /// Not JSON of the right shape.
    #[error("line {line}: {reason}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// Not exactly one of `calls`, `ask`, `answer`.
    #[error("line {line}: an example has one of calls (not empty), ask and answer")]
    Reply {
        /// The line.
        line: usize,
    },
    /// A hole that nothing fills.
    #[error("line {line}: nothing says what fills {{{hole}}}")]
    UnknownHole {
        /// The line.
        line: usize,
        /// The hole.
        hole: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    lang: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    request: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<Call>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    holes: BTreeMap<String, Hole>,
    #[serde(default)]
    source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<FailureKind>,
}

impl Example {
    /// Reads a line; `number` is its number for errors.
    ///
    /// # Errors
    /// [`ExampleError`].
    pub fn parse(line: &str, number: usize) -> Result<Self, ExampleError> {
        let parsed: Line = serde_json::from_str(line).map_err(|error| ExampleError::Syntax {
            line: number,
            reason: error.to_string(),
        })?;
        let reply = match (parsed.calls, parsed.ask, parsed.answer) {
            (Some(calls), None, None) if !calls.is_empty() => Reply::Calls(calls),
            (None, Some(ask), None) => Reply::Ask(ask),
            (None, None, Some(answer)) => Reply::Answer(answer),
            _ => return Err(ExampleError::Reply { line: number }),
        };
        let example = Self {
            request: parsed.request,
            reply,
            lang: parsed.lang,
            tags: parsed.tags,
            holes: parsed.holes,
            source: parsed.source,
            failure: parsed.failure,
        };
        if let Some(hole) = example
            .holes_named()
            .into_iter()
            .find(|h| !example.fills(h))
        {
            return Err(ExampleError::UnknownHole { line: number, hole });
        }
        Ok(example)
    }

    /// Reads a file's text: one example a line, empty lines aside.
    ///
    /// # Errors
    /// The first bad line.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ExampleError> {
        text.lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| Self::parse(line, number + 1))
            .collect()
    }

    /// The line that [`parse`](Self::parse) reads.
    pub fn to_line(&self) -> String {
        let (mut calls, mut ask, mut answer) = (None, None, None);
        match &self.reply {
            Reply::Calls(list) => calls = Some(list.clone()),
            Reply::Ask(text) => ask = Some(text.clone()),
            Reply::Answer(text) => answer = Some(text.clone()),
        }
        let line = Line {
            lang: self.lang.clone(),
            tags: self.tags.clone(),
            request: self.request.clone(),
            calls,
            ask,
            answer,
            holes: self.holes.clone(),
            source: self.source,
            failure: self.failure,
        };
        // Maps with string keys and plain values: nothing here can fail to be written.
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Its name.
    pub fn id(&self) -> ExampleId {
        let reply = match &self.reply {
            Reply::Calls(calls) => serde_json::to_string(calls).unwrap_or_default(),
            Reply::Ask(text) => format!("ask {text}"),
            Reply::Answer(text) => format!("answer {text}"),
        };
        let mut hasher = Sha256::new();
        hasher.update(self.request.as_bytes());
        hasher.update([0]);
        hasher.update(reply.as_bytes());
        let hash: [u8; 32] = hasher.finalize().into();
        ExampleId(hash[..4].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Its calls; none where it asks or answers.
    pub fn calls(&self) -> &[Call] {
        match &self.reply {
            Reply::Calls(calls) => calls,
            Reply::Ask(_) | Reply::Answer(_) => &[],
        }
    }

    /// What it shows: the tools that it calls, joined by `+`, or `ask`, or `answer`.
    pub fn kind(&self) -> String {
        match &self.reply {
            Reply::Calls(calls) => {
                let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
                tools.join("+")
            }
            Reply::Ask(_) => "ask".into(),
            Reply::Answer(_) => "answer".into(),
        }
    }

    /// The holes of request and reply, in order of appearance.
    pub fn holes_named(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut texts = vec![self.request.as_str()];
        match &self.reply {
            Reply::Calls(calls) => {
                let arguments = calls.iter().flat_map(|call| call.arguments.values());
                texts.extend(arguments.filter_map(Value::as_str));
            }
            Reply::Ask(text) | Reply::Answer(text) => texts.push(text),
        }
        for text in texts {
            for name in holes_of(text) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
        names
    }

    /// The argument that a hole stands for as a whole, as (tool, argument).
    pub(super) fn argument_of(&self, hole: &str) -> Option<(&str, &str)> {
        self.calls().iter().find_map(|call| {
            let (name, _) = call
                .arguments
                .iter()
                .find(|(_, value)| value.as_str().is_some_and(|text| is_hole(text, hole)))?;
            Some((call.tool.as_str(), name.as_str()))
        })
    }

    fn fills(&self, hole: &str) -> bool {
        self.argument_of(hole).is_some()
            || self.holes.get(hole).is_some_and(|about| {
                about.from.is_some()
                    || !about.any.is_empty()
                    || !about.missing.is_empty()
                    || about
                        .beside
                        .as_ref()
                        .is_some_and(|other| other != hole && self.fills(other))
            })
    }
}

/// Whether `text` is nothing but `{hole}`.
fn is_hole(text: &str, hole: &str) -> bool {
    text.strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        == Some(hole)
}

/// The names of the holes in a text: `{` lower-case letters, digits and `_` `}`.
pub(super) fn holes_of(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        (!name.is_empty() && name.chars().all(legal)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        for line in [
            r#"{"lang":"en","tags":["direct"],"request":"Turn on the {device}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}],"source":"seed"}"#,
            r#"{"request":"спасибо","answer":"Пожалуйста!","source":"learned","failure":"no_call"}"#,
            r#"{"request":"the {missing}","ask":"no {missing}","holes":{"missing":{"missing":["sauna"]}},"source":"seed"}"#,
        ] {
            assert_eq!(Example::parse(line, 1).unwrap().to_line(), line);
        }
    }

    #[test]
    fn bad_lines_are_named() {
        for (line, expected) in [
            ("{}", "line 3: missing field `request` at line 1 column 2"),
            (
                r#"{"request":"a"}"#,
                "line 3: an example has one of calls (not empty), ask and answer",
            ),
            (
                r#"{"request":"a","calls":[]}"#,
                "line 3: an example has one of calls (not empty), ask and answer",
            ),
            (
                r#"{"request":"{x}","answer":"b"}"#,
                "line 3: nothing says what fills {x}",
            ),
            (
                r#"{"request":"{x}","answer":"b","holes":{"x":{"beside":"y"}}}"#,
                "line 3: nothing says what fills {x}",
            ),
        ] {
            assert_eq!(Example::parse(line, 3).unwrap_err().to_string(), expected);
        }
        assert_eq!(
            Example::parse_all("\n\n{")
                .unwrap_err()
                .to_string()
                .split(':')
                .next(),
            Some("line 3")
        );
    }

    #[test]
    fn ids_tell_examples_apart_and_ignore_tags() {
        let parse = |line| Example::parse(line, 1).unwrap().id();
        let one = parse(r#"{"request":"a","answer":"b"}"#);
        assert_eq!(one, parse(r#"{"lang":"en","request":"a","answer":"b"}"#));
        assert_ne!(one, parse(r#"{"request":"a","ask":"b"}"#));
    }
}
