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
mod permute;
mod print;
pub(crate) mod program;
mod recogniser;
mod sample;
pub mod schema;
mod stacks;
mod unordered;

pub use ast::{
    CharClass, Expr, Grammar, GrammarBuilder, Member, Others, Rule, RuleId, TokenReference,
    Unordered,
};
pub use compatible::{CompatibleError, for_llama_cpp};
pub use limits::{Bound, LimitError, Limits};
pub use permute::PrintError;
pub use recogniser::{Position, Recogniser};
pub use sample::{SampleError, SampleLength, sample};
