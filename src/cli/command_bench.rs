//! `snaffle bench`: figures, always beside those of chance.

use super::args::Bench as Command;
use super::command_conformance;
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::{
    command_bench_assist, command_bench_bfcl, command_bench_home, command_bench_replay,
    command_bench_report, command_bench_steps,
};

/// Runs it.
///
/// # Errors
/// A wrong suite or house, or a model that cannot be used.
pub fn run(context: &mut Context, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Home(args) => command_bench_home::run(context, args),
        Command::Maskbench(args) => command_conformance::maskbench(context, args),
        Command::SchemaSuite(args) => command_conformance::schema_suite(context, args),
        Command::Worker(args) => command_conformance::work(context, args),
        Command::HomeAssist(args) => command_bench_assist::run(context, args),
        Command::Steps(args) => command_bench_steps::run(context, args),
        Command::Bfcl(args) => command_bench_bfcl::run(context, args),
        Command::Replay(args) => command_bench_replay::run(context, args),
        Command::Score(args) => command_bench_bfcl::score_file(context, args),
        Command::Report(args) => command_bench_report::run(context, args),
    }
}
