//! Where the examples of a request come from.

use super::context::Shown;
use super::described::described;
use crate::call::{Domains, FailureKind, Move, Moves, Reply};
use crate::fewshot::{ExampleId, Fill, LearnedError, LearnedFile, Lesson, Pool, Query};
use std::collections::{HashMap, HashSet};

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

    /// Takes in what a retry that succeeded teaches, given what was legal then; the example that it
    /// became, if it became one. By default nothing is learned.
    fn learn(&mut self, _lesson: &Lesson<'_>, _moves: &Moves) -> Option<ExampleId> {
        None
    }
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

/// Examples out of a pool. It learns nothing unless told to: what is measured must not depend on
/// what came before.
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
    /// Whether retries that succeed become examples.
    learns: bool,
    /// How many did.
    learned: usize,
    /// Where they are kept beyond this run.
    file: Option<LearnedFile>,
    /// Why the last one is not.
    trouble: Option<LearnedError>,
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
            learns: false,
            learned: 0,
            file: None,
            trouble: None,
        }
    }

    /// With examples of the form of a step: where a call is due and the pool has too few of the
    /// tools at hand, they show how the values of a call are taken from what is known.
    #[must_use]
    pub fn with_steps(mut self, steps: Pool) -> Self {
        self.steps = steps;
        self
    }

    /// Learns from retries that succeed; what is learned is kept in `file`, where there is one, and
    /// otherwise as long as this value lives.
    #[must_use]
    pub fn learning(mut self, file: Option<LearnedFile>) -> Self {
        self.learns = true;
        self.file = file;
        self
    }

    /// Learns no more; what was learned stays.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.learns = false;
        self.file = None;
        self
    }

    /// How many examples were learned.
    pub fn learned(&self) -> usize {
        self.learned
    }

    /// Why something that was learned is not in the file, told once.
    pub fn take_trouble(&mut self) -> Option<LearnedError> {
        self.trouble.take()
    }

    /// Puts examples of tools that the pool knows nothing of before the others, where they come
    /// near to the request or, without `others`, whatever they are.
    fn describe(
        &self,
        request: &str,
        moves: &Moves,
        others: bool,
        chosen: &mut Vec<Shown>,
        most: usize,
    ) {
        let called: HashSet<&str> = self
            .pool
            .iter()
            .flat_map(|(_, example)| example.calls())
            .map(|call| call.tool.as_str())
            .collect();
        let is_stranger = |tool: &&Move| !called.contains(tool.spec.name.as_str());
        let strangers: Vec<&Move> = moves.moves.iter().filter(is_stranger).collect();
        if strangers.is_empty() {
            return;
        }
        let request = (!self.fixed).then_some(request);
        let described = described(request, &strangers, others, most);
        chosen.splice(0..0, described);
        chosen.truncate(most);
    }
}

/// The legal tools with their live values, as the pool takes them.
fn legal_of(moves: &Moves) -> Vec<(&str, &Domains)> {
    moves
        .moves
        .iter()
        .map(|legal| (legal.spec.name.as_str(), &legal.domains))
        .collect()
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
        let legal = legal_of(moves);
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
        if moves.max_calls > 1 && !self.fixed && most > 0 {
            let named = super::open::named(request, moves);
            if let Some(several) = self.pool.compose(&query, &named) {
                // It does for this request what is wanted: whatever else is shown only differs.
                found = vec![several];
            }
        }
        let others = found
            .iter()
            .any(|found| matches!(found.reply, Reply::Calls(_)));
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
        if moves.ask || moves.answer {
            self.describe(request, moves, others, &mut chosen, most);
        }
        chosen.reverse();
        chosen
    }

    fn learn(&mut self, lesson: &Lesson<'_>, moves: &Moves) -> Option<ExampleId> {
        if !self.learns {
            return None;
        }
        let example = lesson.example(&legal_of(moves))?;
        let id = example.id();
        if !self.pool.add(example.clone()) {
            return None;
        }
        self.learned += 1;
        if let Some(file) = &self.file {
            // At once: a run that is killed afterwards has learned it all the same.
            self.trouble = file.add(&[example]).err();
        }
        Some(id)
    }
}
