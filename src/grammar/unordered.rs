//! Items in any order: which members of a set are behind, and what may, and must, still come.
//!
//! A set of n members has 2ⁿ states of affairs. None is made before it is reached: the members
//! that are behind are a bit set, interned, whose number stands in a stack frame where a loop has
//! its count.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::limits::{Bound, LimitError};
use super::program::{KeyNode, MemberSet, NEVER, Program, SetMember, Span, UNBOUNDED};

/// Number of a state of affairs.
pub(crate) type SeenId = u32;

/// Above this many, a number would not fit beside the phase.
const MOST: usize = 1 << 30;

/// A bit a member.
type Bits = SmallVec<[u64; 1]>;

/// Which items of a set are behind.
#[derive(Clone, Debug)]
struct Seen {
    set: u32,
    members: Bits,
    /// Items that are no members; where nothing bounds them, no more than the minimum asks for.
    others: u32,
    /// Items in all, with the same reservation.
    items: u32,
    plan: Plan,
}

/// What must still come.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Required members that are not behind.
    required: u32,
    /// Items beyond those that the minimum asks for.
    lack: u32,
    /// Fewest bytes of all these, each with a separator before it; [`NEVER`] if they cannot be
    /// had.
    bytes: u64,
    /// Bytes of the longest item among the shortest ones that make up the lack.
    longest: u64,
}

/// All states of affairs that were met.
#[derive(Debug, Default)]
pub(crate) struct SeenSets {
    all: Vec<Seen>,
    ids: FxHashMap<(u32, Bits, u32), SeenId>,
}

impl SeenSets {
    /// Nothing is behind.
    pub(crate) fn none(&mut self, program: &Program, set: u32) -> Result<SeenId, LimitError> {
        let words = program.sets[set as usize].members.len().div_ceil(64);
        self.intern(program, set, SmallVec::from_elem(0, words), 0)
    }

    /// One member more.
    pub(crate) fn with_member(
        &mut self,
        program: &Program,
        seen: SeenId,
        member: u32,
    ) -> Result<SeenId, LimitError> {
        let Seen {
            set,
            ref members,
            others,
            ..
        } = self.all[seen as usize];
        let mut members = members.clone();
        members[member as usize / 64] |= 1 << (member % 64);
        self.intern(program, set, members, others)
    }

    /// One item more that is no member.
    pub(crate) fn with_other(
        &mut self,
        program: &Program,
        seen: SeenId,
    ) -> Result<SeenId, LimitError> {
        let Seen {
            set,
            ref members,
            others,
            ..
        } = self.all[seen as usize];
        let members = members.clone();
        self.intern(program, set, members, others.saturating_add(1))
    }

    fn intern(
        &mut self,
        program: &Program,
        set: u32,
        members: Bits,
        others: u32,
    ) -> Result<SeenId, LimitError> {
        let own = &program.sets[set as usize];
        let others = if own.max == UNBOUNDED && own.most_others == UNBOUNDED {
            others.min(own.min)
        } else {
            others
        };
        let key = (set, members, others);
        if let Some(&known) = self.ids.get(&key) {
            return Ok(known);
        }
        LimitError::check(Bound::Frames, self.all.len() + 1, MOST)?;
        let (_, members, _) = &key;
        let items = members.iter().map(|word| word.count_ones()).sum::<u32>();
        let items = items.saturating_add(others);
        let id = self.all.len() as SeenId;
        self.all.push(Seen {
            set,
            members: members.clone(),
            others,
            items,
            plan: plan(program, own, members, others, items),
        });
        self.ids.insert(key, id);
        Ok(id)
    }

    /// Bytes of memory held, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.all.capacity() * (size_of::<Seen>() + 48)
            + self
                .all
                .iter()
                .map(|seen| {
                    if seen.members.spilled() {
                        seen.members.len() * 16
                    } else {
                        0
                    }
                })
                .sum::<usize>()
    }

    fn of<'a>(&self, program: &'a Program, seen: SeenId) -> (&Seen, &'a MemberSet) {
        let seen = &self.all[seen as usize];
        (seen, &program.sets[seen.set as usize])
    }

    /// Whether everything that must be there is.
    pub(crate) fn may_end(&self, seen: SeenId) -> bool {
        let plan = self.all[seen as usize].plan;
        plan.required == 0 && plan.lack == 0
    }

    /// Whether an item can follow.
    pub(crate) fn goes_on(&self, program: &Program, seen: SeenId) -> bool {
        self.may_take_other(program, seen) || self.leads_on(program, seen, 0)
    }

    /// Whether a member that is no more than begun can still be taken: one below `node`.
    pub(crate) fn leads_on(&self, program: &Program, seen: SeenId, node: u32) -> bool {
        let (seen, set) = self.of(program, seen);
        if set.nodes.is_empty() {
            return false;
        }
        let node = set.nodes[node as usize];
        let room = seen.room(program, set) > 0;
        (node.first..node.last).any(|member| seen.may_take(program, set, member, room))
    }

    /// The members that can be taken whose keys end at `node`.
    pub(crate) fn ending(&self, program: &Program, seen: SeenId, node: u32) -> SmallVec<[u32; 1]> {
        let (seen, set) = self.of(program, seen);
        let node = set.nodes[node as usize];
        if node.ends == 0 {
            return SmallVec::new();
        }
        let room = seen.room(program, set) > 0;
        (node.first..node.first + node.ends)
            .filter(|&member| seen.may_take(program, set, member, room))
            .collect()
    }

    /// Whether an item that is no member can follow.
    pub(crate) fn may_take_other(&self, program: &Program, seen: SeenId) -> bool {
        let (seen, set) = self.of(program, seen);
        program.distance[set.other as usize] != NEVER
            && seen.others < set.most_others
            && seen.room(program, set) > 0
    }

    /// Fewest bytes after an item until what follows the set returns.
    pub(crate) fn distance_after_item(&self, program: &Program, seen: SeenId) -> u64 {
        let (seen, set) = self.of(program, seen);
        seen.plan
            .bytes
            .saturating_add(program.distance[set.next as usize])
    }

    /// The same where an item must come now, its separator behind.
    pub(crate) fn distance_to_item(&self, program: &Program, seen: SeenId) -> u64 {
        let (seen, set) = self.of(program, seen);
        let next = program.distance[set.next as usize];
        if seen.plan.required > 0 || seen.plan.lack > 0 {
            let bytes = seen.plan.bytes.saturating_add(next);
            return bytes.saturating_sub(separator(program, set));
        }
        let room = seen.room(program, set) > 0;
        let members = (0..set.members.len() as u32)
            .filter(|&member| seen.may_take(program, set, member, room))
            .map(|member| length(program, &set.members[member as usize]));
        let other =
            (room && seen.others < set.most_others).then(|| program.distance[set.other as usize]);
        members
            .chain(other)
            .min()
            .unwrap_or(NEVER)
            .saturating_add(next)
    }

    /// The same from within a key.
    pub(crate) fn distance_from_key(&self, program: &Program, seen: SeenId, node: u32) -> u64 {
        let (seen, set) = self.of(program, seen);
        let next = program.distance[set.next as usize];
        let separator = separator(program, set);
        let node = set.nodes[node as usize];
        let room = seen.room(program, set) > 0;
        (node.first..node.last)
            .filter(|&member| seen.may_take(program, set, member, room))
            .map(|member| {
                let member = &set.members[member as usize];
                let whole = length(program, member);
                let rest = whole.saturating_sub(u64::from(node.depth));
                // What this member does not leave to come.
                let done = if member.required {
                    separator.saturating_add(whole)
                } else if seen.plan.lack > 0 {
                    separator.saturating_add(whole.min(seen.plan.longest))
                } else {
                    0
                };
                let after = seen.plan.bytes.saturating_sub(done);
                rest.saturating_add(after).saturating_add(next)
            })
            .min()
            .unwrap_or(NEVER)
    }

    /// The members that are not behind.
    pub(crate) fn members_left(
        &self,
        program: &Program,
        seen: SeenId,
    ) -> impl Iterator<Item = u32> {
        let (seen, set) = self.of(program, seen);
        (0..set.members.len() as u32).filter(|&member| !seen.has(member))
    }

    /// How many items besides the required ones must, and may, still come, and how many that are
    /// no members: with the members that are left, all that tells two states of affairs apart.
    pub(crate) fn counts_left(&self, program: &Program, seen: SeenId) -> [u32; 3] {
        let (seen, set) = self.of(program, seen);
        [
            seen.plan.lack,
            seen.room(program, set),
            set.most_others.saturating_sub(seen.others),
        ]
    }
}

impl Seen {
    fn has(&self, member: u32) -> bool {
        has(&self.members, member)
    }

    /// How many items may come besides the required ones.
    fn room(&self, program: &Program, set: &MemberSet) -> u32 {
        most(program, set)
            .saturating_sub(self.items)
            .saturating_sub(self.plan.required)
    }

    fn may_take(&self, program: &Program, set: &MemberSet, member: u32, room: bool) -> bool {
        let own = &set.members[member as usize];
        (room || own.required) && !self.has(member) && program.distance[own.value as usize] != NEVER
    }
}

fn has(members: &Bits, member: u32) -> bool {
    members[member as usize / 64] >> (member % 64) & 1 != 0
}

/// Most items: one, if no separator can be written.
fn most(program: &Program, set: &MemberSet) -> u32 {
    if program.distance[set.separator as usize] == NEVER {
        set.max.min(1)
    } else {
        set.max
    }
}

/// Fewest bytes between two items; none where nothing can be written, as there is one item only.
fn separator(program: &Program, set: &MemberSet) -> u64 {
    match program.distance[set.separator as usize] {
        NEVER => 0,
        separator => separator,
    }
}

/// Fewest bytes of a member.
fn length(program: &Program, member: &SetMember) -> u64 {
    (member.key.len() as u64).saturating_add(program.distance[member.value as usize])
}

/// Fewest bytes from the beginning of a set until what follows it returns.
pub(super) fn shortest(program: &Program, set: &MemberSet) -> u64 {
    let members = SmallVec::from_elem(0, set.members.len().div_ceil(64));
    let plan = plan(program, set, &members, 0, 0);
    let next = program.distance[set.next as usize];
    if plan.required == 0 && plan.lack == 0 {
        return next;
    }
    let items = u64::from(plan.required) + u64::from(plan.lack);
    if plan.bytes == NEVER || items > u64::from(most(program, set)) {
        return NEVER;
    }
    // The first item has no separator.
    let bytes = plan.bytes.saturating_sub(separator(program, set));
    bytes.saturating_add(next)
}

/// What must still come when these items are behind.
fn plan(program: &Program, set: &MemberSet, members: &Bits, others: u32, items: u32) -> Plan {
    let separator = separator(program, set);
    let mut required = 0;
    let mut bytes = 0_u64;
    let mut optional = Vec::new();
    for (number, member) in (0..).zip(&set.members) {
        if has(members, number) {
            continue;
        }
        if member.required {
            required += 1;
            let item = separator.saturating_add(length(program, member));
            bytes = bytes.saturating_add(item);
        }
    }
    let lack = set.min.saturating_sub(items.saturating_add(required));
    let mut longest = 0;
    if lack > 0 {
        optional.extend(
            (0..)
                .zip(&set.members)
                .filter(|&(number, member)| !member.required && !has(members, number))
                .map(|(_, member)| length(program, member))
                .filter(|&length| length != NEVER),
        );
        optional.sort_unstable();
        // Members as long as they are the shorter ones, then others, then the longer members.
        let other = program.distance[set.other as usize];
        let left = if other == NEVER {
            0
        } else {
            set.most_others.saturating_sub(others) as usize
        };
        let cheap = optional.partition_point(|&length| length <= other);
        let first = (lack as usize).min(cheap);
        let between = (lack as usize - first).min(left);
        let chosen = lack as usize - between;
        if chosen > optional.len() {
            bytes = NEVER;
        } else {
            let sum = optional[..chosen]
                .iter()
                .fold(0_u64, |sum, &length| sum.saturating_add(length));
            let others = (between as u64).saturating_mul(other.min(NEVER - 1));
            let separators = u64::from(lack).saturating_mul(separator);
            longest = optional[..chosen].last().copied().unwrap_or(0);
            if between > 0 {
                longest = longest.max(other);
            }
            bytes = bytes
                .saturating_add(sum)
                .saturating_add(if between > 0 { others } else { 0 })
                .saturating_add(separators);
        }
    }
    Plan {
        required,
        lack,
        bytes,
        longest,
    }
}

/// The trie of the keys of `members`, which are sorted by them.
pub(super) fn trie(members: &[SetMember]) -> (Vec<KeyNode>, Vec<(u8, u32)>) {
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    if members.is_empty() {
        return (nodes, edges);
    }
    nodes.push(KeyNode {
        depth: 0,
        first: 0,
        last: members.len() as u32,
        ends: 0,
        edges: Span { start: 0, len: 0 },
    });
    let mut done = 0;
    while let Some(&node) = nodes.get(done) {
        let depth = node.depth as usize;
        let key = |member: u32| &members[member as usize].key;
        let start = edges.len() as u32;
        let mut from = node.first;
        while from < node.last && key(from).len() == depth {
            from += 1;
        }
        let ends = from - node.first;
        while from < node.last {
            let byte = key(from)[depth];
            let mut to = from + 1;
            while to < node.last && key(to)[depth] == byte {
                to += 1;
            }
            edges.push((byte, nodes.len() as u32));
            nodes.push(KeyNode {
                depth: node.depth + 1,
                first: from,
                last: to,
                ends: 0,
                edges: Span { start: 0, len: 0 },
            });
            from = to;
        }
        let own = &mut nodes[done];
        own.ends = ends;
        own.edges = Span {
            start,
            len: edges.len() as u32 - start,
        };
        done += 1;
    }
    (nodes, edges)
}
