//! Closed sets: where a grammar leaves only so many texts for a JSON string value.
//!
//! Tool names, enumerations and live values are such sets. They are found in the grammar itself,
//! by walking what it allows from the value's beginning to its closing quote, so that whoever
//! wrote the grammar need not say where they are.

use crate::mask::{Matcher, MatcherError};
use crate::model::generator::Chosen;

/// Bytes of the longest alternative of a closed set that is chosen from as a whole.
pub const LONGEST: usize = 512;

/// The alternatives of a string value that is about to be written.
#[derive(Debug)]
pub(super) struct ClosedSet {
    /// What comes before them and is not written yet.
    pub(super) lead: Vec<u8>,
    /// What may follow, without the closing quote; none twice.
    pub(super) alternatives: Vec<Vec<u8>>,
}

impl ClosedSet {
    /// That the alternative `taken` was chosen, with these probabilities of all of them, after
    /// `written` bytes.
    pub(super) fn chosen(&self, written: usize, probabilities: &[f64], taken: usize) -> Chosen {
        let text = |at: usize| String::from_utf8_lossy(&self.alternatives[at]).into_owned();
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
        Chosen {
            at: written + self.lead.len(),
            alternatives: order
                .iter()
                .map(|&at| (text(at), probabilities[at]))
                .collect(),
            taken: order.iter().position(|&at| at == taken).unwrap_or(0),
        }
    }
}

/// The closed set that comes next after `written`, if one does: at least two and at most `most`
/// alternatives. Nothing from byte `chosen` of the value on may have been chosen by a model yet.
///
/// # Errors
/// Where a limit of the matcher is exceeded.
pub(super) fn find(
    written: &[u8],
    chosen: usize,
    matcher: &mut Matcher,
    most: usize,
) -> Result<Option<ClosedSet>, MatcherError> {
    let Some(lead) = lead(matcher)? else {
        return Ok(None);
    };
    if open_value([written, &lead].concat().as_slice()).is_none_or(|opened| opened < chosen) {
        return Ok(None);
    }
    alternatives(lead, matcher, most)
}

/// The names that the first member of an object may have, where such a name is about to be
/// written and there are several.
///
/// # Errors
/// Where a limit of the matcher is exceeded.
pub(super) fn first_name(
    written: &[u8],
    matcher: &mut Matcher,
    most: usize,
) -> Result<Option<ClosedSet>, MatcherError> {
    let Some(lead) = lead(matcher)? else {
        return Ok(None);
    };
    let text = [written, &lead].concat();
    let begins = text.trim_ascii_start().strip_prefix(b"{");
    if begins.is_none_or(|rest| rest.trim_ascii_start() != b"\"") {
        return Ok(None);
    }
    alternatives(lead, matcher, most)
}

/// What comes next in any case, up to a whole character.
fn lead(matcher: &mut Matcher) -> Result<Option<Vec<u8>>, MatcherError> {
    let mut lead = match matcher.forced_bytes() {
        Ok(lead) => lead,
        Err(MatcherError::NeedsToken) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A character that is begun but not decided belongs to the alternatives.
    let whole = match std::str::from_utf8(&lead) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => lead.len(),
    };
    lead.truncate(whole);
    Ok(Some(lead))
}

/// What may come after `lead` up to a quote.
fn alternatives(
    lead: Vec<u8>,
    matcher: &Matcher,
    most: usize,
) -> Result<Option<ClosedSet>, MatcherError> {
    let mut start = matcher.clone();
    if !start.accept_bytes(&lead)? {
        return Ok(None);
    }
    let mut alternatives = Vec::new();
    let mut open = vec![(start, Vec::new(), false)];
    while let Some((matcher, text, escaped)) = open.pop() {
        let allowed = matcher.allowed_bytes();
        let count: u32 = allowed.iter().map(|word| word.count_ones()).sum();
        if count as usize + open.len() + alternatives.len() > most + 1 || text.len() > LONGEST {
            return Ok(None);
        }
        for byte in (0..=u8::MAX).rev() {
            if allowed[usize::from(byte >> 6)] & (1 << (byte & 63)) == 0 {
                continue;
            }
            if byte == b'"' && !escaped {
                alternatives.push(text.clone());
                continue;
            }
            let mut next = matcher.clone();
            if next.accept_bytes(&[byte])? {
                let mut longer = text.clone();
                longer.push(byte);
                open.push((next, longer, byte == b'\\' && !escaped));
            }
        }
    }
    let several = (2..=most).contains(&alternatives.len());
    Ok(several.then_some(ClosedSet { lead, alternatives }))
}

/// Where the string value that `text` ends in begins, behind its opening quote. `None`: it ends
/// elsewhere, or in a member's name.
fn open_value(text: &[u8]) -> Option<usize> {
    let mut objects = Vec::new();
    let mut name_next = false;
    let mut opened: Option<(usize, bool)> = None;
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate() {
        if opened.is_some() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => opened = None,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => opened = Some((at + 1, name_next)),
            b'{' | b'[' => {
                objects.push(byte == b'{');
                name_next = byte == b'{';
            }
            b'}' | b']' => {
                objects.pop();
                name_next = false;
            }
            b',' => name_next = objects.last() == Some(&true),
            b':' => name_next = false,
            _ => {}
        }
    }
    opened.and_then(|(at, name)| (!name).then_some(at))
}

#[cfg(test)]
mod tests {
    use super::open_value;

    #[test]
    fn a_value_that_is_begun_is_found() {
        for (text, at) in [
            (r#"{"tool": ""#, Some(10)),
            (r#"{"tool": "x", "arguments": {"device": "kit"#, Some(39)),
            (r#"["a", ""#, Some(7)),
            (r#"""#, Some(1)),
            (r#"{""#, None),
            (r#"{"tool": "x", ""#, None),
            (r#"{"tool": "x""#, None),
            (r#"{"a": ["b", "c"], ""#, None),
            (r#"{"a": "say \"{[,"#, Some(7)),
            ("", None),
        ] {
            assert_eq!(open_value(text.as_bytes()), at, "{text}");
        }
    }
}
