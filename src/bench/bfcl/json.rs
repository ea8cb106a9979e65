//! Reads JSON as Python's `json.loads` does: integers of any size, `NaN` and `Infinity`, the last
//! of two equal keys.

use super::value::{Int, Value, insert};

/// Deepest nesting that is read; Python's own limit is its recursion limit, about 1,000.
const DEEPEST: usize = 200;

/// Why a text is no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no JSON at byte {at}: {expected} is expected")]
pub struct JsonError {
    /// Byte offset.
    pub at: usize,
    /// What should have stood there.
    pub expected: &'static str,
}

/// Reads one value and nothing after it.
///
/// # Errors
/// The first place that is no JSON, or nested deeper than 200.
pub fn read(text: &str) -> Result<Value, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.blank();
    if reader.at < text.len() {
        return Err(reader.expected("the end"));
    }
    Ok(value)
}

/// Reads the value at the beginning of a text; also how many bytes it takes.
///
/// # Errors
/// As [`read`], what follows the value aside.
pub fn read_first(text: &str) -> Result<(Value, usize), JsonError> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    Ok((value, reader.at))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, expected: &'static str) -> JsonError {
        JsonError {
            at: self.at,
            expected,
        }
    }

    fn blank(&mut self) {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.at += blank;
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        if depth > DEEPEST {
            return Err(self.expected("an end of the nesting"));
        }
        self.blank();
        for (word, value) in [
            ("null", Value::None),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ] {
            if self.take(word) {
                return Ok(value);
            }
        }
        if self.take("[") {
            return self.list(depth);
        }
        if self.take("{") {
            return self.dict(depth);
        }
        if self.take("\"") {
            return self.text().map(Value::Str);
        }
        self.number()
    }

    fn list(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.blank();
        if self.take("]") {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blank();
            if self.take("]") {
                return Ok(Value::List(items));
            }
            if !self.take(",") {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut members = Vec::new();
        self.blank();
        if self.take("}") {
            return Ok(Value::Dict(members));
        }
        loop {
            self.blank();
            if !self.take("\"") {
                return Err(self.expected("a key"));
            }
            let key = self.text()?;
            self.blank();
            if !self.take(":") {
                return Err(self.expected("`:`"));
            }
            let value = self.value(depth + 1)?;
            insert(&mut members, Value::Str(key), value);
            self.blank();
            if self.take("}") {
                return Ok(Value::Dict(members));
            }
            if !self.take(",") {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    /// The rest of a text whose opening quote is taken.
    fn text(&mut self) -> Result<String, JsonError> {
        let mut out = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                return Err(self.expected("a closing quote"));
            };
            if c < ' ' {
                return Err(self.expected("an escaped control character"));
            }
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                _ => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        for (letter, c) in [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ] {
            if self.take(letter) {
                return Ok(c);
            }
        }
        if !self.take("u") {
            return Err(self.expected("an escape"));
        }
        let high = self.unit()?;
        if (0xd800..0xdc00).contains(&high) {
            let before = self.at;
            if self.take("\\u") {
                let low = self.unit()?;
                if (0xdc00..0xe000).contains(&low) {
                    let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                self.at = before;
            }
        }
        // A lone surrogate, which Python keeps and Rust's text cannot hold.
        Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn unit(&mut self) -> Result<u32, JsonError> {
        let digits = self.rest().get(..4).unwrap_or_default();
        if digits.len() != 4 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(self.expected("four hexadecimal digits"));
        }
        let unit = u32::from_str_radix(digits, 16).unwrap_or_default();
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let rest = self.rest();
        let whole = integer_length(rest).ok_or_else(|| self.expected("a value"))?;
        let mut length = whole;
        if let Some(after) = rest[length..].strip_prefix('.') {
            let digits = digits(after);
            length += if digits > 0 { 1 + digits } else { 0 };
        }
        if let Some(after) = rest[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(after.starts_with(['+', '-']));
            let digits = digits(&after[sign..]);
            length += if digits > 0 { 1 + sign + digits } else { 0 };
        }
        let text = &rest[..length];
        let value = match Int::parse(text) {
            Some(int) => Value::Int(int),
            None => Value::Float(text.parse().map_err(|_| self.expected("a number"))?),
        };
        self.at += length;
        Ok(value)
    }
}

/// Bytes of `-?(0|[1-9][0-9]*)` at the beginning.
fn integer_length(text: &str) -> Option<usize> {
    let sign = usize::from(text.starts_with('-'));
    match text.as_bytes().get(sign) {
        Some(b'0') => Some(sign + 1),
        Some(b'1'..=b'9') => Some(sign + digits(&text[sign..])),
        _ => None,
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_as_python_reads_it() {
        for (text, expected) in [
            (
                "[1, -0, 1.0, 1e2, 12345678901234567890123]",
                "List([Int(Int(\"1\")), Int(Int(\"0\")), Float(1.0), Float(100.0), Int(Int(\"12345678901234567890123\"))])",
            ),
            (
                "{\"a\": 1, \"b\": null, \"a\": true}",
                "Dict([(Str(\"a\"), Bool(true)), (Str(\"b\"), None)])",
            ),
            (
                r#""\u0041\ud83d\ude00\ud83d\/\n""#,
                "Str(\"A😀\u{fffd}/\\n\")",
            ),
            (
                " [NaN, Infinity, -Infinity] ",
                "List([Float(NaN), Float(inf), Float(-inf)])",
            ),
            ("[]", "List([])"),
            ("{ }", "Dict([])"),
        ] {
            assert_eq!(format!("{:?}", read(text).unwrap()), expected);
        }
    }

    #[test]
    fn what_is_no_json_has_its_place() {
        let deep = "[".repeat(100_000);
        for (text, at) in [
            ("", 0),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\" 1}", 5),
            ("{a: 1}", 1),
            ("01", 1),
            ("1.", 1),
            ("+1", 0),
            ("\"a", 2),
            ("\"\u{7}\"", 1),
            (r#""\x""#, 2),
            (r#""\u12g4""#, 3),
            ("tru", 0),
            ("1 2", 2),
            (&deep, 201),
        ] {
            assert_eq!(
                read(text).unwrap_err().at,
                at,
                "{}",
                text.get(..20).unwrap_or(text)
            );
        }
    }
}
