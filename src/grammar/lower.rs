//! Compiles a grammar's syntax tree into a [`Program`].
//!
//! Expressions are compiled back to front, each knowing what follows it. Code points become
//! ranges of UTF-8 bytes; literals that are alternatives of each other become a trie; branches
//! whose bytes differ are merged into one instruction. Bounded repetition becomes a counter and is
//! never unrolled; a body that may be empty is compiled in a form that is not, so that counting
//! always makes progress.

use rustc_hash::FxHashMap;

use super::alphabet::Alphabet;
use super::analysis;
use super::ast::{CharClass, Expr, Grammar, RuleId, TokenReference, Unordered};
use super::code::Code;
use super::distance;
use super::limits::{Bound, LimitError, Limits};
use super::program::{
    DEAD, EXIT, Instruction, MemberSet, NEVER, NO_SLOT, Pc, Program, RET, Routine, SetMember, Span,
    UNBOUNDED,
};
use super::unordered;

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
    code: Code,
    nullable: Vec<bool>,
    slots: Vec<String>,
    routines: Vec<Routine>,
    sets: Vec<MemberSet>,
    known: FxHashMap<Target<'a>, u32>,
    blocks: Vec<Pc>,
    open: Vec<(u32, Target<'a>)>,
    /// Where a routine of the rule that is being compiled returns.
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
            code: Code::new(
                std::array::from_fn(|byte| alphabet.spells(byte as u8)),
                limits.instructions,
            ),
            nullable,
            slots: Vec::new(),
            routines: Vec::new(),
            sets: Vec::new(),
            known: FxHashMap::default(),
            blocks: Vec::new(),
            open: Vec::new(),
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
        self.blocks.push(self.code.instructions.len() as Pc);
        self.code.slot = self.routines[routine as usize].slot;
        self.ret = RET;
        if self.code.slot != NO_SLOT {
            // A return of its own keeps the frame of a call at the rule's very end, so that what
            // is on the stack always shows that the rule was entered.
            self.ret = self.code.push(Instruction::Ret)?;
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
                let next = self
                    .code
                    .bytes(close.encode_utf8(&mut [0; 4]).as_bytes(), ret)?;
                self.expr(repeat, next)?
            }
            Target::Class(class) => self.code.class_here(class, ret)?,
        };
        self.routines[routine as usize].entry = entry;
        Ok(())
    }

    /// Compiles `expr` so that `next` follows it.
    fn expr(&mut self, expr: &'a Expr, next: Pc) -> Result<Pc, LowerError> {
        if next == DEAD {
            return Ok(DEAD);
        }
        match expr {
            Expr::Empty => Ok(next),
            Expr::Literal(text) => Ok(self.code.bytes(text.as_bytes(), next)?),
            Expr::Class(class) => self.class(class, next),
            Expr::Seq(parts) => self.sequence(parts, next),
            Expr::Alt(parts) => self.alternatives(parts, next),
            Expr::Repeat { expr, min, max } => self.repeat(expr, *min, *max, next),
            Expr::Rule(id) => {
                let grammar = self.grammar;
                let rule = grammar.rule(*id);
                let mut size = SMALL_RULE;
                let is_copied = !rule.volatile
                    && (is_small(&rule.body, &mut size)
                        || is_character(&rule.body) && self.is_wide(&rule.body, 0));
                if is_copied {
                    // Copied to where it is used: fewer frames, and alternatives that merge.
                    return self.expr(&rule.body, next);
                }
                let routine = self.routine(Target::Rule(*id));
                Ok(self.code.call(routine, next)?)
            }
            Expr::Unordered(set) => self.unordered(set, next),
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
                    result = self.code.split(&[begins_here, result])?;
                    whole = self.expr(part, whole)?;
                }
                Ok(result)
            }
            Expr::Alt(parts) => {
                let mut targets = Vec::with_capacity(parts.len());
                for part in parts {
                    targets.push(self.non_empty(part, next)?);
                }
                Ok(self.code.split(&targets)?)
            }
            Expr::Repeat { expr, min, max } => match max {
                Some(0) => Ok(DEAD),
                // Each iteration that counts is not empty, and there is at least one.
                _ => self.count(expr, (*min).clamp(1, 1), *max, next),
            },
            Expr::Unordered(set) => {
                let body = self.unordered(set, next)?;
                if let Instruction::Unordered(set) = self.code.instructions[body as usize] {
                    // No item is empty.
                    let min = &mut self.sets[set as usize].min;
                    *min = (*min).max(1);
                }
                Ok(body)
            }
            Expr::Rule(id) => {
                let routine = self.routine(Target::NonEmpty(*id));
                Ok(self.code.call(routine, next)?)
            }
        }
    }

    /// Compiles items in any order.
    fn unordered(&mut self, set: &'a Unordered, next: Pc) -> Result<Pc, LowerError> {
        let mut members = Vec::with_capacity(set.members.len());
        for member in &set.members {
            let spelled = self.code.spells(member.key.as_bytes());
            members.push(SetMember {
                key: member.key.as_bytes().into(),
                value: match spelled {
                    // No item is empty.
                    true if member.key.is_empty() => self.non_empty(&member.value, self.ret)?,
                    true => self.expr(&member.value, self.ret)?,
                    false => DEAD,
                },
                required: member.required,
            });
        }
        members.sort_by(|a, b| a.key.cmp(&b.key));
        let separator = self.expr(&set.separator, self.ret)?;
        let (other, most_others) = match &set.others {
            Some(others) => (
                self.non_empty(&others.item, self.ret)?,
                others.guard.unwrap_or(UNBOUNDED),
            ),
            None => (DEAD, 0),
        };
        let (nodes, edges) = unordered::trie(&members);
        let mut keys = DEAD;
        for node in 0..nodes.len() as u32 {
            let pc = self.code.push(Instruction::Key {
                set: self.sets.len() as u32,
                node,
            })?;
            if node == 0 {
                keys = pc;
            }
        }
        let number = self.sets.len() as u32;
        let at = self.code.push(Instruction::Unordered(number))?;
        self.sets.push(MemberSet {
            members,
            nodes,
            edges,
            keys,
            separator,
            other,
            next,
            min: set.min,
            max: set.max.unwrap_or(UNBOUNDED),
            most_others,
        });
        Ok(at)
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
                next = self
                    .code
                    .bytes(&text.as_bytes()[close.len_utf8()..], next)?;
                if next == DEAD {
                    return Ok(DEAD);
                }
                let routine = self.routine(Target::Rest(&parts[at], close));
                next = self.code.call(routine, next)?;
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
                Ok(self.code.split(&[body, next])?)
            }
            (0 | 1, None) => {
                let again = self
                    .code
                    .push(Instruction::Split(Span { start: 0, len: 0 }))?;
                let body = self.expr(body, again)?;
                self.code.fill(again, &[body, next])?;
                Ok(if min == 0 { again } else { body })
            }
            _ if analysis::is_nullable(body, &self.nullable) => {
                let some = self.count(body, 1, max, next)?;
                Ok(self.code.split(&[some, next])?)
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
                Ok(self.code.split(&[body, next])?)
            } else {
                Ok(body)
            };
        }
        if max.is_none() && min <= 1 {
            let again = self
                .code
                .push(Instruction::Split(Span { start: 0, len: 0 }))?;
            let body = self.non_empty(body, again)?;
            self.code.fill(again, &[body, next])?;
            return Ok(if min == 0 { again } else { body });
        }
        let body = self.non_empty(body, self.ret)?;
        Ok(self.code.push(Instruction::Loop {
            body,
            next,
            min,
            max: max.unwrap_or(UNBOUNDED),
        })?)
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
        Ok(self.code.push(Instruction::Token {
            token: resolved,
            negated,
            next,
        })?)
    }

    fn class(&mut self, class: &CharClass, next: Pc) -> Result<Pc, LowerError> {
        if class.ranges().len() > LARGE_CLASS {
            let routine = self.routine(Target::Class(class.clone()));
            return Ok(self.code.call(routine, next)?);
        }
        Ok(self.code.class_here(class, next)?)
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
        targets.extend(self.code.trie(&literals)?);
        Ok(self.code.split(&targets)?)
    }

    fn finish(self, start: u32) -> Result<Program, LowerError> {
        let mut program = Program {
            takes: Vec::new(),
            distance: Vec::new(),
            class_of: Box::new([0; 256]),
            class_byte: Vec::new(),
            start: self.routines[start as usize].entry,
            instructions: self.code.instructions,
            edges: self.code.edges,
            targets: self.code.targets,
            routines: self.routines,
            blocks: self.blocks,
            sets: self.sets,
            slot_of: self.code.slot_of,
            slots: self.slots,
        };
        distance::measure(&mut program);
        if program.distance[program.start as usize] == NEVER {
            let bytes: Vec<u8> = (0..=255)
                .filter(|&byte| self.code.missing[usize::from(byte)])
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
        program.classify();
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
        Expr::Rule(_) | Expr::Unordered(_) => return false,
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

/// Whether an expression is a class, or a choice of a class and a few rules: a character of a
/// string, or its escape.
fn is_character(expr: &Expr) -> bool {
    match expr {
        Expr::Class(class) => class.ranges().len() <= LARGE_CLASS,
        Expr::Alt(parts) => {
            parts.len() <= 4
                && parts.iter().all(|part| match part {
                    Expr::Rule(_) => true,
                    part => is_character(part),
                })
        }
        _ => false,
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
