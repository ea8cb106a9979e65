//! A task is the fold of its events: what it is after them, and what may follow.

use super::condition::{fill, fill_with};
use super::definition::{Definition, On, State};
use super::event::{Entry, Event, Settlement, StepResult};
use super::facts::{Facts, VALUE_LIMIT, bounded, call_text, value_text};
use super::id::TaskId;
use super::loops::{Recent, Round};
use super::status::{LastStep, Pending, Recovery, Status};
use crate::call::numbers::amended;
use crate::call::{Call, Effect};
use jiff::Timestamp;
use serde_json::{Map, Value};

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
    /// The number of the goal that the question is about.
    amends: Option<String>,
    /// How many steps there had been when they replied.
    replied_after: Option<u32>,
    /// What the person said while it ran, the latest last: at most [`NOTES`].
    pub notes: Vec<String>,
    /// The final answer.
    pub answer: Option<String>,
    /// Whether that answer is not to be believed.
    pub flagged: bool,
    /// At an end that has to be proved: the state from which it came there.
    pub verifying: Option<String>,
    /// The last steps, to notice loops.
    pub recent: Recent,
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

/// Most lines of the person's that are kept.
pub const NOTES: usize = 4;

/// Events that make no task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task's first event does not say what the task is")]
pub struct NoTask;

/// The events that count: those that no rewinding has left behind.
pub fn standing(entries: &[Entry]) -> Vec<&Entry> {
    let mut counted: Vec<&Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        if let Event::Rewound { to } = entry.event {
            // The first event always stands.
            counted.retain(|kept| kept.sequence <= to.max(1));
        }
        counted.push(entry);
    }
    counted
}

impl Task {
    /// The task that `entries` make. Events that were rewound do not count.
    ///
    /// # Errors
    /// Where the first event is not [`Event::TaskCreated`].
    pub fn fold(id: &TaskId, entries: &[Entry]) -> Result<Self, NoTask> {
        let counted = standing(entries);
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
            definition: Definition::clone(definition),
            settings: settings.clone(),
            state: definition.start.clone(),
            status: Status::Running,
            facts: Facts::default(),
            last: None,
            pending: None,
            reply: None,
            amends: None,
            replied_after: None,
            notes: Vec::new(),
            answer: None,
            flagged: false,
            verifying: None,
            recent: Recent::default(),
            turns: 0,
            steps: 0,
            reads: 0,
            effects: 0,
            failures: 0,
        };
        for (name, value) in &definition.facts {
            task.facts.set(name, value.clone());
        }
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
            Event::Asked { question, amends } => {
                self.status = Status::Asked(question.clone());
                self.amends.clone_from(amends);
            }
            Event::Replied { text } => {
                let question = match std::mem::replace(&mut self.status, Status::Running) {
                    Status::Asked(question) => question,
                    _ => String::new(),
                };
                let about = self.amends.take();
                let amended = about.and_then(|old| amended(&self.goal, &old, text));
                self.reply = match amended {
                    Some(goal) => {
                        self.goal = goal;
                        None
                    }
                    None => Some((question, text.clone())),
                };
                self.replied_after = Some(self.steps);
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
            Event::StateMoved { from, to } => self.move_to(from, to),
            Event::Answered { text, flagged } => {
                self.answer = Some(text.clone());
                self.flagged = flagged.is_some();
                let from = self.state.clone();
                self.over(&from);
            }
            Event::Steered { text } => {
                self.notes.push(text.clone());
                if self.notes.len() > NOTES {
                    self.notes.remove(0);
                }
                self.recent.clear();
            }
            Event::FollowedUp { goal } => {
                self.goal.clone_from(goal);
                self.state.clone_from(&self.definition.start);
                self.status = Status::Running;
                (self.answer, self.reply, self.last) = (None, None, None);
                self.replied_after = None;
                self.notes.clear();
                self.recent.clear();
                self.failures = 0;
            }
            Event::Verified { holds, .. } => {
                self.verifying = None;
                if *holds {
                    self.status = Status::Answered;
                } else {
                    self.answer = None;
                    self.status = Status::Running;
                    self.failures += 1;
                }
            }
            Event::Stopped { reason } => self.status = Status::Stopped(reason.clone()),
            Event::Resumed | Event::Rewound { .. } => {
                if matches!(self.status, Status::Stopped(_)) {
                    self.status = Status::Running;
                }
            }
        }
    }

    fn move_to(&mut self, from: &str, to: &str) {
        to.clone_into(&mut self.state);
        match self.definition.states.get(to) {
            Some(state) if state.end && state.failed => {
                self.verifying = None;
                self.status = Status::Failed;
            }
            Some(state) if state.end => self.over(from),
            _ => {
                self.verifying = None;
                self.status = Status::Running;
            }
        }
    }

    /// Done, or to be proved first; `from` is where it comes back to where it cannot be.
    fn over(&mut self, from: &str) {
        if self.definition.proofs.is_empty() {
            self.status = Status::Answered;
        } else {
            self.status = Status::Running;
            self.verifying = Some(from.to_owned());
        }
    }

    fn apply_outcome(&mut self, step: u32, result: &StepResult) {
        if let Some(last) = self.last.as_mut().filter(|last| last.step == step) {
            last.result = Some(result.clone());
            self.recent.push(&self.state, &last.call, result);
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

    /// Whether the person replied to a question, and nothing was done since.
    pub fn was_just_told(&self) -> bool {
        self.replied_after == Some(self.steps)
    }

    /// Whether `tool` is legal now: the state has it, and nothing guards it that does not depend
    /// on its arguments.
    pub fn allows(&self, tool: &str) -> bool {
        self.current().is_some_and(|state| {
            state.allows(tool)
                && state.guard.iter().all(|guard| {
                    guard.tool != tool
                        || !guard.arguments().is_empty()
                        || guard.holds(&self.facts, &Map::new())
                })
        })
    }

    /// What forbids a call now, in words: a guard that does not hold.
    pub fn guarded(&self, call: &Call) -> Option<String> {
        self.current()?
            .guard
            .iter()
            .find(|guard| guard.tool == call.tool && !guard.holds(&self.facts, &call.arguments))
            .map(|guard| guard.message(&call.arguments))
    }

    /// Whether guards that look at this argument alone leave it this value.
    pub fn guards_leave(&self, tool: &str, argument: &str, value: &Value) -> bool {
        let Some(state) = self.current() else {
            return true;
        };
        let mut guards = state
            .guard
            .iter()
            .filter(|guard| guard.tool == tool && guard.arguments() == [argument])
            .peekable();
        if guards.peek().is_none() {
            return true;
        }
        let arguments = Map::from_iter([(argument.to_owned(), value.clone())]);
        guards.all(|guard| guard.holds(&self.facts, &arguments))
    }

    /// Arguments of `tool` that guards look at one by one.
    pub fn guarded_arguments(&self, tool: &str) -> Vec<&str> {
        let guards = self.current().map(|state| &state.guard[..]);
        guards
            .unwrap_or_default()
            .iter()
            .filter(|guard| guard.tool == tool)
            .filter_map(|guard| match guard.arguments()[..] {
                [argument] => Some(argument),
                _ => None,
            })
            .collect()
    }

    /// The round of calls that the last steps repeat, if they do.
    pub fn round(&self) -> Option<Round> {
        self.recent.round()
    }

    /// What the person is told at the end that it has reached, where the definition says so.
    pub fn farewell(&self) -> Option<String> {
        let state = self.current().filter(|state| state.end)?;
        let say = state.say.as_deref()?;
        Some(fill_with(say, |fact| self.facts.get(fact)))
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
        match result {
            StepResult::Ok(value) => self.after_success(Some(value)),
            StepResult::Error { .. } => {
                let tool = self
                    .pending
                    .as_ref()
                    .map(|pending| pending.call.tool.as_str());
                let to = self
                    .current()
                    .and_then(|state| state.follow(On::Failure, tool, &self.facts));
                self.moved(to).into_iter().collect()
            }
        }
    }

    /// What follows from the pending call's having succeeded; without a `result` nothing is
    /// learned from one.
    pub fn after_success(&self, result: Option<&Value>) -> Vec<Event> {
        let (Some(pending), Some(state)) = (&self.pending, self.current()) else {
            return Vec::new();
        };
        let call = &pending.call;
        let mut set = Map::new();
        if let (true, Some(value)) = (state.keep_results, result) {
            let (name, fact) = self.facts.learn(call, value);
            set.insert(name, fact);
        }
        for rule in &state.remember {
            if rule.tool.as_ref().is_some_and(|tool| *tool != call.tool) {
                continue;
            }
            let source = match &rule.argument {
                Some(argument) => call.arguments.get(argument),
                None => result,
            };
            if let Some(part) = source.and_then(|value| value.pointer(&rule.pointer)) {
                let name = fill(&rule.fact, &call.arguments);
                set.insert(name, bounded(part.clone(), VALUE_LIMIT));
            }
        }
        for rule in state.strike.iter().filter(|rule| rule.tool == call.tool) {
            let done = call.arguments.get(&rule.argument);
            let list = set.get(&rule.fact).or_else(|| self.facts.get(&rule.fact));
            if let (Some(done), Some(Value::Array(items))) = (done, list) {
                let left: Vec<Value> = items
                    .iter()
                    .filter(|item| item.pointer(&rule.pointer) != Some(done))
                    .cloned()
                    .collect();
                set.insert(rule.fact.clone(), Value::Array(left));
            }
        }
        let mut facts = self.facts.clone();
        for (name, value) in &set {
            facts.set(name, value.clone());
        }
        let mut events = Vec::new();
        if !set.is_empty() {
            events.push(Event::FactsChanged {
                set,
                removed: Vec::new(),
            });
        }
        events.extend(self.moved(state.follow(On::Success, Some(&call.tool), &facts)));
        events
    }

    /// What follows from the model's answer.
    pub fn after_answer(&self) -> Option<Event> {
        self.moved(self.current()?.follow(On::Answer, None, &self.facts))
    }

    /// Where the task goes on that is not proved to be done.
    pub fn after_unproven(&self) -> Option<Event> {
        let origin = self.verifying.as_deref()?;
        let state = self.definition.states.get(origin)?;
        self.moved(Some(
            state
                .follow(On::Unproven, None, &self.facts)
                .unwrap_or(origin),
        ))
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
            Status::Answered | Status::Failed => return Recovery::Finished,
            Status::Stopped(reason) if reason.is_final() => return Recovery::Finished,
            Status::Running | Status::Asked(_) | Status::Stopped(_) | Status::Interrupted => {}
        }
        match (&self.pending, &self.status) {
            (Some(pending), _) if pending.repeatable() => Recovery::Repeat(pending.clone()),
            (Some(pending), _) => Recovery::Decide(pending.clone()),
            (None, _) if self.verifying.is_some() => Recovery::Verify,
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
