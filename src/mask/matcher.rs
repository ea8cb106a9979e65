//! Matches a generation against a grammar, token by token.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::lexicon::Lexicon;
use super::store::MaskStore;
use super::token_mask::TokenMask;
use super::walk::Walker;
use crate::grammar::automaton::{Automaton, DEAD_STATE, StateId};
use crate::grammar::lower::{self, LowerError};
use crate::grammar::{Bound, Grammar, LimitError, Limits};
use crate::vocab::TokenId;

/// Why matching cannot go on, or start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// The grammar cannot be compiled for this vocabulary.
    #[error(transparent)]
    Grammar(#[from] LowerError),
    /// A limit was exceeded while matching.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The text can only go on with a token that the grammar names, which no bytes spell.
    #[error("the grammar can only go on with a token that it names, not with text")]
    NeedsToken,
}

/// A grammar compiled for a vocabulary, with everything computed for it so far.
#[derive(Debug)]
struct Shared {
    core: Mutex<Core>,
    lexicon: Arc<Lexicon>,
    store: Arc<MaskStore>,
    forced_limit: usize,
}

#[derive(Debug)]
struct Core {
    automaton: Automaton,
    /// Per state: its mask, as long as the store (or somebody else) keeps it.
    masks: Vec<Weak<TokenMask>>,
    /// The same by what can follow: where a text's length is counted, each character leads to
    /// another state, but mostly to one that allows the same.
    alike: FxHashMap<u128, Weak<TokenMask>>,
    walker: Walker,
}

/// What a matcher did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatcherStats {
    /// Masks that were asked for.
    pub asked: u64,
    /// Those that neither the state nor the store knew.
    pub computed: u64,
    /// Time spent on masks that neither the state nor one like it knew.
    pub time: Duration,
}

/// A place in a text that a grammar accepts so far.
///
/// Cloning is cheap: clones share what was computed and go their own ways.
///
/// ```
/// use std::sync::Arc;
/// use snaffle::grammar::{Limits, gbnf};
/// use snaffle::mask::{Lexicon, MaskStore, Matcher};
/// use snaffle::vocab::{Token, TokenKind, Vocabulary};
///
/// let spell = |text: &str| Token { bytes: text.into(), kind: TokenKind::Text };
/// let vocabulary = Vocabulary::new(["y", "e", "s", "n", "o", "ye"].map(spell).into(), vec![]);
/// let lexicon = Arc::new(Lexicon::new(Arc::new(vocabulary)));
/// let store = Arc::new(MaskStore::default());
/// let limits = Limits::default();
/// let grammar = gbnf::parse("root ::= \"yes\" | \"no\"", &limits)?.grammar;
/// let mut matcher = Matcher::new(&grammar, &lexicon, &store, &limits)?;
/// assert_eq!(matcher.mask()?.iter().collect::<Vec<_>>(), [0, 3, 5]);
/// assert!(matcher.accept_token(5)?);
/// assert_eq!(matcher.forced_bytes()?, b"s");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Matcher {
    shared: Arc<Shared>,
    state: StateId,
    stats: MatcherStats,
}

/// A place to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    state: StateId,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Core> {
        // States are added whole, so that a panic elsewhere leaves nothing half done.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    fn run(&mut self, state: StateId, bytes: &[u8]) -> Result<StateId, LimitError> {
        let mut state = state;
        for &byte in bytes {
            state = self.automaton.step(state, byte)?;
            if state == DEAD_STATE {
                break;
            }
        }
        Ok(state)
    }

    fn known(&self, state: StateId) -> Option<Arc<TokenMask>> {
        self.masks.get(state as usize).and_then(Weak::upgrade)
    }

    fn mask(
        &mut self,
        state: StateId,
        shared: &Shared,
        stats: &mut MatcherStats,
    ) -> Result<Arc<TokenMask>, LimitError> {
        stats.asked += 1;
        if let Some(known) = self.known(state) {
            return Ok(known);
        }
        if self.masks.len() <= state as usize {
            self.masks.resize(self.automaton.states(), Weak::new());
        }
        let hash = self.automaton.hash(state);
        if let Some(alike) = self.alike.get(&hash)
            && let Some(mask) = alike.upgrade()
        {
            self.masks[state as usize].clone_from(alike);
            return Ok(mask);
        }
        let started = Instant::now();
        let found = self.walker.mask(
            &mut self.automaton,
            state,
            hash,
            &shared.lexicon,
            &shared.store,
        )?;
        let weak = Arc::downgrade(&found.mask);
        self.masks[state as usize] = Weak::clone(&weak);
        self.alike.insert(hash, weak);
        stats.computed += u64::from(found.computed);
        stats.time += started.elapsed();
        Ok(found.mask)
    }
}

impl Matcher {
    /// Compiles `grammar` for the vocabulary of `lexicon` and starts at its root.
    ///
    /// # Errors
    /// If the grammar cannot be compiled: left recursion, an unknown token, nothing that can be
    /// spelled, a limit.
    pub fn new(
        grammar: &Grammar,
        lexicon: &Arc<Lexicon>,
        store: &Arc<MaskStore>,
        limits: &Limits,
    ) -> Result<Self, MatcherError> {
        let program = lower::lower(grammar, &**lexicon, limits)?;
        let mut automaton = Automaton::new(program, lexicon.trie().depth(), limits)?;
        // Not left to the first mask: nobody waits for a grammar that is compiled while the prompt
        // is read, but everybody for a mask.
        automaton.hashes();
        let state = automaton.start();
        Ok(Self {
            shared: Arc::new(Shared {
                core: Mutex::new(Core {
                    automaton,
                    masks: Vec::new(),
                    alike: FxHashMap::default(),
                    walker: Walker::default(),
                }),
                lexicon: Arc::clone(lexicon),
                store: Arc::clone(store),
                forced_limit: limits.forced_bytes,
            }),
            state,
            stats: MatcherStats::default(),
        })
    }

    /// The vocabulary that this matches in.
    pub fn lexicon(&self) -> &Arc<Lexicon> {
        &self.shared.lexicon
    }

    /// The tokens that are allowed now: text, and those that the grammar names. The end of
    /// generation is not among them: it is allowed where [`is_accepting`](Self::is_accepting).
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn mask(&mut self) -> Result<Arc<TokenMask>, MatcherError> {
        let mut core = self.shared.lock();
        Ok(core.mask(self.state, &self.shared, &mut self.stats)?)
    }

    /// The mask, where the state knows it; otherwise nothing is done or counted.
    pub(super) fn known_mask(&mut self) -> Option<Arc<TokenMask>> {
        let known = self.shared.lock().known(self.state)?;
        self.stats.asked += 1;
        Some(known)
    }

    /// The same for all that share what was computed.
    pub(super) fn grammar_id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// The mask by the plain walk, computed afresh and remembered nowhere: the reference that
    /// tests and benchmarks compare [`mask`](Self::mask) with.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn mask_plain(&mut self) -> Result<TokenMask, MatcherError> {
        let mut core = self.shared.lock();
        let core = &mut *core;
        Ok(core
            .walker
            .plain(&mut core.automaton, self.state, &self.shared.lexicon)?)
    }

    /// Moves past `token`, or refuses (`false`) and stays.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn accept_token(&mut self, token: TokenId) -> Result<bool, MatcherError> {
        let mut core = self.shared.lock();
        let is_text = self.shared.lexicon.is_text(token);
        let spelled = if is_text {
            let bytes = self.shared.lexicon.vocabulary().bytes(token);
            core.run(self.state, bytes)?
        } else {
            DEAD_STATE
        };
        let next = if core.automaton.has_tokens(self.state) {
            core.automaton
                .after_token(self.state, token, is_text, spelled)?
        } else {
            spelled
        };
        if next == DEAD_STATE {
            return Ok(false);
        }
        self.state = next;
        Ok(true)
    }

    /// Moves past all of `bytes`, or refuses (`false`) and stays.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<bool, MatcherError> {
        let next = self.shared.lock().run(self.state, bytes)?;
        if next == DEAD_STATE {
            return Ok(false);
        }
        self.state = next;
        Ok(true)
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self) -> bool {
        self.shared.lock().automaton.accepts(self.state)
    }

    /// Whether the text may end here and nothing can follow.
    pub fn is_finished(&self) -> bool {
        let core = self.shared.lock();
        core.automaton.accepts(self.state) && !core.automaton.goes_on(self.state)
    }

    /// The longest run of bytes that alone can follow, at most
    /// [`Limits::forced_bytes`]; empty where the text may end.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn forced_bytes(&mut self) -> Result<Vec<u8>, MatcherError> {
        let mut core = self.shared.lock();
        let mut forced = Vec::new();
        let mut state = self.state;
        while forced.len() < self.shared.forced_limit
            && !core.automaton.accepts(state)
            && !core.automaton.has_tokens(state)
            && let Some(byte) = single(core.automaton.allowed(state))
        {
            forced.push(byte);
            state = core.automaton.step(state, byte)?;
        }
        Ok(forced)
    }

    /// The bytes that can follow, as 256 bits, lowest first.
    pub fn allowed_bytes(&self) -> [u64; 4] {
        *self.shared.lock().automaton.allowed(self.state)
    }

    /// Whether a token exists that starts with `tail` and goes on in a way that the grammar
    /// allows. The matcher is where it is *after* `tail`.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn could_extend(&mut self, tail: &[u8]) -> Result<bool, MatcherError> {
        let mut core = self.shared.lock();
        let core = &mut *core;
        if tail.is_empty() {
            return Ok(core.automaton.goes_on(self.state));
        }
        let Some(prefix) = self.shared.lexicon.trie().find(tail) else {
            return Ok(false);
        };
        Ok(core.walker.goes_on(
            &mut core.automaton,
            self.state,
            &self.shared.lexicon,
            prefix,
        )?)
    }

    /// Fewest bytes until the text may end, over bytes that the vocabulary can spell.
    pub fn distance(&self) -> Option<usize> {
        let distance = self.shared.lock().automaton.distance(self.state)?;
        usize::try_from(distance).ok()
    }

    /// A shortest text that ends the match.
    ///
    /// # Errors
    /// If it is longer than [`Limits::forced_bytes`], or only a token that the grammar names leads
    /// on.
    pub fn closing_bytes(&mut self) -> Result<Vec<u8>, MatcherError> {
        let mut core = self.shared.lock();
        let mut closing = Vec::new();
        let mut state = self.state;
        while !core.automaton.accepts(state) {
            LimitError::check(
                Bound::ForcedBytes,
                closing.len() + 1,
                self.shared.forced_limit,
            )?;
            let byte = core
                .automaton
                .closing_byte(state)
                .ok_or(MatcherError::NeedsToken)?;
            closing.push(byte);
            state = core.automaton.step(state, byte)?;
        }
        Ok(closing)
    }

    /// The place to come back to with [`rollback`](Self::rollback).
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { state: self.state }
    }

    /// Goes back to a checkpoint of this matcher or of a clone.
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        self.state = checkpoint.state;
    }

    /// Computes the masks of up to `count` states that are likely to come: those reached from here
    /// by the tokens that end where a choice is, breadth first. Meant for a clone on another
    /// thread while the prompt is being evaluated. Returns how many it computed or found.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn warm_up(&mut self, count: usize) -> Result<usize, MatcherError> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = std::collections::VecDeque::from([self.state]);
        let mut done = 0;
        while done < count
            && let Some(start) = open.pop_front()
        {
            // The lock is taken anew for each state: a generation that has begun goes first.
            let mut core = self.shared.lock();
            let mut state = start;
            let mut run = 0;
            while !core.automaton.accepts(state)
                && run < self.shared.forced_limit
                && let Some(byte) = single(core.automaton.allowed(state))
            {
                state = core.automaton.step(state, byte)?;
                run += 1;
            }
            if !seen.insert(state) || !core.automaton.goes_on(state) {
                continue;
            }
            core.mask(state, &self.shared, &mut self.stats)?;
            done += 1;
            let allowed = *core.automaton.allowed(state);
            for byte in 0..=255_u8 {
                if allowed[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0 {
                    let next = core.automaton.step(state, byte)?;
                    if !seen.contains(&next) && open.len() < 4 * count {
                        open.push_back(next);
                    }
                }
            }
        }
        Ok(done)
    }

    /// What this matcher did so far.
    pub fn stats(&self) -> MatcherStats {
        self.stats
    }

    /// Bytes of memory that the compiled grammar and its states take; shared with clones.
    pub fn bytes_held(&self) -> usize {
        let core = self.shared.lock();
        core.automaton.bytes()
            + core.masks.capacity() * size_of::<Weak<TokenMask>>()
            + core.alike.capacity() * size_of::<(u128, Weak<TokenMask>)>()
    }
}

/// The only bit that is set.
fn single(bits: &[u64; 4]) -> Option<u8> {
    let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
    if count != 1 {
        return None;
    }
    bits.iter()
        .position(|&word| word != 0)
        .map(|at| (at as u32 * 64 + bits[at].trailing_zeros()) as u8)
}
