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
