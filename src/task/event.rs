//! What happens to a task, as it is kept in the journal.
//!
//! Events are only ever added. A new kind or an optional field may come; the meaning of what is
//! written never changes ([`VERSION`] would be raised).

use crate::call::{Call, Effect};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::definition::Definition;
use super::flag::Flag;
use super::text::cut;

/// Version of the events' encoding.
pub const VERSION: u32 = 1;

/// Longest encoding of one tool result or error text that is kept whole, in bytes: enough for
/// anything that a model can be shown; a journal is no file store.
pub const RESULT_LIMIT: usize = 64 * 1024;

/// An event in its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counts from 1 within a task.
    pub sequence: u64,
    /// When it was recorded (the clock passed in).
    pub time: Timestamp,
    /// What happened.
    pub event: Event,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Always the first.
    TaskCreated {
        /// What the person asked for.
        goal: String,
        /// The whole definition, so that a later change of its file cannot change the past.
        definition: Box<Definition>,
        /// What the run was started with, for the reader.
        settings: Value,
    },
    /// The model is asked.
    TurnStarted {
        /// Counts from 1.
        turn: u32,
    },
    /// A checked call is about to run. Durable before the effect.
    Intent {
        /// Counts calls from 1.
        step: u32,
        /// What is called.
        call: Call,
        /// What the tool does to the world.
        effect: Effect,
        /// Whether doing it twice is the same as doing it once.
        idempotent: bool,
    },
    /// What running it gave.
    Outcome {
        /// The intent's step.
        step: u32,
        /// What came back.
        result: StepResult,
        /// What changed in the world, one line a change.
        changes: Vec<String>,
    },
    /// A call whose outcome was unknown is settled by a person or a check of the world.
    Settled {
        /// The intent's step.
        step: u32,
        /// What was found.
        how: Settlement,
    },
    /// The model asks the person; the task waits.
    Asked {
        /// The question.
        question: String,
        /// The number of the goal that it is about: a reply that names one puts it in its place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amends: Option<String>,
    },
    /// The person's reply to the question.
    Replied {
        /// What was said.
        text: String,
    },
    /// The person allowed a call that needs leave.
    Approved {
        /// The call.
        call: Call,
    },
    /// The person or the policy did not allow a call.
    Refused {
        /// The call.
        call: Call,
        /// Who or what refused.
        reason: String,
    },
    /// What the model wrote was no usable turn; nothing was executed.
    Rejected {
        /// The kind of failure (`fewshot::FailureKind`'s label).
        kind: String,
        /// One line: what was wrong, where.
        message: String,
    },
    /// The model was given a hint.
    HintGiven {
        /// The kind of failure.
        kind: String,
        /// The hint.
        text: String,
    },
    /// Facts were learned or became void.
    FactsChanged {
        /// New values by name.
        set: Map<String, Value>,
        /// Names of facts that no longer hold.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<String>,
    },
    /// A transition of the definition.
    StateMoved {
        /// From this state.
        from: String,
        /// To that one.
        to: String,
    },
    /// The model's final answer.
    Answered {
        /// What the person was told.
        text: String,
        /// Why it is not to be believed, if so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flagged: Option<Flag>,
    },
    /// The run ended without an answer.
    Stopped {
        /// Why.
        reason: StopReason,
    },
    /// A line from the person that nobody asked for: it holds from the next turn on.
    Steered {
        /// What was said.
        text: String,
    },
    /// What the person wants next, now that the task would have ended: it begins anew, with what
    /// it knows.
    FollowedUp {
        /// What the person asks for.
        goal: String,
    },
    /// At its end, the task was held against its proofs.
    Verified {
        /// Whether all of them hold.
        holds: bool,
        /// The first that does not, in words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// A later run took the task up again.
    Resumed,
    /// The task went back to what it was after event `to`; the events between stay in the
    /// journal and their effects in the world.
    Rewound {
        /// Sequence of the last event that still counts.
        to: u64,
    },
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepResult {
    /// The tool's result.
    Ok(Value),
    /// The tool failed.
    Error {
        /// One line.
        message: String,
        /// Whether the effect may have happened all the same.
        effect_unknown: bool,
    },
}

/// How an unknown outcome was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// The effect took place.
    Happened,
    /// It did not.
    DidNotHappen,
    /// The call may be made again whatever came of it.
    Repeat,
}

/// Why a run ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The limit on turns.
    Turns,
    /// The limit on tokens.
    Tokens,
    /// The limit on seconds.
    Seconds,
    /// Too many failures.
    Failures,
    /// The same calls with the same results, again after a hint.
    Repeated,
    /// Nothing is legal in the state that it is in.
    Stuck,
    /// What watches the turns stopped it; can be resumed.
    Hook(String),
    /// The person interrupted (Ctrl-C); can be resumed.
    Cancelled,
    /// A question could not be put to anybody; can be resumed.
    NobodyToAsk,
    /// Something outside the model failed.
    Error(String),
}

impl StopReason {
    /// Whether the task is over; otherwise a later run may take it up.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Repeated | Self::Failures | Self::Stuck => true,
            Self::Turns
            | Self::Tokens
            | Self::Seconds
            | Self::Cancelled
            | Self::NobodyToAsk
            | Self::Hook(_)
            | Self::Error(_) => false,
        }
    }
}

impl Event {
    /// The same event with results and texts from outside cut to [`RESULT_LIMIT`]; a cut one
    /// says how long it was.
    #[must_use]
    pub fn bounded(self) -> Self {
        match self {
            Self::Outcome {
                step,
                result: StepResult::Ok(value),
                mut changes,
            } => {
                cut_changes(&mut changes);
                let length = value.to_string().len();
                let value = if length > RESULT_LIMIT {
                    let start = cut(&value.to_string(), RESULT_LIMIT / 4).to_owned();
                    serde_json::json!({ "cut": true, "bytes": length, "start": start })
                } else {
                    value
                };
                let result = StepResult::Ok(value);
                Self::Outcome {
                    step,
                    result,
                    changes,
                }
            }
            Self::Outcome {
                step,
                result:
                    StepResult::Error {
                        message,
                        effect_unknown,
                    },
                mut changes,
            } => {
                cut_changes(&mut changes);
                let message = cut(&message, RESULT_LIMIT).to_owned();
                Self::Outcome {
                    step,
                    result: StepResult::Error {
                        message,
                        effect_unknown,
                    },
                    changes,
                }
            }
            other => other,
        }
    }
}

/// Keeps at most 256 changes of at most 1 KiB.
fn cut_changes(changes: &mut Vec<String>) {
    changes.truncate(256);
    for change in changes {
        let kept = cut(change, 1024).len();
        change.truncate(kept);
    }
}
