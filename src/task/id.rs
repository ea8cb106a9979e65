//! Short task ids that sort by time: people type them, files are named after them.

use jiff::Timestamp;
use std::fmt;
use std::str::FromStr;

/// Crockford's base 32, lower case: no `i`, `l`, `o`, `u` to misread.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Names one task in a journal: seven digits of the second it was created in and three of chance
/// (`1v6xk3r-q7m`). Lexicographic order is time order.
///
/// An id is safe as a file name: lower-case letters, digits and `-`, at most
/// [`MAX_LENGTH`](Self::MAX_LENGTH) bytes.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// Longest id that is accepted, in bytes.
    pub const MAX_LENGTH: usize = 32;

    /// An id for a task created at `now`; `random` makes two of the same second differ (its low
    /// 15 bits are used; where the journal already has the id, try another number).
    ///
    /// ```
    /// use snaffle::task::TaskId;
    /// let early = TaskId::new(jiff::Timestamp::from_second(1_796_000_000).unwrap(), 7);
    /// let late = TaskId::new(jiff::Timestamp::from_second(1_796_000_001).unwrap(), 3);
    /// assert_eq!(early.as_str(), "1ngsj80-007");
    /// assert!(early < late);
    /// ```
    pub fn new(now: Timestamp, random: u32) -> Self {
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let mut text = String::with_capacity(11);
        push_digits(&mut text, seconds, 7);
        text.push('-');
        push_digits(&mut text, u64::from(random), 3);
        Self(text)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The lowest `count` base-32 digits of `number`, most significant first.
fn push_digits(text: &mut String, number: u64, count: u32) {
    for place in (0..count).rev() {
        let digit = (number >> (5 * place)) & 31;
        text.push(char::from(DIGITS[digit as usize]));
    }
}

/// Not a task id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task id has 1 to 32 lower-case letters, digits and '-'")]
pub struct InvalidTaskId;

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, InvalidTaskId> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for TaskId {
    type Error = InvalidTaskId;

    fn try_from(text: String) -> Result<Self, InvalidTaskId> {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if text.is_empty()
            || text.len() > Self::MAX_LENGTH
            || text.starts_with('-')
            || !text.bytes().all(legal)
        {
            return Err(InvalidTaskId);
        }
        Ok(Self(text))
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_an_id() {
        for (text, legal) in [
            ("1ngsz80-007", true),
            ("a", true),
            ("", false),
            ("-a", false),
            ("../a", false),
            ("A", false),
            ("задача", false),
            ("0123456789012345678901234567890123", false),
        ] {
            assert_eq!(text.parse::<TaskId>().is_ok(), legal, "{text:?}");
        }
    }

    #[test]
    fn sorts_by_time_and_differs_by_chance() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut ids = vec![
            TaskId::new(at(2_000_000_000), 0),
            TaskId::new(at(1_800_000_000), u32::MAX),
            TaskId::new(at(1_800_000_000), 1),
        ];
        ids.sort();
        assert_eq!(ids[0], TaskId::new(at(1_800_000_000), 1));
        assert_eq!(ids[2], TaskId::new(at(2_000_000_000), 0));
        for id in ids {
            assert_eq!(id.as_str().parse(), Ok(id.clone()));
        }
    }
}
