//! Regular expressions over code points, as a tree.

use crate::grammar::ast::CharClass;

/// A regular expression. Searching semantics and anchors are resolved by the automaton, or by
/// [`Re::anchored`] where that is possible without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Re {
    /// The empty string.
    Empty,
    /// One code point of a class; of an empty class, nothing.
    Class(CharClass),
    /// One after the other.
    Concat(Vec<Re>),
    /// One of them.
    Alt(Vec<Re>),
    /// Repetition.
    Repeat {
        /// What is repeated.
        re: Box<Re>,
        /// At least.
        min: u32,
        /// At most; `None` is without bound.
        max: Option<u32>,
    },
    /// Holds at the start of the text.
    Start,
    /// Holds at the end of the text.
    End,
    /// Holds at a word boundary, or with `true` only elsewhere.
    Boundary(bool),
    /// Looks ahead without consuming; with `negative`, must not match.
    Look {
        /// What must or must not follow.
        re: Box<Re>,
        /// Must not.
        negative: bool,
    },
}

impl Re {
    /// Nothing matches it.
    pub fn never() -> Self {
        Self::Alt(Vec::new())
    }

    /// Any text at all.
    pub fn all() -> Self {
        Self::star(Self::Class(CharClass::any()))
    }

    /// Zero or more.
    pub fn star(re: Re) -> Self {
        Self::Repeat {
            re: Box::new(re),
            min: 0,
            max: None,
        }
    }

    /// `min` to `max` times.
    pub fn repeat(re: Re, min: u32, max: Option<u32>) -> Self {
        match (min, max) {
            (1, Some(1)) => re,
            (_, Some(0)) => Self::Empty,
            _ => Self::Repeat {
                re: Box::new(re),
                min,
                max,
            },
        }
    }

    /// `re` or nothing.
    pub fn optional(re: Re) -> Self {
        Self::repeat(re, 0, Some(1))
    }

    /// A sequence, flattened.
    pub fn concat(parts: impl IntoIterator<Item = Re>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Empty => {}
                Self::Concat(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Self::Empty,
            1 => flat.swap_remove(0),
            _ => Self::Concat(flat),
        }
    }

    /// An alternation, flattened.
    pub fn alt(alternatives: impl IntoIterator<Item = Re>) -> Self {
        let mut flat = Vec::new();
        for alternative in alternatives {
            match alternative {
                Self::Alt(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() == 1 {
            flat.swap_remove(0)
        } else {
            Self::Alt(flat)
        }
    }

    /// One code point.
    pub fn char(c: char) -> Self {
        Self::Class(CharClass::from_ranges([(c, c)]))
    }

    /// One code point of these inclusive ranges.
    pub fn ranges(ranges: &[(char, char)]) -> Self {
        Self::Class(CharClass::from_ranges(ranges.iter().copied()))
    }

    /// Whether the tree holds an anchor, a boundary or a look-ahead.
    pub fn has_assertion(&self) -> bool {
        match self {
            Self::Empty | Self::Class(_) => false,
            Self::Start | Self::End | Self::Boundary(_) | Self::Look { .. } => true,
            Self::Concat(parts) | Self::Alt(parts) => parts.iter().any(Self::has_assertion),
            Self::Repeat { re, .. } => re.has_assertion(),
        }
    }

    /// Whether the tree holds a look-ahead.
    pub fn has_look(&self) -> bool {
        match self {
            Self::Look { .. } => true,
            Self::Empty | Self::Class(_) | Self::Start | Self::End | Self::Boundary(_) => false,
            Self::Concat(parts) | Self::Alt(parts) => parts.iter().any(Self::has_look),
            Self::Repeat { re, .. } => re.has_look(),
        }
    }

    /// The whole texts in which this expression is found, without assertions: `^a$` is `a`, and
    /// `b` is `.*b.*`. `None` where anchors stand so that only an automaton can tell.
    pub fn anchored(&self) -> Option<Re> {
        let (at_start, elsewhere) = split_start(self)?;
        let mut all = Vec::new();
        for (re, free) in [(at_start, false), (elsewhere, true)] {
            let Some(re) = re else { continue };
            let (at_end, open) = split_end(&re)?;
            for (re, open) in [(at_end, false), (open, true)] {
                let Some(re) = re else { continue };
                if re.has_assertion() {
                    return None;
                }
                let mut parts = Vec::new();
                if free {
                    parts.push(Self::all());
                }
                parts.push(re);
                if open {
                    parts.push(Self::all());
                }
                all.push(simplify(parts));
            }
        }
        Some(Self::alt(all))
    }

    /// Fewest and most code points; `None` is without bound. Meaningless with assertions.
    pub fn width(&self) -> (u64, Option<u64>) {
        match self {
            Self::Class(_) => (1, Some(1)),
            Self::Concat(parts) => parts.iter().fold((0, Some(0)), |(low, high), part| {
                let (l, h) = part.width();
                (
                    low.saturating_add(l),
                    high.zip(h).map(|(a, b)| a.saturating_add(b)),
                )
            }),
            Self::Alt(parts) => {
                let mut low = u64::MAX;
                let mut high = Some(0);
                for part in parts {
                    let (l, h) = part.width();
                    low = low.min(l);
                    high = high.zip(h).map(|(a, b): (u64, u64)| a.max(b));
                }
                (if parts.is_empty() { 0 } else { low }, high)
            }
            Self::Repeat { re, min, max } => {
                let (l, h) = re.width();
                let high = match (h, max) {
                    (Some(0), _) => Some(0),
                    (Some(h), Some(max)) => Some(h.saturating_mul(u64::from(*max))),
                    _ => None,
                };
                (l.saturating_mul(u64::from(*min)), high)
            }
            Self::Empty | Self::Start | Self::End | Self::Boundary(_) | Self::Look { .. } => {
                (0, Some(0))
            }
        }
    }

    /// This expression with its texts held to `min..=max` code points, where a single repetition
    /// of single code points can carry the bounds; `None` where it takes an automaton.
    pub fn with_width(&self, min: u64, max: Option<u64>) -> Option<Re> {
        let (low, high) = self.width();
        if low >= min && max.is_none_or(|max| high.is_some_and(|high| high <= max)) {
            return Some(self.clone());
        }
        if max.is_some_and(|max| low > max) || high.is_some_and(|high| high < min) {
            return Some(Self::never());
        }
        match self {
            Self::Alt(parts) => Some(Self::alt(
                parts
                    .iter()
                    .map(|part| part.with_width(min, max))
                    .collect::<Option<Vec<_>>>()?,
            )),
            Self::Concat(parts) => {
                let mut variable = None;
                let mut fixed = 0u64;
                for (index, part) in parts.iter().enumerate() {
                    match part.width() {
                        (l, Some(h)) if l == h => fixed += l,
                        _ if variable.is_none() => variable = Some(index),
                        _ => return None,
                    }
                }
                let index = variable?;
                let bounded = parts.get(index)?.with_width(
                    min.saturating_sub(fixed),
                    max.map(|max| max.saturating_sub(fixed)),
                )?;
                let mut parts = parts.clone();
                parts[index] = bounded;
                Some(Self::concat(parts))
            }
            Self::Repeat {
                re,
                min: least,
                max: most,
            } => {
                let (l, h) = re.width();
                if h != Some(l) || l == 0 {
                    return None;
                }
                let least = u64::from(*least).max(min.div_ceil(l));
                let most = match (most.map(u64::from), max.map(|max| max / l)) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                if most.is_some_and(|most| most < least) {
                    return Some(Self::never());
                }
                Some(Self::repeat(
                    (**re).clone(),
                    u32::try_from(least).ok()?,
                    most.map(u32::try_from).transpose().ok()?,
                ))
            }
            _ => None,
        }
    }
}

/// Joins neighbouring repetitions of any code point, so that `.*` beside `.*` is one.
fn simplify(parts: Vec<Re>) -> Re {
    let all = Re::all();
    let mut flat: Vec<Re> = Vec::new();
    let joined = Re::concat(parts);
    let parts = match joined {
        Re::Concat(parts) => parts,
        other => vec![other],
    };
    for part in parts {
        // Beside a run of anything, an optional run of something adds nothing.
        let optional = matches!(&part, Re::Repeat { min: 0, .. });
        if flat.last() == Some(&all) && optional {
            continue;
        }
        if part == all {
            while matches!(flat.last(), Some(Re::Repeat { min: 0, .. })) {
                flat.pop();
            }
        }
        flat.push(part);
    }
    Re::concat(flat)
}

/// `re` as (what follows a leading `^`, what has none), either possibly absent.
fn split_start(re: &Re) -> Option<(Option<Re>, Option<Re>)> {
    match re {
        Re::Start => Some((Some(Re::Empty), None)),
        Re::Empty | Re::Class(_) | Re::End => Some((None, Some(re.clone()))),
        Re::Boundary(_) | Re::Look { .. } => None,
        Re::Alt(parts) => {
            let (mut with, mut without) = (Vec::new(), Vec::new());
            for part in parts {
                let (a, b) = split_start(part)?;
                with.extend(a);
                without.extend(b);
            }
            Some((
                (!with.is_empty()).then(|| Re::alt(with)),
                (!without.is_empty()).then(|| Re::alt(without)),
            ))
        }
        Re::Concat(parts) => {
            let (first, rest) = parts.split_first()?;
            let (with, without) = split_start(first)?;
            let rest = Re::concat(rest.iter().cloned());
            if with.is_some() && without.is_none() {
                // `^^a`: the second anchor holds as well.
                if with == Some(Re::Empty) {
                    let (a, b) = split_start(&rest)?;
                    return Some((Some(Re::alt(a.into_iter().chain(b))), None));
                }
            } else if contains_start(&rest) {
                return None;
            }
            let join = |head: Option<Re>| head.map(|head| Re::concat([head, rest.clone()]));
            Some((join(with), join(without)))
        }
        Re::Repeat { re: inner, .. } => {
            if contains_start(inner) {
                None
            } else {
                Some((None, Some(re.clone())))
            }
        }
    }
}

fn contains_start(re: &Re) -> bool {
    match re {
        Re::Start => true,
        Re::Concat(parts) | Re::Alt(parts) => parts.iter().any(contains_start),
        Re::Repeat { re, .. } => contains_start(re),
        _ => false,
    }
}

/// `re` as (what precedes a trailing `$`, what has none).
fn split_end(re: &Re) -> Option<(Option<Re>, Option<Re>)> {
    match re {
        Re::End => Some((Some(Re::Empty), None)),
        Re::Empty | Re::Class(_) | Re::Repeat { .. } => Some((None, Some(re.clone()))),
        Re::Start | Re::Boundary(_) | Re::Look { .. } => None,
        Re::Alt(parts) => {
            let (mut with, mut without) = (Vec::new(), Vec::new());
            for part in parts {
                let (a, b) = split_end(part)?;
                with.extend(a);
                without.extend(b);
            }
            Some((
                (!with.is_empty()).then(|| Re::alt(with)),
                (!without.is_empty()).then(|| Re::alt(without)),
            ))
        }
        Re::Concat(parts) => {
            let (last, rest) = parts.split_last()?;
            let (with, without) = split_end(last)?;
            let rest = Re::concat(rest.iter().cloned());
            if with == Some(Re::Empty) && without.is_none() {
                let (a, b) = split_end(&rest)?;
                return Some((Some(Re::alt(a.into_iter().chain(b))), None));
            }
            let join = |tail: Option<Re>| tail.map(|tail| Re::concat([rest.clone(), tail]));
            Some((join(with), join(without)))
        }
    }
}

/// Members of either class.
pub fn union(a: &CharClass, b: &CharClass) -> CharClass {
    CharClass::from_ranges(a.ranges().iter().chain(b.ranges()).copied())
}

/// Members of both classes.
pub fn intersection(a: &CharClass, b: &CharClass) -> CharClass {
    let (mut i, mut j) = (0, 0);
    let (x, y) = (a.ranges(), b.ranges());
    let mut out = Vec::new();
    while let (Some(&(a0, a1)), Some(&(b0, b1))) = (x.get(i), y.get(j)) {
        let (low, high) = (a0.max(b0), a1.min(b1));
        if low <= high {
            out.push((low, high));
        }
        if a1 < b1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    CharClass::from_ranges(out)
}
