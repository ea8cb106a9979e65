//! The grammar of one turn: everything that can be said now, and nothing else.
//!
//! A turn is one JSON object: `{"calls": [{"tool": …, "arguments": {…}}]}` with one to `n` calls,
//! `{"ask": …}`, or `{"answer": …}`. Each tool is a rule. An argument with live values is an
//! enumeration of them, in a rule that tools with the same values share and that is marked
//! volatile: it changes from turn to turn, and what is remembered for the rest of the grammar
//! outlives it.

use super::arguments::{ArgumentSchema, SpecError, escaped};
use super::json::quoted;
use super::moves::{Move, Moves};
use super::spec::Domains;
use crate::grammar::ast::{CharClass, Expr, Grammar, GrammarBuilder, RuleId};
use crate::grammar::schema::{
    Bounds, CoverageEntry, SchemaError, SchemaOptions, Treatment, Whitespace, compile_into, literal,
};
use serde_json::{Map, Value, json};

/// Choices in how a turn is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnOptions {
    /// Characters of the longest question or answer, at least 1.
    pub max_text: u32,
    /// How arguments' schemas are compiled. The turn's own spelling is spaced.
    pub schema: SchemaOptions,
}

impl Default for TurnOptions {
    /// Questions and answers of 400 characters; bounds on numbers, strings and lists of which a
    /// tool call in earnest stays clear and in which a small model's runaway repetition ends.
    fn default() -> Self {
        Self {
            max_text: 400,
            schema: SchemaOptions {
                whitespace: Whitespace::Spaced,
                additional_properties: false,
                bounds: Bounds {
                    string: Some(2_000),
                    items: Some(32),
                    properties: Some(16),
                    integer_digits: Some(16),
                    fraction_digits: Some(6),
                    exponent_digits: Some(2),
                },
                ..SchemaOptions::default()
            },
        }
    }
}

/// What became of the keywords of one tool's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCoverage {
    /// The tool.
    pub tool: String,
    /// Keyword by keyword; pointers lead into the tool's parameters.
    pub entries: Vec<CoverageEntry>,
}

impl ToolCoverage {
    /// What the grammar cannot say and the gate checks.
    pub fn checked(&self) -> impl Iterator<Item = &CoverageEntry> {
        self.entries
            .iter()
            .filter(|entry| entry.treatment == Treatment::Checked)
    }
}

/// The grammar of a turn, and what it does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnGrammar {
    /// Its root matches one turn.
    pub grammar: Grammar,
    /// One report a tool, in the order of the moves.
    pub coverage: Vec<ToolCoverage>,
    /// Tools left out because their schema forbids every live value of a required argument.
    pub left_out: Vec<String>,
}

/// Why there is no grammar for a turn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TurnError {
    /// A tool's schema was refused.
    #[error("tool `{tool}`: {source}")]
    Schema {
        /// The tool.
        tool: String,
        /// Why.
        source: SchemaError,
    },
    /// A tool's schema is none.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Nothing is legal.
    #[error(
        "nothing can be said in this turn: no tool can be called, and neither asking nor answering is allowed"
    )]
    Nothing,
}

/// Compiles the legal moves of a turn. The same moves give the same grammar, rule for rule.
///
/// # Errors
/// A schema that is refused, or a turn in which nothing is legal.
pub fn turn_grammar(moves: &Moves, options: &TurnOptions) -> Result<TurnGrammar, TurnError> {
    let mut compiler = Compiler {
        builder: GrammarBuilder::new(),
        options,
        lists: Vec::new(),
        text: None,
    };
    let root = compiler.builder.reserve("root");
    let mut coverage = Vec::new();
    let mut left_out = Vec::new();
    let mut tools = Vec::new();
    for legal in &moves.moves {
        let domains = allowed(legal)?;
        let possible = Move {
            spec: legal.spec.clone(),
            domains,
            permission: legal.permission,
        };
        if possible.impossible().is_some() {
            left_out.push(legal.spec.name.clone());
            continue;
        }
        let (rule, entries) = compiler.tool(&possible)?;
        tools.push(Expr::Rule(rule));
        coverage.push(ToolCoverage {
            tool: legal.spec.name.clone(),
            entries,
        });
    }
    let mut turns = Vec::new();
    if !tools.is_empty() {
        let rule = compiler.calls(tools, moves.max_calls);
        turns.push(Expr::Rule(rule));
    }
    for (key, legal) in [("ask", moves.ask), ("answer", moves.answer)] {
        if legal {
            let text = compiler.text();
            let body = seq([
                Expr::literal(format!("{{\"{key}\": ")),
                Expr::Rule(text),
                Expr::literal("}"),
            ]);
            turns.push(Expr::Rule(compiler.builder.add(key, body)));
        }
    }
    if turns.is_empty() {
        return Err(TurnError::Nothing);
    }
    compiler.builder.define(root, Expr::alt(turns));
    Ok(TurnGrammar {
        grammar: compiler.builder.finish(root),
        coverage,
        left_out,
    })
}

/// The live values without those that the tool's schema forbids.
fn allowed(legal: &Move) -> Result<Domains, SpecError> {
    // The usual case needs no validator: texts for an argument that is any text.
    let any_text = legal.domains.iter().all(|(argument, values)| {
        let schema = legal
            .spec
            .parameters
            .get("properties")
            .and_then(|properties| properties.get(argument))
            .and_then(Value::as_object);
        values.iter().all(Value::is_string)
            && schema.is_some_and(|schema| {
                schema.get("type").is_some_and(|kind| kind == "string")
                    && schema
                        .keys()
                        .all(|key| matches!(key.as_str(), "type" | "description" | "title"))
            })
            && !legal.spec.parameters.as_object().is_some_and(is_involved)
    });
    if any_text {
        Ok(legal.domains.clone())
    } else {
        Ok(ArgumentSchema::new(&legal.spec)?.allowed(&legal.domains))
    }
}

/// Whether an object schema says more than which members there are, so that the schema compiler
/// must see it as a whole.
fn is_involved(root: &Map<String, Value>) -> bool {
    let plain = [
        "type",
        "properties",
        "required",
        "$defs",
        "definitions",
        "$schema",
        "$id",
        "$comment",
        "title",
        "description",
        "examples",
        "default",
    ];
    let closed = root
        .get("additionalProperties")
        .is_none_or(|value| value == false);
    let undeclared = root
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|required| {
            required.iter().filter_map(Value::as_str).any(|name| {
                root.get("properties")
                    .and_then(|properties| properties.get(name))
                    .is_none()
            })
        });
    !closed
        || undeclared
        || root
            .get("$id")
            .is_some_and(|_| has_reference(root, |_| true))
        || has_reference(root, |target| {
            !target.starts_with("#/$defs/") && !target.starts_with("#/definitions/")
        })
        || root
            .keys()
            .any(|key| key != "additionalProperties" && !plain.contains(&key.as_str()))
}

/// Whether some `$ref` in the schema leads to such a target, or is of a kind that depends on where
/// it stands.
fn has_reference(root: &Map<String, Value>, such: impl Fn(&str) -> bool + Copy) -> bool {
    root.iter().any(|(key, value)| {
        let here = match (key.as_str(), value) {
            ("$ref", Value::String(target)) => such(target),
            ("$dynamicRef" | "$recursiveRef", Value::String(_)) => true,
            _ => false,
        };
        here || values_of(value).any(|object| has_reference(object, such))
    })
}

/// The objects that `value` is or has as items, however nested the lists.
fn values_of(value: &Value) -> Box<dyn Iterator<Item = &Map<String, Value>> + '_> {
    match value {
        Value::Object(object) => Box::new(std::iter::once(object)),
        Value::Array(items) => Box::new(items.iter().flat_map(values_of)),
        _ => Box::new(std::iter::empty()),
    }
}

struct Compiler<'o> {
    builder: GrammarBuilder,
    options: &'o TurnOptions,
    /// Lists of live values that already have a rule.
    lists: Vec<(Vec<Value>, RuleId)>,
    /// The rule of a question's or an answer's text, where there is one already.
    text: Option<RuleId>,
}

impl Compiler<'_> {
    /// `{"calls": [call, …]}`.
    fn calls(&mut self, tools: Vec<Expr>, max_calls: usize) -> RuleId {
        let call = self.builder.add("call", Expr::alt(tools));
        let more = u32::try_from(max_calls.saturating_sub(1)).unwrap_or(u32::MAX);
        let mut parts = vec![Expr::literal("{\"calls\": ["), Expr::Rule(call)];
        if more > 0 {
            parts.push(Expr::repeat(
                seq([Expr::literal(", "), Expr::Rule(call)]),
                0,
                Some(more),
            ));
        }
        parts.push(Expr::literal("]}"));
        self.builder.add("calls", seq(parts))
    }

    /// `{"tool": "…", "arguments": …}`.
    fn tool(&mut self, legal: &Move) -> Result<(RuleId, Vec<CoverageEntry>), TurnError> {
        let spec = &legal.spec;
        let rule = self.builder.reserve(&format!("tool-{}", spec.name));
        let refused = |source| TurnError::Schema {
            tool: spec.name.clone(),
            source,
        };
        let empty = Map::new();
        let root = spec.parameters.as_object().unwrap_or(&empty);
        let (arguments, entries) = if is_involved(root) {
            self.involved(&spec.name, root, &legal.domains)
        } else {
            self.plain(&spec.name, root, &legal.domains)
        }
        .map_err(refused)?;
        let body = seq([
            Expr::literal(format!(
                "{{\"tool\": {}, \"arguments\": ",
                quoted(&spec.name)
            )),
            arguments,
            Expr::literal("}"),
        ]);
        self.builder.define(rule, body);
        Ok((rule, entries))
    }

    /// Arguments of an object schema that only lists its members: each member's schema is
    /// compiled alone, and live values take a member's place.
    fn plain(
        &mut self,
        tool: &str,
        root: &Map<String, Value>,
        domains: &Domains,
    ) -> Result<(Expr, Vec<CoverageEntry>), SchemaError> {
        let mut entries: Vec<CoverageEntry> = ["type", "properties", "required"]
            .into_iter()
            .filter(|keyword| root.contains_key(*keyword))
            .map(enforced)
            .collect();
        entries.push(enforced("additionalProperties"));
        let required: Vec<&str> = root
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut members = Vec::new();
        let properties = root.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let needed = required.contains(&name.as_str());
            let value = match domains.get(name) {
                Some(values) if values.is_empty() && !needed => continue,
                Some(values) => self.list(name, values),
                None => {
                    let schema = with_definitions(schema, root);
                    let hint = format!("{tool}-{name}");
                    let (rule, coverage) =
                        compile_into(&mut self.builder, &schema, &self.options.schema, &hint)?;
                    entries.extend(coverage.entries().iter().map(|entry| {
                        let mut entry = entry.clone();
                        if !is_definition(&entry.pointer) {
                            entry.pointer =
                                format!("/properties/{}{}", escaped(name), entry.pointer);
                        }
                        entry
                    }));
                    rule
                }
            };
            members.push(Member {
                text: seq([
                    Expr::literal(format!("{}: ", quoted(name))),
                    Expr::Rule(value),
                ]),
                needed,
            });
        }
        let body = self.members(tool, &members);
        Ok((seq([Expr::literal("{"), body, Expr::literal("}")]), entries))
    }

    /// Arguments of any other schema: live values become an `enum` in it, and the schema compiler
    /// does the rest.
    fn involved(
        &mut self,
        tool: &str,
        root: &Map<String, Value>,
        domains: &Domains,
    ) -> Result<(Expr, Vec<CoverageEntry>), SchemaError> {
        let mut schema = root.clone();
        schema.entry("type").or_insert_with(|| json!("object"));
        if !domains.is_empty() {
            let properties = schema.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                for (name, values) in domains {
                    let live = if values.is_empty() {
                        Value::Bool(false)
                    } else {
                        json!({ "enum": values })
                    };
                    properties.insert(name.clone(), live);
                }
            }
        }
        let hint = format!("{tool}-arguments");
        let (rule, coverage) = compile_into(
            &mut self.builder,
            &Value::Object(schema),
            &self.options.schema,
            &hint,
        )?;
        Ok((Expr::Rule(rule), coverage.entries().to_vec()))
    }

    /// The members of an object in this order, those that are not needed optional.
    fn members(&mut self, tool: &str, members: &[Member]) -> Expr {
        // Up to the first member that must be there, any of them can be the first one written.
        let fixed = members.iter().position(|member| member.needed);
        let candidates = fixed.map_or(members.len(), |at| at + 1);
        let mut firsts = Vec::new();
        // Tails shared by several alternatives become rules, so that the whole stays linear.
        let mut tail = None;
        for at in (0..candidates).rev() {
            let rest = match tail.take() {
                None => seq(members.iter().skip(at + 1).map(following)),
                Some(rule) => Expr::Rule(rule),
            };
            if at > 0 {
                let body = seq([following(&members[at]), rest.clone()]);
                let hint = format!("{tool}-rest");
                tail = Some(self.builder.add(&hint, body));
            }
            firsts.push(seq([members[at].text.clone(), rest]));
        }
        firsts.reverse();
        if fixed.is_none() {
            firsts.push(Expr::Empty);
        }
        Expr::alt(firsts)
    }

    /// The rule of these live values.
    fn list(&mut self, argument: &str, values: &[Value]) -> RuleId {
        if let Some((_, rule)) = self.lists.iter().find(|(known, _)| known == values) {
            return *rule;
        }
        let alternatives = values
            .iter()
            .map(|value| literal(value, &self.options.schema));
        let body = Expr::alt(alternatives);
        let rule = self.builder.add(&format!("live-{argument}"), body);
        self.builder.rule_mut(rule).volatile = true;
        self.lists.push((values.to_vec(), rule));
        rule
    }

    /// A JSON string that a person can read: not blank, no control characters, bounded.
    fn text(&mut self) -> RuleId {
        if let Some(rule) = self.text {
            return rule;
        }
        let first = Expr::alt([
            Expr::Class(printable(false)),
            Expr::literal("\\\""),
            Expr::literal("\\\\"),
        ]);
        let next = Expr::alt([
            Expr::Class(printable(true)),
            Expr::literal("\\\""),
            Expr::literal("\\\\"),
            Expr::literal("\\n"),
        ]);
        let body = seq([
            Expr::literal("\""),
            first,
            Expr::repeat(next, 0, Some(self.options.max_text.saturating_sub(1))),
            Expr::literal("\""),
        ]);
        let rule = self.builder.add("text", body);
        self.text = Some(rule);
        rule
    }
}

/// A sequence with its neighbouring literals joined, however it was put together.
fn seq(parts: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::seq(parts.into_iter().flat_map(|part| match part {
        Expr::Seq(inner) => inner,
        other => vec![other],
    }))
}

/// A member of the arguments.
struct Member {
    text: Expr,
    needed: bool,
}

/// A member after another one.
fn following(member: &Member) -> Expr {
    let text = seq([Expr::literal(", "), member.text.clone()]);
    if member.needed {
        text
    } else {
        Expr::optional(text)
    }
}

fn enforced(keyword: &str) -> CoverageEntry {
    CoverageEntry {
        keyword: keyword.to_owned(),
        pointer: String::new(),
        treatment: Treatment::Enforced,
        note: None,
    }
}

fn is_definition(pointer: &str) -> bool {
    pointer.starts_with("/$defs/") || pointer.starts_with("/definitions/")
}

/// A member's schema with the definitions that its references lead to.
fn with_definitions(schema: &Value, root: &Map<String, Value>) -> Value {
    let Value::Object(own) = schema else {
        return schema.clone();
    };
    let mut schema = own.clone();
    if has_reference(own, |_| true) {
        for keyword in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(keyword) {
                schema.insert(keyword.into(), definitions.clone());
            }
        }
    }
    Value::Object(schema)
}

/// What a person can read, without quote and backslash, which JSON escapes: no control characters,
/// nothing that reverses the direction of writing or hides.
fn printable(blank: bool) -> CharClass {
    let mut excluded = vec![
        ('\0', '\u{1F}'),
        ('"', '"'),
        ('\\', '\\'),
        ('\u{7F}', '\u{9F}'),
        ('\u{AD}', '\u{AD}'),
        ('\u{200B}', '\u{200B}'),
        ('\u{200E}', '\u{200F}'),
        ('\u{2028}', '\u{202E}'),
        ('\u{2060}', '\u{206F}'),
        ('\u{E000}', '\u{F8FF}'),
        ('\u{FEFF}', '\u{FEFF}'),
        ('\u{FFF0}', '\u{FFFB}'),
        ('\u{FFFD}', '\u{FFFF}'),
        ('\u{E0000}', char::MAX),
    ];
    if !blank {
        excluded.extend([
            (' ', ' '),
            ('\u{A0}', '\u{A0}'),
            ('\u{1680}', '\u{1680}'),
            ('\u{2000}', '\u{200D}'),
            ('\u{202F}', '\u{202F}'),
            ('\u{205F}', '\u{205F}'),
            ('\u{3000}', '\u{3000}'),
        ]);
    }
    CharClass::from_ranges(excluded).negated()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Effect, Policy, ToolSpec};
    use std::sync::Arc;

    fn add(moves: &mut Moves, name: &str, parameters: Value, domains: Domains) {
        let spec = ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
            effect: Effect::Change,
            idempotent: true,
        };
        moves.add(Arc::new(spec), domains, &Policy::default());
    }

    fn live(argument: &str, values: &Value) -> Domains {
        Domains::from([(argument.to_owned(), values.as_array().unwrap().clone())])
    }

    fn home() -> Moves {
        let device = json!({"type": "string"});
        let mut moves = Moves {
            max_calls: 2,
            ..Moves::default()
        };
        for name in ["turn_on", "turn_off"] {
            add(
                &mut moves,
                name,
                json!({"type": "object", "properties": {"device": device}, "required": ["device"]}),
                live("device", &json!(["kitchen light", "свет \"А\""])),
            );
        }
        add(
            &mut moves,
            "set_brightness",
            json!({
                "type": "object",
                "properties": {
                    "device": device,
                    "brightness": {"type": "integer", "minimum": 0, "maximum": 100},
                    "slowly": {"type": "boolean"},
                },
                "required": ["device", "brightness"],
                "additionalProperties": false,
            }),
            Domains::from([
                ("device".to_owned(), vec![json!("kitchen light")]),
                ("brightness".to_owned(), vec![json!(10), json!(100)]),
                ("slowly".to_owned(), vec![json!(true)]),
            ]),
        );
        moves
    }

    #[test]
    fn the_grammar_of_a_turn() {
        let turn = turn_grammar(&home(), &TurnOptions::default()).unwrap();
        insta::assert_snapshot!(turn.grammar.to_string());
    }

    #[test]
    fn tools_with_the_same_values_share_a_volatile_rule() {
        let turn = turn_grammar(&home(), &TurnOptions::default()).unwrap();
        let volatile: Vec<&str> = turn
            .grammar
            .rules()
            .iter()
            .filter(|rule| rule.volatile)
            .map(|rule| rule.name.as_str())
            .collect();
        assert_eq!(
            volatile,
            [
                "live-device",
                "live-device-2",
                "live-brightness",
                "live-slowly"
            ]
        );
    }

    #[test]
    fn a_tool_whose_values_are_all_forbidden_is_left_out() {
        let mut moves = home();
        let parameters = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]});
        add(
            &mut moves,
            "count",
            parameters.clone(),
            live("n", &json!(["x", 0.5])),
        );
        let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
        assert_eq!(turn.left_out, ["count"]);
        let mut only = Moves {
            ask: false,
            answer: false,
            ..Moves::default()
        };
        add(&mut only, "count", parameters, live("n", &json!(["x"])));
        let nothing = turn_grammar(&only, &TurnOptions::default());
        assert_eq!(nothing, Err(TurnError::Nothing));
    }

    #[test]
    fn what_the_grammar_cannot_say_is_reported_at_its_place() {
        let mut moves = Moves::default();
        let unique = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
        add(
            &mut moves,
            "plain",
            json!({"properties": {"a/b": {"$ref": "#/$defs/set"}, "c": unique}, "$defs": {"set": unique}}),
            Domains::new(),
        );
        add(
            &mut moves,
            "involved",
            json!({"properties": {"c": unique}, "minProperties": 1}),
            Domains::new(),
        );
        let turn = turn_grammar(&moves, &TurnOptions::default()).unwrap();
        let checked: Vec<Vec<&str>> = turn
            .coverage
            .iter()
            .map(|tool| {
                tool.checked()
                    .filter(|entry| entry.keyword == "uniqueItems")
                    .map(|entry| entry.pointer.as_str())
                    .collect()
            })
            .collect();
        assert_eq!(
            checked,
            [vec!["/$defs/set", "/properties/c"], vec!["/properties/c"]]
        );
    }

    #[test]
    fn schemas_that_need_the_whole_compiler_are_recognised() {
        let cases = [
            (json!({"type": "object"}), false),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}),
                false,
            ),
            (
                json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {}}}),
                true,
            ),
            (
                json!({"properties": {"a": {"items": [{"$dynamicRef": "#x"}]}}}),
                true,
            ),
            (json!({"required": ["a"]}), true),
            (json!({"additionalProperties": true}), true),
            (json!({"additionalProperties": {}}), true),
            (json!({"anyOf": []}), true),
            (json!({"minProperties": 1}), true),
        ];
        for (schema, involved) in cases {
            assert_eq!(
                is_involved(schema.as_object().unwrap()),
                involved,
                "{schema}"
            );
        }
    }
}
