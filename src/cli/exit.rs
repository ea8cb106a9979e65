//! Exit codes: one table from which `--help` and the README come.

use std::process::ExitCode;

/// How a run of the program ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Success = 0,
    /// A fault of this program.
    Internal = 1,
    /// The command line was not understood.
    Usage = 2,
    /// A setting is wrong.
    Config = 3,
    /// The model cannot be used.
    Model = 4,
    /// Something given to work on is wrong.
    Input = 5,
    /// The task ended without what was asked for, or nothing was decided.
    Unfinished = 6,
    /// Another run holds the house, the journal or the learned examples.
    Busy = 7,
    /// A file cannot be read or written.
    Files = 8,
    /// A call was refused, a text does not match, or an answer was not believed.
    Refused = 9,
    /// The task waits for the person.
    Waiting = 10,
    /// A limit was reached.
    Limit = 11,
    /// What watches the turns stopped it.
    Stopped = 12,
    /// Ctrl-C.
    Cancelled = 130,
    /// Standard output was closed.
    ClosedOutput = 141,
}

impl Exit {
    /// Every code with its meaning, in order.
    pub const TABLE: [(Self, &'static str); 15] = [
        (Self::Success, "done"),
        (Self::Internal, "a fault of snaffle itself"),
        (Self::Usage, "the command line was not understood"),
        (
            Self::Config,
            "a setting is wrong (file, environment or flag)",
        ),
        (
            Self::Model,
            "the model is missing, damaged, not the one in the manifest, or its template fails",
        ),
        (
            Self::Input,
            "a request, grammar, schema, house, tool, task or example file is wrong",
        ),
        (
            Self::Unfinished,
            "the task failed or went in circles; no option was likely; a text was cut or breaks a rule",
        ),
        (
            Self::Busy,
            "another run holds the house, the journal or the learned examples",
        ),
        (
            Self::Files,
            "a file cannot be read or written (permissions, disk full)",
        ),
        (
            Self::Refused,
            "a call was refused, a text does not match, or the answer claims what did not happen",
        ),
        (
            Self::Waiting,
            "the task waits for the person: a question, or a call that may have taken effect",
        ),
        (
            Self::Limit,
            "a limit on turns, tokens or time was reached; the task can be resumed",
        ),
        (
            Self::Stopped,
            "the program after each turn stopped it; the task can be resumed",
        ),
        (
            Self::Cancelled,
            "stopped by Ctrl-C; the task can be resumed",
        ),
        (Self::ClosedOutput, "standard output was closed"),
    ];

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The word for it in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Config => "config",
            Self::Model => "model",
            Self::Input => "input",
            Self::Unfinished => "unfinished",
            Self::Busy => "busy",
            Self::Files => "files",
            Self::Refused => "refused",
            Self::Waiting => "waiting",
            Self::Limit => "limit",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
            Self::ClosedOutput => "closed_output",
        }
    }

    /// The table as the end of `--help`.
    pub fn help() -> String {
        let mut text = String::from("Exit codes:\n");
        for (exit, meaning) in Self::TABLE {
            text.push_str(&format!("  {:>3}  {meaning}\n", exit.code()));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The table in Markdown.
    pub fn markdown() -> String {
        let mut text = String::from("| code | meaning |\n|---|---|\n");
        for (exit, meaning) in Self::TABLE {
            text.push_str(&format!("| {} | {meaning} |\n", exit.code()));
        }
        text
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_has_no_code_twice() {
        let codes: Vec<u8> = Exit::TABLE.iter().map(|(exit, _)| exit.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }
}
