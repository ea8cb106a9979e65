//! The choices among closed sets along a text that is there already: each scored whole, so that
//! somebody can be told what else the model could have written. The text itself need not have been
//! chosen so.

use super::choice::{self, Paths};
use super::closed;
use super::forced::Speller;
use super::run::MOST_ALTERNATIVES;
use crate::mask::Matcher;
use crate::model::generator::{Chosen, GenerateError};
use crate::model::session::Session;
use crate::vocab::TokenId;

fn grammar(error: impl std::fmt::Display) -> GenerateError {
    GenerateError::Grammar(error.to_string())
}

/// The choices among closed sets in `text`, written after `prompt`; those up to where it leaves
/// the grammar that `matcher` stands at the beginning of.
pub(super) fn weigh(
    session: &mut dyn Session,
    speller: &Speller,
    matcher: Matcher,
    prompt: &[TokenId],
    text: &str,
) -> Result<Vec<Chosen>, GenerateError> {
    let mut along = Along {
        matcher,
        tokens: prompt.to_vec(),
        text: text.as_bytes(),
        written: 0,
    };
    // As while it was written: the end of the last choice.
    let mut chosen_to = 0;
    let mut choices = Vec::new();
    while along.written < along.text.len() {
        let before = along.written;
        let forced = speller.forced(session, &mut along.matcher)?;
        if !along.follow(session, &forced)? {
            break;
        }
        if along.written > before {
            continue;
        }
        let set = closed::find(
            &along.text[..before],
            chosen_to,
            &mut along.matcher,
            MOST_ALTERNATIVES,
        )
        .map_err(grammar)?;
        if let Some(set) = set
            && let Some(taken) = set.alternatives.iter().position(|alternative| {
                let whole = [set.lead.as_slice(), alternative, b"\""].concat();
                along.text[before..].starts_with(&whole)
            })
            && let Some(paths) = Paths::of(&set, session, speller, &along.matcher)?
        {
            let scores = choice::score(session, &along.tokens, &paths, None)?;
            let probabilities = choice::probabilities(&scores);
            choices.push(set.chosen(before, &probabilities, taken));
            if !along.follow(session, &paths.tokens[taken])? {
                break;
            }
            chosen_to = along.written;
            if !paths.tokens[taken].is_empty() {
                continue;
            }
        }
        let rest = speller.spell(session, &along.text[along.written..])?;
        let Some(next) = rest.as_ref().and_then(|rest| rest.get(..1)) else {
            break;
        };
        let only = along.matcher.mask().map_err(grammar)?.single().is_some();
        if !along.follow(session, next)? {
            break;
        }
        if !only {
            chosen_to = along.written;
        }
    }
    Ok(choices)
}

/// A place in a text that is there already.
struct Along<'t> {
    matcher: Matcher,
    /// The prompt's and the text's so far.
    tokens: Vec<TokenId>,
    text: &'t [u8],
    /// Bytes of the text so far.
    written: usize,
}

impl Along<'_> {
    /// Goes past `tokens`, as far as the text goes on with them and the grammar takes them;
    /// whether that was all of them.
    fn follow(&mut self, session: &dyn Session, tokens: &[TokenId]) -> Result<bool, GenerateError> {
        for &token in tokens {
            let bytes = session.vocabulary().bytes(token);
            if bytes.is_empty() || !self.text[self.written..].starts_with(bytes) {
                return Ok(false);
            }
            if !self.matcher.accept_token(token).map_err(grammar)? {
                return Ok(false);
            }
            self.written += bytes.len();
            self.tokens.push(token);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use crate::decode::tests::{PATTERNS, generator, grammar_of, prompt};
    use crate::model::generator::{Calibration, GenerateRequest, Generator, Sampling};

    #[test]
    fn what_was_chosen_is_weighed_as_it_was() {
        let grammar = grammar_of(PATTERNS[4]);
        let asked = prompt("about");
        for seed in 0..4 {
            let mut model = generator(seed);
            let mut request = GenerateRequest {
                prompt: &asked,
                grammar: Some(&grammar),
                sampling: Sampling::default(),
                max_tokens: 200,
                jump_ahead: true,
                calibration: Some(Calibration {
                    blank: &asked,
                    alpha: 0.0,
                }),
                cancel: Default::default(),
            };
            let said = model.generate(&request).unwrap();
            assert_eq!(said.choices.len(), 2);
            // Whoever wrote it, and whatever was generated since.
            request.calibration = None;
            model.generate(&request).unwrap();
            let weighed = model.weigh(&request, &said.text).unwrap();
            assert_eq!(weighed.len(), 2, "{}", said.text);
            for (one, other) in weighed.iter().zip(&said.choices) {
                assert_eq!((one.at, one.taken), (other.at, other.taken));
                for (one, other) in one.alternatives.iter().zip(&other.alternatives) {
                    assert_eq!(one.0, other.0);
                    assert!((one.1 - other.1).abs() < 1e-6, "{one:?} {other:?}");
                }
            }
            // What the grammar does not allow is weighed as far as it goes.
            assert!(model.weigh(&request, "no such text").unwrap().is_empty());
            request.grammar = None;
            assert!(model.weigh(&request, &said.text).unwrap().is_empty());
        }
    }
}
