//! All text tokens of a vocabulary as one trie, laid out flat.
//!
//! Nodes are in preorder and each knows where its subtree ends, so a walk is a loop over an array
//! that skips what it does not need. Tokens that spell the same bytes are leaves beside each other.

use rustc_hash::FxHashMap;

use super::{TokenId, TokenKind, Vocabulary};

/// No token ends at this node.
pub const NO_TOKEN: TokenId = TokenId::MAX;

/// Kinds of bytes, so that a subtree can say in one word which it has. Grammars rarely tell bytes
/// of one kind apart, and where they do, nothing is lost but speed.
const KINDS: [&[(u8, u8)]; 16] = [
    &[(0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F)],
    &[(b'\n', b'\n')],
    &[(b'\t', b'\t'), (b'\r', b'\r')],
    &[(b' ', b' ')],
    &[(b'"', b'"')],
    &[(b'\\', b'\\')],
    &[(b'0', b'9')],
    &[(b'a', b'z')],
    &[(b'A', b'Z')],
    &[(b'\'', b'\'')],
    &[(b'<', b'<'), (b'>', b'>')],
    &[(b',', b',')],
    &[(b':', b':')],
    &[(b'[', b'['), (b']', b']'), (b'{', b'{'), (b'}', b'}')],
    &[(0x7F, 0x7F)],
    // Whatever is left: other ASCII punctuation.
    &[(b'!', b'~')],
];

/// Kind of bytes that are no whole character: broken, or cut off at a token's end.
pub const BROKEN: u8 = 16;
/// Kind of whole characters of several bytes.
pub const WHOLE: u8 = 17;
/// Kind of bytes that no token spells alone.
pub const UNSPELLABLE: u8 = 18;

/// The kind of each byte.
fn kinds(vocabulary: &Vocabulary) -> [u8; 256] {
    let mut kinds = [BROKEN; 256];
    for (kind, ranges) in KINDS.iter().enumerate() {
        for &(low, high) in *ranges {
            for byte in low..=high {
                let own = &mut kinds[usize::from(byte)];
                if *own == BROKEN {
                    *own = kind as u8;
                }
            }
        }
    }
    for (kind, spellable) in kinds.iter_mut().zip(vocabulary.spellable()) {
        if !spellable {
            *kind = UNSPELLABLE;
        }
    }
    kinds
}

/// A node of the trie.
#[derive(Clone, Copy, Debug)]
pub struct TrieNode {
    /// Index of the first node after this node's subtree.
    pub end: u32,
    /// Kinds of the bytes below this node, a bit each; see [`TokenTrie::kinds`].
    pub kinds: u32,
    /// How many tokens come before this node in [`TokenTrie::tokens`].
    pub before: u32,
    /// The token that ends here, or [`NO_TOKEN`].
    pub token: TokenId,
    /// How many bytes lead here, this node's included.
    pub depth: u16,
    /// The last of those bytes.
    pub byte: u8,
    /// The kind of that byte where it stands: [`WHOLE`] as part of a character, [`BROKEN`] where
    /// the bytes that lead here are no beginning of UTF-8. With [`CUT_OFF`].
    kind: u8,
}

/// Marks the kind of a node where a token ends in the middle of a character.
const CUT_OFF: u8 = 0x80;

impl TrieNode {
    /// The kind of the last byte, a bit.
    pub(super) fn own_kind(&self) -> u32 {
        1 << (self.kind & !CUT_OFF)
    }

    /// The kinds that only the token that ends here is of, not those that go on.
    pub(super) fn token_kinds(&self) -> u32 {
        u32::from(self.kind & CUT_OFF != 0) << BROKEN
    }
}

/// Sets what a node says of kinds.
fn mark_kinds(nodes: &mut [TrieNode], kinds: &[u8; 256], depth: usize) {
    // Forwards: whether a node is inside a character, ends one, or is no UTF-8.
    #[derive(Clone, Copy, PartialEq)]
    enum Place {
        Boundary,
        Inside,
        Invalid,
    }
    let mut path = vec![0_u8; depth];
    // Per level: the state there, and where its last character begins.
    let mut at_level = vec![(Place::Boundary, 0_usize); depth + 1];
    let mut places = Vec::with_capacity(nodes.len());
    for node in nodes.iter() {
        let level = usize::from(node.depth);
        path[level - 1] = node.byte;
        let (place, start) = at_level[level - 1];
        let start = if place == Place::Boundary {
            level - 1
        } else {
            start
        };
        let place = if place == Place::Invalid {
            Place::Invalid
        } else {
            match std::str::from_utf8(&path[start..level]) {
                Ok(_) => Place::Boundary,
                Err(error) if error.error_len().is_none() => Place::Inside,
                Err(_) => Place::Invalid,
            }
        };
        at_level[level] = (place, start);
        places.push(place);
    }
    for (node, &place) in nodes.iter_mut().zip(&places) {
        node.kind = match (place, kinds[usize::from(node.byte)]) {
            (Place::Invalid, _) => BROKEN,
            (_, BROKEN) => WHOLE,
            (_, kind) => kind,
        };
        if place == Place::Inside && node.token != NO_TOKEN {
            node.kind |= CUT_OFF;
        }
    }
    // Backwards, what is below a node is known before the node.
    let mut below = vec![0_u32; depth + 2];
    for (node, place) in nodes.iter_mut().zip(places).rev() {
        let level = usize::from(node.depth);
        let mut found = std::mem::take(&mut below[level]);
        below[level - 1] |= found | node.own_kind() | node.token_kinds();
        if place != Place::Boundary && found != 0 {
            // What is below begins in the middle of a character.
            found |= 1 << BROKEN;
        }
        node.kinds = found;
    }
}

/// How many tokens there are of each set of kinds.
fn count_sets(nodes: &[TrieNode], depth: usize) -> Vec<(u32, u32)> {
    let mut counts: FxHashMap<u32, u32> = FxHashMap::default();
    let mut ways = vec![0_u32; depth + 1];
    for node in nodes {
        let level = usize::from(node.depth);
        ways[level] = ways[level - 1] | node.own_kind();
        if node.token != NO_TOKEN {
            *counts.entry(ways[level] | node.token_kinds()).or_default() += 1;
        }
    }
    counts.into_iter().collect()
}

/// The trie of a vocabulary's text and byte tokens.
#[derive(Debug)]
pub struct TokenTrie {
    nodes: Vec<TrieNode>,
    tokens: Vec<TokenId>,
    kinds: [u8; 256],
    /// How many tokens there are of each set of kinds.
    sets: Vec<(u32, u32)>,
    /// For each byte, where the nodes that begin with it start; and the end.
    roots: Box<[u32; 257]>,
    depth: usize,
}

impl TokenTrie {
    /// Builds the trie. Tokens that spell nothing, or more than 65,535 bytes, are left out.
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let mut tokens: Vec<(&[u8], TokenId)> = (0..vocabulary.len() as TokenId)
            .filter_map(|id| {
                let token = vocabulary.token(id)?;
                let spells = token.kind != TokenKind::Control
                    && !token.bytes.is_empty()
                    && token.bytes.len() <= usize::from(u16::MAX);
                spells.then_some((token.bytes.as_slice(), id))
            })
            .collect();
        tokens.sort_unstable();
        let mut nodes: Vec<TrieNode> = Vec::with_capacity(tokens.len() * 2);
        let mut path: Vec<usize> = Vec::new();
        let mut roots = Box::new([0_u32; 257]);
        let mut depth = 0;
        let mut at = 0;
        let mut before: &[u8] = &[];
        let mut next_root = 0;
        while let Some(&(bytes, id)) = tokens.get(at) {
            let twins = tokens[at..]
                .iter()
                .take_while(|other| other.0 == bytes)
                .count();
            let shared = bytes.iter().zip(before).take_while(|(a, b)| a == b).count();
            for closed in path.drain(shared..) {
                nodes[closed].end = nodes.len() as u32;
            }
            depth = depth.max(bytes.len());
            for (level, &byte) in bytes.iter().enumerate().skip(shared) {
                let last = level + 1 == bytes.len();
                if level == 0 {
                    while next_root <= usize::from(byte) {
                        roots[next_root] = nodes.len() as u32;
                        next_root += 1;
                    }
                }
                if last {
                    // Twins come first, as leaves of their own.
                    for &(_, twin) in &tokens[at + 1..at + twins] {
                        nodes.push(TrieNode {
                            kind: 0,
                            kinds: 0,
                            before: 0,
                            end: nodes.len() as u32 + 1,
                            token: twin,
                            depth: level as u16 + 1,
                            byte,
                        });
                    }
                }
                path.push(nodes.len());
                nodes.push(TrieNode {
                    kind: 0,
                    kinds: 0,
                    before: 0,
                    end: 0,
                    token: if last { id } else { NO_TOKEN },
                    depth: level as u16 + 1,
                    byte,
                });
            }
            before = bytes;
            at += twins;
        }
        for closed in path {
            nodes[closed].end = nodes.len() as u32;
        }
        for root in &mut roots[next_root..] {
            *root = nodes.len() as u32;
        }
        nodes.shrink_to_fit();
        let kinds = kinds(vocabulary);
        let mut in_order = Vec::with_capacity(tokens.len());
        for node in &mut nodes {
            node.before = in_order.len() as u32;
            if node.token != NO_TOKEN {
                in_order.push(node.token);
            }
        }
        mark_kinds(&mut nodes, &kinds, depth);
        Self {
            sets: count_sets(&nodes, depth),
            tokens: in_order,
            kinds,
            nodes,
            roots,
            depth,
        }
    }

    /// How many tokens have bytes of these kinds (a bit each) only.
    pub(crate) fn tokens_of(&self, kinds: u32) -> usize {
        let within = self.sets.iter().filter(|set| set.0 & !kinds == 0);
        within.map(|set| set.1 as usize).sum()
    }

    /// Splits the tokens by the kinds of bytes that they are made of: those that have no others
    /// than `kinds` (a bit each), and the trie of the rest, with the number that each of its nodes
    /// has here. Below a byte of another kind, that trie is the same as this one.
    pub(crate) fn split_off(&self, kinds: u32) -> (Vec<TokenId>, Self, Vec<u32>) {
        // Forwards: whether the token at a node goes to the rest.
        let mut inside = Vec::new();
        let mut ways = vec![0_u32; self.depth + 1];
        let mut keeps = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let level = usize::from(node.depth);
            ways[level] = ways[level - 1] | node.own_kind();
            let is_inside = (ways[level] | node.token_kinds()) & !kinds == 0;
            if node.token != NO_TOKEN && is_inside {
                inside.push(node.token);
            }
            keeps.push(node.token != NO_TOKEN && !is_inside);
        }
        let is_rest = keeps.clone();
        // Backwards: a node is kept where something below it is.
        let mut below = vec![false; self.depth + 2];
        for (node, keep) in self.nodes.iter().zip(&mut keeps).rev() {
            let level = usize::from(node.depth);
            *keep |= std::mem::take(&mut below[level]);
            below[level - 1] |= *keep;
        }
        let mut nodes: Vec<TrieNode> = Vec::new();
        let mut origins = Vec::new();
        let mut tokens = Vec::new();
        let mut roots = Box::new([0_u32; 257]);
        let mut next_root = 0;
        // The nodes on the way to the last one.
        let mut kept: Vec<usize> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().filter(|&(at, _)| keeps[at]) {
            while kept
                .last()
                .is_some_and(|&last| nodes[last].depth >= node.depth)
                && let Some(last) = kept.pop()
            {
                nodes[last].end = nodes.len() as u32;
            }
            if node.depth == 1 {
                while next_root <= usize::from(node.byte) {
                    roots[next_root] = nodes.len() as u32;
                    next_root += 1;
                }
            }
            let token = if is_rest[at] { node.token } else { NO_TOKEN };
            kept.push(nodes.len());
            origins.push(at as u32);
            nodes.push(TrieNode {
                before: tokens.len() as u32,
                token,
                ..*node
            });
            if token != NO_TOKEN {
                tokens.push(token);
            }
        }
        let count = nodes.len() as u32;
        for last in kept {
            nodes[last].end = count;
        }
        roots[next_root..].fill(count);
        nodes.shrink_to_fit();
        tokens.shrink_to_fit();
        origins.shrink_to_fit();
        let rest = Self {
            tokens,
            kinds: self.kinds,
            sets: count_sets(&nodes, self.depth),
            nodes,
            roots,
            depth: self.depth,
        };
        (inside, rest, origins)
    }

    /// All nodes, in preorder.
    pub fn nodes(&self) -> &[TrieNode] {
        &self.nodes
    }

    /// All tokens, in the order of the nodes at which they end.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Which of some 16 kinds (letters, digits, quotes, …) each byte is of.
    pub fn kinds(&self) -> &[u8; 256] {
        &self.kinds
    }

    /// The tokens that go on after the node at index `at`.
    pub fn tokens_below(&self, at: usize) -> &[TokenId] {
        let node = &self.nodes[at];
        let start = node.before as usize + usize::from(node.token != NO_TOKEN);
        let end = match self.nodes.get(node.end as usize) {
            Some(next) => next.before as usize,
            None => self.tokens.len(),
        };
        &self.tokens[start..end]
    }

    /// The tokens that begin with `byte`.
    pub(crate) fn tokens_from(&self, byte: u8) -> &[TokenId] {
        let before = |at: usize| match self.nodes.get(at) {
            Some(node) => node.before as usize,
            None => self.tokens.len(),
        };
        let root = self.root(byte);
        &self.tokens[before(root.start)..before(root.end)]
    }

    /// The nodes of tokens that begin with `byte`.
    pub fn root(&self, byte: u8) -> std::ops::Range<usize> {
        let at = usize::from(byte);
        self.roots[at] as usize..self.roots[at + 1] as usize
    }

    /// Bytes of the longest token.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The node that `prefix` leads to: below it are the tokens that go on after `prefix`.
    pub fn find(&self, prefix: &[u8]) -> Option<usize> {
        let (&first, rest) = prefix.split_first()?;
        let mut found = self.child(self.root(first), first)?;
        for &byte in rest {
            let end = self.nodes[found].end as usize;
            found = self.child(found + 1..end, byte)?;
        }
        Some(found)
    }

    /// Among siblings, the node of `byte`: of twins the last one, which has the children.
    fn child(&self, siblings: std::ops::Range<usize>, byte: u8) -> Option<usize> {
        let mut at = siblings.start;
        let mut found = None;
        while at < siblings.end {
            let node = &self.nodes[at];
            if node.byte == byte {
                found = Some(at);
            } else if node.byte > byte {
                break;
            }
            at = node.end as usize;
        }
        found
    }

    /// Bytes of memory held.
    pub fn bytes_held(&self) -> usize {
        self.nodes.capacity() * size_of::<TrieNode>()
            + self.tokens.capacity() * size_of::<TokenId>()
            + size_of_val(&*self.roots)
            + self.sets.capacity() * 8
    }
}
