//! The normal form of a schema: for every type of value, a list of alternatives, each a
//! conjunction of what constrains that type.

use std::rc::Rc;

use super::decimal::Decimal;

/// A schema, or several combined, by number (see [`Algebra`](super::algebra::Algebra)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

/// The schema of every value.
pub const ANY: TermId = TermId(0);
/// The schema of no value.
pub const NEVER: TermId = TermId(1);

/// A compiled pattern by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternId(pub u32);

/// A keyword at a place, by number, for the coverage report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

/// What values a schema admits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// `null` is admitted.
    pub null: bool,
    /// `false` and `true` are admitted.
    pub booleans: [bool; 2],
    /// Alternatives for numbers.
    pub numbers: Vec<NumberSet>,
    /// Alternatives for strings.
    pub strings: Vec<StringSet>,
    /// Alternatives for arrays.
    pub arrays: Vec<ArraySet>,
    /// Alternatives for objects.
    pub objects: Vec<ObjectSet>,
    /// `null` or a boolean is admitted only because something could not be expressed.
    pub loose: bool,
}

/// Numbers that satisfy all of this. A set is `loose` if it admits more than its schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberSet {
    /// Only integers, or only numbers that are none.
    pub integer: Option<bool>,
    /// Lower bound, and whether it belongs to the set.
    pub low: Option<(Decimal, bool)>,
    /// Upper bound, and whether it belongs to the set.
    pub high: Option<(Decimal, bool)>,
    /// Multiples of each of these only.
    pub multiples: Vec<Decimal>,
    /// Multiples of none of these.
    pub not_multiples: Vec<Decimal>,
    /// Only these, with their spelling.
    pub only: Option<Rc<[(Decimal, String)]>>,
    /// None of these.
    pub except: Vec<Decimal>,
    /// Admits more than the schema.
    pub loose: bool,
    /// Keywords to report if this is weakened.
    pub origins: Vec<SiteId>,
}

/// Strings that satisfy all of this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StringSet {
    /// Fewest code points.
    pub min: u64,
    /// Most code points.
    pub max: Option<u64>,
    /// Patterns, and whether each must be found or must not.
    pub patterns: Vec<(PatternId, bool)>,
    /// Only these.
    pub only: Option<Rc<[String]>>,
    /// None of these.
    pub except: Vec<String>,
    /// Admits more than the schema.
    pub loose: bool,
    /// Keywords to report if this is weakened.
    pub origins: Vec<SiteId>,
}

/// Arrays that satisfy all of this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArraySet {
    /// Schemas of the first items.
    pub prefix: Vec<TermId>,
    /// Schema of the others.
    pub rest: TermId,
    /// Fewest items.
    pub min: u64,
    /// Most items.
    pub max: Option<u64>,
    /// Schemas that some items must satisfy.
    pub contains: Vec<Contains>,
    /// All items differ.
    pub unique: bool,
    /// Admits more than the schema.
    pub loose: bool,
    /// Keywords to report if this is weakened.
    pub origins: Vec<SiteId>,
}

/// How many items must satisfy a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contains {
    /// The schema.
    pub term: TermId,
    /// At least so many.
    pub min: u64,
    /// At most so many.
    pub max: Option<u64>,
}

impl Default for ArraySet {
    fn default() -> Self {
        Self {
            prefix: Vec::new(),
            rest: ANY,
            min: 0,
            max: None,
            contains: Vec::new(),
            unique: false,
            loose: false,
            origins: Vec::new(),
        }
    }
}

impl ArraySet {
    /// The schema of item `index`.
    pub fn item(&self, index: usize) -> TermId {
        self.prefix.get(index).copied().unwrap_or(self.rest)
    }
}

/// Objects that satisfy all of this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectSet {
    /// Properties known by name, in order; their schemas say everything about them.
    pub properties: Vec<Property>,
    /// What holds for all other properties.
    pub groups: Vec<Group>,
    /// Schemas of the names of all properties.
    pub names: Vec<TermId>,
    /// Fewest properties.
    pub min: u64,
    /// Most properties.
    pub max: Option<u64>,
    /// Admits more than the schema.
    pub loose: bool,
    /// Keywords to report if this is weakened.
    pub origins: Vec<SiteId>,
}

/// A property known by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    /// Its name.
    pub name: Rc<str>,
    /// What its value satisfies.
    pub term: TermId,
    /// Whether it must be there.
    pub required: bool,
}

/// What properties not known by name satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Which of them.
    pub scope: Scope,
    /// What their values satisfy.
    pub term: TermId,
}

/// Which names a [`Group`] is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Those that match.
    Matching(PatternId),
    /// Those that match none of these.
    Others(Vec<PatternId>),
}

impl ObjectSet {
    /// The position of a property known by name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.properties
            .iter()
            .position(|property| &*property.name == name)
    }
}

impl Shape {
    /// Every value.
    pub fn any() -> Self {
        Self {
            null: true,
            booleans: [true, true],
            numbers: vec![NumberSet::default()],
            strings: vec![StringSet::default()],
            arrays: vec![ArraySet::default()],
            objects: vec![ObjectSet::default()],
            loose: false,
        }
    }

    /// Whether it obviously admits nothing.
    pub fn is_void(&self) -> bool {
        !self.null
            && self.booleans == [false, false]
            && self.numbers.is_empty()
            && self.strings.is_empty()
            && self.arrays.is_empty()
            && self.objects.is_empty()
    }

    /// Marks everything as admitting more than the schema.
    pub fn loosen(&mut self) {
        self.loose = true;
        self.numbers.iter_mut().for_each(|set| set.loose = true);
        self.strings.iter_mut().for_each(|set| set.loose = true);
        self.arrays.iter_mut().for_each(|set| set.loose = true);
        self.objects.iter_mut().for_each(|set| set.loose = true);
    }

    /// Whether it admits exactly what its schema does.
    pub fn is_exact(&self) -> bool {
        !self.looseness().contains(&true)
    }

    /// Whether, for some type of value, both admit more than their schemas: what this one is
    /// loose for may then come from the other.
    pub fn is_loose_like(&self, other: &Self) -> bool {
        let mut both = self.looseness().into_iter().zip(other.looseness());
        both.any(|(own, other)| own && other)
    }

    /// Whether it admits more than its schema: of `null` and booleans, and of each other type.
    fn looseness(&self) -> [bool; 5] {
        [
            self.loose && (self.null || self.booleans != [false, false]),
            self.numbers.iter().any(|set| set.loose),
            self.strings.iter().any(|set| set.loose),
            self.arrays.iter().any(|set| set.loose),
            self.objects.iter().any(|set| set.loose),
        ]
    }
}

impl NumberSet {
    /// Whether `value` satisfies all of this.
    pub fn admits(&self, value: &Decimal) -> bool {
        self.integer.is_none_or(|only| only == value.is_integer())
            && self
                .low
                .as_ref()
                .is_none_or(|(low, closed)| low < value || (*closed && low == value))
            && self
                .high
                .as_ref()
                .is_none_or(|(high, closed)| value < high || (*closed && high == value))
            && self
                .multiples
                .iter()
                .all(|of| value.is_multiple_of(of).unwrap_or(true))
            && !self
                .not_multiples
                .iter()
                .any(|of| value.is_multiple_of(of).unwrap_or(false))
            && !self.except.contains(value)
            && self
                .only
                .as_ref()
                .is_none_or(|only| only.iter().any(|(one, _)| one == value))
    }

    /// Both, or nothing if no number satisfies both.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let integer = match (self.integer, other.integer) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        let low = pick(&self.low, &other.low, |a, b| a > b);
        let high = pick(&self.high, &other.high, |a, b| a < b);
        let mut set = Self {
            integer,
            low,
            high,
            multiples: merged(&self.multiples, &other.multiples),
            not_multiples: merged(&self.not_multiples, &other.not_multiples),
            only: None,
            except: merged(&self.except, &other.except),
            loose: self.loose || other.loose,
            origins: merged(&self.origins, &other.origins),
        };
        if let Some(only) = self.only.as_ref().or(other.only.as_ref()) {
            let kept: Rc<[(Decimal, String)]> = only
                .iter()
                .filter(|(value, _)| self.admits(value) && other.admits(value))
                .cloned()
                .collect();
            if kept.is_empty() {
                return None;
            }
            set = Self {
                only: Some(kept),
                loose: set.loose,
                ..Self::default()
            };
        }
        (!set.is_empty()).then_some(set)
    }

    /// Whether obviously nothing is left.
    pub fn is_empty(&self) -> bool {
        if let Some(only) = &self.only {
            return only.is_empty();
        }
        if self.integer == Some(false) && self.multiples.iter().any(Decimal::is_integer) {
            return true;
        }
        let (Some((low, low_closed)), Some((high, high_closed))) = (&self.low, &self.high) else {
            return false;
        };
        if self.integer == Some(true) {
            return self.integers().is_some_and(|(a, b)| a > b);
        }
        low > high || (low == high && !(*low_closed && *high_closed && self.admits(low)))
    }

    /// The closed bounds of an integer set that has both.
    pub fn integers(&self) -> Option<(Decimal, Decimal)> {
        Some((self.lowest_integer()?, self.highest_integer()?))
    }

    /// The smallest integer that the lower bound admits.
    pub fn lowest_integer(&self) -> Option<Decimal> {
        let (low, closed) = self.low.as_ref()?;
        let ceil = low.ceil();
        Some(if !closed && ceil == *low {
            ceil.next_integer()
        } else {
            ceil
        })
    }

    /// The largest integer that the upper bound admits.
    pub fn highest_integer(&self) -> Option<Decimal> {
        let (high, closed) = self.high.as_ref()?;
        let floor = high.floor();
        Some(if !closed && floor == *high {
            floor.previous_integer()
        } else {
            floor
        })
    }
}

/// The stricter of two bounds.
fn pick(
    a: &Option<(Decimal, bool)>,
    b: &Option<(Decimal, bool)>,
    stricter: impl Fn(&Decimal, &Decimal) -> bool,
) -> Option<(Decimal, bool)> {
    match (a, b) {
        (Some(x), Some(y)) => Some(if x.0 == y.0 {
            (x.0.clone(), x.1 && y.1)
        } else if stricter(&x.0, &y.0) {
            x.clone()
        } else {
            y.clone()
        }),
        (x, y) => x.clone().or_else(|| y.clone()),
    }
}

/// Members of either list, in order, once each.
pub fn merged<T: Clone + PartialEq>(a: &[T], b: &[T]) -> Vec<T> {
    let mut out = a.to_vec();
    for item in b {
        if !out.contains(item) {
            out.push(item.clone());
        }
    }
    out
}

/// The smaller of two optional upper bounds.
pub fn tighter(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
