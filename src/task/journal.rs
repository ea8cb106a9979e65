//! The journal: one SQLite database for many tasks (WAL, `synchronous=FULL`), each task a hash
//! chain of events that are only ever added, with a head file per task beside it.
//!
//! `journal.db` has its heads in the folder `journal.heads`. An event is durable when
//! [`TaskLog::append`] returns: first the database's log is synced, then the head. A crash
//! between the two leaves the head one append behind, which is harmless; a database that ends
//! before its head has lost events, and is told so. Damage concerns one task: it can still be
//! read up to there ([`Journal::read`]), and the others go on.
//!
//! A task is run by one process at a time (a lock on its head file); different tasks of one
//! journal may run at once.

use super::chain::{self, Damage, Position, Row};
use super::event::{Entry, Event};
use super::head::{self, Head, HeadFile, LockError};
use super::id::TaskId;
use super::journal_error::BUSY_SECONDS;
pub use super::journal_error::JournalError;
use super::programs::ProgramLock;
use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest event, in bytes of its encoding.
pub const EVENT_LIMIT: usize = 1024 * 1024;

/// How long resuming waits for a task's programs.
const PROGRAM_WAIT: Duration = Duration::from_secs(60);

/// The database's format (`PRAGMA user_version`).
const FORMAT: i64 = 1;

/// Marks the file as this program's (`PRAGMA application_id`): "snaf".
const APPLICATION: i64 = 0x736e_6166;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS event (
        id INTEGER PRIMARY KEY,
        task TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        hash BLOB NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (task, sequence)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS abandoned (
        id INTEGER PRIMARY KEY,
        task TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        hash BLOB NOT NULL,
        body TEXT NOT NULL,
        time TEXT NOT NULL
    ) STRICT;
";

/// A journal that is open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    heads: PathBuf,
    connection: Connection,
    program_wait: Duration,
}

/// One task in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// Its id.
    pub id: TaskId,
    /// Number of events.
    pub events: u64,
    /// Whether a process runs it now.
    pub running: bool,
}

/// A task as the journal has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its id.
    pub id: TaskId,
    /// The events that stand, in order.
    pub entries: Vec<Entry>,
    /// What is wrong after them, if anything.
    pub damage: Option<Damage>,
    /// Whether a process runs it now.
    pub running: bool,
}

impl Journal {
    /// Opens the journal at `path` for writing, creating it and its folder where missing.
    ///
    /// # Errors
    /// [`JournalError`]; nothing can be recorded, so nothing must be executed.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let heads = path.with_extension("heads");
        fs_err::create_dir_all(&heads).map_err(|error| JournalError::file(&heads, error))?;
        let connection = connect(path)?;
        Ok(Self {
            path: path.to_owned(),
            heads,
            connection,
            program_wait: PROGRAM_WAIT,
        })
    }

    /// The same journal, whose [`resume`](Self::resume) waits at most `wait` for a program that
    /// outlived the run that started it.
    #[must_use]
    pub fn with_program_wait(mut self, wait: Duration) -> Self {
        self.program_wait = wait;
        self
    }

    /// Opens an existing journal for reading only: it works in a read-only folder too. An empty
    /// file is a journal without tasks.
    ///
    /// # Errors
    /// Where there is none, or it cannot be read.
    pub fn open_read_only(path: &Path) -> Result<Self, JournalError> {
        std::fs::metadata(path).map_err(|error| JournalError::file(path, error))?;
        let fail = |error: rusqlite::Error| JournalError::database(path, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
        if let Err(error) = check_format(&connection, path) {
            // A WAL database in a folder where nothing can be created needs `immutable`; that
            // ignores the log, so only without one.
            let log = PathBuf::from(format!("{}-wal", path.display()));
            if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
                return Err(error);
            }
            let uri = format!("file:{}?immutable=1", uri_path(path));
            connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
                .map_err(fail)?;
            check_format(&connection, path)?;
        }
        if check_format(&connection, path)? == 0 {
            // Whoever made it was killed before there was a table in it: no task is on record.
            // Heads still tell where there were some.
            connection = Connection::open_in_memory().map_err(fail)?;
            connection.execute_batch(SCHEMA).map_err(fail)?;
        }
        connection
            .busy_timeout(Duration::from_secs(BUSY_SECONDS))
            .map_err(fail)?;
        Ok(Self {
            path: path.to_owned(),
            heads: path.with_extension("heads"),
            connection,
            program_wait: Duration::ZERO,
        })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All tasks, oldest first. Tasks of which only the head is left are listed with no events.
    ///
    /// # Errors
    /// Where the database or the folder cannot be read.
    pub fn tasks(&self) -> Result<Vec<TaskRow>, JournalError> {
        let mut rows: Vec<TaskRow> = self
            .connection
            .prepare_cached("SELECT task, count(*) FROM event GROUP BY task ORDER BY task")
            .and_then(|mut statement| {
                let pairs = statement.query_map([], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
                })?;
                pairs.collect::<Result<Vec<_>, _>>()
            })
            .map_err(|error| self.database_error(&error))?
            .into_iter()
            .filter_map(|(task, events)| {
                Some(TaskRow {
                    id: TaskId::try_from(task).ok()?,
                    events: events.unsigned_abs(),
                    running: false,
                })
            })
            .collect();
        for row in &mut rows {
            row.running = head::peek(&self.head_path(&row.id)).is_ok_and(|(_, running)| running);
        }
        if let Ok(folder) = std::fs::read_dir(&self.heads) {
            let lost = folder
                .filter_map(|file| file.ok()?.file_name().into_string().ok()?.parse().ok())
                .filter(|id: &TaskId| rows.binary_search_by(|row| row.id.cmp(id)).is_err())
                .filter(|id| {
                    let head = head::peek(&self.head_path(id));
                    matches!(head, Ok((Head::At(position), _)) if position.sequence > 0)
                })
                .map(|id| TaskRow {
                    id,
                    events: 0,
                    running: false,
                });
            let lost: Vec<_> = lost.collect();
            rows.extend(lost);
            rows.sort_by(|a, b| a.id.cmp(&b.id));
        }
        Ok(rows)
    }

    /// The one task whose id is or begins with `name`.
    ///
    /// # Errors
    /// [`JournalError::UnknownTask`], [`JournalError::Ambiguous`], or a failing database.
    pub fn find(&self, name: &str) -> Result<TaskId, JournalError> {
        let mut ids: Vec<_> = self.tasks()?.into_iter().map(|row| row.id).collect();
        if let Some(at) = ids.iter().position(|id| id.as_str() == name) {
            return Ok(ids.swap_remove(at));
        }
        ids.retain(|id| !name.is_empty() && id.as_str().starts_with(name));
        match ids.len() {
            1 => Ok(ids.swap_remove(0)),
            0 => Err(JournalError::UnknownTask { name: name.into() }),
            count => Err(JournalError::Ambiguous {
                prefix: name.into(),
                count,
            }),
        }
    }

    /// Reads a task without locking it, up to its end or its first damage.
    ///
    /// # Errors
    /// [`JournalError::UnknownTask`], or a failing database.
    pub fn read(&self, id: &TaskId) -> Result<Record, JournalError> {
        // The head first: a process that appends in between only makes the database longer.
        let (head, running) = match head::peek(&self.head_path(id)) {
            Ok((Head::At(position), running)) => (Some(position), running),
            Ok((Head::Empty | Head::Unreadable, running)) => (None, running),
            Err(_) => (None, false),
        };
        let (entries, _, damage) = self.verify(id, head)?;
        if entries.is_empty() && head.is_none_or(|head| head.sequence == 0) {
            let any = self.has_rows(id)?;
            if !any {
                return Err(JournalError::UnknownTask {
                    name: id.to_string(),
                });
            }
        }
        Ok(Record {
            id: id.clone(),
            entries,
            damage,
            running,
        })
    }

    /// Begins a task with its first event (an [`Event::TaskCreated`]).
    ///
    /// # Errors
    /// [`JournalError::Exists`] where the id is taken, or why nothing could be written.
    pub fn create(
        &self,
        id: TaskId,
        now: Timestamp,
        created: Event,
    ) -> Result<(TaskLog, Entry), JournalError> {
        let path = self.head_path(&id);
        let start = chain::start(&id);
        let taken = self.has_rows(&id)?;
        if taken {
            return Err(JournalError::Exists { id });
        }
        let head = HeadFile::create(&path, &start).map_err(|error| match error {
            LockError::Io(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                JournalError::Exists { id: id.clone() }
            }
            error => self.lock_error(&id, error),
        })?;
        let mut log = TaskLog {
            id,
            path: self.path.clone(),
            head_path: path,
            connection: connect(&self.path)?,
            head,
            programs: None,
            position: start,
        };
        match log.append(now, vec![created]) {
            Ok(mut entries) => match entries.pop() {
                Some(entry) => Ok((log, entry)),
                None => Err(JournalError::UnknownTask {
                    name: log.id.to_string(),
                }),
            },
            Err(error) => {
                if log.position.sequence == 0 {
                    // Nothing was recorded: leave no head behind. Failing to is harmless.
                    let _ = fs_err::remove_file(&log.head_path);
                }
                Err(error)
            }
        }
    }

    /// Takes a task up: locks it, waits for programs that its last run left behind, verifies its
    /// chain, and gives its events.
    ///
    /// # Errors
    /// [`JournalError::Running`], [`JournalError::ProgramRunning`], [`JournalError::Damaged`],
    /// [`JournalError::UnknownTask`], or a failing database.
    pub fn resume(&self, id: &TaskId) -> Result<(TaskLog, Vec<Entry>), JournalError> {
        let path = self.head_path(id);
        let (mut head, position) = match HeadFile::open(&path) {
            Ok(mut head) => {
                let said = head
                    .read()
                    .map_err(|error| JournalError::file(&path, error))?;
                (Some(head), said)
            }
            Err(LockError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                (None, Head::Unreadable)
            }
            Err(error) => return Err(self.lock_error(id, error)),
        };
        let programs = self.wait_for_programs(id)?;
        let said = match position {
            Head::At(position) => Some(position),
            Head::Empty | Head::Unreadable => None,
        };
        let (entries, position, damage) = self.verify(id, said)?;
        if entries.is_empty() && said.is_none_or(|said| said.sequence == 0) && !self.has_rows(id)? {
            return Err(JournalError::UnknownTask {
                name: id.to_string(),
            });
        }
        let (Some(head), None) = (head.take(), &damage) else {
            return Err(JournalError::Damaged {
                id: id.clone(),
                damage: damage.unwrap_or(Damage::HeadUnreadable),
                standing: position.sequence,
            });
        };
        let log = TaskLog {
            id: id.clone(),
            path: self.path.clone(),
            head_path: path,
            connection: connect(&self.path)?,
            head,
            programs,
            position,
        };
        Ok((log, entries))
    }

    fn wait_for_programs(&self, id: &TaskId) -> Result<Option<ProgramLock>, JournalError> {
        let path = programs_path(&self.head_path(id));
        if !path.exists() {
            return Ok(None);
        }
        match ProgramLock::take(&path, self.program_wait) {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::Held) => Err(JournalError::ProgramRunning {
                id: id.clone(),
                seconds: self.program_wait.as_secs(),
            }),
            Err(LockError::Io(error)) => Err(JournalError::file(&path, error)),
        }
    }

    /// The way on from damage: moves the events from the first damage on into the table
    /// `abandoned` (kept, not part of the task any more) and sets the head to what stands. No
    /// effect in the world is undone. A task without damage is left as it is.
    ///
    /// # Errors
    /// [`JournalError::Running`], [`JournalError::UnknownTask`], or a failing database.
    pub fn abandon_damaged(&self, id: &TaskId, now: Timestamp) -> Result<Record, JournalError> {
        let path = self.head_path(id);
        let mut head = match HeadFile::open(&path) {
            Err(LockError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                HeadFile::create(&path, &chain::start(id))
            }
            opened => opened,
        }
        .map_err(|error| self.lock_error(id, error))?;
        let said = match head
            .read()
            .map_err(|error| JournalError::file(&path, error))?
        {
            Head::At(position) => Some(position),
            Head::Empty | Head::Unreadable => None,
        };
        let (_, position, damage) = self.verify(id, said)?;
        if damage.is_some() {
            self.move_from(id, position.sequence + 1, now)
                .map_err(|error| self.database_error(&error))?;
            head.reset(&position)
                .map_err(|error| JournalError::file(&path, error))?;
        }
        drop(head);
        self.read(id)
    }

    fn move_from(&self, id: &TaskId, first: u64, now: Timestamp) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        let (id, first) = (id.as_str(), to_sql(first));
        transaction.execute(
            "INSERT INTO abandoned (task, sequence, hash, body, time)
             SELECT task, sequence, hash, body, ?3 FROM event WHERE task = ?1 AND sequence >= ?2",
            params![id, first, now.to_string()],
        )?;
        transaction.execute(
            "DELETE FROM event WHERE task = ?1 AND sequence >= ?2",
            params![id, first],
        )?;
        transaction.commit()
    }

    fn verify(
        &self,
        id: &TaskId,
        head: Option<Position>,
    ) -> Result<(Vec<Entry>, Position, Option<Damage>), JournalError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT sequence, hash, body FROM event WHERE task = ?1 ORDER BY sequence",
            )
            .map_err(|error| self.database_error(&error))?;
        let rows = statement
            .query_map([id.as_str()], |row| {
                Ok(Row {
                    sequence: row.get::<_, i64>(0)?.unsigned_abs(),
                    hash: row.get(1)?,
                    body: row.get(2)?,
                })
            })
            .map_err(|error| self.database_error(&error))?;
        let rows = rows.map(|row| row.map_err(|error| error.to_string()));
        Ok(chain::verify(id, rows, head))
    }

    fn has_rows(&self, id: &TaskId) -> Result<bool, JournalError> {
        self.connection
            .query_row("SELECT 1 FROM event WHERE task = ?1", [id.as_str()], |_| {
                Ok(())
            })
            .optional()
            .map(|found| found.is_some())
            .map_err(|error| self.database_error(&error))
    }

    fn head_path(&self, id: &TaskId) -> PathBuf {
        self.heads.join(id.as_str())
    }

    fn lock_error(&self, id: &TaskId, error: LockError) -> JournalError {
        match error {
            LockError::Held => JournalError::Running { id: id.clone() },
            LockError::Io(error) => JournalError::file(&self.head_path(id), error),
        }
    }

    fn database_error(&self, error: &rusqlite::Error) -> JournalError {
        JournalError::database(&self.path, error)
    }
}

/// A task that this process runs: the lock lasts as long as this value.
#[derive(Debug)]
pub struct TaskLog {
    id: TaskId,
    path: PathBuf,
    head_path: PathBuf,
    connection: Connection,
    head: HeadFile,
    programs: Option<ProgramLock>,
    position: Position,
}

impl TaskLog {
    /// The task.
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// Sequence of the last event.
    pub fn sequence(&self) -> u64 {
        self.position.sequence
    }

    /// While it is lent, programs that this process starts hold a lock that resuming the task
    /// waits for.
    ///
    /// # Errors
    /// Where the lock cannot be had: then no program of the task may be started.
    pub fn lend_lock(&mut self, lend: bool) -> Result<(), JournalError> {
        let path = programs_path(&self.head_path);
        let lock = match &mut self.programs {
            Some(lock) => lock,
            None if !lend => return Ok(()),
            none => {
                let taken = ProgramLock::take(&path, Duration::ZERO);
                none.insert(taken.map_err(|error| match error {
                    LockError::Held => JournalError::ProgramRunning {
                        id: self.id.clone(),
                        seconds: 0,
                    },
                    LockError::Io(error) => JournalError::file(&path, error),
                })?)
            }
        };
        lock.lend(lend)
            .map_err(|error| JournalError::file(&path, error))
    }

    /// Lets the database grow by at most `pages` more, as a full disk would.
    #[cfg(test)]
    pub(super) fn limit_pages(&mut self, pages: i64) {
        let count: i64 = self
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        let most = count + pages;
        self.connection
            .pragma_update_and_check(None, "max_page_count", most, |_| Ok(()))
            .unwrap();
    }

    /// Records events, all or none, as of `now`. They are durable when this returns.
    ///
    /// # Errors
    /// Where they could not be recorded. After [`JournalError::HeadNotSynced`] they are in the
    /// database; what they announce should still not be executed.
    pub fn append(
        &mut self,
        now: Timestamp,
        events: Vec<Event>,
    ) -> Result<Vec<Entry>, JournalError> {
        let fail = |error: rusqlite::Error| JournalError::database(&self.path, &error);
        let mut position = self.position;
        let mut entries = Vec::with_capacity(events.len());
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        for event in events {
            let event = event.bounded();
            let body =
                chain::encode(now, event.clone()).map_err(|error| JournalError::Database {
                    path: self.path.clone(),
                    reason: error.to_string(),
                })?;
            if body.len() > EVENT_LIMIT {
                return Err(JournalError::TooLarge {
                    bytes: body.len(),
                    limit: EVENT_LIMIT,
                });
            }
            position = chain::next(&position, body.as_bytes());
            transaction
                .prepare_cached(
                    "INSERT INTO event (task, sequence, hash, body) VALUES (?1, ?2, ?3, ?4)",
                )
                .and_then(|mut statement| {
                    let sequence = to_sql(position.sequence);
                    statement.execute(params![
                        self.id.as_str(),
                        sequence,
                        &position.hash[..],
                        body
                    ])
                })
                .map_err(fail)?;
            entries.push(Entry {
                sequence: position.sequence,
                time: now,
                event,
            });
        }
        transaction.commit().map_err(fail)?;
        self.position = position;
        self.head
            .write(&position)
            .map_err(|source| JournalError::HeadNotSynced {
                path: self.head_path.clone(),
                source,
            })?;
        Ok(entries)
    }
}

/// The lock of a task's programs, beside its head.
fn programs_path(head: &Path) -> PathBuf {
    head.with_extension("programs")
}

/// SQLite's integers are signed; a sequence never comes near their end.
fn to_sql(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// A connection that writes durably.
fn connect(path: &Path) -> Result<Connection, JournalError> {
    let fail = |error: rusqlite::Error| JournalError::database(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection
        .busy_timeout(Duration::from_secs(BUSY_SECONDS))
        .map_err(fail)?;
    connection
        .execute_batch(
            "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA fullfsync = ON;",
        )
        .map_err(fail)?;
    // SQLite opens a file that it may not write without a word, for reading.
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(fail)? {
        return Err(JournalError::ReadOnly { path: path.into() });
    }
    if check_format(&connection, path)? == 0 {
        // The switch to WAL does not wait for others who do the same: it is tried again.
        let mut tries = 0;
        while let Err(error) = set_wal(&connection) {
            if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy) || tries == 50 {
                return Err(fail(error));
            }
            tries += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        transaction.execute_batch(SCHEMA).map_err(fail)?;
        transaction
            .pragma_update(None, "application_id", APPLICATION)
            .map_err(fail)?;
        transaction
            .pragma_update(None, "user_version", FORMAT)
            .map_err(fail)?;
        transaction.commit().map_err(fail)?;
    }
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(fail)?;
    Ok(connection)
}

fn set_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
}

/// The format of the database: 0 where it is new and empty.
fn check_format(connection: &Connection, path: &Path) -> Result<i64, JournalError> {
    let fail = |error: rusqlite::Error| JournalError::database(path, &error);
    // One snapshot: another process may be making the database between two reads.
    let snapshot = connection.unchecked_transaction().map_err(fail)?;
    let number = |pragma| -> Result<i64, JournalError> {
        snapshot
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(fail)
    };
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == 0 && version == 0 {
        let tables: i64 = snapshot
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(fail)?;
        if tables == 0 {
            return Ok(0);
        }
    }
    if application != APPLICATION {
        return Err(JournalError::NotAJournal {
            path: path.into(),
            reason: "it is a database of another program".into(),
        });
    }
    if version > FORMAT {
        return Err(JournalError::Newer {
            path: path.into(),
            version,
        });
    }
    Ok(version)
}

/// `path` as it stands in a `file:` URI.
fn uri_path(path: &Path) -> String {
    path.display()
        .to_string()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23")
}
