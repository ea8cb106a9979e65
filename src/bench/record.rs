//! What every suite keeps of a request, and of a run of requests.

use super::interval::Share;
use crate::agent::Figures;
use crate::call::Call;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The random baseline's name in reports.
pub const BASELINE: &str = "random logits";

/// What a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Turns.
    pub turns: usize,
    /// Prompt tokens that were already evaluated.
    pub prompt_reused: usize,
    /// Prompt tokens evaluated.
    pub prompt_evaluated: usize,
    /// Tokens forced.
    pub forced: usize,
    /// Tokens chosen.
    pub chosen: usize,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// How sure the model was of its calls, between 0 and 1.
    #[serde(default)]
    pub confidence: Option<f64>,
}

impl From<&Figures> for Spent {
    fn from(figures: &Figures) -> Self {
        Self {
            turns: figures.turns,
            prompt_reused: figures.prompt_reused,
            prompt_evaluated: figures.prompt_evaluated,
            forced: figures.forced,
            chosen: figures.chosen,
            seconds: figures.elapsed.as_secs_f64(),
            confidence: figures.confidence,
        }
    }
}

/// How one request went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// Its category: a row of the table.
    pub group: String,
    /// What was asked.
    pub request: String,
    /// Whether it was right at the first attempt.
    pub right: bool,
    /// What was wrong, by the suite's own names.
    #[serde(default)]
    pub error: Option<String>,
    /// The calls written or executed, in order.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// What was written, answered or asked.
    #[serde(default)]
    pub text: Option<String>,
    /// Effects that nobody asked for.
    #[serde(default)]
    pub wrong_effects: usize,
    /// What it took.
    #[serde(flatten)]
    pub spent: Spent,
    /// Where it stands in a task of many steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
}

/// A step of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The task.
    pub task: String,
    /// Which step of it, from 1.
    pub number: usize,
    /// Whether it was left to a person in the end.
    pub helped: bool,
    /// Whether the model got there at all.
    pub reached: bool,
}

/// A run of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The model, or `random logits`.
    pub model: String,
    /// The parts of the harness that were left out.
    pub without: Vec<String>,
    /// Every request.
    pub records: Vec<Record>,
}

/// Sums over records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// Right at the first attempt.
    pub right: Share,
    /// Effects that nobody asked for.
    pub wrong_effects: usize,
    /// Calls.
    pub calls: usize,
    /// Seconds.
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
    /// Adds a request.
    pub fn add(&mut self, right: bool, wrong_effects: usize, calls: usize, spent: &Spent) {
        self.right.count(right);
        self.wrong_effects += wrong_effects;
        self.calls += calls;
        self.seconds += spent.seconds;
        self.written += spent.forced + spent.chosen;
        self.chosen += spent.chosen;
        self.prompt_evaluated += spent.prompt_evaluated;
        self.prompt_reused += spent.prompt_reused;
    }

    /// With the share that is right and its 95% Wilson interval.
    pub fn to_json(&self) -> serde_json::Value {
        let (low, high) = self.right.interval();
        serde_json::json!({ "sum": self, "rate": self.right.rate(), "low": low, "high": high })
    }
}

/// Stands among the parts that a run did without, where others of the same file had learned from
/// requests that came before.
pub const LEARNING: &str = "learning";

/// The parts of the harness that a run can do without, by their names in results.
pub const PARTS: [&str; 8] = [
    "grammar",
    "domains",
    "calibration",
    "pool",
    "retrieval",
    "grounding",
    "hints",
    "state",
];

/// The name of a run in tables: the model, and what it did without.
pub fn label(model: &str, without: &[String]) -> String {
    let lacks = |part: &&str| without.iter().any(|name| name == part);
    // Without a pool nothing is retrieved.
    let rest = PARTS.iter().filter(|part| **part != "retrieval");
    let kept: Vec<&str> = rest.filter(|part| !lacks(part)).copied().collect();
    if without.is_empty() {
        model.to_owned()
    } else if kept.is_empty() {
        format!("{model} alone")
    } else if kept == ["grammar"] {
        format!("{model} with grammar alone")
    } else {
        format!("{model} without {}", without.join(", "))
    }
}

impl Run {
    /// The name in tables.
    pub fn label(&self) -> String {
        label(&self.model, &self.without)
    }

    /// Sums over the records that `of` picks.
    pub fn sum(&self, of: impl Fn(&Record) -> bool) -> Sum {
        let mut sum = Sum::default();
        for record in self.records.iter().filter(|record| of(record)) {
            let calls = record.calls.len();
            sum.add(record.right, record.wrong_effects, calls, &record.spent);
        }
        sum
    }

    /// The run as JSON: sums by group, then every request.
    pub fn to_json(&self) -> serde_json::Value {
        let mut sums = serde_json::Map::new();
        sums.insert("all".to_owned(), self.sum(|_| true).to_json());
        for group in groups(std::slice::from_ref(self)) {
            let sum = self.sum(|record| record.group == group);
            sums.insert(group, sum.to_json());
        }
        serde_json::json!({
            "model": self.model,
            "without": self.without,
            "sums": sums,
            "requests": self.records,
        })
    }
}

/// The groups of these runs in the order in which they first come up.
pub fn groups(runs: &[Run]) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for record in runs.iter().flat_map(|run| &run.records) {
        if !groups.contains(&record.group) {
            groups.push(record.group.clone());
        }
    }
    groups
}

/// A share with its 95% Wilson interval in percent: `14/20  70.0% [48–85]`.
pub fn shown(share: Share) -> String {
    let (low, high) = share.interval();
    format!(
        "{}/{} {:>5.1}% [{:.0}–{:.0}]",
        share.right,
        share.of,
        share.rate() * 100.0,
        low * 100.0,
        high * 100.0
    )
}

/// A table of runs side by side: a row a group, a column a run; then figures of the whole.
pub fn table(runs: &[Run]) -> String {
    const WIDTH: usize = 28;
    let mut text = String::new();
    if runs.is_empty() {
        return text;
    }
    let groups = groups(runs);
    let widest = groups.iter().map(|group| group.chars().count()).max();
    let first = widest.unwrap_or_default().max(21);
    let _ = write!(text, "{:<first$}", "right, first attempt");
    for run in runs {
        let label = crate::call::json::shortened(&run.label(), WIDTH);
        let _ = write!(text, "  {label:>WIDTH$}");
    }
    text.push('\n');
    let mut row = |name: &str, cell: &dyn Fn(&Run) -> String| {
        let _ = write!(text, "{name:<first$}");
        for run in runs {
            let _ = write!(text, "  {:>WIDTH$}", cell(run));
        }
        text.push('\n');
    };
    for group in &groups {
        row(group, &|run| {
            shown(run.sum(|record| record.group == *group).right)
        });
    }
    if groups.len() > 1 {
        row("all", &|run| shown(run.sum(|_| true).right));
    }
    for (name, figure) in FIGURES {
        row(name, &|run| figure(&run.sum(|_| true)));
    }
    text
}

/// A figure of a whole run.
pub(super) type Figure = fn(&Sum) -> String;

const FIGURES: [(&str, Figure); 5] = [
    WRONG_EFFECTS,
    SECONDS,
    ("tokens/request", |sum| {
        per(sum.written as f64, sum.right.of)
    }),
    ("chosen/request", |sum| per(sum.chosen as f64, sum.right.of)),
    PROMPT_REUSED,
];

pub(super) const WRONG_EFFECTS: (&str, Figure) = ("wrong effects", |sum| {
    format!("{} of {} calls", sum.wrong_effects, sum.calls)
});

pub(super) const SECONDS: (&str, Figure) =
    ("seconds/request", |sum| per(sum.seconds, sum.right.of));

pub(super) const PROMPT_REUSED: (&str, Figure) = ("prompt reused", |sum| {
    let all = sum.prompt_reused + sum.prompt_evaluated;
    if all == 0 {
        "–".to_owned()
    } else {
        format!("{:.0}%", sum.prompt_reused as f64 / all as f64 * 100.0)
    }
});

pub(super) fn per(amount: f64, of: usize) -> String {
    if of == 0 {
        "–".to_owned()
    } else {
        format!("{:.2}", amount / of as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(group: &str, right: bool) -> Record {
        Record {
            group: group.into(),
            right,
            spent: Spent {
                forced: 3,
                chosen: 1,
                seconds: 0.5,
                ..Spent::default()
            },
            ..Record::default()
        }
    }

    #[test]
    fn a_table_has_a_row_a_group_and_a_column_a_run() {
        let run = |model: &str, rights: [bool; 3]| Run {
            model: model.into(),
            without: Vec::new(),
            records: vec![
                record("b", rights[0]),
                record("a", rights[1]),
                record("b", rights[2]),
            ],
        };
        let text = table(&[
            run("one", [true, false, true]),
            Run {
                without: vec!["grammar".into()],
                ..run("two", [false, false, true])
            },
        ]);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(
            lines[0].ends_with("one           two without grammar"),
            "{text}"
        );
        assert!(
            lines[1].starts_with("b ") && lines[1].contains("2/2 100.0% [34–100]"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("a ") && lines[2].contains("0/1   0.0% [0–79]"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("all") && lines[3].ends_with("1/3  33.3% [6–79]"),
            "{text}"
        );
        assert!(lines[6].ends_with("4.00"), "{text}");
        assert_eq!(table(&[]), "");
    }
}
