//! How unsure a model is of a call, in words.

use super::style::{FAINT, paint};
use super::wrap::{Layout, wrap};
use crate::agent::Doubt;
use crate::call::Call;
use crate::call::json::shortened;
use crate::trace::sanitize_line;

/// Characters of an alternative that are shown.
const SHOWN: usize = 40;

/// What lines of a question begin with that are not its first.
pub const MARGIN: &str = "       ";

/// `62% sure`; never 0 or 100, which no model is.
pub fn sure(confidence: Option<f64>) -> String {
    match confidence {
        Some(confidence) => format!("{} sure", percent(confidence)),
        None => "not known how sure".to_owned(),
    }
}

fn percent(probability: f64) -> String {
    let percent = (probability * 100.0).round();
    if percent < 1.0 {
        "under 1%".to_owned()
    } else {
        format!("{:.0}%", percent.min(99.0))
    }
}

/// `nothing that was said speaks of hall fan; 62% sure, or: device desk lamp 21%`, in lines for a terminal of so many columns
/// or none.
pub fn doubt_text(doubt: &Doubt, columns: Option<usize>) -> String {
    let mut text = match (&doubt.ungrounded, doubt.confidence) {
        (None, confidence) => sure(confidence),
        (Some(guess), confidence) => {
            let about = shortened(&guess.value, SHOWN);
            let sure = confidence.map(|_| format!("; {}", sure(confidence)));
            format!(
                "nothing that was said speaks of {about}{}",
                sure.unwrap_or_default()
            )
        }
    };
    let mut part = None;
    for alternative in &doubt.alternatives {
        text.push_str(if part.is_none() { ", or: " } else { ", " });
        if part != Some(&alternative.part) {
            text.push_str(&alternative.part);
            text.push(' ');
            part = Some(&alternative.part);
        }
        text.push_str(&shortened(&alternative.text, SHOWN));
        text.push(' ');
        text.push_str(&percent(alternative.probability));
    }
    if let Some(other) = &doubt.other {
        text.push_str("; a second look: ");
        if other.is_empty() {
            text.push_str("no call");
        } else {
            let calls: Vec<String> = other.iter().map(brief).collect();
            text.push_str(&calls.join(" and "));
        }
    }
    let layout = Layout {
        columns,
        taken: MARGIN.len(),
        margin: MARGIN,
    };
    paint(FAINT, wrap(&sanitize_line(&text), layout))
}

/// `turn_on device: hall lamp`
fn brief(call: &Call) -> String {
    let arguments: Vec<String> = call
        .arguments
        .iter()
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name}: {}", shortened(text, SHOWN)),
            None => format!("{name}: {}", shortened(&value.to_string(), SHOWN)),
        })
        .collect();
    format!("{} {}", call.tool, arguments.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Alternative, Ungrounded};

    fn alternative(part: &str, text: &str, probability: f64) -> Alternative {
        Alternative {
            part: part.to_owned(),
            text: text.to_owned(),
            probability,
        }
    }

    fn shown(doubt: &Doubt, columns: Option<usize>) -> String {
        anstream::adapter::strip_str(&doubt_text(doubt, columns)).to_string()
    }

    #[test]
    fn a_doubt_reads_well_and_obeys_nobody() {
        let long = "lamp ".repeat(20);
        let hall = Call::new("turn_on", [("device", "hall\u{1b}[2J lamp")]);
        let named = vec![
            alternative("device", "hall lamp", 0.214),
            alternative("device", "desk\u{202e} lamp\nno", 0.09),
            alternative("tool", "turn_off", 0.004),
        ];
        for (confidence, alternatives, other, expected) in [
            (Some(0.624), vec![], None, "62% sure"),
            (None, vec![], None, "not known how sure"),
            (
                Some(0.0),
                vec![],
                Some(vec![]),
                "under 1% sure; a second look: no call",
            ),
            (
                Some(0.999),
                named,
                None,
                "99% sure, or: device hall lamp 21%, desk\\u{202e} lamp\\nno 9%, tool turn_off under 1%",
            ),
            (
                Some(0.5),
                vec![],
                Some(vec![hall.clone(), hall]),
                "50% sure; a second look: turn_on device: hall\\u{1b}[2J lamp and turn_on device: \
                 hall\\u{1b}[2J lamp",
            ),
            (
                Some(0.5),
                vec![alternative("device", &long, 0.2)],
                None,
                "50% sure, or: device lamp lamp lamp lamp lamp lamp lamp lamp … 20%",
            ),
        ] {
            let doubt = Doubt {
                ungrounded: None,
                confidence,
                alternatives,
                other,
            };
            assert_eq!(shown(&doubt, None), expected);
            for line in shown(&doubt, Some(30)).lines() {
                assert!(line.chars().count() <= 30, "{line:?}");
            }
        }
        for (confidence, expected) in [
            (
                Some(0.5),
                "nothing that was said speaks of hall\\u{1b}[2J fan; 50% sure, or: device tv 20%",
            ),
            (
                None,
                "nothing that was said speaks of hall\\u{1b}[2J fan, or: device tv 20%",
            ),
        ] {
            let doubt = Doubt {
                ungrounded: Some(Ungrounded {
                    argument: "device".to_owned(),
                    value: "hall\u{1b}[2J fan".to_owned(),
                }),
                confidence,
                alternatives: vec![alternative("device", "tv", 0.2)],
                other: None,
            };
            assert_eq!(shown(&doubt, None), expected);
        }
    }
}
