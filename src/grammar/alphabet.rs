//! What a grammar must know of the vocabulary that it will be matched with: which bytes can be
//! spelled, and which tokens its names mean. A grammar knows no vocabulary by itself.

use super::ast::TokenReference;

/// A token that a grammar names, once a vocabulary is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolved {
    /// Its number.
    pub id: u32,
    /// How many bytes it spells (0 for control tokens).
    pub bytes: u32,
}

/// What a grammar must know of the vocabulary that it will be matched with.
pub trait Alphabet {
    /// Whether a text with this byte can be spelled at all.
    fn spells(&self, byte: u8) -> bool;
    /// The token that a grammar names.
    fn resolve(&self, token: &TokenReference) -> Option<Resolved>;
}

/// Every byte, and no token: for matching text without a vocabulary.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllBytes;

impl Alphabet for AllBytes {
    fn spells(&self, _: u8) -> bool {
        true
    }

    fn resolve(&self, _: &TokenReference) -> Option<Resolved> {
        None
    }
}
