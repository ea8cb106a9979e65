//! What is selected for which request.

use super::pool::{LEARNED_PER_TOOL, Pool, Query, STALE_AFTER};
use super::{Example, Fill, Source};
use crate::call::{Domains, FailureKind, Reply};
use serde_json::{Value, json};

fn domains(device: &[&str]) -> Domains {
    let values = device.iter().map(|name| json!(name)).collect();
    Domains::from([("device".to_owned(), values)])
}

/// A small house: (tool, domains).
fn house() -> Vec<(&'static str, Domains)> {
    let switched = [
        "kitchen light",
        "hall lamp",
        "bedroom fan",
        "свет на кухне",
        "客厅灯",
    ];
    let mut all = switched.to_vec();
    all.extend(["front door", "cellar door"]);
    vec![
        ("turn_on", domains(&switched)),
        ("turn_off", domains(&switched)),
        ("set_brightness", domains(&["hall lamp"])),
        ("lock", domains(&["front door", "cellar door"])),
        ("get_state", domains(&all)),
    ]
}

fn pool() -> Pool {
    let text = r#"
        {"request":"Turn on the {device}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}]}
        {"request":"Please switch the {device} on","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}]}
        {"request":"Turn off the {device}","calls":[{"tool":"turn_off","arguments":{"device":"{device}"}}]}
        {"request":"Dim the {device} to 40 percent","calls":[{"tool":"set_brightness","arguments":{"device":"{device}","brightness":40}}]}
        {"request":"Lock the {device}","calls":[{"tool":"lock","arguments":{"device":"{device}"}}]}
        {"request":"Is the {device} on?","calls":[{"tool":"get_state","arguments":{"device":"{device}"}}]}
        {"request":"It is dark in the {place}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}],"holes":{"device":{"like":["light","lamp"]},"place":{"beside":"device"}}}
        {"request":"Turn on the {device} and the {device2}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}},{"tool":"turn_on","arguments":{"device":"{device2}"}}]}
        {"request":"Turn on the {missing}","ask":"There is no {missing} here.","holes":{"missing":{"missing":["sauna","attic light","hall lamp"]}}}
        {"request":"Dim the {device}","ask":"The {device} cannot be dimmed.","holes":{"device":{"from":"turn_on","not":"set_brightness"}}}
        {"request":"Включи {device}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}]}
        {"request":"Выключи {device}","calls":[{"tool":"turn_off","arguments":{"device":"{device}"}}]}
        {"request":"打开{device}","calls":[{"tool":"turn_on","arguments":{"device":"{device}"}}]}
        {"request":"把{device}关掉","calls":[{"tool":"turn_off","arguments":{"device":"{device}"}}]}
        {"request":"Thank you!","answer":"You're welcome."}
        {"request":"Open the {device}","calls":[{"tool":"open","arguments":{"device":"{device}"}}]}"#;
    Pool::new(Example::parse_all(text).unwrap())
}

/// What the best example shows: `request => tool(device)`.
fn best(request: &str, change: impl FnOnce(&mut Query<'_>)) -> String {
    let house = house();
    let moves: Vec<(&str, &Domains)> = house.iter().map(|(t, d)| (*t, d)).collect();
    let mut query = Query::new(request, &moves);
    change(&mut query);
    match pool().select(&query).first() {
        None => "nothing".into(),
        Some(shown) => format!("{} => {}", shown.request, text_of(&shown.reply)),
    }
}

fn text_of(reply: &Reply) -> String {
    match reply {
        Reply::Ask(text) => format!("ask: {text}"),
        Reply::Answer(text) => format!("answer: {text}"),
        Reply::Calls(calls) => {
            let calls: Vec<String> = calls
                .iter()
                .map(|call| {
                    let values: Vec<String> =
                        call.arguments.values().map(Value::to_string).collect();
                    format!("{}({})", call.tool, values.join(", ").replace('"', ""))
                })
                .collect();
            calls.join(" ")
        }
    }
}

#[test]
fn the_best_example_has_the_right_tool_and_value() {
    for (request, expected) in [
        (
            "turn on the kitchen light",
            "Turn on the kitchen light => turn_on(kitchen light)",
        ),
        (
            "could you turn off the bedroom fan",
            "Turn off the bedroom fan => turn_off(bedroom fan)",
        ),
        ("lock front door", "Lock the front door => lock(front door)"),
        (
            "Is the hall lamp on",
            "Is the hall lamp on? => get_state(hall lamp)",
        ),
        (
            "it's so dark in the kitchen",
            "It is dark in the kitchen => turn_on(kitchen light)",
        ),
        (
            "dim the hall lamp to 25%",
            "Dim the hall lamp to 40 percent => set_brightness(hall lamp, 40)",
        ),
        (
            "dim the kitchen light",
            "Dim the kitchen light => ask: The kitchen light cannot be dimmed.",
        ),
        (
            "turn on the attic light",
            "Turn on the attic light => ask: There is no attic light here.",
        ),
        (
            "включи свет на кухне",
            "Включи свет на кухне => turn_on(свет на кухне)",
        ),
        (
            "выключи свет на кухне",
            "Выключи свет на кухне => turn_off(свет на кухне)",
        ),
        ("请打开客厅灯", "打开客厅灯 => turn_on(客厅灯)"),
        ("关掉客厅灯", "把客厅灯关掉 => turn_off(客厅灯)"),
        ("thanks, thank you", "Thank you! => answer: You're welcome."),
        ("🦀", "nothing"),
    ] {
        assert_eq!(best(request, |_| ()), expected, "{request}");
    }
}

#[test]
fn settings_change_what_is_shown() {
    let request = "turn on the kitchen light and the hall lamp";
    assert_eq!(
        best(request, |query| query.most_calls = 2),
        "Turn on the hall lamp and the kitchen light => turn_on(hall lamp) turn_on(kitchen light)"
    );
    assert!(!best(request, |_| ()).contains(" and "));
    let request = "lock the cellar door";
    assert_eq!(
        best(request, |query| query.fill = Fill::Other),
        "Lock the front door => lock(front door)"
    );
    assert!(!best("turn on the attic light", |query| query.may_ask = false).contains("ask:"));
    assert!(!best("turn on the attic light", |query| query.most_talk = 0).contains("ask:"));
}

#[test]
fn only_what_is_legal_at_most_three_of_different_kinds() {
    let house = house();
    let moves: Vec<(&str, &Domains)> = house.iter().map(|(t, d)| (*t, d)).collect();
    let pool = pool();
    let query = Query::new("turn on the kitchen light, open the door", &moves);
    let shown = pool.select(&query);
    assert_eq!(shown.len(), 3);
    let texts: Vec<String> = shown.iter().map(|shown| text_of(&shown.reply)).collect();
    assert!(
        texts.iter().all(|text| !text.starts_with("open")),
        "{texts:?}"
    );
    let same = texts
        .iter()
        .filter(|text| text.starts_with("turn_on"))
        .count();
    assert!(same < 3, "{texts:?}");
    // Excluded ones are replaced.
    let exclude: Vec<_> = shown.iter().map(|shown| shown.id.clone()).collect();
    let mut again = query.clone();
    again.exclude = &exclude;
    for other in pool.select(&again) {
        assert!(!exclude.contains(&other.id));
    }
    // Only what the turn's tools can do.
    let none: Vec<(&str, &Domains)> = Vec::new();
    let shown = pool.select(&Query::new("turn on the kitchen light", &none));
    assert!(
        shown
            .iter()
            .all(|shown| !matches!(shown.reply, Reply::Calls(_)))
    );
}

#[test]
fn equals_rotate_with_the_seed_and_a_seed_repeats() {
    let house = house();
    let moves: Vec<(&str, &Domains)> = house.iter().map(|(t, d)| (*t, d)).collect();
    let lines: String = (0..12)
        .map(|number| format!("{{\"request\":\"Lock the {{device}}\",\"tags\":[],\"calls\":[{{\"tool\":\"lock\",\"arguments\":{{\"device\":\"{{device}}\",\"n\":{number}}}}}]}}\n"))
        .collect();
    let pool = Pool::new(Example::parse_all(&lines).unwrap());
    let select = |seed| {
        let mut query = Query::new("lock it", &moves);
        (query.seed, query.most) = (seed, 1);
        pool.select(&query)
    };
    let mut seen: Vec<_> = (0..20).map(|seed| select(seed)[0].id.clone()).collect();
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 4, "{seen:?}");
    assert_eq!(select(7), select(7));
}

#[test]
fn a_failure_brings_examples_of_its_tool_and_kind() {
    let house = house();
    let moves: Vec<(&str, &Domains)> = house.iter().map(|(t, d)| (*t, d)).collect();
    let mut pool = pool();
    let mut learned = Example::parse(
        r#"{"request":"brighten up","calls":[{"tool":"set_brightness","arguments":{"device":"hall lamp","brightness":90}}],"source":"learned","failure":"missing_argument"}"#,
        1,
    )
    .unwrap();
    pool.add(learned.clone());
    let mut query = Query::new("make the hall lamp nicer", &moves);
    query.failure = Some((FailureKind::MissingArgument, Some("set_brightness")));
    let shown = pool.select(&query);
    assert_eq!(shown[0].id, learned.id(), "{shown:?}");
    // A call with a value that no longer exists is never shown if it was learned, and only where
    // literal ones may be if somebody wrote it.
    learned.request = "brighten the den".into();
    let Reply::Calls(calls) = &mut learned.reply else {
        panic!()
    };
    calls[0].arguments["device"] = json!("den lamp");
    let written = Example {
        source: Source::Seed,
        ..learned.clone()
    };
    for (example, literal, shown) in [
        (&learned, true, 0),
        (&learned, false, 0),
        (&written, true, 1),
        (&written, false, 0),
    ] {
        query.literal = literal;
        let pool = Pool::new([example.clone()]);
        assert_eq!(pool.select(&query).len(), shown, "{example:?} {literal}");
    }
}

#[test]
fn learned_ones_are_bounded_and_merged() {
    let mut pool = pool();
    let seeds = pool.len();
    let learned = |number: usize| {
        let line = format!(
            r#"{{"request":"lock {number}","calls":[{{"tool":"lock","arguments":{{"device":"x"}}}}]}}"#
        );
        let mut example = Example::parse(&line, 1).unwrap();
        example.source = Source::Learned;
        example
    };
    for number in 0..500 {
        pool.add(learned(number));
        pool.add(learned(number));
    }
    assert_eq!(pool.len(), seeds + LEARNED_PER_TOOL);
    assert!(pool.iter().all(|(_, example)| example.request != "lock 0"));
    // What a person wrote is not replaced by the same thing learned.
    let written = Example {
        source: Source::Added,
        ..learned(499)
    };
    assert!(pool.add(written) && !pool.add(learned(499)));
    assert!(pool.add(learned(498)));
    assert!(pool.forget(&learned(499).id()));
    assert!(!pool.forget(&learned(499).id()));
    assert_eq!(pool.len(), seeds + LEARNED_PER_TOOL - 1);
}

#[test]
fn stale_ones_leave_and_fresh_ones_come_first() {
    let learned = |tool: &str, request: &str| {
        let line = format!(
            r#"{{"request":"{request}","calls":[{{"tool":"{tool}","arguments":{{}}}}],"source":"learned"}}"#
        );
        Example::parse(&line, 1).unwrap()
    };
    let mut pool = Pool::new([learned("lock", "lock it early")]);
    for number in 0..STALE_AFTER {
        assert_eq!(pool.iter().next().unwrap().1.request, "lock it early");
        pool.add(learned(
            &format!("tool_{}", number % 40),
            &format!("{number}"),
        ));
    }
    pool.add(learned("lock", "lock it latest"));
    let lock: Vec<_> = pool.iter().filter(|(_, e)| e.kind() == "lock").collect();
    assert_eq!(lock.len(), 1, "the first has left");
    // Of two that fit alike, the one learned later is shown, whatever the seed.
    let mut pool = Pool::new([learned("lock", "lock it one")]);
    for number in 0..STALE_AFTER / 2 {
        pool.add(learned(
            &format!("tool_{}", number % 40),
            &format!("{number}"),
        ));
    }
    pool.add(learned("lock", "lock it two"));
    let domains = Domains::new();
    let moves = [("lock", &domains)];
    for seed in 0..8 {
        let mut query = Query::new("lock it", &moves);
        query.seed = seed;
        assert_eq!(pool.select(&query)[0].request, "lock it two");
    }
}
