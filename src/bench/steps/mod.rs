//! Tasks of fifty steps that need facts from earlier steps, generated from a seed.
//!
//! [`plan`] makes a task: ten orders in a warehouse, what is right at each step, and its
//! definition; [`warehouse`] is its world, in memory; [`run`] has the agent work on it and says how
//! each step went; [`figures`] sums up and compares the runs.

pub mod figures;
pub mod plan;
pub mod run;
pub mod warehouse;

pub use figures::{Comparison, table};
pub use plan::{Kind, Plan, STEPS};
pub use run::{PlayError, Played, play};
