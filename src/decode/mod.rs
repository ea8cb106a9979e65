//! One constrained generation: a session's logits meet a matcher's masks.
//!
//! [`SessionGenerator`] is the [`Generator`](crate::model::Generator) over any
//! [`Session`](crate::model::Session). What it promises, whatever the model says:
//! - the bytes written always match the grammar;
//! - a sampled token is never re-tokenised;
//! - the model is asked only where there is a choice (jump-ahead);
//! - near the budget the text is closed by the shortest way, if there is one.

mod choice;
mod closed;
mod closing;
mod counts;
mod event;
mod forced;
mod generator;
mod run;
mod sampler;
mod softmax;
mod weigh;

pub use closed::LONGEST as LONGEST_ALTERNATIVE;
pub use event::TokenEvent;
pub use generator::{ProgressHook, SessionGenerator, TokenHook};
pub use run::MOST_ALTERNATIVES;

#[cfg(test)]
mod tests;
