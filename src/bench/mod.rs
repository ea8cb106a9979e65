//! Benchmarks: suites of requests, what counts as right, figures with their uncertainty.
//!
//! A suite is run by the same agent that a person runs, over a fresh copy of its world for every
//! request, and always beside random logits under the same grammar: what chance alone would reach.
//! [`conformance`] needs no model: schemas, and instances that are known to be valid or invalid.

pub mod bfcl;
pub mod conformance;
pub mod episode;
pub mod histogram;
pub mod home;
pub mod home_assist;
pub mod html;
pub mod interval;
pub mod log;
pub mod mcnemar;
pub mod overlap;
pub mod record;
pub mod replay;
pub mod report;
pub mod results;
pub mod steps;
pub mod suite;
pub mod tune;

pub use home::{Graded, grade};
pub use interval::Share;
pub use report::Report;
pub use suite::{Kind, Request, SuiteError};
