//! Checks a definition as a graph: states that no way leads to or out of, and facts that are used
//! before they can be known.

use super::check::{Checker, Part, place};
use super::condition::{Condition, Evidence, holes};
use super::definition::State;
use super::flow::{self, Edge, Known};
use crate::call::Effect;
use crate::call::arguments::ArgumentSchema;
use std::collections::BTreeSet;

impl<'d> Checker<'d> {
    /// States that cannot be reached, and those that lead nowhere.
    pub(super) fn ways(&mut self, edges: &[Edge<'d>]) {
        let definition = self.definition;
        let mut named = definition
            .states
            .values()
            .flat_map(|state| state.go.iter().map(|go| &go.to))
            .chain([&definition.start]);
        if !named.all(|state| definition.states.contains_key(state)) {
            // Where a name is wrong, nobody knows what leads where.
            return;
        }
        let (reached, ending) = flow::reach(definition, edges);
        for (name, state) in &definition.states {
            let place = place!["state", name.as_str()];
            let leaves = edges
                .iter()
                .any(|edge| edge.from == name && edge.to != name);
            if !reached.contains(name.as_str()) {
                let start = &definition.start;
                self.fault(place, format!("no way leads from {start:?} to {name:?}"));
            } else if !state.end && !leaves {
                self.fault(
                    place,
                    format!("dead end: {name:?} is no end, and nothing leads out of it"),
                );
            } else if !ending.contains(name.as_str()) {
                self.fault(
                    place,
                    format!("dead end: no way leads from {name:?} to an end"),
                );
            }
        }
        if definition
            .states
            .values()
            .all(|state| !state.end || state.failed)
        {
            self.fault(
                place!["state"],
                "no state is an end at which the task is done",
            );
        }
    }

    /// Facts that are used in a state.
    pub(super) fn facts(
        &mut self,
        name: &'d str,
        state: &'d State,
        known: &Known<'d>,
        edges: &[Edge<'d>],
    ) {
        let nothing = BTreeSet::new();
        let may = known.may.get(name).unwrap_or(&nothing);
        let must = known.must.get(name).unwrap_or(&nothing);
        for (at, bind) in state.bind.iter().enumerate() {
            let place = place!["state", name, "bind", at];
            if self.can_be(&place, may, &bind.fact) && !must.contains(bind.fact.as_str()) {
                let fact = &bind.fact;
                let tool = &bind.tool;
                self.warn(
                    place,
                    format!(
                        "the fact {fact:?} may not be there yet: {tool} can then not be called"
                    ),
                );
            }
        }
        for (at, rule) in state.strike.iter().enumerate() {
            self.can_be(&place!["state", name, "strike", at], may, &rule.fact);
        }
        for (at, guard) in state.guard.iter().enumerate() {
            if !guard.condition.test.wants_nothing() {
                let place = place!["state", name, "guard", at];
                self.can_be(&place, may, &guard.condition.fact);
            }
        }
        for (at, go) in state.go.iter().enumerate() {
            let on_the_way: BTreeSet<&str> = edges
                .iter()
                .filter(|edge| edge.from == name && edge.transition == Some(at))
                .flat_map(|edge| edge.learns.iter().copied())
                .chain(may.iter().copied())
                .collect();
            for (number, when) in go.when.iter().enumerate() {
                self.condition(
                    &place!["state", name, "go", at, "when", number],
                    &on_the_way,
                    when,
                );
            }
        }
        for fact in state.say.as_deref().map(holes).unwrap_or_default() {
            self.can_be(&place!["state", name, "say"], may, fact);
        }
    }

    fn condition(&mut self, place: &[Part], may: &BTreeSet<&str>, condition: &Condition) {
        if !condition.test.wants_nothing() {
            self.can_be(place, may, &condition.fact);
        }
    }

    /// Whether a fact can be there; it is a fault where it cannot.
    fn can_be(&mut self, place: &[Part], may: &BTreeSet<&str>, fact: &str) -> bool {
        if may.iter().any(|learned| flow::may_be(learned, fact)) {
            return true;
        }
        let rules = self.definition.states.values().flat_map(|s| &s.remember);
        let somewhere = rules
            .map(|rule| rule.fact.as_str())
            .chain(self.definition.facts.keys().map(String::as_str))
            .any(|learned| flow::may_be(learned, fact));
        self.fault(
            place.to_vec(),
            if somewhere {
                format!("the fact {fact:?} is used before it can exist")
            } else {
                format!("the fact {fact:?} is used, and nothing remembers it")
            },
        );
        false
    }

    pub(super) fn proofs(&mut self, known: &Known<'d>) {
        let definition = self.definition;
        let ends = definition
            .states
            .iter()
            .filter(|(_, state)| state.end && !state.failed);
        let may: BTreeSet<&str> = ends
            .filter_map(|(name, _)| known.may.get(name.as_str()))
            .flatten()
            .copied()
            .collect();
        for (at, proof) in definition.proofs.iter().enumerate() {
            let place = place!["proof", at];
            match &proof.by {
                Evidence::Fact(condition) => {
                    self.pointer(&place, &condition.pointer);
                    self.condition(&place, &may, condition);
                }
                Evidence::Tool {
                    tool,
                    arguments,
                    pointer,
                    ..
                } => {
                    self.pointer(&place, pointer);
                    self.tool(place.clone(), tool);
                    let Some(spec) = self.spec(tool) else {
                        continue;
                    };
                    if spec.effect != Effect::Read {
                        self.fault(
                            place.clone(),
                            format!("a proof changes nothing: {tool} does not only read"),
                        );
                    }
                    let checked = ArgumentSchema::new(spec)
                        .map_err(|error| error.to_string())
                        .and_then(|schema| {
                            schema.check(arguments).map_err(|failure| failure.message)
                        });
                    if let Err(message) = checked {
                        self.fault(place, format!("{tool} cannot be called so: {message}"));
                    }
                }
                Evidence::Command { command, .. } => {
                    let program = command.first().map(String::as_str).unwrap_or_default();
                    if let (true, Some(folder)) = (program.contains('/'), &definition.folder)
                        && !folder.join(program).is_file()
                    {
                        self.fault(place, format!("there is no program {program}"));
                    }
                }
            }
        }
    }
}
