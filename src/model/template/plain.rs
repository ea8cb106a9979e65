//! The layout for base models: text that goes on, requests and replies in turn.

use super::super::prompt::{Message, Role, Segment};

/// Renders `messages`. The labels are ours, all else is content; a reply begins in the same way
/// as those before it, down to the tokens, since label and content are tokenised apart.
pub(super) fn segments(messages: &[Message], reply: bool) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::new();
    let mut push = |text: &str, message: Option<usize>| match out.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.is_trusted() && message.is_none() => last.text.push_str(text),
        _ => out.push(Segment {
            text: text.to_owned(),
            message,
        }),
    };
    for (index, message) in messages.iter().enumerate() {
        let (label, end) = match message.role {
            Role::System => ("", "\n\n"),
            Role::User => ("Request: ", "\n"),
            Role::Assistant => ("Reply: ", "\n\n"),
        };
        push(label, None);
        push(message.content.trim(), Some(index));
        push(end, None);
    }
    if reply {
        push("Reply: ", None);
    }
    out
}
