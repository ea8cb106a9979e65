//! What can be called in a turn: the tools, less what the task's state and its facts rule out, and
//! of that what the turn's grammar holds.

use super::open::open;
use crate::call::{Moves, Narrowed};
use crate::task::Task;

/// What can be called in a turn.
pub(super) struct TurnMoves {
    /// Narrowed to what the turn's grammar holds.
    pub(super) offered: Moves,
    /// All that is legal: what the gate goes by, whoever wrote the call.
    pub(super) legal: Moves,
    /// All of the task's tools, legal now or not: what the prompt describes.
    pub(super) all: Moves,
    /// What the request names and no call has been about.
    pub(super) open: Vec<String>,
    /// What examples are chosen for, where that is not what is offered.
    at_hand: Option<Moves>,
}

impl TurnMoves {
    /// Of `all` that the registry and the policy have, what `task` allows now, with at most
    /// `max_calls` calls in the turn; and what had to be left out of the grammar. Without `state`
    /// the grammar holds whatever the tools can do, and only the gate heeds the task's state.
    pub(super) fn of(
        task: &Task,
        mut all: Moves,
        max_calls: usize,
        state: bool,
    ) -> (Self, Vec<Narrowed>) {
        let open = open(task, &all);
        all.max_calls = max_calls;
        let mut legal = all.clone();
        legal.restrict(|tool| task.allows(tool));
        if let Some(state) = task.current() {
            legal.ask = state.ask;
            legal.answer = state.may_answer();
            for bind in &state.bind {
                if let (Some(found), Some(values)) = (
                    legal.find_mut(&bind.tool),
                    task.bound(&bind.tool, &bind.argument),
                ) {
                    found.bind(&bind.argument, &values);
                }
            }
            for found in &mut legal.moves {
                for argument in task.guarded_arguments(&found.spec.name) {
                    if let Some(values) = found.domains.get_mut(argument) {
                        values.retain(|value| task.guards_leave(&found.spec.name, argument, value));
                    }
                }
            }
            legal.drop_impossible();
            // Who was just told does something with it: small models ask the same once more.
            if task.was_just_told() && (legal.answer || !legal.moves.is_empty()) {
                legal.ask = false;
            }
        }
        let (mut offered, left_out) = if state {
            legal.narrow(&task.goal)
        } else {
            all.narrow(&task.goal)
        };
        offered.max_calls = open.len().clamp(1, all.max_calls);
        let at_hand = (!state).then(|| Moves {
            max_calls: offered.max_calls,
            ..legal.clone()
        });
        if state && task.steps > 0 && legal.answer && !open.is_empty() {
            // What was named and not touched comes next, if anything does.
            offered.keep_only(&open);
        }
        let moves = Self {
            offered,
            legal,
            all,
            open,
            at_hand,
        };
        (moves, left_out)
    }

    /// What examples are chosen for.
    pub(super) fn at_hand(&self) -> &Moves {
        self.at_hand.as_ref().unwrap_or(&self.offered)
    }
}
