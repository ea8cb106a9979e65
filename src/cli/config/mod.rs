//! Settings: what they are ([`registry`]), where they come from ([`layers`]), and how a value is
//! read ([`kind`]). What they mean for a run is [`settings`](super::settings).

pub mod file;
pub mod kind;
pub mod layers;
pub mod registry;

use std::path::PathBuf;

/// A setting that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A settings file has something that no setting has.
    #[error("{}:{line}: {message}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// A settings file that was named cannot be read.
    #[error("{source}")]
    Unreadable {
        /// The error, with the path.
        source: std::io::Error,
    },
    /// A flag or an environment variable has a wrong value.
    #[error("{place} {message}")]
    Value {
        /// `--max-turns` or `SNAFFLE_MAX_TURNS`.
        place: String,
        /// What is wrong.
        message: String,
    },
}
