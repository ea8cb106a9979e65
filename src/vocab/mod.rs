//! A model's tokens as bytes.
//!
//! What a token spells decides which masks it is in; nothing here knows a model or a grammar.

mod trie;

pub use trie::{BROKEN, NO_TOKEN, TokenTrie, TrieNode, UNSPELLABLE, WHOLE};

/// A token's number in its vocabulary.
pub type TokenId = u32;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Spells text.
    Text,
    /// A single byte of a byte-fallback vocabulary (`<0x0A>`); spells that byte.
    Byte,
    /// Steers the model (turn markers, end of generation, padding, unused): never part of text.
    Control,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it spells; for control tokens its name, which is never matched against a grammar.
    pub bytes: Vec<u8>,
    /// What it is for.
    pub kind: TokenKind,
}

/// All tokens of a model, immutable once built.
#[derive(Debug)]
pub struct Vocabulary {
    tokens: Vec<Token>,
    end_of_generation: Vec<TokenId>,
    spellable: [bool; 256],
    longest: usize,
    fingerprint: u128,
}

impl Vocabulary {
    /// A token for every byte, and one that ends a text: for what needs no model's own.
    pub fn of_bytes() -> Self {
        let bytes = (0..=u8::MAX).map(|byte| Token {
            bytes: vec![byte],
            kind: TokenKind::Byte,
        });
        let end = Token {
            bytes: b"<end>".to_vec(),
            kind: TokenKind::Control,
        };
        Self::new(bytes.chain([end]).collect(), vec![256])
    }

    /// Builds a vocabulary from its tokens in order and the tokens that end a generation.
    pub fn new(tokens: Vec<Token>, end_of_generation: Vec<TokenId>) -> Self {
        use siphasher::sip128::{Hasher128, SipHasher13};
        use std::hash::Hasher;
        let mut spellable = [false; 256];
        let mut longest = 0;
        let mut hasher = SipHasher13::new();
        for token in &tokens {
            hasher.write_u8(token.kind as u8);
            hasher.write_usize(token.bytes.len());
            hasher.write(&token.bytes);
            if token.kind != TokenKind::Control {
                longest = longest.max(token.bytes.len());
                if let [byte] = token.bytes[..] {
                    spellable[usize::from(byte)] = true;
                }
            }
        }
        let fingerprint = hasher.finish128().as_u128();
        Self {
            tokens,
            end_of_generation,
            spellable,
            longest,
            fingerprint,
        }
    }

    /// Number of tokens, control tokens included: the length of a logits vector.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The token `id`.
    pub fn token(&self, id: TokenId) -> Option<&Token> {
        self.tokens.get(id as usize)
    }

    /// What token `id` spells as text: empty for control tokens and numbers out of range.
    pub fn bytes(&self, id: TokenId) -> &[u8] {
        match self.token(id) {
            Some(token) if token.kind != TokenKind::Control => &token.bytes,
            _ => &[],
        }
    }

    /// The tokens that end a generation.
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.end_of_generation
    }

    /// Which bytes have a token of their own. A text with another byte may be impossible to spell.
    pub fn spellable(&self) -> &[bool; 256] {
        &self.spellable
    }

    /// Length of the longest text token, in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Bytes of memory that the tokens take.
    pub fn bytes_held(&self) -> usize {
        let spelled: usize = self.tokens.iter().map(|token| token.bytes.capacity()).sum();
        self.tokens.len() * size_of::<Token>() + spelled
    }

    /// A hash of all tokens: two vocabularies with the same one share masks.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }
}
