//! Where grammars and vocabularies meet: which tokens may come next.
//!
//! A [`Lexicon`] is built once per model, a [`MaskStore`] once per process; a [`Matcher`] is one
//! generation under one grammar. Nothing here knows a model or samples.

mod batch;
mod lexicon;
mod loops;
mod matcher;
mod slice;
mod store;
mod token_mask;
mod walk;

pub use crate::grammar::Limits;
pub use batch::masks;
pub use lexicon::Lexicon;
pub use matcher::{Checkpoint, Matcher, MatcherError, MatcherStats};
pub use store::{MaskStore, StoreStats};
pub use token_mask::TokenMask;
