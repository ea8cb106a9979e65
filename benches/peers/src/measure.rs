//! What is measured of each peer: a working session, states that are known, schemas seen for the
//! first time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::peer::{Peer, Run};
use crate::vocabulary::Words;

/// A schema and the tokens of its first valid instance.
pub struct Case {
    pub schema: Value,
    pub value: Value,
    pub tokens: Vec<u32>,
}

/// Times, sorted when they are asked for.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// What makes totals over more and fewer schemas comparable.
    pub fn mean(&self) -> Duration {
        self.total() / u32::try_from(self.0.len().max(1)).unwrap_or(u32::MAX)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest time that a `part` of all do not exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() as f64 * part).ceil() as usize;
        sorted
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }
}

/// Walks along `tokens`; each mask is timed.
fn walk(run: &mut dyn Run, tokens: &[u32], times: &mut Times) -> Result<(), String> {
    for (at, &token) in tokens.iter().enumerate() {
        let started = Instant::now();
        let allowed = run.mask(token)?;
        times.add(started.elapsed());
        if !allowed || !run.accept(token)? {
            return Err(format!("token {at} is not allowed"));
        }
    }
    Ok(())
}

/// Whether the peer takes the schema and its instance.
pub fn takes(peer: &dyn Peer, case: &Case) -> Result<(), String> {
    let mut run = peer.start(&case.schema)?;
    walk(&mut *run, &case.tokens, &mut Times::default())
}

/// Compile and all masks of the first instance, of each schema that `peer` takes. Where `cold`,
/// each begins with nothing remembered; otherwise one half of the schemas was seen before the
/// other is measured, and the other way round.
pub fn first_seen(peer: &mut dyn Peer, cases: &[&Case], cold: bool) -> Times {
    let mut times = Times::default();
    let (one, other) = cases.split_at(cases.len() / 2);
    for (warming, measured) in [(one, other), (other, one)] {
        peer.forget();
        if !cold {
            let began = Instant::now();
            for case in warming {
                if began.elapsed() > peer.patience() {
                    break;
                }
                _ = takes(peer, case);
            }
        }
        let began = Instant::now();
        for case in measured {
            if began.elapsed() > peer.patience() {
                break;
            }
            if cold {
                peer.forget();
            }
            let started = Instant::now();
            if takes(peer, case).is_ok() {
                times.add(started.elapsed());
            }
        }
    }
    times
}

/// Masks of a second walk along the same instance.
pub fn known(peer: &mut dyn Peer, cases: &[&Case]) -> Times {
    let mut times = Times::default();
    peer.forget();
    let began = Instant::now();
    for case in cases {
        if began.elapsed() > peer.patience() {
            break;
        }
        let Ok(start) = peer.start(&case.schema) else {
            continue;
        };
        let along = |times: &mut Times| walk(&mut *start.again()?, &case.tokens, times);
        if along(&mut Times::default()).is_ok() {
            _ = along(&mut times);
        }
    }
    times
}

/// Calls of a session, and how many of them pass between changes of the live values.
const CALLS: usize = 100;
const CHANGE: usize = 10;
const TOOLS: usize = 10;

/// The turns of a session over ten tools: the schema of each, and the tokens of its call. Each
/// tool takes a device besides its own arguments, and the devices that there are change.
pub fn session(cases: &[&Case], words: &Words) -> Vec<Case> {
    let step = (cases.len() / TOOLS).max(1);
    let tools: Vec<&&Case> = cases.iter().step_by(step).take(TOOLS).collect();
    let mut turns = Vec::new();
    for call in 0..CALLS {
        let devices: Vec<String> = (0..12)
            .map(|n| format!("device {}", n + call / CHANGE))
            .collect();
        let branches: Vec<Value> = (0..tools.len())
            .map(|at| {
                json!({
                    "type": "object",
                    "properties": {
                        "tool": { "const": format!("tool_{at}") },
                        "device": { "enum": devices },
                        "arguments": tools[at].schema,
                    },
                    "required": ["tool", "device", "arguments"],
                    "additionalProperties": false,
                })
            })
            .collect();
        let at = call * 7 % tools.len();
        let value = json!({
            "tool": format!("tool_{at}"),
            "device": devices[call % devices.len()],
            "arguments": tools[at].value,
        });
        let text = snaffle::call::json::spaced(&value);
        if let Some(tokens) = words.tokenize(&text) {
            turns.push(Case {
                schema: json!({ "anyOf": branches }),
                value,
                tokens,
            });
        }
    }
    turns
}

/// What a session took.
pub struct Replayed {
    /// Calls that were come to.
    pub calls: usize,
    pub compiling: Times,
    pub masks: Times,
    /// Bytes held at its end and not at its beginning.
    pub kept: i64,
}

/// Replays a session, nothing remembered at its start. A schema that did not change since the turn
/// before is kept.
pub fn replay(
    peer: &mut dyn Peer,
    turns: &[Case],
    held: &mut dyn FnMut() -> i64,
) -> Result<Replayed, String> {
    let (mut compiling, mut masks, mut calls) = (Times::default(), Times::default(), 0);
    peer.forget();
    held();
    let began = Instant::now();
    let mut last: Option<(&Value, Box<dyn Run + '_>)> = None;
    for turn in turns {
        if began.elapsed() > peer.patience() {
            break;
        }
        let start = match last.take() {
            Some((schema, start)) if *schema == turn.schema => start,
            old => {
                drop(old);
                let started = Instant::now();
                let start = peer.start(&turn.schema)?;
                compiling.add(started.elapsed());
                start
            }
        };
        walk(&mut *start.again()?, &turn.tokens, &mut masks)?;
        calls += 1;
        last = Some((&turn.schema, start));
    }
    let kept = held();
    Ok(Replayed {
        calls,
        compiling,
        masks,
        kept,
    })
}
