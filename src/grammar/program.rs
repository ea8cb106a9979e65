//! The compiled form of a grammar: a recursive transition network over bytes.
//!
//! An instruction either takes a byte (or a token), branches, calls a rule, counts, or returns.
//! Every instruction that is left after [`lower`](super::lower) can reach acceptance over bytes
//! that the vocabulary can spell, so nothing that the automaton keeps is a dead end.

use super::alphabet::Resolved;

/// Address of an instruction.
pub(crate) type Pc = u32;

/// Returns from the rule that is being matched. Pushing this address would do nothing, so tail
/// calls are recognised by it.
pub(crate) const RET: Pc = 0;
/// Matches nothing.
pub(crate) const DEAD: Pc = 1;
/// The end of a part that is matched without knowing what surrounds it.
pub(crate) const EXIT: Pc = 2;

/// A maximum that is none.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// No live rule.
pub(crate) const NO_SLOT: u16 = u16::MAX;

/// Fewest bytes to acceptance where there is no way at all.
pub(crate) const NEVER: u64 = u64::MAX;

/// Bytes `low` to `high` lead to `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    pub(crate) low: u8,
    pub(crate) high: u8,
    pub(crate) next: Pc,
}

/// A slice of one of the program's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Takes one byte; edges are sorted and disjoint.
    Bytes(Span),
    /// Goes on at each of these.
    Split(Span),
    /// Matches the routine, then goes on.
    Call { routine: u32, next: Pc },
    /// Back to the caller.
    Ret,
    /// Leaves a part that is matched on its own.
    Exit,
    /// The body `min` to `max` times, then `next`. A frame on the stack counts the iterations;
    /// the body never matches the empty string.
    Loop {
        body: Pc,
        next: Pc,
        min: u32,
        max: u32,
    },
    /// The items of a set in any order, then what follows it; by the set's number.
    Unordered(u32),
    /// Within a key of a set: takes one byte of those that lead to a member that is left. The
    /// frame on top of the stack says which members those are.
    Key { set: u32, node: u32 },
    /// Takes one particular token (or any other one).
    Token {
        token: Resolved,
        negated: bool,
        next: Pc,
    },
}

/// A rule as it is called, or a part of one that is worth a frame of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routine {
    pub(crate) entry: Pc,
    /// The slot of live values that the routine stands for, or [`NO_SLOT`].
    pub(crate) slot: u16,
}

/// Items in any order: members, each at most once, and others.
#[derive(Debug)]
pub(crate) struct MemberSet {
    /// Sorted by key.
    pub(crate) members: Vec<SetMember>,
    /// The trie of the keys; the first node is its root.
    pub(crate) nodes: Vec<KeyNode>,
    pub(crate) edges: Vec<(u8, u32)>,
    /// The instruction of the first node; those of the others follow.
    pub(crate) keys: Pc,
    pub(crate) separator: Pc,
    /// An item that is no member; [`DEAD`] if there is none.
    pub(crate) other: Pc,
    pub(crate) next: Pc,
    /// Fewest items.
    pub(crate) min: u32,
    /// Most items, or [`UNBOUNDED`].
    pub(crate) max: u32,
    /// Most items that are no members, or [`UNBOUNDED`].
    pub(crate) most_others: u32,
}

/// A member of a set.
#[derive(Debug)]
pub(crate) struct SetMember {
    pub(crate) key: Box<[u8]>,
    /// What follows the key; [`DEAD`] if the key cannot be spelled.
    pub(crate) value: Pc,
    pub(crate) required: bool,
}

/// A node of the trie of a set's keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyNode {
    /// Bytes from the root.
    pub(crate) depth: u32,
    /// The members whose keys begin like this: from here...
    pub(crate) first: u32,
    /// ...to here.
    pub(crate) last: u32,
    /// How many of them end here: they come first.
    pub(crate) ends: u32,
    pub(crate) edges: Span,
}

impl MemberSet {
    /// The edges of a node.
    pub(crate) fn edges(&self, node: u32) -> &[(u8, u32)] {
        &self.edges[self.nodes[node as usize].edges.range()]
    }
}

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) targets: Vec<Pc>,
    pub(crate) routines: Vec<Routine>,
    /// Where the code of each routine begins, as it was written: callers first, and within a
    /// routine what comes last first.
    pub(crate) blocks: Vec<Pc>,
    pub(crate) sets: Vec<MemberSet>,
    pub(crate) start: Pc,
    /// Per instruction: fewest bytes until it returns.
    pub(crate) distance: Vec<u64>,
    /// Per instruction: the slot of live values whose rule it belongs to.
    pub(crate) slot_of: Vec<u16>,
    /// Names of the slots of live values.
    pub(crate) slots: Vec<String>,
    /// Which class each byte is in: bytes of one class are the same to every instruction.
    pub(crate) class_of: Box<[u8; 256]>,
    /// One byte of each class.
    pub(crate) class_byte: Vec<u8>,
    /// Per instruction: the bytes that it takes, as 256 bits (only for `Bytes`).
    pub(crate) takes: Vec<[u64; 4]>,
}

impl Program {
    pub(crate) fn edges(&self, span: Span) -> &[Edge] {
        &self.edges[span.range()]
    }

    pub(crate) fn targets(&self, span: Span) -> &[Pc] {
        &self.targets[span.range()]
    }

    /// Fewest bytes from a loop's decision with `done` iterations behind it until what follows
    /// the loop returns.
    pub(crate) fn loop_distance(&self, body: Pc, next: Pc, min: u32, done: u32) -> u64 {
        let rest = u64::from(min.saturating_sub(done));
        let body = if rest == 0 {
            0
        } else {
            rest.saturating_mul(self.distance[body as usize])
        };
        body.saturating_add(self.distance[next as usize])
    }

    /// Sorts the 256 bytes into classes that no instruction tells apart.
    pub(crate) fn classify(&mut self) {
        let mut starts = [false; 257];
        starts[0] = true;
        self.takes = vec![[0; 4]; self.instructions.len()];
        for &(byte, _) in self.sets.iter().flat_map(|set| &set.edges) {
            starts[usize::from(byte)] = true;
            starts[usize::from(byte) + 1] = true;
        }
        for (pc, instruction) in self.instructions.iter().enumerate() {
            let Instruction::Bytes(span) = instruction else {
                continue;
            };
            for edge in &self.edges[span.range()] {
                starts[usize::from(edge.low)] = true;
                starts[usize::from(edge.high) + 1] = true;
                for byte in edge.low..=edge.high {
                    self.takes[pc][usize::from(byte >> 6)] |= 1 << (byte & 63);
                }
            }
        }
        for byte in 0..=255_u8 {
            if starts[usize::from(byte)] {
                self.class_byte.push(byte);
            }
            self.class_of[usize::from(byte)] = (self.class_byte.len() - 1) as u8;
        }
    }

    /// Number of byte classes.
    pub(crate) fn classes(&self) -> usize {
        self.class_byte.len()
    }
}

/// Slots of live values that have a bit of their own; all later ones share the last bit.
const SLOT_BITS: usize = 63;

/// The bit of a slot of live values.
pub(crate) fn slot_bit(slot: u16) -> u64 {
    if slot == NO_SLOT {
        0
    } else {
        1 << usize::from(slot).min(SLOT_BITS)
    }
}
