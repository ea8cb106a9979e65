//! The layout for base models: text that goes on, requests and replies in turn.

use super::super::prompt::{Message, Role, Segment};

/// Renders `messages`. The labels are ours, all else is content; a reply begins in the same way
/// as those before it, down to the tokens, since label and content are tokenised apart.
pub(super) fn segments(messages: &[Message], reply: bool) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::new();
    let mut push = |text: &str, trusted: bool| match out.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.trusted && trusted => last.text.push_str(text),
        _ => out.push(Segment {
            text: text.to_owned(),
            trusted,
        }),
    };
    for message in messages {
        let (label, end) = match message.role {
            Role::System => ("", "\n\n"),
            Role::User => ("Request: ", "\n"),
            Role::Assistant => ("Reply: ", "\n\n"),
        };
        push(label, true);
        push(message.content.trim(), false);
        push(end, true);
    }
    if reply {
        push("Reply: ", true);
    }
    out
}
