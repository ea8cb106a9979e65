//! Simulated worlds through the registry and the gate, as a run uses them.

use super::*;
use crate::call::{Approval, Moves, Policy, Verdict};
use crate::tool::Registry;
use serde_json::json;

const AIRPORT: &str = r#"
[world]
cities = ["Oslo", "Rome"]
bookings = []

[[world.flights]]
id = "SN 1"
to = "Oslo"
free = true

[[world.flights]]
id = "SN 2"
to = "Rome"
free = true

[[tool]]
name = "search"
description = "Find flights."
effect = "read"
parameters = { type = "object", properties = { to = { type = "string" } } }
domains = { to = { from = "/cities" } }
give = { flights = { from = "/flights", where = { to = "{to}", free = true } }, text = "to {to}" }

[[tool]]
name = "book"
description = "Book a flight."
effect = "risk"
parameters = { type = "object", properties = { flight = { type = "string" }, bags = { type = "integer" } }, required = ["flight", "bags"] }
domains = { flight = { from = "/flights", where = { free = true }, pick = "id" } }
require = [{ some = { from = "/flights", where = { id = "{flight}", free = true } }, otherwise = "{flight} is full" }]
add = [{ to = "/bookings", value = { number = "B{#}", flight = "{flight}", bags = "{bags}" } }]
set = [{ of = { from = "/flights", where = { id = "{flight}" } }, value = { free = false } }]
give = { booking = { from = "/bookings", where = { flight = "{flight}" }, first = true } }
check = { from = "/bookings", where = { flight = "{flight}" } }

[[tool]]
name = "cancel"
description = "Cancel a booking."
effect = "change"
idempotent = true
parameters = { type = "object", properties = { number = { type = "string" } }, required = ["number"] }
remove = [{ from = "/bookings", where = { number = "{number}" } }]
give = { left = { from = "/bookings", pick = "number" } }
"#;

fn airport() -> (tempfile::TempDir, Registry) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("airport.toml");
    fs_err::write(&path, AIRPORT).unwrap();
    let mut registry = Registry::new();
    registry.register_all(tools(&path).unwrap()).unwrap();
    (folder, registry)
}

fn moves(registry: &Registry) -> Moves {
    registry.moves(&Policy::default()).unwrap()
}

fn run(registry: &mut Registry, tool: &str, arguments: &Value) -> Result<Outcome, ToolError> {
    let call = Call {
        tool: tool.into(),
        arguments: arguments.as_object().unwrap().clone(),
    };
    let checked = match moves(registry).check(call).unwrap() {
        Verdict::Checked(checked) => checked,
        Verdict::Ask(waiting) => waiting.approve(Approval::Person),
    };
    registry.run(&checked)
}

#[test]
fn tools_look_and_change() {
    let (folder, mut registry) = airport();
    let all = run(&mut registry, "search", &json!({})).unwrap();
    assert_eq!(all.result["flights"].as_array().unwrap().len(), 2);
    let one = run(&mut registry, "search", &json!({"to": "Oslo"})).unwrap();
    assert_eq!(
        one.result,
        json!({"flights": [{"id": "SN 1", "to": "Oslo", "free": true}], "text": "to Oslo"})
    );
    assert!(!folder.path().join("airport.state.json").exists());
    let booking = json!({"flight": "SN 1", "bags": 2});
    let booked = run(&mut registry, "book", &booking).unwrap();
    assert_eq!(
        booked.result,
        json!({"booking": {"number": "B1", "flight": "SN 1", "bags": 2}})
    );
    assert_eq!(
        booked.changes,
        [
            "flights: free: true → false",
            "bookings: + {\"number\": \"B1\", \"flight\": \"SN 1\", \"bags\": 2}",
        ]
    );
    // What is full is offered no longer.
    let legal = moves(&registry);
    assert_eq!(
        legal.find("book").unwrap().domains["flight"],
        [json!("SN 2")]
    );
    let cancelled = run(&mut registry, "cancel", &json!({"number": "B1"})).unwrap();
    assert_eq!(cancelled.result, json!({"left": []}));
    // Once more is the same as once.
    let again = run(&mut registry, "cancel", &json!({"number": "B1"})).unwrap();
    assert_eq!(again.changes, Vec::<String>::new());
}

#[test]
fn what_is_wanted_is_wanted_when_it_is_done() {
    let (_folder, mut registry) = airport();
    let legal = moves(&registry);
    let call = Call::new("book", [("flight", json!("SN 1")), ("bags", json!(1))]);
    let Verdict::Ask(waiting) = legal.check(call).unwrap() else {
        panic!("booking is asked about");
    };
    let late = waiting.approve(Approval::Person);
    run(&mut registry, "book", &json!({"flight": "SN 1", "bags": 0})).unwrap();
    let error = registry.run(&late).unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.effect_unknown),
        ("SN 1 is full", false)
    );
}

#[test]
fn the_world_says_what_came_of_a_call() {
    let (_folder, mut registry) = airport();
    let call = Call::new("book", [("flight", json!("SN 2")), ("bags", json!(1))]);
    let before = registry.took_effect(&call).unwrap().unwrap();
    assert_eq!((before.happened, before.result), (false, None));
    let booked = run(&mut registry, "book", &json!({"flight": "SN 2", "bags": 1})).unwrap();
    let after = registry.took_effect(&call).unwrap().unwrap();
    assert_eq!((after.happened, after.result), (true, Some(booked.result)));
    let silent = registry.took_effect(&Call::new("cancel", [("number", "B1")]));
    assert_eq!(silent, Ok(None));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.toml");
    let tool = "[world]\nlist = []\n[[tool]]\nname = 't'\ndescription = 'd'\neffect = 'change'\n";
    for (text, expected) in [
        ("[[tool]]\nname = 't'".to_owned(), "missing field"),
        (format!("{tool}colour = 1"), ":7: unknown field `colour`"),
        (
            format!("{tool}add = [{{ to = '/none', value = 1 }}]"),
            ":4: the world has no list at \"/none\"",
        ),
        (
            format!("{tool}domains = {{ x = {{ from = '/list' }} }}"),
            ":4: `t` has no argument `x`",
        ),
        (
            format!("{tool}parameters = {{ type = 7 }}"),
            ":4: the schema of t's arguments",
        ),
        (
            format!("{tool}give = {{ a = {{ from = '/nowhere' }} }}"),
            ":4: `give.a` is no selection",
        ),
        (tool.replace("'t'", "'a b'"), ":4: a tool's name is"),
        (
            format!(
                "{}add = [{{ to = '/list', value = 1 }}]",
                tool.replace("change", "read")
            ),
            ":4: `t` only reads, and yet changes the world",
        ),
        (
            format!("{tool}[[tool]]\nname = 't'\ndescription = 'd'\neffect = 'read'"),
            ":8: there are two tools called `t`",
        ),
    ] {
        fs_err::write(&path, &text).unwrap();
        let error = tools(&path).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}\nin {text}");
    }
    assert!(is_world(tool) && !is_world("[[tool]]\n") && !is_world("world = 1") && !is_world("="));
    fs_err::write(&path, tool).unwrap();
    fs_err::write(path.with_extension("state.json"), "{").unwrap();
    assert!(matches!(tools(&path), Err(SimulatedError::State { .. })));
}
