//! How a task stands: what it waits for, what it did last, what is to be done where it is taken up
//! again.

use super::event::{StepResult, StopReason};
use crate::call::{Call, Effect};

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Turns may follow.
    Running,
    /// Done: the person has the answer, or an end was reached.
    Answered,
    /// An end was reached at which the task has failed.
    Failed,
    /// Waits for the person's reply to this question.
    Asked(String),
    /// The run ended without an answer.
    Stopped(StopReason),
    /// It was running and no process runs it any more.
    Interrupted,
}

/// A call that may have run: its outcome is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Its step.
    pub step: u32,
    /// The call.
    pub call: Call,
    /// What the tool does to the world.
    pub effect: Effect,
    /// Whether doing it twice is the same as doing it once.
    pub idempotent: bool,
}

impl Pending {
    /// Whether it may be made again without asking.
    pub fn repeatable(&self) -> bool {
        self.idempotent || self.effect == Effect::Read
    }
}

/// The last call and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LastStep {
    /// Its step.
    pub step: u32,
    /// The call.
    pub call: Call,
    /// What came of it; `None`: unknown.
    pub result: Option<StepResult>,
}

/// What to do with a task that is taken up again.
#[derive(Clone, Debug, PartialEq)]
pub enum Recovery {
    /// Nothing: it is over.
    Finished,
    /// The person's reply to this question comes first.
    Reply(String),
    /// Go on with the next turn.
    Continue,
    /// Make this call again: it only reads, or repeating it is safe.
    Repeat(Pending),
    /// A person, or a check of the world, says whether this call took effect (an
    /// [`Event::Settled`](super::Event::Settled)).
    Decide(Pending),
    /// It is at its end: its proofs come first (an [`Event::Verified`](super::Event::Verified)).
    Verify,
}
