//! A house on disk: read at every turn, changed under a lock, saved whole or not at all.
//!
//! Readers need no lock: a save replaces the file in one step. Writers hold an advisory lock on a
//! file beside the house (the house itself is replaced, so a lock on it would be lost), and read
//! again once they have it, so that two runs at once never undo each other's changes. A run that
//! acts on a house [holds](HouseFile::hold) that lock from its beginning to its end.

use super::file::{Device, House, HouseError, LARGEST, parse};
use super::kind::Key;
use crate::call::json::same_value;
use crate::files;
use crate::tool::text::plain;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use toml_edit::{DocumentMut, Item, TableLike};

/// How long a run waits for another one to finish its change.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long a run that begins waits: a single change takes milliseconds, a run much longer.
const HOLD_WAIT: Duration = Duration::from_millis(200);

/// A part of a device's state before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which part.
    pub key: Key,
    /// Before.
    pub from: Value,
    /// After.
    pub to: Value,
}

/// A house file.
#[derive(Debug)]
pub struct HouseFile {
    path: PathBuf,
    lock_path: PathBuf,
    lock_wait: Duration,
    /// The lock, where it is held for a whole run.
    held: Mutex<Option<File>>,
    /// The last text read and what it says, so that an unchanged file is parsed once.
    last: Mutex<Option<(String, Arc<House>)>>,
}

impl HouseFile {
    /// Opens a house file and reads it once.
    ///
    /// # Errors
    /// A file that cannot be read or is not a house.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, HouseError> {
        // A link's target is replaced, not the link.
        let path = fs_err::canonicalize(path.as_ref()).map_err(HouseError::Read)?;
        let mut lock_name = OsString::from(".");
        lock_name.push(path.file_name().unwrap_or_default());
        lock_name.push(".lock");
        let file = Self {
            lock_path: path.with_file_name(lock_name),
            path,
            lock_wait: LOCK_WAIT,
            held: Mutex::new(None),
            last: Mutex::new(None),
        };
        file.house()?;
        Ok(file)
    }

    /// The same file, waiting at most `wait` for another run's lock.
    #[must_use]
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Takes the lock and keeps it as long as this value lives, so that no other run acts on this
    /// house meanwhile, whatever folder its journal is in. Tries whether the house can be changed
    /// at all, so that a run need not find out in its middle.
    ///
    /// # Errors
    /// [`HouseError::Held`] where another run has it; [`HouseError::Lock`] and
    /// [`HouseError::Save`] where folder or file are read-only, or the disk is full.
    pub fn hold(&self) -> Result<(), HouseError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            *held = Some(self.lock(HOLD_WAIT)?);
        }
        let (text, _) = self.read()?;
        // Dropped again without having been the house.
        self.beside(&text)
            .map(drop)
            .map_err(|source| self.unsaved(source))
    }

    fn unsaved(&self, source: io::Error) -> HouseError {
        HouseError::Save {
            path: self.path.clone(),
            source: plain(source),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The house as it is on disk now.
    ///
    /// # Errors
    /// A file that cannot be read or is not a house any more.
    pub fn house(&self) -> Result<Arc<House>, HouseError> {
        self.read().map(|(_, house)| house)
    }

    /// Sets parts of a device's state: all of them, or none. What is so already is not a change,
    /// and without any change nothing is written.
    ///
    /// # Errors
    /// A device that is gone, a lock that is not to be had, a file that cannot be saved.
    pub fn set(
        &self,
        device: &str,
        parts: impl FnOnce(&Device) -> Vec<(Key, Value)>,
    ) -> Result<(Device, Vec<Change>), HouseError> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = match &*held {
            Some(_) => None,
            None => Some(self.lock(self.lock_wait)?),
        };
        let (text, house) = self.read()?;
        let gone = || HouseError::Gone {
            device: device.to_owned(),
        };
        let at = house.devices.iter().position(|d| d.id == device);
        let at = at.ok_or_else(gone)?;
        let mut after = house.devices[at].clone();
        let mut changes = Vec::new();
        for (key, to) in parts(&house.devices[at]) {
            let from = after.state.get_mut(key.as_str()).ok_or_else(gone)?;
            if !same_value(from, &to) {
                changes.push(Change {
                    key,
                    from: std::mem::replace(from, to.clone()),
                    to,
                });
            }
        }
        if !changes.is_empty() {
            let text = edited(&text, at, &changes).ok_or_else(gone)?;
            // What is written is a house: the tools' ranges lie within the file's.
            parse(&text, &self.path)?;
            self.save(&text)?;
        }
        Ok((after, changes))
    }

    fn read(&self) -> Result<(String, Arc<House>), HouseError> {
        let text = fs_err::File::open(&self.path)
            .and_then(|file| files::text_of(file, LARGEST))
            .map_err(HouseError::Read)?
            .ok_or_else(|| HouseError::TooLarge {
                path: self.path.clone(),
            })?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, house)) = &*last
            && *known == text
        {
            return Ok((text, Arc::clone(house)));
        }
        let house = Arc::new(parse(&text, &self.path)?);
        *last = Some((text.clone(), Arc::clone(&house)));
        Ok((text, house))
    }

    /// The lock is released when the file is dropped.
    fn lock(&self, wait: Duration) -> Result<File, HouseError> {
        let error = |source| HouseError::Lock {
            path: self.lock_path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.lock_path)
            // Another user's lock file can be locked all the same.
            .or_else(|first| match first.kind() {
                io::ErrorKind::PermissionDenied => File::open(&self.lock_path).map_err(|_| first),
                _ => Err(first),
            })
            .map_err(error)?;
        if files::lock_within(&file, wait).map_err(error)? {
            return Ok(file);
        }
        Err(HouseError::Held {
            path: self.path.clone(),
        })
    }

    /// Writes beside the file and renames: whoever reads sees the old house or the new one.
    fn save(&self, text: &str) -> Result<(), HouseError> {
        let write = || -> io::Result<()> {
            let file = self.beside(text)?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| self.unsaved(source))?;
        let folder = self.folder();
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| HouseError::Unsynced {
                path: folder.to_owned(),
                source,
            })
    }

    /// A temporary file beside the house with this text, which can take its place.
    fn beside(&self, text: &str) -> io::Result<tempfile::NamedTempFile> {
        // Replacing a file asks nobody whether it may be written.
        let house = OpenOptions::new().write(true).open(&self.path)?;
        let permissions = house.metadata()?.permissions();
        let mut file = tempfile::Builder::new()
            .prefix(".house-")
            .suffix(".tmp")
            .tempfile_in(self.folder())?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(permissions)?;
        Ok(file)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

/// The text with the state of device number `at` changed, all else (comments, order, spacing) as
/// it was.
fn edited(text: &str, at: usize, changes: &[Change]) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let device: &mut dyn TableLike = match document.get_mut("device")? {
        Item::ArrayOfTables(tables) => tables.get_mut(at)?,
        Item::Value(toml_edit::Value::Array(tables)) => {
            tables.get_mut(at)?.as_inline_table_mut()?
        }
        Item::None | Item::Value(_) | Item::Table(_) => return None,
    };
    let state = device.get_mut("state")?.as_table_like_mut()?;
    for change in changes {
        let value = state.get_mut(change.key.as_str())?.as_value_mut()?;
        let decor = value.decor().clone();
        *value = toml_value(&change.to)?;
        *value.decor_mut() = decor;
    }
    Some(document.to_string())
}

fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    match value {
        Value::Bool(truth) => Some((*truth).into()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Some(whole.into()),
            None => number.as_f64().map(Into::into),
        },
        Value::String(text) => Some(text.as_str().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOUSE: &str = "# my house\nname = \"X\"\n[[area]]\nid = \"a\"\n\n\
        [[device]] # the light\nid = \"灯\"\nkind = \"light\"\narea = \"a\"\n\
        capabilities = ['brightness']\nstate = { on = false, brightness = 60 } # dim\n\n\
        [[device]]\nid = \"t\"\nkind = \"thermostat\"\narea = \"a\"\n\
        [device.state]\ntemperature = 20 # cosy\ncurrent = 19.5\n";

    fn house() -> (tempfile::TempDir, HouseFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.toml");
        fs_err::write(&path, HOUSE).unwrap();
        let file = HouseFile::open(&path).unwrap();
        (folder, file)
    }

    #[test]
    fn changes_keep_all_else_in_the_file() {
        let (folder, file) = house();
        let (device, changes) = file
            .set("灯", |_| {
                vec![(Key::On, json!(true)), (Key::Brightness, json!(60))]
            })
            .unwrap();
        assert_eq!(device.state["on"], true);
        assert_eq!(
            changes,
            [Change {
                key: Key::On,
                from: json!(false),
                to: json!(true)
            }]
        );
        file.set("t", |_| vec![(Key::Temperature, json!(21.5))])
            .unwrap();
        let expected = HOUSE
            .replace("on = false", "on = true")
            .replace("temperature = 20 ", "temperature = 21.5 ");
        assert_eq!(fs_err::read_to_string(file.path()).unwrap(), expected);
        assert_eq!(file.house().unwrap().devices[1].state["temperature"], 21.5);
        let names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "no temporary file is left: {names:?}");
    }

    #[test]
    fn what_is_so_already_is_not_written() {
        let (_folder, file) = house();
        let before = std::fs::metadata(file.path()).unwrap().modified().unwrap();
        let (_, changes) = file
            .set("t", |_| vec![(Key::Temperature, json!(20.0))])
            .unwrap();
        assert_eq!(changes, []);
        let after = std::fs::metadata(file.path()).unwrap().modified().unwrap();
        assert_eq!(before, after);
    }

    #[test]
    fn changes_from_outside_are_seen() {
        let (_folder, file) = house();
        fs_err::write(file.path(), HOUSE.replace("on = false", "on = true")).unwrap();
        assert_eq!(file.house().unwrap().devices[0].state["on"], true);
        let (_, changes) = file.set("灯", |_| vec![(Key::On, json!(true))]).unwrap();
        assert_eq!(changes, []);
        fs_err::write(file.path(), "name = 5").unwrap();
        assert!(matches!(
            file.house(),
            Err(HouseError::Invalid { line: 1, .. })
        ));
    }

    #[test]
    fn a_device_that_is_gone_is_said_so() {
        let (_folder, file) = house();
        let gone = |result: Result<_, HouseError>| matches!(result, Err(HouseError::Gone { .. }));
        assert!(gone(file.set("x", |_| vec![])));
        assert!(gone(file.set("t", |_| vec![(Key::On, json!(true))])));
    }

    #[test]
    fn a_held_lock_is_waited_for_and_then_given_up() {
        let (_folder, file) = house();
        let file = file.with_lock_wait(Duration::from_millis(30));
        let held = file.lock(Duration::ZERO).unwrap();
        let other = HouseFile::open(file.path()).unwrap();
        let other = other.with_lock_wait(Duration::from_millis(30));
        let error = other
            .set("灯", |_| vec![(Key::On, json!(true))])
            .unwrap_err();
        assert!(matches!(error, HouseError::Held { .. }), "{error}");
        assert_eq!(fs_err::read_to_string(file.path()).unwrap(), HOUSE);
        drop(held);
        other.set("灯", |_| vec![(Key::On, json!(true))]).unwrap();
    }

    #[test]
    fn a_house_is_held_by_one_run_at_a_time() {
        let (folder, file) = house();
        file.hold().unwrap();
        file.hold().unwrap();
        file.set("灯", |_| vec![(Key::On, json!(true))]).unwrap();
        // By whatever name, and although the file was replaced meanwhile.
        let other = folder.path().join("x/../h.toml");
        std::fs::create_dir(folder.path().join("x")).unwrap();
        let other = HouseFile::open(other).unwrap();
        assert!(matches!(other.hold(), Err(HouseError::Held { .. })));
        let other = other.with_lock_wait(Duration::ZERO);
        let refused = other.set("灯", |_| vec![(Key::On, json!(false))]);
        assert!(matches!(refused, Err(HouseError::Held { .. })));
        drop(file);
        other.hold().unwrap();
        other.set("灯", |_| vec![(Key::On, json!(false))]).unwrap();
    }

    #[test]
    fn what_cannot_be_locked_or_saved_leaves_the_house_as_it_was() {
        let (_folder, file) = house();
        // A folder in the lock's place stands for a folder that cannot be written.
        std::fs::create_dir(&file.lock_path).unwrap();
        let error = file
            .set("灯", |_| vec![(Key::On, json!(true))])
            .unwrap_err();
        assert!(
            error.to_string().contains("cannot lock the house"),
            "{error}"
        );
        assert_eq!(fs_err::read_to_string(file.path()).unwrap(), HOUSE);
    }

    #[test]
    fn many_writers_lose_nothing() {
        let (_folder, file) = house();
        let path = file.path().to_owned();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let file = HouseFile::open(&path).unwrap();
                    for _ in 0..5 {
                        file.set("灯", |device| {
                            let level = device.state["brightness"].as_i64().unwrap();
                            vec![(Key::Brightness, json!(level + 1))]
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(file.house().unwrap().devices[0].state["brightness"], 80);
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_house_stays_linked() {
        let (folder, file) = house();
        let link = folder.path().join("link.toml");
        std::os::unix::fs::symlink(file.path(), &link).unwrap();
        let linked = HouseFile::open(&link).unwrap();
        linked.set("灯", |_| vec![(Key::On, json!(true))]).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(file.house().unwrap().devices[0].state["on"], true);
    }
}
