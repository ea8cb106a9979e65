//! Tools that a user declares in a TOML file: a schema, and a program that gets the arguments as
//! JSON on standard input. Nobody needs Rust to add one.
//!
//! `file` reads the declarations, `process` runs programs within limits, and the tool itself is
//! here.

mod file;
mod process;

pub use file::{CommandError, Declaration, Live, load};
pub use process::{ProcessError, Program};

use super::text::sanitised;
use crate::call::{Call, CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::{Outcome, Took, Tool, ToolError};
use serde_json::{Value, json};

/// A declared tool.
#[derive(Debug)]
pub struct CommandTool {
    declaration: Declaration,
}

impl CommandTool {
    /// The tool of a declaration.
    pub fn new(declaration: Declaration) -> Self {
        Self { declaration }
    }
}

/// The tools declared in the file at `path`.
///
/// # Errors
/// As [`load`].
pub fn tools(path: &std::path::Path) -> Result<Vec<Box<dyn Tool>>, CommandError> {
    Ok(load(path)?
        .into_iter()
        .map(|declaration| Box::new(CommandTool::new(declaration)) as Box<dyn Tool>)
        .collect())
}

impl Tool for CommandTool {
    fn spec(&self) -> &ToolSpec {
        &self.declaration.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let mut domains = Domains::new();
        for (argument, live) in &self.declaration.domains {
            let values = match live {
                Live::Values(values) => values.clone(),
                Live::Program(program) => listed(program, argument).map_err(|message| {
                    ToolError::new(format!("{}: {message}", self.declaration.spec.name))
                })?,
            };
            domains.insert(argument.clone(), values);
        }
        Ok(domains)
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let spec = &self.declaration.spec;
        let arguments = Value::Object(call.call().arguments.clone()).to_string();
        let output = self
            .declaration
            .program
            .run(arguments.as_bytes())
            .map_err(|error| {
                let message = format!("{}: {error}", spec.name);
                if error.effect_unknown() && spec.effect != Effect::Read {
                    ToolError::unknown(message)
                } else {
                    ToolError::new(message)
                }
            })?;
        let changes = match spec.effect {
            Effect::Read => Vec::new(),
            Effect::Change | Effect::Risk => vec![format!("{} ran", spec.name)],
        };
        Ok(Outcome {
            result: result_of(&output),
            changes,
        })
    }

    /// By the declared check: it is given the arguments as the tool is; exit code 0 says that the
    /// effect took place (what it prints is the tool's result), 1 that it did not, and any other
    /// end that nobody knows.
    fn took_effect(&mut self, call: &Call) -> Result<Option<Took>, ToolError> {
        let Some(program) = &self.declaration.check else {
            return Ok(None);
        };
        let arguments = Value::Object(call.arguments.clone()).to_string();
        match program.run(arguments.as_bytes()) {
            Ok(output) => Ok(Some(Took {
                happened: true,
                result: Some(result_of(&output)).filter(|_| !output.trim_ascii().is_empty()),
            })),
            Err(ProcessError::Failed { status, .. }) if status.code() == Some(1) => {
                Ok(Some(Took {
                    happened: false,
                    result: None,
                }))
            }
            Err(error) => Err(ToolError::new(format!(
                "{}: the check: {error}",
                self.declaration.spec.name
            ))),
        }
    }

    fn answer_of(&self, outcome: &Outcome) -> Option<String> {
        self.declaration.ends.then(|| answer_in(&outcome.result))
    }
}

/// What a person is told of a result: its member `text` where it has one.
fn answer_in(result: &Value) -> String {
    match result.get("text").unwrap_or(result) {
        Value::String(text) => text.clone(),
        _ => crate::call::json::spaced(result),
    }
}

/// JSON as it is, any other text as `{"text": …}`.
fn result_of(output: &[u8]) -> Value {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    serde_json::from_str(text).unwrap_or_else(|_| json!({ "text": sanitised(text, usize::MAX) }))
}

/// The live values that a program lists: a JSON array, or a value a line.
fn listed(program: &Program, argument: &str) -> Result<Vec<Value>, String> {
    let output = program.run(b"").map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output);
    let mut values: Vec<Value> = match serde_json::from_str(text.trim()) {
        Ok(Value::Array(values)) => values,
        _ => text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(Value::from)
            .collect(),
    };
    if values.len() > MOST_VALUES {
        return Err(format!(
            "more than {MOST_VALUES} values are listed for {argument}"
        ));
    }
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| seen.insert(value.to_string()));
    Ok(values)
}

/// Values that a program may list for one argument.
const MOST_VALUES: usize = 10_000;

#[cfg(test)]
mod tests;
