//! Python's expressions, as far as calls in a model's answer use them: text becomes a tree.
//!
//! Operators other than signs and arithmetic, comprehensions, formatted texts and the like are
//! refused: the leaderboard's decoder makes nothing of them either.

use super::value::{Int, Value};

/// Deepest nesting that is read.
const DEEPEST: usize = 100;

/// An expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Constant(Value),
    Ellipsis,
    Name(String),
    Attribute(Box<Node>, String),
    /// The function, positional arguments, and named ones; `**x` has no name.
    Call(Box<Node>, Vec<Node>, Vec<(Option<String>, Node)>),
    /// `*x` among positional arguments.
    Starred(Box<Node>),
    Subscript(Box<Node>, Box<Node>),
    List(Vec<Node>),
    Tuple(Vec<Node>),
    Dict(Vec<(Node, Node)>),
    Sign(char, Box<Node>),
    Arithmetic(&'static str, Box<Node>, Box<Node>),
}

/// Positional and named arguments.
type Arguments = (Vec<Node>, Vec<(Option<String>, Node)>);

/// Reads a text from the beginning.
pub(super) struct Parser<'t> {
    text: &'t str,
    at: usize,
}

/// Operators by how tightly they bind, loosest first; a longer one stands before its beginning.
const LEVELS: [&[&str]; 2] = [&["+", "-"], &["*", "//", "/", "%"]];

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The expression that the whole text is.
    pub(super) fn whole(mut self) -> Option<Node> {
        let node = self.expression(0)?;
        self.blank();
        (self.at == self.text.len()).then_some(node)
    }

    /// The call, or another operand, at the beginning; also how many bytes it takes.
    pub(super) fn first(mut self) -> Option<(Node, usize)> {
        let node = self.postfix(0)?;
        Some((node, self.at))
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Blanks, line ends (all of it stands in brackets) and comments.
    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            let mut length = rest.len() - trimmed.len();
            if trimmed.starts_with('#') {
                length += trimmed.find('\n').unwrap_or(trimmed.len());
            }
            if length == 0 {
                return;
            }
            self.at += length;
        }
    }

    fn take(&mut self, word: &str) -> bool {
        self.blank();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expression(&mut self, depth: usize) -> Option<Node> {
        self.binary(0, depth)
    }

    fn binary(&mut self, level: usize, depth: usize) -> Option<Node> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary(depth);
        };
        let mut left = self.binary(level + 1, depth)?;
        loop {
            self.blank();
            let rest = self.rest();
            let found = operators
                .iter()
                .find(|operator| rest.starts_with(**operator) && !rest.starts_with("**"));
            let Some(operator) = found else {
                return Some(left);
            };
            self.at += operator.len();
            let right = self.binary(level + 1, depth)?;
            left = Node::Arithmetic(operator, Box::new(left), Box::new(right));
        }
    }

    fn unary(&mut self, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            return None;
        }
        self.blank();
        if let Some(sign @ ('-' | '+' | '~')) = self.peek() {
            self.at += 1;
            return Some(Node::Sign(sign, Box::new(self.unary(depth + 1)?)));
        }
        let base = self.postfix(depth)?;
        if self.take("**") {
            let power = self.unary(depth + 1)?;
            return Some(Node::Arithmetic("**", Box::new(base), Box::new(power)));
        }
        Some(base)
    }

    fn postfix(&mut self, depth: usize) -> Option<Node> {
        let mut node = self.atom(depth)?;
        loop {
            let end = self.at;
            if self.take("(") {
                let (positional, keywords) = self.arguments(depth + 1)?;
                node = Node::Call(Box::new(node), positional, keywords);
            } else if self.take("[") {
                let index = self.expression(depth + 1)?;
                if !self.take("]") {
                    return None;
                }
                node = Node::Subscript(Box::new(node), Box::new(index));
            } else {
                let name = if self.take(".") {
                    self.blank();
                    self.identifier()
                } else {
                    None
                };
                let Some(name) = name else {
                    // A full stop after a call in prose is not part of it.
                    self.at = end;
                    return Some(node);
                };
                node = Node::Attribute(Box::new(node), name);
            }
        }
    }

    fn arguments(&mut self, depth: usize) -> Option<Arguments> {
        let mut positional = Vec::new();
        let mut keywords = Vec::new();
        while !self.take(")") {
            let start = self.at;
            if self.take("**") {
                keywords.push((None, self.expression(depth)?));
                self.next_argument()?;
                continue;
            }
            let keyword = self.identifier().filter(|_| {
                self.blank();
                self.rest().starts_with('=') && !self.rest().starts_with("==")
            });
            match keyword {
                Some(name) => {
                    self.at += 1;
                    if is_keyword(&name) {
                        return None;
                    }
                    let value = self.expression(depth)?;
                    keywords.push((Some(name), value));
                }
                None if keywords.is_empty() => {
                    self.at = start;
                    let starred = self.take("*");
                    let value = self.expression(depth)?;
                    positional.push(if starred {
                        Node::Starred(Box::new(value))
                    } else {
                        value
                    });
                }
                None => return None,
            }
            self.next_argument()?;
        }
        Some((positional, keywords))
    }

    /// A comma, or the end of the arguments.
    fn next_argument(&mut self) -> Option<()> {
        (self.take(",") || self.rest().starts_with(')')).then_some(())
    }

    fn identifier(&mut self) -> Option<String> {
        let rest = self.rest();
        let length = rest
            .char_indices()
            .find(|(_, c)| !(c.is_alphanumeric() || *c == '_'))
            .map_or(rest.len(), |(at, _)| at);
        let name = &rest[..length];
        if name.is_empty() || name.starts_with(|c: char| c.is_numeric()) {
            return None;
        }
        let name = name.to_owned();
        self.at += length;
        Some(name)
    }

    fn atom(&mut self, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            return None;
        }
        self.blank();
        if self.take("[") {
            return self
                .items("]", depth + 1)
                .map(|(items, _)| Node::List(items));
        }
        if self.take("(") {
            let (mut items, comma) = self.items(")", depth + 1)?;
            return match items.pop() {
                Some(only) if items.is_empty() && !comma => Some(only),
                last => {
                    items.extend(last);
                    Some(Node::Tuple(items))
                }
            };
        }
        if self.take("{") {
            return self.members(depth + 1);
        }
        if self.take("...") {
            return Some(Node::Ellipsis);
        }
        match self.peek()? {
            '0'..='9' | '.' => self.number().map(Node::Constant),
            '"' | '\'' => self.texts().map(|text| Node::Constant(Value::Str(text))),
            _ => self.word(),
        }
    }

    /// A name, a constant, or a text with a prefix.
    fn word(&mut self) -> Option<Node> {
        let start = self.at;
        let name = self.identifier()?;
        if matches!(self.peek(), Some('"' | '\'')) {
            if !matches!(name.as_str(), "r" | "R" | "u" | "U") {
                return None;
            }
            self.at = start;
            return self.texts().map(|text| Node::Constant(Value::Str(text)));
        }
        match name.as_str() {
            "None" => Some(Node::Constant(Value::None)),
            "True" => Some(Node::Constant(Value::Bool(true))),
            "False" => Some(Node::Constant(Value::Bool(false))),
            _ if is_keyword(&name) => None,
            _ => Some(Node::Name(name)),
        }
    }

    /// Items up to `close`; whether a comma stands before it.
    fn items(&mut self, close: &str, depth: usize) -> Option<(Vec<Node>, bool)> {
        let mut items = Vec::new();
        let mut comma = false;
        while !self.take(close) {
            if !items.is_empty() && !comma {
                return None;
            }
            items.push(self.expression(depth)?);
            comma = self.take(",");
        }
        Some((items, comma))
    }

    fn members(&mut self, depth: usize) -> Option<Node> {
        let mut members = Vec::new();
        while !self.take("}") {
            let key = self.expression(depth)?;
            if !self.take(":") {
                return None;
            }
            members.push((key, self.expression(depth)?));
            if !self.take(",") && !self.rest().starts_with('}') {
                return None;
            }
        }
        Some(Node::Dict(members))
    }

    fn number(&mut self) -> Option<Value> {
        let rest = self.rest();
        let length = number_length(rest);
        let text = rest[..length].to_owned();
        let after = rest[length..].chars().next();
        if after.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        self.at += length;
        let lower = text.to_ascii_lowercase();
        for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
            if let Some(digits) = lower.strip_prefix(prefix) {
                let digits = digits.replace('_', "");
                let number = i128::from_str_radix(&digits, radix).ok()?;
                return Some(Value::Int(Int::from(number)));
            }
        }
        let plain = text.replace('_', "");
        match Int::parse(&plain) {
            Some(int) => {
                let leading_zero = plain.len() > 1 && plain.starts_with('0');
                (!leading_zero || int.as_str() == "0").then_some(Value::Int(int))
            }
            None => plain.parse().ok().map(Value::Float),
        }
    }

    /// Texts one after the other are one text.
    fn texts(&mut self) -> Option<String> {
        let mut all = String::new();
        loop {
            let start = self.at;
            let raw = matches!(self.peek(), Some('r' | 'R'));
            if matches!(self.peek(), Some('r' | 'R' | 'u' | 'U')) {
                self.at += 1;
            }
            if !matches!(self.peek(), Some('"' | '\'')) {
                self.at = start;
                return Some(all);
            }
            all.push_str(&self.text(raw)?);
            self.blank();
        }
    }

    fn text(&mut self, raw: bool) -> Option<String> {
        let quote = self.peek()?;
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let close = if self.rest().starts_with(&triple) {
            triple
        } else {
            quote.to_string()
        };
        self.at += close.len();
        let mut out = String::new();
        loop {
            if self.rest().starts_with(&close) {
                self.at += close.len();
                return Some(out);
            }
            let c = self.peek()?;
            self.at += c.len_utf8();
            match c {
                '\n' if close.len() == 1 => return None,
                '\\' if raw => {
                    out.push('\\');
                    let next = self.peek()?;
                    self.at += next.len_utf8();
                    out.push(next);
                }
                '\\' => self.escape(&mut out)?,
                _ => out.push(c),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Option<()> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        match c {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(c),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            'x' => out.push(self.code(16, 2, 2)?),
            'u' => out.push(self.code(16, 4, 4)?),
            'U' => out.push(self.code(16, 8, 8)?),
            'N' => return None,
            '0'..='7' => {
                self.at -= 1;
                out.push(self.code(8, 1, 3)?);
            }
            _ => {
                out.push('\\');
                out.push(c);
            }
        }
        Some(())
    }

    /// A character by its code in `least` to `most` digits.
    fn code(&mut self, radix: u32, least: usize, most: usize) -> Option<char> {
        let rest = self.rest();
        let length = rest
            .chars()
            .take(most)
            .take_while(|c| c.is_digit(radix))
            .count();
        if length < least {
            return None;
        }
        let code = u32::from_str_radix(&rest[..length], radix).ok()?;
        self.at += length;
        Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

/// Bytes of a number's literal, with the letters of a radix or an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if matches!(bytes, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]) {
        let digits = bytes[2..]
            .iter()
            .take_while(|b| b.is_ascii_hexdigit() || **b == b'_');
        return 2 + digits.count();
    }
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter()
            .take_while(|b| b.is_ascii_digit() || **b == b'_')
            .count()
    };
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1;
        length += digits(length);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

/// Words that are no names.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "False"
            | "None"
            | "True"
            | "and"
            | "as"
            | "assert"
            | "async"
            | "await"
            | "break"
            | "class"
            | "continue"
            | "def"
            | "del"
            | "elif"
            | "else"
            | "except"
            | "finally"
            | "for"
            | "from"
            | "global"
            | "if"
            | "import"
            | "in"
            | "is"
            | "lambda"
            | "nonlocal"
            | "not"
            | "or"
            | "pass"
            | "raise"
            | "return"
            | "try"
            | "while"
            | "with"
            | "yield"
    )
}
