//! Number sets to expressions: bounds digit by digit, multiples by remainder.

use super::super::decimal::Decimal;
use super::super::shape::NumberSet;
use super::super::text::automaton::Automaton;
use super::super::text::re::Re;
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
                self.weakened(set);
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
            self.weakened(set);
        }
        let Some(re) = self.decimals(set, places) else {
            self.weakened(set);
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

    fn weakened(&mut self, set: &NumberSet) {
        self.algebra
            .sites
            .check_all(&set.origins, "no expression of bearable size for this");
        if set.origins.is_empty() {
            let site = self.algebra.sites.enforced(self.node, "number");
            self.algebra
                .sites
                .check(site, "excluded numbers cannot all be written down");
        }
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
            self.weakened(set);
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
                self.weakened(set);
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

fn digit(low: u8, high: u8) -> Re {
    if low > high {
        Re::never()
    } else {
        Re::ranges(&[(char::from(b'0' + low), char::from(b'0' + high))])
    }
}

fn digits(min: u32, max: Option<u32>) -> Re {
    Re::repeat(digit(0, 9), min, max.map(|max| max.max(min)))
}

fn with_sign(re: Re) -> Re {
    Re::concat([Re::optional(Re::char('-')), re])
}

/// Integers without a sign.
fn natural(most: Option<u32>) -> Re {
    Re::alt([
        digit(0, 0),
        Re::concat([digit(1, 9), digits(0, most.map(|n| n.saturating_sub(1)))]),
    ])
}

/// At most `most` digits, of which one at least is not zero.
fn with_nonzero(most: Option<u32>) -> Re {
    let Some(most) = most else {
        return Re::concat([Re::star(digit(0, 0)), digit(1, 9), digits(0, None)]);
    };
    Re::alt((0..most).map(|zeros| {
        Re::concat([
            Re::repeat(digit(0, 0), zeros, Some(zeros)),
            digit(1, 9),
            digits(0, Some(most - zeros - 1)),
        ])
    }))
}

fn integer_interval(low: Option<&Decimal>, high: Option<&Decimal>, most: Option<u32>) -> Re {
    let mut alternatives = Vec::new();
    let zero = Decimal::zero();
    let one = Decimal::from_int(1);
    if low.is_none_or(Decimal::is_negative) {
        let from = match high {
            Some(high) if *high < zero => high.negated(),
            _ => one,
        };
        let to = low.map(|low| low.negated().whole_digits());
        alternatives.push(Re::concat([
            Re::char('-'),
            naturals(&from.whole_digits(), to.as_deref(), most),
        ]));
    }
    if high.is_none_or(|high| !high.is_negative()) {
        let from = match low {
            Some(low) if !low.is_negative() => low.clone(),
            _ => zero,
        };
        alternatives.push(naturals(
            &from.whole_digits(),
            high.map(Decimal::whole_digits).as_deref(),
            most,
        ));
    }
    Re::alt(alternatives)
}

/// Integers from `low` to `high`, both without a sign and without leading zeros.
fn naturals(low: &[u8], high: Option<&[u8]>, most: Option<u32>) -> Re {
    let mut alternatives = Vec::new();
    let longest = high.map(<[u8]>::len);
    let nines = vec![9u8; low.len()];
    // As long as the lower bound.
    match high {
        Some(high) if high.len() == low.len() => return span(low, high),
        _ => {
            // Zero stands alone, the others may share a form with longer ones.
            if low == [0] {
                alternatives.push(digit(0, 0));
            } else if low.first() != Some(&1) || low[1..].iter().any(|&d| d != 0) {
                alternatives.push(span(low, &nines));
            }
        }
    }
    let first_free = if low == [0] {
        1
    } else if low.first() == Some(&1) && low[1..].iter().all(|&d| d == 0) {
        low.len()
    } else {
        low.len() + 1
    };
    let last_free = match high {
        Some(high) if high.iter().all(|&d| d == 9) => Some(high.len()),
        Some(high) => Some(high.len() - 1),
        None => most.map(|most| (most as usize).max(first_free)),
    };
    if last_free.is_none_or(|last| last >= first_free) {
        alternatives.push(Re::concat([
            digit(1, 9),
            digits(first_free as u32 - 1, last_free.map(|last| last as u32 - 1)),
        ]));
    }
    if let (Some(high), Some(longest)) = (high, longest)
        && last_free != Some(longest)
    {
        let mut start = vec![0u8; longest];
        start[0] = 1;
        alternatives.push(span(&start, high));
    }
    Re::alt(alternatives)
}

/// Digit strings of one length between two, inclusive.
fn span(low: &[u8], high: &[u8]) -> Re {
    let (Some((&a, low_rest)), Some((&b, high_rest))) = (low.split_first(), high.split_first())
    else {
        return Re::Empty;
    };
    let count = low_rest.len() as u32;
    if a == b {
        return Re::concat([digit(a, a), span(low_rest, high_rest)]);
    }
    if a > b {
        return Re::never();
    }
    let (mut from, mut to) = (a, b);
    let mut alternatives = Vec::new();
    if low_rest.iter().any(|&d| d != 0) {
        alternatives.push(Re::concat([
            digit(a, a),
            span(low_rest, &vec![9; low_rest.len()]),
        ]));
        from += 1;
    }
    let mut last = None;
    if high_rest.iter().any(|&d| d != 9) {
        last = Some(Re::concat([
            digit(b, b),
            span(&vec![0; high_rest.len()], high_rest),
        ]));
        to -= 1;
    }
    if from <= to {
        alternatives.push(Re::concat([digit(from, to), digits(count, Some(count))]));
    }
    alternatives.extend(last);
    Re::alt(alternatives)
}

/// Decimal texts without a sign between `low` and `high`, with exponents where that is simple.
fn magnitudes(
    low: &(Decimal, bool),
    high: Option<&(Decimal, bool)>,
    integer_digits: Option<u32>,
    fraction: Option<u32>,
    exponents: bool,
) -> Re {
    let (low_value, low_closed) = low;
    let low_whole = low_value.floor();
    let low_fraction = low_value.fraction_digits();
    let mut alternatives = Vec::new();
    let any = Fraction::any(fraction);
    let whole = |value: &Decimal| Re::concat(value.whole_digits().into_iter().map(|d| digit(d, d)));
    let next = low_whole.next_integer();
    match high {
        Some((high_value, high_closed)) => {
            let high_whole = high_value.floor();
            let high_fraction = high_value.fraction_digits();
            if low_whole > high_whole {
                return Re::never();
            }
            if low_whole == high_whole {
                let between = Fraction::between(
                    &low_fraction,
                    *low_closed,
                    &high_fraction,
                    *high_closed,
                    fraction,
                );
                alternatives.push(Re::concat([whole(&low_whole), between.point()]));
            } else {
                let mut from = next;
                if low_fraction.is_empty() && *low_closed {
                    from = low_whole;
                } else {
                    let above = Fraction::above(&low_fraction, *low_closed, fraction);
                    alternatives.push(Re::concat([whole(&low_whole), above.point()]));
                }
                let to = high_whole.previous_integer();
                if from <= to {
                    alternatives.push(Re::concat([
                        naturals(
                            &from.whole_digits(),
                            Some(&to.whole_digits()),
                            integer_digits,
                        ),
                        any.point(),
                    ]));
                }
                let below = Fraction::below(&high_fraction, *high_closed, fraction);
                if below.nullable || below.more.is_some() {
                    alternatives.push(Re::concat([whole(&high_whole), below.point()]));
                }
            }
        }
        None => {
            let mut from = next;
            if low_fraction.is_empty() && *low_closed {
                from = low_whole;
            } else {
                let above = Fraction::above(&low_fraction, *low_closed, fraction);
                alternatives.push(Re::concat([whole(&low_whole), above.point()]));
            }
            alternatives.push(Re::concat([
                naturals(&from.whole_digits(), None, integer_digits),
                any.point(),
            ]));
        }
    }
    if exponents {
        let mantissa = Re::concat([digit(1, 9), any.point()]);
        let e = Re::ranges(&[('e', 'e'), ('E', 'E')]);
        let one = Decimal::from_int(1);
        // d.ddde-n lies between 0 and 1.
        if low_value.is_zero() && high.is_none_or(|(high, _)| *high >= one) {
            alternatives.push(Re::concat([
                mantissa.clone(),
                e.clone(),
                Re::char('-'),
                Re::repeat(digit(0, 0), 0, Some(1)),
                digit(1, 9),
                digits(0, Some(1)),
            ]));
        }
        // d.ddde+n with n at least 16 lies above all bounds that are not larger still.
        let large = Decimal::parse("1e16").unwrap_or_else(Decimal::zero);
        if high.is_none() && *low_value < large {
            alternatives.push(Re::concat([
                mantissa,
                e,
                Re::optional(Re::char('+')),
                Re::alt([
                    Re::concat([digit(1, 1), digit(6, 9)]),
                    Re::concat([digit(2, 9), digit(0, 9)]),
                    Re::concat([digit(1, 1), digit(0, 9), digit(0, 9)]),
                ]),
            ]));
        }
    }
    Re::alt(alternatives)
}

/// The digits after a point: whether there may be none, and which there may be.
struct Fraction {
    nullable: bool,
    more: Option<Re>,
}

impl Fraction {
    fn any(most: Option<u32>) -> Self {
        Self {
            nullable: true,
            more: (most != Some(0)).then(|| digits(1, most)),
        }
    }

    /// With the point.
    fn point(&self) -> Re {
        match (&self.more, self.nullable) {
            (None, true) => Re::Empty,
            (None, false) => Re::never(),
            (Some(more), nullable) => {
                let with = Re::concat([Re::char('.'), more.clone()]);
                if nullable { Re::optional(with) } else { with }
            }
        }
    }

    /// Behind another digit.
    fn tail(self) -> Re {
        match (self.more, self.nullable) {
            (None, true) => Re::Empty,
            (None, false) => Re::never(),
            (Some(more), true) => Re::optional(more),
            (Some(more), false) => more,
        }
    }

    /// Not below `bound`, or above it.
    fn above(bound: &[u8], closed: bool, most: Option<u32>) -> Self {
        let Some((&first, rest)) = bound.split_first() else {
            return if closed {
                Self::any(most)
            } else {
                Self {
                    nullable: false,
                    more: (most != Some(0)).then(|| with_nonzero(most)),
                }
            };
        };
        if most == Some(0) {
            return Self {
                nullable: false,
                more: None,
            };
        }
        let most = most.map(|most| most - 1);
        let mut alternatives = Vec::new();
        if first < 9 {
            alternatives.push(Re::concat([digit(first + 1, 9), digits(0, most)]));
        }
        let tail = Self::above(rest, closed, most);
        if tail.nullable || tail.more.is_some() {
            alternatives.push(Re::concat([digit(first, first), tail.tail()]));
        }
        Self {
            nullable: false,
            more: (!alternatives.is_empty()).then(|| Re::alt(alternatives)),
        }
    }

    /// Not above `bound`, or below it.
    fn below(bound: &[u8], closed: bool, most: Option<u32>) -> Self {
        let Some((&first, rest)) = bound.split_first() else {
            return if closed {
                Self {
                    nullable: true,
                    more: (most != Some(0)).then(|| Re::repeat(digit(0, 0), 1, most)),
                }
            } else {
                Self {
                    nullable: false,
                    more: None,
                }
            };
        };
        if most == Some(0) {
            return Self {
                nullable: true,
                more: None,
            };
        }
        let most = most.map(|most| most - 1);
        let mut alternatives = Vec::new();
        if first > 0 {
            alternatives.push(Re::concat([digit(0, first - 1), digits(0, most)]));
        }
        let tail = Self::below(rest, closed, most);
        if tail.nullable || tail.more.is_some() {
            alternatives.push(Re::concat([digit(first, first), tail.tail()]));
        }
        Self {
            nullable: true,
            more: (!alternatives.is_empty()).then(|| Re::alt(alternatives)),
        }
    }

    fn between(
        low: &[u8],
        low_closed: bool,
        high: &[u8],
        high_closed: bool,
        most: Option<u32>,
    ) -> Self {
        if low.is_empty() && low_closed {
            return Self::below(high, high_closed, most);
        }
        if high.is_empty() {
            return Self {
                nullable: false,
                more: None,
            };
        }
        if most == Some(0) {
            return Self {
                nullable: false,
                more: None,
            };
        }
        let most = most.map(|most| most - 1);
        let first = low.first().copied().unwrap_or(0);
        let last = high.first().copied().unwrap_or(0);
        let low_rest = low.get(1..).unwrap_or(&[]);
        let high_rest = high.get(1..).unwrap_or(&[]);
        if first > last {
            return Self {
                nullable: false,
                more: None,
            };
        }
        if first == last {
            let tail = Self::between(low_rest, low_closed, high_rest, high_closed, most);
            let possible = tail.nullable || tail.more.is_some();
            return Self {
                nullable: false,
                more: possible.then(|| Re::concat([digit(first, first), tail.tail()])),
            };
        }
        let mut alternatives = Vec::new();
        let tail = Self::above(low_rest, low_closed, most);
        if tail.nullable || tail.more.is_some() {
            alternatives.push(Re::concat([digit(first, first), tail.tail()]));
        }
        if first + 1 < last {
            alternatives.push(Re::concat([digit(first + 1, last - 1), digits(0, most)]));
        }
        let tail = Self::below(high_rest, high_closed, most);
        if tail.nullable || tail.more.is_some() {
            alternatives.push(Re::concat([digit(last, last), tail.tail()]));
        }
        Self {
            nullable: false,
            more: (!alternatives.is_empty()).then(|| Re::alt(alternatives)),
        }
    }
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
