//! Compiles a grammar's syntax tree into a [`Program`].
//!
//! Expressions are compiled back to front, each knowing what follows it. Code points become
//! ranges of UTF-8 bytes; literals that are alternatives of each other become a trie; branches
//! whose bytes differ are merged into one instruction. Bounded repetition becomes a counter and is
//! never unrolled; a body that may be empty is compiled in a form that is not, so that counting
//! always makes progress.

use regex_syntax::utf8::Utf8Sequences;
use rustc_hash::FxHashMap;

use super::analysis;
use super::ast::{CharClass, Expr, Grammar, RuleId, TokenReference};
use super::distance;
use super::limits::{Bound, LimitError, Limits};
use super::program::{
    DEAD, EXIT, Edge, Instruction, NEVER, NO_SLOT, Pc, Program, RET, Routine, Span, UNBOUNDED,
};

/// A token that a grammar names, once a vocabulary is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolved {
    /// Its number.
    pub id: u32,
    /// How many bytes it spells (0 for control tokens).
    pub bytes: u32,
}

/// What a grammar must know of the vocabulary that it will be matched with.
pub trait Alphabet {
    /// Whether a text with this byte can be spelled at all.
    fn spells(&self, byte: u8) -> bool;
    /// The token that a grammar names.
    fn resolve(&self, token: &TokenReference) -> Option<Resolved>;
}

/// Every byte, and no token: for matching text without a vocabulary.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllBytes;

impl Alphabet for AllBytes {
    fn spells(&self, _: u8) -> bool {
        true
    }

    fn resolve(&self, _: &TokenReference) -> Option<Resolved> {
        None
    }
}

/// Why a grammar cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// No text that the grammar accepts can be spelled.
    #[error("nothing that the grammar accepts can be spelled: the vocabulary has no token for {}",
        bytes.iter().map(|byte| format!("0x{byte:02X}")).collect::<Vec<_>>().join(", "))]
    CannotBeSpelled {
        /// Bytes that the vocabulary lacks and the grammar needs.
        bytes: Vec<u8>,
    },
    /// The grammar accepts no text at all.
    #[error("the grammar accepts no text at all: rule `{rule}` cannot end")]
    MatchesNothing {
        /// The rule that cannot be matched: the root.
        rule: String,
    },
    /// A rule begins with itself.
    #[error("left recursion: {}", path.join(" → "))]
    LeftRecursion {
        /// The rules of the circle, the first one repeated at the end.
        path: Vec<String>,
    },
    /// The vocabulary has no such token.
    #[error("rule `{rule}` names the token {token}, which the vocabulary does not have")]
    UnknownToken {
        /// The rule that names it.
        rule: String,
        /// As it is written in GBNF.
        token: String,
    },
    /// A limit was exceeded.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Compiles `grammar` for a vocabulary.
pub(crate) fn lower(
    grammar: &Grammar,
    alphabet: &dyn Alphabet,
    limits: &Limits,
) -> Result<Program, LowerError> {
    LimitError::check(Bound::Rules, grammar.rules().len(), limits.rules)?;
    // A level of the source becomes at most three of the tree: alternatives, sequence, repetition.
    let depth = limits.nesting.saturating_mul(3).saturating_add(8);
    for rule in grammar.rules() {
        if analysis::depth(&rule.body) > depth {
            return Err(LimitError {
                bound: Bound::Nesting,
                limit: limits.nesting,
            }
            .into());
        }
    }
    let nullable = analysis::nullable_rules(grammar);
    if let Some(circle) = analysis::left_recursion(grammar, &nullable) {
        let path = circle.iter().map(|&id| grammar.rule(id).name.clone());
        return Err(LowerError::LeftRecursion {
            path: path.collect(),
        });
    }
    let mut lowerer = Lowerer::new(grammar, alphabet, limits, nullable);
    let start = lowerer.routine(Target::Rule(grammar.root()));
    while let Some((routine, target)) = lowerer.open.pop() {
        lowerer.compile_routine(routine, &target)?;
    }
    lowerer.finish(start)
}

/// What a routine matches.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Target<'a> {
    Rule(RuleId),
    /// The rule without the empty string.
    NonEmpty(RuleId),
    /// A long repetition and the character that ends it, such as the rest of a string: the same
    /// wherever it stands.
    Rest(&'a Expr, char),
    /// A class of so many ranges that it is compiled only once.
    Class(CharClass),
}

struct Lowerer<'a> {
    grammar: &'a Grammar,
    alphabet: &'a dyn Alphabet,
    limits: &'a Limits,
    nullable: Vec<bool>,
    instructions: Vec<Instruction>,
    edges: Vec<Edge>,
    targets: Vec<Pc>,
    slot_of: Vec<u16>,
    slots: Vec<String>,
    routines: Vec<Routine>,
    known: FxHashMap<Target<'a>, u32>,
    open: Vec<(u32, Target<'a>)>,
    unspellable: [bool; 256],
    spellable: [bool; 256],
    /// The slot of live values whose rule is being compiled.
    slot: u16,
    /// Where a routine of that rule returns.
    ret: Pc,
    rule: RuleId,
}

/// Ranges above which a class gets a routine of its own.
const LARGE_CLASS: usize = 12;

impl<'a> Lowerer<'a> {
    fn new(
        grammar: &'a Grammar,
        alphabet: &'a dyn Alphabet,
        limits: &'a Limits,
        nullable: Vec<bool>,
    ) -> Self {
        Self {
            grammar,
            alphabet,
            limits,
            nullable,
            instructions: vec![
                Instruction::Ret,
                Instruction::Split(Span { start: 0, len: 0 }),
                Instruction::Exit,
            ],
            edges: Vec::new(),
            targets: Vec::new(),
            slot_of: vec![NO_SLOT; 3],
            slots: Vec::new(),
            routines: Vec::new(),
            known: FxHashMap::default(),
            open: Vec::new(),
            unspellable: [false; 256],
            spellable: std::array::from_fn(|byte| alphabet.spells(byte as u8)),
            slot: NO_SLOT,
            ret: RET,
            rule: grammar.root(),
        }
    }

    /// The routine for `target`, to be compiled if it is new.
    fn routine(&mut self, target: Target<'a>) -> u32 {
        if let Some(&known) = self.known.get(&target) {
            return known;
        }
        let slot = match &target {
            // A rule that may be empty leaves no trace where it was passed over, so it cannot be
            // tracked as a slot.
            Target::Rule(id) if self.is_slot(*id) => {
                self.slots.push(self.grammar.rule(*id).name.clone());
                (self.slots.len() - 1) as u16
            }
            _ => NO_SLOT,
        };
        let id = self.routines.len() as u32;
        self.routines.push(Routine { entry: DEAD, slot });
        self.known.insert(target.clone(), id);
        self.open.push((id, target));
        id
    }

    fn is_slot(&self, id: RuleId) -> bool {
        self.grammar.rule(id).volatile
            && !self.nullable[id.0 as usize]
            && self.slots.len() < usize::from(NO_SLOT)
    }

    fn compile_routine(&mut self, routine: u32, target: &Target<'a>) -> Result<(), LowerError> {
        self.slot = self.routines[routine as usize].slot;
        self.ret = RET;
        if self.slot != NO_SLOT {
            // A return of its own keeps the frame of a call at the rule's very end, so that what
            // is on the stack always shows that the rule was entered.
            self.ret = self.push(Instruction::Ret)?;
        }
        let ret = self.ret;
        let grammar = self.grammar;
        let entry = match target {
            Target::Rule(id) => {
                self.rule = *id;
                self.expr(&grammar.rule(*id).body, ret)?
            }
            Target::NonEmpty(id) => {
                self.rule = *id;
                self.non_empty(&grammar.rule(*id).body, ret)?
            }
            Target::Rest(repeat, close) => {
                let next = self.bytes(close.encode_utf8(&mut [0; 4]).as_bytes(), ret)?;
                self.expr(repeat, next)?
            }
            Target::Class(class) => self.class_here(class, ret)?,
        };
        self.routines[routine as usize].entry = entry;
        Ok(())
    }

    fn push(&mut self, instruction: Instruction) -> Result<Pc, LowerError> {
        LimitError::check(
            Bound::Instructions,
            self.instructions.len() + 1,
            self.limits.instructions,
        )?;
        self.instructions.push(instruction);
        self.slot_of.push(self.slot);
        Ok((self.instructions.len() - 1) as Pc)
    }

    /// Compiles `expr` so that `next` follows it.
    fn expr(&mut self, expr: &'a Expr, next: Pc) -> Result<Pc, LowerError> {
        if next == DEAD {
            return Ok(DEAD);
        }
        match expr {
            Expr::Empty => Ok(next),
            Expr::Literal(text) => self.bytes(text.as_bytes(), next),
            Expr::Class(class) => self.class(class, next),
            Expr::Seq(parts) => self.sequence(parts, next),
            Expr::Alt(parts) => self.alternatives(parts, next),
            Expr::Repeat { expr, min, max } => self.repeat(expr, *min, *max, next),
            Expr::Rule(id) => {
                let grammar = self.grammar;
                let rule = grammar.rule(*id);
                let mut size = SMALL_RULE;
                if !rule.volatile && is_small(&rule.body, &mut size) {
                    // Copied to where it is used: fewer frames, and alternatives that merge.
                    return self.expr(&rule.body, next);
                }
                let routine = self.routine(Target::Rule(*id));
                self.push(Instruction::Call { routine, next })
            }
            Expr::Token { token, negated } => self.token(token, *negated, next),
        }
    }

    /// Compiles what `expr` matches except the empty string.
    fn non_empty(&mut self, expr: &'a Expr, next: Pc) -> Result<Pc, LowerError> {
        if !analysis::is_nullable(expr, &self.nullable) {
            return self.expr(expr, next);
        }
        if next == DEAD {
            return Ok(DEAD);
        }
        match expr {
            Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Token { .. } => Ok(DEAD),
            Expr::Seq(parts) => {
                // Either the first part is not empty, or it is and the rest is not.
                let mut whole = next;
                let mut result = DEAD;
                for part in parts.iter().rev() {
                    let begins_here = self.non_empty(part, whole)?;
                    result = self.split(&[begins_here, result])?;
                    whole = self.expr(part, whole)?;
                }
                Ok(result)
            }
            Expr::Alt(parts) => {
                let mut targets = Vec::with_capacity(parts.len());
                for part in parts {
                    targets.push(self.non_empty(part, next)?);
                }
                self.split(&targets)
            }
            Expr::Repeat { expr, min, max } => match max {
                Some(0) => Ok(DEAD),
                // Each iteration that counts is not empty, and there is at least one.
                _ => self.count(expr, (*min).clamp(1, 1), *max, next),
            },
            Expr::Rule(id) => {
                let routine = self.routine(Target::NonEmpty(*id));
                self.push(Instruction::Call { routine, next })
            }
        }
    }

    fn sequence(&mut self, parts: &'a [Expr], next: Pc) -> Result<Pc, LowerError> {
        let mut next = next;
        let mut at = parts.len();
        while at > 0 {
            at -= 1;
            // A long repetition gets a frame of its own together with the character that ends it:
            // what it allows then does not depend on what comes after, and is computed once for
            // all grammars.
            if let Expr::Literal(text) = &parts[at]
                && at > 0
                && self.is_wide_repeat(&parts[at - 1], 3)
                && let Some(close) = text.chars().next()
            {
                at -= 1;
                next = self.bytes(&text.as_bytes()[close.len_utf8()..], next)?;
                if next == DEAD {
                    return Ok(DEAD);
                }
                let routine = self.routine(Target::Rest(&parts[at], close));
                next = self.push(Instruction::Call { routine, next })?;
            } else {
                next = self.expr(&parts[at], next)?;
            }
        }
        Ok(next)
    }

    /// Whether `expr` repeats something that most characters match.
    fn is_wide_repeat(&self, expr: &Expr, depth: usize) -> bool {
        match expr {
            Expr::Repeat { expr, max, .. } => {
                max.is_none_or(|max| max > 1) && self.is_wide(expr, depth)
            }
            _ => false,
        }
    }

    fn is_wide(&self, expr: &Expr, depth: usize) -> bool {
        match expr {
            Expr::Class(class) => {
                let members = |&(low, high): &(char, char)| u32::from(high) - u32::from(low) + 1;
                class.ranges().iter().map(members).sum::<u32>() >= 48
            }
            Expr::Alt(parts) => parts.iter().any(|part| self.is_wide(part, depth)),
            Expr::Rule(id) if depth > 0 => self.is_wide(&self.grammar.rule(*id).body, depth - 1),
            _ => false,
        }
    }

    fn repeat(
        &mut self,
        body: &'a Expr,
        min: u32,
        max: Option<u32>,
        next: Pc,
    ) -> Result<Pc, LowerError> {
        match (min, max) {
            (_, Some(0)) => Ok(next),
            (1, Some(1)) => self.expr(body, next),
            (0, Some(1)) => {
                let body = self.expr(body, next)?;
                self.split(&[body, next])
            }
            (0 | 1, None) => {
                let again = self.push(Instruction::Split(Span { start: 0, len: 0 }))?;
                let body = self.expr(body, again)?;
                self.fill(again, &[body, next])?;
                Ok(if min == 0 { again } else { body })
            }
            _ if analysis::is_nullable(body, &self.nullable) => {
                let some = self.count(body, 1, max, next)?;
                self.split(&[some, next])
            }
            _ => self.count(body, min, max, next),
        }
    }

    /// A repetition of what `body` matches without the empty string.
    fn count(
        &mut self,
        body: &'a Expr,
        min: u32,
        max: Option<u32>,
        next: Pc,
    ) -> Result<Pc, LowerError> {
        if max == Some(1) && min <= 1 {
            let body = self.non_empty(body, next)?;
            return if min == 0 {
                self.split(&[body, next])
            } else {
                Ok(body)
            };
        }
        if max.is_none() && min <= 1 {
            let again = self.push(Instruction::Split(Span { start: 0, len: 0 }))?;
            let body = self.non_empty(body, again)?;
            self.fill(again, &[body, next])?;
            return Ok(if min == 0 { again } else { body });
        }
        let body = self.non_empty(body, self.ret)?;
        self.push(Instruction::Loop {
            body,
            next,
            min,
            max: max.unwrap_or(UNBOUNDED),
        })
    }

    fn token(&mut self, token: &TokenReference, negated: bool, next: Pc) -> Result<Pc, LowerError> {
        let Some(resolved) = self.alphabet.resolve(token) else {
            return Err(LowerError::UnknownToken {
                rule: self.grammar.rule(self.rule).name.clone(),
                token: match token {
                    TokenReference::Id(id) => format!("<[{id}]>"),
                    TokenReference::Text(text) => text.clone(),
                },
            });
        };
        self.push(Instruction::Token {
            token: resolved,
            negated,
            next,
        })
    }

    /// A run of bytes.
    fn bytes(&mut self, bytes: &[u8], next: Pc) -> Result<Pc, LowerError> {
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
    fn take(&mut self, edges: &[Edge]) -> Result<Pc, LowerError> {
        let start = self.edges.len();
        for edge in edges {
            if edge.next == DEAD {
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
                self.unspellable[usize::from(byte)] |= !self.spellable[usize::from(byte)];
            }
            return Ok(DEAD);
        }
        let span = Span {
            start: start as u32,
            len: (self.edges.len() - start) as u32,
        };
        self.push(Instruction::Bytes(span))
    }

    fn class(&mut self, class: &CharClass, next: Pc) -> Result<Pc, LowerError> {
        if class.ranges().len() > LARGE_CLASS {
            let routine = self.routine(Target::Class(class.clone()));
            return self.push(Instruction::Call { routine, next });
        }
        self.class_here(class, next)
    }

    /// The UTF-8 sequences of a class as a small deterministic network.
    fn class_here(&mut self, class: &CharClass, next: Pc) -> Result<Pc, LowerError> {
        // Nodes of a trie over byte ranges: two sequences either share a range or are apart.
        let mut nodes: Vec<Vec<(u8, u8, usize)>> = vec![Vec::new()];
        const LEAF: usize = usize::MAX;
        for &(low, high) in class.ranges() {
            for sequence in Utf8Sequences::new(low, high) {
                let ranges = sequence.as_slice();
                let mut at = 0;
                for (depth, range) in ranges.iter().enumerate() {
                    let last = depth + 1 == ranges.len();
                    let node = &nodes[at];
                    let found = node
                        .last()
                        .filter(|edge| (edge.0, edge.1) == (range.start, range.end))
                        .map(|edge| edge.2);
                    at = match found {
                        Some(child) => child,
                        None => {
                            let child = if last { LEAF } else { nodes.len() };
                            nodes[at].push((range.start, range.end, child));
                            if !last {
                                nodes.push(Vec::new());
                            }
                            child
                        }
                    };
                }
            }
        }
        let mut pcs = vec![DEAD; nodes.len()];
        let mut same: FxHashMap<Vec<Edge>, Pc> = FxHashMap::default();
        for at in (0..nodes.len()).rev() {
            let mut edges: Vec<Edge> = nodes[at]
                .iter()
                .map(|&(low, high, child)| Edge {
                    low,
                    high,
                    next: if child == LEAF { next } else { pcs[child] },
                })
                .collect();
            edges.sort_unstable_by_key(|edge| edge.low);
            merge(&mut edges);
            pcs[at] = match same.get(&edges) {
                Some(&pc) => pc,
                None => {
                    let pc = self.take(&edges)?;
                    same.insert(edges, pc);
                    pc
                }
            };
        }
        Ok(pcs[0])
    }

    fn alternatives(&mut self, parts: &'a [Expr], next: Pc) -> Result<Pc, LowerError> {
        let mut flat = Vec::with_capacity(parts.len());
        flatten(parts, &mut flat);
        let mut literals: Vec<(&[u8], Pc)> = Vec::new();
        let mut ranges = Vec::new();
        let mut targets = Vec::new();
        for part in flat {
            match part {
                Expr::Literal(text) => literals.push((text.as_bytes(), next)),
                Expr::Class(class) => ranges.extend_from_slice(class.ranges()),
                Expr::Seq(inner) => match inner.split_first() {
                    Some((Expr::Literal(text), rest)) => {
                        let rest = self.sequence(rest, next)?;
                        literals.push((text.as_bytes(), rest));
                    }
                    _ => targets.push(self.expr(part, next)?),
                },
                other => targets.push(self.expr(other, next)?),
            }
        }
        if !ranges.is_empty() {
            targets.push(self.class(&CharClass::from_ranges(ranges), next)?);
        }
        targets.extend(self.trie(&literals)?);
        self.split(&targets)
    }

    /// Literals and what follows each, their common beginnings shared.
    fn trie(&mut self, literals: &[(&[u8], Pc)]) -> Result<Vec<Pc>, LowerError> {
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
                        LimitError::check(Bound::Instructions, child, self.limits.instructions)?;
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
    fn split(&mut self, targets: &[Pc]) -> Result<Pc, LowerError> {
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
    fn fill(&mut self, reserved: Pc, targets: &[Pc]) -> Result<(), LowerError> {
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
    fn merged(&mut self, targets: &[Pc], reserved: Pc) -> Result<Vec<Pc>, LowerError> {
        let mut open: Vec<Pc> = targets.iter().rev().copied().collect();
        let mut seen = rustc_hash::FxHashSet::default();
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

    fn finish(mut self, start: u32) -> Result<Program, LowerError> {
        let mut program = Program {
            takes: Vec::new(),
            distance: Vec::new(),
            class_of: Box::new([0; 256]),
            class_byte: Vec::new(),
            start: self.routines[start as usize].entry,
            instructions: std::mem::take(&mut self.instructions),
            edges: std::mem::take(&mut self.edges),
            targets: std::mem::take(&mut self.targets),
            routines: std::mem::take(&mut self.routines),
            slot_of: std::mem::take(&mut self.slot_of),
            slots: std::mem::take(&mut self.slots),
        };
        distance::measure(&mut program);
        if program.distance[program.start as usize] == NEVER {
            let bytes: Vec<u8> = (0..=255)
                .filter(|&byte| self.unspellable[usize::from(byte)])
                .collect();
            return Err(if bytes.is_empty() {
                LowerError::MatchesNothing {
                    rule: self.grammar.rule(self.grammar.root()).name.clone(),
                }
            } else {
                LowerError::CannotBeSpelled { bytes }
            });
        }
        distance::prune(&mut program);
        classify(&mut program);
        debug_assert_eq!(program.instructions[EXIT as usize], Instruction::Exit);
        Ok(program)
    }
}

/// Parts and bytes of a rule that is copied to where it is used.
const SMALL_RULE: usize = 16;

/// Whether an expression has at most `left` parts and bytes, and refers to no rule.
fn is_small(expr: &Expr, left: &mut usize) -> bool {
    let cost = match expr {
        Expr::Literal(text) => text.len(),
        Expr::Class(class) => class.ranges().len(),
        Expr::Rule(_) => return false,
        _ => 1,
    };
    if cost > *left {
        return false;
    }
    *left -= cost;
    match expr {
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().all(|part| is_small(part, left)),
        Expr::Repeat { expr, .. } => is_small(expr, left),
        _ => true,
    }
}

/// Opens alternatives inside alternatives.
fn flatten<'a>(parts: &'a [Expr], flat: &mut Vec<&'a Expr>) {
    for part in parts {
        match part {
            Expr::Alt(inner) => flatten(inner, flat),
            other => flat.push(other),
        }
    }
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

/// Sorts the 256 bytes into classes that no instruction tells apart.
fn classify(program: &mut Program) {
    let mut starts = [false; 257];
    starts[0] = true;
    program.takes = vec![[0; 4]; program.instructions.len()];
    for (pc, instruction) in program.instructions.iter().enumerate() {
        let Instruction::Bytes(span) = instruction else {
            continue;
        };
        for edge in &program.edges[span.range()] {
            starts[usize::from(edge.low)] = true;
            starts[usize::from(edge.high) + 1] = true;
            for byte in edge.low..=edge.high {
                program.takes[pc][usize::from(byte >> 6)] |= 1 << (byte & 63);
            }
        }
    }
    for byte in 0..=255_u8 {
        if starts[usize::from(byte)] {
            program.class_byte.push(byte);
        }
        program.class_of[usize::from(byte)] = (program.class_byte.len() - 1) as u8;
    }
}
