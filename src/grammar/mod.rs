//! The grammar engine: GBNF text, JSON Schema and the byte automaton that both become.
//!
//! Pure: no input or output, no model, no token. Where tokens meet grammars is
//! [`mask`](crate::mask).

pub mod alphabet;
pub(crate) mod analysis;
pub mod ast;
pub(crate) mod automaton;
mod code;
mod compatible;
mod distance;
pub mod gbnf;
pub(crate) mod hash;
pub mod limits;
pub mod lower;
mod print;
pub(crate) mod program;
mod recogniser;
mod sample;
pub mod schema;
mod stacks;

pub use ast::{CharClass, Expr, Grammar, GrammarBuilder, Rule, RuleId, TokenReference};
pub use compatible::for_llama_cpp;
pub use limits::{Bound, LimitError, Limits};
pub use recogniser::{Position, Recogniser};
pub use sample::{SampleError, SampleLength, sample};
