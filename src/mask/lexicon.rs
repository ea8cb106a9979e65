//! What the engine knows of a model's vocabulary, built once per model.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::slice::{Slice, Slices};
use crate::grammar::TokenReference;
use crate::grammar::alphabet::{Alphabet, Resolved};
use crate::vocab::{TokenId, TokenKind, TokenTrie, Vocabulary};

/// A vocabulary and the trie of its tokens.
#[derive(Debug)]
pub struct Lexicon {
    vocabulary: Arc<Vocabulary>,
    trie: TokenTrie,
    slices: Slices,
    /// Names of control tokens, and text tokens that look like `<name>`.
    named: FxHashMap<Vec<u8>, TokenId>,
}

impl Lexicon {
    /// Builds the trie (some 100 ms for 262,144 tokens).
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        let trie = TokenTrie::new(&vocabulary);
        let mut named = FxHashMap::default();
        for id in (0..vocabulary.len() as TokenId).rev() {
            if let Some(token) = vocabulary.token(id)
                && token.bytes.first() == Some(&b'<')
                && token.bytes.last() == Some(&b'>')
                && (token.kind == TokenKind::Control || !named.contains_key(&token.bytes))
            {
                named.insert(token.bytes.clone(), id);
            }
        }
        Self {
            slices: Slices::new(&trie, vocabulary.len()),
            vocabulary,
            trie,
            named,
        }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The trie of its text tokens.
    pub fn trie(&self) -> &TokenTrie {
        &self.trie
    }

    /// The tokens that have bytes of these kinds only (or of fewer), if they are worth taking at
    /// once.
    pub(super) fn slice(&self, kinds: u32) -> Option<Arc<Slice>> {
        self.slices.of(&self.trie, kinds, self.vocabulary.len())
    }

    /// Bytes of memory held beyond the vocabulary itself.
    pub fn bytes_held(&self) -> usize {
        self.trie.bytes_held() + self.slices.bytes_held() + self.named.len() * 48
    }

    /// Whether the token is text, so that a grammar over characters can match it.
    pub(super) fn is_text(&self, token: TokenId) -> bool {
        self.vocabulary
            .token(token)
            .is_some_and(|token| token.kind != TokenKind::Control && !token.bytes.is_empty())
    }
}

impl Alphabet for Lexicon {
    fn spells(&self, byte: u8) -> bool {
        self.vocabulary.spellable()[usize::from(byte)]
    }

    fn resolve(&self, token: &TokenReference) -> Option<Resolved> {
        let id = match token {
            TokenReference::Id(id) => *id,
            TokenReference::Text(text) => *self.named.get(text.as_bytes())?,
        };
        self.vocabulary.token(id)?;
        Some(Resolved {
            id,
            bytes: self.vocabulary.bytes(id).len() as u32,
        })
    }
}
