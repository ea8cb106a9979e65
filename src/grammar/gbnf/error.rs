//! What can be wrong with a GBNF text, and how a person is shown where.

use std::fmt;

use unicode_width::UnicodeWidthStr;

use super::super::limits::LimitError;

/// A place in a text, with the line it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// At most 80 characters of the line, control characters replaced.
    excerpt: String,
    /// Blank columns before the caret.
    indent: usize,
}

/// Characters of a line that are shown on each side of the place.
const EXCERPT: usize = 40;

impl Place {
    /// The place at byte `at` of `text`.
    pub fn of(text: &str, at: usize) -> Self {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[at..]
            .find('\n')
            .map_or(text.len(), |newline| at + newline);
        let left = &text[line_start..at];
        let shown_left: String = {
            let from = left.chars().count().saturating_sub(EXCERPT);
            left.chars().skip(from).map(visible).collect()
        };
        let shown_right = text[at..line_end].chars().take(EXCERPT).map(visible);
        let indent = shown_left.width();
        Self {
            line: before.matches('\n').count() + 1,
            column: left.chars().count() + 1,
            excerpt: shown_left.chars().chain(shown_right).collect(),
            indent,
        }
    }
}

/// Control and direction-changing characters must not reach a terminal.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
        c if c.is_control() => '\u{FFFD}',
        c => c,
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}\n  {}^", self.excerpt, " ".repeat(self.indent))
    }
}

/// A GBNF text that cannot be used: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {kind}\n{place}", place.line, place.column)]
pub struct GbnfError {
    /// What is wrong.
    pub kind: GbnfErrorKind,
    /// Where.
    pub place: Place,
}

/// What is wrong with a GBNF text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GbnfErrorKind {
    /// Something else was expected here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What would have been right.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A backslash and something that GBNF does not know.
    #[error(
        "unknown escape `\\{0}`; known are \\xXX \\uXXXX \\UXXXXXXXX \\t \\r \\n \\\\ \\\" \\[ \\] \\-"
    )]
    UnknownEscape(String),
    /// An escape for a number that is no character (a surrogate, or above U+10FFFF).
    #[error("U+{0:04X} is not a character")]
    NotACharacter(u32),
    /// `[]` or `[^]`.
    #[error("an empty character class")]
    EmptyClass,
    /// `*`, `+`, `?` or `{` with nothing before it.
    #[error("a repetition with nothing before it to repeat")]
    NothingToRepeat,
    /// `{3,2}`.
    #[error("a repetition from {min} to {max}: the first number is the larger one")]
    RepetitionBounds {
        /// The first number.
        min: u32,
        /// The second number.
        max: u32,
    },
    /// A token number that does not fit into 32 bits.
    #[error("token number {0} is too large")]
    TokenNumber(String),
    /// A rule is referred to and nowhere defined.
    #[error("rule `{name}` is not defined{}", match similar { Some(other) => format!("; did you mean `{other}`?"), None => String::new() })]
    UndefinedRule {
        /// The missing rule.
        name: String,
        /// A defined rule with almost this name.
        similar: Option<String>,
    },
    /// There is no rule called `root`.
    #[error("there is no rule `root`: that is where matching starts")]
    NoRoot,
    /// A rule begins with itself.
    #[error("left recursion: {}", path.join(" → "))]
    LeftRecursion {
        /// The rules of the circle, the first one repeated at the end.
        path: Vec<String>,
    },
    /// A limit was exceeded.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Something that is allowed, and probably not meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {kind}\n{place}", place.line, place.column)]
pub struct GbnfWarning {
    /// What is suspicious.
    pub kind: GbnfWarningKind,
    /// Where.
    pub place: Place,
}

/// What is suspicious in a GBNF text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GbnfWarningKind {
    /// The rule was defined before: this definition replaces that one, as in llama.cpp.
    #[error("rule `{0}` was defined before; this definition replaces that one")]
    Redefined(String),
    /// No other rule refers to this one.
    #[error("rule `{0}` is never used")]
    Unused(String),
    /// Others refer to this rule, but the root leads to none of them.
    #[error("rule `{0}` is used only by rules that `root` does not lead to")]
    Unreachable(String),
    /// The rule matches no text: whatever way it goes, it leads back to itself or to nothing.
    #[error("rule `{0}` can never end: it matches no text")]
    Endless(String),
    /// A range such as `[z-a]`: it has no member, as in llama.cpp.
    #[error("the range from {0:?} to {1:?} is backwards and has no member")]
    EmptyRange(char, char),
    /// A rule name with an underscore, which llama.cpp refuses.
    #[error("rule name `{0}` has an underscore, which llama.cpp does not accept")]
    Underscore(String),
}
