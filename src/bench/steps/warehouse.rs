//! The world of a task, in memory: five tools that do what the plan says is next, and refuse
//! everything else in words.

use super::plan::{Kind, Plan, STEPS};
use crate::call::{CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::{Outcome, Tool, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The tools of a task; `done` counts the steps that are done.
pub fn tools(plan: &Arc<Plan>, done: &Arc<AtomicUsize>) -> Vec<Box<dyn Tool>> {
    Kind::ALL
        .into_iter()
        .map(|kind| {
            Box::new(Station {
                kind,
                spec: spec(kind),
                plan: Arc::clone(plan),
                done: Arc::clone(done),
            }) as Box<dyn Tool>
        })
        .collect()
}

struct Station {
    kind: Kind,
    spec: ToolSpec,
    plan: Arc<Plan>,
    done: Arc<AtomicUsize>,
}

fn spec(kind: Kind) -> ToolSpec {
    let description = match kind {
        Kind::LookUp => "Says what an order is for: article, shelf, customer, city and box.",
        Kind::Walk => "Walks to a shelf.",
        Kind::Pick => "Picks an article from the shelf.",
        Kind::Pack => "Packs what was picked in a box of this kind.",
        Kind::Ship => "Ships the box to a city, and says which order is next.",
    };
    ToolSpec {
        name: kind.tool().to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { kind.argument(): { "type": "string" } },
            "required": [kind.argument()],
        }),
        effect: if kind == Kind::LookUp {
            Effect::Read
        } else {
            Effect::Change
        },
        idempotent: false,
    }
}

impl Tool for Station {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let values = self.plan.values(self.kind);
        let values = values.iter().map(|value| value.as_str().into()).collect();
        Ok(Domains::from([(self.kind.argument().to_owned(), values)]))
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let step = self.done.load(Ordering::Relaxed);
        let call = call.call();
        match self.plan.right(step) {
            Some(right) if right == *call => {
                self.done.store(step + 1, Ordering::Relaxed);
                Ok(Outcome {
                    result: self.result(step),
                    changes: Vec::new(),
                })
            }
            _ => Err(ToolError::new(
                self.refusal(step, call.arguments.get(self.kind.argument())),
            )),
        }
    }
}

impl Station {
    /// What the right call of a step gives.
    fn result(&self, step: usize) -> Value {
        let order = &self.plan.orders[step / Kind::ALL.len()];
        match self.kind {
            Kind::LookUp => json!({
                "article": order.article,
                "shelf": order.shelf,
                "customer": order.customer,
                "city": order.city,
                "box": order.size,
            }),
            Kind::Walk => json!({ "at": order.shelf }),
            Kind::Pick => json!({ "picked": order.article }),
            Kind::Pack => json!({ "packed": order.article }),
            Kind::Ship => {
                let next = self.plan.orders.get(step / Kind::ALL.len() + 1);
                let left = (STEPS - step - 1) / Kind::ALL.len();
                match next {
                    Some(next) => json!({ "next_order": next.number, "orders_left": left }),
                    None => json!({ "orders_left": left }),
                }
            }
        }
    }

    /// Why nothing was done.
    fn refusal(&self, step: usize, value: Option<&Value>) -> String {
        if Kind::of(step) != self.kind {
            return "it is not the turn of this step".to_owned();
        }
        let value = value.and_then(Value::as_str).unwrap_or_default();
        let order = self
            .plan
            .orders
            .get(step / Kind::ALL.len())
            .map_or("", |order| &order.number);
        match self.kind {
            Kind::LookUp => format!("{value} is not the order that is next"),
            Kind::Walk => format!("nothing for order {order} is on shelf {value}"),
            Kind::Pick => format!("order {order} does not ask for the {value}"),
            Kind::Pack => format!("order {order} does not go in a box that is {value}"),
            Kind::Ship => format!("order {order} does not go to {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::SystemClock;
    use crate::agent::{Agent, Limits, NoExamples, Nobody, Recorder, Settings, StopReason};
    use crate::call::{Policy, Reply};
    use crate::model::Cancel;
    use crate::model::scripted::ScriptedGenerator;
    use crate::task::{ActiveTask, TaskId};
    use crate::tool::Registry;
    use crate::trace::Null;

    /// Legal moves at each step of a task that is done right.
    fn legal(seed: u64) -> Vec<usize> {
        let plan = Arc::new(Plan::new(seed, 0));
        let done = Arc::default();
        let mut registry = Registry::new();
        registry.register_all(tools(&plan, &done)).unwrap();
        let definition = plan.definition().unwrap();
        let now = jiff::Timestamp::UNIX_EPOCH;
        let mut task = ActiveTask::unrecorded(
            TaskId::new(now, 0),
            &plan.request(),
            definition,
            Value::Null,
            now,
        )
        .unwrap();
        let mut counts = Vec::new();
        for step in 0..STEPS {
            if step > 0 {
                task.record(now, crate::task::Event::Resumed).unwrap();
            }
            let mut moves = registry.moves(&Policy::default()).unwrap();
            moves.restrict(|tool| task.task().allows(tool));
            let of_tool = moves
                .moves
                .iter()
                .map(|legal| legal.domains.values().map(Vec::len).product::<usize>());
            counts.push(of_tool.sum());
            let call = plan.right(step).unwrap();
            let replies = [Reply::Calls(vec![call]).to_text()];
            let mut generator = ScriptedGenerator::new(replies);
            let report = Agent {
                generator: &mut generator,
                tools: &mut registry,
                examples: &mut NoExamples,
                person: &mut Nobody,
                observer: &mut Recorder::default(),
                trace: &mut Null,
                clock: &SystemClock::start(),
                cancel: Cancel::default(),
                settings: Settings {
                    limits: Limits {
                        turns: 1,
                        ..Limits::default()
                    },
                    ..Settings::default()
                },
            }
            .run(&mut task)
            .unwrap();
            let last = step + 1 == STEPS;
            let expected = if last {
                StopReason::Completed
            } else {
                StopReason::TurnLimit
            };
            assert_eq!(report.reason, expected, "step {step}");
        }
        assert_eq!(done.load(Ordering::Relaxed), STEPS);
        counts
    }

    #[test]
    fn there_are_four_legal_moves_and_more_at_most_steps() {
        for seed in 0..200 {
            let counts = legal(seed);
            let many = counts.iter().filter(|count| **count >= 4).count();
            assert!(many * 10 >= STEPS * 7, "seed {seed}: {counts:?}");
        }
    }

    #[test]
    fn what_is_not_next_is_refused_in_words() {
        let plan = Arc::new(Plan::new(3, 0));
        let done = Arc::default();
        let mut registry = Registry::new();
        registry.register_all(tools(&plan, &done)).unwrap();
        let moves = registry.moves(&Policy::default()).unwrap();
        let mut run = |call| match moves.check(call) {
            Ok(crate::call::Verdict::Checked(checked)) => registry.run(&checked),
            other => panic!("{other:?}"),
        };
        let wrong = plan.orders[1].number.clone();
        let first = plan.right(0).unwrap();
        let mut other = first.clone();
        other.arguments.insert("order".into(), wrong.clone().into());
        assert_eq!(
            run(other).unwrap_err().message,
            format!("{wrong} is not the order that is next")
        );
        assert_eq!(
            run(plan.right(1).unwrap()).unwrap_err().message,
            "it is not the turn of this step"
        );
        assert!(run(first).is_ok());
    }
}
