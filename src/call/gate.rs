//! The one gate that every call passes, whoever wrote it: a grammar, a remote model, a replay.
//!
//! Schema, live values, state and policy are checked here, and nothing else makes a
//! [`CheckedCall`], which is all that a tool accepts.

use super::arguments::{ArgumentSchema, SpecError, escaped};
use super::example;
use super::failure::{Failure, FailureKind};
use super::json::{quoted, same_value, shortened, spaced};
use super::moves::{Absence, Move, Moves};
use super::policy::Permission;
use super::relevance::Grams;
use super::reply::{Call, Reply};
use super::spec::ToolSpec;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::sync::Arc;

/// A call that passed the gate. There is no other way to make one:
///
/// ```compile_fail,E0451
/// use snaffle::call::{Call, CheckedCall};
/// let call = Call::new("unlock", [("device", "front door")]);
/// let forged = CheckedCall { call, spec: todo!(), approval: None };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedCall {
    call: Call,
    spec: Arc<ToolSpec>,
    approval: Option<Approval>,
}

impl CheckedCall {
    /// What is called, with which arguments.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The tool that is called.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// Who said yes, where the policy wanted somebody to.
    pub fn approval(&self) -> Option<Approval> {
        self.approval
    }
}

/// Who approved a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// A person, asked about this very call.
    Person,
    /// A person beforehand, for every call of the run.
    Setting,
}

/// A call that is right and needs a person's yes. It cannot be run: only
/// [`approve`](Self::approve) makes it a [`CheckedCall`].
#[derive(Debug, PartialEq)]
#[must_use = "the call waits for a yes or a no"]
pub struct PendingCall {
    call: Call,
    spec: Arc<ToolSpec>,
}

impl PendingCall {
    /// What would be called.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The tool that would be called.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// Yes.
    pub fn approve(self, by: Approval) -> CheckedCall {
        CheckedCall {
            call: self.call,
            spec: self.spec,
            approval: Some(by),
        }
    }

    /// No; `reason` says who or what said it ("nobody is there to be asked").
    pub fn refuse(self, reason: &str) -> Failure {
        Failure::new(FailureKind::Refused, reason).of_tool(self.call.tool)
    }
}

/// What the gate says of a call that is right.
#[derive(Debug, PartialEq)]
#[must_use]
pub enum Verdict {
    /// It may run.
    Checked(CheckedCall),
    /// It may run if a person says yes.
    Ask(PendingCall),
}

impl Verdict {
    /// The call.
    pub fn call(&self) -> &Call {
        match self {
            Self::Checked(checked) => checked.call(),
            Self::Ask(pending) => pending.call(),
        }
    }

    /// Its tool.
    pub fn spec(&self) -> &ToolSpec {
        match self {
            Self::Checked(checked) => checked.spec(),
            Self::Ask(pending) => pending.spec(),
        }
    }
}

/// Checks calls; remembers each tool's compiled schema.
#[derive(Debug, Default)]
pub struct Gate {
    /// By tool name, with the spec that was compiled: another one of that name is compiled anew.
    schemas: FxHashMap<String, (Arc<ToolSpec>, Compiled)>,
}

type Compiled = Result<Arc<ArgumentSchema>, SpecError>;

impl Gate {
    /// A gate that remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks a call against the legal moves of this turn.
    ///
    /// # Errors
    /// The first thing that is wrong, with one correct call of that tool to show.
    pub fn check(&mut self, moves: &Moves, call: Call) -> Result<Verdict, Failure> {
        let Some(legal) = moves.find(&call.tool) else {
            return Err(self.absent(moves, &call));
        };
        if legal.permission == Permission::Deny {
            return Err(denied(&call.tool));
        }
        let schema = self.schema(&legal.spec).map_err(|error| {
            Failure::new(FailureKind::Constraint, error.to_string()).of_tool(&call.tool)
        })?;
        schema
            .check(&call.arguments)
            .and_then(|()| check_domains(legal, &call))
            .map_err(|failure| failure.with_example(example::near(legal, &schema, Some(&call))))?;
        let spec = Arc::clone(&legal.spec);
        Ok(match legal.permission {
            Permission::Ask => Verdict::Ask(PendingCall { call, spec }),
            Permission::Allow | Permission::Deny => Verdict::Checked(CheckedCall {
                call,
                spec,
                approval: None,
            }),
        })
    }

    /// One correct call of a legal tool, as near as possible to what was tried.
    pub fn example(&mut self, moves: &Moves, tool: &str, tried: Option<&Call>) -> Option<Call> {
        let legal = moves.find(tool)?;
        let schema = self.schema(&legal.spec).ok()?;
        example::near(legal, &schema, tried)
    }

    fn schema(&mut self, spec: &Arc<ToolSpec>) -> Compiled {
        if let Some((known, schema)) = self.schemas.get(&spec.name)
            && (Arc::ptr_eq(known, spec) || known == spec)
        {
            return schema.clone();
        }
        let schema = ArgumentSchema::new(spec).map(Arc::new);
        self.schemas
            .insert(spec.name.clone(), (Arc::clone(spec), schema.clone()));
        schema
    }

    fn absent(&mut self, moves: &Moves, call: &Call) -> Failure {
        let name = shortened(&call.tool, 64);
        let absence = moves
            .absent
            .iter()
            .find(|(tool, _)| *tool == call.tool)
            .map(|(_, absence)| absence);
        let message = match absence {
            Some(Absence::Denied) => return denied(&call.tool),
            Some(Absence::Impossible { argument }) => {
                format!("`{name}` cannot be called now: there is no {argument} for it")
            }
            Some(Absence::State) => format!("`{name}` cannot be called at this step"),
            None => {
                let names: Vec<&str> = moves
                    .moves
                    .iter()
                    .take(20)
                    .map(|legal| legal.spec.name.as_str())
                    .collect();
                if names.is_empty() {
                    format!("there is no tool `{name}`")
                } else {
                    format!("there is no tool `{name}`; there are: {}", names.join(", "))
                }
            }
        };
        let meant = Grams::of(&call.tool);
        let nearest = moves
            .moves
            .iter()
            .map(|legal| (meant.similarity(&Grams::of(&legal.spec.name)), legal))
            .filter(|(likeness, _)| *likeness > 0.0)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, legal)| legal.spec.name.clone());
        let example = nearest.and_then(|tool| self.example(moves, &tool, Some(call)));
        Failure::new(FailureKind::UnknownTool, message)
            .of_tool(name)
            .with_example(example)
    }
}

impl Moves {
    /// Checks one call, as [`Gate::check`] without a memory.
    ///
    /// # Errors
    /// As [`Gate::check`].
    pub fn check(&self, call: Call) -> Result<Verdict, Failure> {
        Gate::new().check(self, call)
    }

    /// Whether a reply of this kind, with this many calls, is legal now. Its calls are still to
    /// be checked one by one.
    ///
    /// # Errors
    /// No call where only calls are legal, or too many calls.
    pub fn check_reply(&self, reply: &Reply) -> Result<(), Failure> {
        match reply {
            Reply::Calls(calls) if calls.is_empty() => Err(Failure::new(
                FailureKind::NoCall,
                "the list of calls is empty",
            )),
            Reply::Calls(calls) if calls.len() > self.max_calls.max(1) => Err(Failure::new(
                FailureKind::Constraint,
                format!(
                    "{} calls at once, at most {} can be made",
                    calls.len(),
                    self.max_calls.max(1)
                ),
            )),
            Reply::Ask(_) if !self.ask => {
                Err(Failure::new(FailureKind::NoCall, "nobody can be asked now"))
            }
            Reply::Answer(_) if !self.answer => Err(Failure::new(
                FailureKind::NoCall,
                "it is too early for an answer",
            )),
            Reply::Calls(_) | Reply::Ask(_) | Reply::Answer(_) => Ok(()),
        }
    }
}

fn denied(tool: &str) -> Failure {
    let tool = shortened(tool, 64);
    Failure::new(
        FailureKind::Refused,
        format!("the policy does not allow `{tool}`"),
    )
    .of_tool(tool)
}

fn check_domains(legal: &Move, call: &Call) -> Result<(), Failure> {
    for (argument, value) in &call.arguments {
        let Some(live) = legal.domains.get(argument) else {
            continue;
        };
        if live.iter().any(|live| same_value(live, value)) {
            continue;
        }
        return Err(
            Failure::new(FailureKind::OutsideDomain, outside(argument, value, live))
                .of_tool(&call.tool)
                .at(format!("/{}", escaped(argument))),
        );
    }
    Ok(())
}

/// Names the value that does not exist and the few that come nearest to it.
fn outside(argument: &str, value: &Value, live: &[Value]) -> String {
    let written = match value {
        Value::String(text) => quoted(&shortened(text, 80)),
        other => shortened(&spaced(other), 80),
    };
    let mut near: Vec<&Value> = live.iter().collect();
    let meant = Grams::of(&written);
    near.sort_by(|a, b| {
        let likeness = |value: &Value| Grams::of(&spaced(value)).similarity(&meant);
        likeness(b).total_cmp(&likeness(a))
    });
    near.truncate(5);
    if near.is_empty() {
        return format!("there is no {argument} now");
    }
    let names: Vec<String> = near
        .into_iter()
        .map(|value| shortened(&spaced(value), 80))
        .collect();
    let more = if live.len() > names.len() {
        ", …"
    } else {
        ""
    };
    format!(
        "there is no {argument} {written}; there are: {}{more}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Domains, Effect, Policy};
    use serde_json::json;

    fn moves() -> Moves {
        let policy = Policy::new([("explode", Permission::Deny)]).unwrap();
        let mut moves = Moves::default();
        let spec = |name: &str, effect| {
            Arc::new(ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "device": {"type": "string"},
                        "level": {"type": "integer", "minimum": 0, "maximum": 100},
                    },
                    "required": ["device"],
                }),
                effect,
                idempotent: true,
            })
        };
        let devices = Domains::from([(
            "device".to_owned(),
            vec![
                json!("kitchen light"),
                json!("灯 \"A\"\\"),
                json!("hall lamp"),
            ],
        )]);
        moves.add(spec("turn_on", Effect::Change), devices.clone(), &policy);
        moves.add(spec("unlock", Effect::Risk), devices.clone(), &policy);
        moves.add(spec("explode", Effect::Change), devices, &policy);
        let none = Domains::from([("device".to_owned(), vec![])]);
        moves.add(spec("open", Effect::Change), none, &policy);
        moves
    }

    #[test]
    fn what_is_right_passes() {
        let mut gate = Gate::new();
        let call = Call::new("turn_on", [("device", "灯 \"A\"\\")]);
        let Ok(Verdict::Checked(checked)) = gate.check(&moves(), call.clone()) else {
            panic!("not checked");
        };
        assert_eq!((checked.call(), checked.approval()), (&call, None));
    }

    #[test]
    fn what_is_risky_waits_for_a_yes() {
        let call = Call::new("unlock", [("device", "hall lamp")]);
        let Ok(Verdict::Ask(pending)) = moves().check(call.clone()) else {
            panic!("not asked about");
        };
        let checked = pending.approve(Approval::Person);
        assert_eq!(checked.approval(), Some(Approval::Person));
        let Ok(Verdict::Ask(pending)) = moves().check(call) else {
            panic!("not asked about");
        };
        assert_eq!(pending.refuse("no").kind, FailureKind::Refused);
    }

    #[test]
    fn what_is_wrong_is_named_with_a_correct_call() {
        let moves = moves();
        let cases = [
            (json!({}), FailureKind::MissingArgument),
            (json!({"device": 1}), FailureKind::WrongType),
            (
                json!({"device": "kichen light"}),
                FailureKind::OutsideDomain,
            ),
            (
                json!({"device": "kitchen light", "level": 900}),
                FailureKind::Constraint,
            ),
            (
                json!({"device": "kitchen light", "levle": 9}),
                FailureKind::Constraint,
            ),
        ];
        for (arguments, kind) in cases {
            let call = Call {
                tool: "turn_on".into(),
                arguments: arguments.as_object().unwrap().clone(),
            };
            let failure = moves.check(call).unwrap_err();
            assert_eq!(failure.kind, kind, "{arguments}");
            let example = failure.example.unwrap();
            assert_eq!(example.arguments["device"], "kitchen light", "{arguments}");
            assert!(matches!(moves.check(*example), Ok(Verdict::Checked(_))));
        }
    }

    #[test]
    fn tools_that_are_not_there_are_told_apart() {
        let cases = [
            ("explode", FailureKind::Refused, "policy"),
            ("open", FailureKind::UnknownTool, "no device"),
            ("turn_onn", FailureKind::UnknownTool, "turn_on, unlock"),
        ];
        for (tool, kind, says) in cases {
            let failure = moves()
                .check(Call::new(tool, [("device", "hall lamp")]))
                .unwrap_err();
            assert_eq!(failure.kind, kind);
            assert!(failure.message.contains(says), "{}", failure.message);
        }
        let failure = moves().check(Call::new("turn_onn", [("device", "hall lamp")]));
        let example = failure.unwrap_err().example.unwrap();
        assert_eq!(*example, Call::new("turn_on", [("device", "hall lamp")]));
    }

    #[test]
    fn replies_are_held_to_the_turn() {
        let mut moves = moves();
        let call = Call::new("turn_on", [("device", "hall lamp")]);
        assert!(moves.check_reply(&Reply::Calls(vec![call.clone()])).is_ok());
        assert!(moves.check_reply(&Reply::Ask("which?".into())).is_ok());
        let two = Reply::Calls(vec![call.clone(), call]);
        assert_eq!(
            moves.check_reply(&two).unwrap_err().kind,
            FailureKind::Constraint
        );
        moves.ask = false;
        moves.answer = false;
        for reply in [
            Reply::Ask("?".into()),
            Reply::Answer(".".into()),
            Reply::Calls(vec![]),
        ] {
            assert_eq!(
                moves.check_reply(&reply).unwrap_err().kind,
                FailureKind::NoCall
            );
        }
    }
}
