//! Reads a simulated world: every mistake is named with its line.

use super::World;
use super::rule::{Add, Rules, Selection, Set, Want, selection_in};
use super::store::WorldFile;
use crate::call::arguments::ArgumentSchema;
use crate::call::{Effect, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Bytes of the largest file of a world, and of its state.
pub(super) const LARGEST: u64 = 4 << 20;

/// What can be wrong with a simulated world.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is too large.
    #[error("{}: larger than {LARGEST} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// The state is not one.
    #[error("{}: not the state of this world: {message}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Another run holds it, or its lock file cannot be made.
    #[error("{}: cannot lock the world: {source}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new state cannot be written. The world is as it was.
    #[error("{}: cannot save the world: {source}", path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new state was written and may not survive a power cut.
    #[error("{}: the world was saved, but not synced to disk: {source}", path.display())]
    Unsynced {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A tool does not do what it was asked to; nothing has changed.
    #[error("{0}")]
    Refused(String),
}

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

/// A text file of bearable size.
pub(super) fn read(path: &Path) -> Result<String, SimulatedError> {
    let error = |source| SimulatedError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(error)?;
    file.take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(error)?;
    if text.len() as u64 > LARGEST {
        return Err(SimulatedError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(text)
}
