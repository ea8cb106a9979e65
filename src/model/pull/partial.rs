//! A model on its way: bytes under a temporary name, counted and hashed as they come.

use super::super::generator::Cancel;
use super::super::manifest::Entry;
use super::types::{Progress, PullError, Reason, Stopped};
use super::verify::{compare, hash_into};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The temporary file, locked against other processes.
pub(super) struct Partial {
    entry: Entry,
    path: PathBuf,
    file: File,
    hasher: Sha256,
    written: u64,
}

impl Partial {
    /// Opens the temporary file of `entry`, takes up what is in it, and locks it.
    pub(super) fn open(
        entry: &Entry,
        folder: &Path,
        cancel: &Cancel,
        progress: &mut dyn Progress,
    ) -> Result<Self, PullError> {
        let path = folder.join(format!(".{}.partial", entry.file));
        let failed = |source| PullError::File {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PullError::Busy { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut written = file.metadata().map_err(failed)?.len();
        if written > entry.size {
            file.set_len(0).map_err(failed)?;
            written = 0;
        }
        let mut hasher = Sha256::new();
        if written > 0 {
            progress.stage(&format!("taking up {written} bytes of {}", entry.file));
            if !hash_into(&mut hasher, &mut file, entry.size, cancel, progress).map_err(failed)? {
                return Err(PullError::Cancelled);
            }
        }
        Ok(Self {
            entry: entry.clone(),
            path,
            file,
            hasher,
            written,
        })
    }

    /// The name that the file gets when it is whole.
    pub(super) fn model_file(&self) -> &str {
        &self.entry.file
    }

    /// Bytes that are there.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of the whole.
    pub(super) fn size(&self) -> u64 {
        self.entry.size
    }

    fn failed(&self, source: std::io::Error) -> PullError {
        PullError::File {
            path: self.path.clone(),
            source,
        }
    }

    /// Throws away what is there.
    pub(super) fn restart(&mut self) -> Result<(), PullError> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)).map(drop))
            .map_err(|source| self.failed(source))?;
        self.hasher = Sha256::new();
        self.written = 0;
        Ok(())
    }

    /// Appends what came.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        let actual = self.written.saturating_add(bytes.len() as u64);
        if actual > self.entry.size {
            return Err(Stopped::Source(Reason::Size {
                expected: self.entry.size,
                actual,
            }));
        }
        if let Err(source) = self.file.write_all(bytes) {
            // What was written in part (the disk is full) is dropped, so that the rest still
            // hashes as counted.
            let _ = self.file.set_len(self.written);
            return Err(Stopped::All(self.failed(source)));
        }
        self.hasher.update(bytes);
        self.written = actual;
        Ok(())
    }

    /// Whether what is there is the whole model, and right. What is wrong is thrown away.
    pub(super) fn check(&mut self) -> Result<(), Reason> {
        if self.written != self.entry.size {
            return Err(Reason::Size {
                expected: self.entry.size,
                actual: self.written,
            });
        }
        let result = compare(&self.entry, self.hasher.clone());
        if result.is_err() {
            let _ = self.restart();
        }
        result
    }

    /// Gives the file, which was checked, its real name.
    pub(super) fn publish(self, path: &Path) -> Result<PathBuf, PullError> {
        self.file
            .sync_all()
            .and_then(|()| fs_err::rename(&self.path, path))
            .map_err(|source| self.failed(source))?;
        // The new name must survive a power cut, too; where folders cannot be synced, it is at
        // worst fetched again.
        if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(path.to_owned())
    }

    /// Keeps what is there for the next time, and nothing where there is nothing.
    pub(super) fn leave(self) {
        if self.written == 0 {
            let _ = fs_err::remove_file(&self.path);
        }
    }
}
