//! Tools' schemas become the grammar of a turn; the text that comes back becomes a call; one gate
//! decides whether it may run.

pub mod arguments;
pub mod dialect;
pub mod example;
pub mod failure;
pub mod gate;
pub mod json;
pub mod moves;
pub mod numbers;
pub mod policy;
pub mod relevance;
pub mod reply;

pub mod spec;
pub mod tool_list;
pub mod turn;

pub use dialect::Dialect;
pub use failure::{Failure, FailureKind};
pub use gate::{Approval, CheckedCall, Gate, PendingCall, Verdict};
pub use moves::{Move, Moves, Narrowed};
pub use policy::{Permission, Policy};
pub use reply::{Call, Reply};
pub use spec::{Domains, Effect, ToolSpec};
pub use tool_list::{ToolListError, is_tool_list, read_tools};
pub use turn::{TurnGrammar, TurnOptions, turn_grammar};
