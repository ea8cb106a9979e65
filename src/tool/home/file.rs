//! Reads a house: every mistake is named with its line.

use super::kind::{Capability, Key, Kind};
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A house as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct House {
    /// Shown to people.
    pub name: String,
    /// BCP 47, informative.
    pub language: Option<String>,
    /// Rooms and the like.
    pub areas: Vec<Area>,
    /// Devices in the order of the file.
    pub devices: Vec<Device>,
}

/// A room or another part of the house.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// What the model sees; unique.
    pub id: String,
    /// Other names.
    pub aliases: Vec<String>,
}

/// A device and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// What the model reads and writes; unique.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// The id of its area.
    pub area: String,
    /// What it can do beyond its kind.
    pub capabilities: Vec<Capability>,
    /// Its state: exactly [`keys`](Self::keys), in that order.
    pub state: Map<String, Value>,
}

impl Device {
    /// What its state consists of.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        keys(self.kind, &self.capabilities)
    }

    /// Whether it has this key in its state.
    pub fn has(&self, key: Key) -> bool {
        self.keys().any(|has| has == key)
    }
}

impl House {
    /// The device of that id.
    pub fn device(&self, id: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == id)
    }
}

fn keys(kind: Kind, capabilities: &[Capability]) -> impl Iterator<Item = Key> {
    kind.keys()
        .iter()
        .copied()
        .chain(capabilities.iter().map(|capability| capability.key()))
}

/// What can be wrong with a house file.
#[derive(Debug, thiserror::Error)]
pub enum HouseError {
    /// It cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// It is larger than [`LARGEST`] bytes.
    #[error("{}: a house file has at most {LARGEST} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not TOML, or not a house.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// Another run acts on it.
    #[error("another run is acting on the house {}", path.display())]
    Held {
        /// The file.
        path: PathBuf,
    },
    /// Its lock file cannot be made.
    #[error("{}: cannot lock the house: {source}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new state cannot be written. The file is as it was.
    #[error("{}: cannot save the house: {source}", path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new state was written and may not survive a power cut.
    #[error("{}: the house was saved, but not synced to disk: {source}", path.display())]
    Unsynced {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The device is not there any more, or cannot do that any more.
    #[error("there is no such device in the house any more: {device:?}")]
    Gone {
        /// Its id.
        device: String,
    },
}

/// Bytes of the largest house file.
pub const LARGEST: u64 = 4 << 20;

/// Reads a house from its text; `path` is only named in errors.
///
/// # Errors
/// [`HouseError::Invalid`].
pub fn parse(text: &str, path: &Path) -> Result<House, HouseError> {
    let reader = Reader { text, path };
    let raw: RawHouse = toml::from_str(text).map_err(|error| {
        reader.invalid(
            error.span().unwrap_or(0..0),
            error.message().trim().replace('\n', ", "),
        )
    })?;
    reader.house(raw)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHouse {
    name: String,
    language: Option<String>,
    #[serde(default)]
    area: Vec<RawArea>,
    #[serde(default)]
    device: Vec<RawDevice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArea {
    id: Spanned<String>,
    #[serde(default)]
    aliases: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDevice {
    id: Spanned<String>,
    kind: Spanned<String>,
    area: Spanned<String>,
    #[serde(default)]
    capabilities: Vec<Spanned<String>>,
    state: Spanned<BTreeMap<Spanned<String>, Spanned<toml::Value>>>,
}

struct Reader<'t> {
    text: &'t str,
    path: &'t Path,
}

impl Reader<'_> {
    fn invalid(&self, span: Range<usize>, message: impl Into<String>) -> HouseError {
        HouseError::Invalid {
            path: self.path.to_owned(),
            line: self.line(&span),
            message: message.into(),
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().iter().take(span.start);
        before.filter(|&&byte| byte == b'\n').count() + 1
    }

    fn house(&self, raw: RawHouse) -> Result<House, HouseError> {
        let mut areas = HashMap::new();
        for area in &raw.area {
            self.unique("area", &area.id, &mut areas)?;
        }
        let mut ids = HashMap::new();
        let mut devices = Vec::with_capacity(raw.device.len());
        for device in raw.device {
            self.unique("device", &device.id, &mut ids)?;
            if !areas.contains_key(device.area.get_ref()) {
                return Err(self.invalid(
                    device.area.span(),
                    format!("there is no area {:?}", device.area.get_ref()),
                ));
            }
            devices.push(self.device(device)?);
        }
        Ok(House {
            name: raw.name,
            language: raw.language,
            areas: raw
                .area
                .into_iter()
                .map(|area| Area {
                    id: area.id.into_inner(),
                    aliases: area.aliases,
                })
                .collect(),
            devices,
        })
    }

    fn unique(
        &self,
        what: &str,
        id: &Spanned<String>,
        known: &mut HashMap<String, usize>,
    ) -> Result<(), HouseError> {
        let name = id.get_ref();
        let length = name.chars().count();
        if !(1..=64).contains(&length) || name.trim() != name || name.chars().any(char::is_control)
        {
            return Err(self.invalid(
                id.span(),
                format!(
                    "an id has 1 to 64 characters, none of them a control character, and no blank at its ends: {name:?}"
                ),
            ));
        }
        let line = self.line(&id.span());
        match known.insert(name.clone(), line) {
            None => Ok(()),
            Some(first) => Err(self.invalid(
                id.span(),
                format!("there are two {what}s called {name:?}, the first at line {first}"),
            )),
        }
    }

    fn device(&self, raw: RawDevice) -> Result<Device, HouseError> {
        let kind = Kind::from_name(raw.kind.get_ref()).ok_or_else(|| {
            let known: Vec<&str> = Kind::ALL.into_iter().map(Kind::as_str).collect();
            self.invalid(
                raw.kind.span(),
                format!(
                    "unknown kind of device {:?}; there are: {}",
                    raw.kind.get_ref(),
                    known.join(", ")
                ),
            )
        })?;
        let mut capabilities: Vec<Capability> = Vec::new();
        for name in &raw.capabilities {
            let capability = kind
                .capabilities()
                .iter()
                .copied()
                .find(|capability| capability.as_str() == name.get_ref())
                .filter(|capability| !capabilities.contains(capability))
                .ok_or_else(|| {
                    self.invalid(
                        name.span(),
                        format!(
                            "a {} has no capability {:?}, or has it already",
                            kind.as_str(),
                            name.get_ref()
                        ),
                    )
                })?;
            capabilities.push(capability);
        }
        let span = raw.state.span();
        let mut given = raw.state.into_inner();
        let mut state = Map::new();
        for key in keys(kind, &capabilities) {
            let name = key.as_str();
            let Some((_, value)) = given.remove_entry(name) else {
                return Err(self.invalid(
                    span,
                    format!("the state of {:?} has no `{name}`", raw.id.get_ref()),
                ));
            };
            let place = value.span();
            let mistake = |words: &str| self.invalid(place.clone(), format!("`{name}` is {words}"));
            let value = json(value.into_inner()).ok_or_else(|| mistake("a plain value"))?;
            if let Some(words) = key.mistake(&value) {
                return Err(mistake(words));
            }
            state.insert(name.to_owned(), value);
        }
        if let Some((key, _)) = given.into_iter().next() {
            return Err(self.invalid(
                key.span(),
                format!(
                    "the state of this {} has no key {:?}; a capability may be missing",
                    kind.as_str(),
                    key.get_ref()
                ),
            ));
        }
        Ok(Device {
            id: raw.id.into_inner(),
            kind,
            area: raw.area.into_inner(),
            capabilities,
            state,
        })
    }
}

/// A scalar as JSON; whole floating-point numbers become integers.
fn json(value: toml::Value) -> Option<Value> {
    match value {
        toml::Value::String(text) => Some(text.into()),
        toml::Value::Integer(number) => Some(number.into()),
        toml::Value::Float(number) => plain_number(number),
        toml::Value::Boolean(truth) => Some(truth.into()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers within i64's exact range are converted"
)]
fn plain_number(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        Some((number as i64).into())
    } else {
        Number::from_f64(number).map(Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: &str = r#"name = "Maple Street"
language = "en"

[[area]]
id = "kitchen"
aliases = ["cookhouse"]

[[area]]
id = "зал"

[[device]]
id = "kitchen light"
kind = "light"
area = "kitchen"
capabilities = ["brightness"]
state = { on = false, brightness = 60 }

[[device]]
id = "термометр 🌡"
kind = "sensor"
area = "зал"

[device.state]
value = 21.0
unit = "°C"
"#;

    #[test]
    fn a_house_is_read() {
        let house = parse(HOUSE, Path::new("h.toml")).unwrap();
        assert_eq!(house.areas[0].aliases, ["cookhouse"]);
        let light = house.device("kitchen light").unwrap();
        assert!(light.has(Key::Brightness) && light.has(Key::On) && !light.has(Key::Open));
        assert_eq!(
            Value::Object(light.state.clone()),
            serde_json::json!({"on": false, "brightness": 60})
        );
        let sensor = house.device("термометр 🌡").unwrap();
        assert_eq!(sensor.state["value"], 21);
    }

    #[test]
    fn every_mistake_has_its_line() {
        let cases = [
            (
                "kind = \"light\"",
                "kind = \"lamp\"",
                13,
                "unknown kind of device \"lamp\"; there are: light, switch",
            ),
            (
                "id = \"термометр 🌡\"",
                "id = \"kitchen light\"",
                19,
                "two devices called \"kitchen light\", the first at line 12",
            ),
            (
                "id = \"зал\"",
                "id = \"kitchen\"",
                9,
                "two areas called \"kitchen\", the first at line 5",
            ),
            ("area = \"зал\"", "area = \"hall\"", 21, "no area \"hall\""),
            (
                "brightness = 60",
                "brightness = 600",
                16,
                "`brightness` is a whole number from 0 to 100",
            ),
            (
                "brightness = 60",
                "brightness = 6.5",
                16,
                "`brightness` is a whole number",
            ),
            ("on = false, ", "", 16, "has no `on`"),
            ("on = false", "on = 0", 16, "`on` is true or false"),
            ("on = false", "on = 2026-01-01", 16, "`on` is a plain value"),
            (
                "on = false",
                "on = false, speed = 3",
                16,
                "no key \"speed\"",
            ),
            (
                "[\"brightness\"]",
                "[\"position\"]",
                15,
                "no capability \"position\"",
            ),
            (
                "[\"brightness\"]",
                "[\"brightness\", \"brightness\"]",
                15,
                "already",
            ),
            (
                "id = \"kitchen light\"",
                "id = \" kitchen light\"",
                12,
                "no blank at its ends",
            ),
            (
                "id = \"kitchen light\"",
                "id = \"\"",
                12,
                "1 to 64 characters",
            ),
            (
                "id = \"kitchen light\"",
                "id = \"a\\u0007b\"",
                12,
                "control character",
            ),
            (
                "language = \"en\"",
                "lang = \"en\"",
                2,
                "unknown field `lang`",
            ),
            ("unit = \"°C\"", "unit = ", 25, ""),
            ("area = \"kitchen\"\n", "", 11, "missing field `area`"),
        ];
        for (from, to, line, says) in cases {
            assert!(HOUSE.contains(from), "{from}");
            let text = HOUSE.replacen(from, to, 1);
            let error = parse(&text, Path::new("h.toml")).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("h.toml:{line}: ")) && error.contains(says),
                "{to}: {error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
