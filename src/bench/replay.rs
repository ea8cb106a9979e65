//! Recorded replies of models, run through the harness again without a model.
//!
//! A line of a recording (JSON Lines) has the request, the house, what the model wrote turn by turn
//! and what came of it:
//!
//! ```json
//! {"id": "maple-001", "house": "maple", "request": "Turn on the kitchen light",
//!  "replies": ["{\"calls\": [{\"tool\": \"turn_on\", \"arguments\": {\"device\": \"kitchen light\"}}]}",
//!              {"text": "{\"answer\": \"Do", "stop": "budget"}],
//!  "expect": {"calls": [{"tool": "turn_on", "arguments": {"device": "kitchen light"}}],
//!             "failures": ["truncated"], "reason": "answered"}}
//! ```
//! A reply is a text, or a text with why it ended. `grammar` (true by default) and `dialect` say how
//! it was written, `max_calls` (1) how many calls a turn may have.

use super::episode::{Episode, Player};
use crate::agent::{AgentError, Clock, NoExamples, Settings};
use crate::call::{Call, Dialect};
use crate::model::{Cancel, Generation, Generator, ScriptedGenerator, Stop, Tap};
use crate::tool::Registry;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// A line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its id.
    pub id: String,
    /// The house, by the stem of its file.
    pub house: String,
    /// What was asked.
    pub request: String,
    /// Whether it was written under a grammar.
    #[serde(default = "yes")]
    pub grammar: bool,
    /// How calls are written, where there was no grammar.
    #[serde(default)]
    pub dialect: Dialect,
    /// Most calls in a turn.
    #[serde(default = "one")]
    pub max_calls: usize,
    /// What the model wrote, turn by turn.
    pub replies: Vec<RecordedReply>,
    /// What came of it.
    pub expect: Expected,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

/// What the model wrote in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedReply {
    /// A complete text.
    Text(String),
    /// A text, and why it ended.
    Stopped {
        /// The text.
        text: String,
        /// Why it ended.
        stop: RecordedStop,
    },
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedStop {
    /// It is complete.
    Complete,
    /// Closed near the budget.
    Closed,
    /// The budget ran out.
    Budget,
}

impl RecordedReply {
    fn of(text: &str, stop: Stop) -> Self {
        let stop = match stop {
            Stop::Closed => RecordedStop::Closed,
            Stop::Budget => RecordedStop::Budget,
            // A cancelled run is not recorded.
            Stop::Complete | Stop::Cancelled => return Self::Text(text.to_owned()),
        };
        Self::Stopped {
            text: text.to_owned(),
            stop,
        }
    }

    fn scripted(&self) -> (String, Stop) {
        match self {
            Self::Text(text) => (text.clone(), Stop::Complete),
            Self::Stopped { text, stop } => {
                let stop = match stop {
                    RecordedStop::Complete => Stop::Complete,
                    RecordedStop::Closed => Stop::Closed,
                    RecordedStop::Budget => Stop::Budget,
                };
                (text.clone(), stop)
            }
        }
    }
}

/// What the harness made of the replies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The calls that were executed, in order.
    pub calls: Vec<Call>,
    /// The kinds of failures on the way, in order.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Why the run ended.
    pub reason: String,
    /// What the person was told or asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Expected {
    /// What came of an episode.
    pub fn of(episode: &Episode) -> Self {
        Self {
            calls: episode.calls.clone(),
            failures: episode.failures.clone(),
            reason: episode.reason.name().to_owned(),
            text: episode.text.clone(),
        }
    }

    /// The first thing in which `found` is otherwise. A text that is not stated is not compared.
    fn difference(&self, found: &Self) -> Option<String> {
        let shown = |calls: &[Call]| {
            let calls: Vec<String> = calls.iter().map(|c| c.to_value().to_string()).collect();
            format!("[{}]", calls.join(", "))
        };
        if self.calls != found.calls {
            return Some(format!(
                "calls: {} expected, {} found",
                shown(&self.calls),
                shown(&found.calls)
            ));
        }
        if self.failures != found.failures {
            return Some(format!(
                "failures: [{}] expected, [{}] found",
                self.failures.join(", "),
                found.failures.join(", ")
            ));
        }
        if self.reason != found.reason {
            return Some(format!(
                "end: {} expected, {} found",
                self.reason, found.reason
            ));
        }
        if self.text.is_some() && self.text != found.text {
            return Some(format!(
                "text: {:?} expected, {:?} found",
                self.text.as_deref().unwrap_or_default(),
                found.text.as_deref().unwrap_or_default()
            ));
        }
        None
    }
}

/// How a replay went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// The line's id.
    pub id: String,
    /// Whether it came out as recorded.
    pub right: bool,
    /// In what it differs from the recording; `None`: in nothing.
    pub difference: Option<String>,
    /// What came of it; `None` where the run could not go on.
    pub found: Option<Expected>,
}

/// What is wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A line is no recorded request.
    #[error("line {line}: {message}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// There is nothing in it.
    #[error("there is no recorded request")]
    Empty,
    /// The harness failed.
    #[error("request {id}: {source}")]
    Agent {
        /// The request.
        id: String,
        /// Why.
        source: AgentError,
    },
}

/// Reads a recording. Blank lines are passed over.
///
/// # Errors
/// The first line that is no recorded request.
pub fn read(text: &str) -> Result<Vec<Recorded>, ReplayError> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let recorded = serde_json::from_str(line).map_err(|error| ReplayError::Line {
            line: at + 1,
            message: error.to_string(),
        })?;
        lines.push(recorded);
    }
    if lines.is_empty() {
        Err(ReplayError::Empty)
    } else {
        Ok(lines)
    }
}

/// Runs a recorded request with `tools` through the harness.
///
/// # Errors
/// The harness failed. That it asks for another number of replies is a difference, not an error.
pub fn replay(
    recorded: &Recorded,
    tools: &mut Registry,
    settings: &Settings,
    clock: &dyn Fn() -> Box<dyn Clock>,
) -> Result<Replayed, ReplayError> {
    let replies: Vec<(String, Stop)> = recorded
        .replies
        .iter()
        .map(RecordedReply::scripted)
        .collect();
    let mut generator = ScriptedGenerator::with_stops(replies);
    let prompts = generator.prompts();
    let played = Player {
        generator: &mut generator,
        examples: &mut NoExamples,
        clock,
        settings: Settings {
            grammar: recorded.grammar,
            dialect: recorded.dialect,
            max_calls: recorded.max_calls,
            ..settings.clone()
        },
        cancel: Cancel::default(),
    }
    .play(&recorded.request, tools);
    let asked = prompts.all().len();
    let found = match played {
        Ok(episode) => Some(Expected::of(&episode)),
        Err(_) if asked > recorded.replies.len() => None,
        Err(source) => {
            return Err(ReplayError::Agent {
                id: recorded.id.clone(),
                source,
            });
        }
    };
    let difference = match &found {
        None => Some(format!(
            "replies: {} recorded, another one asked for",
            recorded.replies.len()
        )),
        Some(found) => recorded.expect.difference(found).or_else(|| {
            (asked < recorded.replies.len()).then(|| {
                format!(
                    "replies: {} recorded, {asked} asked for",
                    recorded.replies.len()
                )
            })
        }),
    };
    Ok(Replayed {
        id: recorded.id.clone(),
        right: difference.is_none(),
        difference,
        found,
    })
}

/// The replies noted so far; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Replies(Arc<Mutex<Vec<RecordedReply>>>);

impl Replies {
    /// Takes them out.
    pub fn take(&self) -> Vec<RecordedReply> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notes in `written` what `inner` writes.
pub fn recording<'g>(
    inner: &'g mut dyn Generator,
    written: &Replies,
) -> Tap<'g, impl FnMut(&Generation) + Send + use<'g>> {
    let written = written.clone();
    Tap::new(inner, move |generation| {
        let reply = RecordedReply::of(&generation.text, generation.stop);
        let mut written = written.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.push(reply);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::SystemClock;
    use crate::tool::home::{HouseFile, tools};

    const HOUSE: &str = "name = \"X\"\n[[area]]\nid = \"a\"\n[[device]]\nid = \"lamp\"\n\
        kind = \"light\"\narea = \"a\"\nstate = { on = false }\n";

    fn replayed(line: &str) -> Result<Replayed, ReplayError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.toml");
        fs_err::write(&path, HOUSE).unwrap();
        let house = Arc::new(HouseFile::open(&path).unwrap());
        let mut registry = Registry::new();
        registry.register_all(tools(&house)).unwrap();
        let clock = || -> Box<dyn Clock> { Box::new(SystemClock::start()) };
        replay(&read(line)?[0], &mut registry, &Settings::default(), &clock)
    }

    const LINE: &str = r#"{"id": "1", "house": "h", "request": "lamp on", "replies": ["{\"calls\": [{\"tool\": \"turn_on\", \"arguments\": {\"device\": \"lmp\"}}]}", {"text": "{\"calls\": [{\"tool\": \"turn_on\", \"arguments\": {\"device\": \"lamp\"}}]}", "stop": "closed"}, "{\"calls\": [{\"tool\": \"turn_on\", \"arguments\": {\"device\": \"lamp\"}}]}", "{\"answer\": \"lamp: on\"}"], "expect": {"calls": [{"tool": "turn_on", "arguments": {"device": "lamp"}}], "failures": ["outside_domain", "truncated"], "reason": "answered"}}"#;

    #[test]
    fn a_replay_says_in_what_it_differs() {
        for (from, to, difference) in [
            ("", "", None),
            (
                r#""reason": "answered""#,
                r#""reason": "asked""#,
                Some("end: asked expected, answered found"),
            ),
            (
                r#""reason": "answered""#,
                r#""reason": "answered", "text": "no""#,
                Some("text: \"no\" expected, \"lamp: on\" found"),
            ),
            (
                r#"["outside_domain", "truncated"]"#,
                "[]",
                Some("failures: [] expected, [outside_domain, truncated] found"),
            ),
            (
                r#"{"device": "lamp"}}], "fail"#,
                r#"{"device": "x"}}], "fail"#,
                Some(
                    "calls: [{\"tool\":\"turn_on\",\"arguments\":{\"device\":\"x\"}}] expected, [{\"tool\":\"turn_on\",\"arguments\":{\"device\":\"lamp\"}}] found",
                ),
            ),
            (
                r#", "{\"answer\": \"lamp: on\"}""#,
                "",
                Some("replies: 3 recorded, another one asked for"),
            ),
            (
                r#"lamp: on\"}""#,
                r#"lamp: on\"}", "{}""#,
                Some("replies: 5 recorded, 4 asked for"),
            ),
        ] {
            assert!(LINE.contains(from), "{from}");
            let replayed = replayed(&LINE.replacen(from, to, 1)).unwrap();
            assert_eq!(replayed.difference.as_deref(), difference);
        }
    }

    #[test]
    fn a_line_that_is_no_recording_is_named() {
        for (text, says) in [
            ("", "there is no recorded request"),
            ("\n{}", "line 2: missing field `id`"),
            (
                &LINE.replace("\"house\"", "\"home\""),
                "line 1: unknown field `home`",
            ),
            (
                &LINE.replace("\"closed\"", "\"cancelled\""),
                "line 1: data did not match",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_noted() {
        use crate::model::{GenerateRequest, Message, Prompt, Role, Sampling};
        let mut inner = ScriptedGenerator::with_stops([("a", Stop::Complete), ("b", Stop::Budget)]);
        let written = Replies::default();
        let mut recording = recording(&mut inner, &written);
        let prompt = Prompt {
            messages: vec![Message {
                role: Role::User,
                content: String::new(),
            }],
            stable: 0,
        };
        for _ in 0..2 {
            let request = GenerateRequest {
                prompt: &prompt,
                grammar: None,
                sampling: Sampling::default(),
                max_tokens: 1,
                jump_ahead: true,
                calibration: None,
                cancel: Cancel::default(),
            };
            recording.generate(&request).unwrap();
        }
        let taken = serde_json::to_string(&written.take()).unwrap();
        assert_eq!(taken, r#"["a",{"text":"b","stop":"budget"}]"#);
        assert!(written.take().is_empty());
    }
}
