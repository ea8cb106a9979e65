//! The home: a house in a TOML file, and the tools that act on it.
//!
//! `kind` says what devices are, `file` reads a house, `store` keeps it on disk, `tools` offers it
//! to the model.

mod file;
mod kind;
mod say;
mod store;
mod tools;

pub use file::{Area, Device, House, HouseError};
pub use kind::{Capability, Key, Kind};
pub use store::{Change, HouseFile};
pub use tools::{HomeTool, Operation, tools};
