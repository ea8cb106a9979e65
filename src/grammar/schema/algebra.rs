//! Schemas as sets of values: intersection, union, complement, emptiness.
//!
//! Schemas and their combinations are interned as *terms*, and a term's [`Shape`] is computed
//! once, when it is needed. Only what applies to the same value is combined; the schemas of
//! properties and items stay terms, so that recursive schemas are no difficulty. Where the exact
//! result cannot be had, the result admits more, is marked as loose, and the keyword is reported.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::document::{Document, NodeId};
use super::error::SchemaError;
use super::options::SchemaOptions;
use super::patterns::Patterns;
use super::shape::{
    ANY, ArraySet, Contains, NEVER, NumberSet, ObjectSet, PatternId, Property, Scope, Shape,
    SiteId, StringSet, TermId, merged, tighter,
};
use super::sites::Sites;

/// A schema or a combination of schemas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// Every value.
    Any,
    /// No value.
    Never,
    /// A schema of the document.
    Schema(NodeId),
    /// What all admit.
    All(Rc<[TermId]>),
    /// What one at least admits.
    Some(Rc<[TermId]>),
    /// What it does not admit.
    Not(TermId),
    /// A shape made on the way.
    Shape(Rc<Shape>),
}

enum Memo {
    Unknown,
    Busy,
    Known(Rc<Shape>),
}

/// Why a shape could not be computed.
#[derive(Debug)]
pub enum Trouble {
    /// The schema is refused.
    Refused(SchemaError),
    /// The term is being computed further up: it leads back to itself on the same value.
    Circular(TermId),
}

impl From<SchemaError> for Trouble {
    fn from(error: SchemaError) -> Self {
        Self::Refused(error)
    }
}

/// A result of the algebra.
pub type Outcome<T> = Result<T, Trouble>;

/// How deep emptiness looks into required properties and items.
const EMPTINESS_DEPTH: usize = 8;

/// The terms of one schema document.
pub struct Algebra<'a> {
    /// The document.
    pub document: Document<'a>,
    /// How to compile.
    pub options: SchemaOptions,
    /// What is to be reported.
    pub sites: Sites<'a>,
    /// Patterns and formats.
    pub patterns: Patterns,
    terms: Vec<Term>,
    ids: FxHashMap<Term, TermId>,
    shapes: Vec<Memo>,
    empty: FxHashMap<TermId, bool>,
    looking: usize,
    depth: usize,
}

impl<'a> Algebra<'a> {
    /// An algebra over `document`.
    pub fn new(document: Document<'a>, options: SchemaOptions) -> Self {
        let mut algebra = Self {
            document,
            options,
            sites: Sites::default(),
            patterns: Patterns::new(options.limits.states),
            terms: Vec::new(),
            ids: FxHashMap::default(),
            shapes: Vec::new(),
            empty: FxHashMap::default(),
            looking: 0,
            depth: 0,
        };
        algebra.intern(Term::Any);
        algebra.intern(Term::Never);
        algebra
    }

    /// The number of `term`.
    pub fn intern(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.ids.get(&term) {
            return id;
        }
        let id = TermId(self.terms.len() as u32);
        self.terms.push(term.clone());
        self.shapes.push(Memo::Unknown);
        self.ids.insert(term, id);
        id
    }

    /// The term with number `id`.
    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize]
    }

    /// What all of `terms` admit.
    pub fn all(&mut self, terms: impl IntoIterator<Item = TermId>) -> TermId {
        let mut flat: Vec<TermId> = Vec::new();
        for id in terms {
            let parts: Rc<[TermId]> = match self.term(id) {
                Term::Any => continue,
                Term::Never => return NEVER,
                Term::All(parts) => Rc::clone(parts),
                _ => Rc::from([id]),
            };
            for &part in parts.iter() {
                if !flat.contains(&part) {
                    flat.push(part);
                }
            }
        }
        match flat.as_slice() {
            [] => ANY,
            [one] => *one,
            _ => self.intern(Term::All(flat.into())),
        }
    }

    /// What at least one of `terms` admits.
    pub fn some(&mut self, terms: impl IntoIterator<Item = TermId>) -> TermId {
        let mut flat: Vec<TermId> = Vec::new();
        for id in terms {
            match self.term(id) {
                Term::Any => return ANY,
                Term::Never => {}
                _ => {
                    if !flat.contains(&id) {
                        flat.push(id);
                    }
                }
            }
        }
        match flat.as_slice() {
            [] => NEVER,
            [one] => *one,
            _ => self.intern(Term::Some(flat.into())),
        }
    }

    /// What `term` does not admit.
    pub fn not(&mut self, term: TermId) -> TermId {
        match self.term(term) {
            Term::Any => NEVER,
            Term::Never => ANY,
            Term::Not(inner) => *inner,
            _ => self.intern(Term::Not(term)),
        }
    }

    /// A term of `shape`.
    pub fn shaped(&mut self, shape: Shape) -> TermId {
        if shape.is_void() {
            NEVER
        } else {
            self.intern(Term::Shape(Rc::new(shape)))
        }
    }

    /// The normal form of a term.
    pub fn shape(&mut self, id: TermId) -> Outcome<Rc<Shape>> {
        match &self.shapes[id.0 as usize] {
            Memo::Known(shape) => return Ok(Rc::clone(shape)),
            Memo::Busy => return Err(Trouble::Circular(id)),
            Memo::Unknown => {}
        }
        let limits = self.options.limits;
        if self.terms.len() > limits.terms {
            return Err(self.exceeded("combined schemas", limits.terms));
        }
        if self.depth > limits.depth {
            return Err(self.exceeded("schemas applied to one value", limits.depth));
        }
        self.depth += 1;
        self.shapes[id.0 as usize] = Memo::Busy;
        let result = self.compute(id);
        self.depth -= 1;
        match result {
            Ok(shape) => {
                let shape = Rc::new(shape);
                self.shapes[id.0 as usize] = Memo::Known(Rc::clone(&shape));
                Ok(shape)
            }
            Err(trouble) => {
                self.shapes[id.0 as usize] = Memo::Unknown;
                Err(trouble)
            }
        }
    }

    fn exceeded(&self, which: &'static str, limit: usize) -> Trouble {
        Trouble::Refused(SchemaError::Limit {
            pointer: String::new(),
            which,
            limit,
        })
    }

    fn compute(&mut self, id: TermId) -> Outcome<Shape> {
        match self.term(id).clone() {
            Term::Any => Ok(Shape::any()),
            Term::Never => Ok(Shape::default()),
            Term::Shape(shape) => Ok((*shape).clone()),
            Term::Schema(node) => self.schema_shape(node),
            Term::All(parts) => {
                let mut shape = Shape::any();
                for &part in parts.iter() {
                    let other = self.shape(part)?;
                    shape = self.intersection(&shape, &other, None)?;
                }
                Ok(shape)
            }
            Term::Some(parts) => {
                let mut shape = Shape::default();
                for &part in parts.iter() {
                    let other = self.shape(part)?;
                    unite(&mut shape, &other);
                }
                Ok(shape)
            }
            Term::Not(inner) => {
                let inner = self.shape(inner)?;
                self.complement(&inner)
            }
        }
    }

    /// What both shapes admit. Where that takes too many alternatives the second is left out,
    /// and `site` is reported.
    pub fn intersection(&mut self, a: &Shape, b: &Shape, site: Option<SiteId>) -> Outcome<Shape> {
        let mut out = Shape {
            null: a.null && b.null,
            booleans: [
                a.booleans[0] && b.booleans[0],
                a.booleans[1] && b.booleans[1],
            ],
            loose: a.loose || b.loose,
            ..Shape::default()
        };
        let limit = self.options.limits.alternatives;
        let mut overflow = false;

        out.numbers = product(&a.numbers, &b.numbers, limit, &mut overflow, |x, y| {
            Ok(x.intersection(y))
        })?
        .unwrap_or_else(|| a.numbers.iter().cloned().map(loosened_number).collect());
        out.strings = product(&a.strings, &b.strings, limit, &mut overflow, |x, y| {
            Ok(self.string_intersection(x, y))
        })?
        .unwrap_or_else(|| a.strings.iter().cloned().map(loosened_string).collect());
        out.arrays = product(&a.arrays, &b.arrays, limit, &mut overflow, |x, y| {
            self.array_intersection(x, y)
        })?
        .unwrap_or_else(|| a.arrays.iter().cloned().map(loosened_array).collect());
        out.objects = product(&a.objects, &b.objects, limit, &mut overflow, |x, y| {
            self.object_intersection(x, y)
        })?
        .unwrap_or_else(|| a.objects.iter().cloned().map(loosened_object).collect());
        if overflow {
            let site = site.unwrap_or_else(|| {
                let root = self.document.root();
                self.sites.enforced(root, "combined schemas")
            });
            self.sites
                .check(site, "combining it takes more alternatives than allowed");
        }
        Ok(out)
    }

    /// Whether `text` satisfies the set, if that can be told.
    pub fn string_admits(&mut self, set: &StringSet, text: &str) -> Option<bool> {
        let length = text.chars().count() as u64;
        if length < set.min
            || set.max.is_some_and(|max| length > max)
            || set.except.iter().any(|one| one == text)
            || set
                .only
                .as_ref()
                .is_some_and(|only| !only.iter().any(|one| one == text))
        {
            return Some(false);
        }
        let mut unsure = false;
        for &(pattern, positive) in &set.patterns {
            match self.patterns.matches(pattern, text) {
                Some(found) if found != positive => return Some(false),
                Some(_) => {}
                None => unsure = true,
            }
        }
        if unsure { None } else { Some(true) }
    }

    /// Strings that satisfy both sets.
    pub fn both_strings(&mut self, a: &StringSet, b: &StringSet) -> Option<StringSet> {
        self.string_intersection(a, b)
    }

    fn string_intersection(&mut self, a: &StringSet, b: &StringSet) -> Option<StringSet> {
        let mut set = StringSet {
            min: a.min.max(b.min),
            max: tighter(a.max, b.max),
            patterns: merged(&a.patterns, &b.patterns),
            only: None,
            except: merged(&a.except, &b.except),
            loose: a.loose || b.loose,
            origins: merged(&a.origins, &b.origins),
        };
        set.patterns.sort_unstable();
        if set.max.is_some_and(|max| max < set.min)
            || set
                .patterns
                .windows(2)
                .any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1)
        {
            return None;
        }
        if let Some(only) = a.only.as_ref().or(b.only.as_ref()) {
            let other: Option<rustc_hash::FxHashSet<&str>> = match (&a.only, &b.only) {
                (Some(_), Some(b)) => Some(b.iter().map(String::as_str).collect()),
                _ => None,
            };
            let mut kept = Vec::new();
            for text in only.iter() {
                if other
                    .as_ref()
                    .is_some_and(|other| !other.contains(text.as_str()))
                {
                    continue;
                }
                match self.string_admits(&set, text) {
                    Some(false) => {}
                    Some(true) => kept.push(text.clone()),
                    None => {
                        set.loose = true;
                        self.sites
                            .check_all(&set.origins, "the pattern is too large for an automaton");
                        kept.push(text.clone());
                    }
                }
            }
            if kept.is_empty() {
                return None;
            }
            return Some(StringSet {
                only: Some(kept.into()),
                loose: set.loose,
                origins: set.origins,
                ..StringSet::default()
            });
        }
        Some(set)
    }

    fn array_intersection(&mut self, a: &ArraySet, b: &ArraySet) -> Outcome<Option<ArraySet>> {
        let length = a.prefix.len().max(b.prefix.len());
        let prefix = (0..length)
            .map(|index| self.all([a.item(index), b.item(index)]))
            .collect();
        let set = ArraySet {
            prefix,
            rest: self.all([a.rest, b.rest]),
            min: a.min.max(b.min),
            max: tighter(a.max, b.max),
            contains: merged(&a.contains, &b.contains),
            unique: a.unique || b.unique,
            loose: a.loose || b.loose,
            origins: merged(&a.origins, &b.origins),
        };
        self.settled_array(set)
    }

    /// Draws the consequences of impossible items.
    pub fn settled_array(&mut self, mut set: ArraySet) -> Outcome<Option<ArraySet>> {
        if self.is_empty(set.rest)? {
            set.max = tighter(set.max, Some(set.prefix.len() as u64));
            set.rest = NEVER;
        }
        for index in 0..set.prefix.len() {
            if self.is_empty(set.prefix[index])? {
                set.max = tighter(set.max, Some(index as u64));
                set.prefix.truncate(index);
                set.rest = NEVER;
                break;
            }
        }
        if let Some(max) = set.max
            && (max as usize) < set.prefix.len()
        {
            set.prefix.truncate(max as usize);
            set.rest = NEVER;
        }
        Ok(set.max.is_none_or(|max| max >= set.min).then_some(set))
    }

    fn object_intersection(&mut self, a: &ObjectSet, b: &ObjectSet) -> Outcome<Option<ObjectSet>> {
        let mut loose = a.loose || b.loose;
        let mut properties: Vec<Property> = Vec::with_capacity(a.properties.len());
        let theirs: FxHashMap<&str, &Property> =
            b.properties.iter().map(|p| (&*p.name, p)).collect();
        let mine: FxHashMap<&str, ()> = a.properties.iter().map(|p| (&*p.name, ())).collect();
        for property in &a.properties {
            let (term, required) = match theirs.get(&*property.name) {
                Some(other) => (other.term, other.required),
                None => (self.term_for(b, &property.name, &mut loose), false),
            };
            properties.push(Property {
                name: Rc::clone(&property.name),
                term: self.all([property.term, term]),
                required: property.required || required,
            });
        }
        for property in &b.properties {
            if mine.contains_key(&*property.name) {
                continue;
            }
            let term = self.term_for(a, &property.name, &mut loose);
            properties.push(Property {
                name: Rc::clone(&property.name),
                term: self.all([term, property.term]),
                required: property.required,
            });
        }
        let set = ObjectSet {
            properties,
            groups: merged(&a.groups, &b.groups),
            names: merged(&a.names, &b.names),
            min: a.min.max(b.min),
            max: tighter(a.max, b.max),
            loose,
            origins: merged(&a.origins, &b.origins),
        };
        self.settled_object(set)
    }

    /// Draws the consequences of impossible properties.
    pub fn settled_object(&mut self, mut set: ObjectSet) -> Outcome<Option<ObjectSet>> {
        let mut required = 0u64;
        let mut possible = 0u64;
        for index in 0..set.properties.len() {
            let term = set.properties[index].term;
            if set.properties[index].required {
                if self.is_empty(term)? {
                    return Ok(None);
                }
                required += 1;
            }
            if term != NEVER {
                possible += 1;
            }
        }
        if set.max.is_some_and(|max| max < required.max(set.min)) {
            return Ok(None);
        }
        set.min = if set.min <= required { 0 } else { set.min };
        if set.min > possible && self.closed(&set)? {
            return Ok(None);
        }
        Ok(Some(set))
    }

    /// Whether no property can be added to those known by name.
    pub fn closed(&mut self, set: &ObjectSet) -> Outcome<bool> {
        for group in &set.groups {
            if matches!(&group.scope, Scope::Others(patterns) if patterns.is_empty())
                && self.is_empty(group.term)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the property `name`, not known to `set` by name, satisfies there.
    pub fn term_for(&mut self, set: &ObjectSet, name: &str, loose: &mut bool) -> TermId {
        let mut parts = Vec::new();
        for group in &set.groups {
            let applies = match &group.scope {
                Scope::Matching(pattern) => self.patterns.matches(*pattern, name),
                Scope::Others(patterns) => {
                    let mut answer = Some(true);
                    for &pattern in patterns {
                        match self.patterns.matches(pattern, name) {
                            Some(true) => {
                                answer = Some(false);
                                break;
                            }
                            Some(false) => {}
                            None => answer = None,
                        }
                    }
                    answer
                }
            };
            match applies {
                Some(true) => parts.push(group.term),
                Some(false) => {}
                None => {
                    *loose = true;
                    self.sites
                        .check_all(&set.origins, "the pattern is too large for an automaton");
                }
            }
        }
        self.all(parts)
    }

    /// What the shape does not admit; loose where it is loose.
    fn complement(&mut self, shape: &Shape) -> Outcome<Shape> {
        let mut out = Shape {
            null: !shape.null || shape.loose,
            booleans: shape.booleans.map(|admitted| !admitted || shape.loose),
            loose: shape.loose,
            numbers: vec![NumberSet::default()],
            strings: vec![StringSet::default()],
            arrays: vec![ArraySet::default()],
            objects: vec![ObjectSet::default()],
        };
        let limit = self.options.limits.alternatives;
        // Not (a or b) is not a and not b; each "not a" is an alternation of broken constraints.
        for set in &shape.numbers {
            let broken = broken_number(set);
            out.numbers = narrowed(&out.numbers, broken, limit, loosened_number, |x, y| {
                Ok(x.intersection(y))
            })?;
        }
        for set in &shape.strings {
            let broken = broken_string(set);
            out.strings = narrowed(&out.strings, broken, limit, loosened_string, |x, y| {
                Ok(self.string_intersection(x, y))
            })?;
        }
        for set in &shape.arrays {
            let broken = self.broken_array(set);
            out.arrays = narrowed(&out.arrays, broken, limit, loosened_array, |x, y| {
                self.array_intersection(x, y)
            })?;
        }
        for set in &shape.objects {
            let broken = self.broken_object(set);
            out.objects = narrowed(&out.objects, broken, limit, loosened_object, |x, y| {
                self.object_intersection(x, y)
            })?;
        }
        Ok(out)
    }

    /// Arrays that are not in the set; nothing if that cannot be said.
    fn broken_array(&mut self, set: &ArraySet) -> Option<Vec<ArraySet>> {
        if set.loose || set.unique || set.contains.iter().any(|c| c.max.is_some()) {
            return None;
        }
        let mut out = Vec::new();
        let min = set.min;
        if min > 0 {
            out.push(ArraySet {
                max: Some(min - 1),
                ..ArraySet::default()
            });
        }
        if let Some(max) = set.max {
            out.push(ArraySet {
                min: max + 1,
                ..ArraySet::default()
            });
        }
        for (index, &term) in set.prefix.iter().enumerate() {
            if term != ANY {
                let mut prefix = vec![ANY; index];
                prefix.push(self.not(term));
                out.push(ArraySet {
                    prefix,
                    min: index as u64 + 1,
                    ..ArraySet::default()
                });
            }
        }
        if set.rest == NEVER {
            out.push(ArraySet {
                min: set.prefix.len() as u64 + 1,
                ..ArraySet::default()
            });
        } else if set.rest != ANY {
            if !set.prefix.is_empty() {
                return None;
            }
            let term = self.not(set.rest);
            out.push(ArraySet {
                contains: vec![Contains {
                    term,
                    min: 1,
                    max: None,
                }],
                ..ArraySet::default()
            });
        }
        for contains in &set.contains {
            if contains.min != 1 {
                return None;
            }
            out.push(ArraySet {
                rest: self.not(contains.term),
                ..ArraySet::default()
            });
        }
        Some(out)
    }

    /// Objects that are not in the set; nothing if that cannot be said.
    fn broken_object(&mut self, set: &ObjectSet) -> Option<Vec<ObjectSet>> {
        if set.loose || !set.names.is_empty() || set.groups.iter().any(|g| g.term != ANY) {
            return None;
        }
        let mut out = Vec::new();
        for property in &set.properties {
            if property.required {
                out.push(ObjectSet {
                    properties: vec![Property {
                        name: Rc::clone(&property.name),
                        term: NEVER,
                        required: false,
                    }],
                    ..ObjectSet::default()
                });
            }
            if property.term != ANY {
                out.push(ObjectSet {
                    properties: vec![Property {
                        name: Rc::clone(&property.name),
                        term: self.not(property.term),
                        required: true,
                    }],
                    ..ObjectSet::default()
                });
            }
        }
        if set.min > 0 {
            out.push(ObjectSet {
                max: Some(set.min - 1),
                ..ObjectSet::default()
            });
        }
        if let Some(max) = set.max {
            out.push(ObjectSet {
                min: max + 1,
                ..ObjectSet::default()
            });
        }
        Some(out)
    }

    /// Whether surely no value satisfies the term. `false` may mean that it is not known.
    pub fn is_empty(&mut self, term: TermId) -> Outcome<bool> {
        if term == NEVER {
            return Ok(true);
        }
        if term == ANY {
            return Ok(false);
        }
        if let Some(&known) = self.empty.get(&term) {
            return Ok(known);
        }
        if self.looking >= EMPTINESS_DEPTH {
            return Ok(false);
        }
        self.looking += 1;
        let shape = self.shape(term);
        self.looking -= 1;
        let empty = match shape {
            Ok(shape) => shape.is_void(),
            // Not known yet: it is being computed.
            Err(Trouble::Circular(_)) => return Ok(false),
            Err(other) => return Err(other),
        };
        self.empty.insert(term, empty);
        Ok(empty)
    }

    /// Whether surely no value satisfies both.
    pub fn are_disjoint(&mut self, a: &Shape, b: &Shape) -> Outcome<bool> {
        let shape = self.intersection_quietly(a, b)?;
        if !shape.is_void() {
            if shape.null || shape.booleans != [false, false] || !shape.numbers.is_empty() {
                return Ok(false);
            }
            if !shape.arrays.is_empty() || !shape.objects.is_empty() {
                return Ok(false);
            }
            for set in &shape.strings {
                if !self.is_impossible_string(set) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn intersection_quietly(&mut self, a: &Shape, b: &Shape) -> Outcome<Shape> {
        let limit = self.options.limits.alternatives;
        self.options.limits.alternatives = usize::MAX / 8;
        let result = if a.objects.len().saturating_mul(b.objects.len()) > limit.saturating_mul(4)
            || a.strings.len().saturating_mul(b.strings.len()) > limit.saturating_mul(4)
        {
            Ok(Shape::any())
        } else {
            self.intersection(a, b, None)
        };
        self.options.limits.alternatives = limit;
        result
    }

    /// Whether the patterns of the set surely exclude each other.
    pub fn is_impossible_string(&mut self, set: &StringSet) -> bool {
        if set.only.is_some() || set.patterns.len() < 2 {
            return false;
        }
        let limit = self.options.limits.states;
        let mut all: Option<super::text::automaton::Automaton> = None;
        for &(pattern, positive) in &set.patterns {
            let Some(automaton) = self.patterns.automaton(pattern).cloned() else {
                continue;
            };
            let automaton = if positive {
                automaton
            } else {
                automaton.complement()
            };
            all = match all {
                None => Some(automaton),
                Some(all) => match all.intersection(&automaton, limit) {
                    Some(both) => Some(both),
                    None => return false,
                },
            };
        }
        all.is_some_and(|all| all.is_empty())
    }

    /// Names that match the pattern and satisfy none of the others, for [`Scope`]s.
    pub fn matches(&mut self, pattern: PatternId, name: &str) -> Option<bool> {
        self.patterns.matches(pattern, name)
    }

    /// An object alternative in which the property `name` is there (or must be absent).
    pub fn presence(&mut self, name: &str, present: bool) -> TermId {
        let mut shape = Shape::any();
        shape.objects = vec![ObjectSet {
            properties: vec![Property {
                name: name.into(),
                term: if present { ANY } else { NEVER },
                required: present,
            }],
            ..ObjectSet::default()
        }];
        self.shaped(shape)
    }
}

/// Adds the alternatives of `other`.
pub fn unite(shape: &mut Shape, other: &Shape) {
    fn add<T: Clone + PartialEq>(to: &mut Vec<T>, from: &[T], whole: &T) {
        if to.contains(whole) {
            return;
        }
        if from.contains(whole) {
            *to = vec![whole.clone()];
            return;
        }
        for set in from {
            if !to.contains(set) {
                to.push(set.clone());
            }
        }
    }
    shape.null |= other.null;
    shape.booleans[0] |= other.booleans[0];
    shape.booleans[1] |= other.booleans[1];
    shape.loose |= other.loose;
    add(&mut shape.numbers, &other.numbers, &NumberSet::default());
    add(&mut shape.strings, &other.strings, &StringSet::default());
    add(&mut shape.arrays, &other.arrays, &ArraySet::default());
    add(&mut shape.objects, &other.objects, &ObjectSet::default());
}

/// Every alternative of `a` with every one of `b`; nothing if there are too many.
fn product<T: PartialEq + Clone>(
    a: &[T],
    b: &[T],
    limit: usize,
    overflow: &mut bool,
    mut combine: impl FnMut(&T, &T) -> Outcome<Option<T>>,
) -> Outcome<Option<Vec<T>>> {
    if a.len().saturating_mul(b.len()) > limit.max(a.len()).max(b.len()).saturating_mul(4) {
        *overflow = true;
        return Ok(None);
    }
    let mut out: Vec<T> = Vec::new();
    for x in a {
        for y in b {
            if let Some(both) = combine(x, y)?
                && !out.contains(&both)
            {
                out.push(both);
            }
        }
    }
    if out.len() > limit.max(a.len()).max(b.len()) {
        *overflow = true;
        return Ok(None);
    }
    Ok(Some(out))
}

/// One step of a complement: `left` and `broken`. What cannot be said leaves `left` loose.
fn narrowed<T: PartialEq + Clone>(
    left: &[T],
    broken: Option<Vec<T>>,
    limit: usize,
    loosen: impl Fn(T) -> T,
    combine: impl FnMut(&T, &T) -> Outcome<Option<T>>,
) -> Outcome<Vec<T>> {
    let mut overflow = false;
    let both = match broken {
        Some(broken) => product(left, &broken, limit, &mut overflow, combine)?,
        None => None,
    };
    Ok(both.unwrap_or_else(|| left.iter().cloned().map(loosen).collect()))
}

fn loosened_number(set: NumberSet) -> NumberSet {
    NumberSet { loose: true, ..set }
}

fn loosened_string(set: StringSet) -> StringSet {
    StringSet { loose: true, ..set }
}

fn loosened_array(set: ArraySet) -> ArraySet {
    ArraySet { loose: true, ..set }
}

fn loosened_object(set: ObjectSet) -> ObjectSet {
    ObjectSet { loose: true, ..set }
}

/// Numbers that are not in the set; nothing if it is loose.
fn broken_number(set: &NumberSet) -> Option<Vec<NumberSet>> {
    if set.loose {
        return None;
    }
    if let Some(only) = &set.only {
        return Some(vec![NumberSet {
            except: only.iter().map(|(value, _)| value.clone()).collect(),
            ..NumberSet::default()
        }]);
    }
    let mut out = Vec::new();
    if let Some(integer) = set.integer {
        out.push(NumberSet {
            integer: Some(!integer),
            ..NumberSet::default()
        });
    }
    if let Some((low, closed)) = &set.low {
        out.push(NumberSet {
            high: Some((low.clone(), !closed)),
            ..NumberSet::default()
        });
    }
    if let Some((high, closed)) = &set.high {
        out.push(NumberSet {
            low: Some((high.clone(), !closed)),
            ..NumberSet::default()
        });
    }
    for of in &set.multiples {
        out.push(NumberSet {
            not_multiples: vec![of.clone()],
            ..NumberSet::default()
        });
    }
    for of in &set.not_multiples {
        out.push(NumberSet {
            multiples: vec![of.clone()],
            ..NumberSet::default()
        });
    }
    if !set.except.is_empty() {
        out.push(NumberSet {
            only: Some(
                set.except
                    .iter()
                    .map(|value| (value.clone(), value.to_string()))
                    .collect(),
            ),
            ..NumberSet::default()
        });
    }
    Some(out)
}

/// Strings that are not in the set; nothing if it is loose.
fn broken_string(set: &StringSet) -> Option<Vec<StringSet>> {
    if set.loose {
        return None;
    }
    if let Some(only) = &set.only {
        return Some(vec![StringSet {
            except: only.to_vec(),
            ..StringSet::default()
        }]);
    }
    let mut out = Vec::new();
    if set.min > 0 {
        out.push(StringSet {
            max: Some(set.min - 1),
            ..StringSet::default()
        });
    }
    if let Some(max) = set.max {
        out.push(StringSet {
            min: max + 1,
            ..StringSet::default()
        });
    }
    for &(pattern, positive) in &set.patterns {
        out.push(StringSet {
            patterns: vec![(pattern, !positive)],
            origins: set.origins.clone(),
            ..StringSet::default()
        });
    }
    if !set.except.is_empty() {
        out.push(StringSet {
            only: Some(set.except.iter().cloned().collect()),
            ..StringSet::default()
        });
    }
    Some(out)
}
