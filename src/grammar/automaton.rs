//! The automaton: sets of configurations, interned, with transitions filled in as they are asked.
//!
//! A configuration is an instruction that takes a byte (or token) and a stack of frames; stacks
//! are linked lists that share their tails and are interned. A state is a sorted set of
//! configurations, everything that takes no input already done. States and transitions only ever
//! grow, so a state's number is all that a matcher needs to remember.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::hash::{self, Mix, purpose};
use super::limits::{Bound, LimitError, Limits};
use super::program::{EXIT, Instruction, NO_SLOT, Pc, Program, RET, UNBOUNDED};

/// A state's number. It stays valid as long as its automaton.
pub(crate) type StateId = u32;

/// The state without a way on.
pub(crate) const DEAD_STATE: StateId = 0;
/// A transition that was not asked for yet.
const UNKNOWN: StateId = u32::MAX;

/// The bottom of every stack: the end of the text.
const ROOT: u32 = 0;
/// The bottom of a stack whose lower part is left out.
const BOTTOM: u32 = 1;

/// The count of a frame that counts nothing, but goes on at its instruction.
const PLAIN: u32 = u32::MAX;

/// Slots of live values that have a bit of their own; all later ones share the last bit.
pub(crate) const SLOT_BITS: usize = 63;

/// Where a stack goes on when what is above is matched.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// An instruction to go on at, or a loop that counts.
    pc: Pc,
    /// Iterations of the loop that were finished before the present one, or [`PLAIN`].
    count: u32,
    parent: u32,
    /// Fewest bytes from here to the end of the text.
    distance: u64,
    /// Bits of the slots of live values that are on the stack.
    slots: u64,
    /// The nearest frame downwards that is not a loop.
    base: u32,
}

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
    /// Counts above this are the same within the longest token.
    clamp: u32,
    frames: Vec<Frame>,
    frame_ids: FxHashMap<(Pc, u32, u32), u32>,
    frame_hashes: Vec<Option<u128>>,
    configurations: Vec<Configuration>,
    states: Vec<State>,
    allowed: Vec<[u64; 4]>,
    rows: Vec<StateId>,
    state_ids: FxHashMap<u64, SmallVec<[StateId; 1]>>,
    hashes: Vec<u128>,
    slot_contents: Vec<(u128, u128)>,
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
        let bottom = |pc| Frame {
            pc,
            count: PLAIN,
            parent: ROOT,
            distance: 0,
            slots: 0,
            base: 0,
        };
        let mut frames = vec![bottom(RET), bottom(EXIT)];
        frames[BOTTOM as usize].base = BOTTOM;
        let mut automaton = Self {
            clamp: u32::try_from(horizon).unwrap_or(u32::MAX - 2) + 1,
            program,
            limits: limits.clone(),
            frames,
            frame_ids: FxHashMap::default(),
            frame_hashes: vec![None; 2],
            configurations: Vec::new(),
            states: Vec::new(),
            allowed: Vec::new(),
            rows: Vec::new(),
            state_ids: FxHashMap::default(),
            hashes: Vec::new(),
            slot_contents: Vec::new(),
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
            + self.frames.capacity() * (size_of::<Frame>() + 48)
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
            if let Instruction::Bytes(span) = self.program.instructions[pc as usize] {
                let edges = self.program.edges(span);
                let at = edges.partition_point(|edge| edge.high < byte);
                if let Some(edge) = edges.get(at)
                    && edge.low <= byte
                {
                    self.work.push(Configuration {
                        pc: edge.next,
                        stack,
                    });
                }
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
                self.found.push(configuration);
                if self.found.len() > self.limits.configurations {
                    self.found.sort_unstable();
                    self.found.dedup();
                    LimitError::check(
                        Bound::Configurations,
                        self.found.len(),
                        self.limits.configurations,
                    )?;
                }
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
                    let stack = self.frame(next, stack)?;
                    self.work.push(Configuration { pc: entry, stack });
                }
                Instruction::Loop { .. } => self.decide(pc, 0, stack)?,
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

    /// Goes on where a frame says.
    fn resume(&mut self, frame: u32) -> Result<(), LimitError> {
        let Frame {
            pc, count, parent, ..
        } = self.frames[frame as usize];
        if count == PLAIN {
            self.work.push(Configuration { pc, stack: parent });
            Ok(())
        } else {
            self.decide(pc, count + 1, parent)
        }
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
            let frame = self.loop_frame(pc, done.min(min), stack)?;
            self.work.push(Configuration {
                pc: body,
                stack: frame,
            });
        } else if done + 1 == max {
            // The last iteration: nothing is left to count.
            let stack = self.frame(next, stack)?;
            self.work.push(Configuration { pc: body, stack });
        } else if done < max {
            let frame = self.loop_frame(pc, done, stack)?;
            self.work.push(Configuration {
                pc: body,
                stack: frame,
            });
        }
        Ok(())
    }

    fn loop_frame(&mut self, pc: Pc, count: u32, parent: u32) -> Result<u32, LimitError> {
        let Instruction::Loop {
            body, next, min, ..
        } = self.program.instructions[pc as usize]
        else {
            return Ok(parent);
        };
        let distance = self
            .program
            .loop_distance(body, next, min, count.saturating_add(1));
        self.intern_frame(pc, count, parent, distance)
    }

    /// A frame to go on at `next`; none for a return, which would do nothing.
    fn frame(&mut self, next: Pc, parent: u32) -> Result<u32, LimitError> {
        if next == RET {
            return Ok(parent);
        }
        let distance = self.program.distance[next as usize];
        self.intern_frame(next, PLAIN, parent, distance)
    }

    fn intern_frame(
        &mut self,
        pc: Pc,
        count: u32,
        parent: u32,
        distance: u64,
    ) -> Result<u32, LimitError> {
        if let Some(&known) = self.frame_ids.get(&(pc, count, parent)) {
            return Ok(known);
        }
        let id = self.frames.len() as u32;
        LimitError::check(Bound::Frames, self.frames.len() + 1, self.limits.frames)?;
        let below = self.frames[parent as usize];
        self.frames.push(Frame {
            pc,
            count,
            parent,
            distance: below.distance.saturating_add(distance),
            slots: below.slots | slot_bit(self.program.slot_of[pc as usize]),
            base: if count == PLAIN { id } else { below.base },
        });
        self.frame_hashes.push(None);
        self.frame_ids.insert((pc, count, parent), id);
        Ok(id)
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
            has_tokens |= matches!(
                self.program.instructions[pc as usize],
                Instruction::Token { .. }
            );
            slots |=
                slot_bit(self.program.slot_of[pc as usize]) | self.frames[stack as usize].slots;
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
        self.program.distance[configuration.pc as usize]
            .saturating_add(self.frames[configuration.stack as usize].distance)
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
        let mut best: Option<(u64, u8)> = None;
        for &Configuration { pc, stack } in self.of(state) {
            let Instruction::Bytes(span) = self.program.instructions[pc as usize] else {
                continue;
            };
            let below = self.frames[stack as usize].distance;
            for edge in self.program.edges(span) {
                let way = self.program.distance[edge.next as usize].saturating_add(below);
                if best.is_none_or(|(shortest, _)| way < shortest) {
                    best = Some((way, edge.low));
                }
            }
        }
        best.map(|(_, byte)| byte)
    }

    /// Sorts a state's configurations by the lower part of their stacks: what is below the nearest
    /// frame that is not a loop's.
    pub(crate) fn groups(&mut self, state: StateId) -> Result<SmallVec<[Group; 2]>, LimitError> {
        let mut by_base: SmallVec<[(u32, Vec<Configuration>); 2]> = SmallVec::new();
        for &configuration in self.of(state) {
            let base = self.frames[configuration.stack as usize].base;
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
                let stack = self.rebase(stack, base)?;
                part.push(Configuration { pc, stack });
            }
            part.sort_unstable();
            self.found = part;
            let part = self.intern(Ends::default())?;
            groups.push(Group { whole, part, base });
        }
        Ok(groups)
    }

    /// The loops above `base`, put on the bottom of a stack whose lower part is left out.
    fn rebase(&mut self, stack: u32, base: u32) -> Result<u32, LimitError> {
        let mut loops: SmallVec<[(Pc, u32); 4]> = SmallVec::new();
        let mut at = stack;
        while at != base {
            let frame = self.frames[at as usize];
            loops.push((frame.pc, frame.count));
            at = frame.parent;
        }
        let mut stack = BOTTOM;
        for &(pc, count) in loops.iter().rev() {
            stack = self.loop_frame(pc, count, stack)?;
        }
        Ok(stack)
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
        self.ensure_hashes();
        let mut parts: SmallVec<[u128; 8]> = SmallVec::new();
        for at in 0..self.states[state as usize].len {
            let at = self.states[state as usize].start + at;
            let Configuration { pc, stack } = self.configurations[at as usize];
            let mut mix = Mix::new(purpose::PART);
            mix.add_wide(self.hashes[pc as usize]);
            let below = self.frame_hash(stack);
            mix.add_wide(below);
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

    fn frame_hash(&mut self, frame: u32) -> u128 {
        let mut open: SmallVec<[u32; 16]> = SmallVec::new();
        let mut at = frame;
        let mut hash = loop {
            if let Some(known) = self.frame_hashes[at as usize] {
                break known;
            }
            if at == ROOT || at == BOTTOM {
                // Whatever is below, a mask does not depend on it.
                let mut mix = Mix::new(purpose::FRAME);
                mix.add(u64::from(at));
                break mix.finish();
            }
            open.push(at);
            at = self.frames[at as usize].parent;
        };
        while let Some(at) = open.pop() {
            let Frame { pc, count, .. } = self.frames[at as usize];
            let mut mix = Mix::new(purpose::FRAME);
            match self.program.instructions[pc as usize] {
                Instruction::Loop {
                    body,
                    next,
                    min,
                    max,
                } if count != PLAIN => {
                    let done = count.saturating_add(1);
                    let least = min.saturating_sub(done).min(self.clamp);
                    let most = if max == UNBOUNDED {
                        self.clamp
                    } else {
                        max.saturating_sub(done).min(self.clamp)
                    };
                    mix.add(u64::from(least) << 32 | u64::from(most));
                    mix.add_wide(self.hashes[body as usize]);
                    mix.add_wide(self.hashes[next as usize]);
                }
                _ => mix.add_wide(self.hashes[pc as usize]),
            }
            mix.add_wide(hash);
            hash = mix.finish();
            self.frame_hashes[at as usize] = Some(hash);
        }
        hash
    }

    fn ensure_hashes(&mut self) {
        if self.hashes.is_empty() {
            self.hashes = hash::hash_program(&self.program, self.clamp);
            self.slot_contents = self
                .program
                .slots
                .iter()
                .map(|name| (hash::slot_name(name), 0))
                .collect();
            for routine in &self.program.routines {
                if routine.slot != NO_SLOT {
                    self.slot_contents[usize::from(routine.slot)].1 =
                        self.hashes[routine.entry as usize];
                }
            }
        }
    }

    /// The live values of the slots in `bits`: hash of the name, hash of the content.
    pub(crate) fn slot_contents(&mut self, bits: u64) -> SmallVec<[(u128, u128); 2]> {
        self.ensure_hashes();
        self.slot_contents
            .iter()
            .enumerate()
            .filter(|&(slot, _)| bits & slot_bit(slot as u16) != 0)
            .map(|(_, &contents)| contents)
            .collect()
    }

    /// Whether the grammar has live values at all.
    pub(crate) fn has_slots(&self) -> bool {
        !self.program.slots.is_empty()
    }

    /// The bits of slots of which only the names' hashes are known.
    pub(crate) fn slot_bits(&self, contents: &[(u128, u128)]) -> u64 {
        self.slot_contents
            .iter()
            .enumerate()
            .filter(|(_, own)| contents.iter().any(|other| other.0 == own.0))
            .fold(0, |bits, (slot, _)| bits | slot_bit(slot as u16))
    }

    /// The content of the slot whose name has this hash.
    pub(crate) fn slot_content(&mut self, name: u128) -> Option<u128> {
        self.ensure_hashes();
        self.slot_contents
            .iter()
            .find(|contents| contents.0 == name)
            .map(|contents| contents.1)
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

fn slot_bit(slot: u16) -> u64 {
    if slot == NO_SLOT {
        0
    } else {
        1 << usize::from(slot).min(SLOT_BITS)
    }
}
