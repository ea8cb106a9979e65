//! Which bytes lead a state back to itself, or to one that allows the same.
//!
//! Inside a string nearly every character does, so that whole subtrees of the token trie can be
//! allowed at once instead of being walked node by node. Where a string's length is bounded, each
//! character leads to another state, since the count goes on; but far from the bound no token can
//! tell the two apart, and neither do their hashes (see `Automaton::hash`).

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::lexicon::Lexicon;
use crate::grammar::LimitError;
use crate::grammar::automaton::{Automaton, DEAD_STATE, StateId};
use crate::vocab::{BROKEN, UNSPELLABLE, WHOLE};

/// Not asked for yet.
const NOT_ASKED: u32 = u32::MAX;

/// Per state of one automaton, the kinds of bytes that lead back to it.
#[derive(Debug, Default)]
pub(super) struct Loops {
    known: Vec<u32>,
    /// By the state's hash: finding out makes states, which need not be made for each count.
    alike: FxHashMap<u128, u32>,
}

impl Loops {
    /// The kinds of bytes that lead from `state` back to itself, a bit each.
    pub(super) fn of(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
    ) -> Result<u32, LimitError> {
        let kinds = lexicon.trie().kinds();
        if self.known.len() <= state as usize {
            self.known.resize(automaton.states(), NOT_ASKED);
        }
        let known = self.known[state as usize];
        if known != NOT_ASKED {
            return Ok(known);
        }
        let mut alike = Alike::of(automaton, state);
        if let Some(&looping) = self.alike.get(&alike.hash) {
            self.known[state as usize] = looping;
            return Ok(looping);
        }
        let mut looping = 0_u32;
        let mut leaving = 0_u32;
        for byte in 0..=255_u8 {
            let kind = 1 << kinds[usize::from(byte)];
            if leaving & kind == 0 {
                let next = automaton.step(state, byte)?;
                if alike.is(automaton, next) {
                    looping |= kind;
                } else {
                    leaving |= kind;
                }
            }
        }
        looping &= !(leaving | 1 << BROKEN);
        // A state that no ASCII leads back to is hardly worth the steps.
        if looping != 0 && characters_loop(automaton, state, kinds, &mut alike)? {
            looping |= 1 << WHOLE;
        }
        self.known[state as usize] = looping;
        self.alike.insert(alike.hash, looping);
        Ok(looping)
    }
}

/// The states that allow the same as a given one, as far as any token goes.
struct Alike {
    hash: u128,
    /// The last that was asked about: a kind's bytes mostly lead to one state.
    last: (StateId, bool),
}

impl Alike {
    fn of(automaton: &mut Automaton, state: StateId) -> Self {
        Self {
            hash: automaton.hash(state),
            last: (state, true),
        }
    }

    fn is(&mut self, automaton: &mut Automaton, other: StateId) -> bool {
        if other == DEAD_STATE {
            return false;
        }
        if other != self.last.0 {
            self.last = (other, automaton.hash(other) == self.hash);
        }
        self.last.1
    }
}

/// Whether every character of several bytes leads from `state` back to it, or to one like it.
fn characters_loop(
    automaton: &mut Automaton,
    state: StateId,
    kinds: &[u8; 256],
    alike: &mut Alike,
) -> Result<bool, LimitError> {
    // Well-formed sequences (Unicode, table 3-7).
    const SEQUENCES: [&[(u8, u8)]; 8] = [
        &[(0xC2, 0xDF), (0x80, 0xBF)],
        &[(0xE0, 0xE0), (0xA0, 0xBF), (0x80, 0xBF)],
        &[(0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xED, 0xED), (0x80, 0x9F), (0x80, 0xBF)],
        &[(0xEE, 0xEF), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xF0, 0xF0), (0x90, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xF1, 0xF3), (0x80, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xF4, 0xF4), (0x80, 0x8F), (0x80, 0xBF), (0x80, 0xBF)],
    ];
    for sequence in SEQUENCES {
        let mut reached: SmallVec<[StateId; 4]> = SmallVec::from_slice(&[state]);
        for &(low, high) in sequence {
            let mut next: SmallVec<[StateId; 4]> = SmallVec::new();
            for &from in &reached {
                for byte in low..=high {
                    if kinds[usize::from(byte)] == UNSPELLABLE {
                        continue;
                    }
                    let to = automaton.step(from, byte)?;
                    if to == DEAD_STATE {
                        return Ok(false);
                    }
                    if !next.contains(&to) {
                        next.push(to);
                    }
                }
            }
            reached = next;
        }
        if reached.iter().any(|&end| !alike.is(automaton, end)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use crate::grammar::gbnf;
    use crate::mask::{Lexicon, Limits, MaskStore, Matcher};
    use crate::vocab::{Token, TokenKind, Vocabulary};
    use std::sync::Arc;

    #[test]
    fn counts_are_told_apart_where_a_token_can_tell() {
        let texts = [
            "ab",
            "abab",
            "ababab",
            "да",
            "дада",
            "\"",
            "ab\"",
            "ababab\",",
            ",",
        ];
        let texts = texts.iter().map(|text| text.as_bytes().to_vec());
        let tokens = (0..=255_u8).map(|byte| vec![byte]).chain(texts);
        let tokens = tokens.map(|bytes| Token {
            bytes,
            kind: TokenKind::Text,
        });
        let vocabulary = Arc::new(Vocabulary::new(tokens.collect(), vec![]));
        let lexicon = Arc::new(Lexicon::new(vocabulary));
        let limits = Limits::default();
        // The longest token has eight bytes: some counts are near the bound, some far from it.
        for (least, most) in [(0, 3), (0, 30), (4, 6), (12, 12), (12, 40), (25, 26)] {
            let text = format!("root ::= \"\\\"\" [^\"]{{{least},{most}}} \"\\\",\"");
            let grammar = gbnf::parse(&text, &limits).unwrap().grammar;
            for character in ["a", "д"] {
                let store = Arc::new(MaskStore::default());
                let mut matcher = Matcher::new(&grammar, &lexicon, &store, &limits).unwrap();
                assert!(matcher.accept_bytes(b"\"").unwrap());
                for count in 0..=most {
                    let plain = matcher.mask_plain().unwrap();
                    let mask = matcher.mask().unwrap();
                    assert!(mask.iter().eq(plain.iter()), "{count} in {text}");
                    // The walk itself takes short cuts; this does not.
                    for token in 0..lexicon.vocabulary().len() as u32 {
                        let bytes = lexicon.vocabulary().bytes(token);
                        let fits = matcher.clone().accept_bytes(bytes).unwrap();
                        assert_eq!(
                            mask.contains(token),
                            fits,
                            "{bytes:?} after {count} in {text}"
                        );
                    }
                    assert_eq!(
                        matcher.accept_bytes(character.as_bytes()).unwrap(),
                        count < most
                    );
                }
            }
        }
    }
}
