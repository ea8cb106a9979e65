//! Intervals of numbers as expressions over their digits.

use super::super::decimal::Decimal;
use super::super::text::re::Re;

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

/// `re` with or without a minus.
pub fn with_sign(re: Re) -> Re {
    Re::concat([Re::optional(Re::char('-')), re])
}

/// Integers without a sign.
pub fn natural(most: Option<u32>) -> Re {
    Re::alt([
        digit(0, 0),
        Re::concat([digit(1, 9), digits(0, most.map(|n| n.saturating_sub(1)))]),
    ])
}

/// At most `most` digits, of which one at least is not zero.
pub fn with_nonzero(most: Option<u32>) -> Re {
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

/// Integers from `low` to `high`, both included; absent bounds are held to `most` digits.
pub fn integer_interval(low: Option<&Decimal>, high: Option<&Decimal>, most: Option<u32>) -> Re {
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
pub fn magnitudes(
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
    /// There is no such fraction.
    const NONE: Self = Self {
        nullable: false,
        more: None,
    };

    /// One of these digits, of which there is at least one.
    fn some(alternatives: Vec<Re>) -> Self {
        Self {
            nullable: false,
            more: (!alternatives.is_empty()).then(|| Re::alt(alternatives)),
        }
    }

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

    /// Behind this digit, where there is any such fraction.
    fn after(self, first: u8) -> Option<Re> {
        let possible = self.nullable || self.more.is_some();
        possible.then(|| Re::concat([digit(first, first), self.tail()]))
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
            return Self::NONE;
        }
        let most = most.map(|most| most - 1);
        let mut alternatives = Vec::new();
        if first < 9 {
            alternatives.push(Re::concat([digit(first + 1, 9), digits(0, most)]));
        }
        let tail = Self::above(rest, closed, most);
        alternatives.extend(tail.after(first));
        Self::some(alternatives)
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
                Self::NONE
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
        alternatives.extend(tail.after(first));
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
        if high.is_empty() || most == Some(0) {
            return Self::NONE;
        }
        let most = most.map(|most| most - 1);
        let first = low.first().copied().unwrap_or(0);
        let last = high.first().copied().unwrap_or(0);
        let low_rest = low.get(1..).unwrap_or(&[]);
        let high_rest = high.get(1..).unwrap_or(&[]);
        if first > last {
            return Self::NONE;
        }
        if first == last {
            let tail = Self::between(low_rest, low_closed, high_rest, high_closed, most);
            return Self {
                nullable: false,
                more: tail.after(first),
            };
        }
        let mut alternatives = Vec::new();
        let tail = Self::above(low_rest, low_closed, most);
        alternatives.extend(tail.after(first));
        if first + 1 < last {
            alternatives.push(Re::concat([digit(first + 1, last - 1), digits(0, most)]));
        }
        let tail = Self::below(high_rest, high_closed, most);
        alternatives.extend(tail.after(last));
        Self::some(alternatives)
    }
}
