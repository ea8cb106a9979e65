//! Every limit of the engine, with its unit and what it costs.
//!
//! A grammar may come from a stranger (a tool server's schema, a downloaded file). Nothing in the
//! engine grows without one of these bounds; exceeding one is a typed error that names it.

/// The bounds within which grammars are parsed, compiled and matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of GBNF text. Parsing takes some 20 ns a byte.
    pub grammar_bytes: usize,
    /// Groups and repetitions inside each other. Each level takes some 500 bytes of call stack.
    pub nesting: usize,
    /// Rules of one grammar.
    pub rules: usize,
    /// The largest count in `{m,n}`. Counters are never unrolled, so a large one costs nothing by
    /// itself.
    pub repetition: u32,
    /// Instructions of the compiled program; each takes some 60 bytes.
    pub instructions: usize,
    /// Configurations of one state: how many ways of reading the text so far may be open at once.
    /// Stepping a state takes some 20 ns per configuration.
    pub configurations: usize,
    /// States of one automaton. Each takes 4 bytes per byte class (at most 1 KiB) and what its
    /// configurations take.
    pub states: usize,
    /// Stack frames of one automaton, shared between its states; each takes some 100 bytes.
    pub frames: usize,
    /// The longest run of bytes that is reported as forced, or as a closing text, at once.
    pub forced_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grammar_bytes: 16 << 20,
            nesting: 200,
            rules: 200_000,
            repetition: 2_000_000_000,
            instructions: 4_000_000,
            configurations: 8_192,
            states: 100_000,
            frames: 1_000_000,
            forced_bytes: 4_096,
        }
    }
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// [`Limits::grammar_bytes`].
    GrammarBytes,
    /// [`Limits::nesting`].
    Nesting,
    /// [`Limits::rules`].
    Rules,
    /// [`Limits::repetition`].
    Repetition,
    /// [`Limits::instructions`].
    Instructions,
    /// [`Limits::configurations`].
    Configurations,
    /// [`Limits::states`].
    States,
    /// [`Limits::frames`].
    Frames,
    /// [`Limits::forced_bytes`].
    ForcedBytes,
}

/// A limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the grammar needs more than {limit} {}", self.bound.words())]
pub struct LimitError {
    /// Which limit.
    pub bound: Bound,
    /// Its value.
    pub limit: usize,
}

impl LimitError {
    /// Checks `value` against a limit.
    ///
    /// # Errors
    /// If it is above.
    pub fn check(bound: Bound, value: usize, limit: usize) -> Result<(), Self> {
        if value > limit {
            Err(Self { bound, limit })
        } else {
            Ok(())
        }
    }
}

impl Bound {
    /// The limit in words, after "more than 100".
    pub fn words(self) -> &'static str {
        match self {
            Self::GrammarBytes => "bytes of text (limit `grammar_bytes`)",
            Self::Nesting => "levels of nesting (limit `nesting`)",
            Self::Rules => "rules (limit `rules`)",
            Self::Repetition => "repetitions of one thing (limit `repetition`)",
            Self::Instructions => "instructions (limit `instructions`)",
            Self::Configurations => {
                "readings of the same text open at once: it is very ambiguous (limit \
                 `configurations`)"
            }
            Self::States => "states (limit `states`)",
            Self::Frames => "stack frames (limit `frames`)",
            Self::ForcedBytes => "bytes in one run (limit `forced_bytes`)",
        }
    }
}
