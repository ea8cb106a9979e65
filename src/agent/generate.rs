//! One generation of a turn: the examples are chosen, the prompt is laid out, the grammar compiled,
//! the model writes, what it says is read; all of it goes to the trace.

use super::context::{Context, Shown, Tail, lay_out, tail};
use super::event::{Event, micros};
use super::moves::TurnMoves;
use super::numbers::cut_number;
use super::progress::Progress;
use super::run::{Agent, AgentError};
use super::said::Said;
use crate::call::{Dialect, Failure, FailureKind, Moves, Reply, turn_grammar};
use crate::model::{Calibration, GenerateRequest, Generation, Prompt, Stop};
use crate::task::{ActiveTask, Task};
use crate::trace;

impl Agent<'_> {
    /// The first generation of a turn, with the examples that are pinned for the request.
    pub(super) fn generate(
        &mut self,
        task: &ActiveTask,
        progress: &mut Progress,
        turn: u32,
        moves: &TurnMoves,
    ) -> Result<Said, AgentError> {
        let request = &task.task().goal;
        let shown = match progress.shown.take() {
            Some(shown) => shown,
            None => {
                let most = self.settings.examples.min(3);
                self.examples
                    .choose(request, moves.at_hand(), None, &[], most)
            }
        };
        let said = self.write(task, progress, turn, moves, &shown);
        progress.shown = Some(shown);
        said
    }

    /// One generation: prompt and grammar of the turn, and what the model made of them.
    pub(super) fn write(
        &mut self,
        task: &ActiveTask,
        progress: &mut Progress,
        turn: u32,
        moves: &TurnMoves,
        shown: &[Shown],
    ) -> Result<Said, AgentError> {
        let layout = &self.settings.layout;
        let hint = progress.hint.as_deref().filter(|_| layout.hints);
        let hint = tail(&task.task().notes, hint);
        let tail = Tail {
            open: &moves.open,
            hint: hint.as_deref(),
            history: progress.history.past(),
        };
        let context = lay_out(layout, &moves.all, shown, task.task(), tail);
        let compiled = if self.settings.domains {
            turn_grammar(&moves.offered, &self.settings.turn)?
        } else {
            turn_grammar(&moves.offered.without_values(), &self.settings.turn)?
        };
        self.tell_of_prompt(turn, &context)?;
        self.trace.emit(trace::Event::Grammar {
            turn,
            text: compiled.grammar.to_string(),
        });
        let limits = &self.settings.limits;
        let max_tokens = limits
            .turn_tokens
            .min(limits.tokens.saturating_sub(progress.tokens));
        let blank = match self.settings.alpha {
            Some(_) => context.blank(),
            None => Prompt::default(),
        };
        let mut sampling = self.settings.sampling.clone();
        let bias = self.settings.call_bias;
        sampling.first_name = bias
            .map(|bias| (Reply::CALLS.to_owned(), bias))
            .into_iter()
            .collect();
        let generation = self.generator.generate(&GenerateRequest {
            prompt: &context.prompt,
            grammar: self.settings.grammar.then_some(&compiled.grammar),
            sampling,
            max_tokens,
            jump_ahead: true,
            calibration: self.settings.alpha.map(|alpha| Calibration {
                blank: &blank,
                alpha,
            }),
            cancel: self.cancel.clone(),
        })?;
        let stats = &generation.stats;
        self.observer.event(&Event::Generated {
            turn: turn as usize,
            reused: stats.prompt_reused,
            evaluated: stats.prompt_evaluated,
        });
        let figures = &mut progress.figures;
        figures.prompt_reused += stats.prompt_reused;
        figures.prompt_evaluated += stats.prompt_evaluated;
        figures.forced += stats.forced;
        figures.chosen += stats.chosen;
        figures.mask_time += stats.mask_time;
        progress.tokens += stats.forced + stats.chosen;
        self.trace.emit(trace::Event::Generated {
            turn,
            text: generation.text.clone(),
            stop: format!("{:?}", generation.stop).to_lowercase(),
            log_probability: generation.log_probability,
            figures: trace::Figures {
                prompt_reused: stats.prompt_reused as u64,
                prompt_evaluated: stats.prompt_evaluated as u64,
                forced: stats.forced as u64,
                chosen: stats.chosen as u64,
                masks: stats.masks as u64,
                masks_computed: stats.masks_computed as u64,
                mask_microseconds: micros(stats.mask_time),
                prefill_microseconds: micros(stats.prefill_time),
                total_microseconds: micros(stats.total_time),
            },
            tokens: Vec::new(),
        });
        let mut reply = self.understood(&generation, &moves.legal);
        if matches!(generation.stop, Stop::Closed | Stop::Budget) && max_tokens < limits.turn_tokens
        {
            // The run's limit cut it, not that of a reply: nothing can follow.
            progress.tokens = limits.tokens;
            reply = Err(Failure::new(
                FailureKind::Truncated,
                "the reply went over the limit of the run",
            ));
        }
        let told = said(task.task()).join("\n");
        let whole = reply.and_then(|reply| whole(reply, &told, &moves.legal));
        let (reply, amends) = match whole {
            Ok((reply, amends)) => (Ok(reply), amends),
            Err(failure) => (Err(failure), None),
        };
        Ok(Said {
            reply,
            amends,
            generation,
            prompt: context.prompt,
            grammar: self.settings.grammar.then_some(compiled.grammar),
            agreed: false,
            other: None,
        })
    }

    /// What a generation says.
    fn understood(&self, generation: &Generation, legal: &Moves) -> Result<Reply, Failure> {
        let dialect = if self.settings.grammar {
            Dialect::Snaffle
        } else {
            self.settings.dialect
        };
        match dialect.parse(&generation.text) {
            _ if generation.stop == Stop::Budget => Err(Failure::new(
                FailureKind::Truncated,
                "the reply went over its limit",
            )),
            Ok(Reply::Calls(_)) if generation.stop == Stop::Closed => Err(Failure::new(
                FailureKind::Truncated,
                "the call went over the limit of a reply",
            )),
            parsed => parsed.and_then(|reply| legal.check_reply(&reply).map(|()| reply)),
        }
    }

    /// The prompt with its tokens, section by section, for the trace and for whoever watches.
    fn tell_of_prompt(&mut self, turn: u32, context: &Context) -> Result<(), AgentError> {
        let counts = self
            .generator
            .count_parts(&context.prompt, &context.parts())?;
        let tokens = match &counts {
            Some(counts) => counts.total(),
            None => self.generator.count(&context.prompt)?,
        };
        let template = counts.as_ref().map(|counts| counts.template);
        let sections = context.counted(counts.as_ref());
        self.observer.event(&Event::Prompt {
            turn: turn as usize,
            sections: sections.clone(),
            template,
            tokens,
        });
        self.trace.emit(trace::Event::Prompt {
            turn,
            sections,
            tokens: tokens as u64,
            template: template.map(|tokens| tokens as u64),
        });
        Ok(())
    }
}

/// All that the person said that this turn is about: a number may come with an answer.
pub(super) fn said(task: &Task) -> Vec<String> {
    let answer = task.reply.iter().map(|(_, answer)| answer);
    let all = std::iter::once(&task.goal).chain(&task.notes).chain(answer);
    all.cloned().collect()
}

/// A reply, or a question in its place, with the number that it is about, where a call holds only
/// the beginning of a number that the request names: what was meant cannot be done.
fn whole(reply: Reply, said: &str, legal: &Moves) -> Result<(Reply, Option<String>), Failure> {
    let Reply::Calls(calls) = &reply else {
        return Ok((reply, None));
    };
    let Some(cut) = cut_number(said, calls) else {
        return Ok((reply, None));
    };
    let message = format!("{} cannot be {}", cut.argument, cut.said);
    if legal.ask {
        let question = Reply::Ask(format!("{message}. What should it be?"));
        Ok((question, Some(cut.said)))
    } else {
        Err(Failure::new(FailureKind::OutsideDomain, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::task::{Definition, TaskId};

    #[test]
    fn a_number_may_come_with_the_answer() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let task = ActiveTask::unrecorded(
            TaskId::new(now, 0),
            "dim it to 150%",
            Definition::builtin(),
            serde_json::Value::Null,
            now,
        );
        let mut task = task.unwrap().task().clone();
        let legal = Moves {
            ask: true,
            ..Moves::default()
        };
        let dim = Reply::Calls(vec![Call::new("dim", [("brightness", 15)])]);
        let question = "brightness cannot be 150. What should it be?".to_owned();
        let asked = whole(dim.clone(), &said(&task).join("\n"), &legal);
        let about = Some("150".to_owned());
        assert_eq!(asked, Ok((Reply::Ask(question.clone()), about)));
        task.reply = Some((question, "15, please".to_owned()));
        let taken = whole(dim.clone(), &said(&task).join("\n"), &legal);
        assert_eq!(taken, Ok((dim.clone(), None)));
        // Nobody may be asked: it is a failure.
        task.reply = None;
        let legal = Moves {
            ask: false,
            ..Moves::default()
        };
        let failed = whole(dim, &said(&task).join("\n"), &legal).unwrap_err();
        assert_eq!(failed.kind, FailureKind::OutsideDomain);
    }
}
