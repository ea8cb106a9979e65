//! How a turn is written: the harness's own JSON, and what model families were trained to write.

use super::failure::{Failure, FailureKind};
use super::json::{quoted, read_strict, shortened};
use super::reply::{Call, Reply};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A way to write a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Ours: `{"calls": [{"tool": …, "arguments": {…}}]}`, `{"ask": …}` or `{"answer": …}`.
    #[default]
    Snaffle,
    /// Hermes and Qwen: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, one pair of tags a
    /// call; text without any is the answer.
    Hermes,
    /// Llama 3: a bare `{"name": …, "parameters": {…}}`; other text is the answer.
    Llama,
}

/// Bytes of the longest turn that is read at all.
pub const LONGEST_TURN: usize = 1 << 20;

impl Dialect {
    /// Reads a turn. Whether its calls are right is the gate's to say.
    ///
    /// # Errors
    /// [`FailureKind::NoCall`] for a text without any call, [`FailureKind::Truncated`] for one that
    /// stops in the middle, [`FailureKind::Unparsable`] for all else that is not in the dialect.
    pub fn parse(self, text: &str) -> Result<Reply, Failure> {
        if text.len() > LONGEST_TURN {
            return Err(unparsable("the text is longer than a megabyte"));
        }
        match self {
            Self::Snaffle => parse_snaffle(text.trim()),
            Self::Hermes => parse_hermes(text.trim()),
            Self::Llama => parse_llama(text.trim()),
        }
    }
}

fn unparsable(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Unparsable, message)
}

fn parse_snaffle(text: &str) -> Result<Reply, Failure> {
    if !text.starts_with('{') {
        return Err(if text.contains('{') {
            unparsable(format!(
                "the text begins with {}",
                quoted(&shortened(text, 20))
            ))
        } else {
            Failure::new(FailureKind::NoCall, "the text is not a JSON object")
        });
    }
    let members = object(read(text)?)?;
    let mut members = members.into_iter();
    let (Some((key, value)), None) = (members.next(), members.next()) else {
        return Err(unparsable("the object has one key: calls, ask or answer"));
    };
    match (key.as_str(), value) {
        ("calls", Value::Array(calls)) if calls.is_empty() => Err(Failure::new(
            FailureKind::NoCall,
            "the list of calls is empty",
        )),
        ("calls", Value::Array(calls)) => calls
            .into_iter()
            .map(|call| call_of(call, "tool", "arguments"))
            .collect::<Result<_, _>>()
            .map(Reply::Calls),
        ("ask", Value::String(text)) => filled(text).map(Reply::Ask),
        ("answer", Value::String(text)) => filled(text).map(Reply::Answer),
        ("calls", _) => Err(unparsable("`calls` is a list")),
        ("ask" | "answer", _) => Err(unparsable(format!("`{key}` is a text"))),
        _ => Err(unparsable(format!(
            "there is no key {}; there are calls, ask and answer",
            quoted(&shortened(&key, 40))
        ))),
    }
}

fn parse_hermes(text: &str) -> Result<Reply, Failure> {
    const OPEN: &str = "<tool_call>";
    const CLOSE: &str = "</tool_call>";
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(OPEN) {
        let Some((call, next)) = after.split_once(CLOSE) else {
            // Models stop before the closing tag where it is their end-of-turn mark.
            calls.push(call_of(read(after.trim())?, "name", "arguments")?);
            rest = "";
            break;
        };
        calls.push(call_of(read(call.trim())?, "name", "arguments")?);
        rest = next;
    }
    if calls.is_empty() {
        return spoken(rest);
    }
    Ok(Reply::Calls(calls))
}

fn parse_llama(text: &str) -> Result<Reply, Failure> {
    let text = text.strip_prefix("<|python_tag|>").unwrap_or(text).trim();
    if !text.starts_with('{') {
        return spoken(text);
    }
    // Several calls are separated by semicolons or line ends.
    let mut calls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if !rest.starts_with('{') {
            return Err(unparsable("there is text after a call"));
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Err(error)) = stream.next() {
            return Err(json_failure(&error));
        }
        let (one, after) = rest.split_at(stream.byte_offset());
        calls.push(call_of(read(one)?, "name", "parameters")?);
        rest = after.trim_start_matches(|c: char| c == ';' || c.is_whitespace());
    }
    Ok(Reply::Calls(calls))
}

/// Text without a call is what the person is told.
fn spoken(text: &str) -> Result<Reply, Failure> {
    filled(text.trim().to_owned()).map(Reply::Answer)
}

fn filled(text: String) -> Result<String, Failure> {
    if text.trim().is_empty() {
        Err(Failure::new(FailureKind::NoCall, "the text is empty"))
    } else {
        Ok(text)
    }
}

fn read(text: &str) -> Result<Value, Failure> {
    read_strict(text).map_err(|error| json_failure(&error))
}

fn json_failure(error: &serde_json::Error) -> Failure {
    if error.is_eof() {
        Failure::new(FailureKind::Truncated, "the JSON stops in the middle")
    } else {
        unparsable(error.to_string())
    }
}

fn object(value: Value) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(unparsable("a JSON object is needed")),
    }
}

fn call_of(value: Value, name_key: &str, arguments_key: &str) -> Result<Call, Failure> {
    let mut members = object(value)?;
    let name = members.shift_remove(name_key);
    let arguments = members.shift_remove(arguments_key);
    if let Some(other) = members.keys().next() {
        return Err(unparsable(format!(
            "a call has no key {}",
            quoted(&shortened(other, 40))
        )));
    }
    match (name, arguments) {
        (Some(Value::String(tool)), Some(Value::Object(arguments))) => Ok(Call { tool, arguments }),
        (Some(Value::String(tool)), None) => {
            Err(unparsable(format!("the call has no `{arguments_key}`")).of_tool(tool))
        }
        (Some(Value::String(tool)), Some(_)) => {
            Err(unparsable(format!("`{arguments_key}` is an object")).of_tool(tool))
        }
        _ => Err(unparsable(format!("the call has no `{name_key}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn on(device: &str) -> Call {
        Call::new("turn_on", [("device", device)])
    }

    #[test]
    fn turns_are_read() {
        let cases = [
            (
                Dialect::Snaffle,
                r#"{"calls": [{"tool": "turn_on", "arguments": {"device": "灯 \"A\""}}]}"#,
                Reply::Calls(vec![on("灯 \"A\"")]),
            ),
            (
                Dialect::Snaffle,
                " {\"ask\": \"Какой?\"}\n",
                Reply::Ask("Какой?".into()),
            ),
            (
                Dialect::Snaffle,
                r#"{"answer":"Done."}"#,
                Reply::Answer("Done.".into()),
            ),
            (
                Dialect::Hermes,
                "Sure.\n<tool_call>\n{\"name\": \"turn_on\", \"arguments\": {\"device\": \"a\"}}\n</tool_call>\n<tool_call>{\"name\": \"turn_on\", \"arguments\": {\"device\": \"b\"}}",
                Reply::Calls(vec![on("a"), on("b")]),
            ),
            (
                Dialect::Hermes,
                "It is on.",
                Reply::Answer("It is on.".into()),
            ),
            (
                Dialect::Llama,
                "<|python_tag|>{\"name\": \"turn_on\", \"parameters\": {\"device\": \"a\"}}; {\"name\": \"turn_on\", \"parameters\": {\"device\": \"b\"}}",
                Reply::Calls(vec![on("a"), on("b")]),
            ),
            (
                Dialect::Llama,
                "It is on.",
                Reply::Answer("It is on.".into()),
            ),
        ];
        for (dialect, text, expected) in cases {
            assert_eq!(dialect.parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_turn_has_its_kind() {
        use FailureKind::{NoCall, Truncated, Unparsable};
        let long = format!("{{\"answer\": \"{}\"}}", "a".repeat(LONGEST_TURN));
        let deep = "[".repeat(100_000);
        let cases = [
            (Dialect::Snaffle, "", NoCall),
            (Dialect::Snaffle, "I turned it on.", NoCall),
            (Dialect::Snaffle, r#"{"calls": []}"#, NoCall),
            (Dialect::Snaffle, r#"{"answer": " "}"#, NoCall),
            (Dialect::Snaffle, r#"Sure: {"calls": []}"#, Unparsable),
            (
                Dialect::Snaffle,
                r#"{"calls": [{"tool": "turn_on", "argu"#,
                Truncated,
            ),
            (
                Dialect::Snaffle,
                r#"{"calls": [{"tool": "turn_on"}]}"#,
                Unparsable,
            ),
            (
                Dialect::Snaffle,
                r#"{"calls": [{"arguments": {}}]}"#,
                Unparsable,
            ),
            (
                Dialect::Snaffle,
                r#"{"calls": [{"tool": "a", "arguments": []}]}"#,
                Unparsable,
            ),
            (
                Dialect::Snaffle,
                r#"{"calls": [{"tool": "a", "arguments": {}, "id": 1}]}"#,
                Unparsable,
            ),
            (
                Dialect::Snaffle,
                r#"{"calls": [{"tool": "a", "arguments": {"x": 1, "x": 2}}]}"#,
                Unparsable,
            ),
            (
                Dialect::Snaffle,
                r#"{"calls": {"tool": "a", "arguments": {}}}"#,
                Unparsable,
            ),
            (Dialect::Snaffle, r#"{"answer": 5}"#, Unparsable),
            (
                Dialect::Snaffle,
                r#"{"answer": "a", "ask": "b"}"#,
                Unparsable,
            ),
            (Dialect::Snaffle, r#"{"done": true}"#, Unparsable),
            (Dialect::Snaffle, r#"{"answer": "a"} x"#, Unparsable),
            (Dialect::Snaffle, &long, Unparsable),
            (Dialect::Snaffle, &deep, NoCall),
            (Dialect::Hermes, "<tool_call>{\"name\": \"a\", ", Truncated),
            (
                Dialect::Hermes,
                "<tool_call>turn_on()</tool_call>",
                Unparsable,
            ),
            (Dialect::Hermes, "  ", NoCall),
            (
                Dialect::Llama,
                r#"{"name": "a", "parameters": {}} and so on"#,
                Unparsable,
            ),
            (Dialect::Llama, r#"{"name": "a", "parameters": "#, Truncated),
        ];
        for (dialect, text, kind) in cases {
            let failure = dialect.parse(text).unwrap_err();
            assert_eq!(failure.kind, kind, "{}: {failure}", shortened(text, 80));
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let replies = [
            Reply::Calls(vec![
                on("\"\\\n🦊"),
                Call::new("x", [("n", json!([1, 2.5, null]))]),
            ]),
            Reply::Ask("Which?".into()),
            Reply::Answer("Готово.\n".into()),
        ];
        for reply in replies {
            assert_eq!(Dialect::Snaffle.parse(&reply.to_text()), Ok(reply));
        }
    }
}
