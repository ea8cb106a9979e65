//! The compiler against a validator, the official suite and schemas from the wild.
#![expect(
    clippy::disallowed_methods,
    reason = "where test data lies is the environment's to say"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::*;
use crate::grammar::alphabet::AllBytes;
use crate::grammar::automaton::{Automaton, DEAD_STATE};
use crate::grammar::limits::Limits as EngineLimits;
use crate::grammar::lower::lower;

/// Matches texts without a vocabulary.
pub(super) struct Recogniser(pub(super) Automaton);

impl Recogniser {
    pub(super) fn new(grammar: &Grammar) -> Result<Self, String> {
        let limits = EngineLimits::default();
        let program = lower(grammar, &AllBytes, &limits).map_err(|error| error.to_string())?;
        Automaton::new(program, 64, &limits)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    pub(super) fn accepts(&mut self, text: &str) -> bool {
        self.matched(text).is_none()
    }

    /// How many bytes fit where not all do.
    fn matched(&mut self, text: &str) -> Option<usize> {
        let mut state = self.0.start();
        for (at, byte) in text.bytes().enumerate() {
            state = match self.0.step(state, byte) {
                Ok(state) => state,
                Err(error) => {
                    println!("ENGINE {error}");
                    return Some(at);
                }
            };
            if state == DEAD_STATE {
                return Some(at);
            }
        }
        (!self.0.accepts(state)).then_some(text.len())
    }
}

/// As models write JSON: a space after commas and colons.
pub(super) fn spaced(value: &Value) -> String {
    match literal(value, &SchemaOptions::default()) {
        Expr::Literal(text) => text,
        other => panic!("a literal is one text, not {other:?}"),
    }
}

fn data(folder: &str) -> Option<PathBuf> {
    let base = std::env::var_os("SNAFFLE_TEST_DATA")
        .map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let path = base.join(folder);
    if path.exists() {
        Some(path)
    } else {
        eprintln!("skipped: {} is absent", path.display());
        None
    }
}

#[derive(Default)]
struct Tally {
    schemas: usize,
    refused: BTreeMap<&'static str, usize>,
    perfect: usize,
    with_both: usize,
    perfect_with_both: usize,
    valid: usize,
    valid_accepted: usize,
    schemas_with_false_rejection: usize,
    invalid: usize,
    invalid_rejected: usize,
    unreported: usize,
    times: Vec<Duration>,
}

fn reason(error: &SchemaError) -> &'static str {
    match error {
        SchemaError::Malformed { .. } => "malformed",
        SchemaError::Unsatisfiable { .. } => "unsatisfiable",
        SchemaError::ExternalReference { .. } => "external",
        SchemaError::Limit { .. } => "limit",
    }
}

/// Prints the figures of all data sets; `SNAFFLE_MASKBENCH` names one of them, or `all`;
/// `SNAFFLE_KEY_ORDER=any` takes keys in any order.
#[test]
fn maskbench() {
    let Ok(wanted) = std::env::var("SNAFFLE_MASKBENCH") else {
        eprintln!("skipped: set SNAFFLE_MASKBENCH to all, or to the name of a data set");
        return;
    };
    let Some(folder) = data("maskbench") else {
        return;
    };
    let verbose = std::env::var_os("SNAFFLE_VERBOSE").is_some();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| wanted == "all" || path.file_stem().is_some_and(|stem| *stem == *wanted))
        .collect();
    files.sort();
    let key_order = match std::env::var("SNAFFLE_KEY_ORDER").as_deref() {
        Ok("any") => KeyOrder::Any,
        _ => KeyOrder::Schema,
    };
    let options = SchemaOptions {
        key_order,
        ..SchemaOptions::default()
    };
    let mut total = Tally::default();
    for file in files {
        let mut tally = Tally::default();
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            measure(&case, &options, &mut tally, verbose);
        }
        print(&file.file_stem().unwrap().to_string_lossy(), &mut tally);
        total.absorb(tally);
    }
    print("all", &mut total);
}

fn measure(case: &Value, options: &SchemaOptions, tally: &mut Tally, verbose: bool) {
    let id = case["id"].as_str().unwrap();
    let tests = case["tests"].as_array().unwrap();
    tally.schemas += 1;
    let both = tests.iter().any(|t| t["valid"] == json!(true))
        && tests.iter().any(|t| t["valid"] == json!(false));
    tally.with_both += usize::from(both);
    let start = Instant::now();
    let compiled = compile(&case["schema"], options);
    let time = start.elapsed();
    tally.times.push(time);
    if time > Duration::from_millis(500) {
        println!("SLOW {id} {time:?}");
    }
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            *tally.refused.entry(reason(&error)).or_default() += 1;
            if verbose {
                println!("REFUSED {id} {error}");
            }
            return;
        }
    };
    let mut recogniser = match Recogniser::new(&compiled.grammar) {
        Ok(recogniser) => recogniser,
        Err(error) => {
            *tally.refused.entry("engine").or_default() += 1;
            println!("ENGINE {id} {error}");
            return;
        }
    };
    let (mut false_rejection, mut false_acceptance) = (false, false);
    for test in tests {
        let text = spaced(&test["data"]);
        let matched = recogniser.matched(&text);
        let accepted = matched.is_none();
        if test["valid"] == json!(true) {
            tally.valid += 1;
            tally.valid_accepted += usize::from(accepted);
            if !accepted {
                false_rejection = true;
                if verbose {
                    let at = matched.unwrap_or(0);
                    let from = text.floor_char_boundary(at.saturating_sub(80));
                    let to = text.floor_char_boundary((at + 30).min(text.len()));
                    let middle = text.floor_char_boundary(at);
                    println!(
                        "WRONGLY REJECTED {id} {} <<!>> {}",
                        &text[from..middle],
                        &text[middle..to]
                    );
                }
            }
        } else {
            tally.invalid += 1;
            tally.invalid_rejected += usize::from(!accepted);
            if accepted {
                false_acceptance = true;
                let checked: Vec<String> = compiled
                    .coverage
                    .checked()
                    .map(|entry| format!("{}{}", entry.pointer, entry.keyword))
                    .collect();
                tally.unreported += usize::from(checked.is_empty());
                if verbose {
                    println!(
                        "WRONGLY ACCEPTED {id} {} {:?}",
                        text.chars().take(300).collect::<String>(),
                        &checked[..checked.len().min(4)]
                    );
                }
            }
        }
    }
    tally.schemas_with_false_rejection += usize::from(false_rejection);
    if !false_rejection && !false_acceptance {
        tally.perfect += 1;
        tally.perfect_with_both += usize::from(both);
    }
}

impl Tally {
    fn absorb(&mut self, other: Tally) {
        self.schemas += other.schemas;
        for (reason, count) in other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        self.perfect += other.perfect;
        self.with_both += other.with_both;
        self.perfect_with_both += other.perfect_with_both;
        self.valid += other.valid;
        self.valid_accepted += other.valid_accepted;
        self.schemas_with_false_rejection += other.schemas_with_false_rejection;
        self.invalid += other.invalid;
        self.invalid_rejected += other.invalid_rejected;
        self.unreported += other.unreported;
        self.times.extend(other.times);
    }
}

fn print(name: &str, tally: &mut Tally) {
    tally.times.sort_unstable();
    let at = |part: usize| tally.times[(tally.times.len() - 1) * part / 100];
    println!(
        "{name:16} {} schemas, perfect {} ({:.1}%), of {} with both {:.1}%, refused {:?}, valid {}/{}, in {} schemas rejected wrongly, invalid {}/{} ({} unreported), p50 {:?} p99 {:?} max {:?}",
        tally.schemas,
        tally.perfect,
        tally.perfect as f64 * 100.0 / tally.schemas as f64,
        tally.with_both,
        tally.perfect_with_both as f64 * 100.0 / tally.with_both.max(1) as f64,
        tally.refused,
        tally.valid_accepted,
        tally.valid,
        tally.schemas_with_false_rejection,
        tally.invalid_rejected,
        tally.invalid,
        tally.unreported,
        at(50),
        at(99),
        at(100),
    );
}

type Cases = Vec<(Value, Vec<&'static str>, Vec<&'static str>)>;

/// Schema, texts that match, texts that do not.
fn cases() -> Cases {
    vec![
        (
            json!({}),
            vec!["1", "\"a\"", "[1, {\"a\": null}]", "{}"],
            vec!["", "tru"],
        ),
        (
            json!({"type": "string"}),
            vec!["\"\"", "\"é\\n\""],
            vec!["1", "\"\n\"", "\"\\ud800\""],
        ),
        (
            json!({"type": "string", "minLength": 2, "maxLength": 3}),
            vec!["\"ab\"", "\"日本語\""],
            vec!["\"a\"", "\"abcd\""],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            vec!["\"a\"", "\"aaa\""],
            vec!["\"\"", "\"ab\"", "\"ba\""],
        ),
        (
            json!({"type": "string", "pattern": "b"}),
            vec!["\"b\"", "\"abc\"", "\"\\nb\""],
            vec!["\"\"", "\"ac\""],
        ),
        (
            json!({"type": "string", "pattern": "^(a|bc)*$", "maxLength": 3}),
            vec!["\"\"", "\"abc\""],
            vec!["\"abcbc\"", "\"b\""],
        ),
        (
            json!({"type": "string", "pattern": "^(?!ab)a"}),
            vec!["\"a\"", "\"acb\""],
            vec!["\"ab\"", "\"b\""],
        ),
        (
            json!({"type": "integer", "minimum": 5, "maximum": 123}),
            vec!["5", "9", "10", "99", "100", "123"],
            vec!["4", "124", "05", "1000", "-6"],
        ),
        (
            json!({"type": "integer", "minimum": -20, "exclusiveMaximum": 3}),
            vec!["-20", "-9", "0", "2"],
            vec!["-21", "3", "-0"],
        ),
        (
            json!({"type": "integer", "multipleOf": 7}),
            vec!["0", "7", "-14", "700"],
            vec!["8", "1"],
        ),
        (
            json!({"type": "number", "minimum": 0, "maximum": 1}),
            vec!["0", "1", "0.5", "1.0", "0.001", "1e-05"],
            vec!["1.01", "-0.1", "2"],
        ),
        (
            json!({"type": "number", "exclusiveMinimum": 1.25, "maximum": 1.5}),
            vec!["1.26", "1.251", "1.5", "1.50"],
            vec!["1.25", "1.2", "1.51", "1", "2"],
        ),
        (
            json!({"type": "number", "multipleOf": 0.01}),
            vec!["1", "1.5", "1.25"],
            vec!["1.255"],
        ),
        (
            json!({"enum": [1, "a", null, [1, 2], {"b": true}]}),
            vec!["1", "\"a\"", "null", "[1, 2]", "{\"b\": true}"],
            vec!["2", "[1]", "{}"],
        ),
        (
            json!({"type": ["boolean", "null"]}),
            vec!["true", "null"],
            vec!["1"],
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
            vec!["[1]", "[1, 2]"],
            vec!["[]", "[1, 2, 3]", "[true]"],
        ),
        (
            json!({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false}),
            vec!["[]", "[1]", "[1, 2]"],
            vec!["[2]", "[1, 2, 3]"],
        ),
        (
            json!({"type": "array", "contains": {"const": 1}}),
            vec!["[1]", "[2, 1, 3]"],
            vec!["[]", "[2]"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {}}, "required": ["b"], "additionalProperties": false}),
            vec![
                "{\"b\": 1}",
                "{\"a\": 1, \"b\": 2}",
                "{\"b\": 1, \"c\": []}",
            ],
            vec!["{}", "{\"a\": 1}", "{\"b\": 1, \"d\": 1}"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "null"}}}),
            vec![
                "{}",
                "{\"a\": 1}",
                "{\"c\": null}",
                "{\"a\": 1, \"c\": null}",
                "{\"ab\": \"x\"}",
                "{\"b\": 1, \"\": 2, \"bb\": 3}",
            ],
            vec![
                "{\"a\": \"x\"}",
                "{\"a\": 1, }",
                "{, \"a\": 1}",
                "{\"z\": 1, \"a\": \"x\"}",
            ],
        ),
        (
            json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false}),
            vec!["{}", "{\"x-a\": \"b\"}"],
            vec!["{\"y\": 1}", "{\"x-a\": 1}"],
        ),
        (
            json!({"type": "object", "minProperties": 1, "maxProperties": 2, "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": false}),
            vec!["{\"a\": 1}", "{\"a\": 1, \"c\": 1}"],
            vec!["{}", "{\"a\": 1, \"b\": 1, \"c\": 1}"],
        ),
        (
            json!({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}),
            vec!["{\"ab\": 1}"],
            vec!["{\"A\": 1}"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}),
            vec!["{}", "{\"a\": 1, \"b\": 2}"],
            vec!["{\"a\": 1, \"b\": 2, \"c\": 3}"],
        ),
        (
            json!({"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": false}}, "$ref": "#/$defs/node"}),
            vec!["{}", "{\"next\": {\"next\": {}}}"],
            vec!["{\"next\": 1}"],
        ),
        (
            json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
            vec!["{\"a\": 1, \"b\": \"\"}"],
            vec!["{\"a\": 1}", "{\"a\": 1, \"b\": 1}"],
        ),
        (
            json!({"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}], "properties": {"a": {}, "b": {}}}),
            vec!["{\"a\": 1}", "{\"b\": 1}"],
            vec!["{}", "{\"a\": 1, \"b\": 1}"],
        ),
        (
            json!({"type": "string", "not": {"enum": ["a", "bc"]}}),
            vec!["\"\"", "\"b\"", "\"bcd\"", "\"é\""],
            vec!["\"a\"", "\"bc\""],
        ),
        (
            json!({"type": "object", "properties": {"k": {"enum": ["x", "y"]}, "v": {}}, "required": ["k"], "if": {"properties": {"k": {"const": "x"}}}, "then": {"required": ["v"]}}),
            vec!["{\"k\": \"x\", \"v\": 1}", "{\"k\": \"y\"}"],
            vec!["{\"k\": \"x\"}"],
        ),
        (
            json!({"type": "string", "format": "date"}),
            vec!["\"2024-02-29\""],
            vec!["\"2023-02-29\"", "\"2023-13-01\""],
        ),
        (
            json!({"type": "string", "format": "uri"}),
            vec!["\"http://a.b/c?d#e\"", "\"urn:x:y\""],
            vec!["\"a b\"", "\"//a\""],
        ),
        (
            json!({"type": "string", "format": "ipv6"}),
            vec!["\"::1\"", "\"fe80::1:2\"", "\"1:2:3:4:5:6:7:8\""],
            vec!["\"1:2\"", "\":::\""],
        ),
    ]
}

/// A random text of the grammar.
fn sample(grammar: &Grammar, expr: &Expr, random: &mut StdRng, depth: usize, out: &mut String) {
    match expr {
        Expr::Empty => {}
        Expr::Literal(text) => out.push_str(text),
        Expr::Class(class) => {
            let ranges = class.ranges();
            let (low, high) = ranges[random.random_range(0..ranges.len())];
            // Mostly near the start of the range, where the odd characters are.
            let span = (u32::from(high) - u32::from(low)).min(300);
            let code = u32::from(low) + random.random_range(0..=span);
            out.push(char::from_u32(code).unwrap_or(low));
        }
        Expr::Seq(parts) => parts
            .iter()
            .for_each(|part| sample(grammar, part, random, depth, out)),
        Expr::Alt(parts) => {
            let at = if depth > 40 {
                parts.len() - 1
            } else {
                random.random_range(0..parts.len())
            };
            sample(grammar, &parts[at], random, depth + 1, out);
        }
        Expr::Repeat { expr, min, max } => {
            let more = if depth > 40 {
                0
            } else {
                random.random_range(0..4)
            };
            for _ in 0..min.saturating_add(more).min(max.unwrap_or(u32::MAX)) {
                sample(grammar, expr, random, depth + 1, out);
            }
        }
        Expr::Rule(rule) => sample(grammar, &grammar.rule(*rule).body, random, depth + 1, out),
        Expr::Unordered(set) => {
            let (required, least) = set.shortest(|_| Some(1)).unwrap();
            let mut items: Vec<Option<usize>> = required.into_iter().map(Some).collect();
            items.extend((0..least).map(|_| None));
            for at in 0..set.members.len() {
                if depth < 40 && random.random() && !items.contains(&Some(at)) {
                    items.push(Some(at));
                }
            }
            if depth < 40 && set.others.as_ref().is_some_and(|o| o.guard != Some(0)) {
                items.push(None);
            }
            items.truncate(set.max.map_or(usize::MAX, |max| max as usize));
            items.shuffle(random);
            for (number, item) in items.into_iter().enumerate() {
                if number > 0 {
                    sample(grammar, &set.separator, random, depth + 1, out);
                }
                match item {
                    Some(at) => {
                        out.push_str(&set.members[at].key);
                        sample(grammar, &set.members[at].value, random, depth + 1, out);
                    }
                    None => {
                        let others = set.others.as_ref().unwrap();
                        sample(grammar, &others.item, random, depth + 1, out);
                    }
                }
            }
        }
        Expr::Token { .. } => panic!("schemas name no tokens"),
    }
}

/// Whatever the grammar produces parses and, where nothing is left to check, validates.
#[test]
fn random_texts_validate() {
    let mut random = StdRng::seed_from_u64(7);
    let flexible = Whitespace::Flexible { max: 2 };
    for (schema, _, _) in cases() {
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let ways = [
            (Whitespace::Compact, KeyOrder::Schema),
            (Whitespace::Spaced, KeyOrder::Schema),
            (flexible, KeyOrder::Schema),
            (Whitespace::Spaced, KeyOrder::Any),
            (flexible, KeyOrder::Any),
        ];
        for (whitespace, key_order) in ways {
            let options = SchemaOptions {
                whitespace,
                key_order,
                ..SchemaOptions::default()
            };
            let compiled = compile(&schema, &options).unwrap();
            let grammar = &compiled.grammar;
            for _ in 0..100 {
                let mut text = String::new();
                sample(
                    grammar,
                    &grammar.rule(grammar.root()).body,
                    &mut random,
                    0,
                    &mut text,
                );
                let value: Value = serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{schema}: {text}: {error}"));
                if compiled.coverage.is_complete() {
                    assert!(validator.is_valid(&value), "{schema} does not admit {text}");
                }
            }
        }
    }
}

#[test]
fn table() {
    for (schema, good, bad) in cases() {
        let compiled = compile(&schema, &SchemaOptions::default()).unwrap();
        assert!(
            compiled
                .coverage
                .checked()
                .all(|c| c.keyword == "minProperties" || c.keyword == "maxProperties"),
            "{schema}: {:?}",
            compiled.coverage
        );
        let mut recogniser = Recogniser::new(&compiled.grammar).unwrap();
        for text in good {
            assert!(
                recogniser.accepts(text),
                "{schema} must accept {text}\n{}",
                compiled.grammar
            );
        }
        for text in bad {
            assert!(
                !recogniser.accepts(text),
                "{schema} must reject {text}\n{}",
                compiled.grammar
            );
        }
    }
}

/// The official suite: whatever is invalid and accepted must have been reported as checked.
#[test]
fn official_suite() {
    let Some(folder) = data("json-schema-test-suite") else {
        return;
    };
    let verbose = std::env::var_os("SNAFFLE_VERBOSE").is_some();
    let (mut valid, mut accepted, mut invalid, mut rejected) = (0, 0, 0, 0);
    let mut unreported = Vec::new();
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for (draft, uri) in [
        (
            "draft2020-12",
            "https://json-schema.org/draft/2020-12/schema",
        ),
        ("draft7", "http://json-schema.org/draft-07/schema#"),
    ] {
        for (sub, formats) in [("", false), ("optional/format", true)] {
            let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join(draft).join(sub))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|e| e == "json"))
                .collect();
            files.sort();
            for file in files {
                let text = std::fs::read_to_string(&file).unwrap();
                let groups: Value = serde_json::from_str(&text).unwrap();
                let name = format!(
                    "{draft}/{sub}/{}",
                    file.file_stem().unwrap().to_string_lossy()
                );
                for group in groups.as_array().unwrap() {
                    let mut schema = group["schema"].clone();
                    if let Some(members) = schema.as_object_mut() {
                        members.entry("$schema").or_insert_with(|| json!(uri));
                    }
                    let options = SchemaOptions {
                        formats,
                        ..SchemaOptions::default()
                    };
                    let compiled = match compile(&schema, &options) {
                        Ok(compiled) => compiled,
                        Err(error) => {
                            *refused.entry(reason(&error)).or_default() += 1;
                            if verbose && !matches!(error, SchemaError::ExternalReference { .. }) {
                                println!("REFUSED {name} {} {error}", group["description"]);
                            }
                            continue;
                        }
                    };
                    let mut recogniser = Recogniser::new(&compiled.grammar).unwrap();
                    for test in group["tests"].as_array().unwrap() {
                        let text = spaced(&test["data"]);
                        let fits = recogniser.accepts(&text);
                        if test["valid"] == json!(true) {
                            valid += 1;
                            accepted += usize::from(fits);
                            if verbose && !fits {
                                println!("WRONGLY REJECTED {name} {} {text}", group["description"]);
                            }
                        } else {
                            invalid += 1;
                            rejected += usize::from(!fits);
                            if fits && compiled.coverage.is_complete() {
                                let unknown = compiled
                                    .coverage
                                    .with(Treatment::Annotation)
                                    .any(|entry| entry.keyword == "format");
                                if !unknown {
                                    unreported
                                        .push(format!("{name} {} {text}", group["description"]));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    println!(
        "suite: valid {accepted}/{valid}, invalid {rejected}/{invalid}, refused {refused:?}, unreported {}",
        unreported.len()
    );
    if verbose {
        for line in &unreported {
            println!("UNREPORTED {line}");
        }
    }
    assert!(
        accepted * 100 >= valid * 90,
        "{accepted} of {valid} accepted"
    );
    assert!(
        rejected * 100 >= invalid * 80,
        "{rejected} of {invalid} rejected"
    );
}

#[test]
fn hostile_schemas_end_in_bounded_time() {
    let mut deep = json!({});
    for _ in 0..100_000 {
        deep = Value::Object([("not".to_owned(), deep)].into_iter().collect());
    }
    let refusal = compile(&deep, &SchemaOptions::default()).unwrap_err();
    // Dropping it would overflow the stack: that is the caller's to avoid.
    std::mem::forget(deep);
    assert!(matches!(refusal, SchemaError::Limit { .. }), "{refusal}");

    let many: Vec<String> = (0..10_000).map(|n| format!("value {n}")).collect();
    let branches: Vec<Value> = (0..5)
        .map(|n| json!({"required": [format!("p{n}")]}))
        .collect();
    let blow_up: Vec<Value> = (0..24).map(|_| json!({"anyOf": branches})).collect();
    let wide: serde_json::Map<String, Value> = (0..2_000)
        .map(|n| (format!("property{n}"), json!({"type": "integer"})))
        .collect();
    let fine = [
        json!({"enum": many}),
        json!({"not": {"enum": many}, "type": "string"}),
        json!({"type": "string", "maxLength": 1_000_000_000u64}),
        json!({"type": "string", "pattern": "^(a|aa)*b.{1000}c.{1000}$", "maxLength": 1_000_000}),
        json!({"type": "string", "pattern": "^((x{1000}){1000}){1000}$"}),
        json!({"type": "string", "pattern": "(a|b)*a(a|b){40}$", "minLength": 3}),
        json!({"allOf": blow_up}),
        json!({"type": "object", "properties": wide}),
        json!({"type": "object", "properties": wide, "minProperties": 3, "additionalProperties": false}),
        json!({"type": "object", "properties": {"\"\\\u{0}": {}, "🦀": {"type": "null"}, "": {}}, "required": ["\"\\\u{0}"]}),
        json!({"type": "integer", "minimum": -1e300, "maximum": 1e300}),
        json!({"type": "number", "minimum": 1e-300, "maximum": 1e300}),
    ];
    for schema in fine {
        let start = Instant::now();
        let shown: String = schema.to_string().chars().take(80).collect();
        let result = compile(&schema, &SchemaOptions::default());
        assert!(result.is_ok(), "{shown}: {:?}", result.err());
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{shown} took {:?}",
            start.elapsed()
        );
    }
    let refused = [
        (json!({"$ref": "#"}), "malformed"),
        (json!({"allOf": [{"$ref": "#"}]}), "malformed"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "malformed",
        ),
        (json!({"$ref": "#/nowhere"}), "malformed"),
        (json!({"$ref": "http://example.com/x.json"}), "external"),
        (json!(false), "unsatisfiable"),
        (
            json!({"type": "string", "minLength": 3, "maxLength": 2}),
            "unsatisfiable",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
            "unsatisfiable",
        ),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 2}),
            "unsatisfiable",
        ),
        (json!({"type": "string", "pattern": "("}), "malformed"),
        (json!({"type": "text"}), "malformed"),
        (json!({"type": "array", "minItems": 1u64 << 40}), "limit"),
    ];
    for (schema, expected) in refused {
        match compile(&schema, &SchemaOptions::default()) {
            Ok(_) => panic!("{schema} must be refused"),
            Err(error) => assert_eq!(reason(&error), expected, "{schema}: {error}"),
        }
    }
}
