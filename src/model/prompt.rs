//! A prompt before any template: messages, and how many of them are byte-stable.

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The harness's standing instructions.
    System,
    /// The person, or a tool's result shown to the model.
    User,
    /// The model.
    Assistant,
}

/// One message. Its content is text from outside: special tokens written in it stay text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// The messages of one turn.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Prompt {
    /// In order; the model continues as [`Role::Assistant`].
    pub messages: Vec<Message>,
    /// How many of the first messages are the same for the whole task: a session keeps a
    /// snapshot of its memory after them.
    pub stable: usize,
}

/// A piece of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What the model reads.
    pub text: String,
    /// The message whose content it is, or what the template left of it. `None`: written by the
    /// template, so that names of special tokens in it mean those tokens; in all other text they
    /// are plain text.
    pub message: Option<usize>,
}

impl Segment {
    /// Whether the template wrote it.
    pub fn is_trusted(&self) -> bool {
        self.message.is_none()
    }
}

/// Where a part of a prompt begins. It goes on to the next part of the same message, or to the
/// message's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The message.
    pub message: usize,
    /// The byte of its content.
    pub start: usize,
}

/// How many tokens of a prompt come from where.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// Those of each part. A token that two parts share counts for the one in which it begins.
    pub parts: Vec<usize>,
    /// Those of the template's own text, of what begins a sequence, and of what is in no part.
    pub template: usize,
}

impl TokenCounts {
    /// All of them.
    pub fn total(&self) -> usize {
        self.parts.iter().sum::<usize>() + self.template
    }
}

/// A prompt as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rendered {
    /// In order.
    pub segments: Vec<Segment>,
    /// How many of the first segments come from the prompt's stable messages.
    pub stable: usize,
}
