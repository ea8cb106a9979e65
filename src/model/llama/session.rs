//! A session over a llama.cpp context.

use super::checkpoints::Checkpoints;
use super::ffi::{Context, Failure, Part};
use super::{LlamaModel, backend};
use crate::model::prefix_file;
use crate::model::session::{Evaluated, Session, SessionError};
use crate::vocab::{TokenId, Vocabulary};
use std::path::Path;
use std::sync::Arc;

/// A context of one sequence.
///
/// [`fork`](Session::fork) makes a whole second context: the memory is copied, and it costs
/// another KV cache, compute buffers and threads.
#[derive(Debug)]
pub struct LlamaSession {
    context: Context,
    model: LlamaModel,
    tokens: Vec<TokenId>,
    checkpoints: Checkpoints,
    /// Logits after the last token where the context itself has none: of a fork, or after saving.
    copied_logits: Vec<f32>,
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> Self {
        backend(failure.0)
    }
}

impl LlamaSession {
    pub(super) fn new(model: LlamaModel) -> Result<Self, SessionError> {
        let context = Context::new(&model.model, model.parameters)?;
        let settings = &model.settings;
        Ok(Self {
            context,
            tokens: Vec::new(),
            checkpoints: Checkpoints::new(settings.checkpoints, settings.checkpoint_bytes),
            copied_logits: Vec::new(),
            model,
        })
    }

    /// The model that it runs.
    pub fn model(&self) -> &LlamaModel {
        &self.model
    }

    fn clear(&mut self) {
        self.context.clear();
        self.tokens.clear();
        self.copied_logits.clear();
        self.checkpoints.forget_all_but_prefixes_of(&[]);
    }

    /// Goes back to the first `keep` tokens, or to fewer where the memory allows no better.
    fn rewind(&mut self, keep: usize) -> usize {
        if keep >= self.tokens.len() {
            return self.tokens.len();
        }
        self.copied_logits.clear();
        if keep > 0 && self.can_cut_at(keep) && self.context.cut(keep) {
            self.truncate(keep);
            return keep;
        }
        if let Some(checkpoint) = self.checkpoints.longest(&self.tokens[..keep]) {
            let length = checkpoint.tokens.len();
            if self
                .context
                .restore(&checkpoint.memory, Part::Uncuttable)
                .is_ok()
                && self.context.cut(length)
            {
                self.truncate(length);
                return length;
            }
        }
        self.clear();
        0
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        self.checkpoints.forget_all_but_prefixes_of(&self.tokens);
    }

    /// Whether everything that the token at position `keep` looks back at is still there.
    fn can_cut_at(&self, keep: usize) -> bool {
        let model = &self.model.model;
        if model.is_recurrent() {
            return false;
        }
        self.model.can_be_cut()
            || self.context.first_position() <= keep.saturating_sub(model.sliding_window())
    }

    /// Evaluates `tokens` after those that are there.
    fn evaluate(
        &mut self,
        tokens: &[TokenId],
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), SessionError> {
        let needed = self.tokens.len() + tokens.len();
        if needed > self.context.capacity() {
            return Err(SessionError::ContextFull {
                needed,
                capacity: self.context.capacity(),
            });
        }
        self.copied_logits.clear();
        let mut done = 0;
        for batch in tokens.chunks(self.context.batch_room()) {
            done += batch.len();
            let last = done == tokens.len();
            if let Err(failure) = self.context.decode(batch, self.tokens.len(), last) {
                // What the memory holds now is unknown.
                self.clear();
                return Err(failure.into());
            }
            self.tokens.extend_from_slice(batch);
            if !progress(done) {
                return Err(SessionError::Cancelled);
            }
        }
        Ok(())
    }
}

impl Session for LlamaSession {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.model.vocabulary()
    }

    fn capacity(&self) -> usize {
        self.context.capacity()
    }

    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn tokenize(&self, text: &[u8], special: bool) -> Result<Vec<TokenId>, SessionError> {
        self.model.tokenizer.tokenize(text, special)
    }

    fn begin(&self) -> Option<TokenId> {
        self.model.model.begin()
    }

    fn set(
        &mut self,
        tokens: &[TokenId],
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Evaluated, SessionError> {
        if tokens.is_empty() {
            return Err(backend("an empty context has no logits".to_owned()));
        }
        if tokens.len() > self.context.capacity() {
            return Err(SessionError::ContextFull {
                needed: tokens.len(),
                capacity: self.context.capacity(),
            });
        }
        let common = tokens
            .iter()
            .zip(&self.tokens)
            .take_while(|(a, b)| a == b)
            .count();
        if common == tokens.len() && common == self.tokens.len() && !self.logits().is_empty() {
            return Ok(Evaluated {
                reused: common,
                evaluated: 0,
            });
        }
        // The last token is evaluated in any case: its logits are asked for.
        let reused = self.rewind(common.min(tokens.len() - 1));
        self.evaluate(&tokens[reused..], progress)?;
        Ok(Evaluated {
            reused,
            evaluated: tokens.len() - reused,
        })
    }

    fn extend(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        self.evaluate(tokens, &mut |_| true)
    }

    fn logits(&self) -> &[f32] {
        let own = self.context.logits();
        if own.is_empty() {
            &self.copied_logits
        } else {
            own
        }
    }

    fn checkpoint(&mut self) -> Result<(), SessionError> {
        if self.model.can_be_cut() || self.tokens.is_empty() {
            return Ok(());
        }
        let memory = self.context.snapshot(Part::Uncuttable)?;
        self.checkpoints.add(&self.tokens, memory);
        Ok(())
    }

    fn fork(&mut self) -> Result<Box<dyn Session>, SessionError> {
        let mut fork = Self::new(self.model.clone())?;
        if !self.tokens.is_empty() {
            let memory = self.context.snapshot(Part::Whole)?;
            fork.context.restore(&memory, Part::Whole)?;
            fork.tokens.clone_from(&self.tokens);
            fork.checkpoints = self.checkpoints.clone();
            fork.copied_logits = self.logits().to_vec();
        }
        Ok(Box::new(fork))
    }

    /// Where the memory cannot be cut at `count`, the longest checkpoint before it is saved;
    /// where there is none, nothing is, and no file is written.
    fn save(&mut self, count: usize, path: &Path) -> Result<(), SessionError> {
        if count >= self.tokens.len() {
            if self.tokens.is_empty() {
                return Ok(());
            }
            let memory = self.context.snapshot(Part::Whole)?;
            prefix_file::write(path, self.model.fingerprint, &self.tokens, &memory)?;
            return Ok(());
        }
        let logits = self.logits().to_vec();
        let tokens = self.tokens.clone();
        let checkpoints = self.checkpoints.clone();
        let everything = self.context.snapshot(Part::Whole)?;
        let kept = self.rewind(count);
        let written = if kept > 0 {
            match self.context.snapshot(Part::Whole) {
                Ok(memory) => {
                    prefix_file::write(path, self.model.fingerprint, &self.tokens, &memory)
                        .map_err(SessionError::from)
                }
                Err(failure) => Err(failure.into()),
            }
        } else {
            Ok(())
        };
        self.clear();
        self.context.restore(&everything, Part::Whole)?;
        self.tokens = tokens;
        self.checkpoints = checkpoints;
        self.copied_logits = logits;
        written
    }

    fn load(&mut self, path: &Path) -> Result<usize, SessionError> {
        let capacity = self.context.capacity();
        let Some(saved) = prefix_file::read(path, self.model.fingerprint, capacity)? else {
            return Ok(0);
        };
        let known = self.vocabulary().len();
        if saved.tokens.iter().any(|&token| token as usize >= known) {
            return Ok(0);
        }
        self.clear();
        if self.context.restore(&saved.memory, Part::Whole).is_err() {
            self.clear();
            return Ok(0);
        }
        self.tokens = saved.tokens;
        self.checkpoint()?;
        Ok(self.tokens.len())
    }

    fn overhead_bytes(&self) -> usize {
        self.tokens.capacity() * size_of::<TokenId>()
            + self.copied_logits.capacity() * size_of::<f32>()
            + self.checkpoints.bytes()
    }
}
