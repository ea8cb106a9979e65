//! Reads tool definitions as they are found elsewhere: MCP servers, OpenAI's and Anthropic's APIs.
//!
//! A list is an array, or an object with it under `tools`. A tool is an object with `name` and a
//! JSON Schema of its arguments under `inputSchema` (MCP), `input_schema` (Anthropic) or
//! `parameters` (OpenAI, whose tools may be wrapped in `function`).

use serde_json::{Map, Value, json};

use super::json::shortened;
use super::spec::{Effect, ToolSpec};

/// Where the schema of a tool's arguments may stand.
const SCHEMAS: [&str; 3] = ["inputSchema", "input_schema", "parameters"];

/// Why a list of tools cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolListError {
    /// There is no tool in it.
    #[error("the list has no tool")]
    Empty,
    /// An entry is no tool.
    #[error("tool {number} {problem}")]
    Tool {
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        problem: String,
    },
}

/// Whether `value` is a list of tools rather than a JSON Schema: an array, an object with an array
/// under `tools`, or a single tool.
pub fn is_tool_list(value: &Value) -> bool {
    entries(value).is_some()
}

fn entries(value: &Value) -> Option<Vec<&Value>> {
    match value {
        Value::Array(entries) => Some(entries.iter().collect()),
        Value::Object(members) => match members.get("tools") {
            Some(Value::Array(entries)) => Some(entries.iter().collect()),
            _ => is_tool(members).then(|| vec![value]),
        },
        _ => None,
    }
}

/// A schema has no `name`; a property called so would stand below `properties`.
fn is_tool(members: &Map<String, Value>) -> bool {
    let function = members.get("function").and_then(Value::as_object);
    let members = function.unwrap_or(members);
    members.get("name").is_some_and(Value::is_string)
        && SCHEMAS
            .iter()
            .any(|key| members.get(*key).is_some_and(Value::is_object))
}

/// The tools of a list. What they do to the world is not said there, so the worst is assumed
/// ([`Effect::Risk`]); a tool without a schema takes no argument.
///
/// # Errors
/// The first entry that is no tool, or two of one name.
pub fn read_tools(value: &Value) -> Result<Vec<ToolSpec>, ToolListError> {
    let mut tools: Vec<ToolSpec> = Vec::new();
    for (at, entry) in entries(value).unwrap_or_default().into_iter().enumerate() {
        let wrong = |problem: &str| ToolListError::Tool {
            number: at + 1,
            problem: problem.to_owned(),
        };
        let members = entry.as_object().ok_or_else(|| wrong("is no object"))?;
        let members = match members.get("function") {
            Some(Value::Object(function)) => function,
            _ => members,
        };
        let name = members
            .get("name")
            .and_then(Value::as_str)
            .ok_or_else(|| wrong("has no name"))?;
        if !ToolSpec::is_name(name) {
            return Err(wrong(&format!(
                "is called {:?}: a name is 1 to 64 of A-Z a-z 0-9 _ . -",
                shortened(name, 80)
            )));
        }
        if tools.iter().any(|tool| tool.name == name) {
            return Err(wrong(&format!("is called {name}, like one before it")));
        }
        let text = members.get("description").and_then(Value::as_str);
        tools.push(ToolSpec {
            name: name.to_owned(),
            description: text.unwrap_or_default().to_owned(),
            parameters: SCHEMAS
                .iter()
                .find_map(|key| members.get(*key))
                .cloned()
                .unwrap_or_else(|| json!({ "type": "object" })),
            effect: Effect::Risk,
            idempotent: false,
        });
    }
    if tools.is_empty() {
        return Err(ToolListError::Empty);
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_writing_a_tool_is_read() {
        let schema = json!({ "type": "object", "properties": { "город": { "type": "string" } } });
        for list in [
            json!([{ "name": "t", "parameters": schema }]),
            json!([{ "type": "function", "function": { "name": "t", "parameters": schema } }]),
            json!({ "tools": [{ "name": "t", "inputSchema": schema, "annotations": {} }] }),
            json!({ "name": "t", "input_schema": schema, "description": "d" }),
        ] {
            assert!(is_tool_list(&list), "{list}");
            let tools = read_tools(&list).unwrap();
            assert_eq!(tools.len(), 1);
            assert_eq!(tools[0].name, "t");
            assert_eq!(tools[0].parameters, schema);
        }
    }

    #[test]
    fn schemas_are_no_tools() {
        for schema in [
            json!(true),
            json!({}),
            json!({ "type": "object", "properties": { "name": {}, "parameters": {} } }),
            json!({ "name": "a schema with a name", "type": "object" }),
        ] {
            assert!(!is_tool_list(&schema), "{schema}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (list, says) in [
            (json!([]), "the list has no tool"),
            (json!([1]), "tool 1 is no object"),
            (json!([{}]), "tool 1 has no name"),
            (json!([{ "name": "a b" }]), "tool 1 is called \"a b\""),
            (
                json!([{ "name": "a" }, { "name": "a" }]),
                "tool 2 is called a, like one before it",
            ),
        ] {
            assert!(read_tools(&list).unwrap_err().to_string().starts_with(says));
        }
    }
}
