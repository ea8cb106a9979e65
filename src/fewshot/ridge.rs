//! What kind of reply a request's wording speaks for, told by all examples together.
//!
//! The example nearest to a request shares most of its n-grams, but which of them matter nobody
//! has said: "would you" is as good to it as "off". Ridge regression over the same n-grams finds
//! out: each kind of reply (a tool, to ask, to answer) is one least-squares problem whose target is
//! 1 for the examples of that kind and 0 for the others, rare kinds weighing as much as common
//! ones. In its dual form one linear system serves all kinds: with `X` the examples' normalised
//! n-gram vectors, `x` the request's, and `D` diagonal, `(X Xᵀ + D) z = X x`, and a kind's vote is
//! the sum of `z` over its examples. It is solved by conjugate gradients; a few hundred examples
//! take some milliseconds.
//!
//! Hastie, Tibshirani, Friedman: *The Elements of Statistical Learning*, 2nd edition, 3.4.1 and
//! 18.3.5 (ridge regression and its dual).

use super::ngram::{Grams, Weights};
use rustc_hash::FxHashMap;

/// How much the votes are drawn together: the ridge, for an example of a kind of mean size.
const RIDGE: f64 = 1.0;

/// Conjugate gradients end after so many steps, or when the residual is so small a share of the
/// right-hand side.
const STEPS: usize = 40;
const SMALL: f64 = 1e-4;

/// For each kind, numbered from 0, how much the request speaks for it: about 1 where it is like
/// that kind's examples and like no other's, about 0 where it is not.
pub(super) fn votes(examples: &[(Grams, usize)], kinds: usize, request: &Grams) -> Vec<f64> {
    let mut votes = vec![0.0; kinds];
    if examples.is_empty() {
        return votes;
    }
    let weights = Weights::of(examples.iter().map(|(grams, _)| grams));
    let mut columns: FxHashMap<u64, usize> = FxHashMap::default();
    let rows: Vec<Vec<(usize, f64)>> = examples
        .iter()
        .map(|(grams, _)| {
            let row = grams
                .iter()
                .map(|gram| {
                    let next = columns.len();
                    let column = *columns.entry(gram).or_insert(next);
                    (column, weights.weight(gram))
                })
                .collect();
            normalised(row)
        })
        .collect();
    // N-grams that no example has would make every vote smaller alike: they are left out.
    let known = request
        .iter()
        .filter_map(|gram| Some((*columns.get(&gram)?, weights.weight(gram))));
    let mut wanted = vec![0.0; columns.len()];
    for (column, weight) in normalised(known.collect()) {
        wanted[column] = weight;
    }
    let mut sizes = vec![0.0_f64; kinds];
    for (_, kind) in examples {
        sizes[*kind] += 1.0;
    }
    let present = sizes.iter().filter(|size| **size > 0.0).count();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let mean = examples.len() as f64 / present as f64;
    let diagonal: Vec<f64> = examples
        .iter()
        .map(|(_, kind)| RIDGE * sizes[*kind] / mean)
        .collect();
    let system = System {
        rows: &rows,
        diagonal: &diagonal,
        columns: columns.len(),
    };
    let target: Vec<f64> = rows.iter().map(|row| dot(row, &wanted)).collect();
    for ((_, kind), z) in examples.iter().zip(system.solve(&target)) {
        votes[*kind] += z;
    }
    votes
}

/// `(X Xᵀ + D)`, never written out.
struct System<'a> {
    rows: &'a [Vec<(usize, f64)>],
    diagonal: &'a [f64],
    columns: usize,
}

impl System<'_> {
    fn times(&self, z: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.columns];
        for (row, z) in self.rows.iter().zip(z) {
            for (column, value) in row {
                sum[*column] += value * z;
            }
        }
        self.rows
            .iter()
            .zip(self.diagonal)
            .zip(z)
            .map(|((row, own), z)| dot(row, &sum) + own * z)
            .collect()
    }

    /// The `z` for which this times `z` is `target`.
    fn solve(&self, target: &[f64]) -> Vec<f64> {
        let mut z = vec![0.0; target.len()];
        let mut rest = target.to_vec();
        let mut way = rest.clone();
        let mut size = product(&rest, &rest);
        let enough = size * SMALL * SMALL;
        for _ in 0..STEPS {
            if size <= enough {
                break;
            }
            let image = self.times(&way);
            let length = size / product(&way, &image);
            for (at, z) in z.iter_mut().enumerate() {
                *z += length * way[at];
                rest[at] -= length * image[at];
            }
            let before = std::mem::replace(&mut size, product(&rest, &rest));
            for (way, rest) in way.iter_mut().zip(&rest) {
                *way = rest + *way * size / before;
            }
        }
        z
    }
}

fn normalised(mut row: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    // In the order of the columns: sums of floats must not depend on a hash map's order.
    row.sort_by_key(|(column, _)| *column);
    let length = row.iter().map(|(_, value)| value * value).sum::<f64>();
    if length > 0.0 {
        for (_, value) in &mut row {
            *value /= length.sqrt();
        }
    }
    row
}

fn dot(row: &[(usize, f64)], dense: &[f64]) -> f64 {
    row.iter()
        .map(|(column, value)| value * dense[*column])
        .sum()
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: [(&str, usize); 9] = [
        ("would you turn the fan on", 0),
        ("please turn on the fan", 0),
        ("the fan should run", 0),
        ("would you turn the fan off", 1),
        ("no more fan please", 1),
        ("is the fan on?", 2),
        ("does the fan run?", 2),
        ("tell me whether the fan is off", 2),
        ("включи вентилятор", 0),
    ];

    fn examples() -> Vec<(Grams, usize)> {
        let of = |(text, kind): &(&str, usize)| (Grams::with_words(text), *kind);
        SAID.iter().map(of).collect()
    }

    /// The dual system written out and solved by elimination.
    fn by_hand(examples: &[(Grams, usize)], kinds: usize, request: &Grams) -> Vec<f64> {
        let weights = Weights::of(examples.iter().map(|(grams, _)| grams));
        let known = |gram: &u64| examples.iter().any(|(grams, _)| grams.contains(*gram));
        let length = |grams: &Grams| {
            let of = |gram| f64::powi(weights.weight(gram), 2);
            grams.iter().filter(known).map(of).sum::<f64>().sqrt()
        };
        let like = |a: &Grams, b: &Grams| {
            let common = a.iter().filter(|gram| b.contains(*gram) && known(gram));
            let sum: f64 = common.map(|gram| weights.weight(gram).powi(2)).sum();
            sum / (length(a) * length(b))
        };
        let size = |kind| examples.iter().filter(|(_, k)| *k == kind).count() as f64;
        let mean = examples.len() as f64 / kinds as f64;
        let n = examples.len();
        let mut rows: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                let (grams, kind) = &examples[i];
                let mut row: Vec<f64> = (0..n).map(|j| like(grams, &examples[j].0)).collect();
                row[i] += RIDGE * size(*kind) / mean;
                row.push(like(grams, request));
                row
            })
            .collect();
        for i in 0..n {
            let pivot = rows[i].clone();
            for (j, row) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
                let factor = row[i] / pivot[i];
                assert!(factor.is_finite(), "{j}");
                row.iter_mut()
                    .zip(&pivot)
                    .for_each(|(a, b)| *a -= factor * b);
            }
        }
        let mut votes = vec![0.0; kinds];
        for (i, row) in rows.iter().enumerate() {
            votes[examples[i].1] += row[n] / row[i];
        }
        votes
    }

    #[test]
    fn votes_solve_the_ridge_regression() {
        for request in [
            "turn the fan off would you",
            "the fan",
            "вентилятор",
            "is it on?",
        ] {
            let request = Grams::with_words(request);
            let found = votes(&examples(), 3, &request);
            for (found, expected) in found.iter().zip(by_hand(&examples(), 3, &request)) {
                assert!((found - expected).abs() < 1e-3, "{found} {expected}");
            }
        }
    }

    #[test]
    fn what_tells_kinds_apart_outweighs_what_they_share() {
        let best = |request: &str| {
            let votes = votes(&examples(), 3, &Grams::with_words(request));
            (0..3)
                .max_by(|a, b| votes[*a].total_cmp(&votes[*b]))
                .unwrap()
        };
        assert_eq!(best("would you please turn the lamp off"), 1);
        assert_eq!(best("would you please turn the lamp on"), 0);
        assert_eq!(best("is the lamp off?"), 2);
    }

    #[test]
    fn nothing_to_go_by_votes_for_nothing() {
        assert_eq!(votes(&[], 0, &Grams::of("turn it on")), Vec::<f64>::new());
        assert_eq!(votes(&examples(), 3, &Grams::of("")), [0.0; 3]);
        assert_eq!(votes(&examples(), 3, &Grams::of("你好")), [0.0; 3]);
        let same = vec![(Grams::of("on"), 0); 200];
        assert!(votes(&same, 1, &Grams::of("on"))[0] > 0.9);
    }
}
