//! Where the model is less sure of a call than one likes: a second look, and what a person is told
//! who is asked.
//!
//! The second look is one more generation for the same turn, with other examples. It never makes
//! a call by itself: a reply that it repeats, or one that the model is sure enough of, goes the
//! way of any other reply, through the gate. There is at most one in a turn, and what it writes
//! counts against the limits of the run.

use super::context::Shown;
use super::doubt::{Doubt, Look, Unsure, alternatives, place};
use super::event::Event;
use super::generate::said;
use super::grounding::{Ungrounded, texts, ungrounded};
use super::moves::TurnMoves;
use super::open::already_done;
use super::progress::Progress;
use super::run::{Agent, AgentError};
use super::said::Said;
use crate::call::{Call, Effect, Moves, ToolSpec, Verdict};
use crate::model::{GenerateError, GenerateRequest, Stop};
use crate::task::{ActiveTask, StepResult, Task};
use crate::trace;
use serde_json::json;

/// Alternatives of a choice that go to the trace.
const TRACED: usize = 8;

impl Agent<'_> {
    /// Whether the model is too little sure of a call to make it without asking, or cannot say how
    /// sure it is. What only reads does no harm.
    pub(super) fn unsure(&self, progress: &Progress, spec: &ToolSpec) -> bool {
        let below = |least: f64| progress.confidence.is_none_or(|sure| sure < least);
        spec.effect != Effect::Read
            && !progress.agreed
            && self.settings.ask_below.is_some_and(below)
    }

    /// What a call is about that changes something, where nothing that was said or read speaks of
    /// it. Where a task's state lists its tools, its definition has said what is to be done.
    pub(super) fn ungrounded(
        &self,
        task: &Task,
        moves: &Moves,
        verdict: &Verdict,
    ) -> Option<Ungrounded> {
        let (call, spec) = (verdict.call(), verdict.spec());
        let open = task.current().is_some_and(|state| state.tools.is_none());
        if !self.settings.grounding || !open || spec.effect == Effect::Read {
            return None;
        }
        let live = &moves.find(&call.tool)?.domains;
        let mut told = said(task);
        let last = task.last.as_ref().and_then(|last| last.result.as_ref());
        if let Some(StepResult::Ok(result)) = last {
            texts(result, &mut told);
        }
        for (_, fact) in task.facts.iter() {
            texts(fact, &mut told);
        }
        ungrounded(call, live, &told)
    }

    /// What counts of a turn whose first reply is `first`: that, or a second look's.
    pub(super) fn considered(
        &mut self,
        task: &ActiveTask,
        progress: &mut Progress,
        turn: u32,
        moves: &TurnMoves,
        mut first: Said,
    ) -> Result<Said, AgentError> {
        let Some(least) = self.wants_a_look(task, progress, moves, &first) else {
            return Ok(first);
        };
        let shown = progress.shown.clone().unwrap_or_default();
        let Some(other) = self.other_examples(task, moves, &shown) else {
            // The same prompt would give the same reply.
            self.note(
                "no_second_look",
                json!({ "why": "there are no other examples" }),
            );
            return Ok(first);
        };
        let mut second = match self.write(task, progress, turn, moves, &other) {
            Err(AgentError::Generate(error @ GenerateError::PromptTooLong { .. })) => {
                self.note("no_second_look", json!({ "why": error.to_string() }));
                return Ok(first);
            }
            written => written?,
        };
        if second.generation.stop == Stop::Cancelled {
            return Ok(second);
        }
        let confidence = first.confidence();
        let look = if second.reply == first.reply {
            Look::Agreed
        } else if second.reply.is_ok() && second.confidence().is_some_and(|sure| sure >= least) {
            Look::Overruled
        } else {
            Look::Open
        };
        self.note(
            "looked_again",
            json!({ "first": confidence, "second": second.confidence(), "came_of_it": look }),
        );
        self.observer
            .event(&Event::LookedAgain { confidence, look });
        match look {
            Look::Agreed => {
                // Of two equal replies, the one that the model is surer of.
                if second.confidence() > confidence {
                    first = second;
                }
                first.agreed = true;
            }
            Look::Overruled => first = second,
            Look::Open => {
                // Only a call can be asked about.
                if !second.calls().is_empty() && second.confidence() > confidence {
                    std::mem::swap(&mut first, &mut second);
                }
                first.other = second.reply.is_ok().then(|| second.calls().to_vec());
            }
        }
        Ok(first)
    }

    /// Below which confidence the calls of a reply are looked at again, where they are.
    fn wants_a_look(
        &self,
        task: &ActiveTask,
        progress: &Progress,
        moves: &TurnMoves,
        said: &Said,
    ) -> Option<f64> {
        let least = self
            .settings
            .ask_below
            .filter(|_| self.settings.unsure == Unsure::LookAgain)?;
        let calls = said.calls();
        let changes = |call: &Call| {
            let legal = moves.legal.find(&call.tool);
            legal.is_some_and(|legal| legal.spec.effect != Effect::Read)
        };
        let limits = &self.settings.limits;
        let wanted = said.confidence().is_none_or(|sure| sure < least)
            && calls.iter().any(changes)
            && already_done(task.task(), &moves.legal, calls).is_none()
            && progress.tokens < limits.tokens
            && self.clock.elapsed() < limits.time;
        wanted.then_some(least)
    }

    /// Other examples for the same turn, or the same ones in another order.
    fn other_examples(
        &mut self,
        task: &ActiveTask,
        moves: &TurnMoves,
        shown: &[Shown],
    ) -> Option<Vec<Shown>> {
        let most = self.settings.examples.min(3);
        let goal = &task.task().goal;
        let mut other = self
            .examples
            .choose(goal, moves.at_hand(), None, shown, most);
        if other.is_empty() || other == shown {
            other = shown.iter().rev().cloned().collect();
        }
        (other != shown).then_some(other)
    }

    /// How unsure the model is of the call that is being attempted, for whoever is asked about it.
    pub(super) fn doubt(
        &mut self,
        progress: &mut Progress,
        turn: u32,
        call: &Call,
        ungrounded: Option<Ungrounded>,
    ) -> Doubt {
        let mut doubt = Doubt {
            ungrounded,
            confidence: progress.confidence,
            ..Doubt::default()
        };
        if let Some(said) = &mut progress.said {
            if said.generation.choices.is_empty() {
                let request = GenerateRequest {
                    prompt: &said.prompt,
                    grammar: said.grammar.as_ref(),
                    sampling: self.settings.sampling.clone(),
                    max_tokens: self.settings.limits.turn_tokens,
                    jump_ahead: true,
                    calibration: None,
                    cancel: self.cancel.clone(),
                };
                // Who is asked can answer without them, too.
                let weighed = self.generator.weigh(&request, &said.generation.text);
                said.generation.choices = weighed.unwrap_or_default();
            }
            let text = &said.generation.text;
            let choices = &said.generation.choices;
            doubt.alternatives = alternatives(text, choices, progress.number);
            doubt.other.clone_from(&said.other);
            for choice in choices {
                let Some(place) = place(text, choice.at).filter(|p| p.call == progress.number)
                else {
                    continue;
                };
                let options = choice.alternatives.iter().take(TRACED);
                self.trace.emit(trace::Event::Choice {
                    turn,
                    place: place.name(),
                    options: options
                        .map(|(text, probability)| trace::Scored {
                            text: text.clone(),
                            probability: *probability,
                        })
                        .collect(),
                });
            }
        }
        self.note(
            "unsure",
            json!({ "confidence": doubt.confidence, "ungrounded": doubt.ungrounded }),
        );
        self.observer.event(&Event::Unsure {
            call: call.clone(),
            doubt: doubt.clone(),
        });
        doubt
    }

    fn note(&mut self, name: &str, data: serde_json::Value) {
        self.trace.emit(trace::Event::Note {
            name: name.to_owned(),
            data,
        });
    }
}
