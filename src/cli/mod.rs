//! The command line: the only place that prints or exits.
//!
//! [`args`] is what was written, [`settings`] what it means; a command is one file
//! (`command_*.rs`) that writes through [`terminal`]; whatever goes wrong becomes a line and an
//! exit code in [`error`].

pub mod args;
pub mod args_bench;
pub mod args_decide;
pub mod args_fewshot;
mod bench_houses;
mod bench_requests;
mod bench_run;
#[cfg(test)]
mod bench_run_tests;
mod command_bench;
mod command_bench_assist;
mod command_bench_bfcl;
mod command_bench_home;
mod command_bench_replay;
mod command_bench_report;
mod command_bench_steps;
mod command_config;
mod command_conformance;
mod command_decide;
mod command_fewshot;
mod command_generate;
mod command_grammar;
mod command_model;
mod command_run;
mod command_task;
mod command_trace;
mod command_tune;
pub mod config;
mod context;
mod definition;
mod doubt;
mod engine;
pub mod error;
pub mod exit;
mod explain;
pub mod flags;
mod inbox;
mod input;
mod interrupt;
mod person;
mod progress;
pub mod settings;
mod style;
pub mod suggest;
mod terminal;
mod view;
mod workers;
mod world;
mod wrap;

use args::{Args, Command, Task, Trace};
use clap::{CommandFactory, FromArgMatches};
use config::layers::Surroundings;
use context::Context;
use error::Failure;
use exit::Exit;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use terminal::Terminal;

/// The whole program.
pub fn main() -> ExitCode {
    run(std::env::args_os()).into()
}

/// The command line as clap knows it, with this program's styles.
pub fn command() -> clap::Command {
    Args::command().styles(style::HELP)
}

/// The settings of the README's table.
pub fn explain_settings() -> String {
    command_config::explain()
}

fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let parsed = command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(error) => return usage(&error, json),
    };
    let mut terminal = Terminal::new(&args.global);
    let surroundings = match Surroundings::of_process() {
        Ok(surroundings) => surroundings,
        Err(error) => {
            let message = format!("the current folder cannot be used: {error}");
            let failure = Failure::new(Exit::Files, message);
            terminal.fail(&failure);
            return failure.exit;
        }
    };
    let mut context = Context {
        terminal,
        surroundings,
        global: args.global,
    };
    let ended = dispatch(&mut context, &args.command).and_then(|exit| {
        context.terminal.out.flush()?;
        Ok(exit)
    });
    match ended {
        Ok(exit) => exit,
        Err(failure) => {
            // A reader that has seen enough (`| head`) is told by the exit code alone.
            if failure.exit != Exit::ClosedOutput || matches!(args.command, Command::Run(_)) {
                context.terminal.fail(&failure);
            }
            failure.exit
        }
    }
}

/// Help and version go to standard output and are no error; the rest is wrong usage.
fn usage(error: &clap::Error, json: bool) -> Exit {
    if json && error.use_stderr() {
        let text = error.to_string();
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let first = first.strip_prefix("error: ").unwrap_or(first);
        let mut failure = Failure::new(Exit::Usage, first);
        if !rest.trim().is_empty() {
            failure = failure.detail(rest.trim());
        }
        _ = writeln!(std::io::stderr(), "{}", failure.to_json());
        return failure.exit;
    }
    match error.print() {
        Ok(()) if error.use_stderr() => Exit::Usage,
        Ok(()) => Exit::Success,
        Err(error) => Failure::from(error).exit,
    }
}

fn dispatch(context: &mut Context, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Config(command) => command_config::run(context, command)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut self::command(), "snaffle", &mut script);
            if context.terminal.json {
                let script = String::from_utf8_lossy(&script);
                let value = serde_json::json!({ "shell": shell.to_string(), "script": script });
                context.terminal.write_json(&value)?;
            } else {
                context.terminal.out.write_all(&script)?;
            }
        }
        Command::Grammar(command) => return command_grammar::run(context, command),
        Command::Task(Task::List { settings }) => {
            let path = context.settings(&settings.given)?.journal;
            command_task::list(context, &path)?;
        }
        Command::Task(Task::Show { id, settings }) => {
            let path = context.settings(&settings.given)?.journal;
            command_task::show(context, &path, id)?;
        }
        Command::Task(Task::Rewind {
            id,
            to,
            event,
            settings,
        }) => {
            let path = context.settings(&settings.given)?.journal;
            command_task::rewind(context, &path, id, *to, *event)?;
        }
        Command::Task(Task::Check { file, settings }) => {
            let settings = context.settings(&settings.given)?;
            return command_task::check(context, &settings, file);
        }
        Command::Task(Task::Graph { file, format }) => {
            command_task::graph(context, file, *format)?;
        }
        Command::Trace(Trace::List { settings }) => {
            let folder = context.settings(&settings.given)?.trace_dir;
            command_trace::list(context, &folder)?;
        }
        Command::Trace(Trace::Show {
            trace,
            full,
            settings,
        }) => {
            let folder = context.settings(&settings.given)?.trace_dir;
            command_trace::show(context, &folder, trace, *full)?;
        }
        Command::Fewshot(command) => command_fewshot::run(context, command)?,
        Command::Run(args) => return command_run::run(context, args),
        Command::Task(Task::Resume(args)) => return command_run::resume(context, args),
        Command::Generate(args) => return command_generate::run(context, args),
        Command::Decide(args) => return command_decide::run(context, args),
        Command::Model(command) => return command_model::run(context, command),
        Command::Bench(command) => return command_bench::run(context, command),
    }
    Ok(Exit::Success)
}
