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
    /// Written by the template: names of special tokens in it mean those tokens. In all other
    /// text they are plain text.
    pub trusted: bool,
}

/// A prompt as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rendered {
    /// In order.
    pub segments: Vec<Segment>,
    /// How many of the first segments come from the prompt's stable messages.
    pub stable: usize,
}
