//! What events make of a task.

use super::definition::Definition;
use super::event::{Event, Settlement, StepResult, StopReason};
use super::{ActiveTask, Recovery, Status, TaskId};
use crate::call::{Call, Effect};
use jiff::Timestamp;
use serde_json::{Value, json};

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn begin(definition: Definition) -> ActiveTask {
    let id = TaskId::new(now(), 1);
    ActiveTask::unrecorded(id, "goal", definition, Value::Null, now()).unwrap()
}

fn intend(
    active: &mut ActiveTask,
    tool: &str,
    arguments: &Value,
    effect: Effect,
    idempotent: bool,
) {
    let intent = Event::Intent {
        step: active.task().steps + 1,
        call: Call {
            tool: tool.into(),
            arguments: arguments.as_object().unwrap().clone(),
        },
        effect,
        idempotent,
    };
    active.record(now(), intent).unwrap();
}

fn succeed(active: &mut ActiveTask, result: Value) {
    active
        .outcome(now(), StepResult::Ok(result), Vec::new())
        .unwrap();
}

fn fail(active: &mut ActiveTask, effect_unknown: bool) {
    let result = StepResult::Error {
        message: "no\nwater".into(),
        effect_unknown,
    };
    active.outcome(now(), result, Vec::new()).unwrap();
}

#[test]
fn the_builtin_task_acts_until_answered() {
    let mut active = begin(Definition::builtin());
    assert_eq!(active.task().summary(1000), "");
    assert!(active.task().allows("anything"));
    intend(
        &mut active,
        "turn_on",
        &json!({"device": "лампа"}),
        Effect::Change,
        true,
    );
    succeed(&mut active, json!({"on": true}));
    assert_eq!(
        active.task().summary(1000),
        "Known:\n- лампа: on=true\nLast step: turn_on(лампа) → on=true\n"
    );
    assert_eq!(active.answered(now(), "I've turned it on.").unwrap(), None);
    let task = active.task();
    assert_eq!(
        (task.state.as_str(), &task.status),
        ("done", &Status::Answered)
    );
    assert_eq!(task.recovery(), Recovery::Finished);
    assert!(!task.allows("turn_on"));
}

#[test]
fn an_answer_that_claims_too_much_is_flagged() {
    let mut active = begin(Definition::builtin());
    intend(
        &mut active,
        "turn_on",
        &json!({"device": "a"}),
        Effect::Change,
        true,
    );
    fail(&mut active, false);
    assert_eq!(active.task().failures, 1);
    assert_eq!(
        active.task().last_step_text(100).unwrap(),
        "turn_on(a) → failed: no water"
    );
    let flag = active
        .answered(now(), "I have turned it on.")
        .unwrap()
        .unwrap();
    assert_eq!(
        flag.to_string(),
        "the answer says \"I have turned\", but no call changed anything"
    );
}

#[test]
fn what_resuming_does() {
    type Prepare = fn(&mut ActiveTask);
    let read: Prepare = |t| intend(t, "get", &json!({}), Effect::Read, false);
    let safe: Prepare = |t| intend(t, "set", &json!({}), Effect::Change, true);
    let send: Prepare = |t| intend(t, "send", &json!({}), Effect::Risk, false);
    let killed: Prepare = |t| {
        intend(t, "send", &json!({}), Effect::Risk, false);
        fail(t, true);
    };
    let settled: Prepare = |t| {
        intend(t, "send", &json!({}), Effect::Risk, false);
        let how = Settlement::Happened;
        t.record(now(), Event::Settled { step: 1, how }).unwrap();
        assert_eq!(t.task().effects, 1);
    };
    let asked: Prepare = |t| {
        let question = "which?".into();
        t.record(
            now(),
            Event::Asked {
                question,
                amends: None,
            },
        )
        .unwrap();
    };
    let stopped: Prepare = |t| {
        let reason = StopReason::Cancelled;
        t.record(now(), Event::Stopped { reason }).unwrap();
    };
    let repeated: Prepare = |t| {
        let reason = StopReason::Repeated;
        t.record(now(), Event::Stopped { reason }).unwrap();
    };
    let cases: [(&str, Prepare, &str); 9] = [
        ("fresh", |_| (), "continue"),
        ("read", read, "repeat get"),
        ("safe", safe, "repeat set"),
        ("send", send, "decide send"),
        ("killed", killed, "decide send"),
        ("settled", settled, "continue"),
        ("asked", asked, "reply which?"),
        ("stopped", stopped, "continue"),
        ("repeated", repeated, "finished"),
    ];
    for (name, prepare, expected) in cases {
        let mut active = begin(Definition::builtin());
        prepare(&mut active);
        let found = match active.task().recovery() {
            Recovery::Finished => "finished".into(),
            Recovery::Continue => "continue".into(),
            Recovery::Reply(question) => format!("reply {question}"),
            Recovery::Repeat(pending) => format!("repeat {}", pending.call.tool),
            Recovery::Decide(pending) => format!("decide {}", pending.call.tool),
            Recovery::Verify => "verify".into(),
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_reply_reaches_the_summary() {
    let mut active = begin(Definition::builtin());
    let question = "Which lamp?".to_owned();
    active
        .record(
            now(),
            Event::Asked {
                question,
                amends: None,
            },
        )
        .unwrap();
    assert_eq!(active.task().status, Status::Asked("Which lamp?".into()));
    let text = "the red\none".to_owned();
    assert!(!active.task().was_just_told());
    active.record(now(), Event::Replied { text }).unwrap();
    assert!(active.task().was_just_told());
    assert_eq!(active.task().shown_status(false), Status::Interrupted);
    assert_eq!(
        active.task().summary(1000),
        "Asked: Which lamp?\nReply: the red one\n"
    );
}

#[test]
fn a_definition_leads_and_binds() {
    let definition: Definition = toml::from_str(
        r#"
        name = "book a flight"
        start = "search"
        [state.search]
        tools = ["search"]
        remember = [{ tool = "search", pointer = "/flights", fact = "flights to {city}" },
                    { pointer = "/flights", fact = "flights" }]
        go = [{ on = "success", to = "choose" }]
        [state.choose]
        tools = ["book"]
        bind = [{ tool = "book", argument = "flight", fact = "flights", pointer = "/id" }]
        go = [{ on = "success", to = "end" }, { on = "failure", to = "search" }]
        [state.end]
        end = true
        "#,
    )
    .unwrap();
    definition.check().unwrap();
    let mut active = begin(definition);
    assert!(active.task().allows("search") && !active.task().allows("book"));
    intend(
        &mut active,
        "search",
        &json!({"city": "Омск"}),
        Effect::Read,
        true,
    );
    succeed(
        &mut active,
        json!({"flights": [{"id": 7}, {"id": 9}, {"id": 7}, {"no": 1}]}),
    );
    let task = active.task();
    assert_eq!(task.state, "choose");
    assert!(task.facts.get("flights to Омск").is_some());
    assert_eq!(task.bound("book", "flight"), Some(vec![json!(7), json!(9)]));
    assert_eq!(task.bound("book", "seat"), None);
    intend(
        &mut active,
        "book",
        &json!({"flight": 7}),
        Effect::Risk,
        false,
    );
    fail(&mut active, false);
    assert_eq!(
        (active.task().state.as_str(), active.task().failures),
        ("search", 1)
    );
    intend(
        &mut active,
        "search",
        &json!({"city": "Омск"}),
        Effect::Read,
        true,
    );
    succeed(&mut active, json!({"flights": [{"id": 3}]}));
    intend(
        &mut active,
        "book",
        &json!({"flight": 3}),
        Effect::Risk,
        false,
    );
    succeed(&mut active, json!("ok"));
    let task = active.task();
    assert_eq!(
        (task.status.clone(), task.reads, task.effects),
        (Status::Answered, 2, 1)
    );
}

#[test]
fn a_long_result_is_cut_and_the_summary_stays_short() {
    let mut active = begin(Definition::builtin());
    for number in 0..60 {
        let path = format!("file {number}");
        intend(
            &mut active,
            "read",
            &json!({"path": path}),
            Effect::Read,
            true,
        );
        succeed(&mut active, json!("длинный текст ".repeat(20_000)));
    }
    for limit in [200, 1000, 4000] {
        let length = active.task().summary(limit).len();
        assert!(length <= limit + 200, "{limit}: {length}");
    }
    let Some(StepResult::Ok(kept)) = &active.task().last.as_ref().unwrap().result else {
        panic!("no result");
    };
    assert_eq!(kept["cut"], true);
}

#[test]
fn lists_are_worked_off_and_guards_hold() {
    let definition: Definition = toml::from_str(
        r#"
        name = "night"
        start = "lights"
        facts = { lights = ["a", "b"], "state of a" = "on" }
        [state.lights]
        tools = ["turn_off", "leave"]
        bind = [{ tool = "turn_off", argument = "device", fact = "lights" }]
        strike = [{ tool = "turn_off", argument = "device", fact = "lights" }]
        guard = [{ tool = "leave", fact = "lights", empty = true, otherwise = "lights are on" },
                 { tool = "turn_off", fact = "state of {device}", is = "on" }]
        remember = [{ tool = "turn_off", argument = "device", fact = "last" }]
        go = [{ on = "success", tool = "leave", to = "done" }]
        [state.done]
        end = true
        say = "{last} was the last"
        "#,
    )
    .unwrap();
    definition.check().unwrap();
    let mut active = begin(definition);
    let task = active.task();
    assert!(!task.allows("leave") && task.allows("turn_off"));
    let leave = Call::new("leave", [("x", 1)]);
    assert_eq!(task.guarded(&leave).as_deref(), Some("lights are on"));
    assert!(task.guards_leave("turn_off", "device", &json!("a")));
    assert!(!task.guards_leave("turn_off", "device", &json!("b")));
    assert_eq!(task.guarded_arguments("turn_off"), ["device"]);
    for device in ["a", "b"] {
        intend(
            &mut active,
            "turn_off",
            &json!({ "device": device }),
            Effect::Change,
            true,
        );
        succeed(&mut active, json!({"on": false}));
    }
    let task = active.task();
    assert_eq!(task.bound("turn_off", "device"), Some(vec![]));
    assert!(task.allows("leave"));
    intend(&mut active, "leave", &json!({}), Effect::Change, true);
    succeed(&mut active, json!(null));
    assert_eq!(active.task().farewell().as_deref(), Some("b was the last"));
    assert_eq!(active.task().recovery(), Recovery::Finished);
}

#[test]
fn an_end_is_proved_or_left_again() {
    let text = |go: &str| {
        format!(
            r#"
            name = "n"
            start = "a"
            [state.a]
            tools = ["work"]
            remember = [{{ pointer = "/done", fact = "done" }}]
            go = [{{ on = "success", to = "z" }} {go}]
            [state.b]
            tools = ["work"]
            remember = [{{ pointer = "/done", fact = "done" }}]
            go = [{{ on = "success", to = "z" }}]
            [state.z]
            end = true
            [[proof]]
            fact = "done"
            is = true
            "#
        )
    };
    for (go, back) in [("", "a"), (", { on = 'unproven', to = 'b' }", "b")] {
        let definition: Definition = toml::from_str(&text(go)).unwrap();
        let mut active = begin(definition);
        for done in [false, true] {
            intend(&mut active, "work", &json!({}), Effect::Change, true);
            succeed(&mut active, json!({ "done": done }));
            assert_eq!(active.task().state, "z");
            assert_eq!(active.task().recovery(), Recovery::Verify);
            let failed = (!done).then(|| "not done".to_owned());
            active.verified(now(), failed).unwrap();
            if !done {
                assert_eq!(active.task().state, back);
                assert_eq!(active.task().recovery(), Recovery::Continue);
                assert_eq!(active.task().failures, 1);
            }
        }
        assert_eq!(active.task().status, Status::Answered);
    }
}

#[test]
fn an_effect_that_is_found_to_have_happened_counts_as_a_success() {
    let definition: Definition = toml::from_str(
        r#"
        name = "n"
        start = "a"
        [state.a]
        tools = ["book"]
        remember = [{ pointer = "/number", fact = "booking" }]
        go = [{ on = "success", to = "z" }]
        [state.z]
        end = true
        "#,
    )
    .unwrap();
    for (how, result, state, booking) in [
        (
            Settlement::Happened,
            Some(json!({"number": 7})),
            "z",
            Some(json!(7)),
        ),
        (Settlement::Happened, None, "z", None),
        (Settlement::DidNotHappen, None, "a", None),
    ] {
        let mut active = begin(definition.clone());
        intend(&mut active, "book", &json!({}), Effect::Risk, false);
        assert!(matches!(active.task().recovery(), Recovery::Decide(_)));
        active.settled(now(), how, result).unwrap();
        let task = active.task();
        assert_eq!(task.state, state, "{how:?}");
        assert_eq!(task.facts.get("booking"), booking.as_ref());
        assert_eq!(task.effects, u32::from(how == Settlement::Happened));
        assert_eq!(task.pending, None);
    }
}

#[test]
fn what_the_person_says_meanwhile_is_kept_and_a_follow_up_begins_anew() {
    let mut active = begin(Definition::builtin());
    for number in 0..6 {
        let text = format!("line {number}");
        active.record(now(), Event::Steered { text }).unwrap();
    }
    assert_eq!(
        active.task().notes,
        ["line 2", "line 3", "line 4", "line 5"]
    );
    active.answered(now(), "Yes.").unwrap();
    assert_eq!(active.task().recovery(), Recovery::Finished);
    let goal = "and then?".to_owned();
    active.record(now(), Event::FollowedUp { goal }).unwrap();
    let task = active.task();
    assert_eq!(
        (task.goal.as_str(), task.state.as_str()),
        ("and then?", "act")
    );
    assert_eq!(task.recovery(), Recovery::Continue);
    assert!(task.notes.is_empty());
}

#[test]
fn a_reply_about_a_number_puts_it_into_the_goal() {
    let asked = |amends: &str, reply: &str| {
        let mut active = begin(Definition::builtin());
        let goal = "dim lamp 2 to 150%".to_owned();
        active.record(now(), Event::FollowedUp { goal }).unwrap();
        let question = Event::Asked {
            question: "What should it be?".to_owned(),
            amends: Some(amends.to_owned()),
        };
        active.record(now(), question).unwrap();
        let text = reply.to_owned();
        active.record(now(), Event::Replied { text }).unwrap();
        active.task().clone()
    };
    let task = asked("150", "15%");
    assert_eq!(task.goal, "dim lamp 2 to 15%");
    assert_eq!(task.reply, None);
    assert!(task.was_just_told());
    // Where it cannot be put there, it is a reply like any other.
    for (amends, reply) in [("8", "15%"), ("150", "never mind"), ("150", "1 or 2")] {
        let task = asked(amends, reply);
        assert_eq!(task.goal, "dim lamp 2 to 150%");
        assert_eq!(task.reply.map(|(_, said)| said).as_deref(), Some(reply));
    }
    // A journal from before numbers were amended.
    let old: Event = serde_json::from_str(r#"{"event": "asked", "question": "?"}"#).unwrap();
    assert!(matches!(old, Event::Asked { amends: None, .. }));
}
