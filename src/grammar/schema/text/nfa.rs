//! The nondeterministic automaton of an expression, from which the deterministic one is made.

use super::re::Re;
use crate::grammar::ast::CharClass;

/// A nondeterministic automaton, built from the end.
#[derive(Default)]
pub struct Nfa {
    pub states: Vec<Node>,
    pub classes: Vec<CharClass>,
    pub limit: usize,
    pub boundaries: bool,
}

pub enum Node {
    Split(Vec<u32>),
    Class(u32, u32),
    Start(u32),
    End(u32),
    Boundary(bool, u32),
    Match,
}

/// What stands before or after a position.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Edge,
    Word,
    Other,
}

/// In which round each state was last seen: clearing it costs nothing.
#[derive(Default)]
pub struct Seen {
    at: Vec<u32>,
    round: u32,
}

impl Nfa {
    pub fn push(&mut self, node: Node) -> Option<u32> {
        if self.states.len() >= self.limit {
            return None;
        }
        self.states.push(node);
        Some(self.states.len() as u32 - 1)
    }

    pub fn build(&mut self, re: &Re, next: u32) -> Option<u32> {
        match re {
            Re::Empty => Some(next),
            Re::Class(class) => {
                let index = self
                    .classes
                    .iter()
                    .position(|known| known == class)
                    .unwrap_or_else(|| {
                        self.classes.push(class.clone());
                        self.classes.len() - 1
                    });
                self.push(Node::Class(index as u32, next))
            }
            Re::Concat(parts) => {
                let mut at = next;
                for part in parts.iter().rev() {
                    at = self.build(part, at)?;
                }
                Some(at)
            }
            Re::Alt(parts) => {
                let mut targets = Vec::with_capacity(parts.len());
                for part in parts {
                    targets.push(self.build(part, next)?);
                }
                self.push(Node::Split(targets))
            }
            Re::Repeat { re, min, max } => {
                let mut at = next;
                match max {
                    None => {
                        let head = self.push(Node::Split(vec![next]))?;
                        let body = self.build(re, head)?;
                        self.states[head as usize] = Node::Split(vec![body, next]);
                        at = head;
                    }
                    Some(max) => {
                        for _ in *min..*max {
                            let body = self.build(re, at)?;
                            at = self.push(Node::Split(vec![body, next]))?;
                        }
                    }
                }
                for _ in 0..*min {
                    at = self.build(re, at)?;
                    // An empty body repeated a billion times is still empty.
                    if at == next {
                        break;
                    }
                }
                Some(at)
            }
            Re::Start => self.push(Node::Start(next)),
            Re::End => self.push(Node::End(next)),
            Re::Boundary(negated) => {
                self.boundaries = true;
                self.push(Node::Boundary(*negated, next))
            }
            Re::Look { .. } => None,
        }
    }

    /// States reached without consuming, given what stands on both sides.
    pub fn closure(&self, set: &[u32], before: Side, after: Side, seen: &mut Seen) -> Vec<u32> {
        seen.round += 1;
        seen.at.resize(self.states.len(), 0);
        let mut stack: Vec<u32> = set.to_vec();
        let mut out = Vec::new();
        while let Some(state) = stack.pop() {
            if std::mem::replace(&mut seen.at[state as usize], seen.round) == seen.round {
                continue;
            }
            match &self.states[state as usize] {
                Node::Split(targets) => stack.extend(targets),
                Node::Start(next) if before == Side::Edge => stack.push(*next),
                Node::End(next) if after == Side::Edge => stack.push(*next),
                Node::Boundary(negated, next)
                    if ((before == Side::Word) != (after == Side::Word)) != *negated =>
                {
                    stack.push(*next);
                }
                Node::Start(_) | Node::End(_) | Node::Boundary(..) => {}
                Node::Class(..) | Node::Match => out.push(state),
            }
        }
        out.sort_unstable();
        out
    }
}
