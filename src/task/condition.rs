//! Conditions on facts and results: what guards, transitions and proofs ask for.
//!
//! A condition is written as one table, with exactly one test:
//! `{ fact = "flights", empty = false }`, `{ fact = "document", pointer = "/complete", is = true }`.

use super::facts::{Facts, value_text};
use crate::call::json::{same_value, spaced};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// What a value must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// This value.
    Is(Value),
    /// There, and not this value.
    IsNot(Value),
    /// One of these.
    OneOf(Vec<Value>),
    /// A list that has this item, or a text that has this part.
    Includes(Value),
    /// A number of at least this.
    AtLeast(f64),
    /// A number of at most this.
    AtMost(f64),
    /// There, or not there.
    Exists(bool),
    /// An empty list, text or table (or nothing at all), or not.
    Empty(bool),
}

/// The keys of the tests, as they are written.
const TESTS: [&str; 8] = [
    "is", "is_not", "one_of", "includes", "at_least", "at_most", "exists", "empty",
];

impl Test {
    /// Whether `value` (`None`: nothing is there) passes.
    pub fn holds(&self, value: Option<&Value>) -> bool {
        let number = || value.and_then(Value::as_f64);
        match self {
            Self::Is(wanted) => value.is_some_and(|value| same_value(value, wanted)),
            Self::IsNot(wanted) => value.is_some_and(|value| !same_value(value, wanted)),
            Self::OneOf(list) => {
                value.is_some_and(|value| list.iter().any(|one| same_value(value, one)))
            }
            Self::Includes(part) => match (value, part) {
                (Some(Value::Array(items)), part) => items.iter().any(|i| same_value(i, part)),
                (Some(Value::String(text)), Value::String(part)) => text.contains(part.as_str()),
                _ => false,
            },
            Self::AtLeast(least) => number().is_some_and(|number| number >= *least),
            Self::AtMost(most) => number().is_some_and(|number| number <= *most),
            Self::Exists(wanted) => value.is_some() == *wanted,
            Self::Empty(wanted) => is_empty(value) == *wanted,
        }
    }

    /// Whether nothing at all can pass.
    pub fn wants_nothing(&self) -> bool {
        matches!(self, Self::Exists(false) | Self::Empty(true))
    }

    /// Takes the one test out of a table.
    fn take(map: &mut Map<String, Value>) -> Result<Self, String> {
        let given: Vec<&str> = TESTS
            .into_iter()
            .filter(|test| map.contains_key(*test))
            .collect();
        let [name] = given[..] else {
            return Err(if given.is_empty() {
                format!("a test is missing: one of {}", TESTS.join(", "))
            } else {
                format!("one test at a time, not {}", given.join(" and "))
            });
        };
        let value = map.remove(name).unwrap_or(Value::Null);
        let number = |value: &Value| {
            value
                .as_f64()
                .ok_or_else(|| format!("`{name}` wants a number"))
        };
        let truth = |value: &Value| {
            value
                .as_bool()
                .ok_or_else(|| format!("`{name}` wants true or false"))
        };
        Ok(match name {
            "is" => Self::Is(value),
            "is_not" => Self::IsNot(value),
            "includes" => Self::Includes(value),
            "one_of" => match value {
                Value::Array(list) if !list.is_empty() => Self::OneOf(list),
                _ => return Err("`one_of` wants a list that is not empty".to_owned()),
            },
            "at_least" => Self::AtLeast(number(&value)?),
            "at_most" => Self::AtMost(number(&value)?),
            "exists" => Self::Exists(truth(&value)?),
            _ => Self::Empty(truth(&value)?),
        })
    }

    fn put(self, map: &mut Map<String, Value>) {
        let (name, value) = match self {
            Self::Is(value) => ("is", value),
            Self::IsNot(value) => ("is_not", value),
            Self::OneOf(list) => ("one_of", Value::Array(list)),
            Self::Includes(value) => ("includes", value),
            Self::AtLeast(number) => ("at_least", number.into()),
            Self::AtMost(number) => ("at_most", number.into()),
            Self::Exists(truth) => ("exists", truth.into()),
            Self::Empty(truth) => ("empty", truth.into()),
        };
        map.insert(name.to_owned(), value);
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| value_text(value, 60);
        match self {
            Self::Is(value) => write!(f, "is {}", text(value)),
            Self::IsNot(value) => write!(f, "is not {}", text(value)),
            Self::OneOf(list) => {
                let list: Vec<String> = list.iter().map(text).collect();
                write!(f, "is one of {}", list.join(", "))
            }
            Self::Includes(value) => write!(f, "includes {}", text(value)),
            Self::AtLeast(number) => write!(f, "is at least {number}"),
            Self::AtMost(number) => write!(f, "is at most {number}"),
            Self::Exists(true) => f.write_str("exists"),
            Self::Exists(false) => f.write_str("does not exist"),
            Self::Empty(true) => f.write_str("is empty"),
            Self::Empty(false) => f.write_str("is not empty"),
        }
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}

/// A test of a fact, or of a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct Condition {
    /// The fact's name. In a guard, `{argument}` stands for the call's argument of that name.
    pub fact: String,
    /// JSON Pointer into its value; empty: all of it.
    pub pointer: String,
    /// What is asked of it.
    pub test: Test,
}

impl Condition {
    /// Whether it holds. Of a fact that is not there, only `exists = false` and `empty = true` do.
    pub fn holds(&self, facts: &Facts) -> bool {
        self.holds_of(facts.get(&self.fact))
    }

    /// Whether it holds of a fact's value.
    pub(super) fn holds_of(&self, fact: Option<&Value>) -> bool {
        self.test
            .holds(fact.and_then(|value| value.pointer(&self.pointer)))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {}", self.fact, self.pointer, self.test)
    }
}

impl TryFrom<Map<String, Value>> for Condition {
    type Error = String;

    fn try_from(mut map: Map<String, Value>) -> Result<Self, String> {
        let condition = Self::take(&mut map)?;
        nothing_left(&map)?;
        Ok(condition)
    }
}

impl Condition {
    fn take(map: &mut Map<String, Value>) -> Result<Self, String> {
        Ok(Self {
            fact: text(map, "fact")?.ok_or("`fact` is missing")?,
            pointer: text(map, "pointer")?.unwrap_or_default(),
            test: Test::take(map)?,
        })
    }
}

impl From<Condition> for Map<String, Value> {
    fn from(condition: Condition) -> Self {
        let mut map = Self::new();
        map.insert("fact".to_owned(), condition.fact.into());
        if !condition.pointer.is_empty() {
            map.insert("pointer".to_owned(), condition.pointer.into());
        }
        condition.test.put(&mut map);
        map
    }
}

/// A tool may be called only where a condition holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct Guard {
    /// The tool.
    pub tool: String,
    /// What must hold.
    pub condition: Condition,
    /// What the model is told where it does not; `None`: the condition in words.
    pub otherwise: Option<String>,
}

impl Guard {
    /// The arguments that stand in the fact's name as `{argument}`.
    pub fn arguments(&self) -> Vec<&str> {
        holes(&self.condition.fact)
    }

    /// Whether it holds for a call with these arguments.
    pub fn holds(&self, facts: &Facts, arguments: &Map<String, Value>) -> bool {
        let name = fill(&self.condition.fact, arguments);
        self.condition.holds_of(facts.get(&name))
    }

    /// What is told of it where it does not hold.
    pub fn message(&self, arguments: &Map<String, Value>) -> String {
        match &self.otherwise {
            Some(text) => fill(text, arguments),
            None => format!(
                "it wants that {}",
                fill(&self.condition.to_string(), arguments)
            ),
        }
    }
}

impl TryFrom<Map<String, Value>> for Guard {
    type Error = String;

    fn try_from(mut map: Map<String, Value>) -> Result<Self, String> {
        let guard = Self {
            tool: text(&mut map, "tool")?.ok_or("`tool` is missing")?,
            otherwise: text(&mut map, "otherwise")?,
            condition: Condition::take(&mut map)?,
        };
        nothing_left(&map)?;
        Ok(guard)
    }
}

impl From<Guard> for Map<String, Value> {
    fn from(guard: Guard) -> Self {
        let mut map = Self::new();
        map.insert("tool".to_owned(), guard.tool.into());
        map.append(&mut guard.condition.into());
        if let Some(text) = guard.otherwise {
            map.insert("otherwise".to_owned(), text.into());
        }
        map
    }
}

/// One thing that must be so before the task counts as done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct Proof {
    /// Where it is seen.
    pub by: Evidence,
    /// What the model is told where it is not so; `None`: the proof in words.
    pub otherwise: Option<String>,
}

/// Where a proof is seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// A fact.
    Fact(Condition),
    /// The result of a tool that only reads.
    Tool {
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: Map<String, Value>,
        /// JSON Pointer into its result.
        pointer: String,
        /// What is asked of it.
        test: Test,
    },
    /// A program's exit code.
    Command {
        /// The program and its arguments. A name with `/` is a path from the definition's folder,
        /// where the program runs.
        command: Vec<String>,
        /// The code that proves it (default 0).
        exit_code: i32,
    },
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            Evidence::Fact(condition) => write!(f, "{condition}"),
            Evidence::Tool {
                tool,
                arguments,
                pointer,
                test,
            } => write!(
                f,
                "the result of {tool}({}){pointer} {test}",
                arguments
                    .values()
                    .map(spaced)
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
            Evidence::Command { command, exit_code } => {
                write!(f, "`{}` ends with exit code {exit_code}", command.join(" "))
            }
        }
    }
}

impl TryFrom<Map<String, Value>> for Proof {
    type Error = String;

    fn try_from(mut map: Map<String, Value>) -> Result<Self, String> {
        let kinds = ["fact", "tool", "command"];
        let given: Vec<&str> = kinds.into_iter().filter(|k| map.contains_key(*k)).collect();
        let [kind] = given[..] else {
            return Err("a proof has one of `fact`, `tool` and `command`".to_owned());
        };
        let otherwise = text(&mut map, "otherwise")?;
        let by = match kind {
            "fact" => Evidence::Fact(Condition::take(&mut map)?),
            "tool" => Evidence::Tool {
                tool: text(&mut map, "tool")?.unwrap_or_default(),
                arguments: match map.remove("arguments") {
                    None => Map::new(),
                    Some(Value::Object(arguments)) => arguments,
                    Some(_) => return Err("`arguments` is a table".to_owned()),
                },
                pointer: text(&mut map, "pointer")?.unwrap_or_default(),
                test: Test::take(&mut map)?,
            },
            _ => Evidence::Command {
                command: words(&map.remove("command").unwrap_or_default())?,
                exit_code: match map.remove("exit_code") {
                    None => 0,
                    Some(code) => code
                        .as_i64()
                        .and_then(|code| u8::try_from(code).ok())
                        .map(i32::from)
                        .ok_or("`exit_code` is from 0 to 255")?,
                },
            },
        };
        nothing_left(&map)?;
        Ok(Self { by, otherwise })
    }
}

impl From<Proof> for Map<String, Value> {
    fn from(proof: Proof) -> Self {
        let mut map = match proof.by {
            Evidence::Fact(condition) => condition.into(),
            Evidence::Tool {
                tool,
                arguments,
                pointer,
                test,
            } => {
                let mut map = Self::new();
                map.insert("tool".to_owned(), tool.into());
                map.insert("arguments".to_owned(), Value::Object(arguments));
                map.insert("pointer".to_owned(), pointer.into());
                test.put(&mut map);
                map
            }
            Evidence::Command { command, exit_code } => {
                let mut map = Self::new();
                map.insert("command".to_owned(), command.into());
                map.insert("exit_code".to_owned(), exit_code.into());
                map
            }
        };
        if let Some(text) = proof.otherwise {
            map.insert("otherwise".to_owned(), text.into());
        }
        map
    }
}

fn words(value: &Value) -> Result<Vec<String>, String> {
    let words: Option<Vec<String>> = value
        .as_array()
        .filter(|words| !words.is_empty())
        .map(|words| {
            let texts = words.iter().map(|word| word.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        })
        .unwrap_or_default();
    words.ok_or_else(|| "`command` is a list of texts: the program and its arguments".to_owned())
}

/// Takes a text out of a table.
fn text(map: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match map.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is a text")),
    }
}

fn nothing_left(map: &Map<String, Value>) -> Result<(), String> {
    match map.keys().next() {
        None => Ok(()),
        Some(key) => Err(format!("unknown key `{key}`")),
    }
}

/// The names in `{…}` in a template.
pub(super) fn holes(template: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        found.push(name);
        rest = after;
    }
    found
}

/// `template` with every `{argument}` replaced by the call's argument of that name.
pub(super) fn fill(template: &str, arguments: &Map<String, Value>) -> String {
    fill_with(template, |name| arguments.get(name))
}

/// `template` with every `{name}` replaced by the value of that name, where there is one.
pub(super) fn fill_with<'v>(template: &str, value: impl Fn(&str) -> Option<&'v Value>) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        rest = after;
        if let Some((name, after)) = after.split_once('}')
            && let Some(value) = value(name)
        {
            text.push_str(&value_text(value, 80));
            rest = after;
        } else {
            text.push('{');
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.set("list", json!(["a", 2]));
        facts.set("flight", json!({"price": 90, "city": "Омск"}));
        facts.set("note", json!("two words"));
        facts.set("none", json!([]));
        facts.set("state of door", json!("open"));
        facts
    }

    #[test]
    fn conditions_hold_or_do_not() {
        for (text, holds) in [
            ("fact='flight', pointer='/price', is=90.0", true),
            ("fact='flight', pointer='/price', is_not=90", false),
            ("fact='flight', pointer='/price', at_least=90", true),
            ("fact='flight', pointer='/price', at_most=89.5", false),
            (
                "fact='flight', pointer='/city', one_of=['Псков', 'Омск']",
                true,
            ),
            ("fact='flight', pointer='/seat', exists=true", false),
            ("fact='flight', pointer='/seat', exists=false", true),
            ("fact='flight', pointer='/seat', is_not=1", false),
            ("fact='list', includes=2", true),
            ("fact='list', includes='b'", false),
            ("fact='note', includes='wo wo'", true),
            ("fact='none', empty=true", true),
            ("fact='list', empty=false", true),
            ("fact='nothing', empty=true", true),
            ("fact='nothing', at_least=0", false),
        ] {
            let condition: Condition = toml::from_str::<
                std::collections::BTreeMap<String, Condition>,
            >(&format!("c = {{ {text} }}"))
            .unwrap()
            .remove("c")
            .unwrap();
            assert_eq!(condition.holds(&facts()), holds, "{text}");
            let map: Map<String, Value> = condition.clone().into();
            assert_eq!(Condition::try_from(map).unwrap(), condition);
        }
    }

    #[test]
    fn guards_look_at_arguments() {
        let guard: Guard = serde_json::from_value(json!({
            "tool": "close", "fact": "state of {device}", "is": "open",
            "otherwise": "{device} is not open",
        }))
        .unwrap();
        assert_eq!(guard.arguments(), ["device"]);
        for (device, holds) in [("door", true), ("window", false)] {
            let arguments = json!({ "device": device });
            let arguments = arguments.as_object().unwrap();
            assert_eq!(guard.holds(&facts(), arguments), holds, "{device}");
            assert_eq!(guard.message(arguments), format!("{device} is not open"));
        }
        let again = serde_json::to_value(&guard).unwrap();
        assert_eq!(serde_json::from_value::<Guard>(again).unwrap(), guard);
    }

    #[test]
    fn proofs_are_read_and_written() {
        for (value, words) in [
            (json!({"fact": "booking", "exists": true}), "booking exists"),
            (
                json!({"tool": "get_state", "arguments": {"device": "door"}, "pointer": "/locked", "is": true}),
                "the result of get_state(\"door\")/locked is true",
            ),
            (
                json!({"command": ["sh", "-c", "exit 3"], "exit_code": 3, "otherwise": "no"}),
                "`sh -c exit 3` ends with exit code 3",
            ),
        ] {
            let proof: Proof = serde_json::from_value(value).unwrap();
            assert_eq!(proof.to_string(), words);
            let again = serde_json::to_value(&proof).unwrap();
            assert_eq!(serde_json::from_value::<Proof>(again).unwrap(), proof);
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for (value, error) in [
            (json!({"fact": "a"}), "a test is missing"),
            (
                json!({"fact": "a", "is": 1, "at_most": 2}),
                "not is and at_most",
            ),
            (json!({"is": 1}), "one of `fact`, `tool` and `command`"),
            (json!({"fact": "a", "tool": "b", "is": 1}), "one of `fact`"),
            (
                json!({"fact": "a", "at_least": "b"}),
                "`at_least` wants a number",
            ),
            (json!({"fact": "a", "one_of": []}), "not empty"),
            (
                json!({"fact": "a", "is": 1, "typo": 2}),
                "unknown key `typo`",
            ),
            (json!({"command": []}), "`command` is a list"),
            (json!({"command": ["a"], "exit_code": 256}), "from 0 to 255"),
            (json!({"fact": 7, "is": 1}), "`fact` is a text"),
        ] {
            let refused = serde_json::from_value::<Proof>(value.clone()).unwrap_err();
            assert!(refused.to_string().contains(error), "{value}: {refused}");
        }
    }

    #[test]
    fn templates_are_filled_once() {
        let arguments = json!({"a": "{b}", "b": 2});
        let arguments = arguments.as_object().unwrap();
        for (template, filled) in [
            ("{a} and {b}", "{b} and 2"),
            ("{c} {", "{c} {"),
            ("{{a}", "{{b}"),
            ("", ""),
        ] {
            assert_eq!(fill(template, arguments), filled, "{template}");
        }
        assert_eq!(holes("x {a} {b"), ["a"]);
    }
}
