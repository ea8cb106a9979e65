//! A rendered trace, as a person sees it.

use super::event::{Event, Figures, Scored, Section};
use super::render::{RenderOptions, render};
use super::sink::{JsonLines, Trace, TraceSettings};
use serde_json::json;

fn arguments() -> serde_json::Map<String, serde_json::Value> {
    json!({"device": "лампа\u{202e}"})
        .as_object()
        .unwrap()
        .clone()
}

fn run() -> Vec<Event> {
    let figures = Figures {
        prompt_reused: 380,
        prompt_evaluated: 32,
        forced: 17,
        chosen: 3,
        masks: 4,
        masks_computed: 1,
        mask_microseconds: 91,
        prefill_microseconds: 210_500,
        total_microseconds: 1_234_567,
    };
    vec![
        Event::RunStarted {
            version: "0.1.0".into(),
            model: "tiny".into(),
            task: Some("1ngsz80-007".into()),
            request: "свет\u{1b}[2J!".into(),
            settings: json!({}),
        },
        Event::Prompt {
            turn: 1,
            sections: vec![
                Section {
                    name: "tools".into(),
                    text: "a\nb\nc\nd\ne\nf".into(),
                    tokens: Some(200),
                },
                Section {
                    name: "step".into(),
                    text: "{}".into(),
                    tokens: Some(100),
                },
                Section {
                    name: "step".into(),
                    text: "done".into(),
                    tokens: Some(12),
                },
            ],
            tokens: 412,
            template: Some(100),
        },
        Event::Grammar {
            turn: 1,
            text: "root ::= \"a\"".into(),
        },
        Event::Examples {
            turn: 1,
            shown: vec![("e1".into(), "turn on".into(), "{}".into())],
        },
        Event::Choice {
            turn: 1,
            place: "tool".into(),
            options: ["a", "b", "c", "d"]
                .map(|text| Scored {
                    text: text.into(),
                    probability: 0.25,
                })
                .into(),
        },
        Event::Generated {
            turn: 1,
            text: "{\"calls\":[]}".into(),
            stop: "complete".into(),
            log_probability: Some(-0.5),
            figures,
            tokens: Vec::new(),
        },
        Event::Rejected {
            turn: 1,
            kind: "wrong type".into(),
            message: "at /brightness".into(),
        },
        Event::Hint {
            turn: 1,
            kind: "wrong type".into(),
            text: "brightness is a number".into(),
        },
        Event::Approval {
            tool: "unlock".into(),
            arguments: arguments(),
            allowed: false,
            by: "policy".into(),
        },
        Event::Call {
            step: 1,
            tool: "turn_on".into(),
            arguments: arguments(),
        },
        Event::Result {
            step: 1,
            ok: true,
            result: json!({"on": true}),
            changes: vec!["лампа: on false → true".into()],
            microseconds: 1500,
        },
        Event::Facts {
            set: json!({"лампа": {"on": true}}).as_object().unwrap().clone(),
        },
        Event::StateMoved {
            from: "act".into(),
            to: "done".into(),
        },
        Event::Asked {
            question: "Which?".into(),
        },
        Event::Replied {
            text: "That\none".into(),
        },
        Event::Answered {
            text: "Done.".into(),
            flagged: Some("no call changed anything".into()),
        },
        Event::Note {
            name: "memory".into(),
            data: json!(12),
        },
        Event::RunEnded {
            reason: "answered".into(),
            turns: 1,
            figures,
        },
    ]
}

#[test]
fn a_run_reads_well() {
    let folder = tempfile::tempdir().unwrap();
    let settings = TraceSettings::new(folder.path().to_owned());
    let clock = || jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let mut trace = JsonLines::create(&settings, "t1", Box::new(clock)).unwrap();
    for event in run() {
        trace.emit(event);
    }
    let mut text = std::fs::read_to_string(trace.path().unwrap()).unwrap();
    text += "{\"event\":\"from the future\",\"x\":[1]}\n\n{\"trace_id\":\"t1\",\"ti";
    let mut out = Vec::new();
    render(&mut text.as_bytes(), &mut out, RenderOptions::default()).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn in_full_nothing_is_left_out() {
    let line = json!({"event": "prompt", "turn": 1, "tokens": 3,
                      "sections": [{"name": "a", "text": "x\n".repeat(9) + &"y".repeat(300)}]});
    for (full, lines) in [(false, 8), (true, 13)] {
        let mut out = Vec::new();
        let options = RenderOptions { full };
        render(&mut line.to_string().as_bytes(), &mut out, options).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), lines, "{text}");
        assert_eq!(text.contains(&"y".repeat(300)), full);
    }
}
