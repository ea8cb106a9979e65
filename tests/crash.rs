//! A task that is cut off anywhere goes on where it was: three shipped tasks, every event × four
//! positions (before the intent, after it, after the effect, after the outcome), and a tear at
//! every 512-byte boundary of every write to the journal. Never an effect twice, never a loss
//! that is not told.
//!
//! A crash is a copy of the folder as it was at that moment: what a process that is killed there
//! leaves behind.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod common;

use common::tasks::{
    Agreeable, EXAMPLES, Example, Guide, definition_in, id, lay_out, list_in, settings, tools_in,
    work,
};
use jiff::Timestamp;
use serde_json::Value;
use snaffle::agent::{AgentError, Clock, Nobody, StopReason, SystemClock, Unobserved};
use snaffle::call::{Call, CheckedCall, Domains, ToolSpec};
use snaffle::task::{
    ActiveTask, Event, Journal, JournalError, Recovery, Settlement, Task, TaskError,
};
use snaffle::tool::{Outcome, Took, Tool, ToolError};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Copies of a folder as it was.
struct Moments {
    folder: PathBuf,
    into: PathBuf,
    /// What was about to happen, or had just happened.
    taken: Mutex<Vec<&'static str>>,
}

impl Moments {
    fn take(&self, what: &'static str) {
        let mut taken = self.taken.lock().unwrap();
        copy_folder(&self.folder, &self.place(taken.len()));
        taken.push(what);
    }

    fn place(&self, number: usize) -> PathBuf {
        self.into.join(number.to_string())
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// The clock is asked before each event is recorded.
struct Before(Arc<Moments>);

impl Clock for Before {
    fn now(&self) -> Timestamp {
        self.0.take("before an event");
        Timestamp::UNIX_EPOCH
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// A tool runs between its intent and its outcome.
struct Around {
    tool: Box<dyn Tool>,
    moments: Arc<Moments>,
}

impl Tool for Around {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        self.tool.domains()
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        self.moments.take("after an intent");
        let outcome = self.tool.run(call);
        self.moments.take("after an effect");
        outcome
    }

    fn took_effect(&mut self, call: &Call) -> Result<Option<Took>, ToolError> {
        self.tool.took_effect(call)
    }
}

const JOURNAL: &str = "journal.db";

/// Works on a task to its end, with a copy at every moment.
fn record(example: &Example, folder: &Path, into: &Path) -> Arc<Moments> {
    lay_out(example.name, folder);
    let moments = Arc::new(Moments {
        folder: folder.to_owned(),
        into: into.to_owned(),
        taken: Mutex::default(),
    });
    let watch = |tool| -> Box<dyn Tool> {
        Box::new(Around {
            tool,
            moments: Arc::clone(&moments),
        })
    };
    let mut registry = tools_in(example.name, folder, &watch);
    let definition = definition_in(example.name, folder, &registry);
    let goal = definition.goal.clone().unwrap();
    moments.take("before the task");
    let journal = Journal::open(&folder.join(JOURNAL)).unwrap();
    let clock = Before(Arc::clone(&moments));
    let now = Timestamp::UNIX_EPOCH;
    let mut task =
        ActiveTask::create(&journal, id(1), &goal, definition, Value::Null, now).unwrap();
    let report = work(
        &mut task,
        &mut registry,
        &mut Guide::new(example.way),
        &mut Nobody,
        &mut Unobserved,
        &clock,
        settings(30),
    )
    .unwrap();
    assert_eq!(report.reason, StopReason::Completed, "{}", example.name);
    moments.take("after the task");
    moments
}

/// What the world has of a task's effects.
fn effects(example: &Example, folder: &Path) -> Vec<usize> {
    let lists = example.effects.iter();
    lists
        .map(|(list, _)| list_in(example.name, folder, list).len())
        .collect()
}

/// Goes on with what a crash left in `folder`, with a person who looks at the world or with
/// nobody.
fn go_on(
    example: &Example,
    folder: &Path,
    somebody: bool,
) -> Option<Result<StopReason, AgentError>> {
    if !folder.join(JOURNAL).exists() {
        return None;
    }
    let journal = Journal::open(&folder.join(JOURNAL)).unwrap();
    let mut task = match ActiveTask::resume(&journal, &id(1), Timestamp::UNIX_EPOCH) {
        Err(TaskError::Journal(JournalError::UnknownTask { .. })) => return None,
        resumed => resumed.unwrap(),
    };
    let mut registry = tools_in(example.name, folder, &|tool| tool);
    let mut person = Agreeable(|pending: &snaffle::task::Pending| {
        assert_eq!(
            pending.call.tool, "type_text",
            "the others can be looked up"
        );
        let typed = list_in(example.name, folder, "keys")
            .iter()
            .any(|key| key["text"] == pending.call.arguments["text"]);
        somebody.then_some(if typed {
            Settlement::Happened
        } else {
            Settlement::DidNotHappen
        })
    });
    let report = work(
        &mut task,
        &mut registry,
        &mut Guide::new(example.way),
        &mut person,
        &mut Unobserved,
        &SystemClock::start(),
        settings(30),
    );
    Some(report.map(|report| report.reason))
}

#[test]
fn a_task_goes_on_from_every_moment() {
    let mut undecided = 0;
    for example in EXAMPLES.iter().filter(|example| example.name != "approval") {
        let (folder, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let moments = record(example, folder.path(), into.path());
        let taken = moments.taken.lock().unwrap().clone();
        let expected: Vec<usize> = example.effects.iter().map(|(_, count)| *count).collect();
        for (number, what) in taken.iter().enumerate() {
            let say = format!("{} {number}: {what}", example.name);
            let place = moments.place(number);
            // Without anybody to ask, an effect that only a person can settle stops the run, and
            // nothing is executed.
            let alone = into.path().join("alone");
            copy_folder(&place, &alone);
            let before = effects(example, &alone);
            match go_on(example, &alone, false) {
                None => assert_eq!(before.iter().sum::<usize>(), 0, "{say}"),
                Some(Ok(reason)) => {
                    assert_eq!(reason, StopReason::Completed, "{say}");
                    assert_eq!(effects(example, &alone), expected, "{say}");
                }
                Some(Err(AgentError::Undecided { call })) => {
                    undecided += 1;
                    assert!(call.contains("type_text"), "{say}: {call}");
                    assert_eq!(effects(example, &alone), before, "{say}");
                    // It is still to be decided, and then goes on.
                    let reason = go_on(example, &alone, true).unwrap().unwrap();
                    assert_eq!(reason, StopReason::Completed, "{say}");
                    assert_eq!(effects(example, &alone), expected, "{say}");
                }
                Some(Err(error)) => panic!("{say}: {error}"),
            }
            fs::remove_dir_all(&alone).unwrap();
        }
        let count = |what: &str| taken.iter().filter(|taken| **taken == what).count();
        assert!(
            count("after an effect") >= 3 && count("before an event") >= 10,
            "{taken:?}"
        );
    }
    // After its intent, after its effect, and before its outcome is recorded.
    assert_eq!(undecided, 3, "only a person can say what came of typing");
}

/// What the write-ahead log of a moment holds.
fn log_of(place: &Path) -> Vec<u8> {
    fs::read(place.join(format!("{JOURNAL}-wal"))).unwrap_or_default()
}

/// Every write to the journal, torn at every 512-byte boundary: the task is what it was before, or
/// what it was after; nothing in between, and never damaged.
#[test]
fn a_torn_write_happened_or_did_not() {
    let mut torn = 0;
    for example in EXAMPLES.iter().filter(|example| example.name != "desktop") {
        let (folder, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let moments = record(example, folder.path(), into.path());
        let count = moments.taken.lock().unwrap().len();
        for number in 1..count {
            let (before, after) = (moments.place(number - 1), moments.place(number));
            let (old, new) = (log_of(&before), log_of(&after));
            if new.len() <= old.len() || !before.join(JOURNAL).exists() {
                continue;
            }
            let entries =
                |place: &Path| match Journal::open(&place.join(JOURNAL)).unwrap().read(&id(1)) {
                    Ok(record) => record.entries,
                    Err(_) => Vec::new(),
                };
            let place = into.path().join("torn");
            copy_folder(&after, &place);
            let whole = entries(&place);
            for length in (old.len()..new.len()).step_by(512) {
                for garbage in [false, true] {
                    fs::remove_dir_all(&place).unwrap();
                    copy_folder(&before, &place);
                    let mut log = new[..length].to_vec();
                    if garbage {
                        // The sectors that were not written hold what was there before.
                        log.resize(new.len(), 0x5a);
                    }
                    fs::write(place.join(format!("{JOURNAL}-wal")), log).unwrap();
                    let journal = Journal::open(&place.join(JOURNAL)).unwrap();
                    let found = match journal.resume(&id(1)) {
                        Ok((_, entries)) => entries,
                        Err(JournalError::UnknownTask { .. }) => Vec::new(),
                        Err(error) => panic!("{} {number} {length}: {error}", example.name),
                    };
                    assert!(found.len() <= whole.len());
                    assert_eq!(found[..], whole[..found.len()]);
                    torn += 1;
                }
            }
            // A log that was synced and is cut all the same is told: its head says so.
            fs::remove_dir_all(&place).unwrap();
            copy_folder(&after, &place);
            fs::write(place.join(format!("{JOURNAL}-wal")), &new[..old.len()]).unwrap();
            let journal = Journal::open(&place.join(JOURNAL)).unwrap();
            let refused = journal.resume(&id(1)).map(|(_, entries)| entries);
            match refused {
                Err(JournalError::Damaged { .. }) => {}
                other => panic!("{} {number}: {other:?}", example.name),
            }
            // The way on: back to what stands. What was lost is not believed to have happened.
            let record = journal.read(&id(1)).unwrap();
            if let Some(last) = record.entries.last() {
                let now = Timestamp::UNIX_EPOCH;
                let task = ActiveTask::rewind(&journal, &id(1), last.sequence, now).unwrap();
                assert_ne!(task.task().recovery(), Recovery::Finished);
            }
            fs::remove_dir_all(&place).unwrap();
            fs::create_dir_all(&place).unwrap();
        }
    }
    assert!(torn > 1000, "{torn}");
}

/// One bit flipped in every 7th byte of database and head (another one in each place): never a
/// panic, never other events than were written, and a loss is always told.
#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (folder, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let example = &EXAMPLES[0];
    record(example, folder.path(), into.path());
    let path = folder.path().join(JOURNAL);
    let head = folder.path().join("journal.heads").join(id(1).as_str());
    let whole = Journal::open(&path).unwrap().read(&id(1)).unwrap().entries;
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let mut noticed = 0;
    for file in [path.clone(), head, log]
        .iter()
        .filter(|file| file.exists())
    {
        let bytes = fs::read(file).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(file, flipped).unwrap();
            let read = Journal::open_read_only(&path).and_then(|journal| journal.read(&id(1)));
            match read {
                Err(_) => noticed += 1,
                Ok(record) => {
                    let count = record.entries.len();
                    assert!(count <= whole.len());
                    assert_eq!(
                        record.entries[..],
                        whole[..count],
                        "{} {at}",
                        file.display()
                    );
                    assert!(
                        record.damage.is_some() || count == whole.len(),
                        "{} {at}: a loss without a word",
                        file.display()
                    );
                    noticed += usize::from(record.damage.is_some());
                }
            }
        }
        fs::write(file, bytes).unwrap();
    }
    assert!(noticed > 300, "{noticed}");
    let again = Journal::open(&path).unwrap().read(&id(1)).unwrap();
    assert_eq!((again.entries, again.damage), (whole, None));
}

/// A rewound task does again what comes after, and says what is in the world already.
#[test]
fn rewinding_undoes_nothing_and_says_so() {
    let (folder, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let example = &EXAMPLES[0];
    record(example, folder.path(), into.path());
    let journal = Journal::open(&folder.path().join(JOURNAL)).unwrap();
    let entries = journal.read(&id(1)).unwrap().entries;
    let to = snaffle::task::rewind::event_after(&entries, 1).unwrap();
    let remains = snaffle::task::rewind::remains(&entries, to);
    let tools: Vec<&str> = remains.iter().map(|one| one.call.tool.as_str()).collect();
    assert_eq!(tools, ["book_flight", "notify_passenger"]);
    assert!(
        remains
            .iter()
            .all(|one| one.certain && !one.changes.is_empty())
    );
    let rewound = ActiveTask::rewind(&journal, &id(1), to, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(
        (rewound.task().state.as_str(), rewound.task().steps),
        ("book", 1)
    );
    assert_eq!(effects(example, folder.path()), [1, 1]);
    drop(rewound);
    // The branch that was left is still there.
    let after = journal.read(&id(1)).unwrap().entries;
    assert_eq!(after[..entries.len()], entries[..]);
    let abandoned = snaffle::task::rewind::abandoned(&after);
    assert_eq!(abandoned.len() as u64, entries.len() as u64 - to);
    let again = ActiveTask::rewind(&journal, &id(1), to + 1, Timestamp::UNIX_EPOCH);
    assert!(matches!(again, Err(TaskError::Abandoned { .. })));
    assert!(matches!(after.last().unwrap().event, Event::Rewound { .. }));
    assert!(
        Task::fold(&id(1), &after)
            .unwrap()
            .facts
            .get("booking")
            .is_none()
    );
}
