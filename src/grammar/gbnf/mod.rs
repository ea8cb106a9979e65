//! GBNF text: the grammar notation of llama.cpp.
//!
//! [`parse`] reads what llama.cpp reads (and the underscore in names that its documentation
//! promises), with errors that say where and what was expected. Differences, all of them where
//! llama.cpp is silent or crashes: nesting is bounded, `{m,n}` is exact up to
//! [`Limits::repetition`](super::Limits) instead of unbounded above 2000, `[]` and `{3,2}` are
//! errors, left recursion hidden behind something nullable is found, a redefinition warns.

mod error;
mod parser;

pub use error::{GbnfError, GbnfErrorKind, GbnfWarning, GbnfWarningKind, Place};
pub use parser::{Parsed, parse};
