//! Reads a `pattern`: ECMA-262 regular expressions, leniently, with a few habits of other
//! dialects that schemas in the wild show (`\A`, `\Z`, `(?P<n>…)`, `(?i)`).

use super::re::{Re, intersection, union};
use crate::grammar::ast::CharClass;

/// Why a pattern could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It is not a regular expression.
    Malformed(String),
    /// It uses what no finite automaton can match (back-references, look-behind).
    Unsupported(String),
}

/// Deepest nesting of groups.
const MAX_DEPTH: usize = 100;
/// Longest pattern, in code points.
const MAX_LENGTH: usize = 20_000;

/// Parses `pattern`.
pub fn parse(pattern: &str) -> Result<Re, PatternError> {
    let chars: Vec<char> = pattern.chars().collect();
    if chars.len() > MAX_LENGTH {
        return Err(PatternError::Unsupported(format!(
            "longer than {MAX_LENGTH} characters"
        )));
    }
    let mut parser = Parser {
        chars,
        at: 0,
        depth: 0,
        ignore_case: false,
        dot_all: false,
    };
    let re = parser.disjunction()?;
    if parser.at < parser.chars.len() {
        return Err(PatternError::Malformed("unmatched \")\"".into()));
    }
    Ok(re)
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    ignore_case: bool,
    dot_all: bool,
}

type Parsed<T> = Result<T, PatternError>;

fn malformed<T>(reason: &str) -> Parsed<T> {
    Err(PatternError::Malformed(reason.to_owned()))
}

fn unsupported<T>(reason: &str) -> Parsed<T> {
    Err(PatternError::Unsupported(reason.to_owned()))
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let matches = text
            .chars()
            .enumerate()
            .all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if matches {
            self.at += text.chars().count();
        }
        matches
    }

    fn disjunction(&mut self) -> Parsed<Re> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return unsupported("groups nested too deeply");
        }
        let mut alternatives = vec![self.alternative()?];
        while self.eat("|") {
            alternatives.push(self.alternative()?);
        }
        self.depth -= 1;
        Ok(Re::alt(alternatives))
    }

    fn alternative(&mut self) -> Parsed<Re> {
        let mut parts = Vec::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            let atom = self.term()?;
            parts.push(self.quantified(atom)?);
        }
        Ok(Re::concat(parts))
    }

    fn term(&mut self) -> Parsed<Re> {
        match self.next() {
            Some('^') => Ok(Re::Start),
            Some('$') => Ok(Re::End),
            Some('.') => Ok(Re::Class(if self.dot_all {
                CharClass::any()
            } else {
                line_terminators().negated()
            })),
            Some('(') => self.group(),
            Some('[') => self.class(),
            Some('\\') => self.escape(),
            Some('*' | '+' | '?') => malformed("nothing to repeat"),
            Some(c) => Ok(self.single(c)),
            None => malformed("the pattern ends early"),
        }
    }

    fn single(&self, c: char) -> Re {
        Re::Class(self.folded(CharClass::from_ranges([(c, c)])))
    }

    /// With `(?i)`, the other case of ASCII letters too.
    fn folded(&self, class: CharClass) -> CharClass {
        if !self.ignore_case {
            return class;
        }
        let mut ranges = class.ranges().to_vec();
        for (from, to) in [(b'a', b'A'), (b'A', b'a')] {
            for i in 0..26 {
                if class.contains(char::from(from + i)) {
                    ranges.push((char::from(to + i), char::from(to + i)));
                }
            }
        }
        CharClass::from_ranges(ranges)
    }

    fn group(&mut self) -> Parsed<Re> {
        let (case, all) = (self.ignore_case, self.dot_all);
        let mut look = None;
        if self.eat("?") {
            if self.eat("=") {
                look = Some(false);
            } else if self.eat("!") {
                look = Some(true);
            } else if self.eat("<=") || self.eat("<!") {
                return unsupported("look-behind");
            } else if self.eat("<") || self.eat("P<") {
                loop {
                    match self.next() {
                        Some('>') => break,
                        Some(_) => {}
                        None => return malformed("a group name is not closed"),
                    }
                }
            } else {
                let mut on = true;
                loop {
                    match self.next() {
                        Some(':') => break,
                        // Flags for the rest of the enclosing group.
                        Some(')') => return Ok(Re::Empty),
                        Some('-') => on = false,
                        Some('i') => self.ignore_case = on,
                        Some('s') => self.dot_all = on,
                        Some('u') => {}
                        Some(_) => return unsupported("a flag of a group"),
                        None => return malformed("a group is not closed"),
                    }
                }
            }
        }
        let inner = self.disjunction()?;
        if !self.eat(")") {
            return malformed("a group is not closed");
        }
        (self.ignore_case, self.dot_all) = (case, all);
        Ok(match look {
            Some(negative) => Re::Look {
                re: Box::new(inner),
                negative,
            },
            None => inner,
        })
    }

    fn quantified(&mut self, atom: Re) -> Parsed<Re> {
        let start = self.at;
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.at += 1;
                let Some(bounds) = self.braces()? else {
                    self.at = start;
                    return Ok(atom);
                };
                self.at -= 1;
                bounds
            }
            _ => return Ok(atom),
        };
        self.at += 1;
        // Lazy or not, the same texts match.
        if !self.eat("?") && self.peek() == Some('+') {
            return unsupported("possessive repetition");
        }
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            return malformed("nothing to repeat");
        }
        match atom {
            Re::Start | Re::End | Re::Boundary(_) | Re::Look { .. } => {
                Ok(if min == 0 { Re::Empty } else { atom })
            }
            atom => Ok(Re::repeat(atom, min, max)),
        }
    }

    /// `m}`, `m,}` or `m,n}`; nothing if the brace is an ordinary character.
    fn braces(&mut self) -> Parsed<Option<(u32, Option<u32>)>> {
        let Some(min) = self.number() else {
            return Ok(None);
        };
        let max = if self.eat(",") {
            self.number()
        } else {
            Some(min)
        };
        if !self.eat("}") {
            return Ok(None);
        }
        if max.is_some_and(|max| max < min) {
            return malformed("a repetition whose bounds are out of order");
        }
        Ok(Some((min, max)))
    }

    fn number(&mut self) -> Option<u32> {
        let mut value: Option<u32> = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            value = Some(value.unwrap_or(0).saturating_mul(10).saturating_add(digit));
        }
        value
    }

    fn escape(&mut self) -> Parsed<Re> {
        match self.peek() {
            Some('b') => {
                self.at += 1;
                Ok(Re::Boundary(false))
            }
            Some('B') => {
                self.at += 1;
                Ok(Re::Boundary(true))
            }
            Some('A') => {
                self.at += 1;
                Ok(Re::Start)
            }
            Some('Z' | 'z') => {
                self.at += 1;
                Ok(Re::End)
            }
            Some('k' | '1'..='9') => unsupported("a back-reference"),
            _ => {
                let class = self.class_escape()?;
                Ok(Re::Class(self.folded(class)))
            }
        }
    }

    /// What an escape stands for, the backslash already read.
    fn class_escape(&mut self) -> Parsed<CharClass> {
        let Some(c) = self.next() else {
            return malformed("the pattern ends in a backslash");
        };
        let single = |c: char| CharClass::from_ranges([(c, c)]);
        Ok(match c {
            'd' => digits(),
            'D' => digits().negated(),
            'w' => words(),
            'W' => words().negated(),
            's' => spaces(),
            'S' => spaces().negated(),
            't' => single('\t'),
            'n' => single('\n'),
            'v' => single('\u{B}'),
            'f' => single('\u{C}'),
            'r' => single('\r'),
            '0' => single('\0'),
            'c' => match self.peek() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    single(char::from((letter as u8) % 32))
                }
                _ => single('c'),
            },
            'x' => match self.hex(2) {
                Some(code) => single(char::from_u32(code).unwrap_or('\u{FFFD}')),
                None => single('x'),
            },
            'u' => return self.unicode_escape().map(single),
            'p' | 'P' => {
                let class = self.property()?;
                if c == 'P' { class.negated() } else { class }
            }
            other => single(other),
        })
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.chars.get(self.at..self.at + digits)?.iter().collect();
        let code = u32::from_str_radix(&text, 16).ok()?;
        self.at += digits;
        Some(code)
    }

    fn unicode_escape(&mut self) -> Parsed<char> {
        if self.eat("{") {
            let mut text = String::new();
            loop {
                match self.next() {
                    Some('}') => break,
                    Some(c) if text.len() < 8 => text.push(c),
                    _ => return malformed("an escape \\u{…} is not closed"),
                }
            }
            return u32::from_str_radix(&text, 16)
                .ok()
                .and_then(char::from_u32)
                .map_or_else(|| malformed("an escape \\u{…} names no character"), Ok);
        }
        let Some(high) = self.hex(4) else {
            return Ok('u');
        };
        if (0xD800..0xDC00).contains(&high) {
            let back = self.at;
            if self.eat("\\u")
                && let Some(low) = self.hex(4)
                && (0xDC00..0xE000).contains(&low)
            {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return char::from_u32(code).map_or_else(|| malformed("a bad surrogate"), Ok);
            }
            self.at = back;
            return unsupported("half of a surrogate pair");
        }
        char::from_u32(high).map_or_else(|| unsupported("half of a surrogate pair"), Ok)
    }

    /// `\p{…}` through the tables of `regex-syntax`.
    fn property(&mut self) -> Parsed<CharClass> {
        if !self.eat("{") {
            return Ok(CharClass::from_ranges([('p', 'p')]));
        }
        let mut name = String::new();
        loop {
            match self.next() {
                Some('}') => break,
                Some(c) if name.len() < 64 => name.push(c),
                _ => return malformed("\\p{…} is not closed"),
            }
        }
        let hir = regex_syntax::parse(&format!("\\p{{{name}}}"))
            .map_err(|_| PatternError::Malformed(format!("unknown property \\p{{{name}}}")))?;
        match hir.kind() {
            regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => {
                Ok(CharClass::from_ranges(
                    class
                        .ranges()
                        .iter()
                        .map(|range| (range.start(), range.end())),
                ))
            }
            _ => unsupported("a property that is no class"),
        }
    }

    fn class(&mut self) -> Parsed<Re> {
        let negated = self.eat("^");
        let mut class = CharClass::default();
        loop {
            let Some(c) = self.next() else {
                return malformed("a class is not closed");
            };
            if c == ']' {
                break;
            }
            let low = self.class_atom(c)?;
            let low_single = single_of(&low);
            if self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|&c| c != ']') {
                let back = self.at;
                self.at += 1;
                let Some(c) = self.next() else {
                    return malformed("a class is not closed");
                };
                let high = self.class_atom(c)?;
                match (low_single, single_of(&high)) {
                    (Some(low), Some(high)) if low <= high => {
                        class = union(&class, &CharClass::from_ranges([(low, high)]));
                    }
                    (Some(_), Some(_)) => return malformed("a range is out of order"),
                    // `[\w-.]`: the hyphen is itself.
                    _ => {
                        self.at = back + 1;
                        class = union(&class, &low);
                        class = union(&class, &CharClass::from_ranges([('-', '-')]));
                    }
                }
            } else {
                class = union(&class, &low);
            }
        }
        let class = self.folded(class);
        Ok(Re::Class(if negated { class.negated() } else { class }))
    }

    fn class_atom(&mut self, c: char) -> Parsed<CharClass> {
        if c != '\\' {
            return Ok(CharClass::from_ranges([(c, c)]));
        }
        if self.eat("b") {
            return Ok(CharClass::from_ranges([('\u{8}', '\u{8}')]));
        }
        self.class_escape()
    }
}

fn single_of(class: &CharClass) -> Option<char> {
    match class.ranges() {
        [(a, b)] if a == b => Some(*a),
        _ => None,
    }
}

fn digits() -> CharClass {
    CharClass::from_ranges([('0', '9')])
}

/// The characters of `\w`.
pub fn words() -> CharClass {
    CharClass::from_ranges([('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')])
}

fn spaces() -> CharClass {
    CharClass::from_ranges([
        ('\t', '\r'),
        (' ', ' '),
        ('\u{A0}', '\u{A0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200A}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202F}', '\u{202F}'),
        ('\u{205F}', '\u{205F}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{FEFF}', '\u{FEFF}'),
    ])
}

fn line_terminators() -> CharClass {
    let all = CharClass::from_ranges([('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]);
    intersection(&all, &CharClass::any())
}
