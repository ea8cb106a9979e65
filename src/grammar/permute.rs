//! Items in any order as ordinary rules, for GBNF, which has no such construct.
//!
//! One rule for each set of members that may be behind: fewer than the permutations, and still
//! exponential, so only for few members.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::ast::{Expr, Grammar, GrammarBuilder, RuleId, Unordered};

/// Rules that one construct may take: seven members that may be followed by anything take 128.
const MOST_RULES: usize = 128;

/// Why a grammar cannot be printed as GBNF.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// Members in any order would take too many rules.
    #[error(
        "rule `{rule}` has {members} members in any order: as GBNF that takes more than {limit} \
         rules"
    )]
    TooManyOrders {
        /// The rule that holds them.
        rule: String,
        /// How many there are.
        members: usize,
        /// The most rules that are written for them.
        limit: usize,
    },
}

/// Whether items in any order are anywhere in the grammar.
pub(super) fn is_needed(grammar: &Grammar) -> bool {
    grammar.rules().iter().any(|rule| has_unordered(&rule.body))
}

fn has_unordered(expr: &Expr) -> bool {
    match expr {
        Expr::Unordered(_) => true,
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().any(has_unordered),
        Expr::Repeat { expr, .. } => has_unordered(expr),
        Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Rule(_) | Expr::Token { .. } => {
            false
        }
    }
}

/// The same grammar without items in any order. Guards against runaway repetition of
/// [`Others`](super::ast::Others) are left out, and a comment says so.
pub(super) fn spelled_out(grammar: &Grammar) -> Result<Grammar, PrintError> {
    let mut writer = Writer {
        builder: GrammarBuilder::new(),
        rule: String::new(),
        guards: Vec::new(),
    };
    for rule in grammar.rules() {
        let id = writer.builder.reserve(&rule.name);
        let own = writer.builder.rule_mut(id);
        own.comment.clone_from(&rule.comment);
        own.volatile = rule.volatile;
    }
    for (at, rule) in grammar.rules().iter().enumerate() {
        writer.rule.clone_from(&rule.name);
        let body = writer.expr(&rule.body)?;
        let id = RuleId(at as u32);
        let own = writer.builder.define(id, body);
        for guard in writer.guards.drain(..) {
            let note = format!("at most {guard} undeclared items: not said here");
            own.comment = Some(match own.comment.take() {
                Some(comment) => format!("{comment}\n{note}"),
                None => note,
            });
        }
    }
    Ok(writer.builder.finish(grammar.root()))
}

struct Writer {
    builder: GrammarBuilder,
    /// Name of the rule at hand.
    rule: String,
    /// Guards that were left out of it.
    guards: Vec<u32>,
}

/// Members that are behind, a bit each, and other items that are.
type Seen = (u64, u32);

impl Writer {
    fn expr(&mut self, expr: &Expr) -> Result<Expr, PrintError> {
        Ok(match expr {
            Expr::Seq(parts) => Expr::Seq(self.all(parts)?),
            Expr::Alt(parts) => Expr::Alt(self.all(parts)?),
            Expr::Repeat { expr, min, max } => Expr::repeat(self.expr(expr)?, *min, *max),
            Expr::Unordered(set) => self.unordered(set)?,
            Expr::Empty
            | Expr::Literal(_)
            | Expr::Class(_)
            | Expr::Rule(_)
            | Expr::Token { .. } => expr.clone(),
        })
    }

    fn all(&mut self, parts: &[Expr]) -> Result<Vec<Expr>, PrintError> {
        parts.iter().map(|part| self.expr(part)).collect()
    }

    fn unordered(&mut self, set: &Unordered) -> Result<Expr, PrintError> {
        let too_many = PrintError::TooManyOrders {
            rule: self.rule.clone(),
            members: set.members.len(),
            limit: MOST_RULES,
        };
        if set.members.len() > 63 {
            return Err(too_many);
        }
        let separator = self.expr(&set.separator)?;
        let hint = self.rule.clone();
        let mut items = Vec::new();
        for member in &set.members {
            let value = self.expr(&member.value)?;
            let body = Expr::seq([Expr::literal(member.key.as_str()), value]);
            let rule = self.builder.add(&format!("{hint}-member"), body);
            items.push(Expr::Rule(rule));
        }
        let other = match &set.others {
            Some(others) => {
                self.guards.extend(others.guard);
                let item = self.expr(&others.item)?;
                let rule = self.builder.add(&format!("{hint}-other"), item);
                Some(Expr::Rule(rule))
            }
            None => None,
        };
        let required = (0..)
            .zip(&set.members)
            .filter(|(_, member)| member.required)
            .fold(0_u64, |bits, (at, _)| bits | 1 << at);
        if set.max.is_some_and(|max| required.count_ones() > max) {
            // More must be there than may be: no text at all.
            return Ok(Expr::Alt(Vec::new()));
        }
        let mut rules: FxHashMap<Seen, RuleId> = FxHashMap::default();
        let mut open: VecDeque<Seen> = VecDeque::new();
        let mut start = Expr::Empty;
        let mut at: Option<Seen> = None;
        loop {
            let (members, others) = at.unwrap_or((0, 0));
            let total = members.count_ones().saturating_add(others);
            let left = (required & !members).count_ones();
            let room = set.max.is_none_or(|max| total.saturating_add(left) < max);
            let mut next = Vec::new();
            for (number, item) in items.iter().enumerate() {
                let bit = 1_u64 << number;
                if members & bit == 0 && (room || required & bit != 0) {
                    next.push((item, (members | bit, others)));
                }
            }
            if let Some(other) = &other
                && room
            {
                let enough = if set.max.is_none() { set.min } else { u32::MAX };
                next.push((other, (members, others.saturating_add(1).min(enough))));
            }
            let mut alternatives = Vec::new();
            for (item, seen) in next {
                let rule = match rules.get(&seen) {
                    Some(&known) => known,
                    None => {
                        if rules.len() == MOST_RULES {
                            return Err(too_many);
                        }
                        let rule = self.builder.reserve(&format!("{hint}-more"));
                        rules.insert(seen, rule);
                        open.push_back(seen);
                        rule
                    }
                };
                alternatives.push(Expr::seq([item.clone(), Expr::Rule(rule)]));
            }
            let mut body = Expr::alt(alternatives);
            if at.is_some() && body != Expr::Alt(Vec::new()) {
                body = Expr::seq([separator.clone(), body]);
            }
            if left == 0 && total >= set.min {
                body = if body == Expr::Alt(Vec::new()) {
                    Expr::Empty
                } else {
                    Expr::optional(body)
                };
            }
            match at.and_then(|seen| rules.get(&seen)) {
                Some(&rule) => {
                    self.builder.define(rule, body);
                }
                None => start = body,
            }
            at = open.pop_front();
            if at.is_none() {
                return Ok(start);
            }
        }
    }
}
