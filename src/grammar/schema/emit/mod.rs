//! Terms to rules.
//!
//! Values of properties and items are queued, not nested, so that depth costs no stack and a
//! recursive schema refers back to its own rule.

mod containers;
mod contains;
mod distinct;
mod intervals;
pub mod json;
mod numbers;
mod prune;
mod strings;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::algebra::{Algebra, COMBINED, Outcome, Term, Trouble};
use super::document::NodeId;
use super::error::SchemaError;
use super::shape::{ANY, NEVER, Shape, SiteId, StringSet, TermId};
use crate::grammar::ast::{Expr, GrammarBuilder, RuleId};

/// Writes the rules of one schema.
pub struct Emitter<'a, 'b> {
    algebra: Algebra<'a>,
    builder: &'b mut GrammarBuilder,
    memo: FxHashMap<TermId, Expr>,
    queue: VecDeque<(TermId, RuleId, String)>,
    strings: FxHashMap<StringSet, Expr>,
    numbers: FxHashMap<String, u32>,
    shared: strings::Shared,
    /// Where reports about the value at hand belong.
    node: NodeId,
}

impl<'a, 'b> Emitter<'a, 'b> {
    /// An emitter into `builder`.
    pub fn new(algebra: Algebra<'a>, builder: &'b mut GrammarBuilder) -> Self {
        let node = algebra.document.root();
        Self {
            algebra,
            builder,
            memo: FxHashMap::default(),
            queue: VecDeque::new(),
            strings: FxHashMap::default(),
            numbers: FxHashMap::default(),
            shared: strings::Shared::new(),
            node,
        }
    }

    /// Writes the whole schema as a rule and returns it with the algebra for the report.
    pub fn run(mut self, hint: &str) -> Result<(RuleId, Algebra<'a>), SchemaError> {
        let first = self.builder.len();
        let root = self.builder.reserve(hint);
        let node = self.algebra.document.root();
        let term = self.algebra.schema(node)?;
        self.memo.insert(term, Expr::Rule(root));
        self.queue.push_back((term, root, hint.to_owned()));
        let mut sources = Vec::new();
        while let Some((term, rule, hint)) = self.queue.pop_front() {
            if term == ANY {
                self.memo.remove(&ANY);
                let value = json::value(self.builder, &self.algebra.options);
                self.builder.define(rule, Expr::Rule(value));
                continue;
            }
            if let Term::Schema(node) = *self.algebra.term(term) {
                self.node = node;
                sources.push((rule, node));
            }
            let shape = self
                .algebra
                .shape(term)
                .map_err(|trouble| self.refusal(trouble))?;
            self.report_opposites(term, &shape);
            let body = self
                .body(&shape, &hint)
                .map_err(|trouble| self.refusal(trouble))?;
            self.builder.define(rule, body);
            let limit = self.algebra.options.limits.rules;
            if self.builder.len() - first > limit {
                return Err(SchemaError::Limit {
                    pointer: self.algebra.document.pointer(self.node),
                    which: "rules",
                    limit,
                });
            }
        }
        for (rule, node) in sources {
            let pointer = self.algebra.document.pointer(node);
            self.builder.rule_mut(rule).comment = Some(format!("#{pointer}"));
        }
        if !prune::unproductive(self.builder, first, root) {
            return Err(SchemaError::Unsatisfiable {
                pointer: String::new(),
                reason: "its constraints contradict each other".to_owned(),
            });
        }
        Ok((root, self.algebra))
    }

    fn refusal(&self, trouble: Trouble) -> SchemaError {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Circular(term) => {
                let node = match self.algebra.term(term) {
                    Term::Schema(node) => *node,
                    _ => self.node,
                };
                self.algebra.document.malformed(
                    node,
                    "the schema leads back to itself without describing anything",
                )
            }
        }
    }

    /// Reports that a set is admitted without all that constrains it: the keywords that it comes
    /// from, or its `kind` at the schema at hand where they are not known.
    fn weakened(&mut self, origins: &[SiteId], kind: &'static str, why: &'static str) {
        let sites = &mut self.algebra.sites;
        sites.check_all(origins, (self.node, kind), why);
    }

    /// Reports what a complement inside of arrays and objects could not say: of those that a
    /// keyword makes of the value itself, the keyword has seen to it.
    fn report_opposites(&mut self, term: TermId, shape: &Shape) {
        if shape.is_exact() || !self.algebra.has_opposite(term) {
            return;
        }
        const WHY: &str = "its opposite cannot be written down";
        for set in shape.objects.iter().filter(|set| set.loose) {
            self.weakened(&set.origins, "object", WHY);
        }
        for set in shape.arrays.iter().filter(|set| set.loose) {
            self.weakened(&set.origins, "array", WHY);
        }
        for set in shape.strings.iter().filter(|set| set.loose) {
            self.weakened(&set.origins, "string", WHY);
        }
        for set in shape.numbers.iter().filter(|set| set.loose) {
            self.weakened(&set.origins, "number", WHY);
        }
        if shape.loose {
            self.weakened(&[], COMBINED, WHY);
        }
    }

    /// A fresh rule named after `hint`.
    fn reserve(&mut self, hint: &str) -> RuleId {
        let base: String = hint
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(48)
            .collect();
        let base = base.trim_matches('-');
        let base = if base.is_empty() { "value" } else { base };
        let number = self.numbers.entry(base.to_owned()).or_insert(0);
        *number += 1;
        if *number == 1 {
            self.builder.reserve(base)
        } else {
            let name = format!("{base}-{number}");
            self.builder.reserve(&name)
        }
    }

    fn rule(&mut self, hint: &str, body: Expr) -> Expr {
        let id = self.reserve(hint);
        self.builder.define(id, body);
        Expr::Rule(id)
    }

    /// What matches a value of `term`.
    fn value(&mut self, term: TermId, hint: &str) -> Outcome<Expr> {
        if let Some(known) = self.memo.get(&term) {
            return Ok(known.clone());
        }
        let expr = if term == ANY {
            Expr::Rule(json::value(self.builder, &self.algebra.options))
        } else if term == NEVER {
            Expr::Alt(Vec::new())
        } else {
            let shape = self.algebra.shape(term)?;
            let node = self.node;
            let mut hint = hint.to_owned();
            if let Term::Schema(own) = *self.algebra.term(term) {
                self.node = own;
                if let Some(name) = self.algebra.document.name(own)
                    && !KEYWORDS.contains(&name)
                {
                    name.clone_into(&mut hint);
                }
            }
            let expr = if shape.arrays.is_empty() && shape.objects.is_empty() {
                self.report_opposites(term, &shape);
                let body = self.body(&shape, &hint)?;
                if weight(&body) > 12 {
                    self.rule(&hint, body)
                } else {
                    body
                }
            } else {
                let rule = self.reserve(&hint);
                self.queue.push_back((term, rule, hint));
                Expr::Rule(rule)
            };
            self.node = node;
            expr
        };
        self.memo.insert(term, expr.clone());
        Ok(expr)
    }

    /// The alternatives of a shape.
    fn body(&mut self, shape: &Shape, hint: &str) -> Outcome<Expr> {
        if *shape == Shape::any() {
            return Ok(Expr::Rule(json::value(self.builder, &self.algebra.options)));
        }
        let mut parts = Vec::new();
        for set in &shape.objects {
            parts.push(self.object(set, hint)?);
        }
        for set in &shape.arrays {
            parts.push(self.array(set, hint)?);
        }
        for set in &shape.strings {
            parts.push(self.string(set, hint));
        }
        for set in &shape.numbers {
            parts.push(self.number(set, hint));
        }
        match shape.booleans {
            [true, true] => parts.push(Expr::Rule(json::boolean(self.builder))),
            [true, false] => parts.push(Expr::literal("false")),
            [false, true] => parts.push(Expr::literal("true")),
            [false, false] => {}
        }
        if shape.null {
            parts.push(Expr::literal("null"));
        }
        let mut flat: Vec<Expr> = Vec::new();
        for part in parts {
            match part {
                Expr::Alt(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Ok(Expr::alt(flat))
    }
}

/// Names of keywords that make poor names of rules.
const KEYWORDS: [&str; 12] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "root",
];

/// How large an expression is, roughly.
fn weight(expr: &Expr) -> usize {
    match expr {
        Expr::Empty => 0,
        Expr::Literal(_) | Expr::Class(_) | Expr::Rule(_) | Expr::Token { .. } => 1,
        Expr::Seq(parts) | Expr::Alt(parts) => 1 + parts.iter().map(weight).sum::<usize>(),
        Expr::Repeat { expr, .. } => 1 + weight(expr),
        Expr::Unordered(set) => 1 + set.parts().map(weight).sum::<usize>(),
    }
}
