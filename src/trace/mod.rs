//! The trace: what a run did, line by line, for the person who wants to know why.
//!
//! It is no source of truth (that is the task's journal) and never stops a run: a sink that
//! fails keeps its first error for the end. [`sanitize`](sanitize::sanitize) lives here because
//! everything that came from a model or a tool passes it before it reaches a terminal.

pub mod event;
pub mod redact;
pub mod render;
#[cfg(test)]
mod render_tests;
pub mod retain;
pub mod sanitize;
pub mod sink;

pub use event::{Event, Figures, Scored, Section, Token};
pub use redact::{InvalidPattern, Redaction};
pub use render::{RenderOptions, Renderer, render};
pub use retain::Retention;
pub use sanitize::{sanitize, sanitize_line};
pub use sink::{JsonLines, Null, Trace, TraceError, TraceSettings, grammar_hash};
