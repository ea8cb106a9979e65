//! A plain matcher: sets of stacks, masks by trying every token. To be replaced by the engine.

use crate::grammar::{Expr, Grammar};
use crate::vocab::{TokenId, TokenKind, Vocabulary};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub struct Limits {}

#[derive(Debug)]
pub struct MaskStore {}
impl MaskStore {
    pub fn new(_max_bytes: usize) -> Self {
        Self {}
    }
    pub fn bytes(&self) -> usize {
        0
    }
}

#[derive(Debug)]
pub struct Lexicon {
    vocabulary: Arc<Vocabulary>,
}
impl Lexicon {
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { vocabulary }
    }
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }
}

#[derive(Debug)]
pub struct TokenMask(Vec<TokenId>);
impl TokenMask {
    pub fn contains(&self, token: TokenId) -> bool {
        self.0.binary_search(&token).is_ok()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        self.0.iter().copied()
    }
    pub fn single(&self) -> Option<TokenId> {
        (self.0.len() == 1).then(|| self.0[0])
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MatcherError(String);

#[derive(Clone, Debug, Default)]
pub struct MatcherStats {
    pub masks: usize,
    pub computed: usize,
    pub time: Duration,
}

#[derive(Debug)]
enum Node {
    Byte(u8, u8),
    Seq(Vec<usize>),
    Alt(Vec<usize>),
    Repeat(usize, u32, Option<u32>),
    Rule(usize),
}

type Stack = Vec<(usize, u32)>;

#[derive(Debug)]
struct Program {
    nodes: Vec<Node>,
    rules: Vec<usize>,
}

impl Program {
    fn lower(&mut self, expr: &Expr) -> usize {
        let node = match expr {
            Expr::Empty => Node::Seq(Vec::new()),
            Expr::Literal(text) => {
                let parts = text.bytes().map(|b| self.push(Node::Byte(b, b))).collect();
                Node::Seq(parts)
            }
            Expr::Class(class) => {
                let mut ways = Vec::new();
                for &(a, b) in class.ranges() {
                    for sequence in regex_syntax::utf8::Utf8Sequences::new(a, b) {
                        let parts = sequence
                            .as_slice()
                            .iter()
                            .map(|r| self.push(Node::Byte(r.start, r.end)))
                            .collect();
                        ways.push(self.push(Node::Seq(parts)));
                    }
                }
                Node::Alt(ways)
            }
            Expr::Seq(parts) => Node::Seq(parts.iter().map(|p| self.lower(p)).collect()),
            Expr::Alt(parts) => Node::Alt(parts.iter().map(|p| self.lower(p)).collect()),
            Expr::Repeat { expr, min, max } => Node::Repeat(self.lower(expr), *min, *max),
            Expr::Rule(rule) => Node::Rule(rule.0 as usize),
            Expr::Token { .. } => Node::Alt(Vec::new()),
        };
        self.push(node)
    }
    fn push(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
    fn close(&self, stacks: Vec<Stack>) -> BTreeSet<Stack> {
        let mut closed = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut todo = stacks;
        while let Some(mut stack) = todo.pop() {
            if !seen.insert(stack.clone()) {
                continue;
            }
            let Some(&(node, count)) = stack.last() else {
                closed.insert(stack);
                continue;
            };
            match &self.nodes[node] {
                Node::Byte(..) => {
                    closed.insert(stack);
                }
                Node::Seq(parts) => {
                    stack.pop();
                    stack.extend(parts.iter().rev().map(|&p| (p, 0)));
                    todo.push(stack);
                }
                Node::Alt(parts) => {
                    stack.pop();
                    for &part in parts {
                        let mut way = stack.clone();
                        way.push((part, 0));
                        todo.push(way);
                    }
                }
                Node::Repeat(inner, min, max) => {
                    stack.pop();
                    if count >= *min {
                        todo.push(stack.clone());
                    }
                    if max.is_none_or(|max| count < max) {
                        let next = if max.is_none() {
                            (count + 1).min(*min)
                        } else {
                            count + 1
                        };
                        stack.push((node, next));
                        stack.push((*inner, 0));
                        todo.push(stack);
                    }
                }
                Node::Rule(rule) => {
                    stack.pop();
                    stack.push((self.rules[*rule], 0));
                    todo.push(stack);
                }
            }
        }
        closed
    }
}

#[derive(Clone, Debug)]
pub struct Matcher {
    program: Arc<Program>,
    lexicon: Arc<Lexicon>,
    state: BTreeSet<Stack>,
    stats: MatcherStats,
}

pub struct Checkpoint(BTreeSet<Stack>);

impl Matcher {
    pub fn new(
        grammar: &Grammar,
        lexicon: &Arc<Lexicon>,
        _store: &Arc<MaskStore>,
        _limits: &Limits,
    ) -> Result<Self, MatcherError> {
        let mut program = Program {
            nodes: Vec::new(),
            rules: Vec::new(),
        };
        for rule in grammar.rules() {
            let node = program.lower(&rule.body);
            program.rules.push(node);
        }
        let root = program.rules[grammar.root().0 as usize];
        let state = program.close(vec![vec![(root, 0)]]);
        Ok(Self {
            program: Arc::new(program),
            lexicon: Arc::clone(lexicon),
            state,
            stats: MatcherStats::default(),
        })
    }
    fn step(&self, state: &BTreeSet<Stack>, byte: u8) -> BTreeSet<Stack> {
        let mut next = Vec::new();
        for stack in state {
            if let Some(&(node, _)) = stack.last()
                && let Node::Byte(a, b) = self.program.nodes[node]
                && (a..=b).contains(&byte)
            {
                let mut stack = stack.clone();
                stack.pop();
                next.push(stack);
            }
        }
        self.program.close(next)
    }
    fn bytes_from(&self, state: &BTreeSet<Stack>, bytes: &[u8]) -> Option<BTreeSet<Stack>> {
        let mut state = state.clone();
        for &byte in bytes {
            state = self.step(&state, byte);
            if state.is_empty() {
                return None;
            }
        }
        Some(state)
    }
    pub fn mask(&mut self) -> Result<Arc<TokenMask>, MatcherError> {
        let start = Instant::now();
        let vocabulary = Arc::clone(self.lexicon.vocabulary());
        let mut by_first: HashMap<u8, bool> = HashMap::new();
        let mut allowed = Vec::new();
        for id in 0..vocabulary.len() as TokenId {
            let token = vocabulary.token(id).unwrap();
            if token.kind == TokenKind::Control {
                continue;
            }
            let first = token.bytes[0];
            if !*by_first
                .entry(first)
                .or_insert_with(|| !self.step(&self.state, first).is_empty())
            {
                continue;
            }
            if self.bytes_from(&self.state, &token.bytes).is_some() {
                allowed.push(id);
            }
        }
        self.stats.masks += 1;
        self.stats.computed += 1;
        self.stats.time += start.elapsed();
        Ok(Arc::new(TokenMask(allowed)))
    }
    pub fn accept_token(&mut self, token: TokenId) -> Result<bool, MatcherError> {
        let bytes = self.lexicon.vocabulary().bytes(token).to_vec();
        if bytes.is_empty() {
            return Ok(false);
        }
        self.accept_bytes(&bytes)
    }
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<bool, MatcherError> {
        match self.bytes_from(&self.state, bytes) {
            Some(state) => {
                self.state = state;
                Ok(true)
            }
            None => Ok(false),
        }
    }
    pub fn is_accepting(&self) -> bool {
        self.state.iter().any(Vec::is_empty)
    }
    pub fn is_finished(&self) -> bool {
        self.is_accepting() && self.state.len() == 1
    }
    pub fn forced_bytes(&mut self) -> Result<Vec<u8>, MatcherError> {
        let mut forced = Vec::new();
        let mut state = self.state.clone();
        while forced.len() < 1000 {
            if state.iter().any(Vec::is_empty) {
                break;
            }
            let mut only = None;
            for byte in 0..=255 {
                if !self.step(&state, byte).is_empty() {
                    if only.is_some() {
                        return Ok(forced);
                    }
                    only = Some(byte);
                }
            }
            let Some(byte) = only else { break };
            forced.push(byte);
            state = self.step(&state, byte);
        }
        Ok(forced)
    }
    pub fn could_extend(&mut self, tail: &[u8]) -> Result<bool, MatcherError> {
        let vocabulary = self.lexicon.vocabulary();
        for id in 0..vocabulary.len() as TokenId {
            let bytes = vocabulary.bytes(id);
            if bytes.len() > tail.len()
                && bytes.starts_with(tail)
                && self.bytes_from(&self.state, &bytes[tail.len()..]).is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
    fn shortest(&self) -> Option<Vec<u8>> {
        let mut seen = BTreeSet::new();
        let mut queue = VecDeque::from([(self.state.clone(), Vec::new())]);
        while let Some((state, text)) = queue.pop_front() {
            if state.iter().any(Vec::is_empty) {
                return Some(text);
            }
            if seen.len() > 3000 || !seen.insert(state.clone()) {
                continue;
            }
            for byte in 0..=255_u8 {
                if !self.lexicon.vocabulary().spellable()[usize::from(byte)] {
                    continue;
                }
                let next = self.step(&state, byte);
                if !next.is_empty() {
                    let mut text = text.clone();
                    text.push(byte);
                    queue.push_back((next, text));
                }
            }
        }
        None
    }
    pub fn distance(&self) -> Option<usize> {
        self.shortest().map(|text| text.len())
    }
    pub fn closing_bytes(&mut self) -> Result<Vec<u8>, MatcherError> {
        self.shortest()
            .ok_or_else(|| MatcherError("too far".into()))
    }
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.state.clone())
    }
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        self.state = checkpoint.0;
    }
    pub fn stats(&self) -> MatcherStats {
        self.stats.clone()
    }
}
