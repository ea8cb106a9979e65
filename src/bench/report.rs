//! Sums of a run of a suite, as text for a person and as JSON for a machine.

use super::home::Graded;
use super::record::{Figure, PROMPT_REUSED, SECONDS, Sum, WRONG_EFFECTS, label, per, shown};
use super::suite::Kind;
use crate::call::json::shortened;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A run of a suite by one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The model, or `random logits`.
    pub model: String,
    /// The parts of the harness that were left out.
    pub without: Vec<String>,
    /// Every request.
    pub requests: Vec<Graded>,
}

impl Report {
    /// Sums over the requests that `of` picks.
    pub fn sum(&self, of: impl Fn(&Graded) -> bool) -> Sum {
        let mut sum = Sum::default();
        for graded in self.requests.iter().filter(|graded| of(graded)) {
            let calls = graded.calls.len();
            sum.add(graded.right, graded.wrong_effects, calls, &graded.spent);
        }
        sum
    }

    /// The languages, in order of their names.
    pub fn languages(&self) -> Vec<String> {
        let mut languages: Vec<String> = self
            .requests
            .iter()
            .map(|graded| graded.lang.clone())
            .collect();
        languages.sort_unstable();
        languages.dedup();
        languages
    }

    /// The whole report as JSON: sums by language and kind, then every request.
    pub fn to_json(&self) -> serde_json::Value {
        let mut sums = BTreeMap::new();
        for language in self.languages() {
            let mut kinds = BTreeMap::new();
            kinds.insert("all", self.sum(|graded| graded.lang == language));
            for kind in Kind::ALL {
                let sum = self.sum(|graded| graded.lang == language && graded.kind == kind);
                if sum.right.of > 0 {
                    kinds.insert(kind.name(), sum);
                }
            }
            sums.insert(language, kinds);
        }
        let sums: serde_json::Map<String, serde_json::Value> = sums
            .iter()
            .map(|(language, kinds)| {
                let kinds: serde_json::Map<String, serde_json::Value> = kinds
                    .iter()
                    .map(|(kind, sum)| ((*kind).to_owned(), sum.to_json()))
                    .collect();
                (language.clone(), kinds.into())
            })
            .collect();
        serde_json::json!({
            "model": self.model,
            "without": self.without,
            "sums": sums,
            "requests": self.requests,
        })
    }
}

/// Columns that a run takes in a table.
const NARROWEST: usize = 28;
const WIDEST: usize = 44;

/// A table of reports side by side: a row a language and kind, a column a report, each figure with
/// its 95% Wilson interval in percent; then wrong effects, and seconds and tokens per call.
pub fn table(reports: &[Report]) -> String {
    let mut text = String::new();
    let Some(first) = reports.first() else {
        return text;
    };
    let labels: Vec<String> = reports
        .iter()
        .map(|report| shortened(&label(&report.model, &report.without), WIDEST))
        .collect();
    let widths = labels.iter().map(|label| label.chars().count());
    let width = widths.max().unwrap_or_default().max(NARROWEST);
    let _ = write!(text, "{:<20}", "right, first attempt");
    for label in labels {
        let _ = write!(text, "  {label:>width$}");
    }
    text.push('\n');
    for language in first.languages() {
        let mut rows: Vec<(String, Option<Kind>)> = vec![(format!("{language} all"), None)];
        rows.extend(Kind::ALL.map(|kind| (format!("{language}   {}", kind.name()), Some(kind))));
        for (name, kind) in rows {
            let pick = |graded: &Graded| {
                graded.lang == language && kind.is_none_or(|kind| graded.kind == kind)
            };
            if first.sum(pick).right.of == 0 {
                continue;
            }
            let _ = write!(text, "{name:<20}");
            for report in reports {
                let share = report.sum(pick).right;
                let cell = shown(share);
                let _ = write!(text, "  {cell:>width$}");
            }
            text.push('\n');
        }
    }
    for (name, figure) in FIGURES {
        let _ = write!(text, "{name:<20}");
        for report in reports {
            let sum = report.sum(|_| true);
            let _ = write!(text, "  {:>width$}", figure(&sum));
        }
        text.push('\n');
    }
    text
}

const FIGURES: [(&str, Figure); 5] = [
    WRONG_EFFECTS,
    SECONDS,
    ("tokens/call", |sum| per(sum.written as f64, sum.calls)),
    ("chosen/call", |sum| per(sum.chosen as f64, sum.calls)),
    PROMPT_REUSED,
];
