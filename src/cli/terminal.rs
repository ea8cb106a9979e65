//! The two streams: colour only where it is wanted, machines' JSON kept apart from people's text.

use super::args::{Color, Global};
use super::error::Failure;
use super::exit::Exit;
use super::style::{BAD, NAME, WARN, paint};
use crate::model::Cancel;
use crate::trace::{sanitize, sanitize_line};
use anstream::{AutoStream, ColorChoice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal, Stderr, Stdout, Write};

/// Where a command writes.
pub struct Terminal {
    /// Results.
    pub out: AutoStream<Stdout>,
    /// Everything else.
    pub err: AutoStream<Stderr>,
    /// Whether results are JSON.
    pub json: bool,
    /// Whether only results and errors are written.
    pub quiet: bool,
    choice: ColorChoice,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal")
            .field("json", &self.json)
            .field("quiet", &self.quiet)
            .finish_non_exhaustive()
    }
}

impl Terminal {
    /// The process's own streams.
    pub fn new(global: &Global) -> Self {
        let choice = match global.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self {
            out: AutoStream::new(io::stdout(), choice),
            err: AutoStream::new(io::stderr(), choice),
            json: global.json,
            quiet: global.quiet,
            choice,
        }
    }

    /// Standard output once more, for something that writes to it on its own.
    pub fn second_out(&self) -> AutoStream<Stdout> {
        AutoStream::new(io::stdout(), self.choice)
    }

    /// Standard error once more.
    pub fn second_err(&self) -> AutoStream<Stderr> {
        AutoStream::new(io::stderr(), self.choice)
    }

    /// Whether a person sees progress: standard error is a terminal, and nothing speaks against it.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }

    /// Whether somebody can be asked: input and standard error are a terminal, and no machine
    /// reads along.
    pub fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Columns of the terminal that standard output is; `None` where it is none.
    pub fn columns(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(usize::from(size.ws_col))
    }

    /// Writes a value as JSON, one line.
    ///
    /// # Errors
    /// Where the stream fails.
    pub fn write_json(&mut self, value: &serde_json::Value) -> io::Result<()> {
        writeln!(self.out, "{value}")
    }

    /// A line for the person, on standard error; left out where they want quiet or JSON.
    pub fn note(&mut self, text: &str) {
        if !self.quiet && !self.json {
            // Nobody can be told that standard error is gone.
            _ = writeln!(self.err, "{}", sanitize(text));
        }
    }

    /// A warning on standard error.
    pub fn warn(&mut self, text: &str) {
        if self.json {
            _ = writeln!(self.err, "{}", serde_json::json!({ "warning": text }));
            return;
        }
        let word = paint(WARN, "warning:");
        _ = writeln!(self.err, "{word} {}", sanitize_line(text));
    }

    /// Tells of a failure on standard error: one line, and its hints.
    pub fn fail(&mut self, failure: &Failure) {
        if self.json {
            _ = writeln!(self.err, "{}", failure.to_json());
            return;
        }
        let word = if failure.exit == Exit::Cancelled {
            paint(WARN, "stopped:")
        } else {
            paint(BAD, "error:")
        };
        _ = writeln!(self.err, "{word} {}", sanitize_line(&failure.message));
        if let Some(detail) = &failure.detail {
            _ = writeln!(self.err, "{}", sanitize(detail));
        }
        for hint in &failure.hints {
            _ = writeln!(
                self.err,
                " {} {}",
                paint(NAME, "hint:"),
                sanitize_line(hint)
            );
        }
    }
}

/// Waits until a line of standard input can be read; `false` where `cancel` was set meanwhile.
pub fn input_or(cancel: &Cancel) -> bool {
    const TICK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    loop {
        if cancel.is_cancelled() {
            return false;
        }
        let input = rustix::stdio::stdin();
        let mut waiting = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
        match poll(&mut waiting, Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // What cannot be waited for is read at once.
            Ok(_) | Err(_) => return true,
        }
    }
}
