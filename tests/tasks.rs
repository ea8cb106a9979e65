//! The shipped tasks, worked to their end by a model that knows the way and by one that writes at
//! random; and how a run is steered, watched and stopped.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod common;

use common::tasks::{
    Agreeable, EXAMPLES, Guide, definition_in, id, lay_out, list_in, random, reply, settings,
    tools_in, work,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use snaffle::agent::{
    Doubt, Event, Observer, Person, Recorder, StopReason, SystemClock, Unobserved,
};
use snaffle::call::{Call, CheckedCall, Domains, Effect, ToolSpec};
use snaffle::model::ScriptedGenerator;
use snaffle::task::{self, ActiveTask, Definition, Journal, Pending, Settlement, Task};
use snaffle::tool::{Outcome, Registry, Tool, ToolError};
use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

fn nobody_knows(_: &Pending) -> Option<Settlement> {
    None
}

#[test]
fn every_shipped_task_comes_to_its_end() {
    for example in &EXAMPLES {
        let folder = tempfile::tempdir().unwrap();
        lay_out(example.name, folder.path());
        let mut registry = tools_in(example.name, folder.path(), &|tool| tool);
        let definition = definition_in(example.name, folder.path(), &registry);
        let goal = definition.goal.clone().unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let mut task = ActiveTask::unrecorded(id(1), &goal, definition, Value::Null, now).unwrap();
        let mut seen = Recorder::default();
        let report = work(
            &mut task,
            &mut registry,
            &mut Guide::new(example.way),
            &mut Agreeable(nobody_knows),
            &mut seen,
            &SystemClock::start(),
            settings(30),
        )
        .unwrap();
        assert_eq!(report.reason, StopReason::Completed, "{}", example.name);
        assert!(report.text.unwrap().len() > 10);
        assert!(seen.events.contains(&Event::Verified { failed: None }));
        for (list, count) in example.effects {
            let items = list_in(example.name, folder.path(), list);
            assert_eq!(items.len(), *count, "{}: {list}", example.name);
        }
    }
}

/// Whatever a model writes under the grammar, only what the definition allows is executed: judged
/// by the journal, event for event.
#[test]
fn random_models_make_no_illegal_call() {
    let mut completed = HashMap::new();
    let mut calls = 0;
    for example in &EXAMPLES {
        for seed in 0..12 {
            let folder = tempfile::tempdir().unwrap();
            lay_out(example.name, folder.path());
            let mut registry = tools_in(example.name, folder.path(), &|tool| tool);
            let definition = definition_in(example.name, folder.path(), &registry);
            let goal = definition.goal.clone().unwrap();
            let now = Timestamp::UNIX_EPOCH;
            let journal = Journal::open(&folder.path().join("journal.db")).unwrap();
            let mut task =
                ActiveTask::create(&journal, id(1), &goal, definition, Value::Null, now).unwrap();
            let report = work(
                &mut task,
                &mut registry,
                &mut random(seed),
                &mut Agreeable(nobody_knows),
                &mut Unobserved,
                &SystemClock::start(),
                settings(30),
            )
            .unwrap();
            assert!(
                matches!(
                    report.reason,
                    StopReason::Completed
                        | StopReason::TurnLimit
                        | StopReason::Repeated
                        | StopReason::TooManyFailures
                        | StopReason::Stuck
                ),
                "{} {seed}: {:?}",
                example.name,
                report.reason
            );
            drop(task);
            if report.reason == StopReason::Completed {
                *completed.entry(example.name).or_insert(0) += 1;
                for (list, _) in example.effects {
                    assert!(!list_in(example.name, folder.path(), list).is_empty());
                }
            }
            calls += judge(&journal.read(&id(1)).unwrap().entries);
        }
    }
    assert_eq!(completed.len(), EXAMPLES.len(), "{completed:?}");
    assert!(calls > 150, "{calls}");
}

/// Checks every call of a journal against the task as it was before it; says how many there were.
fn judge(entries: &[task::Entry]) -> usize {
    let mut calls = 0;
    for (at, entry) in entries.iter().enumerate() {
        if let task::Event::Rejected { kind, message } = &entry.event {
            let about_the_world = ["repeated", "verification_failed"].contains(&kind.as_str());
            assert!(
                about_the_world,
                "the grammar let through: {kind}: {message}"
            );
        }
        let task::Event::Intent { call, .. } = &entry.event else {
            continue;
        };
        calls += 1;
        let before = Task::fold(&id(1), &entries[..at]).unwrap();
        assert!(
            before.allows(&call.tool),
            "{} in {}",
            call.tool,
            before.state
        );
        assert_eq!(before.guarded(call), None);
        for (argument, value) in &call.arguments {
            if let Some(values) = before.bound(&call.tool, argument) {
                assert!(
                    values.contains(value),
                    "{argument} of {} is {value}",
                    call.tool
                );
            }
        }
    }
    calls
}

/// A model without a grammar that wants what is there but not legal.
#[test]
fn what_the_definition_forbids_is_refused_and_told() {
    type Calls = &'static [(&'static str, &'static str)];
    let cases: [(&str, Calls, &str); 3] = [
        // There is such a flight with free seats, but the search did not find it.
        (
            "flight",
            &[
                ("search_flights", r#"{"to": "Oslo"}"#),
                (
                    "book_flight",
                    r#"{"flight": "SN 230", "passenger": "Bo Chen"}"#,
                ),
            ],
            "outside_domain",
        ),
        (
            "flight",
            &[(
                "book_flight",
                r#"{"flight": "SN 105", "passenger": "Bo Chen"}"#,
            )],
            "unknown_tool",
        ),
        // What is incomplete cannot be approved.
        (
            "approval",
            &[
                ("check_document", r#"{"document": "travel report May"}"#),
                ("approve_document", r#"{"document": "travel report May"}"#),
            ],
            "unknown_tool",
        ),
    ];
    for (name, calls, kind) in cases {
        let folder = tempfile::tempdir().unwrap();
        lay_out(name, folder.path());
        let mut registry = tools_in(name, folder.path(), &|tool| tool);
        let definition = definition_in(name, folder.path(), &registry);
        let now = Timestamp::UNIX_EPOCH;
        let mut task = ActiveTask::unrecorded(id(1), "x", definition, Value::Null, now).unwrap();
        let replies: Vec<String> = calls.iter().map(|(tool, args)| reply(tool, args)).collect();
        let mut seen = Recorder::default();
        let turns = replies.len();
        work(
            &mut task,
            &mut registry,
            &mut ScriptedGenerator::new(replies),
            &mut Agreeable(nobody_knows),
            &mut seen,
            &SystemClock::start(),
            settings(turns),
        )
        .unwrap();
        let failures: Vec<&str> = seen
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Failure { kind, .. } => Some(kind.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(failures, [kind], "{name}");
        assert!(list_in(name, folder.path(), "bookings").is_empty());
        assert!(list_in(name, folder.path(), "decisions").is_empty());
    }
}

/// A tool that gives what it is told to, in turn, and then always the last.
struct Told {
    spec: ToolSpec,
    results: VecDeque<Result<Value, ToolError>>,
    ends: bool,
}

impl Tool for Told {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        Ok(Domains::new())
    }

    fn run(&mut self, _call: &CheckedCall) -> Result<Outcome, ToolError> {
        let result = if self.results.len() > 1 {
            self.results.pop_front().unwrap()
        } else {
            self.results[0].clone()
        };
        Ok(Outcome {
            result: result?,
            changes: vec!["done".to_owned()],
        })
    }

    fn answer_of(&self, outcome: &Outcome) -> Option<String> {
        self.ends.then(|| outcome.result.to_string())
    }
}

fn told(name: &str, results: Vec<Result<Value, ToolError>>, ends: bool) -> Box<dyn Tool> {
    Box::new(Told {
        spec: ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            effect: Effect::Change,
            idempotent: false,
        },
        results: results.into(),
        ends,
    })
}

/// Works through `replies` with tools `a`, `b` and `c`, which always give 1.
struct Stage {
    task: ActiveTask,
    registry: Registry,
    replies: Vec<String>,
    turns: usize,
}

impl Stage {
    fn new(definition: Definition, replies: &[&str]) -> Self {
        let mut registry = Registry::new();
        for name in ["a", "b", "c"] {
            registry
                .register(told(name, vec![Ok(json!(1))], false))
                .unwrap();
        }
        let now = Timestamp::UNIX_EPOCH;
        Self {
            task: ActiveTask::unrecorded(id(1), "goal", definition, Value::Null, now).unwrap(),
            registry,
            replies: replies
                .iter()
                .map(|text| {
                    if text.len() == 1 {
                        reply(text, "{}")
                    } else {
                        (*text).to_owned()
                    }
                })
                .collect(),
            turns: replies.len(),
        }
    }

    fn run(&mut self, person: &mut dyn Person, observer: &mut dyn Observer) -> StopReason {
        let mut generator = ScriptedGenerator::new(self.replies.clone());
        let prompts = generator.prompts();
        let report = work(
            &mut self.task,
            &mut self.registry,
            &mut generator,
            person,
            observer,
            &SystemClock::start(),
            settings(self.turns),
        )
        .unwrap();
        self.replies = prompts
            .all()
            .into_iter()
            .map(|prompt| {
                let texts = prompt.messages.into_iter().map(|message| message.content);
                texts.collect::<Vec<_>>().join("\n")
            })
            .collect();
        report.reason
    }

    /// After a run: what the model was shown, turn by turn.
    fn prompts(&self) -> &[String] {
        &self.replies
    }
}

const ANSWER: &str = "{\"answer\": \"ok\"}";

#[test]
fn loops_of_any_length_end_in_a_hint_and_then_a_stop() {
    for (replies, reason, turns) in [
        (&["a", "a", "a", "a"][..], StopReason::Repeated, 3),
        (
            &["a", "b", "a", "b", "a", "b", "a", "b"],
            StopReason::Repeated,
            6,
        ),
        (
            &["c", "a", "b", "c", "a", "b", "c", "a", "b", "c", "a"],
            StopReason::Repeated,
            9,
        ),
        // The hint is heeded.
        (&["a", "b", "a", "b", "c", ANSWER], StopReason::Answered, 6),
        (&["a", "a", "b", "a", ANSWER], StopReason::Answered, 5),
    ] {
        let mut stage = Stage::new(Definition::builtin(), replies);
        let mut seen = Recorder::default();
        let stopped = stage.run(&mut Agreeable(nobody_knows), &mut seen);
        assert_eq!(
            (stopped, stage.prompts().len()),
            (reason, turns),
            "{replies:?}"
        );
        let hinted = seen
            .events
            .iter()
            .any(|event| matches!(event, Event::Failure { kind, .. } if kind == "repeated"));
        assert!(hinted, "{replies:?}");
    }
}

/// A person who says these lines before these turns, and wants these things afterwards.
struct Talker {
    lines: VecDeque<Option<&'static str>>,
    next: VecDeque<&'static str>,
}

impl Person for Talker {
    fn approve(&mut self, _call: &Call, _spec: &ToolSpec, _doubt: Option<&Doubt>) -> bool {
        true
    }

    fn reply(&mut self, _question: &str) -> Option<String> {
        None
    }

    fn settle(&mut self, _pending: &Pending) -> Option<Settlement> {
        None
    }

    fn steer(&mut self) -> Option<String> {
        self.lines.pop_front().flatten().map(str::to_owned)
    }

    fn follow_up(&mut self) -> Option<String> {
        self.next.pop_front().map(str::to_owned)
    }
}

#[test]
fn what_is_typed_reaches_the_next_turn_and_what_is_queued_the_end() {
    let mut stage = Stage::new(Definition::builtin(), &["a", "b", ANSWER, "c", ANSWER]);
    let mut person = Talker {
        lines: [None, Some("the red one"), None].into(),
        next: ["and now the door"].into(),
    };
    let mut seen = Recorder::default();
    let reason = stage.run(&mut person, &mut seen);
    assert_eq!(reason, StopReason::Answered);
    let prompts = stage.prompts();
    let has = |text: &str| -> Vec<bool> { prompts.iter().map(|p| p.contains(text)).collect() };
    assert_eq!(has("the red one"), [false, true, true, false, false]);
    assert_eq!(has("and now the door"), [false, false, false, true, true]);
    let heard: Vec<bool> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Heard { follow_up, .. } => Some(*follow_up),
            _ => None,
        })
        .collect();
    assert_eq!(heard, [false, true]);
    assert_eq!(stage.task.task().goal, "and now the door");
}

/// Stops after a turn, and remembers the states it saw.
struct Guard(usize, Vec<u32>);

impl Observer for Guard {
    fn event(&mut self, _event: &Event) {}

    fn after_turn(&mut self, task: &Task) -> ControlFlow<String> {
        self.1.push(task.turns);
        if self.1.len() < self.0 {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break("enough".to_owned())
        }
    }
}

#[test]
fn what_watches_the_turns_may_stop_the_run() {
    let mut stage = Stage::new(Definition::builtin(), &["a", "b", "c", ANSWER]);
    let mut guard = Guard(2, Vec::new());
    let reason = stage.run(&mut Agreeable(nobody_knows), &mut guard);
    assert_eq!(reason, StopReason::Hook("enough".to_owned()));
    assert_eq!(guard.1, [1, 2]);
    assert_eq!(
        stage.task.task().status,
        task::Status::Stopped(task::StopReason::Hook("enough".to_owned()))
    );
    assert_eq!(stage.task.task().recovery(), task::Recovery::Continue);
}

#[test]
fn a_tools_result_can_end_the_run() {
    let mut stage = Stage::new(Definition::builtin(), &["a", "end"]);
    stage
        .registry
        .register(told("end", vec![Ok(json!(7))], true))
        .unwrap();
    stage.replies[1] = reply("end", "{}");
    let reason = stage.run(&mut Agreeable(nobody_knows), &mut Unobserved);
    assert_eq!(reason, StopReason::ToolEnded);
    assert_eq!(stage.prompts().len(), 2);
    assert_eq!(stage.task.task().answer.as_deref(), Some("7"));
    assert_eq!(stage.task.task().recovery(), task::Recovery::Finished);
}

#[test]
fn a_state_without_a_way_on_is_a_reason_of_its_own() {
    let definition: Definition = toml::from_str(
        "name='n'\nstart='s'\n[state.s]\nask=false\ntools=['a']\n\
         bind=[{tool='a',argument='n',fact='none'}]\ngo=[{on='success',to='z'}]\n\
         guard=[{tool='a',fact='none',exists=true}]\n[state.z]\nend=true",
    )
    .unwrap();
    let mut stage = Stage::new(definition, &[ANSWER]);
    let reason = stage.run(&mut Agreeable(nobody_knows), &mut Unobserved);
    assert_eq!(reason, StopReason::Stuck);
    assert!(stage.prompts().is_empty());
}

#[test]
fn a_task_is_not_done_before_it_is_proved() {
    let text = |proof: &str| {
        format!(
            "name='n'\nstart='s'\nfolder='.'\n[state.s]\ntools=['a','b']\nremember=[{{tool='b',fact='seen'}}]\n\
             go=[{{on='answer',to='z'}}]\n[state.z]\nend=true\n[[proof]]\n{proof}\notherwise='look again'"
        )
    };
    for (proof, replies, reason) in [
        (
            "fact='seen'\nis=1",
            &["a", ANSWER, "b", ANSWER][..],
            StopReason::Answered,
        ),
        (
            "command=['sh','-c','grep -q seen']",
            &[ANSWER, "b", ANSWER],
            StopReason::Answered,
        ),
        (
            "command=['sh','-c','exit 3']\nexit_code=3",
            &[ANSWER],
            StopReason::Answered,
        ),
        (
            "command=['sh','-c','exit 3']",
            &[ANSWER],
            StopReason::TurnLimit,
        ),
        (
            "fact='seen'\nis=2",
            &[ANSWER, ANSWER, ANSWER],
            StopReason::TooManyFailures,
        ),
    ] {
        let definition: Definition = toml::from_str(&text(proof)).unwrap();
        let mut stage = Stage::new(definition, replies);
        let mut seen = Recorder::default();
        let stopped = stage.run(&mut Agreeable(nobody_knows), &mut seen);
        assert_eq!(stopped, reason, "{proof}");
        let told = stage
            .prompts()
            .iter()
            .filter(|p| p.contains("look again"))
            .count();
        let failed = seen
            .events
            .iter()
            .filter(|event| matches!(event, Event::Verified { failed: Some(_) }))
            .count();
        assert!(told < stage.prompts().len() && told <= failed, "{proof}");
        assert_eq!(
            failed > 0,
            replies.len() > 1 || reason != StopReason::Answered
        );
    }
}

/// An effect that may have happened is not made again by the next turn: it is settled first.
#[test]
fn an_unknown_effect_is_settled_before_the_next_turn() {
    for (settled, reason) in [
        (Some(Settlement::Happened), Some(StopReason::Answered)),
        (Some(Settlement::DidNotHappen), Some(StopReason::Answered)),
        (None, None),
    ] {
        let mut stage = Stage::new(Definition::builtin(), &[ANSWER]);
        let fails = vec![Err(ToolError::unknown("lost contact"))];
        stage.registry.register(told("send", fails, false)).unwrap();
        let mut generator = ScriptedGenerator::new([reply("send", "{}"), ANSWER.to_owned()]);
        let mut asked = 0;
        let mut person = Agreeable(|_: &Pending| {
            asked += 1;
            settled
        });
        let report = work(
            &mut stage.task,
            &mut stage.registry,
            &mut generator,
            &mut person,
            &mut Unobserved,
            &SystemClock::start(),
            settings(5),
        );
        assert_eq!(report.ok().map(|report| report.reason), reason);
        assert_eq!(asked, 1);
        let task = stage.task.task();
        assert_eq!(
            task.effects,
            u32::from(settled == Some(Settlement::Happened))
        );
        assert_eq!(task.pending.is_some(), settled.is_none());
    }
}
