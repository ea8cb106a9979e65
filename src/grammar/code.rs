//! Instructions in the making: what a compiler calls its emitter.
//!
//! Byte instructions keep only bytes that can be spelled. Code points become ranges of UTF-8 bytes,
//! literals that are alternatives of each other a trie, and branches whose bytes differ one
//! instruction.

use regex_syntax::utf8::Utf8Sequences;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::ast::CharClass;
use super::limits::{Bound, LimitError};
use super::program::{DEAD, Edge, Instruction, NO_SLOT, Pc, Span};

/// The instructions of a program so far.
pub(super) struct Code {
    pub(super) instructions: Vec<Instruction>,
    pub(super) edges: Vec<Edge>,
    pub(super) targets: Vec<Pc>,
    pub(super) slot_of: Vec<u16>,
    /// The slot of live values whose rule is being compiled.
    pub(super) slot: u16,
    /// Bytes that were needed somewhere and cannot be spelled.
    pub(super) missing: [bool; 256],
    spellable: [bool; 256],
    /// How many of the bytes below each one cannot be spelled.
    unspellable_below: [u16; 257],
    limit: usize,
    /// By hash: the instructions that take a byte, and the calls. What is the same is written
    /// once, so that the same texts lead to the same states.
    same: FxHashMap<u64, SmallVec<[Pc; 1]>>,
    /// Classes met so far, as they are spelled.
    classes: FxHashMap<CharClass, Rc<[ClassNode]>>,
}

impl Code {
    /// Only the instructions that every program begins with; at most `limit` later.
    pub(super) fn new(spellable: [bool; 256], limit: usize) -> Self {
        let mut unspellable_below = [0; 257];
        for (byte, &spelled) in spellable.iter().enumerate() {
            unspellable_below[byte + 1] = unspellable_below[byte] + u16::from(!spelled);
        }
        Self {
            instructions: vec![
                Instruction::Ret,
                Instruction::Split(Span { start: 0, len: 0 }),
                Instruction::Exit,
            ],
            edges: Vec::new(),
            targets: Vec::new(),
            slot_of: vec![NO_SLOT; 3],
            slot: NO_SLOT,
            missing: [false; 256],
            spellable,
            unspellable_below,
            limit,
            same: FxHashMap::default(),
            classes: FxHashMap::default(),
        }
    }

    pub(super) fn push(&mut self, instruction: Instruction) -> Result<Pc, LimitError> {
        LimitError::check(Bound::Instructions, self.instructions.len() + 1, self.limit)?;
        self.instructions.push(instruction);
        self.slot_of.push(self.slot);
        Ok((self.instructions.len() - 1) as Pc)
    }

    /// Matches a routine, then goes on at `next`.
    pub(super) fn call(&mut self, routine: u32, next: Pc) -> Result<Pc, LimitError> {
        let call = Instruction::Call { routine, next };
        let hash = self.hash_here((routine, next));
        match self.known(hash, |own| own == call) {
            Some(known) => Ok(known),
            None => self.push_known(hash, call),
        }
    }

    /// The hash of what is written for the live values that are being compiled.
    fn hash_here(&self, what: impl Hash) -> u64 {
        let mut hasher = FxHasher::default();
        (self.slot, what).hash(&mut hasher);
        hasher.finish()
    }

    /// An instruction that is there already, for the same live values.
    fn known(&self, hash: u64, is_same: impl Fn(Instruction) -> bool) -> Option<Pc> {
        let mut known = self.same.get(&hash)?.iter().copied();
        known.find(|&pc| {
            self.slot_of[pc as usize] == self.slot && is_same(self.instructions[pc as usize])
        })
    }

    /// Writes an instruction that is to be found again.
    fn push_known(&mut self, hash: u64, instruction: Instruction) -> Result<Pc, LimitError> {
        let pc = self.push(instruction)?;
        self.same.entry(hash).or_default().push(pc);
        Ok(pc)
    }

    /// Whether all of `bytes` can be spelled; notes those that cannot.
    pub(super) fn spells(&mut self, bytes: &[u8]) -> bool {
        let mut all = true;
        for &byte in bytes {
            if !self.spellable[usize::from(byte)] {
                self.missing[usize::from(byte)] = true;
                all = false;
            }
        }
        all
    }

    /// A run of bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8], next: Pc) -> Result<Pc, LimitError> {
        let mut next = next;
        for &byte in bytes.iter().rev() {
            next = self.take(&[Edge {
                low: byte,
                high: byte,
                next,
            }])?;
        }
        Ok(next)
    }

    /// An instruction that takes one byte, over spellable bytes only.
    pub(super) fn take(&mut self, edges: &[Edge]) -> Result<Pc, LimitError> {
        let start = self.edges.len();
        for edge in edges {
            if edge.next == DEAD {
                continue;
            }
            let below = |byte: usize| self.unspellable_below[byte];
            if below(usize::from(edge.high) + 1) == below(usize::from(edge.low)) {
                self.edges.push(*edge);
                continue;
            }
            let mut low = None;
            for byte in edge.low..=edge.high {
                if self.spellable[usize::from(byte)] {
                    low.get_or_insert(byte);
                } else if let Some(low) = low.take() {
                    self.edges.push(Edge {
                        low,
                        high: byte - 1,
                        next: edge.next,
                    });
                }
            }
            if let Some(low) = low {
                self.edges.push(Edge {
                    low,
                    high: edge.high,
                    next: edge.next,
                });
            }
        }
        if self.edges.len() == start {
            for byte in edges.iter().flat_map(|edge| edge.low..=edge.high) {
                self.missing[usize::from(byte)] |= !self.spellable[usize::from(byte)];
            }
            return Ok(DEAD);
        }
        let taken = &self.edges[start..];
        let hash = self.hash_here(taken);
        let known = self.known(hash, |own| match own {
            Instruction::Bytes(span) => self.edges[span.range()] == *taken,
            _ => false,
        });
        if known.is_some() {
            self.edges.truncate(start);
        }
        let span = Span {
            start: start as u32,
            len: (self.edges.len() - start) as u32,
        };
        match known {
            Some(known) => Ok(known),
            None => self.push_known(hash, Instruction::Bytes(span)),
        }
    }

    /// The UTF-8 sequences of a class as a small deterministic network.
    pub(super) fn class_here(&mut self, class: &CharClass, next: Pc) -> Result<Pc, LimitError> {
        let nodes = match self.classes.get(class) {
            Some(known) => Rc::clone(known),
            None => {
                let nodes: Rc<[ClassNode]> = class_nodes(class).into();
                self.classes.insert(class.clone(), Rc::clone(&nodes));
                nodes
            }
        };
        let mut pcs = vec![DEAD; nodes.len()];
        for at in (0..nodes.len()).rev() {
            let mut edges: Vec<Edge> = nodes[at]
                .iter()
                .map(|&(low, high, child)| Edge {
                    low,
                    high,
                    next: if child == LEAF {
                        next
                    } else {
                        pcs[child as usize]
                    },
                })
                .collect();
            edges.sort_unstable_by_key(|edge| edge.low);
            merge(&mut edges);
            pcs[at] = self.take(&edges)?;
        }
        Ok(pcs[0])
    }

    /// Literals and what follows each, their common beginnings shared.
    pub(super) fn trie(&mut self, literals: &[(&[u8], Pc)]) -> Result<Vec<Pc>, LimitError> {
        if let [(text, next)] = literals {
            return Ok(vec![self.bytes(text, *next)?]);
        }
        #[derive(Default)]
        struct Node {
            children: Vec<(u8, usize)>,
            ends: Vec<Pc>,
        }
        let mut nodes = vec![Node::default()];
        for &(text, next) in literals {
            if next == DEAD {
                continue;
            }
            let mut at = 0;
            for &byte in text {
                at = match nodes[at]
                    .children
                    .binary_search_by_key(&byte, |child| child.0)
                {
                    Ok(found) => nodes[at].children[found].1,
                    Err(place) => {
                        let child = nodes.len();
                        LimitError::check(Bound::Instructions, child, self.limit)?;
                        nodes[at].children.insert(place, (byte, child));
                        nodes.push(Node::default());
                        child
                    }
                };
            }
            nodes[at].ends.push(next);
        }
        // Children come after their parents, so going backwards meets them first.
        let mut pcs = vec![DEAD; nodes.len()];
        for at in (0..nodes.len()).rev() {
            let node = &nodes[at];
            let edges: Vec<Edge> = node
                .children
                .iter()
                .map(|&(byte, child)| Edge {
                    low: byte,
                    high: byte,
                    next: pcs[child],
                })
                .collect();
            let mut targets = node.ends.clone();
            if !edges.is_empty() {
                targets.push(self.take(&edges)?);
            }
            pcs[at] = self.split(&targets)?;
        }
        Ok(vec![pcs[0]])
    }

    /// An instruction that goes on at each target.
    pub(super) fn split(&mut self, targets: &[Pc]) -> Result<Pc, LimitError> {
        let merged = self.merged(targets, DEAD)?;
        match merged[..] {
            [] => Ok(DEAD),
            [only] => Ok(only),
            _ => {
                let span = self.target_span(&merged);
                self.push(Instruction::Split(span))
            }
        }
    }

    /// Fills in a branch that was reserved.
    pub(super) fn fill(&mut self, reserved: Pc, targets: &[Pc]) -> Result<(), LimitError> {
        let merged = self.merged(targets, reserved)?;
        let filled = match merged[..] {
            [only] if matches!(self.instructions[only as usize], Instruction::Bytes(_)) => {
                self.instructions[only as usize]
            }
            _ => Instruction::Split(self.target_span(&merged)),
        };
        self.instructions[reserved as usize] = filled;
        Ok(())
    }

    fn target_span(&mut self, targets: &[Pc]) -> Span {
        let start = self.targets.len() as u32;
        self.targets.extend_from_slice(targets);
        Span {
            start,
            len: targets.len() as u32,
        }
    }

    /// Targets without repeats, nested branches opened, and byte instructions that take different
    /// bytes made one. `reserved` is a branch that is not filled in yet.
    fn merged(&mut self, targets: &[Pc], reserved: Pc) -> Result<Vec<Pc>, LimitError> {
        let mut open: Vec<Pc> = targets.iter().rev().copied().collect();
        let mut seen = FxHashSet::default();
        let mut flat = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        let mut merged_from = Vec::new();
        while let Some(pc) = open.pop() {
            if pc == DEAD || pc == reserved || !seen.insert(pc) {
                continue;
            }
            match self.instructions[pc as usize] {
                Instruction::Split(span) if span.len > 0 => {
                    open.extend(self.targets[span.range()].iter().rev());
                }
                Instruction::Bytes(span) => {
                    let own = &self.edges[span.range()];
                    let apart = own
                        .iter()
                        .all(|a| edges.iter().all(|b| a.high < b.low || b.high < a.low));
                    if apart && edges.len() < 512 {
                        edges.extend_from_slice(own);
                        merged_from.push(pc);
                    } else {
                        flat.push(pc);
                    }
                }
                _ => flat.push(pc),
            }
        }
        match merged_from[..] {
            [] => {}
            [only] => flat.push(only),
            _ => {
                edges.sort_unstable_by_key(|edge| edge.low);
                merge(&mut edges);
                flat.push(self.take(&edges)?);
            }
        }
        Ok(flat)
    }
}

/// Ranges of bytes, and the node that each leads to.
type ClassNode = SmallVec<[(u8, u8, u32); 2]>;

/// The node behind a whole character.
const LEAF: u32 = u32::MAX;

/// The UTF-8 sequences of a class as a trie; the first node is its root.
fn class_nodes(class: &CharClass) -> Vec<ClassNode> {
    // Nodes of a trie over byte ranges: two sequences either share a range or are apart.
    let mut nodes = vec![ClassNode::new()];
    for &(low, high) in class.ranges() {
        for sequence in Utf8Sequences::new(low, high) {
            let ranges = sequence.as_slice();
            let mut at = 0_u32;
            for (depth, range) in ranges.iter().enumerate() {
                let last = depth + 1 == ranges.len();
                let node = &nodes[at as usize];
                let found = node
                    .last()
                    .filter(|edge| (edge.0, edge.1) == (range.start, range.end))
                    .map(|edge| edge.2);
                at = match found {
                    Some(child) => child,
                    None => {
                        let child = if last { LEAF } else { nodes.len() as u32 };
                        nodes[at as usize].push((range.start, range.end, child));
                        if !last {
                            nodes.push(ClassNode::new());
                        }
                        child
                    }
                };
            }
        }
    }
    nodes
}

/// Joins neighbouring edges that lead to the same place.
fn merge(edges: &mut Vec<Edge>) {
    edges.dedup_by(|right, left| {
        let joined = left.next == right.next && u16::from(left.high) + 1 == u16::from(right.low);
        if joined {
            left.high = right.high;
        }
        joined
    });
}
