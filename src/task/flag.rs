//! Why an answer is not to be believed, as the journal keeps it.

use serde::{Deserialize, Serialize};

/// Why an answer is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// What is wrong with it.
    pub reason: FlagReason,
    /// The words that gave it away.
    pub words: String,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlagReason {
    /// It claims an effect, and no call that changes anything succeeded.
    ClaimsEffect,
}

impl std::fmt::Display for Flag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.reason {
            FlagReason::ClaimsEffect => write!(
                f,
                "the answer says {:?}, but no call changed anything",
                self.words
            ),
        }
    }
}
