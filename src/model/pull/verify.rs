//! Whether a file is the manifest's: size and SHA-256.

use super::super::generator::Cancel;
use super::super::manifest::Entry;
use super::types::{Progress, Reason};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The file.
    pub path: PathBuf,
    /// Whether the whole hash is known, or only its beginning (and the size).
    pub whole_hash: bool,
}

/// Why a file is not the manifest's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// It is not there.
    #[error("{} is not there", path.display())]
    Missing {
        /// Where it belongs.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is another file.
    #[error("{}: {reason}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// In what.
        reason: Reason,
    },
    /// It was stopped.
    #[error("stopped")]
    Cancelled,
}

/// Checks size and hash of `entry`'s file in `folder`.
///
/// # Errors
/// [`VerifyError`].
pub fn verify(
    entry: &Entry,
    folder: &Path,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> Result<Verified, VerifyError> {
    let path = folder.join(&entry.file);
    let read = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => VerifyError::Missing { path: path.clone() },
        _ => VerifyError::Read {
            path: path.clone(),
            source,
        },
    };
    let length = std::fs::metadata(&path).map_err(read)?.len();
    if length != entry.size {
        return Err(VerifyError::Wrong {
            path,
            reason: Reason::Size {
                expected: entry.size,
                actual: length,
            },
        });
    }
    progress.stage(&format!("checking {}", entry.file));
    let mut file = std::fs::File::open(&path).map_err(read)?;
    let mut hasher = Sha256::new();
    let hashed = hash_into(&mut hasher, &mut file, entry.size, cancel, progress).map_err(read)?;
    if !hashed {
        return Err(VerifyError::Cancelled);
    }
    match compare(entry, hasher) {
        Ok(()) => Ok(Verified {
            path,
            whole_hash: entry.whole_hash(),
        }),
        Err(reason) => Err(VerifyError::Wrong { path, reason }),
    }
}

/// Hashes what is left of `file`; `false` where it was stopped.
pub(super) fn hash_into(
    hasher: &mut Sha256,
    file: &mut std::fs::File,
    total: u64,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> std::io::Result<bool> {
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        if cancel.is_cancelled() {
            return Ok(false);
        }
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(true);
        }
        hasher.update(&buffer[..count]);
        done += count as u64;
        progress.bytes(done, total);
    }
}

/// Compares a hash with what the manifest knows of it.
pub(super) fn compare(entry: &Entry, hasher: Sha256) -> Result<(), Reason> {
    let mut actual = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(actual, "{byte:02x}");
    }
    let expected = entry.hash();
    if !expected.is_empty() && actual.starts_with(&expected) {
        return Ok(());
    }
    Err(Reason::Hash { expected, actual })
}
