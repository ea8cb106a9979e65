//! A tool's schema as a validator whose errors are failure kinds.

use super::failure::{Failure, FailureKind};
use super::json::{shortened, spaced};
use super::spec::{Domains, ToolSpec};
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

/// Why a tool's schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema of {tool}'s arguments, at {pointer:?}: {message}")]
pub struct SpecError {
    /// The tool.
    pub tool: String,
    /// JSON Pointer into the schema.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

/// A compiled schema of a tool's arguments. Undeclared arguments are refused unless the schema
/// speaks of additional ones itself: a model that invents an argument means something by it.
#[derive(Debug)]
pub struct ArgumentSchema {
    tool: String,
    validator: Validator,
}

impl ArgumentSchema {
    /// Compiles it. Nothing is ever fetched; patterns run in linear time.
    ///
    /// # Errors
    /// A schema that is not one, is not an object's, or refers to something outside itself.
    pub fn new(spec: &ToolSpec) -> Result<Self, SpecError> {
        let error = |pointer: String, message: String| SpecError {
            tool: spec.name.clone(),
            pointer,
            message: shortened(&message, 300),
        };
        let Some(root) = spec.parameters.as_object() else {
            return Err(error(String::new(), "it is not an object".into()));
        };
        if let Some(kind) = root.get("type")
            && kind != "object"
        {
            return Err(error(
                "/type".into(),
                "arguments are always an object".into(),
            ));
        }
        jsonschema::meta::validate(&spec.parameters)
            .map_err(|e| error(e.instance_path().to_string(), e.to_string()))?;
        let validator = jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(true)
            .build(&closed(root))
            .map_err(|e| error(e.schema_path().to_string(), e.to_string()))?;
        Ok(Self {
            tool: spec.name.clone(),
            validator,
        })
    }

    /// What is wrong with these arguments, the first thing first; a missing argument and a wrong
    /// type go before all else.
    ///
    /// # Errors
    /// The failure, with its place.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<(), Failure> {
        let instance = Value::Object(arguments.clone());
        let first = self
            .validator
            .iter_errors(&instance)
            .min_by_key(|error| urgency(kind_of(error.kind())));
        match first {
            None => Ok(()),
            Some(error) => Err(Failure::new(kind_of(error.kind()), describe(&error))
                .of_tool(&self.tool)
                .at(pointer_of(&error))),
        }
    }

    /// Whether the schema forbids this value for this argument, whatever the others are.
    pub fn forbids(&self, argument: &str, value: &Value) -> bool {
        let instance = json!({ argument: value });
        let place = format!("/{}", escaped(argument));
        self.validator.iter_errors(&instance).any(|error| {
            let at = error.instance_path().as_str().to_owned();
            at.strip_prefix(&place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The live values without those that the schema forbids.
    pub fn allowed(&self, domains: &Domains) -> Domains {
        domains
            .iter()
            .map(|(argument, values)| {
                let allowed = values
                    .iter()
                    .filter(|value| !self.forbids(argument, value))
                    .cloned()
                    .collect();
                (argument.clone(), allowed)
            })
            .collect()
    }
}

/// A member name as a part of a JSON Pointer.
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The schema with undeclared arguments refused, where it does not speak of them.
fn closed(root: &Map<String, Value>) -> Value {
    let speaks = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
    ]
    .iter()
    .any(|keyword| root.contains_key(*keyword));
    let mut schema = root.clone();
    schema
        .entry("type")
        .or_insert_with(|| Value::from("object"));
    if !speaks {
        let elsewhere = [
            "$ref",
            "$dynamicRef",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "dependentSchemas",
        ]
        .iter()
        .any(|keyword| root.contains_key(*keyword));
        let keyword = if elsewhere {
            "unevaluatedProperties"
        } else {
            "additionalProperties"
        };
        schema.insert(keyword.into(), Value::Bool(false));
    }
    Value::Object(schema)
}

fn kind_of(kind: &Kind) -> FailureKind {
    match kind {
        Kind::Required { .. } => FailureKind::MissingArgument,
        Kind::Type { .. } => FailureKind::WrongType,
        Kind::Enum { .. } | Kind::Constant { .. } => FailureKind::OutsideDomain,
        _ => FailureKind::Constraint,
    }
}

fn urgency(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::MissingArgument => 0,
        FailureKind::WrongType => 1,
        FailureKind::OutsideDomain => 2,
        _ => 3,
    }
}

/// Where the failure is: for a missing argument, where it should be.
fn pointer_of(error: &ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let below = match error.kind() {
        Kind::Required { property } => property.as_str().map(str::to_owned),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.first().cloned()
        }
        _ => None,
    };
    match below {
        Some(name) => format!("{at}/{}", escaped(&name)),
        None => at,
    }
}

fn describe(error: &ValidationError<'_>) -> String {
    let value = || shortened(&spaced(error.instance()), 80);
    let text = match error.kind() {
        Kind::Required { property } => format!("`{}` is required", plain(property)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("there is no argument `{}`", unexpected.join("`, `"))
        }
        Kind::Enum { options } => {
            format!(
                "{} is not one of {}",
                value(),
                shortened(&spaced(options), 200)
            )
        }
        Kind::Constant { expected_value } => {
            format!(
                "{} is not {}",
                value(),
                shortened(&spaced(expected_value), 200)
            )
        }
        Kind::Minimum { limit } => format!("{} is less than {limit}", value()),
        Kind::Maximum { limit } => format!("{} is greater than {limit}", value()),
        _ => error.to_string(),
    };
    shortened(&text, 300)
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Effect;

    fn spec(parameters: Value) -> ToolSpec {
        ToolSpec {
            name: "t".into(),
            description: String::new(),
            parameters,
            effect: Effect::Read,
            idempotent: true,
        }
    }

    #[test]
    fn failures_have_kind_and_place() {
        let schema = ArgumentSchema::new(&spec(json!({
            "type": "object",
            "properties": {
                "device": {"type": "string"},
                "level": {"type": "integer", "minimum": 0, "maximum": 100},
                "mode": {"enum": ["heat", "cool"]},
                "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
                "a/b~c": {"type": "null"},
                "mail": {"type": "string", "format": "email"},
                "code": {"type": "string", "pattern": "^[a-z]+$"},
            },
            "required": ["device"],
        })))
        .unwrap();
        let cases = [
            (json!({}), FailureKind::MissingArgument, "/device"),
            (json!({"device": 5}), FailureKind::WrongType, "/device"),
            (
                json!({"device": "x", "level": "5"}),
                FailureKind::WrongType,
                "/level",
            ),
            (
                json!({"device": "x", "level": 101}),
                FailureKind::Constraint,
                "/level",
            ),
            (
                json!({"device": "x", "level": 0.5}),
                FailureKind::WrongType,
                "/level",
            ),
            (
                json!({"device": "x", "mode": "dry"}),
                FailureKind::OutsideDomain,
                "/mode",
            ),
            (
                json!({"device": "x", "tags": ["a", 1]}),
                FailureKind::WrongType,
                "/tags/1",
            ),
            (
                json!({"device": "x", "tags": ["a", "a"]}),
                FailureKind::Constraint,
                "/tags",
            ),
            (
                json!({"device": "x", "rom": "y"}),
                FailureKind::Constraint,
                "/rom",
            ),
            (
                json!({"device": "x", "a/b~c": 1}),
                FailureKind::WrongType,
                "/a~1b~0c",
            ),
            (
                json!({"device": "x", "mail": "no"}),
                FailureKind::Constraint,
                "/mail",
            ),
            (
                json!({"device": "x", "code": "A"}),
                FailureKind::Constraint,
                "/code",
            ),
            (
                json!({"level": "5"}),
                FailureKind::MissingArgument,
                "/device",
            ),
        ];
        for (arguments, kind, pointer) in cases {
            let failure = schema.check(arguments.as_object().unwrap()).unwrap_err();
            assert_eq!(
                (failure.kind, failure.pointer.as_deref()),
                (kind, Some(pointer)),
                "{arguments}"
            );
        }
        let fine = json!({"device": "x", "level": 5.0, "mode": "heat", "a/b~c": null});
        assert_eq!(schema.check(fine.as_object().unwrap()), Ok(()));
    }

    #[test]
    fn undeclared_arguments_need_a_word_of_the_schema() {
        let cases = [
            (json!({"type": "object"}), false),
            (
                json!({"type": "object", "additionalProperties": true}),
                true,
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "integer"}}),
                true,
            ),
            (
                json!({"type": "object", "patternProperties": {"^x": {}}}),
                true,
            ),
            (json!({"allOf": [{"properties": {"y": {}}}]}), false),
            (json!({"allOf": [{"properties": {"x": {}}}]}), true),
        ];
        for (parameters, allowed) in cases {
            let schema = ArgumentSchema::new(&spec(parameters.clone())).unwrap();
            let arguments = json!({"x": 1});
            let verdict = schema.check(arguments.as_object().unwrap());
            assert_eq!(verdict.is_ok(), allowed, "{parameters}");
        }
    }

    #[test]
    fn broken_schemas_are_named() {
        let cases = [
            json!("object"),
            json!({"type": "string"}),
            json!({"properties": {"a": {"type": "strng"}}}),
            json!({"properties": {"a": {"minimum": "1"}}}),
            json!({"properties": {"a": {"$ref": "https://example.com/schema"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/missing"}}}),
            json!({"properties": {"a": {"pattern": "("}}}),
        ];
        for parameters in cases {
            let error = ArgumentSchema::new(&spec(parameters.clone())).unwrap_err();
            assert!(
                error.to_string().contains("t's arguments"),
                "{parameters}: {error}"
            );
        }
    }

    #[test]
    fn live_values_that_the_schema_forbids_are_dropped() {
        let schema = ArgumentSchema::new(&spec(json!({
            "properties": {"n": {"$ref": "#/$defs/small"}, "s": {"type": "string"}},
            "required": ["n", "s"],
            "$defs": {"small": {"type": "integer", "maximum": 10}},
        })))
        .unwrap();
        let domains = Domains::from([
            ("n".to_owned(), vec![json!(1), json!(11), json!("x")]),
            ("s".to_owned(), vec![json!("a"), json!(2)]),
        ]);
        let allowed = schema.allowed(&domains);
        assert_eq!(allowed["n"], [json!(1)]);
        assert_eq!(allowed["s"], [json!("a")]);
    }
}
