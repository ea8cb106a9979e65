//! Deterministic automata over code points: what makes patterns, lengths, exclusions and number
//! bounds hold together.
//!
//! Subset construction over a partition of the code points into classes that no expression tells
//! apart. Every automaton is total (one state may be dead), so that the complement only flips
//! acceptance. Sizes are bounded: a construction that would exceed the limit gives nothing.

use rustc_hash::FxHashMap;

use super::ecma::words;
use super::nfa::{Nfa, Node, Seen, Side};
use super::partition::Partition;
use super::re::Re;
use crate::grammar::ast::CharClass;

/// A total deterministic automaton; state 0 is the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automaton {
    alphabet: Alphabet,
    /// `table[state * classes + class]` is the next state.
    table: Vec<u32>,
    accepting: Vec<bool>,
}

/// A partition of the code points.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alphabet {
    /// First code point of each interval, ascending from 0, and its class.
    intervals: Vec<(u32, u32)>,
    classes: usize,
}

impl Alphabet {
    /// The coarsest partition that respects every one of `sets`.
    fn of(sets: &[&CharClass]) -> Self {
        let mut starts: Vec<u32> = vec![0];
        for set in sets {
            for &(low, high) in set.ranges() {
                starts.push(u32::from(low));
                starts.push(u32::from(high) + 1);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&start| start <= u32::from(char::MAX));
        let mut cursors = vec![0usize; sets.len()];
        let mut ids: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
        let mut intervals = Vec::with_capacity(starts.len());
        for start in starts {
            let mut signature = vec![0u64; sets.len().div_ceil(64)];
            for (index, set) in sets.iter().enumerate() {
                let cursor = &mut cursors[index];
                while set
                    .ranges()
                    .get(*cursor)
                    .is_some_and(|range| u32::from(range.1) < start)
                {
                    *cursor += 1;
                }
                if set
                    .ranges()
                    .get(*cursor)
                    .is_some_and(|range| u32::from(range.0) <= start)
                {
                    signature[index / 64] |= 1 << (index % 64);
                }
            }
            let next = ids.len() as u32;
            let class = *ids.entry(signature).or_insert(next);
            intervals.push((start, class));
        }
        Self {
            intervals,
            classes: ids.len(),
        }
    }

    fn class_of(&self, c: char) -> u32 {
        let code = u32::from(c);
        let index = self.intervals.partition_point(|&(start, _)| start <= code);
        self.intervals.get(index.wrapping_sub(1)).map_or(0, |i| i.1)
    }

    /// The code points of each class.
    fn members(&self) -> Vec<CharClass> {
        let mut ranges: Vec<Vec<(char, char)>> = vec![Vec::new(); self.classes];
        for (index, &(start, class)) in self.intervals.iter().enumerate() {
            let end = self
                .intervals
                .get(index + 1)
                .map_or(u32::from(char::MAX), |next| next.0 - 1);
            // A bound inside the surrogate gap moves to its edge.
            let low = char::from_u32(start).unwrap_or('\u{E000}');
            let high = char::from_u32(end).unwrap_or('\u{D7FF}');
            if low <= high {
                ranges[class as usize].push((low, high));
            }
        }
        ranges.into_iter().map(CharClass::from_ranges).collect()
    }
}

impl Automaton {
    /// The texts in which `re` is found (`whole`: that it matches from start to end), with at
    /// most `limit` states. Nothing if it grows beyond, or holds a look-ahead.
    pub fn new(re: &Re, whole: bool, limit: usize) -> Option<Self> {
        let mut nfa = Nfa {
            limit: limit.saturating_mul(8).min(200_000),
            ..Nfa::default()
        };
        let mut end = nfa.push(Node::Match)?;
        if !whole {
            end = nfa.build(&Re::all(), end)?;
        }
        let mut start = nfa.build(re, end)?;
        if !whole {
            start = nfa.build(&Re::all(), start)?;
        }
        let word = words();
        let mut sets: Vec<&CharClass> = nfa.classes.iter().collect();
        if nfa.boundaries {
            sets.push(&word);
        }
        let alphabet = Alphabet::of(&sets);
        let members = alphabet.members();
        let sample: Vec<Option<char>> = members
            .iter()
            .map(|class| class.ranges().first().map(|range| range.0))
            .collect();
        // contains[class][set]: whether the class of the alphabet lies in the set.
        let contains: Vec<Vec<bool>> = sample
            .iter()
            .map(|c| {
                nfa.classes
                    .iter()
                    .map(|set| c.is_some_and(|c| set.contains(c)))
                    .collect()
            })
            .collect();
        let side = |class: usize| match sample[class] {
            Some(c) if nfa.boundaries && word.contains(c) => Side::Word,
            _ => Side::Other,
        };

        let mut ids: FxHashMap<(Vec<u32>, Side), u32> = FxHashMap::default();
        let mut order = vec![(vec![start], Side::Edge)];
        ids.insert(order[0].clone(), 0);
        let mut table = Vec::new();
        let mut accepting = Vec::new();
        let mut seen = Seen::default();
        let mut at = 0;
        while at < order.len() {
            let (set, before) = order[at].clone();
            let last = nfa.closure(&set, before, Side::Edge, &mut seen);
            accepting.push(
                last.iter()
                    .any(|&state| matches!(nfa.states[state as usize], Node::Match)),
            );
            let other = nfa.closure(&set, before, Side::Other, &mut seen);
            let word_closure = nfa
                .boundaries
                .then(|| nfa.closure(&set, before, Side::Word, &mut seen));
            for (class, here) in contains.iter().enumerate() {
                let side = side(class);
                let closure = match (&word_closure, side) {
                    (Some(closure), Side::Word) => closure,
                    _ => &other,
                };
                let mut next: Vec<u32> = closure
                    .iter()
                    .filter_map(|&state| match nfa.states[state as usize] {
                        Node::Class(index, next) if here[index as usize] => Some(next),
                        _ => None,
                    })
                    .collect();
                next.sort_unstable();
                next.dedup();
                let key = (next, side);
                let id = match ids.get(&key) {
                    Some(&id) => id,
                    None => {
                        if order.len() >= limit {
                            return None;
                        }
                        let id = order.len() as u32;
                        ids.insert(key.clone(), id);
                        order.push(key);
                        id
                    }
                };
                table.push(id);
            }
            at += 1;
        }
        Some(
            Self {
                alphabet,
                table,
                accepting,
            }
            .minimal(),
        )
    }

    /// Exactly the `texts`, with a limit of states.
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = &'t str>, limit: usize) -> Option<Self> {
        let mut nodes: Vec<(FxHashMap<char, u32>, bool)> = vec![(FxHashMap::default(), false)];
        for text in texts {
            let mut at = 0usize;
            for c in text.chars() {
                let fresh = nodes.len() as u32;
                let next = *nodes[at].0.entry(c).or_insert(fresh);
                if next == fresh {
                    if nodes.len() >= limit {
                        return None;
                    }
                    nodes.push((FxHashMap::default(), false));
                }
                at = next as usize;
            }
            nodes[at].1 = true;
        }
        let mut chars: Vec<char> = nodes.iter().flat_map(|n| n.0.keys().copied()).collect();
        chars.sort_unstable();
        chars.dedup();
        let sets: Vec<CharClass> = chars
            .iter()
            .map(|&c| CharClass::from_ranges([(c, c)]))
            .collect();
        let alphabet = Alphabet::of(&sets.iter().collect::<Vec<_>>());
        let dead = nodes.len() as u32;
        let mut table = vec![dead; (nodes.len() + 1) * alphabet.classes];
        let mut accepting: Vec<bool> = nodes.iter().map(|node| node.1).collect();
        accepting.push(false);
        for (index, (edges, _)) in nodes.iter().enumerate() {
            for (&c, &next) in edges {
                table[index * alphabet.classes + alphabet.class_of(c) as usize] = next;
            }
        }
        Some(Self {
            alphabet,
            table,
            accepting,
        })
    }

    /// An automaton from its transition function over `sets` (disjoint or not) and everything
    /// else; used for arithmetic on digits.
    pub fn from_table(
        sets: &[CharClass],
        states: usize,
        accepting: impl Fn(usize) -> bool,
        next: impl Fn(usize, char) -> usize,
    ) -> Self {
        let alphabet = Alphabet::of(&sets.iter().collect::<Vec<_>>());
        let members = alphabet.members();
        let mut table = Vec::with_capacity(states * alphabet.classes);
        for state in 0..states {
            for class in &members {
                let c = class.ranges().first().map_or('\0', |range| range.0);
                table.push(next(state, c) as u32);
            }
        }
        Self {
            alphabet,
            table,
            accepting: (0..states).map(accepting).collect(),
        }
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.accepting.len()
    }

    /// Whether no text is accepted.
    pub fn is_empty(&self) -> bool {
        // Every state is reachable by construction.
        !self.accepting.contains(&true)
    }

    /// Whether `text` is accepted.
    pub fn accepts(&self, text: &str) -> bool {
        let mut state = 0usize;
        for c in text.chars() {
            let class = self.alphabet.class_of(c) as usize;
            state = self.table[state * self.alphabet.classes + class] as usize;
        }
        self.accepting[state]
    }

    /// The texts that this one does not accept.
    #[must_use]
    pub fn complement(mut self) -> Self {
        for accepting in &mut self.accepting {
            *accepting = !*accepting;
        }
        self
    }

    /// The texts that both accept.
    pub fn intersection(&self, other: &Self, limit: usize) -> Option<Self> {
        let mine = self.alphabet.members();
        let theirs = other.alphabet.members();
        let sets: Vec<&CharClass> = mine.iter().chain(&theirs).collect();
        let alphabet = Alphabet::of(&sets);
        let pairs: Vec<(u32, u32)> = alphabet
            .members()
            .iter()
            .map(|class| {
                let c = class.ranges().first().map_or('\0', |range| range.0);
                (self.alphabet.class_of(c), other.alphabet.class_of(c))
            })
            .collect();
        let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        ids.insert((0, 0), 0);
        let mut order = vec![(0u32, 0u32)];
        let mut table = Vec::new();
        let mut accepting = Vec::new();
        let mut at = 0;
        while let Some(&(a, b)) = order.get(at) {
            accepting.push(self.accepting[a as usize] && other.accepting[b as usize]);
            for &(x, y) in &pairs {
                let key = (
                    self.table[a as usize * self.alphabet.classes + x as usize],
                    other.table[b as usize * other.alphabet.classes + y as usize],
                );
                let fresh = order.len() as u32;
                let id = *ids.entry(key).or_insert(fresh);
                if id == fresh {
                    if order.len() >= limit {
                        return None;
                    }
                    order.push(key);
                }
                table.push(id);
            }
            at += 1;
        }
        Some(
            Self {
                alphabet,
                table,
                accepting,
            }
            .minimal(),
        )
    }

    /// The accepted texts of `min..=max` code points.
    pub fn with_length(&self, min: u64, max: Option<u64>, limit: usize) -> Option<Self> {
        let classes = self.alphabet.classes;
        let clamp = max.map_or(min, |max| max.saturating_add(1));
        let mut ids: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        ids.insert((0, 0), 0);
        let mut order = vec![(0u32, 0u64)];
        let live = self.live();
        let (mut table, mut accepting) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(&(state, length)) = order.get(at) {
            accepting.push(
                self.accepting[state as usize]
                    && length >= min
                    && max.is_none_or(|max| length <= max),
            );
            for class in 0..classes {
                let next = self.table[state as usize * classes + class];
                // Dead states need no count.
                let length = if live[next as usize] {
                    (length + 1).min(clamp)
                } else {
                    clamp
                };
                let key = (next, length);
                let fresh = order.len() as u32;
                let id = *ids.entry(key).or_insert(fresh);
                if id == fresh {
                    if order.len() >= limit {
                        return None;
                    }
                    order.push(key);
                }
                table.push(id);
            }
            at += 1;
        }
        Some(
            Self {
                alphabet: self.alphabet.clone(),
                table,
                accepting,
            }
            .minimal(),
        )
    }

    /// Which states can still accept.
    pub fn live(&self) -> Vec<bool> {
        let classes = self.alphabet.classes;
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); self.states()];
        for (index, &next) in self.table.iter().enumerate() {
            back[next as usize].push((index / classes) as u32);
        }
        let mut live = self.accepting.clone();
        let mut stack: Vec<u32> = (0..self.states() as u32)
            .filter(|&state| live[state as usize])
            .collect();
        while let Some(state) = stack.pop() {
            for &from in &back[state as usize] {
                if !std::mem::replace(&mut live[from as usize], true) {
                    stack.push(from);
                }
            }
        }
        live
    }

    /// Whether the state accepts.
    pub fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// The code points of each class of the alphabet.
    pub fn members(&self) -> Vec<CharClass> {
        self.alphabet.members()
    }

    /// Where `state` leads, by target in order of the first code point that leads there;
    /// `members` are this automaton's own.
    pub fn edges(&self, state: u32, members: &[CharClass]) -> Vec<(u32, CharClass)> {
        let classes = self.alphabet.classes;
        let row = &self.table[state as usize * classes..(state as usize + 1) * classes];
        let mut out: Vec<(u32, Vec<(char, char)>)> = Vec::new();
        for (class, members) in members.iter().enumerate() {
            let target = row[class];
            match out.iter_mut().find(|edge| edge.0 == target) {
                Some(edge) => edge.1.extend(members.ranges()),
                None => out.push((target, members.ranges().to_vec())),
            }
        }
        out.into_iter()
            .map(|(target, ranges)| (target, CharClass::from_ranges(ranges)))
            .collect()
    }

    /// The same texts with as few states as possible (Hopcroft 1971), start first.
    fn minimal(self) -> Self {
        let classes = self.alphabet.classes;
        let states = self.states();
        // Who leads where: from[starts[target * classes + class]..] are the sources.
        let place = |target: u32, class: usize| target as usize * classes + class;
        let mut starts = vec![0u32; states * classes + 1];
        for (index, &target) in self.table.iter().enumerate() {
            starts[place(target, index % classes) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut filled = starts.clone();
        let mut from = vec![0u32; self.table.len()];
        for (index, &target) in self.table.iter().enumerate() {
            let at = &mut filled[place(target, index % classes)];
            from[*at as usize] = (index / classes) as u32;
            *at += 1;
        }
        let mut parts = Partition::new(&self.accepting);
        let mut open: Vec<(u32, usize)> = (0..classes)
            .flat_map(|class| (0..parts.blocks() as u32).map(move |block| (block, class)))
            .collect();
        let mut touched = Vec::new();
        let mut sources = Vec::new();
        while let Some((block, class)) = open.pop() {
            sources.clear();
            for &state in parts.members(block) {
                let place = place(state, class);
                sources.extend(&from[starts[place] as usize..starts[place + 1] as usize]);
            }
            touched.clear();
            for &source in &sources {
                parts.mark(source, &mut touched);
            }
            for &split in &touched {
                let Some(fresh) = parts.split(split) else {
                    continue;
                };
                // Where the whole is still to be looked at, now both halves are; elsewhere the
                // smaller half is enough, and that is the new one.
                open.extend((0..classes).map(|class| (fresh, class)));
            }
        }
        // Blocks are numbered by their first state, and the start is the first state.
        let mut ids = vec![u32::MAX; parts.blocks()];
        let mut firsts = Vec::with_capacity(ids.len());
        for state in 0..states {
            let id = &mut ids[parts.block_of(state) as usize];
            if *id == u32::MAX {
                *id = firsts.len() as u32;
                firsts.push(state);
            }
        }
        let mut table = Vec::with_capacity(firsts.len() * classes);
        for &state in &firsts {
            let row = &self.table[state * classes..(state + 1) * classes];
            table.extend(
                row.iter()
                    .map(|&to| ids[parts.block_of(to as usize) as usize]),
            );
        }
        Self {
            alphabet: self.alphabet,
            table,
            accepting: firsts.iter().map(|&state| self.accepting[state]).collect(),
        }
    }
}
