//! Spoken requests to synthetic homes, from `home-assistant-datasets` (A. Porter, Apache-2.0).
//!
//! `dataset` reads the folder as it is, `mapping` makes a house of ours out of a home of theirs
//! and says what cannot be, `run` works on a request and compares the states afterwards.

pub mod dataset;
pub mod mapping;
pub mod run;

pub use dataset::{Case, DatasetError, Home};

#[cfg(test)]
mod tests;
