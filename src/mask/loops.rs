//! Which bytes lead a state back to itself.
//!
//! Inside a string nearly every character does, so that whole subtrees of the token trie can be
//! allowed at once instead of being walked node by node.

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
        let mut looping = 0_u32;
        let mut leaving = 0_u32;
        for byte in 0..=255_u8 {
            let kind = 1 << kinds[usize::from(byte)];
            if leaving & kind == 0 {
                if automaton.allows(state, byte) && automaton.step(state, byte)? == state {
                    looping |= kind;
                } else {
                    leaving |= kind;
                }
            }
        }
        looping &= !(leaving | 1 << BROKEN);
        // A state that no ASCII leads back to is hardly worth the steps.
        if looping != 0 && characters_loop(automaton, state, kinds)? {
            looping |= 1 << WHOLE;
        }
        self.known[state as usize] = looping;
        Ok(looping)
    }
}

/// Whether every character of several bytes leads from `state` back to itself.
fn characters_loop(
    automaton: &mut Automaton,
    state: StateId,
    kinds: &[u8; 256],
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
        if reached.iter().any(|&end| end != state) {
            return Ok(false);
        }
    }
    Ok(true)
}
