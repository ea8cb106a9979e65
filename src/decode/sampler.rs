//! Chooses a token among those that are allowed, looking at no other.
//!
//! `min_p` and `top_p` filter by the model's own probabilities among the allowed tokens, before
//! the temperature flattens or sharpens what is left: a high temperature varies the answer
//! without letting in what the model thinks impossible.

use super::softmax::{exp, greatest, sum_of_exponentials};
use crate::mask::TokenMask;
use crate::model::generator::Sampling;
use crate::vocab::TokenId;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What may be chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Allowed<'a> {
    /// Any token of the vocabulary.
    Everything,
    /// The tokens of a mask, and these as well.
    Mask {
        mask: &'a TokenMask,
        also: &'a [TokenId],
    },
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) token: TokenId,
    /// Natural logarithm of its probability among what was allowed, at temperature 1.
    pub(super) log_probability: f64,
    /// How many could have been chosen.
    pub(super) allowed: usize,
}

impl Choice {
    /// A token that alone can follow.
    pub(super) fn forced(token: TokenId) -> Self {
        Self {
            token,
            log_probability: 0.0,
            allowed: 1,
        }
    }
}

/// The state of one generation's choices.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    random: ChaCha8Rng,
    ids: Vec<TokenId>,
    values: Vec<f32>,
}

impl Sampler {
    pub(super) fn new(sampling: Sampling) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(sampling.seed),
            sampling,
            ids: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Chooses among alternatives by their probabilities: an index, and the logarithm of its
    /// probability. `None` where none has any.
    pub(super) fn pick(&mut self, probabilities: &[f64]) -> Option<(usize, f64)> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a logit's precision is enough"
        )]
        let logits: Vec<f32> = probabilities.iter().map(|p| p.ln() as f32).collect();
        let choice = self.choose(&logits, Allowed::Everything)?;
        let at = choice.token as usize;
        Some((at, probabilities.get(at)?.ln()))
    }

    /// Chooses; `None` where nothing is allowed, or nothing that is has a usable logit.
    pub(super) fn choose(&mut self, logits: &[f32], allowed: Allowed<'_>) -> Option<Choice> {
        let Allowed::Mask { mask, also } = allowed else {
            return self.among(logits, logits.len(), |at| at as TokenId);
        };
        let also = also
            .iter()
            .copied()
            .filter(|&token| !mask.contains(token) && (token as usize) < logits.len());
        let mut ids = std::mem::take(&mut self.ids);
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        let choice = if let TokenMask::Sparse(members) = mask {
            ids.clear();
            ids.extend_from_slice(members);
            ids.retain(|&token| (token as usize) < logits.len());
            ids.extend(also);
            values.extend(ids.iter().map(|&token| logits[token as usize]));
            self.among(&values, values.len(), |at| ids[at])
        } else {
            // Where many are allowed, the rest are ruled out in a copy of all.
            copy_allowed(mask, logits, &mut values);
            let mut count = mask.len();
            for token in also {
                values[token as usize] = logits[token as usize];
                count += 1;
            }
            self.among(&values, count, |at| at as TokenId)
        };
        self.ids = ids;
        self.values = values;
        choice
    }

    /// Chooses among `values`, of which `allowed` are of tokens that may be chosen; the one at `n`
    /// is token `name(n)`'s.
    fn among(
        &mut self,
        values: &[f32],
        allowed: usize,
        name: impl Fn(usize) -> TokenId,
    ) -> Option<Choice> {
        let top = greatest(values);
        if !top.is_finite() {
            return None;
        }
        let total = sum_of_exponentials(values, top);
        let at = if self.sampling.temperature > 0.0 {
            self.draw(values, top, total)?
        } else {
            values.iter().position(|&value| value == top)?
        };
        Some(Choice {
            token: name(at),
            log_probability: f64::from(values[at] - top) - total.ln(),
            allowed,
        })
    }

    fn draw(&mut self, values: &[f32], top: f32, total: f64) -> Option<usize> {
        let Sampling {
            temperature,
            top_p,
            min_p,
            ..
        } = self.sampling;
        let mut least = f32::NEG_INFINITY;
        if min_p > 0.0 {
            least = top + min_p.min(1.0).ln();
        }
        if top_p < 1.0 {
            least = least.max(nucleus(values, top, total, f64::from(top_p.max(0.0))));
        }
        let weight = |value: f32| {
            if value >= least {
                exp((value - top) / temperature)
            } else {
                0.0
            }
        };
        let sum: f64 = values.iter().map(|&value| f64::from(weight(value))).sum();
        let mut left = self.random.random::<f64>() * sum;
        let mut last = None;
        for (at, &value) in values.iter().enumerate() {
            let share = f64::from(weight(value));
            if share > 0.0 {
                last = Some(at);
                left -= share;
                if left < 0.0 {
                    break;
                }
            }
        }
        last
    }
}

/// The logits of the members of `mask`, and −∞ for all other tokens.
fn copy_allowed(mask: &TokenMask, logits: &[f32], values: &mut Vec<f32>) {
    values.extend_from_slice(logits);
    match mask {
        TokenMask::Complement { missing, size } => {
            for &token in missing {
                if let Some(value) = values.get_mut(token as usize) {
                    *value = f32::NEG_INFINITY;
                }
            }
            let beyond = (*size as usize).min(values.len());
            values[beyond..].fill(f32::NEG_INFINITY);
        }
        TokenMask::Dense { bits, .. } => {
            let beyond = (bits.len() * 64).min(values.len());
            values[beyond..].fill(f32::NEG_INFINITY);
            for (chunk, &word) in values.chunks_mut(64).zip(bits) {
                if word == u64::MAX {
                    continue;
                }
                for (at, value) in chunk.iter_mut().enumerate() {
                    if word >> at & 1 == 0 {
                        *value = f32::NEG_INFINITY;
                    }
                }
            }
        }
        TokenMask::Sparse(_) => {
            for (token, value) in values.iter_mut().enumerate() {
                if !mask.contains(token as TokenId) {
                    *value = f32::NEG_INFINITY;
                }
            }
        }
    }
}

/// The least value of the smallest set of likeliest tokens whose probabilities add up to
/// `top_p` (Holtzman et al., 2020). Ties with the last one are kept.
fn nucleus(values: &[f32], top: f32, total: f64, top_p: f64) -> f32 {
    // Sorting a whole vocabulary takes milliseconds; what is far below the top hardly counts.
    for depth in [4.0, 8.0, 16.0, f32::INFINITY] {
        let mut likely: Vec<f32> = values
            .iter()
            .copied()
            .filter(|&value| value >= top - depth)
            .collect();
        let reached = sum_of_exponentials(&likely, top);
        if reached < top_p * total && depth.is_finite() {
            continue;
        }
        likely.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut sum = 0.0;
        for &value in &likely {
            sum += f64::from(exp(value - top));
            if sum >= top_p * total {
                return value;
            }
        }
    }
    f32::NEG_INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(temperature: f32, top_p: f32, min_p: f32) -> Sampling {
        Sampling {
            temperature,
            top_p,
            min_p,
            seed: 11,
            ..Sampling::default()
        }
    }

    /// Logits of probabilities.
    fn logits(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln() + 3.0).collect()
    }

    fn shares(sampling: Sampling, logits: &[f32]) -> Vec<f64> {
        const DRAWS: usize = 40_000;
        let mut sampler = Sampler::new(sampling);
        let mut counts = vec![0_usize; logits.len()];
        for _ in 0..DRAWS {
            let choice = sampler.choose(logits, Allowed::Everything).unwrap();
            counts[choice.token as usize] += 1;
        }
        counts.iter().map(|&n| n as f64 / DRAWS as f64).collect()
    }

    #[test]
    fn draws_follow_the_filtered_distribution() {
        let four = logits(&[0.5, 0.25, 0.15, 0.1]);
        for (name, sampling, expected) in [
            ("all", sampling(1.0, 1.0, 0.0), [0.5, 0.25, 0.15, 0.1]),
            ("top-p", sampling(1.0, 0.7, 0.0), [0.667, 0.333, 0.0, 0.0]),
            ("top-p 0", sampling(1.0, 0.0, 0.0), [1.0, 0.0, 0.0, 0.0]),
            (
                "min-p",
                sampling(1.0, 1.0, 0.28),
                [0.556, 0.278, 0.167, 0.0],
            ),
            (
                "cold",
                sampling(0.5, 1.0, 0.0),
                [0.725, 0.181, 0.065, 0.029],
            ),
            ("hot", sampling(2.0, 1.0, 0.0), [0.379, 0.268, 0.208, 0.170]),
            ("both", sampling(2.0, 0.7, 0.1), [0.586, 0.414, 0.0, 0.0]),
            ("greedy", sampling(0.0, 0.5, 0.5), [1.0, 0.0, 0.0, 0.0]),
        ] {
            for (share, expected) in shares(sampling, &four).iter().zip(expected) {
                assert!(
                    (share - expected).abs() < 0.012,
                    "{name}: {share} {expected}"
                );
            }
        }
    }

    #[test]
    fn probabilities_are_those_at_temperature_one() {
        let four = logits(&[0.5, 0.25, 0.15, 0.1]);
        let mut sampler = Sampler::new(sampling(3.0, 1.0, 0.0));
        for _ in 0..50 {
            let choice = sampler.choose(&four, Allowed::Everything).unwrap();
            let expected = f64::from([0.5_f32, 0.25, 0.15, 0.1][choice.token as usize]);
            assert!((choice.log_probability.exp() - expected).abs() < 1e-5);
            assert_eq!(choice.allowed, 4);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let values: Vec<f32> = (0..500).map(|n| (n % 37) as f32 / 9.0).collect();
        let draw = |seed| -> Vec<TokenId> {
            let mut sampler = Sampler::new(Sampling {
                seed,
                ..sampling(1.0, 0.9, 0.01)
            });
            (0..50)
                .map(|_| sampler.choose(&values, Allowed::Everything).unwrap().token)
                .collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn nothing_usable_is_no_choice() {
        let mut sampler = Sampler::new(sampling(1.0, 1.0, 0.0));
        for values in [&[][..], &[f32::NEG_INFINITY], &[f32::NAN]] {
            assert_eq!(sampler.choose(values, Allowed::Everything), None);
        }
        let some = [f32::NAN, 1.0, f32::NEG_INFINITY];
        for _ in 0..20 {
            let choice = sampler.choose(&some[1..], Allowed::Everything).unwrap();
            assert_eq!(choice.token, 0);
        }
    }

    #[test]
    fn every_form_of_a_mask_allows_its_members_and_no_other() {
        const SIZE: usize = 1000;
        let logits: Vec<f32> = (0..SIZE).map(|n| (n * 7919 % 1009) as f32 / 50.0).collect();
        type Member = fn(usize) -> bool;
        let members: [(&str, Member); 4] = [
            ("sparse", |n| n % 100 == 7),
            ("dense", |n| n % 3 == 0),
            ("complement", |n| n % 100 != 7),
            ("one", |n| n == 999),
        ];
        for (name, is_member) in members {
            let mut list: Vec<TokenId> = (0..SIZE)
                .filter(|&n| is_member(n))
                .map(|n| n as TokenId)
                .collect();
            let mask = TokenMask::from_tokens(&mut list, SIZE);
            let outsider = (0..SIZE).find(|&n| !is_member(n)).unwrap() as TokenId;
            for also in [&[][..], &[outsider]] {
                let allowed = |token| mask.contains(token) || also.contains(&token);
                let sum: f64 = (0..SIZE)
                    .filter(|&n| allowed(n as TokenId))
                    .map(|n| f64::from(logits[n]).exp())
                    .sum();
                for temperature in [0.0, 1.0, 100.0] {
                    let mut sampler = Sampler::new(sampling(temperature, 1.0, 0.0));
                    for _ in 0..200 {
                        let mask = Allowed::Mask { mask: &mask, also };
                        let choice = sampler.choose(&logits, mask).unwrap();
                        assert!(allowed(choice.token), "{name}");
                        assert_eq!(choice.allowed, list.len() + also.len());
                        let share = f64::from(logits[choice.token as usize]).exp() / sum;
                        let said = choice.log_probability.exp();
                        assert!((said / share - 1.0).abs() < 1e-3, "{name}: {said} {share}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_nucleus_of_many_is_the_one_by_sorting() {
        for depth in [1_i32, 5, 12, 40] {
            let values: Vec<f32> = (0..2000_i32)
                .map(|n| -((n * 7919 % 2003) as f32) * depth as f32 / 2003.0)
                .collect();
            let top = greatest(&values);
            let total = sum_of_exponentials(&values, top);
            let mut sorted = values.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            for top_p in [0.1, 0.5, 0.9, 0.99] {
                let mut sum = 0.0;
                let expected = *sorted
                    .iter()
                    .find(|&&value| {
                        sum += f64::from(exp(value - top));
                        sum >= top_p * total
                    })
                    .unwrap();
                assert_eq!(nucleus(&values, top, total, top_p), expected);
            }
        }
    }
}
