//! Each part that can be left out is really gone: what a generator is given says so.

use super::args_bench::Part;
use super::bench_run::leave_out;
use crate::agent::{Clock, Examples, FromPool, Settings, SystemClock, ToolsInPrompt};
use crate::bench::episode::Player;
use crate::bench::record::PARTS;
use crate::bench::steps::{Kind, Plan, play};
use crate::call::{Domains, Effect, Moves, Policy, Reply, ToolSpec};
use crate::fewshot::Pool;
use crate::model::{
    Cancel, GenerateError, GenerateRequest, Generation, GenerationStats, Generator, Prompt, Stop,
};
use clap::ValueEnum;
use serde_json::json;
use std::sync::Arc;

/// What a generator was given.
struct Given {
    prompt: Prompt,
    grammar: Option<String>,
    calibrated: bool,
}

impl Given {
    fn last(&self) -> &str {
        &self.prompt.messages.last().unwrap().content
    }
}

/// Says what it was told to, then cancels.
struct Spy {
    replies: Vec<String>,
    given: Vec<Given>,
}

impl Generator for Spy {
    fn name(&self) -> &str {
        "spy"
    }

    fn obeys_grammar(&self) -> bool {
        false
    }

    fn capacity(&self) -> usize {
        1 << 16
    }

    fn count(&mut self, _prompt: &Prompt) -> Result<usize, GenerateError> {
        Ok(0)
    }

    fn generate(&mut self, request: &GenerateRequest<'_>) -> Result<Generation, GenerateError> {
        self.given.push(Given {
            prompt: request.prompt.clone(),
            grammar: request.grammar.map(ToString::to_string),
            calibrated: request.calibration.is_some(),
        });
        let reply = self.replies.get(self.given.len() - 1).cloned();
        Ok(Generation {
            stop: if reply.is_some() {
                Stop::Complete
            } else {
                Stop::Cancelled
            },
            text: reply.unwrap_or_default(),
            log_probability: None,
            choices: Vec::new(),
            stats: GenerationStats::default(),
        })
    }
}

/// Four turns of a task: looked up, a wrong shelf, the right one, the article.
fn given(without: &[Part]) -> (Plan, Vec<Given>) {
    let plan = Plan::new(5, 0);
    let mut wrong = plan.right(1).unwrap();
    let right = wrong.arguments["shelf"].clone();
    let shelves = plan.values(Kind::Walk);
    let other = shelves
        .iter()
        .find(|shelf| right != shelf.as_str())
        .unwrap();
    wrong
        .arguments
        .insert("shelf".into(), other.as_str().into());
    let step = |at| plan.right(at).unwrap();
    let replies = [step(0), wrong, step(1)].map(|call| Reply::Calls(vec![call]).to_text());
    let mut spy = Spy {
        replies: replies.to_vec(),
        given: Vec::new(),
    };
    let mut settings = Settings {
        alpha: Some(0.5),
        ..Settings::default()
    };
    settings.layout.tools = ToolsInPrompt::None;
    leave_out(&mut settings, without);
    let mut examples = FromPool::new(Pool::default()).with_steps(Pool::steps().unwrap());
    examples.fixed = without.contains(&Part::Retrieval);
    let played = play(
        &mut Player {
            generator: &mut spy,
            examples: &mut examples,
            clock: &|| -> Box<dyn Clock> { Box::new(SystemClock::start()) },
            settings,
            cancel: Cancel::default(),
        },
        &plan,
    );
    assert!(played.unwrap().is_none());
    assert_eq!(spy.given.len(), 4);
    (plan, spy.given)
}

#[test]
fn a_part_that_is_left_out_is_gone_and_nothing_else() {
    for left_out in [None]
        .into_iter()
        .chain(Part::value_variants().iter().map(Some))
    {
        let without: Vec<Part> = left_out.copied().into_iter().collect();
        let has = |part| !without.contains(&part);
        let (plan, given) = given(&without);
        let city = plan.orders[0].city.as_str();
        for turn in &given {
            assert_eq!(turn.grammar.is_some(), has(Part::Grammar), "{without:?}");
            assert_eq!(turn.calibrated, has(Part::Calibration), "{without:?}");
            let examples = turn.prompt.stable > 3;
            assert_eq!(examples, has(Part::Pool), "{without:?}");
        }
        if let Some(grammar) = &given[0].grammar {
            let number = plan.orders[3].number.as_str();
            assert_eq!(grammar.contains(number), has(Part::Domains), "{without:?}");
            assert_eq!(
                !grammar.contains("ship_to_city"),
                has(Part::State),
                "{without:?}"
            );
        }
        // The third prompt comes after the wrong shelf.
        let said = given[2].last().contains("nothing for order");
        assert_eq!(said, has(Part::Hints), "{without:?}: {}", given[2].last());
        assert!(given[2].last().contains("failed"), "{without:?}");
        let facts = given[3].last().contains(&format!("- city: {city}\n"));
        assert_eq!(facts, has(Part::State), "{without:?}");
        let calls = given[3].prompt.messages.len() - given[3].prompt.stable;
        assert_eq!(calls, if has(Part::State) { 3 } else { 7 }, "{without:?}");
    }
}

#[test]
fn without_retrieval_examples_are_the_same_whatever_is_asked() {
    let mut moves = Moves::default();
    for name in ["turn_on", "turn_off", "open", "close"] {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"device": {"type": "string"}}}),
            effect: Effect::Change,
            idempotent: true,
        };
        let live = vec![json!("hall lamp"), json!("garage door")];
        let domains = Domains::from([("device".to_owned(), live)]);
        assert!(moves.add(Arc::new(spec), domains, &Policy::default()));
    }
    let requests = ["turn on the hall lamp", "close the garage door please"];
    for fixed in [false, true] {
        let mut examples = FromPool::new(Pool::seeds().unwrap());
        examples.fixed = fixed;
        let [one, two] = requests.map(|request| examples.choose(request, &moves, None, &[], 2));
        assert_eq!((one.len(), two.len()), (2, 2));
        assert_eq!(one == two, fixed, "{one:?} {two:?}");
    }
}

#[test]
fn the_parts_are_those_that_results_know() {
    let names: Vec<&str> = Part::value_variants()
        .iter()
        .map(|part| part.name())
        .collect();
    assert_eq!(names, PARTS);
}

#[test]
fn what_teaches_is_not_measured() {
    let all = super::bench_requests::read_suite(None).unwrap();
    let ids = |requests: &[crate::bench::suite::Request]| {
        requests
            .iter()
            .map(|request| request.id.clone())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let whole = ids(&all);
    let (lessons, measured) = super::bench_requests::halves(all).unwrap();
    assert!(ids(&lessons).is_disjoint(&ids(&measured)));
    assert_eq!(&ids(&lessons) | &ids(&measured), whole);
    for kind in crate::bench::suite::Kind::ALL {
        let count = |requests: &[crate::bench::suite::Request]| {
            let of = |request: &&crate::bench::suite::Request| {
                request.kind == kind && request.lang == "en"
            };
            requests.iter().filter(of).count()
        };
        let (taught, left) = (count(&lessons), count(&measured));
        assert!(left > 0 && (left..=left + 1).contains(&taught), "{kind:?}");
    }
    let one = super::bench_requests::read_suite(None).unwrap().remove(0);
    assert!(super::bench_requests::halves(vec![one]).is_err());
}
