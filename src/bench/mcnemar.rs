//! McNemar's exact test: do two runs on the same requests differ by more than chance?
//!
//! Q. McNemar, "Note on the sampling error of the difference between correlated proportions or
//! percentages", Psychometrika 12 (1947); exact binomial form.

use serde::Serialize;

/// Two runs on the same requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Paired {
    /// Right in both.
    pub both: usize,
    /// Right in the first only.
    pub first: usize,
    /// Right in the second only.
    pub second: usize,
    /// Right in neither.
    pub neither: usize,
}

impl Paired {
    /// Counts one request.
    pub fn count(&mut self, first: bool, second: bool) {
        let cell = match (first, second) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.first,
            (false, true) => &mut self.second,
            (false, false) => &mut self.neither,
        };
        *cell += 1;
    }

    /// Number of requests.
    pub fn total(self) -> usize {
        self.both + self.first + self.second + self.neither
    }

    /// The two-sided p-value: how often a difference at least this large comes up where both are
    /// equally good. 1 where they differ nowhere.
    pub fn p_value(self) -> f64 {
        let (less, more) = (self.first.min(self.second), self.first.max(self.second));
        let trials = less + more;
        // P(X ≤ less) for X binomial (trials, ½), term by term in logarithms: 2^-trials alone
        // would underflow from about 1,075 on.
        let mut term = -(trials as f64) * std::f64::consts::LN_2;
        let mut sum = 0.0;
        for k in 0..=less {
            sum += term.exp();
            term += ((trials - k) as f64).ln() - ((k + 1) as f64).ln();
        }
        (2.0 * sum).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_agree_with_the_binomial_distribution() {
        // min(1, 2·Σ C(n, k) / 2ⁿ) in exact integers
        for (first, second, p) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (5, 5, 1.0),
            (0, 5, 0.0625),
            (10, 2, 0.038_574_218_75),
            (2, 10, 0.038_574_218_75),
            (30, 14, 0.022_628_841_206),
            (4, 20, 0.001_543_879_509),
        ] {
            let found = Paired {
                first,
                second,
                ..Paired::default()
            }
            .p_value();
            assert!((found - p).abs() < 1e-9, "{first} {second}: {found}");
        }
        let many = Paired {
            first: 2_000,
            second: 2_100,
            ..Paired::default()
        };
        assert!(
            (many.p_value() - 0.122_064_98).abs() < 1e-7,
            "{}",
            many.p_value()
        );
    }
}
