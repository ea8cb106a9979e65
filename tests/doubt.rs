//! Calls that the model is less sure of than one likes: they are asked about by their best
//! alternatives, or looked at again. A scripted model says how sure it is.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use serde_json::{Value, json};
use snaffle::agent::{
    Agent, Doubt, Event, Examples, Limits, Look, Person, Recorder, Report, Settings, Shown,
    StopReason, SystemClock, Unsure,
};
use snaffle::call::{Call, CheckedCall, Domains, Effect, FailureKind, Moves, ToolSpec};
use snaffle::model::{Cancel, Chosen, Prompt, ScriptedGenerator, ScriptedReply, Stop};
use snaffle::task::{ActiveTask, Definition, Pending, Settlement, TaskId};
use snaffle::tool::{Outcome, Registry, Tool, ToolError};
use snaffle::trace::{self, Trace};

struct Switch(ToolSpec);

impl Switch {
    fn tool(name: &str, effect: Effect) -> Box<dyn Tool> {
        Box::new(Self(ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({
                "type": "object",
                "properties": { "device": { "type": "string" } },
                "required": ["device"],
            }),
            effect,
            idempotent: true,
        }))
    }
}

impl Tool for Switch {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let devices = vec![json!("hall lamp"), json!("desk lamp")];
        Ok(Domains::from([("device".to_owned(), devices)]))
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        Ok(Outcome {
            result: json!({ "device": call.call().arguments["device"] }),
            changes: Vec::new(),
        })
    }
}

/// One example, and another one where that was shown.
struct Pair;

impl Examples for Pair {
    fn choose(
        &mut self,
        _request: &str,
        _moves: &Moves,
        _failure: Option<FailureKind>,
        shown: &[Shown],
        most: usize,
    ) -> Vec<Shown> {
        let example = |request: &str| Shown {
            request: request.to_owned(),
            reply: "{}".to_owned(),
        };
        let all = [example("the first example"), example("another example")];
        let fresh = all.into_iter().filter(|example| !shown.contains(example));
        fresh.take(most.min(1)).collect()
    }
}

/// Keeps what it is asked, and says no.
#[derive(Default)]
struct Asked(Vec<(Call, Option<Doubt>)>);

impl Person for Asked {
    fn approve(&mut self, call: &Call, _spec: &ToolSpec, doubt: Option<&Doubt>) -> bool {
        self.0.push((call.clone(), doubt.cloned()));
        false
    }

    fn reply(&mut self, _question: &str) -> Option<String> {
        None
    }

    fn settle(&mut self, _pending: &Pending) -> Option<Settlement> {
        None
    }
}

#[derive(Default)]
struct Notes(Vec<trace::Event>);

impl Trace for Notes {
    fn emit(&mut self, event: trace::Event) {
        self.0.push(event);
    }
}

impl Notes {
    fn data(&self, wanted: &str) -> Vec<Value> {
        let of = |event: &trace::Event| match event {
            trace::Event::Note { name, data } if name == wanted => Some(data.clone()),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }
}

/// What came of a run.
struct Ran {
    report: Report,
    asked: Vec<(Call, Option<Doubt>)>,
    prompts: Vec<Prompt>,
    notes: Notes,
    events: Vec<Event>,
}

impl Ran {
    /// The devices of the calls that were executed.
    fn done(&self) -> Vec<&str> {
        let of = |event: &'_ Event| match event {
            Event::CallFinished { call, .. } => Some(call.clone()),
            _ => None,
        };
        let calls: Vec<Call> = self.events.iter().filter_map(of).collect();
        let named = |name: &&str| calls.iter().any(|call| call.arguments["device"] == **name);
        ["hall lamp", "desk lamp"]
            .into_iter()
            .filter(named)
            .collect()
    }

    fn look(&self) -> Option<Look> {
        self.events.iter().find_map(|event| match event {
            Event::LookedAgain { look, .. } => Some(*look),
            _ => None,
        })
    }
}

fn ran(replies: Vec<ScriptedReply>, settings: Settings) -> Ran {
    ran_for("the hall lamp", Definition::builtin(), replies, settings)
}

fn ran_for(
    goal: &str,
    definition: Definition,
    replies: Vec<ScriptedReply>,
    settings: Settings,
) -> Ran {
    let mut model = ScriptedGenerator::of(replies);
    let prompts = model.prompts();
    let mut tools = Registry::new();
    tools
        .register_all(vec![
            Switch::tool("turn_on", Effect::Change),
            Switch::tool("look_at", Effect::Read),
        ])
        .unwrap();
    let (mut person, mut notes) = (Asked::default(), Notes::default());
    let mut recorder = Recorder::default();
    let now = jiff::Timestamp::UNIX_EPOCH;
    let id = TaskId::new(now, 0);
    let mut task = ActiveTask::unrecorded(id, goal, definition, Value::Null, now).unwrap();
    let report = Agent {
        generator: &mut model,
        tools: &mut tools,
        examples: &mut Pair,
        person: &mut person,
        observer: &mut recorder,
        trace: &mut notes,
        clock: &SystemClock::start(),
        cancel: Cancel::default(),
        settings,
    }
    .run(&mut task)
    .unwrap();
    Ran {
        report,
        asked: person.0,
        prompts: prompts.all(),
        notes,
        events: recorder.events,
    }
}

fn settings(unsure: Unsure) -> Settings {
    Settings {
        grounding: false,
        ask_below: Some(0.5),
        unsure,
        approve_all: true,
        ..Settings::default()
    }
}

fn call(tool: &str, device: &str) -> ScriptedReply {
    ScriptedReply::new(format!(
        r#"{{"calls": [{{"tool": "{tool}", "arguments": {{"device": "{device}"}}}}]}}"#
    ))
}

fn on(device: &str, sure: f64) -> ScriptedReply {
    call("turn_on", device).sure(sure)
}

fn answer(sure: f64) -> ScriptedReply {
    ScriptedReply::new(r#"{"answer": "Good."}"#).sure(sure)
}

/// What a case comes to: why it ended, what was done, what was asked about, and what came of a
/// second look.
type Came = (
    StopReason,
    &'static [&'static str],
    Option<&'static str>,
    Option<Look>,
);

#[test]
fn a_second_look_settles_it_or_somebody_is_asked() {
    let broken = || ScriptedReply::new("{\"calls\": [").sure(0.9);
    let cases: Vec<(&str, Vec<ScriptedReply>, Came)> = vec![
        (
            "sure at once",
            vec![on("hall lamp", 0.6), answer(0.9)],
            (StopReason::Answered, &["hall lamp"], None, None),
        ),
        (
            "the same again",
            vec![on("hall lamp", 0.3), on("hall lamp", 0.2), answer(0.9)],
            (
                StopReason::Answered,
                &["hall lamp"],
                None,
                Some(Look::Agreed),
            ),
        ),
        (
            "another one, and sure",
            vec![on("hall lamp", 0.3), on("desk lamp", 0.5), answer(0.9)],
            (
                StopReason::Answered,
                &["desk lamp"],
                None,
                Some(Look::Overruled),
            ),
        ),
        (
            "another one, not sure, but surer",
            vec![on("hall lamp", 0.3), on("desk lamp", 0.4)],
            (
                StopReason::Refused,
                &[],
                Some("desk lamp"),
                Some(Look::Open),
            ),
        ),
        (
            "another one, less sure",
            vec![on("hall lamp", 0.3), on("desk lamp", 0.2)],
            (
                StopReason::Refused,
                &[],
                Some("hall lamp"),
                Some(Look::Open),
            ),
        ),
        (
            "nothing to be done, and sure",
            vec![on("hall lamp", 0.3), answer(0.7)],
            (StopReason::Answered, &[], None, Some(Look::Overruled)),
        ),
        (
            "nothing to be done, not sure",
            vec![on("hall lamp", 0.3), answer(0.4)],
            (
                StopReason::Refused,
                &[],
                Some("hall lamp"),
                Some(Look::Open),
            ),
        ),
        (
            "no usable reply, however sure",
            vec![on("hall lamp", 0.3), broken()],
            (
                StopReason::Refused,
                &[],
                Some("hall lamp"),
                Some(Look::Open),
            ),
        ),
        (
            "it never says how sure it is",
            vec![
                call("turn_on", "hall lamp"),
                call("turn_on", "hall lamp"),
                answer(0.9),
            ],
            (
                StopReason::Answered,
                &["hall lamp"],
                None,
                Some(Look::Agreed),
            ),
        ),
        (
            "what only reads does no harm",
            vec![call("look_at", "hall lamp").sure(0.1), answer(0.9)],
            (StopReason::Answered, &["hall lamp"], None, None),
        ),
    ];
    for (name, replies, (reason, done, asked, look)) in cases {
        let given = replies.len();
        let ran = ran(replies, settings(Unsure::LookAgain));
        assert_eq!(ran.report.reason, reason, "{name}");
        assert_eq!(ran.done(), done, "{name}");
        let about: Vec<&Value> = ran
            .asked
            .iter()
            .map(|(call, _)| &call.arguments["device"])
            .collect();
        assert_eq!(about, asked.iter().collect::<Vec<_>>(), "{name}");
        assert_eq!(ran.look(), look, "{name}");
        assert_eq!(ran.prompts.len(), given, "{name}");
        let traced = ran.notes.data("looked_again");
        assert_eq!(traced.len(), usize::from(look.is_some()), "{name}");
        assert_eq!(
            ran.notes.data("unsure").len(),
            usize::from(asked.is_some()),
            "{name}"
        );
    }
}

#[test]
fn a_second_look_is_one_with_other_examples_and_counted() {
    let replies = vec![on("hall lamp", 0.3), on("desk lamp", 0.2)];
    let written: usize = replies.iter().map(|reply| reply.text.len()).sum();
    let ran = ran(replies, settings(Unsure::LookAgain));
    let shows = |prompt: &Prompt, text: &str| prompt.messages.iter().any(|m| m.content == text);
    assert_eq!(ran.prompts.len(), 2);
    assert!(shows(&ran.prompts[0], "the first example"));
    assert!(shows(&ran.prompts[1], "another example"));
    assert!(!shows(&ran.prompts[1], "the first example"));
    assert_eq!(
        ran.prompts[0].messages.last(),
        ran.prompts[1].messages.last()
    );
    assert_eq!(ran.report.figures.turns, 1);
    assert_eq!(ran.report.figures.chosen, written);
    let note = &ran.notes.data("looked_again")[0];
    assert!((note["first"].as_f64().unwrap() - 0.3).abs() < 1e-9);
    assert_eq!(note["came_of_it"], "open");
    let doubt = ran.asked[0].1.as_ref().unwrap();
    let other = doubt.other.as_ref().unwrap();
    assert_eq!(other[0].arguments["device"], "desk lamp");
}

#[test]
fn there_is_no_second_look_where_there_can_be_none() {
    let unsure = || vec![on("hall lamp", 0.3), on("hall lamp", 0.3)];
    let with = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings(Unsure::LookAgain);
        change(&mut settings);
        settings
    };
    for (name, settings, why) in [
        ("asking is enough", settings(Unsure::Ask), None),
        (
            "no examples",
            with(&|settings| settings.examples = 0),
            Some("there are no other examples"),
        ),
        (
            "the limit on tokens",
            with(&|settings| settings.limits.tokens = 40),
            None,
        ),
    ] {
        let ran = ran(unsure(), settings);
        assert_eq!(ran.prompts.len(), 1, "{name}");
        assert_eq!(ran.report.reason, StopReason::Refused, "{name}");
        assert_eq!(ran.asked.len(), 1, "{name}");
        let noted = ran.notes.data("no_second_look");
        assert_eq!(
            noted.first().map(|data| data["why"].clone()),
            why.map(Value::from),
            "{name}"
        );
    }
    // Nor one of a second look, nor is anything done where it is cancelled.
    let cancelled = ScriptedReply {
        stop: Stop::Cancelled,
        ..ScriptedReply::new("")
    };
    let ran = ran(
        vec![on("hall lamp", 0.3), cancelled],
        settings(Unsure::LookAgain),
    );
    assert_eq!(ran.report.reason, StopReason::Cancelled);
    assert_eq!((ran.done().len(), ran.asked.len()), (0, 0));
}

#[test]
fn who_is_asked_is_told_the_best_alternatives() {
    let mut reply = on("hall lamp", 0.3);
    reply.choices = vec![
        Chosen {
            at: reply.text.find("turn_on").unwrap(),
            alternatives: vec![("turn_on".to_owned(), 0.95), ("look_at".to_owned(), 0.05)],
            taken: 0,
        },
        Chosen {
            at: reply.text.find("hall lamp").unwrap(),
            alternatives: vec![("hall lamp".to_owned(), 0.6), ("desk lamp".to_owned(), 0.4)],
            taken: 0,
        },
    ];
    let ran = ran(vec![reply], settings(Unsure::Ask));
    let (call, doubt) = &ran.asked[0];
    let doubt = doubt.as_ref().unwrap();
    assert_eq!(call.arguments["device"], "hall lamp");
    assert!((doubt.confidence.unwrap() - 0.3).abs() < 1e-9);
    let named: Vec<(&str, &str)> = doubt
        .alternatives
        .iter()
        .map(|alternative| (alternative.part.as_str(), alternative.text.as_str()))
        .collect();
    assert_eq!(named, [("device", "desk lamp"), ("tool", "look_at")]);
    let places = ran.notes.0.iter().filter_map(|event| match event {
        trace::Event::Choice { place, .. } => Some(place.as_str()),
        _ => None,
    });
    assert_eq!(places.collect::<Vec<_>>(), ["tool", "turn_on.device"]);
}

#[test]
fn what_the_policy_asks_about_has_no_doubt() {
    let sure = Settings {
        approve_all: false,
        policy: snaffle::call::Policy::new([("turn_on", snaffle::call::policy::Permission::Ask)])
            .unwrap(),
        limits: Limits::default(),
        ..settings(Unsure::LookAgain)
    };
    let ran = ran(vec![on("hall lamp", 0.9)], sure);
    assert_eq!(ran.asked.len(), 1);
    assert_eq!(ran.asked[0].1, None);
}

/// A definition with one state that lists its tools.
const LISTED: &str = r#"
name = "evening"
start = "act"

[state.act]
tools = ["turn_on", "look_at"]
ask = true
answer = true

[[state.act.go]]
on = "answer"
to = "done"

[state.done]
end = true
"#;

#[test]
fn what_nobody_spoke_of_is_asked_about() {
    let on = |device: &str| call("turn_on", device);
    let grounded = |grounding| Settings {
        grounding,
        approve_all: true,
        ..Settings::default()
    };
    let open = Definition::builtin;
    let listed = || toml::from_str::<Definition>(LISTED).unwrap();
    type Case = (
        &'static str,
        &'static str,
        Vec<ScriptedReply>,
        Settings,
        Definition,
        Result<&'static str, &'static str>,
    );
    let cases: Vec<Case> = vec![
        (
            "named",
            "hall lamp on",
            vec![on("hall lamp"), answer(0.9)],
            grounded(true),
            open(),
            Ok("hall lamp"),
        ),
        (
            "a word of it",
            "light up the hall",
            vec![on("hall lamp"), answer(0.9)],
            grounded(true),
            open(),
            Ok("hall lamp"),
        ),
        (
            "not named",
            "start the dishwasher",
            vec![on("hall lamp")],
            grounded(true),
            open(),
            Err("hall lamp"),
        ),
        (
            "not named, and not looked at",
            "start the dishwasher",
            vec![on("hall lamp"), answer(0.9)],
            grounded(false),
            open(),
            Ok("hall lamp"),
        ),
        (
            "no words at all",
            "💡",
            vec![on("hall lamp")],
            grounded(true),
            open(),
            Err("hall lamp"),
        ),
        (
            "in another script",
            "включи свет",
            vec![on("hall lamp"), answer(0.9)],
            grounded(true),
            open(),
            Ok("hall lamp"),
        ),
        (
            "what was read counts",
            "is anything off?",
            vec![call("look_at", "hall lamp"), on("hall lamp"), answer(0.9)],
            grounded(true),
            open(),
            Ok("hall lamp"),
        ),
        (
            "a state lists its tools",
            "good night",
            vec![on("hall lamp"), answer(0.9)],
            grounded(true),
            listed(),
            Ok("hall lamp"),
        ),
    ];
    for (name, goal, replies, settings, definition, expected) in cases {
        let ran = ran_for(goal, definition, replies, settings);
        match expected {
            Ok(device) => {
                assert!(ran.done().contains(&device), "{name}: {:?}", ran.report);
            }
            Err(device) => {
                assert_eq!(ran.report.reason, StopReason::Refused, "{name}");
                assert_eq!(ran.done(), Vec::<&str>::new(), "{name}");
                let [(asked, Some(doubt))] = &ran.asked[..] else {
                    panic!("{name}: {:?}", ran.asked)
                };
                assert_eq!(asked.arguments["device"], device, "{name}");
                let guess = doubt.ungrounded.as_ref().unwrap();
                assert_eq!(
                    (guess.argument.as_str(), guess.value.as_str()),
                    ("device", device)
                );
                let noted = &ran.notes.data("unsure")[0]["ungrounded"];
                assert_eq!(noted["value"], device, "{name}");
            }
        }
    }
}
