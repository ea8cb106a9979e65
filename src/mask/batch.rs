//! Masks of several sequences at once, as a batch of them needs before its next token.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::matcher::{Matcher, MatcherError};
use super::token_mask::TokenMask;

/// One mask, or why there is none.
type Outcome = Result<Arc<TokenMask>, MatcherError>;

/// The masks of all `matchers`, in their order, each what [`Matcher::mask`] gives. Sequences at the
/// same place of the same grammar share one. What a state knows is looked up at once; the rest is
/// computed on at most `threads` threads (this one included), a grammar on one of them: its states
/// are found one after another.
///
/// An error is that of its sequence alone.
///
/// ```
/// use std::sync::Arc;
/// use snaffle::grammar::{Limits, gbnf};
/// use snaffle::mask::{Lexicon, MaskStore, Matcher, masks};
/// use snaffle::vocab::{Token, TokenKind, Vocabulary};
///
/// let spell = |text: &str| Token { bytes: text.into(), kind: TokenKind::Text };
/// let vocabulary = Vocabulary::new(["a", "b", "c"].map(spell).into(), vec![]);
/// let lexicon = Arc::new(Lexicon::new(Arc::new(vocabulary)));
/// let store = Arc::new(MaskStore::default());
/// let limits = Limits::default();
/// let matcher = |text: &str| -> Result<Matcher, Box<dyn std::error::Error>> {
///     let grammar = gbnf::parse(text, &limits)?.grammar;
///     Ok(Matcher::new(&grammar, &lexicon, &store, &limits)?)
/// };
/// let mut batch = [matcher("root ::= \"a\" | \"b\"")?, matcher("root ::= \"c\"")?];
/// let found = masks(&mut batch, 2);
/// assert_eq!(found[0].as_ref().unwrap().len(), 2);
/// assert_eq!(found[1].as_ref().unwrap().single(), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn masks(matchers: &mut [Matcher], threads: usize) -> Vec<Outcome> {
    let mut found: Vec<Option<Outcome>> = Vec::new();
    // Sequences of one grammar that need computing, and where they stand among all.
    let mut groups: Vec<Mutex<Group<'_>>> = Vec::new();
    let mut group_of = rustc_hash::FxHashMap::default();
    for (at, matcher) in matchers.iter_mut().enumerate() {
        let known = matcher.known_mask();
        if known.is_none() {
            let group = *group_of.entry(matcher.grammar_id()).or_insert_with(|| {
                groups.push(Mutex::default());
                groups.len() - 1
            });
            let group = groups[group].get_mut();
            group
                .unwrap_or_else(PoisonError::into_inner)
                .waiting
                .push((at, matcher));
        }
        found.push(known.map(Ok));
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            group
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .compute();
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(groups.len()) {
            scope.spawn(work);
        }
        work();
    });
    for group in groups {
        let group = group.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (at, outcome) in group.done {
            found[at] = Some(outcome);
        }
    }
    found.into_iter().flatten().collect()
}

/// Sequences of one grammar.
#[derive(Default)]
struct Group<'m> {
    waiting: Vec<(usize, &'m mut Matcher)>,
    done: Vec<(usize, Outcome)>,
}

impl Group<'_> {
    fn compute(&mut self) {
        for (at, matcher) in self.waiting.drain(..) {
            self.done.push((at, matcher.mask()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::gbnf;
    use crate::mask::{Lexicon, Limits, MaskStore};
    use crate::vocab::{Token, TokenKind, Vocabulary};

    const GRAMMARS: [&str; 4] = [
        "root ::= [a-c]{2,5} | \"d\" root",
        "root ::= \"ab\" (\"c\" | \"да\" | \"中\")*",
        "root ::= ([a-d] \"e\")+ \"f\"?",
        "root ::= \"\\\"\" [^\"]* \"\\\"\"",
    ];

    fn lexicon() -> Arc<Lexicon> {
        let texts = ["ab", "abc", "да", "中", "ef", "de", "\"a"];
        let texts = texts.iter().map(|text| text.as_bytes().to_vec());
        let bytes = (0..=255_u8).map(|byte| vec![byte]);
        let tokens = bytes.chain(texts).map(|bytes| Token {
            bytes,
            kind: TokenKind::Text,
        });
        Arc::new(Lexicon::new(Arc::new(Vocabulary::new(
            tokens.collect(),
            vec![],
        ))))
    }

    #[test]
    fn they_are_those_of_each_sequence_alone() {
        let lexicon = lexicon();
        let limits = Limits::default();
        for threads in [0, 1, 2, 7] {
            let store = Arc::new(MaskStore::default());
            let mut batch = Vec::new();
            for (number, text) in GRAMMARS.iter().enumerate() {
                let grammar = gbnf::parse(text, &limits).unwrap().grammar;
                let matcher = Matcher::new(&grammar, &lexicon, &store, &limits).unwrap();
                batch.extend([matcher.clone(), matcher.clone(), matcher]);
                let last = batch.last_mut().unwrap();
                let first = [&b"d"[..], b"ab", b"a", b"\""][number];
                assert!(last.accept_bytes(first).unwrap());
            }
            for step in 0..2 {
                let found = masks(&mut batch, threads);
                assert_eq!(found.len(), batch.len());
                for (at, (mask, matcher)) in found.iter().zip(&mut batch).enumerate() {
                    let mask = mask.as_ref().unwrap();
                    let plain = matcher.mask_plain().unwrap();
                    assert!(mask.iter().eq(plain.iter()), "{at}, step {step}");
                    assert_eq!(matcher.stats().asked, step + 1);
                }
                let mask = |at: usize| found[at].as_ref().unwrap();
                assert!(Arc::ptr_eq(mask(0), mask(1)), "the same place");
            }
            let computed: u64 = batch.iter().map(|matcher| matcher.stats().computed).sum();
            assert!(computed <= 2 * GRAMMARS.len() as u64, "none twice");
        }
        assert!(masks(&mut [], 4).is_empty());
    }

    #[test]
    fn an_error_is_that_of_its_sequence_alone() {
        let lexicon = lexicon();
        let store = Arc::new(MaskStore::default());
        let batch = GRAMMARS[..2].iter().enumerate().map(|(number, text)| {
            // The first may have no state beyond its start.
            let limits = Limits {
                states: if number == 0 { 2 } else { 100_000 },
                ..Limits::default()
            };
            let grammar = gbnf::parse(text, &limits).unwrap().grammar;
            Matcher::new(&grammar, &lexicon, &store, &limits).unwrap()
        });
        let mut batch: Vec<Matcher> = batch.collect();
        let found = masks(&mut batch, 2);
        assert!(matches!(found[0], Err(MatcherError::Limit(_))), "{found:?}");
        assert!(found[1].is_ok());
    }
}
