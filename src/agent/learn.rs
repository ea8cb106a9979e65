//! Learning from retries: which corrections reach the pool. (What becomes of one there is decided
//! in `fewshot`.)
//!
//! An example says "to this request, this is the right reply". So a correction counts only where
//! nothing but the request led to it: the first thing that was done since the request was made,
//! without a word of the person's meanwhile (their reply or addition is not in the example), and
//! with a call for each thing that the request names. A correction of a later step depends on what
//! the steps before it found.

use super::examples::Examples;
use super::open::named;
use crate::call::{Call, Failure, FailureKind, Moves, Reply};
use crate::fewshot::Lesson;
use crate::task::Task;
use crate::trace::{self, Trace};

/// What an attempt did wrong.
pub(super) struct Mistake {
    kind: FailureKind,
    /// The tool that it was about, where it was about one.
    tool: Option<String>,
    tried: Option<Call>,
    pointer: Option<String>,
}

/// A mistake, and the reply that was right in its place.
pub(super) struct Correction {
    mistake: Mistake,
    legal: Moves,
    reply: Reply,
}

impl Mistake {
    /// What `failure` says of an attempt, which `tried` to make a call or not.
    pub(super) fn of(failure: &Failure, tried: Option<Call>) -> Self {
        let tool = match failure.kind {
            // The tool that was meant, as far as the name tells.
            FailureKind::UnknownTool => failure.example.as_ref().map(|call| call.tool.clone()),
            _ => failure.tool.clone(),
        };
        Self {
            kind: failure.kind,
            tool,
            tried,
            pointer: failure.pointer.clone(),
        }
    }

    /// `reply` as a correction of the mistake before it, unless something else led to it. To be
    /// asked before the reply's calls are made, and believed only once they all succeeded. `done`
    /// calls have succeeded since the request was made.
    pub(super) fn corrected(
        mistake: Option<Self>,
        task: &Task,
        done: usize,
        legal: &Moves,
        reply: Reply,
    ) -> Option<Correction> {
        let mistake = mistake?;
        let about = match &reply {
            Reply::Calls(calls) => calls.len(),
            Reply::Ask(_) | Reply::Answer(_) => 0,
        };
        // A tool that exists and may not be called now has no other that stands for it.
        let not_now = mistake.kind == FailureKind::UnknownTool
            && mistake.tried.as_ref().is_none_or(|tried| {
                mistake.tool.is_none() || legal.absent.iter().any(|(tool, _)| *tool == tried.tool)
            });
        if done > 0
            || !task.notes.is_empty()
            || task.reply.is_some()
            || not_now
            || named(&task.goal, legal).len() > about
        {
            return None;
        }
        Some(Correction {
            mistake,
            legal: legal.clone(),
            reply,
        })
    }
}

impl Correction {
    /// Hands it to whoever chooses examples.
    pub(super) fn teach(&self, goal: &str, examples: &mut dyn Examples, trace: &mut dyn Trace) {
        let mistake = &self.mistake;
        let lesson = Lesson {
            request: goal,
            failure: mistake.kind,
            tool: mistake.tool.as_deref(),
            tried: mistake.tried.as_ref(),
            pointer: mistake.pointer.as_deref(),
            reply: &self.reply,
        };
        if let Some(id) = examples.learn(&lesson, &self.legal) {
            trace.emit(trace::Event::Note {
                name: "learned".to_owned(),
                data: serde_json::json!({ "example": id.to_string(), "from": mistake.kind }),
            });
        }
    }
}
