//! What kinds of values settings have, and how each is read from text and from TOML.

use std::path::{Path, PathBuf};
use toml::Value;

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A file or folder; relative to where it was written.
    Path,
    /// A whole number within bounds.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number within bounds.
    Number {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// `true` or `false`.
    Switch,
    /// Bytes: a number, with `KiB`, `MiB` or `GiB`.
    Size,
    /// Several texts.
    Texts,
    /// Several files or folders.
    Paths,
    /// Permissions: names or patterns of tools, each `allow`, `ask` or `deny`.
    Permissions,
}

/// The words of [`Kind::Permissions`].
const PERMISSIONS: [&str; 3] = ["allow", "ask", "deny"];

impl Kind {
    /// What stands for a value in help texts.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Text | Self::Texts => "TEXT",
            Self::Choice(_) => "WORD",
            Self::Path | Self::Paths => "PATH",
            Self::Integer { .. } => "N",
            Self::Number { .. } => "NUMBER",
            Self::Switch => "BOOL",
            Self::Size => "SIZE",
            Self::Permissions => "TOOL=PERMISSION",
        }
    }

    /// The type in words, with its bounds.
    pub fn describe(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Choice(words) => words.join(", "),
            Self::Path => "path".into(),
            Self::Integer { min, max: i64::MAX } => format!("integer, at least {min}"),
            Self::Integer { min, max } => format!("integer, {min} to {max}"),
            Self::Number { min, max } => format!("number, {min} to {max}"),
            Self::Switch => "true or false".into(),
            Self::Size => "bytes, such as 32MiB".into(),
            Self::Texts => "list of texts".into(),
            Self::Paths => "list of paths".into(),
            Self::Permissions => "table: tool = \"allow\", \"ask\" or \"deny\"".into(),
        }
    }

    /// Whether a flag of this kind may be given more than once, each adding a value.
    pub fn is_repeatable(self) -> bool {
        matches!(self, Self::Texts | Self::Paths | Self::Permissions)
    }

    /// Reads a value from a flag or an environment variable. Lists are separated by commas.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence that begins with the setting's name.
    pub fn parse(self, text: &str, base: &Path) -> Result<Value, String> {
        let items = || {
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
        };
        let value = match self {
            Self::Text | Self::Path | Self::Choice(_) => Value::String(text.to_owned()),
            Self::Integer { .. } => Value::Integer(
                text.trim()
                    .parse()
                    .map_err(|_| format!("is not a whole number: {text:?}"))?,
            ),
            Self::Number { .. } => Value::Float(
                text.trim()
                    .parse()
                    .map_err(|_| format!("is not a number: {text:?}"))?,
            ),
            Self::Switch => match text.trim() {
                "true" | "1" | "yes" | "on" => Value::Boolean(true),
                "false" | "0" | "no" | "off" => Value::Boolean(false),
                _ => return Err(format!("is neither true nor false: {text:?}")),
            },
            Self::Size => match text.trim().parse() {
                Ok(bytes) => Value::Integer(bytes),
                Err(_) => Value::String(text.trim().to_owned()),
            },
            Self::Texts | Self::Paths => {
                Value::Array(items().map(|item| Value::String(item.to_owned())).collect())
            }
            Self::Permissions => {
                let mut table = toml::Table::new();
                for item in items() {
                    let (tool, permission) = item
                        .split_once('=')
                        .ok_or_else(|| format!("wants TOOL=PERMISSION, not {item:?}"))?;
                    let permission = Value::String(permission.trim().to_owned());
                    table.insert(tool.trim().to_owned(), permission);
                }
                Value::Table(table)
            }
        };
        self.check(value, base)
    }

    /// Checks a TOML value and brings it into the form that
    /// [`Settings`](crate::cli::settings::Settings) reads: paths joined to `base`, sizes in bytes,
    /// whole numbers accepted for numbers.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn check(self, value: Value, base: &Path) -> Result<Value, String> {
        let wrong = |value: &Value| {
            Err(format!(
                "wants {}, not {}",
                self.describe(),
                describe_type(value)
            ))
        };
        match (self, value) {
            (Self::Text, Value::String(text)) if !text.is_empty() => Ok(Value::String(text)),
            (Self::Choice(words), Value::String(text)) => {
                if words.contains(&text.as_str()) {
                    Ok(Value::String(text))
                } else {
                    Err(format!("is {text:?}; it wants one of {}", words.join(", ")))
                }
            }
            (Self::Path, Value::String(text)) if !text.is_empty() => Ok(join(base, &text)),
            (Self::Text | Self::Path, Value::String(_)) => Err("is empty".into()),
            (Self::Integer { min, max }, Value::Integer(number)) => {
                if (min..=max).contains(&number) {
                    Ok(Value::Integer(number))
                } else {
                    Err(format!("is {number}; it wants {}", self.describe()))
                }
            }
            (Self::Number { .. }, Value::Integer(number)) => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "bounds of numbers are far below 2^53"
                )]
                let number = number as f64;
                self.check(Value::Float(number), base)
            }
            (Self::Number { min, max }, Value::Float(number)) => {
                if (min..=max).contains(&number) {
                    Ok(Value::Float(number))
                } else {
                    Err(format!("is {number}; it wants {}", self.describe()))
                }
            }
            (Self::Switch, Value::Boolean(on)) => Ok(Value::Boolean(on)),
            (Self::Size, Value::Integer(bytes)) if bytes >= 0 => Ok(Value::Integer(bytes)),
            (Self::Size, Value::String(text)) => parse_size(&text)
                .map(Value::Integer)
                .ok_or_else(|| format!("wants {}, not {text:?}", self.describe())),
            (Self::Texts | Self::Paths, Value::Array(items)) => {
                let mut checked = Vec::with_capacity(items.len());
                for item in items {
                    match item {
                        Value::String(text) if text.is_empty() => {
                            return Err("has an empty item".into());
                        }
                        Value::String(text) if self == Self::Paths => {
                            checked.push(join(base, &text));
                        }
                        Value::String(text) => checked.push(Value::String(text)),
                        other => return wrong(&other),
                    }
                }
                Ok(Value::Array(checked))
            }
            (Self::Permissions, Value::Table(table)) => {
                for (tool, permission) in &table {
                    match permission {
                        Value::String(word) if PERMISSIONS.contains(&word.as_str()) => {}
                        other => {
                            return Err(format!(
                                "says {other} for {tool:?}; it wants allow, ask or deny"
                            ));
                        }
                    }
                }
                Ok(Value::Table(table))
            }
            (_, value) => wrong(&value),
        }
    }
}

impl Kind {
    /// A value as [`parse`](Self::parse) reads it; paths are passed through `place`.
    pub fn to_text(self, value: &Value, place: impl Fn(&str) -> PathBuf) -> String {
        let one = |value: &Value| match value {
            Value::String(text) if matches!(self, Self::Path | Self::Paths) => {
                place(text).to_string_lossy().into_owned()
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match value {
            Value::Array(items) => items.iter().map(one).collect::<Vec<_>>().join(","),
            Value::Table(table) => table
                .iter()
                .map(|(name, value)| format!("{name}={}", one(value)))
                .collect::<Vec<_>>()
                .join(","),
            value => one(value),
        }
    }
}

/// A path as it was written, made relative to the folder where it was written.
fn join(base: &Path, text: &str) -> Value {
    let path = base.join(text);
    Value::String(path.to_string_lossy().into_owned())
}

/// `64`, `64KiB`, `1.5 GiB`: whole bytes.
fn parse_size(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" | "B" => 1.0,
        "KiB" | "K" => 1024.0,
        "MiB" | "M" => 1024.0 * 1024.0,
        "GiB" | "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * factor;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounded by the test before it"
    )]
    (bytes < 1e15).then_some(bytes as i64)
}

fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_text() {
        let count = Kind::Integer { min: 1, max: 9 };
        let share = Kind::Number { min: 0.0, max: 1.0 };
        let word = Kind::Choice(&["a", "b"]);
        let cases: [(Kind, &str, Result<&str, &str>); 22] = [
            (word, "b", Ok("\"b\"")),
            (word, "c", Err("is \"c\"; it wants one of a, b")),
            (Kind::Text, "мир 🌍", Ok("\"мир 🌍\"")),
            (Kind::Text, "", Err("is empty")),
            (Kind::Path, "a/b", Ok("\"base/a/b\"")),
            (Kind::Path, "/a", Ok("\"/a\"")),
            (count, "7", Ok("7")),
            (count, "0", Err("is 0; it wants integer, 1 to 9")),
            (count, "x", Err("is not a whole number: \"x\"")),
            (share, "0.5", Ok("0.5")),
            (share, "1", Ok("1.0")),
            (share, "nan", Err("is NaN; it wants number, 0 to 1")),
            (Kind::Switch, "yes", Ok("true")),
            (
                Kind::Switch,
                "maybe",
                Err("is neither true nor false: \"maybe\""),
            ),
            (Kind::Size, "32MiB", Ok("33554432")),
            (Kind::Size, "1.5 K", Ok("1536")),
            (
                Kind::Size,
                "many",
                Err("wants bytes, such as 32MiB, not \"many\""),
            ),
            (
                Kind::Size,
                "-1",
                Err("wants bytes, such as 32MiB, not a whole number"),
            ),
            (Kind::Texts, "a, b,,c", Ok("[\"a\", \"b\", \"c\"]")),
            (Kind::Paths, "a,/b", Ok("[\"base/a\", \"/b\"]")),
            (
                Kind::Permissions,
                "unlock=deny",
                Ok("{ unlock = \"deny\" }"),
            ),
            (
                Kind::Permissions,
                "unlock=never",
                Err("says \"never\" for \"unlock\"; it wants allow, ask or deny"),
            ),
        ];
        for (kind, text, expected) in cases {
            let value = kind.parse(text, Path::new("base"));
            let value = value.map(|value| value.to_string());
            assert_eq!(
                value.as_deref().map_err(String::as_str),
                expected,
                "{kind:?} {text:?}"
            );
        }
    }
}
