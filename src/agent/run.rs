//! The loop: legal moves → grammar and prompt → text → call → gate → journal → tool → facts.
//!
//! One turn is one generation, or two where the model looks again. What goes wrong comes back to
//! the model as one hint in the next attempt's prompt; the prompt's stable part stays evaluated, so
//! that a retry costs little. Every effect is preceded by a durable intent; whatever ends the run
//! leaves the task resumable. What an earlier run left undone is in `resume`, what comes at the end
//! in `finish`, what is done about calls that the model is unsure of in `second_look`.

use super::clock::Clock;
use super::context::{Layout, failure_text, result_text};
use super::doubt::Unsure;
use super::event::{Event, Figures, Observer, micros};
use super::examples::Examples;
use super::hints::exemplified;
use super::history::History;
use super::learn::{Correction, Mistake};
use super::limits::{Limits, StopReason, recorded};
use super::moves::TurnMoves;
use super::open::already_done;
use super::person::Person;
use super::progress::Progress;
use crate::call::turn::TurnError;
use crate::call::{
    Approval, Call, CheckedCall, Dialect, Failure, FailureKind, Gate, Moves, Policy, Reply,
    TurnOptions, Verdict,
};
use crate::model::{Cancel, GenerateError, Generator, Sampling, Stop};
use crate::task::{self, ActiveTask, Recovery, StepResult, TaskError};
use crate::tool::{Registry, ToolError, Unavailable};
use crate::trace::{self, Trace};
use std::ops::ControlFlow;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which calls run, which are asked about, which do not exist.
    pub policy: Policy,
    /// Bounds.
    pub limits: Limits,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// How turns are written.
    pub turn: TurnOptions,
    /// Most calls in a turn. The grammar has at least one, and no more than there are live values
    /// that the request names and no call has touched.
    pub max_calls: usize,
    /// Strength of calibrated choice, 0 to 1; 0 scores the alternatives of closed sets whole
    /// without it, `None` chooses token by token.
    pub alpha: Option<f64>,
    /// Examples in a prompt, at most 3.
    pub examples: usize,
    /// What every prompt has in common.
    pub layout: Layout,
    /// How this model family writes calls. With a grammar it is always the harness's own.
    pub dialect: Dialect,
    /// Whether turns are generated under a grammar. Off only for measurements.
    pub grammar: bool,
    /// Whether the grammar holds the values that exist right now. Off only for measurements: the
    /// gate checks them in any case.
    pub domains: bool,
    /// Show the first call and execute nothing.
    pub dry_run: bool,
    /// Every call that needs leave has it beforehand.
    pub approve_all: bool,
    /// A call that changes something is asked about, whatever else approves it, where the model
    /// is less sure of it than this, 0 to 1.
    pub ask_below: Option<f64>,
    /// How much likelier a call is taken to be than the model finds it, in nats, where it could
    /// ask or answer instead; `None`: it writes what it does token by token.
    pub call_bias: Option<f64>,
    /// What is done first about such a call.
    pub unsure: Unsure,
    /// A call that changes something is asked about, whatever else approves it, where nothing that
    /// was said or read speaks of what it is about.
    pub grounding: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            limits: Limits::default(),
            sampling: Sampling::default(),
            turn: TurnOptions::default(),
            max_calls: 4,
            alpha: None,
            examples: 2,
            layout: Layout::default(),
            dialect: Dialect::default(),
            grammar: true,
            domains: true,
            dry_run: false,
            approve_all: false,
            ask_below: None,
            call_bias: None,
            unsure: Unsure::default(),
            grounding: true,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Why it ended.
    pub reason: StopReason,
    /// The answer or the question, where there is one.
    pub text: Option<String>,
    /// Figures.
    pub figures: Figures,
}

/// Why a run could not go on. The journal has whatever happened before.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The journal cannot record: nothing more is executed.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The model failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The grammar of the turn cannot be made.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The world cannot be read.
    #[error(transparent)]
    World(#[from] Unavailable),
    /// What a tool acts on cannot be written: no other call mends that.
    #[error(transparent)]
    Storage(ToolError),
    /// The request is empty.
    #[error("the request is empty")]
    EmptyRequest,
    /// An interrupted call may have taken effect, and nobody said whether it did.
    #[error(
        "the call {call} was interrupted and may have taken effect; somebody has to say whether it did"
    )]
    Undecided {
        /// The call.
        call: String,
    },
}

/// Everything a run works with.
pub struct Agent<'a> {
    /// The model.
    pub generator: &'a mut dyn Generator,
    /// The tools.
    pub tools: &'a mut Registry,
    /// Where examples come from.
    pub examples: &'a mut dyn Examples,
    /// The person.
    pub person: &'a mut dyn Person,
    /// Watches.
    pub observer: &'a mut dyn Observer,
    /// Records.
    pub trace: &'a mut dyn Trace,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Stops the run after the current token.
    pub cancel: Cancel,
    /// Settings.
    pub settings: Settings,
}

impl std::fmt::Debug for Agent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// What a turn leads to.
pub(super) enum Next {
    Turn,
    End(StopReason, Option<String>),
}

impl Agent<'_> {
    /// Works on `task` until it is done or something stops it.
    ///
    /// # Errors
    /// [`AgentError`]; what happened before is in the journal, and the task can be resumed.
    pub fn run(&mut self, task: &mut ActiveTask) -> Result<Report, AgentError> {
        if task.task().goal.trim().is_empty() {
            return Err(AgentError::EmptyRequest);
        }
        let mut progress = Progress {
            gate: Gate::new(),
            figures: Figures::default(),
            tokens: 0,
            failures: 0,
            shown: None,
            hint: None,
            confidence: None,
            agreed: false,
            said: None,
            number: 0,
            helped: false,
            history: History::new(!self.settings.layout.state),
            tried: None,
            mistake: None,
            done: task.task().steps as usize,
        };
        let resumed = task.sequence() > 1;
        self.observer.event(&Event::RunStarted {
            task: task.task().id.to_string(),
            request: task.task().goal.clone(),
            resumed,
        });
        self.trace.emit(trace::Event::RunStarted {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: self.generator.name().to_owned(),
            task: Some(task.task().id.to_string()),
            request: task.task().goal.clone(),
            settings: task.task().settings.clone(),
        });
        let ended = self.work(task, &mut progress);
        let (reason, text) = match ended {
            Ok(end) => end,
            Err(error) => {
                self.trace.emit(trace::Event::RunEnded {
                    reason: format!("error: {error}"),
                    turns: progress.figures.turns as u32,
                    figures: progress.figures.traced(),
                });
                let ended = task.task().recovery() == Recovery::Finished;
                if !ended && !matches!(error, AgentError::Task(_)) {
                    let reason = task::StopReason::Error(error.to_string());
                    task.record(self.clock.now(), task::Event::Stopped { reason })?;
                }
                return Err(error);
            }
        };
        progress.figures.elapsed = self.clock.elapsed();
        progress.figures.trace = self.trace.path().map(std::path::Path::to_path_buf);
        if let Some(reason) = recorded(&reason)
            && task.task().recovery() != Recovery::Finished
        {
            task.record(self.clock.now(), task::Event::Stopped { reason })?;
        }
        self.trace.emit(trace::Event::RunEnded {
            reason: reason.name().to_owned(),
            turns: progress.figures.turns as u32,
            figures: progress.figures.traced(),
        });
        if let (StopReason::Completed | StopReason::ToolEnded, Some(text)) = (&reason, &text) {
            let (text, flag) = (text.clone(), None);
            self.observer.event(&Event::Answer { text, flag });
        }
        self.observer.event(&Event::Stopped {
            reason: reason.clone(),
            figures: progress.figures.clone(),
        });
        Ok(Report {
            reason,
            text,
            figures: progress.figures,
        })
    }

    fn work(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
    ) -> Result<(StopReason, Option<String>), AgentError> {
        let mut next = self.recover(task, progress)?;
        loop {
            if let Next::Turn = next {
                next = self.between(task, progress)?;
            }
            if let Next::End(reason, text) = next {
                if !self.followed_up(task, progress, &reason)? {
                    return Ok((reason, text));
                }
            } else if let Some(reason) = self.exhausted(progress) {
                return Ok((reason, None));
            } else {
                self.steered(task)?;
            }
            next = self.turn(task, progress)?;
            let verdict = self.observer.after_turn(task.task());
            if let (Next::Turn, ControlFlow::Break(why)) = (&next, verdict) {
                next = Next::End(StopReason::Hook(why), None);
            }
        }
    }

    /// The limit that the next turn would go over.
    fn exhausted(&self, progress: &Progress) -> Option<StopReason> {
        let limits = &self.settings.limits;
        if self.cancel.is_cancelled() {
            Some(StopReason::Cancelled)
        } else if progress.figures.turns >= limits.turns {
            Some(StopReason::TurnLimit)
        } else if progress.tokens >= limits.tokens {
            Some(StopReason::TokenLimit)
        } else if self.clock.elapsed() >= limits.time {
            Some(StopReason::TimeLimit)
        } else {
            None
        }
    }

    /// What can be called now.
    pub(super) fn moves(&mut self, task: &ActiveTask) -> Result<TurnMoves, AgentError> {
        let all = self.tools.moves(&self.settings.policy)?;
        let most = self.settings.max_calls.max(1);
        let (moves, report) = TurnMoves::of(task.task(), all, most, self.settings.layout.state);
        for left_out in report {
            self.trace.emit(trace::Event::Note {
                name: "narrowed".to_owned(),
                data: serde_json::json!({
                    "tools": left_out.tools,
                    "argument": left_out.argument,
                    "kept": left_out.kept,
                    "of": left_out.of,
                }),
            });
        }
        Ok(moves)
    }

    fn turn(&mut self, task: &mut ActiveTask, progress: &mut Progress) -> Result<Next, AgentError> {
        progress.figures.turns += 1;
        progress.helped = false;
        let number = task.task().turns + 1;
        let moves = self.moves(task)?;
        task.record(self.clock.now(), task::Event::TurnStarted { turn: number })?;
        self.observer.event(&Event::TurnStarted {
            turn: number as usize,
        });
        let mut said = match self.generate(task, progress, number, &moves) {
            Err(AgentError::Turn(TurnError::Nothing)) => {
                return Ok(Next::End(StopReason::Stuck, None));
            }
            generated => generated?,
        };
        if said.generation.stop != Stop::Cancelled {
            said = self.considered(task, progress, number, &moves, said)?;
        }
        let legal = moves.legal;
        if said.generation.stop == Stop::Cancelled {
            return Ok(Next::End(StopReason::Cancelled, None));
        }
        let text = said.generation.text.clone();
        self.observer.event(&Event::Reply { text: text.clone() });
        progress.history.said(&text);
        let mistake = progress.mistake.take();
        progress.tried = None;
        match said.reply.clone() {
            Err(failure) => self.failed(task, progress, failure),
            Ok(Reply::Answer(text)) => self.answer(task, progress, text),
            Ok(Reply::Ask(question)) => {
                let reply = Reply::Ask(question.clone());
                let done = progress.done;
                let correction = Mistake::corrected(mistake, task.task(), done, &legal, reply);
                self.learn(task, correction);
                self.ask(task, question, said.amends.take())
            }
            Ok(Reply::Calls(calls)) => {
                let sure = said.confidence();
                progress.confidence = sure;
                progress.agreed = said.agreed;
                progress.said = Some(said);
                let least = &mut progress.figures.confidence;
                *least = [*least, sure].into_iter().flatten().reduce(f64::min);
                if let Some(answer) = already_done(task.task(), &legal, &calls) {
                    self.trace.emit(trace::Event::Note {
                        name: "repeated".to_owned(),
                        data: serde_json::json!({ "reply": text }),
                    });
                    return self.answer(task, progress, answer);
                }
                let (count, before) = (calls.len(), progress.done);
                let reply = Reply::Calls(calls.clone());
                let correction = Mistake::corrected(mistake, task.task(), before, &legal, reply);
                let next = self.carry_out(task, progress, legal, calls)?;
                self.learn(task, correction.filter(|_| progress.done == before + count));
                Ok(next)
            }
        }
    }

    fn learn(&mut self, task: &ActiveTask, correction: Option<Correction>) {
        if let Some(correction) = correction {
            correction.teach(&task.task().goal, self.examples, self.trace);
        }
    }

    /// The calls of one reply, up to the first that fails.
    fn carry_out(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        mut legal: Moves,
        calls: Vec<Call>,
    ) -> Result<Next, AgentError> {
        for (number, call) in calls.into_iter().enumerate() {
            if number > 0 {
                // The call before may have changed what is legal.
                if task.task().recovery() != Recovery::Continue {
                    break;
                }
                legal = self.moves(task)?.legal;
            }
            progress.number = number;
            match self.attempt(task, progress, &legal, call)? {
                Next::Turn if progress.hint.is_none() && !progress.helped => {}
                next => return Ok(next),
            }
            if self.cancel.is_cancelled() {
                return Ok(Next::End(StopReason::Cancelled, None));
            }
        }
        Ok(Next::Turn)
    }

    /// One call: guards, gate, approval, intent, effect, outcome.
    pub(super) fn attempt(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        moves: &Moves,
        call: Call,
    ) -> Result<Next, AgentError> {
        progress.tried = Some(call.clone());
        if let Some(message) = task
            .task()
            .guarded(&call)
            .filter(|_| moves.find(&call.tool).is_some())
        {
            let failure = Failure::new(FailureKind::Constraint, message).of_tool(&call.tool);
            return self.failed(task, progress, failure);
        }
        let verdict = match progress.gate.check(moves, call) {
            Err(failure) => return self.failed(task, progress, failure),
            Ok(verdict) => verdict,
        };
        let dry = self.settings.dry_run;
        let ungrounded = self.ungrounded(task.task(), moves, &verdict);
        let doubtful = ungrounded.is_some() || self.unsure(progress, verdict.spec());
        let settled = dry || (self.settings.approve_all && !doubtful);
        let asked = !settled && (doubtful || matches!(verdict, Verdict::Ask(_)));
        if asked {
            let turn = task.task().turns;
            let doubt = doubtful.then(|| self.doubt(progress, turn, verdict.call(), ungrounded));
            let (call, spec) = (verdict.call(), verdict.spec());
            let granted = self.person.approve(call, spec, doubt.as_ref());
            if !granted && self.cancel.is_cancelled() {
                // Not a no: resuming asks again.
                return Ok(Next::End(StopReason::Cancelled, None));
            }
            self.decided(task, verdict.call(), granted)?;
            if !granted {
                return Ok(Next::End(StopReason::Refused, None));
            }
        }
        let checked = match verdict {
            Verdict::Checked(checked) => checked,
            Verdict::Ask(pending) if asked => pending.approve(Approval::Person),
            Verdict::Ask(pending) => pending.approve(Approval::Setting),
        };
        self.observer.event(&Event::CallStarted {
            call: checked.call().clone(),
            dry,
        });
        if dry {
            return Ok(Next::End(StopReason::DryRun, None));
        }
        self.execute(task, progress, moves, &checked, None)
    }

    fn decided(
        &mut self,
        task: &mut ActiveTask,
        call: &Call,
        granted: bool,
    ) -> Result<(), AgentError> {
        self.observer.event(&Event::Approval {
            call: call.clone(),
            granted,
        });
        self.trace.emit(trace::Event::Approval {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            allowed: granted,
            by: "person".to_owned(),
        });
        let event = if granted {
            task::Event::Approved { call: call.clone() }
        } else {
            task::Event::Refused {
                call: call.clone(),
                reason: "not approved".to_owned(),
            }
        };
        Ok(task.record(self.clock.now(), event)?)
    }

    /// Intent, effect, outcome; what was `settled` of an earlier call is recorded with the intent.
    pub(super) fn execute(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        moves: &Moves,
        checked: &CheckedCall,
        settled: Option<task::Event>,
    ) -> Result<Next, AgentError> {
        let call = checked.call().clone();
        let step = task.task().steps + 1;
        let intent = task::Event::Intent {
            step,
            call: call.clone(),
            effect: checked.spec().effect,
            idempotent: checked.spec().idempotent,
        };
        let events = settled.into_iter().chain([intent]).collect();
        task.lend_lock(true)?;
        task.record_all(self.clock.now(), events)?;
        self.trace.emit(trace::Event::Call {
            step,
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
        });
        let started = self.clock.elapsed();
        let outcome = self.tools.run(checked);
        task.lend_lock(false)?;
        let microseconds = micros(self.clock.elapsed().saturating_sub(started));
        match outcome {
            Ok(outcome) => {
                let ending = self.tools.answer_of(checked, &outcome);
                let (result, changes) = (outcome.result.clone(), outcome.changes.clone());
                let before = task.task().state.clone();
                let now = self.clock.now();
                match ending.clone() {
                    Some(answer) => task.outcome_that_ends(now, result, changes, answer)?,
                    None => task.outcome(now, StepResult::Ok(result), changes)?,
                }
                self.trace.emit(trace::Event::Result {
                    step,
                    ok: true,
                    result: outcome.result.clone(),
                    changes: outcome.changes.clone(),
                    microseconds,
                });
                self.moved(task, &before);
                self.note_result(task, progress);
                self.observer.event(&Event::CallFinished {
                    call: call.clone(),
                    outcome,
                });
                progress.hint = None;
                progress.failures = 0;
                progress.done += 1;
                if ending.is_some() && task.task().recovery() == Recovery::Finished {
                    return Ok(Next::End(StopReason::ToolEnded, ending));
                }
                match task.task().round() {
                    None => Ok(Next::Turn),
                    Some(round) if round.times > 2 => Ok(Next::End(StopReason::Repeated, None)),
                    Some(round) => {
                        let message = if round.calls == 1 {
                            "this very call was made before and gave the same result; answer, or \
                             do something else"
                                .to_owned()
                        } else {
                            format!(
                                "the last {} calls were made before in this order and gave the \
                                 same results; answer, or do something else",
                                round.calls
                            )
                        };
                        let failure =
                            Failure::new(FailureKind::Repeated, message).of_tool(&call.tool);
                        self.failed(task, progress, failure)
                    }
                }
            }
            Err(error) => {
                let result = StepResult::Error {
                    message: error.message.clone(),
                    effect_unknown: error.effect_unknown,
                };
                let before = task.task().state.clone();
                task.outcome(self.clock.now(), result, Vec::new())?;
                self.moved(task, &before);
                self.note_result(task, progress);
                self.trace.emit(trace::Event::Result {
                    step,
                    ok: false,
                    result: error.message.clone().into(),
                    changes: Vec::new(),
                    microseconds,
                });
                if error.storage {
                    return Err(AgentError::Storage(error));
                }
                let example = progress.gate.example(moves, &call.tool, Some(&call));
                let failure = Failure::new(FailureKind::ToolError, error.message)
                    .of_tool(&call.tool)
                    .with_example(example.filter(|example| *example != call));
                self.failed(task, progress, failure)
            }
        }
    }

    /// Keeps what came of the last call, where the prompt has a history.
    fn note_result(&self, task: &ActiveTask, progress: &mut Progress) {
        let last = task
            .task()
            .last
            .as_ref()
            .and_then(|last| last.result.as_ref());
        let layout = &self.settings.layout;
        progress.history.came(|| result_text(layout, last));
    }

    /// Tells the trace where the task went.
    fn moved(&mut self, task: &ActiveTask, from: &str) {
        let to = &task.task().state;
        if to != from {
            self.trace.emit(trace::Event::StateMoved {
                from: from.to_owned(),
                to: to.clone(),
            });
        }
    }

    /// Counts a failure and makes it the next attempt's hint.
    pub(super) fn failed(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        failure: Failure,
    ) -> Result<Next, AgentError> {
        // Where the world cannot be read, the next turn says so.
        let moves = self.moves(task).ok();
        let failure = match &moves {
            Some(moves) => exemplified(task.task(), progress, moves, failure),
            None => failure,
        };
        progress.mistake = Some(Mistake::of(&failure, progress.tried.take()));
        let kind = failure.kind.as_str().to_owned();
        let hint = failure.hint();
        let turn = task.task().turns;
        self.trace.emit(trace::Event::Rejected {
            turn,
            kind: kind.clone(),
            message: failure.message.clone(),
        });
        self.trace.emit(trace::Event::Hint {
            turn,
            kind: kind.clone(),
            text: hint.clone(),
        });
        self.observer.event(&Event::Failure {
            kind: kind.clone(),
            hint: hint.clone(),
        });
        let mut events = Vec::new();
        if !matches!(failure.kind, FailureKind::ToolError | FailureKind::Repeated) {
            let layout = &self.settings.layout;
            progress
                .history
                .came(|| failure_text(layout, &failure.message));
        }
        if failure.kind != FailureKind::ToolError {
            events.push(task::Event::Rejected {
                kind: kind.clone(),
                message: failure.message.clone(),
            });
        }
        events.push(task::Event::HintGiven {
            kind,
            text: hint.clone(),
        });
        task.record_all(self.clock.now(), events)?;
        progress.hint = Some(hint);
        progress.failures += 1;
        if progress.failures >= self.settings.limits.attempts {
            return self.helped(task, progress);
        }
        if let (Some(shown), Some(moves)) = (progress.shown.take(), &moves) {
            let most = self.settings.examples.min(3);
            let goal = task.task().goal.clone();
            progress.shown = Some(self.examples.choose(
                &goal,
                moves.at_hand(),
                Some(failure.kind),
                &shown,
                most,
            ));
        }
        Ok(Next::Turn)
    }

    fn answer(
        &mut self,
        task: &mut ActiveTask,
        progress: &mut Progress,
        text: String,
    ) -> Result<Next, AgentError> {
        let before = task.task().state.clone();
        let flag = task
            .answered(self.clock.now(), &text)?
            .map(|flag| flag.to_string());
        self.trace.emit(trace::Event::Answered {
            text: text.clone(),
            flagged: flag.clone(),
        });
        self.observer.event(&Event::Answer {
            text: text.clone(),
            flag: flag.clone(),
        });
        self.moved(task, &before);
        progress.hint = None;
        // An answer may lead on to another state, or have to be proved.
        self.between(task, progress)
    }

    /// Asks the person; `amends`: the number of the request that the question is about.
    fn ask(
        &mut self,
        task: &mut ActiveTask,
        question: String,
        amends: Option<String>,
    ) -> Result<Next, AgentError> {
        self.trace.emit(trace::Event::Asked {
            question: question.clone(),
        });
        task.record(
            self.clock.now(),
            task::Event::Asked {
                question: question.clone(),
                amends,
            },
        )?;
        self.observer.event(&Event::Question {
            text: question.clone(),
        });
        self.put_to_person(task, question)
    }
}
