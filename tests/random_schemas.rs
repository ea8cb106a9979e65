//! Random schemas: their random instances are told apart as the `jsonschema` crate tells them
//! apart, and what their grammars write satisfies them.
#![expect(clippy::panic, reason = "a test says what went wrong by failing")]

#[path = "../fuzz/checks.rs"]
mod checks;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};
use snaffle::bench::conformance::judge::validator;
use snaffle::bench::conformance::{Case, Test, Verdict, judge};
use snaffle::grammar::schema::{KeyOrder, SchemaOptions};

const KEYS: [&str; 5] = ["a", "b", "имя", "\"\\", ""];
const TEXTS: [&str; 7] = ["", "a", "ab", "ж中", "2024-02-29", "a\"\\\n", "🐎🐎🐎"];

const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(&KEYS[..]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-12_i64..130).prop_map(Value::from),
        // Halves and quarters are written the same by everyone.
        (-9_i64..40).prop_map(|n| json!(n as f64 / 4.0 + 0.125)),
        prop::sample::select(&TEXTS[..]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A keyword and its value, with subschemas from `inner`.
fn keyword(inner: BoxedStrategy<Value>) -> BoxedStrategy<(&'static str, Value)> {
    let list = |least: usize| prop::collection::vec(inner.clone(), least..3);
    let map = || {
        prop::collection::vec((key(), inner.clone()), 1..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    };
    let simple = prop_oneof![
        4 => prop::sample::select(&TYPES[..]).prop_map(|t| ("type", json!(t))),
        2 => prop::sample::subsequence(&TYPES[..], 1..4).prop_map(|t| ("type", json!(t))),
        2 => prop::collection::vec(value(), 1..4).prop_map(|v| ("enum", json!(v))),
        1 => value().prop_map(|v| ("const", v)),
        1 => (0..4_u32).prop_map(|n| ("minLength", json!(n))),
        1 => (0..5_u32).prop_map(|n| ("maxLength", json!(n))),
        1 => prop::sample::select(&["a", "^a", "b$", "^[^a]*$", "^.{2}$", "ж|\\d"][..])
            .prop_map(|p| ("pattern", json!(p))),
        1 => Just(("format", json!("date"))),
        1 => (-9_i64..60).prop_map(|n| ("minimum", json!(n))),
        1 => (-9_i64..60).prop_map(|n| ("exclusiveMinimum", json!(n as f64 / 2.0))),
        1 => (-9_i64..120).prop_map(|n| ("maximum", json!(n as f64 / 4.0))),
        1 => (-9_i64..120).prop_map(|n| ("exclusiveMaximum", json!(n))),
        1 => (1_i64..6).prop_map(|n| ("multipleOf", json!(n))),
        1 => (0..3_u32).prop_map(|n| ("minItems", json!(n))),
        1 => (0..4_u32).prop_map(|n| ("maxItems", json!(n))),
        1 => any::<bool>().prop_map(|b| ("uniqueItems", json!(b))),
        1 => (0..3_u32).prop_map(|n| ("minProperties", json!(n))),
        1 => (0..4_u32).prop_map(|n| ("maxProperties", json!(n))),
    ];
    let nested = prop_oneof![
        4 => map().prop_map(|m| ("properties", m)),
        2 => prop::sample::subsequence(&KEYS[..], 0..3).prop_map(|r| ("required", json!(r))),
        2 => inner.clone().prop_map(|s| ("additionalProperties", s)),
        1 => inner.clone().prop_map(|s| ("patternProperties", json!({ "^a": s }))),
        1 => Just(("propertyNames", json!({ "maxLength": 2 }))),
        2 => inner.clone().prop_map(|s| ("items", s)),
        1 => list(1).prop_map(|l| ("prefixItems", json!(l))),
        1 => inner.clone().prop_map(|s| ("contains", s)),
        2 => list(1).prop_map(|l| ("anyOf", json!(l))),
        1 => list(1).prop_map(|l| ("oneOf", json!(l))),
        1 => list(1).prop_map(|l| ("allOf", json!(l))),
        1 => inner.clone().prop_map(|s| ("not", s)),
        1 => inner.clone().prop_map(|s| ("if", s)),
        1 => inner.clone().prop_map(|s| ("then", s)),
        1 => inner.clone().prop_map(|s| ("else", s)),
        1 => map().prop_map(|m| ("dependentSchemas", m)),
    ];
    prop_oneof![3 => simple, 2 => nested].boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        3 => Just(json!({})),
        6 => prop::sample::select(&["integer", "string", "null"][..])
            .prop_map(|t| json!({ "type": t })),
    ]
    .boxed();
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 1..5).prop_map(|keywords| {
            let members: Map<String, Value> = keywords
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            Value::Object(members)
        })
    })
}

/// Whether some object of `value` has more than one member.
fn has_an_order(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_an_order),
        Value::Object(members) => members.len() > 1 || members.values().any(has_an_order),
        _ => false,
    }
}

/// The same schemas every time: a run fails only where something was changed.
fn settings() -> ProptestConfig {
    ProptestConfig {
        cases: 3_000,
        rng_seed: RngSeed::Fixed(20),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn instances_are_told_apart(schema in schema(), values in prop::collection::vec(value(), 12)) {
        let judge_of_values = validator(&schema, true).unwrap();
        let case = Case {
            id: "random".to_owned(),
            schema,
            tests: values
                .into_iter()
                .map(|data| Test { valid: judge_of_values.is_valid(&data), data })
                .collect(),
            formats: true,
        };
        for key_order in [KeyOrder::Schema, KeyOrder::Any] {
            let options = SchemaOptions { key_order, ..SchemaOptions::default() };
            let (judgement, _) = judge(&case, &options);
            match judgement.verdict {
                Verdict::Refused { reason, message } => {
                    prop_assert!(reason.is_sound(), "{}: {message}", case.schema);
                    if let Some(test) = case.tests.iter().find(|test| test.valid) {
                        let (schema, data) = (&case.schema, &test.data);
                        prop_assert!(false, "{schema} is refused ({message}) and admits {data}");
                    }
                }
                Verdict::Compiled(compared) => {
                    for rejection in compared.false_rejections {
                        let data = &case.tests[rejection.test].data;
                        let excused = key_order == KeyOrder::Schema && has_an_order(data);
                        prop_assert!(excused, "{} admits {data} ({key_order:?})", case.schema);
                    }
                    for acceptance in compared.false_acceptances {
                        let data = &case.tests[acceptance.test].data;
                        let reported = acceptance.reported;
                        prop_assert!(reported, "{} bars {data} ({key_order:?})", case.schema);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_written_satisfies(schema in schema()) {
        checks::schema(schema.to_string().as_bytes());
    }
}
