//! Fitting α, the weight of the blanked prompt in calibrated choice, and what it gains.
//!
//! Each request is answered once with each α. The α that is right most often on all of them is
//! the fitted one; but how often it was right there says too much of it, for it was chosen by
//! that. So the requests are dealt to folds, and each fold is answered with the α that is right
//! most often on the other folds: what is right then is what a fitted α is worth on requests that
//! it was not fitted on (M. Stone, "Cross-validatory choice and assessment of statistical
//! predictions", Journal of the Royal Statistical Society B 36, 1974). Results are shared by all
//! folds, so that folds cost nothing.

use super::interval::Share;
use super::mcnemar::Paired;
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};

/// Below this p-value, a difference is said to be beyond chance.
pub const SIGNIFICANT: f64 = 0.05;

/// A request and whether it was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What it is like: every fold gets its part of each.
    pub group: String,
    /// What it says, as it is compared: requests that are alike are in one fold.
    pub plain: String,
    /// Whether it was right with each α, in their order.
    pub right: Vec<bool>,
    /// Whether it was right without anything that was fitted here.
    pub default: bool,
}

/// A fitted α.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Which α is right most often on all requests, by its index; of equals, the first.
    pub best: usize,
    /// With each α, how many are right.
    pub shares: Vec<Share>,
    /// Without any of them.
    pub default: Share,
    /// For each fold, the α that the others choose, by its index.
    pub chosen: Vec<usize>,
    /// Each request answered with the α that the other folds choose.
    pub cross_validated: Share,
    /// The same, against the default.
    pub against_default: Paired,
    /// The same, against the first α.
    pub against_first: Paired,
}

/// Why nothing can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// There are fewer different requests than folds.
    #[error("{requests} different requests cannot be dealt to {folds} folds")]
    TooFew {
        /// Different requests.
        requests: usize,
        /// Folds.
        folds: usize,
    },
}

/// Which fold each request is in, from 0. Requests that are alike are in one; each fold gets its
/// part of every group, and which that is depends on the seed alone.
///
/// # Errors
/// Fewer different requests than folds.
pub fn deal(answered: &[Answered], folds: usize, seed: u64) -> Result<Vec<usize>, TuneError> {
    // The first group in which a text stands decides.
    let mut texts: HashMap<&str, &str> = HashMap::new();
    for request in answered {
        texts.entry(&request.plain).or_insert(&request.group);
    }
    if folds == 0 || texts.len() < folds {
        return Err(TuneError::TooFew {
            requests: texts.len(),
            folds,
        });
    }
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (text, group) in texts {
        groups.entry(group).or_default().push(text);
    }
    let mut fold_of: HashMap<&str, usize> = HashMap::new();
    let mut next = 0;
    for mut texts in groups.into_values() {
        texts.sort_by_key(|text| (shuffled(seed, text), *text));
        for text in texts {
            // One after another across groups, too, so that folds are of one size.
            fold_of.insert(text, next % folds);
            next += 1;
        }
    }
    Ok(answered
        .iter()
        .map(|request| fold_of[request.plain.as_str()])
        .collect())
}

/// Where `text` stands in an order that the seed decides.
fn shuffled(seed: u64, text: &str) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0);
    text.hash(&mut hasher);
    hasher.finish()
}

/// The α that is right most often, by its index; of equals, the first.
fn best<'a>(answered: impl Iterator<Item = &'a Answered>, alphas: usize) -> usize {
    let mut right = vec![0_usize; alphas];
    for request in answered {
        for (count, right) in right.iter_mut().zip(&request.right) {
            *count += usize::from(*right);
        }
    }
    let most = right.iter().copied().max().unwrap_or_default();
    right.iter().position(|count| *count == most).unwrap_or(0)
}

/// Fits α on `answered`, whose requests were answered with the same alphas, from the smallest to
/// the largest: of those that serve equally well, the one that interferes least is taken.
///
/// # Errors
/// Fewer different requests than folds.
pub fn fit(answered: &[Answered], folds: usize, seed: u64) -> Result<Fit, TuneError> {
    let fold_of = deal(answered, folds, seed)?;
    let alphas = answered
        .iter()
        .map(|request| request.right.len())
        .min()
        .unwrap_or_default();
    let in_fold = |fold: usize, inside: bool| {
        answered
            .iter()
            .zip(&fold_of)
            .filter(move |(_, of)| (**of == fold) == inside)
            .map(|(request, _)| request)
    };
    let mut fit = Fit {
        best: best(answered.iter(), alphas),
        shares: vec![Share::default(); alphas],
        default: Share::default(),
        chosen: Vec::with_capacity(folds),
        cross_validated: Share::default(),
        against_default: Paired::default(),
        against_first: Paired::default(),
    };
    for request in answered {
        for (share, right) in fit.shares.iter_mut().zip(&request.right) {
            share.count(*right);
        }
        fit.default.count(request.default);
    }
    for fold in 0..folds {
        let chosen = best(in_fold(fold, false), alphas);
        fit.chosen.push(chosen);
        for request in in_fold(fold, true) {
            let right = |at: usize| request.right.get(at).copied().unwrap_or_default();
            fit.cross_validated.count(right(chosen));
            fit.against_default.count(right(chosen), request.default);
            fit.against_first.count(right(chosen), right(0));
        }
    }
    Ok(fit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(number: usize, group: &str, right: &[bool], default: bool) -> Answered {
        Answered {
            group: group.to_owned(),
            plain: format!("request {number}"),
            right: right.to_vec(),
            default,
        }
    }

    /// `counts[at]` of `of` requests are right with the α `at`, the same ones first.
    fn answered(counts: &[usize], default: usize, of: usize) -> Vec<Answered> {
        let right = |at: usize| counts.iter().map(|&count| at < count).collect::<Vec<_>>();
        (0..of)
            .map(|at| request(at, "en direct", &right(at), at < default))
            .collect()
    }

    #[test]
    fn the_best_alpha_is_fitted_and_its_worth_is_that_on_other_requests() {
        for (counts, default, best, cross_validated) in [
            // One stands out: every fold chooses it.
            (&[30, 40, 70, 50, 20][..], 30, 2, 70),
            // Of equals, the smallest.
            (&[50, 50, 50], 50, 0, 50),
            (&[20, 60, 60], 20, 1, 60),
            // Nothing is ever right.
            (&[0, 0], 0, 0, 0),
        ] {
            let fit = fit(&answered(counts, default, 100), 5, 3).unwrap();
            assert_eq!(fit.best, best, "{counts:?}");
            assert_eq!(fit.chosen, [best; 5], "{counts:?}");
            assert_eq!(fit.cross_validated.right, cross_validated, "{counts:?}");
            assert_eq!(fit.cross_validated.of, 100);
            let shares: Vec<usize> = fit.shares.iter().map(|share| share.right).collect();
            assert_eq!(shares, counts);
            assert_eq!(fit.default.right, default);
            let gained = fit.against_default;
            assert_eq!(gained.first, cross_validated - default);
            assert_eq!((gained.second, gained.total()), (0, 100));
            let gained = fit.against_first;
            assert_eq!(gained.first, cross_validated - counts[0]);
        }
    }

    #[test]
    fn what_is_right_by_chance_alone_is_not_counted_as_gain() {
        // Each fold's requests are right with an α of its own: all of them together make every
        // α look good somewhere, and none is worth anything elsewhere.
        let plain: Vec<Answered> = (0..20).map(|at| request(at, "g", &[], false)).collect();
        let fold_of = deal(&plain, 4, 0).unwrap();
        let answered: Vec<Answered> = (0..20)
            .map(|at| {
                let right: Vec<bool> = (0..4).map(|alpha| alpha == fold_of[at]).collect();
                request(at, "g", &right, false)
            })
            .collect();
        let fit = fit(&answered, 4, 0).unwrap();
        assert_eq!(fit.shares[fit.best].right, 5);
        assert_eq!(fit.cross_validated.right, 0);
        for (fold, chosen) in fit.chosen.iter().enumerate() {
            assert_ne!(fold, *chosen, "chosen by what it is then judged by");
        }
    }

    #[test]
    fn too_few_requests_are_refused() {
        let alike = vec![request(1, "g", &[true], true); 10];
        assert_eq!(
            fit(&alike, 2, 0),
            Err(TuneError::TooFew {
                requests: 1,
                folds: 2
            })
        );
        assert!(fit(&[], 0, 0).is_err());
    }

    proptest! {
        #[test]
        fn folds_are_disjoint_even_and_have_their_part_of_every_group(
            texts in proptest::collection::vec((0_usize..40, 0_usize..4), 1..120),
            folds in 1_usize..8,
            seed: u64,
        ) {
            let answered: Vec<Answered> = texts
                .iter()
                .map(|(text, group)| request(*text, &format!("g{group}"), &[], false))
                .collect();
            let different: BTreeMap<&str, &str> =
                answered.iter().rev().map(|r| (r.plain.as_str(), r.group.as_str())).collect();
            let Ok(fold_of) = deal(&answered, folds, seed) else {
                prop_assert!(different.len() < folds);
                return Ok(());
            };
            prop_assert_eq!(fold_of.len(), answered.len());
            let mut of_text: BTreeMap<&str, usize> = BTreeMap::new();
            for (request, fold) in answered.iter().zip(&fold_of) {
                prop_assert!(*fold < folds);
                // No text is on both sides of a fold's boundary.
                prop_assert_eq!(*of_text.entry(&request.plain).or_insert(*fold), *fold);
            }
            let even = |counts: &[usize]| {
                counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1
            };
            let mut sizes = vec![0; folds];
            let mut by_group: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for (text, fold) in &of_text {
                sizes[*fold] += 1;
                by_group.entry(different[text]).or_insert_with(|| vec![0; folds])[*fold] += 1;
            }
            prop_assert!(even(&sizes), "{sizes:?}");
            for (group, counts) in by_group {
                prop_assert!(even(&counts), "{group} {counts:?}");
            }
            prop_assert_eq!(deal(&answered, folds, seed).unwrap(), fold_of);
        }
    }
}
