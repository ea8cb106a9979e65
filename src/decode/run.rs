//! The loop of one generation.

use super::closing;
use super::forced::{ForcedError, Speller};
use super::hook::TokenEvent;
use super::sampler::{Allowed, Choice, Sampler};
use crate::mask::Matcher;
use crate::model::generator::{Cancel, GenerateError, Stop};
use crate::model::session::Session;
use crate::vocab::TokenId;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a generation needs, and what it has written so far.
pub(super) struct Run<'a> {
    pub(super) session: &'a mut dyn Session,
    pub(super) speller: &'a Speller,
    /// `None`: anything may be written.
    pub(super) matcher: Option<Matcher>,
    pub(super) sampler: Sampler,
    pub(super) jump_ahead: bool,
    pub(super) cancel: &'a Cancel,
    /// Tokens that may still be written.
    pub(super) budget: usize,
    /// Whether the text can be closed within the budget; kept true once it is.
    pub(super) closable: bool,
    /// Tokens written but not evaluated yet.
    pub(super) pending: Vec<TokenId>,
    pub(super) written: Written,
    pub(super) on_token: &'a mut dyn FnMut(&TokenEvent<'_>),
}

/// What was written, and figures about it.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) forced: usize,
    pub(super) chosen: usize,
    pub(super) log_probability: f64,
    pub(super) mask_time: Duration,
}

impl From<ForcedError> for GenerateError {
    fn from(error: ForcedError) -> Self {
        match error {
            ForcedError::Session(error) => Self::Session(error),
            ForcedError::Matcher(error) => Self::Grammar(error.to_string()),
        }
    }
}

fn grammar(error: impl std::fmt::Display) -> GenerateError {
    GenerateError::Grammar(error.to_string())
}

impl Run<'_> {
    /// Writes what is forced, to be evaluated together with what comes before it. `Some`: the
    /// text ends here.
    pub(super) fn jump(&mut self) -> Result<Option<Stop>, GenerateError> {
        let Some(matcher) = &mut self.matcher else {
            return Ok(None);
        };
        if self.jump_ahead {
            let tokens = self.speller.forced(self.session, matcher)?;
            if !tokens.is_empty() {
                let before = matcher.checkpoint();
                let mut room = tokens.len() <= self.budget;
                for &token in &tokens {
                    if !matcher.accept_token(token).map_err(grammar)? {
                        return Err(grammar("a forced token was refused"));
                    }
                }
                if room {
                    let left = self.budget - tokens.len();
                    room = closing::stays(
                        &mut self.closable,
                        self.speller,
                        self.session,
                        matcher,
                        left,
                    )?;
                }
                if !room {
                    matcher.rollback(before);
                    return self.close().map(Some);
                }
                for token in tokens {
                    self.record(Choice::forced(token), Duration::ZERO);
                }
            }
        }
        let finished = self.matcher.as_ref().is_some_and(Matcher::is_finished);
        Ok(finished.then_some(Stop::Complete))
    }

    /// Runs to the end. The session holds the prompt; its logits are those after the last token
    /// unless some are pending.
    pub(super) fn finish(&mut self) -> Result<Stop, GenerateError> {
        loop {
            if self.cancel.is_cancelled() {
                return Ok(Stop::Cancelled);
            }
            let stop = if self.matcher.is_some() {
                self.constrained_step()?
            } else {
                self.free_step()?
            };
            if let Some(stop) = stop {
                return Ok(stop);
            }
            if let Some(stop) = self.jump()? {
                return Ok(stop);
            }
        }
    }

    /// One token under the grammar.
    fn constrained_step(&mut self) -> Result<Option<Stop>, GenerateError> {
        let Some(matcher) = &mut self.matcher else {
            return Ok(None);
        };
        let accepting = matcher.is_accepting();
        if matcher.is_finished() {
            return Ok(Some(Stop::Complete));
        }
        if self.budget == 0 {
            return Ok(Some(if accepting {
                Stop::Closed
            } else {
                Stop::Budget
            }));
        }
        let start = Instant::now();
        let mask = matcher.mask().map_err(grammar)?;
        let mask_time = start.elapsed();
        self.written.mask_time += mask_time;
        if mask.is_empty() {
            if accepting {
                return Ok(Some(Stop::Complete));
            }
            return Err(grammar(
                "this model's vocabulary has no token for what must come next",
            ));
        }
        let only = mask.single().filter(|_| !accepting && self.jump_ahead);
        let choice = match only {
            // Whatever the model would say.
            Some(token) => Choice::forced(token),
            None => {
                self.evaluate_pending()?;
                let vocabulary = Arc::clone(self.session.vocabulary());
                let also = if accepting {
                    vocabulary.end_of_generation()
                } else {
                    &[]
                };
                let allowed = Allowed::Mask { mask: &mask, also };
                let choice = self
                    .sampler
                    .choose(self.session.logits(), allowed)
                    .ok_or_else(no_logits)?;
                if also.contains(&choice.token) && !mask.contains(choice.token) {
                    self.written.log_probability += choice.log_probability;
                    return Ok(Some(Stop::Complete));
                }
                choice
            }
        };
        let Some(matcher) = &mut self.matcher else {
            return Ok(None);
        };
        let before = matcher.checkpoint();
        if !matcher.accept_token(choice.token).map_err(grammar)? {
            return Err(grammar("a token of the mask was refused"));
        }
        let left = self.budget - 1;
        if !closing::stays(
            &mut self.closable,
            self.speller,
            self.session,
            matcher,
            left,
        )? {
            matcher.rollback(before);
            return self.close().map(Some);
        }
        self.record(choice, mask_time);
        Ok(None)
    }

    /// One token where anything may be written.
    fn free_step(&mut self) -> Result<Option<Stop>, GenerateError> {
        if self.budget == 0 {
            return Ok(Some(Stop::Budget));
        }
        self.evaluate_pending()?;
        let choice = self
            .sampler
            .choose(self.session.logits(), Allowed::Everything)
            .ok_or_else(no_logits)?;
        let ends = self.session.vocabulary().end_of_generation();
        if ends.contains(&choice.token) {
            self.written.log_probability += choice.log_probability;
            return Ok(Some(Stop::Complete));
        }
        self.record(choice, Duration::ZERO);
        Ok(None)
    }

    /// Ends the text by the shortest way.
    fn close(&mut self) -> Result<Stop, GenerateError> {
        let Some(matcher) = &mut self.matcher else {
            return Ok(Stop::Budget);
        };
        match closing::tokens(self.speller, self.session, matcher)? {
            Some(tokens) if tokens.len() <= self.budget => {
                for &token in &tokens {
                    if !matcher.accept_token(token).map_err(grammar)? {
                        return Err(grammar("a closing token was refused"));
                    }
                }
                for token in tokens {
                    self.record(Choice::forced(token), Duration::ZERO);
                }
                Ok(Stop::Closed)
            }
            _ => Ok(Stop::Budget),
        }
    }

    fn evaluate_pending(&mut self) -> Result<(), GenerateError> {
        if !self.pending.is_empty() {
            self.session.extend(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Notes a token that the matcher has accepted.
    fn record(&mut self, choice: Choice, mask_time: Duration) {
        let vocabulary = self.session.vocabulary();
        let bytes = vocabulary.bytes(choice.token);
        (self.on_token)(&TokenEvent {
            token: choice.token,
            bytes,
            allowed: choice.allowed,
            log_probability: choice.log_probability,
            mask_time,
        });
        self.written.bytes.extend_from_slice(bytes);
        if choice.allowed > 1 {
            self.written.chosen += 1;
        } else {
            self.written.forced += 1;
        }
        self.written.log_probability += choice.log_probability;
        self.pending.push(choice.token);
        self.budget = self.budget.saturating_sub(1);
    }
}

fn no_logits() -> GenerateError {
    GenerateError::Backend {
        backend: "session",
        message: "no allowed token has a usable logit".to_owned(),
    }
}
