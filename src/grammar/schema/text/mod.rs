//! Sets of strings: patterns as schemas write them, automata over code points, formats.
//!
//! Works on the unescaped text of a JSON string; escaping is a matter of emission.

pub mod automaton;
pub mod ecma;
pub mod format;
mod nfa;
mod partition;
pub mod re;
