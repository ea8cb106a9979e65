//! The program in a folder of its own, with nothing of this machine's settings.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what the program prints is UTF-8, or the test fails"
)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub fn snaffle(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_snaffle"));
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .args(arguments);
    command
}

/// The exit code and both streams.
pub fn outcome(output: &Output) -> (i32, String, String) {
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
