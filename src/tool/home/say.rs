//! A device's state in words, in the language of the house: what a person is told, and what a
//! model that copies can copy.

use super::file::Device;
use super::kind::Key;
use serde_json::Value;

/// `kitchen light: on, brightness 80%` with the parts of the state that `which` picks. Languages
/// other than Russian and Chinese get English words.
pub fn say(device: &Device, language: &str, which: impl Fn(Key) -> bool) -> String {
    let words = match language.split('-').next() {
        Some("ru") => &RUSSIAN,
        Some("zh") => &CHINESE,
        _ => &ENGLISH,
    };
    let mut parts = Vec::new();
    for key in device.keys().filter(|&key| which(key)) {
        let value = device.state.get(key.as_str()).unwrap_or(&Value::Null);
        let yes = value.as_bool() == Some(true);
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        parts.push(match key {
            Key::On => words.on[usize::from(!yes)].to_owned(),
            Key::Locked => words.locked[usize::from(!yes)].to_owned(),
            Key::Open => words.open[usize::from(!yes)].to_owned(),
            Key::Brightness => format!("{} {text}%", words.brightness),
            Key::Position => format!("{} {text}%", words.position),
            Key::Temperature => format!("{} {text} °C", words.target),
            Key::Current => format!("{} {text} °C", words.current),
            Key::Value => {
                let unit = device.state.get(Key::Unit.as_str()).and_then(Value::as_str);
                format!("{text} {}", unit.unwrap_or_default())
                    .trim_end()
                    .to_owned()
            }
            Key::Unit => continue,
        });
    }
    format!("{}{}{}", device.id, words.colon, parts.join(words.comma))
}

/// Words of a language; of each pair the first is for `true`.
struct Words {
    on: [&'static str; 2],
    locked: [&'static str; 2],
    open: [&'static str; 2],
    brightness: &'static str,
    position: &'static str,
    target: &'static str,
    current: &'static str,
    colon: &'static str,
    comma: &'static str,
}

const ENGLISH: Words = Words {
    on: ["on", "off"],
    locked: ["locked", "unlocked"],
    open: ["open", "closed"],
    brightness: "brightness",
    position: "position",
    target: "set to",
    current: "now",
    colon: ": ",
    comma: ", ",
};

const RUSSIAN: Words = Words {
    on: ["включено", "выключено"],
    locked: ["заперто", "не заперто"],
    open: ["открыто", "закрыто"],
    brightness: "яркость",
    position: "положение",
    target: "задано",
    current: "сейчас",
    colon: ": ",
    comma: ", ",
};

const CHINESE: Words = Words {
    on: ["已开", "已关"],
    locked: ["已锁", "未锁"],
    open: ["打开", "关闭"],
    brightness: "亮度",
    position: "开度",
    target: "设定",
    current: "现在",
    colon: "：",
    comma: "，",
};
