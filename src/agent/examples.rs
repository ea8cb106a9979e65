//! Where the examples of a request come from.

use super::context::Shown;
use crate::call::{FailureKind, Moves};
use crate::fewshot::{ExampleId, Fill, Pool, Query};
use std::collections::HashMap;

/// Chooses the examples of a request.
pub trait Examples {
    /// At most `most` examples for a request among the legal moves, the most relevant last, where
    /// models heed them most; `failure` and what was `shown` before where the last attempt failed.
    fn choose(
        &mut self,
        request: &str,
        moves: &Moves,
        failure: Option<FailureKind>,
        shown: &[Shown],
        most: usize,
    ) -> Vec<Shown>;
}

/// No examples at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExamples;

impl Examples for NoExamples {
    fn choose(
        &mut self,
        _request: &str,
        _moves: &Moves,
        _failure: Option<FailureKind>,
        _shown: &[Shown],
        _most: usize,
    ) -> Vec<Shown> {
        Vec::new()
    }
}

/// Examples out of a pool.
#[derive(Debug)]
pub struct FromPool {
    pool: Pool,
    /// Examples of the form of a step, for states in which a call is due.
    steps: Pool,
    /// Choose whatever is asked. For measurements.
    pub fixed: bool,
    /// Decides among equals.
    pub seed: u64,
    /// Which live values fill holes.
    pub fill: Fill,
    /// What the pool knows of the texts that were shown.
    ids: HashMap<(String, String), ExampleId>,
}

impl FromPool {
    /// Examples out of `pool`.
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            steps: Pool::default(),
            fixed: false,
            seed: 0,
            fill: Fill::default(),
            ids: HashMap::new(),
        }
    }
}

impl FromPool {
    /// With examples of the form of a step: where a call is due and the pool has too few of the
    /// tools at hand, they show how the values of a call are taken from what is known.
    #[must_use]
    pub fn with_steps(mut self, steps: Pool) -> Self {
        self.steps = steps;
        self
    }
}

impl Examples for FromPool {
    fn choose(
        &mut self,
        request: &str,
        moves: &Moves,
        failure: Option<FailureKind>,
        shown: &[Shown],
        most: usize,
    ) -> Vec<Shown> {
        let legal: Vec<(&str, &crate::call::Domains)> = moves
            .moves
            .iter()
            .map(|legal| (legal.spec.name.as_str(), &legal.domains))
            .collect();
        let exclude: Vec<ExampleId> = shown
            .iter()
            .filter_map(|shown| self.ids.get(&(shown.request.clone(), shown.reply.clone())))
            .cloned()
            .collect();
        let query = Query {
            most,
            most_calls: moves.max_calls,
            may_ask: moves.ask,
            fill: self.fill,
            seed: self.seed,
            exclude: &exclude,
            failure: failure.map(|kind| (kind, None)),
            ..Query::new(request, &legal)
        };
        let mut found = if self.fixed {
            self.pool.fixed(&query)
        } else {
            self.pool.select(&query)
        };
        if found.len() < most && !moves.ask && !moves.answer {
            let query = Query {
                most: most - found.len(),
                ..query.clone()
            };
            found.extend(self.steps.forms(&query, !self.fixed));
        }
        if moves.max_calls > 1 && !self.fixed {
            let named = super::open::named(request, moves);
            if let Some(several) = self.pool.compose(&query, &named) {
                found.insert(0, several);
                found.truncate(most);
            }
        }
        let mut chosen: Vec<Shown> = found
            .into_iter()
            .map(|found| {
                let shown = Shown {
                    request: found.request,
                    reply: found.reply.to_text(),
                };
                self.ids
                    .insert((shown.request.clone(), shown.reply.clone()), found.id);
                shown
            })
            .collect();
        chosen.reverse();
        chosen
    }
}
