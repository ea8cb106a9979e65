//! Tokens made of nothing but some kinds of bytes, found once per vocabulary.
//!
//! A state that all those bytes lead back to allows all those tokens: inside a string these are
//! nine tokens of ten. Only the rest need a walk, over a trie of their own.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::token_mask::TokenMask;
use crate::vocab::{TokenTrie, WHOLE};

/// What a vocabulary is split into by some kinds of bytes.
#[derive(Debug)]
pub(super) struct Slice {
    kinds: u32,
    /// The tokens that have bytes of these kinds only.
    pub(super) inside: TokenMask,
    /// All others.
    pub(super) rest: TokenTrie,
    /// Per node of `rest`: its number in the trie of all tokens.
    pub(super) origins: Vec<u32>,
}

impl Slice {
    fn new(trie: &TokenTrie, kinds: u32, size: usize) -> Self {
        let (mut inside, rest, origins) = trie.split_off(kinds);
        Self {
            kinds,
            inside: TokenMask::from_tokens(&mut inside, size),
            rest,
            origins,
        }
    }

    fn bytes_held(&self) -> usize {
        self.inside.bytes_held() + self.rest.bytes_held() + self.origins.capacity() * 4
    }
}

/// The slices of a vocabulary: that of strings, and others where they are asked for often.
#[derive(Debug)]
pub(super) struct Slices {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    slices: Vec<Arc<Slice>>,
    /// Kinds that have no slice of their own, and how often one was asked for.
    asked: Vec<(u32, u32)>,
}

/// Most slices of a vocabulary. A schema's patterns can ask for any set of kinds; what is asked
/// for after these gets the best one of them that it contains.
const MOST: usize = 6;
/// Making a slice takes as long as so many walks.
const WORTH_ASKING: u32 = 8;
/// Most sets of kinds that are counted.
const MOST_ASKED: usize = 64;

impl Slices {
    pub(super) fn new(trie: &TokenTrie, size: usize) -> Self {
        // What a JSON string may hold as it is.
        let of = |byte: u8| 1 << trie.kinds()[usize::from(byte)];
        let plain = (b' '..=b'~').filter(|byte| !matches!(byte, b'"' | b'\\'));
        let strings = plain.fold(1 << WHOLE, |kinds, byte| kinds | of(byte));
        let known = Known {
            slices: vec![Arc::new(Slice::new(trie, strings, size))],
            asked: Vec::new(),
        };
        Self {
            known: RwLock::new(known),
        }
    }

    /// The slice of `kinds`, or one of fewer, if it is worth having.
    pub(super) fn of(&self, trie: &TokenTrie, kinds: u32, size: usize) -> Option<Arc<Slice>> {
        let could = trie.tokens_of(kinds);
        let found = self.read().best(kinds);
        // One of fewer kinds may hold nearly as much.
        let has = found.as_ref().map_or(0, |slice| slice.inside.len());
        let worth = could * 2 >= trie.tokens().len() && has * 20 < could * 19;
        if !worth || !self.write().is_due(kinds) {
            return found;
        }
        let made = Arc::new(Slice::new(trie, kinds, size));
        let mut known = self.write();
        // Another thread may have made the same.
        if known.slices.len() < MOST && !known.slices.iter().any(|slice| slice.kinds == kinds) {
            known.slices.push(Arc::clone(&made));
        }
        Some(made)
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of memory held.
    pub(super) fn bytes_held(&self) -> usize {
        let known = self.read();
        known.slices.iter().map(|slice| slice.bytes_held()).sum()
    }
}

impl Known {
    fn best(&self, kinds: u32) -> Option<Arc<Slice>> {
        let within = |slice: &&Arc<Slice>| slice.kinds & !kinds == 0;
        let best = self.slices.iter().filter(within);
        best.max_by_key(|slice| slice.inside.len()).cloned()
    }

    /// Whether a slice is to be made, now that it was asked for once more.
    fn is_due(&mut self, kinds: u32) -> bool {
        if self.slices.len() >= MOST {
            return false;
        }
        if let Some((_, times)) = self.asked.iter_mut().find(|asked| asked.0 == kinds) {
            *times += 1;
            return *times == WORTH_ASKING;
        }
        if self.asked.len() < MOST_ASKED {
            self.asked.push((kinds, 1));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MOST, Slices, WORTH_ASKING};
    use crate::grammar::{Grammar, gbnf};
    use crate::mask::{Lexicon, Limits, MaskStore, Matcher};
    use crate::vocab::{NO_TOKEN, Token, TokenKind, TokenTrie, Vocabulary};

    /// Every byte, words in several scripts, words that end a string, parts of characters.
    fn vocabulary() -> Arc<Vocabulary> {
        let words = [
            "ab", "Abc", "the", "да", "дада", "好", "好的", "🎉", "x1", "e\u{301}",
        ];
        let mut texts: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte]).collect();
        for left in words {
            for right in words {
                for middle in [
                    "", " ", "-", "_", ".", "/", "é", " 9 ", "+", "\"", "\",", "\"}", "\\", "\n",
                ] {
                    texts.push(format!("{left}{middle}{right}").into_bytes());
                }
            }
        }
        texts.push(b"ab\xD0".to_vec());
        texts.push(b"\xB4ab".to_vec());
        texts.push(b"ab\xFFab".to_vec());
        let tokens = texts.into_iter().map(|bytes| Token {
            bytes,
            kind: TokenKind::Text,
        });
        Arc::new(Vocabulary::new(tokens.collect(), vec![]))
    }

    #[test]
    fn the_inside_and_the_rest_are_all_tokens() {
        let vocabulary = vocabulary();
        let trie = TokenTrie::new(&vocabulary);
        let kinds_of = trie.kinds();
        for chosen in [
            "abcdehtx АЯдабб好🎉",
            "abcdefghijklmnopqrstuvwxyz",
            "a\"",
            "é",
        ] {
            let kinds = chosen.bytes().fold(0, |kinds, byte| {
                let kind = kinds_of[usize::from(byte)];
                kinds
                    | 1 << if kind == crate::vocab::BROKEN {
                        crate::vocab::WHOLE
                    } else {
                        kind
                    }
            });
            let (mut inside, rest, origins) = trie.split_off(kinds);
            for &token in &inside {
                let bytes = vocabulary.bytes(token);
                assert!(std::str::from_utf8(bytes).is_ok(), "{bytes:?}");
            }
            assert_eq!(rest.nodes().len(), origins.len());
            for (node, &origin) in rest.nodes().iter().zip(&origins) {
                let same = &trie.nodes()[origin as usize];
                assert_eq!((node.byte, node.depth), (same.byte, same.depth));
            }
            // What was left is found where it is looked for.
            for &token in rest.tokens() {
                let at = rest.find(vocabulary.bytes(token)).unwrap();
                let found = rest.nodes()[at].token;
                assert!(found == token || found != NO_TOKEN, "{chosen}: {token}");
            }
            inside.extend_from_slice(rest.tokens());
            inside.sort_unstable();
            let mut all = trie.tokens().to_vec();
            all.sort_unstable();
            assert_eq!(inside, all, "{chosen}");
        }
    }

    #[test]
    fn masks_are_those_of_the_plain_walk() {
        let vocabulary = vocabulary();
        let limits = Limits::default();
        let bodies = [
            r#"[^"\\\x00-\x1F]{0,40} "\"" ",""#,
            r#"([^"\\\x00-\x1F] | "\\" ["\\n])* "\"" "}""#,
            r#"[^"\\\x00-\x1F]+ "\",""#,
            r#"[a-zA-Z0-9 дa好]* "\"""#,
            r#"([^"]* | live) "\"""#,
            r#"live "\"" | [a-z] [^"д]{1,9} "\"""#,
        ];
        for body in bodies {
            let text = format!("root ::= {body}\nlive ::= \"да ab\" | \"the好\"\n");
            let parsed = gbnf::parse(&text, &limits).unwrap().grammar;
            let mut rules = parsed.rules().to_vec();
            for rule in &mut rules {
                rule.volatile = rule.name == "live";
            }
            let grammar = Grammar::new(rules, parsed.root());
            let lexicon = Arc::new(Lexicon::new(Arc::clone(&vocabulary)));
            let store = Arc::new(MaskStore::default());
            let start = Matcher::new(&grammar, &lexicon, &store, &limits).unwrap();
            for begun in ["", "a", "да", "the", "ab ab", "xдa好"] {
                let mut matcher = start.clone();
                if !matcher.accept_bytes(begun.as_bytes()).unwrap() {
                    continue;
                }
                let mask = matcher.mask().unwrap();
                for token in 0..vocabulary.len() as u32 {
                    let bytes = vocabulary.bytes(token);
                    let fits = matcher.clone().accept_bytes(bytes).unwrap();
                    assert_eq!(
                        mask.contains(token),
                        fits,
                        "{bytes:?} after {begun:?} in {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn there_are_only_so_many() {
        let vocabulary = vocabulary();
        let trie = TokenTrie::new(&vocabulary);
        let slices = Slices::new(&trie, vocabulary.len());
        let all = (1_u32 << 18) - 1;
        for left_out in 0..18 {
            let kinds = all & !(1 << left_out);
            for time in 1..=2 * WORTH_ASKING {
                let before = slices.read().slices.len();
                if let Some(slice) = slices.of(&trie, kinds, vocabulary.len()) {
                    assert_eq!(slice.kinds & !kinds, 0, "no slice may hold more");
                    assert_eq!(slice.inside.len(), trie.tokens_of(slice.kinds));
                }
                let made = slices.read().slices.len() - before;
                assert!(made == 0 || time == WORTH_ASKING, "made at {time}");
            }
        }
        let count = slices.read().slices.len();
        assert!((2..=MOST).contains(&count), "{count}");
    }
}
