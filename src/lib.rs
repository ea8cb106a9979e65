//! Snaffle lets a small local language model work as a dependable agent.
//!
//! Everything the harness knows at this moment (tool schemas, the state of the task, the policy,
//! the live values) is compiled into the grammar of the next turn, so that the model can only
//! emit a call that is valid, allowed and possible. `ARCHITECTURE.md` draws the whole picture.
//!
//! Modules depend on each other in one direction only; `tests/tidy.rs` holds the table.

pub mod agent;
pub mod bench;
pub mod call;
pub mod cli;
pub mod decide;
pub mod decode;
pub mod fewshot;
pub mod files;
pub mod grammar;
pub mod mask;
pub mod model;
pub mod task;
pub mod tool;
pub mod trace;
pub mod vocab;
