//! Complements: the values that a shape does not admit.

use std::rc::Rc;

use super::algebra::{Algebra, Outcome, Term, product};
use super::shape::{
    ANY, ArraySet, Contains, NEVER, NumberSet, ObjectSet, Property, Scope, Shape, StringSet,
    TermId, merged,
};

impl Algebra<'_> {
    /// What the shape does not admit; loose where it is loose.
    pub(super) fn complement(&mut self, shape: &Shape) -> Outcome<Shape> {
        let mut out = Shape {
            null: !shape.null || shape.loose,
            booleans: shape.booleans.map(|admitted| !admitted || shape.loose),
            loose: shape.loose,
            numbers: vec![NumberSet::default()],
            strings: vec![StringSet::default()],
            arrays: vec![ArraySet::default()],
            objects: vec![ObjectSet::default()],
        };
        let limit = self.options.limits.alternatives;
        // Not (a or b) is not a and not b; each "not a" is an alternation of broken constraints.
        for set in &shape.numbers {
            let broken = broken_number(set);
            out.numbers = narrowed(
                &out.numbers,
                broken,
                limit,
                |left| NumberSet {
                    loose: true,
                    origins: merged(&left.origins, &set.origins),
                    ..left
                },
                |x, y| Ok(x.intersection(y)),
            )?;
        }
        for set in &shape.strings {
            let broken = broken_string(set);
            out.strings = narrowed(
                &out.strings,
                broken,
                limit,
                |left| StringSet {
                    loose: true,
                    origins: merged(&left.origins, &set.origins),
                    ..left
                },
                |x, y| Ok(self.string_intersection(x, y)),
            )?;
        }
        for set in &shape.arrays {
            let broken = self.broken_array(set);
            out.arrays = narrowed(
                &out.arrays,
                broken,
                limit,
                |left| ArraySet {
                    loose: true,
                    origins: merged(&left.origins, &set.origins),
                    ..left
                },
                |x, y| self.array_intersection(x, y),
            )?;
        }
        for set in &shape.objects {
            let broken = self.broken_object(set);
            out.objects = narrowed(
                &out.objects,
                broken,
                limit,
                |left| ObjectSet {
                    loose: true,
                    origins: merged(&left.origins, &set.origins),
                    ..left
                },
                |x, y| self.object_intersection(x, y),
            )?;
        }
        Ok(out)
    }

    /// Arrays that are not in the set; nothing if that cannot be said.
    fn broken_array(&mut self, set: &ArraySet) -> Option<Vec<ArraySet>> {
        if set.loose || set.unique || set.contains.iter().any(|c| c.max.is_some()) {
            return None;
        }
        let mut out = Vec::new();
        let min = set.min;
        if min > 0 {
            out.push(ArraySet {
                max: Some(min - 1),
                origins: set.origins.clone(),
                ..ArraySet::default()
            });
        }
        if let Some(max) = set.max {
            out.push(ArraySet {
                min: max + 1,
                origins: set.origins.clone(),
                ..ArraySet::default()
            });
        }
        for (index, &term) in set.prefix.iter().enumerate() {
            if term != ANY {
                let mut prefix = vec![ANY; index];
                prefix.push(self.not(term));
                out.push(ArraySet {
                    prefix,
                    min: index as u64 + 1,
                    origins: set.origins.clone(),
                    ..ArraySet::default()
                });
            }
        }
        if set.rest == NEVER {
            out.push(ArraySet {
                min: set.prefix.len() as u64 + 1,
                origins: set.origins.clone(),
                ..ArraySet::default()
            });
        } else if set.rest != ANY {
            if !set.prefix.is_empty() {
                return None;
            }
            let term = self.not(set.rest);
            out.push(ArraySet {
                contains: vec![Contains {
                    term,
                    min: 1,
                    max: None,
                }],
                origins: set.origins.clone(),
                ..ArraySet::default()
            });
        }
        for contains in &set.contains {
            if contains.min != 1 {
                return None;
            }
            out.push(ArraySet {
                rest: self.not(contains.term),
                origins: set.origins.clone(),
                ..ArraySet::default()
            });
        }
        Some(out)
    }

    /// Objects that are not in the set; nothing if that cannot be said.
    fn broken_object(&mut self, set: &ObjectSet) -> Option<Vec<ObjectSet>> {
        if set.loose {
            return None;
        }
        if admits_no_property(set) {
            // Empty objects alone, or none where a property is required.
            let needs_one = set.min > 0 || set.properties.iter().any(|p| p.required);
            return Some(vec![ObjectSet {
                min: u64::from(!needs_one),
                origins: set.origins.clone(),
                ..ObjectSet::default()
            }]);
        }
        if !set.names.is_empty() || set.groups.iter().any(|g| g.term != ANY) {
            return None;
        }
        let mut out = Vec::new();
        for property in &set.properties {
            if property.required {
                out.push(ObjectSet {
                    properties: vec![Property {
                        name: Rc::clone(&property.name),
                        term: NEVER,
                        required: false,
                    }],
                    origins: set.origins.clone(),
                    ..ObjectSet::default()
                });
            }
            if property.term != ANY {
                out.push(ObjectSet {
                    properties: vec![Property {
                        name: Rc::clone(&property.name),
                        term: self.not(property.term),
                        required: true,
                    }],
                    origins: set.origins.clone(),
                    ..ObjectSet::default()
                });
            }
        }
        if set.min > 0 {
            out.push(ObjectSet {
                max: Some(set.min - 1),
                origins: set.origins.clone(),
                ..ObjectSet::default()
            });
        }
        if let Some(max) = set.max {
            out.push(ObjectSet {
                min: max + 1,
                origins: set.origins.clone(),
                ..ObjectSet::default()
            });
        }
        Some(out)
    }
}

impl Algebra<'_> {
    /// Whether a complement went into the term, outside of any schema: what it says loosely has
    /// not been reported then.
    pub(super) fn has_opposite(&self, term: TermId) -> bool {
        match self.term(term) {
            Term::Not(_) => true,
            Term::All(parts) | Term::Some(parts) => {
                parts.iter().any(|&part| self.has_opposite(part))
            }
            Term::Any | Term::Never | Term::Schema(_) | Term::Shape(_) => false,
        }
    }
}

/// Whether the set admits no property at all.
fn admits_no_property(set: &ObjectSet) -> bool {
    let is_barred = |pattern| {
        let barred = |scope: &Scope| matches!(scope, Scope::Matching(own) if *own == pattern);
        set.groups
            .iter()
            .any(|group| group.term == NEVER && barred(&group.scope))
    };
    set.properties.iter().all(|property| property.term == NEVER)
        && set.groups.iter().any(|group| {
            let rest =
                matches!(&group.scope, Scope::Others(but) if but.iter().all(|&p| is_barred(p)));
            group.term == NEVER && rest
        })
}

/// One step of a complement: `left` and `broken`. What cannot be said leaves `left` loose.
fn narrowed<T: PartialEq + Clone>(
    left: &[T],
    broken: Option<Vec<T>>,
    limit: usize,
    loosen: impl Fn(T) -> T,
    combine: impl FnMut(&T, &T) -> Outcome<Option<T>>,
) -> Outcome<Vec<T>> {
    let mut overflow = false;
    let both = match broken {
        Some(broken) => product(left, &broken, limit, &mut overflow, combine)?,
        None => None,
    };
    Ok(both.unwrap_or_else(|| left.iter().cloned().map(loosen).collect()))
}
/// Numbers that are not in the set; nothing if it is loose.
fn broken_number(set: &NumberSet) -> Option<Vec<NumberSet>> {
    if set.loose {
        return None;
    }
    if let Some(only) = &set.only {
        return Some(vec![NumberSet {
            except: only.iter().map(|(value, _)| value.clone()).collect(),
            ..NumberSet::default()
        }]);
    }
    let mut out = Vec::new();
    if let Some(integer) = set.integer {
        out.push(NumberSet {
            integer: Some(!integer),
            ..NumberSet::default()
        });
    }
    if let Some((low, closed)) = &set.low {
        out.push(NumberSet {
            high: Some((low.clone(), !closed)),
            ..NumberSet::default()
        });
    }
    if let Some((high, closed)) = &set.high {
        out.push(NumberSet {
            low: Some((high.clone(), !closed)),
            ..NumberSet::default()
        });
    }
    for of in &set.multiples {
        out.push(NumberSet {
            not_multiples: vec![of.clone()],
            ..NumberSet::default()
        });
    }
    for of in &set.not_multiples {
        out.push(NumberSet {
            multiples: vec![of.clone()],
            ..NumberSet::default()
        });
    }
    if !set.except.is_empty() {
        out.push(NumberSet {
            only: Some(
                set.except
                    .iter()
                    .map(|value| (value.clone(), value.to_string()))
                    .collect(),
            ),
            ..NumberSet::default()
        });
    }
    Some(out)
}

/// Strings that are not in the set; nothing if it is loose.
fn broken_string(set: &StringSet) -> Option<Vec<StringSet>> {
    if set.loose {
        return None;
    }
    if let Some(only) = &set.only {
        return Some(vec![StringSet {
            except: only.to_vec(),
            ..StringSet::default()
        }]);
    }
    let mut out = Vec::new();
    if set.min > 0 {
        out.push(StringSet {
            max: Some(set.min - 1),
            ..StringSet::default()
        });
    }
    if let Some(max) = set.max {
        out.push(StringSet {
            min: max + 1,
            ..StringSet::default()
        });
    }
    for &(pattern, positive) in &set.patterns {
        out.push(StringSet {
            patterns: vec![(pattern, !positive)],
            origins: set.origins.clone(),
            ..StringSet::default()
        });
    }
    if !set.except.is_empty() {
        out.push(StringSet {
            only: Some(set.except.iter().cloned().collect()),
            ..StringSet::default()
        });
    }
    Some(out)
}
