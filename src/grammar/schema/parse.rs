//! Keywords to shapes: what a schema object says about a value.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::algebra::{Algebra, Outcome, Term, Trouble};
use super::decimal::Decimal;
use super::document::{Draft, NodeId};
use super::error::SchemaError;
use super::shape::{
    ANY, ArraySet, Group, NEVER, NumberSet, ObjectSet, Property, Scope, Shape, StringSet, TermId,
};
use super::text::ecma::PatternError;
use super::text::format;

/// Keywords that never constrain a value.
pub const SILENT: [&str; 16] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$comment",
    "readOnly",
    "writeOnly",
    "deprecated",
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$defs",
    "definitions",
];

/// The members of a schema object.
pub type Members = Map<String, Value>;

impl<'a> Algebra<'a> {
    /// The term of the schema at `node`, plain references followed.
    pub fn schema(&mut self, node: NodeId) -> Result<TermId, SchemaError> {
        let mut node = node;
        for _ in 0..1_000 {
            let members = match self.document.value(node) {
                Value::Bool(true) => return Ok(ANY),
                Value::Bool(false) => return Ok(NEVER),
                Value::Object(members) => members,
                _ => {
                    return Err(self
                        .document
                        .malformed(node, "a schema is an object or a boolean"));
                }
            };
            let alone = members
                .keys()
                .all(|key| key == "$ref" || SILENT.contains(&key.as_str()));
            match members.get("$ref") {
                Some(Value::String(reference)) if alone || self.hides_siblings() => {
                    self.sites.enforced(node, "$ref");
                    self.unreported(node, members);
                    node = self.document.resolve(node, reference)?;
                }
                None if alone => return Ok(ANY),
                _ => return Ok(self.intern(Term::Schema(node))),
            }
        }
        Err(self
            .document
            .malformed(node, "references lead from one to the next without end"))
    }

    fn hides_siblings(&self) -> bool {
        self.document.draft() <= Draft::Draft7
    }

    /// Reports the siblings that a `$ref` hides.
    fn unreported(&mut self, node: NodeId, members: &'a Members) {
        for key in members.keys() {
            if key != "$ref" && !SILENT.contains(&key.as_str()) {
                self.sites.annotation(
                    node,
                    key.as_str(),
                    "beside $ref it has no meaning in this draft",
                );
            }
        }
    }

    pub(super) fn member_schema(
        &mut self,
        node: NodeId,
        key: &str,
    ) -> Result<Option<TermId>, SchemaError> {
        match self.document.member(node, key) {
            Some(child) => self.schema(child).map(Some),
            None => Ok(None),
        }
    }

    /// The schemas of an array of schemas.
    pub(super) fn schema_list(
        &mut self,
        node: NodeId,
        key: &str,
    ) -> Result<Vec<TermId>, SchemaError> {
        let Some(list) = self.document.member(node, key) else {
            return Ok(Vec::new());
        };
        let Some(length) = self.document.value(list).as_array().map(Vec::len) else {
            return Err(self
                .document
                .malformed(list, "a list of schemas is expected"));
        };
        let mut out = Vec::with_capacity(length);
        for index in 0..length {
            if let Some(item) = self.document.item(list, index) {
                out.push(self.schema(item)?);
            }
        }
        Ok(out)
    }

    pub(super) fn count(
        &self,
        node: NodeId,
        members: &Members,
        key: &str,
    ) -> Result<Option<u64>, SchemaError> {
        let Some(value) = members.get(key) else {
            return Ok(None);
        };
        let number = value.as_u64().or_else(|| {
            let float = value.as_f64()?;
            (float >= 0.0 && float.fract() == 0.0 && float <= 1e18).then_some(float as u64)
        });
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(self
                .document
                .malformed(node, format!("{key} is no non-negative integer"))),
        }
    }

    /// The shape of the schema object at `node`.
    pub fn schema_shape(&mut self, node: NodeId) -> Outcome<Shape> {
        let Value::Object(members) = self.document.value(node) else {
            let term = self.schema(node)?;
            return Ok((*self.shape(term)?).clone());
        };
        let mut shape = self.typed(node, members)?;
        if let Some(number) = self.number_keywords(node, members)? {
            narrow_numbers(&mut shape, &number);
        }
        if let Some(string) = self.string_keywords(node, members)? {
            shape.strings.retain_mut(|set| {
                *set = string.clone();
                true
            });
        }
        if !shape.arrays.is_empty()
            && let Some(array) = self.array_keywords(node, members)?
        {
            shape.arrays = self.settled_array(array)?.into_iter().collect();
        }
        if !shape.objects.is_empty()
            && let Some(object) = self.object_keywords(node, members)?
        {
            shape.objects = self.settled_object(object)?.into_iter().collect();
        }
        for (key, value) in members {
            let values = match (key.as_str(), value) {
                ("enum", Value::Array(values)) => values.as_slice(),
                ("enum", _) => {
                    return Err(self.document.malformed(node, "enum is no list").into());
                }
                ("const", value) => std::slice::from_ref(value),
                _ => continue,
            };
            self.sites.enforced(node, key.as_str());
            let constants = self.constants(node, values)?;
            shape = self.intersection(&shape, &constants, None)?;
        }
        self.combinations(node, members, shape)
    }

    /// What `type` leaves.
    fn typed(&mut self, node: NodeId, members: &'a Members) -> Outcome<Shape> {
        let Some(value) = members.get("type") else {
            return Ok(Shape::any());
        };
        self.sites.enforced(node, "type");
        let names: Vec<&str> = match value {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => return Err(self.document.malformed(node, "type is no name").into()),
        };
        let whole = Shape::any();
        let mut shape = Shape::default();
        for name in names {
            match name {
                "null" => shape.null = true,
                "boolean" => shape.booleans = [true, true],
                "string" => shape.strings.clone_from(&whole.strings),
                "array" => shape.arrays.clone_from(&whole.arrays),
                "object" => shape.objects.clone_from(&whole.objects),
                "number" => shape.numbers.clone_from(&whole.numbers),
                "integer" => {
                    if shape.numbers.is_empty() {
                        shape.numbers = vec![NumberSet {
                            integer: Some(true),
                            ..NumberSet::default()
                        }];
                    }
                }
                "any" => return Ok(whole),
                other => {
                    let short: String = other.chars().take(40).collect();
                    return Err(self
                        .document
                        .malformed(node, format!("there is no type \"{short}\""))
                        .into());
                }
            }
        }
        Ok(shape)
    }

    fn number_keywords(
        &mut self,
        node: NodeId,
        members: &'a Members,
    ) -> Outcome<Option<NumberSet>> {
        let mut set = NumberSet::default();
        let mut any = false;
        for (key, value) in members {
            let low = match key.as_str() {
                "minimum" | "exclusiveMinimum" => true,
                "maximum" | "exclusiveMaximum" => false,
                "multipleOf" => {
                    let of = decimal(value).filter(|of| !of.is_zero() && !of.is_negative());
                    let Some(of) = of else {
                        return Err(self
                            .document
                            .malformed(node, "multipleOf is no positive number")
                            .into());
                    };
                    set.origins.push(self.sites.enforced(node, "multipleOf"));
                    set.multiples.push(of);
                    any = true;
                    continue;
                }
                _ => continue,
            };
            // Draft 4 says "exclusive" with a boolean beside the bound.
            if value.is_boolean() && key.starts_with("exclusive") {
                self.sites.enforced(node, key.as_str());
                continue;
            }
            let Some(bound) = decimal(value) else {
                return Err(self
                    .document
                    .malformed(node, format!("{key} is no number"))
                    .into());
            };
            let exclusive = key.starts_with("exclusive")
                || members
                    .get(if low {
                        "exclusiveMinimum"
                    } else {
                        "exclusiveMaximum"
                    })
                    .and_then(Value::as_bool)
                    .unwrap_or(false);
            set.origins.push(self.sites.enforced(node, key.as_str()));
            let mut one = NumberSet::default();
            *(if low { &mut one.low } else { &mut one.high }) = Some((bound, !exclusive));
            any = true;
            // An impossible pair is kept as it is: the alternative is dropped by its emptiness.
            let origins = std::mem::take(&mut set.origins);
            set = match set.intersection(&one) {
                Some(both) => both,
                None => NumberSet {
                    only: Some(Rc::from([])),
                    ..NumberSet::default()
                },
            };
            set.origins = origins;
        }
        Ok(any.then_some(set))
    }

    fn string_keywords(
        &mut self,
        node: NodeId,
        members: &'a Members,
    ) -> Outcome<Option<StringSet>> {
        let mut set = StringSet::default();
        let mut any = false;
        if let Some(min) = self.count(node, members, "minLength")? {
            set.min = min;
            set.origins.push(self.sites.enforced(node, "minLength"));
            any = true;
        }
        if let Some(max) = self.count(node, members, "maxLength")? {
            set.max = Some(max);
            set.origins.push(self.sites.enforced(node, "maxLength"));
            any = true;
        }
        if let Some(value) = members.get("pattern") {
            let Value::String(pattern) = value else {
                return Err(self.document.malformed(node, "pattern is no string").into());
            };
            let site = self.sites.enforced(node, "pattern");
            any = true;
            match self.patterns.parse(pattern) {
                Ok(parts) => {
                    set.patterns.extend(parts);
                    set.origins.push(site);
                }
                Err(PatternError::Unsupported(why)) => {
                    set.loose = true;
                    self.sites.check(site, format!("no grammar for {why}"));
                }
                Err(PatternError::Malformed(why)) => {
                    return Err(self
                        .document
                        .malformed(node, format!("pattern is no regular expression: {why}"))
                        .into());
                }
            }
        }
        if let Some(value) = members.get("format") {
            match value.as_str() {
                Some(name) if self.options.formats => match format::lookup(name) {
                    Some(make) => {
                        let pattern = self.patterns.named(name, make);
                        set.patterns.push((pattern, true));
                        set.origins.push(self.sites.enforced(node, "format"));
                        any = true;
                    }
                    None if format::is_left_to_the_validator(name) => {
                        set.loose = true;
                        any = true;
                        let site = self.sites.enforced(node, "format");
                        self.sites
                            .check(site, "no regular expression says this format");
                    }
                    None => {
                        self.sites
                            .annotation(node, "format", "this format is not known");
                    }
                },
                _ => self
                    .sites
                    .annotation(node, "format", "formats are annotations here"),
            }
        }
        if set.max.is_some_and(|max| max < set.min) {
            set = StringSet {
                only: Some(Rc::from([])),
                ..StringSet::default()
            };
        }
        set.patterns.sort_unstable();
        set.patterns.dedup();
        Ok(any.then_some(set))
    }

    /// The shape of exactly `values`.
    fn constants(&mut self, node: NodeId, values: &'a [Value]) -> Outcome<Shape> {
        let limit = self.options.limits.values;
        if values.len() > limit {
            return Err(Trouble::Refused(SchemaError::Limit {
                pointer: self.document.pointer(node),
                which: "values of one enum",
                limit,
            }));
        }
        let mut shape = Shape::default();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        let mut seen = rustc_hash::FxHashSet::default();
        for value in values {
            match value {
                Value::Null => shape.null = true,
                Value::Bool(value) => shape.booleans[usize::from(*value)] = true,
                Value::Number(number) => {
                    let text = number.to_string();
                    if let Some(value) = Decimal::parse(&text) {
                        if value.is_integer() && value.written_length() < 40 {
                            numbers.push((value.clone(), value.to_string()));
                        }
                        numbers.push((value, text));
                    }
                }
                Value::String(text) => {
                    if seen.insert(text.as_str()) {
                        strings.push(text.clone());
                    }
                }
                Value::Array(items) => {
                    let mut set = ArraySet {
                        rest: NEVER,
                        min: items.len() as u64,
                        max: Some(items.len() as u64),
                        ..ArraySet::default()
                    };
                    for item in items {
                        let shape = self.constants(node, std::slice::from_ref(item))?;
                        set.prefix.push(self.shaped(shape));
                    }
                    shape.arrays.push(set);
                }
                Value::Object(entries) => {
                    let mut set = ObjectSet {
                        groups: vec![Group {
                            scope: Scope::Others(Vec::new()),
                            term: NEVER,
                        }],
                        ..ObjectSet::default()
                    };
                    for (name, value) in entries {
                        let shape = self.constants(node, std::slice::from_ref(value))?;
                        set.properties.push(Property {
                            name: name.as_str().into(),
                            term: self.shaped(shape),
                            required: true,
                        });
                    }
                    shape.objects.push(set);
                }
            }
        }
        numbers.dedup();
        if !numbers.is_empty() {
            shape.numbers.push(NumberSet {
                only: Some(numbers.into()),
                ..NumberSet::default()
            });
        }
        if !strings.is_empty() {
            shape.strings.push(StringSet {
                only: Some(strings.into()),
                ..StringSet::default()
            });
        }
        Ok(shape)
    }
}

fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Decimal::parse(&number.to_string()),
        _ => None,
    }
}

fn narrow_numbers(shape: &mut Shape, with: &NumberSet) {
    shape.numbers = shape
        .numbers
        .iter()
        .filter_map(|set| set.intersection(with))
        .collect();
}
