//! One request worked on by the agent, unrecorded and unattended, for suites that look at what
//! came of it.

use crate::agent::{
    Agent, AgentError, Clock, Event, Examples, Figures, Nobody, Recorder, Settings, StopReason,
};
use crate::call::Call;
use crate::model::{Cancel, Generator};
use crate::task::{ActiveTask, Definition, TaskId};
use crate::tool::Registry;
use crate::trace::Null;

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// The calls that were executed, in order.
    pub calls: Vec<Call>,
    /// The kinds of the failures on the way, in order.
    pub failures: Vec<String>,
    /// Why it ended.
    pub reason: StopReason,
    /// The answer or the question, where there is one.
    pub text: Option<String>,
    /// Figures.
    pub figures: Figures,
}

/// What requests are worked on with.
pub struct Player<'a> {
    /// The model.
    pub generator: &'a mut dyn Generator,
    /// Where examples come from.
    pub examples: &'a mut dyn Examples,
    /// A clock that starts now.
    pub clock: &'a dyn Fn() -> Box<dyn Clock>,
    /// Settings. Every call is approved: the world is a copy that is thrown away.
    pub settings: Settings,
    /// Stops after the current token.
    pub cancel: Cancel,
}

impl std::fmt::Debug for Player<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Player<'_> {
    /// Works on `request` with `tools`.
    ///
    /// # Errors
    /// The harness or the model's backend failed, not the model.
    pub fn play(&mut self, request: &str, tools: &mut Registry) -> Result<Episode, AgentError> {
        let clock = (self.clock)();
        let mut task = ActiveTask::unrecorded(
            TaskId::new(clock.now(), 0),
            request,
            Definition::builtin(),
            serde_json::Value::Null,
            clock.now(),
        )?;
        let mut recorder = Recorder::default();
        let report = Agent {
            generator: self.generator,
            tools,
            examples: self.examples,
            person: &mut Nobody,
            observer: &mut recorder,
            trace: &mut Null,
            clock: clock.as_ref(),
            cancel: self.cancel.clone(),
            settings: Settings {
                approve_all: true,
                ..self.settings.clone()
            },
        }
        .run(&mut task)?;
        let mut calls = Vec::new();
        let mut failures = Vec::new();
        for event in recorder.events {
            match event {
                Event::CallFinished { call, .. } => calls.push(call),
                Event::Failure { kind, .. } => failures.push(kind),
                _ => {}
            }
        }
        Ok(Episode {
            calls,
            failures,
            reason: report.reason,
            text: report.text,
            figures: report.figures,
        })
    }
}
