//! What a generation gave, what it was given, and what is made of it.

use crate::call::{Call, Failure, Reply};
use crate::grammar::Grammar;
use crate::model::{Generation, Prompt};

/// What a generation gave.
pub(super) struct Said {
    /// What was written.
    pub(super) generation: Generation,
    /// For this prompt.
    pub(super) prompt: Prompt,
    /// Under this grammar, where there was one.
    pub(super) grammar: Option<Grammar>,
    /// What it says.
    pub(super) reply: Result<Reply, Failure>,
    /// The number of the request that a question in its place is about.
    pub(super) amends: Option<String>,
    /// Whether a second look said the same.
    pub(super) agreed: bool,
    /// The calls of a second look that said something else: none where it would make none.
    pub(super) other: Option<Vec<Call>>,
}

impl Said {
    /// How sure the model is of it, 0 to 1, where that is known.
    pub(super) fn confidence(&self) -> Option<f64> {
        self.generation.log_probability.map(f64::exp)
    }

    /// The calls that it makes.
    pub(super) fn calls(&self) -> &[Call] {
        match &self.reply {
            Ok(Reply::Calls(calls)) => calls,
            Ok(Reply::Ask(_) | Reply::Answer(_)) | Err(_) => &[],
        }
    }
}
