//! Structural hashes: two instructions, in whatever grammars, have the same hash if what can
//! follow them is built the same.
//!
//! Masks are remembered under these hashes, so they must say exactly what remains to be matched.
//! Instructions refer to each other in circles (loops, recursion); each strongly connected part is
//! written down from one of its members, in the order of a walk, and every member's hash is that
//! description and its number in it. The member to start from is picked by a few rounds of colour
//! refinement (Weisfeiler and Leman 1968), so that equal parts of different grammars are mostly
//! written down the same; a bad pick costs sharing, never correctness.
//!
//! A rule of live values is hashed by its name where it is called. Its content has a hash of its
//! own, which whoever remembers something records next to it.

use smallvec::SmallVec;

use super::program::{Instruction, NO_SLOT, Pc, Program, SetMember, slot_bit};

/// A 128-bit hash in the making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    left: u64,
    right: u64,
}

const PRIMES: [u64; 4] = [
    0x9E37_79B9_7F4A_7C15,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0xD6E8_FEB8_6659_FD93,
];

impl Mix {
    /// A hash for one purpose.
    pub(crate) fn new(purpose: u64) -> Self {
        let mut mix = Self {
            left: PRIMES[2],
            right: PRIMES[3],
        };
        mix.add(purpose);
        mix
    }

    pub(crate) fn add(&mut self, value: u64) {
        self.left = fold(self.left ^ value, PRIMES[0]);
        self.right = fold(self.right.rotate_left(23) ^ value, PRIMES[1]);
    }

    /// Adds a hash: its halves are independent already, so each goes into one of ours.
    pub(crate) fn add_wide(&mut self, value: u128) {
        self.left = fold(self.left ^ value as u64, PRIMES[0]);
        self.right = fold(self.right.rotate_left(23) ^ (value >> 64) as u64, PRIMES[1]);
    }

    pub(crate) fn add_text(&mut self, text: &str) {
        self.add_bytes(text.as_bytes());
    }

    pub(crate) fn add_bytes(&mut self, text: &[u8]) {
        self.add(text.len() as u64);
        for chunk in text.chunks(8) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(bytes));
        }
    }

    pub(crate) fn finish(self) -> u128 {
        let mut last = self;
        // Each half depends on both.
        last.add_wide(u128::from(self.left) << 64 | u128::from(self.right));
        u128::from(last.left) << 64 | u128::from(last.right)
    }
}

/// Both halves of a 128-bit product, mixed.
fn fold(value: u64, prime: u64) -> u64 {
    let product = u128::from(value ^ prime.rotate_left(17)) * u128::from(prime);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Purposes, so that hashes of different things never meet.
pub(crate) mod purpose {
    pub(crate) const NODE: u64 = 1;
    pub(crate) const CIRCLE: u64 = 2;
    pub(crate) const MEMBER: u64 = 3;
    pub(crate) const INSIDE: u64 = 4;
    pub(crate) const SLOT: u64 = 5;
    pub(crate) const FRAME: u64 = 6;
    pub(crate) const STATE: u64 = 7;
    pub(crate) const PART: u64 = 8;
    pub(crate) const MEMBERS: u64 = 9;
}

/// All hashes of a program.
#[derive(Debug)]
pub(crate) struct Hashes {
    /// Of each instruction.
    pub(crate) instructions: Vec<u128>,
    /// Of each member of each set: its key, and what follows it.
    pub(crate) members: Vec<Vec<u128>>,
    /// Of each slot of live values: its name, its content.
    slots: Vec<(u128, u128)>,
}

impl Hashes {
    /// Hashes with repetition counts above `clamp` made `clamp`: nothing within `clamp` bytes can
    /// tell them apart.
    pub(crate) fn new(program: &Program, clamp: u32) -> Self {
        let names: Vec<u128> = program
            .slots
            .iter()
            .map(|name| {
                let mut mix = Mix::new(purpose::SLOT);
                mix.add_text(name);
                mix.finish()
            })
            .collect();
        let mut slots: Vec<(u128, u128)> = names.iter().map(|&name| (name, 0)).collect();
        let hasher = Hasher {
            program,
            names,
            clamp,
        };
        let instructions = hasher.instructions();
        for routine in &program.routines {
            if let Some(slot) = slots.get_mut(usize::from(routine.slot)) {
                slot.1 = instructions[routine.entry as usize];
            }
        }
        let members = program
            .sets
            .iter()
            .map(|set| {
                let of = |member| member_hash(member, instructions[member.value as usize]);
                set.members.iter().map(of).collect()
            })
            .collect();
        Self {
            instructions,
            members,
            slots,
        }
    }

    /// The live values of the slots in `bits`: hash of the name, hash of the content.
    pub(crate) fn contents(&self, bits: u64) -> SmallVec<[(u128, u128); 2]> {
        (0..)
            .zip(&self.slots)
            .filter(|&(slot, _)| bits & slot_bit(slot) != 0)
            .map(|(_, &contents)| contents)
            .collect()
    }

    /// The bits of slots of which only the names' hashes are known.
    pub(crate) fn bits(&self, contents: &[(u128, u128)]) -> u64 {
        (0..)
            .zip(&self.slots)
            .filter(|(_, own)| contents.iter().any(|other| other.0 == own.0))
            .fold(0, |bits, (slot, _)| bits | slot_bit(slot))
    }

    /// The content of the slot whose name has this hash.
    pub(crate) fn content(&self, name: u128) -> Option<u128> {
        let found = self.slots.iter().find(|contents| contents.0 == name);
        found.map(|contents| contents.1)
    }
}

/// The hash of a member of a set, given that of what follows its key.
fn member_hash(member: &SetMember, value: u128) -> u128 {
    let mut mix = Mix::new(purpose::MEMBERS);
    mix.add(u64::from(member.required));
    mix.add_bytes(&member.key);
    mix.add_wide(value);
    mix.finish()
}

/// Successors as the hash sees them: the content of a slot is not one.
fn successors(program: &Program, pc: Pc, mut visit: impl FnMut(Pc)) {
    if let Instruction::Call { routine, next } = program.instructions[pc as usize]
        && program.routines[routine as usize].slot != NO_SLOT
    {
        visit(next);
    } else {
        super::distance::successors(program, pc, visit);
    }
}

struct Hasher<'a> {
    program: &'a Program,
    names: Vec<u128>,
    clamp: u32,
}

/// No hash yet. An instruction whose hash happened to be this would be hashed again and again.
const UNKNOWN: u128 = 0;

impl Hasher<'_> {
    /// The hashes of all instructions.
    ///
    /// Routines are written after those that call them, and each from its end: in that order most
    /// instructions come after what they lead to. The others are circles, or lead into one.
    fn instructions(&self) -> Vec<u128> {
        let count = self.program.instructions.len();
        let mut hashes = vec![UNKNOWN; count];
        let mut circles = None;
        let mut end = count as Pc;
        let blocks = self.program.blocks.iter().rev().map(|&start| {
            let block = start..end;
            end = start;
            block
        });
        // What every program begins with is in no block, and leads nowhere.
        let first = self
            .program
            .blocks
            .first()
            .map_or(count as Pc, |&start| start);
        for pc in (0..first).chain(blocks.flatten()) {
            if hashes[pc as usize] != UNKNOWN {
                continue;
            }
            let mut ready = true;
            let hash = self.node(pc, |next| {
                let hash = hashes[next as usize];
                ready &= hash != UNKNOWN;
                hash
            });
            if ready {
                hashes[pc as usize] = hash;
            } else {
                circles
                    .get_or_insert_with(|| Components::new(count))
                    .visit_from(
                        pc,
                        &mut hashes,
                        |pc, hashes, visit| {
                            successors(self.program, pc, |next| {
                                if hashes[next as usize] == UNKNOWN {
                                    visit(next);
                                }
                            });
                        },
                        |circle, hashes| self.component(circle, hashes),
                    );
            }
        }
        hashes
    }

    /// The hash of one instruction, given those of the ones it leads to.
    fn node(&self, pc: Pc, mut child: impl FnMut(Pc) -> u128) -> u128 {
        let mut mix = Mix::new(purpose::NODE);
        match self.program.instructions[pc as usize] {
            Instruction::Ret => mix.add(1),
            Instruction::Exit => mix.add(2),
            Instruction::Bytes(span) => {
                mix.add(3);
                for edge in self.program.edges(span) {
                    mix.add(u64::from(edge.low) << 8 | u64::from(edge.high));
                    mix.add_wide(child(edge.next));
                }
            }
            Instruction::Split(span) => {
                mix.add(4);
                for &target in self.program.targets(span) {
                    mix.add_wide(child(target));
                }
            }
            Instruction::Call { routine, next } => {
                mix.add(5);
                let routine = &self.program.routines[routine as usize];
                match self.names.get(usize::from(routine.slot)) {
                    Some(&name) => mix.add_wide(name),
                    None => mix.add_wide(child(routine.entry)),
                }
                mix.add_wide(child(next));
            }
            Instruction::Loop {
                body,
                next,
                min,
                max,
            } => {
                mix.add(6);
                mix.add(u64::from(min.min(self.clamp)) << 32 | u64::from(max.min(self.clamp)));
                mix.add_wide(child(body));
                mix.add_wide(child(next));
            }
            Instruction::Unordered(set) => {
                mix.add(8);
                let set = &self.program.sets[set as usize];
                let mut required = 0;
                for member in &set.members {
                    required += u32::from(member.required);
                    mix.add_wide(member_hash(member, child(member.value)));
                }
                let others = set.most_others;
                for count in [set.min, set.max] {
                    mix.add(u64::from(count.saturating_sub(required).min(self.clamp)));
                }
                mix.add(u64::from(others.min(self.clamp)));
                for pc in [set.separator, set.other, set.next] {
                    mix.add_wide(child(pc));
                }
            }
            Instruction::Key { set, node } => {
                // What is left of the set is on the stack: here is only how far a key was read.
                mix.add(9);
                let set = &self.program.sets[set as usize];
                let node = set.nodes[node as usize];
                let key = &set.members[node.first as usize].key;
                mix.add_bytes(&key[..node.depth as usize]);
            }
            Instruction::Token {
                token,
                negated,
                next,
            } => {
                mix.add(7);
                mix.add(u64::from(token.id) << 1 | u64::from(negated));
                mix.add_wide(child(next));
            }
        }
        mix.finish()
    }

    fn component(&self, members: &[Pc], hashes: &mut [u128]) {
        if let [only] = members[..] {
            let mut itself = false;
            successors(self.program, only, |next| itself |= next == only);
            if !itself {
                hashes[only as usize] = self.node(only, |next| hashes[next as usize]);
                return;
            }
        }
        // Colours: how a member looks from a few steps away.
        const ROUNDS: usize = 3;
        let inside: rustc_hash::FxHashMap<Pc, u32> =
            members.iter().zip(0..).map(|(&pc, at)| (pc, at)).collect();
        let mut colours = vec![0_u128; members.len()];
        for _ in 0..ROUNDS {
            colours = members
                .iter()
                .map(|&pc| {
                    self.node(pc, |next| match inside.get(&next) {
                        Some(&at) => colours[at as usize],
                        None => hashes[next as usize],
                    })
                })
                .collect();
        }
        let Some(&lowest) = colours.iter().min() else {
            return;
        };
        let described = members
            .iter()
            .zip(&colours)
            .filter(|&(_, &colour)| colour == lowest)
            .take(4)
            .map(|(&pc, _)| self.describe(pc, &inside, hashes))
            .min_by_key(|(description, _)| *description);
        if let Some((description, order)) = described {
            for (number, &pc) in order.iter().enumerate() {
                let mut mix = Mix::new(purpose::MEMBER);
                mix.add_wide(description);
                mix.add(number as u64);
                hashes[pc as usize] = mix.finish();
            }
        }
    }

    /// Writes a circle down from one of its members: the hash of all of it, and the order.
    fn describe(
        &self,
        start: Pc,
        inside: &rustc_hash::FxHashMap<Pc, u32>,
        hashes: &[u128],
    ) -> (u128, Vec<Pc>) {
        let mut numbers = vec![u32::MAX; inside.len()];
        let mut order = vec![start];
        if let Some(&at) = inside.get(&start) {
            numbers[at as usize] = 0;
        }
        let mut done = 0;
        let mut mix = Mix::new(purpose::CIRCLE);
        while done < order.len() {
            let pc = order[done];
            done += 1;
            successors(self.program, pc, |next| {
                if let Some(&at) = inside.get(&next)
                    && numbers[at as usize] == u32::MAX
                {
                    numbers[at as usize] = order.len() as u32;
                    order.push(next);
                }
            });
            mix.add_wide(self.node(pc, |next| match inside.get(&next) {
                Some(&at) => {
                    let mut mix = Mix::new(purpose::INSIDE);
                    mix.add(u64::from(numbers[at as usize]));
                    mix.finish()
                }
                None => hashes[next as usize],
            }));
        }
        (mix.finish(), order)
    }
}

/// The strongly connected components of a graph (Tarjan 1972, iteratively).
struct Components {
    index: Vec<u32>,
    low: Vec<u32>,
    stack: Vec<Pc>,
    next_index: u32,
}

impl Components {
    const NEW: u32 = u32::MAX;

    fn new(count: usize) -> Self {
        Self {
            index: vec![Self::NEW; count],
            low: vec![0; count],
            stack: Vec::new(),
            next_index: 0,
        }
    }

    /// Visits the components that can be reached from `start`, which was not visited yet, each
    /// after those it leads to. `known` is what is known of the nodes so far: `successors` leaves
    /// out those of which `visit` has made something known.
    fn visit_from<K: ?Sized>(
        &mut self,
        start: Pc,
        known: &mut K,
        successors: impl Fn(Pc, &K, &mut dyn FnMut(Pc)),
        mut visit: impl FnMut(&[Pc], &mut K),
    ) {
        let mut path: Vec<(Pc, usize, usize)> = Vec::new();
        let mut children: Vec<Pc> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(pc) = enter.take() {
                self.index[pc as usize] = self.next_index;
                self.low[pc as usize] = self.next_index;
                self.next_index += 1;
                self.stack.push(pc);
                let from = children.len();
                successors(pc, known, &mut |next| children.push(next));
                path.push((pc, from, from));
            }
            let Some((pc, from, at)) = path.last_mut() else {
                break;
            };
            if let Some(&child) = children.get(*at) {
                *at += 1;
                if self.index[child as usize] == Self::NEW {
                    enter = Some(child);
                } else {
                    // Its hash is not known, so its circle is still open.
                    self.low[*pc as usize] = self.low[*pc as usize].min(self.index[child as usize]);
                }
                continue;
            }
            let (pc, from) = (*pc, *from);
            children.truncate(from);
            path.pop();
            if let Some(&(parent, ..)) = path.last() {
                self.low[parent as usize] = self.low[parent as usize].min(self.low[pc as usize]);
            }
            if self.low[pc as usize] == self.index[pc as usize] {
                let from = self.stack.iter().rposition(|&member| member == pc);
                let members = self.stack.split_off(from.unwrap_or(0));
                visit(&members, known);
            }
        }
    }
}
