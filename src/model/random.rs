//! A session whose logits are random numbers: the baseline under a grammar, and the model of
//! tests.

use super::session::{Evaluated, Session, SessionError};
use crate::vocab::{TokenId, TokenKind, Vocabulary};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::path::Path;
use std::sync::Arc;

/// Logits between −4 and 4, independent and uniform, that depend on the seed and on what the
/// context holds, and on nothing else: the same tokens give the same logits, however they came
/// there. The likeliest of any set of tokens is therefore a uniformly random one of them.
#[derive(Clone, Debug)]
pub struct RandomSession {
    index: Arc<Index>,
    capacity: usize,
    seed: u64,
    tokens: Vec<TokenId>,
    logits: Vec<f32>,
}

/// Finds tokens by what they spell.
#[derive(Debug)]
struct Index {
    vocabulary: Arc<Vocabulary>,
    text: FxHashMap<Vec<u8>, TokenId>,
    control: FxHashMap<Vec<u8>, TokenId>,
    longest: usize,
}

impl RandomSession {
    /// A session with room for `capacity` tokens.
    pub fn new(vocabulary: Arc<Vocabulary>, capacity: usize, seed: u64) -> Self {
        let mut text = FxHashMap::default();
        let mut control = FxHashMap::default();
        let mut longest = 0;
        for id in 0..vocabulary.len() as TokenId {
            if let Some(token) = vocabulary.token(id)
                && !token.bytes.is_empty()
            {
                let map = match token.kind {
                    TokenKind::Control => &mut control,
                    TokenKind::Text | TokenKind::Byte => &mut text,
                };
                map.entry(token.bytes.clone()).or_insert(id);
                longest = longest.max(token.bytes.len());
            }
        }
        Self {
            index: Arc::new(Index {
                vocabulary,
                text,
                control,
                longest,
            }),
            capacity,
            seed,
            tokens: Vec::new(),
            logits: Vec::new(),
        }
    }

    fn check(&self, needed: usize) -> Result<(), SessionError> {
        if needed > self.capacity {
            return Err(SessionError::ContextFull {
                needed,
                capacity: self.capacity,
            });
        }
        Ok(())
    }

    fn draw(&mut self) {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0x5eed);
        for token in &self.tokens {
            hasher.write_u32(*token);
        }
        let mut random = ChaCha8Rng::seed_from_u64(hasher.finish());
        self.logits.clear();
        self.logits.extend(
            (0..self.index.vocabulary.len()).map(|_| random.random::<f32>().mul_add(8.0, -4.0)),
        );
    }
}

impl Index {
    /// Longest match at each place; bytes that no token spells are left out.
    fn tokenize(&self, text: &[u8], special: bool) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let longest = self.longest.min(text.len() - at);
            let found = (1..=longest).rev().find_map(|length| {
                let piece = &text[at..at + length];
                let control = self.control.get(piece).filter(|_| special);
                control
                    .or_else(|| self.text.get(piece))
                    .map(|&token| (token, length))
            });
            match found {
                Some((token, length)) => {
                    tokens.push(token);
                    at += length;
                }
                None => at += 1,
            }
        }
        tokens
    }
}

impl Session for RandomSession {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.index.vocabulary
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn tokenize(&self, text: &[u8], special: bool) -> Result<Vec<TokenId>, SessionError> {
        Ok(self.index.tokenize(text, special))
    }

    fn begin(&self) -> Option<TokenId> {
        None
    }

    fn set(
        &mut self,
        tokens: &[TokenId],
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Evaluated, SessionError> {
        self.check(tokens.len())?;
        let reused = tokens
            .iter()
            .zip(&self.tokens)
            .take_while(|(a, b)| a == b)
            .count();
        let evaluated = tokens.len() - reused;
        self.tokens = tokens.to_vec();
        self.draw();
        if evaluated > 0 && !progress(evaluated) {
            return Err(SessionError::Cancelled);
        }
        Ok(Evaluated { reused, evaluated })
    }

    fn extend(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        self.check(self.tokens.len() + tokens.len())?;
        self.tokens.extend_from_slice(tokens);
        self.draw();
        Ok(())
    }

    fn logits(&self) -> &[f32] {
        &self.logits
    }

    fn checkpoint(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn fork(&mut self) -> Result<Box<dyn Session>, SessionError> {
        Ok(Box::new(self.clone()))
    }

    /// Writes nothing: there is nothing to evaluate that would be worth keeping.
    fn save(&mut self, _count: usize, _path: &Path) -> Result<(), SessionError> {
        Ok(())
    }

    fn load(&mut self, _path: &Path) -> Result<usize, SessionError> {
        Ok(0)
    }

    fn overhead_bytes(&self) -> usize {
        self.tokens.capacity() * 4 + self.logits.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::Token;

    fn session(seed: u64) -> RandomSession {
        let text = |bytes: &[u8]| Token {
            bytes: bytes.to_vec(),
            kind: TokenKind::Text,
        };
        let tokens = vec![
            Token {
                bytes: b"<end>".to_vec(),
                kind: TokenKind::Control,
            },
            text(b"a"),
            text(b"b"),
            text(b"ab"),
            text(b"<end"),
            text(b">"),
        ];
        RandomSession::new(Arc::new(Vocabulary::new(tokens, vec![0])), 8, seed)
    }

    #[test]
    fn logits_depend_on_tokens_and_seed_only() {
        let mut one = session(1);
        let mut two = session(1);
        one.set(&[1, 2, 3], &mut |_| true).unwrap();
        two.set(&[1], &mut |_| true).unwrap();
        two.extend(&[2, 3]).unwrap();
        assert_eq!(one.logits(), two.logits());
        two.extend(&[1]).unwrap();
        assert_ne!(one.logits(), two.logits());
        let mut three = session(2);
        three.set(&[1, 2, 3], &mut |_| true).unwrap();
        assert_ne!(one.logits(), three.logits());
        assert!(one.extend(&[1; 6]).is_err());
        assert_eq!(one.tokens().len(), 3);
        let evaluated = one.set(&[1, 2, 1, 1], &mut |_| true).unwrap();
        assert_eq!((evaluated.reused, evaluated.evaluated), (2, 2));
    }

    #[test]
    fn control_tokens_are_read_only_where_asked_for() {
        let session = session(1);
        let read = |special| session.tokenize(b"ab<end>a", special).unwrap();
        assert_eq!(read(true), [3, 0, 1]);
        assert_eq!(read(false), [3, 4, 5, 1]);
        assert_eq!(session.tokenize(b"xax", false).unwrap(), [1]);
    }
}
