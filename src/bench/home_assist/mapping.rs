//! A home of theirs as a house of ours, and what cannot be carried over.
//!
//! Brightness is theirs of 0 to 255 and ours in percent. A media player is on while it plays, a
//! robot is on while it cleans: what their states say beyond that (paused, volume, track) has no
//! counterpart, and a request that is about it is not mapped. A fan's percentage is implied by on
//! (100) and off (0).

use super::dataset::{Case, Condition, Entity, Home};
use crate::tool::home::{Capability, Key, Kind};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The states of a house's devices.
pub type States = BTreeMap<String, Map<String, Value>>;

/// A request's world.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// The house file.
    pub house: String,
    /// The devices' states before.
    pub before: States,
    /// The devices' states as they should be afterwards.
    pub after: States,
    /// Parts of states that do not matter afterwards: device and key.
    pub ignored: BTreeSet<(String, &'static str)>,
    /// Their entities that the house does not have.
    pub left_out: Vec<String>,
}

impl World {
    /// Whether nothing may change.
    pub fn is_unchanged(&self) -> bool {
        self.before
            .keys()
            .all(|device| self.differing(device, &self.before, &self.after).is_empty())
    }

    /// The parts of a device's state in which two states of the house differ, as far as they
    /// matter.
    pub fn differing(&self, device: &str, one: &States, other: &States) -> Vec<&'static str> {
        let part = |states: &States, key: Key| {
            let value = states.get(device)?.get(key.as_str())?;
            Some(value.clone())
        };
        KEYS.into_iter()
            .filter(|key| !self.ignored.contains(&(device.to_owned(), key.as_str())))
            .filter(|key| match (part(one, *key), part(other, *key)) {
                (Some(a), Some(b)) => !crate::call::json::same_value(&a, &b),
                (a, b) => a != b,
            })
            .map(Key::as_str)
            .collect()
    }
}

/// Every part that a device's state can have.
const KEYS: [Key; 9] = [
    Key::On,
    Key::Brightness,
    Key::Temperature,
    Key::Current,
    Key::Locked,
    Key::Open,
    Key::Position,
    Key::Value,
    Key::Unit,
];

/// What a device of theirs is here.
struct Device<'h> {
    entity: &'h Entity,
    id: String,
    kind: Kind,
    capabilities: Vec<Capability>,
}

/// The world of a request.
///
/// # Errors
/// What the request is about that has no counterpart here.
pub fn map(case: &Case) -> Result<World, String> {
    if case.context_device.is_some() {
        return Err("it depends on the device that it is said to".to_owned());
    }
    let (devices, left_out) = devices(&case.home);
    let nothing = Condition::default();
    let mut before = States::new();
    let mut after = States::new();
    let mut ignored = BTreeSet::new();
    for id in case.expected.keys() {
        if left_out.contains(id) {
            return Err(format!("{} has no counterpart", domain(id)));
        }
    }
    for device in &devices {
        let entity = device.entity;
        let setup = case.setup.get(&entity.id).unwrap_or(&nothing);
        let mut condition = entity.condition.changed(setup);
        if setup.state.is_some() && !setup.attributes.contains_key("current_position") {
            condition.attributes.shift_remove("current_position");
        }
        before.insert(device.id.clone(), device.state(&condition)?);
        let expected = case.expected.get(&entity.id).unwrap_or(&nothing);
        device.can_be(expected)?;
        after.insert(
            device.id.clone(),
            device.state(&condition.changed(expected))?,
        );
        for name in case.ignored.get(&entity.id).into_iter().flatten() {
            if let Some(key) = device.key_of(name) {
                ignored.insert((device.id.clone(), key.as_str()));
            }
        }
        if expected.state.is_some() && !expected.attributes.contains_key("current_position") {
            ignored.insert((device.id.clone(), Key::Position.as_str()));
        }
    }
    Ok(World {
        house: house(&case.home, &devices, &before)?,
        before,
        after,
        ignored,
        left_out,
    })
}

/// The entities that the house has as devices, and those that it does not have.
fn devices(home: &Home) -> (Vec<Device<'_>>, Vec<String>) {
    let mut devices: Vec<Device<'_>> = Vec::new();
    let mut left_out = Vec::new();
    for entity in &home.entities {
        let Some((kind, capabilities)) = kind_of(entity) else {
            left_out.push(entity.id.clone());
            continue;
        };
        let taken = |id: &str| devices.iter().any(|device| device.id == id);
        let mut id: String = entity.name.trim().chars().take(64).collect();
        if id.is_empty() || taken(&id) {
            // A device with two entities, such as a garage door with its light.
            id = format!("{} {}", entity.name.trim(), domain(&entity.id));
        }
        if taken(&id) {
            id.clone_from(&entity.id);
        }
        devices.push(Device {
            entity,
            id,
            kind,
            capabilities,
        });
    }
    (devices, left_out)
}

fn domain(entity: &str) -> &str {
    entity.split_once('.').map_or(entity, |(domain, _)| domain)
}

fn kind_of(entity: &Entity) -> Option<(Kind, Vec<Capability>)> {
    let attributes = &entity.condition.attributes;
    let class = attributes.get("device_class").and_then(Value::as_str);
    let class_ends = |word: &str| class.is_some_and(|class| class.to_uppercase().ends_with(word));
    let has = |list: &str, word: &str| match attributes.get(list) {
        Some(Value::Array(items)) => items
            .iter()
            .any(|item| item.as_str().is_some_and(|item| item.ends_with(word))),
        Some(Value::String(item)) => item.ends_with(word),
        _ => false,
    };
    let position = || {
        let able = has("supported_features", "SET_POSITION");
        Vec::from_iter(able.then_some(Capability::Position))
    };
    Some(match domain(&entity.id) {
        "light" => {
            let dims = has("supported_color_modes", "brightness");
            let capability = dims.then_some(Capability::Brightness);
            (Kind::Light, Vec::from_iter(capability))
        }
        "switch" if class_ends("OUTLET") => (Kind::Plug, Vec::new()),
        "switch" => (Kind::Switch, Vec::new()),
        "fan" => (Kind::Fan, Vec::new()),
        "media_player" => (Kind::MediaPlayer, Vec::new()),
        "vacuum" => (Kind::Vacuum, Vec::new()),
        "climate" => (Kind::Thermostat, vec![Capability::OnOff]),
        "lock" => (Kind::Lock, Vec::new()),
        "cover" if class_ends("GARAGE") => (Kind::GarageDoor, position()),
        "cover" if class_ends("WINDOW") => (Kind::Window, position()),
        "cover" => (Kind::Cover, position()),
        "valve" => (Kind::Valve, position()),
        "sensor" | "binary_sensor" => (Kind::Sensor, Vec::new()),
        _ => return None,
    })
}

impl Device<'_> {
    fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// The part of our state that one of their attributes is.
    fn key_of(&self, name: &str) -> Option<Key> {
        match name {
            "state" => Some(match self.kind {
                Kind::Lock => Key::Locked,
                Kind::Cover | Kind::GarageDoor | Kind::Window | Kind::Valve => Key::Open,
                Kind::Sensor => Key::Value,
                _ => Key::On,
            }),
            "brightness" => Some(Key::Brightness),
            "current_position" => Some(Key::Position),
            "temperature" | "target_temperature" => Some(Key::Temperature),
            _ => None,
        }
    }

    /// Whether our device can be what is expected of it.
    fn can_be(&self, expected: &Condition) -> Result<(), String> {
        for (name, value) in &expected.attributes {
            let known = match (self.kind, name.as_str()) {
                (Kind::Light, "brightness") => self.has(Capability::Brightness),
                (_, "current_position") => self.has(Capability::Position),
                (Kind::Thermostat, "temperature" | "target_temperature") => true,
                (Kind::Fan, "percentage") => {
                    let on = expected.state.as_ref().and_then(Value::as_str);
                    matches!(
                        (on, value.as_i64()),
                        (Some("on"), Some(100)) | (Some("off"), Some(0))
                    )
                }
                _ => false,
            };
            if !known {
                return Err(format!(
                    "{}.{name} has no counterpart",
                    domain(&self.entity.id)
                ));
            }
        }
        Ok(())
    }

    /// Our state of a device in this condition.
    fn state(&self, condition: &Condition) -> Result<Map<String, Value>, String> {
        let unknown = |state: &Value| {
            let domain = domain(&self.entity.id);
            format!("a {domain} that is {state} has no counterpart")
        };
        let state = condition.state.as_ref();
        let number = |name: &str| condition.attributes.get(name).and_then(Value::as_f64);
        let mut parts = Map::new();
        let mut set = |key: Key, value: Value| parts.insert(key.as_str().to_owned(), value);
        let truth = |words: [&[&str]; 2]| match state {
            None => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(*truth)),
            Some(Value::String(word)) if words[0].contains(&word.as_str()) => Ok(Some(true)),
            Some(Value::String(word)) if words[1].contains(&word.as_str()) => Ok(Some(false)),
            Some(other) => Err(unknown(other)),
        };
        match self.kind {
            Kind::Light => {
                set(Key::On, truth([&["on"], &["off"]])?.unwrap_or(false).into());
                if self.has(Capability::Brightness) {
                    let level = number("brightness").unwrap_or_default() / 255.0 * 100.0;
                    set(Key::Brightness, percent(level));
                }
            }
            Kind::Switch | Kind::Plug | Kind::Fan => {
                set(Key::On, truth([&["on"], &["off"]])?.unwrap_or(false).into());
            }
            Kind::MediaPlayer => {
                let on = truth([&["playing", "on"], &["off", "standby"]])?;
                set(Key::On, on.unwrap_or(false).into());
            }
            Kind::Vacuum => {
                let on = truth([&["cleaning"], &["off", "docked", "idle", "returning"]])?;
                set(Key::On, on.unwrap_or(false).into());
            }
            Kind::Thermostat => {
                let target = number("temperature").or(number("target_temperature"));
                set(Key::Temperature, degrees(target));
                set(Key::Current, degrees(number("current_temperature")));
                let mode = condition
                    .attributes
                    .get("hvac_mode")
                    .and_then(Value::as_str);
                set(Key::On, (mode.unwrap_or("off") != "off").into());
            }
            Kind::Lock => {
                let locked = truth([&["locked"], &["unlocked"]])?;
                set(Key::Locked, locked.unwrap_or(true).into());
            }
            Kind::Cover | Kind::GarageDoor | Kind::Window | Kind::Valve => {
                let position = number("current_position");
                let open = truth([&["open"], &["closed"]])?;
                let open = open.unwrap_or(position.unwrap_or_default() > 0.0);
                set(Key::Open, open.into());
                if self.has(Capability::Position) {
                    let position = position.unwrap_or(if open { 100.0 } else { 0.0 });
                    set(Key::Position, percent(position));
                }
            }
            Kind::Sensor => {
                let value = match state {
                    Some(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) => {
                        value.clone()
                    }
                    _ => "unknown".into(),
                };
                set(Key::Value, value);
                let unit = ["unit_of_measurement", "native_unit_of_measurement"]
                    .into_iter()
                    .find_map(|name| condition.attributes.get(name)?.as_str());
                set(Key::Unit, unit.unwrap_or_default().into());
            }
        }
        Ok(parts)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the number lies between 0 and 100"
)]
fn percent(level: f64) -> Value {
    (level.clamp(0.0, 100.0).round() as i64).into()
}

fn degrees(number: Option<f64>) -> Value {
    json!(number.unwrap_or(20.0).clamp(-100.0, 200.0))
}

#[derive(Serialize)]
struct HouseText<'h> {
    name: &'h str,
    language: &'static str,
    area: Vec<AreaText<'h>>,
    device: Vec<DeviceText<'h>>,
}

#[derive(Serialize)]
struct AreaText<'h> {
    id: &'h str,
}

#[derive(Serialize)]
struct DeviceText<'h> {
    id: &'h str,
    kind: &'static str,
    area: &'h str,
    capabilities: Vec<&'static str>,
    state: &'h Map<String, Value>,
}

/// The area of what is in none.
const NOWHERE: &str = "elsewhere";

/// The house file.
fn house(home: &Home, devices: &[Device<'_>], states: &States) -> Result<String, String> {
    let area_of = |device: &Device<'_>| {
        home.areas
            .iter()
            .find(|area| Some(&area.id) == device.entity.area.as_ref())
            .map_or(NOWHERE, |area| area.name.trim())
    };
    let mut areas: Vec<&str> = home.areas.iter().map(|area| area.name.trim()).collect();
    areas.push(NOWHERE);
    let mut seen = BTreeSet::new();
    areas.retain(|area| seen.insert(*area));
    let empty = Map::new();
    let text = HouseText {
        name: &home.name,
        language: "en",
        area: areas.into_iter().map(|id| AreaText { id }).collect(),
        device: devices
            .iter()
            .map(|device| DeviceText {
                id: &device.id,
                kind: device.kind.as_str(),
                area: area_of(device),
                capabilities: device.capabilities.iter().map(|c| c.as_str()).collect(),
                state: states.get(&device.id).unwrap_or(&empty),
            })
            .collect(),
    };
    toml::to_string(&text).map_err(|error| format!("{}: {error}", home.name))
}
