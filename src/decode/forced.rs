//! Jump-ahead: which tokens to feed for bytes that alone can follow.

use crate::mask::{Matcher, MatcherError};
use crate::model::session::{Session, SessionError};
use crate::vocab::{TokenId, TokenKind, Vocabulary};

/// Tokens of text that the harness writes itself.
#[derive(Debug)]
pub(super) struct Speller {
    /// For each byte a token that spells it alone.
    bytes: Box<[Option<TokenId>; 256]>,
    longest: usize,
}

impl Speller {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let mut bytes = Box::new([None; 256]);
        for id in 0..vocabulary.len() as TokenId {
            let Some(token) = vocabulary.token(id) else {
                continue;
            };
            if let ([byte], TokenKind::Text | TokenKind::Byte) = (&token.bytes[..], token.kind) {
                let slot = &mut bytes[usize::from(*byte)];
                if slot.is_none() || token.kind == TokenKind::Text {
                    *slot = Some(id);
                }
            }
        }
        Self {
            bytes,
            longest: vocabulary.longest(),
        }
    }

    /// Tokens that spell exactly `text`: the tokeniser's own, or one a byte where the tokeniser
    /// adds or drops something. `None`: there are none.
    pub(super) fn spell(
        &self,
        session: &dyn Session,
        text: &[u8],
    ) -> Result<Option<Vec<TokenId>>, SessionError> {
        let tokens = session.tokenize(text, false)?;
        let mut left = text;
        let exact = tokens.iter().all(|&token| {
            let bytes = session.vocabulary().bytes(token);
            match left.strip_prefix(bytes) {
                Some(rest) if !bytes.is_empty() => {
                    left = rest;
                    true
                }
                _ => false,
            }
        });
        if exact && left.is_empty() {
            return Ok(Some(tokens));
        }
        Ok(text
            .iter()
            .map(|&byte| self.bytes[usize::from(byte)])
            .collect())
    }

    /// The tokens to feed for the bytes that are forced after `matcher`'s state: canonical as a
    /// continuation of what was written, without a tail that the next choice could merge with.
    /// Empty where nothing is forced, or all of it could merge.
    pub(super) fn forced(
        &self,
        session: &dyn Session,
        matcher: &mut Matcher,
    ) -> Result<Vec<TokenId>, ForcedError> {
        let forced = matcher.forced_bytes()?;
        // A character that is begun but not decided is left to the next choice.
        let whole = match std::str::from_utf8(&forced) {
            Err(error) if error.error_len().is_none() => &forced[..error.valid_up_to()],
            Ok(_) | Err(_) => &forced[..],
        };
        if whole.is_empty() {
            return Ok(Vec::new());
        }
        let Some(mut tokens) = self.spell(session, whole)? else {
            return Ok(Vec::new());
        };
        let mut after = matcher.clone();
        if !after.accept_bytes(whole)? {
            // Forced bytes can follow by their definition.
            return Ok(Vec::new());
        }
        if !after.is_finished() {
            let keep = self.undecided_from(session, &tokens, &mut after)?;
            tokens.truncate(keep);
        }
        Ok(tokens)
    }

    /// How many of `tokens` no longer token could swallow together with what comes next. `after`
    /// is the state after all of them.
    fn undecided_from(
        &self,
        session: &dyn Session,
        tokens: &[TokenId],
        after: &mut Matcher,
    ) -> Result<usize, MatcherError> {
        let vocabulary = session.vocabulary();
        let mut tail = Vec::new();
        let mut keep = tokens.len();
        for (at, &token) in tokens.iter().enumerate().rev() {
            tail.splice(0..0, vocabulary.bytes(token).iter().copied());
            if tail.len() >= self.longest {
                break;
            }
            if after.could_extend(&tail)? {
                keep = at;
            }
        }
        Ok(keep)
    }
}

/// Why forced tokens could not be found.
#[derive(Debug, thiserror::Error)]
pub(super) enum ForcedError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Matcher(#[from] MatcherError),
}
