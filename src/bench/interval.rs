//! Wilson's score interval for a proportion.
//!
//! E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
//! of the American Statistical Association 22 (1927).

/// A number of successes among a number of trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Share {
    /// Successes.
    pub right: usize,
    /// Trials.
    pub of: usize,
}

impl Share {
    /// Counts one trial.
    pub fn count(&mut self, right: bool) {
        self.right += usize::from(right);
        self.of += 1;
    }

    /// The proportion, between 0 and 1; 0 of no trial.
    pub fn rate(self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            self.right as f64 / self.of as f64
        }
    }

    /// The 95% interval of the proportion behind it, as (low, high); all of 0 to 1 without trials.
    pub fn interval(self) -> (f64, f64) {
        if self.of == 0 {
            return (0.0, 1.0);
        }
        // The 97.5th percentile of the normal distribution.
        const Z: f64 = 1.959_963_984_540_054;
        let n = self.of as f64;
        let p = self.rate();
        let denominator = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / denominator;
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
        ((centre - half).max(0.0), (centre + half).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_agree_with_published_values() {
        // R: prop.test(x, n, correct = FALSE)$conf.int
        for (right, of, low, high) in [
            (0, 20, 0.0, 0.161_125),
            (10, 20, 0.299_298, 0.700_702),
            (14, 20, 0.481_027, 0.854_523),
            (81, 263, 0.255_289, 0.366_212),
        ] {
            let (found_low, found_high) = Share { right, of }.interval();
            assert!((found_low - low).abs() < 1e-4, "{right}/{of}: {found_low}");
            assert!(
                (found_high - high).abs() < 1e-4,
                "{right}/{of}: {found_high}"
            );
        }
        assert_eq!(Share::default().interval(), (0.0, 1.0));
    }
}
