//! Prints a grammar as GBNF that a person can read and llama.cpp's parser accepts.
//!
//! `parse(print(grammar))` matches the same texts, guards against runaway repetition among items
//! in any order aside, which GBNF cannot say. Names keep to letters, digits and hyphens;
//! everything that is not printable ASCII or a letter of some script is escaped. The root is
//! called `root` and comes first.

use std::fmt::{self, Write};

use super::ast::{CharClass, Expr, Grammar, RuleId, TokenReference, Unordered};
use super::permute::{self, PrintError};

impl Grammar {
    /// The grammar as GBNF. Members in any order are written out as rules, one for each set of
    /// members that may be behind.
    ///
    /// # Errors
    /// If that takes more than 128 rules: some seven members.
    pub fn to_gbnf(&self) -> Result<String, PrintError> {
        if permute::is_needed(self) {
            Ok(Plain(&permute::spelled_out(self)?).to_string())
        } else {
            Ok(Plain(self).to_string())
        }
    }
}

/// GBNF, or, where members in any order are too many for it, a notation of our own that no parser
/// reads. [`to_gbnf`](Grammar::to_gbnf) is never anything but GBNF.
impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if permute::is_needed(self)
            && let Ok(grammar) = permute::spelled_out(self)
        {
            return Plain(&grammar).fmt(f);
        }
        Plain(self).fmt(f)
    }
}

/// Prints what it is given as it is.
struct Plain<'a>(&'a Grammar);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grammar = self.0;
        let names = names(grammar);
        let order = std::iter::once(grammar.root()).chain(
            (0..grammar.rules().len())
                .map(|at| RuleId(at as u32))
                .filter(|&id| id != grammar.root()),
        );
        let printer = Printer { names };
        for (at, id) in order.enumerate() {
            let rule = grammar.rule(id);
            if let Some(comment) = &rule.comment {
                if at > 0 {
                    f.write_char('\n')?;
                }
                let comment: String = comment.chars().map(plain).collect();
                for line in comment.trim().lines() {
                    writeln!(f, "{}", format!("# {}", line.trim()).trim_end())?;
                }
            }
            write!(f, "{} ::= ", printer.names[id.0 as usize])?;
            printer.expr(f, &rule.body, Level::Alternatives)?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}

/// A comment must not end early, whatever is in it.
fn plain(c: char) -> char {
    if c.is_control() && c != '\n' { ' ' } else { c }
}

/// The printed name of each rule: the root is `root`, the others are unique and GBNF.
fn names(grammar: &Grammar) -> Vec<String> {
    let mut taken: rustc_hash::FxHashSet<String> = rustc_hash::FxHashSet::default();
    taken.insert("root".to_owned());
    grammar
        .rules()
        .iter()
        .enumerate()
        .map(|(at, rule)| {
            if at == grammar.root().0 as usize {
                return "root".to_owned();
            }
            let mut base: String = rule
                .name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect();
            if base.is_empty() || base.starts_with('-') {
                base.insert(0, 'r');
            }
            let mut name = base.clone();
            let mut number = 2;
            while !taken.insert(name.clone()) {
                name = format!("{base}-{number}");
                number += 1;
            }
            name
        })
        .collect()
}

/// How tightly the context binds: an expression that binds less needs parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Alternatives,
    Sequence,
    Item,
}

struct Printer {
    names: Vec<String>,
}

impl Printer {
    fn expr(&self, f: &mut fmt::Formatter<'_>, expr: &Expr, level: Level) -> fmt::Result {
        match expr {
            Expr::Empty => f.write_str(if level == Level::Item {
                "(\"\")"
            } else {
                "\"\""
            }),
            Expr::Literal(text) if text.is_empty() => self.expr(f, &Expr::Empty, level),
            Expr::Literal(text) => {
                f.write_char('"')?;
                text.chars().try_for_each(|c| escaped(f, c, "\"\\"))?;
                f.write_char('"')
            }
            Expr::Class(class) => print_class(f, class),
            Expr::Seq(parts) if parts.is_empty() => self.expr(f, &Expr::Empty, level),
            Expr::Alt(parts) if parts.is_empty() => print_class(f, &CharClass::default()),
            Expr::Seq(parts) | Expr::Alt(parts) if parts.len() == 1 => {
                self.expr(f, &parts[0], level)
            }
            Expr::Seq(parts) => self.list(f, parts, " ", level, Level::Sequence),
            Expr::Alt(parts) => self.list(f, parts, " | ", level, Level::Alternatives),
            Expr::Repeat { expr, min, max } => {
                // A repetition of a repetition needs parentheses for the reader's sake.
                if matches!(**expr, Expr::Repeat { .. }) {
                    f.write_char('(')?;
                    self.expr(f, expr, Level::Alternatives)?;
                    f.write_char(')')?;
                } else {
                    self.expr(f, expr, Level::Item)?;
                }
                match (min, max) {
                    (0, None) => f.write_char('*'),
                    (1, None) => f.write_char('+'),
                    (0, Some(1)) => f.write_char('?'),
                    (min, None) => write!(f, "{{{min},}}"),
                    (min, Some(max)) if min == max => write!(f, "{{{min}}}"),
                    (min, Some(max)) => write!(f, "{{{min},{max}}}"),
                }
            }
            Expr::Rule(id) => f.write_str(&self.names[id.0 as usize]),
            Expr::Unordered(set) => self.unordered(f, set),
            Expr::Token { token, negated } => {
                if *negated {
                    f.write_char('!')?;
                }
                match token {
                    TokenReference::Id(id) => write!(f, "<[{id}]>"),
                    TokenReference::Text(text) => f.write_str(text),
                }
            }
        }
    }

    /// Members in any order, in a notation that is not GBNF.
    fn unordered(&self, f: &mut fmt::Formatter<'_>, set: &Unordered) -> fmt::Result {
        f.write_str("unordered(")?;
        self.expr(f, &set.separator, Level::Alternatives)?;
        for member in &set.members {
            f.write_str(", ")?;
            self.expr(f, &Expr::Literal(member.key.clone()), Level::Item)?;
            f.write_char(' ')?;
            self.expr(f, &member.value, Level::Item)?;
            if !member.required {
                f.write_char('?')?;
            }
        }
        if let Some(others) = &set.others {
            f.write_str(", ")?;
            self.expr(f, &others.item, Level::Item)?;
            match others.guard {
                Some(guard) => write!(f, "{{0,{guard}}}")?,
                None => f.write_char('*')?,
            }
        }
        match (set.min, set.max) {
            (0, None) => {}
            (min, None) => write!(f, ", {{{min},}}")?,
            (min, Some(max)) => write!(f, ", {{{min},{max}}}")?,
        }
        f.write_char(')')
    }

    fn list(
        &self,
        f: &mut fmt::Formatter<'_>,
        parts: &[Expr],
        between: &str,
        level: Level,
        own: Level,
    ) -> fmt::Result {
        let inner = match own {
            Level::Alternatives => Level::Sequence,
            Level::Sequence | Level::Item => Level::Item,
        };
        if level > own {
            f.write_char('(')?;
        }
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                f.write_str(between)?;
            }
            // Inside a sequence an item may be a repetition; only looser ones need parentheses.
            self.expr(f, part, inner)?;
        }
        if level > own {
            f.write_char(')')?;
        }
        Ok(())
    }
}

/// One character of a literal or class; `special` get a backslash.
fn escaped(f: &mut fmt::Formatter<'_>, c: char, special: &str) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        c if special.contains(c) => write!(f, "\\{c}"),
        ' '..='~' => f.write_char(c),
        c if c.is_alphanumeric() => f.write_char(c),
        c => {
            let value = u32::from(c);
            match value {
                0..=0xFF => write!(f, "\\x{value:02X}"),
                0x100..=0xFFFF => write!(f, "\\u{value:04X}"),
                _ => write!(f, "\\U{value:08X}"),
            }
        }
    }
}

fn print_class(f: &mut fmt::Formatter<'_>, class: &CharClass) -> fmt::Result {
    if *class == CharClass::any() {
        return f.write_char('.');
    }
    // A class that reaches the last character is shorter, and easier to read, the other way round.
    let negated = class.is_empty() || class.ranges().last().is_some_and(|r| r.1 == char::MAX);
    let shown = if negated {
        class.negated()
    } else {
        class.clone()
    };
    f.write_str(if negated { "[^" } else { "[" })?;
    for &(low, high) in shown.ranges() {
        class_char(f, low)?;
        if high > low {
            if u32::from(high) > u32::from(low) + 1 {
                f.write_char('-')?;
            }
            class_char(f, high)?;
        }
    }
    f.write_char(']')
}

fn class_char(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        // llama.cpp takes `^` first in a class as a negation and knows no escape for it.
        '^' => f.write_str("\\x5E"),
        '-' => f.write_str("\\x2D"),
        c => escaped(f, c, "[]\\"),
    }
}
