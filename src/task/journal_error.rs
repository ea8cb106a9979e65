//! Why the journal could not do what was asked, in words a person can act on.

use super::chain::Damage;
use super::id::TaskId;
use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};

/// How long a write waits for other processes, in seconds.
pub(super) const BUSY_SECONDS: u64 = 10;

/// Why the journal could not do what was asked. Nothing was recorded where one is returned,
/// except for [`HeadNotSynced`](Self::HeadNotSynced).
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The folder or file cannot be written.
    #[error("the journal {path} cannot be written: the file or its folder is read-only")]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// No room.
    #[error("the journal {path} cannot grow: the disk is full")]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// Other processes kept it locked for the whole waiting time.
    #[error("the journal {path} is busy: other processes kept it locked for {seconds} s")]
    Busy {
        /// The database.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The file is no journal of this program.
    #[error("{path} is not a journal: {reason}")]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("the journal {path} was written by a newer version (format {version})")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: i64,
    },
    /// The database is broken.
    #[error("the journal {path} is damaged: {reason}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The task's events are damaged: it can be read up to there, not continued.
    #[error("task {id} can only be read: {damage} ({standing} events before that stand)")]
    Damaged {
        /// The task.
        id: TaskId,
        /// What is wrong.
        damage: Damage,
        /// Number of events that stand.
        standing: u64,
    },
    /// Another process runs the task.
    #[error("task {id} is being run by another process")]
    Running {
        /// The task.
        id: TaskId,
    },
    /// A program that a tool of the task started has outlived the run, and goes on.
    #[error("a program that task {id} started is still running (waited {seconds} s for it)")]
    ProgramRunning {
        /// The task.
        id: TaskId,
        /// How long it was waited for.
        seconds: u64,
    },
    /// No such task.
    #[error("there is no task {name} in the journal")]
    UnknownTask {
        /// What was asked for.
        name: String,
    },
    /// Several tasks begin so.
    #[error("{count} tasks begin with {prefix}: give more of the id")]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// How many begin so.
        count: usize,
    },
    /// The id is taken; another random part gives another.
    #[error("task {id} exists already")]
    Exists {
        /// The id.
        id: TaskId,
    },
    /// An event is larger than the journal takes.
    #[error("an event of {bytes} bytes is too large for the journal (at most {limit})")]
    TooLarge {
        /// Its encoding's length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The events were recorded, but the head beside the database could not be synced.
    #[error("{path}: the event is recorded, its head is not: {source}")]
    HeadNotSynced {
        /// The head file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be used.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Anything else that SQLite reports.
    #[error("the journal {path}: {reason}")]
    Database {
        /// The database.
        path: PathBuf,
        /// What it says.
        reason: String,
    },
}

impl JournalError {
    /// What `error` of the file at `path` means.
    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { path }
            }
            _ => Self::File { path, source },
        }
    }

    /// What `error` of the database at `path` means.
    pub(super) fn database(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let reason = error.to_string();
        // SQLite's word where its index of the log cannot grow.
        let extended = error.sqlite_error().map(|error| error.extended_code);
        if extended == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
            return Self::DiskFull { path };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy {
                path,
                seconds: BUSY_SECONDS,
            },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, reason },
            Some(ErrorCode::NotADatabase) => Self::NotAJournal {
                path,
                reason: "it is no SQLite database".into(),
            },
            _ => Self::Database { path, reason },
        }
    }
}
