//! Results as they come, one JSON object a line, so that a benchmark that was stopped goes on
//! where it was.
//!
//! The first line says what was run (`{"bench": …}`); each further one is a result
//! (`{"run": …, "repeat": …, "id": …, "result": …}`). A last line that was cut off while it was
//! written is dropped.

use crate::files::bytes_of;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// A file of results.
#[derive(Debug)]
pub struct ResultLog {
    path: PathBuf,
    file: File,
    known: HashMap<(String, usize, String), Value>,
}

/// Why results cannot be taken up or kept.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is no result.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Its results are of a benchmark with other settings.
    #[error("{}: holds results of a benchmark with another {name}: {there}, now {here}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The setting.
        name: String,
        /// Its value in the file.
        there: String,
        /// Its value now.
        here: String,
    },
    /// Another run writes to it.
    #[error("{}: another benchmark is writing to this file", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

/// Bytes of the largest file that is taken up.
const LARGEST: u64 = 1 << 30;

impl ResultLog {
    /// Opens the file or begins it. `what` names everything that the results depend on: a file
    /// with another value of one of its members is refused.
    ///
    /// # Errors
    /// [`LogError`]; the file is as it was.
    pub fn open(path: &Path, what: &serde_json::Map<String, Value>) -> Result<Self, LogError> {
        let failed = |source| LogError::File {
            path: path.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(failed)?;
        if file.try_lock().is_err() {
            return Err(LogError::Busy {
                path: path.to_owned(),
            });
        }
        let bytes = bytes_of(&file, LARGEST)
            .map_err(failed)?
            .ok_or_else(|| failed(io::Error::other("more than a gigabyte")))?;
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let text = std::str::from_utf8(&bytes[..whole])
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        let mut known = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            let wrong = |message: String| LogError::Line {
                path: path.to_owned(),
                line: at + 1,
                message,
            };
            let value: Value =
                serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if at == 0 {
                let there = value.get("bench").and_then(Value::as_object);
                let there = there.ok_or_else(|| wrong("no results of a benchmark".to_owned()))?;
                same(path, there, what)?;
                continue;
            }
            let entry = entry(&value).ok_or_else(|| wrong("no result".to_owned()))?;
            known.insert(entry.0, entry.1);
        }
        if text.is_empty()
            && whole != bytes.len()
            && !b"{\"bench\":".starts_with(&bytes[..bytes.len().min(9)])
        {
            return Err(LogError::Line {
                path: path.to_owned(),
                line: 1,
                message: "no results of a benchmark".to_owned(),
            });
        }
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut log = Self {
            path: path.to_owned(),
            file,
            known,
        };
        if whole == 0 {
            log.line(&json!({ "bench": what }))?;
        }
        Ok(log)
    }

    /// Number of results that it holds.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The result of a request in a run, where it is there and of this type.
    pub fn find<T: DeserializeOwned>(&self, run: &str, repeat: usize, id: &str) -> Option<T> {
        let key = (run.to_owned(), repeat, id.to_owned());
        serde_json::from_value(self.known.get(&key)?.clone()).ok()
    }

    /// Adds a result.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn add<T: Serialize>(
        &mut self,
        run: &str,
        repeat: usize,
        id: &str,
        result: &T,
    ) -> Result<(), LogError> {
        self.line(&json!({ "run": run, "repeat": repeat, "id": id, "result": result }))
    }

    fn line(&mut self, value: &Value) -> Result<(), LogError> {
        // In one write, so that a line is whole or the last one.
        self.file
            .write_all(format!("{value}\n").as_bytes())
            .map_err(|source| LogError::File {
                path: self.path.clone(),
                source,
            })
    }
}

fn entry(value: &Value) -> Option<((String, usize, String), Value)> {
    let run = value.get("run")?.as_str()?.to_owned();
    let repeat = usize::try_from(value.get("repeat")?.as_u64()?).ok()?;
    let id = value.get("id")?.as_str()?.to_owned();
    Some(((run, repeat, id), value.get("result")?.clone()))
}

fn same(
    path: &Path,
    there: &serde_json::Map<String, Value>,
    here: &serde_json::Map<String, Value>,
) -> Result<(), LogError> {
    for name in there.keys().chain(here.keys()) {
        let (old, new) = (there.get(name), here.get(name));
        if old != new {
            let shown = |value: Option<&Value>| value.unwrap_or(&Value::Null).to_string();
            return Err(LogError::Other {
                path: path.to_owned(),
                name: name.clone(),
                there: shown(old),
                here: shown(new),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(model: &str) -> serde_json::Map<String, Value> {
        json!({ "suite": "s", "model": model })
            .as_object()
            .unwrap()
            .clone()
    }

    #[test]
    fn results_are_taken_up_again_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let mut log = ResultLog::open(&path, &what("m")).unwrap();
        log.add("m", 0, "a", &1).unwrap();
        log.add("m", 1, "a", &2).unwrap();
        drop(log);
        let mut text = fs_err::read_to_string(&path).unwrap();
        text.push_str("{\"run\": \"m\", \"rep");
        fs_err::write(&path, &text).unwrap();
        let mut log = ResultLog::open(&path, &what("m")).unwrap();
        assert_eq!(log.len(), 2);
        assert_eq!(log.find("m", 0, "a"), Some(1));
        assert_eq!(log.find("m", 1, "a"), Some(2));
        assert_eq!(log.find::<i32>("m", 2, "a"), None);
        log.add("m", 2, "b", &3).unwrap();
        drop(log);
        let log = ResultLog::open(&path, &what("m")).unwrap();
        assert_eq!(log.find("m", 2, "b"), Some(3));
    }

    #[test]
    fn other_files_are_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        drop(ResultLog::open(&path, &what("m")).unwrap());
        let error = ResultLog::open(&path, &what("n")).unwrap_err().to_string();
        assert!(error.contains("another model: \"m\", now \"n\""), "{error}");
        let held = ResultLog::open(&path, &what("m")).unwrap();
        let error = ResultLog::open(&path, &what("m")).unwrap_err();
        assert!(matches!(error, LogError::Busy { .. }), "{error}");
        drop(held);
        for (text, says) in [
            ("my notes", "no results of a benchmark"),
            ("my notes\n", ":1: expected value"),
            ("{}\n", ":1: no results of a benchmark"),
            (
                "{\"bench\":{\"suite\":\"s\",\"model\":\"m\"}}\n{}\n",
                ":2: no result",
            ),
        ] {
            fs_err::write(&path, text).unwrap();
            let error = ResultLog::open(&path, &what("m")).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert_eq!(fs_err::read_to_string(&path).unwrap(), text);
        }
    }
}
