//! Arrays some of whose items must satisfy a schema: those items are the members of a set that has
//! no keys, all others its other items.

use super::super::algebra::Outcome;
use super::super::shape::{ArraySet, Contains, TermId};
use super::Emitter;
use super::json::Style;
use crate::grammar::ast::{Expr, Member, Others, Unordered};

/// Items that must satisfy something. Each may be one that satisfies another schema too, which
/// makes as many alternatives as there are partitions: 15 for four.
const MOST_WANTED: u64 = 4;

impl Emitter<'_, '_> {
    /// The JSON arrays of `set`; nothing if what they contain takes too large a grammar.
    pub(super) fn containing(
        &mut self,
        set: &ArraySet,
        hint: &str,
        style: Style,
    ) -> Outcome<Option<Expr>> {
        if !set.prefix.is_empty() || self.algebra.options.gbnf {
            return Ok(None);
        }
        if set
            .contains
            .iter()
            .any(|c| c.max.is_some_and(|max| max < c.min))
        {
            return Ok(Some(Expr::Alt(Vec::new())));
        }
        let guard = match set.max {
            Some(_) => None,
            None => self.items_bound(set.min),
        };
        let most = |contains: &Contains| contains.max.unwrap_or(contains.min);
        let wanted = set.contains.iter().map(most).fold(0, u64::saturating_add);
        if wanted > MOST_WANTED {
            return Ok(None);
        }
        // Each alternative: what its members satisfy, whether they must be there, and the others.
        let mut alternatives: Vec<(Vec<(TermId, bool)>, TermId)> = Vec::new();
        match set.contains.as_slice() {
            [contains] if contains.max.is_some() => {
                let opposite = self.algebra.not(contains.term);
                if !self.algebra.shape(opposite)?.is_exact() {
                    return Ok(None);
                }
                let member = self.algebra.all([set.rest, contains.term]);
                let others = self.algebra.all([set.rest, opposite]);
                let members = (0..wanted).map(|number| (member, number < contains.min));
                alternatives.push((members.collect(), others));
            }
            all if all.iter().all(|contains| contains.max.is_none()) => {
                let mut wanted = Vec::new();
                for (number, contains) in all.iter().enumerate() {
                    wanted.extend((0..contains.min).map(|_| number));
                }
                for partition in partitions(&wanted) {
                    let mut members = Vec::new();
                    for block in &partition {
                        let terms = block.iter().map(|&number| all[number].term);
                        let term = self.algebra.all(terms.chain([set.rest]));
                        members.push((term, true));
                    }
                    members.sort_unstable();
                    if !alternatives.iter().any(|known| known.0 == members) {
                        alternatives.push((members, set.rest));
                    }
                }
            }
            _ => return Ok(None),
        }
        let hint = format!("{hint}-item");
        let mut written = Vec::new();
        for (terms, others) in alternatives {
            let mut members = Vec::new();
            let mut possible = true;
            for (term, required) in terms {
                if self.algebra.is_empty(term)? {
                    possible &= !required;
                    continue;
                }
                members.push(Member {
                    key: String::new(),
                    value: self.value(term, &hint)?,
                    required,
                });
            }
            if !possible {
                continue;
            }
            let others = if self.algebra.is_empty(others)? {
                None
            } else {
                let item = self.value(others, &hint)?;
                Some(Others { item, guard })
            };
            written.push(Expr::Unordered(Box::new(Unordered {
                members,
                separator: style.comma(),
                others,
                min: self.length(set.min)?,
                max: set.max.and_then(|max| u32::try_from(max).ok()),
            })));
        }
        Ok(Some(Expr::seq([
            style.open("["),
            Expr::alt(written),
            style.close("]"),
        ])))
    }
}

/// All ways to part `wanted` into blocks of different numbers.
fn partitions(wanted: &[usize]) -> Vec<Vec<Vec<usize>>> {
    let mut all: Vec<Vec<Vec<usize>>> = vec![Vec::new()];
    for &number in wanted {
        let mut longer = Vec::new();
        for partition in all {
            for block in 0..partition.len() {
                if !partition[block].contains(&number) {
                    let mut joined = partition.clone();
                    joined[block].push(number);
                    longer.push(joined);
                }
            }
            let mut parted = partition;
            parted.push(vec![number]);
            longer.push(parted);
        }
        all = longer;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::partitions;

    #[test]
    fn partitions_are_all_and_keep_equals_apart() {
        for (wanted, count) in [
            (&[][..], 1),
            (&[0][..], 1),
            (&[0, 1][..], 2),
            (&[0, 1, 2][..], 5),
            (&[0, 1, 2, 3][..], 15),
            (&[0, 0][..], 1),
            (&[0, 0, 1][..], 3),
        ] {
            assert_eq!(partitions(wanted).len(), count, "{wanted:?}");
        }
    }
}
