//! One correct call of a tool, for hints: made from its live values and its schema, kept as near
//! as possible to what was tried, and always validated.

use super::arguments::ArgumentSchema;
use super::json::{same_value, spaced};
use super::moves::Move;
use super::relevance::Grams;
use super::reply::Call;
use crate::grammar::ast::{CharClass, Expr, Grammar, RuleId};
use crate::grammar::schema::{SchemaOptions, compile};
use serde_json::{Map, Value, json};

/// How deep examples follow nested schemas.
const DEPTH: usize = 8;
/// Bytes of the longest value that is made up.
const LONGEST: u64 = 4096;

/// A correct call of this tool; `None` where none can be made up.
pub fn example_call(legal: &Move) -> Option<Call> {
    let schema = ArgumentSchema::new(&legal.spec).ok()?;
    near(legal, &schema, None)
}

/// As [`example_call`], keeping what is right in `tried`: its arguments are corrected one by one.
pub fn near(legal: &Move, schema: &ArgumentSchema, tried: Option<&Call>) -> Option<Call> {
    let maker = Maker { legal, schema };
    tried
        .and_then(|tried| maker.call(&tried.arguments))
        .or_else(|| maker.call(&Map::new()))
}

struct Maker<'m> {
    legal: &'m Move,
    schema: &'m ArgumentSchema,
}

impl Maker<'_> {
    fn call(&self, tried: &Map<String, Value>) -> Option<Call> {
        let root = &self.legal.spec.parameters;
        let declared = root.get("properties").and_then(Value::as_object);
        let mut arguments = Map::new();
        let required = root.get("required").and_then(Value::as_array);
        let names = declared.into_iter().flat_map(Map::keys).chain(
            required
                .into_iter()
                .flatten()
                .filter_map(|name| match name {
                    Value::String(name) => Some(name),
                    _ => None,
                })
                .filter(|name| declared.is_none_or(|declared| !declared.contains_key(*name))),
        );
        for name in names {
            let tried = tried.get(name);
            if tried.is_none() && !self.legal.spec.requires(name) {
                continue;
            }
            match self.value(name, tried) {
                Some(value) => {
                    arguments.insert(name.clone(), value);
                }
                None if self.legal.spec.requires(name) => return None,
                None => {}
            }
        }
        self.schema.check(&arguments).ok()?;
        Some(Call {
            tool: self.legal.spec.name.clone(),
            arguments,
        })
    }

    /// A value for an argument: the tried one where it is right, else the nearest live value, else
    /// one that the schema suggests, else the shortest that its grammar matches.
    fn value(&self, name: &str, tried: Option<&Value>) -> Option<Value> {
        if let Some(live) = self.legal.domains.get(name) {
            return self.live(name, live, tried);
        }
        if let Some(tried) = tried.filter(|tried| !self.schema.forbids(name, tried)) {
            return Some(tried.clone());
        }
        let root = &self.legal.spec.parameters;
        let property = root.get("properties").and_then(|p| p.get(name));
        let property = property.unwrap_or(&Value::Bool(true));
        suggestions(root, property, DEPTH)
            .into_iter()
            .chain(std::iter::once_with(|| shortest_value(root, property)).flatten())
            .find(|value| !self.schema.forbids(name, value))
    }

    fn live(&self, name: &str, live: &[Value], tried: Option<&Value>) -> Option<Value> {
        let mut allowed = live.iter().filter(|live| !self.schema.forbids(name, live));
        let Some(tried) = tried else {
            return allowed.next().cloned();
        };
        let meant = Grams::of(&spaced(tried));
        let mut best: Option<(f64, &Value)> = None;
        for value in allowed {
            let likeness = if same_value(value, tried) {
                f64::INFINITY
            } else {
                Grams::of(&spaced(value)).similarity(&meant)
            };
            if best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, value));
            }
        }
        best.map(|(_, value)| value.clone())
    }
}

/// Values that a schema suggests, the most telling first. They still have to be validated.
fn suggestions(root: &Value, schema: &Value, depth: usize) -> Vec<Value> {
    let Some(depth) = depth.checked_sub(1) else {
        return Vec::new();
    };
    let Some(object) = schema.as_object() else {
        return vec![json!("text")];
    };
    let mut values = Vec::new();
    for keyword in ["const", "default"] {
        values.extend(object.get(keyword).cloned());
    }
    for keyword in ["examples", "enum"] {
        if let Some(list) = object.get(keyword).and_then(Value::as_array) {
            values.extend(list.first().cloned());
        }
    }
    if let Some(target) = object
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix('#'))
        .and_then(|pointer| root.pointer(pointer))
    {
        values.extend(suggestions(root, target, depth));
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for branch in object
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            values.extend(suggestions(root, branch, depth));
        }
    }
    let types: Vec<&str> = match object.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for kind in types {
        match kind {
            "string" => values.extend(string(object)),
            "integer" | "number" => values.extend(number(object)),
            "boolean" => values.push(json!(true)),
            "null" => values.push(Value::Null),
            "array" => {
                let least = object.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                let item = object.get("items").unwrap_or(&Value::Bool(true));
                let count = usize::try_from(least.max(1)).unwrap_or(usize::MAX).min(16);
                if let Some(item) = suggestions(root, item, depth).into_iter().next() {
                    values.push(Value::Array(vec![item; count]));
                }
            }
            "object" => values.push(members(root, object, depth)),
            _ => {}
        }
    }
    values
}

fn members(root: &Value, schema: &Map<String, Value>, depth: usize) -> Value {
    let mut members = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let property = schema.get("properties").and_then(|p| p.get(name));
        let property = property.unwrap_or(&Value::Bool(true));
        if let Some(value) = suggestions(root, property, depth).into_iter().next() {
            members.insert(name.to_owned(), value);
        }
    }
    Value::Object(members)
}

fn string(schema: &Map<String, Value>) -> Vec<Value> {
    let by_format = match schema.get("format").and_then(Value::as_str) {
        Some("date") => Some("2026-01-31"),
        Some("time") => Some("12:30:00Z"),
        Some("date-time") => Some("2026-01-31T12:30:00Z"),
        Some("duration") => Some("PT1H"),
        Some("email" | "idn-email") => Some("name@example.org"),
        Some("hostname" | "idn-hostname") => Some("example.org"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        Some("uri" | "iri" | "uri-reference" | "iri-reference") => Some("https://example.org/"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        _ => None,
    };
    let size = |keyword| schema.get(keyword).and_then(Value::as_u64);
    let least = size("minLength").unwrap_or(0).min(LONGEST);
    let most = size("maxLength").unwrap_or(u64::MAX);
    let text: String = "text "
        .chars()
        .cycle()
        .take(usize::try_from(least.max(4).min(most)).unwrap_or(0))
        .collect();
    by_format
        .map(Value::from)
        .into_iter()
        .chain([Value::from(text)])
        .collect()
}

/// The middle of the range where it has two ends, else 1 or the end it has.
fn number(schema: &Map<String, Value>) -> Vec<Value> {
    let bound = |keyword| schema.get(keyword).and_then(Value::as_f64);
    let low = bound("minimum").or(bound("exclusiveMinimum").map(|low| low + 1.0));
    let high = bound("maximum").or(bound("exclusiveMaximum").map(|high| high - 1.0));
    let middle = match (low, high) {
        (Some(low), Some(high)) => f64::midpoint(low, high).floor().max(low),
        (Some(low), None) => low.ceil().max(1.0),
        (None, Some(high)) => high.floor().min(1.0),
        (None, None) => 1.0,
    };
    let steps = bound("multipleOf").filter(|step| *step > 0.0).map(|step| {
        [
            (middle / step).floor() * step,
            (middle / step).ceil() * step,
        ]
    });
    steps
        .into_iter()
        .flatten()
        .map(Some)
        .chain([Some(middle), low, high])
        .flatten()
        .filter_map(whole_or_float)
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers within i64's exact range are converted"
)]
fn whole_or_float(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        Some(Value::from(number as i64))
    } else {
        serde_json::Number::from_f64(number).map(Value::Number)
    }
}

/// The value with the shortest text that the schema's grammar matches.
fn shortest_value(root: &Value, property: &Value) -> Option<Value> {
    let mut schema = match property {
        Value::Object(object) => object.clone(),
        _ => Map::new(),
    };
    for keyword in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(keyword) {
            schema.insert(keyword.into(), definitions.clone());
        }
    }
    let compiled = compile(&Value::Object(schema), &SchemaOptions::default()).ok()?;
    serde_json::from_str(&shortest_text(&compiled.grammar)?).ok()
}

/// A shortest text that a grammar matches, where it has one of at most [`LONGEST`] bytes.
fn shortest_text(grammar: &Grammar) -> Option<String> {
    let mut lengths: Vec<Option<u64>> = vec![None; grammar.rules().len()];
    loop {
        let mut changed = false;
        for (at, rule) in grammar.rules().iter().enumerate() {
            let length = length(&rule.body, &lengths);
            if length != lengths[at] && length.is_some() {
                lengths[at] = length;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    if lengths[grammar.root().0 as usize].is_none_or(|length| length > LONGEST) {
        return None;
    }
    let mut text = String::new();
    write_rule(grammar, grammar.root(), &lengths, &mut text);
    Some(text)
}

fn length(expr: &Expr, rules: &[Option<u64>]) -> Option<u64> {
    match expr {
        Expr::Empty | Expr::Repeat { min: 0, .. } => Some(0),
        Expr::Literal(text) => Some(text.len() as u64),
        Expr::Class(class) => pick(class).map(|c| c.len_utf8() as u64),
        Expr::Seq(parts) => parts
            .iter()
            .map(|part| length(part, rules))
            .try_fold(0u64, |sum, length| Some(sum.saturating_add(length?))),
        Expr::Alt(parts) => parts.iter().filter_map(|part| length(part, rules)).min(),
        Expr::Repeat { expr, min, .. } => {
            Some(length(expr, rules)?.saturating_mul(u64::from(*min)))
        }
        Expr::Unordered(set) => {
            let (members, others) = set.shortest(|part| length(part, rules))?;
            let items = members.len() as u64 + u64::from(others);
            let mut sum = match items {
                0 | 1 => 0,
                _ => length(&set.separator, rules)?.saturating_mul(items - 1),
            };
            for at in members {
                let member = &set.members[at];
                let value = length(&member.value, rules)?;
                sum = sum.saturating_add(member.key.len() as u64 + value);
            }
            if let Some(other) = set.others.as_ref().filter(|_| others > 0) {
                let item = length(&other.item, rules)?;
                sum = sum.saturating_add(item.saturating_mul(u64::from(others)));
            }
            Some(sum)
        }
        Expr::Rule(id) => rules.get(id.0 as usize).copied().flatten(),
        Expr::Token { .. } => None,
    }
}

fn write_rule(grammar: &Grammar, id: RuleId, lengths: &[Option<u64>], out: &mut String) {
    write(grammar, &grammar.rule(id).body, lengths, out);
}

fn write(grammar: &Grammar, expr: &Expr, lengths: &[Option<u64>], out: &mut String) {
    match expr {
        Expr::Empty | Expr::Token { .. } => {}
        Expr::Literal(text) => out.push_str(text),
        Expr::Class(class) => out.extend(pick(class)),
        Expr::Seq(parts) => {
            for part in parts {
                write(grammar, part, lengths, out);
            }
        }
        Expr::Alt(parts) => {
            let shortest = parts
                .iter()
                .filter_map(|part| Some((length(part, lengths)?, part)))
                .min_by_key(|(length, _)| *length);
            if let Some((_, part)) = shortest {
                write(grammar, part, lengths, out);
            }
        }
        Expr::Repeat { expr, min, .. } => {
            for _ in 0..*min {
                write(grammar, expr, lengths, out);
            }
        }
        Expr::Unordered(set) => {
            let Some((members, others)) = set.shortest(|part| length(part, lengths)) else {
                return;
            };
            let count = members.len() + others as usize;
            for number in 0..count {
                if number > 0 {
                    write(grammar, &set.separator, lengths, out);
                }
                match members.get(number) {
                    Some(&at) => {
                        out.push_str(&set.members[at].key);
                        write(grammar, &set.members[at].value, lengths, out);
                    }
                    None => {
                        if let Some(others) = &set.others {
                            write(grammar, &others.item, lengths, out);
                        }
                    }
                }
            }
        }
        Expr::Rule(id) => write_rule(grammar, *id, lengths, out),
    }
}

/// A readable member of a class.
fn pick(class: &CharClass) -> Option<char> {
    ['a', 'A', '1', '0', ' ']
        .into_iter()
        .find(|&c| class.contains(c))
        .or_else(|| class.ranges().first().map(|&(first, _)| first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Domains, Effect, Permission, ToolSpec};
    use std::sync::Arc;

    fn legal(parameters: Value, domains: Domains) -> Move {
        Move {
            spec: Arc::new(ToolSpec {
                name: "t".into(),
                description: String::new(),
                parameters,
                effect: Effect::Read,
                idempotent: true,
            }),
            domains,
            permission: Permission::Allow,
        }
    }

    #[test]
    fn examples_come_from_the_schema() {
        let cases = [
            (
                json!({"type": "integer", "minimum": 0, "maximum": 100}),
                json!(50),
            ),
            (
                json!({"type": "number", "minimum": 5, "maximum": 30}),
                json!(17),
            ),
            (
                json!({"type": "integer", "minimum": 7, "multipleOf": 5}),
                json!(10),
            ),
            (
                json!({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}),
                json!(0.5),
            ),
            (json!({"type": "string"}), json!("text")),
            (json!({"type": "string", "minLength": 7}), json!("text te")),
            (json!({"type": "string", "maxLength": 2}), json!("te")),
            (
                json!({"type": "string", "format": "email"}),
                json!("name@example.org"),
            ),
            (
                json!({"type": "string", "format": "date"}),
                json!("2026-01-31"),
            ),
            (json!({"enum": ["heat", "cool"]}), json!("heat")),
            (json!({"const": {"a": 1}}), json!({"a": 1})),
            (json!({"type": "boolean"}), json!(true)),
            (json!({"$ref": "#/$defs/mode"}), json!("x")),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
                json!(null),
            ),
            (
                json!({"type": "array", "items": {"type": "string"}, "minItems": 2}),
                json!(["text", "text"]),
            ),
            (
                json!({
                    "type": "object",
                    "properties": {"n": {"type": "integer"}, "o": {"type": "string"}},
                    "required": ["n"],
                }),
                json!({"n": 1}),
            ),
        ];
        for (schema, expected) in cases {
            let legal = legal(
                json!({
                    "type": "object",
                    "properties": {"v": schema, "optional": {"type": "string"}},
                    "required": ["v"],
                    "$defs": {"mode": {"enum": ["x"]}},
                }),
                Domains::new(),
            );
            let call = example_call(&legal).unwrap_or_else(|| panic!("none for {schema}"));
            assert_eq!(call, Call::new("t", [("v", expected)]));
        }
    }

    #[test]
    fn what_was_right_stays_and_what_was_near_is_found() {
        let live = vec![json!("hall lamp"), json!("kitchen light")];
        let legal = legal(
            json!({
                "type": "object",
                "properties": {
                    "device": {"type": "string"},
                    "level": {"type": "integer", "maximum": 100},
                },
                "required": ["device", "level"],
            }),
            Domains::from([("device".to_owned(), live)]),
        );
        let schema = ArgumentSchema::new(&legal.spec).unwrap();
        let cases = [
            (
                json!({"device": "kitchenlight", "level": 7}),
                json!({"device": "kitchen light", "level": 7}),
            ),
            (
                json!({"level": "7"}),
                json!({"device": "hall lamp", "level": 1}),
            ),
            (
                json!({"device": "kitchen light", "lvl": 7}),
                json!({"device": "kitchen light", "level": 1}),
            ),
        ];
        for (tried, expected) in cases {
            let tried = Call::new("t", tried.as_object().unwrap().clone());
            let call = near(&legal, &schema, Some(&tried)).unwrap();
            assert_eq!(Value::Object(call.arguments), expected);
        }
    }

    #[test]
    fn shortest_texts_are_found_through_recursion() {
        use crate::grammar::ast::GrammarBuilder;
        let mut builder = GrammarBuilder::new();
        let root = builder.reserve("root");
        builder.define(
            root,
            Expr::alt([
                Expr::seq([Expr::literal("("), Expr::Rule(root), Expr::literal(")")]),
                Expr::repeat(Expr::Class(CharClass::from_ranges([('x', 'z')])), 3, None),
            ]),
        );
        assert_eq!(shortest_text(&builder.finish(root)).as_deref(), Some("xxx"));
        let mut builder = GrammarBuilder::new();
        let root = builder.reserve("root");
        builder.define(root, Expr::Rule(root));
        assert_eq!(shortest_text(&builder.finish(root)), None);
    }
}
