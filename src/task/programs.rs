//! The lock that a task's programs hold: a program that a tool started may outlive the harness
//! (`kill -9`), and its effect is then still to come. Resuming waits for it.
//!
//! The lock belongs to the open file, not to the process (`flock`): while it is lent, every
//! program that is started inherits the file and with it the lock, and so do the programs that it
//! starts. A run that ends by itself gives the lock back whoever inherited it.

use super::head::LockError;
use crate::files::lock_within;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The lock, held as long as this value or a program that inherited it.
#[derive(Debug)]
pub(super) struct ProgramLock(File);

impl ProgramLock {
    /// Takes the lock of the file at `path`, which is created; waits at most `wait` for programs
    /// that hold it.
    pub(super) fn take(path: &Path, wait: Duration) -> Result<Self, LockError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(LockError::Io)?;
        match lock_within(&file, wait).map_err(LockError::Io)? {
            true => Ok(Self(file)),
            false => Err(LockError::Held),
        }
    }

    /// From now on programs that are started inherit the lock, or do so no longer.
    pub(super) fn lend(&self, lend: bool) -> io::Result<()> {
        let flags = if lend {
            FdFlags::empty()
        } else {
            FdFlags::CLOEXEC
        };
        Ok(fcntl_setfd(&self.0, flags)?)
    }
}

impl Drop for ProgramLock {
    fn drop(&mut self) {
        // Otherwise a program that was meant to go on (a desktop's) would hold it for ever.
        // Failing to means that resuming waits for that program.
        let _ = self.0.unlock();
    }
}
