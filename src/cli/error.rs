//! The one funnel: whatever goes wrong in the library becomes one line, hints and an exit code
//! here.

use super::config::ConfigError;
use super::exit::Exit;
use crate::agent::{AgentError, StopReason};
use crate::decide::{DecideError, OptionsError};
use crate::fewshot::LearnedError;
use crate::model::pull::VerifyError;
use crate::model::{GenerateError, GgufError, LocateError, ManifestError, PullError, SessionError};
use crate::task::{JournalError, TaskError};
use crate::tool::assistant::{FilesError, WeatherError};
use crate::tool::command::CommandError;
use crate::tool::home::HouseError;
use crate::tool::simulated::SimulatedError;
use crate::tool::{RegisterError, ToolError};
use crate::trace::TraceError;
use std::io;

/// Why a command failed, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line: what is wrong, where.
    pub message: String,
    /// The place itself, in several lines, where that helps: an excerpt with a caret.
    pub detail: Option<String>,
    /// What can be done about it, one line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            detail: None,
            hints: Vec::new(),
        }
    }

    /// With a hint more.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// With a hint where there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// With an excerpt.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// For machines.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "error": {
                "code": self.exit.code(),
                "kind": self.exit.name(),
                "message": self.message,
                "detail": self.detail,
                "hints": self.hints,
            }
        })
    }

    /// Something that a person gave to work on and that is wrong or missing.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::Input, message)
    }
}

/// Output and files.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => {
                Self::new(Exit::ClosedOutput, "standard output was closed")
            }
            // Errors of files name the file; this one is of a stream.
            io::ErrorKind::StorageFull if error.raw_os_error().is_some() => {
                Self::new(Exit::Files, format!("standard output: {error}"))
            }
            io::ErrorKind::StorageFull => Self::new(Exit::Files, error.to_string())
                .hint("make room on the disk, or set another folder with --state-dir"),
            _ => Self::new(Exit::Files, error.to_string()),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::InFile {
                suggestion: Some(name),
                ..
            } => Some(format!("did you mean {name:?}?")),
            ConfigError::InFile { .. } | ConfigError::Value { .. } => {
                Some("`snaffle config explain` describes every setting".to_owned())
            }
            ConfigError::Unreadable { .. } => None,
        };
        Self::new(Exit::Config, error.to_string()).maybe_hint(hint)
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        use JournalError::{
            Ambiguous, Busy, Corrupt, Damaged, Database, DiskFull, Exists, File, HeadNotSynced,
            Newer, NotAJournal, ProgramRunning, ReadOnly, Running, TooLarge, UnknownTask,
        };
        let (exit, hint) = match &error {
            ReadOnly { .. } => (
                Exit::Files,
                Some("--journal or --state-dir sets another place"),
            ),
            DiskFull { .. } => (
                Exit::Files,
                Some("make room, or set another place with --state-dir"),
            ),
            HeadNotSynced { .. } | File { .. } | Database { .. } => (Exit::Files, None),
            Busy { .. } | Running { .. } => (
                Exit::Busy,
                Some("wait for the other run, or end it; nothing was executed"),
            ),
            ProgramRunning { .. } => (
                Exit::Busy,
                Some("wait for the program, or end it; nothing was executed"),
            ),
            UnknownTask { .. } | Ambiguous { .. } => {
                (Exit::Input, Some("`snaffle task list` shows all tasks"))
            }
            Damaged { .. } => (
                Exit::Input,
                Some(
                    "`snaffle task show` shows what stands; `snaffle task rewind ID --to STEP` goes on from there",
                ),
            ),
            Newer { .. } => (
                Exit::Input,
                Some("use the newer snaffle, or another --journal"),
            ),
            NotAJournal { .. } | Corrupt { .. } => (
                Exit::Input,
                Some("move the file away, or set another --journal"),
            ),
            Exists { .. } | TooLarge { .. } => (Exit::Input, None),
        };
        Self::new(exit, error.to_string()).maybe_hint(hint.map(str::to_owned))
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Journal(error) => error.into(),
            other @ (TaskError::NoTask(_)
            | TaskError::NoSuchEvent { .. }
            | TaskError::Abandoned { .. }
            | TaskError::NoSuchStep { .. }) => Self::input(other.to_string()),
        }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        let exit = match &error {
            TraceError::Pattern(_) => Exit::Config,
            TraceError::Id(_) => Exit::Internal,
            TraceError::File { .. } => Exit::Files,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::ContextFull { .. } => {
                Self::input(error.to_string()).hint("shorten it, or set a larger --context")
            }
            SessionError::Cancelled => Self::new(Exit::Cancelled, "cancelled"),
            SessionError::File(error) => error.into(),
            SessionError::Backend { .. } => Self::new(Exit::Model, error.to_string()),
        }
    }
}

impl From<GenerateError> for Failure {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Session(error) => error.into(),
            GenerateError::PromptTooLong { .. } => Self::input(error.to_string())
                .hint("shorten the request, or set a larger --context"),
            GenerateError::Template(_) | GenerateError::Backend { .. } => {
                Self::new(Exit::Model, error.to_string())
            }
            GenerateError::Grammar(_) => Self::input(error.to_string()),
        }
    }
}

impl From<DecideError> for Failure {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Generate(error) => error.into(),
            DecideError::Cancelled => Self::new(Exit::Cancelled, "cancelled"),
            DecideError::NoProbabilities { .. } => Self::new(Exit::Model, error.to_string()),
            DecideError::EmptyQuestion | DecideError::Unspellable { .. } => {
                Self::input(error.to_string())
            }
        }
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Task(error) => error.into(),
            AgentError::Generate(error) => error.into(),
            AgentError::Undecided { .. } => Self::new(Exit::Waiting, error.to_string()).hint(
                "`snaffle task resume` on a terminal asks you; `--settle` says it beforehand",
            ),
            AgentError::Storage(_) => Self::new(Exit::Files, error.to_string())
                .hint("make room, or make it writable; `snaffle task resume` goes on"),
            AgentError::Turn(_) | AgentError::World(_) | AgentError::EmptyRequest => {
                Self::input(error.to_string())
            }
        }
    }
}

impl From<HouseError> for Failure {
    fn from(error: HouseError) -> Self {
        match &error {
            HouseError::Held { .. } => Self::new(Exit::Busy, error.to_string())
                .hint("wait for it, or end it; --dry-run looks only"),
            HouseError::Lock { .. } | HouseError::Save { .. } => {
                Self::new(Exit::Files, error.to_string())
                    .hint("the house cannot be changed here; --dry-run --trace-keep 0 looks only")
            }
            HouseError::Unsynced { .. } => Self::new(Exit::Files, error.to_string()),
            HouseError::Read(_)
            | HouseError::TooLarge { .. }
            | HouseError::Invalid { .. }
            | HouseError::Gone { .. } => Self::input(error.to_string()),
        }
    }
}

impl From<LearnedError> for Failure {
    fn from(error: LearnedError) -> Self {
        let message = error.to_string();
        match error {
            LearnedError::File(error) => error.into(),
            LearnedError::Locked { .. } => {
                Self::new(Exit::Busy, message).hint("try again when it is through")
            }
            LearnedError::TooLarge { .. } => {
                Self::input(message).hint("move the file away, or set another --learned")
            }
            LearnedError::Full { .. } => Self::input(message)
                .hint("`snaffle fewshot forget` makes room, or name a file with --examples"),
        }
    }
}

/// Errors of files that a person named: the message says all.
macro_rules! input_errors {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::input(error.to_string())
            }
        })+
    };
}

input_errors!(
    OptionsError,
    CommandError,
    SimulatedError,
    RegisterError,
    WeatherError,
    FilesError
);

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        if error.storage {
            Self::new(Exit::Files, error.message)
        } else {
            Self::input(error.message)
        }
    }
}

impl From<ManifestError> for Failure {
    fn from(error: ManifestError) -> Self {
        Self::new(Exit::Model, error.to_string())
    }
}

impl From<LocateError> for Failure {
    fn from(error: LocateError) -> Self {
        Self::new(Exit::Model, error.to_string()).maybe_hint(error.hint())
    }
}

impl From<GgufError> for Failure {
    fn from(error: GgufError) -> Self {
        Self::new(Exit::Model, error.to_string())
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        match &error {
            VerifyError::Cancelled => Self::new(Exit::Cancelled, "stopped"),
            VerifyError::Missing { .. } | VerifyError::Read { .. } => {
                Self::new(Exit::Model, error.to_string())
            }
            _ => Self::new(Exit::Model, error.to_string())
                .hint("`snaffle model pull` replaces a wrong file by the right one"),
        }
    }
}

impl From<PullError> for Failure {
    fn from(error: PullError) -> Self {
        match &error {
            PullError::Cancelled => Self::new(Exit::Cancelled, "what was fetched is kept")
                .hint("pulling again goes on from there"),
            PullError::Busy { .. } => Self::new(Exit::Busy, error.to_string()),
            PullError::File { .. } => Self::new(Exit::Files, error.to_string()),
            _ => Self::new(Exit::Model, error.to_string()),
        }
    }
}

/// The exit code of a run that ended for this reason.
pub fn exit_of(reason: &StopReason) -> Exit {
    match reason {
        StopReason::Answered
        | StopReason::Completed
        | StopReason::ToolEnded
        | StopReason::DryRun => Exit::Success,
        StopReason::AnswerFlagged | StopReason::Refused => Exit::Refused,
        StopReason::Cancelled => Exit::Cancelled,
        StopReason::Asked => Exit::Waiting,
        StopReason::TurnLimit | StopReason::TokenLimit | StopReason::TimeLimit => Exit::Limit,
        StopReason::Hook(_) => Exit::Stopped,
        StopReason::FailedEnd
        | StopReason::Stuck
        | StopReason::Repeated
        | StopReason::TooManyFailures => Exit::Unfinished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_their_own_codes() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        for (failure, exit) in [
            (Failure::from(full), Exit::Files),
            (Failure::from(pipe), Exit::ClosedOutput),
            (Failure::input("x"), Exit::Input),
        ] {
            assert_eq!(failure.exit, exit);
        }
    }
}
