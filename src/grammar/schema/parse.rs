//! Keywords to shapes: what a schema object says about a value.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::algebra::{Algebra, Outcome, Term, Trouble, unite};
use super::decimal::Decimal;
use super::document::{Draft, NodeId};
use super::error::SchemaError;
use super::shape::{
    ANY, ArraySet, Contains, Group, NEVER, NumberSet, ObjectSet, Property, Scope, Shape, SiteId,
    StringSet, TermId,
};
use super::text::ecma::PatternError;
use super::text::format;

/// Keywords that never constrain a value.
const SILENT: [&str; 16] = [
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

/// Branches of `oneOf` that are compared pair by pair.
const MAX_PAIRS: usize = 40;

type Members = Map<String, Value>;

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

    fn member_schema(&mut self, node: NodeId, key: &str) -> Result<Option<TermId>, SchemaError> {
        match self.document.member(node, key) {
            Some(child) => self.schema(child).map(Some),
            None => Ok(None),
        }
    }

    /// The schemas of an array of schemas.
    fn schema_list(&mut self, node: NodeId, key: &str) -> Result<Vec<TermId>, SchemaError> {
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

    fn count(
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

    fn array_keywords(&mut self, node: NodeId, members: &'a Members) -> Outcome<Option<ArraySet>> {
        let mut set = ArraySet::default();
        let mut any = false;
        if let Some(min) = self.count(node, members, "minItems")? {
            self.sites.enforced(node, "minItems");
            set.min = min;
            any = true;
        }
        if let Some(max) = self.count(node, members, "maxItems")? {
            self.sites.enforced(node, "maxItems");
            set.max = Some(max);
            any = true;
        }
        let list = if members.contains_key("prefixItems") {
            Some("prefixItems")
        } else if members.get("items").is_some_and(Value::is_array) {
            Some("items")
        } else {
            None
        };
        if let Some(key) = list {
            self.sites.enforced(node, key);
            set.prefix = self.schema_list(node, key)?;
            any = true;
        }
        let rest = if list == Some("items") {
            "additionalItems"
        } else {
            "items"
        };
        if let Some(term) = self.member_schema(node, rest)? {
            self.sites.enforced(node, rest);
            set.rest = term;
            any = true;
        } else if let Some(value) = members.get("unevaluatedItems") {
            let site = self.sites.enforced(node, "unevaluatedItems");
            any = true;
            let applicators = [
                "allOf",
                "anyOf",
                "oneOf",
                "if",
                "$ref",
                "contains",
                "$dynamicRef",
            ];
            if applicators.iter().any(|key| members.contains_key(*key)) {
                set.loose |= *value != Value::Bool(true);
                self.sites
                    .check(site, "what the other keywords evaluate is not known");
            } else if let Some(term) = self.member_schema(node, "unevaluatedItems")? {
                set.rest = term;
            }
        }
        if members
            .get("uniqueItems")
            .is_some_and(|v| *v == Value::Bool(true))
        {
            let site = self.sites.enforced(node, "uniqueItems");
            any = true;
            if set.max.is_none_or(|max| max > 1) {
                set.unique = true;
                set.loose = true;
                set.origins.push(site);
            }
        }
        if let Some(term) = self.member_schema(node, "contains")? {
            let site = self.sites.enforced(node, "contains");
            let min = self.count(node, members, "minContains")?.unwrap_or(1);
            let max = self.count(node, members, "maxContains")?;
            for key in ["minContains", "maxContains"] {
                if members.contains_key(key) {
                    set.origins.push(self.sites.enforced(node, key));
                }
            }
            set.origins.push(site);
            any = true;
            if min > 0 || max.is_some() {
                set.contains.push(Contains { term, min, max });
            }
        }
        Ok(any.then_some(set))
    }

    fn object_keywords(
        &mut self,
        node: NodeId,
        members: &'a Members,
    ) -> Outcome<Option<ObjectSet>> {
        const KEYS: [&str; 8] = [
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "unevaluatedProperties",
        ];
        if !KEYS.iter().any(|key| members.contains_key(*key)) {
            return Ok(None);
        }
        let mut set = ObjectSet::default();
        let mut patterns = Vec::new();
        let mut unknown = false;
        if let Some(list) = self.document.member(node, "patternProperties") {
            let site = self.sites.enforced(node, "patternProperties");
            set.origins.push(site);
            let Value::Object(entries) = self.document.value(list) else {
                return Err(self
                    .document
                    .malformed(list, "patternProperties is no object")
                    .into());
            };
            for pattern in entries.keys() {
                let Some(term) = self.member_schema(list, pattern)? else {
                    continue;
                };
                match self.patterns.parse(pattern) {
                    Ok(parts) if parts.len() == 1 && parts.iter().all(|part| part.1) => {
                        if let Some(&(id, _)) = parts.first() {
                            patterns.push(id);
                            set.groups.push(Group {
                                scope: Scope::Matching(id),
                                term,
                            });
                        }
                    }
                    Ok(_) | Err(PatternError::Unsupported(_)) => {
                        unknown = true;
                        set.loose = true;
                        self.sites.check(site, "no grammar for a pattern of names");
                    }
                    Err(PatternError::Malformed(why)) => {
                        return Err(self
                            .document
                            .malformed(list, format!("a pattern is no regular expression: {why}"))
                            .into());
                    }
                }
            }
        }
        let mut rest = "additionalProperties";
        if !members.contains_key(rest) && members.contains_key("unevaluatedProperties") {
            rest = "unevaluatedProperties";
        }
        if let Some(term) = self.member_schema(node, rest)? {
            let site = self.sites.enforced(node, rest);
            let applicators = [
                "allOf",
                "anyOf",
                "oneOf",
                "if",
                "$ref",
                "dependentSchemas",
                "$dynamicRef",
            ];
            let entangled = rest == "unevaluatedProperties"
                && applicators.iter().any(|key| members.contains_key(*key));
            if term != ANY && (unknown || entangled) {
                set.loose = true;
                self.sites
                    .check(site, "which names are left to it is not known");
            } else {
                set.groups.push(Group {
                    scope: Scope::Others(patterns.clone()),
                    term,
                });
            }
        }
        if let Some(list) = self.document.member(node, "properties") {
            self.sites.enforced(node, "properties");
            let Value::Object(entries) = self.document.value(list) else {
                return Err(self
                    .document
                    .malformed(list, "properties is no object")
                    .into());
            };
            for name in entries.keys() {
                let Some(own) = self.member_schema(list, name)? else {
                    continue;
                };
                let mut parts = vec![own];
                for group in &set.groups.clone() {
                    if let Scope::Matching(pattern) = group.scope {
                        match self.matches(pattern, name) {
                            Some(true) => parts.push(group.term),
                            Some(false) => {}
                            None => set.loose = true,
                        }
                    }
                }
                let term = self.all(parts);
                set.properties.push(Property {
                    name: name.as_str().into(),
                    term,
                    required: false,
                });
            }
        }
        match members.get("required") {
            None => {}
            Some(Value::Array(names)) => {
                self.sites.enforced(node, "required");
                for name in names {
                    let Some(name) = name.as_str() else {
                        return Err(self
                            .document
                            .malformed(node, "required holds something that is no name")
                            .into());
                    };
                    if let Some(index) = set.position(name) {
                        set.properties[index].required = true;
                    } else {
                        let mut loose = false;
                        let term = self.term_for(&set, name, &mut loose);
                        set.loose |= loose;
                        set.properties.push(Property {
                            name: name.into(),
                            term,
                            required: true,
                        });
                    }
                }
            }
            Some(_) => {
                self.sites
                    .annotation(node, "required", "it is no list of names");
            }
        }
        if let Some(term) = self.member_schema(node, "propertyNames")? {
            let site = self.sites.enforced(node, "propertyNames");
            set.origins.push(site);
            if term != ANY {
                set.names.push(term);
                let shape = self.shape(term)?;
                for index in 0..set.properties.len() {
                    let name = Rc::clone(&set.properties[index].name);
                    let mut admitted = false;
                    for names in &shape.strings {
                        admitted |= self.string_admits(names, &name).unwrap_or(true);
                    }
                    if !admitted {
                        set.properties[index].term = NEVER;
                    }
                }
            }
        }
        if let Some(min) = self.count(node, members, "minProperties")? {
            set.origins.push(self.sites.enforced(node, "minProperties"));
            set.min = min;
        }
        if let Some(max) = self.count(node, members, "maxProperties")? {
            set.origins.push(self.sites.enforced(node, "maxProperties"));
            set.max = Some(max);
        }
        Ok(Some(set))
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

    /// The keywords that apply other schemas to the same value.
    fn combinations(
        &mut self,
        node: NodeId,
        members: &'a Members,
        mut shape: Shape,
    ) -> Outcome<Shape> {
        for (key, value) in members {
            let key = key.as_str();
            let term = match key {
                "$ref" | "$recursiveRef" => {
                    let Some(reference) = value.as_str() else {
                        return Err(self.document.malformed(node, "$ref is no string").into());
                    };
                    let target = self.document.resolve(node, reference)?;
                    self.schema(target)?
                }
                "$dynamicRef" => {
                    let reference = value.as_str().unwrap_or_default();
                    let name = reference.strip_prefix('#').unwrap_or_default();
                    let target = self.document.resolve(node, reference)?;
                    // Without a dynamic anchor of that name it is an ordinary reference.
                    let plain = self.document.value(target).get("$dynamicAnchor")
                        != Some(&Value::String(name.to_owned()));
                    let site = self.sites.enforced(node, key);
                    self.sites
                        .check(site, "which schema it means may depend on the path to it");
                    match self.document.dynamic_anchor(name) {
                        _ if plain => self.schema(target)?,
                        Some(target) => self.schema(target)?,
                        None => {
                            shape.loosen();
                            continue;
                        }
                    }
                }
                "allOf" => {
                    let parts = self.schema_list(node, key)?;
                    let site = self.sites.enforced(node, key);
                    for part in parts {
                        let other = self.shape(part)?;
                        shape = self.intersection(&shape, &other, Some(site))?;
                    }
                    continue;
                }
                "anyOf" => {
                    let parts = self.schema_list(node, key)?;
                    self.some(parts)
                }
                "oneOf" => {
                    let site = self.sites.enforced(node, key);
                    let parts = self.schema_list(node, key)?;
                    let other = self.one_of(&parts, &shape, site)?;
                    shape = self.intersection(&shape, &other, Some(site))?;
                    continue;
                }
                "not" => {
                    let Some(term) = self.member_schema(node, key)? else {
                        continue;
                    };
                    let site = self.sites.enforced(node, key);
                    let negated = self.not(term);
                    let other = self.shape(negated)?;
                    let narrowed = self.intersection(&shape, &other, Some(site))?;
                    if !narrowed.is_exact() && shape.is_exact() {
                        self.sites
                            .check(site, "its opposite cannot be written down");
                    }
                    shape = narrowed;
                    continue;
                }
                "if" => {
                    if !members.contains_key("then") && !members.contains_key("else") {
                        continue;
                    }
                    let condition = self.member_schema(node, "if")?.unwrap_or(ANY);
                    let then = self.member_schema(node, "then")?.unwrap_or(ANY);
                    let otherwise = self.member_schema(node, "else")?.unwrap_or(ANY);
                    let site = self.sites.enforced(node, key);
                    for key in ["then", "else"] {
                        if members.contains_key(key) {
                            self.sites.enforced(node, key);
                        }
                    }
                    let negated = self.not(condition);
                    if !self.shape(negated)?.is_exact() {
                        self.sites
                            .check(site, "its opposite cannot be written down");
                    }
                    let first = self.all([condition, then]);
                    let second = self.all([negated, otherwise]);
                    self.some([first, second])
                }
                "dependencies" | "dependentRequired" | "dependentSchemas" => {
                    let site = self.sites.enforced(node, key);
                    let Some(list) = self.document.member(node, key) else {
                        continue;
                    };
                    let Value::Object(entries) = self.document.value(list) else {
                        return Err(self
                            .document
                            .malformed(list, format!("{key} is no object"))
                            .into());
                    };
                    for (name, value) in entries {
                        let wanted = match value {
                            Value::Array(names) => {
                                let mut parts = Vec::new();
                                for other in names.iter().filter_map(Value::as_str) {
                                    parts.push(self.presence(other, true));
                                }
                                self.all(parts)
                            }
                            Value::String(other) => self.presence(other, true),
                            _ => self.member_schema(list, name)?.unwrap_or(ANY),
                        };
                        if wanted == ANY {
                            continue;
                        }
                        let absent = self.presence(name, false);
                        let present = self.presence(name, true);
                        let both = self.all([present, wanted]);
                        let either = self.some([absent, both]);
                        let other = self.shape(either)?;
                        shape = self.intersection(&shape, &other, Some(site))?;
                    }
                    continue;
                }
                _ => {
                    self.unknown_keyword(node, key);
                    continue;
                }
            };
            let site = self.sites.enforced(node, key);
            let other = self.shape(term)?;
            shape = self.intersection(&shape, &other, Some(site))?;
        }
        Ok(shape)
    }

    fn unknown_keyword(&mut self, node: NodeId, key: &'a str) {
        const KNOWN: [&str; 34] = [
            "type",
            "enum",
            "const",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "pattern",
            "format",
            "minItems",
            "maxItems",
            "items",
            "prefixItems",
            "additionalItems",
            "unevaluatedItems",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "unevaluatedProperties",
            "if",
            "then",
            "else",
            "not",
        ];
        if !KNOWN.contains(&key) && !SILENT.contains(&key) {
            self.sites
                .annotation(node, key, "this keyword is not known to the standard");
        }
    }

    /// What exactly one of `parts` admits, within `outer`.
    fn one_of(&mut self, parts: &[TermId], outer: &Shape, site: SiteId) -> Outcome<Shape> {
        let mut shapes: Vec<Shape> = Vec::with_capacity(parts.len());
        for &part in parts {
            let shape = self.shape(part)?;
            shapes.push(self.intersection(outer, &shape, Some(site))?);
        }
        let mut out = Shape::default();
        if parts.len() > MAX_PAIRS {
            self.sites.check(
                site,
                "too many branches to prove that they exclude each other",
            );
            for shape in &shapes {
                unite(&mut out, shape);
            }
            out.loosen();
            return Ok(out);
        }
        let mut overlaps = vec![Vec::new(); parts.len()];
        for i in 0..parts.len() {
            for j in 0..i {
                if !self.are_disjoint(&shapes[i], &shapes[j])? {
                    overlaps[i].push(j);
                    overlaps[j].push(i);
                }
            }
        }
        for (index, shape) in shapes.iter().enumerate() {
            let mut own = shape.clone();
            for &other in &overlaps[index] {
                let exact = own.is_exact();
                let negated = self.not(parts[other]);
                let negated = self.shape(negated)?;
                own = self.intersection(&own, &negated, Some(site))?;
                if exact && !own.is_exact() {
                    self.sites.check(
                        site,
                        "the branches could not be proven to exclude each other",
                    );
                }
            }
            unite(&mut out, &own);
        }
        Ok(out)
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
