//! How unsure a model is of a call, and of which of its parts: what a person is told who is asked
//! about it.

use super::grounding::Ungrounded;
use crate::call::Call;
use crate::model::Chosen;

/// What is done about a call that changes something and that the model is less sure of than one
/// likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsure {
    /// A person is asked.
    #[default]
    Ask,
    /// The model looks again, with other examples; a person is asked where that settles nothing.
    LookAgain,
}

/// What came of a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// The same reply: it is not asked about.
    Agreed,
    /// Another reply, which the model is sure enough of: it counts.
    Overruled,
    /// Another reply, which it is no surer of than one likes: somebody has to decide.
    Open,
}

/// Something that could have been written in a call in place of what was.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Alternative {
    /// What it would have been: `tool`, or an argument.
    pub part: String,
    /// The text.
    pub text: String,
    /// Its probability among all that could have been written there.
    pub probability: f64,
}

/// Why a call is not made without asking: how unsure the model is of it, and what nobody spoke of.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Doubt {
    /// What the call is about although nothing that was said or read speaks of it.
    pub ungrounded: Option<Ungrounded>,
    /// The probability of its whole reply, 0 to 1; `None`: nobody knows.
    pub confidence: Option<f64>,
    /// The best alternatives to what it chose in this call, the likeliest first.
    pub alternatives: Vec<Alternative>,
    /// What a second look would do instead: no call where it would do none.
    pub other: Option<Vec<Call>>,
}

/// Alternatives that are named.
const NAMED: usize = 3;

/// Below this probability an alternative is not worth a word.
const LEAST: f64 = 0.01;

/// The best alternatives to what was chosen in the call of this number, counted from 0, of a reply
/// with these choices.
pub fn alternatives(reply: &str, choices: &[Chosen], call: usize) -> Vec<Alternative> {
    let mut found = Vec::new();
    for choice in choices {
        let Some(place) = place(reply, choice.at).filter(|place| place.call == call) else {
            continue;
        };
        for (at, (text, probability)) in choice.alternatives.iter().enumerate() {
            if at != choice.taken && *probability >= LEAST {
                found.push(Alternative {
                    part: place.part.clone(),
                    text: unescaped(text),
                    probability: *probability,
                });
            }
        }
    }
    found.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    found.truncate(NAMED);
    found
}

/// Where in a reply a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// In which of its calls, from 0.
    pub(super) call: usize,
    /// The tool that this one calls; `None`: the text is its name.
    pub(super) tool: Option<String>,
    /// `tool`, or the argument.
    pub(super) part: String,
}

impl Place {
    /// As traces name it: `tool`, or `turn_on.device`.
    pub(super) fn name(&self) -> String {
        match &self.tool {
            Some(tool) => format!("{tool}.{}", self.part),
            None => self.part.clone(),
        }
    }
}

/// What the string value is that begins at byte `at` of a reply in the harness's own form,
/// `{"calls": [{"tool": …, "arguments": {…}}]}`. `None`: it is in no call.
pub(super) fn place(reply: &str, at: usize) -> Option<Place> {
    let mut levels: Vec<Level> = Vec::new();
    let mut text: Option<usize> = None;
    let mut escaped = false;
    let mut tool = None;
    let before = reply.get(..at)?;
    for (position, byte) in before.bytes().enumerate() {
        if let Some(start) = text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    let whole = unescaped(&before[start..position]);
                    text = None;
                    if is_tool(&levels) {
                        tool = Some(whole);
                    } else if let Some(Level::Object { name, named: false }) = levels.last_mut() {
                        *name = whole;
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => text = Some(position + 1),
            b'{' => {
                if levels.len() == CALL {
                    tool = None;
                }
                levels.push(Level::Object {
                    name: String::new(),
                    named: false,
                });
            }
            b'[' => levels.push(Level::List { at: 0 }),
            b'}' | b']' => {
                levels.pop();
            }
            b':' => {
                if let Some(Level::Object { named, .. }) = levels.last_mut() {
                    *named = true;
                }
            }
            b',' => match levels.last_mut() {
                Some(Level::Object { named, .. }) => *named = false,
                Some(Level::List { at }) => *at += 1,
                None => {}
            },
            _ => {}
        }
    }
    text.filter(|start| *start == at)?;
    let [
        Level::Object { .. },
        Level::List { at: call },
        Level::Object { name, .. },
        rest @ ..,
    ] = levels.as_slice()
    else {
        return None;
    };
    let part = match rest {
        [] => name.clone(),
        [Level::Object { name, .. }, ..] => name.clone(),
        [Level::List { .. }, ..] => return None,
    };
    Some(Place {
        call: *call,
        tool: (!rest.is_empty()).then_some(tool).flatten(),
        part,
    })
}

/// Brackets that are open where a call begins.
const CALL: usize = 2;

/// A bracket that is open.
enum Level {
    /// An object, with the member that comes and whether its name is written.
    Object { name: String, named: bool },
    /// A list, with the number of the item that comes.
    List { at: usize },
}

/// Whether the value that comes is the name of a call's tool.
fn is_tool(levels: &[Level]) -> bool {
    matches!(levels, [_, _, Level::Object { name, named: true }] if name == "tool")
}

/// The inside of a JSON string as text.
fn unescaped(inside: &str) -> String {
    serde_json::from_str(&format!("\"{inside}\"")).unwrap_or_else(|_| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &str = r#"{"calls": [{"tool": "turn_on", "arguments": {"device": "hall \"A\" lamp"}}, {"tool": "set", "arguments": {"modes": ["eco", "dry"], "tool": {"a": "b"}}}]}"#;

    #[test]
    fn a_text_is_found_in_its_call() {
        for (text, call, name) in [
            ("turn_on", 0, "tool"),
            (r#"hall \"A\" lamp"#, 0, "turn_on.device"),
            ("set", 1, "tool"),
            ("eco", 1, "set.modes"),
            ("dry", 1, "set.modes"),
            ("b", 1, "set.tool"),
        ] {
            let at = REPLY.find(&format!("\"{text}\"")).unwrap() + 1;
            let place = place(REPLY, at).unwrap();
            assert_eq!((place.call, place.name().as_str()), (call, name), "{text}");
        }
        for (reply, at) in [
            (r#"{"answer": "Done."}"#, 12),
            (REPLY, 3),
            (REPLY, 1000),
            ("", 0),
            ("свет", 1),
        ] {
            assert_eq!(place(reply, at), None, "{reply} {at}");
        }
    }

    #[test]
    fn the_best_alternatives_of_a_call_are_named_at_most_three() {
        let choice = |text: &str, alternatives: &[(&str, f64)], taken| Chosen {
            at: REPLY.find(&format!("\"{text}\"")).unwrap() + 1,
            alternatives: alternatives
                .iter()
                .map(|(text, probability)| ((*text).to_owned(), *probability))
                .collect(),
            taken,
        };
        let choices = [
            choice("turn_on", &[("turn_on", 0.9), ("turn_off", 0.1)], 0),
            choice(
                r#"hall \"A\" lamp"#,
                &[
                    (r#"desk \"B\""#, 0.5),
                    (r#"hall \"A\" lamp"#, 0.3),
                    ("tv", 0.12),
                    ("sofa", 0.075),
                    ("cat", 0.005),
                ],
                1,
            ),
            choice("set", &[("set", 0.6), ("get", 0.4)], 0),
        ];
        let named = |call| -> Vec<String> {
            alternatives(REPLY, &choices, call)
                .iter()
                .map(|a| format!("{} {} {}", a.part, a.text, a.probability))
                .collect()
        };
        assert_eq!(
            named(0),
            [
                "device desk \"B\" 0.5",
                "device tv 0.12",
                "tool turn_off 0.1"
            ]
        );
        assert_eq!(named(1), ["tool get 0.4"]);
        assert_eq!(named(2), Vec::<String>::new());
    }
}
