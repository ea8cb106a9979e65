//! Matches text against a grammar byte by byte, without a model or its vocabulary.
//!
//! What a person, a validator or a benchmark asks of a grammar: does this text match, where does it
//! stop matching, what could have stood there. Generation goes through
//! [`mask`](crate::mask), which knows what a vocabulary can spell.

use super::alphabet::AllBytes;
use super::ast::Grammar;
use super::automaton::{Automaton, DEAD_STATE, StateId};
use super::limits::{LimitError, Limits};
use super::lower::{LowerError, lower};

/// Masks are not remembered here, so counts need not be told apart beyond one byte.
const HORIZON: usize = 1;

/// A grammar compiled over bytes, and a place in a text that matches so far.
///
/// ```
/// use snaffle::grammar::{Limits, Recogniser, gbnf};
///
/// let limits = Limits::default();
/// let grammar = gbnf::parse("root ::= \"свет\" | \"sun\"", &limits)?.grammar;
/// let mut recogniser = Recogniser::new(&grammar, &limits)?;
/// assert!(recogniser.matches("свет".as_bytes())?);
/// assert_eq!(recogniser.push_all(b"sum")?, 2);
/// assert_eq!(recogniser.closing_bytes(100)?.as_deref(), Some(&b"n"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recogniser {
    automaton: Automaton,
    state: StateId,
}

/// A place to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(StateId);

impl Recogniser {
    /// Compiles `grammar` and stands at its beginning.
    ///
    /// # Errors
    /// If the grammar cannot be compiled: left recursion, a token that it names (there is no
    /// vocabulary here), nothing that it accepts, a limit.
    pub fn new(grammar: &Grammar, limits: &Limits) -> Result<Self, LowerError> {
        let program = lower(grammar, &AllBytes, limits)?;
        let automaton = Automaton::new(program, HORIZON, limits)?;
        let state = automaton.start();
        Ok(Self { automaton, state })
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        self.state = self.automaton.start();
    }

    /// The place to come back to with [`go_to`](Self::go_to).
    pub fn position(&self) -> Position {
        Position(self.state)
    }

    /// Goes to a place that this recogniser was at.
    pub fn go_to(&mut self, position: Position) {
        self.state = position.0;
    }

    /// Moves past `byte`, or refuses (`false`) and stays.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn push(&mut self, byte: u8) -> Result<bool, LimitError> {
        let next = self.automaton.step(self.state, byte)?;
        if next == DEAD_STATE {
            return Ok(false);
        }
        self.state = next;
        Ok(true)
    }

    /// Moves past as many of `bytes` as match, and says how many.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn push_all(&mut self, bytes: &[u8]) -> Result<usize, LimitError> {
        for (at, &byte) in bytes.iter().enumerate() {
            if !self.push(byte)? {
                return Ok(at);
            }
        }
        Ok(bytes.len())
    }

    /// Whether the whole of `text`, from the beginning, is accepted.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn matches(&mut self, text: &[u8]) -> Result<bool, LimitError> {
        self.reset();
        let matched = self.push_all(text)? == text.len() && self.is_accepting();
        self.reset();
        Ok(matched)
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self) -> bool {
        self.automaton.accepts(self.state)
    }

    /// Whether anything can follow.
    pub fn goes_on(&self) -> bool {
        self.automaton.goes_on(self.state)
    }

    /// The bytes that can follow, ascending.
    pub fn allowed(&self) -> impl Iterator<Item = u8> + use<> {
        let bits = *self.automaton.allowed(self.state);
        (0..=255_u8).filter(move |&byte| bits[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0)
    }

    /// Fewest bytes until the text may end; 0 where it may end here.
    pub fn distance(&self) -> u64 {
        self.automaton.distance(self.state).unwrap_or(u64::MAX)
    }

    /// A byte that begins a shortest way to the end; `None` where the text may end.
    pub fn closing_byte(&self) -> Option<u8> {
        self.automaton.closing_byte(self.state)
    }

    /// A shortest text that ends the match from here; `None` if it has more than `most` bytes. The
    /// place stays.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn closing_bytes(&mut self, most: usize) -> Result<Option<Vec<u8>>, LimitError> {
        if self.distance() > most as u64 {
            return Ok(None);
        }
        let start = self.position();
        let mut closing = Vec::new();
        while let Some(byte) = self.closing_byte() {
            closing.push(byte);
            self.push(byte)?;
        }
        self.go_to(start);
        Ok(Some(closing))
    }

    /// The run of bytes that alone can follow, at most `most`; empty where the text may end. The
    /// place stays.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn forced_bytes(&mut self, most: usize) -> Result<Vec<u8>, LimitError> {
        let start = self.position();
        let mut forced = Vec::new();
        while forced.len() < most && !self.is_accepting() {
            let mut allowed = self.allowed();
            let (Some(byte), None) = (allowed.next(), allowed.next()) else {
                break;
            };
            forced.push(byte);
            self.push(byte)?;
        }
        self.go_to(start);
        Ok(forced)
    }

    /// Bytes of memory held, roughly.
    pub fn bytes_held(&self) -> usize {
        self.automaton.bytes()
    }
}
