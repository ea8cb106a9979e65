//! The tools of a run: registered once, offered turn by turn, run only with a checked call.

use super::{Outcome, Took, Tool, ToolError};
use crate::call::arguments::{ArgumentSchema, SpecError};
use crate::call::relevance::Grams;
use crate::call::{Call, CheckedCall, Domains, Moves, Policy, ToolSpec};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Why a tool was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The name is not `[A-Za-z0-9_.-]{1,64}`.
    #[error("a tool's name is 1 to 64 letters, digits, `_`, `.` and `-`, not {name:?}")]
    Name {
        /// As it was given.
        name: String,
    },
    /// There is a tool of that name.
    #[error("there are two tools called `{name}`")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The schema of its arguments is none.
    #[error(transparent)]
    Schema(#[from] SpecError),
}

/// A tool whose live values cannot be read: nobody knows whether it can be called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Unavailable {
    /// The tool.
    pub tool: String,
    /// Why.
    #[source]
    pub error: ToolError,
}

/// The tools of a run, in the order in which they were registered.
#[derive(Default)]
pub struct Registry {
    tools: Vec<(Arc<ToolSpec>, Box<dyn Tool>)>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.specs().map(|spec| &spec.name))
            .finish()
    }
}

impl Registry {
    /// No tool yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// A name that is taken or not one, a schema that cannot be checked against.
    pub fn register(&mut self, tool: Box<dyn Tool>) -> Result<(), RegisterError> {
        let spec = Arc::new(tool.spec().clone());
        if !ToolSpec::is_name(&spec.name) {
            return Err(RegisterError::Name {
                name: spec.name.clone(),
            });
        }
        if self.find(&spec.name).is_some() {
            return Err(RegisterError::Duplicate {
                name: spec.name.clone(),
            });
        }
        ArgumentSchema::new(&spec)?;
        self.tools.push((spec, tool));
        Ok(())
    }

    /// Adds several.
    ///
    /// # Errors
    /// As [`register`](Self::register), at the first that fails.
    pub fn register_all(
        &mut self,
        tools: impl IntoIterator<Item = Box<dyn Tool>>,
    ) -> Result<(), RegisterError> {
        tools.into_iter().try_for_each(|tool| self.register(tool))
    }

    /// Every tool.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = &Arc<ToolSpec>> {
        self.tools.iter().map(|(spec, _)| spec)
    }

    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.specs().find(|spec| spec.name == name)
    }

    /// Number of tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// What can be called now: every tool that the policy does not deny, with its live values.
    ///
    /// # Errors
    /// A tool whose live values cannot be read.
    pub fn moves(&self, policy: &Policy) -> Result<Moves, Unavailable> {
        let mut moves = Moves::default();
        for (spec, tool) in &self.tools {
            moves.add(Arc::clone(spec), domains(tool.as_ref())?, policy);
        }
        Ok(moves)
    }

    /// Runs a call. Nothing else runs a tool.
    ///
    /// # Errors
    /// The tool's own, or that there is no such tool in this registry.
    pub fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let name = &call.call().tool;
        self.tools
            .iter_mut()
            .find(|(spec, _)| spec.name == *name)
            .ok_or_else(|| ToolError::new(format!("there is no tool `{name}`")))?
            .1
            .run(call)
    }

    /// Asks a call's tool whether it took effect; `None`: it cannot tell.
    ///
    /// # Errors
    /// The tool's own, or that there is no such tool in this registry.
    pub fn took_effect(&mut self, call: &Call) -> Result<Option<Took>, ToolError> {
        let name = &call.tool;
        self.tools
            .iter_mut()
            .find(|(spec, _)| spec.name == *name)
            .ok_or_else(|| ToolError::new(format!("there is no tool `{name}`")))?
            .1
            .took_effect(call)
    }

    /// What the person is told where this outcome of a call ends the run without another turn.
    pub fn answer_of(&self, call: &CheckedCall, outcome: &Outcome) -> Option<String> {
        let mut tools = self.tools.iter();
        let (_, tool) = tools.find(|(spec, _)| spec.name == call.call().tool)?;
        tool.answer_of(outcome)
    }

    /// The names of the `most` tools most relevant to the request, in registry order: by their
    /// names, descriptions and live values.
    ///
    /// # Errors
    /// A tool whose live values cannot be read.
    pub fn select(&self, request: &str, most: usize) -> Result<Vec<String>, Unavailable> {
        let request = Grams::of(request);
        let mut scored = Vec::with_capacity(self.tools.len());
        for (at, (spec, tool)) in self.tools.iter().enumerate() {
            let live = domains(tool.as_ref())?
                .into_values()
                .flatten()
                .map(|value| match value {
                    Value::String(text) => Grams::of(&text).found_in(&request),
                    other => Grams::of(&other.to_string()).found_in(&request),
                })
                .fold(0.0, f64::max);
            let name = Grams::of(&spec.name).found_in(&request);
            let words = Grams::of(&format!("{} {}", spec.name, spec.description)).cosine(&request);
            scored.push((at, name + words + live));
        }
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(most);
        scored.sort_by_key(|&(at, _)| at);
        Ok(scored
            .into_iter()
            .map(|(at, _)| self.tools[at].0.name.clone())
            .collect())
    }
}

fn domains(tool: &dyn Tool) -> Result<Domains, Unavailable> {
    tool.domains().map_err(|error| Unavailable {
        tool: tool.spec().name.clone(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Effect, Permission, Verdict};
    use serde_json::json;

    struct Echo {
        spec: ToolSpec,
        live: Result<Vec<Value>, ToolError>,
    }

    impl Tool for Echo {
        fn spec(&self) -> &ToolSpec {
            &self.spec
        }

        fn domains(&self) -> Result<Domains, ToolError> {
            Ok(Domains::from([("what".to_owned(), self.live.clone()?)]))
        }

        fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
            Ok(Outcome {
                result: json!(call.call().arguments),
                changes: vec![],
            })
        }
    }

    fn echo(name: &str, live: &[&str]) -> Box<dyn Tool> {
        Box::new(Echo {
            spec: ToolSpec {
                name: name.into(),
                description: format!("Echo for {name}."),
                parameters: json!({
                    "type": "object",
                    "properties": {"what": {"type": "string"}},
                    "required": ["what"],
                }),
                effect: Effect::Read,
                idempotent: true,
            },
            live: Ok(live.iter().map(|&text| text.into()).collect()),
        })
    }

    #[test]
    fn names_and_schemas_are_checked() {
        let mut registry = Registry::new();
        registry.register(echo("a", &["x"])).unwrap();
        let duplicate = registry.register(echo("a", &["x"])).unwrap_err();
        assert_eq!(duplicate, RegisterError::Duplicate { name: "a".into() });
        for name in ["", "a b", "имя", &"a".repeat(65)] {
            let error = registry.register(echo(name, &[])).unwrap_err();
            assert_eq!(error, RegisterError::Name { name: name.into() });
        }
        let broken = Echo {
            spec: ToolSpec {
                name: "b".into(),
                description: String::new(),
                parameters: json!({"type": "strng"}),
                effect: Effect::Read,
                idempotent: true,
            },
            live: Ok(vec![]),
        };
        let error = registry.register(Box::new(broken)).unwrap_err();
        assert!(matches!(error, RegisterError::Schema(_)));
        assert_eq!(registry.len(), 1);
    }

    #[test]
    fn a_checked_call_runs() {
        let mut registry = Registry::new();
        registry.register(echo("a", &["x"])).unwrap();
        let moves = registry.moves(&Policy::default()).unwrap();
        let Ok(Verdict::Checked(call)) = moves.check(Call::new("a", [("what", "x")])) else {
            panic!("not checked");
        };
        assert_eq!(registry.run(&call).unwrap().result, json!({"what": "x"}));
        assert!(
            Registry::new()
                .run(&call)
                .unwrap_err()
                .message
                .contains("`a`")
        );
    }

    #[test]
    fn what_is_denied_or_impossible_is_no_move() {
        let mut registry = Registry::new();
        registry
            .register_all([echo("a", &["x"]), echo("b", &[]), echo("c", &["x"])])
            .unwrap();
        let policy = Policy::new([("c", Permission::Deny)]).unwrap();
        let moves = registry.moves(&policy).unwrap();
        assert_eq!(moves.moves.len(), 1);
        assert_eq!(moves.moves[0].spec.name, "a");
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let mut registry = Registry::new();
        let mut tool = echo("a", &[]);
        registry.register(echo("z", &["x"])).unwrap();
        tool = Box::new(Echo {
            spec: tool.spec().clone(),
            live: Err(ToolError::new("no house")),
        });
        registry.register(tool).unwrap();
        let error = registry.moves(&Policy::default()).unwrap_err();
        assert_eq!(
            (error.tool.as_str(), error.to_string().as_str()),
            ("a", "no house")
        );
    }

    #[test]
    fn the_relevant_tools_are_selected() {
        let mut registry = Registry::new();
        registry
            .register_all([
                echo("send_mail", &["anna"]),
                echo("get_weather", &["Berlin", "上海"]),
                echo("turn_on", &["kitchen light", "свет на кухне"]),
            ])
            .unwrap();
        let cases = [
            ("turn on the light", "turn_on"),
            ("上海热吗", "get_weather"),
            ("свет на кухне, пожалуйста", "turn_on"),
            ("a mail to Anna", "send_mail"),
        ];
        for (request, tool) in cases {
            assert_eq!(registry.select(request, 1).unwrap(), [tool], "{request}");
        }
        assert_eq!(registry.select("x", 9).unwrap().len(), 3);
    }
}
