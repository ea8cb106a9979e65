//! A model with an evaluated context: tokens in, logits out.

use crate::vocab::{TokenId, Vocabulary};
use std::path::Path;
use std::sync::Arc;

/// What it took to make a context equal a token list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evaluated {
    /// Tokens that were already in the context.
    pub reused: usize,
    /// Tokens that the model had to evaluate.
    pub evaluated: usize,
}

/// A model's evaluated context. Positions count tokens from 0.
///
/// A session never re-evaluates what it has; where the model's memory cannot be cut (hybrid,
/// recurrent, sliding-window), it goes back to the nearest checkpoint.
pub trait Session: Send {
    /// The model's tokens.
    fn vocabulary(&self) -> &Arc<Vocabulary>;

    /// Most tokens that the context holds.
    fn capacity(&self) -> usize;

    /// What the context holds now.
    fn tokens(&self) -> &[TokenId];

    /// The canonical tokens of `text` as it continues a context: no beginning-of-sequence token,
    /// no blank added. Special tokens are recognised only where `special` is set (text of a
    /// template, never of a person or a tool).
    ///
    /// # Errors
    /// Where the tokeniser fails.
    fn tokenize(&self, text: &[u8], special: bool) -> Result<Vec<TokenId>, SessionError>;

    /// The token that begins every sequence, where the model wants one.
    fn begin(&self) -> Option<TokenId>;

    /// Makes the context equal `tokens`, keeping the longest common prefix, and leaves the logits
    /// after the last of them ready. `tokens` must not be empty. `progress` is told the number of
    /// tokens evaluated so far and may stop the evaluation by returning `false`.
    ///
    /// # Errors
    /// [`SessionError::ContextFull`], [`SessionError::Cancelled`] or a backend's failure.
    fn set(
        &mut self,
        tokens: &[TokenId],
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Evaluated, SessionError>;

    /// Appends `tokens` (evaluated as one batch); the logits after the last are ready.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    fn extend(&mut self, tokens: &[TokenId]) -> Result<(), SessionError>;

    /// Logits after the last token: one finite or `-inf` value per token of the vocabulary.
    fn logits(&self) -> &[f32];

    /// Remembers the memory as it is after `self.tokens()`, to come back to by [`set`](Self::set);
    /// a bounded number is kept, oldest dropped first.
    ///
    /// # Errors
    /// Where the backend cannot take a snapshot.
    fn checkpoint(&mut self) -> Result<(), SessionError>;

    /// A second, independent context that starts with the same memory.
    ///
    /// # Errors
    /// Where there is not enough memory.
    fn fork(&mut self) -> Result<Box<dyn Session>, SessionError>;

    /// Writes the evaluated first `count` tokens to a file (temporary name, then renamed).
    ///
    /// # Errors
    /// Where the file cannot be written.
    fn save(&mut self, count: usize, path: &Path) -> Result<(), SessionError>;

    /// Fills an empty context from a file that [`save`](Self::save) wrote for this very model
    /// and build. Returns the number of tokens, 0 where the file does not fit.
    ///
    /// # Errors
    /// Where the file exists but cannot be read.
    fn load(&mut self, path: &Path) -> Result<usize, SessionError>;

    /// Bytes of memory outside weights, KV cache and compute buffers that this session holds.
    fn overhead_bytes(&self) -> usize;
}

/// Why a session could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// More tokens than the context holds.
    #[error("{needed} tokens do not fit the context of {capacity}")]
    ContextFull {
        /// Tokens asked for.
        needed: usize,
        /// Tokens that fit.
        capacity: usize,
    },
    /// The caller stopped it.
    #[error("cancelled")]
    Cancelled,
    /// The backend failed.
    #[error("{backend}: {message}")]
    Backend {
        /// Its name.
        backend: &'static str,
        /// What it said.
        message: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] std::io::Error),
}
