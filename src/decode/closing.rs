//! The token budget: whether a text can still be closed, and how.

use super::forced::{ForcedError, Speller};
use crate::grammar::{Bound, LimitError};
use crate::mask::{Matcher, MatcherError};
use crate::model::session::Session;
use crate::vocab::TokenId;

/// Whether the text can be closed from `matcher`'s state within `budget` tokens.
pub(super) fn fits(
    speller: &Speller,
    session: &dyn Session,
    matcher: &mut Matcher,
    budget: usize,
) -> Result<bool, ForcedError> {
    match matcher.distance() {
        None => Ok(false),
        // A token spells at least one byte.
        Some(bytes) if bytes <= budget => Ok(true),
        // Nor more than the longest one: no way through a thousand bytes need be looked for.
        Some(bytes) if bytes > budget.saturating_mul(session.vocabulary().longest()) => Ok(false),
        Some(_) => Ok(tokens(speller, session, matcher)?.is_some_and(|way| way.len() <= budget)),
    }
}

/// Whether a step after which `budget` tokens are left may be taken: not where it would make a
/// text that can be closed one that cannot. A text that could not be closed may become one that
/// can; that is noticed where it costs nothing to find out.
pub(super) fn stays(
    closable: &mut bool,
    speller: &Speller,
    session: &dyn Session,
    matcher: &mut Matcher,
    budget: usize,
) -> Result<bool, ForcedError> {
    if *closable {
        return fits(speller, session, matcher, budget);
    }
    *closable = matcher.distance().is_some_and(|bytes| bytes <= budget);
    Ok(true)
}

/// The tokens of a shortest way to close the text; `None` where there is none.
pub(super) fn tokens(
    speller: &Speller,
    session: &dyn Session,
    matcher: &mut Matcher,
) -> Result<Option<Vec<TokenId>>, ForcedError> {
    if matcher.is_accepting() {
        return Ok(Some(Vec::new()));
    }
    if matcher.distance().is_none() {
        return Ok(None);
    }
    match matcher.closing_bytes() {
        Ok(bytes) => Ok(speller.spell(session, &bytes)?),
        // Longer than anything that is forced: no budget is spent on that.
        Err(MatcherError::Limit(LimitError {
            bound: Bound::ForcedBytes,
            ..
        })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
