//! What can be wrong with a simulated world, and reading its files within bounds.

use crate::files;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of the largest file of a world, and of its state.
pub(super) const LARGEST: u64 = 4 << 20;

/// What can be wrong with a simulated world.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is too large.
    #[error("{}: larger than {LARGEST} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// The state is not one.
    #[error("{}: not the state of this world: {message}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Another run holds it, or its lock file cannot be made.
    #[error("{}: cannot lock the world: {source}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new state cannot be written. The world is as it was.
    #[error("{}: cannot save the world: {source}", path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new state was written and may not survive a power cut.
    #[error("{}: the world was saved, but not synced to disk: {source}", path.display())]
    Unsynced {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A tool does not do what it was asked to; nothing has changed.
    #[error("{0}")]
    Refused(String),
}

/// A text file of bearable size.
pub(super) fn read(path: &Path) -> Result<String, SimulatedError> {
    let error = |source| SimulatedError::Read {
        path: path.to_owned(),
        source,
    };
    std::fs::File::open(path)
        .and_then(|file| files::text_of(file, LARGEST))
        .map_err(error)?
        .ok_or_else(|| SimulatedError::TooLarge {
            path: path.to_owned(),
        })
}
