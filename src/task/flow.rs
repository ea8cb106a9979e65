//! Where a definition can lead: its states as a graph, and which facts can be known where.
//!
//! The facts are a data-flow analysis over that graph (Kildall 1973, "A unified approach to global
//! program optimization"): what *may* be known in a state is the union over all ways there, what
//! *must* be known the intersection.

use super::condition::holes;
use super::definition::{Definition, On, State};
use std::collections::{BTreeMap, BTreeSet};

/// A way from a state to a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge<'d> {
    pub from: &'d str,
    pub to: &'d str,
    pub on: On,
    /// The tool whose outcome it is; `None`: any other than those that are named.
    pub tool: Option<&'d str>,
    /// Facts that are learned on the way, as they are written.
    pub learns: BTreeSet<&'d str>,
    /// Which transition of the state it is; `None`: the state stays, or comes back.
    pub transition: Option<usize>,
}

/// Stands for facts whose names nobody knows beforehand (`keep_results`).
const ANY: &str = "{}";

/// All edges of a definition, from every state that exists to states that exist.
pub(super) fn edges(definition: &Definition) -> Vec<Edge<'_>> {
    let mut edges = Vec::new();
    for (name, state) in &definition.states {
        if state.end {
            continue;
        }
        for tool in tools(state) {
            let learns = learns(state, tool);
            follow(&mut edges, name, state, On::Success, tool, &learns);
            follow(&mut edges, name, state, On::Failure, tool, &BTreeSet::new());
        }
        if state.may_answer() {
            follow(&mut edges, name, state, On::Answer, None, &BTreeSet::new());
        }
    }
    edges.retain(|edge| definition.states.contains_key(edge.to));
    if !definition.proofs.is_empty() {
        let ending: BTreeSet<&str> = edges
            .iter()
            .filter(|edge| {
                let to = &definition.states[edge.to];
                to.end && !to.failed
            })
            .map(|edge| edge.from)
            .collect();
        for name in ending {
            let Some((name, state)) = definition.states.get_key_value(name) else {
                continue;
            };
            follow(
                &mut edges,
                name,
                state,
                On::Unproven,
                None,
                &BTreeSet::new(),
            );
        }
        edges.retain(|edge| definition.states.contains_key(edge.to));
    }
    edges
}

/// The tools to tell apart in a state: those that are legal, or those that are named and all
/// others.
fn tools(state: &State) -> Vec<Option<&str>> {
    let named = match &state.tools {
        Some(tools) => return tools.iter().map(|tool| Some(tool.as_str())).collect(),
        None => {
            let going = state.go.iter().filter_map(|go| go.tool.as_deref());
            let remembered = state.remember.iter().filter_map(|r| r.tool.as_deref());
            going.chain(remembered)
        }
    };
    let named: BTreeSet<&str> = named.collect();
    named.into_iter().map(Some).chain([None]).collect()
}

/// What a success of `tool` teaches.
pub(super) fn learns<'d>(state: &'d State, tool: Option<&str>) -> BTreeSet<&'d str> {
    let mut facts: BTreeSet<&str> = state
        .remember
        .iter()
        .filter(|rule| rule.tool.is_none() || rule.tool.as_deref() == tool)
        .map(|rule| rule.fact.as_str())
        .collect();
    if state.keep_results {
        facts.insert(ANY);
    }
    facts
}

fn follow<'d>(
    edges: &mut Vec<Edge<'d>>,
    from: &'d str,
    state: &'d State,
    on: On,
    tool: Option<&'d str>,
    learns: &BTreeSet<&'d str>,
) {
    let mut push = |to: &'d str, transition| {
        edges.push(Edge {
            from,
            to,
            on,
            tool,
            learns: learns.clone(),
            transition,
        });
    };
    for (at, go) in state.go.iter().enumerate() {
        if go.on != on || (go.tool.is_some() && go.tool.as_deref() != tool) {
            continue;
        }
        push(&go.to, Some(at));
        if go.when.is_empty() {
            return;
        }
    }
    push(from, None);
}

/// Which facts can be known in each state.
#[derive(Clone, Debug, Default)]
pub(super) struct Known<'d> {
    /// Known on some way there; states without an entry are never reached.
    pub may: BTreeMap<&'d str, BTreeSet<&'d str>>,
    /// Known on every way there.
    pub must: BTreeMap<&'d str, BTreeSet<&'d str>>,
}

/// Follows the facts along the edges until nothing changes: at most states × facts rounds.
pub(super) fn known<'d>(definition: &'d Definition, edges: &[Edge<'d>]) -> Known<'d> {
    let mut known = Known::default();
    let first: BTreeSet<&str> = definition.facts.keys().map(String::as_str).collect();
    known.may.insert(&definition.start, first.clone());
    known.must.insert(&definition.start, first);
    loop {
        let mut changed = false;
        for edge in edges {
            let (Some(may), Some(must)) = (known.may.get(edge.from), known.must.get(edge.from))
            else {
                continue;
            };
            let may: BTreeSet<&str> = may.union(&edge.learns).copied().collect();
            // What a pointer leads to may be missing from a result, but a rule that names it says
            // that it belongs there.
            let must: BTreeSet<&str> = must.union(&edge.learns).copied().collect();
            let here = known.may.entry(edge.to).or_default();
            let before = here.len();
            here.extend(may);
            changed |= here.len() != before;
            match known.must.get_mut(edge.to) {
                None => {
                    known.must.insert(edge.to, must);
                    changed = true;
                }
                Some(here) => {
                    let before = here.len();
                    here.retain(|fact| must.contains(fact));
                    changed |= here.len() != before;
                }
            }
        }
        if !changed {
            return known;
        }
    }
}

/// Whether a fact that is learned under the name `learned` can be the one that `used` names; both
/// may have holes.
pub(super) fn may_be(learned: &str, used: &str) -> bool {
    let ends = |text: &str| -> Option<(String, String)> {
        if text == ANY {
            return Some((String::new(), String::new()));
        }
        if holes(text).is_empty() {
            return None;
        }
        let (before, _) = text.split_once('{')?;
        let (_, after) = text.rsplit_once('}')?;
        Some((before.to_owned(), after.to_owned()))
    };
    let fits = |(before, after): (String, String), whole: &str| {
        whole.len() >= before.len() + after.len()
            && whole.starts_with(&before)
            && whole.ends_with(&after)
    };
    match (ends(learned), ends(used)) {
        (None, None) => learned == used,
        (Some(a), None) => fits(a, used),
        (None, Some(b)) => fits(b, learned),
        (Some(a), Some(b)) => {
            (a.0.starts_with(&b.0) || b.0.starts_with(&a.0))
                && (a.1.ends_with(&b.1) || b.1.ends_with(&a.1))
        }
    }
}

/// The states that can be reached from the start, and those from which an end can be.
pub(super) fn reach<'d>(
    definition: &'d Definition,
    edges: &[Edge<'d>],
) -> (BTreeSet<&'d str>, BTreeSet<&'d str>) {
    let spread = |mut found: BTreeSet<&'d str>, back: bool| {
        loop {
            let before = found.len();
            for edge in edges {
                let (from, to) = if back {
                    (edge.to, edge.from)
                } else {
                    (edge.from, edge.to)
                };
                if found.contains(from) {
                    found.insert(to);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    };
    let start = definition
        .states
        .get_key_value(&definition.start)
        .map(|(name, _)| name.as_str());
    let ends = definition
        .states
        .iter()
        .filter(|(_, state)| state.end)
        .map(|(name, _)| name.as_str());
    (
        spread(start.into_iter().collect(), false),
        spread(ends.collect(), true),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_holes_meet() {
        for (learned, used, expected) in [
            ("a", "a", true),
            ("a", "b", false),
            ("flights to {city}", "flights to Омск", true),
            ("flights to {city}", "flights", false),
            ("{device} state", "door state", true),
            ("{device} state", "door", false),
            ("state of {device}", "state of {door}", true),
            (ANY, "whatever", true),
        ] {
            assert_eq!(may_be(learned, used), expected, "{learned} {used}");
        }
    }

    #[test]
    fn facts_flow_along_the_edges() {
        let definition: Definition = toml::from_str(
            "name='n'\nstart='a'\nfacts={f=1}\n\
             [state.a]\ntools=['x','y']\nremember=[{tool='x',fact='g'}]\n\
             go=[{on='success',tool='x',to='b'},{on='success',tool='y',to='b'}]\n\
             [state.b]\ntools=['x']\nremember=[{fact='h'}]\ngo=[{on='success',to='c'}]\n\
             [state.c]\nend=true\n",
        )
        .unwrap();
        let edges = edges(&definition);
        let known = known(&definition, &edges);
        let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<&str>>();
        assert_eq!(known.may["b"], set(&["f", "g"]));
        assert_eq!(known.must["b"], set(&["f"]));
        assert_eq!(known.must["c"], set(&["f", "h"]));
        let (reached, ending) = reach(&definition, &edges);
        assert_eq!(reached, set(&["a", "b", "c"]));
        assert_eq!(ending, reached);
    }
}
