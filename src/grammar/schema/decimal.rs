//! Exact decimal numbers: bounds of a schema, compared and written digit by digit.

use std::cmp::Ordering;

/// `±0.d₁d₂…dₙ × 10^exponent`, without zeros at either end of the digits; zero has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Zero.
    pub fn zero() -> Self {
        Self {
            negative: false,
            digits: Vec::new(),
            exponent: 0,
        }
    }

    /// A small integer.
    pub fn from_int(value: i64) -> Self {
        Self::parse(&value.to_string()).unwrap_or_else(Self::zero)
    }

    /// Reads a JSON number.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (
                &text[..at],
                text[at + 1..].trim_start_matches('+').parse::<i64>().ok()?,
            ),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole
            .bytes()
            .chain(fraction.bytes())
            .map(|b| b.is_ascii_digit().then(|| b - b'0'))
            .collect::<Option<_>>()?;
        if all.is_empty() {
            return None;
        }
        Some(Self::normal(
            negative,
            all,
            exponent.checked_add(whole.len() as i64)?,
        ))
    }

    fn normal(negative: bool, mut digits: Vec<u8>, mut exponent: i64) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let leading = digits.iter().take_while(|&&d| d == 0).count();
        digits.drain(..leading);
        exponent -= leading as i64;
        if digits.is_empty() {
            return Self::zero();
        }
        Self {
            negative,
            digits,
            exponent,
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.digits.len() as i64 <= self.exponent.max(0)
    }

    /// Its negative.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self {
            negative: !self.negative && !self.is_zero(),
            ..self.clone()
        }
    }

    /// Digits before the point, `0` if there are none. Only for magnitudes that were found small
    /// enough to write out.
    pub fn whole_digits(&self) -> Vec<u8> {
        if self.exponent <= 0 {
            return vec![0];
        }
        (0..self.exponent as usize)
            .map(|i| self.digits.get(i).copied().unwrap_or(0))
            .collect()
    }

    /// Digits after the point, without zeros at the end.
    pub fn fraction_digits(&self) -> Vec<u8> {
        if self.is_zero() {
            return Vec::new();
        }
        let skip = self.exponent.max(0) as usize;
        let zeros = (-self.exponent).max(0) as usize;
        let mut out = vec![0; zeros];
        out.extend(self.digits.iter().skip(skip));
        out
    }

    /// How many digits writing it out takes, before and after the point.
    pub fn written_length(&self) -> u64 {
        self.exponent.unsigned_abs() + self.digits.len() as u64
    }

    /// The largest integer not above it.
    #[must_use]
    pub fn floor(&self) -> Self {
        if self.is_integer() {
            return self.clone();
        }
        let whole = Self::normal(false, self.whole_digits(), self.exponent.max(1));
        if self.negative {
            whole.plus_one().negated()
        } else {
            whole
        }
    }

    /// The smallest integer not below it.
    #[must_use]
    pub fn ceil(&self) -> Self {
        self.negated().floor().negated()
    }

    /// One more; for integers that are not negative.
    fn plus_one(&self) -> Self {
        let mut digits = self.whole_digits();
        let mut carry = true;
        for digit in digits.iter_mut().rev() {
            if !carry {
                break;
            }
            carry = *digit == 9;
            *digit = if carry { 0 } else { *digit + 1 };
        }
        if carry {
            digits.insert(0, 1);
        }
        let exponent = digits.len() as i64;
        Self::normal(false, digits, exponent)
    }

    /// One less; for positive integers.
    fn minus_one(&self) -> Self {
        let mut digits = self.whole_digits();
        for digit in digits.iter_mut().rev() {
            if *digit == 0 {
                *digit = 9;
            } else {
                *digit -= 1;
                break;
            }
        }
        let exponent = digits.len() as i64;
        Self::normal(false, digits, exponent)
    }

    /// The next integer; for integers.
    #[must_use]
    pub fn next_integer(&self) -> Self {
        if self.negative {
            self.negated().minus_one().negated()
        } else {
            self.plus_one()
        }
    }

    /// The integer before; for integers.
    #[must_use]
    pub fn previous_integer(&self) -> Self {
        self.negated().next_integer().negated()
    }

    /// As a machine integer, if it is one.
    pub fn to_i128(&self) -> Option<i128> {
        if !self.is_integer() || self.exponent > 37 {
            return None;
        }
        let magnitude = self
            .whole_digits()
            .iter()
            .fold(0i128, |value, &digit| value * 10 + i128::from(digit));
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// Whether it is a multiple of `of`; nothing if that takes numbers too large.
    pub fn is_multiple_of(&self, of: &Self) -> Option<bool> {
        let scale = |d: &Self| d.digits.len() as i64 - d.exponent;
        let shift = scale(self).max(scale(of)).max(0);
        let up = |d: &Self| {
            Self {
                exponent: d.exponent + shift,
                ..d.clone()
            }
            .to_i128()
        };
        let (a, b) = (up(self)?, up(of)?);
        (b != 0).then(|| a % b == 0)
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text =
            |digits: Vec<u8>| -> String { digits.iter().map(|&d| char::from(b'0' + d)).collect() };
        if self.negative {
            f.write_str("-")?;
        }
        if self.written_length() > 400 {
            return write!(f, "0.{}e{}", text(self.digits.clone()), self.exponent);
        }
        f.write_str(&text(self.whole_digits()))?;
        let fraction = self.fraction_digits();
        if fraction.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", text(fraction))
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |d: &Self| match (d.is_zero(), d.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        sign(self).cmp(&sign(other)).then_with(|| {
            let magnitude = self
                .exponent
                .cmp(&other.exponent)
                .then_with(|| self.digits.cmp(&other.digits));
            if self.negative {
                magnitude.reverse()
            } else {
                magnitude
            }
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn order_is_numeric() {
        let sorted = [
            "-1e3", "-2", "-1.5", "-0.1", "0", "1e-9", "0.1", "1", "1.05", "9", "10",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(d(a).cmp(&d(b)), i.cmp(&j), "{a} against {b}");
            }
        }
        assert_eq!(d("1.0"), d("1"));
        assert_eq!(d("-0"), d("0"));
    }

    #[test]
    fn rounding_and_neighbours() {
        for (value, floor, ceil) in [
            ("1.5", "1", "2"),
            ("-1.5", "-2", "-1"),
            ("0.1", "0", "1"),
            ("-0.1", "-1", "0"),
            ("9.9", "9", "10"),
            ("7", "7", "7"),
        ] {
            assert_eq!(d(value).floor(), d(floor), "floor of {value}");
            assert_eq!(d(value).ceil(), d(ceil), "ceil of {value}");
        }
        for (value, next) in [("0", "1"), ("-1", "0"), ("99", "100"), ("-100", "-99")] {
            assert_eq!(d(value).next_integer(), d(next));
            assert_eq!(d(next).previous_integer(), d(value));
        }
    }

    #[test]
    fn multiples() {
        for (value, of, expected) in [
            ("9", "3", true),
            ("10", "3", false),
            ("0.3", "0.1", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("-4", "2", true),
        ] {
            assert_eq!(
                d(value).is_multiple_of(&d(of)),
                Some(expected),
                "{value} of {of}"
            );
        }
    }
}
