//! The leaderboard's functions as tools: its own kind of schema becomes JSON Schema.

use super::dataset::Function;
use crate::call::{Effect, ToolSpec};
use serde_json::{Map, Value, json};

/// The function as a tool that only reads: nothing is ever executed.
///
/// Types are renamed (`dict`, `float`, `tuple`, `any`). Keywords are kept where they are JSON
/// Schema's and hold for the type: an `enum` whose values are written as texts is converted, one
/// that belongs to a list's items is moved there, one that fits nothing is dropped, as are required
/// names without a property.
pub fn tool(function: &Function) -> ToolSpec {
    ToolSpec {
        name: function.name.clone(),
        description: function.description.clone(),
        parameters: schema(&function.parameters, true),
        effect: Effect::Read,
        idempotent: true,
    }
}

fn schema(given: &Value, is_root: bool) -> Value {
    let mut made = Map::new();
    let word = given.get("type").and_then(Value::as_str).unwrap_or("any");
    let kind = match word {
        "dict" | "object" => "object",
        "float" | "number" => "number",
        "tuple" | "array" | "list" => "array",
        "integer" => "integer",
        "boolean" | "bool" => "boolean",
        // The checker takes `any` for a text.
        _ => "string",
    };
    made.insert("type".into(), kind.into());
    if let Some(description) = given.get("description").filter(|d| d.is_string()) {
        made.insert("description".into(), description.clone());
    }
    let mut items = None;
    match kind {
        "object" => object(given, is_root, &mut made),
        "array" => {
            items = Some(
                given
                    .get("items")
                    .map_or_else(|| json!({"type": "string"}), |items| schema(items, false)),
            );
            copy_counts(given, &["minItems", "maxItems"], &mut made);
        }
        "integer" | "number" => copy_numbers(given, &["minimum", "maximum"], &mut made),
        _ => {}
    }
    if let Some(values) = given.get("enum").and_then(Value::as_array) {
        let item_kind = items
            .as_ref()
            .and_then(|items| items.get("type")?.as_str())
            .unwrap_or_default()
            .to_owned();
        if let Some(values) = fitting(values, kind) {
            made.insert("enum".into(), values.into());
        } else if let (Some(Value::Object(items)), Some(values)) =
            (&mut items, fitting(values, &item_kind))
        {
            items.insert("enum".into(), values.into());
        }
    }
    if let Some(items) = items {
        made.insert("items".into(), items);
    }
    Value::Object(made)
}

fn object(given: &Value, is_root: bool, made: &mut Map<String, Value>) {
    let properties: Map<String, Value> = given
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.clone(), schema(property, false)))
        .collect();
    let required: Vec<Value> = given
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|name| {
            name.as_str()
                .is_some_and(|name| properties.contains_key(name))
        })
        .cloned()
        .collect();
    // A dictionary without declared keys may have any.
    let open = properties.is_empty() && !is_root;
    made.insert("properties".into(), properties.into());
    made.insert("required".into(), required.into());
    made.insert("additionalProperties".into(), open.into());
}

fn copy_counts(given: &Value, keywords: &[&str], made: &mut Map<String, Value>) {
    for keyword in keywords {
        if let Some(count) = given.get(keyword).filter(|count| count.is_u64()) {
            made.insert((*keyword).to_owned(), count.clone());
        }
    }
}

fn copy_numbers(given: &Value, keywords: &[&str], made: &mut Map<String, Value>) {
    for keyword in keywords {
        if let Some(number) = given.get(keyword).filter(|number| number.is_number()) {
            made.insert((*keyword).to_owned(), number.clone());
        }
    }
}

/// The values in this type, each once; `None` where one of them is not of it.
fn fitting(values: &[Value], kind: &str) -> Option<Vec<Value>> {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        let value = match (kind, value) {
            ("string", Value::String(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("integer", Value::Number(number)) if number.is_i64() => value.clone(),
            ("number", Value::Number(_)) => value.clone(),
            ("integer", Value::String(text)) => text.parse::<i64>().ok()?.into(),
            ("array", Value::Array(_)) => value.clone(),
            _ => return None,
        };
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_keywords_become_json_schema() {
        for (given, expected) in [
            (
                json!({"type": "float", "optional": true, "default": 1}),
                json!({"type": "number"}),
            ),
            (
                json!({"type": "any", "description": "x"}),
                json!({"type": "string", "description": "x"}),
            ),
            (
                json!({"type": "tuple", "items": {"type": "float"}, "minItems": 2}),
                json!({"type": "array", "minItems": 2, "items": {"type": "number"}}),
            ),
            (
                json!({"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]}),
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
            ),
            (
                json!({"type": "integer", "enum": ["1", "2", "1"]}),
                json!({"type": "integer", "enum": [1, 2]}),
            ),
            (
                json!({"type": "boolean", "enum": ["True", "dontcare"]}),
                json!({"type": "boolean"}),
            ),
            (
                json!({"type": "string", "enum": []}),
                json!({"type": "string"}),
            ),
            (
                json!({"type": "dict"}),
                json!({"type": "object", "properties": {}, "required": [], "additionalProperties": true}),
            ),
        ] {
            assert_eq!(schema(&given, false), expected, "{given}");
        }
        let function = Function {
            name: "f.g".into(),
            description: "d".into(),
            parameters: json!({"type": "dict", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}),
        };
        assert_eq!(
            tool(&function).parameters,
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})
        );
    }
}
