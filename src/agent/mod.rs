//! The agent: the loop that takes a request to its end, and everything it stands on.
//!
//! It decides nothing that another module can decide: what is legal comes from
//! [`call`](crate::call) and [`task`](crate::task), what is written from
//! [`model`](crate::model), what happens from [`tool`](crate::tool). It prints nothing.

pub mod clock;
pub mod context;
mod described;
pub mod doubt;
pub mod event;
pub mod examples;
mod finish;
mod generate;
pub mod grounding;
mod help;
mod hints;
pub mod history;
mod learn;
pub mod limits;
mod moves;
mod numbers;
mod open;
pub mod person;
mod progress;
mod resume;
pub mod run;
mod said;
mod second_look;

pub use clock::{Clock, SystemClock};
pub use context::{Layout, Shown, Tail, ToolsInPrompt};
pub use doubt::{Alternative, Doubt, Look, Unsure};
pub use event::{Event, Figures, Observer, Recorder, Unobserved};
pub use examples::{Examples, FromPool, NoExamples};
pub use grounding::Ungrounded;
pub use history::Past;
pub use limits::{Limits, StopReason};
pub use person::{Nobody, Person};
pub use run::{Agent, AgentError, Report, Settings};
