//! `snaffle grammar`: is a GBNF text right, and what does a schema become?

use super::args::Grammar;
use super::context::Context;
use super::error::Failure;
use super::input::read_text;
use super::style::{GOOD, paint};
use crate::grammar::gbnf::{GbnfError, parse};
use crate::grammar::schema::{SchemaOptions, compile};
use crate::grammar::{Grammar as Rules, Limits};
use crate::trace::sanitize_line;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Runs it.
///
/// # Errors
/// A file that is wrong or cannot be read.
pub fn run(context: &mut Context, command: &Grammar) -> Result<(), Failure> {
    match command {
        Grammar::Check { file } => check(context, file),
        Grammar::Compile {
            schema,
            coverage,
            key_order,
        } => compile_schema(context, schema, *coverage, key_order.options()),
    }
}

/// A grammar from a file, with its warnings told.
///
/// # Errors
/// A file that is wrong or cannot be read.
pub fn read(context: &mut Context, file: &Path) -> Result<Rules, Failure> {
    let text = read_text(file)?;
    let parsed = parse(&text, &Limits::default()).map_err(|error| wrong(file, &error))?;
    for warning in &parsed.warnings {
        context
            .terminal
            .warn(&format!("{}: {}", file.display(), first_line(warning)));
    }
    Ok(parsed.grammar)
}

/// A JSON Schema from a file.
///
/// # Errors
/// A file that is no JSON or cannot be read.
pub fn read_schema(file: &Path) -> Result<Value, Failure> {
    serde_json::from_str(&read_text(file)?)
        .map_err(|error| Failure::input(format!("{}: not JSON: {error}", file.display())))
}

fn check(context: &mut Context, file: &Path) -> Result<(), Failure> {
    let grammar = read(context, file)?;
    let rules = grammar.rules().len();
    let terminal = &mut context.terminal;
    if terminal.json {
        let value = json!({ "file": file.to_string_lossy(), "ok": true, "rules": rules });
        return Ok(terminal.write_json(&value)?);
    }
    let plural = if rules == 1 { "rule" } else { "rules" };
    Ok(writeln!(
        terminal.out,
        "{}: {} ({rules} {plural})",
        file.display(),
        paint(GOOD, "ok")
    )?)
}

fn compile_schema(
    context: &mut Context,
    file: &Path,
    coverage: bool,
    mut options: SchemaOptions,
) -> Result<(), Failure> {
    options.gbnf = true;
    let schema = read_schema(file)?;
    let refused =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", file.display()));
    let compiled = compile(&schema, &options).map_err(|error| refused(&error))?;
    let terminal = &mut context.terminal;
    if !coverage {
        let text = compiled
            .grammar
            .to_gbnf()
            .map_err(|error| refused(&error))?;
        return Ok(write!(terminal.out, "{text}")?);
    }
    for entry in compiled.coverage.entries() {
        let place = if entry.pointer.is_empty() {
            "/"
        } else {
            &entry.pointer
        };
        let note = entry.note.as_deref().unwrap_or_default();
        writeln!(
            terminal.out,
            "{:<10}  {}  {}  {}",
            entry.treatment.to_string(),
            sanitize_line(&entry.keyword),
            sanitize_line(place),
            sanitize_line(note),
        )?;
    }
    Ok(())
}

/// A GBNF error: its first line is the message, its excerpt the detail.
fn wrong(file: &Path, error: &GbnfError) -> Failure {
    let text = error.to_string();
    let (line, excerpt) = text.split_once('\n').unwrap_or((&text, ""));
    let failure = Failure::input(format!("{}: {line}", file.display()));
    if excerpt.is_empty() {
        failure
    } else {
        failure.detail(excerpt)
    }
}

fn first_line(text: impl ToString) -> String {
    text.to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
