//! What was learned and what a person added, in a file: one example a line, oldest first.
//!
//! Readers need no lock: a save replaces the file in one step. Writers hold an advisory lock on a
//! file beside it and read again once they have it, so that two runs at once lose nothing of each
//! other's. The file is bounded as a [`Pool`] is. A damaged line is told of and left out; it is
//! gone with the next save.

use super::example::{Example, ExampleError, ExampleId, Source};
use super::pool::Pool;
use crate::files::{bytes_of, lock_within};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest file that is read, in bytes: some fifty times what the bounds allow.
const LARGEST: u64 = 64 << 20;

/// Longest line, in bytes.
pub const LONGEST_LINE: usize = 16 << 10;

/// Most examples that a person may add.
pub const MOST_ADDED: usize = 1000;

/// How long a writer waits for another one, which takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What the file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Its examples, oldest first.
    pub examples: Vec<Example>,
    /// Its lines that are none.
    pub damaged: Vec<ExampleError>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LearnedError {
    /// It cannot be read or written. The error names the file.
    #[error(transparent)]
    File(#[from] io::Error),
    /// It is far larger than it can become.
    #[error("{path} has more than the {} MiB that are read", LARGEST >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Another run is writing and does not come to an end.
    #[error("{path} is being written by another run")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A person has added enough.
    #[error("{path} holds {MOST_ADDED} examples that were added, and no more fit")]
    Full {
        /// The file.
        path: PathBuf,
    },
}

/// The file.
#[derive(Clone, Debug)]
pub struct LearnedFile {
    path: PathBuf,
}

impl LearnedFile {
    /// The file at `path`, which need not exist. Nothing is touched yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it. No file is an empty one.
    ///
    /// # Errors
    /// A file that cannot be read at all; damaged lines are no error.
    pub fn read(&self) -> Result<Learned, LearnedError> {
        let file = match fs_err::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Learned::default()),
            Err(error) => return Err(error.into()),
        };
        match bytes_of(file, LARGEST)? {
            Some(bytes) => Ok(Learned::of(&bytes)),
            None => {
                let path = self.path.clone();
                Err(LearnedError::TooLarge { path })
            }
        }
    }

    /// Adds examples, as the newest ones.
    ///
    /// # Errors
    /// [`LearnedError`]; then the file is as it was.
    pub fn add(&self, examples: &[Example]) -> Result<(), LearnedError> {
        let _lock = self.lock()?;
        let mut pool = self.pool()?;
        for example in examples {
            pool.add(example.clone());
        }
        let is_added = |example: &Example| example.source == Source::Added;
        if examples.iter().any(is_added)
            && pool.iter().filter(|(_, example)| is_added(example)).count() > MOST_ADDED
        {
            let path = self.path.clone();
            return Err(LearnedError::Full { path });
        }
        self.save(&pool)
    }

    /// Takes examples out; says how many were there.
    ///
    /// # Errors
    /// [`LearnedError`]; then the file is as it was.
    pub fn forget(&self, ids: &[ExampleId]) -> Result<usize, LearnedError> {
        let _lock = self.lock()?;
        let mut pool = self.pool()?;
        let gone = ids.iter().filter(|id| pool.forget(id)).count();
        if gone > 0 {
            self.save(&pool)?;
        }
        Ok(gone)
    }

    fn pool(&self) -> Result<Pool, LearnedError> {
        Ok(Pool::new(self.read()?.examples))
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// Holds off other writers as long as the result lives.
    fn lock(&self) -> Result<File, LearnedError> {
        fs_err::create_dir_all(self.folder())?;
        let name = self.path.file_name().unwrap_or_default();
        let lock = self
            .folder()
            .join(format!(".{}.lock", name.to_string_lossy()));
        let named = |error: io::Error| named(&lock, &error);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&lock).map_err(named)?;
        if lock_within(&file, LOCK_WAIT).map_err(named)? {
            return Ok(file);
        }
        let path = self.path.clone();
        Err(LearnedError::Locked { path })
    }

    /// Writes beside the file and renames: whoever reads sees the old one or the new one.
    fn save(&self, pool: &Pool) -> Result<(), LearnedError> {
        let mut text = String::new();
        for (_, example) in pool.iter() {
            text.push_str(&example.to_line());
            text.push('\n');
        }
        let write = || -> io::Result<()> {
            // A link's target is replaced, not the link.
            let path = self
                .path
                .canonicalize()
                .unwrap_or_else(|_| self.path.clone());
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            let mut file = tempfile::Builder::new()
                .prefix(".learned-")
                .suffix(".tmp")
                .tempfile_in(folder.unwrap_or(Path::new(".")))?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| named(&self.path, &error))?;
        Ok(())
    }
}

impl Learned {
    /// What such a file's bytes say.
    fn of(bytes: &[u8]) -> Self {
        let mut learned = Self::default();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let number = number + 1;
            let damaged = |reason: &str| ExampleError::Syntax {
                line: number,
                reason: reason.to_owned(),
            };
            let example = if line.len() > LONGEST_LINE {
                Err(damaged("it is too long"))
            } else {
                std::str::from_utf8(line)
                    .map_err(|_| damaged("it is not UTF-8 text"))
                    .and_then(|line| Example::parse(line, number))
            };
            match example {
                Ok(example) => learned.examples.push(example),
                Err(error) => learned.damaged.push(error),
            }
        }
        learned
    }

    /// One line about the damaged lines; `None` where there are none.
    pub fn report(&self, path: &Path) -> Option<String> {
        let first = self.damaged.first()?;
        let count = match self.damaged.len() {
            1 => "1 line is damaged and left out".to_owned(),
            more => format!("{more} lines are damaged and left out"),
        };
        Some(format!("{}: {count}: {first}", path.display()))
    }
}

/// The error, naming the file.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fewshot::pool::{LEARNED_PER_TOOL, STALE_AFTER};

    fn example(tool: &str, request: &str, source: &str) -> Example {
        let line = format!(
            r#"{{"request":"{request}","calls":[{{"tool":"{tool}","arguments":{{}}}}],"source":"{source}"}}"#
        );
        Example::parse(&line, 1).unwrap()
    }

    fn requests(file: &LearnedFile) -> Vec<String> {
        let examples = file.read().unwrap().examples;
        examples.into_iter().map(|e| e.request).collect()
    }

    #[test]
    fn what_is_added_is_there_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let file = LearnedFile::new(folder.path().join("state/learned.jsonl"));
        assert_eq!(file.read().unwrap(), Learned::default());
        let all = ["a", "b", "a"].map(|request| example("t", request, "learned"));
        file.add(&all).unwrap();
        assert_eq!(requests(&file), ["b", "a"], "the same again is the newest");
        assert_eq!(file.forget(&[all[1].id(), all[1].id()]).unwrap(), 1);
        assert_eq!(requests(&file), ["a"]);
        // Nothing but the file and its lock is left.
        let names = std::fs::read_dir(folder.path().join("state")).unwrap();
        assert_eq!(names.count(), 2);
    }

    #[test]
    fn it_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = LearnedFile::new(folder.path().join("learned.jsonl"));
        let mut all = Vec::new();
        for tool in 0..40 {
            for number in 0..LEARNED_PER_TOOL + 9 {
                let request = format!("{tool} {number}");
                all.push(example(&format!("t{tool}"), &request, "learned"));
            }
        }
        file.add(&all).unwrap();
        let count = requests(&file).len();
        assert!(count as u64 <= STALE_AFTER + 1 && count > 100, "{count}");
        // What a person wrote stays, and has a bound of its own.
        let added: Vec<_> = (0..MOST_ADDED)
            .map(|number| example("t0", &format!("added {number}"), "added"))
            .collect();
        file.add(&added).unwrap();
        let one_more = example("t0", "one more", "added");
        let error = file.add(&[one_more]).unwrap_err();
        assert!(matches!(error, LearnedError::Full { .. }), "{error}");
        file.add(&all[..1]).unwrap();
        assert!(requests(&file).len() > MOST_ADDED);
    }

    #[test]
    fn damaged_lines_are_reported_and_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = LearnedFile::new(folder.path().join("learned.jsonl"));
        let good = example("t", "a", "learned").to_line();
        let long = format!(
            r#"{{"request":"{}","answer":"a"}}"#,
            "x".repeat(LONGEST_LINE)
        );
        for (bad, says) in [
            (&b"{\"request\": \"a\""[..], "EOF while parsing"),
            (b"\xff\xfe", "it is not UTF-8 text"),
            (
                b"{\"request\":\"{x}\",\"answer\":\"\"}",
                "nothing says what fills {x}",
            ),
            (long.as_bytes(), "it is too long"),
        ] {
            let bytes = [good.as_bytes(), bad, b"", good.as_bytes()].join(&b'\n');
            std::fs::write(file.path(), bytes).unwrap();
            let read = file.read().unwrap();
            assert_eq!((read.examples.len(), read.damaged.len()), (2, 1), "{says}");
            let report = read.report(Path::new("f")).unwrap();
            assert!(
                report.starts_with("f: 1 line is damaged and left out: line 2: "),
                "{report}"
            );
            assert!(report.contains(says) && !report.contains('\n'), "{report}");
        }
        file.add(&[example("t", "b", "learned")]).unwrap();
        assert_eq!(requests(&file), ["a", "b"]);
    }

    #[test]
    fn two_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.jsonl");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = path.clone();
                scope.spawn(move || {
                    for number in 0..12 {
                        let tool = format!("t{writer}");
                        let one = example(&tool, &format!("{writer} {number}"), "learned");
                        LearnedFile::new(&path).add(&[one]).unwrap();
                    }
                });
            }
        });
        assert_eq!(requests(&LearnedFile::new(path)).len(), 48);
    }
}
