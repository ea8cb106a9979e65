//! JSON as the harness writes and reads it: spaced like models write it, read without mercy.
//!
//! The turn grammar, the examples in prompts and the hints must agree on one spelling to the byte,
//! so that what a model is shown is what it is then allowed to write.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt::{self, Write as _};

/// `value` on one line, with `", "` between members and `": "` after keys.
pub fn spaced(value: &Value) -> String {
    let mut out = String::new();
    write_spaced(&mut out, value);
    out
}

fn write_spaced(out: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_spaced(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (key, item)) in members.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quoted(key));
                out.push_str(": ");
                write_spaced(out, item);
            }
            out.push('}');
        }
        Value::String(text) => out.push_str(&quoted(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{value}");
        }
    }
}

/// `text` as a JSON string: quotes, backslashes and control characters escaped, all else as it is.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Whether two values are the same to JSON Schema: numbers by what they are worth (`1` is `1.0`),
/// objects in any order.
pub fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        _ => left == right,
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    if a == b {
        return true;
    }
    if (a.is_i64() || a.is_u64()) && (b.is_i64() || b.is_u64()) {
        return a.as_i64() == b.as_i64() && a.as_u64() == b.as_u64();
    }
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq() || (a == 0.0 && b == 0.0),
        _ => false,
    }
}

/// Reads one JSON value, refusing what serde_json lets pass in silence: a key given twice.
///
/// # Errors
/// As serde_json, plus `duplicate key`.
pub fn read_strict(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text).map(|Strict(value)| value)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, Strict(value))) = members.next_entry::<String, Strict>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "duplicate key {}",
                    quoted(&key)
                )));
            }
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

/// `text` cut to `limit` characters, with an ellipsis where something is missing.
pub fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_spaced() {
        let cases = [
            (json!({}), "{}"),
            (json!([]), "[]"),
            (
                json!({"calls": [{"tool": "a", "arguments": {"x": 1, "y": [true, null]}}]}),
                r#"{"calls": [{"tool": "a", "arguments": {"x": 1, "y": [true, null]}}]}"#,
            ),
            (json!("a\"b\\c\n\u{1}é🦊"), "\"a\\\"b\\\\c\\n\\u0001é🦊\""),
            (json!(20.5), "20.5"),
        ];
        for (value, expected) in cases {
            assert_eq!(spaced(&value), expected);
            assert_eq!(read_strict(expected).unwrap(), value);
        }
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        for text in [r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert!(
                read_strict(text)
                    .unwrap_err()
                    .to_string()
                    .contains("duplicate key \"a\"")
            );
        }
    }

    #[test]
    fn numbers_are_compared_by_worth() {
        let cases = [
            (json!(1), json!(1.0), true),
            (json!(-0.0), json!(0), true),
            (json!(1), json!("1"), false),
            (json!(u64::MAX), json!(-1), false),
            (json!({"a": 1, "b": 2}), json!({"b": 2.0, "a": 1}), true),
            (json!([1, 2]), json!([2, 1]), false),
        ];
        for (a, b, same) in cases {
            assert_eq!(same_value(&a, &b), same, "{a} {b}");
        }
    }

    #[test]
    fn text_is_cut_at_characters() {
        assert_eq!(shortened("кухня", 5), "кухня");
        assert_eq!(shortened("кухня", 3), "кух…");
    }
}
