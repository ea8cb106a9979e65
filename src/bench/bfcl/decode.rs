//! From what a model wrote to a list of calls.
//!
//! [`foreign`] follows the leaderboard's decoders, for its verdicts; [`lenient`] takes whatever can
//! be understood as a call, so that a model without a grammar is not counted wrong for its
//! punctuation.

use super::json;
use super::python;
use super::value::Value;

/// The calls of an output as result files have it: a text with Python calls, or a list of
/// `{name: arguments}` with the arguments as an object or as a text with JSON. `None`: it cannot be
/// decoded.
pub fn foreign(output: &Value) -> Option<Value> {
    match output {
        Value::Str(text) => python::read_calls(text),
        Value::List(calls) => {
            let calls: Option<Vec<Value>> = calls.iter().map(with_arguments_read).collect();
            calls.map(Value::List)
        }
        _ => None,
    }
}

fn with_arguments_read(call: &Value) -> Option<Value> {
    match call.as_dict() {
        Some([(name, Value::Str(arguments))]) => {
            let arguments = json::read(arguments).ok()?;
            Some(Value::Dict(vec![(name.clone(), arguments)]))
        }
        _ => Some(call.clone()),
    }
}

/// Bytes of the longest text that is searched.
const LONGEST: usize = 1 << 16;

/// Places at which a text is tried.
const TRIES: usize = 200;

/// The calls somewhere in a text, in any of the notations that models are known to use: JSON
/// objects or lists of them, with or without tags and code fences, or Python calls of one of the
/// `functions`. `None`: there is none.
pub fn lenient(text: &str, functions: &[&str]) -> Option<Value> {
    let text = text.get(..LONGEST).unwrap_or(text);
    let mut calls = in_json(text, functions);
    if calls.is_empty() {
        calls = in_python(text, functions);
    }
    (!calls.is_empty()).then_some(Value::List(calls))
}

/// Every JSON value in the text that is a call, or a list of calls.
fn in_json(text: &str, functions: &[&str]) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut rest = text;
    for _ in 0..TRIES {
        let Some(at) = rest.find(['{', '[']) else {
            break;
        };
        rest = &rest[at..];
        match json::read_first(rest) {
            Ok((value, length)) => {
                gather(&value, functions, &mut calls);
                rest = &rest[length..];
            }
            Err(_) => rest = &rest[1..],
        }
    }
    calls
}

/// Adds the calls that a JSON value is or holds.
fn gather(value: &Value, functions: &[&str], calls: &mut Vec<Value>) {
    match value {
        Value::List(items) => {
            for item in items {
                gather(item, functions, calls);
            }
        }
        Value::Dict(members) => {
            if let Some(call) = json_call(value) {
                calls.push(call);
                return;
            }
            for key in ["calls", "tool_calls", "function", "function_call"] {
                if let Some(inner) = value.get(key) {
                    gather(inner, functions, calls);
                    return;
                }
            }
            if let [(Value::Str(name), arguments)] = members.as_slice()
                && functions.contains(&name.as_str())
                && arguments.as_dict().is_some()
            {
                calls.push(value.clone());
            }
        }
        _ => {}
    }
}

/// `{"name": …, "arguments": …}` in its spellings.
fn json_call(value: &Value) -> Option<Value> {
    let name = ["tool", "name", "function", "tool_name", "function_name"]
        .into_iter()
        .find_map(|key| value.get(key)?.as_str())?;
    let arguments = ["arguments", "parameters", "args", "params", "input"]
        .into_iter()
        .find_map(|key| value.get(key))?;
    let arguments = match arguments {
        Value::Str(text) => json::read(text).ok()?,
        other => other.clone(),
    };
    arguments.as_dict()?;
    Some(Value::Dict(vec![(Value::Str(name.to_owned()), arguments)]))
}

/// Every Python call of one of the functions.
fn in_python(text: &str, functions: &[&str]) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut from = 0;
    for _ in 0..TRIES {
        let next = functions
            .iter()
            .filter_map(|name| call_position(text, from, name).map(|at| (at, name.len())))
            .min_by_key(|&(at, length)| (at, usize::MAX - length));
        let Some((at, length)) = next else {
            break;
        };
        match python::read_call(&text[at..]) {
            Some((call, taken)) => {
                calls.push(call);
                from = at + taken;
            }
            None => from = at + length,
        }
    }
    calls
}

/// The next place from `from` on where `name` stands as a whole and is called.
fn call_position(text: &str, from: usize, name: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    text.get(from..)?
        .match_indices(name)
        .map(|(at, _)| from + at)
        .find(|&at| {
            let before = text[..at].chars().next_back();
            let joined = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
            !joined && text[at + name.len()..].trim_start().starts_with('(')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::read(text).unwrap()
    }

    #[test]
    fn result_files_are_decoded() {
        for (output, expected) in [
            (r#""[f(a=1)]""#, Some(r#"[{"f": {"a": 1}}]"#)),
            (r#"[{"f": "{\"a\": 1}"}]"#, Some(r#"[{"f": {"a": 1}}]"#)),
            (r#"[{"f": {"a": 1}}]"#, Some(r#"[{"f": {"a": 1}}]"#)),
            (r#"[{"f": "a"}]"#, None),
            (r#""no""#, None),
            ("null", None),
            ("{}", None),
        ] {
            let read = foreign(&value(output));
            match (read, expected) {
                (Some(read), Some(expected)) => {
                    assert!(read.equals(&value(expected)), "{output}: {read:?}");
                }
                (read, expected) => assert_eq!(read.is_some(), expected.is_some(), "{output}"),
            }
        }
    }

    #[test]
    fn calls_are_found_in_what_models_write() {
        let one = r#"[{"f.g": {"a": 1}}]"#;
        let two = r#"[{"f.g": {"a": 1}}, {"h": {}}]"#;
        for (text, expected) in [
            (
                r#"{"calls": [{"tool": "f.g", "arguments": {"a": 1}}]}"#,
                one,
            ),
            (
                r#"Sure! <tool_call>{"name": "f.g", "arguments": {"a": 1}}</tool_call>"#,
                one,
            ),
            (
                "```json\n[{\"name\": \"f.g\", \"parameters\": {\"a\": 1}}, {\"function\": {\"name\": \"h\", \"arguments\": \"{}\"}}]\n```",
                two,
            ),
            (r#"[{"f.g": {"a": 1}}]"#, one),
            ("I would call f.g(a=1) and then h().", two),
            ("[f.g(a=1), h()]", two),
            ("f.g(a=) or f.g(a=1)", one),
            (
                r#"{"name": "f.g", "arguments": {"a": 1}} {"name": "h", "args": {}"#,
                one,
            ),
        ] {
            let read = lenient(text, &["f.g", "h"]).unwrap_or_else(|| panic!("{text}"));
            assert!(read.equals(&value(expected)), "{text}: {read:?}");
        }
    }

    #[test]
    fn prose_is_no_call() {
        let braces = "{".repeat(100_000);
        for text in [
            "",
            "The area is 25 (about).",
            "half(a=1)",
            r#"{"answer": "f.g"}"#,
            r#"{"unknown": {"a": 1}}"#,
            "[1, 2, 3]",
            &braces,
        ] {
            assert!(
                lenient(text, &["f.g", "h", ""]).is_none(),
                "{}",
                &text[..text.len().min(40)]
            );
        }
    }
}
