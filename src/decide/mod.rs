//! Typed decisions: one of several options, yes or no, a level; each with its probability.
//!
//! A decision is a generation under a grammar that is the closed set of the options, which
//! [`decode`](crate::decode) scores whole and weighs against the same prompt without the question.
//! A backend that gives no such scores decides nothing.

mod decider;
mod decision;
mod options;

pub use decider::{DecideError, Decider};
pub use decision::{Choice, Level, YesNo};
pub use options::{LONGEST_OPTION, MOST_OPTIONS, Options, OptionsError};

#[cfg(test)]
pub(crate) use decision::tests::choice;
