//! `snaffle bench report`: result files become one page.

use super::args_bench::BenchReport;
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_up_to;
use crate::bench::html::page;
use crate::bench::results::read;

/// Bytes of the largest result file that is read.
const LARGEST: u64 = 256 << 20;

/// Writes the page.
///
/// # Errors
/// A file that holds no results, or that cannot be read or written.
pub fn run(context: &mut Context, args: &BenchReport) -> Result<Exit, Failure> {
    let mut runs = Vec::new();
    for path in &args.results {
        let text = read_up_to(path, LARGEST)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let read = read(&name, &text)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        runs.extend(read);
    }
    fs_err::write(&args.html, page(&args.title, &runs))?;
    let requests: usize = runs.iter().map(|run| run.items.len()).sum();
    context.terminal.note(&format!(
        "{}: runs {}, requests {requests}",
        args.html.display(),
        runs.len()
    ));
    Ok(Exit::Success)
}
