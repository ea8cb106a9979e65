//! What a task is made of: states, the tools legal in each, what is remembered from a result,
//! which facts bound an argument, where success, failure and answers lead, and what proves that
//! the task is done.
//!
//! Most tasks use [`Definition::builtin`]: act until answered, then done. Others are written as
//! data (TOML), which [`load`](super::load) reads and checks, for example:
//!
//! ```
//! # use snaffle::task::load::parse;
//! let text = r#"
//! name = "book a flight"
//! start = "search"
//!
//! [state.search]
//! tools = ["search_flights"]
//! remember = [{ tool = "search_flights", pointer = "/flights", fact = "flights" }]
//! go = [{ on = "success", when = [{ fact = "flights", empty = false }], to = "choose" }]
//!
//! [state.choose]
//! tools = ["book_flight"]
//! bind = [{ tool = "book_flight", argument = "flight", fact = "flights", pointer = "/id" }]
//! remember = [{ tool = "book_flight", pointer = "/booking", fact = "booking" }]
//! go = [{ on = "success", to = "booked" }, { on = "failure", to = "search" }]
//!
//! [state.booked]
//! end = true
//!
//! [[proof]]
//! fact = "booking"
//! exists = true
//! "#;
//! let checked = parse(text, "flight.toml".as_ref(), None).unwrap();
//! assert!(checked.faults.is_empty());
//! ```

use super::condition::{Condition, Guard, Proof};
use super::facts::Facts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A task's states and limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Shown to people.
    pub name: String,
    /// What is to be done where nothing else is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The state in which every task begins.
    pub start: String,
    /// Files of tools that the task needs. In a file, paths from its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<PathBuf>,
    /// Where commands that prove something run: the folder of the definition's file. Set when it
    /// is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Limits of a run; what is left out is set by the caller.
    #[serde(default)]
    pub limits: Limits,
    /// Facts that are known from the beginning.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
    /// The states by name.
    #[serde(rename = "state")]
    pub states: BTreeMap<String, State>,
    /// What must be so before the task counts as done: all of them.
    #[serde(default, rename = "proof", skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Most turns of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Most tokens written in all turns together.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// What this state wants, in one line: it stands at the end of the model's prompt.
    #[serde(default, rename = "do", skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Tools that are legal here; left out: all that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether the model may ask the person.
    #[serde(default = "yes")]
    pub ask: bool,
    /// Whether the model may answer; left out: where an answer leads somewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<bool>,
    /// Whether each result is kept as a fact about what the call concerned (see
    /// [`Facts::learn`](super::Facts::learn)).
    #[serde(default)]
    pub keep_results: bool,
    /// What to remember from results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remember: Vec<Remember>,
    /// What a success strikes off a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strike: Vec<Strike>,
    /// Arguments that facts bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bind: Vec<Bind>,
    /// What must hold before a tool may be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guard: Vec<Guard>,
    /// Where outcomes lead: the first that fits; none: the state stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub go: Vec<Transition>,
    /// Whether the task is over here.
    #[serde(default)]
    pub end: bool,
    /// With `end`: the task has failed, and nothing needs to be proved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// With `end`: what the person is told; `{fact}` stands for a fact's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

fn yes() -> bool {
    true
}

/// A part of a result, or an argument, becomes a fact where a call succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// Only of this tool's results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The call's argument of this name instead of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// JSON Pointer into the result or the argument; empty: all of it. Where it leads nowhere,
    /// the fact is left as it was.
    #[serde(default)]
    pub pointer: String,
    /// The fact's name; `{argument}` in it stands for the call's argument of that name.
    pub fact: String,
}

/// What is done leaves a list that is a fact: the items that the argument names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strike {
    /// The tool whose success it is.
    pub tool: String,
    /// Its argument.
    pub argument: String,
    /// The list.
    pub fact: String,
    /// JSON Pointer into each item, to what is compared with the argument.
    #[serde(default)]
    pub pointer: String,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// What must happen.
    pub on: On,
    /// Only for this tool's outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Only where all of these hold, with what was just learned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
    /// The state that follows.
    pub to: String,
}

/// What a transition waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// A call succeeded.
    Success,
    /// A call failed.
    Failure,
    /// The model answered.
    Answer,
    /// The task came to its end from here and is not proved to be done; without such a
    /// transition it comes back here.
    Unproven,
}

impl On {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Answer => "answer",
            Self::Unproven => "unproven",
        }
    }
}

impl Definition {
    /// The definition that serves without one: act until answered, then done. Every tool is
    /// legal, every result is kept as a fact about what its call concerned.
    pub fn builtin() -> Self {
        let act = State {
            ask: true,
            answer: Some(true),
            keep_results: true,
            go: vec![Transition {
                on: On::Answer,
                tool: None,
                when: Vec::new(),
                to: "done".into(),
            }],
            ..State::default()
        };
        let done = State {
            tools: Some(Vec::new()),
            ask: true,
            answer: Some(true),
            end: true,
            ..State::default()
        };
        Self {
            name: "act until answered".into(),
            goal: None,
            start: "act".into(),
            uses: Vec::new(),
            folder: None,
            limits: Limits::default(),
            facts: Map::new(),
            states: BTreeMap::from([("act".into(), act), ("done".into(), done)]),
            proofs: Vec::new(),
        }
    }
}

impl State {
    /// Whether `tool` is legal here, its guards aside.
    pub fn allows(&self, tool: &str) -> bool {
        match &self.tools {
            None => true,
            Some(tools) => tools.iter().any(|legal| legal == tool),
        }
    }

    /// Whether the model may answer here.
    pub fn may_answer(&self) -> bool {
        self.answer
            .unwrap_or_else(|| self.go.iter().any(|transition| transition.on == On::Answer))
    }

    /// Where `on` (of `tool`, where a call is meant) leads, given what is known.
    pub fn follow(&self, on: On, tool: Option<&str>, facts: &Facts) -> Option<&str> {
        self.go
            .iter()
            .find(|transition| {
                transition.on == on
                    && (transition.tool.is_none() || transition.tool.as_deref() == tool)
                    && transition.when.iter().all(|when| when.holds(facts))
            })
            .map(|transition| transition.to.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_builtin_one_survives_json() {
        let builtin = Definition::builtin();
        let text = serde_json::to_string(&builtin).unwrap();
        assert_eq!(serde_json::from_str::<Definition>(&text).unwrap(), builtin);
    }

    /// What a journal of the first version holds is read as it was meant.
    #[test]
    fn an_old_journals_definition_is_read() {
        let old = json!({
            "name": "act until answered", "start": "act", "limits": {},
            "state": {
                "act": {"ask": true, "answer": true, "keep_results": true,
                        "go": [{"on": "answer", "to": "done"}], "end": false},
                "done": {"tools": [], "ask": true, "answer": true, "keep_results": false, "end": true},
            },
        });
        let read: Definition = serde_json::from_value(old).unwrap();
        assert_eq!(read, Definition::builtin());
    }

    #[test]
    fn the_first_transition_that_fits() {
        let state: State = toml::from_str(
            "tools=['a','b']\ngo=[{on='success',tool='a',when=[{fact='n',at_least=2}],to='w'},\
             {on='success',tool='a',to='x'},{on='success',to='y'}]",
        )
        .unwrap();
        let mut facts = Facts::default();
        for (number, on, tool, expected) in [
            (1, On::Success, Some("a"), Some("x")),
            (2, On::Success, Some("a"), Some("w")),
            (2, On::Success, Some("b"), Some("y")),
            (2, On::Failure, Some("a"), None),
            (2, On::Answer, None, None),
        ] {
            facts.set("n", json!(number));
            assert_eq!(state.follow(on, tool, &facts), expected, "{on:?} {tool:?}");
        }
        assert!(state.allows("a") && !state.allows("c"));
        assert!(!state.may_answer());
    }
}
