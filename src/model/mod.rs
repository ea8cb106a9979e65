//! Models: sessions over an evaluated context, generators above them, and the files they come from.

pub mod format;
pub mod generator;
pub mod gguf;
#[cfg(feature = "llama")]
pub mod llama;
pub mod locate;
pub mod manifest;
pub mod prefix_file;
pub mod prompt;
pub mod pull;
pub mod random;
pub mod scripted;
pub mod session;
mod shown;
pub mod tap;
pub mod template;

pub use format::Format;
pub use generator::{
    Calibration, Cancel, Chosen, GenerateError, GenerateRequest, Generation, GenerationStats,
    Generator, Sampling, Stop,
};
pub use gguf::{GgufError, GgufInfo, inspect};
pub use locate::{LocateError, Located, locate};
pub use manifest::{Entry, Manifest, ManifestError};
pub use prompt::{Message, Part, Prompt, Rendered, Role, Segment, TokenCounts};
pub use pull::{Progress, PullError, PullSettings, pull, verify};
pub use random::RandomSession;
pub use scripted::{ScriptedGenerator, ScriptedReply};
pub use session::{Evaluated, Session, SessionError};
pub use tap::Tap;
pub use template::{ChatTemplate, RenderOptions, TemplateError};
