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
    ANY, ArraySet, NEVER, NumberSet, ObjectSet, PatternId, Property, Shape, SiteId, StringSet,
    TermId,
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

/// What the report calls a combination of schemas that no keyword is to blame for.
pub const COMBINED: &str = "combined schemas";

/// A result of the algebra.
pub type Outcome<T> = Result<T, Trouble>;

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
    pub(super) empty: FxHashMap<TermId, bool>,
    pub(super) looking: usize,
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
                self.sites.enforced(root, COMBINED)
            });
            self.sites
                .check(site, "combining it takes more alternatives than allowed");
        }
        Ok(out)
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
pub fn product<T: PartialEq + Clone>(
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

/// The set as one that admits more than its schema.
pub fn loosened_number(set: NumberSet) -> NumberSet {
    NumberSet { loose: true, ..set }
}

/// The set as one that admits more than its schema.
pub fn loosened_string(set: StringSet) -> StringSet {
    StringSet { loose: true, ..set }
}

/// The set as one that admits more than its schema.
pub fn loosened_array(set: ArraySet) -> ArraySet {
    ArraySet { loose: true, ..set }
}

/// The set as one that admits more than its schema.
pub fn loosened_object(set: ObjectSet) -> ObjectSet {
    ObjectSet { loose: true, ..set }
}
