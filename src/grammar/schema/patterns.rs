//! The patterns of a schema, each read once.

use rustc_hash::FxHashMap;

use super::shape::PatternId;
use super::text::automaton::Automaton;
use super::text::ecma::{self, PatternError};
use super::text::re::Re;

/// A pattern as its parts: found is what all of them say.
#[derive(Debug)]
pub struct Pattern {
    /// The main part, without look-ahead.
    pub re: Re,
    /// Whether [`re`](Self::re) must match the whole text instead of being found in it.
    pub whole: bool,
    /// What a rule for it may be called.
    pub name: Option<String>,
    automaton: Option<Option<Automaton>>,
}

impl Pattern {
    /// The texts that match, as an expression without assertions.
    pub fn anchored(&self) -> Option<Re> {
        if self.whole && !self.re.has_assertion() {
            Some(self.re.clone())
        } else {
            self.re.anchored()
        }
    }
}

/// All patterns met so far.
#[derive(Debug)]
pub struct Patterns {
    all: Vec<Pattern>,
    by_source: FxHashMap<String, Result<Vec<(PatternId, bool)>, PatternError>>,
    limit: usize,
}

impl Patterns {
    /// None yet; automata are held to `limit` states.
    pub fn new(limit: usize) -> Self {
        Self {
            all: Vec::new(),
            by_source: FxHashMap::default(),
            limit,
        }
    }

    /// The constraints that `pattern` puts on a text: each must be found, or must not.
    pub fn parse(&mut self, pattern: &str) -> Result<Vec<(PatternId, bool)>, PatternError> {
        if let Some(known) = self.by_source.get(pattern) {
            return known.clone();
        }
        let parts = ecma::parse(pattern).and_then(|re| {
            without_look(re)
                .ok_or_else(|| PatternError::Unsupported("look-ahead at this place".to_owned()))
        });
        let result = parts.map(|parts| {
            parts
                .into_iter()
                .map(|(re, positive)| (self.add(re, false), positive))
                .collect()
        });
        self.by_source.insert(pattern.to_owned(), result.clone());
        result
    }

    /// A pattern of our own that whole texts match, under a name.
    pub fn named(&mut self, name: &str, re: impl FnOnce() -> Re) -> PatternId {
        let key = format!("\0{name}");
        if let Some(Ok(known)) = self.by_source.get(&key)
            && let [(id, _)] = known.as_slice()
        {
            return *id;
        }
        let id = self.add(re(), true);
        self.all[id.0 as usize].name = Some(name.to_owned());
        self.by_source.insert(key, Ok(vec![(id, true)]));
        id
    }

    fn add(&mut self, re: Re, whole: bool) -> PatternId {
        self.all.push(Pattern {
            re,
            whole,
            name: None,
            automaton: None,
        });
        PatternId(self.all.len() as u32 - 1)
    }

    /// The pattern `id`.
    pub fn get(&self, id: PatternId) -> &Pattern {
        &self.all[id.0 as usize]
    }

    /// Its automaton, unless that grows too large.
    pub fn automaton(&mut self, id: PatternId) -> Option<&Automaton> {
        let limit = self.limit;
        let pattern = &mut self.all[id.0 as usize];
        pattern
            .automaton
            .get_or_insert_with(|| Automaton::new(&pattern.re, pattern.whole, limit))
            .as_ref()
    }

    /// Whether `text` matches, if the automaton can tell.
    pub fn matches(&mut self, id: PatternId, text: &str) -> Option<bool> {
        Some(self.automaton(id)?.accepts(text))
    }
}

/// `re` as a conjunction without look-ahead, where the look-aheads stand at the start of the
/// text: `^(?!a)(?=b)c` is found where `^c` and `^b` are and `^a` is not.
fn without_look(re: Re) -> Option<Vec<(Re, bool)>> {
    if !re.has_look() {
        return Some(vec![(re, true)]);
    }
    if let Some(simple) = tempered(&re) {
        return Some(simple);
    }
    let parts = match re {
        Re::Concat(parts) => parts,
        // A look-ahead alone: somewhere in the text. Positive, it is a search.
        Re::Look {
            re,
            negative: false,
        } => return without_look(*re),
        // One group around everything.
        _ => return None,
    };
    let mut out = Vec::new();
    let mut rest = Vec::new();
    let mut at_start = false;
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Re::Start if rest.is_empty() => {
                at_start = true;
            }
            Re::Look { re, negative } if rest.is_empty() && at_start => {
                let inner = Re::concat([Re::Start, *re]);
                if inner.has_look() {
                    let nested = without_look(inner)?;
                    // The complement of a conjunction is none.
                    if negative && nested.len() > 1 {
                        return None;
                    }
                    out.extend(
                        nested
                            .into_iter()
                            .map(|(re, positive)| (re, positive != negative)),
                    );
                } else {
                    out.push((inner, !negative));
                }
            }
            // At the end of the pattern a positive look-ahead is as good as its content.
            Re::Look {
                re,
                negative: false,
            } if parts.peek().is_none() => rest.push(*re),
            other => rest.push(other),
        }
    }
    let mut main = Re::concat(rest);
    if at_start {
        main = Re::concat([Re::Start, main]);
    }
    if main.has_look() {
        out.extend(tempered(&main)?);
    } else {
        out.push((main, true));
    }
    Some(out)
}

/// `^((?!x).)*$`: texts in which `x` is not found (and only characters that `.` admits).
fn tempered(re: &Re) -> Option<Vec<(Re, bool)>> {
    let Re::Concat(parts) = re else { return None };
    let [
        Re::Start,
        Re::Repeat {
            re: inner,
            min,
            max: None,
        },
        Re::End,
    ] = parts.as_slice()
    else {
        return None;
    };
    let Re::Concat(inner) = inner.as_ref() else {
        return None;
    };
    let [
        Re::Look {
            re: look,
            negative: true,
        },
        Re::Class(class),
    ] = inner.as_slice()
    else {
        return None;
    };
    if look.has_look() || contains_start(look) || look.width().0 == 0 {
        return None;
    }
    Some(vec![
        (
            Re::concat([
                Re::Start,
                Re::Repeat {
                    re: Box::new(Re::Class(class.clone())),
                    min: *min,
                    max: None,
                },
                Re::End,
            ]),
            true,
        ),
        ((**look).clone(), false),
    ])
}

fn contains_start(re: &Re) -> bool {
    match re {
        Re::Start => true,
        Re::Concat(parts) | Re::Alt(parts) => parts.iter().any(contains_start),
        Re::Repeat { re, .. } => contains_start(re),
        _ => false,
    }
}
