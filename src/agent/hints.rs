//! The correct call in a hint, where the gate had none to give.
//!
//! A model that is told what was wrong repeats it; one that is also shown what is right does that.
//! The gate shows a call of the tool that was called wrongly. Here the other failures get theirs:
//! of the tool that failed, or, where no tool was named, of the one that comes nearest to the
//! request, with the live values that come nearest to it.

use super::moves::TurnMoves;
use super::progress::Progress;
use crate::call::relevance::Grams;
use crate::call::{Call, Failure, FailureKind, Moves};
use crate::task::Task;
use serde_json::Value;

/// The failure with a correct call to show, where there is one to be shown.
pub(super) fn exemplified(
    task: &Task,
    progress: &mut Progress,
    moves: &TurnMoves,
    failure: Failure,
) -> Failure {
    if failure.example.is_some() {
        return failure;
    }
    let offered = &moves.offered;
    let tool = match failure.kind {
        // No call of what is not allowed is correct, and another tool's would suggest to do
        // something else.
        FailureKind::Refused => None,
        // The call was correct, and is not wanted again: only what is still open is.
        FailureKind::Repeated if moves.open.is_empty() => None,
        _ => match &failure.tool {
            Some(tool) => Some(tool.clone()),
            None => nearest(offered, &task.goal),
        },
    };
    let example = tool.and_then(|tool| {
        let about = match moves.open.first() {
            Some(open) => open,
            None => &task.goal,
        };
        let tried = match (&progress.tried, failure.kind) {
            (Some(tried), FailureKind::Constraint) if tried.tool == tool => tried.clone(),
            _ => about_request(offered, &tool, about)?,
        };
        progress.gate.example(offered, &tool, Some(&tried))
    });
    // What has just failed is shown to nobody as correct.
    let failed = progress.tried.as_ref();
    failure.with_example(example.filter(|example| Some(example) != failed))
}

/// The tool whose name and description come nearest to a text.
fn nearest(moves: &Moves, text: &str) -> Option<String> {
    let meant = Grams::of(text);
    let likeness = |spec: &crate::call::ToolSpec| {
        meant.similarity(&Grams::of(&format!("{} {}", spec.name, spec.description)))
    };
    let nearest = moves
        .moves
        .iter()
        .max_by(|a, b| likeness(&a.spec).total_cmp(&likeness(&b.spec)))?;
    Some(nearest.spec.name.clone())
}

/// A call of `tool` whose live values are to be those nearest to `text`: not yet a correct one.
fn about_request(moves: &Moves, tool: &str, text: &str) -> Option<Call> {
    let legal = moves.find(tool)?;
    let required = |name: &&String| legal.spec.requires(name);
    let arguments = legal.domains.keys().filter(required);
    Some(Call::new(
        tool,
        arguments.map(|name| (name.clone(), Value::from(text))),
    ))
}
