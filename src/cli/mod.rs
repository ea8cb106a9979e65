//! The command line: the only place that prints or exits.

pub mod config;
pub mod exit;
pub mod suggest;
