//! The person at the other end, where there is one.

use super::doubt::Doubt;
use crate::call::{Call, ToolSpec};
use crate::task::{Pending, Settlement, Task};

/// What a run may need of a person. Whoever implements it must sanitise what it shows.
pub trait Person {
    /// May this call run? `doubt`: the model is less sure of it than one likes, and so.
    fn approve(&mut self, call: &Call, spec: &ToolSpec, doubt: Option<&Doubt>) -> bool;

    /// The model asks; `None`: nobody answers now, the task waits.
    fn reply(&mut self, question: &str) -> Option<String>;

    /// A call was interrupted: did it take effect? `None`: nobody knows now.
    fn settle(&mut self, pending: &Pending) -> Option<Settlement>;

    /// The model failed at a step as often as allowed: the call to be made in its place. `None`:
    /// the run stops.
    fn act(&mut self, task: &Task) -> Option<Call> {
        let _ = task;
        None
    }

    /// A line typed while the run goes on: it reaches the next turn. Never waits.
    fn steer(&mut self) -> Option<String> {
        None
    }

    /// A line that was queued for when the run would stop: what is wanted next. Never waits.
    fn follow_up(&mut self) -> Option<String> {
        None
    }
}

/// Nobody is there: no call is approved, no question answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Person for Nobody {
    fn approve(&mut self, _call: &Call, _spec: &ToolSpec, _doubt: Option<&Doubt>) -> bool {
        false
    }

    fn reply(&mut self, _question: &str) -> Option<String> {
        None
    }

    fn settle(&mut self, _pending: &Pending) -> Option<Settlement> {
        None
    }
}
