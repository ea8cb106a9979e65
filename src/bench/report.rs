//! Sums of a run of a suite, as text for a person and as JSON for a machine.

use super::home::Graded;
use super::interval::Share;
use super::suite::Kind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A run of a suite by one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The model, or `random logits`.
    pub model: String,
    /// Every request.
    pub requests: Vec<Graded>,
}

/// Figures of a group of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// Right at the first attempt.
    pub right: Share,
    /// Executed calls that change something and that nobody asked for.
    pub wrong_effects: usize,
    /// Calls executed.
    pub calls: usize,
    /// Seconds of all runs.
    pub seconds: f64,
    /// Tokens written, forced ones included.
    pub written: usize,
    /// Of them chosen.
    pub chosen: usize,
    /// Prompt tokens evaluated.
    pub prompt_evaluated: usize,
    /// Prompt tokens reused.
    pub prompt_reused: usize,
}

impl Sum {
    fn add(&mut self, graded: &Graded) {
        self.right.count(graded.right);
        self.wrong_effects += graded.wrong_effects;
        self.calls += graded.calls.len();
        self.seconds += graded.seconds;
        self.written += graded.forced + graded.chosen;
        self.chosen += graded.chosen;
        self.prompt_evaluated += graded.prompt_evaluated;
        self.prompt_reused += graded.prompt_reused;
    }
}

impl Report {
    /// Sums over the requests that `of` picks.
    pub fn sum(&self, of: impl Fn(&Graded) -> bool) -> Sum {
        let mut sum = Sum::default();
        for graded in self.requests.iter().filter(|graded| of(graded)) {
            sum.add(graded);
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
        let with_intervals = |sum: &Sum| {
            let (low, high) = sum.right.interval();
            serde_json::json!({ "sum": sum, "rate": sum.right.rate(), "low": low, "high": high })
        };
        let sums: serde_json::Map<String, serde_json::Value> = sums
            .iter()
            .map(|(language, kinds)| {
                let kinds: serde_json::Map<String, serde_json::Value> = kinds
                    .iter()
                    .map(|(kind, sum)| ((*kind).to_owned(), with_intervals(sum)))
                    .collect();
                (language.clone(), kinds.into())
            })
            .collect();
        serde_json::json!({ "model": self.model, "sums": sums, "requests": self.requests })
    }
}

/// A table of reports side by side: a row a language and kind, a column a report, each figure with
/// its 95% Wilson interval in percent; then wrong effects, and seconds and tokens per call.
pub fn table(reports: &[Report]) -> String {
    let mut text = String::new();
    let Some(first) = reports.first() else {
        return text;
    };
    let _ = write!(text, "{:<20}", "right, first attempt");
    for report in reports {
        let _ = write!(text, "  {:>28}", shorten(&report.model, 28));
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
                let (low, high) = share.interval();
                let cell = format!(
                    "{}/{} {:>5.1}% [{:.0}–{:.0}]",
                    share.right,
                    share.of,
                    share.rate() * 100.0,
                    low * 100.0,
                    high * 100.0
                );
                let _ = write!(text, "  {cell:>28}");
            }
            text.push('\n');
        }
    }
    for (name, figure) in FIGURES {
        let _ = write!(text, "{name:<20}");
        for report in reports {
            let sum = report.sum(|_| true);
            let _ = write!(text, "  {:>28}", figure(&sum));
        }
        text.push('\n');
    }
    text
}

/// A figure of a whole run, for the table.
type Figure = fn(&Sum) -> String;

const FIGURES: [(&str, Figure); 5] = [
    ("wrong effects", |sum| {
        format!("{} of {} calls", sum.wrong_effects, sum.calls)
    }),
    ("seconds/request", |sum| per(sum.seconds, sum.right.of)),
    ("tokens/call", |sum| per(sum.written as f64, sum.calls)),
    ("chosen/call", |sum| per(sum.chosen as f64, sum.calls)),
    ("prompt reused", |sum| {
        let all = sum.prompt_reused + sum.prompt_evaluated;
        if all == 0 {
            "–".to_owned()
        } else {
            format!("{:.0}%", sum.prompt_reused as f64 / all as f64 * 100.0)
        }
    }),
];

fn per(amount: f64, of: usize) -> String {
    if of == 0 {
        "–".to_owned()
    } else {
        format!("{:.2}", amount / of as f64)
    }
}

fn shorten(text: &str, limit: usize) -> String {
    crate::call::json::shortened(text, limit)
}
