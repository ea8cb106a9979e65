//! The grammar engine: GBNF text, JSON Schema and the byte automaton that both become.
//!
//! Pure: no input or output, no model, no token. Where tokens meet grammars is
//! [`mask`](crate::mask).

pub mod ast;
pub mod schema;

pub use ast::{CharClass, Expr, Grammar, Rule, RuleId};
