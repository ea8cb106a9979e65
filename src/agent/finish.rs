//! The end of a run: proofs, what the person wants next, and what they say meanwhile.

use super::event::Event;
use super::limits::StopReason;
use super::progress::Progress;
use super::run::{Agent, AgentError, Next};
use crate::call::{Approval, Call, Failure, FailureKind, Verdict};
use crate::task::{self, ActiveTask, Evidence, Proof};
use crate::tool::command::{ProcessError, Program};
use crate::trace;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Longest time that a program that proves something may take.
const PROOF_TIME: Duration = Duration::from_secs(60);

/// Most bytes that it may print.
const PROOF_OUTPUT: usize = 1 << 20;

/// Lines of the person's that one turn takes in.
const LINES: usize = 8;

impl Agent<'_> {
    /// Holds a task that is at its end against its proofs.
    pub(super) fn verify(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
    ) -> Result<Next, AgentError> {
        let mut failed = None;
        for proof in task.task().definition.proofs.clone() {
            if let Some(why) = self.unproved(task, progress, &proof) {
                failed = Some(proof.otherwise.clone().unwrap_or(why));
                break;
            }
        }
        task.verified(self.clock.now(), failed.clone())?;
        self.trace.emit(trace::Event::Note {
            name: "verified".to_owned(),
            data: json!({ "failed": failed }),
        });
        self.observer.event(&Event::Verified {
            failed: failed.clone(),
        });
        match failed {
            None => Ok(Next::Turn),
            Some(message) => {
                let failure = Failure::new(FailureKind::VerificationFailed, message);
                self.failed(task, progress, failure)
            }
        }
    }

    /// Why a proof does not hold; what cannot be looked at does not.
    fn unproved(
        &mut self,
        task: &ActiveTask,
        progress: &mut Progress,
        proof: &Proof,
    ) -> Option<String> {
        let not = || Some(format!("it is not so that {proof}"));
        let unseen = |why: String| Some(format!("nobody can see whether {proof}: {why}"));
        match &proof.by {
            Evidence::Fact(condition) if condition.holds(&task.task().facts) => None,
            Evidence::Fact(_) => not(),
            Evidence::Tool {
                tool,
                arguments,
                pointer,
                test,
            } => {
                let call = Call {
                    tool: tool.clone(),
                    arguments: arguments.clone(),
                };
                let all = match self.tools.moves(&self.settings.policy) {
                    Ok(all) => all,
                    Err(error) => return unseen(error.to_string()),
                };
                let checked = match progress.gate.check(&all, call) {
                    Ok(Verdict::Checked(checked)) => checked,
                    // Whoever wrote the definition wants it to be looked at.
                    Ok(Verdict::Ask(waiting)) => waiting.approve(Approval::Setting),
                    Err(failure) => return unseen(failure.message),
                };
                match self.tools.run(&checked) {
                    Ok(outcome) if test.holds(outcome.result.pointer(pointer)) => None,
                    Ok(_) => not(),
                    Err(error) => unseen(error.message),
                }
            }
            Evidence::Command { command, exit_code } => {
                let (name, arguments) = command.split_first()?;
                let folder = task.task().definition.folder.clone();
                let folder = folder.unwrap_or_else(|| PathBuf::from("."));
                let executable = if name.contains('/') {
                    folder.join(name)
                } else {
                    PathBuf::from(name)
                };
                let program = Program {
                    executable,
                    arguments: arguments.to_vec(),
                    folder,
                    environment: Vec::new(),
                    timeout: PROOF_TIME,
                    max_output: PROOF_OUTPUT,
                };
                let facts: serde_json::Map<_, _> = task
                    .task()
                    .facts
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.clone()))
                    .collect();
                let input = json!({ "goal": task.task().goal, "facts": facts }).to_string();
                let code = match program.run(input.as_bytes()) {
                    Ok(_) => Some(0),
                    Err(ProcessError::Failed { status, .. }) => status.code(),
                    Err(error) => return unseen(error.to_string()),
                };
                if code == Some(*exit_code) {
                    None
                } else {
                    not()
                }
            }
        }
    }

    /// Takes in what the person said since the last turn.
    pub(super) fn steered(&mut self, task: &mut ActiveTask) -> Result<(), AgentError> {
        for _ in 0..LINES {
            let Some(text) = self.person.steer() else {
                break;
            };
            self.heard(&text, false);
            task.record(self.clock.now(), task::Event::Steered { text })?;
        }
        Ok(())
    }

    /// Whether the person wants something else, now that the task is done: then it has begun anew.
    pub(super) fn followed_up(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        reason: &StopReason,
    ) -> Result<bool, AgentError> {
        let done = matches!(
            reason,
            StopReason::Answered
                | StopReason::AnswerFlagged
                | StopReason::Completed
                | StopReason::ToolEnded
        );
        let Some(goal) = done.then(|| self.person.follow_up()).flatten() else {
            return Ok(false);
        };
        self.heard(&goal, true);
        task.record(self.clock.now(), task::Event::FollowedUp { goal })?;
        // Examples are pinned for a request, and this is another one.
        progress.shown = None;
        progress.hint = None;
        progress.failures = 0;
        progress.mistake = None;
        progress.done = 0;
        Ok(true)
    }

    fn heard(&mut self, text: &str, follow_up: bool) {
        self.trace.emit(trace::Event::Note {
            name: if follow_up { "followed_up" } else { "steered" }.to_owned(),
            data: json!({ "text": text }),
        });
        self.observer.event(&Event::Heard {
            text: text.to_owned(),
            follow_up,
        });
    }
}
