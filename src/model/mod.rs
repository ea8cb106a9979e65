//! Models: sessions over an evaluated context, generators above them, and the files they come from.

pub mod generator;
pub mod gguf;
#[cfg(feature = "llama")]
pub mod llama;
pub mod prefix_file;
pub mod prompt;
pub mod random;
pub mod scripted;
pub mod session;

pub use generator::{
    Cancel, GenerateError, GenerateRequest, Generation, GenerationStats, Generator, Sampling, Stop,
};
pub use prompt::{Format, Message, Prompt, Rendered, Role, Segment};
pub use random::RandomSession;
pub use scripted::ScriptedGenerator;
pub use session::{Evaluated, Session, SessionError};
