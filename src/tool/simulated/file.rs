//! Reads a simulated world: every mistake is named with its line.

use super::World;
use super::error::{SimulatedError, read};
use super::rule::{Add, Rules, Selection, Set, Want, selection_in};
use super::store::WorldFile;
use crate::call::arguments::ArgumentSchema;
use crate::call::{Effect, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    world: Map<String, Value>,
    #[serde(default)]
    tool: Vec<RawTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    name: Spanned<String>,
    description: String,
    effect: Effect,
    #[serde(default)]
    idempotent: bool,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    domains: BTreeMap<String, Selection>,
    #[serde(default)]
    require: Vec<Want>,
    #[serde(default)]
    add: Vec<Add>,
    #[serde(default)]
    set: Vec<Set>,
    #[serde(default)]
    remove: Vec<Selection>,
    #[serde(default)]
    give: Map<String, Value>,
    check: Option<Selection>,
}

/// Whether a TOML text is a simulated world: it has a table `world`.
pub fn is_world(text: &str) -> bool {
    toml::from_str::<toml::Table>(text)
        .is_ok_and(|file| file.get("world").is_some_and(toml::Value::is_table))
}

/// Reads the file at `path`: the world, and its tools with what they do.
///
/// # Errors
/// [`SimulatedError`]; also for a list that is not there and a schema that is none.
#[expect(
    private_interfaces,
    reason = "rules stay within the module; `tools` is the way in"
)]
pub fn load(path: &Path) -> Result<(WorldFile, Vec<(ToolSpec, Rules)>), SimulatedError> {
    let text = read(path)?;
    let invalid = |at: usize, message: String| SimulatedError::Invalid {
        path: path.to_owned(),
        line: text.as_bytes()[..at.min(text.len())]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
            + 1,
        message,
    };
    let raw: RawFile = toml::from_str(&text).map_err(|error| {
        invalid(
            error.span().map_or(0, |span| span.start),
            error.message().trim().replace('\n', ", "),
        )
    })?;
    let world = Value::Object(raw.world);
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(raw.tool.len());
    for tool in raw.tool {
        let at = tool.name.span().start;
        let (spec, rules) = declared(tool, &world).map_err(|message| invalid(at, message))?;
        if !names.insert(spec.name.clone()) {
            return Err(invalid(
                at,
                format!("there are two tools called `{}`", spec.name),
            ));
        }
        tools.push((spec, rules));
    }
    Ok((WorldFile::open(path, world)?, tools))
}

fn declared(tool: RawTool, world: &World) -> Result<(ToolSpec, Rules), String> {
    let name = tool.name.into_inner();
    if !ToolSpec::is_name(&name) {
        return Err(format!(
            "a tool's name is 1 to 64 letters, digits, `_`, `.` and `-`, not {name:?}"
        ));
    }
    let spec = ToolSpec {
        name,
        description: tool.description,
        parameters: tool
            .parameters
            .unwrap_or_else(|| serde_json::json!({"type": "object", "properties": {}})),
        effect: tool.effect,
        idempotent: tool.idempotent,
    };
    ArgumentSchema::new(&spec).map_err(|error| error.to_string())?;
    let rules = Rules {
        domains: tool.domains,
        require: tool.require,
        add: tool.add,
        set: tool.set,
        remove: tool.remove,
        give: tool.give,
        check: tool.check,
    };
    for argument in rules.domains.keys() {
        let properties = spec.parameters.get("properties");
        if properties.and_then(|p| p.get(argument)).is_none() {
            return Err(format!("`{}` has no argument `{argument}`", spec.name));
        }
    }
    for list in rules.lists() {
        if !world.pointer(list).is_some_and(Value::is_array) {
            return Err(format!("the world has no list at {list:?}"));
        }
    }
    for (name, what) in &rules.give {
        let Some(from) = what.get("from") else {
            continue;
        };
        let there = from.as_str().and_then(|from| world.pointer(from));
        if selection_in(what).is_none() || there.is_none() {
            return Err(format!("`give.{name}` is no selection from the world"));
        }
    }
    if rules.changes() && spec.effect == Effect::Read {
        return Err(format!(
            "`{}` only reads, and yet changes the world",
            spec.name
        ));
    }
    Ok((spec, rules))
}
