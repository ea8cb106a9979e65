//! Sets of one type of value: what two of them share, and what follows from impossible parts.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::algebra::{Algebra, COMBINED, Outcome};
use super::shape::{
    ArraySet, NEVER, ObjectSet, Property, Scope, SiteId, StringSet, TermId, merged, tighter,
};

impl Algebra<'_> {
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

    /// Reports that it cannot be told whether a text satisfies a pattern.
    fn unmatched(&mut self, origins: &[SiteId]) {
        let place = (self.document.root(), COMBINED);
        let why = "the pattern is too large for an automaton";
        self.sites.check_all(origins, place, why);
    }

    /// Strings that satisfy both sets.
    pub fn both_strings(&mut self, a: &StringSet, b: &StringSet) -> Option<StringSet> {
        self.string_intersection(a, b)
    }

    pub(super) fn string_intersection(
        &mut self,
        a: &StringSet,
        b: &StringSet,
    ) -> Option<StringSet> {
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
                        self.unmatched(&set.origins);
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

    pub(super) fn array_intersection(
        &mut self,
        a: &ArraySet,
        b: &ArraySet,
    ) -> Outcome<Option<ArraySet>> {
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

    pub(super) fn object_intersection(
        &mut self,
        a: &ObjectSet,
        b: &ObjectSet,
    ) -> Outcome<Option<ObjectSet>> {
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

    /// Properties whose names are not admitted cannot be there.
    fn name_properties(&mut self, set: &mut ObjectSet) -> Outcome<()> {
        for at in 0..set.names.len() {
            let shape = self.shape(set.names[at])?;
            set.loose |= shape.strings.iter().any(|names| names.loose);
            for property in &mut set.properties {
                let mut admitted = false;
                for names in &shape.strings {
                    match self.string_admits(names, &property.name) {
                        Some(answer) => admitted |= answer,
                        None => {
                            admitted = true;
                            set.loose = true;
                            self.unmatched(&names.origins);
                        }
                    }
                }
                if !admitted {
                    property.term = NEVER;
                }
            }
        }
        Ok(())
    }

    /// Draws the consequences of impossible properties.
    pub fn settled_object(&mut self, mut set: ObjectSet) -> Outcome<Option<ObjectSet>> {
        self.name_properties(&mut set)?;
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
                    self.unmatched(&set.origins);
                }
            }
        }
        self.all(parts)
    }
}
