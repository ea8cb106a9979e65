//! Bounds of a run, and the reasons for which it ends.

use crate::task;
use std::fmt;
use std::time::Duration;

/// Bounds of one run. Each is checked before the step that would go over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Turns (default 12). A turn of a tiny model takes about a second on two cores.
    pub turns: usize,
    /// Tokens written in all turns together (default 4,096).
    pub tokens: usize,
    /// Tokens written in one turn (default 256): longer replies are closed or truncated.
    pub turn_tokens: usize,
    /// Wall time (default ten minutes).
    pub time: Duration,
    /// Attempts at one step before a person is asked (default 3).
    pub attempts: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 12,
            tokens: 4096,
            turn_tokens: 256,
            time: Duration::from_secs(600),
            attempts: 3,
        }
    }
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model answered and nothing speaks against it.
    Answered,
    /// The model answered, but claims what did not happen.
    AnswerFlagged,
    /// The model asked the person something, and waits.
    Asked,
    /// An end of the task's definition was reached.
    Completed,
    /// An end of the task's definition was reached at which it has failed.
    FailedEnd,
    /// A tool's result ended the run.
    ToolEnded,
    /// Nothing is legal in the task's state.
    Stuck,
    /// What watches the turns stopped it, for this reason; it can be resumed.
    Hook(String),
    /// The same calls gave the same results again, after a hint.
    Repeated,
    /// The step failed as often as allowed.
    TooManyFailures,
    /// A person, or the lack of one, refused a call.
    Refused,
    /// The limit on turns.
    TurnLimit,
    /// The limit on tokens.
    TokenLimit,
    /// The limit on time.
    TimeLimit,
    /// It was asked to stop; it can be resumed.
    Cancelled,
    /// `--dry-run`: the first call was shown and not executed.
    DryRun,
}

impl StopReason {
    /// The name in journals, traces and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::AnswerFlagged => "answer_flagged",
            Self::Asked => "asked",
            Self::Completed => "completed",
            Self::FailedEnd => "failed_end",
            Self::ToolEnded => "tool_ended",
            Self::Stuck => "stuck",
            Self::Hook(_) => "hook",
            Self::Repeated => "repeated",
            Self::TooManyFailures => "too_many_failures",
            Self::Refused => "refused",
            Self::TurnLimit => "turn_limit",
            Self::TokenLimit => "token_limit",
            Self::TimeLimit => "time_limit",
            Self::Cancelled => "cancelled",
            Self::DryRun => "dry_run",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hook(why) => return write!(f, "stopped after a turn: {why}"),
            Self::Completed => "done",
            Self::FailedEnd => "the task has failed",
            Self::ToolEnded => "a tool's result ended the run",
            Self::Stuck => "nothing can be done in the state that the task is in",
            Self::Answered => "answered",
            Self::AnswerFlagged => "the answer claims something that did not happen",
            Self::Asked => "the model has a question",
            Self::Repeated => "the same calls gave the same results again and again",
            Self::TooManyFailures => "the step failed as often as allowed",
            Self::Refused => "the call was not approved",
            Self::TurnLimit => "the limit on turns was reached",
            Self::TokenLimit => "the limit on tokens was reached",
            Self::TimeLimit => "the limit on time was reached",
            Self::Cancelled => "cancelled",
            Self::DryRun => "dry run: nothing was executed",
        })
    }
}

/// How the journal keeps an end that no other event has recorded.
pub(super) fn recorded(reason: &StopReason) -> Option<task::StopReason> {
    match reason {
        // The answer or the question is the record.
        StopReason::Answered
        | StopReason::AnswerFlagged
        | StopReason::Asked
        | StopReason::Completed
        | StopReason::FailedEnd
        | StopReason::ToolEnded => None,
        StopReason::Stuck => Some(task::StopReason::Stuck),
        StopReason::Hook(why) => Some(task::StopReason::Hook(why.clone())),
        StopReason::Repeated => Some(task::StopReason::Repeated),
        StopReason::TooManyFailures => Some(task::StopReason::Failures),
        StopReason::Refused => Some(task::StopReason::NobodyToAsk),
        StopReason::TurnLimit => Some(task::StopReason::Turns),
        StopReason::TokenLimit => Some(task::StopReason::Tokens),
        StopReason::TimeLimit => Some(task::StopReason::Seconds),
        StopReason::Cancelled | StopReason::DryRun => Some(task::StopReason::Cancelled),
    }
}
