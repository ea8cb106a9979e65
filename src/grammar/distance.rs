//! Fewest bytes from each instruction to its return, and the removal of what has no way there.
//!
//! Knuth's generalisation of shortest paths to context-free grammars, by a work list: a value is
//! lowered until nothing changes. Over bytes that the vocabulary can spell, so that an automaton
//! without dead instructions never leads a model where no token goes on.

use super::program::{Edge, Instruction, NEVER, Pc, Program, Span};
use super::unordered;

/// Computes [`Program::distance`].
pub(super) fn measure(program: &mut Program) {
    let count = program.instructions.len();
    program.distance = vec![NEVER; count];
    let users = users(program);
    // Callees and successors are mostly compiled after and before their users; a first pass in
    // order settles nearly everything.
    let mut open: std::collections::VecDeque<Pc> = (0..count as Pc).collect();
    let mut queued = vec![true; count];
    while let Some(pc) = open.pop_front() {
        queued[pc as usize] = false;
        let found = distance(program, pc);
        if found < program.distance[pc as usize] {
            program.distance[pc as usize] = found;
            for &user in users.of(pc) {
                if !std::mem::replace(&mut queued[user as usize], true) {
                    open.push_back(user);
                }
            }
        }
    }
}

/// The distance of one instruction from those of its successors.
fn distance(program: &Program, pc: Pc) -> u64 {
    let of = |pc: Pc| program.distance[pc as usize];
    match program.instructions[pc as usize] {
        Instruction::Ret | Instruction::Exit => 0,
        Instruction::Bytes(span) => program
            .edges(span)
            .iter()
            .map(|edge| of(edge.next).saturating_add(1))
            .min()
            .unwrap_or(NEVER),
        Instruction::Split(span) => {
            let targets = program.targets(span).iter();
            targets.map(|&target| of(target)).min().unwrap_or(NEVER)
        }
        Instruction::Call { routine, next } => {
            of(program.routines[routine as usize].entry).saturating_add(of(next))
        }
        Instruction::Loop {
            body, next, min, ..
        } => program.loop_distance(body, next, min, 0),
        Instruction::Unordered(set) => unordered::shortest(program, &program.sets[set as usize]),
        // What is left of a set is known only by the stack.
        Instruction::Key { .. } => 0,
        Instruction::Token { token, next, .. } => {
            of(next).saturating_add(u64::from(token.bytes.max(1)))
        }
    }
}

/// For each instruction, those whose distance depends on it.
struct Users {
    starts: Vec<u32>,
    users: Vec<Pc>,
}

impl Users {
    fn of(&self, pc: Pc) -> &[Pc] {
        let range = self.starts[pc as usize] as usize..self.starts[pc as usize + 1] as usize;
        &self.users[range]
    }
}

fn users(program: &Program) -> Users {
    let mut starts = vec![0_u32; program.instructions.len() + 2];
    for pc in 0..program.instructions.len() {
        successors(program, pc as Pc, |target| {
            starts[target as usize + 2] += 1;
        });
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut users = vec![0; starts.last().copied().unwrap_or(0) as usize];
    for pc in 0..program.instructions.len() {
        successors(program, pc as Pc, |target| {
            let place = &mut starts[target as usize + 1];
            users[*place as usize] = pc as Pc;
            *place += 1;
        });
    }
    Users { starts, users }
}

/// Calls `visit` with every instruction that `pc` leads to, called routines included.
pub(super) fn successors(program: &Program, pc: Pc, mut visit: impl FnMut(Pc)) {
    match program.instructions[pc as usize] {
        Instruction::Ret | Instruction::Exit | Instruction::Key { .. } => {}
        Instruction::Bytes(span) => program.edges(span).iter().for_each(|edge| visit(edge.next)),
        Instruction::Split(span) => program.targets(span).iter().for_each(|&pc| visit(pc)),
        Instruction::Call { routine, next } => {
            visit(program.routines[routine as usize].entry);
            visit(next);
        }
        Instruction::Loop { body, next, .. } => {
            visit(body);
            visit(next);
        }
        Instruction::Unordered(set) => {
            let set = &program.sets[set as usize];
            set.members.iter().for_each(|member| visit(member.value));
            visit(set.separator);
            visit(set.other);
            visit(set.next);
        }
        Instruction::Token { next, .. } => visit(next),
    }
}

/// Removes edges and branches that never return.
pub(super) fn prune(program: &mut Program) {
    let distance = std::mem::take(&mut program.distance);
    let lives = |pc: Pc| distance[pc as usize] != NEVER;
    for pc in 0..program.instructions.len() {
        match program.instructions[pc] {
            Instruction::Bytes(span) => {
                let kept = keep(&mut program.edges[span.range()], |edge: &Edge| {
                    lives(edge.next)
                });
                program.instructions[pc] = Instruction::Bytes(Span {
                    len: kept as u32,
                    ..span
                });
            }
            Instruction::Split(span) => {
                let kept = keep(&mut program.targets[span.range()], |&pc| lives(pc));
                program.instructions[pc] = Instruction::Split(Span {
                    len: kept as u32,
                    ..span
                });
            }
            Instruction::Loop {
                body, next, min, ..
            } if !lives(body) && min == 0 => {
                // No iteration can be finished: the loop is only what follows it.
                let start = program.targets.len() as u32;
                program.targets.push(next);
                program.instructions[pc] = Instruction::Split(Span { start, len: 1 });
            }
            _ => {}
        }
    }
    program.distance = distance;
}

/// Moves the items to keep to the front, in order, and returns how many there are.
fn keep<T: Copy>(items: &mut [T], mut wanted: impl FnMut(&T) -> bool) -> usize {
    let mut kept = 0;
    for at in 0..items.len() {
        let item = items[at];
        if wanted(&item) {
            items[kept] = item;
            kept += 1;
        }
    }
    kept
}
