//! A set of tokens: a list of its members, or of the others, where that is at most half as large as a
//! bit for each token, which are the quickest to join.

use crate::vocab::TokenId;

/// A set of tokens, immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenMask {
    /// The members, sorted.
    Sparse(Box<[TokenId]>),
    /// The tokens below `size` that are not members, sorted.
    Complement {
        /// Those that are left out.
        missing: Box<[TokenId]>,
        /// Number of tokens of the vocabulary.
        size: u32,
    },
    /// One bit a token.
    Dense {
        /// The bits, lowest first.
        bits: Box<[u64]>,
        /// How many are set.
        count: u32,
    },
}

impl TokenMask {
    /// The set of `tokens`, which may be in any order and repeat, in a vocabulary of `size`.
    pub fn from_tokens(tokens: &mut Vec<TokenId>, size: usize) -> Self {
        // Sorting many numbers costs more than setting as many bits.
        if tokens.len() * 16 < size || tokens.len() < 64 {
            tokens.sort_unstable();
            tokens.dedup();
            if tokens.len() * 64 <= size {
                return Self::Sparse(tokens.as_slice().into());
            }
        }
        let mut bits = vec![0_u64; size.div_ceil(64)];
        for &token in tokens.iter() {
            if let Some(word) = bits.get_mut(token as usize / 64) {
                *word |= 1 << (token % 64);
            }
        }
        Self::from_bits(bits, size)
    }

    /// The set whose bits are given.
    pub fn from_bits(bits: Vec<u64>, size: usize) -> Self {
        let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
        let members = count as usize;
        let collect = |wanted: bool, capacity: usize| {
            let mut list = Vec::with_capacity(capacity);
            for (at, &word) in bits.iter().enumerate() {
                let mut word = if wanted { word } else { !word };
                while word != 0 {
                    let token = at as u32 * 64 + word.trailing_zeros();
                    if (token as usize) < size {
                        list.push(token);
                    }
                    word &= word - 1;
                }
            }
            list.into_boxed_slice()
        };
        if members * 64 <= size {
            Self::Sparse(collect(true, members))
        } else if (size - members) * 64 <= size {
            Self::Complement {
                missing: collect(false, size - members),
                size: size as u32,
            }
        } else {
            Self::Dense {
                bits: bits.into_boxed_slice(),
                count,
            }
        }
    }

    /// Whether `token` is a member.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Sparse(members) => members.binary_search(&token).is_ok(),
            Self::Complement { missing, size } => {
                token < *size && missing.binary_search(&token).is_err()
            }
            Self::Dense { bits, .. } => bits
                .get(token as usize / 64)
                .is_some_and(|word| word >> (token % 64) & 1 != 0),
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        match self {
            Self::Sparse(members) => members.len(),
            Self::Complement { missing, size } => *size as usize - missing.len(),
            Self::Dense { count, .. } => *count as usize,
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The only member, where there is exactly one.
    pub fn single(&self) -> Option<TokenId> {
        match self {
            Self::Sparse(members) => match members[..] {
                [only] => Some(only),
                _ => None,
            },
            _ if self.len() == 1 => self.iter().next(),
            _ => None,
        }
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        let sparse: &[TokenId] = match self {
            Self::Sparse(members) => members,
            _ => &[],
        };
        let (missing, size): (&[TokenId], u32) = match self {
            Self::Complement { missing, size } => (missing, *size),
            _ => (&[], 0),
        };
        let bits: &[u64] = match self {
            Self::Dense { bits, .. } => bits,
            _ => &[],
        };
        let mut left_out = missing.iter().copied().peekable();
        let present = (0..size).filter(move |&token| left_out.next_if_eq(&token).is_none());
        let set = bits.iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors((word != 0).then_some(word), |&word| {
                let rest = word & (word - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |word| at as u32 * 64 + word.trailing_zeros())
        });
        sparse.iter().copied().chain(present).chain(set)
    }

    /// Sets the members' bits in `bits`.
    pub(super) fn add_to(&self, bits: &mut [u64]) {
        match self {
            Self::Dense { bits: own, .. } => {
                for (word, own) in bits.iter_mut().zip(own) {
                    *word |= own;
                }
            }
            Self::Sparse(members) => {
                for &token in members {
                    if let Some(word) = bits.get_mut(token as usize / 64) {
                        *word |= 1 << (token % 64);
                    }
                }
            }
            Self::Complement { missing, size } => {
                // Members of `bits` stay even where this set lacks them.
                let kept: Vec<TokenId> = missing
                    .iter()
                    .copied()
                    .filter(|&token| bits[token as usize / 64] >> (token % 64) & 1 != 0)
                    .collect();
                let whole = *size as usize / 64;
                bits[..whole].fill(u64::MAX);
                if let Some(last) = bits.get_mut(whole) {
                    *last |= (1 << (size % 64)) - 1;
                }
                for &token in missing {
                    bits[token as usize / 64] &= !(1 << (token % 64));
                }
                for token in kept {
                    bits[token as usize / 64] |= 1 << (token % 64);
                }
            }
        }
    }

    /// Bytes of memory held.
    pub fn bytes_held(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Sparse(members) => size_of_val(&**members),
                Self::Complement { missing, .. } => size_of_val(&**missing),
                Self::Dense { bits, .. } => size_of_val(&**bits),
            }
    }
}
