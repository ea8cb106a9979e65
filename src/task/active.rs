//! A task that is being worked on: an event is durable first, then known.

use super::claim::flag_answer;
use super::definition::Definition;
use super::event::{Entry, Event, StepResult};
use super::flag::Flag;
use super::id::TaskId;
use super::journal::{Journal, JournalError, TaskLog};
use super::state::{NoTask, Task};
use jiff::Timestamp;
use serde_json::Value;

/// A task and its log.
#[derive(Debug)]
pub struct ActiveTask {
    task: Task,
    log: Option<TaskLog>,
    sequence: u64,
}

/// Why a task could not be begun, continued or recorded.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The events make no task.
    #[error(transparent)]
    NoTask(#[from] NoTask),
    /// The event to go back to does not exist.
    #[error("the task has no event {to}: it has {last}")]
    NoSuchEvent {
        /// What was asked for.
        to: u64,
        /// The last there is.
        last: u64,
    },
}

impl ActiveTask {
    /// Begins a task in the journal.
    ///
    /// # Errors
    /// Where the journal cannot record it; then nothing may be executed.
    pub fn create(
        journal: &Journal,
        id: TaskId,
        goal: &str,
        definition: Definition,
        settings: Value,
        now: Timestamp,
    ) -> Result<Self, TaskError> {
        let created = Event::TaskCreated {
            goal: goal.to_owned(),
            definition,
            settings,
        };
        let (log, entry) = journal.create(id, now, created)?;
        Ok(Self {
            task: Task::fold(log.id(), &[entry])?,
            sequence: log.sequence(),
            log: Some(log),
        })
    }

    /// Begins a task that leaves no trace (a dry run, a benchmark): all the same, but nothing is
    /// written and it cannot be resumed.
    ///
    /// # Errors
    /// None today; the signature is that of [`create`](Self::create).
    pub fn unrecorded(
        id: TaskId,
        goal: &str,
        definition: Definition,
        settings: Value,
        now: Timestamp,
    ) -> Result<Self, TaskError> {
        let event = Event::TaskCreated {
            goal: goal.to_owned(),
            definition,
            settings,
        };
        let entry = Entry {
            sequence: 1,
            time: now,
            event,
        };
        Ok(Self {
            task: Task::fold(&id, &[entry])?,
            log: None,
            sequence: 1,
        })
    }

    /// Takes a task up again and records that. [`Task::recovery`] of the result says what comes
    /// first. A finished task is not touched.
    ///
    /// # Errors
    /// [`JournalError::Running`], [`JournalError::Damaged`], or a failing journal.
    pub fn resume(journal: &Journal, id: &TaskId, now: Timestamp) -> Result<Self, TaskError> {
        let (log, entries) = journal.resume(id)?;
        let mut active = Self {
            task: Task::fold(id, &entries)?,
            sequence: log.sequence(),
            log: Some(log),
        };
        if active.task.recovery() != super::Recovery::Finished {
            active.record(now, Event::Resumed)?;
        }
        Ok(active)
    }

    /// Goes back to what the task was after event `to`. Later events stay in the journal as an
    /// abandoned branch; their effects in the world are not undone.
    ///
    /// # Errors
    /// As [`resume`](Self::resume), and [`TaskError::NoSuchEvent`].
    pub fn rewind(
        journal: &Journal,
        id: &TaskId,
        to: u64,
        now: Timestamp,
    ) -> Result<Self, TaskError> {
        let (mut log, mut entries) = journal.resume(id)?;
        let last = log.sequence();
        if to == 0 || to > last {
            return Err(TaskError::NoSuchEvent { to, last });
        }
        entries.extend(log.append(now, vec![Event::Rewound { to }])?);
        Ok(Self {
            task: Task::fold(id, &entries)?,
            sequence: log.sequence(),
            log: Some(log),
        })
    }

    /// What the task is now.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Sequence of the last event.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Records one event.
    ///
    /// # Errors
    /// Where it could not be recorded: what it announces must not be executed.
    pub fn record(&mut self, now: Timestamp, event: Event) -> Result<(), TaskError> {
        self.record_all(now, vec![event])
    }

    /// Records events, all or none.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_all(&mut self, now: Timestamp, events: Vec<Event>) -> Result<(), TaskError> {
        let count = events.len() as u64;
        let events: Vec<Event> = match &mut self.log {
            Some(log) => {
                let entries = log.append(now, events)?;
                entries.into_iter().map(|entry| entry.event).collect()
            }
            None => events.into_iter().map(Event::bounded).collect(),
        };
        self.sequence += count;
        for event in &events {
            self.task.apply(event);
        }
        Ok(())
    }

    /// Records the outcome of the pending call with all that follows from it (facts, a
    /// transition), all or none.
    ///
    /// # Errors
    /// As [`record`](Self::record); the call's outcome then counts as unknown.
    pub fn outcome(
        &mut self,
        now: Timestamp,
        result: StepResult,
        changes: Vec<String>,
    ) -> Result<(), TaskError> {
        let step = self.task.steps;
        let mut events = self.task.consequences(&result);
        events.insert(
            0,
            Event::Outcome {
                step,
                result,
                changes,
            },
        );
        self.record_all(now, events)
    }

    /// Records the model's answer, flagged where it claims what did not happen, with the
    /// transition that follows.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn answered(&mut self, now: Timestamp, text: &str) -> Result<Option<Flag>, TaskError> {
        let flagged = flag_answer(text, &self.task);
        let mut events = vec![Event::Answered {
            text: text.to_owned(),
            flagged: flagged.clone(),
        }];
        events.extend(self.task.after_answer());
        self.record_all(now, events)?;
        Ok(flagged)
    }
}
