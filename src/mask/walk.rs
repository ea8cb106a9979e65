//! The walk: which tokens a state allows, by running the automaton over the token trie.
//!
//! Two ways to the same set. The plain walk visits every node that the automaton reaches. Where a
//! state allows much (the inside of a string), the part of the stack that it is in is walked
//! without what surrounds it, which gives a result that every other grammar with the same part
//! shares; what remains are the tokens that go on after the part's end. Where nearly every byte
//! leads back to the same place, most tokens are taken at once (see `slice`).

use super::lexicon::Lexicon;
use super::loops::{Entry, Loops};
use super::slice::Slice;
use super::store::{Contents, MaskStore, PartMask, Remembered};
use super::token_mask::TokenMask;
use crate::grammar::LimitError;
use crate::grammar::automaton::{Automaton, DEAD_STATE, StateId, token_fits};
use crate::grammar::hash::Mix;
use crate::vocab::{BROKEN, NO_TOKEN, TokenId, TokenTrie};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that a state must allow for its part to be worth sharing.
const WIDE: u32 = 40;

/// Keys for whole masks and for parts never meet.
const MASK: u64 = 0x6D61_736B;
const PART: u64 = 0x7061_7274;

/// Buffers that are kept between walks, and the live values that a walk entered.
#[derive(Debug, Default)]
pub(super) struct Walker {
    path: Vec<StateId>,
    found: Tokens,
    exits: Vec<u32>,
    loops: Loops,
    /// Bits of the slots of live values that were entered.
    slots: u64,
}

/// Tokens that are allowed, as they are found.
#[derive(Debug, Default)]
struct Tokens {
    list: Vec<TokenId>,
    /// Those that were taken many at a time, a bit each; empty if none were.
    bits: Vec<u64>,
}

impl Tokens {
    fn add_mask(&mut self, mask: &TokenMask, size: usize) {
        if self.bits.is_empty() {
            self.bits.resize(size.div_ceil(64), 0);
        }
        mask.add_to(&mut self.bits);
    }

    /// The tokens of a slice that begin as they must.
    fn add_slice(&mut self, slice: &Slice, entry: &Entry, lexicon: &Lexicon) {
        let size = lexicon.vocabulary().len();
        let before = std::mem::take(&mut self.bits);
        self.add_mask(&slice.inside, size);
        let trie = lexicon.trie();
        for byte in (0..=255).filter(|&byte| !entry.begins_with(byte)) {
            for &token in trie.tokens_from(byte) {
                self.bits[token as usize / 64] &= !(1 << (token % 64));
            }
        }
        for (bits, before) in self.bits.iter_mut().zip(before) {
            *bits |= before;
        }
    }

    fn take_mask(&mut self, size: usize) -> TokenMask {
        if self.bits.is_empty() {
            return TokenMask::from_tokens(&mut self.list, size);
        }
        let mut bits = std::mem::take(&mut self.bits);
        for &token in &self.list {
            bits[token as usize / 64] |= 1 << (token % 64);
        }
        TokenMask::from_bits(bits, size)
    }
}

/// What is walked over: the trie of all tokens, or that of those outside a slice.
#[derive(Clone, Copy)]
struct Ground<'a> {
    trie: &'a TokenTrie,
    /// Per node its number in the trie of all tokens, where that is another one.
    origins: Option<&'a [u32]>,
}

impl<'a> Ground<'a> {
    fn whole(lexicon: &'a Lexicon) -> Self {
        Self {
            trie: lexicon.trie(),
            origins: None,
        }
    }

    fn outside(slice: &'a Slice) -> Self {
        Self {
            trie: &slice.rest,
            origins: Some(&slice.origins),
        }
    }

    fn origin(self, at: usize) -> u32 {
        self.origins.map_or(at as u32, |origins| origins[at])
    }
}

/// A computed or remembered mask, and the live values that it depends on.
pub(super) struct Found {
    pub(super) mask: Arc<TokenMask>,
    pub(super) computed: bool,
}

impl Walker {
    /// The mask of `state`, whose hash is given, remembered or computed.
    pub(super) fn mask(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        hash: u128,
        lexicon: &Lexicon,
        store: &MaskStore,
    ) -> Result<Found, LimitError> {
        let key = key(hash, lexicon, MASK);
        if let Some((Remembered::Mask(mask), _)) =
            store.get(key, |name| automaton.hashes().content(name))
        {
            return Ok(Found {
                mask,
                computed: false,
            });
        }
        self.slots = 0;
        let mask = Arc::new(self.compute(automaton, state, lexicon, Some(store))?);
        let contents = automaton.hashes().contents(self.slots);
        store.put(key, contents, Remembered::Mask(Arc::clone(&mask)));
        Ok(Found {
            mask,
            computed: true,
        })
    }

    /// The mask of `state` by the plain walk alone: the reference for everything faster.
    pub(super) fn plain(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
    ) -> Result<TokenMask, LimitError> {
        self.compute(automaton, state, lexicon, None)
    }

    fn compute(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
        store: Option<&MaskStore>,
    ) -> Result<TokenMask, LimitError> {
        let size = lexicon.vocabulary().len();
        self.found.list.clear();
        self.found.bits.clear();
        match store {
            Some(store) if is_wide(automaton, state) => {
                for group in automaton.groups(state)? {
                    if !is_wide(automaton, group.whole) {
                        self.walk_roots(automaton, group.whole, lexicon)?;
                        continue;
                    }
                    let part = self.part(automaton, group.part, lexicon, store)?;
                    self.found.add_mask(&part.inside, size);
                    let after = automaton.after(group.base)?;
                    self.slots |= automaton.slots(after);
                    if automaton.goes_on(after) {
                        let ground = Ground::whole(lexicon);
                        for &exit in &part.exits {
                            let node = &ground.trie.nodes()[exit as usize];
                            let below = exit as usize + 1..node.end as usize;
                            self.walk(automaton, after, lexicon, ground, below, node.depth)?;
                        }
                    }
                }
            }
            Some(_) => self.walk_roots(automaton, state, lexicon)?,
            None => self.walk_each_root(automaton, state, lexicon, |_| Ground::whole(lexicon))?,
        }
        if automaton.has_tokens(state) {
            self.add_named(automaton, state, lexicon);
        }
        Ok(self.found.take_mask(size))
    }

    /// Tokens that the grammar names one by one.
    fn add_named(&mut self, automaton: &Automaton, state: StateId, lexicon: &Lexicon) {
        for (named, negated) in automaton.named_tokens(state) {
            if negated {
                let all = 0..lexicon.vocabulary().len() as TokenId;
                self.found.list.extend(
                    all.filter(|&token| token_fits(named, true, token, lexicon.is_text(token))),
                );
            } else {
                self.found.list.push(named);
            }
        }
    }

    /// What a part allows, remembered or computed.
    fn part(
        &mut self,
        automaton: &mut Automaton,
        part: StateId,
        lexicon: &Lexicon,
        store: &MaskStore,
    ) -> Result<Arc<PartMask>, LimitError> {
        let key = key(automaton.hash(part), lexicon, PART);
        if let Some((Remembered::Part(found), contents)) =
            store.get(key, |name| automaton.hashes().content(name))
        {
            self.slots |= automaton.hashes().bits(&contents);
            return Ok(found);
        }
        let size = lexicon.vocabulary().len();
        let outer_found = std::mem::take(&mut self.found);
        let outer_slots = std::mem::take(&mut self.slots);
        self.exits.clear();
        let walked = self.walk_roots(automaton, part, lexicon);
        let mut inside = std::mem::replace(&mut self.found, outer_found);
        walked?;
        let found = Arc::new(PartMask {
            inside: inside.take_mask(size),
            exits: self.exits.as_slice().into(),
        });
        let contents: Contents = automaton.hashes().contents(self.slots);
        self.slots |= outer_slots;
        store.put(key, contents, Remembered::Part(Arc::clone(&found)));
        Ok(found)
    }

    /// Finds all tokens that `state` allows.
    fn walk_roots(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
    ) -> Result<(), LimitError> {
        let whole = Ground::whole(lexicon);
        let entry = match is_wide(automaton, state) {
            true => self.loops.entry(automaton, state, lexicon)?,
            false => None,
        };
        if let Some(entry) = entry
            && is_wide(automaton, entry.inner)
            && let Some(slice) = lexicon.slice(entry.kinds)
        {
            self.slots |= automaton.slots(state) | automaton.slots(entry.inner);
            self.found.add_slice(&slice, &entry, lexicon);
            let inside = Ground::outside(&slice);
            self.walk_each_root(automaton, state, lexicon, |byte| {
                if entry.begins_with(byte) {
                    inside
                } else {
                    whole
                }
            })
        } else {
            self.walk_each_root(automaton, state, lexicon, |_| whole)
        }
    }

    /// Walks tries from `state`: for each first byte the one that it is looked for in.
    fn walk_each_root<'a>(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
        ground: impl Fn(u8) -> Ground<'a>,
    ) -> Result<(), LimitError> {
        let allowed = *automaton.allowed(state);
        for (word, mut bits) in allowed.into_iter().enumerate() {
            while bits != 0 {
                let byte = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let ground = ground(byte as u8);
                let root = ground.trie.root(byte as u8);
                self.walk(automaton, state, lexicon, ground, root, 0)?;
            }
        }
        Ok(())
    }

    /// Walks the nodes in `range`, the children of a node at `depth` where the automaton is in
    /// `state`.
    fn walk(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
        ground: Ground<'_>,
        range: Range<usize>,
        depth: u16,
    ) -> Result<(), LimitError> {
        let nodes = ground.trie.nodes();
        let base = usize::from(depth);
        if self.path.len() <= lexicon.trie().depth() {
            self.path.resize(lexicon.trie().depth() + 1, DEAD_STATE);
        }
        self.path[base] = state;
        let track = automaton.has_slots();
        let shared = !(1 << BROKEN);
        let mut at = range.start;
        while at < range.end {
            let node = nodes[at];
            let level = usize::from(node.depth);
            let here = self.path[level - 1];
            if !automaton.allows(here, node.byte) {
                at = node.end as usize;
                continue;
            }
            if node.token != NO_TOKEN {
                self.found.list.push(node.token);
            }
            let leaf = node.end as usize == at + 1;
            if leaf && !track {
                at += 1;
                continue;
            }
            let next = automaton.step(here, node.byte)?;
            self.path[level] = next;
            if !leaf && automaton.exits(next) {
                self.exits.push(ground.origin(at));
            }
            if track {
                self.slots |= automaton.slots(next);
            }
            // Where everything below leads back to this state, all of it is allowed. Not where
            // the part may end here: its exits must be found one by one.
            if !leaf
                && node.kinds & shared == node.kinds
                && !automaton.exits(next)
                && is_wide(automaton, next)
                && self.loops.of(automaton, next, lexicon)? & node.kinds == node.kinds
            {
                let below = ground.trie.tokens_below(at);
                self.found.list.extend_from_slice(below);
                at = node.end as usize;
                continue;
            }
            at += 1;
        }
        Ok(())
    }

    /// Whether a token begins with the text that leads to node `prefix` and goes on as `state`
    /// allows.
    pub(super) fn goes_on(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
        prefix: usize,
    ) -> Result<bool, LimitError> {
        let nodes = lexicon.trie().nodes();
        let end = nodes[prefix].end as usize;
        if self.path.len() <= lexicon.trie().depth() {
            self.path.resize(lexicon.trie().depth() + 1, DEAD_STATE);
        }
        self.path[usize::from(nodes[prefix].depth)] = state;
        let mut at = prefix + 1;
        while at < end {
            let node = nodes[at];
            let level = usize::from(node.depth);
            let here = self.path[level - 1];
            if !automaton.allows(here, node.byte) {
                at = node.end as usize;
                continue;
            }
            if node.token != NO_TOKEN {
                return Ok(true);
            }
            self.path[level] = automaton.step(here, node.byte)?;
            at += 1;
        }
        Ok(false)
    }
}

fn is_wide(automaton: &Automaton, state: StateId) -> bool {
    let bytes: u32 = automaton
        .allowed(state)
        .iter()
        .map(|word| word.count_ones())
        .sum();
    bytes >= WIDE
}

fn key(hash: u128, lexicon: &Lexicon, purpose: u64) -> u128 {
    let mut mix = Mix::new(purpose);
    mix.add_wide(lexicon.vocabulary().fingerprint());
    mix.add_wide(hash);
    mix.finish()
}
