//! Values as Python has them: what the leaderboard's checker compares.
//!
//! JSON alone would not do: Python keeps integers of any size apart from floats, `True` equals 1,
//! and a tuple is no list.

use std::borrow::Cow;

/// A Python value, as `json.loads` or a literal in a call gives it.
#[derive(Clone, Debug)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of any size.
    Int(Int),
    /// A float.
    Float(f64),
    /// A text.
    Str(String),
    /// A list.
    List(Vec<Value>),
    /// A tuple; JSON has none.
    Tuple(Vec<Value>),
    /// A dictionary in the order of insertion, no key twice.
    Dict(Vec<(Value, Value)>),
}

/// What `type(value)` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `NoneType`.
    None,
    /// `bool`: no integer to the checker, although Python lets it pass for one.
    Bool,
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `str`.
    Str,
    /// `list`.
    List,
    /// `tuple`.
    Tuple,
    /// `dict`.
    Dict,
}

/// An integer of any size: its decimal digits without leading zeros, with `-` where it is below 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Int(String);

impl Int {
    /// From digits with an optional sign; `None` for all else.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = digits.trim_start_matches('0');
        Some(Self(match (digits.is_empty(), negative) {
            (true, _) => "0".to_owned(),
            (false, true) => format!("-{digits}"),
            (false, false) => digits.to_owned(),
        }))
    }

    /// The nearest float; infinite where Python would raise `OverflowError`.
    pub fn to_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// As a machine integer, where it fits.
    pub fn to_i128(&self) -> Option<i128> {
        self.0.parse().ok()
    }

    /// The same with the other sign.
    #[must_use]
    pub fn negated(&self) -> Self {
        match self.0.strip_prefix('-') {
            Some(digits) => Self(digits.to_owned()),
            None if self.0 == "0" => self.clone(),
            None => Self(format!("-{}", self.0)),
        }
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<i128> for Int {
    fn from(number: i128) -> Self {
        Self(number.to_string())
    }
}

impl Value {
    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Self::None => Type::None,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Float(_) => Type::Float,
            Self::Str(_) => Type::Str,
            Self::List(_) => Type::List,
            Self::Tuple(_) => Type::Tuple,
            Self::Dict(_) => Type::Dict,
        }
    }

    /// The text that it is.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The members of a dictionary.
    pub fn as_dict(&self) -> Option<&[(Self, Self)]> {
        match self {
            Self::Dict(members) => Some(members),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// A dictionary's member under a text.
    pub fn get(&self, key: &str) -> Option<&Self> {
        member(self.as_dict()?, key)
    }

    /// Whether it is `""`.
    pub fn is_empty_text(&self) -> bool {
        self.as_str() == Some("")
    }

    /// What `for item in value` goes through; `None` where Python raises `TypeError`.
    pub fn iterate(&self) -> Option<Cow<'_, [Self]>> {
        match self {
            Self::List(items) | Self::Tuple(items) => Some(Cow::Borrowed(items)),
            Self::Str(text) => Some(Cow::Owned(characters(text))),
            Self::Dict(members) => Some(Cow::Owned(
                members.iter().map(|(key, _)| key.clone()).collect(),
            )),
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) => None,
        }
    }

    /// What `for i in range(len(value)): value[i]` goes through; `None` where Python raises.
    pub fn indexed(&self) -> Option<Cow<'_, [Self]>> {
        match self {
            Self::Dict(members) if !members.is_empty() => None,
            _ => self.iterate(),
        }
    }

    /// `item in value`; `None` where Python raises `TypeError`.
    pub fn contains(&self, item: &Self) -> Option<bool> {
        match (self, item) {
            (Self::Str(text), Self::Str(part)) => Some(text.contains(part.as_str())),
            (Self::Str(_), _) => None,
            _ => Some(self.iterate()?.iter().any(|own| own.equals(item))),
        }
    }

    /// `self == other`: numbers by what they are worth, `True` worth 1.
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Self::Dict(a), Self::Dict(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, value)| {
                        b.iter()
                            .any(|(other, item)| other.equals(key) && item.equals(value))
                    })
            }
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a.equals(&b),
                _ => false,
            },
        }
    }

    fn number(&self) -> Option<Number<'_>> {
        match self {
            Self::Bool(false) => Some(Number::Int("0")),
            Self::Bool(true) => Some(Number::Int("1")),
            Self::Int(Int(digits)) => Some(Number::Int(digits)),
            Self::Float(float) => Some(Number::Float(*float)),
            _ => None,
        }
    }
}

/// A dictionary's member under a text.
pub fn member<'v>(members: &'v [(Value, Value)], key: &str) -> Option<&'v Value> {
    members
        .iter()
        .find(|(own, _)| own.as_str() == Some(key))
        .map(|(_, value)| value)
}

/// Sets a member, in its old place where there is one.
pub fn insert(members: &mut Vec<(Value, Value)>, key: Value, value: Value) {
    match members.iter_mut().find(|(own, _)| own.equals(&key)) {
        Some((_, old)) => *old = value,
        None => members.push((key, value)),
    }
}

fn characters(text: &str) -> Vec<Value> {
    text.chars().map(|c| Value::Str(c.into())).collect()
}

enum Number<'n> {
    Int(&'n str),
    Float(f64),
}

impl Number<'_> {
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Int(digits), Self::Float(float)) | (Self::Float(float), Self::Int(digits)) => {
                // A whole float prints all its digits, so that large ones are compared exactly.
                if *float == 0.0 {
                    *digits == "0"
                } else {
                    float.is_finite() && float.fract() == 0.0 && format!("{float:.0}") == **digits
                }
            }
        }
    }
}

impl From<&serde_json::Value> for Value {
    /// A JSON value that serde_json has read: integers beyond 64 bits are floats already.
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::None,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => match Int::parse(&number.to_string()) {
                Some(int) if !number.is_f64() => Self::Int(int),
                _ => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Self::Str(text.clone()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(members) => Self::Dict(
                members
                    .iter()
                    .map(|(key, value)| (Self::Str(key.clone()), value.into()))
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(text: &str) -> Value {
        Value::Int(Int::parse(text).unwrap())
    }

    #[test]
    fn numbers_compare_as_python_compares_them() {
        let (true_, one) = (Value::Bool(true), Value::Float(1.0));
        for (a, b, equal) in [
            (int("1"), true_.clone(), true),
            (int("1"), one.clone(), true),
            (true_.clone(), one, true),
            (Value::Bool(false), Value::Float(-0.0), true),
            (int("-0"), Value::Float(-0.0), true),
            (int("007"), int("7"), true),
            (int("7"), Value::Str("7".into()), false),
            (
                int("9007199254740993"),
                Value::Float(9_007_199_254_740_992.0),
                false,
            ),
            (
                int("9007199254740992"),
                Value::Float(9_007_199_254_740_992.0),
                true,
            ),
            (int("100000000000000000000000"), Value::Float(1e23), false),
            (int("99999999999999991611392"), Value::Float(1e23), true),
            (int("-5"), Value::Float(-5.0), true),
            (int("5"), Value::Float(-5.0), false),
            (int("-5"), Value::Float(5.0), false),
            (int("1"), Value::Float(1.5), false),
            (Value::Float(f64::NAN), Value::Float(f64::NAN), false),
            (Value::None, Value::Bool(false), false),
        ] {
            assert_eq!(a.equals(&b), equal, "{a:?} {b:?}");
            assert_eq!(b.equals(&a), equal, "{b:?} {a:?}");
        }
    }

    #[test]
    fn containers_compare_by_content() {
        let pair = |a: &str, b: &str| {
            Value::Dict(vec![
                (Value::Str(a.into()), int("1")),
                (Value::Str(b.into()), int("1")),
            ])
        };
        assert!(pair("a", "b").equals(&pair("b", "a")));
        assert!(!pair("a", "b").equals(&pair("a", "c")));
        let list = Value::List(vec![int("1")]);
        assert!(!list.equals(&Value::Tuple(vec![int("1")])));
        assert_eq!(list.contains(&Value::Bool(true)), Some(true));
        let text = Value::Str("abc".into());
        assert_eq!(text.contains(&Value::Str("bc".into())), Some(true));
        assert_eq!(text.contains(&int("1")), None);
        assert_eq!(int("1").contains(&text), None);
    }
}
