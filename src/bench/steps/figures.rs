//! Sums of a run of tasks, and what the harness is worth beside a growing history and chance.

use super::plan::STEPS;
use crate::bench::interval::Share;
use crate::bench::record::{Record, Run, per, shown};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Steps of a row in the table over steps.
const BLOCK: usize = 10;

/// Figures of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    /// Steps right at the first attempt.
    pub right: Share,
    /// The same by step, from the first on.
    pub by_step: Vec<Share>,
    /// Tasks that were finished without help.
    pub finished: Share,
    /// Steps that were not reached.
    pub not_reached: usize,
    /// Prompt tokens of a step's first attempt: over all steps, and at the last.
    pub prompt: Mean,
    /// Of them evaluated.
    pub evaluated: Mean,
    /// Seconds of a step's first attempt, over all steps.
    pub seconds: f64,
    /// The same at step 5.
    pub seconds_early: f64,
    /// The same at step 50.
    pub seconds_late: f64,
}

/// A figure over all steps that were reached, and at the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Mean {
    /// Over all.
    pub all: f64,
    /// At step 50; 0 where it was never reached.
    pub last: f64,
}

/// A record's number in its task, from 1; 0 where it has none.
fn number(record: &Record) -> usize {
    record.step.as_ref().map_or(0, |step| step.number)
}

fn reached(record: &Record) -> bool {
    record.step.as_ref().is_some_and(|step| step.reached)
}

/// The mean of `figure` over the steps that were reached and that `of` picks; 0 where there are
/// none.
fn mean(run: &Run, of: impl Fn(&Record) -> bool, figure: impl Fn(&Record) -> f64) -> f64 {
    let picked = run.records.iter().filter(|r| reached(r) && of(r));
    let (count, sum) = picked.fold((0.0, 0.0), |(count, sum), record| {
        (count + 1.0, sum + figure(record))
    });
    if count > 0.0 { sum / count } else { 0.0 }
}

fn prompt(record: &Record) -> f64 {
    (record.spent.prompt_reused + record.spent.prompt_evaluated) as f64
}

impl Sums {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        let mut by_step = vec![Share::default(); STEPS];
        let mut tasks: BTreeMap<(&str, usize), bool> = BTreeMap::new();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for record in &run.records {
            let Some(step) = &record.step else { continue };
            if let Some(share) = by_step.get_mut(step.number.wrapping_sub(1)) {
                share.count(record.right);
            }
            // A task may be there several times, once a repetition.
            let repetition = seen.entry(&record.id).or_default();
            let alone = step.reached && !step.helped;
            *tasks.entry((&step.task, *repetition)).or_insert(true) &= alone;
            *repetition += 1;
        }
        let mut finished = Share::default();
        for alone in tasks.into_values() {
            finished.count(alone);
        }
        let evaluated = |record: &Record| record.spent.prompt_evaluated as f64;
        let seconds = |record: &Record| record.spent.seconds;
        let last = |record: &Record| number(record) == STEPS;
        Self {
            right: run.sum(|_| true).right,
            by_step,
            finished,
            not_reached: run.records.iter().filter(|record| !reached(record)).count(),
            prompt: Mean {
                all: mean(run, |_| true, prompt),
                last: mean(run, last, prompt),
            },
            evaluated: Mean {
                all: mean(run, |_| true, evaluated),
                last: mean(run, last, evaluated),
            },
            seconds: mean(run, |_| true, seconds),
            seconds_early: mean(run, |record| number(record) == 5, seconds),
            seconds_late: mean(run, last, seconds),
        }
    }
}

/// What is asked of the harness, and what it reaches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What is measured.
    pub name: &'static str,
    /// What was found.
    pub found: f64,
    /// What is wanted.
    pub wanted: f64,
    /// Whether it is at least that, or at most.
    pub at_least: bool,
    /// Whether it is so.
    pub reached: bool,
}

impl Comparison {
    fn new(name: &'static str, found: f64, wanted: f64, at_least: bool) -> Self {
        let reached = if at_least {
            found >= wanted
        } else {
            found <= wanted
        };
        Self {
            name,
            found,
            wanted,
            at_least,
            reached,
        }
    }

    /// All that can be said of these runs: the harness's, and those beside it that went as far.
    pub fn all(harness: &Run, history: Option<&Run>, chance: Option<&Run>) -> Vec<Self> {
        let own = Sums::of(harness);
        let mut all = vec![Self::new(
            "share of steps right",
            own.right.rate(),
            0.82,
            true,
        )];
        // What was cut off earlier has no figures to be held against.
        let beside = |run: Option<&Run>| {
            run.map(Sums::of)
                .filter(|other| other.right.of > 0 && other.right.of == own.right.of)
        };
        if let Some(chance) = beside(chance) {
            let above = own.right.rate() - chance.right.rate();
            all.push(Self::new("above random logits", above, 0.3, true));
        }
        if let Some(other) = beside(history) {
            let ratio = |one: f64, two: f64| if two > 0.0 { one / two } else { f64::INFINITY };
            let times = ratio(own.right.rate(), other.right.rate());
            all.push(Self::new("times the growing history's", times, 1.8, true));
            if other.prompt.last > 0.0 {
                let share = own.prompt.last / other.prompt.last;
                all.push(Self::new("prompt at step 50 of its", share, 0.4, false));
            }
            let share = ratio(own.evaluated.all, other.prompt.all);
            all.push(Self::new("evaluated of its prompt", share, 0.15, false));
        }
        if own.seconds_early > 0.0 {
            let longer = own.seconds_late / own.seconds_early;
            all.push(Self::new("time at step 50 of step 5", longer, 1.1, false));
        }
        all
    }
}

/// Success over steps and what the steps took, a column a run; then what is asked of the first.
pub fn table(runs: &[Run], comparisons: &[Comparison]) -> String {
    const WIDTH: usize = 28;
    let sums: Vec<Sums> = runs.iter().map(Sums::of).collect();
    let mut text = String::new();
    let mut row = |name: &str, cell: &dyn Fn(&Sums) -> String| {
        let _ = write!(text, "{name:<21}");
        for sums in &sums {
            let _ = write!(text, "  {:>WIDTH$}", cell(sums));
        }
        text.push('\n');
    };
    for from in (0..STEPS).step_by(BLOCK) {
        let name = format!("steps {}–{}", from + 1, from + BLOCK);
        row(&name, &|sums| {
            let mut block = Share::default();
            for share in &sums.by_step[from..from + BLOCK] {
                block.right += share.right;
                block.of += share.of;
            }
            shown(block)
        });
    }
    row("tasks without help", &|sums| shown(sums.finished));
    row("steps not reached", &|sums| sums.not_reached.to_string());
    let pair = |mean: Mean| format!("{:.0}, at step 50: {:.0}", mean.all, mean.last);
    row("prompt tokens/step", &|sums| pair(sums.prompt));
    row("evaluated/step", &|sums| pair(sums.evaluated));
    row("seconds at 5, at 50", &|sums| {
        let (early, late) = (per(sums.seconds_early, 1), per(sums.seconds_late, 1));
        format!("{early}, {late}")
    });
    text.push('\n');
    for comparison in comparisons {
        let _ = writeln!(
            text,
            "{:<28} {:>6.2}  wanted: at {} {:.2}  {}",
            comparison.name,
            comparison.found,
            if comparison.at_least { "least" } else { "most" },
            comparison.wanted,
            if comparison.reached {
                "reached"
            } else {
                "not reached"
            },
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::{Spent, Step};

    /// Two tasks; of the second, step 50 is not reached; every step but the first is right.
    fn run(prompt: usize, seconds: f64) -> Run {
        let mut records = Vec::new();
        for task in ["a", "b"] {
            for number in 1..=STEPS {
                let reached = task == "a" || number < STEPS;
                records.push(Record {
                    id: format!("{task}/{number}"),
                    right: number > 1 && reached,
                    spent: Spent {
                        prompt_reused: prompt * number,
                        prompt_evaluated: 10,
                        seconds,
                        ..Spent::default()
                    },
                    step: Some(Step {
                        task: task.into(),
                        number,
                        helped: false,
                        reached,
                    }),
                    ..Record::default()
                });
            }
        }
        Run {
            model: "m".into(),
            without: Vec::new(),
            records,
        }
    }

    #[test]
    fn figures_are_of_what_was_reached() {
        let sums = Sums::of(&run(2, 0.5));
        assert_eq!(sums.right, Share { right: 97, of: 100 });
        assert_eq!(sums.finished, Share { right: 1, of: 2 });
        assert_eq!(sums.not_reached, 1);
        assert_eq!((sums.prompt.last, sums.evaluated.all), (110.0, 10.0));
        assert_eq!(sums.by_step[0], Share { right: 0, of: 2 });
        assert!((sums.seconds_late - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_is_asked_is_held_against_what_was_found() {
        let (own, history) = (run(1, 0.5), run(100, 1.0));
        let all = Comparison::all(&own, Some(&history), Some(&history));
        let found: Vec<_> = all.iter().map(|c| (c.name, c.reached)).collect();
        assert_eq!(
            found,
            [
                ("share of steps right", true),
                ("above random logits", false),
                ("times the growing history's", false),
                ("prompt at step 50 of its", true),
                ("evaluated of its prompt", true),
                ("time at step 50 of step 5", true),
            ]
        );
        let text = table(&[own, history], &all);
        assert!(text.contains("steps 41–50"), "{text}");
        assert!(text.contains("1/2  50.0% [9–91]"), "{text}");
        assert!(Comparison::all(&run(1, 0.5), None, None).len() == 2);
        let mut cut_off = run(1, 0.5);
        cut_off.records.truncate(10);
        let alone = Comparison::all(&run(1, 0.5), Some(&cut_off), Some(&cut_off));
        assert_eq!(alone.len(), 2, "{alone:?}");
    }
}
