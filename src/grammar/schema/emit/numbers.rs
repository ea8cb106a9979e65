//! Number sets to expressions: bounds digit by digit, multiples by remainder.

use super::super::decimal::Decimal;
use super::super::shape::NumberSet;
use super::super::text::automaton::Automaton;
use super::super::text::re::Re;
use super::intervals::{integer_interval, magnitudes, natural, with_nonzero, with_sign};
use super::{Emitter, json};
use crate::grammar::ast::{CharClass, Expr};

/// Integers that are simply listed.
const MAX_LISTED: i128 = 24;
/// Largest divisor that gets a remainder automaton.
const MAX_DIVISOR: i128 = 1_000;
/// Digits after the point that no rounding of usual numbers swallows.
const EXACT_DIGITS: u32 = 12;
/// Longest bound that is written out digit by digit.
const MAX_WRITTEN: u64 = 400;

impl Emitter<'_, '_> {
    /// The JSON numbers of `set`.
    pub(super) fn number(&mut self, set: &NumberSet, hint: &str) -> Expr {
        let options = self.algebra.options;
        if let Some(only) = &set.only {
            return Expr::alt(only.iter().map(|(_, text)| Expr::literal(text.clone())));
        }
        if set.low.is_none() || set.high.is_none() {
            self.bounded_number();
        }
        let plain =
            set.multiples.is_empty() && set.not_multiples.is_empty() && set.except.is_empty();
        let unbounded = set.low.is_none() && set.high.is_none();
        let integer = set.integer == Some(true) || set.multiples.iter().any(Decimal::is_integer);
        if integer {
            if plain && unbounded {
                return Expr::Rule(json::integer(self.builder, &options));
            }
            return self.integers(set, plain, hint);
        }
        if plain && unbounded && set.integer.is_none() {
            return Expr::Rule(json::number(self.builder, &options));
        }
        if set.integer == Some(false) {
            if !unbounded || !plain {
                self.weakened_number(set);
            }
            return self.expression(&with_sign(Re::concat([
                natural(options.bounds.integer_digits),
                Re::char('.'),
                with_nonzero(options.bounds.fraction_digits),
            ])));
        }
        let places = decimal_places(set);
        if !set.not_multiples.is_empty()
            || !set.except.is_empty()
            || (!set.multiples.is_empty() && places.is_none())
        {
            self.weakened_number(set);
        }
        let Some(re) = self.decimals(set, places) else {
            self.weakened_number(set);
            return Expr::Rule(json::number(self.builder, &options));
        };
        self.expression(&re)
    }

    fn bounded_number(&mut self) {
        if let Some(bound) = self.algebra.options.bounds.integer_digits {
            self.algebra
                .sites
                .bounded(self.node, "digits", format!("{bound} by default"));
        }
    }

    fn weakened_number(&mut self, set: &NumberSet) {
        let why = "no expression of bearable size for this";
        self.weakened(&set.origins, "number", why);
    }

    fn integers(&mut self, set: &NumberSet, plain: bool, hint: &str) -> Expr {
        let digits = self.algebra.options.bounds.integer_digits;
        let (low, high) = (set.lowest_integer(), set.highest_integer());
        let too_long = |bound: &Option<Decimal>| {
            bound
                .as_ref()
                .is_some_and(|bound| bound.written_length() > MAX_WRITTEN)
        };
        if too_long(&low) || too_long(&high) {
            self.weakened_number(set);
            let options = self.algebra.options;
            return Expr::Rule(json::integer(self.builder, &options));
        }
        if let (Some(a), Some(b)) = (&low, &high)
            && let (Some(a), Some(b)) = (a.to_i128(), b.to_i128())
            && b.saturating_sub(a) < if plain { 1 } else { MAX_LISTED * 8 }
        {
            let listed: Vec<Expr> = (a..=b)
                .filter(|&n| set.admits(&decimal(n)))
                .map(|n| Expr::literal(n.to_string()))
                .collect();
            return Expr::alt(listed);
        }
        let re = integer_interval(low.as_ref(), high.as_ref(), digits);
        if plain {
            return self.expression(&re);
        }
        match self.integer_automaton(set, &re) {
            Some(automaton) => self.automaton(&automaton, hint, &Expr::Empty),
            None => {
                self.weakened_number(set);
                self.expression(&re)
            }
        }
    }

    fn integer_automaton(&mut self, set: &NumberSet, re: &Re) -> Option<Automaton> {
        let limit = self.algebra.options.limits.states;
        let mut all = Automaton::new(re, true, limit)?;
        for (list, positive) in [(&set.multiples, true), (&set.not_multiples, false)] {
            for of in list {
                let remainder = remainder_automaton(of)?;
                let remainder = if positive {
                    remainder
                } else {
                    remainder.complement()
                };
                all = all.intersection(&remainder, limit)?;
            }
        }
        if !set.except.is_empty() {
            let texts: Vec<String> = set.except.iter().map(ToString::to_string).collect();
            let except = Automaton::of_texts(texts.iter().map(String::as_str), limit)?;
            all = all.intersection(&except.complement(), limit)?;
        }
        Some(all)
    }

    /// Numbers within the bounds, with at most `places` decimals.
    fn decimals(&mut self, set: &NumberSet, places: Option<u32>) -> Option<Re> {
        let bounds = self.algebra.options.bounds;
        let zero = Decimal::zero();
        let fraction = match places {
            Some(places) => Some(places),
            None => bounds.fraction_digits,
        };
        // A reader rounds: many digits behind an excluded bound would round to the bound.
        let excluded = |bound: &Option<(Decimal, bool)>| {
            bound
                .as_ref()
                .is_some_and(|(value, closed)| !closed && !value.is_zero())
        };
        let fraction = if excluded(&set.low) || excluded(&set.high) {
            Some(fraction.map_or(EXACT_DIGITS, |most| most.min(EXACT_DIGITS)))
        } else {
            fraction
        };
        let within = |bound: &Option<(Decimal, bool)>| {
            bound
                .as_ref()
                .is_none_or(|(value, _)| value.written_length() <= MAX_WRITTEN)
        };
        if !within(&set.low) || !within(&set.high) {
            return None;
        }
        let mut alternatives = Vec::new();
        // Negative numbers by their magnitude.
        if set.low.as_ref().is_none_or(|(low, _)| low.is_negative()) {
            let low = match &set.high {
                Some((high, closed)) if *high < zero => (high.negated(), *closed),
                _ => (zero.clone(), false),
            };
            let high = set
                .low
                .as_ref()
                .map(|(low, closed)| (low.negated(), *closed));
            alternatives.push(Re::concat([
                Re::char('-'),
                magnitudes(
                    &low,
                    high.as_ref(),
                    bounds.integer_digits,
                    fraction,
                    places.is_none(),
                ),
            ]));
        }
        if set
            .high
            .as_ref()
            .is_none_or(|(high, _)| !high.is_negative())
        {
            let low = match &set.low {
                Some((low, closed)) if !low.is_negative() => (low.clone(), *closed),
                _ => (zero.clone(), true),
            };
            alternatives.push(magnitudes(
                &low,
                set.high.as_ref(),
                bounds.integer_digits,
                fraction,
                places.is_none(),
            ));
        }
        Some(Re::alt(alternatives))
    }
}

fn decimal(value: i128) -> Decimal {
    Decimal::parse(&value.to_string()).unwrap_or_else(Decimal::zero)
}

/// If the numbers are the multiples of powers of ten only: how many decimals they have.
fn decimal_places(set: &NumberSet) -> Option<u32> {
    let mut most: Option<u32> = None;
    for of in &set.multiples {
        let places = of.fraction_digits();
        let power = of.whole_digits().iter().all(|&d| d == 0)
            && places.last() == Some(&1)
            && places[..places.len() - 1].iter().all(|&d| d == 0);
        if !power {
            return None;
        }
        let places = places.len() as u32;
        most = Some(most.map_or(places, |most| most.min(places)));
    }
    most
}

/// Integers, with or without a sign, that `of` divides; for small integers and powers of ten.
fn remainder_automaton(of: &Decimal) -> Option<Automaton> {
    let of = of.to_i128()?;
    if of <= 0 || of > MAX_DIVISOR {
        return None;
    }
    let of = of as usize;
    let sets: Vec<CharClass> = ('0'..='9')
        .chain(['-'])
        .map(|c| CharClass::from_ranges([(c, c)]))
        .collect();
    // The start, one state for each remainder, and a dead one.
    let dead = of + 1;
    Some(Automaton::from_table(
        &sets,
        of + 2,
        |state| state == 1,
        |state, c| match c.to_digit(10) {
            _ if state == dead => dead,
            Some(digit) if state == 0 => 1 + digit as usize % of,
            Some(digit) => 1 + ((state - 1) * 10 + digit as usize) % of,
            None if c == '-' && state == 0 => 0,
            None => dead,
        },
    ))
}
