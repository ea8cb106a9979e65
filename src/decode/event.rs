//! What is told of each token while it is written.

use crate::vocab::TokenId;
use std::time::Duration;

/// One token that was written, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct TokenEvent<'a> {
    /// The token.
    pub token: TokenId,
    /// What it spells.
    pub bytes: &'a [u8],
    /// How many tokens were possible: 1 where it was forced.
    pub allowed: usize,
    /// Natural logarithm of its probability among those; 0 where it was forced.
    pub log_probability: f64,
    /// Time that its mask took.
    pub mask_time: Duration,
}
