//! What a retry that succeeded teaches: the example that it leaves, or nothing.
//!
//! An example is shown to a model as the right reply to its request, so only what the request
//! itself vouches for becomes one. A retry may have succeeded by doing something else than was
//! asked for: the grammar lets a model write no value that does not exist, so that one who was
//! asked for the attic light may end up at the hall lamp. Hence, conservatively:
//!
//! - The retry calls the tool that the failed attempt was about.
//! - Each argument that has live values has one that the request names, and becomes a hole in
//!   both; or it is the very value that the failed attempt had too, which then was not what was
//!   wrong, and stays as it is.
//! - What followed a refusal or a repetition is something else than was asked for, always.
//! - A question is learned where it says that what the request names does not exist. Other
//!   questions and answers are a model's words that nobody checked.
//! - A request or value that reads like a hole, or is long, is left alone: a prompt never grows by
//!   what was learned.

use super::example::{Example, Hole, Source, holes_of};
use super::fill::Legal;
use super::ngram::is_han;
use crate::call::{Call, FailureKind, Reply};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// Longest request that is learned, in bytes.
const LONGEST_REQUEST: usize = 240;

/// Longest reply, in bytes as the turn grammar writes it.
const LONGEST_REPLY: usize = 480;

/// A failed attempt and the reply of the same turn that was right.
#[derive(Clone, Copy, Debug)]
pub struct Lesson<'a> {
    /// The request.
    pub request: &'a str,
    /// What went wrong.
    pub failure: FailureKind,
    /// The tool that the failed attempt was about, where it was about one.
    pub tool: Option<&'a str>,
    /// The call that failed, where it was one.
    pub tried: Option<&'a Call>,
    /// What was wrong in it, as a JSON Pointer.
    pub pointer: Option<&'a str>,
    /// What was right: calls that were all executed well, or a question that was put.
    pub reply: &'a Reply,
}

impl Lesson<'_> {
    /// The example that this leaves, where the request vouches for the reply.
    pub fn example(&self, moves: &Legal<'_>) -> Option<Example> {
        if matches!(self.failure, FailureKind::Refused | FailureKind::Repeated)
            || self.request.len() > LONGEST_REQUEST
            || self.reply.to_text().len() > LONGEST_REPLY
        {
            return None;
        }
        let mut draft = Draft::new(self.request)?;
        let reply = match self.reply {
            Reply::Calls(calls) => Reply::Calls(self.calls(calls, moves, &mut draft)?),
            Reply::Ask(text) => Reply::Ask(self.question(text, &mut draft)?),
            Reply::Answer(_) => return None,
        };
        let example = Example {
            request: draft.request,
            reply,
            lang: String::new(),
            tags: Vec::new(),
            holes: draft.holes,
            source: Source::Learned,
            failure: Some(self.failure),
        };
        // What cannot be read back is not written.
        Example::parse(&example.to_line(), 1).ok()
    }

    fn calls(&self, calls: &[Call], moves: &Legal<'_>, draft: &mut Draft) -> Option<Vec<Call>> {
        let first = calls.first()?;
        if self.tool.is_some_and(|tool| tool != first.tool) {
            return None;
        }
        // The longest first: "hall lamp" is no "lamp".
        let mut live: Vec<(&Call, &String, &Value)> = Vec::new();
        for call in calls {
            let (_, domains) = moves.iter().find(|(tool, _)| *tool == call.tool)?;
            for (argument, value) in &call.arguments {
                if domains.contains_key(argument) {
                    live.push((call, argument, value));
                } else if has_holes(value) {
                    return None;
                }
            }
        }
        live.sort_by_key(|(_, _, value)| std::cmp::Reverse(text_of(value).len()));
        let mut learned = calls.to_vec();
        for (call, argument, value) in live {
            if let Some(hole) = draft.hole(argument, value) {
                let same = |other: &&mut Call| other.tool == call.tool;
                for other in learned.iter_mut().filter(same) {
                    match other.arguments.get_mut(argument) {
                        Some(place) if place == value => *place = format!("{{{hole}}}").into(),
                        _ => {}
                    }
                }
            } else if !self.had(call, argument, value) || has_holes(value) {
                return None;
            }
        }
        Some(learned)
    }

    /// Whether the failed attempt had this value too.
    fn had(&self, call: &Call, argument: &str, value: &Value) -> bool {
        self.tried.is_some_and(|tried| {
            tried.tool == call.tool && tried.arguments.get(argument) == Some(value)
        })
    }

    /// A question about what the request names and what does not exist.
    fn question(&self, text: &str, draft: &mut Draft) -> Option<String> {
        let argument = self.pointer?.strip_prefix('/')?;
        let value = self.tried?.arguments.get(argument)?;
        let name = value.as_str()?;
        if self.failure != FailureKind::OutsideDomain || holes_of(text).next().is_some() {
            return None;
        }
        let place = whole(text, name)?;
        let hole = draft.hole("missing", value)?;
        let about = Hole {
            missing: vec![name.to_owned()],
            ..Hole::default()
        };
        draft.holes.insert(hole.clone(), about);
        let mut text = text.to_owned();
        text.replace_range(place, &format!("{{{hole}}}"));
        Some(text)
    }
}

/// The request while its values become holes.
struct Draft {
    request: String,
    /// Which values became which holes.
    made: Vec<(String, Value)>,
    holes: BTreeMap<String, Hole>,
}

impl Draft {
    fn new(request: &str) -> Option<Self> {
        let request = request.trim();
        (!request.is_empty() && holes_of(request).next().is_none()).then(|| Self {
            request: request.to_owned(),
            made: Vec::new(),
            holes: BTreeMap::new(),
        })
    }

    /// The hole for a value that the request names; `None` where it does not.
    fn hole(&mut self, argument: &str, value: &Value) -> Option<String> {
        if let Some((hole, _)) = self.made.iter().find(|(_, made)| made == value) {
            return Some(hole.clone());
        }
        let place = whole(&self.request, &text_of(value))?;
        // A hole is named after its argument; digits at the end tell several apart.
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        let stem = if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            "value"
        };
        let taken = |name: &str| self.made.iter().any(|(hole, _)| hole == name);
        let mut name = stem.to_owned();
        for number in 2.. {
            if !taken(&name) {
                break;
            }
            name = format!("{stem}{number}");
        }
        self.request.replace_range(place, &format!("{{{name}}}"));
        self.made.push((name.clone(), value.clone()));
        Some(name)
    }
}

/// Where `text` names `name` whole, whatever the case: not as a part of a longer word, where the
/// script has spaces between words.
fn whole(text: &str, name: &str) -> Option<Range<usize>> {
    if name.is_empty() {
        return None;
    }
    let (lower, name) = (text.to_lowercase(), name.to_lowercase());
    // A letter whose two cases are of different length moves what comes after it.
    let hay = if lower.len() == text.len() {
        &lower
    } else {
        text
    };
    let in_word = |c: char| c.is_alphanumeric() && !is_han(c);
    let joins = |a: Option<char>, b: Option<char>| a.is_some_and(in_word) && b.is_some_and(in_word);
    hay.match_indices(&name)
        .map(|(at, found)| at..at + found.len())
        .find(|place| {
            let before = hay[..place.start].chars().next_back();
            let after = hay[place.end..].chars().next();
            let in_hole = before == Some('{') && after == Some('}');
            text.is_char_boundary(place.start)
                && text.is_char_boundary(place.end)
                && !in_hole
                && !joins(before, name.chars().next())
                && !joins(name.chars().next_back(), after)
        })
}

fn has_holes(value: &Value) -> bool {
    match value {
        Value::String(text) => holes_of(text).next().is_some(),
        Value::Array(items) => items.iter().any(has_holes),
        Value::Object(members) => members.values().any(has_holes),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value as people write it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Domains;
    use serde_json::json;

    const TRIED: &str = r#"{"device":"hall lamp"}"#;

    /// What is learned in a house with some devices, as a line without its source and failure.
    fn learned(request: &str, failure: FailureKind, tried: &str, reply: &str) -> String {
        let devices = ["kitchen light", "hall lamp", "lamp", "客厅灯", "Свет"];
        let devices: Vec<Value> = devices.iter().map(|name| json!(name)).collect();
        let domains = Domains::from([("device".to_owned(), devices)]);
        let none = Domains::new();
        let moves: [(&str, &Domains); 3] =
            [("turn_on", &domains), ("dim", &domains), ("mail", &none)];
        let tried: Option<Call> = serde_json::from_str(tried).ok().map(|arguments| Call {
            tool: "turn_on".to_owned(),
            arguments,
        });
        let reply = Example::parse(&format!(r#"{{"request":"",{reply}}}"#), 1)
            .unwrap()
            .reply;
        let lesson = Lesson {
            request,
            failure,
            tool: tried.as_ref().map(|call| call.tool.as_str()),
            tried: tried.as_ref(),
            pointer: Some("/device"),
            reply: &reply,
        };
        let Some(example) = lesson.example(&moves) else {
            return "nothing".to_owned();
        };
        let line = example.to_line();
        let end = line.find(r#","source""#).unwrap();
        line[..end].to_owned() + "}"
    }

    #[test]
    fn what_the_request_vouches_for_is_learned_with_holes() {
        use FailureKind::{
            Constraint, MissingArgument, NoCall, OutsideDomain, Refused, Repeated, ToolError,
            Unparsable, VerificationFailed, WrongType,
        };
        let on = |device: &str| {
            format!(r#""calls":[{{"tool":"turn_on","arguments":{{"device":"{device}"}}}}]"#)
        };
        let hole = |request: &str| format!(r#"{{"request":"{request}",{}}}"#, on("{device}"));
        for (request, failure, tried, reply, expected) in [
            ("Turn on the Kitchen Light", OutsideDomain, "{}", on("kitchen light"), hole("Turn on the {device}")),
            ("hall lamp on", WrongType, "{}", on("hall lamp"), hole("{device} on")),
            ("lamp and hall lamp", ToolError, "{}", on("lamp"), hole("{device} and hall lamp")),
            ("打开客厅灯吧", Unparsable, "", on("客厅灯"), hole("打开{device}吧")),
            ("включи свет", NoCall, "", on("Свет"), hole("включи {device}")),
            ("lamp", VerificationFailed, "", on("lamp"), hole("{device}")),
            // Not as a part of a word, and not what the request does not name.
            ("lamps on", WrongType, "{}", on("lamp"), "nothing".into()),
            ("attic light on", OutsideDomain, "{}", on("hall lamp"), "nothing".into()),
            // Named by the attempt too: it stays, and is shown as long as it exists.
            ("it is dark", MissingArgument, TRIED, on("hall lamp"), format!(r#"{{"request":"it is dark",{}}}"#, on("hall lamp"))),
            // Another tool, a refusal, a repetition, an answer: not what was asked.
            ("hall lamp", Constraint, "{}", r#""calls":[{"tool":"dim","arguments":{"device":"hall lamp"}}]"#.into(), "nothing".into()),
            ("hall lamp on", Refused, "{}", on("hall lamp"), "nothing".into()),
            ("hall lamp on", Repeated, "{}", on("hall lamp"), "nothing".into()),
            ("hello", Unparsable, "", r#""answer":"Hi!""#.into(), "nothing".into()),
            // A question that says what does not exist.
            ("attic light on", OutsideDomain, r#"{"device":"attic light"}"#, r#""ask":"There is no attic light.""#.into(),
                r#"{"request":"{missing} on","ask":"There is no {missing}.","holes":{"missing":{"missing":["attic light"]}}}"#.into()),
            ("attic light on", OutsideDomain, r#"{"device":"attic light"}"#, r#""ask":"Which one?""#.into(), "nothing".into()),
            ("attic light on", WrongType, r#"{"device":"attic light"}"#, r#""ask":"There is no attic light.""#.into(), "nothing".into()),
            // Holes and long texts.
            ("the {device} and the hall lamp", WrongType, "{}", on("hall lamp"), "nothing".into()),
            ("mail it", Unparsable, "", r#""calls":[{"tool":"mail","arguments":{"body":"see { b }"}}]"#.into(),
                r#"{"request":"mail it","calls":[{"tool":"mail","arguments":{"body":"see { b }"}}]}"#.into()),
            (&"lamp ".repeat(60), WrongType, "{}", on("lamp"), "nothing".into()),
        ] {
            assert_eq!(learned(request, failure, tried, &reply), expected, "{request}: {failure}");
        }
    }

    #[test]
    fn several_values_have_holes_of_their_own() {
        let reply = r#""calls":[{"tool":"turn_on","arguments":{"device":"lamp"}},{"tool":"turn_on","arguments":{"device":"hall lamp"}}]"#;
        assert_eq!(
            learned("lamp and hall lamp on", FailureKind::WrongType, "{}", reply),
            r#"{"request":"{device2} and {device} on","calls":[{"tool":"turn_on","arguments":{"device":"{device2}"}},{"tool":"turn_on","arguments":{"device":"{device}"}}]}"#
        );
    }
}
