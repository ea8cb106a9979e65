//! The keywords that apply other schemas to the same value.

use serde_json::Value;

use super::algebra::{Algebra, Outcome, unite};
use super::document::NodeId;
use super::parse::{Members, SILENT};
use super::shape::{ANY, Shape, SiteId, TermId};

/// Branches of `oneOf` that are compared pair by pair.
const MAX_PAIRS: usize = 40;

impl<'a> Algebra<'a> {
    /// The keywords that apply other schemas to the same value.
    pub(super) fn combinations(
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
                    shape = self.intersection(&shape, &other, Some(site))?;
                    if shape.is_loose_like(&other) {
                        self.sites
                            .check(site, "its opposite cannot be written down");
                    }
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
                let negated = self.not(parts[other]);
                let negated = self.shape(negated)?;
                own = self.intersection(&own, &negated, Some(site))?;
                if own.is_loose_like(&negated) {
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
