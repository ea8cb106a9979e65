//! A task's head file: where its chain stands, synced apart from the database, and the lock that
//! keeps two processes from running one task.
//!
//! The file holds two slots of 512 bytes (a disk sector: a torn write harms one slot only),
//! written in turn; the valid one with the higher sequence counts. A file without a valid slot
//! and without content is a task that was never begun.

use super::chain::{Hash, Position};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

const SLOT: usize = 512;
const MAGIC: &[u8; 8] = b"snafhd01";

/// An open head file. The lock lasts as long as this value.
#[derive(Debug)]
pub(super) struct HeadFile {
    file: File,
}

/// What a head file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Nothing was written yet.
    Empty,
    /// The chain stood here.
    At(Position),
    /// No slot is valid.
    Unreadable,
}

/// Why a head file could not be locked.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process has it.
    Held,
    Io(io::Error),
}

impl HeadFile {
    /// A new file that says `start`; fails where it exists. The folder's entry is synced too.
    pub(super) fn create(path: &Path, start: &Position) -> Result<Self, LockError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(LockError::Io)?;
        let mut head = Self::lock(file)?;
        head.write(start).map_err(LockError::Io)?;
        sync_folder(path).map_err(LockError::Io)?;
        Ok(head)
    }

    /// An existing file, locked. Somebody who only looks holds a shared lock for a moment, so
    /// one that is held is tried again for 60 ms.
    pub(super) fn open(path: &Path) -> Result<Self, LockError> {
        let mut tries = 0;
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .map_err(LockError::Io)?;
            match Self::lock(file) {
                Err(LockError::Held) if tries < 3 => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(20));
                }
                done => return done,
            }
        }
    }

    fn lock(file: File) -> Result<Self, LockError> {
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held),
            Err(TryLockError::Error(error)) => Err(LockError::Io(error)),
        }
    }

    /// What it says.
    pub(super) fn read(&mut self) -> io::Result<Head> {
        self.file.seek(SeekFrom::Start(0))?;
        read_head(&mut self.file)
    }

    /// Writes `position` into the slot that is not the current one, and syncs.
    pub(super) fn write(&mut self, position: &Position) -> io::Result<()> {
        let slot = (position.sequence % 2) * SLOT as u64;
        self.file.seek(SeekFrom::Start(slot))?;
        self.file.write_all(&encode(position))?;
        self.file.sync_data()
    }

    /// Makes both slots say `position`, where the chain was cut back, and syncs.
    pub(super) fn reset(&mut self, position: &Position) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&encode(position))?;
        self.file.write_all(&encode(position))?;
        self.file.sync_data()
    }
}

/// What the head file at `path` says, without its lock; and whether a process holds the lock.
pub(super) fn peek(path: &Path) -> io::Result<(Head, bool)> {
    let mut file = File::open(path)?;
    let running = match file.try_lock_shared() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    Ok((read_head(&mut file)?, running))
}

fn read_head(file: &mut File) -> io::Result<Head> {
    let mut bytes = Vec::with_capacity(2 * SLOT);
    file.take(2 * SLOT as u64).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(Head::Empty);
    }
    let newest = bytes
        .chunks(SLOT)
        .filter_map(decode)
        .max_by_key(|position| position.sequence);
    Ok(newest.map_or(Head::Unreadable, Head::At))
}

/// Magic, sequence, hash, and a checksum over them; zeros up to the sector's end.
fn encode(position: &Position) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..16].copy_from_slice(&position.sequence.to_le_bytes());
    slot[16..48].copy_from_slice(&position.hash);
    let sum: Hash = Sha256::digest(&slot[..48]).into();
    slot[48..80].copy_from_slice(&sum);
    slot
}

fn decode(slot: &[u8]) -> Option<Position> {
    let sum: Hash = Sha256::digest(slot.get(..48)?).into();
    if &slot[..8] != MAGIC || slot.get(48..80)? != sum {
        return None;
    }
    Some(Position {
        sequence: u64::from_le_bytes(slot[8..16].try_into().ok()?),
        hash: slot[16..48].try_into().ok()?,
    })
}

/// Makes a new name in a folder durable.
#[cfg(unix)]
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Other systems have no call for it.
#[cfg(not(unix))]
pub(super) fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
