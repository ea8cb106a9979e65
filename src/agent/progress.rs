//! What changes while a run goes on, beside the task itself: none of it outlives the run.

use super::context::Shown;
use super::event::Figures;
use super::history::History;
use super::learn::Mistake;
use super::said::Said;
use crate::call::{Call, Gate};

/// What changes while a run goes on.
pub(super) struct Progress {
    pub(super) gate: Gate,
    pub(super) figures: Figures,
    pub(super) tokens: usize,
    pub(super) failures: usize,
    pub(super) shown: Option<Vec<Shown>>,
    pub(super) hint: Option<String>,
    /// How sure the model was of the reply at hand.
    pub(super) confidence: Option<f64>,
    /// Whether a second look said the same.
    pub(super) agreed: bool,
    /// The reply at hand, where it calls.
    pub(super) said: Option<Said>,
    /// Which of its calls is being attempted, from 0.
    pub(super) number: usize,
    /// Whether a person made a call in this turn.
    pub(super) helped: bool,
    /// What the prompt would have without state outside of the model.
    pub(super) history: History,
    /// The call that is being attempted.
    pub(super) tried: Option<Call>,
    /// What the last attempt did wrong.
    pub(super) mistake: Option<Mistake>,
    /// Calls that succeeded since the request was made.
    pub(super) done: usize,
}
