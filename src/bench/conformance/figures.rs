//! Sums over many schemas, as a table for a person and as JSON for a machine.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::judge::{Judgement, Reason, Verdict};
use super::masks::Masks;
use crate::bench::histogram::{Histogram, time};
use crate::bench::interval::Share;

/// Sums over the schemas of one data set, or of all.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Schemas.
    pub schemas: usize,
    /// Those that gave a grammar.
    pub compiled: usize,
    /// Those that gave none, by reason.
    pub refused: BTreeMap<Reason, usize>,
    /// Schemas of which the grammar alone accepts all valid and rejects all invalid instances.
    pub right: Share,
    /// The same, of the schemas that have both kinds of instances.
    pub right_with_both: Share,
    /// The same as `right`, for grammar and validator together.
    pub right_with_validator: Share,
    /// Schemas some of whose valid instances the grammar rejects.
    pub with_false_rejection: usize,
    /// Those of them where the order of members alone is to blame.
    pub with_wrong_order: usize,
    /// Valid instances that the grammar accepts, of all of compiled schemas.
    pub valid_accepted: Share,
    /// Invalid instances that the grammar rejects, of all of compiled schemas.
    pub invalid_rejected: Share,
    /// The same for grammar and validator together.
    pub invalid_rejected_with_validator: Share,
    /// Invalid instances accepted although the coverage reports everything as enforced.
    pub unreported: usize,
    /// Schemas that the validator cannot use.
    pub no_validator: usize,
    /// Times from schema to grammar.
    pub compile: Histogram,
    /// Times from grammar to automaton over bytes.
    pub lower: Histogram,
    /// Token masks, by vocabulary.
    pub masks: BTreeMap<String, Masks>,
}

impl Figures {
    /// Adds a schema.
    pub fn add(&mut self, judgement: &Judgement) {
        self.schemas += 1;
        self.right.count(judgement.is_right());
        if judgement.has_both() {
            self.right_with_both.count(judgement.is_right());
        }
        self.right_with_validator
            .count(judgement.is_right_with_validator());
        match &judgement.verdict {
            Verdict::Refused { reason, .. } => *self.refused.entry(*reason).or_default() += 1,
            Verdict::Compiled(compared) => {
                self.compiled += 1;
                let rejections = &compared.false_rejections;
                let acceptances = &compared.false_acceptances;
                self.with_false_rejection += usize::from(!rejections.is_empty());
                self.with_wrong_order +=
                    usize::from(!rejections.is_empty() && rejections.iter().all(|r| r.order));
                self.valid_accepted.of += judgement.valid;
                self.valid_accepted.right += judgement.valid - rejections.len();
                self.invalid_rejected.of += judgement.invalid;
                self.invalid_rejected.right += judgement.invalid - acceptances.len();
                self.invalid_rejected_with_validator.of += judgement.invalid;
                self.invalid_rejected_with_validator.right +=
                    judgement.invalid - acceptances.iter().filter(|a| !a.caught).count();
                self.unreported += acceptances.iter().filter(|a| !a.reported).count();
                self.no_validator += usize::from(compared.no_validator.is_some());
            }
        }
        if judgement.compile > Duration::ZERO {
            self.compile.record(judgement.compile);
        }
        if judgement.lower > Duration::ZERO {
            self.lower.record(judgement.lower);
        }
    }

    /// Adds the masks of a schema with a vocabulary.
    pub fn add_masks(&mut self, vocabulary: &str, masks: &Masks) {
        self.masks
            .entry(vocabulary.to_owned())
            .or_default()
            .merge(masks);
    }

    /// Adds all of another sum.
    pub fn merge(&mut self, other: &Self) {
        self.schemas += other.schemas;
        self.compiled += other.compiled;
        for (reason, count) in &other.refused {
            *self.refused.entry(*reason).or_default() += count;
        }
        for (own, share) in [
            (&mut self.right, other.right),
            (&mut self.right_with_both, other.right_with_both),
            (&mut self.right_with_validator, other.right_with_validator),
            (&mut self.valid_accepted, other.valid_accepted),
            (&mut self.invalid_rejected, other.invalid_rejected),
            (
                &mut self.invalid_rejected_with_validator,
                other.invalid_rejected_with_validator,
            ),
        ] {
            own.right += share.right;
            own.of += share.of;
        }
        self.with_false_rejection += other.with_false_rejection;
        self.with_wrong_order += other.with_wrong_order;
        self.unreported += other.unreported;
        self.no_validator += other.no_validator;
        self.compile.merge(&other.compile);
        self.lower.merge(&other.lower);
        for (vocabulary, masks) in &other.masks {
            self.add_masks(vocabulary, masks);
        }
    }

    /// For a machine. Times are in microseconds.
    pub fn to_json(&self) -> Value {
        let share =
            |share: Share| json!({ "right": share.right, "of": share.of, "rate": share.rate() });
        let refused: serde_json::Map<String, Value> = Reason::ALL
            .iter()
            .map(|reason| {
                let count = self.refused.get(reason).copied().unwrap_or(0);
                (reason.name().to_owned(), count.into())
            })
            .collect();
        let masks: serde_json::Map<String, Value> = self
            .masks
            .iter()
            .map(|(vocabulary, masks)| {
                let value = json!({
                    "instances": masks.instances,
                    "unspellable": masks.unspellable,
                    "all": masks.all.to_json(),
                    "computed": masks.computed.to_json(),
                    "known": masks.known.to_json(),
                    "lower_us": masks.lower.as_secs_f64() * 1e6,
                    "faults": masks.faults,
                    "stopped": masks.stopped,
                });
                (vocabulary.clone(), value)
            })
            .collect();
        json!({
            "schemas": self.schemas,
            "compiled": self.compiled,
            "refused": refused,
            "right": share(self.right),
            "right_with_both": share(self.right_with_both),
            "right_with_validator": share(self.right_with_validator),
            "schemas_with_false_rejection": self.with_false_rejection,
            "of_them_by_order_alone": self.with_wrong_order,
            "valid_accepted": share(self.valid_accepted),
            "invalid_rejected": share(self.invalid_rejected),
            "invalid_rejected_with_validator": share(self.invalid_rejected_with_validator),
            "unreported": self.unreported,
            "no_validator": self.no_validator,
            "compile": self.compile.to_json(),
            "lower": self.lower.to_json(),
            "masks": masks,
        })
    }

    /// Schemas refused for `reason`.
    pub fn refused_for(&self, reason: Reason) -> usize {
        self.refused.get(&reason).copied().unwrap_or(0)
    }
}

type Column = (&'static str, fn(&Figures) -> String);

/// What the table shows of each data set. The four counts of refusals are malformed,
/// unsatisfiable, external reference and limit.
const COLUMNS: [Column; 11] = [
    ("schemas", |f| f.schemas.to_string()),
    ("compiled", |f| f.compiled.to_string()),
    ("refused m/u/e/l", |f| {
        let counts = Reason::ALL.iter().filter(|reason| reason.is_sound());
        let counts: Vec<String> = counts.map(|&r| f.refused_for(r).to_string()).collect();
        counts.join("/")
    }),
    ("lost", |f| {
        let lost = Reason::ALL.iter().filter(|reason| !reason.is_sound());
        lost.map(|&r| f.refused_for(r)).sum::<usize>().to_string()
    }),
    ("grammar alone", |f| percent(f.right)),
    ("with both kinds", |f| percent(f.right_with_both)),
    ("with validator", |f| percent(f.right_with_validator)),
    ("false rej. (order)", |f| {
        format!("{} ({})", f.with_false_rejection, f.with_wrong_order)
    }),
    ("false acc.", |f| {
        (f.invalid_rejected.of - f.invalid_rejected.right).to_string()
    }),
    ("p50", |f| time(f.compile.quantile(0.5))),
    ("p99", |f| time(f.compile.quantile(0.99))),
];

fn percent(share: Share) -> String {
    if share.of == 0 {
        "–".to_owned()
    } else {
        format!("{:.1}% of {}", share.rate() * 100.0, share.of)
    }
}

/// A table of data sets, one a row, and below it the masks of each vocabulary.
pub fn table(rows: &[(&str, &Figures)]) -> String {
    let mut cells = vec![
        std::iter::once(String::new())
            .chain(COLUMNS.iter().map(|(title, _)| (*title).to_owned()))
            .collect::<Vec<_>>(),
    ];
    for (name, figures) in rows {
        let values = COLUMNS.iter().map(|(_, value)| value(figures));
        cells.push(std::iter::once((*name).to_owned()).chain(values).collect());
    }
    let mut text = aligned(&cells);
    let Some((_, total)) = rows.last() else {
        return text;
    };
    for vocabulary in total.masks.keys() {
        let mut cells = vec![
            [
                "",
                "instances",
                "masks",
                "p50",
                "p99",
                "max",
                "computed",
                "p50",
                "p99",
                "faults",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        cells[0][0] = format!("masks, {vocabulary}");
        for (name, figures) in rows {
            if let Some(masks) = figures.masks.get(vocabulary) {
                cells.push(vec![
                    (*name).to_owned(),
                    masks.instances.to_string(),
                    masks.all.count().to_string(),
                    time(masks.all.quantile(0.5)),
                    time(masks.all.quantile(0.99)),
                    time(masks.all.longest()),
                    masks.computed.count().to_string(),
                    time(masks.computed.quantile(0.5)),
                    time(masks.computed.quantile(0.99)),
                    masks.faults.len().to_string(),
                ]);
            }
        }
        text.push('\n');
        text.push_str(&aligned(&cells));
    }
    text
}

/// Rows of cells in columns: the first to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string does not fail.
            let _ = if at == 0 {
                write!(line, "{cell:<width$}")
            } else {
                write!(line, "  {cell:>width$}")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::super::judge::judge;
    use super::*;
    use crate::grammar::schema::SchemaOptions;

    fn figures(cases: &[Value]) -> Figures {
        let mut figures = Figures::default();
        for case in cases {
            let case: Case = serde_json::from_value(case.clone()).unwrap();
            figures.add(&judge(&case, &SchemaOptions::default()).0);
        }
        figures
    }

    #[test]
    fn rights_and_wrongs_are_counted() {
        let cases = [
            // Right: both kinds of instances, told apart.
            json!({"id": "a", "schema": {"type": "integer"},
                "tests": [{"valid": true, "data": 1}, {"valid": false, "data": "x"}]}),
            // Another order than the schema's.
            json!({"id": "b", "schema": {"properties": {"x": {}, "y": {}}, "required": ["x", "y"], "additionalProperties": false},
                "tests": [{"valid": true, "data": {"y": 1, "x": 2}}]}),
            // Labelled wrongly: accepted by grammar and validator alike.
            json!({"id": "c", "schema": {"type": "string"},
                "tests": [{"valid": false, "data": "x"}]}),
            // What no grammar says is checked afterwards.
            json!({"id": "d", "schema": {"type": "array", "uniqueItems": true},
                "tests": [{"valid": false, "data": [[1], [1]]}, {"valid": true, "data": []}]}),
            json!({"id": "e", "schema": {"$ref": "http://example.com/s"}, "tests": []}),
            json!({"id": "f", "schema": {"type": 7}, "tests": []}),
        ];
        let found = figures(&cases);
        assert_eq!((found.schemas, found.compiled), (6, 4));
        assert_eq!(found.refused_for(Reason::External), 1);
        assert_eq!(found.refused_for(Reason::Malformed), 1);
        assert_eq!((found.right.right, found.right.of), (1, 6));
        let both = found.right_with_both;
        assert_eq!((both.right, both.of), (1, 2));
        assert_eq!(found.right_with_validator.right, 2, "a and d");
        assert_eq!((found.with_false_rejection, found.with_wrong_order), (1, 1));
        assert_eq!(found.invalid_rejected.of - found.invalid_rejected.right, 2);
        assert_eq!(found.unreported, 1, "c");
        let mut twice = figures(&cases[..3]);
        twice.merge(&figures(&cases[3..]));
        assert_eq!(twice.to_json()["right"], found.to_json()["right"]);
        let table = table(&[("x", &found), ("all", &twice)]);
        assert_eq!(table.lines().count(), 3, "{table}");
    }
}
