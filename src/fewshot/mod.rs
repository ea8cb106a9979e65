//! Few-shot examples, chosen for each request.
//!
//! Corrected examples never pile up in a prompt: they go into a [`Pool`]; a prompt gets at most
//! three, the ones that fit the request. The shipped seeds (`fewshot/*.jsonl`) are *templates*:
//! `{device}` stands for a value that exists right now, so that an example always shows a call
//! that is possible in this house. The caller pins what it selected for a request and selects
//! again, excluding what was shown, only after a failure. A retry that succeeds becomes an example
//! itself ([`Lesson`]), kept in a [`LearnedFile`]. What a model is told after a failure (the hint)
//! is made in `call::failure`.

mod compose;
pub mod example;
mod fill;
pub mod learned;
mod lesson;
mod ngram;
pub mod pool;
#[cfg(test)]
mod pool_tests;
mod ridge;
#[cfg(test)]
mod seed_tests;

pub use compose::anchors;
pub use example::{Example, ExampleError, ExampleId, Hole, Source};
pub use fill::{Fill, Legal};
pub use learned::{Learned, LearnedError, LearnedFile};
pub use lesson::Lesson;
pub use pool::{Pool, Query, Shown};
