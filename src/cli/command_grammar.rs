//! `snaffle grammar`: is a GBNF text right, what does a schema become, what do they match, what do
//! they cost?

mod explain;
mod matching;
mod sample;
mod source;
mod timing;

pub use source::{read_grammar as read, read_schema};

use super::args::{Grammar, GrammarBench, Order};
use super::context::Context;
use super::engine::Words;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_text;
use super::style::{GOOD, paint};
use crate::grammar::gbnf::{GbnfWarning, parse};
use crate::grammar::lower::LowerError;
use crate::grammar::schema::{Bounds, SchemaOptions};
use crate::grammar::{Limits, Recogniser, SampleLength, for_llama_cpp};
use serde_json::{Value, json};
use source::Source;
use std::io::Write;
use std::path::Path;

/// Runs it.
///
/// # Errors
/// A file that is wrong or cannot be read.
pub fn run(context: &mut Context, command: &Grammar) -> Result<Exit, Failure> {
    let options = SchemaOptions::default();
    match command {
        Grammar::Check { file } => check(context, file)?,
        Grammar::Compile {
            schema,
            coverage,
            llama_cpp,
            key_order,
        } => compile_schema(context, schema, *coverage, *llama_cpp, *key_order)?,
        Grammar::Explain { schema } => {
            let source = of_schema(schema, &options)?;
            explain::write(context, &source)?;
        }
        Grammar::Sample {
            file,
            number,
            seed,
            length,
        } => {
            let mut source = Source::read(context, file, &options)?;
            let length = SampleLength {
                wanted: *length,
                most: SampleLength::default().most.max(*length),
            };
            sample::write(context, &mut source, *number, *seed, length)?;
        }
        Grammar::Match { grammar, text } => {
            let source = Source::read(context, grammar, &options)?;
            let text = matching::text(text)?;
            return matching::write(context, &source.grammar, &text);
        }
        Grammar::Bench(args) => measure(context, args)?,
    }
    Ok(Exit::Success)
}

fn of_schema(file: &Path, options: &SchemaOptions) -> Result<Source, Failure> {
    Source::of_json(file, &read_schema(file)?, options)
}

fn check(context: &mut Context, file: &Path) -> Result<(), Failure> {
    let limits = Limits::default();
    let text = read_text(file)?;
    let parsed = parse(&text, &limits).map_err(|error| source::wrong(file, &error))?;
    match Recogniser::new(&parsed.grammar, &limits) {
        // Whether the tokens that it names exist is for a vocabulary to say.
        Ok(_) | Err(LowerError::UnknownToken { .. }) => {}
        Err(error) => return Err(Failure::input(format!("{}: {error}", file.display()))),
    }
    let rules = parsed.grammar.rules().len();
    let terminal = &mut context.terminal;
    if terminal.json {
        let warnings: Vec<Value> = parsed.warnings.iter().map(warning).collect();
        return Ok(terminal.write_json(&json!({
            "file": file.to_string_lossy(),
            "ok": true,
            "rules": rules,
            "warnings": warnings,
        }))?);
    }
    for warning in &parsed.warnings {
        let warning = warning.to_string();
        let line = warning.lines().next().unwrap_or_default();
        terminal.warn(&format!("{}: {line}", file.display()));
    }
    let plural = if rules == 1 { "rule" } else { "rules" };
    Ok(writeln!(
        terminal.out,
        "{}: {} ({rules} {plural})",
        file.display(),
        paint(GOOD, "ok")
    )?)
}

fn warning(warning: &GbnfWarning) -> Value {
    json!({
        "line": warning.place.line,
        "column": warning.place.column,
        "message": warning.kind.to_string(),
    })
}

fn compile_schema(
    context: &mut Context,
    file: &Path,
    coverage: bool,
    llama_cpp: bool,
    order: Order,
) -> Result<(), Failure> {
    let mut options = SchemaOptions {
        gbnf: true,
        ..order.options()
    };
    if llama_cpp {
        // Bounds that only end runaway repetition would cost its sampler more than they are worth.
        options.bounds = Bounds {
            string: None,
            items: None,
            properties: None,
            ..options.bounds
        };
    }
    let mut source = of_schema(file, &options)?;
    if llama_cpp {
        source.grammar = for_llama_cpp(&source.grammar, &Limits::default())
            .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    }
    if coverage {
        return explain::write(context, &source);
    }
    let gbnf = |source: &Source| {
        let printed = source.grammar.to_gbnf();
        printed.map_err(|error| Failure::input(format!("{}: {error}", file.display())))
    };
    let terminal = &mut context.terminal;
    if terminal.json {
        let mut value = explain::to_json(&source);
        value["grammar"] = gbnf(&source)?.into();
        return Ok(terminal.write_json(&value)?);
    }
    Ok(write!(terminal.out, "{}", gbnf(&source)?)?)
}

fn measure(context: &mut Context, args: &GrammarBench) -> Result<(), Failure> {
    let options = SchemaOptions::default();
    let settings = context.settings(&args.settings.given)?;
    let text = read_text(&args.file)?;
    let source = Source::of_text(context, &args.file, &text, &options)?;
    let models = if args.vocab.is_empty() {
        vec![settings.model.clone()]
    } else {
        args.vocab.clone()
    };
    let vocabularies = models
        .iter()
        .map(|model| Words::open(model, &settings))
        .collect::<Result<Vec<_>, _>>()?;
    let compile = || source::compile_only(&args.file, &text, &options);
    timing::write(
        context,
        &source,
        &compile,
        &vocabularies,
        args.number,
        settings.sampling.seed,
        settings.mask_store,
    )
}
