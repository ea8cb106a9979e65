//! Calibrated choice: the alternatives of a closed set are scored whole.
//!
//! A small model prefers some continuations whatever it was asked. So an alternative's score is
//! `log p(alternative | prompt) − α · log p(alternative | the prompt with the request blanked)`,
//! each summed over the tokens of its canonical spelling and what closes it, with one softmax over
//! the set at the end (Zhao et al. 2021, contextual calibration; Holtzman et al. 2021, surface-form
//! competition). Alternatives are evaluated best first, and only those within [`MARGIN`] of the
//! best are weighed against their blanked probability, which is remembered.

use super::closed::ClosedSet;
use super::forced::{ForcedError, Speller};
use crate::mask::Matcher;
use crate::model::session::{Session, SessionError};
use crate::vocab::TokenId;
use rustc_hash::FxHashMap;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::Hash;

/// Alternatives that the model finds less likely than the best by more than this (in nats) are
/// not weighed: with α ≤ 1 the blanked probability would have to differ by more.
pub(super) const MARGIN: f64 = 12.0;

/// Blanked scores kept; all are dropped when there are more.
const REMEMBERED: usize = 1 << 16;

/// Scores of alternatives under blanked prompts, by prompt and alternative.
#[derive(Debug, Default)]
pub(super) struct Memo(FxHashMap<u128, f64>);

impl Memo {
    pub(super) fn bytes_held(&self) -> usize {
        self.0.capacity() * size_of::<(u128, f64)>()
    }
}

/// A closed set as tokens.
#[derive(Debug)]
pub(super) struct Paths {
    nodes: Vec<Node>,
    /// Of each alternative: its tokens.
    pub(super) tokens: Vec<Vec<TokenId>>,
    /// Of each alternative: the tokens that may close it.
    pub(super) closing: Vec<Vec<TokenId>>,
}

#[derive(Debug, Default)]
struct Node {
    path: Vec<TokenId>,
    children: BTreeMap<TokenId, usize>,
    /// Alternatives that end here.
    ends: Vec<usize>,
}

impl Paths {
    /// Spells the alternatives. `None`: the vocabulary cannot spell one of them, or the matcher
    /// does not take its spelling.
    pub(super) fn of(
        set: &ClosedSet,
        session: &dyn Session,
        speller: &Speller,
        matcher: &Matcher,
    ) -> Result<Option<Self>, ForcedError> {
        let mut paths = Self {
            nodes: vec![Node::default()],
            tokens: Vec::new(),
            closing: Vec::new(),
        };
        for (index, alternative) in set.alternatives.iter().enumerate() {
            let text = [set.lead.as_slice(), alternative].concat();
            let Some(tokens) = speller.spell(session, &text)? else {
                return Ok(None);
            };
            let mut after = matcher.clone();
            for &token in &tokens {
                if !after.accept_token(token)? {
                    return Ok(None);
                }
            }
            let vocabulary = session.vocabulary();
            let closing: Vec<TokenId> = after
                .mask()?
                .iter()
                .filter(|&token| vocabulary.bytes(token).first() == Some(&b'"'))
                .collect();
            if closing.is_empty() {
                return Ok(None);
            }
            let mut node = 0;
            for &token in &tokens {
                node = match paths.nodes[node].children.get(&token) {
                    Some(&child) => child,
                    None => {
                        let child = paths.nodes.len();
                        let path = [paths.nodes[node].path.as_slice(), &[token]].concat();
                        paths.nodes[node].children.insert(token, child);
                        paths.nodes.push(Node {
                            path,
                            ..Node::default()
                        });
                        child
                    }
                };
            }
            paths.nodes[node].ends.push(index);
            paths.tokens.push(tokens);
            paths.closing.push(closing);
        }
        Ok(Some(paths))
    }
}

/// Log-probabilities of alternatives: `None` where one is less likely than the best by more than
/// `margin`.
pub(super) fn likely(
    session: &mut dyn Session,
    base: &[TokenId],
    paths: &Paths,
    margin: f64,
    wanted: Option<&[bool]>,
) -> Result<Vec<Option<f64>>, SessionError> {
    let mut found = vec![None; paths.tokens.len()];
    let mut best = f64::NEG_INFINITY;
    let mut open = BinaryHeap::from([Open {
        score: 0.0,
        node: 0,
    }]);
    let needed = |node: &Node| {
        wanted.is_none_or(|wanted| {
            (0..wanted.len()).any(|at| wanted[at] && paths.tokens[at].starts_with(&node.path))
        })
    };
    while let Some(Open { score, node }) = open.pop() {
        if wanted.is_none() && score < best - margin {
            break;
        }
        let node = &paths.nodes[node];
        let all = [base, &node.path].concat();
        session.set(&all, &mut |_| true)?;
        let logits = session.logits();
        let total = log_sum(logits.iter().copied());
        for (&token, &child) in &node.children {
            if needed(&paths.nodes[child]) {
                open.push(Open {
                    score: score + f64::from(logits[token as usize]) - total,
                    node: child,
                });
            }
        }
        for &at in &node.ends {
            let closing = log_sum(
                paths.closing[at]
                    .iter()
                    .map(|&token| logits[token as usize]),
            );
            let whole = score + closing - total;
            best = best.max(whole);
            found[at] = Some(whole);
        }
    }
    Ok(found)
}

/// What a choice is made by.
pub(super) struct Weighing<'a> {
    /// The blanked prompt and what was written since.
    pub(super) blank: Vec<TokenId>,
    /// Where it is evaluated.
    pub(super) session: &'a mut dyn Session,
    /// How much it counts.
    pub(super) alpha: f64,
    /// What is known of it.
    pub(super) memo: &'a mut Memo,
}

/// The scores of the alternatives; `None` for those that are out of the question.
pub(super) fn score(
    session: &mut dyn Session,
    base: &[TokenId],
    paths: &Paths,
    weighing: Option<Weighing<'_>>,
) -> Result<Vec<Option<f64>>, SessionError> {
    let mut scores = likely(session, base, paths, MARGIN, None)?;
    let best = scores.iter().flatten().copied().fold(f64::MIN, f64::max);
    for score in &mut scores {
        *score = score.filter(|score| *score >= best - MARGIN);
    }
    let Some(weighing) = weighing else {
        return Ok(scores);
    };
    let keys: Vec<u128> = (0..paths.tokens.len())
        .map(|at| {
            let mut hasher = SipHasher13::new();
            (&weighing.blank, &paths.tokens[at], &paths.closing[at]).hash(&mut hasher);
            hasher.finish128().as_u128()
        })
        .collect();
    let wanted: Vec<bool> = (0..scores.len())
        .map(|at| scores[at].is_some() && !weighing.memo.0.contains_key(&keys[at]))
        .collect();
    if wanted.contains(&true) {
        if weighing.memo.0.len() > REMEMBERED {
            weighing.memo.0.clear();
        }
        let blanked = likely(
            weighing.session,
            &weighing.blank,
            paths,
            MARGIN,
            Some(&wanted),
        )?;
        for (at, score) in blanked.into_iter().enumerate() {
            if let (true, Some(score)) = (wanted[at], score) {
                weighing.memo.0.insert(keys[at], score);
            }
        }
    }
    for (at, score) in scores.iter_mut().enumerate() {
        if let (Some(score), Some(blanked)) = (score, weighing.memo.0.get(&keys[at])) {
            *score -= weighing.alpha * blanked;
        }
    }
    Ok(scores)
}

/// Probabilities from scores: one softmax over the set.
pub(super) fn probabilities(scores: &[Option<f64>]) -> Vec<f64> {
    let best = scores.iter().flatten().copied().fold(f64::MIN, f64::max);
    let weight = |score: &Option<f64>| score.map_or(0.0, |score| (score - best).exp());
    let sum: f64 = scores.iter().map(weight).sum();
    scores.iter().map(|score| weight(score) / sum).collect()
}

fn log_sum(logits: impl Iterator<Item = f32> + Clone) -> f64 {
    let top = logits.clone().fold(f32::NEG_INFINITY, f32::max);
    if !top.is_finite() {
        return f64::NEG_INFINITY;
    }
    let sum: f64 = logits.map(|logit| f64::from((logit - top).exp())).sum();
    f64::from(top) + sum.ln()
}

struct Open {
    score: f64,
    node: usize,
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        // Of equals the one that was found first.
        self.score
            .total_cmp(&other.score)
            .then(other.node.cmp(&self.node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::{PATTERNS, generator, grammar_of, prompt, vocabulary};
    use crate::mask::{Lexicon, Limits, MaskStore};
    use crate::model::RandomSession;
    use crate::model::generator::{Calibration, GenerateRequest, Generator, Sampling, Stop};
    use std::sync::Arc;

    /// The log-probability of `alternative` and its quote after `base`, token by token.
    fn by_hand(session: &mut RandomSession, base: &[TokenId], paths: &Paths, at: usize) -> f64 {
        let mut tokens = base.to_vec();
        let mut sum = 0.0;
        let mut after = |tokens: &[TokenId]| {
            session.set(tokens, &mut |_| true).unwrap();
            let weights: Vec<f64> = session
                .logits()
                .iter()
                .map(|&l| f64::from(l).exp())
                .collect();
            let total: f64 = weights.iter().sum();
            move |token: TokenId| weights[token as usize] / total
        };
        for &token in &paths.tokens[at] {
            sum += after(&tokens)(token).ln();
            tokens.push(token);
        }
        let closes = after(&tokens);
        sum + paths.closing[at]
            .iter()
            .map(|&t| closes(t))
            .sum::<f64>()
            .ln()
    }

    #[test]
    fn scores_are_those_of_a_plain_evaluation() {
        let vocabulary = vocabulary();
        let lexicon = Arc::new(Lexicon::new(Arc::clone(&vocabulary)));
        let store = Arc::new(MaskStore::new(1 << 20));
        let grammar = grammar_of("\"(kitchen light|kitchen lamp|lamp|lamp 2|hall|свет)\"");
        let mut matcher = Matcher::new(&grammar, &lexicon, &store, &Limits::default()).unwrap();
        let set = super::super::closed::find(b"", 0, &mut matcher, 16)
            .unwrap()
            .unwrap();
        assert_eq!(
            (set.lead.as_slice(), set.alternatives.len()),
            (&b"\""[..], 6)
        );
        let speller = Speller::new(&vocabulary);
        let (base, blank) = ([5, 6, 7], [9, 8]);
        let mut ruled_out = 0;
        for seed in 0..20 {
            let new = || RandomSession::new(Arc::clone(&vocabulary), 256, seed);
            let (mut session, mut shadow, mut reference) = (new(), new(), new());
            let paths = Paths::of(&set, &session, &speller, &matcher)
                .unwrap()
                .unwrap();
            let mut memo = Memo::default();
            for alpha in [0.0, 0.5, 0.5] {
                let weighing = (alpha > 0.0).then_some(Weighing {
                    blank: blank.to_vec(),
                    session: &mut shadow,
                    alpha,
                    memo: &mut memo,
                });
                let scores = score(&mut session, &base, &paths, weighing).unwrap();
                let plain: Vec<f64> = (0..6)
                    .map(|at| by_hand(&mut reference, &base, &paths, at))
                    .collect();
                let best = plain.iter().copied().fold(f64::MIN, f64::max);
                for (at, score) in scores.iter().enumerate() {
                    let Some(score) = score else {
                        assert!(plain[at] < best - MARGIN);
                        ruled_out += 1;
                        continue;
                    };
                    let less = alpha * by_hand(&mut reference, &blank, &paths, at);
                    assert!((score - (plain[at] - less)).abs() < 1e-3, "{score}");
                }
                let sum: f64 = probabilities(&scores).iter().sum();
                assert!((sum - 1.0).abs() < 1e-9);
            }
        }
        assert!(ruled_out > 0);
    }

    /// Characters that begin with the same bytes are not cut; one that all others begin with is an
    /// alternative like them; and what is taken is what is written.
    #[test]
    fn alternatives_that_begin_alike_are_told_apart() {
        let (asked, blank) = (prompt("about"), prompt(""));
        for (pattern, begun, alternatives) in [
            ("\"(红|绿)\"", "", &["红", "绿"][..]),
            ("\"(no|not sure|nothing)\"", "no", &["", "t sure", "thing"]),
            ("\"(a|ab|abc)\"", "a", &["", "b", "bc"]),
        ] {
            let mut taken = std::collections::BTreeSet::new();
            for seed in 0..30 {
                let said = generator(seed)
                    .generate(&GenerateRequest {
                        prompt: &asked,
                        grammar: Some(&grammar_of(pattern)),
                        sampling: Sampling::default(),
                        max_tokens: 40,
                        jump_ahead: true,
                        calibration: Some(Calibration {
                            blank: &blank,
                            alpha: 1.0,
                        }),
                        cancel: Default::default(),
                    })
                    .unwrap();
                let [choice] = &said.choices[..] else {
                    panic!("{pattern}: {said:?}")
                };
                let texts = choice.alternatives.iter().map(|(text, _)| text.as_str());
                let mut texts: Vec<&str> = texts.collect();
                let own = texts[choice.taken];
                assert_eq!(said.text, format!("\"{begun}{own}\""));
                assert_eq!(choice.at, 1 + begun.len());
                taken.insert(own.to_owned());
                texts.sort_unstable();
                assert_eq!(texts, alternatives);
            }
            // Random logits like what is short: what was looked for did happen.
            assert!(!alternatives[0].is_empty() || taken.contains(""));
        }
    }

    #[test]
    fn whole_choices_keep_to_the_grammar_and_say_what_was_taken() {
        let pattern = PATTERNS[4];
        let whole = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        let (asked, blank) = (prompt("about"), prompt(""));
        for (seed, alpha) in [(0, 0.0), (1, 0.5), (2, 1.0)] {
            let said = generator(seed)
                .generate(&GenerateRequest {
                    prompt: &asked,
                    grammar: Some(&grammar_of(pattern)),
                    sampling: Sampling::default(),
                    max_tokens: 200,
                    jump_ahead: true,
                    calibration: Some(Calibration {
                        blank: &blank,
                        alpha,
                    }),
                    cancel: Default::default(),
                })
                .unwrap();
            assert_eq!(said.stop, Stop::Complete);
            assert!(whole.is_match(&said.text), "{}", said.text);
            assert_eq!(said.choices.len(), 2);
            for choice in &said.choices {
                // Greedy: the likeliest.
                assert_eq!(choice.taken, 0);
                let taken = format!("{}\"", choice.alternatives[0].0);
                assert!(said.text[choice.at..].starts_with(&taken), "{choice:?}");
                assert!(choice.alternatives.is_sorted_by(|a, b| a.1 >= b.1));
            }
        }
    }
}
