//! Snapshots of the part of a context's memory that cannot be cut.

use crate::vocab::TokenId;
use std::collections::VecDeque;
use std::sync::Arc;

/// A snapshot taken after some tokens. It holds only what cannot be cut (recurrent states and
/// sliding windows); the rest of the memory must still hold the same tokens.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub(super) tokens: Arc<[TokenId]>,
    pub(super) memory: Arc<[u8]>,
}

/// A bounded number of snapshots, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Checkpoints {
    kept: VecDeque<Checkpoint>,
    most: usize,
    most_bytes: usize,
}

impl Checkpoints {
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            most: most.max(1),
            most_bytes,
        }
    }

    /// Adds a snapshot; an older one of the same tokens is replaced, and the oldest are dropped
    /// until the bounds hold.
    pub(super) fn add(&mut self, tokens: &[TokenId], memory: Vec<u8>) {
        self.kept.retain(|kept| *kept.tokens != *tokens);
        self.kept.push_back(Checkpoint {
            tokens: tokens.into(),
            memory: memory.into(),
        });
        while self.kept.len() > 1 && (self.kept.len() > self.most || self.bytes() > self.most_bytes)
        {
            self.kept.pop_front();
        }
    }

    /// The longest snapshot that is a prefix of `tokens`.
    pub(super) fn longest(&self, tokens: &[TokenId]) -> Option<Checkpoint> {
        self.kept
            .iter()
            .filter(|kept| tokens.starts_with(&kept.tokens))
            .max_by_key(|kept| kept.tokens.len())
            .cloned()
    }

    /// Drops what is no prefix of what the context holds now.
    pub(super) fn forget_all_but_prefixes_of(&mut self, tokens: &[TokenId]) {
        self.kept.retain(|kept| tokens.starts_with(&kept.tokens));
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.kept
            .iter()
            .map(|kept| kept.memory.len() + kept.tokens.len() * size_of::<TokenId>())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_is_found_and_others_are_forgotten() {
        let mut all = Checkpoints::new(3, 1000);
        all.add(&[1], vec![1]);
        all.add(&[1, 2, 3], vec![3]);
        all.add(&[1, 9], vec![2]);
        let found = |all: &Checkpoints, tokens: &[TokenId]| {
            all.longest(tokens).map(|found| found.tokens.len())
        };
        assert_eq!(found(&all, &[1, 2, 3, 4]), Some(3));
        assert_eq!(found(&all, &[1, 2]), Some(1));
        assert_eq!(found(&all, &[2]), None);
        all.forget_all_but_prefixes_of(&[1, 9, 9]);
        assert_eq!(found(&all, &[1, 2, 3, 4]), Some(1));
    }

    #[test]
    fn number_and_bytes_are_bounded_and_the_newest_stays() {
        let mut all = Checkpoints::new(2, 1000);
        for number in 0..5 {
            all.add(&[number], vec![0; 10]);
        }
        assert!(all.longest(&[2]).is_none());
        assert!(all.longest(&[3]).is_some() && all.longest(&[4]).is_some());
        all.add(&[7], vec![0; 5000]);
        assert!(all.longest(&[4]).is_none());
        assert!(all.longest(&[7]).is_some());
        all.add(&[7], vec![0; 10]);
        assert!(all.bytes() < 100);
    }
}
