//! The task: its state lives here, outside the model, and its journal is the truth.
//!
//! [`journal`] keeps hash-chained events in SQLite; [`state`] folds them into a [`Task`];
//! [`definition`] says which tools are legal where and what is remembered, [`load`] reads and
//! [`check`] checks one; [`active`] joins the two, so that nothing is known before it is durable.
//! `task` does not run tools: it knows calls only as data.

pub mod active;
mod chain;
pub mod check;
mod check_flow;
pub mod claim;
pub mod condition;
pub mod definition;
pub mod event;
pub mod facts;
pub mod flag;
mod flow;
pub mod graph;
mod head;
pub mod id;
pub mod journal;
mod journal_error;
#[cfg(test)]
mod journal_tests;
pub mod load;
pub mod loops;
mod programs;
pub mod rewind;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod status;
mod text;

pub use active::{ActiveTask, TaskError};
pub use chain::Damage;
pub use check::{Fault, Part};
pub use claim::flag_answer;
pub use condition::{Condition, Evidence, Guard, Proof, Test};
pub use definition::{Definition, Limits};
pub use event::{Entry, Event, Settlement, StepResult, StopReason};
pub use facts::Facts;
pub use flag::{Flag, FlagReason};
pub use id::{InvalidTaskId, TaskId};
pub use journal::{Journal, JournalError, Record, TaskLog, TaskRow};
pub use load::{Checked, LoadError, LocatedFault, Source};
pub use loops::Round;
pub use state::{Task, standing};
pub use status::{LastStep, Pending, Recovery, Status};
