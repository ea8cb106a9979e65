//! The legal moves of a turn: tools ∩ state ∩ policy, with the values that exist right now.

use super::json::{same_value, spaced};
use super::policy::{Permission, Policy};
use super::relevance::most_relevant;
use super::spec::{Domains, ToolSpec};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A tool that can be called in this turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The tool.
    pub spec: Arc<ToolSpec>,
    /// Live values by argument.
    pub domains: Domains,
    /// What the policy says: [`Permission::Allow`] or [`Permission::Ask`].
    pub permission: Permission,
}

impl Move {
    /// The first required argument that has no value now: the tool is then impossible.
    pub fn impossible(&self) -> Option<&str> {
        self.domains
            .iter()
            .find(|(argument, values)| values.is_empty() && self.spec.requires(argument))
            .map(|(argument, _)| argument.as_str())
    }

    /// Bounds an argument to `values` (a fact's, say): those of them that are also live values,
    /// where the tool has any for this argument.
    pub fn bind(&mut self, argument: &str, values: &[Value]) {
        let bound = match self.domains.get(argument) {
            None => values.to_vec(),
            Some(live) => live
                .iter()
                .filter(|live| values.iter().any(|value| same_value(live, value)))
                .cloned()
                .collect(),
        };
        self.domains.insert(argument.to_owned(), bound);
    }
}

/// Why a tool that exists is not among the moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The policy denies it.
    Denied,
    /// A required argument has no value now.
    Impossible {
        /// Which argument.
        argument: String,
    },
    /// The state of the task does not have it.
    State,
}

/// What can be said in a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Moves {
    /// The tools that can be called.
    pub moves: Vec<Move>,
    /// Whether the person may be asked.
    pub ask: bool,
    /// Whether the final answer may be given.
    pub answer: bool,
    /// Most calls in one turn, at least 1.
    pub max_calls: usize,
    /// Tools that exist and cannot be called now, and why.
    pub absent: Vec<(String, Absence)>,
}

impl Default for Moves {
    /// No tool; asking and answering.
    fn default() -> Self {
        Self {
            moves: Vec::new(),
            ask: true,
            answer: true,
            max_calls: 1,
            absent: Vec::new(),
        }
    }
}

/// What [`Moves::narrow`] left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// The tools whose argument it is (those that share the same values).
    pub tools: Vec<String>,
    /// The argument.
    pub argument: String,
    /// Number of values kept.
    pub kept: usize,
    /// Number of values there were.
    pub of: usize,
}

impl Moves {
    /// Most live values in the grammar of a turn. Every value costs mask time when it changes, and
    /// a choice among more is beyond a small model.
    pub const MAX_VALUES: usize = 256;

    /// Adds a tool with its live values, unless the policy denies it or it is impossible now;
    /// says whether it was added.
    pub fn add(&mut self, spec: Arc<ToolSpec>, domains: Domains, policy: &Policy) -> bool {
        let permission = policy.permission(&spec);
        if permission == Permission::Deny {
            self.absent.push((spec.name.clone(), Absence::Denied));
            return false;
        }
        self.moves.push(Move {
            spec,
            domains,
            permission,
        });
        self.drop_impossible() == 0
    }

    /// The move that calls `tool`.
    pub fn find(&self, tool: &str) -> Option<&Move> {
        self.moves.iter().find(|legal| legal.spec.name == tool)
    }

    /// The move that calls `tool`, for binding its arguments. Call
    /// [`drop_impossible`](Self::drop_impossible) afterwards.
    pub fn find_mut(&mut self, tool: &str) -> Option<&mut Move> {
        self.moves.iter_mut().find(|legal| legal.spec.name == tool)
    }

    /// Keeps only the tools that the state of the task has.
    pub fn restrict(&mut self, mut legal: impl FnMut(&str) -> bool) {
        let absent = &mut self.absent;
        self.moves.retain(|tool| {
            let keep = legal(&tool.spec.name);
            if !keep {
                absent.push((tool.spec.name.clone(), Absence::State));
            }
            keep
        });
    }

    /// Leaves out the tools for which a required argument has no value; says how many.
    pub fn drop_impossible(&mut self) -> usize {
        let before = self.moves.len();
        let absent = &mut self.absent;
        self.moves.retain(|tool| match tool.impossible() {
            None => true,
            Some(argument) => {
                absent.push((
                    tool.spec.name.clone(),
                    Absence::Impossible {
                        argument: argument.to_owned(),
                    },
                ));
                false
            }
        });
        before - self.moves.len()
    }

    /// Keeps of each argument's live values only `values`, where any tool's argument of that name
    /// has one of them, and leaves out the tools for which nothing is left.
    pub fn keep_only(&mut self, values: &[String]) {
        let among = |value: &Value| {
            value
                .as_str()
                .is_some_and(|text| values.iter().any(|v| v == text))
        };
        let arguments: BTreeSet<String> = self
            .moves
            .iter()
            .flat_map(|legal| &legal.domains)
            .filter(|(_, live)| live.iter().any(among))
            .map(|(argument, _)| argument.clone())
            .collect();
        for legal in &mut self.moves {
            for (argument, live) in &mut legal.domains {
                if arguments.contains(argument) {
                    live.retain(among);
                }
            }
        }
        self.drop_impossible();
    }

    /// These moves without any live value: what the tools' schemas alone allow.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let mut moves = self.clone();
        for legal in &mut moves.moves {
            legal.domains.clear();
        }
        moves
    }

    /// Number of live values, lists that several tools share counted once.
    pub fn values(&self) -> usize {
        self.lists().iter().map(|list| list.values.len()).sum()
    }

    /// These moves with at most [`MAX_VALUES`](Self::MAX_VALUES) live values: where there are
    /// more, long lists keep the values most like the request. The gate should go on checking
    /// against the moves as they were: what was left out still exists.
    pub fn narrow(&self, request: &str) -> (Self, Vec<Narrowed>) {
        self.narrow_to(request, Self::MAX_VALUES)
    }

    /// As [`narrow`](Self::narrow), with a limit of one's own. Every list keeps at least one
    /// value, so more than `limit` lists keep more than `limit` values.
    pub fn narrow_to(&self, request: &str, limit: usize) -> (Self, Vec<Narrowed>) {
        let lists = self.lists();
        let sizes: Vec<usize> = lists.iter().map(|list| list.values.len()).collect();
        let share = fair_share(&sizes, limit);
        let mut narrowed = self.clone();
        let mut report = Vec::new();
        for list in lists.iter().filter(|list| list.values.len() > share) {
            let texts: Vec<String> = list.values.iter().map(as_text).collect();
            let kept: Vec<Value> = most_relevant(request, texts.iter().map(String::as_str), share)
                .into_iter()
                .filter_map(|at| list.values.get(at).cloned())
                .collect();
            for &tool in &list.tools {
                if let Some(legal) = narrowed.moves.get_mut(tool) {
                    legal.domains.insert(list.argument.to_owned(), kept.clone());
                }
            }
            report.push(Narrowed {
                tools: list
                    .tools
                    .iter()
                    .filter_map(|&tool| self.moves.get(tool))
                    .map(|tool| tool.spec.name.clone())
                    .collect(),
                argument: list.argument.to_owned(),
                kept: kept.len(),
                of: list.values.len(),
            });
        }
        (narrowed, report)
    }

    /// The different lists of live values, each with the tools that have it under that argument.
    fn lists(&self) -> Vec<List<'_>> {
        let mut lists: Vec<List<'_>> = Vec::new();
        for (at, tool) in self.moves.iter().enumerate() {
            for (argument, values) in &tool.domains {
                match lists
                    .iter_mut()
                    .find(|list| list.argument == argument && list.values == values.as_slice())
                {
                    Some(list) => list.tools.push(at),
                    None => lists.push(List {
                        argument,
                        values,
                        tools: vec![at],
                    }),
                }
            }
        }
        lists
    }
}

/// A list of live values and the tools (indices) whose `argument` it bounds.
struct List<'m> {
    argument: &'m str,
    values: &'m [Value],
    tools: Vec<usize>,
}

/// The largest cap under which lists of these sizes hold at most `limit` values together, at
/// least 1: short lists stay whole, the long ones share what is left.
fn fair_share(sizes: &[usize], limit: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = limit;
    for (at, &size) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at);
        if size > share {
            return share.max(1);
        }
        left -= size;
    }
    usize::MAX
}

/// What a value is compared with the request by.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => spaced(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Effect;
    use serde_json::json;

    fn spec(name: &str, required: &[&str]) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({
                "type": "object",
                "properties": {"device": {"type": "string"}, "room": {"type": "string"}},
                "required": required,
            }),
            effect: Effect::Change,
            idempotent: true,
        })
    }

    fn domain(argument: &str, values: &[&str]) -> Domains {
        let values = values.iter().map(|&value| value.into()).collect();
        Domains::from([(argument.to_owned(), values)])
    }

    #[test]
    fn denied_and_impossible_tools_are_left_out() {
        let policy = Policy::new([("lock", Permission::Deny)]).unwrap();
        let mut moves = Moves::default();
        assert!(moves.add(
            spec("turn_on", &["device"]),
            domain("device", &["a"]),
            &policy
        ));
        assert!(!moves.add(spec("lock", &["device"]), domain("device", &["a"]), &policy));
        assert!(!moves.add(spec("open", &["device"]), domain("device", &[]), &policy));
        assert!(moves.add(spec("optional", &[]), domain("room", &[]), &policy));
        let names: Vec<&str> = moves.moves.iter().map(|m| m.spec.name.as_str()).collect();
        assert_eq!(names, ["turn_on", "optional"]);
        let impossible = Absence::Impossible {
            argument: "device".into(),
        };
        assert_eq!(
            moves.absent,
            [
                ("lock".to_owned(), Absence::Denied),
                ("open".to_owned(), impossible)
            ]
        );
        moves.restrict(|name| name == "optional");
        assert_eq!(
            moves.absent.last(),
            Some(&("turn_on".to_owned(), Absence::State))
        );
    }

    #[test]
    fn binding_meets_the_live_values() {
        let mut moves = Moves::default();
        moves.add(
            spec("a", &["device"]),
            domain("device", &["x", "y"]),
            &Policy::default(),
        );
        let legal = moves.find_mut("a").unwrap();
        legal.bind("device", &[json!("y"), json!("z")]);
        legal.bind("room", &[json!("r")]);
        assert_eq!(legal.domains["device"], [json!("y")]);
        assert_eq!(legal.domains["room"], [json!("r")]);
        legal.bind("device", &[json!("z")]);
        assert_eq!(moves.drop_impossible(), 1);
    }

    #[test]
    fn shares_are_fair() {
        let cases: [(&[usize], usize, usize); 6] = [
            (&[], 256, usize::MAX),
            (&[10, 20], 256, usize::MAX),
            (&[10, 300], 256, 246),
            (&[300, 300], 256, 128),
            (&[1000, 100, 10], 256, 146),
            (&[5, 5, 5], 2, 1),
        ];
        for (sizes, limit, share) in cases {
            assert_eq!(fair_share(sizes, limit), share, "{sizes:?}");
        }
    }

    #[test]
    fn long_lists_keep_what_the_request_is_about() {
        let mut moves = Moves::default();
        let many: Vec<Value> = (0..1000).map(|n| json!(format!("lamp {n}"))).collect();
        let domains = Domains::from([("device".to_owned(), many)]);
        for name in ["on", "off"] {
            moves.add(spec(name, &["device"]), domains.clone(), &Policy::default());
        }
        moves.add(
            spec("open", &["device"]),
            domain("device", &["door"]),
            &Policy::default(),
        );
        assert_eq!(moves.values(), 1001);
        let (narrow, report) = moves.narrow("switch lamp 777 on");
        assert_eq!(narrow.values(), Moves::MAX_VALUES);
        assert!(narrow.moves[0].domains["device"].contains(&json!("lamp 777")));
        assert_eq!(narrow.moves[0].domains, narrow.moves[1].domains);
        assert_eq!(narrow.moves[2], moves.moves[2]);
        assert_eq!(
            report,
            [Narrowed {
                tools: vec!["on".into(), "off".into()],
                argument: "device".into(),
                kept: 255,
                of: 1000,
            }]
        );
        let (same, nothing) = narrow.narrow("anything");
        assert_eq!((same, nothing), (narrow, vec![]));
    }
}
