//! The grammar engine: GBNF text, JSON Schema and the byte automaton that both become.
//!
//! Pure: no input or output, no model, no token. Where tokens meet grammars is
//! [`mask`](crate::mask).

pub(crate) mod analysis;
pub mod ast;
pub(crate) mod automaton;
mod distance;
pub mod gbnf;
pub(crate) mod hash;
pub mod limits;
pub mod lower;
mod print;
pub(crate) mod program;
pub mod schema;

pub use ast::{CharClass, Expr, Grammar, GrammarBuilder, Rule, RuleId, TokenReference};
pub use limits::{Bound, LimitError, Limits};
