//! Filling the holes of an example with values that exist right now.

use super::example::{Example, holes_of};
use super::ngram::{Grams, Weights};
use crate::call::{Call, Domains, Reply};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

/// The tools that are legal this turn, each with its arguments' live values.
pub type Legal<'a> = [(&'a str, &'a Domains)];

/// Which of the live values fills a hole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// The one that the request most likely names: the example may be the very thing asked for.
    #[default]
    Nearest,
    /// The next after that: the example shows the form and leaves the value to the model.
    Other,
    /// Any, by the seed alone.
    Any,
}

/// The live values against one request.
pub(super) struct Live<'a> {
    moves: &'a Legal<'a>,
    request: &'a Grams,
    /// By text: how much of the value's name the request contains, and its n-grams.
    fits: BTreeMap<String, (f64, Grams)>,
    weights: Weights,
    /// How well the best value fits.
    best: f64,
}

/// An example with its holes filled.
pub(super) struct Filled {
    pub request: String,
    pub reply: Reply,
    /// How well the values fit the request, 0 to 1.
    pub fit: f64,
    /// N-grams of the names that the request may hold.
    pub named: Vec<Grams>,
}

impl<'a> Live<'a> {
    pub(super) fn new(moves: &'a Legal<'a>, request: &'a Grams) -> Self {
        let values = moves
            .iter()
            .flat_map(|(_, domains)| domains.values().flatten());
        let texts: BTreeSet<String> = values.map(text_of).collect();
        let grams: Vec<(String, Grams)> = texts
            .into_iter()
            .map(|text| {
                let grams = Grams::of(&text);
                (text, grams)
            })
            .collect();
        let weights = Weights::of(grams.iter().map(|(_, grams)| grams));
        let fits: BTreeMap<_, _> = grams
            .into_iter()
            .map(|(text, grams)| (text, (weights.containment(&grams, request), grams)))
            .collect();
        let best = fits.values().map(|(fit, _)| *fit).fold(0.0, f64::max);
        Self {
            moves,
            request,
            fits,
            weights,
            best,
        }
    }

    /// Whether a tool is legal.
    pub(super) fn legal(&self, tool: &str) -> bool {
        self.moves.iter().any(|(name, _)| *name == tool)
    }

    /// The live values of an argument; `None` where they are not known.
    fn domain(&self, tool: &str, argument: &str) -> Option<&'a [Value]> {
        let (_, domains) = self.moves.iter().find(|(name, _)| *name == tool)?;
        domains.get(argument).map(Vec::as_slice)
    }

    /// Whether every argument of a call whose live values are known has one of them.
    pub(super) fn possible(&self, call: &Call) -> bool {
        call.arguments.iter().all(|(name, value)| {
            self.domain(&call.tool, name)
                .is_none_or(|values| values.contains(value))
        })
    }

    /// How well an example fits that names nothing which exists: the better, the less the request
    /// does, but never as well as one that names what the request names.
    fn nameless(&self) -> f64 {
        0.4 * (1.0 - self.best)
    }

    fn fit(&self, text: &str) -> f64 {
        self.fits.get(text).map_or(0.0, |(fit, _)| *fit)
    }

    /// The example with its holes filled; `None` where something that it needs does not exist.
    pub(super) fn fill(&self, example: &Example, fill: Fill, seed: u64) -> Option<Filled> {
        let mut values: BTreeMap<String, Value> = BTreeMap::new();
        let mut named = Vec::new();
        let mut fits = Vec::new();
        let holes = example.holes_named();
        for hole in &holes {
            let about = example.holes.get(hole);
            if about.is_some_and(|about| about.beside.is_some()) {
                continue;
            }
            if let Some(about) = about.filter(|about| !about.missing.is_empty()) {
                let name = self.missing(&about.missing, seed)?;
                let grams = Grams::of(&name);
                let near = self.weights.containment(&grams, self.request);
                // The request names what does not exist, or nothing that does.
                if near > self.best {
                    fits.push(near);
                    named.push(grams);
                } else {
                    fits.push(self.nameless());
                }
                values.insert(hole.clone(), name.into());
                continue;
            }
            let candidates = self.candidates(example, hole, &values)?;
            let best = self.choose(&candidates, Fill::Nearest, seed)?;
            if let Some((fit, grams)) = self.fits.get(&text_of(best)) {
                fits.push(*fit);
                named.push(grams.clone());
            }
            values.insert(hole.clone(), self.choose(&candidates, fill, seed)?.clone());
        }
        for hole in &holes {
            let about = example.holes.get(hole);
            let Some(other) = about.and_then(|about| about.beside.as_ref()) else {
                continue;
            };
            let like = &example.holes.get(other)?.like;
            let rest = beside(&text_of(values.get(other)?), like)?;
            values.insert(hole.clone(), rest.into());
        }
        if holes.is_empty() {
            // A literal example may name what exists all the same.
            let arguments = example
                .calls()
                .iter()
                .flat_map(|call| call.arguments.values());
            for (fit, grams) in arguments.filter_map(|value| self.fits.get(&text_of(value))) {
                fits.push(*fit);
                named.push(grams.clone());
            }
        }
        let fit = match fits.len() {
            0 => self.nameless(),
            #[expect(clippy::cast_precision_loss, reason = "a few holes")]
            count => fits.iter().sum::<f64>() / count as f64,
        };
        Some(Filled {
            request: fill_text(&example.request, &values),
            reply: fill_reply(&example.reply, &values),
            fit,
            named,
        })
    }

    /// What may fill a hole, values already used aside.
    fn candidates(
        &self,
        example: &'a Example,
        hole: &str,
        used: &BTreeMap<String, Value>,
    ) -> Option<Vec<&'a Value>> {
        let about = example.holes.get(hole);
        let plain = hole.trim_end_matches(|c: char| c.is_ascii_digit());
        let (tool, argument) = match about.and_then(|about| about.from.as_deref()) {
            Some(tool) => (tool, plain),
            None => example.argument_of(hole).unwrap_or(("", plain)),
        };
        let all: &'a [Value] = match (self.domain(tool, argument), about) {
            (Some(values), _) => values,
            (None, Some(about)) if !about.any.is_empty() => &about.any,
            (None, _) => return None,
        };
        let not = about
            .and_then(|about| about.not.as_deref())
            .and_then(|tool| self.domain(tool, argument))
            .unwrap_or(&[]);
        let like = about.map_or(&[][..], |about| &about.like);
        let needs_rest = example
            .holes
            .values()
            .any(|other| other.beside.as_deref() == Some(hole));
        let fits = |value: &&Value| {
            let text = text_of(value).to_lowercase();
            !not.contains(value)
                && !used.values().any(|other| other == *value)
                && (like.is_empty() || like.iter().any(|word| text.contains(word.as_str())))
                && (!needs_rest || beside(&text, like).is_some())
        };
        Some(all.iter().filter(fits).collect())
    }

    fn choose<'v>(&self, candidates: &[&'v Value], fill: Fill, seed: u64) -> Option<&'v Value> {
        let mut ranked: Vec<(f64, u64, &Value)> = candidates
            .iter()
            .map(|value| {
                let text = text_of(value);
                let fit = if fill == Fill::Any {
                    0.0
                } else {
                    self.fit(&text)
                };
                (fit, shuffle(seed, &text), *value)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let at = usize::from(fill == Fill::Other && ranked.len() > 1);
        ranked.get(at).map(|(_, _, value)| *value)
    }

    /// The name that the request comes nearest to, among those that do not exist.
    fn missing(&self, names: &[String], seed: u64) -> Option<String> {
        let exists = |name: &str| {
            let name = name.to_lowercase();
            self.fits.keys().any(|text| text.to_lowercase() == name)
        };
        names
            .iter()
            .filter(|name| !exists(name))
            .max_by(|a, b| {
                let near = |name: &str| self.weights.containment(&Grams::of(name), self.request);
                near(a)
                    .total_cmp(&near(b))
                    .then(shuffle(seed, b).cmp(&shuffle(seed, a)))
            })
            .cloned()
    }
}

/// What is left of a name beside one of the words at its beginning or end: of "kitchen light" and
/// "light", "kitchen". `None` where nothing is left.
fn beside(text: &str, words: &[String]) -> Option<String> {
    words.iter().find_map(|word| {
        let rest = text
            .strip_suffix(word.as_str())
            .or_else(|| text.strip_prefix(word.as_str()))?
            .trim();
        (!rest.is_empty()).then(|| rest.to_owned())
    })
}

fn fill_reply(reply: &Reply, values: &BTreeMap<String, Value>) -> Reply {
    match reply {
        Reply::Ask(text) => Reply::Ask(fill_text(text, values)),
        Reply::Answer(text) => Reply::Answer(fill_text(text, values)),
        Reply::Calls(calls) => {
            let mut calls = calls.clone();
            for value in calls
                .iter_mut()
                .flat_map(|call| call.arguments.values_mut())
            {
                let Value::String(text) = value else { continue };
                let whole = text
                    .strip_prefix('{')
                    .and_then(|rest| rest.strip_suffix('}'));
                *value = match whole.and_then(|hole| values.get(hole)) {
                    Some(filled) => filled.clone(),
                    None => fill_text(text, values).into(),
                };
            }
            Reply::Calls(calls)
        }
    }
}

fn fill_text(text: &str, values: &BTreeMap<String, Value>) -> String {
    let mut filled = text.to_owned();
    for hole in holes_of(text) {
        if let Some(value) = values.get(hole) {
            filled = filled.replace(&format!("{{{hole}}}"), &text_of(value));
        }
    }
    filled
}

/// A value as people write it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A number by which equals are ordered: the same for a seed, another for another.
pub(super) fn shuffle(seed: u64, text: &str) -> u64 {
    let mut hasher = siphasher::sip::SipHasher13::new_with_keys(seed, 0x736e_6166);
    hasher.write(text.as_bytes());
    hasher.finish()
}
