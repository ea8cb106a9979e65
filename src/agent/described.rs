//! Examples made of what tools say of themselves, for tools that no example calls: a tool that a
//! person declares has none, and a small model that has seen no call like the one that is due talks
//! instead of making it.

use super::context::Shown;
use crate::call::arguments::ArgumentSchema;
use crate::call::relevance::Grams;
use crate::call::{Call, Move, Reply, example};
use serde_json::{Map, Value, json};

/// Most of them in a prompt: what was written by a person has room left.
const MOST: usize = 2;

/// Below this a tool has nothing to do with the request, where other examples have.
const LEAST: f64 = 0.15;

/// Bytes of a description that are read.
const SENTENCE: usize = 160;

/// An example of each of the `strangers` that come nearest to the request, the nearest first; where
/// there is none, of the first of them. With `others`, examples of calls beside them, only of those
/// that have to do with the request.
pub(super) fn described(
    request: Option<&str>,
    strangers: &[&Move],
    others: bool,
    most: usize,
) -> Vec<Shown> {
    let meant = Grams::of(request.unwrap_or_default());
    let mut ranked: Vec<(f64, &Move)> = strangers
        .iter()
        .map(|tool| {
            let says = format!("{} {}", tool.spec.name, tool.spec.description);
            (meant.cosine(&Grams::of(&says)), *tool)
        })
        .filter(|(likeness, _)| !others || *likeness >= LEAST)
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranked
        .into_iter()
        .filter_map(|(_, tool)| shown(tool))
        .take(most.min(MOST))
        .collect()
}

/// What might be asked of a tool, and the call that does it.
fn shown(tool: &Move) -> Option<Shown> {
    let schema = ArgumentSchema::new(&tool.spec).ok()?;
    let call = example::near(tool, &schema, Some(&plausible(tool)))?;
    let mut request = sentence(&tool.spec.description);
    if request.is_empty() {
        request = tool.spec.name.replace(['_', '.', '-'], " ");
    }
    let values: Vec<String> = call
        .arguments
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{} {text}", words(name)),
            other => format!("{} {other}", words(name)),
        })
        .collect();
    if !values.is_empty() {
        request = format!("{request}: {}", values.join(", "));
    }
    Some(Shown {
        request,
        reply: Reply::Calls(vec![call]).to_text(),
    })
}

/// The first sentence of a description, on one line, without its full stop.
fn sentence(description: &str) -> String {
    let line = description.trim().lines().next().unwrap_or_default();
    let end = line
        .find(['。', '！'])
        .or_else(|| line.find(". "))
        .unwrap_or(line.len());
    let end = line.floor_char_boundary(end.min(SENTENCE));
    line[..end].trim_end_matches(['.', ' ']).to_owned()
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Required arguments that can be told apart, to be corrected where the schema wants others.
fn plausible(tool: &Move) -> Call {
    let root = &tool.spec.parameters;
    let declared = root.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (at, (name, property)) in (1_u32..).zip(declared.into_iter().flatten()) {
        if !tool.spec.requires(name) {
            continue;
        }
        if let Some(live) = tool.domains.get(name) {
            // Two arguments of one list get two values.
            let chosen = live.get(at as usize % live.len().max(1));
            arguments.extend(chosen.map(|value| (name.clone(), value.clone())));
            continue;
        }
        let value = match property.get("type").and_then(Value::as_str) {
            Some("integer" | "number") => json!(at * 4),
            Some("string") => json!(format!(
                "{} {}",
                ["some", "my", "the new"][at as usize % 3],
                words(name)
            )),
            _ => continue,
        };
        arguments.insert(name.clone(), value);
    }
    Call {
        tool: tool.spec.name.clone(),
        arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Domains, Effect, Policy, ToolSpec};
    use std::sync::Arc;

    fn moves() -> crate::call::Moves {
        let mut moves = crate::call::Moves::default();
        for (name, description, properties, domains) in [
            (
                "convert_length",
                "Convert a length from one unit to another. Exact.",
                json!({"value": {"type": "number", "maximum": 3}, "to": {"type": "string"}}),
                Domains::from([("to".to_owned(), vec![json!("km"), json!("миля")])]),
            ),
            (
                "say",
                "Sprich einen Text",
                json!({"text": {"type": "string"}}),
                Domains::new(),
            ),
            ("now", "", json!({}), Domains::new()),
        ] {
            let names: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
            let spec = ToolSpec {
                name: name.to_owned(),
                description: description.to_owned(),
                parameters: json!({"type": "object", "properties": properties, "required": names}),
                effect: Effect::Read,
                idempotent: true,
            };
            assert!(moves.add(Arc::new(spec), domains, &Policy::default()));
        }
        moves
    }

    #[test]
    fn a_tool_is_shown_by_what_it_says_of_itself() {
        let moves = moves();
        let all: Vec<&Move> = moves.moves.iter().collect();
        let shown = described(Some("what length is that in km?"), &all, false, 3);
        let texts: Vec<[&str; 2]> = shown.iter().map(|s| [&*s.request, &*s.reply]).collect();
        // The value that was made up is over the maximum: corrected.
        assert_eq!(shown.len(), MOST);
        assert!(texts[0][0].starts_with("Convert a length from one unit to another: value "));
        assert!(texts[0][0].ends_with(", to km"), "{texts:?}");
        assert!(texts[0][1].contains("\"to\": \"km\""), "{texts:?}");
        let one = described(Some("Sprich den Text"), &all, true, 3);
        assert_eq!(one.len(), 1, "{one:?}");
        assert_eq!(one[0].request, "Sprich einen Text: text my text");
        assert!(described(Some("open the garage"), &all, true, 3).is_empty());
        assert_eq!(described(None, &all[2..], false, 1)[0].request, "now");
    }

    #[test]
    fn the_first_sentence_is_cut_where_it_ends() {
        for (text, expected) in [
            ("Look it up. Slowly.", "Look it up"),
            ("查询天气。很慢", "查询天气"),
            ("Version 1.2 of it", "Version 1.2 of it"),
            ("  \n", ""),
        ] {
            assert_eq!(sentence(text), expected);
        }
        assert!(sentence(&"длинно ".repeat(100)).len() <= SENTENCE);
    }
}
