//! The keywords of arrays and objects.

use serde_json::Value;

use super::algebra::{Algebra, Outcome};
use super::document::NodeId;
use super::parse::Members;
use super::shape::{ANY, ArraySet, Contains, Group, ObjectSet, Property, Scope};
use super::text::ecma::PatternError;

impl<'a> Algebra<'a> {
    pub(super) fn array_keywords(
        &mut self,
        node: NodeId,
        members: &'a Members,
    ) -> Outcome<Option<ArraySet>> {
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

    pub(super) fn object_keywords(
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
}
