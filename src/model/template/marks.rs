//! Placeholders for contents, and contents put back in their places.
//!
//! A placeholder is the number of its message between two private-use characters, with a blank of
//! a rare kind on both sides: where a template trims a content the blank is gone, and the content
//! is trimmed when it is put in. Since templates never see contents, nothing that a content says
//! can be taken for a placeholder.

use super::super::prompt::{Message, Segment};
use super::types::{LONGEST_OUTPUT, TemplateError};

const OPEN: char = '\u{F8F0}';
const CLOSE: char = '\u{F8F1}';
/// Trimmed like any blank, but written by no template.
const EDGE: char = '\u{2003}';

/// What stands for the content of message `index`. An empty content stands for itself, since
/// templates ask whether there is one.
pub(super) fn placeholder(index: usize, content: &str) -> String {
    if content.is_empty() {
        String::new()
    } else {
        format!("{EDGE}{OPEN}{index}{CLOSE}{EDGE}")
    }
}

/// Splits a rendered template at its placeholders and puts the contents in.
pub(super) fn fill(text: &str, messages: &[Message]) -> Result<Vec<Segment>, TemplateError> {
    let mut out = Filled::default();
    let mut found = vec![false; messages.len()];
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let (before, from) = rest.split_at(start);
        let inner = &from[OPEN.len_utf8()..];
        let mark = inner.find(CLOSE).and_then(|end| {
            let index: usize = inner[..end].parse().ok()?;
            Some((
                index,
                messages.get(index)?,
                &inner[end + CLOSE.len_utf8()..],
            ))
        });
        let Some((index, message, after)) = mark else {
            // Not one of ours: the template's own text.
            out.trusted(&from[..OPEN.len_utf8()], before)?;
            rest = inner;
            continue;
        };
        let mut content = message.content.as_str();
        let before = before.strip_suffix(EDGE).unwrap_or_else(|| {
            content = content.trim_start();
            before
        });
        rest = after.strip_prefix(EDGE).unwrap_or_else(|| {
            content = content.trim_end();
            after
        });
        found[index] = true;
        out.trusted("", before)?;
        out.push(content, Some(index))?;
    }
    out.trusted("", rest)?;
    for (index, message) in messages.iter().enumerate() {
        if !found[index] && !message.content.is_empty() {
            return Err(TemplateError::Lost(index + 1));
        }
    }
    Ok(out.segments)
}

#[derive(Default)]
struct Filled {
    segments: Vec<Segment>,
    bytes: usize,
}

impl Filled {
    /// The template's own text: `before`, then `text`.
    fn trusted(&mut self, text: &str, before: &str) -> Result<(), TemplateError> {
        self.push(before, None)?;
        self.push(text, None)
    }

    fn push(&mut self, text: &str, message: Option<usize>) -> Result<(), TemplateError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > LONGEST_OUTPUT {
            return Err(TemplateError::Output);
        }
        match self.segments.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.is_trusted() && message.is_none() => last.text.push_str(text),
            _ => self.segments.push(Segment {
                text: text.to_owned(),
                message,
            }),
        }
        Ok(())
    }
}
