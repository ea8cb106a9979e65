//! A task that is being worked on: an event is durable first, then known.

use super::claim::flag_answer;
use super::definition::Definition;
use super::event::{Entry, Event, Settlement, StepResult};
use super::flag::Flag;
use super::id::TaskId;
use super::journal::{Journal, JournalError, TaskLog};
use super::state::{NoTask, Task, standing};
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
    /// The step to go back to does not exist, or has no outcome.
    #[error("the task has no step {step} with an outcome: the last is {last}")]
    NoSuchStep {
        /// What was asked for.
        step: u32,
        /// The last step with an outcome.
        last: u32,
    },
    /// The event to go back to was left behind by an earlier rewinding.
    #[error("event {to} was abandoned when the task was rewound: it is no part of it any more")]
    Abandoned {
        /// What was asked for.
        to: u64,
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
            definition: Box::new(definition),
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
            definition: Box::new(definition),
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
    /// abandoned branch; their effects in the world are not undone. Of a damaged task, the events
    /// from the damage on are set aside first.
    ///
    /// # Errors
    /// As [`resume`](Self::resume), [`TaskError::NoSuchEvent`] and [`TaskError::Abandoned`].
    pub fn rewind(
        journal: &Journal,
        id: &TaskId,
        to: u64,
        now: Timestamp,
    ) -> Result<Self, TaskError> {
        let record = journal.read(id)?;
        let last = record.entries.last().map_or(0, |entry| entry.sequence);
        if to == 0 || to > last {
            return Err(TaskError::NoSuchEvent { to, last });
        }
        if standing(&record.entries)
            .iter()
            .all(|entry| entry.sequence != to)
        {
            return Err(TaskError::Abandoned { to });
        }
        if record.damage.is_some() {
            journal.abandon_damaged(id, now)?;
        }
        let (mut log, mut entries) = journal.resume(id)?;
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

    /// While it is lent, programs that this process starts hold a lock that resuming the task
    /// waits for.
    ///
    /// # Errors
    /// Where the lock cannot be had: then no tool may run.
    pub fn lend_lock(&mut self, lend: bool) -> Result<(), TaskError> {
        match &mut self.log {
            Some(log) => Ok(log.lend_lock(lend)?),
            None => Ok(()),
        }
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

    /// As [`outcome`](Self::outcome) of a success that ends the run: `answer` is what the person is
    /// told.
    ///
    /// # Errors
    /// As [`outcome`](Self::outcome).
    pub fn outcome_that_ends(
        &mut self,
        now: Timestamp,
        result: Value,
        changes: Vec<String>,
        answer: String,
    ) -> Result<(), TaskError> {
        let step = self.task.steps;
        let result = StepResult::Ok(result);
        let consequences = self.task.consequences(&result);
        let mut events = vec![Event::Outcome {
            step,
            result,
            changes,
        }];
        // Where the definition leads to is decided by the result; the answer ends what it leaves.
        let moved = consequences
            .iter()
            .any(|event| matches!(event, Event::StateMoved { .. }));
        events.extend(consequences);
        if !moved {
            events.push(Event::Answered {
                text: answer,
                flagged: None,
            });
            events.extend(self.task.after_answer());
        }
        self.record_all(now, events)
    }

    /// Records how the pending call's unknown outcome was settled, with all that follows from it
    /// where it took effect; `result` is what the tool's own check says that it gave.
    ///
    /// # Errors
    /// As [`record`](Self::record); the call's outcome then still counts as unknown.
    pub fn settled(
        &mut self,
        now: Timestamp,
        how: Settlement,
        result: Option<Value>,
    ) -> Result<(), TaskError> {
        let Some(step) = self.task.pending.as_ref().map(|pending| pending.step) else {
            return Ok(());
        };
        let mut events = vec![Event::Settled { step, how }];
        if how == Settlement::Happened {
            let consequences = self.task.after_success(result.as_ref());
            events.extend(result.map(|result| Event::Outcome {
                step,
                result: StepResult::Ok(result),
                changes: Vec::new(),
            }));
            events.extend(consequences);
        }
        self.record_all(now, events)
    }

    /// Records whether the task is proved to be done; where not, with the way back.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn verified(&mut self, now: Timestamp, failed: Option<String>) -> Result<(), TaskError> {
        let mut events = vec![Event::Verified {
            holds: failed.is_none(),
            message: failed.clone().unwrap_or_default(),
        }];
        if failed.is_some() {
            events.extend(self.task.after_unproven());
        }
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
