//! Whether a grammar accepts a value once the order of its members is set aside.

use serde_json::{Map, Value};

use crate::call::json::quoted;
use crate::grammar::{LimitError, Recogniser};

/// Members tried before giving up: a schema of `n` properties needs some `n²/2`.
const TRIES: usize = 20_000;

/// Whether some order of the members of `value`'s objects is accepted. A first that fits is
/// searched for with a bounded number of tries: `false` may mean that it was not found.
///
/// # Errors
/// If a limit of the engine is exceeded.
pub fn matches_in_some_order(
    recogniser: &mut Recogniser,
    value: &Value,
) -> Result<bool, LimitError> {
    recogniser.reset();
    let mut tries = TRIES;
    let fits = fits(recogniser, value, &mut tries)? && recogniser.is_accepting();
    recogniser.reset();
    Ok(fits)
}

/// Moves past `value` with its members in an order that fits.
fn fits(recogniser: &mut Recogniser, value: &Value, tries: &mut usize) -> Result<bool, LimitError> {
    match value {
        Value::Object(members) => {
            if !text(recogniser, "{")? {
                return Ok(false);
            }
            Ok(members_fit(recogniser, members, tries)? && text(recogniser, "}")?)
        }
        Value::Array(items) => {
            if !text(recogniser, "[")? {
                return Ok(false);
            }
            for (at, item) in items.iter().enumerate() {
                if (at > 0 && !text(recogniser, ", ")?) || !fits(recogniser, item, tries)? {
                    return Ok(false);
                }
            }
            text(recogniser, "]")
        }
        scalar => text(recogniser, &scalar.to_string()),
    }
}

/// Moves past all members, whichever fits next first.
fn members_fit(
    recogniser: &mut Recogniser,
    members: &Map<String, Value>,
    tries: &mut usize,
) -> Result<bool, LimitError> {
    let mut left: Vec<(&String, &Value)> = members.iter().collect();
    place(recogniser, &mut left, true, tries)
}

/// Moves past the members that are left; where one that fits leads nowhere, another is tried.
fn place(
    recogniser: &mut Recogniser,
    left: &mut Vec<(&String, &Value)>,
    first: bool,
    tries: &mut usize,
) -> Result<bool, LimitError> {
    if left.is_empty() {
        return Ok(true);
    }
    let start = recogniser.position();
    // Those that leave most of the others possible next come first.
    let mut fitting = Vec::new();
    for (at, (key, value)) in left.iter().enumerate() {
        if *tries == 0 {
            return Ok(false);
        }
        *tries -= 1;
        recogniser.go_to(start);
        if !member(recogniser, key, value, first, tries)? {
            continue;
        }
        let after = recogniser.position();
        let mut impossible = 0;
        for (other, _) in left.iter().filter(|(other, _)| other != key) {
            recogniser.go_to(after);
            let separated = format!(", {}: ", quoted(other));
            impossible += usize::from(!text(recogniser, &separated)?);
        }
        fitting.push((impossible, at, after));
    }
    fitting.sort_unstable_by_key(|&(impossible, at, _)| (impossible, at));
    for (_, at, after) in fitting {
        recogniser.go_to(after);
        let taken = left.remove(at);
        let fits = place(recogniser, left, false, tries)?;
        left.insert(at, taken);
        if fits {
            return Ok(true);
        }
    }
    Ok(false)
}

fn member(
    recogniser: &mut Recogniser,
    key: &str,
    value: &Value,
    first: bool,
    tries: &mut usize,
) -> Result<bool, LimitError> {
    let separator = if first { "" } else { ", " };
    Ok(text(recogniser, &format!("{separator}{}: ", quoted(key)))?
        && fits(recogniser, value, tries)?)
}

fn text(recogniser: &mut Recogniser, text: &str) -> Result<bool, LimitError> {
    Ok(recogniser.push_all(text.as_bytes())? == text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Limits;
    use crate::grammar::schema::{SchemaOptions, compile};
    use serde_json::json;

    #[test]
    fn order_alone_is_set_aside() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "object", "properties": {"x": {}, "y": {"type": "null"}}},
                "c": {"type": "string"},
            },
            "required": ["c"],
        });
        let grammar = compile(&schema, &SchemaOptions::default()).unwrap().grammar;
        let mut recogniser = Recogniser::new(&grammar, &Limits::default()).unwrap();
        for (value, expected) in [
            (json!({"c": "", "b": {"y": null, "x": 1}, "a": 1}), true),
            (json!({"z": 1, "c": "", "a": 1}), true),
            (json!({"c": "", "a": "wrong"}), false),
            (json!({"b": {}, "a": 1}), false),
        ] {
            let found = matches_in_some_order(&mut recogniser, &value).unwrap();
            assert_eq!(found, expected, "{value}");
        }
    }
}
