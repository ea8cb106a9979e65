//! The pool of examples, and which of them a prompt gets.
//!
//! An example's score is the cosine of its request's n-grams (holes left out) with those of the
//! request (the names of live values left out), plus half of how well the live values that fill
//! its holes fit the request, plus how much the request speaks for its kind by all examples
//! together ([`votes`]). What asks because something is missing is scored by how badly the live
//! values fit. Equals rotate with the seed; an example of a kind that is already chosen steps back
//! a little, so that a prompt does not show one call three times where others are near.
//!
//! Learned examples come and go. Their age is counted in examples learned since, so that the same
//! runs give the same pool whatever the time is: the newer, the more an example gains, and one that
//! [`STALE_AFTER`] others have come after has left. What a person wrote stays.

use super::example::{Example, ExampleError, ExampleId, Source};
use super::fill::{Fill, Filled, Legal, Live, shuffle};
use super::ngram::{Grams, Weights};
use super::ridge::votes;
use crate::call::{FailureKind, Reply};

/// How much a fitting live value counts beside the wording.
const FIT_WEIGHT: f64 = 0.5;

/// What an example loses for each one of its kind that is already chosen.
const SAME_KIND: f64 = 0.12;

/// What an example gains that corrected the kind of failure at hand, that calls the tool that
/// failed, and that was learned rather than written.
const SAME_FAILURE: f64 = 0.1;
const SAME_TOOL: f64 = 0.4;
const LEARNED: f64 = 0.05; // the newest; the older, the less

/// What an example of several calls gains where the request names several things.
const SEVERAL: f64 = 0.3;

/// Scores that differ by less are equal.
const STEP: f64 = 1.0 / 256.0;

/// An example below this says nothing about the request.
const LEAST: f64 = 0.02;

/// Most learned examples of one tool; the oldest leaves.
pub const LEARNED_PER_TOOL: usize = 24;

/// A learned example leaves when so many others were learned since it was: the tools, or what is
/// asked for, are others by now.
pub const STALE_AFTER: u64 = 240;

/// What a prompt needs examples for.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// The request.
    pub request: &'a str,
    /// What is legal now.
    pub moves: &'a Legal<'a>,
    /// Most examples.
    pub most: usize,
    /// Most examples among them that ask or answer.
    pub most_talk: usize,
    /// Most calls of one example (as many as a turn may have). Above 1 the request names several
    /// things, and examples of several calls come first.
    pub most_calls: usize,
    /// Whether the model may ask now.
    pub may_ask: bool,
    /// Whether calls may be shown with values that do not exist now.
    pub literal: bool,
    /// Which live values fill holes.
    pub fill: Fill,
    /// Decides among equals.
    pub seed: u64,
    /// Not these: they were shown, and it failed all the same.
    pub exclude: &'a [ExampleId],
    /// The failure to be corrected, with its tool.
    pub failure: Option<(FailureKind, Option<&'a str>)>,
}

impl<'a> Query<'a> {
    /// Three examples, at most one of them without a call, one call a turn.
    pub fn new(request: &'a str, moves: &'a Legal<'a>) -> Self {
        Self {
            request,
            moves,
            most: 3,
            most_talk: 1,
            most_calls: 1,
            may_ask: true,
            literal: true,
            fill: Fill::Nearest,
            seed: 0,
            exclude: &[],
            failure: None,
        }
    }
}

/// An example as a prompt shows it: no holes.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Which it is.
    pub id: ExampleId,
    /// What was asked.
    pub request: String,
    /// What was right.
    pub reply: Reply,
    /// How well it fits; comparable within one selection.
    pub score: f64,
}

#[derive(Clone, Debug)]
struct Kept {
    id: ExampleId,
    /// Of the request without its holes.
    grams: Grams,
    /// The tools that it calls, or `ask`, or `answer`.
    kind: String,
    example: Example,
    /// How many had been learned when this one came.
    at: u64,
}

/// An example that can be shown now.
struct Ranked<'p> {
    kept: &'p Kept,
    shown: Shown,
    /// Decides among equals.
    rank: u64,
}

/// Adds to each score what the request speaks for the example's kind, by all of them together.
fn vote(ranked: &mut [Ranked<'_>], request: &str) {
    let mut kinds: Vec<&str> = Vec::new();
    let mut examples = Vec::with_capacity(ranked.len());
    for Ranked { kept, shown, .. } in &*ranked {
        let known = kinds.iter().position(|kind| *kind == kept.kind);
        let kind = known.unwrap_or_else(|| {
            kinds.push(&kept.kind);
            kinds.len() - 1
        });
        examples.push((Grams::with_words(&shown.request), kind));
    }
    let votes = votes(&examples, kinds.len(), &Grams::with_words(request));
    for (ranked, (_, kind)) in ranked.iter_mut().zip(&examples) {
        ranked.shown.score += votes[*kind];
    }
}

/// The pool.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    kept: Vec<Kept>,
    weights: Weights,
    /// How many were learned so far, those that left included.
    learned: u64,
}

impl Pool {
    /// With these examples.
    pub fn new(examples: impl IntoIterator<Item = Example>) -> Self {
        let mut pool = Self::default();
        for example in examples {
            pool.add(example);
        }
        pool
    }

    /// The examples that ship.
    ///
    /// # Errors
    /// None while the tests pass: they read every line.
    pub fn seeds() -> Result<Self, ExampleError> {
        let mut pool = Self::default();
        for (_, text) in SEEDS {
            for example in Example::parse_all(text)? {
                pool.add(example);
            }
        }
        Ok(pool)
    }

    /// The examples that ship of a step of a task: what is known and what is to be done next,
    /// and the call that takes its values from there. Their tools exist nowhere: it is the form
    /// that they show.
    ///
    /// # Errors
    /// None while the tests pass: they read every line.
    pub fn steps() -> Result<Self, ExampleError> {
        Ok(Self::new(Example::parse_all(STEPS)?))
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// All examples, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&ExampleId, &Example)> {
        self.kept.iter().map(|kept| (&kept.id, &kept.example))
    }

    /// Adds an example. One that is there already becomes the newest, except that what a person
    /// wrote is not replaced by the same thing learned. The oldest learned one leaves when there
    /// are more than [`LEARNED_PER_TOOL`] of its kind, or more than [`STALE_AFTER`] came after it.
    /// Returns whether it was taken.
    pub fn add(&mut self, example: Example) -> bool {
        let kind = example.kind();
        let id = example.id();
        let learned = example.source == Source::Learned;
        let is_written = |kept: &Kept| kept.id == id && kept.example.source != Source::Learned;
        if learned && self.kept.iter().any(is_written) {
            return false;
        }
        self.forget(&id);
        if learned {
            self.learned += 1;
            self.drop_old(&kind);
        }
        let grams = Grams::of(&without_holes(&example.request));
        self.weights.add(&grams);
        self.kept.push(Kept {
            id,
            grams,
            kind,
            example,
            at: self.learned,
        });
        true
    }

    /// Makes room for a learned example of this kind.
    fn drop_old(&mut self, kind: &str) {
        let learned = |kept: &&Kept| kept.example.source == Source::Learned;
        let of_kind = |kept: &&Kept| learned(kept) && kept.kind == kind;
        let mut old: Vec<ExampleId> = self
            .kept
            .iter()
            .filter(learned)
            .filter(|kept| self.learned - kept.at > STALE_AFTER)
            .map(|kept| kept.id.clone())
            .collect();
        let surplus =
            (self.kept.iter().filter(of_kind).count() + 1).saturating_sub(LEARNED_PER_TOOL);
        let oldest = self.kept.iter().filter(of_kind).take(surplus);
        old.extend(oldest.map(|kept| kept.id.clone()));
        for id in old {
            self.forget(&id);
        }
    }

    /// Takes an example out. Returns whether it was there.
    pub fn forget(&mut self, id: &ExampleId) -> bool {
        let before = self.kept.len();
        self.kept.retain(|kept| kept.id != *id);
        if self.kept.len() < before {
            self.weights = Weights::of(self.kept.iter().map(|kept| &kept.grams));
        }
        self.kept.len() < before
    }

    /// The examples for a prompt, best first.
    pub fn select(&self, query: &Query<'_>) -> Vec<Shown> {
        let request = Grams::of(query.request);
        let live = Live::new(query.moves, &request);
        let mut ranked: Vec<Ranked<'_>> = self
            .kept
            .iter()
            .filter_map(|kept| {
                Some(Ranked {
                    shown: self.show(kept, query, &request, &live)?,
                    rank: shuffle(query.seed, &kept.id.to_string()),
                    kept,
                })
            })
            .collect();
        vote(&mut ranked, query.request);
        let mut chosen: Vec<Shown> = Vec::new();
        let mut kinds: Vec<&str> = Vec::new();
        while chosen.len() < query.most {
            let talk = kinds.iter().filter(|kind| is_talk(kind)).count();
            let worth = |ranked: &Ranked<'_>| {
                let same = kinds.iter().filter(|kind| **kind == ranked.kept.kind);
                let same = same.count();
                #[expect(clippy::cast_precision_loss, reason = "a few examples")]
                let loss = SAME_KIND * same as f64;
                // Equal within a step, so that equals rotate.
                ((ranked.shown.score - loss) / STEP).round()
            };
            let best = ranked
                .iter()
                .enumerate()
                .filter(|(_, one)| talk < query.most_talk || !is_talk(&one.kept.kind))
                .max_by(|(_, a), (_, b)| worth(a).total_cmp(&worth(b)).then(b.rank.cmp(&a.rank)));
            let Some((at, _)) = best else { break };
            let Ranked { kept, shown, .. } = ranked.swap_remove(at);
            if chosen.iter().all(|other| other.request != shown.request) {
                kinds.push(&kept.kind);
                chosen.push(shown);
            }
        }
        chosen
    }

    /// Examples for a prompt whatever is asked: of what can be shown now, the same ones for a
    /// seed, each of another kind. What retrieval is measured against.
    pub fn fixed(&self, query: &Query<'_>) -> Vec<Shown> {
        let nothing = Grams::of("");
        let live = Live::new(query.moves, &nothing);
        let query = Query {
            fill: Fill::Any,
            ..query.clone()
        };
        let language = self.kept.first().map(|kept| kept.example.lang.as_str());
        let mut order: Vec<&Kept> = self.kept.iter().collect();
        order.retain(|kept| Some(kept.example.lang.as_str()) == language);
        order.sort_by_key(|kept| shuffle(query.seed, &kept.id.to_string()));
        let mut kinds: Vec<&str> = Vec::new();
        let mut chosen = Vec::new();
        for kept in order {
            let talk = kinds.iter().filter(|kind| is_talk(kind)).count();
            if chosen.len() >= query.most
                || kinds.contains(&kept.kind.as_str())
                || (is_talk(&kept.kind) && talk >= query.most_talk)
            {
                continue;
            }
            if let Some(filled) = possible(kept, &query, &live) {
                kinds.push(&kept.kind);
                chosen.push(filled.shown(kept, 0.0));
            }
        }
        chosen
    }

    /// Examples of a form: their tools need not exist, and nothing in them is filled. Those whose
    /// wording is nearest to the request come first, or, where it is not asked for, any.
    pub fn forms(&self, query: &Query<'_>, nearest: bool) -> Vec<Shown> {
        let request = Grams::of(query.request);
        let mut ranked: Vec<(f64, u64, &Kept)> = self
            .kept
            .iter()
            .filter(|kept| !query.exclude.contains(&kept.id))
            .map(|kept| {
                let near = self.weights.cosine(&kept.grams, &request, &[]);
                let near = if nearest { (near / STEP).round() } else { 0.0 };
                (near, shuffle(query.seed, &kept.id.to_string()), kept)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked
            .into_iter()
            .take(query.most)
            .map(|(near, _, kept)| Shown {
                id: kept.id.clone(),
                request: kept.example.request.clone(),
                reply: kept.example.reply.clone(),
                score: near,
            })
            .collect()
    }

    fn show(
        &self,
        kept: &Kept,
        query: &Query<'_>,
        request: &Grams,
        live: &Live<'_>,
    ) -> Option<Shown> {
        let example = &kept.example;
        let calls = example.calls();
        let filled = possible(kept, query, live)?;
        let wording = self.weights.cosine(&kept.grams, request, &filled.named);
        let mut score = wording + FIT_WEIGHT * filled.fit;
        // What names nothing of the request must at least be worded alike.
        if score < LEAST || (wording < LEAST && filled.named.is_empty()) {
            return None;
        }
        if example.source == Source::Learned {
            #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
            let age = (self.learned - kept.at) as f64 / STALE_AFTER as f64;
            score += LEARNED * (1.0 - age).max(0.0);
        }
        if query.most_calls > 1 && calls.len() > 1 {
            score += SEVERAL;
        }
        if let Some((failure, tool)) = query.failure {
            if example.failure == Some(failure) {
                score += SAME_FAILURE;
            }
            if tool.is_some_and(|tool| calls.iter().any(|call| call.tool == tool)) {
                score += SAME_TOOL;
            }
        }
        Some(filled.shown(kept, score))
    }
}

impl Filled {
    fn shown(self, kept: &Kept, score: f64) -> Shown {
        Shown {
            id: kept.id.clone(),
            request: self.request,
            reply: self.reply,
            score,
        }
    }
}

/// An example with its holes filled, where it can be shown now.
fn possible(kept: &Kept, query: &Query<'_>, live: &Live<'_>) -> Option<Filled> {
    let example = &kept.example;
    let calls = example.calls();
    if calls.len() > query.most_calls
        || calls.iter().any(|call| !live.legal(&call.tool))
        || query.exclude.contains(&kept.id)
        || (!query.may_ask && matches!(example.reply, Reply::Ask(_)))
    {
        return None;
    }
    let filled = live.fill(example, query.fill, query.seed)?;
    // What was learned was right when its values existed; seeds show a form.
    let literal = query.literal && example.source != Source::Learned;
    if let (false, Reply::Calls(calls)) = (literal, &filled.reply)
        && !calls.iter().all(|call| live.possible(call))
    {
        return None;
    }
    Some(filled)
}

/// The files that ship.
pub(super) const SEEDS: [(&str, &str); 4] = [
    ("home.en.jsonl", include_str!("../../fewshot/home.en.jsonl")),
    ("home.ru.jsonl", include_str!("../../fewshot/home.ru.jsonl")),
    ("home.zh.jsonl", include_str!("../../fewshot/home.zh.jsonl")),
    (
        "assistant.jsonl",
        include_str!("../../fewshot/assistant.jsonl"),
    ),
];

/// The file of steps that ships.
const STEPS: &str = include_str!("../../fewshot/steps.jsonl");

fn is_talk(kind: &str) -> bool {
    matches!(kind, "ask" | "answer")
}

/// The text with each hole a blank.
fn without_holes(text: &str) -> String {
    let mut plain = text.to_owned();
    for hole in super::example::holes_of(text) {
        plain = plain.replace(&format!("{{{hole}}}"), " ");
    }
    plain
}
