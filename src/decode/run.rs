//! The loop of one generation.

use super::choice::{self, Memo, Paths, Weighing};
use super::closed::{self, ClosedSet};
use super::closing;
use super::event::TokenEvent;
use super::forced::{ForcedError, Speller};
use super::sampler::{Allowed, Choice, Sampler};
use crate::mask::Matcher;
use crate::model::generator::{Cancel, Chosen, GenerateError, Stop};
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
    /// How closed sets are chosen from; `None`: token by token.
    pub(super) choices: Option<Choices>,
    /// As [`Sampling::first_name`](crate::model::generator::Sampling::first_name).
    pub(super) first_name: Vec<(String, f64)>,
    pub(super) on_token: &'a mut dyn FnMut(&TokenEvent<'_>),
}

/// What choices among closed sets are made by.
pub(super) struct Choices {
    /// Tokens of the prompt: what the session holds beyond them was written.
    pub(super) prompt: usize,
    /// The blanked prompt.
    pub(super) blank: Vec<TokenId>,
    pub(super) alpha: f64,
    /// Where the blanked prompt is evaluated: made when it is first needed.
    pub(super) shadow: Option<Box<dyn Session>>,
    pub(super) memo: Memo,
}

/// What was written, and figures about it.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) forced: usize,
    pub(super) chosen: usize,
    pub(super) log_probability: f64,
    pub(super) mask_time: Duration,
    /// Bytes up to the end of the last token that the model chose.
    pub(super) chosen_to: usize,
    pub(super) choices: Vec<Chosen>,
}

impl From<ForcedError> for GenerateError {
    fn from(error: ForcedError) -> Self {
        match error {
            ForcedError::Session(error) => Self::Session(error),
            ForcedError::Matcher(error) => Self::Grammar(error.to_string()),
        }
    }
}

/// Alternatives of the largest closed set that is chosen from as a whole.
pub const MOST_ALTERNATIVES: usize = 256;

/// What became of a choice among a closed set.
enum Taken {
    /// No such set comes next.
    Nothing,
    /// One of the alternatives is written.
    Written,
    /// There was no room for it.
    Ended(Stop),
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
            if let Some(stop) = self.pass(&tokens)? {
                return Ok(Some(stop));
            }
            for token in tokens {
                self.record(Choice::forced(token), Duration::ZERO);
            }
        }
        let finished = self.matcher.as_ref().is_some_and(Matcher::is_finished);
        Ok(finished.then_some(Stop::Complete))
    }

    /// Moves the matcher past `tokens`. `Some`: there is no room for them, and the text is ended
    /// instead.
    fn pass(&mut self, tokens: &[TokenId]) -> Result<Option<Stop>, GenerateError> {
        let (Some(matcher), false) = (&mut self.matcher, tokens.is_empty()) else {
            return Ok(None);
        };
        let before = matcher.checkpoint();
        for &token in tokens {
            if !matcher.accept_token(token).map_err(grammar)? {
                return Err(grammar("a token that can follow was refused"));
            }
        }
        let room = match self.budget.checked_sub(tokens.len()) {
            None => false,
            Some(left) => closing::stays(
                &mut self.closable,
                self.speller,
                self.session,
                matcher,
                left,
            )?,
        };
        if room {
            return Ok(None);
        }
        matcher.rollback(before);
        self.close().map(Some)
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
        let taken = match self.choose_first_name()? {
            Taken::Nothing => self.whole_choice()?,
            taken => taken,
        };
        match taken {
            Taken::Nothing => {}
            Taken::Written => return Ok(None),
            Taken::Ended(stop) => return Ok(Some(stop)),
        }
        let Some(matcher) = &mut self.matcher else {
            return Ok(None);
        };
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
        if let Some(stop) = self.pass(&[choice.token])? {
            return Ok(Some(stop));
        }
        self.record(choice, mask_time);
        Ok(None)
    }

    /// Writes the name of the first member, where there is a choice and something is added to it.
    fn choose_first_name(&mut self) -> Result<Taken, GenerateError> {
        if self.first_name.is_empty() || self.written.chosen_to > 0 {
            return Ok(Taken::Nothing);
        }
        let Some(matcher) = &mut self.matcher else {
            return Ok(Taken::Nothing);
        };
        let found = closed::first_name(&self.written.bytes, matcher, MOST_ALTERNATIVES);
        let Some((set, paths, base)) = self.spelled(found.map_err(grammar)?)? else {
            return Ok(Taken::Nothing);
        };
        // What is out of the question may be no more with what is added.
        let added: f64 = self.first_name.iter().map(|own| own.1.abs()).sum();
        let margin = choice::MARGIN + added;
        let mut scores = choice::likely(self.session, &base, &paths, margin, None)?;
        for (score, name) in scores.iter_mut().zip(&set.alternatives) {
            let own = self
                .first_name
                .iter()
                .filter(|own| own.0.as_bytes() == name);
            if let Some(score) = score {
                *score += own.map(|own| own.1).sum::<f64>();
            }
        }
        let probabilities = choice::probabilities(&scores);
        let (taken, log_probability) = self.sampler.pick(&probabilities).ok_or_else(no_logits)?;
        self.write_alternative(&set, &paths, &base, (taken, log_probability))
    }

    /// A closed set with its alternatives as tokens and what they come after, all of it evaluated.
    fn spelled(
        &mut self,
        set: Option<ClosedSet>,
    ) -> Result<Option<(ClosedSet, Paths, Vec<TokenId>)>, GenerateError> {
        let (Some(set), Some(matcher)) = (set, &self.matcher) else {
            return Ok(None);
        };
        let Some(paths) = Paths::of(&set, self.session, self.speller, matcher)? else {
            return Ok(None);
        };
        self.evaluate_pending()?;
        Ok(Some((set, paths, self.session.tokens().to_vec())))
    }

    /// Writes one of the alternatives of the closed set that comes next, if one does.
    fn whole_choice(&mut self) -> Result<Taken, GenerateError> {
        let (Some(matcher), Some(_)) = (&mut self.matcher, &self.choices) else {
            return Ok(Taken::Nothing);
        };
        let written = &self.written;
        let found = closed::find(
            &written.bytes,
            written.chosen_to,
            matcher,
            MOST_ALTERNATIVES,
        );
        let Some((set, paths, base)) = self.spelled(found.map_err(grammar)?)? else {
            return Ok(Taken::Nothing);
        };
        let Some(choices) = &mut self.choices else {
            return Ok(Taken::Nothing);
        };
        let weighing = if choices.alpha > 0.0 {
            let shadow = match &mut choices.shadow {
                Some(shadow) => shadow,
                none => none.insert(self.session.fork()?),
            };
            let mut blank = choices.blank.clone();
            blank.extend(base.iter().skip(choices.prompt));
            Some(Weighing {
                blank,
                session: shadow.as_mut(),
                alpha: choices.alpha,
                memo: &mut choices.memo,
            })
        } else {
            None
        };
        let scores = choice::score(self.session, &base, &paths, weighing)?;
        let probabilities = choice::probabilities(&scores);
        let (taken, log_probability) = self.sampler.pick(&probabilities).ok_or_else(no_logits)?;
        let chosen = set.chosen(self.written.bytes.len(), &probabilities, taken);
        self.written.choices.push(chosen);
        self.write_alternative(&set, &paths, &base, (taken, log_probability))
    }

    /// Writes the alternative `taken` behind `base`, with its log-probability.
    fn write_alternative(
        &mut self,
        set: &ClosedSet,
        paths: &Paths,
        base: &[TokenId],
        (taken, log_probability): (usize, f64),
    ) -> Result<Taken, GenerateError> {
        let mut tokens = paths.tokens[taken].clone();
        let own = &set.alternatives[taken];
        let longer = |other: &Vec<u8>| other.len() > own.len() && other.starts_with(own);
        if set.alternatives.iter().any(longer) {
            // What closes it is written with it: the next token might go on to another.
            let all = [base, &tokens].concat();
            self.session.set(&all, &mut |_| true)?;
            let logits = self.session.logits();
            let logit = |token: TokenId| logits[token as usize];
            let closing = paths.closing[taken].iter().copied();
            let likeliest = closing.max_by(|&a, &b| logit(a).total_cmp(&logit(b)));
            tokens.push(likeliest.ok_or_else(no_logits)?);
        }
        if let Some(stop) = self.pass(&tokens)? {
            return Ok(Taken::Ended(stop));
        }
        let all = [base, &tokens].concat();
        self.session.set(&all, &mut |_| true)?;
        for (at, &token) in tokens.iter().enumerate() {
            let last = at + 1 == tokens.len();
            let choice = Choice {
                token,
                log_probability: if last { log_probability } else { 0.0 },
                allowed: if last { paths.tokens.len() } else { 1 },
            };
            self.record(choice, Duration::ZERO);
        }
        // They are evaluated.
        self.pending.clear();
        Ok(Taken::Written)
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
            self.written.chosen_to = self.written.bytes.len();
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
