//! A generator that is listened to: for recordings and for measurements.

use super::generator::{Chosen, GenerateError, GenerateRequest, Generation, Generator};
use super::prompt::{Part, Prompt, TokenCounts};

/// Passes everything on, and shows what was written to `heard`.
pub struct Tap<'g, F> {
    inner: &'g mut dyn Generator,
    heard: F,
}

impl<'g, F: FnMut(&Generation) + Send> Tap<'g, F> {
    /// Has `heard` told of each generation of `inner`.
    pub fn new(inner: &'g mut dyn Generator, heard: F) -> Self {
        Self { inner, heard }
    }
}

impl<F> std::fmt::Debug for Tap<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

impl<F: FnMut(&Generation) + Send> Generator for Tap<'_, F> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn obeys_grammar(&self) -> bool {
        self.inner.obeys_grammar()
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn count(&mut self, prompt: &Prompt) -> Result<usize, GenerateError> {
        self.inner.count(prompt)
    }

    fn count_parts(
        &mut self,
        prompt: &Prompt,
        parts: &[Part],
    ) -> Result<Option<TokenCounts>, GenerateError> {
        self.inner.count_parts(prompt, parts)
    }

    fn generate(&mut self, request: &GenerateRequest<'_>) -> Result<Generation, GenerateError> {
        let generation = self.inner.generate(request)?;
        (self.heard)(&generation);
        Ok(generation)
    }

    fn weigh(
        &mut self,
        request: &GenerateRequest<'_>,
        text: &str,
    ) -> Result<Vec<Chosen>, GenerateError> {
        self.inner.weigh(request, text)
    }
}
