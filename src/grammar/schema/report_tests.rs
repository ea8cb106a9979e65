//! What the grammar does not enforce is reported, and what is reported as enforced holds.

use serde_json::{Value, json};

use super::*;
use crate::grammar::{Limits as EngineLimits, Recogniser};

fn compiled(schema: &Value) -> Compiled {
    compile(schema, &SchemaOptions::default()).unwrap()
}

fn matches(schema: &Value, text: &str) -> bool {
    let grammar = compiled(schema).grammar;
    let mut recogniser = Recogniser::new(&grammar, &EngineLimits::default()).unwrap();
    recogniser.matches(text.as_bytes()).unwrap()
}

/// Keywords that are checked after generation, with their places.
fn checked(schema: &Value) -> Vec<String> {
    let coverage = compiled(schema).coverage;
    let entries = coverage.checked();
    entries
        .map(|entry| format!("{}/{}", entry.pointer, entry.keyword))
        .collect()
}

#[test]
fn exclusions_that_are_too_many_for_an_automaton_are_reported() {
    let few: Vec<String> = (0..20).map(|n| format!("value {n}")).collect();
    let schema = json!({ "not": { "enum": few } });
    assert_eq!(checked(&schema), [""; 0]);
    assert!(!matches(&schema, "\"value 7\"") && matches(&schema, "\"value\""));

    // Texts that share nothing.
    let odd = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835_u128;
    let many: Vec<String> = (1..1500)
        .map(|n| format!("{:x}", odd.wrapping_mul(n)))
        .collect();
    let first = json!(many[0]).to_string();
    let schema = json!({ "not": { "enum": many } });
    assert!(matches(&schema, &first));
    assert_eq!(checked(&schema), ["/string"]);
}

#[test]
fn counts_of_keys_that_may_be_written_twice_are_reported() {
    assert_eq!(
        checked(&json!({ "type": "object", "minProperties": 2 })),
        ["/minProperties"]
    );
    assert_eq!(
        checked(&json!({ "not": { "maxProperties": 2 } })),
        ["/not/maxProperties"]
    );
    let declared = json!({
        "type": "object", "properties": { "a": true, "b": true, "c": true },
        "additionalProperties": false, "not": { "maxProperties": 2 },
    });
    assert_eq!(checked(&declared), [""; 0]);
}

#[test]
fn names_of_constant_objects_are_held_to_property_names() {
    let schema = json!({
        "oneOf": [{ "type": "integer" }, { "enum": [{ "имя": 1 }, { "я": 1 }] }],
        "propertyNames": { "maxLength": 2 },
    });
    assert!(matches(&schema, "1"));
    assert!(matches(&schema, "{\"я\": 1}"));
    assert!(!matches(&schema, "{\"имя\": 1}"));
}

/// What is loose before for another reason, or for another type, excuses nothing.
#[test]
fn opposites_that_cannot_be_written_are_reported() {
    let names = json!({ "propertyNames": { "maxLength": 2 } });
    let overlapping = json!({ "uniqueItems": true, "oneOf": [true, names] });
    assert_eq!(checked(&overlapping), ["/oneOf"]);
    let lists = json!({
        "uniqueItems": true, "items": { "enum": [1, 2] },
        "not": { "type": "array", "items": { "const": 1 }, "uniqueItems": true },
    });
    assert_eq!(checked(&lists), ["/not"]);
}

/// Deep inside of an opposite as well: an item that must break a rule of names which no grammar
/// can break on purpose.
#[test]
fn opposites_inside_of_others_are_reported() {
    let item = json!({ "propertyNames": { "maxLength": 2 } });
    let items = json!({ "not": { "items": item } });
    assert_eq!(checked(&items), ["/not/items/propertyNames"]);
    let property = json!({ "not": { "properties": { "a": item } } });
    assert_eq!(checked(&property), ["/not/properties/a/propertyNames"]);
}

/// Whoever breaks "no properties at all" has one.
#[test]
fn the_opposite_of_a_closed_object_has_a_property() {
    let closed = json!({ "patternProperties": { "ab": false }, "additionalProperties": false });
    let schema = json!({ "type": "array", "not": { "items": closed } });
    assert_eq!(checked(&schema), [""; 0]);
    assert!(matches(&schema, "[\"x\", {\"я\": 1}]"));
    assert!(!matches(&schema, "[\"x\", {}]"));
    let open = json!({ "not": { "patternProperties": { "ab": false } } });
    assert_eq!(checked(&open), ["/not"]);
    let never = json!({ "not": { "minProperties": 1, "additionalProperties": false } });
    assert!(matches(&never, "{}") && matches(&never, "{\"a\": 1}"));
}

/// As wherever an integer has bounds: readers of integers need not know of a negative zero.
#[test]
fn integers_have_no_negative_zero() {
    for schema in [
        json!({ "type": "integer" }),
        json!({ "type": "integer", "minimum": -5 }),
        json!({ "type": "integer", "multipleOf": 5 }),
        json!({ "type": "number", "multipleOf": 5 }),
    ] {
        assert!(!matches(&schema, "-0"), "{schema}");
        for text in ["0", "-5", "10"] {
            assert!(matches(&schema, text), "{schema} admits {text}");
        }
    }
    assert!(matches(&json!({ "type": "number" }), "-0.5"));
}

#[test]
fn formats_that_only_the_validator_knows_are_reported() {
    for format in ["regex", "idn-hostname"] {
        let schema = json!({ "type": "string", "format": format });
        assert_eq!(checked(&schema), ["/format"], "{format}");
        let opposite = json!({ "not": { "type": "string", "format": format } });
        assert_eq!(checked(&opposite), ["/not", "/not/format"], "{format}");
    }
    assert_eq!(checked(&json!({ "format": "shoe-size" })), [""; 0]);
}
