//! What is wrong with a definition, each fault with its place in it.
//!
//! Checked without knowing the tools: names that lead nowhere, states that no way leads to or
//! out of, facts that are used before they can exist, pointers that are none. With a catalogue of
//! tools also: tools and arguments that do not exist. [`load`](super::load) turns places into
//! lines of a file.

use super::condition::holes;
use super::definition::{Definition, On, State};
use super::flow;
use crate::call::ToolSpec;
use crate::call::relevance::Grams;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Most states: each is a place that a person has to understand.
pub const STATE_LIMIT: usize = 500;

/// Longest purpose of a state, in bytes: it is part of every prompt there.
pub const PURPOSE_LIMIT: usize = 200;

/// A step on the way to a place in a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A key of a table.
    Key(String),
    /// An item of a list.
    Item(usize),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Vec<Part>,
    /// What, in one line.
    pub message: String,
    /// Whether the definition works all the same.
    pub warning: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Definition {
    /// Everything that is wrong with it. `tools` are all that it may call; `None`: not known, not
    /// checked.
    pub fn faults(&self, tools: Option<&[Arc<ToolSpec>]>) -> Vec<Fault> {
        let mut checker = Checker {
            definition: self,
            tools,
            faults: Vec::new(),
        };
        checker.all();
        checker.faults
    }

    /// Checks it without knowing the tools.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        let faults = self.faults(None);
        match faults.into_iter().find(|fault| !fault.warning) {
            None => Ok(()),
            Some(fault) => Err(fault),
        }
    }
}

pub(super) struct Checker<'d> {
    pub(super) definition: &'d Definition,
    pub(super) tools: Option<&'d [Arc<ToolSpec>]>,
    faults: Vec<Fault>,
}

/// A place: keys and indices one after another.
macro_rules! place {
    ($($part:expr),*) => { Vec::from([$(Part::from($part)),*]) };
}
pub(super) use place;

impl From<&str> for Part {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Part {
    fn from(at: usize) -> Self {
        Self::Item(at)
    }
}

impl<'d> Checker<'d> {
    pub(super) fn fault(&mut self, place: Vec<Part>, message: impl Into<String>) {
        self.faults.push(Fault {
            place,
            message: message.into(),
            warning: false,
        });
    }

    pub(super) fn warn(&mut self, place: Vec<Part>, message: impl Into<String>) {
        self.faults.push(Fault {
            place,
            message: message.into(),
            warning: true,
        });
    }

    fn all(&mut self) {
        let definition = self.definition;
        if definition.states.len() > STATE_LIMIT {
            let count = definition.states.len();
            self.fault(
                place!["state"],
                format!("{count} states, at most {STATE_LIMIT}"),
            );
            return;
        }
        self.limits();
        for (name, value) in &definition.facts {
            if has_date(value) {
                self.fault(
                    place!["facts", name.as_str()],
                    "facts have no dates: write them as text",
                );
            }
        }
        if !definition.states.contains_key(&definition.start) {
            let message = self.no_state(&definition.start);
            self.fault(place!["start"], format!("`start` names {message}"));
        }
        for (name, state) in &definition.states {
            self.state(name, state);
        }
        let edges = flow::edges(definition);
        self.ways(&edges);
        let known = flow::known(definition, &edges);
        for (name, state) in &definition.states {
            if known.may.contains_key(name.as_str()) {
                self.facts(name, state, &known, &edges);
            }
        }
        self.proofs(&known);
    }

    fn limits(&mut self) {
        let limits = &self.definition.limits;
        for (name, zero) in [
            ("turns", limits.turns == Some(0)),
            ("tokens", limits.tokens == Some(0)),
            ("seconds", limits.seconds == Some(0)),
            ("failures", limits.failures == Some(0)),
        ] {
            if zero {
                self.fault(
                    place!["limits", name],
                    format!("a limit of 0 {name} leaves no room for anything"),
                );
            }
        }
    }

    fn no_state(&self, name: &str) -> String {
        let near = nearest(name, self.definition.states.keys().map(String::as_str));
        match near {
            Some(near) => format!("the state {name:?}, which does not exist (is it {near:?}?)"),
            None => format!("the state {name:?}, which does not exist"),
        }
    }

    /// What can be said of a state alone.
    fn state(&mut self, name: &'d str, state: &'d State) {
        let here = |key: &str| place!["state", name, key];
        if let Some(purpose) = &state.purpose
            && (purpose.trim().is_empty()
                || purpose.len() > PURPOSE_LIMIT
                || purpose.contains(char::is_control))
        {
            self.fault(
                here("do"),
                format!("`do` is one line of 1 to {PURPOSE_LIMIT} bytes"),
            );
        }
        if state.end {
            let idle = [
                ("do", state.purpose.is_none()),
                ("go", state.go.is_empty()),
                ("remember", state.remember.is_empty()),
                ("strike", state.strike.is_empty()),
                ("bind", state.bind.is_empty()),
                ("guard", state.guard.is_empty()),
            ];
            for (key, _) in idle.into_iter().filter(|(_, empty)| !empty) {
                self.fault(
                    here(key),
                    format!("{name:?} is an end: `{key}` has no effect"),
                );
            }
        } else {
            for (key, set) in [("failed", state.failed), ("say", state.say.is_some())] {
                if set {
                    self.fault(
                        here(key),
                        format!("{name:?} is no end: `{key}` has no effect"),
                    );
                }
            }
            let nothing = state.tools.as_ref().is_some_and(Vec::is_empty);
            if nothing && !state.ask && !state.may_answer() {
                self.fault(
                    place!["state", name],
                    format!("nothing can be done in {name:?}: no tool, no question, no answer"),
                );
            }
            if state.answer == Some(true) && state.go.iter().all(|go| go.on != On::Answer) {
                self.fault(
                    here("answer"),
                    "an answer leads nowhere: no `go` is on \"answer\"",
                );
            }
        }
        for (at, tool) in state.tools.iter().flatten().enumerate() {
            self.tool(place!["state", name, "tools", at], tool);
        }
        for (at, rule) in state.remember.iter().enumerate() {
            let place = place!["state", name, "remember", at];
            if let Some(tool) = &rule.tool {
                self.legal(&place, state, tool);
            }
            let named: Vec<&str> = match (&rule.tool, &state.tools) {
                (Some(tool), _) => vec![tool],
                (None, Some(tools)) => tools.iter().map(String::as_str).collect(),
                (None, None) => Vec::new(),
            };
            for argument in rule
                .argument
                .as_deref()
                .into_iter()
                .chain(holes(&rule.fact))
            {
                let some = named.iter().any(|tool| self.has_argument(tool, argument));
                if !some && !named.is_empty() {
                    self.no_argument(&place, named[0], argument);
                }
            }
            self.pointer(&place, &rule.pointer);
            self.fact_name(&place, &rule.fact);
        }
        for (at, rule) in state.strike.iter().enumerate() {
            let place = place!["state", name, "strike", at];
            self.argument(&place, state, &rule.tool, &rule.argument);
            self.pointer(&place, &rule.pointer);
        }
        for (at, bind) in state.bind.iter().enumerate() {
            let place = place!["state", name, "bind", at];
            self.argument(&place, state, &bind.tool, &bind.argument);
            self.pointer(&place, &bind.pointer);
            let twice = state.bind.iter().take(at);
            if twice
                .clone()
                .any(|b| b.tool == bind.tool && b.argument == bind.argument)
            {
                self.fault(
                    place,
                    format!("{} of {} is bound twice", bind.argument, bind.tool),
                );
            }
        }
        for (at, guard) in state.guard.iter().enumerate() {
            let place = place!["state", name, "guard", at];
            self.legal(&place, state, &guard.tool);
            for argument in guard.arguments() {
                if !self.has_argument(&guard.tool, argument) {
                    self.no_argument(&place, &guard.tool, argument);
                }
            }
            self.pointer(&place, &guard.condition.pointer);
        }
        for (at, go) in state.go.iter().enumerate() {
            let place = place!["state", name, "go", at];
            if let Some(tool) = &go.tool {
                self.legal(&place, state, tool);
                if matches!(go.on, On::Answer | On::Unproven) {
                    self.fault(
                        place.clone(),
                        format!("`tool` means nothing on {:?}", go.on.as_str()),
                    );
                }
            }
            if !self.definition.states.contains_key(&go.to) {
                let message = self.no_state(&go.to);
                self.fault(
                    place!["state", name, "go", at, "to"],
                    format!("`to` names {message}"),
                );
            }
            if go.on == On::Unproven && self.definition.proofs.is_empty() {
                self.fault(
                    place.clone(),
                    "nothing is to be proved: there is no `[[proof]]`",
                );
            }
            if go.on == On::Answer && state.answer == Some(false) {
                self.fault(
                    place.clone(),
                    "never followed: answers are not allowed here",
                );
            }
            for when in &go.when {
                self.pointer(&place, &when.pointer);
            }
            let shadowed = state.go.iter().take(at).any(|earlier| {
                earlier.on == go.on
                    && earlier.when.is_empty()
                    && (earlier.tool.is_none() || earlier.tool == go.tool)
            });
            if shadowed {
                self.warn(place, "never followed: an earlier one always fits");
            }
        }
    }

    pub(super) fn pointer(&mut self, place: &[Part], pointer: &str) {
        let escapes = pointer.split('~').skip(1);
        let whole = escapes
            .clone()
            .all(|rest| rest.starts_with('0') || rest.starts_with('1'));
        if (!pointer.is_empty() && !pointer.starts_with('/')) || !whole {
            self.fault(
                place.to_vec(),
                format!("{pointer:?} is no JSON Pointer (empty, or beginning with '/')"),
            );
        }
    }

    fn fact_name(&mut self, place: &[Part], fact: &str) {
        if fact.is_empty() || fact.len() > 96 || fact.contains(char::is_control) {
            self.fault(
                place.to_vec(),
                format!("{fact:?} is no name of a fact: one line of 1 to 96 bytes"),
            );
        }
    }

    /// A tool that is legal in a state.
    fn legal(&mut self, place: &[Part], state: &State, tool: &str) {
        if !state.allows(tool) {
            self.fault(
                place.to_vec(),
                format!("the tool {tool:?} is not legal in this state"),
            );
        } else if state.tools.is_none() {
            self.tool(place.to_vec(), tool);
        }
    }

    pub(super) fn spec(&self, tool: &str) -> Option<&'d Arc<ToolSpec>> {
        self.tools?.iter().find(|spec| spec.name == tool)
    }

    /// A tool that exists.
    pub(super) fn tool(&mut self, place: Vec<Part>, tool: &str) {
        let Some(tools) = self.tools else {
            return;
        };
        if self.spec(tool).is_none() {
            let near = nearest(tool, tools.iter().map(|spec| spec.name.as_str()));
            self.fault(
                place,
                match near {
                    Some(near) => format!("there is no tool {tool:?} (is it {near:?}?)"),
                    None => format!("there is no tool {tool:?}"),
                },
            );
        }
    }

    /// Whether a tool has an argument; of a tool that is not known: yes.
    fn has_argument(&self, tool: &str, argument: &str) -> bool {
        self.spec(tool).is_none_or(|spec| {
            spec.requires(argument)
                || spec
                    .parameters
                    .get("properties")
                    .and_then(|properties| properties.get(argument))
                    .is_some()
        })
    }

    fn no_argument(&mut self, place: &[Part], tool: &str, argument: &str) {
        let names = self
            .spec(tool)
            .and_then(|spec| spec.parameters.get("properties"))
            .and_then(Value::as_object)
            .map(|properties| {
                let names: Vec<&str> = properties.keys().map(String::as_str).collect();
                names.join(", ")
            })
            .unwrap_or_default();
        self.fault(
            place.to_vec(),
            format!("{tool} has no argument {argument:?} (it has: {names})"),
        );
    }

    fn argument(&mut self, place: &[Part], state: &State, tool: &str, argument: &str) {
        self.legal(place, state, tool);
        if !self.has_argument(tool, argument) {
            self.no_argument(place, tool, argument);
        }
    }
}

/// Dates and times of TOML arrive as a table with this key.
fn has_date(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| key.starts_with("$__toml") || has_date(value)),
        Value::Array(items) => items.iter().any(has_date),
        _ => false,
    }
}

/// The name that was perhaps meant.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let meant = Grams::of(name);
    let by_likeness: BTreeMap<u64, &str> = names
        .map(|name| (meant.similarity(&Grams::of(name)), name))
        .filter(|(likeness, _)| *likeness > 0.35)
        .map(|(likeness, name)| ((likeness * 1e6) as u64, name))
        .collect();
    by_likeness.into_values().next_back()
}
