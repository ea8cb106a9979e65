//! What a simulated tool does, as data: what it wants, adds, sets, removes and gives.

use super::World;
use crate::call::Domains;
use crate::call::json::{same_value, spaced};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Items of a list of the world.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    /// JSON Pointer to the list.
    pub from: String,
    /// Members that an item has; `{argument}` stands for the call's argument, and what depends on
    /// an argument that was not given asks nothing.
    #[serde(default, rename = "where")]
    pub having: Map<String, Value>,
    /// The item itself, where it is no table.
    pub is: Option<Value>,
    /// Only this member of each item.
    pub pick: Option<String>,
    /// Only the first one, and not in a list.
    #[serde(default)]
    pub first: bool,
}

/// What must be so before a tool does anything.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Want {
    /// Something of this must be there.
    pub some: Option<Selection>,
    /// Nothing of this may be there.
    pub none: Option<Selection>,
    /// What the model is told otherwise.
    pub otherwise: String,
}

/// An item that is added to a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Add {
    /// JSON Pointer to the list.
    pub to: String,
    /// The item; `{#}` stands for its number in the list, from 1.
    pub value: Value,
}

/// Members of items that are set.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    /// Which items.
    pub of: Selection,
    /// Their new members.
    pub value: Map<String, Value>,
}

/// All that a tool does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rules {
    pub domains: BTreeMap<String, Selection>,
    pub require: Vec<Want>,
    pub add: Vec<Add>,
    pub set: Vec<Set>,
    pub remove: Vec<Selection>,
    pub give: Map<String, Value>,
    pub check: Option<Selection>,
}

type Arguments = Map<String, Value>;

impl Rules {
    /// The lists that the rules name.
    pub(super) fn lists(&self) -> Vec<&str> {
        let wants = self
            .require
            .iter()
            .flat_map(|want| [&want.some, &want.none]);
        let selections = wants
            .flatten()
            .chain(self.domains.values())
            .chain(self.set.iter().map(|set| &set.of))
            .chain(&self.remove)
            .chain(&self.check);
        selections
            .map(|selection| selection.from.as_str())
            .chain(self.add.iter().map(|add| add.to.as_str()))
            .collect()
    }

    /// Whether anything is changed.
    pub(super) fn changes(&self) -> bool {
        !(self.add.is_empty() && self.set.is_empty() && self.remove.is_empty())
    }

    pub(super) fn domains(&self, world: &World) -> Domains {
        let nothing = Arguments::new();
        self.domains
            .iter()
            .map(|(argument, selection)| {
                let mut values: Vec<Value> = Vec::new();
                for value in selection.all(world, &nothing) {
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                (argument.clone(), values)
            })
            .collect()
    }

    /// # Errors
    /// What the first unfulfilled want says.
    pub(super) fn require(&self, world: &World, arguments: &Arguments) -> Result<(), String> {
        let failed = self.require.iter().find(|want| {
            let some = want.some.as_ref();
            let none = want.none.as_ref();
            some.is_some_and(|some| some.all(world, arguments).is_empty())
                || none.is_some_and(|none| !none.all(world, arguments).is_empty())
        });
        match failed {
            None => Ok(()),
            Some(want) => Err(text_of(&filled(
                &Value::String(want.otherwise.clone()),
                arguments,
                None,
            ))),
        }
    }

    /// Changes the world; says what changed, one line each.
    pub(super) fn change(&self, world: &mut World, arguments: &Arguments) -> Vec<String> {
        let mut changes = Vec::new();
        for set in &self.set {
            let name = name_of(&set.of.from);
            for item in items_mut(world, &set.of.from) {
                if !set.of.selects(item, arguments) {
                    continue;
                }
                let Some(members) = item.as_object_mut() else {
                    continue;
                };
                for (key, value) in &set.value {
                    let value = filled(value, arguments, None);
                    let before = members.insert(key.clone(), value.clone());
                    if before.as_ref() != Some(&value) {
                        let before = before.as_ref().map_or_else(|| "nothing".into(), spaced);
                        changes.push(format!("{name}: {key}: {before} → {}", spaced(&value)));
                    }
                }
            }
        }
        for remove in &self.remove {
            let name = name_of(&remove.from);
            if let Some(Value::Array(items)) = world.pointer_mut(&remove.from) {
                items.retain(|item| {
                    let gone = remove.selects(item, arguments);
                    if gone {
                        changes.push(format!("{name}: − {}", spaced(item)));
                    }
                    !gone
                });
            }
        }
        for add in &self.add {
            if let Some(Value::Array(items)) = world.pointer_mut(&add.to) {
                let item = filled(&add.value, arguments, Some(items.len() + 1));
                changes.push(format!("{}: + {}", name_of(&add.to), spaced(&item)));
                items.push(item);
            }
        }
        changes
    }

    /// The result: each member a selection, or a value with its holes filled.
    pub(super) fn give(&self, world: &World, arguments: &Arguments) -> Value {
        let members = self.give.iter().map(|(name, what)| {
            let value = match selection_in(what) {
                Some(selection) => selection.value(world, arguments),
                None => filled(what, arguments, None),
            };
            (name.clone(), value)
        });
        Value::Object(members.collect())
    }

    /// Whether a call took effect; `None`: nothing says how to see it.
    pub(super) fn happened(&self, world: &World, arguments: &Arguments) -> Option<bool> {
        let check = self.check.as_ref()?;
        Some(!check.all(world, arguments).is_empty())
    }
}

/// A member of `give` that is a selection: a table with `from`.
pub(super) fn selection_in(what: &Value) -> Option<Selection> {
    what.get("from")?;
    Selection::deserialize(what).ok()
}

impl Selection {
    fn selects(&self, item: &Value, arguments: &Arguments) -> bool {
        let same = |wanted: &Value, found: Option<&Value>| {
            let hole = only_hole(wanted);
            if hole.is_some_and(|name| !arguments.contains_key(name)) {
                return true;
            }
            let wanted = filled(wanted, arguments, None);
            found.is_some_and(|found| same_value(found, &wanted))
        };
        self.is.as_ref().is_none_or(|is| same(is, Some(item)))
            && self
                .having
                .iter()
                .all(|(key, wanted)| same(wanted, item.get(key)))
    }

    fn all(&self, world: &World, arguments: &Arguments) -> Vec<Value> {
        let Some(Value::Array(items)) = world.pointer(&self.from) else {
            return Vec::new();
        };
        let chosen = items.iter().filter(|item| self.selects(item, arguments));
        chosen
            .filter_map(|item| match &self.pick {
                Some(member) => item.get(member),
                None => Some(item),
            })
            .cloned()
            .collect()
    }

    fn value(&self, world: &World, arguments: &Arguments) -> Value {
        // What is no list is given as it is.
        match world.pointer(&self.from) {
            Some(Value::Array(_)) => {}
            other => return other.cloned().unwrap_or_default(),
        }
        let mut all = self.all(world, arguments);
        if self.first {
            all.drain(..).next().unwrap_or_default()
        } else {
            Value::Array(all)
        }
    }
}

fn items_mut<'w>(world: &'w mut World, pointer: &str) -> &'w mut [Value] {
    match world.pointer_mut(pointer) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}

/// The last part of a pointer, for people.
fn name_of(pointer: &str) -> &str {
    pointer.rsplit('/').next().unwrap_or(pointer)
}

/// The name in a text that is one hole and nothing else.
fn only_hole(value: &Value) -> Option<&str> {
    let name = value.as_str()?.strip_prefix('{')?.strip_suffix('}')?;
    (!name.contains(['{', '}'])).then_some(name)
}

/// `template` with its holes filled: a text that is one hole becomes the argument itself.
fn filled(template: &Value, arguments: &Arguments, number: Option<usize>) -> Value {
    match template {
        Value::String(text) => {
            if let Some(value) = only_hole(template).and_then(|name| arguments.get(name)) {
                return value.clone();
            }
            let mut out = String::with_capacity(text.len());
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once('{') {
                out.push_str(before);
                let hole = after.split_once('}').and_then(|(name, after)| {
                    let text = match (name, number) {
                        ("#", Some(number)) => number.to_string(),
                        (name, _) => text_of(arguments.get(name)?),
                    };
                    Some((text, after))
                });
                match hole {
                    Some((text, after)) => {
                        out.push_str(&text);
                        rest = after;
                    }
                    None => {
                        out.push('{');
                        rest = after;
                    }
                }
            }
            out.push_str(rest);
            Value::String(out)
        }
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| filled(item, arguments, number))
                .collect(),
        ),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), filled(value, arguments, number)))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => spaced(other),
    }
}
