//! The GBNF parser: one pass by recursive descent, depth bounded.

use rustc_hash::FxHashMap;

use super::error::{GbnfError, GbnfErrorKind, GbnfWarning, GbnfWarningKind, Place};
use crate::grammar::analysis;
use crate::grammar::ast::{CharClass, Expr, Grammar, Rule, RuleId, TokenReference};
use crate::grammar::limits::{Bound, LimitError, Limits};

/// A grammar and what is suspicious about its text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The grammar.
    pub grammar: Grammar,
    /// In the order of the text.
    pub warnings: Vec<GbnfWarning>,
}

/// Reads a GBNF text.
///
/// ```
/// use snaffle::grammar::{Limits, gbnf};
/// let parsed = gbnf::parse("root ::= \"yes\" | \"no\"\n", &Limits::default())?;
/// assert_eq!(parsed.grammar.rules().len(), 1);
/// let error = gbnf::parse("root ::= yes", &Limits::default()).unwrap_err();
/// assert!(error.to_string().contains("rule `yes` is not defined"));
/// # Ok::<(), gbnf::GbnfError>(())
/// ```
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(text: &str, limits: &Limits) -> Result<Parsed, GbnfError> {
    let mut parser = Parser {
        text,
        at: 0,
        limits,
        rules: Vec::new(),
        names: FxHashMap::default(),
        warnings: Vec::new(),
        depth: 0,
    };
    LimitError::check(Bound::GrammarBytes, text.len(), limits.grammar_bytes)
        .map_err(|error| parser.error_at(0, error.into()))?;
    parser.file()?;
    parser.finish()
}

/// A rule that was mentioned, and perhaps defined.
struct Entry {
    name: String,
    mentioned: usize,
    definition: Option<Definition>,
}

struct Definition {
    at: usize,
    body: Expr,
    comment: Option<String>,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    limits: &'a Limits,
    rules: Vec<Entry>,
    names: FxHashMap<&'a str, u32>,
    warnings: Vec<GbnfWarning>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error_at(&self, at: usize, kind: GbnfErrorKind) -> GbnfError {
        GbnfError {
            kind,
            place: Place::of(self.text, at),
        }
    }

    fn warn_at(&mut self, at: usize, kind: GbnfWarningKind) {
        let place = Place::of(self.text, at);
        self.warnings.push(GbnfWarning { kind, place });
    }

    fn expected(&self, expected: &'static str) -> GbnfError {
        let found = match self.text[self.at..].chars().next() {
            None => "the end of the text".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some('"') => "`\"`".to_owned(),
            Some(c) => format!("`{}`", c.escape_debug()),
        };
        self.error_at(self.at, GbnfErrorKind::Expected { expected, found })
    }

    /// Skips blanks and comments, and newlines where they are allowed. Comments that stand on the
    /// lines directly above a rule are returned with it.
    fn space(&mut self, newlines: bool) -> Option<String> {
        let mut comment: Option<String> = None;
        let mut blank_line = false;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\r' => {
                    if !newlines {
                        break;
                    }
                    self.at += 1;
                }
                b'\n' => {
                    if !newlines {
                        break;
                    }
                    if blank_line {
                        comment = None;
                    }
                    blank_line = true;
                    self.at += 1;
                }
                b'#' => {
                    let rest = &self.text[self.at..];
                    let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
                    let line = rest[1..end].trim();
                    match &mut comment {
                        Some(text) => {
                            text.push('\n');
                            text.push_str(line);
                        }
                        None => comment = Some(line.to_owned()),
                    }
                    blank_line = false;
                    self.at += end;
                }
                _ => break,
            }
        }
        comment
    }

    fn file(&mut self) -> Result<(), GbnfError> {
        let mut comment = self.space(true);
        while self.at < self.text.len() {
            self.rule(comment.take())?;
            comment = self.space(true);
        }
        Ok(())
    }

    fn rule(&mut self, comment: Option<String>) -> Result<(), GbnfError> {
        let start = self.at;
        let Some(name) = self.name() else {
            return Err(self.expected("a rule name"));
        };
        if name.contains('_') {
            self.warn_at(start, GbnfWarningKind::Underscore(name.to_owned()));
        }
        self.space(false);
        if !self.text[self.at..].starts_with("::=") {
            return Err(self.expected("`::=` after the rule's name"));
        }
        self.at += 3;
        self.space(true);
        let (body, _) = self.alternatives(false)?;
        match self.peek() {
            None | Some(b'\n' | b'\r') => {}
            Some(b')') => return Err(self.expected("an item or the end of the rule")),
            Some(_) => {
                return Err(self.expected(
                    "a literal, a character class, a rule name, a group, `.`, a token, `|` or the end of the line",
                ));
            }
        }
        let id = self.mention(name, start)?;
        let entry = &mut self.rules[id as usize];
        let redefined = entry.definition.is_some();
        entry.definition = Some(Definition {
            at: start,
            body,
            comment,
        });
        if redefined {
            self.warn_at(start, GbnfWarningKind::Redefined(name.to_owned()));
        }
        Ok(())
    }

    fn name(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
            .unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    fn mention(&mut self, name: &'a str, at: usize) -> Result<u32, GbnfError> {
        if let Some(&id) = self.names.get(name) {
            return Ok(id);
        }
        let id = self.rules.len();
        LimitError::check(Bound::Rules, id + 1, self.limits.rules)
            .map_err(|error| self.error_at(at, error.into()))?;
        self.rules.push(Entry {
            name: name.to_owned(),
            mentioned: at,
            definition: None,
        });
        self.names.insert(name, id as u32);
        Ok(id as u32)
    }

    fn check_depth(&self, depth: usize, at: usize) -> Result<(), GbnfError> {
        LimitError::check(Bound::Nesting, depth, self.limits.nesting)
            .map_err(|error| self.error_at(at, error.into()))
    }

    /// Alternatives and how deep repetitions and groups are inside each other.
    fn alternatives(&mut self, nested: bool) -> Result<(Expr, usize), GbnfError> {
        let (first, mut depth) = self.sequence(nested)?;
        let mut all = vec![first];
        while self.peek() == Some(b'|') {
            self.at += 1;
            self.space(true);
            let (next, next_depth) = self.sequence(nested)?;
            depth = depth.max(next_depth);
            all.push(next);
        }
        Ok((Expr::alt(all), depth))
    }

    fn sequence(&mut self, nested: bool) -> Result<(Expr, usize), GbnfError> {
        let mut parts: Vec<Expr> = Vec::new();
        let mut deepest = 0;
        // The item that a repetition would apply to, and its depth.
        let mut last: Option<(Expr, usize)> = None;
        loop {
            let start = self.at;
            let item = match self.peek() {
                Some(b'"') => (self.string()?, 0),
                Some(b'[') => (self.class()?, 0),
                Some(b'<' | b'!') => (self.token()?, 0),
                Some(b'.') => {
                    self.at += 1;
                    (Expr::Class(CharClass::any()), 0)
                }
                Some(b'(') => self.group()?,
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' => {
                    let Some(name) = self.name() else { break };
                    (Expr::Rule(RuleId(self.mention(name, start)?)), 0)
                }
                Some(b'*' | b'+' | b'?' | b'{') => {
                    let Some((expr, depth)) = last.take() else {
                        return Err(self.error_at(start, GbnfErrorKind::NothingToRepeat));
                    };
                    let (min, max) = self.repetition(nested)?;
                    self.check_depth(self.depth + depth + 1, start)?;
                    (Expr::repeat(expr, min, max), depth + 1)
                }
                _ => break,
            };
            deepest = deepest.max(item.1);
            if let Some((done, _)) = last.replace(item) {
                parts.push(done);
            }
            self.space(nested);
        }
        parts.extend(last.map(|(expr, _)| expr));
        Ok((Expr::seq(parts), deepest))
    }

    fn group(&mut self) -> Result<(Expr, usize), GbnfError> {
        let start = self.at;
        self.depth += 1;
        self.check_depth(self.depth, start)?;
        self.at += 1;
        self.space(true);
        let (expr, depth) = self.alternatives(true)?;
        if self.peek() != Some(b')') {
            return Err(self.expected("`)` to close the group"));
        }
        self.at += 1;
        self.depth -= 1;
        Ok((expr, depth + 1))
    }

    fn repetition(&mut self, nested: bool) -> Result<(u32, Option<u32>), GbnfError> {
        let start = self.at;
        let byte = self.peek();
        self.at += 1;
        match byte {
            Some(b'*') => return Ok((0, None)),
            Some(b'+') => return Ok((1, None)),
            Some(b'?') => return Ok((0, Some(1))),
            _ => {}
        }
        self.space(nested);
        let min = self.count()?;
        self.space(nested);
        let max = match self.peek() {
            Some(b'}') => Some(min),
            Some(b',') => {
                self.at += 1;
                self.space(nested);
                let max = match self.peek() {
                    Some(b'0'..=b'9') => Some(self.count()?),
                    _ => None,
                };
                self.space(nested);
                if self.peek() != Some(b'}') {
                    return Err(self.expected("`}` or a number"));
                }
                max
            }
            _ => return Err(self.expected("`,` or `}`")),
        };
        self.at += 1;
        if let Some(max) = max
            && max < min
        {
            return Err(self.error_at(start, GbnfErrorKind::RepetitionBounds { min, max }));
        }
        Ok((min, max))
    }

    fn count(&mut self) -> Result<u32, GbnfError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected("a number"));
        }
        let limit = self.limits.repetition;
        match self.text[start..self.at].parse::<u32>() {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(self.error_at(
                start,
                LimitError {
                    bound: Bound::Repetition,
                    limit: limit as usize,
                }
                .into(),
            )),
        }
    }

    fn string(&mut self) -> Result<Expr, GbnfError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => {
                    self.at = start;
                    return Err(self.error_at(
                        start,
                        GbnfErrorKind::Expected {
                            expected: "a closing `\"` for this literal",
                            found: "the end of the text".to_owned(),
                        },
                    ));
                }
                Some(b'"') => break,
                Some(_) => text.push(self.character()?),
            }
        }
        self.at += 1;
        Ok(Expr::literal(text))
    }

    fn class(&mut self) -> Result<Expr, GbnfError> {
        let start = self.at;
        self.at += 1;
        let negated = self.peek() == Some(b'^');
        if negated {
            self.at += 1;
        }
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None => {
                    return Err(self.error_at(
                        start,
                        GbnfErrorKind::Expected {
                            expected: "a closing `]` for this character class",
                            found: "the end of the text".to_owned(),
                        },
                    ));
                }
                Some(b']') => break,
                Some(_) => {
                    let at = self.at;
                    let low = self.character()?;
                    let rest = &self.text.as_bytes()[self.at..];
                    if rest.first() == Some(&b'-') && rest.get(1).is_some_and(|&b| b != b']') {
                        self.at += 1;
                        let high = self.character()?;
                        if high < low {
                            self.warn_at(at, GbnfWarningKind::EmptyRange(low, high));
                        }
                        ranges.push((low, high));
                    } else {
                        ranges.push((low, low));
                    }
                }
            }
        }
        self.at += 1;
        if ranges.is_empty() {
            return Err(self.error_at(start, GbnfErrorKind::EmptyClass));
        }
        let class = CharClass::from_ranges(ranges);
        Ok(Expr::Class(if negated { class.negated() } else { class }))
    }

    /// One character of a literal or class, escaped or not.
    fn character(&mut self) -> Result<char, GbnfError> {
        let start = self.at;
        let mut rest = self.text[start..].chars();
        let Some(first) = rest.next() else {
            return Err(self.expected("a character"));
        };
        self.at += first.len_utf8();
        if first != '\\' {
            return Ok(first);
        }
        let Some(escape) = rest.next() else {
            return Err(self.expected("an escaped character"));
        };
        self.at += escape.len_utf8();
        let digits = match escape {
            't' => return Ok('\t'),
            'r' => return Ok('\r'),
            'n' => return Ok('\n'),
            '\\' | '"' | '[' | ']' | '-' => return Ok(escape),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => {
                let shown = other.escape_debug().to_string();
                return Err(self.error_at(start, GbnfErrorKind::UnknownEscape(shown)));
            }
        };
        let mut value: u32 = 0;
        for _ in 0..digits {
            let digit = self
                .peek()
                .and_then(|byte| char::from(byte).to_digit(16))
                .ok_or_else(|| self.expected("a hexadecimal digit"))?;
            value = (value << 4) | digit;
            self.at += 1;
        }
        char::from_u32(value)
            .ok_or_else(|| self.error_at(start, GbnfErrorKind::NotACharacter(value)))
    }

    fn token(&mut self) -> Result<Expr, GbnfError> {
        let negated = self.peek() == Some(b'!');
        if negated {
            self.at += 1;
        }
        if self.peek() != Some(b'<') {
            return Err(self.expected("`<` of a token after `!`"));
        }
        let start = self.at;
        self.at += 1;
        if self.peek() == Some(b'[') {
            self.at += 1;
            let digits = self.at;
            while matches!(self.peek(), Some(b'0'..=b'9')) {
                self.at += 1;
            }
            if digits == self.at {
                return Err(self.expected("a token number"));
            }
            let number = &self.text[digits..self.at];
            let id: u32 = number.parse().map_err(|_| {
                let shown = number.chars().take(20).collect();
                self.error_at(digits, GbnfErrorKind::TokenNumber(shown))
            })?;
            if !self.text[self.at..].starts_with("]>") {
                return Err(self.expected("`]>` after the token's number"));
            }
            self.at += 2;
            return Ok(Expr::Token {
                token: TokenReference::Id(id),
                negated,
            });
        }
        let rest = &self.text[start..];
        let Some(end) = rest.find('>') else {
            return Err(self.error_at(
                start,
                GbnfErrorKind::Expected {
                    expected: "a closing `>` for this token",
                    found: "the end of the text".to_owned(),
                },
            ));
        };
        self.at = start + end + 1;
        Ok(Expr::Token {
            token: TokenReference::Text(rest[..=end].to_owned()),
            negated,
        })
    }

    fn finish(mut self) -> Result<Parsed, GbnfError> {
        if let Some(missing) = self.rules.iter().find(|rule| rule.definition.is_none()) {
            let similar = self
                .rules
                .iter()
                .filter(|rule| rule.definition.is_some() && alike(&rule.name, &missing.name))
                .map(|rule| rule.name.clone())
                .next();
            let kind = GbnfErrorKind::UndefinedRule {
                name: missing.name.clone(),
                similar,
            };
            return Err(self.error_at(missing.mentioned, kind));
        }
        let Some(&root) = self.names.get("root") else {
            return Err(self.error_at(0, GbnfErrorKind::NoRoot));
        };
        // Rules were numbered as they were mentioned; a reader expects the order of the text.
        let mut defined: Vec<(u32, String, Definition)> = std::mem::take(&mut self.rules)
            .into_iter()
            .zip(0..)
            .filter_map(|(entry, id)| Some((id, entry.name, entry.definition?)))
            .collect();
        defined.sort_by_key(|rule| rule.2.at);
        let mut numbers = vec![RuleId(0); defined.len()];
        for (number, rule) in (0..).zip(&defined) {
            numbers[rule.0 as usize] = RuleId(number);
        }
        let root = numbers[root as usize];
        let mut places = Vec::with_capacity(defined.len());
        let rules: Vec<Rule> = defined
            .into_iter()
            .map(|(_, name, mut definition)| {
                places.push(definition.at);
                renumber(&mut definition.body, &numbers);
                Rule {
                    name,
                    body: definition.body,
                    comment: definition.comment,
                    volatile: false,
                }
            })
            .collect();
        let grammar = Grammar::new(rules, root);
        let nullable = analysis::nullable_rules(&grammar);
        if let Some(circle) = analysis::left_recursion(&grammar, &nullable) {
            let at = places[circle[0].0 as usize];
            let path = circle
                .iter()
                .map(|&rule| grammar.rule(rule).name.clone())
                .collect();
            return Err(self.error_at(at, GbnfErrorKind::LeftRecursion { path }));
        }
        let reached = analysis::reachable_rules(&grammar);
        let mentioned = analysis::mentioned_rules(&grammar);
        let productive = analysis::productive_rules(&grammar);
        for (id, (rule, &at)) in grammar.rules().iter().zip(&places).enumerate() {
            let name = || rule.name.clone();
            if !reached[id] && !mentioned[id] {
                self.warn_at(at, GbnfWarningKind::Unused(name()));
            } else if !reached[id] {
                self.warn_at(at, GbnfWarningKind::Unreachable(name()));
            }
            if !productive[id] {
                self.warn_at(at, GbnfWarningKind::Endless(name()));
            }
        }
        self.warnings
            .sort_by_key(|warning| (warning.place.line, warning.place.column));
        Ok(Parsed {
            grammar,
            warnings: self.warnings,
        })
    }
}

/// Replaces each rule's number by its new one. The tree is at most `Limits::nesting` deep.
fn renumber(expr: &mut Expr, numbers: &[RuleId]) {
    match expr {
        Expr::Rule(id) => *id = numbers[id.0 as usize],
        Expr::Seq(parts) | Expr::Alt(parts) => {
            parts.iter_mut().for_each(|part| renumber(part, numbers));
        }
        Expr::Repeat { expr, .. } => renumber(expr, numbers),
        Expr::Unordered(set) => set.parts_mut().for_each(|part| renumber(part, numbers)),
        Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Token { .. } => {}
    }
}

/// Whether two names differ only in case, in `-` and `_`, or in one character.
fn alike(left: &str, right: &str) -> bool {
    let plain = |name: &str| name.to_ascii_lowercase().replace('_', "-");
    let (left, right) = (plain(left), plain(right));
    if left == right {
        return true;
    }
    let (short, long) = if left.len() <= right.len() {
        (left.as_bytes(), right.as_bytes())
    } else {
        (right.as_bytes(), left.as_bytes())
    };
    if long.len() - short.len() > 1 || short.len() < 3 {
        return false;
    }
    let same_start = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let rest_short = &short[same_start..];
    let rest_long = &long[same_start + 1..];
    rest_short == rest_long || rest_short.get(1..) == Some(rest_long)
}
