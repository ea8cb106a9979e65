//! Messages arranged so that a template takes them.

use super::super::prompt::{Message, Role};
use super::marks;

/// How messages are arranged. Tried in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// As they are.
    AsIs,
    /// System messages put before the next message of the person: some templates (Gemma's first)
    /// know no system role.
    Folded,
    /// Also, messages of one role in a row put together: some templates want the roles to
    /// alternate.
    Merged,
}

impl Shape {
    pub(super) const ALL: [Self; 3] = [Self::AsIs, Self::Folded, Self::Merged];
}

/// A message as a template sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) role: &'static str,
    /// Placeholders, never contents.
    pub(super) content: String,
}

fn name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Arranges `messages`.
pub(super) fn arrange(messages: &[Message], shape: Shape) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    // System text that waits for the person's next message.
    let mut waiting: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let content = marks::placeholder(index, &message.content);
        if shape != Shape::AsIs && message.role == Role::System {
            waiting.push(content);
            continue;
        }
        let mut parts = Vec::new();
        if message.role == Role::User {
            parts.append(&mut waiting);
        }
        parts.push(content);
        let role = name(message.role);
        match turns.last_mut() {
            Some(last) if shape == Shape::Merged && last.role == role => {
                last.content.push_str("\n\n");
                last.content.push_str(&parts.join("\n\n"));
            }
            _ => turns.push(Turn {
                role,
                content: parts.join("\n\n"),
            }),
        }
    }
    if !waiting.is_empty() {
        turns.push(Turn {
            role: name(Role::User),
            content: waiting.join("\n\n"),
        });
    }
    turns
}
