//! Token masks along instances: what a generation that writes this very instance would need.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::bench::histogram::Histogram;
use crate::grammar::{Grammar, Limits};
use crate::mask::{Lexicon, MaskStore, Matcher, MatcherError};
use crate::vocab::TokenId;

/// Times of masks with one vocabulary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Masks {
    /// Time from the grammar to an automaton for the vocabulary.
    pub lower: Duration,
    /// Every mask asked for.
    pub all: Histogram,
    /// Those that neither the automaton nor the store knew.
    pub computed: Histogram,
    /// All others.
    pub known: Histogram,
    /// Instances that were walked.
    pub instances: usize,
    /// Instances that the vocabulary cannot spell.
    pub unspellable: usize,
    /// Texts in which a mask lacked the next token: the grammar accepts the text, so this is a
    /// fault of the engine.
    pub faults: Vec<String>,
    /// Why the walk was not finished, if it was not.
    pub stopped: Option<String>,
}

impl Masks {
    /// Adds those of another schema.
    pub fn merge(&mut self, other: &Self) {
        self.lower += other.lower;
        self.all.merge(&other.all);
        self.computed.merge(&other.computed);
        self.known.merge(&other.known);
        self.instances += other.instances;
        self.unspellable += other.unspellable;
        self.faults.extend(other.faults.iter().cloned());
        if self.stopped.is_none() {
            self.stopped.clone_from(&other.stopped);
        }
    }
}

/// Walks along each of `texts`, given as tokens too, and times the mask before each token; `rounds`
/// times with the same automaton, which then knows its masks.
pub fn walk(
    grammar: &Grammar,
    texts: &[(String, Vec<TokenId>)],
    rounds: usize,
    lexicon: &Arc<Lexicon>,
    store: &Arc<MaskStore>,
) -> Masks {
    let mut masks = Masks::default();
    let started = Instant::now();
    let matcher = Matcher::new(grammar, lexicon, store, &Limits::default());
    masks.lower = started.elapsed();
    let mut matcher = match matcher {
        Ok(matcher) => matcher,
        Err(error) => {
            masks.stopped = Some(error.to_string());
            return masks;
        }
    };
    let start = matcher.checkpoint();
    for (text, tokens) in (0..rounds).flat_map(|_| texts) {
        matcher.rollback(start);
        let spelled: Vec<u8> = tokens
            .iter()
            .flat_map(|&token| lexicon.vocabulary().bytes(token))
            .copied()
            .collect();
        if spelled != text.as_bytes() {
            masks.unspellable += 1;
            continue;
        }
        masks.instances += 1;
        if let Err(error) = along(&mut matcher, text, tokens, &mut masks) {
            masks.stopped = Some(error.to_string());
            return masks;
        }
    }
    masks
}

fn along(
    matcher: &mut Matcher,
    text: &str,
    tokens: &[TokenId],
    masks: &mut Masks,
) -> Result<(), MatcherError> {
    for &token in tokens {
        let computed = matcher.stats().computed;
        let started = Instant::now();
        let mask = matcher.mask()?;
        let time = started.elapsed();
        masks.all.record(time);
        if matcher.stats().computed > computed {
            masks.computed.record(time);
        } else {
            masks.known.record(time);
        }
        if !mask.contains(token) || !matcher.accept_token(token)? {
            let text = crate::call::json::shortened(text, 200);
            masks.faults.push(format!("token {token} of {text}"));
            break;
        }
    }
    Ok(())
}
