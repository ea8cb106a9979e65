//! The `snaffle` program: everything is in the library, see `snaffle::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    snaffle::cli::main()
}
