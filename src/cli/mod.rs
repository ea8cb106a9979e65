//! The command line: the only place that prints or exits.
//!
//! [`args`] is what was written, [`settings`] what it means; a command is one file
//! (`command_*.rs`) that writes through [`terminal`]; whatever goes wrong becomes a line and an
//! exit code in [`error`].

pub mod args;
mod command_config;
pub mod config;
mod context;
pub mod error;
pub mod exit;
pub mod flags;
mod interrupt;
pub mod settings;
mod style;
pub mod suggest;
mod terminal;

use args::{Args, Command};
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
    let parsed = command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(error) => return usage(&error),
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
fn usage(error: &clap::Error) -> Exit {
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
            context.terminal.out.write_all(&script)?;
        }
        Command::Run(_)
        | Command::Generate(_)
        | Command::Model(_)
        | Command::Grammar(_)
        | Command::Task(_)
        | Command::Trace(_)
        | Command::Bench(_) => {
            return Err(Failure::new(Exit::Internal, "not wired yet"));
        }
    }
    Ok(Exit::Success)
}
