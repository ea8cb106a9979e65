//! A step at which the model failed as often as allowed: a person may do it in its place.

use super::limits::StopReason;
use super::progress::Progress;
use super::run::{Agent, AgentError, Next};
use crate::call::Reply;
use crate::task::ActiveTask;
use crate::trace;
use serde_json::json;

impl Agent<'_> {
    /// Has the person do the step, through the gate like any other call; without one, the run
    /// ends.
    pub(super) fn helped(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
    ) -> Result<Next, AgentError> {
        // Once a turn: a person's call may fail too.
        let call = if progress.helped {
            None
        } else {
            self.person.act(task.task())
        };
        let Some(call) = call else {
            return Ok(Next::End(StopReason::TooManyFailures, None));
        };
        progress.helped = true;
        progress.failures = 0;
        progress.hint = None;
        // What the person did is no correction of the model's own.
        progress.mistake = None;
        // Nor is the person unsure of it.
        progress.confidence = Some(1.0);
        progress.said = None;
        self.trace.emit(trace::Event::Note {
            name: "helped".to_owned(),
            data: json!({ "call": call.to_value() }),
        });
        progress
            .history
            .said(&Reply::Calls(vec![call.clone()]).to_text());
        let legal = self.moves(task)?.legal;
        self.attempt(task, progress, &legal, call)
    }
}
