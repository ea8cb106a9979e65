//! The same language in a form that llama.cpp's grammar parser and sampler can run.
//!
//! llama.cpp unrolls `{m,n}`: it refuses more than 2,000 copies (rules inside a repeated group
//! count too), takes a maximum above 2,000 for none, and loops on the repetition of something that
//! may be empty. Here a large count becomes a binary one: `x{0,n}` is `x{0,h-1} | x{h} x{0,n-h}`
//! with `h` the largest power of two within `n`, and `x{2h}` is `x{h} x{h}`. Every count has exactly
//! one reading, so the sampler keeps some `log n` stacks at most; nothing is loosened.

use rustc_hash::FxHashMap;

use super::analysis::{is_nullable, nullable_rules};
use super::ast::{Expr, Grammar, GrammarBuilder, RuleId};
use super::limits::{Bound, LimitError, Limits};
use super::permute::{self, PrintError};

/// Counts up to this are left to llama.cpp's own unrolling, whose limit is 2,000.
const UNROLLED: u32 = 1_024;
/// The same where a grammar has so many counters that unrolling them all would be slow.
const UNROLLED_SPARINGLY: u32 = 16;
/// Copies that llama.cpp may make of all counters together before it is spared.
const COPIES: u64 = 50_000;
/// Rules that llama.cpp may make within something that is repeated or optional. Its limit is the
/// same 2,000: a group counts as many copies as there are rules in it.
const WITHIN: u64 = 1_024;

/// `grammar` with everything rewritten that llama.cpp cannot run. It matches the same texts.
///
/// # Errors
/// [`Bound::Rules`] where the result has more rules than `limits` allow.
pub fn for_llama_cpp(grammar: &Grammar, limits: &Limits) -> Result<Grammar, CompatibleError> {
    let spelled_out;
    let grammar = if permute::is_needed(grammar) {
        spelled_out = permute::spelled_out(grammar)?;
        &spelled_out
    } else {
        grammar
    };
    let mut builder = GrammarBuilder::new();
    // Same order, so that the numbers of rules stay.
    for rule in grammar.rules() {
        let id = builder.reserve(&rule.name);
        let copy = builder.rule_mut(id);
        copy.comment.clone_from(&rule.comment);
        copy.volatile = rule.volatile;
    }
    let copies: u64 = grammar.rules().iter().map(|rule| copies(&rule.body)).sum();
    let mut rewriter = Rewriter {
        grammar,
        nullable: nullable_rules(grammar),
        builder,
        counted: FxHashMap::default(),
        units: FxHashMap::default(),
        some: FxHashMap::default(),
        open: Vec::new(),
        name: String::new(),
        unrolled: if copies > COPIES {
            UNROLLED_SPARINGLY
        } else {
            UNROLLED
        },
    };
    for at in 0..grammar.rules().len() as u32 {
        let rule = grammar.rule(RuleId(at));
        rule.name.clone_into(&mut rewriter.name);
        let body = rewriter.expr(&rule.body);
        rewriter.builder.define(RuleId(at), body);
        while let Some((id, source)) = rewriter.open.pop() {
            let body = rewriter.non_empty(&grammar.rule(source).body);
            rewriter.builder.define(id, body);
        }
        LimitError::check(Bound::Rules, rewriter.builder.len(), limits.rules)?;
    }
    Ok(rewriter.builder.finish(grammar.root()))
}

/// Why there is no form of a grammar that llama.cpp can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompatibleError {
    /// It takes too many rules.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Too many members in any order.
    #[error(transparent)]
    Orders(#[from] PrintError),
}

/// Copies that llama.cpp would make of the counters in `expr`.
fn copies(expr: &Expr) -> u64 {
    match expr {
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().map(copies).sum(),
        Expr::Repeat { expr, min, max } => {
            u64::from(max.unwrap_or(*min).min(UNROLLED)) + copies(expr)
        }
        // Members in any order are spelled out before.
        Expr::Unordered(_)
        | Expr::Empty
        | Expr::Literal(_)
        | Expr::Class(_)
        | Expr::Rule(_)
        | Expr::Token { .. } => 0,
    }
}

/// Rules that llama.cpp makes of `expr` at most: one for each group, name and copy.
fn made(expr: &Expr) -> u64 {
    match expr {
        Expr::Seq(parts) | Expr::Alt(parts) => 1 + parts.iter().map(made).sum::<u64>(),
        Expr::Repeat { expr, min, max } => u64::from(max.unwrap_or(*min)) + 1 + made(expr),
        Expr::Rule(_) => 1,
        Expr::Unordered(_)
        | Expr::Empty
        | Expr::Literal(_)
        | Expr::Class(_)
        | Expr::Token { .. } => 0,
    }
}

/// How often something is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Count {
    Exactly(u32),
    UpTo(u32),
}

struct Rewriter<'a> {
    grammar: &'a Grammar,
    nullable: Vec<bool>,
    builder: GrammarBuilder,
    counted: FxHashMap<(Expr, Count), RuleId>,
    units: FxHashMap<Expr, RuleId>,
    /// Nullable rules without the empty string.
    some: FxHashMap<RuleId, RuleId>,
    open: Vec<(RuleId, RuleId)>,
    /// The rule at hand, after which new ones are named.
    name: String,
    unrolled: u32,
}

impl Rewriter<'_> {
    /// The tree is at most `Limits::nesting` deep.
    fn expr(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::Seq(parts) => Expr::Seq(parts.iter().map(|part| self.expr(part)).collect()),
            Expr::Alt(parts) => Expr::Alt(parts.iter().map(|part| self.expr(part)).collect()),
            Expr::Repeat { expr, min, max } => self.repeat(expr, *min, *max),
            other => other.clone(),
        }
    }

    fn repeat(&mut self, expr: &Expr, min: u32, max: Option<u32>) -> Expr {
        if max == Some(0) {
            return Expr::Empty;
        }
        let (body, min) = if is_nullable(expr, &self.nullable) {
            (self.non_empty(expr), 0)
        } else {
            (self.expr(expr), min)
        };
        if body == Expr::Alt(Vec::new()) {
            // Only the empty string is left to repeat.
            return if min == 0 { Expr::Empty } else { body };
        }
        if max.unwrap_or(min) <= 1 {
            let body = match made(&body) <= WITHIN {
                true => body,
                false => self.unit(body),
            };
            return Expr::repeat(body, min, max);
        }
        let unit = self.unit(body);
        match max {
            Some(max) if max <= self.unrolled => Expr::repeat(unit, min, Some(max)),
            None if min <= self.unrolled => Expr::repeat(unit, min, None),
            Some(max) => {
                let first = self.exactly(&unit, min);
                let rest = self.up_to(&unit, max - min);
                Expr::seq([first, rest])
            }
            None => {
                let first = self.exactly(&unit, min);
                Expr::seq([first, Expr::repeat(unit, 0, None)])
            }
        }
    }

    /// `body` as one element, which llama.cpp copies for the price of one.
    fn unit(&mut self, body: Expr) -> Expr {
        match body {
            Expr::Rule(_) | Expr::Class(_) | Expr::Token { .. } => body,
            Expr::Literal(ref text) if text.chars().count() == 1 => body,
            _ => {
                if let Some(&known) = self.units.get(&body) {
                    return Expr::Rule(known);
                }
                let id = self
                    .builder
                    .add(&format!("{}-item", self.name), body.clone());
                self.units.insert(body, id);
                Expr::Rule(id)
            }
        }
    }

    /// `count` times.
    fn exactly(&mut self, unit: &Expr, count: u32) -> Expr {
        if count <= self.unrolled {
            return match count {
                0 => Expr::Empty,
                1 => unit.clone(),
                _ => Expr::repeat(unit.clone(), count, Some(count)),
            };
        }
        let power = largest_power(count);
        if power < count {
            let first = self.exactly(unit, power);
            let rest = self.exactly(unit, count - power);
            return Expr::seq([first, rest]);
        }
        let key = (unit.clone(), Count::Exactly(count));
        if let Some(&known) = self.counted.get(&key) {
            return Expr::Rule(known);
        }
        let half = self.exactly(unit, count / 2);
        let name = format!("{}-times-{count}", self.stem(unit));
        // Not `Expr::seq`, which would open a half that is a sequence of its own.
        let id = self.builder.add(&name, Expr::Seq(vec![half.clone(), half]));
        self.counted.insert(key, id);
        Expr::Rule(id)
    }

    /// Not at all, or up to `count` times.
    fn up_to(&mut self, unit: &Expr, count: u32) -> Expr {
        if count <= self.unrolled {
            return match count {
                0 => Expr::Empty,
                _ => Expr::repeat(unit.clone(), 0, Some(count)),
            };
        }
        let key = (unit.clone(), Count::UpTo(count));
        if let Some(&known) = self.counted.get(&key) {
            return Expr::Rule(known);
        }
        let power = largest_power(count);
        let fewer = self.up_to(unit, power - 1);
        let first = self.exactly(unit, power);
        let rest = self.up_to(unit, count - power);
        let name = format!("{}-upto-{count}", self.stem(unit));
        let body = Expr::alt([fewer, Expr::seq([first, rest])]);
        let id = self.builder.add(&name, body);
        self.counted.insert(key, id);
        Expr::Rule(id)
    }

    fn stem(&self, unit: &Expr) -> String {
        match unit {
            Expr::Rule(id) if (id.0 as usize) < self.grammar.rules().len() => {
                self.grammar.rule(*id).name.clone()
            }
            _ => self.name.clone(),
        }
    }

    /// `expr` rewritten, without the empty string.
    fn non_empty(&mut self, expr: &Expr) -> Expr {
        if !is_nullable(expr, &self.nullable) {
            return self.expr(expr);
        }
        match expr {
            Expr::Alt(parts) => {
                let mut kept = Vec::new();
                for part in parts {
                    let part = self.non_empty(part);
                    if part != Expr::Alt(Vec::new()) {
                        kept.push(part);
                    }
                }
                Expr::alt(kept)
            }
            // All of them may be empty: the first one that is not, and what follows it.
            Expr::Seq(parts) => {
                let mut ways = Vec::new();
                for (at, part) in parts.iter().enumerate() {
                    let first = self.non_empty(part);
                    if first == Expr::Alt(Vec::new()) {
                        continue;
                    }
                    let mut way = vec![first];
                    way.extend(parts[at + 1..].iter().map(|part| self.expr(part)));
                    ways.push(Expr::seq(way));
                }
                Expr::alt(ways)
            }
            Expr::Repeat { max: Some(0), .. } => Expr::Alt(Vec::new()),
            Expr::Repeat { expr, min, max } => {
                // Where the body itself may be empty, any number of times down to once will do.
                let min = if is_nullable(expr, &self.nullable) {
                    1
                } else {
                    (*min).max(1)
                };
                let body = self.non_empty(expr);
                if body == Expr::Alt(Vec::new()) {
                    return body;
                }
                let unit = self.unit(body);
                let rest = match max {
                    Some(max) => self.up_to(&unit, max.saturating_sub(min)),
                    None => Expr::repeat(unit.clone(), 0, None),
                };
                Expr::seq([self.exactly(&unit, min), rest])
            }
            Expr::Rule(id) => {
                if let Some(&known) = self.some.get(id) {
                    return Expr::Rule(known);
                }
                let name = format!("{}-some", self.grammar.rule(*id).name);
                let some = self.builder.reserve(&name);
                self.some.insert(*id, some);
                self.open.push((some, *id));
                Expr::Rule(some)
            }
            Expr::Empty | Expr::Literal(_) => Expr::Alt(Vec::new()),
            // Members in any order are spelled out before.
            Expr::Class(_) | Expr::Token { .. } | Expr::Unordered(_) => expr.clone(),
        }
    }
}

fn largest_power(count: u32) -> u32 {
    1 << count.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{Recogniser, gbnf};

    fn rewritten(text: &str) -> (Grammar, Grammar) {
        let limits = Limits::default();
        let grammar = gbnf::parse(text, &limits).unwrap().grammar;
        let compatible = for_llama_cpp(&grammar, &limits).unwrap();
        (grammar, compatible)
    }

    #[test]
    fn large_counts_keep_their_bounds() {
        for (text, counts) in [
            (
                "root ::= \"a\"{0,5000}",
                &[0, 1, 1023, 1024, 4096, 4999, 5000, 5001][..],
            ),
            ("root ::= \"a\"{2500}", &[2499, 2500, 2501]),
            ("root ::= \"a\"{3000,}", &[2999, 3000, 3001, 9000]),
            ("root ::= \"a\"{1500,7777}", &[1499, 1500, 4000, 7777, 7778]),
            ("root ::= (\"a\"?){5000}", &[0, 1, 5000, 5001]),
            ("root ::= (\"a\"? \"a\"?){0,3000}", &[0, 6000, 6001]),
            ("root ::= (\"a\"*){2,}", &[0, 1, 9]),
        ] {
            let (before, after) = rewritten(text);
            let limits = Limits::default();
            let mut before = Recogniser::new(&before, &limits).unwrap();
            let mut after = Recogniser::new(&after, &limits).unwrap();
            for &count in counts {
                let word = "a".repeat(count);
                assert_eq!(
                    before.matches(word.as_bytes()).unwrap(),
                    after.matches(word.as_bytes()).unwrap(),
                    "{count} in {text}"
                );
            }
        }
    }

    #[test]
    fn no_count_is_above_what_llama_cpp_unrolls() {
        let (_, after) = rewritten(
            "root ::= (item \",\"){0,100000}\nitem ::= [a-z]{30000} | (\"x\" | item2){70,}\nitem2 ::= \"y\"{2000000000}\n",
        );
        for rule in after.rules() {
            let mut open = vec![&rule.body];
            while let Some(expr) = open.pop() {
                match expr {
                    Expr::Seq(parts) | Expr::Alt(parts) => open.extend(parts),
                    Expr::Repeat { expr, min, max } => {
                        assert!(max.unwrap_or(*min) <= UNROLLED, "{after}");
                        open.push(expr);
                    }
                    _ => {}
                }
            }
        }
        assert!(after.rules().len() < 100, "{after}");
    }

    #[test]
    fn what_is_optional_stays_small() {
        let many = "\"a\" item{0,900} | \"b\" item{0,900} | \"c\" item{0,900}";
        let (_, after) = rewritten(&format!("root ::= \"x\" ({many})?\nitem ::= \"y\"\n"));
        let root = &after.rule(after.root()).body;
        assert!(made(root) < 10, "{after}");
        let text = "root ::= (\"a\" item{0,9} | \"b\")?\nitem ::= \"y\"\n";
        let (before, after) = rewritten(text);
        assert_eq!(before.to_string(), after.to_string());
    }

    #[test]
    fn what_llama_cpp_runs_is_left_alone() {
        let text = "root ::= \"a\" item{2,9} (\"b\" | \"c\")*\nitem ::= [0-9]+\n";
        let (before, after) = rewritten(text);
        assert_eq!(after.rule(RuleId(1)), before.rule(RuleId(1)));
        assert_eq!(after.rules().len(), 2, "{after}");
    }
}
