//! A task is the fold of its events: what it is after them, and what may follow.

use super::definition::{Definition, On, State};
use super::event::{Entry, Event, Settlement, StepResult, StopReason};
use super::facts::{Facts, call_text, value_text};
use super::id::TaskId;
use crate::call::{Call, Effect};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Turns may follow.
    Running,
    /// Done: the person has the answer.
    Answered,
    /// Waits for the person's reply to this question.
    Asked(String),
    /// The run ended without an answer.
    Stopped(StopReason),
    /// It was running and no process runs it any more.
    Interrupted,
}

/// A call that may have run: its outcome is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Its step.
    pub step: u32,
    /// The call.
    pub call: Call,
    /// What the tool does to the world.
    pub effect: Effect,
    /// Whether doing it twice is the same as doing it once.
    pub idempotent: bool,
}

impl Pending {
    /// Whether it may be made again without asking.
    pub fn repeatable(&self) -> bool {
        self.idempotent || self.effect == Effect::Read
    }
}

/// The last call and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LastStep {
    /// Its step.
    pub step: u32,
    /// The call.
    pub call: Call,
    /// What came of it; `None`: unknown.
    pub result: Option<StepResult>,
}

/// What to do with a task that is taken up again.
#[derive(Clone, Debug, PartialEq)]
pub enum Recovery {
    /// Nothing: it is over.
    Finished,
    /// The person's reply to this question comes first.
    Reply(String),
    /// Go on with the next turn.
    Continue,
    /// Make this call again: it only reads, or repeating it is safe.
    Repeat(Pending),
    /// A person, or a check of the world, says whether this call took effect (an
    /// [`Event::Settled`]).
    Decide(Pending),
}

/// A task as its events have made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// What the person asked for.
    pub goal: String,
    /// When it was created.
    pub created: Timestamp,
    /// Its definition.
    pub definition: Definition,
    /// What the run was started with.
    pub settings: Value,
    /// The state it is in.
    pub state: String,
    /// How it stands.
    pub status: Status,
    /// What it knows.
    pub facts: Facts,
    /// The last call.
    pub last: Option<LastStep>,
    /// A call whose outcome is unknown.
    pub pending: Option<Pending>,
    /// The last question and the person's reply.
    pub reply: Option<(String, String)>,
    /// The final answer.
    pub answer: Option<String>,
    /// Turns begun.
    pub turns: u32,
    /// Calls begun.
    pub steps: u32,
    /// Calls that only read and succeeded.
    pub reads: u32,
    /// Calls that changed something and succeeded.
    pub effects: u32,
    /// Failures (of calls, of what the model wrote) since the last success.
    pub failures: u32,
}

/// Events that make no task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task's first event does not say what the task is")]
pub struct NoTask;

impl Task {
    /// The task that `entries` make. Events that were rewound do not count.
    ///
    /// # Errors
    /// Where the first event is not [`Event::TaskCreated`].
    pub fn fold(id: &TaskId, entries: &[Entry]) -> Result<Self, NoTask> {
        let mut counted: Vec<&Entry> = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Event::Rewound { to } = entry.event {
                // The first event always stands.
                counted.retain(|kept| kept.sequence <= to.max(1));
            }
            counted.push(entry);
        }
        let Some((first, rest)) = counted.split_first() else {
            return Err(NoTask);
        };
        let Event::TaskCreated {
            goal,
            definition,
            settings,
        } = &first.event
        else {
            return Err(NoTask);
        };
        let mut task = Self {
            id: id.clone(),
            goal: goal.clone(),
            created: first.time,
            definition: definition.clone(),
            settings: settings.clone(),
            state: definition.start.clone(),
            status: Status::Running,
            facts: Facts::default(),
            last: None,
            pending: None,
            reply: None,
            answer: None,
            turns: 0,
            steps: 0,
            reads: 0,
            effects: 0,
            failures: 0,
        };
        for entry in rest {
            task.apply(&entry.event);
        }
        Ok(task)
    }

    /// What the task is after one more event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::TaskCreated { .. } | Event::Approved { .. } | Event::HintGiven { .. } => {}
            Event::TurnStarted { turn } => self.turns = *turn,
            Event::Intent {
                step,
                call,
                effect,
                idempotent,
            } => {
                self.steps = *step;
                self.last = Some(LastStep {
                    step: *step,
                    call: call.clone(),
                    result: None,
                });
                self.pending = Some(Pending {
                    step: *step,
                    call: call.clone(),
                    effect: *effect,
                    idempotent: *idempotent,
                });
            }
            Event::Outcome { step, result, .. } => self.apply_outcome(*step, result),
            Event::Settled { how, .. } => {
                if let (Some(pending), Settlement::Happened) = (self.pending.take(), how) {
                    self.count_success(pending.effect);
                }
            }
            Event::Asked { question } => self.status = Status::Asked(question.clone()),
            Event::Replied { text } => {
                let question = match std::mem::replace(&mut self.status, Status::Running) {
                    Status::Asked(question) => question,
                    _ => String::new(),
                };
                self.reply = Some((question, text.clone()));
            }
            Event::Refused { .. } | Event::Rejected { .. } => self.failures += 1,
            Event::FactsChanged { set, removed } => {
                for name in removed {
                    self.facts.remove(name);
                }
                for (name, value) in set {
                    self.facts.set(name, value.clone());
                }
            }
            Event::StateMoved { to, .. } => {
                self.state.clone_from(to);
                let end = self
                    .definition
                    .states
                    .get(to)
                    .is_some_and(|state| state.end);
                self.status = if end {
                    Status::Answered
                } else {
                    Status::Running
                };
            }
            Event::Answered { text, .. } => {
                self.answer = Some(text.clone());
                self.status = Status::Answered;
            }
            Event::Stopped { reason } => self.status = Status::Stopped(reason.clone()),
            Event::Resumed | Event::Rewound { .. } => {
                if matches!(self.status, Status::Stopped(_)) {
                    self.status = Status::Running;
                }
            }
        }
    }

    fn apply_outcome(&mut self, step: u32, result: &StepResult) {
        if let Some(last) = self.last.as_mut().filter(|last| last.step == step) {
            last.result = Some(result.clone());
        }
        let pending = self.pending.take_if(|pending| pending.step == step);
        match result {
            StepResult::Ok(_) => {
                if let Some(pending) = pending {
                    self.count_success(pending.effect);
                }
            }
            StepResult::Error { effect_unknown, .. } => {
                self.failures += 1;
                // It failed, but its effect may have happened: still somebody's decision.
                self.pending = pending.filter(|p| *effect_unknown && !p.repeatable());
            }
        }
    }

    fn count_success(&mut self, effect: Effect) {
        self.failures = 0;
        match effect {
            Effect::Read => self.reads += 1,
            Effect::Change | Effect::Risk => self.effects += 1,
        }
    }

    /// The definition of the state that the task is in.
    pub fn current(&self) -> Option<&State> {
        self.definition.states.get(&self.state)
    }

    /// Whether `tool` is legal now.
    pub fn allows(&self, tool: &str) -> bool {
        self.current().is_some_and(|state| state.allows(tool))
    }

    /// The values that facts leave for an argument now; `None`: facts do not bound it.
    pub fn bound(&self, tool: &str, argument: &str) -> Option<Vec<Value>> {
        let state = self.current()?;
        let bind = state
            .bind
            .iter()
            .find(|bind| bind.tool == tool && bind.argument == argument)?;
        let mut values = Vec::new();
        let items = match self.facts.get(&bind.fact) {
            None => return Some(values),
            Some(Value::Array(items)) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        for value in items.iter().filter_map(|item| item.pointer(&bind.pointer)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        Some(values)
    }

    /// What follows from the outcome of the pending call: facts learned, the state moved.
    pub fn consequences(&self, result: &StepResult) -> Vec<Event> {
        let (Some(pending), Some(state)) = (&self.pending, self.current()) else {
            return Vec::new();
        };
        let call = &pending.call;
        let mut events = Vec::new();
        let on = match result {
            StepResult::Ok(value) => {
                let mut set = Map::new();
                if state.keep_results {
                    let (name, fact) = self.facts.learn(call, value);
                    set.insert(name, fact);
                }
                for rule in &state.remember {
                    let applies = rule.tool.as_ref().is_none_or(|tool| *tool == call.tool);
                    if let (true, Some(part)) = (applies, value.pointer(&rule.pointer)) {
                        set.insert(fill(&rule.fact, &call.arguments), part.clone());
                    }
                }
                if !set.is_empty() {
                    events.push(Event::FactsChanged {
                        set,
                        removed: Vec::new(),
                    });
                }
                On::Success
            }
            StepResult::Error { .. } => On::Failure,
        };
        events.extend(self.moved(state.follow(on, Some(&call.tool))));
        events
    }

    /// What follows from the model's answer.
    pub fn after_answer(&self) -> Option<Event> {
        self.moved(self.current()?.follow(On::Answer, None))
    }

    fn moved(&self, to: Option<&str>) -> Option<Event> {
        Some(Event::StateMoved {
            from: self.state.clone(),
            to: to?.to_owned(),
        })
    }

    /// How it stands, given whether a process runs it.
    pub fn shown_status(&self, running: bool) -> Status {
        match &self.status {
            Status::Running if !running => Status::Interrupted,
            status => status.clone(),
        }
    }

    /// What to do when it is taken up again.
    pub fn recovery(&self) -> Recovery {
        match &self.status {
            Status::Answered => return Recovery::Finished,
            Status::Stopped(reason) if reason.is_final() => return Recovery::Finished,
            Status::Running | Status::Asked(_) | Status::Stopped(_) | Status::Interrupted => {}
        }
        match (&self.pending, &self.status) {
            (Some(pending), _) if pending.repeatable() => Recovery::Repeat(pending.clone()),
            (Some(pending), _) => Recovery::Decide(pending.clone()),
            (None, Status::Asked(question)) => Recovery::Reply(question.clone()),
            (None, _) => Recovery::Continue,
        }
    }

    /// The last call and its result, for the model, in about `limit` bytes:
    /// `turn_on(kitchen light) → on=true`.
    pub fn last_step_text(&self, limit: usize) -> Option<String> {
        let last = self.last.as_ref()?;
        let result = match &last.result {
            None => "not known".into(),
            Some(StepResult::Ok(value)) => value_text(value, limit),
            Some(StepResult::Error { message, .. }) => {
                format!(
                    "failed: {}",
                    value_text(&Value::String(message.clone()), limit)
                )
            }
        };
        Some(format!("{} → {result}", call_text(&last.call)))
    }

    /// Facts, the person's last reply and the last step, for the model, in about `limit` bytes.
    /// Empty at the beginning.
    pub fn summary(&self, limit: usize) -> String {
        let mut text = String::new();
        let facts = self.facts.text(limit / 2);
        if !facts.is_empty() {
            text.push_str("Known:\n");
            text.push_str(&facts);
        }
        let quote = |part: &str| value_text(&Value::String(part.to_owned()), limit / 8);
        if let Some((question, reply)) = &self.reply {
            text.push_str(&format!(
                "Asked: {}\nReply: {}\n",
                quote(question),
                quote(reply)
            ));
        }
        if let Some(last) = self.last_step_text(limit / 4) {
            text.push_str(&format!("Last step: {last}\n"));
        }
        text
    }
}

/// `template` with every `{argument}` replaced by the call's argument of that name.
fn fill(template: &str, arguments: &Map<String, Value>) -> String {
    let mut text = template.to_owned();
    for (name, value) in arguments {
        let hole = format!("{{{name}}}");
        if text.contains(&hole) {
            text = text.replace(&hole, &value_text(value, 80));
        }
    }
    text
}
