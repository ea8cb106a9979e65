//! What happens in a run, as it happens: for a terminal, a page or a test to watch.
//!
//! An observer only looks. What it shows comes from models, tools and files: it must sanitise it
//! for its medium.

use super::limits::StopReason;
use crate::call::Call;
use crate::tool::Outcome;
use std::path::PathBuf;
use std::time::Duration;

/// One thing that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run starts or, with `resumed`, goes on.
    RunStarted {
        task: String,
        request: String,
        resumed: bool,
    },
    /// A turn starts; turns count from 1.
    TurnStarted { turn: usize },
    /// The prompt is being evaluated: tokens done of those to be done.
    Prefill { done: usize, total: usize },
    /// What the model wrote, before anything is made of it.
    Reply { text: String },
    /// A call is about to run; with `dry` it is only shown.
    CallStarted { call: Call, dry: bool },
    /// A call needs a person's word; it follows whether it was given.
    Approval { call: Call, granted: bool },
    /// A call ran.
    CallFinished { call: Call, outcome: Outcome },
    /// A call, or the reply as a whole, failed; the hint is what the model is told.
    Failure { kind: String, hint: String },
    /// The model asks the person something.
    Question { text: String },
    /// The model's final answer; `flag` says why it should not be believed.
    Answer { text: String, flag: Option<String> },
    /// The run ended.
    Stopped {
        reason: StopReason,
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
}

/// Watches a run.
pub trait Observer {
    /// Told of each event in order.
    fn event(&mut self, event: &Event);
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
