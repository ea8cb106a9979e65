//! Prompt and grammar in, text and optional scores out: all that a remote backend has.

use super::prompt::{Part, Prompt, TokenCounts};
use super::session::SessionError;
use crate::grammar::Grammar;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Asks a running generation to stop after the current token. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it was asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// How the next token is chosen among those that the grammar allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0: always the likeliest.
    pub temperature: f32,
    /// Keep the likeliest tokens whose probabilities add up to this (1: all).
    pub top_p: f32,
    /// Drop tokens less likely than this share of the likeliest (0: none).
    pub min_p: f32,
    /// Seed of the generator's random numbers.
    pub seed: u64,
    /// Added, in nats, to the log-probability of the name of the first member, where an object is
    /// written and its grammar leaves several: these are then chosen from whole. Empty: the name is
    /// written token by token.
    pub first_name: Vec<(String, f64)>,
}

impl Default for Sampling {
    /// Greedy.
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
            first_name: Vec::new(),
        }
    }
}

/// How the alternatives of closed sets are weighed against what the model prefers whatever it is
/// asked.
#[derive(Clone, Copy, Debug)]
pub struct Calibration<'a> {
    /// The prompt with the request blanked out.
    pub blank: &'a Prompt,
    /// How much the log-probability under it is subtracted: 0 (it is not evaluated) to 1.
    pub alpha: f64,
}

/// A choice among the alternatives of a closed set.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Where in the text the alternatives begin, in bytes.
    pub at: usize,
    /// The alternatives and their probabilities (one softmax over calibrated scores), the
    /// likeliest first; those that are out of the question have 0.
    pub alternatives: Vec<(String, f64)>,
    /// Which of them was taken.
    pub taken: usize,
}

/// One generation to be done.
#[derive(Debug)]
pub struct GenerateRequest<'a> {
    /// What the model reads.
    pub prompt: &'a Prompt,
    /// What it may write; `None`: anything.
    pub grammar: Option<&'a Grammar>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Most tokens written, forced ones included.
    pub max_tokens: usize,
    /// Feed forced runs as one batch. Off only for measurements.
    pub jump_ahead: bool,
    /// Score the alternatives of closed sets whole; `None`: token by token.
    pub calibration: Option<Calibration<'a>>,
    /// Stops it early.
    pub cancel: Cancel,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The text is complete: the grammar is satisfied, or the model ended its turn.
    Complete,
    /// Near the token budget: the harness closed the text by the shortest way the grammar
    /// allows. A call that was closed so must not be executed.
    Closed,
    /// The budget ran out with the text incomplete.
    Budget,
    /// The caller stopped it.
    Cancelled,
}

/// Figures of one generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationStats {
    /// Prompt tokens that were already evaluated.
    pub prompt_reused: usize,
    /// Prompt tokens evaluated now.
    pub prompt_evaluated: usize,
    /// Tokens written because nothing else was possible.
    pub forced: usize,
    /// Tokens that the model chose (of more than one).
    pub chosen: usize,
    /// Number of masks asked for.
    pub masks: usize,
    /// How many of them had to be computed.
    pub masks_computed: usize,
    /// Time in masks.
    pub mask_time: Duration,
    /// Time in which the prompt was evaluated.
    pub prefill_time: Duration,
    /// Time from the request to the end of the text.
    pub total_time: Duration,
}

/// What a generation gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The text: where there was a grammar and `stop` is [`Stop::Complete`] or [`Stop::Closed`],
    /// it matches.
    pub text: String,
    /// Why it ended.
    pub stop: Stop,
    /// Natural logarithm of the probability of the chosen tokens, where the backend knows.
    pub log_probability: Option<f64>,
    /// The choices among closed sets that were scored whole, in order.
    pub choices: Vec<Chosen>,
    /// Figures.
    pub stats: GenerationStats,
}

/// Something that writes text for a prompt under a grammar.
pub trait Generator: Send {
    /// A name for traces and reports.
    fn name(&self) -> &str;

    /// Whether a grammar given is always obeyed (a remote backend may not).
    fn obeys_grammar(&self) -> bool;

    /// Most tokens of prompt and text together.
    fn capacity(&self) -> usize;

    /// Number of tokens of `prompt` (an upper bound where the backend cannot know).
    ///
    /// # Errors
    /// Where the template fails.
    fn count(&mut self, prompt: &Prompt) -> Result<usize, GenerateError>;

    /// The tokens of `prompt` part by part; all together as many as [`count`](Self::count) says.
    /// `None`: the backend cannot tell.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    fn count_parts(
        &mut self,
        prompt: &Prompt,
        parts: &[Part],
    ) -> Result<Option<TokenCounts>, GenerateError> {
        _ = (prompt, parts);
        Ok(None)
    }

    /// Writes.
    ///
    /// # Errors
    /// See [`GenerateError`].
    fn generate(&mut self, request: &GenerateRequest<'_>) -> Result<Generation, GenerateError>;

    /// The choices among closed sets along `text`, which was written for `request`: every
    /// alternative scored whole and without calibration. Nothing where the backend cannot know.
    ///
    /// # Errors
    /// See [`GenerateError`].
    fn weigh(
        &mut self,
        request: &GenerateRequest<'_>,
        text: &str,
    ) -> Result<Vec<Chosen>, GenerateError> {
        let _ = (request, text);
        Ok(Vec::new())
    }
}

/// Why nothing could be written.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The prompt does not fit.
    #[error(
        "the prompt has {prompt} tokens, the context holds {capacity} with {reserved} kept for the reply"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens that the context holds.
        capacity: usize,
        /// Tokens kept for the reply.
        reserved: usize,
    },
    /// The model's chat template failed.
    #[error("the model's chat template: {0}")]
    Template(String),
    /// The grammar cannot be used with this vocabulary, or went over a limit.
    #[error("grammar: {0}")]
    Grammar(String),
    /// The backend failed.
    #[error("{backend}: {message}")]
    Backend {
        /// Its name.
        backend: &'static str,
        /// What it said.
        message: String,
    },
}
