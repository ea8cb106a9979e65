//! The automaton: sets of configurations, interned, with transitions filled in as they are asked.
//!
//! A configuration is an instruction that takes a byte (or token) and a stack of frames; stacks
//! are linked lists that share their tails and are interned. A state is a sorted set of
//! configurations, everything that takes no input already done. States and transitions only ever
//! grow, so a state's number is all that a matcher needs to remember.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::hash::{Hashes, Mix, purpose};
use super::limits::{Bound, LimitError, Limits};
use super::program::{Instruction, Pc, Program, UNBOUNDED, slot_bit};
use super::stacks::{BOTTOM, FAR_CLOSED, FAR_OPEN, Frame, PLAIN, ROOT, SetCount, Stacks};

/// A state's number. It stays valid as long as its automaton.
pub(crate) type StateId = u32;

/// The state without a way on.
pub(crate) const DEAD_STATE: StateId = 0;
/// A transition that was not asked for yet.
const UNKNOWN: StateId = u32::MAX;

/// An instruction that takes input, and its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Configuration {
    pc: Pc,
    stack: u32,
}

#[derive(Clone, Copy, Debug)]
struct State {
    start: u32,
    len: u32,
    accepting: bool,
    /// The part that is matched on its own may end here.
    exits: bool,
    has_tokens: bool,
    slots: u64,
}

/// The part of a state whose configurations share the same lower stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// These configurations alone, lower stack included.
    pub(crate) whole: StateId,
    /// The same without the lower stack.
    pub(crate) part: StateId,
    /// The lower stack.
    pub(crate) base: u32,
}

#[derive(Debug)]
pub(crate) struct Automaton {
    program: Program,
    limits: Limits,
    stacks: Stacks,
    configurations: Vec<Configuration>,
    states: Vec<State>,
    allowed: Vec<[u64; 4]>,
    rows: Vec<StateId>,
    state_ids: FxHashMap<u64, SmallVec<[StateId; 1]>>,
    hashes: Option<Hashes>,
    start: StateId,
    // Scratch, kept for its capacity.
    work: Vec<Configuration>,
    found: Vec<Configuration>,
    seen: FxHashSet<Configuration>,
}

/// What a closure found besides configurations.
#[derive(Clone, Copy, Default)]
struct Ends {
    accepting: bool,
    exits: bool,
}

impl Automaton {
    /// An automaton for `program`. `horizon` is the length of the longest token: counts that
    /// differ only beyond it are taken to be the same in hashes.
    pub(crate) fn new(
        program: Program,
        horizon: usize,
        limits: &Limits,
    ) -> Result<Self, LimitError> {
        let mut automaton = Self {
            stacks: Stacks::new(horizon, limits.frames),
            program,
            limits: limits.clone(),
            configurations: Vec::new(),
            states: Vec::new(),
            allowed: Vec::new(),
            rows: Vec::new(),
            state_ids: FxHashMap::default(),
            hashes: None,
            start: DEAD_STATE,
            work: Vec::new(),
            found: Vec::new(),
            seen: FxHashSet::default(),
        };
        automaton.intern(Ends::default())?;
        automaton.work.push(Configuration {
            pc: automaton.program.start,
            stack: ROOT,
        });
        automaton.start = automaton.close(Ends::default())?;
        Ok(automaton)
    }

    /// Where matching starts.
    pub(crate) fn start(&self) -> StateId {
        self.start
    }

    /// Number of states so far.
    pub(crate) fn states(&self) -> usize {
        self.states.len()
    }

    /// Bytes of memory held, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * 4
            + self.configurations.capacity() * 8
            + self.states.capacity() * (size_of::<State>() + 32 + 24)
            + self.stacks.bytes()
            + self.program.instructions.len() * 80
            + self.program.edges.len() * 8
    }

    /// Whether the text may end here.
    pub(crate) fn accepts(&self, state: StateId) -> bool {
        self.states[state as usize].accepting
    }

    /// Whether the part may end here.
    pub(crate) fn exits(&self, state: StateId) -> bool {
        self.states[state as usize].exits
    }

    /// Whether a token of the vocabulary is named here.
    pub(crate) fn has_tokens(&self, state: StateId) -> bool {
        self.states[state as usize].has_tokens
    }

    /// Bits of the slots of live values that the state is inside of.
    pub(crate) fn slots(&self, state: StateId) -> u64 {
        self.states[state as usize].slots
    }

    /// Whether anything can follow.
    pub(crate) fn goes_on(&self, state: StateId) -> bool {
        self.states[state as usize].len > 0
    }

    /// The bytes that can follow, as 256 bits.
    #[inline]
    pub(crate) fn allowed(&self, state: StateId) -> &[u64; 4] {
        &self.allowed[state as usize]
    }

    /// Whether `byte` can follow.
    #[inline]
    pub(crate) fn allows(&self, state: StateId, byte: u8) -> bool {
        self.allowed[state as usize][usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    /// The state after `byte`; [`DEAD_STATE`] if it cannot follow.
    #[inline]
    pub(crate) fn step(&mut self, state: StateId, byte: u8) -> Result<StateId, LimitError> {
        let class = self.program.class_of[usize::from(byte)];
        let place = state as usize * self.program.classes() + usize::from(class);
        let known = self.rows[place];
        if known != UNKNOWN {
            return Ok(known);
        }
        let next = self.follow(state, byte)?;
        self.rows[place] = next;
        Ok(next)
    }

    #[cold]
    fn follow(&mut self, state: StateId, byte: u8) -> Result<StateId, LimitError> {
        let State { start, len, .. } = self.states[state as usize];
        self.work.clear();
        for at in start..start + len {
            let Configuration { pc, stack } = self.configurations[at as usize];
            match self.program.instructions[pc as usize] {
                Instruction::Bytes(span) => {
                    let edges = self.program.edges(span);
                    let at = edges.partition_point(|edge| edge.high < byte);
                    if let Some(edge) = edges.get(at)
                        && edge.low <= byte
                    {
                        let pc = edge.next;
                        self.work.push(Configuration { pc, stack });
                    }
                }
                Instruction::Key { set, node } => {
                    let edge = self.key_edges(set, node, stack).find(|edge| edge.0 == byte);
                    if let Some((_, node)) = edge {
                        let pc = self.program.sets[set as usize].keys + node;
                        self.work.push(Configuration { pc, stack });
                    }
                }
                _ => {}
            }
        }
        if self.work.is_empty() {
            return Ok(DEAD_STATE);
        }
        self.close(Ends::default())
    }

    /// The state after `token`, taken as a whole where the grammar names it, or byte by byte
    /// (`spelled`: the state after its bytes).
    pub(crate) fn after_token(
        &mut self,
        state: StateId,
        token: u32,
        is_text: bool,
        spelled: StateId,
    ) -> Result<StateId, LimitError> {
        let State { start, len, .. } = self.states[state as usize];
        self.work.clear();
        for at in start..start + len {
            let Configuration { pc, stack } = self.configurations[at as usize];
            if let Instruction::Token {
                token: named,
                negated,
                next,
            } = self.program.instructions[pc as usize]
                && token_fits(named.id, negated, token, is_text)
            {
                self.work.push(Configuration { pc: next, stack });
            }
        }
        if self.work.is_empty() {
            return Ok(spelled);
        }
        let State {
            start,
            len,
            accepting,
            exits,
            ..
        } = self.states[spelled as usize];
        let range = start as usize..(start + len) as usize;
        self.work.extend_from_slice(&self.configurations[range]);
        self.close(Ends { accepting, exits })
    }

    /// The tokens that the grammar names here: number, and whether any other token is meant.
    pub(crate) fn named_tokens(&self, state: StateId) -> SmallVec<[(u32, bool); 2]> {
        let mut named = SmallVec::new();
        for configuration in self.of(state) {
            if let Instruction::Token { token, negated, .. } =
                self.program.instructions[configuration.pc as usize]
            {
                named.push((token.id, negated));
            }
        }
        named
    }

    fn of(&self, state: StateId) -> &[Configuration] {
        let State { start, len, .. } = self.states[state as usize];
        &self.configurations[start as usize..(start + len) as usize]
    }

    /// Does everything that takes no input, from the configurations in `work`.
    fn close(&mut self, ends: Ends) -> Result<StateId, LimitError> {
        let mut ends = ends;
        self.found.clear();
        // Most closures are a handful of steps; only longer ones need to notice repeats.
        const FEW: usize = 16;
        let mut steps = 0_usize;
        if self.seen.capacity() > 4096 {
            self.seen = FxHashSet::default();
        } else {
            self.seen.clear();
        }
        while let Some(configuration) = self.work.pop() {
            steps += 1;
            let Configuration { pc, stack } = configuration;
            let instruction = self.program.instructions[pc as usize];
            if let Instruction::Bytes(_) | Instruction::Token { .. } = instruction {
                self.keep(configuration)?;
                continue;
            }
            if steps > FEW && !self.seen.insert(configuration) {
                continue;
            }
            LimitError::check(
                Bound::Configurations,
                self.seen.len() / 8,
                self.limits.configurations,
            )?;
            match instruction {
                Instruction::Bytes(_) | Instruction::Token { .. } => {}
                Instruction::Split(span) => {
                    let targets = self.program.targets(span).iter();
                    self.work
                        .extend(targets.map(|&pc| Configuration { pc, stack }));
                }
                Instruction::Call { routine, next } => {
                    let entry = self.program.routines[routine as usize].entry;
                    let stack = self.stacks.frame(&self.program, next, stack)?;
                    self.work.push(Configuration { pc: entry, stack });
                }
                Instruction::Loop { .. } => self.decide(pc, 0, stack)?,
                Instruction::Unordered(set) => {
                    let seen = self.stacks.seen.none(&self.program, set)?;
                    self.after_item(pc, seen, stack, true)?;
                }
                Instruction::Key { set, node } => {
                    if self.key_edges(set, node, stack).next().is_some() {
                        self.keep(configuration)?;
                    }
                    self.take_members(set, node, stack)?;
                }
                Instruction::Ret | Instruction::Exit => match stack {
                    ROOT => ends.accepting = true,
                    BOTTOM => ends.exits = true,
                    _ => self.resume(stack)?,
                },
            }
        }
        self.found.sort_unstable();
        self.found.dedup();
        self.intern(ends)
    }

    /// Keeps a configuration that takes input.
    fn keep(&mut self, configuration: Configuration) -> Result<(), LimitError> {
        self.found.push(configuration);
        let limit = self.limits.configurations;
        if self.found.len() > limit {
            self.found.sort_unstable();
            self.found.dedup();
            LimitError::check(Bound::Configurations, self.found.len(), limit)?;
        }
        Ok(())
    }

    /// The edges of a node of a set's keys that lead to a member that is left.
    fn key_edges(&self, set: u32, node: u32, stack: u32) -> impl Iterator<Item = (u8, u32)> {
        let seen = SetCount::of(self.stacks.top(stack).count).seen;
        let edges = self.program.sets[set as usize].edges(node).iter().copied();
        edges.filter(move |edge| self.stacks.seen.leads_on(&self.program, seen, edge.1))
    }

    /// Goes on behind the keys that end at a node.
    fn take_members(&mut self, set: u32, node: u32, stack: u32) -> Result<(), LimitError> {
        let Frame {
            pc, count, parent, ..
        } = self.stacks.top(stack);
        let seen = SetCount::of(count).seen;
        for member in self.stacks.seen.ending(&self.program, seen, node) {
            let count = SetCount {
                seen: self.stacks.seen.with_member(&self.program, seen, member)?,
                choosing: false,
            };
            let stack = self.stacks.set_frame(&self.program, pc, count, parent)?;
            let pc = self.program.sets[set as usize].members[member as usize].value;
            self.work.push(Configuration { pc, stack });
        }
        Ok(())
    }

    /// At a set of members, before the first item or after one: on, or another item.
    fn after_item(
        &mut self,
        pc: Pc,
        seen: u32,
        stack: u32,
        is_first: bool,
    ) -> Result<(), LimitError> {
        let Instruction::Unordered(set) = self.program.instructions[pc as usize] else {
            return Ok(());
        };
        let (next, separator) = {
            let set = &self.program.sets[set as usize];
            (set.next, set.separator)
        };
        if self.stacks.seen.may_end(seen) {
            self.work.push(Configuration { pc: next, stack });
        }
        if self.stacks.seen.goes_on(&self.program, seen) {
            let count = SetCount {
                seen,
                choosing: true,
            };
            let frame = self.stacks.set_frame(&self.program, pc, count, stack)?;
            if is_first {
                self.choose(set, seen, frame)?;
            } else {
                self.work.push(Configuration {
                    pc: separator,
                    stack: frame,
                });
            }
        }
        Ok(())
    }

    /// At a set of members where an item must come: `frame` says so.
    fn choose(&mut self, set: u32, seen: u32, frame: u32) -> Result<(), LimitError> {
        let (keys, other) = {
            let set = &self.program.sets[set as usize];
            (set.keys, set.other)
        };
        if self.stacks.seen.leads_on(&self.program, seen, 0) {
            self.work.push(Configuration {
                pc: keys,
                stack: frame,
            });
        }
        if self.stacks.seen.may_take_other(&self.program, seen) {
            let Frame { pc, parent, .. } = self.stacks.top(frame);
            let count = SetCount {
                seen: self.stacks.seen.with_other(&self.program, seen)?,
                choosing: false,
            };
            let stack = self.stacks.set_frame(&self.program, pc, count, parent)?;
            self.work.push(Configuration { pc: other, stack });
        }
        Ok(())
    }

    /// Goes on where a frame says.
    fn resume(&mut self, frame: u32) -> Result<(), LimitError> {
        let Frame {
            pc, count, parent, ..
        } = self.stacks.top(frame);
        let instruction = self.program.instructions[pc as usize];
        if count != PLAIN
            && let Instruction::Unordered(set) = instruction
        {
            let SetCount { seen, choosing } = SetCount::of(count);
            return if choosing {
                self.choose(set, seen, frame)
            } else {
                self.after_item(pc, seen, parent, false)
            };
        }
        match count {
            PLAIN => self.work.push(Configuration { pc, stack: parent }),
            FAR_OPEN | FAR_CLOSED => {
                if let Instruction::Loop { body, next, .. } = instruction {
                    self.work.push(Configuration {
                        pc: body,
                        stack: frame,
                    });
                    if count == FAR_OPEN {
                        let stack = parent;
                        self.work.push(Configuration { pc: next, stack });
                    }
                }
            }
            _ => self.decide(pc, count + 1, parent)?,
        }
        Ok(())
    }

    /// At a loop with `done` iterations behind: once more, or on.
    fn decide(&mut self, pc: Pc, done: u32, stack: u32) -> Result<(), LimitError> {
        let Instruction::Loop {
            body,
            next,
            min,
            max,
        } = self.program.instructions[pc as usize]
        else {
            return Ok(());
        };
        if done >= min {
            self.work.push(Configuration { pc: next, stack });
        }
        if max == UNBOUNDED {
            let frame = self
                .stacks
                .loop_frame(&self.program, pc, done.min(min), stack)?;
            self.work.push(Configuration {
                pc: body,
                stack: frame,
            });
        } else if done + 1 == max {
            // The last iteration: nothing is left to count.
            let stack = self.stacks.frame(&self.program, next, stack)?;
            self.work.push(Configuration { pc: body, stack });
        } else if done < max {
            let frame = self.stacks.loop_frame(&self.program, pc, done, stack)?;
            self.work.push(Configuration {
                pc: body,
                stack: frame,
            });
        }
        Ok(())
    }

    /// The state of the configurations in `found`.
    fn intern(&mut self, ends: Ends) -> Result<StateId, LimitError> {
        use std::hash::{BuildHasher, BuildHasherDefault};
        let hash = BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one((
            &self.found,
            ends.accepting,
            ends.exits,
        ));
        if let Some(ids) = self.state_ids.get(&hash) {
            for &id in ids {
                let state = self.states[id as usize];
                if state.accepting == ends.accepting
                    && state.exits == ends.exits
                    && self.of(id) == self.found
                {
                    return Ok(id);
                }
            }
        }
        let id = self.states.len() as StateId;
        LimitError::check(Bound::States, self.states.len() + 1, self.limits.states)?;
        let mut allowed = [0_u64; 4];
        let mut has_tokens = false;
        let mut slots = 0;
        for &Configuration { pc, stack } in &self.found {
            for (all, own) in allowed.iter_mut().zip(&self.program.takes[pc as usize]) {
                *all |= own;
            }
            match self.program.instructions[pc as usize] {
                Instruction::Token { .. } => has_tokens = true,
                Instruction::Key { set, node } => {
                    for (byte, _) in self.key_edges(set, node, stack) {
                        allowed[usize::from(byte >> 6)] |= 1 << (byte & 63);
                    }
                }
                _ => {}
            }
            slots |= slot_bit(self.program.slot_of[pc as usize]) | self.stacks.top(stack).slots;
        }
        self.states.push(State {
            start: self.configurations.len() as u32,
            len: self.found.len() as u32,
            accepting: ends.accepting,
            exits: ends.exits,
            has_tokens,
            slots,
        });
        self.configurations.extend_from_slice(&self.found);
        self.allowed.push(allowed);
        let unknown = if self.found.is_empty() {
            DEAD_STATE
        } else {
            UNKNOWN
        };
        let filled = self.rows.len() + self.program.classes();
        self.rows.resize(filled, unknown);
        self.state_ids.entry(hash).or_default().push(id);
        Ok(id)
    }

    fn configuration_distance(&self, configuration: Configuration) -> u64 {
        let Configuration { pc, stack } = configuration;
        match self.program.instructions[pc as usize] {
            Instruction::Key { node, .. } => self.key_distance(node, stack),
            _ => self.program.distance[pc as usize].saturating_add(self.stacks.top(stack).distance),
        }
    }

    /// Fewest bytes from within a key to the end of the text.
    fn key_distance(&self, node: u32, stack: u32) -> u64 {
        let Frame { count, parent, .. } = self.stacks.top(stack);
        let seen = SetCount::of(count).seen;
        let below = self.stacks.top(parent).distance;
        let way = self
            .stacks
            .seen
            .distance_from_key(&self.program, seen, node);
        way.saturating_add(below)
    }

    /// Fewest bytes to the end of the text; `None` for the dead state.
    pub(crate) fn distance(&self, state: StateId) -> Option<u64> {
        if self.accepts(state) {
            return Some(0);
        }
        self.of(state)
            .iter()
            .map(|&configuration| self.configuration_distance(configuration))
            .min()
    }

    /// A byte that begins a shortest way to the end; `None` where the text may end, where nothing
    /// follows, or where only a token leads on.
    pub(crate) fn closing_byte(&self, state: StateId) -> Option<u8> {
        if self.accepts(state) {
            return None;
        }
        // Of several shortest ways the one that a person can read.
        let mut best: Option<(u64, usize, u8)> = None;
        for &Configuration { pc, stack } in self.of(state) {
            let mut offer = |way: u64, byte: u8| {
                let odd = oddness(byte);
                if best.is_none_or(|(shortest, oddest, _)| (way, odd) < (shortest, oddest)) {
                    best = Some((way, odd, byte));
                }
            };
            match self.program.instructions[pc as usize] {
                Instruction::Bytes(span) => {
                    let below = self.stacks.top(stack).distance;
                    for edge in self.program.edges(span) {
                        let way = self.program.distance[edge.next as usize];
                        offer(way.saturating_add(below), readable(edge.low, edge.high));
                    }
                }
                Instruction::Key { set, node } => {
                    for (byte, node) in self.key_edges(set, node, stack) {
                        offer(self.key_distance(node, stack), byte);
                    }
                }
                _ => {}
            }
        }
        best.map(|(_, _, byte)| byte)
    }

    /// Sorts a state's configurations by the lower part of their stacks: what is below the nearest
    /// frame that is not a loop's.
    pub(crate) fn groups(&mut self, state: StateId) -> Result<SmallVec<[Group; 2]>, LimitError> {
        let mut by_base: SmallVec<[(u32, Vec<Configuration>); 2]> = SmallVec::new();
        for &configuration in self.of(state) {
            let base = self.stacks.top(configuration.stack).base;
            match by_base.iter_mut().find(|group| group.0 == base) {
                Some(group) => group.1.push(configuration),
                None => by_base.push((base, vec![configuration])),
            }
        }
        let alone = by_base.len() == 1;
        let mut groups = SmallVec::new();
        for (base, members) in by_base {
            let whole = if alone {
                state
            } else {
                self.found.clear();
                self.found.extend_from_slice(&members);
                self.intern(Ends::default())?
            };
            let mut part = Vec::with_capacity(members.len());
            for Configuration { pc, stack } in members {
                let stack = self.stacks.rebase(&self.program, stack, base)?;
                part.push(Configuration { pc, stack });
            }
            part.sort_unstable();
            self.found = part;
            let part = self.intern(Ends::default())?;
            groups.push(Group { whole, part, base });
        }
        Ok(groups)
    }

    /// The state after everything above `base` is matched.
    pub(crate) fn after(&mut self, base: u32) -> Result<StateId, LimitError> {
        self.work.clear();
        match base {
            ROOT => {
                self.found.clear();
                self.intern(Ends {
                    accepting: true,
                    exits: false,
                })
            }
            BOTTOM => {
                self.found.clear();
                self.intern(Ends {
                    accepting: false,
                    exits: true,
                })
            }
            _ => {
                self.resume(base)?;
                self.close(Ends::default())
            }
        }
    }

    /// A hash of what can follow within the longest token. Live values that are not entered yet
    /// are in it by name only.
    pub(crate) fn hash(&mut self, state: StateId) -> u128 {
        let hashes = self
            .hashes
            .get_or_insert_with(|| Hashes::new(&self.program, self.stacks.clamp));
        let State { start, len, .. } = self.states[state as usize];
        let mut parts: SmallVec<[u128; 8]> = SmallVec::new();
        for &Configuration { pc, stack } in
            &self.configurations[start as usize..(start + len) as usize]
        {
            let mut mix = Mix::new(purpose::PART);
            mix.add_wide(hashes.instructions[pc as usize]);
            mix.add_wide(self.stacks.hash(&self.program, hashes, stack));
            parts.push(mix.finish());
        }
        parts.sort_unstable();
        parts.dedup();
        let mut mix = Mix::new(purpose::STATE);
        for part in parts {
            mix.add_wide(part);
        }
        mix.finish()
    }

    /// The hashes of the program, computed when they are first needed.
    pub(crate) fn hashes(&mut self) -> &Hashes {
        self.hashes
            .get_or_insert_with(|| Hashes::new(&self.program, self.stacks.clamp))
    }

    /// Whether the grammar has live values at all.
    pub(crate) fn has_slots(&self) -> bool {
        !self.program.slots.is_empty()
    }
}

/// Whether a token that the grammar names is `token`. A negated name means any other text token;
/// control tokens are matched by their own name alone.
pub(crate) fn token_fits(named: u32, negated: bool, token: u32, is_text: bool) -> bool {
    if negated {
        named != token && is_text
    } else {
        named == token
    }
}

/// Bytes that a person reads best, and those that can be printed at all.
const READABLE: [(u8, u8); 4] = [(b'a', b'z'), (b'0', b'9'), (b'A', b'Z'), (b' ', b'~')];

/// A byte from `low` to `high`, the least odd one.
fn readable(low: u8, high: u8) -> u8 {
    READABLE
        .into_iter()
        .find_map(|(first, last)| {
            let byte = low.max(first);
            (byte <= high.min(last)).then_some(byte)
        })
        .unwrap_or(low)
}

fn oddness(byte: u8) -> usize {
    let kind = |&(first, last): &(u8, u8)| (first..=last).contains(&byte);
    READABLE.iter().position(kind).unwrap_or(READABLE.len())
}
