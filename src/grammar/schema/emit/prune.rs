//! Drops alternatives that can never be finished, such as an object that requires itself.

use crate::grammar::ast::{Expr, GrammarBuilder, RuleId};

/// Rewrites the rules from `first` on so that every alternative can be finished. Returns whether
/// `root` can be.
pub fn unproductive(builder: &mut GrammarBuilder, first: usize, root: RuleId) -> bool {
    let count = builder.len();
    // Who uses whom, so that each rule is looked at again only when one it uses turned out well.
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); count];
    for index in first..count {
        let mut used = Vec::new();
        uses(&builder.rule_mut(RuleId(index as u32)).body, &mut used);
        for rule in used {
            users[rule.0 as usize].push(index as u32);
        }
    }
    let mut good = vec![false; count];
    good[..first].fill(true);
    let mut queue: Vec<u32> = (first as u32..count as u32).collect();
    while let Some(index) = queue.pop() {
        if good[index as usize] {
            continue;
        }
        if productive(&builder.rule_mut(RuleId(index)).body, &good) {
            good[index as usize] = true;
            queue.extend(&users[index as usize]);
        }
    }
    if good.iter().all(|&good| good) && good[root.0 as usize] {
        return true;
    }
    for index in first..count {
        let rule = builder.rule_mut(RuleId(index as u32));
        let body = std::mem::replace(&mut rule.body, Expr::Empty);
        rule.body = pruned(body, &good).unwrap_or(Expr::Alt(Vec::new()));
    }
    good[root.0 as usize]
}

fn uses(expr: &Expr, out: &mut Vec<RuleId>) {
    match expr {
        Expr::Rule(rule) => out.push(*rule),
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().for_each(|part| uses(part, out)),
        Expr::Repeat { expr, .. } => uses(expr, out),
        Expr::Unordered(set) => set.parts().for_each(|part| uses(part, out)),
        Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Token { .. } => {}
    }
}

fn productive(expr: &Expr, good: &[bool]) -> bool {
    match expr {
        Expr::Empty | Expr::Literal(_) | Expr::Token { .. } => true,
        Expr::Class(class) => !class.is_empty(),
        Expr::Seq(parts) => parts.iter().all(|part| productive(part, good)),
        Expr::Alt(parts) => parts.iter().any(|part| productive(part, good)),
        Expr::Repeat { expr, min, .. } => *min == 0 || productive(expr, good),
        Expr::Unordered(set) => set
            .shortest(|part| productive(part, good).then_some(0))
            .is_some(),
        Expr::Rule(rule) => good.get(rule.0 as usize).copied().unwrap_or(false),
    }
}

fn pruned(expr: Expr, good: &[bool]) -> Option<Expr> {
    Some(match expr {
        Expr::Seq(parts) => Expr::seq(
            parts
                .into_iter()
                .map(|part| pruned(part, good))
                .collect::<Option<Vec<_>>>()?,
        ),
        Expr::Alt(parts) => {
            let parts: Vec<Expr> = parts
                .into_iter()
                .filter_map(|part| pruned(part, good))
                .collect();
            if parts.is_empty() {
                return None;
            }
            Expr::alt(parts)
        }
        Expr::Repeat { expr, min, max } => match pruned(*expr, good) {
            Some(expr) => Expr::repeat(expr, min, max),
            None if min == 0 => Expr::Empty,
            None => return None,
        },
        Expr::Unordered(mut set) => {
            let members = std::mem::take(&mut set.members);
            for mut member in members {
                match pruned(member.value, good) {
                    Some(value) => {
                        member.value = value;
                        set.members.push(member);
                    }
                    None if member.required => return None,
                    None => {}
                }
            }
            set.others = set.others.and_then(|mut others| {
                others.item = pruned(others.item, good)?;
                Some(others)
            });
            // Whether enough is left.
            set.shortest(|part| productive(part, good).then_some(0))?;
            Expr::Unordered(set)
        }
        Expr::Rule(rule) if !good.get(rule.0 as usize).copied().unwrap_or(false) => return None,
        Expr::Class(class) if class.is_empty() => return None,
        other => other,
    })
}
