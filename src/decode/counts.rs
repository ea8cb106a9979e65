//! Which tokens of a prompt come from where.

use crate::model::prompt::{Part, Prompt, Rendered, TokenCounts};
use crate::model::session::{Session, SessionError};

/// Counts the tokens of `prompt`, which was rendered so: each for the part in which it begins.
pub(super) fn count(
    session: &dyn Session,
    prompt: &Prompt,
    rendered: &Rendered,
    parts: &[Part],
) -> Result<TokenCounts, SessionError> {
    let mut counts = TokenCounts {
        parts: vec![0; parts.len()],
        template: 0,
    };
    let mut first = None;
    for segment in &rendered.segments {
        let tokens = session.tokenize(segment.text.as_bytes(), segment.is_trusted())?;
        first = first.or(tokens.first().copied());
        let Some(message) = segment.message else {
            counts.template += tokens.len();
            continue;
        };
        let mut own: Vec<(usize, usize)> = (0..parts.len())
            .filter(|&number| parts[number].message == message)
            .map(|number| (parts[number].start, number))
            .collect();
        own.sort_unstable();
        let whole = prompt.messages.get(message);
        // A template may have trimmed the content.
        let begin = whole.and_then(|whole| whole.content.find(&segment.text));
        let mut at = begin.unwrap_or(0);
        // Tokens that spell more than there is (a blank that the tokeniser adds) are of its end.
        let end = at + segment.text.len().saturating_sub(1);
        for token in tokens {
            let part = own.iter().rev().find(|(start, _)| *start <= at.min(end));
            match part {
                Some(&(_, number)) => counts.parts[number] += 1,
                None => counts.template += 1,
            }
            at += session.vocabulary().bytes(token).len();
        }
    }
    let begin = session.begin();
    counts.template += usize::from(begin.is_some() && first != begin);
    Ok(counts)
}
