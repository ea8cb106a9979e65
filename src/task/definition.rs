//! What a task is made of: states, the tools legal in each, what is remembered from a result,
//! which facts bound an argument, and where success, failure and answers lead.
//!
//! Most tasks use [`Definition::builtin`]: act until answered, then done. Others are written as
//! data (TOML), for example:
//!
//! ```
//! # use snaffle::task::Definition;
//! let text = r#"
//! name = "book a flight"
//! start = "search"
//!
//! [state.search]
//! tools = ["search_flights"]
//! remember = [{ tool = "search_flights", pointer = "/flights", fact = "flights" }]
//! go = [{ on = "success", to = "choose" }]
//!
//! [state.choose]
//! tools = ["book_flight"]
//! bind = [{ tool = "book_flight", argument = "flight", fact = "flights", pointer = "/id" }]
//! go = [{ on = "success", to = "booked" }, { on = "failure", to = "search" }]
//!
//! [state.booked]
//! end = true
//! "#;
//! let definition: Definition = toml::from_str(text).unwrap();
//! definition.check().unwrap();
//! ```

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A task's states and limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Shown to people.
    pub name: String,
    /// The state in which every task begins.
    pub start: String,
    /// Limits of a run; what is left out is set by the caller.
    #[serde(default)]
    pub limits: Limits,
    /// The states by name.
    #[serde(rename = "state")]
    pub states: BTreeMap<String, State>,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Most turns of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Most tokens, prompts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Most seconds of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Most failures in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
}

/// One state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Tools that are legal here; left out: all that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether the model may ask the person.
    #[serde(default = "yes")]
    pub ask: bool,
    /// Whether the model may answer.
    #[serde(default = "yes")]
    pub answer: bool,
    /// Whether each result is kept as a fact about what the call concerned (see
    /// [`Facts::learn`](super::Facts::learn)).
    #[serde(default)]
    pub keep_results: bool,
    /// What to remember from results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remember: Vec<Remember>,
    /// Arguments that facts bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bind: Vec<Bind>,
    /// Where outcomes lead: the first that fits; none: the state stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub go: Vec<Transition>,
    /// Whether the task is done here.
    #[serde(default)]
    pub end: bool,
}

fn yes() -> bool {
    true
}

/// A part of a result becomes a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// Only of this tool's results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// JSON Pointer into the result; empty: all of it. Where it leads nowhere, the fact is left
    /// as it was.
    #[serde(default)]
    pub pointer: String,
    /// The fact's name; `{argument}` in it stands for the call's argument of that name.
    pub fact: String,
}

/// A fact's values are the only ones that an argument may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// The tool.
    pub tool: String,
    /// Its argument.
    pub argument: String,
    /// The fact: a list's items, or the one value.
    pub fact: String,
    /// JSON Pointer into each item.
    #[serde(default)]
    pub pointer: String,
}

/// Where an outcome leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// What must happen.
    pub on: On,
    /// Only for this tool's outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The state that follows.
    pub to: String,
}

/// What a transition waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// A call succeeded.
    Success,
    /// A call failed.
    Failure,
    /// The model answered.
    Answer,
}

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A state that is named does not exist.
    #[error("{place} names the state {state:?}, which does not exist")]
    UnknownState {
        /// Where it is named.
        place: String,
        /// The name.
        state: String,
    },
    /// No way leads there.
    #[error("no way leads from {start:?} to the state {state:?}")]
    Unreachable {
        /// The start.
        start: String,
        /// The state.
        state: String,
    },
    /// Nothing leads out of a state that is no end.
    #[error("the state {state:?} is no end, and nothing leads out of it")]
    DeadEnd {
        /// The state.
        state: String,
    },
    /// Not a JSON Pointer.
    #[error("{place}: {pointer:?} is no JSON Pointer (empty, or beginning with '/')")]
    Pointer {
        /// Where it stands.
        place: String,
        /// The text.
        pointer: String,
    },
    /// A fact is used that nothing remembers.
    #[error("the state {state:?} binds an argument to the fact {fact:?}, which no state remembers")]
    UnknownFact {
        /// The state.
        state: String,
        /// The fact.
        fact: String,
    },
}

impl Definition {
    /// The definition that serves without one: act until answered, then done. Every tool is
    /// legal, every result is kept as a fact about what its call concerned.
    pub fn builtin() -> Self {
        let blank = State {
            tools: None,
            ask: true,
            answer: true,
            keep_results: true,
            remember: Vec::new(),
            bind: Vec::new(),
            go: Vec::new(),
            end: false,
        };
        let act = State {
            go: vec![Transition {
                on: On::Answer,
                tool: None,
                to: "done".into(),
            }],
            ..blank.clone()
        };
        let done = State {
            tools: Some(Vec::new()),
            keep_results: false,
            end: true,
            ..blank
        };
        Self {
            name: "act until answered".into(),
            start: "act".into(),
            limits: Limits::default(),
            states: BTreeMap::from([("act".into(), act), ("done".into(), done)]),
        }
    }

    /// Checks what can be checked without knowing the tools: every state that is named exists,
    /// is reachable and leads on; pointers are pointers; facts that bind are remembered.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), DefinitionError> {
        let known = |place: String, state: &String| {
            if self.states.contains_key(state) {
                return Ok(());
            }
            let state = state.clone();
            Err(DefinitionError::UnknownState { place, state })
        };
        known("start".into(), &self.start)?;
        let mut facts: Vec<&str> = Vec::new();
        for (name, state) in &self.states {
            for transition in &state.go {
                known(format!("the state {name:?}"), &transition.to)?;
            }
            if !state.end && state.go.is_empty() {
                return Err(DefinitionError::DeadEnd {
                    state: name.clone(),
                });
            }
            let pointers = state.remember.iter().map(|rule| &rule.pointer);
            for pointer in pointers.chain(state.bind.iter().map(|bind| &bind.pointer)) {
                if !pointer.is_empty() && !pointer.starts_with('/') {
                    return Err(DefinitionError::Pointer {
                        place: format!("the state {name:?}"),
                        pointer: pointer.clone(),
                    });
                }
            }
            facts.extend(state.remember.iter().map(|rule| rule.fact.as_str()));
        }
        let mut reached = vec![&self.start];
        let mut next = 0;
        while let Some(state) = reached.get(next).and_then(|name| self.states.get(*name)) {
            for transition in &state.go {
                if !reached.contains(&&transition.to) {
                    reached.push(&transition.to);
                }
            }
            next += 1;
        }
        for (name, state) in &self.states {
            if !reached.contains(&name) {
                return Err(DefinitionError::Unreachable {
                    start: self.start.clone(),
                    state: name.clone(),
                });
            }
            if let Some(bind) = state
                .bind
                .iter()
                .find(|b| !facts.contains(&b.fact.as_str()))
            {
                return Err(DefinitionError::UnknownFact {
                    state: name.clone(),
                    fact: bind.fact.clone(),
                });
            }
        }
        Ok(())
    }
}

impl State {
    /// Whether `tool` is legal here.
    pub fn allows(&self, tool: &str) -> bool {
        match &self.tools {
            None => true,
            Some(tools) => tools.iter().any(|legal| legal == tool),
        }
    }

    /// Where `on` (of `tool`, where a call is meant) leads.
    pub fn follow(&self, on: On, tool: Option<&str>) -> Option<&str> {
        self.go
            .iter()
            .find(|transition| {
                transition.on == on
                    && (transition.tool.is_none() || transition.tool.as_deref() == tool)
            })
            .map(|transition| transition.to.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found() {
        let cases = [
            (
                "start='a'\n[state.b]\nend=true",
                "start names the state \"a\", which does not exist",
            ),
            (
                "start='a'\n[state.a]\ngo=[{on='success',to='c'}]",
                "the state \"a\" names the state \"c\", which does not exist",
            ),
            (
                "start='a'\n[state.a]",
                "the state \"a\" is no end, and nothing leads out of it",
            ),
            (
                "start='a'\n[state.a]\nend=true\n[state.b]\nend=true",
                "no way leads from \"a\" to the state \"b\"",
            ),
            (
                "start='a'\n[state.a]\nend=true\nremember=[{pointer='x',fact='f'}]",
                "the state \"a\": \"x\" is no JSON Pointer (empty, or beginning with '/')",
            ),
            (
                "start='a'\n[state.a]\nend=true\nbind=[{tool='t',argument='x',fact='f'}]",
                "the state \"a\" binds an argument to the fact \"f\", which no state remembers",
            ),
        ];
        for (text, expected) in cases {
            let definition: Definition = toml::from_str(&format!("name='n'\n{text}")).unwrap();
            assert_eq!(definition.check().unwrap_err().to_string(), expected);
        }
        assert!(toml::from_str::<Definition>("name='n'\nstart='a'\nstate={}\ntypo=1").is_err());
    }

    #[test]
    fn the_builtin_one_is_sound_and_survives_json() {
        let builtin = Definition::builtin();
        builtin.check().unwrap();
        let text = serde_json::to_string(&builtin).unwrap();
        assert_eq!(serde_json::from_str::<Definition>(&text).unwrap(), builtin);
    }

    #[test]
    fn the_first_transition_that_fits() {
        let state: State = toml::from_str(
            "tools=['a','b']\ngo=[{on='success',tool='a',to='x'},{on='success',to='y'}]",
        )
        .unwrap();
        for (on, tool, expected) in [
            (On::Success, Some("a"), Some("x")),
            (On::Success, Some("b"), Some("y")),
            (On::Failure, Some("a"), None),
            (On::Answer, None, None),
        ] {
            assert_eq!(state.follow(on, tool), expected, "{on:?} {tool:?}");
        }
        assert!(state.allows("a") && !state.allows("c"));
    }
}
