//! What can be done in a house, as tools. Each offers only the devices that can do it.

use super::file::{Device, House, HouseError};
use super::kind::Key;
use super::say::say;
use super::store::HouseFile;
use crate::call::json::spaced;
use crate::call::{CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::{Outcome, Tool, ToolError, text_argument};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Something that can be done with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// On.
    TurnOn,
    /// Off.
    TurnOff,
    /// Dims a light.
    SetBrightness,
    /// Sets the target temperature.
    SetTemperature,
    /// Opens part of the way.
    SetPosition,
    /// Locks.
    Lock,
    /// Unlocks.
    Unlock,
    /// Opens.
    Open,
    /// Closes.
    Close,
    /// Reads.
    GetState,
}

impl Operation {
    /// Every operation, in the order in which the model is shown them.
    pub const ALL: [Self; 10] = [
        Self::TurnOn,
        Self::TurnOff,
        Self::SetBrightness,
        Self::SetTemperature,
        Self::SetPosition,
        Self::Lock,
        Self::Unlock,
        Self::Open,
        Self::Close,
        Self::GetState,
    ];

    /// The tool's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::TurnOn => "turn_on",
            Self::TurnOff => "turn_off",
            Self::SetBrightness => "set_brightness",
            Self::SetTemperature => "set_temperature",
            Self::SetPosition => "set_position",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Open => "open",
            Self::Close => "close",
            Self::GetState => "get_state",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::TurnOn => "Turn a device on.",
            Self::TurnOff => "Turn a device off.",
            Self::SetBrightness => "Set the brightness of a light, in percent.",
            Self::SetTemperature => {
                "Set the target temperature of a thermostat, in degrees Celsius."
            }
            Self::SetPosition => "Set how far a device is open, in percent.",
            Self::Lock => "Lock a lock.",
            Self::Unlock => "Unlock a lock.",
            Self::Open => "Open a cover, garage door, window or valve.",
            Self::Close => "Close a cover, garage door, window or valve.",
            Self::GetState => "Read the state of a device or the value of a sensor.",
        }
    }

    fn effect(self) -> Effect {
        match self {
            Self::GetState => Effect::Read,
            Self::Unlock => Effect::Risk,
            Self::TurnOn
            | Self::TurnOff
            | Self::SetBrightness
            | Self::SetTemperature
            | Self::SetPosition
            | Self::Lock
            | Self::Open
            | Self::Close => Effect::Change,
        }
    }

    /// The part of the state that a device must have; `None`: every device can do it.
    fn key(self) -> Option<Key> {
        match self {
            Self::TurnOn | Self::TurnOff => Some(Key::On),
            Self::SetBrightness => Some(Key::Brightness),
            Self::SetTemperature => Some(Key::Temperature),
            Self::SetPosition => Some(Key::Position),
            Self::Lock | Self::Unlock => Some(Key::Locked),
            Self::Open | Self::Close => Some(Key::Open),
            Self::GetState => None,
        }
    }

    /// The argument beside the device, and its schema.
    fn value(self) -> Option<(&'static str, Value)> {
        let percent = json!({"type": "integer", "minimum": 0, "maximum": 100});
        match self {
            Self::SetBrightness => Some(("brightness", percent)),
            Self::SetPosition => Some(("position", percent)),
            Self::SetTemperature => Some((
                "temperature",
                json!({"type": "number", "minimum": 5, "maximum": 30}),
            )),
            Self::TurnOn
            | Self::TurnOff
            | Self::Lock
            | Self::Unlock
            | Self::Open
            | Self::Close
            | Self::GetState => None,
        }
    }

    /// The tool as the model and the gate see it.
    pub fn spec(self) -> ToolSpec {
        let mut properties = Map::new();
        properties.insert("device".into(), json!({"type": "string"}));
        if let Some((name, schema)) = self.value() {
            properties.insert(name.into(), schema);
        }
        let required: Vec<&String> = properties.keys().collect();
        let parameters = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        ToolSpec {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            parameters,
            effect: self.effect(),
            idempotent: true,
        }
    }

    /// Whether this device can do it.
    pub fn fits(self, device: &Device) -> bool {
        self.key().is_none_or(|key| device.has(key))
    }

    /// What the device's state becomes. Levels and switches agree: a light set to a brightness is
    /// on, at zero it is off; a blind that is open is open wholly.
    fn parts(self, device: &Device, value: Option<Value>) -> Vec<(Key, Value)> {
        let value = value.unwrap_or_default();
        let above_zero = value.as_f64().is_some_and(|level| level > 0.0);
        let parts = match self {
            Self::TurnOn => vec![(Key::On, json!(true))],
            Self::TurnOff => vec![(Key::On, json!(false))],
            Self::SetBrightness => {
                vec![(Key::Brightness, value), (Key::On, json!(above_zero))]
            }
            Self::SetTemperature => vec![(Key::Temperature, value)],
            Self::SetPosition => vec![(Key::Position, value), (Key::Open, json!(above_zero))],
            Self::Lock => vec![(Key::Locked, json!(true))],
            Self::Unlock => vec![(Key::Locked, json!(false))],
            Self::Open => vec![(Key::Open, json!(true)), (Key::Position, json!(100))],
            Self::Close => vec![(Key::Open, json!(false)), (Key::Position, json!(0))],
            Self::GetState => Vec::new(),
        };
        parts
            .into_iter()
            .filter(|(key, _)| device.has(*key))
            .collect()
    }
}

/// One operation on a house.
#[derive(Debug)]
pub struct HomeTool {
    house: Arc<HouseFile>,
    operation: Operation,
    spec: ToolSpec,
}

/// The tools of a house, one an operation.
pub fn tools(house: &Arc<HouseFile>) -> Vec<Box<dyn Tool>> {
    Operation::ALL
        .into_iter()
        .map(|operation| {
            Box::new(HomeTool {
                house: Arc::clone(house),
                operation,
                spec: operation.spec(),
            }) as Box<dyn Tool>
        })
        .collect()
}

impl Tool for HomeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let house: Arc<House> = self.house.house()?;
        let devices = house
            .devices
            .iter()
            .filter(|device| self.operation.fits(device))
            .map(|device| Value::from(device.id.as_str()))
            .collect();
        Ok(Domains::from([("device".to_owned(), devices)]))
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let id = text_argument(call, "device")?;
        if self.operation == Operation::GetState {
            let house = self.house.house()?;
            let device = house.device(id).ok_or_else(|| HouseError::Gone {
                device: id.to_owned(),
            })?;
            return Ok(Outcome {
                result: described(
                    device,
                    house.language.as_deref().unwrap_or_default(),
                    |_| true,
                    false,
                ),
                changes: Vec::new(),
            });
        }
        let value = self
            .operation
            .value()
            .and_then(|(name, _)| call.call().arguments.get(name))
            .map(whole);
        let mut touched = Vec::new();
        let (device, changes) = self.house.set(id, |device| {
            let parts = self.operation.parts(device, value);
            touched = parts.iter().map(|(key, _)| *key).collect();
            parts
        })?;
        let language = self.house.house()?.language.clone().unwrap_or_default();
        Ok(Outcome {
            result: described(
                &device,
                &language,
                |key| touched.contains(&key),
                changes.is_empty(),
            ),
            changes: changes
                .iter()
                .map(|change| {
                    format!(
                        "{id}: {}: {} → {}",
                        change.key.as_str(),
                        spaced(&change.from),
                        spaced(&change.to)
                    )
                })
                .collect(),
        })
    }
}

/// `{"device": …, …, "text": …}` with these parts of its state; the text says them in words.
fn described(
    device: &Device,
    language: &str,
    which: impl Fn(Key) -> bool,
    unchanged: bool,
) -> Value {
    let mut result = Map::new();
    result.insert("device".into(), device.id.as_str().into());
    for key in device.keys().filter(|&key| which(key)) {
        let value = device.state.get(key.as_str()).cloned().unwrap_or_default();
        result.insert(key.as_str().into(), value);
    }
    if unchanged {
        result.insert("unchanged".into(), true.into());
    }
    result.insert("text".into(), say(device, language, which).into());
    Value::Object(result)
}

/// `50.0` as `50`: JSON Schema calls both an integer, a house file does not.
#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers within i64's exact range are converted"
)]
fn whole(value: &Value) -> Value {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 9e15 => Value::from(number as i64),
        _ => value.clone(),
    }
}

impl From<HouseError> for ToolError {
    fn from(error: HouseError) -> Self {
        let message = error.to_string();
        match error {
            HouseError::Unsynced { .. } => Self::unknown(message),
            HouseError::Save { .. } | HouseError::Lock { .. } => Self::storage(message),
            HouseError::Read(_)
            | HouseError::TooLarge { .. }
            | HouseError::Invalid { .. }
            | HouseError::Held { .. }
            | HouseError::Gone { .. } => Self::new(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Approval, Call, FailureKind, Moves, Policy, Verdict};
    use crate::tool::Registry;

    const HOUSE: &str = r#"name = "Test"
[[area]]
id = "all"
[[device]]
id = "lamp"
kind = "light"
area = "all"
capabilities = ["brightness"]
state = { on = false, brightness = 60 }
[[device]]
id = "свет"
kind = "light"
area = "all"
state = { on = true }
[[device]]
id = "heating"
kind = "thermostat"
area = "all"
capabilities = ["on_off"]
state = { temperature = 20, current = 18.5, on = true }
[[device]]
id = "radiator"
kind = "thermostat"
area = "all"
state = { temperature = 20, current = 18.5 }
[[device]]
id = "front door"
kind = "lock"
area = "all"
state = { locked = true }
[[device]]
id = "blind"
kind = "cover"
area = "all"
capabilities = ["position"]
state = { open = true, position = 40 }
[[device]]
id = "garage"
kind = "garage_door"
area = "all"
state = { open = false }
[[device]]
id = "rain"
kind = "sensor"
area = "all"
state = { value = false, unit = "" }
"#;

    fn registry() -> (tempfile::TempDir, Registry, Arc<HouseFile>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.toml");
        fs_err::write(&path, HOUSE).unwrap();
        let house = Arc::new(HouseFile::open(&path).unwrap());
        let mut registry = Registry::new();
        registry.register_all(tools(&house)).unwrap();
        (folder, registry, house)
    }

    fn devices(moves: &Moves, tool: &str) -> Vec<String> {
        let domain = &moves.find(tool).unwrap().domains["device"];
        domain
            .iter()
            .map(|v| v.as_str().unwrap().to_owned())
            .collect()
    }

    fn run(registry: &mut Registry, tool: &str, arguments: &Value) -> Result<Outcome, FailureKind> {
        let moves = registry.moves(&Policy::default()).unwrap();
        let call = Call {
            tool: tool.into(),
            arguments: arguments.as_object().unwrap().clone(),
        };
        let checked = match moves.check(call).map_err(|failure| failure.kind)? {
            Verdict::Checked(checked) => checked,
            Verdict::Ask(pending) => pending.approve(Approval::Person),
        };
        Ok(registry.run(&checked).unwrap())
    }

    #[test]
    fn each_tool_offers_the_devices_that_can_do_it() {
        let (_folder, registry, _) = registry();
        let moves = registry.moves(&Policy::default()).unwrap();
        let cases: [(&str, &[&str]); 10] = [
            ("turn_on", &["lamp", "свет", "heating"]),
            ("turn_off", &["lamp", "свет", "heating"]),
            ("set_brightness", &["lamp"]),
            ("set_temperature", &["heating", "radiator"]),
            ("set_position", &["blind"]),
            ("lock", &["front door"]),
            ("unlock", &["front door"]),
            ("open", &["blind", "garage"]),
            ("close", &["blind", "garage"]),
            (
                "get_state",
                &[
                    "lamp",
                    "свет",
                    "heating",
                    "radiator",
                    "front door",
                    "blind",
                    "garage",
                    "rain",
                ],
            ),
        ];
        for (tool, expected) in cases {
            assert_eq!(devices(&moves, tool), expected, "{tool}");
        }
    }

    #[test]
    fn calls_change_the_house() {
        let (_folder, mut registry, house) = registry();
        let cases: [(&str, Value, Value, &[&str]); 13] = [
            (
                "turn_on",
                json!({"device": "lamp"}),
                json!({"device": "lamp", "on": true}),
                &["lamp: on: false → true"],
            ),
            (
                "turn_on",
                json!({"device": "lamp"}),
                json!({"device": "lamp", "on": true, "unchanged": true}),
                &[],
            ),
            (
                "set_brightness",
                json!({"device": "lamp", "brightness": 0}),
                json!({"device": "lamp", "on": false, "brightness": 0}),
                &["lamp: brightness: 60 → 0", "lamp: on: true → false"],
            ),
            (
                "set_brightness",
                json!({"device": "lamp", "brightness": 50.0}),
                json!({"device": "lamp", "on": true, "brightness": 50}),
                &["lamp: brightness: 0 → 50", "lamp: on: false → true"],
            ),
            (
                "turn_off",
                json!({"device": "свет"}),
                json!({"device": "свет", "on": false}),
                &["свет: on: true → false"],
            ),
            (
                "set_temperature",
                json!({"device": "heating", "temperature": 21.5}),
                json!({"device": "heating", "temperature": 21.5}),
                &["heating: temperature: 20 → 21.5"],
            ),
            (
                "unlock",
                json!({"device": "front door"}),
                json!({"device": "front door", "locked": false}),
                &["front door: locked: true → false"],
            ),
            (
                "lock",
                json!({"device": "front door"}),
                json!({"device": "front door", "locked": true}),
                &["front door: locked: false → true"],
            ),
            (
                "open",
                json!({"device": "blind"}),
                json!({"device": "blind", "open": true, "position": 100}),
                &["blind: position: 40 → 100"],
            ),
            (
                "set_position",
                json!({"device": "blind", "position": 0}),
                json!({"device": "blind", "open": false, "position": 0}),
                &["blind: position: 100 → 0", "blind: open: true → false"],
            ),
            (
                "open",
                json!({"device": "garage"}),
                json!({"device": "garage", "open": true}),
                &["garage: open: false → true"],
            ),
            (
                "close",
                json!({"device": "garage"}),
                json!({"device": "garage", "open": false}),
                &["garage: open: true → false"],
            ),
            (
                "get_state",
                json!({"device": "heating"}),
                json!({"device": "heating", "temperature": 21.5, "current": 18.5, "on": true}),
                &[],
            ),
        ];
        for (tool, arguments, result, changes) in cases {
            let mut outcome = run(&mut registry, tool, &arguments).unwrap();
            let said = outcome.result.as_object_mut().unwrap().shift_remove("text");
            let device = arguments["device"].as_str().unwrap();
            assert!(said.unwrap().as_str().unwrap().starts_with(device));
            assert_eq!(outcome.result, result, "{tool} {arguments}");
            assert_eq!(outcome.changes, changes, "{tool} {arguments}");
        }
        // Another process sees it.
        let other = HouseFile::open(house.path()).unwrap().house().unwrap();
        assert_eq!(other.device("lamp").unwrap().state["brightness"], 50);
    }

    #[test]
    fn what_cannot_be_done_never_runs() {
        let (_folder, mut registry, house) = registry();
        let cases = [
            (
                "turn_on",
                json!({"device": "rain"}),
                FailureKind::OutsideDomain,
            ),
            (
                "set_brightness",
                json!({"device": "lamp", "brightness": 101}),
                FailureKind::Constraint,
            ),
            (
                "set_brightness",
                json!({"device": "lamp"}),
                FailureKind::MissingArgument,
            ),
            (
                "set_temperature",
                json!({"device": "heating", "temperature": 90}),
                FailureKind::Constraint,
            ),
            (
                "set_temperature",
                json!({"device": "heating", "temperature": "20"}),
                FailureKind::WrongType,
            ),
            (
                "turn_on",
                json!({"device": "lamp", "room": "x"}),
                FailureKind::Constraint,
            ),
            ("explode", json!({}), FailureKind::UnknownTool),
        ];
        for (tool, arguments, kind) in cases {
            assert_eq!(run(&mut registry, tool, &arguments), Err(kind), "{tool}");
        }
        assert_eq!(fs_err::read_to_string(house.path()).unwrap(), HOUSE);
    }

    #[test]
    fn the_houses_that_ship_are_read() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/houses");
        let mut houses = 0;
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let house = HouseFile::open(&path).unwrap().house().unwrap();
            assert!(house.devices.len() > 3 && !house.areas.is_empty());
            houses += 1;
        }
        assert!(houses >= 3);
    }

    #[test]
    fn a_broken_house_is_an_error_with_its_line() {
        let (_folder, registry, house) = registry();
        fs_err::write(house.path(), HOUSE.replace("sensor", "robot")).unwrap();
        let error = registry.moves(&Policy::default()).unwrap_err();
        assert!(
            error.to_string().contains("h.toml:44: unknown kind"),
            "{error}"
        );
    }
}
