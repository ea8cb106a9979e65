//! From messages to what a model reads: what every chat template has in common.

use super::generator::GenerateError;
use super::prompt::{Prompt, Rendered};

/// Turns messages into what a model reads.
pub trait Format: Send {
    /// Renders `prompt` up to where the model's turn begins.
    ///
    /// # Errors
    /// Where the template fails.
    fn render(&self, prompt: &Prompt) -> Result<Rendered, GenerateError>;
}
