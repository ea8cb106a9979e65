//! Where events go: JSON Lines, one file a run.
//!
//! A line is `{"trace_id":…,"time":…,"event":…,…}`. Files are named by time and trace id
//! (`20261130T060102Z-1ngsz80-007.jsonl`); grammars lie beside them, each once, as
//! `grammars/HASH.gbnf`. Each line is written at once, so that a run that is killed leaves all
//! but at most a part of its last line.

use super::event::Event;
use super::redact::{InvalidPattern, Redaction};
use super::retain::{Retention, prune};
use jiff::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Takes a run's events.
pub trait Trace: Send {
    /// Takes one. A sink that fails keeps its first error for [`finish`](Self::finish): a trace
    /// never stops a run.
    fn emit(&mut self, event: Event);

    /// The file, where there is one.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Ends it.
    ///
    /// # Errors
    /// The first thing that went wrong.
    fn finish(&mut self) -> Result<(), TraceError> {
        Ok(())
    }
}

/// Takes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Trace for Null {
    fn emit(&mut self, _event: Event) {}
}

/// Where and how traces are written.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// The folder, created where missing.
    pub folder: PathBuf,
    /// Arguments whose values are not written, as `tool.argument` with `*`.
    pub redact: Vec<String>,
    /// Whether prompts are written although something is redacted.
    pub keep_prompts: bool,
    /// What is kept of earlier traces.
    pub retention: Retention,
    /// Most bytes of one run's file; what comes after is left out, and a last line says so.
    pub run_bytes: u64,
}

impl TraceSettings {
    /// Nothing redacted, the default retention, 64 MiB a run.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            redact: Vec::new(),
            keep_prompts: false,
            retention: Retention::default(),
            run_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A setting is wrong.
    #[error(transparent)]
    Pattern(#[from] InvalidPattern),
    /// The id cannot be part of a file's name.
    #[error("a trace id has 1 to 64 letters, digits and '-', not {0:?}")]
    Id(String),
    /// A file could not be written.
    #[error("the trace {path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Reads the clock.
pub type Clock = Box<dyn Fn() -> Timestamp + Send>;

/// Writes JSON Lines.
pub struct JsonLines {
    path: PathBuf,
    grammars: PathBuf,
    file: File,
    trace_id: String,
    clock: Clock,
    redaction: Redaction,
    store_grammars: bool,
    stored: Vec<String>,
    left: u64,
    failure: Option<TraceError>,
}

impl fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Runs of one task that may begin within one second.
const MOST_ALIKE: usize = 1000;

/// The file `name.jsonl`, or `name_0002.jsonl` and so on where a run that began in the same second has
/// that: names are sorted in the order in which they came.
fn create_new(folder: &Path, name: &str) -> Result<(PathBuf, File), (PathBuf, io::Error)> {
    let mut number = 1;
    loop {
        let path = match number {
            1 => folder.join(format!("{name}.jsonl")),
            _ => folder.join(format!("{name}_{number:04}.jsonl")),
        };
        match File::options().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_ALIKE => {
                number += 1;
            }
            Err(error) => return Err((path, error)),
        }
    }
}

impl JsonLines {
    /// Begins a run's trace; prunes earlier ones first.
    ///
    /// # Errors
    /// A bad pattern or id, or a folder or file that cannot be written.
    pub fn create(
        settings: &TraceSettings,
        trace_id: &str,
        clock: Clock,
    ) -> Result<Self, TraceError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if trace_id.is_empty() || trace_id.len() > 64 || !trace_id.chars().all(legal) {
            return Err(TraceError::Id(trace_id.to_owned()));
        }
        let redaction = Redaction::new(&settings.redact, settings.keep_prompts)?;
        let fail = |path: &Path, source| TraceError::File {
            path: path.to_owned(),
            source,
        };
        let folder = &settings.folder;
        std::fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
        let earlier = Retention {
            files: settings.retention.files.saturating_sub(1),
            ..settings.retention
        };
        prune(folder, earlier).map_err(|error| fail(folder, error))?;
        let time = clock().strftime("%Y%m%dT%H%M%SZ");
        let name = format!("{time}-{trace_id}");
        let (path, mut file) =
            create_new(folder, &name).map_err(|(path, error)| fail(&path, error))?;
        // A full disk takes a new file, but not a byte in it.
        if let Err(error) = file.write_all(b"\n").and_then(|()| file.set_len(0)) {
            _ = fs_err::remove_file(&path);
            return Err(fail(&path, error));
        }
        Ok(Self {
            path,
            grammars: folder.join("grammars"),
            file,
            trace_id: trace_id.to_owned(),
            clock,
            redaction,
            // A grammar holds the live values of arguments.
            store_grammars: settings.redact.is_empty() || settings.keep_prompts,
            stored: Vec::new(),
            left: settings.run_bytes,
            failure: None,
        })
    }

    fn write(&mut self, event: Event) -> Result<(), TraceError> {
        let mut line = Map::new();
        line.insert("trace_id".into(), self.trace_id.clone().into());
        line.insert("time".into(), (self.clock)().to_string().into());
        if let Event::Grammar { turn, text } = event {
            let hash = grammar_hash(&text);
            self.store_grammar(&hash, &text)?;
            line.insert("event".into(), "grammar".into());
            line.insert("turn".into(), turn.into());
            line.insert("hash".into(), hash.into());
            line.insert("bytes".into(), text.len().into());
        } else {
            match serde_json::to_value(event) {
                Ok(Value::Object(fields)) => line.extend(fields),
                // Events are maps of plain data: this cannot be, and must not stop a run.
                Ok(_) | Err(_) => _ = line.insert("event".into(), "unwritable".into()),
            }
        }
        self.redaction.apply(&mut line);
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        if text.len() as u64 > self.left {
            self.left = 0;
            text = format!(
                "{{\"trace_id\":\"{}\",\"event\":\"cut\",\"reason\":\"the limit on a run's trace\"}}\n",
                self.trace_id
            );
        } else {
            self.left -= text.len() as u64;
        }
        self.file
            .write_all(text.as_bytes())
            .map_err(|source| TraceError::File {
                path: self.path.clone(),
                source,
            })
    }

    /// Writes a grammar unless it is there; marks it as used now, so that it outlives the traces
    /// that came before.
    fn store_grammar(&mut self, hash: &str, text: &str) -> Result<(), TraceError> {
        if !self.store_grammars || self.stored.iter().any(|stored| stored == hash) {
            return Ok(());
        }
        let path = self.grammars.join(format!("{hash}.gbnf"));
        let store = || -> io::Result<()> {
            if let Ok(file) = File::options().write(true).open(&path) {
                return file.set_modified(self.file.metadata()?.modified()?);
            }
            fs_err::create_dir_all(&self.grammars)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.grammars)?;
            file.write_all(text.as_bytes())?;
            file.persist(&path)?;
            Ok(())
        };
        store().map_err(|source| TraceError::File {
            path: path.clone(),
            source,
        })?;
        self.stored.push(hash.to_owned());
        Ok(())
    }
}

impl Trace for JsonLines {
    fn emit(&mut self, event: Event) {
        if self.failure.is_none() && self.left > 0 {
            self.failure = self.write(event).err();
        }
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// The name under which a grammar is stored: the first 16 bytes of its SHA-256, in hexadecimal.
pub fn grammar_hash(text: &str) -> String {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn clock() -> Clock {
        Box::new(|| Timestamp::from_second(1_800_000_000).unwrap())
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn note(data: Value) -> Event {
        Event::Note {
            name: "n".into(),
            data,
        }
    }

    #[test]
    fn runs_of_one_second_have_a_file_each_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let settings = TraceSettings::new(folder.path().to_owned());
        let paths: Vec<PathBuf> = (0..11)
            .map(|_| {
                let trace = JsonLines::create(&settings, "1ngsz80-007", clock()).unwrap();
                trace.path().unwrap().to_owned()
            })
            .collect();
        let mut sorted = paths.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(paths, sorted);
    }

    #[test]
    fn every_line_has_id_time_and_event() {
        let folder = tempfile::tempdir().unwrap();
        let settings = TraceSettings::new(folder.path().join("traces"));
        let mut trace = JsonLines::create(&settings, "1ngsz80-007", clock()).unwrap();
        trace.emit(note(json!({"текст": "💡"})));
        for turn in 1..=2 {
            let text = "root ::= \"a\"\n".into();
            trace.emit(Event::Grammar { turn, text });
        }
        trace.finish().unwrap();
        let path = trace.path().unwrap();
        assert!(
            path.ends_with("traces/20270115T080000Z-1ngsz80-007.jsonl"),
            "{path:?}"
        );
        let lines = lines(path);
        assert_eq!(
            lines[0],
            json!({"trace_id": "1ngsz80-007", "time": "2027-01-15T08:00:00Z", "event": "note",
                   "name": "n", "data": {"текст": "💡"}})
        );
        let hash = grammar_hash("root ::= \"a\"\n");
        assert_eq!(
            (&lines[1]["hash"], &lines[2]["hash"]),
            (&json!(hash), &json!(hash))
        );
        let stored = folder.path().join(format!("traces/grammars/{hash}.gbnf"));
        assert_eq!(std::fs::read_to_string(stored).unwrap(), "root ::= \"a\"\n");
    }

    #[test]
    fn a_run_is_bounded_and_earlier_ones_leave() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = TraceSettings::new(folder.path().to_owned());
        settings.run_bytes = 1000;
        settings.retention.files = 2;
        for id in ["a", "b", "c"] {
            let mut trace = JsonLines::create(&settings, id, clock()).unwrap();
            for _ in 0..100 {
                trace.emit(note(json!("x".repeat(100))));
            }
            trace.finish().unwrap();
            let lines = lines(trace.path().unwrap());
            assert_eq!(lines.last().unwrap()["event"], "cut");
            assert!(lines.len() < 12);
        }
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn redaction_also_keeps_grammars_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = TraceSettings::new(folder.path().to_owned());
        settings.redact = vec!["*.path".into()];
        let mut trace = JsonLines::create(&settings, "a", clock()).unwrap();
        let text = "root ::= \"secret.txt\"".into();
        trace.emit(Event::Grammar { turn: 1, text });
        let arguments = json!({"path": "secret.txt"}).as_object().unwrap().clone();
        let tool = "get_file_size".into();
        trace.emit(Event::Call {
            step: 1,
            tool,
            arguments,
        });
        assert!(!folder.path().join("grammars").exists());
        let text = std::fs::read_to_string(trace.path().unwrap()).unwrap();
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn bad_settings_are_typed_errors() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = TraceSettings::new(folder.path().to_owned());
        for id in ["", "../a", "a b", &"x".repeat(65)] {
            assert!(matches!(
                JsonLines::create(&settings, id, clock()),
                Err(TraceError::Id(_))
            ));
        }
        settings.redact = vec!["body".into()];
        assert!(matches!(
            JsonLines::create(&settings, "a", clock()),
            Err(TraceError::Pattern(_))
        ));
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let settings = TraceSettings::new(file);
        assert!(matches!(
            JsonLines::create(&settings, "a", clock()),
            Err(TraceError::File { .. })
        ));
    }
}
