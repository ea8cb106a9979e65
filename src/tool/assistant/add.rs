//! `add_two_numbers`: exact for whole numbers, floating point for all others.

use crate::call::{CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::{Outcome, Tool, ToolError};
use serde_json::{Number, Value, json};

/// Adds two numbers.
#[derive(Debug)]
pub struct AddTwoNumbers {
    spec: ToolSpec,
}

impl Default for AddTwoNumbers {
    fn default() -> Self {
        Self {
            spec: ToolSpec {
                name: "add_two_numbers".into(),
                description: "Add two numbers.".into(),
                parameters: json!({
                    "type": "object",
                    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                    "required": ["a", "b"],
                    "additionalProperties": false,
                }),
                effect: Effect::Read,
                idempotent: true,
            },
        }
    }
}

impl Tool for AddTwoNumbers {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        Ok(Domains::new())
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let argument = |name: &str| match call.call().arguments.get(name) {
            Some(Value::Number(number)) => Ok(number),
            _ => Err(ToolError::new(format!("{name} is missing"))),
        };
        let sum = sum(argument("a")?, argument("b")?)
            .ok_or_else(|| ToolError::new("the sum is too large for a number"))?;
        Ok(Outcome {
            result: json!({ "sum": sum }),
            changes: Vec::new(),
        })
    }
}

fn sum(a: &Number, b: &Number) -> Option<Number> {
    let whole = a
        .as_i128()
        .zip(b.as_i128())
        .and_then(|(a, b)| a.checked_add(b))
        .and_then(|sum| {
            i64::try_from(sum)
                .map(Number::from)
                .or_else(|_| u64::try_from(sum).map(Number::from))
                .ok()
        });
    whole.or_else(|| Number::from_f64(a.as_f64()? + b.as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, Policy, Verdict};
    use crate::tool::Registry;

    #[test]
    fn sums() {
        let mut registry = Registry::new();
        registry
            .register(Box::new(AddTwoNumbers::default()))
            .unwrap();
        let moves = registry.moves(&Policy::default()).unwrap();
        let cases = [
            (json!(2), json!(3), Some(json!(5))),
            (json!(-2), json!(0.5), Some(json!(-1.5))),
            (
                json!(i64::MAX),
                json!(1),
                Some(json!(9_223_372_036_854_775_808_u64)),
            ),
            (
                json!(u64::MAX),
                json!(u64::MAX),
                Some(json!(36_893_488_147_419_103_232.0)),
            ),
            (json!(1e308), json!(1e308), None),
        ];
        for (a, b, expected) in cases {
            let call = Call::new("add_two_numbers", [("a", a.clone()), ("b", b.clone())]);
            let Ok(Verdict::Checked(call)) = moves.check(call) else {
                panic!("not checked");
            };
            let result = registry
                .run(&call)
                .ok()
                .map(|outcome| outcome.result["sum"].clone());
            assert_eq!(result, expected, "{a} + {b}");
        }
    }
}
