//! What an earlier run left undone comes first: a question without a reply, a call whose outcome
//! nobody knows, an end that was not proved.
//!
//! A call that may have taken effect is made again only where its tool only reads or where
//! repeating it is safe. Otherwise the tool's own check says what came of it, or the person; where
//! neither can, the run ends and nothing is executed.

use super::event::Event;
use super::limits::StopReason;
use super::progress::Progress;
use super::run::{Agent, AgentError, Next};
use crate::call::{Approval, Effect, Verdict};
use crate::task::{self, ActiveTask, Pending, Recovery, Settlement, Status};
use crate::trace;

impl Agent<'_> {
    /// What comes before the first turn.
    pub(super) fn recover(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
    ) -> Result<Next, AgentError> {
        match task.task().recovery() {
            // What is pending or to be proved is looked at before every turn.
            Recovery::Continue | Recovery::Verify | Recovery::Decide(_) => Ok(Next::Turn),
            Recovery::Finished => Ok(finished(task)),
            Recovery::Reply(question) => {
                self.observer.event(&Event::Question {
                    text: question.clone(),
                });
                self.put_to_person(task, question)
            }
            Recovery::Repeat(pending) => self.repeat(task, progress, pending),
        }
    }

    /// What comes between two turns, from the task's state alone: so it is the same after a crash.
    pub(super) fn between(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
    ) -> Result<Next, AgentError> {
        loop {
            let next = match task.task().recovery() {
                Recovery::Decide(_) | Recovery::Verify if self.cancel.is_cancelled() => {
                    return Ok(Next::End(StopReason::Cancelled, None));
                }
                Recovery::Decide(pending) => self.decide(task, progress, pending)?,
                Recovery::Verify => self.verify(task, progress)?,
                Recovery::Finished => return Ok(finished(task)),
                Recovery::Continue | Recovery::Reply(_) | Recovery::Repeat(_) => {
                    return Ok(Next::Turn);
                }
            };
            // What was settled may have led to the end.
            if let Next::End(..) = next {
                return Ok(next);
            }
        }
    }

    /// Puts a question that is on record to the person.
    pub(super) fn put_to_person(
        &mut self,
        task: &mut ActiveTask,
        question: String,
    ) -> Result<Next, AgentError> {
        match self.person.reply(&question) {
            None => Ok(Next::End(StopReason::Asked, Some(question))),
            Some(text) => {
                self.trace
                    .emit(trace::Event::Replied { text: text.clone() });
                task.record(self.clock.now(), task::Event::Replied { text })?;
                Ok(Next::Turn)
            }
        }
    }

    /// Makes an interrupted call again. It was approved before its intent was recorded.
    fn repeat(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        pending: Pending,
    ) -> Result<Next, AgentError> {
        let moves = self.moves(task)?.legal;
        let settled = |how| task::Event::Settled {
            step: pending.step,
            how,
        };
        match progress.gate.check(&moves, pending.call.clone()) {
            // What only reads has left nothing behind.
            Err(_) if pending.effect == Effect::Read => {
                task.record(self.clock.now(), settled(Settlement::DidNotHappen))?;
                Ok(Next::Turn)
            }
            // The world is another one: perhaps because the call took effect.
            Err(_) => self.decide(task, progress, pending),
            Ok(verdict) => {
                let checked = match verdict {
                    Verdict::Checked(checked) => checked,
                    Verdict::Ask(waiting) => waiting.approve(Approval::Person),
                };
                let settled = settled(Settlement::Repeat);
                self.execute(task, progress, &moves, &checked, Some(settled))
            }
        }
    }

    /// Finds out what came of a call that may have taken effect.
    fn decide(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        pending: Pending,
    ) -> Result<Next, AgentError> {
        if let Ok(Some(found)) = self.tools.took_effect(&pending.call) {
            let how = if found.happened {
                Settlement::Happened
            } else {
                Settlement::DidNotHappen
            };
            self.settle(task, &pending, how, found.result, "the tool's own check")?;
            return Ok(Next::Turn);
        }
        let Some(how) = self.person.settle(&pending) else {
            return Err(AgentError::Undecided {
                call: pending.call.to_text(),
            });
        };
        if how != Settlement::Repeat {
            self.settle(task, &pending, how, None, "the person")?;
            return Ok(Next::Turn);
        }
        let moves = self.moves(task)?.legal;
        let event = task::Event::Settled {
            step: pending.step,
            how,
        };
        match progress.gate.check(&moves, pending.call.clone()) {
            Err(failure) => {
                task.record(self.clock.now(), event)?;
                self.failed(task, progress, failure)
            }
            Ok(Verdict::Checked(checked)) => {
                self.execute(task, progress, &moves, &checked, Some(event))
            }
            Ok(Verdict::Ask(waiting)) => {
                let checked = waiting.approve(Approval::Person);
                self.execute(task, progress, &moves, &checked, Some(event))
            }
        }
    }

    fn settle(
        &mut self,
        task: &mut ActiveTask,
        pending: &Pending,
        how: Settlement,
        result: Option<serde_json::Value>,
        by: &str,
    ) -> Result<(), AgentError> {
        self.trace.emit(trace::Event::Note {
            name: "settled".to_owned(),
            data: serde_json::json!({ "step": pending.step, "how": how, "by": by, "result": result }),
        });
        Ok(task.settled(self.clock.now(), how, result)?)
    }
}

/// How a task that is over ended.
fn finished(task: &ActiveTask) -> Next {
    let task = task.task();
    let reason = match &task.status {
        Status::Failed => StopReason::FailedEnd,
        Status::Stopped(task::StopReason::Repeated) => StopReason::Repeated,
        Status::Stopped(task::StopReason::Failures) => StopReason::TooManyFailures,
        _ if task.answer.is_none() => StopReason::Completed,
        _ if task.flagged => StopReason::AnswerFlagged,
        _ => StopReason::Answered,
    };
    let done = || (reason == StopReason::Completed).then(|| "Done.".to_owned());
    let text = task
        .answer
        .clone()
        .or_else(|| task.farewell())
        .or_else(done);
    Next::End(reason, text)
}
