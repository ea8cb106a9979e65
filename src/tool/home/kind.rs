//! What kinds of devices there are, and what each can be: the table that everything else of the
//! home follows from.

use serde_json::Value;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A lamp.
    Light,
    /// A wall switch.
    Switch,
    /// A socket that switches.
    Plug,
    /// A fan.
    Fan,
    /// A television, a loudspeaker.
    MediaPlayer,
    /// A robot that cleans.
    Vacuum,
    /// Heating or cooling with a target temperature.
    Thermostat,
    /// A lock.
    Lock,
    /// Blinds, curtains, awnings.
    Cover,
    /// A garage door.
    GarageDoor,
    /// A window that opens itself.
    Window,
    /// A water or gas valve.
    Valve,
    /// Something that measures.
    Sensor,
}

/// What a device can do beyond its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// A light that can be dimmed.
    Brightness,
    /// A cover, door, window or valve that stops half-way.
    Position,
    /// A thermostat that can be switched off.
    OnOff,
}

/// A part of a device's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Whether it is on.
    On,
    /// Percent, 0 to 100.
    Brightness,
    /// Target, °C.
    Temperature,
    /// Measured, °C; only read.
    Current,
    /// Whether it is locked.
    Locked,
    /// Whether it is open.
    Open,
    /// Percent open, 0 to 100.
    Position,
    /// What a sensor measured; only read.
    Value,
    /// The unit of a sensor's value; only read.
    Unit,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Light,
        Self::Switch,
        Self::Plug,
        Self::Fan,
        Self::MediaPlayer,
        Self::Vacuum,
        Self::Thermostat,
        Self::Lock,
        Self::Cover,
        Self::GarageDoor,
        Self::Window,
        Self::Valve,
        Self::Sensor,
    ];

    /// The name in house files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Switch => "switch",
            Self::Plug => "plug",
            Self::Fan => "fan",
            Self::MediaPlayer => "media_player",
            Self::Vacuum => "vacuum",
            Self::Thermostat => "thermostat",
            Self::Lock => "lock",
            Self::Cover => "cover",
            Self::GarageDoor => "garage_door",
            Self::Window => "window",
            Self::Valve => "valve",
            Self::Sensor => "sensor",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// What every device of the kind has in its state.
    pub fn keys(self) -> &'static [Key] {
        match self {
            Self::Light
            | Self::Switch
            | Self::Plug
            | Self::Fan
            | Self::MediaPlayer
            | Self::Vacuum => &[Key::On],
            Self::Thermostat => &[Key::Temperature, Key::Current],
            Self::Lock => &[Key::Locked],
            Self::Cover | Self::GarageDoor | Self::Window | Self::Valve => &[Key::Open],
            Self::Sensor => &[Key::Value, Key::Unit],
        }
    }

    /// What a device of the kind may be able to do besides.
    pub fn capabilities(self) -> &'static [Capability] {
        match self {
            Self::Light => &[Capability::Brightness],
            Self::Thermostat => &[Capability::OnOff],
            Self::Cover | Self::GarageDoor | Self::Window | Self::Valve => &[Capability::Position],
            Self::Switch
            | Self::Plug
            | Self::Fan
            | Self::MediaPlayer
            | Self::Vacuum
            | Self::Lock
            | Self::Sensor => &[],
        }
    }
}

impl Capability {
    /// The name in house files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Brightness => "brightness",
            Self::Position => "position",
            Self::OnOff => "on_off",
        }
    }

    /// What it adds to a device's state.
    pub fn key(self) -> Key {
        match self {
            Self::Brightness => Key::Brightness,
            Self::Position => Key::Position,
            Self::OnOff => Key::On,
        }
    }
}

impl Key {
    /// The name in house files and results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Brightness => "brightness",
            Self::Temperature => "temperature",
            Self::Current => "current",
            Self::Locked => "locked",
            Self::Open => "open",
            Self::Position => "position",
            Self::Value => "value",
            Self::Unit => "unit",
        }
    }

    /// What a value of this key must be, in words, where `value` is not that.
    pub fn mistake(self, value: &Value) -> Option<&'static str> {
        let percent = || value.as_i64().is_some_and(|n| (0..=100).contains(&n));
        let celsius = || {
            value
                .as_f64()
                .is_some_and(|t| (-100.0..=200.0).contains(&t))
        };
        let (right, words) = match self {
            Self::On | Self::Locked | Self::Open => (value.is_boolean(), "true or false"),
            Self::Brightness | Self::Position => (percent(), "a whole number from 0 to 100"),
            Self::Temperature | Self::Current => (celsius(), "a number of °C, from -100 to 200"),
            Self::Unit => (
                value.as_str().is_some_and(|unit| {
                    unit.chars().count() <= 64 && !unit.chars().any(char::is_control)
                }),
                "a text of at most 64 characters",
            ),
            Self::Value => (
                value.is_boolean()
                    || value.is_number()
                    || value
                        .as_str()
                        .is_some_and(|text| text.chars().count() <= 1000),
                "a number, true, false or a text",
            ),
        };
        (!right).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_lead_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::from_name("lamp"), None);
    }

    #[test]
    fn values_are_held_to_their_key() {
        let cases = [
            (Key::On, json!(true), true),
            (Key::On, json!(1), false),
            (Key::Brightness, json!(100), true),
            (Key::Brightness, json!(101), false),
            (Key::Position, json!(0.5), false),
            (Key::Temperature, json!(20.5), true),
            (Key::Temperature, json!("20"), false),
            (Key::Value, json!("открыто"), true),
            (Key::Value, json!([1]), false),
            (Key::Unit, json!("°C"), true),
            (Key::Unit, json!(null), false),
        ];
        for (key, value, right) in cases {
            assert_eq!(key.mistake(&value).is_none(), right, "{key:?} {value}");
        }
    }
}
