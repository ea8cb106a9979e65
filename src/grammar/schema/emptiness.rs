//! Emptiness: whether any value is left, and whether two schemas exclude each other.

use super::algebra::{Algebra, Outcome, Trouble};
use super::shape::{ANY, NEVER, Shape, StringSet, TermId};
use super::text::automaton::Automaton;

/// How deep emptiness looks into required properties and items.
const EMPTINESS_DEPTH: usize = 8;

impl Algebra<'_> {
    /// Whether surely no value satisfies the term. `false` may mean that it is not known.
    pub fn is_empty(&mut self, term: TermId) -> Outcome<bool> {
        if term == NEVER {
            return Ok(true);
        }
        if term == ANY {
            return Ok(false);
        }
        if let Some(&known) = self.empty.get(&term) {
            return Ok(known);
        }
        if self.looking >= EMPTINESS_DEPTH {
            return Ok(false);
        }
        self.looking += 1;
        let shape = self.shape(term);
        self.looking -= 1;
        let empty = match shape {
            Ok(shape) => shape.is_void(),
            // Not known yet: it is being computed.
            Err(Trouble::Circular(_)) => return Ok(false),
            Err(other) => return Err(other),
        };
        self.empty.insert(term, empty);
        Ok(empty)
    }

    /// Whether surely no value satisfies both.
    pub fn are_disjoint(&mut self, a: &Shape, b: &Shape) -> Outcome<bool> {
        let shape = self.intersection_quietly(a, b)?;
        if !shape.is_void() {
            if shape.null || shape.booleans != [false, false] || !shape.numbers.is_empty() {
                return Ok(false);
            }
            if !shape.arrays.is_empty() || !shape.objects.is_empty() {
                return Ok(false);
            }
            for set in &shape.strings {
                if !self.is_impossible_string(set) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn intersection_quietly(&mut self, a: &Shape, b: &Shape) -> Outcome<Shape> {
        let limit = self.options.limits.alternatives;
        self.options.limits.alternatives = usize::MAX / 8;
        let result = if a.objects.len().saturating_mul(b.objects.len()) > limit.saturating_mul(4)
            || a.strings.len().saturating_mul(b.strings.len()) > limit.saturating_mul(4)
        {
            Ok(Shape::any())
        } else {
            self.intersection(a, b, None)
        };
        self.options.limits.alternatives = limit;
        result
    }

    /// Whether the patterns of the set surely exclude each other.
    pub fn is_impossible_string(&mut self, set: &StringSet) -> bool {
        if set.only.is_some() || set.patterns.len() < 2 {
            return false;
        }
        let limit = self.options.limits.states;
        let mut all: Option<Automaton> = None;
        for &(pattern, positive) in &set.patterns {
            let Some(automaton) = self.patterns.automaton(pattern).cloned() else {
                continue;
            };
            let automaton = if positive {
                automaton
            } else {
                automaton.complement()
            };
            all = match all {
                None => Some(automaton),
                Some(all) => match all.intersection(&automaton, limit) {
                    Some(both) => Some(both),
                    None => return false,
                },
            };
        }
        all.is_some_and(|all| all.is_empty())
    }
}
