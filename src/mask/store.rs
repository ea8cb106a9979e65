//! Masks remembered between states, grammars and turns.
//!
//! The key says exactly what remains to be matched (see `grammar::hash`) and in which vocabulary,
//! so an entry is never stale. Where a mask's computation entered a rule of live values, the entry
//! carries the content it saw, and serves only where the content is the same. Bounded in bytes;
//! entries leave by second chance (clock).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::token_mask::TokenMask;

/// Names of live values, and the content that was seen.
pub(super) type Contents = SmallVec<[(u128, u128); 2]>;

/// What is remembered.
#[derive(Clone, Debug)]
pub(super) enum Remembered {
    /// All tokens that are allowed.
    Mask(Arc<TokenMask>),
    /// For a part that is matched on its own.
    Part(Arc<PartMask>),
}

/// The tokens of a part that is matched without knowing what surrounds it.
#[derive(Debug)]
pub(super) struct PartMask {
    /// Tokens that do not leave the part, or end exactly where it does.
    pub(super) inside: TokenMask,
    /// Nodes of the trie, with children, at which the part may end: whether a longer token is
    /// allowed depends on what comes after the part.
    pub(super) exits: Box<[u32]>,
}

impl Remembered {
    fn bytes(&self) -> usize {
        // The allocation's own counters and the map's share are counted too.
        const OVERHEAD: usize = 32 + 2 * size_of::<Entry>();
        OVERHEAD
            + match self {
                Self::Mask(mask) => mask.bytes_held(),
                Self::Part(part) => part.inside.bytes_held() + size_of_val(&*part.exits),
            }
    }
}

#[derive(Debug)]
struct Entry {
    key: u128,
    contents: Contents,
    remembered: Remembered,
    bytes: usize,
    used: bool,
}

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_key: FxHashMap<u128, SmallVec<[u32; 1]>>,
    hand: usize,
    bytes: usize,
    hits: u64,
    misses: u64,
    evicted: u64,
}

/// Remembered masks, shared by everything that matches; synchronised inside.
#[derive(Debug)]
pub struct MaskStore {
    max_bytes: usize,
    inner: Mutex<Inner>,
}

/// What a store did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Entries now.
    pub entries: usize,
    /// Bytes held now.
    pub bytes: usize,
    /// Look-ups that found something.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Entries that had to leave.
    pub evicted: u64,
}

impl Default for MaskStore {
    /// 32 MiB.
    fn default() -> Self {
        Self::new(32 << 20)
    }
}

impl MaskStore {
    /// A store that holds at most `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            inner: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere cannot leave a half-made entry: the last step of each change adds it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes held now.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// What it did so far.
    pub fn stats(&self) -> StoreStats {
        let inner = self.lock();
        StoreStats {
            entries: inner.entries.len() - inner.free.len(),
            bytes: inner.bytes,
            hits: inner.hits,
            misses: inner.misses,
            evicted: inner.evicted,
        }
    }

    /// What is remembered under `key`, if the live values it depends on are `current`'s.
    pub(super) fn get(
        &self,
        key: u128,
        mut current: impl FnMut(u128) -> Option<u128>,
    ) -> Option<(Remembered, Contents)> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        for &at in inner.by_key.get(&key).into_iter().flatten() {
            if let Some(Some(entry)) = inner.entries.get_mut(at as usize)
                && entry
                    .contents
                    .iter()
                    .all(|&(name, content)| current(name) == Some(content))
            {
                entry.used = true;
                inner.hits += 1;
                return Some((entry.remembered.clone(), entry.contents.clone()));
            }
        }
        inner.misses += 1;
        None
    }

    /// Remembers something; what has not been used for long leaves.
    pub(super) fn put(&self, key: u128, contents: Contents, remembered: Remembered) {
        let bytes = remembered.bytes() + contents.len() * 32;
        if bytes > self.max_bytes {
            return;
        }
        let mut inner = self.lock();
        while inner.bytes + bytes > self.max_bytes {
            inner.evict_one();
        }
        let entry = Entry {
            key,
            contents,
            remembered,
            bytes,
            used: false,
        };
        inner.bytes += bytes;
        let at = match inner.free.pop() {
            Some(at) => {
                inner.entries[at as usize] = Some(entry);
                at
            }
            None => {
                inner.entries.push(Some(entry));
                (inner.entries.len() - 1) as u32
            }
        };
        inner.by_key.entry(key).or_default().push(at);
    }
}

impl Inner {
    fn evict_one(&mut self) {
        while !self.entries.is_empty() {
            let at = self.hand % self.entries.len();
            self.hand = at + 1;
            let slot = &mut self.entries[at];
            match slot {
                Some(entry) if entry.used => entry.used = false,
                Some(_) => {
                    if let Some(entry) = slot.take() {
                        self.bytes -= entry.bytes;
                        self.evicted += 1;
                        self.free.push(at as u32);
                        if let Some(all) = self.by_key.get_mut(&entry.key) {
                            all.retain(|other| *other as usize != at);
                            if all.is_empty() {
                                self.by_key.remove(&entry.key);
                            }
                        }
                    }
                    return;
                }
                None => {}
            }
        }
    }
}
