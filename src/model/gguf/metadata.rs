//! The key-value section: small values are kept, large arrays only counted.

use super::super::shown::shown_bytes as shown;
use super::error::GgufProblem;
use super::reader::{LONGEST_STRING, Reader};
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// Most key-value pairs.
pub const MOST_KEYS: u64 = 1 << 16;
/// Longest key in bytes (the format's own limit).
pub const LONGEST_KEY: u64 = (1 << 16) - 1;
/// Most elements of an array.
pub const MOST_ELEMENTS: u64 = 1 << 26;
/// Longest text value that is kept, in bytes; chat templates are a few KiB.
pub const KEPT_TEXT: u64 = 1 << 20;
/// Most numbers of an array that are kept: values per layer.
pub const KEPT_NUMBERS: u64 = 4096;

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer of any width.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A text that is too long to be kept, or is not UTF-8: its length in bytes.
    LongText(u64),
    /// Several values of one type.
    Array(Array),
}

/// An array value.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Number of elements.
    pub count: u64,
    /// Whether the elements are strings.
    pub strings: bool,
    /// Where the elements begin in the file, in bytes.
    pub at: u64,
    /// The elements, where they are whole numbers or truth values and few.
    pub numbers: Option<Vec<i128>>,
}

/// All key-value pairs of a file.
pub type Metadata = BTreeMap<String, Value>;

const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Reads `count` pairs.
pub fn read<R: Read + Seek>(reader: &mut Reader<R>, count: u64) -> Result<Metadata, GgufProblem> {
    reader.section("the metadata");
    let mut metadata = Metadata::new();
    for _ in 0..count {
        let key = reader.name(LONGEST_KEY, "a key")?;
        reader.keep(96)?;
        let kind = reader.u32()?;
        if key.is_empty() || metadata.contains_key(&key) {
            return Err(GgufProblem::Name {
                what: "key",
                name: shown(key.as_bytes()),
            });
        }
        let value = match kind {
            STRING => text(reader, &key)?,
            ARRAY => Value::Array(array(reader, &key)?),
            kind => scalar(reader, kind)?.ok_or_else(|| unknown(&key, kind))?,
        };
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn unknown(key: &str, kind: u32) -> GgufProblem {
    GgufProblem::ValueType {
        key: shown(key.as_bytes()),
        kind,
    }
}

fn text<R: Read + Seek>(reader: &mut Reader<R>, key: &str) -> Result<Value, GgufProblem> {
    let what = || format!("the text of \"{}\"", shown(key.as_bytes()));
    let start = reader.position();
    let length = reader.skip_string(&what())?;
    if length > KEPT_TEXT {
        return Ok(Value::LongText(length));
    }
    reader.go(start)?;
    Ok(
        match String::from_utf8(reader.string(LONGEST_STRING, &what())?) {
            Ok(text) => Value::Text(text),
            Err(_) => Value::LongText(length),
        },
    )
}

/// Width of a fixed-size type in bytes.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// A value of a fixed-size type; `None` where the type is unknown.
fn scalar<R: Read + Seek>(reader: &mut Reader<R>, kind: u32) -> Result<Option<Value>, GgufProblem> {
    Ok(Some(match kind {
        0 => Value::Integer(u8::from_le_bytes(reader.bytes()?).into()),
        1 => Value::Integer(i8::from_le_bytes(reader.bytes()?).into()),
        2 => Value::Integer(u16::from_le_bytes(reader.bytes()?).into()),
        3 => Value::Integer(i16::from_le_bytes(reader.bytes()?).into()),
        4 => Value::Integer(u32::from_le_bytes(reader.bytes()?).into()),
        5 => Value::Integer(i32::from_le_bytes(reader.bytes()?).into()),
        6 => Value::Float(f32::from_le_bytes(reader.bytes()?).into()),
        7 => Value::Bool(reader.bytes::<1>()?[0] != 0),
        10 => Value::Integer(u64::from_le_bytes(reader.bytes()?).into()),
        11 => Value::Integer(i64::from_le_bytes(reader.bytes()?).into()),
        12 => Value::Float(f64::from_le_bytes(reader.bytes()?)),
        _ => return Ok(None),
    }))
}

fn array<R: Read + Seek>(reader: &mut Reader<R>, key: &str) -> Result<Array, GgufProblem> {
    let kind = reader.u32()?;
    let count = reader.u64()?;
    if count > MOST_ELEMENTS {
        return Err(GgufProblem::TooMany {
            what: format!("elements of \"{}\"", shown(key.as_bytes())),
            count,
            limit: MOST_ELEMENTS,
        });
    }
    let at = reader.position();
    if kind == STRING {
        // Each string has at least its length, so that this loop is bounded by the file.
        let what = format!("a string of \"{}\"", shown(key.as_bytes()));
        for _ in 0..count {
            reader.skip_string(&what)?;
        }
        return Ok(Array {
            count,
            strings: true,
            at,
            numbers: None,
        });
    }
    // Arrays of arrays are in the format's text, but no reader takes them.
    let width = width(kind).ok_or_else(|| unknown(key, kind))?;
    let few = count <= KEPT_NUMBERS && !matches!(kind, 6 | 12);
    let numbers = if few {
        reader.keep(16 * usize::try_from(count).unwrap_or(usize::MAX))?;
        let mut numbers = Vec::new();
        for _ in 0..count {
            match scalar(reader, kind)? {
                Some(Value::Integer(number)) => numbers.push(number),
                Some(Value::Bool(truth)) => numbers.push(truth.into()),
                _ => return Err(unknown(key, kind)),
            }
        }
        Some(numbers)
    } else {
        reader.skip(count * width)?;
        None
    };
    Ok(Array {
        count,
        strings: false,
        at,
        numbers,
    })
}

/// The element `index` of an array of strings that was read before.
pub fn string_at<R: Read + Seek>(
    reader: &mut Reader<R>,
    array: &Array,
    index: u64,
) -> Result<Option<String>, GgufProblem> {
    if !array.strings || index >= array.count {
        return Ok(None);
    }
    reader.go(array.at)?;
    for _ in 0..index {
        reader.skip_string("a token")?;
    }
    let bytes = reader.string(LONGEST_KEY, "a token")?;
    Ok(String::from_utf8(bytes).ok())
}
