//! Going back: which event a step ends with, and what a rewinding leaves in the world.

use super::event::{Entry, Event, StepResult};
use super::state::standing;
use crate::call::{Call, Effect};
use std::collections::BTreeSet;

/// An effect that stays in the world although the task goes back before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Remains {
    /// Its step.
    pub step: u32,
    /// The call.
    pub call: Call,
    /// What changed, one line each; empty where that is not known.
    pub changes: Vec<String>,
    /// Whether it is certain that it took effect.
    pub certain: bool,
}

/// The event after which the task was done with `step` and all that followed from it; step 0 is
/// the beginning. `None`: there is no such step, or it has no outcome.
pub fn event_after(entries: &[Entry], step: u32) -> Option<u64> {
    let counted = standing(entries);
    if step == 0 {
        return counted.first().map(|entry| entry.sequence);
    }
    let at = counted.iter().rposition(|entry| match &entry.event {
        Event::Outcome { step: of, .. } | Event::Settled { step: of, .. } => *of == step,
        _ => false,
    })?;
    let mut last = counted.get(at)?.sequence;
    for entry in counted.iter().skip(at + 1) {
        match entry.event {
            Event::FactsChanged { .. } | Event::StateMoved { .. } => last = entry.sequence,
            _ => break,
        }
    }
    Some(last)
}

/// The last step that has an outcome.
pub fn last_step(entries: &[Entry]) -> u32 {
    let steps = standing(entries)
        .into_iter()
        .filter_map(|entry| match &entry.event {
            Event::Outcome { step, .. } | Event::Settled { step, .. } => Some(*step),
            _ => None,
        });
    steps.max().unwrap_or(0)
}

/// The effects after event `to` that still count now: going back there does not undo them.
pub fn remains(entries: &[Entry], to: u64) -> Vec<Remains> {
    let mut found: Vec<Remains> = Vec::new();
    for entry in standing(entries) {
        if entry.sequence <= to {
            continue;
        }
        match &entry.event {
            Event::Intent {
                step, call, effect, ..
            } if *effect != Effect::Read => found.push(Remains {
                step: *step,
                call: call.clone(),
                changes: Vec::new(),
                certain: false,
            }),
            Event::Outcome {
                step,
                result,
                changes,
            } => match result {
                StepResult::Error {
                    effect_unknown: false,
                    ..
                } => found.retain(|one| one.step != *step),
                StepResult::Error { .. } => {}
                StepResult::Ok(_) => {
                    for one in found.iter_mut().filter(|one| one.step == *step) {
                        one.certain = true;
                        one.changes.clone_from(changes);
                    }
                    // A tool that found everything as it was wanted changed nothing.
                    if changes.is_empty() {
                        found.retain(|one| one.step != *step);
                    }
                }
            },
            Event::Settled { step, how } => match how {
                super::Settlement::Happened => {
                    for one in found.iter_mut().filter(|one| one.step == *step) {
                        one.certain = true;
                    }
                }
                super::Settlement::DidNotHappen => found.retain(|one| one.step != *step),
                super::Settlement::Repeat => {}
            },
            _ => {}
        }
    }
    found
}

/// The events that a rewinding left behind.
pub fn abandoned(entries: &[Entry]) -> BTreeSet<u64> {
    let counted: BTreeSet<u64> = standing(entries).iter().map(|e| e.sequence).collect();
    entries
        .iter()
        .map(|entry| entry.sequence)
        .filter(|sequence| !counted.contains(sequence))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Settlement;
    use jiff::Timestamp;
    use serde_json::json;

    fn entries() -> Vec<Entry> {
        let call = |n: u32| Call::new("set", [("n", n)]);
        let intent = |step, effect| Event::Intent {
            step,
            call: call(step),
            effect,
            idempotent: false,
        };
        let ok = |step, changes: &[&str]| Event::Outcome {
            step,
            result: StepResult::Ok(json!(1)),
            changes: changes.iter().map(|&change| change.to_owned()).collect(),
        };
        let failed = |step, effect_unknown| Event::Outcome {
            step,
            result: StepResult::Error {
                message: String::new(),
                effect_unknown,
            },
            changes: Vec::new(),
        };
        let moved = Event::StateMoved {
            from: "a".into(),
            to: "b".into(),
        };
        let events = vec![
            Event::Resumed, // 1: stands for the task's creation
            intent(1, Effect::Change),
            ok(1, &["one"]),
            moved,
            Event::TurnStarted { turn: 2 },
            intent(2, Effect::Read),
            ok(2, &[]),
            intent(3, Effect::Risk),
            failed(3, true),
            Event::Settled {
                step: 3,
                how: Settlement::Happened,
            },
            intent(4, Effect::Risk),
            failed(4, false),
            intent(5, Effect::Change),
            ok(5, &["five"]),
            intent(6, Effect::Risk),
        ];
        events
            .into_iter()
            .enumerate()
            .map(|(at, event)| Entry {
                sequence: at as u64 + 1,
                time: Timestamp::UNIX_EPOCH,
                event,
            })
            .collect()
    }

    #[test]
    fn steps_end_with_what_follows_from_them() {
        for (step, event) in [
            (0, Some(1)),
            (1, Some(4)),
            (2, Some(7)),
            (3, Some(10)),
            (5, Some(14)),
            (6, None),
            (7, None),
        ] {
            assert_eq!(event_after(&entries(), step), event, "{step}");
        }
        assert_eq!(last_step(&entries()), 5);
    }

    #[test]
    fn what_remains_is_told() {
        let told = |to| {
            let remains = remains(&entries(), to).into_iter();
            remains
                .map(|one| (one.step, one.changes.join(""), one.certain))
                .collect::<Vec<_>>()
        };
        let later = vec![
            (3, String::new(), true),
            (5, "five".to_owned(), true),
            (6, String::new(), false),
        ];
        assert_eq!(told(4), later);
        assert_eq!(told(14), later[2..]);
        assert_eq!(told(1)[0], (1, "one".to_owned(), true));
    }

    #[test]
    fn what_was_left_behind_counts_no_longer() {
        let mut entries = entries();
        entries.push(Entry {
            sequence: 16,
            time: Timestamp::UNIX_EPOCH,
            event: Event::Rewound { to: 4 },
        });
        assert_eq!(abandoned(&entries), (5..=15).collect());
        assert_eq!(event_after(&entries, 2), None);
        assert_eq!(remains(&entries, 4), []);
    }
}
