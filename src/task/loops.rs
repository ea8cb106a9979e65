//! Loops: the same calls with the same results, round after round.
//!
//! A round is one call or several. A small model that reads two states by turns will do so for
//! ever; a repetition of whole rounds is found whatever their length.

use super::event::StepResult;
use crate::call::Call;
use siphasher::sip::SipHasher13;
use std::collections::VecDeque;
use std::hash::Hasher;

/// Longest round that is noticed, in calls.
pub const LONGEST_ROUND: usize = 8;

/// The last steps: as many as three rounds of the longest kind have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recent(VecDeque<u64>);

/// A round of calls that was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Calls in it.
    pub calls: usize,
    /// How often it came in a row, at least twice (counted up to three times).
    pub times: usize,
}

impl Recent {
    /// One more step: a call and what came of it in a state.
    pub(super) fn push(&mut self, state: &str, call: &Call, result: &StepResult) {
        let result = match result {
            StepResult::Ok(value) => value.to_string(),
            StepResult::Error { message, .. } => format!("failed: {message}"),
        };
        let mut hasher = SipHasher13::new();
        for part in [state, &call.to_text(), &result] {
            hasher.write(part.as_bytes());
            hasher.write_u8(0xff);
        }
        self.0.push_back(hasher.finish());
        if self.0.len() > 3 * LONGEST_ROUND {
            self.0.pop_front();
        }
    }

    /// Forgets all: something else happened.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The shortest round that the last steps repeat.
    pub fn round(&self) -> Option<Round> {
        let last = |back: usize| self.0.get(self.0.len().checked_sub(back)?);
        (1..=LONGEST_ROUND).find_map(|calls| {
            let same = |times: usize| {
                (1..=calls).all(|back| {
                    let first = last(back);
                    first.is_some() && first == last(back + calls * (times - 1))
                })
            };
            let times = if !same(2) {
                return None;
            } else if same(3) {
                3
            } else {
                2
            };
            Some(Round { calls, times })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rounds_of_any_length_are_noticed() {
        for (steps, expected) in [
            ("", None),
            ("ab", None),
            ("aa", Some((1, 2))),
            ("baaa", Some((1, 3))),
            ("baaaaa", Some((1, 3))),
            ("abab", Some((2, 2))),
            ("cababa", Some((2, 2))),
            ("ababab", Some((2, 3))),
            ("abcabd", None),
            ("abcabcabc", Some((3, 3))),
            ("aab", None),
            ("aabaab", Some((3, 2))),
            ("abcdefghabcdefgh", Some((8, 2))),
            ("abcdefghiabcdefghi", None),
        ] {
            let mut recent = Recent::default();
            for step in steps.chars() {
                let call = Call::new("get", [("what", step.to_string())]);
                recent.push("state", &call, &StepResult::Ok(json!(1)));
            }
            let round = recent.round().map(|round| (round.calls, round.times));
            assert_eq!(round, expected, "{steps}");
        }
    }

    #[test]
    fn another_result_or_state_is_another_step() {
        let call = Call::new("get", [("what", "a")]);
        let mut recent = Recent::default();
        for (state, result) in [("s", 1), ("s", 2), ("t", 2)] {
            recent.push(state, &call, &StepResult::Ok(json!(result)));
            assert_eq!(recent.round(), None);
        }
        recent.push("t", &call, &StepResult::Ok(json!(2)));
        assert!(recent.round().is_some());
        recent.clear();
        assert_eq!(recent.round(), None);
    }
}
