//! Arrays whose items all differ, where there are few values to choose from: each value is a
//! member of a set, and the grammar knows which were there.

use super::super::algebra::Outcome;
use super::super::decimal::Decimal;
use super::super::shape::{ArraySet, NumberSet, Shape};
use super::json::Style;
use super::{Emitter, json};
use crate::grammar::ast::{Expr, Member, Unordered};

/// Values in any order that GBNF takes a bearable number of rules for.
const MOST_PRINTED: usize = 6;

impl Emitter<'_, '_> {
    /// The JSON arrays of `set` with every item at most once; nothing if its items are not few.
    pub(super) fn distinct(&mut self, set: &ArraySet, style: Style) -> Outcome<Option<Expr>> {
        if !set.prefix.is_empty() || !set.contains.is_empty() {
            return Ok(None);
        }
        let shape = self.algebra.shape(set.rest)?;
        let options = &self.algebra.options;
        let limit = if options.gbnf {
            options.limits.distinct.min(MOST_PRINTED)
        } else {
            options.limits.distinct
        };
        let Some(texts) = texts(&shape, limit) else {
            return Ok(None);
        };
        let member = |key| Member {
            key,
            value: Expr::Empty,
            required: false,
        };
        let items = Unordered {
            members: texts.into_iter().map(member).collect(),
            separator: style.comma(),
            others: None,
            min: self.length(set.min)?,
            max: set.max.and_then(|max| u32::try_from(max).ok()),
        };
        Ok(Some(Expr::seq([
            style.open("["),
            Expr::Unordered(Box::new(items)),
            style.close("]"),
        ])))
    }
}

/// The JSON texts of the values of a shape, each value once; nothing if there are more than
/// `limit`, or a value that can be written in several ways.
fn texts(shape: &Shape, limit: usize) -> Option<Vec<String>> {
    if shape.loose || !shape.arrays.is_empty() || !shape.objects.is_empty() {
        return None;
    }
    let mut texts = Vec::new();
    for set in &shape.strings {
        let only = set.only.as_ref().filter(|_| !set.loose)?;
        texts.extend(only.iter().map(|text| json::quoted(text)));
    }
    let mut numbers: Vec<(Decimal, String)> = Vec::new();
    for set in &shape.numbers {
        numbers.extend(spelled(set, limit)?);
    }
    numbers.sort();
    numbers.dedup();
    if numbers.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    texts.extend(numbers.into_iter().map(|(_, text)| text));
    for (value, text) in shape.booleans.into_iter().zip(["false", "true"]) {
        texts.extend(value.then(|| text.to_owned()));
    }
    texts.extend(shape.null.then(|| "null".to_owned()));
    let mut seen = rustc_hash::FxHashSet::default();
    texts.retain(|text| seen.insert(text.clone()));
    (texts.len() <= limit).then_some(texts)
}

/// Digits of an integer that is written out.
const LONGEST: u64 = 40;

/// The numbers of a set with their spelling.
fn spelled(set: &NumberSet, limit: usize) -> Option<Vec<(Decimal, String)>> {
    if set.loose {
        return None;
    }
    if let Some(only) = &set.only {
        return Some(only.to_vec());
    }
    if set.integer != Some(true) {
        return None;
    }
    let (low, high) = set.integers()?;
    let mut all = Vec::new();
    let mut next = low;
    for _ in 0..=limit {
        if next > high {
            return Some(all);
        }
        if next.written_length() > LONGEST {
            return None;
        }
        if set.admits(&next) {
            all.push((next.clone(), next.to_string()));
        }
        next = next.next_integer();
    }
    None
}
