//! What happens in a run, as it happens: for a terminal, a page or a test to watch.
//!
//! An observer only looks. What it shows comes from models, tools and files: it must sanitise it
//! for its medium.

use super::doubt::{Doubt, Look};
use super::limits::StopReason;
use crate::call::Call;
use crate::task::Task;
use crate::tool::Outcome;
use crate::trace;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// One thing that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run starts or, with `resumed`, goes on.
    RunStarted {
        /// The task's id.
        task: String,
        /// What the person asked for.
        request: String,
        /// Whether an earlier run began it.
        resumed: bool,
    },
    /// A turn starts.
    TurnStarted {
        /// Counts from 1.
        turn: usize,
    },
    /// What the model is about to read.
    Prompt {
        /// The turn.
        turn: usize,
        /// The prompt, in order.
        sections: Vec<trace::Section>,
        /// The tokens that are in no section: the chat template's own.
        template: Option<usize>,
        /// All tokens.
        tokens: usize,
    },
    /// The model has read and written.
    Generated {
        /// The turn.
        turn: usize,
        /// Tokens of the prompt that were evaluated already, from an earlier turn or run.
        reused: usize,
        /// Those that had to be evaluated. None are where all that was written was forced.
        evaluated: usize,
    },
    /// The prompt is being evaluated.
    Prefill {
        /// Tokens done.
        done: usize,
        /// Tokens to be done.
        total: usize,
    },
    /// What the model wrote, before anything is made of it.
    Reply {
        /// The text.
        text: String,
    },
    /// A call is one that the model is less sure of than one likes, and is asked about.
    Unsure {
        /// The call.
        call: Call,
        /// How unsure, and what else there was.
        doubt: Doubt,
    },
    /// The model looked again at a turn of which it was less sure than one likes.
    LookedAgain {
        /// How sure it was at first, 0 to 1, where that is known.
        confidence: Option<f64>,
        /// What came of it.
        look: Look,
    },
    /// A call is about to run.
    CallStarted {
        /// The call.
        call: Call,
        /// Whether it is only shown.
        dry: bool,
    },
    /// A call needs a person's word.
    Approval {
        /// The call.
        call: Call,
        /// Whether it was given.
        granted: bool,
    },
    /// A call ran.
    CallFinished {
        /// The call.
        call: Call,
        /// What came of it.
        outcome: Outcome,
    },
    /// A call, or the reply as a whole, failed.
    Failure {
        /// The kind of failure.
        kind: String,
        /// What the model is told.
        hint: String,
    },
    /// The person said something while it ran.
    Heard {
        /// What was said.
        text: String,
        /// Whether it is the next request, now that this one is done.
        follow_up: bool,
    },
    /// At its end, the task was held against its proofs.
    Verified {
        /// The first proof that does not hold, in words; `None`: all hold.
        failed: Option<String>,
    },
    /// The model asks the person something.
    Question {
        /// The question.
        text: String,
    },
    /// The model's final answer.
    Answer {
        /// The answer.
        text: String,
        /// Why it should not be believed, if so.
        flag: Option<String>,
    },
    /// The run ended.
    Stopped {
        /// Why.
        reason: StopReason,
        /// Figures of the whole run.
        figures: Figures,
    },
}

/// Figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Turns taken.
    pub turns: usize,
    /// Prompt tokens that were already evaluated, and those that had to be.
    pub prompt_reused: usize,
    /// Prompt tokens evaluated.
    pub prompt_evaluated: usize,
    /// Tokens written because nothing else was possible.
    pub forced: usize,
    /// Tokens that the model chose.
    pub chosen: usize,
    /// Wall time.
    pub elapsed: Duration,
    /// Of it, time in token masks.
    pub mask_time: Duration,
    /// Where the trace is.
    pub trace: Option<PathBuf>,
    /// How sure the model was of its calls, between 0 and 1: the least, over the turns that called,
    /// of the probability of all that was written, among what the turn's grammar allowed.
    pub confidence: Option<f64>,
}

impl Figures {
    /// As the trace has them.
    pub(super) fn traced(&self) -> trace::Figures {
        trace::Figures {
            prompt_reused: self.prompt_reused as u64,
            prompt_evaluated: self.prompt_evaluated as u64,
            forced: self.forced as u64,
            chosen: self.chosen as u64,
            mask_microseconds: micros(self.mask_time),
            total_microseconds: micros(self.elapsed),
            ..trace::Figures::default()
        }
    }
}

/// Whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Watches a run.
pub trait Observer {
    /// Told of each event in order.
    fn event(&mut self, event: &Event);

    /// Asked after each turn; [`ControlFlow::Break`] with a reason stops the run, which can be
    /// resumed.
    fn after_turn(&mut self, task: &Task) -> ControlFlow<String> {
        let _ = task;
        ControlFlow::Continue(())
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn event(&mut self, _event: &Event) {}
}

/// Keeps every event, for tests and benchmarks.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// All events so far.
    pub events: Vec<Event>,
}

impl Observer for Recorder {
    fn event(&mut self, event: &Event) {
        self.events.push(event.clone());
    }
}
