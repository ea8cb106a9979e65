//! What a caller sets of a rendering, how far it may go, and how it fails.

use super::super::generator::GenerateError;

/// Longest template in bytes; real ones have up to 30 KiB.
pub const LONGEST_TEMPLATE: usize = 1 << 20;
/// Work that a rendering may take: about as many instructions, and 64 bytes of memory each.
pub const FUEL: u64 = 1_000_000;
/// Most bytes of a rendered prompt.
pub const LONGEST_OUTPUT: usize = 16 << 20;

/// What a rendering ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// Begin the model's turn at the end.
    pub reply: bool,
    /// Let models that can think aloud do so.
    pub think: bool,
}

impl Default for RenderOptions {
    /// The model's turn begins, and it does not think aloud.
    fn default() -> Self {
        Self {
            reply: true,
            think: false,
        }
    }
}

/// Why a template cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The text is longer than [`LONGEST_TEMPLATE`].
    #[error("has {0} bytes, at most {LONGEST_TEMPLATE} are read")]
    TooLong(usize),
    /// It is not a template.
    #[error("cannot be read: {0}")]
    Syntax(String),
    /// It loops, or makes more text than it may.
    #[error("loops or explodes: it was stopped after its budget of work and memory")]
    Exhausted,
    /// It refuses these messages itself.
    #[error("refuses the messages: {0}")]
    Refused(String),
    /// It fails.
    #[error("fails: {0}")]
    Failed(String),
    /// The result is longer than [`LONGEST_OUTPUT`].
    #[error("explodes: it gives more than {LONGEST_OUTPUT} bytes")]
    Output,
    /// It leaves a message out.
    #[error("leaves out the content of message {0}")]
    Lost(usize),
}

impl From<TemplateError> for GenerateError {
    fn from(error: TemplateError) -> Self {
        Self::Template(error.to_string())
    }
}
