//! What is left to do: what a request names and no call has touched, and when a call that is only
//! made again says that nothing is.

use crate::call::relevance::Grams;
use crate::call::{Call, Effect, Moves};
use crate::fewshot::anchors;
use crate::task::{StepResult, Task};
use serde_json::Value;
use std::collections::BTreeSet;

/// The live values that `request` names whole, in the order in which they come in it.
///
/// "Names whole": all n-grams of the value's text are found in the request; of two values one of
/// which is part of the other only the longer counts. Of "the kitchen light and the bedroom fan"
/// the bedroom light is not named: all of its words stand in names that are there as they are.
pub(super) fn named(request: &str, tools: &Moves) -> Vec<String> {
    let grams = Grams::of(request);
    let texts: BTreeSet<&str> = tools
        .moves
        .iter()
        .flat_map(|legal| legal.domains.values().flatten())
        .filter_map(Value::as_str)
        .collect();
    let named: Vec<(&str, Grams)> = texts
        .into_iter()
        .map(|text| (text, Grams::of(text)))
        .filter(|(_, own)| own.len() > 1 && own.shared(&grams) == own.len())
        .collect();
    let part_of_another = |text: &str, own: &Grams| {
        named.iter().any(|(other, more)| {
            *other != text && more.len() > own.len() && own.shared(more) == own.len()
        })
    };
    let mut whole: Vec<String> = named
        .iter()
        .filter(|(text, own)| !part_of_another(text, own))
        .map(|(text, _)| (*text).to_owned())
        .collect();
    let said = request.to_lowercase();
    let as_it_is: Vec<String> = whole
        .iter()
        .map(|text| text.to_lowercase())
        .filter(|text| said.contains(text.as_str()))
        .collect();
    let taken = |word: &str| {
        let words = |name: &String| name.split_whitespace().any(|other| other == word);
        as_it_is.iter().any(words) && !is_elsewhere(&said, &as_it_is, word)
    };
    whole.retain(|text| {
        let text = text.to_lowercase();
        as_it_is.contains(&text) || !text.split_whitespace().all(taken)
    });
    let anchors = anchors(request, &whole);
    let mut ordered: Vec<(Option<usize>, String)> = anchors
        .into_iter()
        .map(|anchor| anchor.map(|anchor| anchor.start))
        .zip(whole)
        .collect();
    // What stands nowhere word for word comes last.
    ordered.sort_by_key(|(at, _)| at.unwrap_or(usize::MAX));
    ordered.into_iter().map(|(_, text)| text).collect()
}

/// Whether a word stands in a text outside of all of these names.
fn is_elsewhere(text: &str, names: &[String], word: &str) -> bool {
    let mut rest = text.to_owned();
    for name in names {
        rest = rest.replace(name.as_str(), " ");
    }
    rest.split(|c: char| !c.is_alphanumeric())
        .any(|other| other == word)
}

/// The live values that the task's request names whole and no call of it has been about: none
/// where the task's state does not keep results, for then nobody can tell.
pub(super) fn open(task: &Task, tools: &Moves) -> Vec<String> {
    if !task.current().is_some_and(|state| state.keep_results) {
        return Vec::new();
    }
    let touched = |text: &str| {
        task.facts.get(text).is_some()
            || task.last.as_ref().is_some_and(|last| {
                last.call
                    .arguments
                    .values()
                    .any(|value| value.as_str() == Some(text))
            })
    };
    let mut open = named(&task.goal, tools);
    open.retain(|text| !touched(text));
    open
}

/// What the person is told where the model only asks for the call again that it has just made:
/// then nothing is left to do. An answer must be legal, the call must have succeeded, with a
/// result that says in words what came of it, and repeating it must be of no consequence.
pub(super) fn already_done(task: &Task, legal: &Moves, calls: &[Call]) -> Option<String> {
    let last = task.last.as_ref()?;
    let [call] = calls else { return None };
    let spec = &legal.find(&call.tool)?.spec;
    let harmless = spec.idempotent || spec.effect == Effect::Read;
    let Some(StepResult::Ok(result)) = &last.result else {
        return None;
    };
    let text = result.get("text")?.as_str()?.trim();
    (legal.answer && harmless && last.call == *call && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Domains, Effect, Policy, ToolSpec};
    use crate::task::{ActiveTask, Definition, TaskId};
    use serde_json::json;
    use std::sync::Arc;

    fn moves() -> Moves {
        let values = [
            "lamp",
            "hall lamp",
            "kitchen light",
            "kitchen fan",
            "hall light",
            "свет на кухне",
            "厨房灯",
        ];
        let live = values.iter().map(|value| json!(value)).collect();
        let spec = ToolSpec {
            name: "turn_on".to_owned(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"device": {"type": "string"}}}),
            effect: Effect::Change,
            idempotent: true,
        };
        let mut moves = Moves::default();
        let domains = Domains::from([("device".to_owned(), live)]);
        assert!(moves.add(Arc::new(spec), domains, &Policy::default()));
        moves
    }

    fn task(request: &str) -> Task {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let id = TaskId::new(now, 0);
        let task =
            ActiveTask::unrecorded(id, request, Definition::builtin(), Value::Null, now).unwrap();
        task.task().clone()
    }

    #[test]
    fn what_is_named_whole_is_found_in_the_order_of_the_request() {
        for (request, names) in [
            (
                "Kitchen light on, and the HALL LAMP too",
                vec!["kitchen light", "hall lamp"],
            ),
            ("turn on the lamp", vec!["lamp"]),
            (
                "hall lamp off, kitchen light too",
                vec!["hall lamp", "kitchen light"],
            ),
            (
                "light the hall, and the hall lamp and kitchen light too",
                vec!["hall lamp", "kitchen light", "hall light"],
            ),
            (
                "the light and the fan in the kitchen",
                vec!["kitchen light", "kitchen fan"],
            ),
            ("turn on the hall", vec![]),
            ("включи свет на кухне", vec!["свет на кухне"]),
            ("打开厨房灯", vec!["厨房灯"]),
            ("", vec![]),
        ] {
            assert_eq!(open(&task(request), &moves()), names, "{request}");
        }
    }

    #[test]
    fn what_a_call_was_about_is_not_open() {
        let mut task = task("kitchen light and hall lamp off");
        task.facts.set("hall lamp", json!({"on": false}));
        assert_eq!(open(&task, &moves()), ["kitchen light"]);
    }
}
