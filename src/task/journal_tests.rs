//! The journal against crashes, damage, and other processes.

use super::event::{Event, StepResult};
use super::journal::{Journal, JournalError};
use super::{ActiveTask, Damage, Definition, TaskId};
use crate::call::{Call, Effect};
use jiff::Timestamp;
use serde_json::json;
use std::path::{Path, PathBuf};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn call() -> Call {
    Call {
        tool: "turn_on".into(),
        arguments: json!({"device": "лампа"}).as_object().unwrap().clone(),
    }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("journal.db");
    (folder, path)
}

/// A task with two steps, the second's outcome unknown.
fn work(journal: &Journal, random: u32) -> TaskId {
    let id = TaskId::new(at(0), random);
    let definition = Definition::builtin();
    let mut active =
        ActiveTask::create(journal, id.clone(), "свет", definition, json!({}), at(0)).unwrap();
    for step in 1..=2 {
        let intent = Event::Intent {
            step,
            call: call(),
            effect: Effect::Change,
            idempotent: true,
        };
        active
            .record(at(1), Event::TurnStarted { turn: step })
            .unwrap();
        active.record(at(1), intent).unwrap();
        if step == 1 {
            let result = StepResult::Ok(json!({"on": true}));
            active.outcome(at(2), result, vec!["on".into()]).unwrap();
        }
    }
    id
}

fn sql(path: &Path, statement: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[test]
fn what_was_recorded_comes_back() {
    let (_folder, path) = place();
    let journal = Journal::open(&path).unwrap();
    let id = work(&journal, 1);
    let record = journal.read(&id).unwrap();
    assert_eq!(record.damage, None);
    assert!(!record.running);
    let kinds: Vec<String> = record
        .entries
        .iter()
        .map(|entry| serde_json::to_value(&entry.event).unwrap()["event"].to_string())
        .collect();
    assert_eq!(
        kinds.join(" "),
        "\"task_created\" \"turn_started\" \"intent\" \"outcome\" \"facts_changed\" \
         \"turn_started\" \"intent\""
    );
    let (log, entries) = journal.resume(&id).unwrap();
    assert_eq!((log.sequence(), entries), (7, record.entries));
    assert_eq!(journal.tasks().unwrap()[0].events, 7);
    assert!(journal.tasks().unwrap()[0].running);
    drop(log);
    let read_only = Journal::open_read_only(&path).unwrap();
    assert_eq!(read_only.read(&id).unwrap().entries.len(), 7);
    assert_eq!(read_only.find(&id.as_str()[..8]).unwrap(), id);
    assert!(matches!(
        read_only.find("zzz"),
        Err(JournalError::UnknownTask { .. })
    ));
}

#[test]
fn one_process_runs_a_task_others_run_others() {
    let (_folder, path) = place();
    let first = Journal::open(&path).unwrap();
    let second = Journal::open(&path).unwrap();
    let (one, two) = (work(&first, 1), work(&second, 2));
    let _log = first.resume(&one).unwrap();
    assert!(matches!(second.resume(&one), Err(JournalError::Running { id }) if id == one));
    assert!(second.read(&one).unwrap().running);
    let _other = second.resume(&two).unwrap();
    assert!(matches!(
        first.create(two.clone(), at(0), Event::Resumed),
        Err(JournalError::Exists { id }) if id == two
    ));
    assert!(matches!(
        first.find(&one.as_str()[..4]),
        Err(JournalError::Ambiguous { count: 2, .. })
    ));
}

#[test]
fn threads_write_their_tasks_at_once() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for random in 0..4 {
            let path = &path;
            scope.spawn(move || work(&Journal::open(path).unwrap(), random));
        }
    });
    let journal = Journal::open(&path).unwrap();
    let tasks = journal.tasks().unwrap();
    assert_eq!(tasks.len(), 4);
    for task in tasks {
        assert_eq!(journal.read(&task.id).unwrap().damage, None);
    }
}

#[test]
fn damage_is_found_and_the_rest_stands() {
    let lost_head = |path: &Path, id: &TaskId| {
        std::fs::remove_file(path.with_extension("heads").join(id.as_str())).unwrap();
    };
    type Harm<'a> = Box<dyn Fn(&Path, &TaskId) + 'a>;
    let run = |statement: &'static str| -> Harm<'static> {
        Box::new(move |path, _| sql(path, statement))
    };
    let cases: Vec<(Harm<'_>, Damage, usize)> = vec![
        (
            run("UPDATE event SET body = replace(body, 'turn_on', 'turn_of') WHERE sequence = 3"),
            Damage::Changed { sequence: 3 },
            2,
        ),
        (
            run("UPDATE event SET hash = zeroblob(32) WHERE sequence = 7"),
            Damage::Changed { sequence: 7 },
            6,
        ),
        (
            run("DELETE FROM event WHERE sequence = 4"),
            Damage::Missing { sequence: 4 },
            3,
        ),
        (
            run("DELETE FROM event WHERE sequence >= 6"),
            Damage::TailLost { last: 5, head: 7 },
            5,
        ),
        (
            run("DELETE FROM event"),
            Damage::TailLost { last: 0, head: 7 },
            0,
        ),
        (Box::new(lost_head), Damage::HeadUnreadable, 7),
        (
            Box::new(|path, id| {
                let head = path.with_extension("heads").join(id.as_str());
                std::fs::write(head, [7; 1024]).unwrap();
            }),
            Damage::HeadUnreadable,
            7,
        ),
    ];
    for (harm, expected, standing) in cases {
        let (_folder, path) = place();
        let journal = Journal::open(&path).unwrap();
        let id = work(&journal, 1);
        harm(&path, &id);
        let record = journal.read(&id).unwrap();
        assert_eq!(
            (record.damage.as_ref(), record.entries.len()),
            (Some(&expected), standing)
        );
        assert_eq!(journal.tasks().unwrap().len(), 1, "{expected}");
        let refused = journal.resume(&id).unwrap_err();
        assert!(
            matches!(&refused, JournalError::Damaged { damage, .. } if *damage == expected),
            "{refused}"
        );
        if standing > 0 {
            let record = journal.abandon_damaged(&id, at(9)).unwrap();
            assert_eq!((record.damage, record.entries.len()), (None, standing));
            let (mut log, _) = journal.resume(&id).unwrap();
            log.append(at(10), vec![Event::Resumed]).unwrap();
            drop(log);
            assert_eq!(journal.read(&id).unwrap().entries.len(), standing + 1);
        }
    }
}

#[test]
fn a_head_one_append_behind_is_no_damage() {
    let (_folder, path) = place();
    let journal = Journal::open(&path).unwrap();
    let id = work(&journal, 1);
    let head = path.with_extension("heads").join(id.as_str());
    let before = std::fs::read(&head).unwrap();
    let (mut log, _) = journal.resume(&id).unwrap();
    log.append(at(3), vec![Event::Resumed]).unwrap();
    drop(log);
    std::fs::write(&head, before).unwrap();
    let (_, entries) = journal.resume(&id).unwrap();
    assert_eq!(entries.len(), 8);
}

/// Cuts the write-ahead log at every 512 bytes, as a crash of the machine could: what was synced
/// and is gone is reported, and what remains is a prefix.
#[test]
fn a_torn_log_is_never_silent() {
    let (_folder, path) = place();
    let journal = Journal::open(&path).unwrap();
    let id = work(&journal, 1);
    let whole = journal.read(&id).unwrap().entries;
    let log_path = PathBuf::from(format!("{}-wal", path.display()));
    let (database, log) = (
        std::fs::read(&path).unwrap(),
        std::fs::read(&log_path).unwrap(),
    );
    let heads = path.with_extension("heads");
    let mut found = 0;
    for length in (0..=log.len()).step_by(512) {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("journal.db");
        std::fs::write(&copy, &database).unwrap();
        std::fs::write(format!("{}-wal", copy.display()), &log[..length]).unwrap();
        std::fs::create_dir(copy.with_extension("heads")).unwrap();
        let head = copy.with_extension("heads").join(id.as_str());
        std::fs::copy(heads.join(id.as_str()), head).unwrap();
        let Ok(record) = Journal::open(&copy).and_then(|torn| torn.read(&id)) else {
            found += 1;
            continue;
        };
        assert_eq!(record.entries[..], whole[..record.entries.len()]);
        if record.entries.len() < whole.len() {
            assert!(
                matches!(record.damage, Some(Damage::TailLost { .. })),
                "{length}"
            );
            found += 1;
        } else {
            assert_eq!(record.damage, None, "{length}");
        }
    }
    assert!(found > 10, "{found}");
}

/// Flips a bit in each 61st byte of the database: never a panic, never other events than were
/// written, and a loss is always said.
#[test]
fn a_flipped_bit_is_never_believed() {
    let (_folder, path) = place();
    let journal = Journal::open(&path).unwrap();
    let id = work(&journal, 1);
    let whole = journal.read(&id).unwrap().entries;
    drop(journal);
    let database = std::fs::read(&path).unwrap();
    let mut noticed = 0;
    for byte in (0..database.len()).step_by(61) {
        let mut bytes = database.clone();
        bytes[byte] ^= 1 << (byte % 8);
        std::fs::write(&path, bytes).unwrap();
        match Journal::open(&path).and_then(|journal| journal.read(&id)) {
            Err(_) => noticed += 1,
            Ok(record) => {
                assert_eq!(
                    record.entries[..],
                    whole[..record.entries.len()],
                    "byte {byte}"
                );
                noticed += u32::from(record.damage.is_some());
                assert!(record.damage.is_some() || record.entries.len() == whole.len());
            }
        }
    }
    assert!(noticed > 10, "{noticed}");
}

#[test]
fn what_is_no_journal_is_refused() {
    let (folder, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(
        &path,
        "not a database, but long enough to look at".repeat(100),
    )
    .unwrap();
    assert!(matches!(
        Journal::open(&path),
        Err(JournalError::NotAJournal { .. })
    ));
    let other = folder.path().join("other.db");
    sql(&other, "CREATE TABLE t (x)");
    assert!(matches!(
        Journal::open(&other),
        Err(JournalError::NotAJournal { .. })
    ));
    let newer = folder.path().join("newer.db");
    drop(Journal::open(&newer).unwrap());
    sql(&newer, "PRAGMA user_version = 99");
    assert!(matches!(
        Journal::open(&newer),
        Err(JournalError::Newer { version: 99, .. })
    ));
    let inside_a_file = other.join("journal.db");
    assert!(Journal::open(&inside_a_file).is_err());
    assert!(Journal::open_read_only(&folder.path().join("none.db")).is_err());
}

/// No room: `max_page_count` makes SQLite say what a full disk makes it say.
#[test]
fn a_full_disk_is_a_typed_error_and_nothing_is_half_written() {
    let (_folder, path) = place();
    let journal = Journal::open(&path).unwrap();
    let id = work(&journal, 1);
    let (mut log, entries) = journal.resume(&id).unwrap();
    log.limit_pages(1);
    let text = "x".repeat(100_000);
    let asked = vec![
        Event::Resumed,
        Event::Asked {
            question: text,
            amends: None,
        },
    ];
    let full = log.append(at(5), asked).unwrap_err();
    assert!(matches!(full, JournalError::DiskFull { .. }), "{full}");
    assert_eq!(log.sequence(), 7);
    drop(log);
    assert_eq!(journal.resume(&id).unwrap().1, entries);
    let huge = "x".repeat(2 * super::journal::EVENT_LIMIT);
    let (mut log, _) = journal.resume(&id).unwrap();
    assert!(matches!(
        log.append(
            at(5),
            vec![Event::Asked {
                question: huge,
                amends: None
            }]
        ),
        Err(JournalError::TooLarge { .. })
    ));
}

#[test]
fn rewinding_keeps_the_branch_and_forgets_its_facts() {
    let (_folder, path) = place();
    let journal = Journal::open(&path).unwrap();
    let id = work(&journal, 1);
    assert!(ActiveTask::rewind(&journal, &id, 8, at(5)).is_err());
    let active = ActiveTask::rewind(&journal, &id, 2, at(5)).unwrap();
    assert_eq!((active.task().turns, active.task().steps), (1, 0));
    assert!(active.task().facts.is_empty());
    drop(active);
    let again = ActiveTask::resume(&journal, &id, at(6)).unwrap();
    assert_eq!((again.task().turns, again.task().steps), (1, 0));
    drop(again);
    assert_eq!(journal.read(&id).unwrap().entries.len(), 9);
}
