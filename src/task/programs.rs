//! The lock that a task's programs hold: a program that a tool started may outlive the harness
//! (`kill -9`), and its effect is then still to come. Resuming waits for it.
//!
//! The lock belongs to the open file, not to the process (`flock`): while it is lent, every
//! program that is started inherits the file and with it the lock, and so do the programs that it
//! starts. A run that ends by itself gives the lock back whoever inherited it.

use super::head::LockError;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a lock that is held is tried again.
const TICK: Duration = Duration::from_millis(20);

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
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) => {
                    let left = wait.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Err(LockError::Held);
                    }
                    std::thread::sleep(left.min(TICK));
                }
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
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
