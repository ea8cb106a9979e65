//! What a file holds: a GBNF grammar, a JSON Schema or a list of tools, told apart by its content.

use std::path::Path;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use crate::bench::conformance::judge::validator;
use crate::call::{
    Dialect, Domains, Gate, Moves, Permission, Policy, Reply, TurnOptions, is_tool_list,
    read_tools, turn_grammar,
};
use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::input::read_text;
use crate::grammar::gbnf::{GbnfError, parse};
use crate::grammar::schema::{CoverageEntry, SchemaOptions, Treatment, compile};
use crate::grammar::{Grammar, Limits};

/// A grammar, and what is known of its texts.
#[derive(Debug)]
pub struct Source {
    /// The grammar.
    pub grammar: Grammar,
    /// What became of the keywords of a schema, or of each tool's: nothing for GBNF.
    pub coverage: Vec<Report>,
    /// Who judges texts of the grammar.
    pub judge: Judge,
}

/// The coverage of a schema.
#[derive(Debug)]
pub struct Report {
    /// The tool whose arguments it describes, if it is one's.
    pub tool: Option<String>,
    /// Keyword by keyword.
    pub entries: Vec<CoverageEntry>,
}

/// Who says whether a text of the grammar is right beyond the grammar.
pub enum Judge {
    /// Nobody: the grammar is all there is.
    Nobody,
    /// The schema's validator.
    Schema(Box<Validator>),
    /// The gate that every call passes.
    Tools(Box<(Gate, Moves)>),
    /// The validator cannot use the schema, for this reason.
    Unusable(String),
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Schema(_) => "Schema",
            Self::Tools(_) => "Tools",
            Self::Unusable(_) => "Unusable",
        })
    }
}

impl Source {
    /// Reads `file` (`-`: standard input).
    ///
    /// # Errors
    /// A file that is wrong or cannot be read.
    pub fn read(
        context: &mut Context,
        file: &Path,
        options: &SchemaOptions,
    ) -> Result<Self, Failure> {
        let text = read_text(file)?;
        Self::of_text(context, file, &text, options)
    }

    /// The same, of a text that `file` holds.
    ///
    /// # Errors
    /// A text that is wrong.
    pub fn of_text(
        context: &mut Context,
        file: &Path,
        text: &str,
        options: &SchemaOptions,
    ) -> Result<Self, Failure> {
        if is_json(text) {
            let value = parse_json(file, text)?;
            Self::of_json(file, &value, options)
        } else {
            Ok(Self {
                grammar: parse_gbnf(context, file, text)?,
                coverage: Vec::new(),
                judge: Judge::Nobody,
            })
        }
    }

    /// A schema or a list of tools.
    ///
    /// # Errors
    /// One that is refused.
    pub fn of_json(file: &Path, value: &Value, options: &SchemaOptions) -> Result<Self, Failure> {
        let wrong =
            |error: &dyn std::error::Error| Failure::input(format!("{}: {error}", file.display()));
        if is_tool_list(value) {
            let (moves, turn) = legal(file, value, options)?;
            let turn = turn_grammar(&moves, &turn).map_err(|error| wrong(&error))?;
            let coverage = turn.coverage.into_iter().map(|coverage| Report {
                tool: Some(coverage.tool),
                entries: coverage.entries,
            });
            return Ok(Self {
                grammar: turn.grammar,
                coverage: coverage.collect(),
                judge: Judge::Tools(Box::new((Gate::new(), moves))),
            });
        }
        let compiled = compile(value, options).map_err(|error| wrong(&error))?;
        Ok(Self {
            grammar: compiled.grammar,
            coverage: vec![Report {
                tool: None,
                entries: compiled.coverage.entries().to_vec(),
            }],
            judge: match validator(value, options.formats) {
                Ok(validator) => Judge::Schema(Box::new(validator)),
                Err(reason) => Judge::Unusable(reason),
            },
        })
    }

    /// Whether every text of the grammar is right.
    pub fn is_complete(&self) -> bool {
        let mut entries = self.coverage.iter().flat_map(|report| &report.entries);
        entries.all(|entry| entry.treatment != Treatment::Checked)
    }
}

impl Judge {
    /// What is wrong with a text of the grammar; `None` if nothing is known to be.
    pub fn broken(&mut self, text: &str) -> Option<String> {
        match self {
            Self::Nobody | Self::Unusable(_) => None,
            Self::Schema(validator) => match serde_json::from_str::<Value>(text) {
                Ok(value) => {
                    let error = validator.validate(&value).err()?;
                    let place = error.instance_path().to_string();
                    Some(if place.is_empty() {
                        error.to_string()
                    } else {
                        format!("{error} (at {place})")
                    })
                }
                Err(error) => Some(error.to_string()),
            },
            Self::Tools(tools) => {
                let (gate, moves) = &mut **tools;
                match Dialect::Snaffle.parse(text) {
                    Ok(Reply::Calls(calls)) => calls
                        .into_iter()
                        .find_map(|call| gate.check(moves, call).err())
                        .map(|failure| failure.message),
                    Ok(Reply::Ask(_) | Reply::Answer(_)) => None,
                    Err(failure) => Some(failure.message),
                }
            }
        }
    }
}

/// GBNF begins with a rule's name or a comment, JSON with neither.
fn is_json(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim();
    text.starts_with(['{', '[', '"']) || matches!(text, "true" | "false" | "null")
}

/// Only the way from a text to its grammar, for measuring it.
///
/// # Errors
/// A text that is wrong.
pub fn compile_only(file: &Path, text: &str, options: &SchemaOptions) -> Result<(), Failure> {
    let wrong = |error: &dyn std::error::Error| Failure::input(error.to_string());
    if !is_json(text) {
        let parsed = parse(text, &Limits::default());
        return parsed.map(drop).map_err(|error| wrong(&error));
    }
    let value = parse_json(file, text)?;
    if is_tool_list(&value) {
        let (moves, turn) = legal(file, &value, options)?;
        let turn = turn_grammar(&moves, &turn);
        return turn.map(drop).map_err(|error| wrong(&error));
    }
    let compiled = compile(&value, options);
    compiled.map(drop).map_err(|error| wrong(&error))
}

/// The moves of a turn in which all of the tools can be called.
fn legal(
    file: &Path,
    tools: &Value,
    options: &SchemaOptions,
) -> Result<(Moves, TurnOptions), Failure> {
    let tools = read_tools(tools)
        .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    let mut moves = Moves::default();
    for tool in tools {
        moves.add(Arc::new(tool), Domains::new(), &Policy::default());
    }
    // Who has to be asked is not the question here.
    for tool in &mut moves.moves {
        tool.permission = Permission::Allow;
    }
    let defaults = TurnOptions::default();
    let turn = TurnOptions {
        schema: SchemaOptions {
            key_order: options.key_order,
            ..defaults.schema
        },
        ..defaults
    };
    Ok((moves, turn))
}

/// A grammar from a file, with its warnings told.
///
/// # Errors
/// A file that is wrong or cannot be read.
pub fn read_grammar(context: &mut Context, file: &Path) -> Result<Grammar, Failure> {
    let text = read_text(file)?;
    parse_gbnf(context, file, &text)
}

fn parse_gbnf(context: &mut Context, file: &Path, text: &str) -> Result<Grammar, Failure> {
    let parsed = parse(text, &Limits::default()).map_err(|error| wrong(file, &error))?;
    for warning in &parsed.warnings {
        let warning = warning.to_string();
        let line = warning.lines().next().unwrap_or_default();
        let file = file.display();
        context.terminal.warn(&format!("{file}: {line}"));
    }
    Ok(parsed.grammar)
}

/// A JSON Schema from a file.
///
/// # Errors
/// A file that is no JSON or cannot be read.
pub fn read_schema(file: &Path) -> Result<Value, Failure> {
    parse_json(file, &read_text(file)?)
}

fn parse_json(file: &Path, text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| Failure::input(format!("{}: not JSON: {error}", file.display())))
}

/// A GBNF error: its first line is the message, its excerpt the detail.
pub fn wrong(file: &Path, error: &GbnfError) -> Failure {
    let text = error.to_string();
    let (line, excerpt) = text.split_once('\n').unwrap_or((&text, ""));
    let failure = Failure::input(format!("{}: {line}", file.display()));
    if excerpt.is_empty() {
        failure
    } else {
        failure.detail(excerpt)
    }
}
