//! `snaffle generate`: text that a schema or a grammar accepts, and nothing else.

use super::args::Generate;
use super::command_grammar::{read, read_schema};
use super::context::Context;
use super::engine::Engine;
use super::error::Failure;
use super::exit::Exit;
use super::input;
use super::interrupt::Interrupts;
use crate::grammar::Grammar;
use crate::grammar::schema::compile;
use crate::model::{GenerateRequest, Generation, Generator, Message, Prompt, Role, Stop};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::io::{self, Write};

/// What the text must be.
struct Wanted {
    grammar: Option<Grammar>,
    /// Where the grammar does not say all of it.
    schema: Option<Value>,
}

/// Runs it.
///
/// # Errors
/// A wrong input, a model that cannot be used, or a text that was not finished.
pub fn run(context: &mut Context, args: &Generate) -> Result<Exit, Failure> {
    let settings = context.settings(&args.settings.given)?;
    let text = input::request(&args.prompt)?;
    let wanted = wanted(context, args)?;
    let interrupts = Interrupts::install()?;
    let cancel = interrupts.begin();
    let mut engine = Engine::open(&settings, &ProgressBar::hidden())?;
    let mut messages = Vec::new();
    if let Some(system) = &args.system {
        messages.push(message(Role::System, system));
    }
    messages.push(message(Role::User, &text));
    let prompt = Prompt {
        stable: messages.len() - 1,
        messages,
    };
    let generation = engine.generator.generate(&GenerateRequest {
        prompt: &prompt,
        grammar: wanted.grammar.as_ref(),
        sampling: settings.sampling,
        max_tokens: settings.max_tokens,
        jump_ahead: true,
        calibration: None,
        cancel,
    })?;
    let broken = wanted
        .schema
        .and_then(|schema| broken_rule(&schema, &generation.text));
    write(context, &generation, broken.as_deref())?;
    match generation.stop {
        Stop::Cancelled => Err(Failure::new(Exit::Cancelled, "cancelled")),
        Stop::Budget | Stop::Closed => {
            let message = format!(
                "the text was cut after {} tokens{}",
                settings.max_tokens,
                if generation.stop == Stop::Closed {
                    " and closed"
                } else {
                    ""
                }
            );
            Err(Failure::new(Exit::Unfinished, message).hint("--max-tokens allows more"))
        }
        Stop::Complete => match broken {
            None => Ok(Exit::Success),
            Some(broken) => Err(Failure::new(
                Exit::Unfinished,
                format!("the text breaks a rule that no grammar can hold: {broken}"),
            )),
        },
    }
}

fn message(role: Role, content: &str) -> Message {
    Message {
        role,
        content: content.to_owned(),
    }
}

fn wanted(context: &mut Context, args: &Generate) -> Result<Wanted, Failure> {
    if let Some(file) = &args.grammar {
        return Ok(Wanted {
            grammar: Some(read(context, file)?),
            schema: None,
        });
    }
    let Some(file) = &args.schema else {
        return Ok(Wanted {
            grammar: None,
            schema: None,
        });
    };
    let schema = read_schema(file)?;
    let compiled = compile(&schema, &args.key_order.options())
        .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    let complete = compiled.coverage.is_complete();
    Ok(Wanted {
        grammar: Some(compiled.grammar),
        schema: (!complete).then_some(schema),
    })
}

/// The first rule of `schema` that `text` breaks.
fn broken_rule(schema: &Value, text: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Some(error.to_string()),
    };
    match jsonschema::validator_for(schema) {
        Ok(validator) => validator
            .validate(&value)
            .err()
            .map(|error| error.to_string()),
        Err(error) => Some(format!("the schema cannot be checked: {error}")),
    }
}

fn write(
    context: &mut Context,
    generation: &Generation,
    broken: Option<&str>,
) -> Result<(), Failure> {
    let terminal = &mut context.terminal;
    if terminal.json {
        let stats = &generation.stats;
        let stop = match generation.stop {
            Stop::Complete => "complete",
            Stop::Closed => "closed",
            Stop::Budget => "budget",
            Stop::Cancelled => "cancelled",
        };
        return Ok(terminal.write_json(&json!({
            "text": generation.text,
            "stop": stop,
            "broken_rule": broken,
            "log_probability": generation.log_probability,
            "prompt_evaluated": stats.prompt_evaluated,
            "prompt_reused": stats.prompt_reused,
            "forced": stats.forced,
            "chosen": stats.chosen,
            "seconds": stats.total_time.as_secs_f64(),
        }))?);
    }
    // The text is the product: it goes out as it is, except to a terminal, which would obey it.
    if terminal.out.is_terminal() {
        writeln!(terminal.out, "{}", crate::trace::sanitize(&generation.text))?;
    } else {
        writeln!(io::stdout().lock(), "{}", generation.text)?;
    }
    Ok(())
}
