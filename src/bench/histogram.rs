//! Times in buckets of constant relative width: millions of them in a few hundred numbers, that
//! add up over processes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Buckets per doubling: a quantile is exact to within 9%.
const PER_DOUBLING: f64 = 8.0;

/// How often each time was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Bucket → count. Bucket `b` ends at 2^(b/8) nanoseconds.
    buckets: BTreeMap<u16, u64>,
    /// Sum of all times, in nanoseconds.
    total: u64,
    /// The longest time, in nanoseconds.
    longest: u64,
}

impl Histogram {
    /// Adds a time.
    pub fn record(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (nanoseconds.max(1) as f64).log2() * PER_DOUBLING;
        *self.buckets.entry(bucket.ceil() as u16).or_default() += 1;
        self.total = self.total.saturating_add(nanoseconds);
        self.longest = self.longest.max(nanoseconds);
    }

    /// Adds all times of another one.
    pub fn merge(&mut self, other: &Self) {
        for (&bucket, &count) in &other.buckets {
            *self.buckets.entry(bucket).or_default() += count;
        }
        self.total = self.total.saturating_add(other.total);
        self.longest = self.longest.max(other.longest);
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.buckets.values().sum()
    }

    /// The sum of all times.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total)
    }

    /// The longest time, exactly.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }

    /// The time that a share of `part` (0 to 1) does not exceed, up to 9% too high; 0 if there is
    /// none.
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = (self.count() as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (&bucket, &count) in &self.buckets {
            seen += count;
            if seen >= wanted.max(1) {
                let end = (f64::from(bucket) / PER_DOUBLING).exp2() as u64;
                return Duration::from_nanos(end.min(self.longest));
            }
        }
        Duration::ZERO
    }

    /// Count, total and quantiles for a machine; times in microseconds.
    pub fn to_json(&self) -> serde_json::Value {
        let micros = |time: Duration| (time.as_secs_f64() * 1e9).round() / 1e3;
        serde_json::json!({
            "count": self.count(),
            "total_us": micros(self.total()),
            "p50_us": micros(self.quantile(0.5)),
            "p90_us": micros(self.quantile(0.9)),
            "p99_us": micros(self.quantile(0.99)),
            "max_us": micros(self.longest()),
        })
    }

    /// Lines for a person: a bar for each doubling, the longest of `width` characters.
    pub fn bars(&self, width: usize) -> Vec<String> {
        let mut doublings: BTreeMap<u16, u64> = BTreeMap::new();
        for (&bucket, &count) in &self.buckets {
            *doublings
                .entry(bucket.div_ceil(PER_DOUBLING as u16))
                .or_default() += count;
        }
        let most = doublings.values().copied().max().unwrap_or(1).max(1);
        let (Some((&first, _)), Some((&last, _))) =
            (doublings.first_key_value(), doublings.last_key_value())
        else {
            return Vec::new();
        };
        (first..=last)
            .map(|doubling| {
                let count = doublings.get(&doubling).copied().unwrap_or(0);
                // What is there is seen, however little it is.
                let length = (count * width as u64).div_ceil(most) as usize;
                let end =
                    Duration::from_nanos(1_u64.checked_shl(doubling.into()).unwrap_or(u64::MAX));
                format!("≤ {:>8}  {:>8}  {}", time(end), count, "█".repeat(length))
            })
            .collect()
    }
}

/// A time with three digits and its unit: `1.23 ms`.
pub fn time(time: Duration) -> String {
    let nanoseconds = time.as_nanos() as f64;
    let (value, unit) = match nanoseconds {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let digits = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_within_a_bucket() {
        let mut all = Histogram::default();
        let mut parts = [Histogram::default(), Histogram::default()];
        for n in 1..=10_000_u64 {
            all.record(Duration::from_nanos(n * 10));
            parts[(n % 2) as usize].record(Duration::from_nanos(n * 10));
        }
        for (part, exact) in [
            (0.0, 10.0),
            (0.5, 50_000.0),
            (0.99, 99_000.0),
            (1.0, 100_000.0),
        ] {
            let found = all.quantile(part).as_nanos() as f64;
            assert!(found >= exact && found <= exact * 1.1, "{part}: {found}");
        }
        let [mut sum, other] = parts;
        sum.merge(&other);
        assert_eq!(sum, all);
        assert_eq!(all.longest(), Duration::from_micros(100));
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
    }

    #[test]
    fn times_are_short() {
        for (nanoseconds, expected) in [
            (7, "7.00 ns"),
            (1_234, "1.23 µs"),
            (56_700_000, "56.7 ms"),
            (9_876_543_210, "9.88 s"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanoseconds)), expected);
        }
    }
}
