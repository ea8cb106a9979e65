//! The generator over any session.

use super::choice::Memo;
use super::closing;
use super::counts;
use super::event::TokenEvent;
use super::forced::Speller;
use super::run::{Choices, Run, Written};
use super::sampler::Sampler;
use super::weigh::weigh;
use crate::grammar::Grammar;
use crate::mask::{Lexicon, Limits, MaskStore, Matcher};
use crate::model::format::Format;
use crate::model::generator::{
    Chosen, GenerateError, GenerateRequest, Generation, GenerationStats, Generator, Stop,
};
use crate::model::prompt::{Part, Prompt, TokenCounts};
use crate::model::session::{Evaluated, Session, SessionError};
use crate::vocab::TokenId;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Told of each token.
pub type TokenHook = Box<dyn FnMut(&TokenEvent<'_>) + Send>;
/// Told of prompt tokens evaluated, and of how many there are to evaluate.
pub type ProgressHook = Box<dyn FnMut(usize, usize) + Send>;

/// Writes text by a session's logits, under a grammar or free.
pub struct SessionGenerator {
    name: String,
    session: Box<dyn Session>,
    format: Box<dyn Format>,
    lexicon: Arc<Lexicon>,
    store: Arc<MaskStore>,
    limits: Limits,
    speller: Speller,
    /// The last grammar and its matcher before any text.
    compiled: Option<(Grammar, Matcher)>,
    /// The byte-stable tokens of the last prompt.
    stable: Vec<TokenId>,
    /// Where blanked prompts are evaluated, and what is known of them.
    shadow: Option<Box<dyn Session>>,
    memo: Memo,
    on_token: Option<TokenHook>,
    on_progress: Option<ProgressHook>,
}

/// A prompt as tokens.
struct Tokens {
    all: Vec<TokenId>,
    /// How many of the first are byte-stable.
    stable: usize,
}

impl SessionGenerator {
    /// A generator over `session`, whose vocabulary `lexicon` was built from. Generators of one
    /// model share `lexicon`, and all of them `store`.
    pub fn new(
        name: impl Into<String>,
        session: Box<dyn Session>,
        format: Box<dyn Format>,
        lexicon: Arc<Lexicon>,
        store: Arc<MaskStore>,
        limits: Limits,
    ) -> Self {
        Self {
            name: name.into(),
            speller: Speller::new(lexicon.vocabulary()),
            session,
            format,
            lexicon,
            store,
            limits,
            compiled: None,
            stable: Vec::new(),
            shadow: None,
            memo: Memo::default(),
            on_token: None,
            on_progress: None,
        }
    }

    /// Has each token told to `hook`, for traces and for showing text as it appears.
    pub fn on_token(&mut self, hook: Option<TokenHook>) {
        self.on_token = hook;
    }

    /// Has progress in the prompt told to `hook`.
    pub fn on_progress(&mut self, hook: Option<ProgressHook>) {
        self.on_progress = hook;
    }

    /// The session.
    pub fn session(&self) -> &dyn Session {
        self.session.as_ref()
    }

    /// Bytes held beside weights, KV caches and compute buffers: vocabulary, masks, and what the
    /// sessions and the choices among closed sets keep.
    pub fn bytes_held(&self) -> usize {
        self.lexicon.vocabulary().bytes_held()
            + self.lexicon.bytes_held()
            + self.store.bytes()
            + self.session.overhead_bytes()
            + self
                .shadow
                .as_ref()
                .map_or(0, |shadow| shadow.overhead_bytes())
            + self.memo.bytes_held()
    }

    /// Takes up a prefix that an earlier process saved; the number of tokens, 0 where there is
    /// none that fits.
    ///
    /// # Errors
    /// Where the file exists but cannot be read.
    pub fn load_prefix(&mut self, path: &Path) -> Result<usize, SessionError> {
        self.session.load(path)
    }

    /// Whether the stable part of the last prompt is evaluated and was not saved yet.
    pub fn has_prefix(&self) -> bool {
        !self.stable.is_empty() && self.session.tokens().starts_with(&self.stable)
    }

    /// Saves the evaluated stable part of the last prompt for a later process, once; does nothing
    /// where there is none ([`has_prefix`](Self::has_prefix)).
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save_prefix(&mut self, path: &Path) -> Result<(), SessionError> {
        if self.has_prefix() {
            let stable = std::mem::take(&mut self.stable);
            self.session.save(stable.len(), path)?;
        }
        Ok(())
    }

    /// Renders and tokenises. Text of messages never becomes a special token.
    fn tokens(&self, prompt: &Prompt) -> Result<Tokens, GenerateError> {
        let rendered = self.format.render(prompt)?;
        let mut all = Vec::new();
        let mut stable = 0;
        for (number, segment) in rendered.segments.iter().enumerate() {
            if number == rendered.stable {
                stable = all.len();
            }
            all.extend(
                self.session
                    .tokenize(segment.text.as_bytes(), segment.is_trusted())?,
            );
        }
        if rendered.stable >= rendered.segments.len() {
            stable = all.len();
        }
        if let Some(begin) = self.session.begin()
            && all.first() != Some(&begin)
        {
            all.insert(0, begin);
            stable += usize::from(stable > 0);
        }
        Ok(Tokens { all, stable })
    }

    /// A matcher at the start of `grammar`.
    fn matcher(&mut self, grammar: &Grammar) -> Result<Matcher, GenerateError> {
        if let Some((known, matcher)) = &self.compiled
            && known == grammar
        {
            return Ok(matcher.clone());
        }
        let matcher = Matcher::new(grammar, &self.lexicon, &self.store, &self.limits)
            .map_err(|error| GenerateError::Grammar(error.to_string()))?;
        self.compiled = Some((grammar.clone(), matcher.clone()));
        Ok(matcher)
    }

    /// Makes the session hold `prompt` and then `forced`, with a checkpoint after the stable part.
    fn prefill(
        &mut self,
        prompt: &Tokens,
        forced: &[TokenId],
        request: &GenerateRequest<'_>,
    ) -> Result<Evaluated, SessionError> {
        let mut all = prompt.all.clone();
        all.extend_from_slice(forced);
        let shared = all
            .iter()
            .zip(self.session.tokens())
            .take_while(|(a, b)| a == b)
            .count();
        let total = all.len() - shared;
        let mut before = 0;
        let mut hook = self.on_progress.as_mut();
        let mut progress = |done: usize, before: usize| {
            if let Some(hook) = &mut hook {
                hook((before + done).min(total), total);
            }
            !request.cancel.is_cancelled()
        };
        let mut first = None;
        // A prefix that is there already got its checkpoint when it came there.
        if prompt.stable > shared && prompt.stable < all.len() {
            let stable = &all[..prompt.stable];
            let done = self.session.set(stable, &mut |done| progress(done, 0))?;
            self.session.checkpoint()?;
            before = done.evaluated;
            first = Some(done);
        }
        let rest = self.session.set(&all, &mut |done| progress(done, before))?;
        if prompt.stable == all.len() {
            self.session.checkpoint()?;
        }
        let reused = first.map_or(rest.reused, |first| first.reused);
        Ok(Evaluated {
            reused: reused.min(prompt.all.len()),
            evaluated: prompt.all.len().saturating_sub(reused),
        })
    }
}

impl Generator for SessionGenerator {
    fn name(&self) -> &str {
        &self.name
    }

    fn obeys_grammar(&self) -> bool {
        true
    }

    fn capacity(&self) -> usize {
        self.session.capacity()
    }

    fn count(&mut self, prompt: &Prompt) -> Result<usize, GenerateError> {
        Ok(self.tokens(prompt)?.all.len())
    }

    fn count_parts(
        &mut self,
        prompt: &Prompt,
        parts: &[Part],
    ) -> Result<Option<TokenCounts>, GenerateError> {
        let rendered = self.format.render(prompt)?;
        let session = self.session.as_ref();
        Ok(Some(counts::count(session, prompt, &rendered, parts)?))
    }

    fn generate(&mut self, request: &GenerateRequest<'_>) -> Result<Generation, GenerateError> {
        let start = Instant::now();
        let prompt = self.tokens(request.prompt)?;
        self.stable = prompt.all[..prompt.stable].to_vec();
        let capacity = self.session.capacity();
        // A reply may be cut short by the context's end, but not below a quarter of it.
        let reserved = request.max_tokens.min(capacity / 4);
        if prompt.all.len() + reserved > capacity {
            return Err(GenerateError::PromptTooLong {
                prompt: prompt.all.len(),
                capacity,
                reserved,
            });
        }
        let fresh = request.grammar != self.compiled.as_ref().map(|(known, _)| known);
        let mut matcher = match request.grammar {
            Some(grammar) => Some(self.matcher(grammar)?),
            None => None,
        };
        let mut stats = GenerationStats::default();
        let masks_before = matcher.as_ref().map(Matcher::stats).unwrap_or_default();

        let mut on_token = self.on_token.take();
        let mut tell = |event: &TokenEvent<'_>| {
            if let Some(hook) = &mut on_token {
                hook(event);
            }
        };
        let budget = request.max_tokens.min(capacity - prompt.all.len());
        let blank = match &request.calibration {
            Some(calibration) if calibration.alpha > 0.0 => self.tokens(calibration.blank)?.all,
            _ => Vec::new(),
        };
        let choices = request.calibration.map(|calibration| Choices {
            prompt: prompt.all.len(),
            blank,
            alpha: calibration.alpha,
            shadow: self.shadow.take(),
            memo: std::mem::take(&mut self.memo),
        });
        let closable = match &mut matcher {
            Some(matcher) => closing::fits(&self.speller, self.session.as_ref(), matcher, budget)?,
            None => false,
        };
        // What is forced before any choice is evaluated with the prompt's end.
        let mut run = Run {
            session: self.session.as_mut(),
            speller: &self.speller,
            matcher,
            sampler: Sampler::new(request.sampling.clone()),
            jump_ahead: request.jump_ahead,
            cancel: &request.cancel,
            budget,
            closable,
            pending: Vec::new(),
            written: Written::default(),
            choices,
            first_name: request.sampling.first_name.clone(),
            on_token: &mut tell,
        };
        let stop = match run.jump() {
            Ok(Some(stop)) => Ok(stop),
            Err(error) => Err(error),
            Ok(None) => {
                let Run {
                    matcher,
                    sampler,
                    budget,
                    closable,
                    pending,
                    written,
                    choices,
                    first_name,
                    ..
                } = run;
                let prefill_start = Instant::now();
                let prefilled = match &matcher {
                    Some(matcher) if fresh => {
                        warming(matcher, || self.prefill(&prompt, &pending, request))
                    }
                    _ => self.prefill(&prompt, &pending, request),
                };
                stats.prefill_time = prefill_start.elapsed();
                run = Run {
                    session: self.session.as_mut(),
                    speller: &self.speller,
                    matcher,
                    sampler,
                    jump_ahead: request.jump_ahead,
                    cancel: &request.cancel,
                    budget,
                    closable,
                    pending: Vec::new(),
                    written,
                    choices,
                    first_name,
                    on_token: &mut tell,
                };
                match prefilled {
                    Ok(evaluated) => {
                        stats.prompt_reused = evaluated.reused;
                        stats.prompt_evaluated = evaluated.evaluated;
                        run.finish()
                    }
                    Err(SessionError::Cancelled) => Ok(Stop::Cancelled),
                    Err(error) => Err(error.into()),
                }
            }
        };
        let Run {
            matcher,
            written,
            choices,
            ..
        } = run;
        self.on_token = on_token;
        if let Some(choices) = choices {
            (self.shadow, self.memo) = (choices.shadow, choices.memo);
        }
        let stop = stop?;

        let masks = matcher.as_ref().map(Matcher::stats).unwrap_or_default();
        stats.masks = count(masks.asked - masks_before.asked);
        stats.masks_computed = count(masks.computed - masks_before.computed);
        stats.mask_time = written.mask_time;
        stats.forced = written.forced;
        stats.chosen = written.chosen;
        stats.total_time = start.elapsed();
        Ok(Generation {
            text: String::from_utf8_lossy(&written.bytes).into_owned(),
            stop,
            log_probability: Some(written.log_probability),
            choices: written.choices,
            stats,
        })
    }

    fn weigh(
        &mut self,
        request: &GenerateRequest<'_>,
        text: &str,
    ) -> Result<Vec<Chosen>, GenerateError> {
        let Some(grammar) = request.grammar else {
            return Ok(Vec::new());
        };
        let prompt = self.tokens(request.prompt)?.all;
        let matcher = self.matcher(grammar)?;
        let session = self.session.as_mut();
        weigh(session, &self.speller, matcher, &prompt, text)
    }
}

/// Does `work` while another thread computes masks that will be asked for after it.
fn warming<T>(matcher: &Matcher, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut ahead = matcher.clone();
        let done = &done;
        scope.spawn(move || {
            // In steps, so that it stops soon after the work does. A limit that is exceeded here
            // is reported when the generation itself comes to it.
            for masks in [2, 4, 8, 16, 32, 64] {
                if done.load(Ordering::Relaxed) || ahead.warm_up(masks).is_err() {
                    break;
                }
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl std::fmt::Debug for SessionGenerator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionGenerator")
            .field("name", &self.name)
            .field("capacity", &self.session.capacity())
            .finish_non_exhaustive()
    }
}
