//! The one funnel: whatever goes wrong in the library becomes one line, hints and an exit code
//! here.

use super::config::ConfigError;
use super::exit::Exit;
use std::io;

/// Why a command failed, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line: what is wrong, where.
    pub message: String,
    /// What can be done about it, one line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// With a hint more.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// With a hint where there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// A file that a person named and that is wrong: missing ones too.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::Input, message)
    }
}

/// Output and files.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => {
                Self::new(Exit::ClosedOutput, "standard output was closed")
            }
            io::ErrorKind::StorageFull => Self::new(Exit::Files, error.to_string())
                .hint("make room on the disk, or set another folder with --state-dir"),
            _ => Self::new(Exit::Files, error.to_string()),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::InFile {
                suggestion: Some(name),
                ..
            } => Some(format!("did you mean {name:?}?")),
            ConfigError::InFile { .. } | ConfigError::Value { .. } => {
                Some("`snaffle config explain` describes every setting".to_owned())
            }
            ConfigError::Unreadable { .. } => None,
        };
        Self::new(Exit::Config, error.to_string()).maybe_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_their_own_codes() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        for (failure, exit) in [
            (Failure::from(full), Exit::Files),
            (Failure::from(pipe), Exit::ClosedOutput),
            (Failure::input("x"), Exit::Input),
        ] {
            assert_eq!(failure.exit, exit);
        }
    }
}
