//! Objects with keys in any order, and arrays of distinct values, against permutations that are
//! written out and judged by the `jsonschema` crate.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use super::*;
use crate::grammar::alphabet::AllBytes;
use crate::grammar::automaton::{Automaton, DEAD_STATE};
use crate::grammar::lower::lower;

fn any() -> SchemaOptions {
    SchemaOptions {
        key_order: KeyOrder::Any,
        ..SchemaOptions::default()
    }
}

const NAMES: [&str; 6] = ["a", "ab", "b", "ключ", "x-1", "say \"hi\""];

/// A value's schema, a value that satisfies it and one that does not.
fn value(random: &mut StdRng) -> (Value, [Value; 2]) {
    match random.random_range(0..4) {
        0 => (json!({"type": "integer"}), [json!(7), json!("7")]),
        1 => (json!({"type": "boolean"}), [json!(true), json!(0)]),
        2 => (json!({"enum": ["x", "xy"]}), [json!("xy"), json!("z")]),
        _ => (
            json!({"type": "object", "properties": {"p": {"type": "null"}, "q": {"type": "null"}}, "required": ["q"], "additionalProperties": false}),
            [json!({"q": null, "p": null}), json!({"p": null})],
        ),
    }
}

fn schema(random: &mut StdRng) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in NAMES {
        if random.random_bool(0.5) {
            properties.insert(name.to_owned(), value(random).0);
            if random.random_bool(0.4) {
                required.push(name);
            }
        }
    }
    let mut schema = json!({"type": "object", "properties": properties, "required": required});
    let members = schema.as_object_mut().unwrap();
    match random.random_range(0..4) {
        0 => {}
        1 => {
            members.insert("additionalProperties".into(), value(random).0);
        }
        _ => {
            members.insert("additionalProperties".into(), json!(false));
        }
    }
    if random.random_bool(0.3) {
        members.insert(
            "patternProperties".into(),
            json!({"^x-": {"type": "integer"}}),
        );
    }
    if random.random_bool(0.3) {
        members.insert("minProperties".into(), json!(random.random_range(0..4)));
    }
    if random.random_bool(0.3) {
        members.insert("maxProperties".into(), json!(random.random_range(0..4)));
    }
    schema
}

/// Members as they might come, good and bad, seldom one twice.
fn members(schema: &Value, random: &mut StdRng) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let extra = ["x-2", "other"];
    for name in NAMES.into_iter().chain(extra) {
        let declared = schema["properties"].get(name);
        let likely = if declared.is_some() { 0.7 } else { 0.1 };
        while random.random_bool(likely) {
            let fits = declared.map(|declared| jsonschema::validator_for(declared).unwrap());
            let picked = loop {
                let pair = value(random).1;
                let picked = pair[usize::from(random.random_bool(0.05))].clone();
                let good = fits.as_ref().is_none_or(|fits| fits.is_valid(&picked));
                if good || random.random_bool(0.02) {
                    break picked;
                }
            };
            all.push((name.to_owned(), picked));
            if random.random_bool(0.95) {
                break;
            }
        }
    }
    all.shuffle(random);
    all
}

#[test]
fn random_schemas_accept_what_is_valid_in_any_order() {
    let mut random = StdRng::seed_from_u64(11);
    let (mut accepted, mut rejected, mut twice, mut closed) = (0, 0, 0, 0);
    for _ in 0..400 {
        let schema = schema(&mut random);
        let compiled = match compile(&schema, &any()) {
            Ok(compiled) => compiled,
            Err(SchemaError::Unsatisfiable { .. }) => continue,
            Err(error) => panic!("{schema}: {error}"),
        };
        let counts_twice = compiled.coverage.checked().count() > 0;
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut recogniser = Recogniser::new(&compiled.grammar).unwrap();
        for _ in 0..40 {
            let members = members(&schema, &mut random);
            let text: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}: {}", json!(name), spaced(value)))
                .collect();
            let text = format!("{{{}}}", text.join(", "));
            let object: Map<String, Value> = members.iter().cloned().collect();
            let repeats = object.len() < members.len();
            let repeats_declared = members.iter().enumerate().any(|(at, (name, _))| {
                schema["properties"].get(name).is_some()
                    && members[..at].iter().any(|(earlier, _)| earlier == name)
            });
            if repeats && (counts_twice || !repeats_declared) {
                // No grammar remembers undeclared keys.
                continue;
            }
            let wanted = !repeats && validator.is_valid(&Value::Object(object));
            let fits = recogniser.accepts(&text);
            assert_eq!(fits, wanted, "{schema}\n{text}\n{}", compiled.grammar);
            twice += usize::from(repeats);
            *(if wanted { &mut accepted } else { &mut rejected }) += 1;
            // Wherever a text stops, a shortest way leads to a valid one.
            if wanted && !counts_twice {
                let from = random.random_range(0..=text.len());
                let from = text.floor_char_boundary(from);
                let value = close(&mut recogniser, &text[..from]);
                assert!(validator.is_valid(&value), "{schema}: {text} to {value}");
                closed += 1;
            }
        }
    }
    let counts = [accepted, rejected, twice, closed];
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
}

/// The value of a text that begins like this, closed in the shortest way. The distance that is
/// told is kept.
fn close(recogniser: &mut Recogniser, begun: &str) -> Value {
    let automaton = &mut recogniser.0;
    let mut state = automaton.start();
    for byte in begun.bytes() {
        state = automaton.step(state, byte).unwrap();
    }
    let mut text = begun.as_bytes().to_vec();
    while !automaton.accepts(state) {
        let distance = automaton.distance(state).unwrap();
        let byte = automaton.closing_byte(state).unwrap();
        state = automaton.step(state, byte).unwrap();
        assert_eq!(automaton.distance(state), Some(distance - 1));
        text.push(byte);
    }
    serde_json::from_slice(&text).unwrap()
}

/// Every order of few members, and every text that has one member too few, too many or twice.
#[test]
fn every_permutation_is_accepted() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"const": 1}, "ab": {"const": 2}, "b": {"const": 3}, "c": {"const": 4}},
        "required": ["ab", "c"],
        "additionalProperties": false,
    });
    let compiled = compile(&schema, &any()).unwrap();
    assert!(compiled.coverage.is_complete());
    let printed = compiled.grammar.to_gbnf().unwrap();
    let limits = crate::grammar::Limits::default();
    let again = crate::grammar::gbnf::parse(&printed, &limits)
        .unwrap()
        .grammar;
    let mut recogniser = Recogniser::new(&compiled.grammar).unwrap();
    let mut reread = Recogniser::new(&again).unwrap();
    let members = ["\"a\": 1", "\"ab\": 2", "\"b\": 3", "\"c\": 4"];
    // Every list of at most five of the four.
    let mut lists: Vec<Vec<usize>> = vec![Vec::new()];
    let mut accepted = 0;
    while let Some(list) = lists.pop() {
        let distinct = (1..list.len()).all(|at| !list[..at].contains(&list[at]));
        let wanted = distinct && list.contains(&1) && list.contains(&3);
        let text: Vec<&str> = list.iter().map(|&at| members[at]).collect();
        let text = format!("{{{}}}", text.join(", "));
        assert_eq!(recogniser.accepts(&text), wanted, "{text}");
        assert_eq!(reread.accepts(&text), wanted, "{text} as GBNF\n{printed}");
        accepted += usize::from(wanted);
        if list.len() < 5 {
            for at in 0..members.len() {
                let mut longer = list.clone();
                longer.push(at);
                lists.push(longer);
            }
        }
    }
    // Two orders of the required pair, six places for each of the others, and twelve for both.
    assert_eq!(accepted, 2 + 6 + 6 + 24);
}

#[test]
fn many_members_cost_no_more_than_their_keys() {
    let mut random = StdRng::seed_from_u64(5);
    for count in [64_usize, 1_000] {
        let names: Vec<String> = (0..count).map(|at| format!("property_{at}")).collect();
        let properties: Map<String, Value> = names
            .iter()
            .map(|name| (name.clone(), json!({"type": "integer"})))
            .collect();
        let required: Vec<&String> = names.iter().step_by(2).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let compiled = compile(&schema, &any()).unwrap();
        let mut recogniser = Recogniser::new(&compiled.grammar).unwrap();
        let limit = compiled.grammar.to_gbnf().unwrap_err().to_string();
        assert!(
            limit.contains(&format!("{count} members in any order")),
            "{limit}"
        );
        for _ in 0..3 {
            let mut order = names.clone();
            order.shuffle(&mut random);
            let text: Vec<String> = order.iter().map(|name| format!("\"{name}\": 1")).collect();
            let whole = format!("{{{}}}", text.join(", "));
            assert!(recogniser.accepts(&whole), "{whole}");
            let double = format!("{{{}, {}}}", text.join(", "), text[0]);
            assert!(!recogniser.accepts(&double));
            let lacking = text.iter().filter(|text| **text != "\"property_0\": 1");
            let lacking: Vec<&str> = lacking.map(String::as_str).collect();
            assert!(!recogniser.accepts(&format!("{{{}}}", lacking.join(", "))));
        }
        // A state a byte of the texts, and no more.
        let bytes = 3 * 3 * count * 21;
        let states = recogniser.0.states();
        assert!(states < bytes, "{states} states for {count} members");
    }
}

/// Every list of up to four values from a few, under schemas that count and compare items.
#[test]
fn arrays_that_count_and_compare_accept_what_is_valid() {
    let values = [json!(1), json!(12), json!(true), json!("x"), json!(null)];
    let schemas = [
        json!({"items": {"enum": [1, 12, "x", null]}, "uniqueItems": true}),
        json!({"items": {"enum": [1, 12, "x"]}, "uniqueItems": true, "minItems": 2, "maxItems": 2}),
        json!({"items": {"type": ["boolean", "null"]}, "uniqueItems": true}),
        json!({"items": {"type": "integer", "minimum": 0, "maximum": 13}, "uniqueItems": true}),
        json!({"contains": {"const": 12}, "minItems": 2, "maxItems": 3}),
        json!({"contains": {"type": "integer"}, "minContains": 2}),
        json!({"contains": {"type": "integer"}, "maxContains": 1}),
        json!({"contains": {"type": "integer"}, "minContains": 0, "maxContains": 2, "minItems": 2}),
        json!({"contains": {"type": "integer"}, "minContains": 2, "maxContains": 2}),
        json!({"allOf": [{"contains": {"type": "integer"}}, {"contains": {"type": ["integer", "null"]}}]}),
        json!({"allOf": [{"contains": {"const": 1}}, {"contains": {"const": "x"}}, {"contains": {"type": "boolean"}}]}),
    ];
    for schema in schemas {
        let mut schema = schema;
        schema["type"] = json!("array");
        let compiled = compile(&schema, &SchemaOptions::default()).unwrap();
        assert!(
            compiled.coverage.is_complete(),
            "{schema}: {:?}",
            compiled.coverage
        );
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut recogniser = Recogniser::new(&compiled.grammar).unwrap();
        let mut lists: Vec<Vec<&Value>> = vec![Vec::new()];
        let mut counts = [0, 0];
        while let Some(list) = lists.pop() {
            let array: Value = list.iter().copied().cloned().collect();
            let wanted = validator.is_valid(&array);
            let text = spaced(&array);
            assert_eq!(
                recogniser.accepts(&text),
                wanted,
                "{schema}\n{text}\n{}",
                compiled.grammar
            );
            counts[usize::from(wanted)] += 1;
            if list.len() < 4 {
                lists.extend(values.iter().map(|value| {
                    let mut longer = list.clone();
                    longer.push(value);
                    longer
                }));
            }
        }
        assert!(
            counts.iter().all(|&count| count > 0),
            "{schema}: {counts:?}"
        );
    }
    let none = json!({"type": "array", "contains": {"const": 1}, "maxContains": 0});
    let refused = compile(&none, &SchemaOptions::default());
    assert!(
        matches!(refused, Err(SchemaError::Unsatisfiable { .. })),
        "{refused:?}"
    );
}

/// What GBNF takes too many rules for is checked afterwards where it is asked for.
#[test]
fn grammars_for_gbnf_can_be_printed() {
    let options = SchemaOptions {
        gbnf: true,
        ..SchemaOptions::default()
    };
    let many: Vec<usize> = (0..20).collect();
    for (schema, complete) in [
        (
            json!({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true}),
            true,
        ),
        (
            json!({"type": "array", "items": {"enum": many}, "uniqueItems": true}),
            false,
        ),
        (
            json!({"type": "array", "contains": {"const": 1}, "maxItems": 9}),
            false,
        ),
    ] {
        let compiled = compile(&schema, &options).unwrap();
        assert_eq!(compiled.coverage.is_complete(), complete, "{schema}");
        let printed = compiled.grammar.to_gbnf().unwrap();
        let limits = crate::grammar::Limits::default();
        assert!(
            crate::grammar::gbnf::parse(&printed, &limits).is_ok(),
            "{printed}"
        );
    }
}

/// Matches texts by the automaton itself.
struct Recogniser(Automaton);

impl Recogniser {
    fn new(grammar: &Grammar) -> Result<Self, String> {
        let limits = crate::grammar::Limits::default();
        let program = lower(grammar, &AllBytes, &limits).map_err(|error| error.to_string())?;
        Automaton::new(program, 64, &limits)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    fn accepts(&mut self, text: &str) -> bool {
        let mut state = self.0.start();
        for byte in text.bytes() {
            state = self.0.step(state, byte).unwrap();
            if state == DEAD_STATE {
                return false;
            }
        }
        self.0.accepts(state)
    }
}

/// As models write JSON: a space after commas and colons.
fn spaced(value: &Value) -> String {
    match literal(value, &SchemaOptions::default()) {
        Expr::Literal(text) => text,
        other => panic!("a literal is one text, not {other:?}"),
    }
}
