//! Stacks of frames: linked lists that share their tails, interned, so that a stack is a number
//! and equal stacks are the same number.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::hash::{Hashes, Mix, purpose};
use super::limits::{Bound, LimitError};
use super::program::{EXIT, Instruction, Pc, Program, RET, UNBOUNDED, slot_bit};
use super::unordered::{SeenId, SeenSets};

/// The bottom of every stack: the end of the text.
pub(crate) const ROOT: u32 = 0;
/// The bottom of a stack whose lower part is left out.
pub(crate) const BOTTOM: u32 = 1;

/// The count of a frame that counts nothing, but goes on at its instruction.
pub(crate) const PLAIN: u32 = u32::MAX;

/// The count of a loop that goes on for longer than any token, and may be left at once.
pub(crate) const FAR_OPEN: u32 = u32::MAX - 1;
/// The count of a loop that goes on for longer than any token, and cannot be left before.
pub(crate) const FAR_CLOSED: u32 = u32::MAX - 2;

/// The count of a frame that is at a set of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetCount {
    /// Which members are behind, the one that is being matched included.
    pub(crate) seen: SeenId,
    /// An item must come now; otherwise one is being matched.
    pub(crate) choosing: bool,
}

impl SetCount {
    fn to_count(self) -> u32 {
        self.seen << 1 | u32::from(self.choosing)
    }

    pub(crate) fn of(count: u32) -> Self {
        Self {
            seen: count >> 1,
            choosing: count & 1 != 0,
        }
    }
}

/// Where a stack goes on when what is above is matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// An instruction to go on at, a loop that counts, or a set of members.
    pub(crate) pc: Pc,
    /// Iterations of the loop that were finished before the present one, a [`SetCount`], or
    /// [`PLAIN`].
    pub(crate) count: u32,
    pub(crate) parent: u32,
    /// Fewest bytes from here to the end of the text.
    pub(crate) distance: u64,
    /// Bits of the slots of live values that are on the stack.
    pub(crate) slots: u64,
    /// The nearest frame downwards that is neither a loop nor a set where an item must come.
    pub(crate) base: u32,
}

/// All stacks of an automaton.
#[derive(Debug)]
pub(crate) struct Stacks {
    frames: Vec<Frame>,
    ids: FxHashMap<(Pc, u32, u32), u32>,
    /// The members that are behind.
    pub(crate) seen: SeenSets,
    hashes: Vec<Option<u128>>,
    /// Counts above this are the same within the longest token.
    pub(crate) clamp: u32,
    limit: usize,
}

impl Stacks {
    /// The two bottoms. `horizon` is the length of the longest token, `limit` the most frames.
    pub(crate) fn new(horizon: usize, limit: usize) -> Self {
        let bottom = |pc, base| Frame {
            pc,
            count: PLAIN,
            parent: ROOT,
            distance: 0,
            slots: 0,
            base,
        };
        Self {
            frames: vec![bottom(RET, ROOT), bottom(EXIT, BOTTOM)],
            ids: FxHashMap::default(),
            seen: SeenSets::default(),
            hashes: vec![None; 2],
            clamp: u32::try_from(horizon).unwrap_or(u32::MAX - 4) + 1,
            limit,
        }
    }

    /// The frame on top of `stack`.
    pub(crate) fn top(&self, stack: u32) -> Frame {
        self.frames[stack as usize]
    }

    /// Bytes of memory held, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * (size_of::<Frame>() + 32 + 24) + self.seen.bytes()
    }

    pub(crate) fn loop_frame(
        &mut self,
        program: &Program,
        pc: Pc,
        count: u32,
        parent: u32,
    ) -> Result<u32, LimitError> {
        let Instruction::Loop {
            body, next, min, ..
        } = program.instructions[pc as usize]
        else {
            return Ok(parent);
        };
        let distance = program.loop_distance(body, next, min, count.saturating_add(1));
        self.intern(program, pc, count, parent, distance)
    }

    /// A frame at a set of members.
    pub(crate) fn set_frame(
        &mut self,
        program: &Program,
        pc: Pc,
        count: SetCount,
        parent: u32,
    ) -> Result<u32, LimitError> {
        let distance = if count.choosing {
            self.seen.distance_to_item(program, count.seen)
        } else {
            self.seen.distance_after_item(program, count.seen)
        };
        self.intern(program, pc, count.to_count(), parent, distance)
    }

    /// A frame to go on at `next`; none for a return, which would do nothing.
    pub(crate) fn frame(
        &mut self,
        program: &Program,
        next: Pc,
        parent: u32,
    ) -> Result<u32, LimitError> {
        if next == RET {
            return Ok(parent);
        }
        let distance = program.distance[next as usize];
        self.intern(program, next, PLAIN, parent, distance)
    }

    fn intern(
        &mut self,
        program: &Program,
        pc: Pc,
        count: u32,
        parent: u32,
        distance: u64,
    ) -> Result<u32, LimitError> {
        if let Some(&known) = self.ids.get(&(pc, count, parent)) {
            return Ok(known);
        }
        let id = self.frames.len() as u32;
        LimitError::check(Bound::Frames, self.frames.len() + 1, self.limit)?;
        let below = self.frames[parent as usize];
        let is_base = count == PLAIN
            || matches!(program.instructions[pc as usize], Instruction::Unordered(_))
                && !SetCount::of(count).choosing;
        self.frames.push(Frame {
            pc,
            count,
            parent,
            distance: below.distance.saturating_add(distance),
            slots: below.slots | slot_bit(program.slot_of[pc as usize]),
            base: if is_base { id } else { below.base },
        });
        self.hashes.push(None);
        self.ids.insert((pc, count, parent), id);
        Ok(id)
    }

    /// What is above `base` (loops, sets where an item must come), put on the bottom of a stack whose lower part is left out.
    pub(crate) fn rebase(
        &mut self,
        program: &Program,
        stack: u32,
        base: u32,
    ) -> Result<u32, LimitError> {
        let mut loops: SmallVec<[(Pc, u32); 4]> = SmallVec::new();
        let mut at = stack;
        while at != base {
            let frame = self.frames[at as usize];
            loops.push((frame.pc, frame.count));
            at = frame.parent;
        }
        let mut stack = BOTTOM;
        for &(pc, count) in loops.iter().rev() {
            let mut count = count;
            if let Instruction::Loop { min, max, .. } = program.instructions[pc as usize] {
                // A loop whose end no token reaches does not need to count: the part then leads
                // back to itself, and its walk is short.
                count = match self.rest(min, max, count) {
                    (0, most) if most == self.clamp && max != UNBOUNDED => FAR_OPEN,
                    (least, _) if least == self.clamp => FAR_CLOSED,
                    _ => count,
                };
            }
            stack = match program.instructions[pc as usize] {
                Instruction::Unordered(_) => {
                    self.set_frame(program, pc, SetCount::of(count), stack)?
                }
                _ => self.loop_frame(program, pc, count, stack)?,
            };
        }
        Ok(stack)
    }

    /// Iterations that must, and may, follow the present one; no more than any token can tell.
    fn rest(&self, min: u32, max: u32, count: u32) -> (u32, u32) {
        let done = count.saturating_add(1);
        let least = min.saturating_sub(done).min(self.clamp);
        let most = if max == UNBOUNDED {
            self.clamp
        } else {
            max.saturating_sub(done).min(self.clamp)
        };
        (least, most)
    }

    pub(crate) fn hash(&mut self, program: &Program, hashes: &Hashes, frame: u32) -> u128 {
        let mut open: SmallVec<[u32; 16]> = SmallVec::new();
        let mut at = frame;
        let mut hash = loop {
            if let Some(known) = self.hashes[at as usize] {
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
            match program.instructions[pc as usize] {
                Instruction::Loop {
                    body,
                    next,
                    min,
                    max,
                } if count != PLAIN => {
                    let (least, most) = match count {
                        FAR_OPEN => (0, self.clamp),
                        FAR_CLOSED => (self.clamp, self.clamp),
                        _ => self.rest(min, max, count),
                    };
                    mix.add(u64::from(least) << 32 | u64::from(most));
                    mix.add_wide(hashes.instructions[body as usize]);
                    mix.add_wide(hashes.instructions[next as usize]);
                }
                Instruction::Unordered(set) if count != PLAIN => {
                    let SetCount { seen, choosing } = SetCount::of(count);
                    let members = &hashes.members[set as usize];
                    mix.add(purpose::MEMBERS << 1 | u64::from(choosing));
                    for member in self.seen.members_left(program, seen) {
                        mix.add_wide(members[member as usize]);
                    }
                    // An item takes a byte at least.
                    for count in self.seen.counts_left(program, seen) {
                        mix.add(u64::from(count.min(self.clamp)));
                    }
                    let set = &program.sets[set as usize];
                    for pc in [set.separator, set.other, set.next] {
                        mix.add_wide(hashes.instructions[pc as usize]);
                    }
                }
                _ => mix.add_wide(hashes.instructions[pc as usize]),
            }
            mix.add_wide(hash);
            hash = mix.finish();
            self.hashes[at as usize] = Some(hash);
        }
        hash
    }
}
