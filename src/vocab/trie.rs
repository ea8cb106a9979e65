//! All text tokens of a vocabulary as one trie, laid out flat.
//!
//! Nodes are in preorder and each knows where its subtree ends, so a walk is a loop over an array
//! that skips what it does not need. Tokens that spell the same bytes are leaves beside each other.

use super::{TokenId, TokenKind, Vocabulary};

/// No token ends at this node.
pub const NO_TOKEN: TokenId = TokenId::MAX;

/// A node of the trie.
#[derive(Clone, Copy, Debug)]
pub struct TrieNode {
    /// Index of the first node after this node's subtree.
    pub end: u32,
    /// The token that ends here, or [`NO_TOKEN`].
    pub token: TokenId,
    /// How many bytes lead here, this node's included.
    pub depth: u16,
    /// The last of those bytes.
    pub byte: u8,
}

/// The trie of a vocabulary's text and byte tokens.
#[derive(Debug)]
pub struct TokenTrie {
    nodes: Vec<TrieNode>,
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
                            end: nodes.len() as u32 + 1,
                            token: twin,
                            depth: level as u16 + 1,
                            byte,
                        });
                    }
                }
                path.push(nodes.len());
                nodes.push(TrieNode {
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
        Self {
            nodes,
            roots,
            depth,
        }
    }

    /// All nodes, in preorder.
    pub fn nodes(&self) -> &[TrieNode] {
        &self.nodes
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
        self.nodes.capacity() * size_of::<TrieNode>() + size_of_val(&*self.roots)
    }
}
