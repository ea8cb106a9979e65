//! A model answers the leaderboard's questions: one generation each, nothing is executed.
//!
//! Under the harness the functions of a question are the tools of one turn: their schemas are
//! compiled into its grammar, with asking and answering beside them, so that a question to which
//! no function fits can be met without a call. The parallel categories allow up to
//! [`PARALLEL_CALLS`] calls, the others as many as the settings say. Without the grammar the model
//! writes what it likes, and whatever can be understood as a call counts.

use super::checker::{Names, check};
use super::dataset::{Question, Speaker};
use super::decode;
use super::schema::tool;
use super::value::{Int, Value};
use crate::agent::Tail;
use crate::agent::context::lay_out;
use crate::agent::{Examples, Layout, Settings};
use crate::bench::record::{Record, Spent};
use crate::call::{Call, Dialect, Domains, Moves, Policy, Reply, ToolSpec, turn_grammar};
use crate::model::{
    Cancel, GenerateError, GenerateRequest, Generation, Generator, Message, Prompt, Role, Stop,
};
use crate::task::{ActiveTask, Definition, TaskError, TaskId};
use std::sync::Arc;

/// Most calls in a reply of the parallel categories: the longest answer has eight.
pub const PARALLEL_CALLS: usize = 8;

/// What a model without the harness is told.
const ALONE: &str = "You call functions. Reply with the calls that answer the request and nothing \
                     else, as [name(argument=value, ...), ...]. If no function fits, say so.";

/// What questions are put with.
pub struct Asker<'a> {
    /// The model.
    pub generator: &'a mut dyn Generator,
    /// Where examples come from.
    pub examples: &'a mut dyn Examples,
    /// As for the agent. Without `grammar` the model is alone.
    pub settings: Settings,
    /// Stops after the current token.
    pub cancel: Cancel,
}

impl std::fmt::Debug for Asker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Why a question could not be put. What the model does is never an error, nor is a question that
/// its context cannot hold: those are wrong answers.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The model failed.
    #[error("question {id}: {source}")]
    Generate {
        /// The question.
        id: String,
        /// Why.
        source: GenerateError,
    },
    /// There is no task for it.
    #[error("question {id}: {source}")]
    Task {
        /// The question.
        id: String,
        /// Why.
        source: TaskError,
    },
}

impl Asker<'_> {
    /// Puts a question. `None`: cancelled.
    ///
    /// # Errors
    /// The harness or the model's backend failed.
    pub fn ask(&mut self, question: &Question) -> Result<Option<Record>, AskError> {
        let mut record = Record {
            id: question.id.clone(),
            group: question.category.name().to_owned(),
            request: question.request().to_owned(),
            spent: Spent {
                turns: 1,
                ..Spent::default()
            },
            ..Record::default()
        };
        let moves = match moves(question, &self.settings) {
            Ok(moves) => moves,
            Err(name) => {
                record.error = Some(format!("function_name: {name}"));
                return Ok(Some(record));
            }
        };
        let prompt = self.prompt(question, &moves)?;
        let compiled = match turn_grammar(&moves, &self.settings.turn) {
            Ok(compiled) => compiled,
            Err(error) => {
                record.error = Some(format!("schema: {error}"));
                return Ok(Some(record));
            }
        };
        let calls = moves.max_calls.min(2);
        let written = self.generator.generate(&GenerateRequest {
            prompt: &prompt,
            grammar: self.settings.grammar.then_some(&compiled.grammar),
            sampling: self.settings.sampling.clone(),
            max_tokens: self.settings.limits.turn_tokens * calls,
            jump_ahead: true,
            calibration: None,
            cancel: self.cancel.clone(),
        });
        let generation = match written {
            Ok(generation) => generation,
            Err(error @ GenerateError::PromptTooLong { .. }) => {
                record.error = Some(format!("prompt_too_long: {error}"));
                return Ok(Some(record));
            }
            Err(error @ GenerateError::Grammar(_)) => {
                record.error = Some(error.to_string());
                return Ok(Some(record));
            }
            Err(source) => {
                return Err(AskError::Generate {
                    id: question.id.clone(),
                    source,
                });
            }
        };
        if generation.stop == Stop::Cancelled {
            return Ok(None);
        }
        measured(&generation, &mut record);
        let output = if self.settings.grammar {
            under_grammar(&generation)
        } else {
            let names: Vec<&str> = question.functions.iter().map(|f| f.name.as_str()).collect();
            decode::lenient(&generation.text, &names)
        };
        record.calls = output.as_ref().map(calls_of).unwrap_or_default();
        record.error = match check(question, output.as_ref(), Names::AsGiven) {
            Ok(()) => None,
            Err(_) if output.is_none() && generation.stop != Stop::Complete => {
                Some("truncated".to_owned())
            }
            Err(error) => Some(error.to_string()),
        };
        record.right = record.error.is_none();
        if self.settings.grammar {
            // The probability of the whole reply among those that the grammar allows.
            record.spent.confidence = generation.log_probability.map(f64::exp);
        }
        record.text = Some(generation.text);
        Ok(Some(record))
    }

    /// The harness's own prompt, with what the question says beside its request.
    fn prompt(&mut self, question: &Question, moves: &Moves) -> Result<Prompt, AskError> {
        let most = if self.settings.grammar {
            self.settings.examples.min(3)
        } else {
            0
        };
        let request = question.request();
        let shown = self.examples.choose(request, moves, None, &[], most);
        let time = jiff::Timestamp::UNIX_EPOCH;
        let task = ActiveTask::unrecorded(
            TaskId::new(time, 0),
            request,
            Definition::builtin(),
            serde_json::Value::Null,
            time,
        )
        .map_err(|source| AskError::Task {
            id: question.id.clone(),
            source,
        })?;
        // There is one reply, and no result to answer.
        let mut layout = Layout {
            show_ending: false,
            ..self.settings.layout.clone()
        };
        if !self.settings.grammar {
            layout.instructions = ALONE.to_owned();
        }
        let mut prompt = lay_out(&layout, moves, &shown, task.task(), Tail::default()).prompt;
        with_conversation(&mut prompt, question);
        Ok(prompt)
    }
}

/// Standing instructions join the harness's own; what was said before the request stands before
/// it.
fn with_conversation(prompt: &mut Prompt, question: &Question) {
    let last = question
        .messages
        .iter()
        .rposition(|said| said.role == Speaker::User);
    let mut at = prompt.messages.len().saturating_sub(1);
    for said in question.messages.iter().take(last.unwrap_or_default()) {
        let role = match said.role {
            Speaker::System => {
                if let Some(first) = prompt.messages.first_mut() {
                    first.content.push('\n');
                    first.content.push_str(&said.content);
                }
                continue;
            }
            Speaker::User => Role::User,
            Speaker::Assistant => Role::Assistant,
        };
        let content = said.content.clone();
        prompt.messages.insert(at, Message { role, content });
        at += 1;
    }
}

/// The functions as tools of one turn, or the name that is none.
fn moves(question: &Question, settings: &Settings) -> Result<Moves, String> {
    let max_calls = if question.category.is_parallel() {
        settings.max_calls.max(PARALLEL_CALLS)
    } else {
        settings.max_calls
    };
    let mut moves = Moves {
        max_calls,
        ..Moves::default()
    };
    for function in &question.functions {
        if !ToolSpec::is_name(&function.name) {
            return Err(function.name.clone());
        }
        let spec = Arc::new(tool(function));
        moves.add(spec, Domains::new(), &Policy::default());
    }
    Ok(moves)
}

/// The calls of a reply that the grammar shaped; none where it asks, answers, or had to be closed.
fn under_grammar(generation: &Generation) -> Option<Value> {
    if generation.stop != Stop::Complete {
        return None;
    }
    match Dialect::Snaffle.parse(&generation.text) {
        Ok(Reply::Calls(calls)) => Some(Value::List(calls.iter().map(value_of).collect())),
        Ok(Reply::Ask(_) | Reply::Answer(_)) | Err(_) => None,
    }
}

fn value_of(call: &Call) -> Value {
    let arguments = call
        .arguments
        .iter()
        .map(|(name, value)| (Value::Str(name.clone()), Value::from(value)))
        .collect();
    Value::Dict(vec![(
        Value::Str(call.tool.clone()),
        Value::Dict(arguments),
    )])
}

/// The calls for a report; what JSON cannot hold is written as text.
fn calls_of(output: &Value) -> Vec<Call> {
    let calls = output.as_list().unwrap_or_default();
    calls
        .iter()
        .filter_map(|call| match call.as_dict()? {
            [(name, arguments)] => Some(Call {
                tool: name.as_str()?.to_owned(),
                arguments: match to_json(arguments) {
                    serde_json::Value::Object(arguments) => arguments,
                    _ => serde_json::Map::new(),
                },
            }),
            _ => None,
        })
        .collect()
}

fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::None => serde_json::Value::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(int) => json_integer(int),
        Value::Float(float) => serde_json::Number::from_f64(*float)
            .map_or_else(|| float.to_string().into(), serde_json::Value::Number),
        Value::Str(text) => text.clone().into(),
        Value::List(items) | Value::Tuple(items) => items.iter().map(to_json).collect(),
        Value::Dict(members) => members
            .iter()
            .map(|(key, value)| {
                let key = match key {
                    Value::Str(text) => text.clone(),
                    other => to_json(other).to_string(),
                };
                (key, to_json(value))
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn json_integer(int: &Int) -> serde_json::Value {
    match int.to_i128().and_then(serde_json::Number::from_i128) {
        Some(number) => serde_json::Value::Number(number),
        None => int.as_str().into(),
    }
}

fn measured(generation: &Generation, record: &mut Record) {
    let stats = &generation.stats;
    record.spent = Spent {
        prompt_reused: stats.prompt_reused,
        prompt_evaluated: stats.prompt_evaluated,
        forced: stats.forced,
        chosen: stats.chosen,
        seconds: stats.total_time.as_secs_f64(),
        ..record.spent
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::NoExamples;
    use crate::bench::bfcl::dataset::{Category, Function, Said};
    use crate::bench::bfcl::json;
    use crate::model::ScriptedGenerator;

    fn question(category: Category) -> Question {
        let said = |role, content: &str| Said {
            role,
            content: content.into(),
        };
        Question {
            id: format!("{}_0", category.name()),
            category,
            messages: vec![
                said(Speaker::System, "Be brief."),
                said(Speaker::User, "Hello"),
                said(Speaker::Assistant, "Hi"),
                said(Speaker::User, "Halve 8"),
            ],
            functions: vec![Function {
                name: "math.halve".into(),
                description: "Halves.".into(),
                parameters: serde_json::json!({"type": "dict", "properties": {"n": {"type": "float"}}, "required": ["n"]}),
            }],
            answers: vec![json::read(r#"{"math.halve": {"n": [8]}}"#).unwrap()],
        }
    }

    fn ask(category: Category, grammar: bool, reply: (&str, Stop)) -> (Record, Prompt) {
        let mut generator = ScriptedGenerator::with_stops([reply]);
        let prompts = generator.prompts();
        let record = Asker {
            generator: &mut generator,
            examples: &mut NoExamples,
            settings: Settings {
                grammar,
                ..Settings::default()
            },
            cancel: Cancel::default(),
        }
        .ask(&question(category))
        .unwrap()
        .unwrap();
        (record, prompts.all().remove(0))
    }

    #[test]
    fn replies_get_their_verdict() {
        let call = r#"{"calls": [{"tool": "math.halve", "arguments": {"n": 8}}]}"#;
        let answer = r#"{"answer": "No function fits."}"#;
        let complete = Stop::Complete;
        for (category, grammar, reply, error) in [
            (Category::Simple, true, (call, complete), None),
            (
                Category::Simple,
                true,
                (answer, complete),
                Some("ast_decoder:decoder_failed"),
            ),
            (
                Category::Simple,
                true,
                (call, Stop::Closed),
                Some("truncated"),
            ),
            (Category::Irrelevance, true, (answer, complete), None),
            (
                Category::Irrelevance,
                true,
                (call, complete),
                Some("irrelevance_error:decoder_success"),
            ),
            (Category::LiveRelevance, true, (call, complete), None),
            (
                Category::Simple,
                false,
                ("Sure: math.halve(n=8.0).", complete),
                None,
            ),
            (Category::Simple, false, (call, complete), None),
            (
                Category::Simple,
                false,
                ("4", complete),
                Some("ast_decoder:decoder_failed"),
            ),
            (Category::Irrelevance, false, ("4", complete), None),
        ] {
            let (record, _) = ask(category, grammar, reply);
            assert_eq!(record.error.as_deref(), error, "{category:?} {reply:?}");
            assert_eq!(record.right, error.is_none());
            assert_eq!(record.text.as_deref(), Some(reply.0));
        }
    }

    #[test]
    fn the_prompt_has_the_whole_conversation() {
        let (_, prompt) = ask(Category::Simple, true, ("{}", Stop::Complete));
        let said: Vec<(Role, &str)> = prompt
            .messages
            .iter()
            .map(|message| (message.role, message.content.as_str()))
            .collect();
        let [(Role::System, system), rest @ ..] = said.as_slice() else {
            panic!("{said:?}");
        };
        assert!(system.contains("math.halve: Halves.") && system.ends_with("\nBe brief."));
        assert_eq!(
            rest,
            [
                (Role::User, "Hello"),
                (Role::Assistant, "Hi"),
                (Role::User, "Halve 8")
            ]
        );
    }
}
