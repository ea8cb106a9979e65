//! Which bytes lead a state back to itself, or to one that allows the same; and which lead into
//! such a state.
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
    /// By the state's hash and the live values it is inside of: finding out makes states, which
    /// need not be made for each count.
    alike: FxHashMap<(u128, u64), u32>,
}

impl Loops {
    /// The kinds of bytes that lead from `state` back to itself, a bit each, without entering live
    /// values on the way.
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
        let like = (alike.hash, alike.slots);
        if let Some(&looping) = self.alike.get(&like) {
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
        if looping != 0 && characters_lead(automaton, state, kinds, &mut alike)? {
            looping |= 1 << WHOLE;
        }
        self.known[state as usize] = looping;
        self.alike.insert(like, looping);
        Ok(looping)
    }

    /// Where most bytes lead from `state`, if they stay there: the inside of a string, seen from
    /// within, from its beginning, or from a place where some texts are treated apart.
    pub(super) fn entry(
        &mut self,
        automaton: &mut Automaton,
        state: StateId,
        lexicon: &Lexicon,
    ) -> Result<Option<Entry>, LimitError> {
        let mut reached: SmallVec<[(StateId, u32); 8]> = SmallVec::new();
        for byte in 0..128 {
            if automaton.allows(state, byte) {
                let next = automaton.step(state, byte)?;
                match reached.iter_mut().find(|(other, _)| *other == next) {
                    Some((_, count)) => *count += 1,
                    None => reached.push((next, 1)),
                }
            }
        }
        let Some((inner, _)) = reached.into_iter().max_by_key(|&(_, count)| count) else {
            return Ok(None);
        };
        // Where a part may end, its exits must be found one by one.
        if automaton.exits(inner) {
            return Ok(None);
        }
        let looping = self.of(automaton, inner, lexicon)?;
        if looping == 0 {
            return Ok(None);
        }
        let kinds = lexicon.trie().kinds();
        let mut alike = Alike::of(automaton, inner);
        let mut firsts = [0_u64; 4];
        for byte in 0..128_u8 {
            if looping >> kinds[usize::from(byte)] & 1 != 0 && automaton.allows(state, byte) {
                let next = automaton.step(state, byte)?;
                if alike.is(automaton, next) {
                    firsts[usize::from(byte >> 6)] |= 1 << (byte & 63);
                }
            }
        }
        if looping >> WHOLE & 1 != 0 && characters_lead(automaton, state, kinds, &mut alike)? {
            firsts[2] = u64::MAX;
            firsts[3] = u64::MAX;
        }
        Ok(Some(Entry {
            inner,
            kinds: looping,
            firsts,
        }))
    }
}

/// The way into a state that most bytes lead back to.
pub(super) struct Entry {
    pub(super) inner: StateId,
    /// The kinds of bytes that lead from there back to it.
    pub(super) kinds: u32,
    /// The bytes that lead there, or begin characters that do; as 256 bits.
    pub(super) firsts: [u64; 4],
}

impl Entry {
    /// Whether `byte` leads in.
    pub(super) fn begins_with(&self, byte: u8) -> bool {
        self.firsts[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }
}

/// The states that allow the same as a given one, as far as any token goes.
struct Alike {
    hash: u128,
    /// The live values that they are inside of.
    slots: u64,
    /// The last that was asked about: a kind's bytes mostly lead to one state.
    last: (StateId, bool),
}

impl Alike {
    fn of(automaton: &mut Automaton, state: StateId) -> Self {
        Self {
            hash: automaton.hash(state),
            slots: automaton.slots(state),
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

/// Whether every character of several bytes leads from `state` to one that is `alike`, and enters
/// no live values inside the character.
fn characters_lead(
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
    let slots = automaton.slots(state) | alike.slots;
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
                    if to == DEAD_STATE || automaton.slots(to) & !slots != 0 {
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
