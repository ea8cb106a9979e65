//! A simulated world's state on disk: read at every turn, changed under a lock, saved whole or not
//! at all, as a house is.

use super::World;
use super::error::{LARGEST, SimulatedError, read};
use crate::files::lock_within;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a change waits for another run to finish its own.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A world: how it begins, and where its state is.
#[derive(Debug)]
pub struct WorldFile {
    state: PathBuf,
    lock: PathBuf,
    beginning: World,
}

impl WorldFile {
    /// The world of the file at `path` that begins so.
    ///
    /// # Errors
    /// A state that is there and cannot be read.
    pub(super) fn open(path: &Path, beginning: World) -> Result<Self, SimulatedError> {
        let real = std::fs::canonicalize(path).map_err(|source| SimulatedError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut lock = OsString::from(".");
        lock.push(real.file_name().unwrap_or_default());
        lock.push(".lock");
        let world = Self {
            state: real.with_extension("state.json"),
            lock: real.with_file_name(lock),
            beginning,
        };
        world.read()?;
        Ok(world)
    }

    /// Where its state is kept, once something has changed.
    pub fn state_path(&self) -> &Path {
        &self.state
    }

    /// The world as it is now.
    ///
    /// # Errors
    /// A state that cannot be read.
    pub fn read(&self) -> Result<World, SimulatedError> {
        if !self.state.exists() {
            return Ok(self.beginning.clone());
        }
        let text = read(&self.state)?;
        serde_json::from_str(&text).map_err(|error| SimulatedError::State {
            path: self.state.clone(),
            message: error.to_string(),
        })
    }

    /// Changes it, or refuses to and leaves it as it was.
    ///
    /// # Errors
    /// What `change` says, or a lock that is not to be had, or a state that cannot be saved.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut World) -> Result<T, String>,
    ) -> Result<T, SimulatedError> {
        let _lock = self.lock()?;
        let mut world = self.read()?;
        let before = world.clone();
        let given = change(&mut world).map_err(SimulatedError::Refused)?;
        if world != before {
            self.save(&world)?;
        }
        Ok(given)
    }

    fn lock(&self) -> Result<File, SimulatedError> {
        let error = |source| SimulatedError::Lock {
            path: self.lock.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.lock)
            .map_err(error)?;
        if lock_within(&file, LOCK_WAIT).map_err(error)? {
            return Ok(file);
        }
        Err(error(io::Error::new(
            io::ErrorKind::WouldBlock,
            "another run has held the lock for too long",
        )))
    }

    fn save(&self, world: &World) -> Result<(), SimulatedError> {
        let text = format!("{world:#}\n");
        if text.len() as u64 > LARGEST {
            return Err(SimulatedError::TooLarge {
                path: self.state.clone(),
            });
        }
        let folder = self.state.parent().unwrap_or(Path::new("."));
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new()
                .prefix(".world-")
                .suffix(".tmp")
                .tempfile_in(folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&self.state).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| SimulatedError::Save {
            path: self.state.clone(),
            source,
        })?;
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| SimulatedError::Unsynced {
                path: folder.to_owned(),
                source,
            })
    }
}
