//! What can be said about a grammar without matching anything: which rules match the empty
//! string, which are reachable, and whether one begins with itself.
//!
//! Works on the syntax tree. Trees are at most [`Limits::nesting`](super::Limits) deep, which
//! [`depth`] checks without recursing.

use super::ast::{Expr, Grammar, RuleId};

/// How many levels of groups and repetitions are inside each other. Iterative, so that a tree of
/// any depth can be asked.
pub(crate) fn depth(expr: &Expr) -> usize {
    let mut deepest = 0;
    let mut open = vec![(expr, 1)];
    while let Some((expr, level)) = open.pop() {
        deepest = deepest.max(level);
        match expr {
            Expr::Seq(parts) | Expr::Alt(parts) => {
                open.extend(parts.iter().map(|part| (part, level + 1)));
            }
            Expr::Repeat { expr, .. } => open.push((expr, level + 1)),
            Expr::Unordered(set) => open.extend(set.parts().map(|part| (part, level + 1))),
            Expr::Empty
            | Expr::Literal(_)
            | Expr::Class(_)
            | Expr::Rule(_)
            | Expr::Token { .. } => {}
        }
    }
    deepest
}

/// For each rule, whether it matches the empty string.
pub(crate) fn nullable_rules(grammar: &Grammar) -> Vec<bool> {
    least(grammar, is_nullable)
}

/// The least solution of `holds` for all rules: a rule is asked again when one that it refers to
/// has come to hold, so that a long chain of rules costs no more than its length.
fn least(grammar: &Grammar, holds: fn(&Expr, &[bool]) -> bool) -> Vec<bool> {
    let count = grammar.rules().len();
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (at, rule) in grammar.rules().iter().enumerate() {
        for_each_reference(&rule.body, |target| {
            let users = &mut users[target.0 as usize];
            if users.last() != Some(&(at as u32)) {
                users.push(at as u32);
            }
        });
    }
    let mut found = vec![false; count];
    let mut queued = vec![true; count];
    // Rules mostly refer to later ones.
    let mut open: std::collections::VecDeque<usize> = (0..count).rev().collect();
    while let Some(at) = open.pop_front() {
        queued[at] = false;
        if found[at] || !holds(&grammar.rule(RuleId(at as u32)).body, &found) {
            continue;
        }
        found[at] = true;
        for &user in &users[at] {
            if !found[user as usize] && !std::mem::replace(&mut queued[user as usize], true) {
                open.push_back(user as usize);
            }
        }
    }
    found
}

/// Calls `visit` with every rule that `expr` refers to.
fn for_each_reference(expr: &Expr, mut visit: impl FnMut(RuleId)) {
    let mut parts = vec![expr];
    while let Some(expr) = parts.pop() {
        match expr {
            Expr::Seq(inner) | Expr::Alt(inner) => parts.extend(inner),
            Expr::Repeat { expr, .. } => parts.push(expr),
            Expr::Unordered(set) => parts.extend(set.parts()),
            Expr::Rule(id) => visit(*id),
            Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Token { .. } => {}
        }
    }
}

/// Whether `expr` matches the empty string, given which rules do.
pub(crate) fn is_nullable(expr: &Expr, rules: &[bool]) -> bool {
    match expr {
        Expr::Empty => true,
        Expr::Literal(text) => text.is_empty(),
        Expr::Class(_) | Expr::Token { .. } => false,
        Expr::Seq(parts) => parts.iter().all(|part| is_nullable(part, rules)),
        Expr::Alt(parts) => parts.iter().any(|part| is_nullable(part, rules)),
        Expr::Repeat { expr, min, max } => *min == 0 || *max == Some(0) || is_nullable(expr, rules),
        Expr::Unordered(set) => set.min == 0 && !set.members.iter().any(|member| member.required),
        Expr::Rule(id) => rules[id.0 as usize],
    }
}

/// Collects the rules that `expr` can begin with.
fn first_rules(expr: &Expr, nullable: &[bool], found: &mut Vec<RuleId>) {
    match expr {
        Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Token { .. } => {}
        Expr::Seq(parts) => {
            for part in parts {
                first_rules(part, nullable, found);
                if !is_nullable(part, nullable) {
                    break;
                }
            }
        }
        Expr::Alt(parts) => {
            for part in parts {
                first_rules(part, nullable, found);
            }
        }
        Expr::Repeat { expr, max, .. } => {
            if *max != Some(0) {
                first_rules(expr, nullable, found);
            }
        }
        Expr::Unordered(set) => {
            for member in set.members.iter().filter(|member| member.key.is_empty()) {
                first_rules(&member.value, nullable, found);
            }
            if let Some(others) = &set.others {
                first_rules(&others.item, nullable, found);
            }
        }
        Expr::Rule(id) => found.push(*id),
    }
}

/// A rule that begins with itself, directly, through others, or behind something that may be
/// empty: the rules of the circle in order, the first one repeated at the end.
pub(crate) fn left_recursion(grammar: &Grammar, nullable: &[bool]) -> Option<Vec<RuleId>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let firsts: Vec<Vec<RuleId>> = grammar
        .rules()
        .iter()
        .map(|rule| {
            let mut found = Vec::new();
            first_rules(&rule.body, nullable, &mut found);
            found
        })
        .collect();
    let mut marks = vec![Mark::New; firsts.len()];
    for start in 0..firsts.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut path = vec![(start, 0)];
        while let Some((rule, next)) = path.last_mut() {
            let Some(&target) = firsts[*rule].get(*next) else {
                marks[*rule] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let target = target.0 as usize;
            match marks[target] {
                Mark::Done => {}
                Mark::New => {
                    marks[target] = Mark::Open;
                    path.push((target, 0));
                }
                Mark::Open => {
                    let mut circle: Vec<RuleId> = path
                        .iter()
                        .map(|&(rule, _)| RuleId(rule as u32))
                        .skip_while(|rule| rule.0 as usize != target)
                        .collect();
                    circle.push(RuleId(target as u32));
                    return Some(circle);
                }
            }
        }
    }
    None
}

/// For each rule, whether it matches any text at all.
pub(crate) fn productive_rules(grammar: &Grammar) -> Vec<bool> {
    least(grammar, is_productive)
}

fn is_productive(expr: &Expr, rules: &[bool]) -> bool {
    match expr {
        Expr::Empty | Expr::Literal(_) | Expr::Token { .. } => true,
        Expr::Class(class) => !class.is_empty(),
        Expr::Seq(parts) => parts.iter().all(|part| is_productive(part, rules)),
        Expr::Alt(parts) => parts.iter().any(|part| is_productive(part, rules)),
        Expr::Repeat { expr, min, .. } => *min == 0 || is_productive(expr, rules),
        Expr::Unordered(set) => {
            let length = |expr: &Expr| is_productive(expr, rules).then_some(0);
            set.shortest(length).is_some()
        }
        Expr::Rule(id) => rules[id.0 as usize],
    }
}

/// For each rule, whether another one refers to it.
pub(crate) fn mentioned_rules(grammar: &Grammar) -> Vec<bool> {
    let mut mentioned = vec![false; grammar.rules().len()];
    for (at, rule) in grammar.rules().iter().enumerate() {
        for_each_reference(&rule.body, |target| {
            mentioned[target.0 as usize] |= target.0 as usize != at;
        });
    }
    mentioned
}

/// For each rule, whether the root leads to it.
pub(crate) fn reachable_rules(grammar: &Grammar) -> Vec<bool> {
    let mut reached = vec![false; grammar.rules().len()];
    reached[grammar.root().0 as usize] = true;
    let mut open = vec![grammar.root()];
    while let Some(rule) = open.pop() {
        for_each_reference(&grammar.rule(rule).body, |target| {
            if !std::mem::replace(&mut reached[target.0 as usize], true) {
                open.push(target);
            }
        });
    }
    reached
}
