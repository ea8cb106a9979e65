//! What a failure does: the hint that the model is given, the example that a corrected call leaves,
//! and prompts that do not grow by either. A scripted model stands in for one that errs.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use serde_json::{Value, json};
use snaffle::agent::{
    Agent, Doubt, Event, FromPool, Limits, Nobody, Person, Recorder, Settings, SystemClock,
};
use snaffle::call::{
    Call, CheckedCall, Domains, Effect, FailureKind, Policy, ToolSpec, policy::Permission,
};
use snaffle::fewshot::{Example, LearnedFile, Pool, Source};
use snaffle::model::{
    Cancel, GenerateError, GenerateRequest, Generation, GenerationStats, Generator, Prompt, Stop,
};
use snaffle::task::{ActiveTask, Definition, Pending, Settlement, TaskId};
use snaffle::tool::{Outcome, Registry, Tool, ToolError};
use snaffle::trace::Null;
use std::collections::VecDeque;
use std::path::Path;

/// A model that writes what it is told to, and keeps what it was shown.
#[derive(Default)]
struct Script {
    replies: VecDeque<String>,
    prompts: Vec<String>,
}

impl Generator for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn obeys_grammar(&self) -> bool {
        false
    }

    fn capacity(&self) -> usize {
        1 << 20
    }

    fn count(&mut self, _prompt: &Prompt) -> Result<usize, GenerateError> {
        Ok(1)
    }

    fn generate(&mut self, request: &GenerateRequest<'_>) -> Result<Generation, GenerateError> {
        let messages = request.prompt.messages.iter();
        let shown: Vec<&str> = messages.map(|message| message.content.as_str()).collect();
        self.prompts.push(shown.join("\n"));
        let text = self.replies.pop_front();
        Ok(Generation {
            text: text.unwrap_or_else(|| r#"{"answer": "Good."}"#.to_owned()),
            stop: Stop::Complete,
            log_probability: None,
            choices: Vec::new(),
            stats: GenerationStats::default(),
        })
    }
}

/// Switches devices, one of which is broken, or unlocks them.
struct Switch(ToolSpec);

const DEVICES: [&str; 4] = ["hall lamp", "desk lamp", "kitchen light", "broken lamp"];

impl Switch {
    fn tool(name: &str, description: &str) -> Box<dyn Tool> {
        Box::new(Self(ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "device": {"type": "string"},
                    "hours": {"type": "array", "items": {"type": "integer", "maximum": 23}},
                },
                "required": ["device"],
            }),
            effect: Effect::Change,
            idempotent: true,
        }))
    }
}

impl Tool for Switch {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let devices = DEVICES.iter().map(|name| json!(name)).collect();
        Ok(Domains::from([("device".to_owned(), devices)]))
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        if call.call().arguments["device"] == "broken lamp" {
            return Err(ToolError::new("it does not answer"));
        }
        Ok(Outcome {
            result: json!({"on": true}),
            changes: Vec::new(),
        })
    }
}

/// A person who replies.
struct Replies;

impl Person for Replies {
    fn approve(&mut self, _call: &Call, _spec: &ToolSpec, _doubt: Option<&Doubt>) -> bool {
        false
    }

    fn reply(&mut self, _question: &str) -> Option<String> {
        Some("the hall lamp".to_owned())
    }

    fn settle(&mut self, _pending: &Pending) -> Option<Settlement> {
        None
    }
}

fn settings() -> Settings {
    Settings {
        grammar: false,
        policy: Policy::new([("unlock", Permission::Deny)]).unwrap(),
        limits: Limits {
            turns: 2000,
            tokens: 1 << 20,
            attempts: 1000,
            ..Limits::default()
        },
        max_calls: 2,
        examples: 3,
        ..Settings::default()
    }
}

/// Works on a request with these replies; what the model was shown, and the hints that it got.
fn work(
    request: &str,
    replies: &[&str],
    examples: &mut FromPool,
    person: &mut dyn Person,
    definition: Definition,
    settings: Settings,
) -> (Vec<String>, Vec<(String, String)>) {
    let mut script = Script {
        replies: replies.iter().map(|reply| (*reply).to_owned()).collect(),
        ..Script::default()
    };
    let mut tools = Registry::new();
    tools
        .register_all(vec![
            Switch::tool("turn_on", "Turn a device on."),
            Switch::tool("turn_off", "Turn a device off."),
            Switch::tool("unlock", "Unlock a door."),
        ])
        .unwrap();
    let mut recorder = Recorder::default();
    let now = jiff::Timestamp::UNIX_EPOCH;
    let id = TaskId::new(now, 0);
    let mut task = ActiveTask::unrecorded(id, request, definition, Value::Null, now).unwrap();
    Agent {
        generator: &mut script,
        tools: &mut tools,
        examples,
        person,
        observer: &mut recorder,
        trace: &mut Null,
        clock: &SystemClock::start(),
        cancel: Cancel::default(),
        settings,
    }
    .run(&mut task)
    .unwrap();
    let hints = recorder.events.into_iter().filter_map(|event| match event {
        Event::Failure { kind, hint } => Some((kind, hint)),
        _ => None,
    });
    (script.prompts, hints.collect())
}

fn call(tool: &str, arguments: &str) -> String {
    format!(r#"{{"calls": [{{"tool": "{tool}", "arguments": {arguments}}}]}}"#)
}

/// Each kind of failure with replies that bring it about, the last of them.
fn mistakes() -> Vec<(FailureKind, Vec<String>)> {
    let on = |arguments: &str| vec![call("turn_on", arguments)];
    let hall = r#"{"device": "hall lamp"}"#;
    vec![
        (FailureKind::NoCall, vec!["Of course, at once.".to_owned()]),
        (
            FailureKind::Unparsable,
            vec![r#"{"turn_on": 1}"#.to_owned()],
        ),
        (FailureKind::UnknownTool, vec![call("turn_onn", hall)]),
        (FailureKind::MissingArgument, on("{}")),
        (FailureKind::WrongType, on(r#"{"device": 7}"#)),
        (FailureKind::OutsideDomain, on(r#"{"device": "hal lamp"}"#)),
        (
            FailureKind::Constraint,
            on(r#"{"device": "hall lamp", "hours": [7, 99]}"#),
        ),
        (FailureKind::ToolError, on(r#"{"device": "broken lamp"}"#)),
        (FailureKind::Refused, vec![call("unlock", hall)]),
        (
            FailureKind::Repeated,
            vec![call("turn_on", hall), call("turn_on", hall)],
        ),
        (
            FailureKind::Truncated,
            vec![r#"{"calls": [{"tool": "turn_on", "#.to_owned()],
        ),
        (
            FailureKind::VerificationFailed,
            vec![r#"{"answer": "Done."}"#.to_owned()],
        ),
    ]
}

fn definition(kind: FailureKind) -> Definition {
    let mut definition = Definition::builtin();
    if kind == FailureKind::VerificationFailed {
        let proof = json!({"fact": "light", "is": true, "otherwise": "the hall is dark"});
        definition
            .proofs
            .push(serde_json::from_value(proof).unwrap());
    }
    definition
}

#[test]
fn every_failure_has_its_hint() {
    let mut table = String::new();
    let mut kinds = Vec::new();
    for (kind, replies) in mistakes() {
        let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
        let mut examples = FromPool::new(Pool::default());
        let limits = Limits {
            turns: replies.len(),
            ..settings().limits
        };
        let settings = Settings {
            limits,
            ..settings()
        };
        let (_, hints) = work(
            "turn on the hall lamp",
            &replies,
            &mut examples,
            &mut Nobody,
            definition(kind),
            settings,
        );
        let [(named, hint)] = hints.as_slice() else {
            panic!("{kind}: {hints:?}");
        };
        assert_eq!(named, kind.as_str());
        table.push_str(&format!("{kind}\n  {hint}\n"));
        kinds.push(kind);
    }
    assert_eq!(kinds, FailureKind::ALL);
    insta::assert_snapshot!(table);
}

#[test]
fn a_corrected_call_is_learned_where_the_request_led_to_it() {
    let right = call("turn_on", r#"{"device": "hall lamp"}"#);
    let wrong = call("turn_on", "{}");
    let two = r#"{"calls": [{"tool": "turn_on", "arguments": {"device": "hall lamp"}}, {"tool": "turn_on", "arguments": {"device": "desk lamp"}}]}"#;
    let ask = r#"{"ask": "Which lamp?"}"#;
    let learned = "Turn on the {device} [missing_argument]";
    for (what, request, replies, expected) in [
        (
            "a retry",
            "Turn on the hall lamp",
            vec![&*wrong, &right],
            learned,
        ),
        ("no failure", "Turn on the hall lamp", vec![&right], ""),
        (
            "a failure again, of another kind",
            "Turn on the hall lamp",
            vec!["no", &wrong, &right],
            learned,
        ),
        (
            "after a call that succeeded",
            "Turn on the hall lamp",
            vec![&right, &wrong, &right],
            "",
        ),
        (
            "another tool than was tried",
            "Turn on the hall lamp",
            vec![&call("turn_off", "{}"), &right],
            "",
        ),
        (
            "what was refused",
            "Turn on the hall lamp",
            vec![&call("unlock", "{}"), &right],
            "",
        ),
        (
            "not what the request names",
            "Light, please",
            vec![&wrong, &right],
            "",
        ),
        (
            "one call where two things are named",
            "Hall lamp and desk lamp on",
            vec![&wrong, &right],
            "",
        ),
        (
            "both of them",
            "Hall lamp and desk lamp on",
            vec![&wrong, two],
            "{device} and {device2} on [missing_argument]",
        ),
        (
            "after the person's reply",
            "Turn on the hall lamp",
            vec![ask, &wrong, &right],
            "",
        ),
        (
            "a question that names what is missing",
            "Turn on the attic light",
            vec![
                &call("turn_on", r#"{"device": "attic light"}"#),
                r#"{"ask": "There is no attic light."}"#,
            ],
            "Turn on the {missing} [outside_domain]",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = LearnedFile::new(folder.path().join("learned.jsonl"));
        let mut examples = FromPool::new(Pool::default()).learning(Some(file.clone()));
        work(
            request,
            &replies,
            &mut examples,
            &mut Replies,
            Definition::builtin(),
            settings(),
        );
        assert!(examples.take_trouble().is_none());
        let found: Vec<String> = file
            .read()
            .unwrap()
            .examples
            .iter()
            .map(|example| format!("{} [{}]", example.request, example.failure.unwrap()))
            .collect();
        assert_eq!(found.join("; "), expected, "{what}");
    }
}

#[test]
fn only_what_is_told_to_learns() {
    let (wrong, right) = (
        call("turn_on", "{}"),
        call("turn_on", r#"{"device": "hall lamp"}"#),
    );
    let replies = [&*wrong, &right];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.jsonl");
    let file = LearnedFile::new(&path);
    let request = "Turn on the hall lamp";
    let builtin = Definition::builtin;
    let mut measured = FromPool::new(Pool::default());
    work(
        request,
        &replies,
        &mut measured,
        &mut Nobody,
        builtin(),
        settings(),
    );
    let mut dry = FromPool::new(Pool::default()).learning(Some(file));
    let dry_run = Settings {
        dry_run: true,
        ..settings()
    };
    work(request, &replies, &mut dry, &mut Nobody, builtin(), dry_run);
    assert!(!path.exists());
    // What cannot be kept is told, and learned for this run all the same.
    let nowhere = LearnedFile::new(Path::new("/dev/null/learned.jsonl"));
    let mut examples = FromPool::new(Pool::default()).learning(Some(nowhere));
    work(
        request,
        &replies,
        &mut examples,
        &mut Nobody,
        builtin(),
        settings(),
    );
    assert!(examples.take_trouble().is_some());
    let request = "Turn on the desk lamp";
    let (prompts, _) = work(
        request,
        &[],
        &mut examples,
        &mut Nobody,
        builtin(),
        settings(),
    );
    assert!(
        prompts[0].contains(r#"{"device": "desk lamp"}"#),
        "{}",
        prompts[0]
    );
}

#[test]
fn the_prompt_after_500_failures_is_no_longer_than_after_3() {
    // Enough of them that a retry, too, has three that were not shown yet.
    let seeds = ["aaa", "bbb", "ccc", "ddd", "eee", "fff"].map(|word| {
        let line = format!(
            r#"{{"request":"Request {word} for the {{device}}","calls":[{{"tool":"turn_on","arguments":{{"device":"{{device}}"}}}}]}}"#
        );
        Example::parse(&line, 1).unwrap()
    });
    let (wrong, right) = (
        call("turn_on", "{}"),
        call("turn_on", r#"{"device": "hall lamp"}"#),
    );
    let builtin = Definition::builtin;
    // Five hundred attempts at one request: the hint is the last one, not all of them.
    let mut examples = FromPool::new(Pool::new(seeds.clone()));
    let attempts = vec![&*wrong; 501];
    let request = "Request 000 for the hall lamp";
    let (prompts, hints) = work(
        request,
        &attempts,
        &mut examples,
        &mut Nobody,
        builtin(),
        settings(),
    );
    assert_eq!(hints.len(), 501);
    // Examples take turns while it fails, so the first four prompts have what there is.
    let longest = |prompts: &[String]| prompts.iter().map(String::len).max();
    assert!(longest(&prompts[4..]) <= longest(&prompts[..4]));
    // Five hundred requests, each of which leaves an example: a prompt has three of them.
    let mut examples = FromPool::new(Pool::new(seeds)).learning(None);
    let mut lengths = Vec::new();
    for number in 0..501 {
        let request = format!("Request {number:03} for the hall lamp");
        let replies = [&*wrong, &right];
        let (prompts, hints) = work(
            &request,
            &replies,
            &mut examples,
            &mut Nobody,
            builtin(),
            settings(),
        );
        assert_eq!(hints.len(), 1);
        lengths.push((prompts[0].len(), prompts[1].len()));
    }
    assert!(
        lengths[500].0 <= lengths[3].0,
        "{:?} {:?}",
        lengths[3],
        lengths[500]
    );
    assert!(
        lengths[500].1 <= lengths[3].1,
        "{:?} {:?}",
        lengths[3],
        lengths[500]
    );
}

#[test]
fn what_was_learned_serves_when_the_values_are_others() {
    let line = r#"{"request":"Get the {device} going","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}],"source":"learned","failure":"wrong_type"}"#;
    let gone = r#"{"request":"Get the sauna going","calls":[{"tool":"turn_on","arguments":{"device":"sauna"}}],"source":"learned","failure":"wrong_type"}"#;
    let pool = Pool::new([line, gone].map(|line| Example::parse(line, 1).unwrap()));
    assert!(
        pool.iter()
            .all(|(_, example)| example.source == Source::Learned)
    );
    let mut examples = FromPool::new(pool);
    let request = "Get the kitchen light going";
    let (prompts, _) = work(
        request,
        &[],
        &mut examples,
        &mut Nobody,
        Definition::builtin(),
        settings(),
    );
    assert!(
        prompts[0].contains(r#"{"device": "kitchen light"}"#),
        "{}",
        prompts[0]
    );
    assert!(!prompts[0].contains("sauna"), "{}", prompts[0]);
}
