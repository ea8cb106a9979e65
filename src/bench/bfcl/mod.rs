//! The Berkeley Function Calling Leaderboard, version 4: its single-turn categories for Python.
//!
//! `dataset` reads questions and answers, `checker` gives the leaderboard's verdict on an output,
//! `score` does that for files of outputs, `run` has a model answer. `value`, `json`, `syntax`
//! and `python` read outputs as Python does; `decode` finds the calls in them; `schema` makes tools
//! of the leaderboard's functions.
//!
//! Source: F. Yan et al., "Berkeley Function Calling Leaderboard", 2024, and the Python package
//! `bfcl-eval` (Apache-2.0).

pub mod checker;
pub mod dataset;
pub mod decode;
pub mod json;
pub mod python;
pub mod run;
pub mod schema;
pub mod score;
mod syntax;
pub mod value;

pub use checker::{ErrorType, Names, check};
pub use dataset::{Category, DatasetError, Question};
