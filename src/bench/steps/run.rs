//! Works on a task of fifty steps and says of each how it went.
//!
//! A step is right if the call of the first attempt is the one that is due. After as many attempts
//! as the settings allow the person does the step, so that all steps are measured; a task that was
//! finished without that is a figure of its own. What cannot be reached (the context is full)
//! counts as wrong and is named so.

use super::plan::{Kind, Plan, STEPS};
use super::warehouse::tools;
use crate::agent::{
    Agent, AgentError, Clock, Doubt, Event, Limits, Observer, Person, Settings, StopReason,
};
use crate::bench::episode::Player;
use crate::bench::record::{Record, Spent, Step};
use crate::call::{Call, ToolSpec};
use crate::model::{GenerateError, Generation, Tap};
use crate::task::{ActiveTask, LoadError, Pending, Settlement, Task, TaskId};
use crate::tool::{RegisterError, Registry};
use crate::trace::Null;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How a task went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Every step, in order.
    pub steps: Vec<Record>,
}

/// Why a task could not be worked on: the harness failed, not the model.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// Its definition is none.
    #[error(transparent)]
    Definition(#[from] LoadError),
    /// Its tools cannot be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The run could not go on.
    #[error("task {id}: {source}")]
    Agent {
        /// The task.
        id: String,
        /// Why.
        source: AgentError,
    },
}

/// Works on `plan`. `None`: cancelled.
///
/// # Errors
/// [`PlayError`].
pub fn play(player: &mut Player<'_>, plan: &Plan) -> Result<Option<Played>, PlayError> {
    let failed = |source| PlayError::Agent {
        id: plan.id.clone(),
        source,
    };
    let plan = Arc::new(plan.clone());
    let done = Arc::new(AtomicUsize::new(0));
    let mut registry = Registry::new();
    registry.register_all(tools(&plan, &done))?;
    let clock = (player.clock)();
    let mut task = ActiveTask::unrecorded(
        TaskId::new(clock.now(), 0),
        &plan.request(),
        plan.definition()?,
        serde_json::Value::Null,
        clock.now(),
    )
    .map_err(|error| failed(error.into()))?;
    let mut written = Vec::new();
    let mut meter = Tap::new(player.generator, |generation| {
        written.push(spent(generation));
    });
    let mut watch = Watch {
        clock: clock.as_ref(),
        marks: Vec::new(),
    };
    let mut helper = Helper {
        plan: &plan,
        done: &done,
        acted: Vec::new(),
    };
    let attempts = player.settings.limits.attempts;
    let ended = Agent {
        generator: &mut meter,
        tools: &mut registry,
        examples: player.examples,
        person: &mut helper,
        observer: &mut watch,
        trace: &mut Null,
        clock: clock.as_ref(),
        cancel: player.cancel.clone(),
        settings: Settings {
            approve_all: true,
            max_calls: 1,
            // The suite ends by itself: every step takes so many attempts at most.
            limits: Limits {
                turns: STEPS.saturating_mul(attempts + 1),
                tokens: usize::MAX,
                time: Duration::MAX,
                ..player.settings.limits.clone()
            },
            ..player.settings.clone()
        },
    }
    .run(&mut task);
    let ended = match ended {
        Ok(report) if report.reason == StopReason::Cancelled => return Ok(None),
        Ok(report) => report.reason.to_string(),
        Err(AgentError::Generate(error @ GenerateError::PromptTooLong { .. })) => error.to_string(),
        Err(source) => return Err(failed(source)),
    };
    let mut steps = told(&plan, &watch.marks, &written, &helper.acted);
    for step in steps.len()..STEPS {
        let mut record = blank(&plan, step);
        record.error = Some(format!("not reached: {ended}"));
        steps.push(record);
    }
    Ok(Some(Played { steps }))
}

/// A step of which nothing is known yet.
fn blank(plan: &Plan, step: usize) -> Record {
    let number = step + 1;
    Record {
        id: format!("{}/{number:02}", plan.id),
        group: Kind::of(step).name().to_owned(),
        request: format!("step {number} of {STEPS}"),
        step: Some(Step {
            task: plan.id.clone(),
            number,
            helped: false,
            reached: false,
        }),
        ..Record::default()
    }
}

/// The steps that were reached, out of what was seen.
fn told(
    plan: &Plan,
    marks: &[(Duration, Mark)],
    written: &[Spent],
    acted: &[usize],
) -> Vec<Record> {
    let mut steps: Vec<Record> = Vec::new();
    let mut generations = 0;
    let mut now = blank(plan, 0);
    let mut started = Duration::ZERO;
    let mut first = true;
    for (time, mark) in marks {
        match mark {
            Mark::Turn => {
                if now.spent.turns == 0 {
                    started = *time;
                    if let Some(written) = written.get(generations) {
                        now.spent = *written;
                    }
                }
                now.spent.turns += 1;
                generations += 1;
                first = now.spent.turns == 1;
            }
            Mark::Again => generations += 1,
            Mark::Reply(text) if first => now.text = Some(text.clone()),
            Mark::Failed(kind) if first && now.error.is_none() => {
                now.error = Some(kind.clone());
                now.spent.seconds = time.saturating_sub(started).as_secs_f64();
            }
            Mark::Reply(_) | Mark::Failed(_) => {}
            Mark::Done(call) => {
                let helped = acted.contains(&steps.len());
                now.right = now.error.is_none() && !helped;
                if now.error.is_none() {
                    now.spent.seconds = time.saturating_sub(started).as_secs_f64();
                }
                now.calls = vec![call.clone()];
                if let Some(step) = &mut now.step {
                    step.helped = helped;
                    step.reached = true;
                }
                let next = blank(plan, steps.len() + 1);
                steps.push(std::mem::replace(&mut now, next));
            }
        }
    }
    steps
}

/// What a generation took.
fn spent(generation: &Generation) -> Spent {
    let stats = &generation.stats;
    Spent {
        turns: 0,
        prompt_reused: stats.prompt_reused,
        prompt_evaluated: stats.prompt_evaluated,
        forced: stats.forced,
        chosen: stats.chosen,
        seconds: 0.0,
        confidence: generation.log_probability.map(f64::exp),
    }
}

enum Mark {
    Turn,
    /// A turn had a second generation.
    Again,
    Reply(String),
    Failed(String),
    Done(Call),
}

/// Notes what happens, and when.
struct Watch<'c> {
    clock: &'c dyn Clock,
    marks: Vec<(Duration, Mark)>,
}

impl Observer for Watch<'_> {
    fn event(&mut self, event: &Event) {
        let mark = match event {
            Event::TurnStarted { .. } => Mark::Turn,
            Event::LookedAgain { .. } => Mark::Again,
            Event::Reply { text } => Mark::Reply(text.clone()),
            Event::Failure { kind, .. } => Mark::Failed(kind.clone()),
            Event::CallFinished { call, .. } => Mark::Done(call.clone()),
            _ => return,
        };
        self.marks.push((self.clock.elapsed(), mark));
    }
}

/// Knows what is right, and does it where the model has failed.
struct Helper<'p> {
    plan: &'p Plan,
    done: &'p AtomicUsize,
    /// At which steps.
    acted: Vec<usize>,
}

impl Person for Helper<'_> {
    fn approve(&mut self, _call: &Call, _spec: &ToolSpec, _doubt: Option<&Doubt>) -> bool {
        true
    }

    fn reply(&mut self, _question: &str) -> Option<String> {
        None
    }

    fn settle(&mut self, _pending: &Pending) -> Option<Settlement> {
        None
    }

    fn act(&mut self, _task: &Task) -> Option<Call> {
        let step = self.done.load(Ordering::Relaxed);
        self.acted.push(step);
        self.plan.right(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{FromPool, NoExamples, SystemClock};
    use crate::call::Reply;
    use crate::fewshot::Pool;
    use crate::model::Cancel;
    use crate::model::Prompt;
    use crate::model::scripted::ScriptedGenerator;

    fn played(plan: &Plan, replies: Vec<String>, settings: Settings) -> (Played, Vec<Prompt>) {
        let mut generator = ScriptedGenerator::new(replies);
        let prompts = generator.prompts();
        let mut examples = FromPool::new(Pool::default()).with_steps(Pool::steps().unwrap());
        let played = play(
            &mut Player {
                generator: &mut generator,
                examples: &mut examples,
                clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
                settings,
                cancel: Cancel::default(),
            },
            plan,
        );
        (played.unwrap().unwrap(), prompts.all())
    }

    fn right(plan: &Plan, step: usize) -> String {
        Reply::Calls(vec![plan.right(step).unwrap()]).to_text()
    }

    #[test]
    fn what_is_right_at_once_is_told_from_what_is_not() {
        let plan = Plan::new(1, 0);
        let wrong = |step: usize| {
            let mut call = plan.right(step).unwrap();
            let kind = Kind::of(step);
            let right = call.arguments[kind.argument()].clone();
            let other = plan
                .values(kind)
                .iter()
                .find(|value| right != value.as_str());
            call.arguments
                .insert(kind.argument().into(), other.unwrap().as_str().into());
            Reply::Calls(vec![call]).to_text()
        };
        let mut replies = Vec::new();
        for step in 0..STEPS {
            match step {
                // Repaired by a hint.
                3 => replies.extend([wrong(3), right(&plan, 3)]),
                // Left to the person: a wrong value, a question, no call at all.
                7 => replies.extend([wrong(7), r#"{"ask": "What?"}"#.into(), "words".into()]),
                _ => replies.push(right(&plan, step)),
            }
        }
        let (played, prompts) = played(&plan, replies, Settings::default());
        assert_eq!(played.steps.len(), STEPS);
        let wrong: Vec<_> = played
            .steps
            .iter()
            .filter(|record| !record.right)
            .map(|record| {
                let step = record.step.as_ref().unwrap();
                (
                    step.number,
                    step.helped,
                    record.error.as_deref().unwrap(),
                    record.spent.turns,
                )
            })
            .collect();
        assert_eq!(
            wrong,
            [(4, false, "tool_error", 2), (8, true, "tool_error", 3)]
        );
        for (step, record) in played.steps.iter().enumerate() {
            assert_eq!(record.calls, [plan.right(step).unwrap()]);
        }
        // Facts that were learned, what the state wants, no answer where none is possible.
        let third = &prompts[2].messages.last().unwrap().content;
        assert!(
            third.contains(&format!("- article: {}\n", plan.orders[0].article)),
            "{third}"
        );
        assert!(third.ends_with("\nNext: pick the article."), "{third}");
        assert!(!third.contains("reply"), "{third}");
        // What is stable stays the same for the whole task, as long as nothing fails.
        let stable = |prompt: &Prompt| prompt.messages[..prompt.stable].to_vec();
        assert_eq!(stable(&prompts[0]), stable(&prompts[3]));
    }

    #[test]
    fn a_growing_history_grows_and_says_all() {
        let plan = Plan::new(2, 0);
        let replies = (0..STEPS).map(|step| right(&plan, step)).collect();
        let mut settings = Settings::default();
        settings.layout.state = false;
        let (played, prompts) = played(&plan, replies, settings);
        assert!(played.steps.iter().all(|record| record.right));
        let last = prompts.last().unwrap();
        for (step, past) in last.messages[last.stable + 1..].chunks(2).enumerate() {
            assert_eq!(past[0].content, right(&plan, step));
            assert!(
                past[1].content.starts_with("Result: {"),
                "{}",
                past[1].content
            );
        }
        assert_eq!(last.messages.len(), last.stable + 1 + 2 * (STEPS - 1));
        assert!(
            !last.messages[last.stable..]
                .iter()
                .any(|message| message.content.contains("Known:"))
        );
    }

    #[test]
    fn a_full_context_is_said_and_counts_as_wrong() {
        let plan = Plan::new(2, 0);
        let replies: Vec<String> = (0..STEPS).map(|step| right(&plan, step)).collect();
        let mut generator = ScriptedGenerator::new(replies).with_capacity(3000);
        let mut settings = Settings::default();
        settings.layout.state = false;
        let played = play(
            &mut Player {
                generator: &mut generator,
                examples: &mut NoExamples,
                clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
                settings,
                cancel: Cancel::default(),
            },
            &plan,
        );
        let steps = played.unwrap().unwrap().steps;
        let reached = |record: &&Record| record.step.as_ref().unwrap().reached;
        let count = steps.iter().filter(reached).count();
        assert!((5..STEPS).contains(&count), "{count}");
        let error = steps[STEPS - 1].error.as_deref().unwrap();
        assert!(error.starts_with("not reached: the prompt has"), "{error}");
        assert!(!steps[STEPS - 1].right);
    }
}
