//! Tools' schemas become the grammar of a turn; the text that comes back becomes a call; one gate
//! decides whether it may run.

pub mod gate;
pub mod reply;
pub mod spec;

pub use reply::{Call, Reply};
pub use spec::{Domains, Effect, ToolSpec};
