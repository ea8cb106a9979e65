//! The prompt of a turn: what is byte-stable first, what changes last.
//!
//! In order: role and rules (and, if the settings say so, the task's tools without live values);
//! how a result is answered; the examples pinned for the request; the request; and, from the second
//! turn on, the last call with its result and what is known from earlier steps. Never the history
//! (except where a measurement wants it). What the task's state wants and a hint after a failure
//! come at the very end. No clock, counter or random number enters a prompt.

use super::history::Past;
use crate::call::{Moves, Reply};
use crate::model::{Message, Prompt, Role};
use crate::task::definition::State;
use crate::task::{StepResult, Task};
use crate::trace;
use serde_json::Value;

/// How much of the tools' descriptions the prompt holds. The grammar says what is legal in any
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolsInPrompt {
    /// None. For models of a few hundred million parameters, which a list of tools confuses more
    /// than it helps (measured: SmolLM2-135M fell from 33 to 19 right of 45 with it).
    None,
    /// Names and descriptions.
    Names,
    /// Names, descriptions and JSON Schemas.
    #[default]
    Full,
}

/// What every prompt of a run has in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Role and rules.
    pub instructions: String,
    /// How tools are described.
    pub tools: ToolsInPrompt,
    /// Longest summary of facts, in bytes.
    pub summary_bytes: usize,
    /// Longest result shown, in bytes; a longer one is cut, and says so.
    pub result_bytes: usize,
    /// Show, before the examples, how a result is answered. Without it a base model goes on with
    /// what the examples show, and makes its call again (measured: Gemma 3 270M repeated itself in
    /// 173 of 282 runs, with it in 1 of 61).
    pub show_ending: bool,
    /// Say of a failure what was wrong; else only that something failed. Off only for
    /// measurements.
    pub hints: bool,
    /// Facts and the last step instead of all that was said and done. Off only for measurements.
    pub state: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            instructions: "You act through tools. Reply with one JSON object: a call, a question \
                           or an answer."
                .to_owned(),
            tools: ToolsInPrompt::default(),
            summary_bytes: 1024,
            result_bytes: 2048,
            show_ending: true,
            hints: true,
            state: true,
        }
    }
}

/// What a turn's prompt ends with, beside what the task knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tail<'a> {
    /// What the request names and no call has been about.
    pub open: &'a [String],
    /// What the person said meanwhile, and what the last attempt at this very turn got wrong.
    pub hint: Option<&'a str>,
    /// Every earlier reply with its results, for a layout without state.
    pub history: &'a [Past],
}

/// A request and the reply that is right for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What a person said.
    pub request: String,
    /// What to write, in the harness's dialect.
    pub reply: String,
}

/// A part of a prompt, for the trace and for `--explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// `role`, `tools`, `examples`, `request`, `step`, `purpose` or `hint`.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// A turn's prompt and the parts it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// What the model reads.
    pub prompt: Prompt,
    /// The same by section.
    pub sections: Vec<Section>,
    /// Whether what is to be done next is said by facts and not by the request alone.
    by_facts: bool,
}

impl Context {
    /// The prompt with the request blanked out; where facts say what is to be done next, with
    /// everything after the stable part.
    pub fn blank(&self) -> Prompt {
        let mut blank = self.prompt.clone();
        // The request is what follows the stable part.
        if let Some(request) = blank.messages.get_mut(blank.stable) {
            request.content.clear();
        }
        if self.by_facts {
            blank.messages.truncate(blank.stable + 1);
        }
        blank
    }
}

/// Lays out the prompt of the next turn of `task`.
///
/// `tools` are all of the task's tools, whatever is legal now.
pub fn lay_out(
    layout: &Layout,
    tools: &Moves,
    examples: &[Shown],
    task: &Task,
    tail: Tail<'_>,
) -> Context {
    let mut messages = Vec::with_capacity(examples.len() * 2 + 4);
    let mut sections = vec![section("role", &layout.instructions)];
    let described = describe(tools, layout.tools);
    let mut system = layout.instructions.clone();
    if !described.is_empty() {
        system.push('\n');
        system.push_str(&described);
        sections.push(section("tools", &described));
    }
    messages.push(message(Role::System, system));
    if layout.show_ending {
        let (result, answer) = sample_ending();
        sections.push(section("examples", &format!("{result}\n{answer}")));
        messages.push(message(Role::User, result));
        messages.push(message(Role::Assistant, answer));
    }
    for example in examples {
        sections.push(section(
            "examples",
            &format!("{}\n{}", example.request, example.reply),
        ));
        messages.push(message(Role::User, example.request.clone()));
        messages.push(message(Role::Assistant, example.reply.clone()));
    }
    let stable = messages.len();
    sections.push(section("request", &task.goal));
    messages.push(message(Role::User, task.goal.clone()));
    let by_facts = layout.state && task.current().is_some_and(|state| !state.keep_results);
    if !layout.state {
        for past in tail.history {
            sections.push(section(
                "step",
                &format!("{}\n{}", past.reply, past.results),
            ));
            messages.push(message(Role::Assistant, past.reply.clone()));
            messages.push(message(Role::User, past.results.clone()));
        }
    } else if let Some((call, step)) = last_step(layout, task, tail.open) {
        sections.push(section("step", &format!("{call}\n{step}")));
        messages.push(message(Role::Assistant, call));
        messages.push(message(Role::User, step));
    } else if let Some((question, reply)) = &task.reply {
        sections.push(section("step", &format!("{question}\n{reply}")));
        messages.push(message(
            Role::Assistant,
            Reply::Ask(question.clone()).to_text(),
        ));
        messages.push(message(Role::User, reply.clone()));
    } else {
        let known = known(task, layout.summary_bytes);
        if !known.is_empty() {
            sections.push(section("step", known.trim_end()));
            end_with(&mut messages, known.trim_end());
        }
    }
    let purpose = task.current().and_then(|state| state.purpose.as_deref());
    if let (Some(purpose), true) = (purpose, layout.state) {
        let purpose = format!("Next: {purpose}");
        sections.push(section("purpose", &purpose));
        end_with(&mut messages, &purpose);
    }
    if let Some(hint) = tail.hint {
        sections.push(section("hint", hint));
        end_with(&mut messages, hint);
    }
    Context {
        prompt: Prompt { messages, stable },
        sections,
        by_facts,
    }
}

/// Adds a line to the last message.
fn end_with(messages: &mut [Message], line: &str) {
    if let Some(last) = messages.last_mut() {
        if !last.content.ends_with('\n') {
            last.content.push('\n');
        }
        last.content.push_str(line);
    }
}

/// What stands at the very end of a prompt: what the person said meanwhile, and a hint.
pub(super) fn tail(notes: &[String], hint: Option<&str>) -> Option<String> {
    let notes = notes.iter().map(|note| format!("The person adds: {note}"));
    let lines: Vec<String> = notes.chain(hint.map(str::to_owned)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A section as the trace keeps it.
pub(super) fn traced(section: &Section) -> trace::Section {
    trace::Section {
        name: section.name.to_owned(),
        text: section.text.clone(),
    }
}

fn section(name: &'static str, text: &str) -> Section {
    Section {
        name,
        text: text.to_owned(),
    }
}

fn message(role: Role, content: String) -> Message {
    Message { role, content }
}

/// The last call as the model wrote it, and what the model is told came of it.
fn last_step(layout: &Layout, task: &Task, open: &[String]) -> Option<(String, String)> {
    let last = task.last.as_ref()?;
    let call = Reply::Calls(vec![last.call.clone()]).to_text();
    let mut text = String::new();
    text.push_str(&known(task, layout.summary_bytes));
    text.push_str(&result_text(layout, last.result.as_ref()));
    if let Some(StepResult::Ok(value)) = &last.result {
        if !open.is_empty() {
            text.push_str("\nStill to do: ");
            text.push_str(&open.join(", "));
        } else if task.current().is_none_or(State::may_answer) {
            text.push('\n');
            text.push_str(&ending(value));
        }
    }
    if let Some((question, reply)) = &task.reply {
        text.push_str(&format!(
            "\nAsked: {}\nReply: {}",
            shorten(question, layout.result_bytes / 4),
            shorten(reply, layout.result_bytes / 4)
        ));
    }
    Some((call, text))
}

/// What the model is told came of a call.
pub(super) fn result_text(layout: &Layout, result: Option<&StepResult>) -> String {
    match result {
        None => "Result: not known.".to_owned(),
        Some(StepResult::Error { message, .. }) => failure_text(layout, message),
        Some(StepResult::Ok(value)) => {
            let value = crate::call::json::spaced(value);
            format!("Result: {}", shorten(&value, layout.result_bytes))
        }
    }
}

/// What the model is told of something that failed.
pub(super) fn failure_text(layout: &Layout, message: &str) -> String {
    if layout.hints {
        format!("Result: failed: {}", shorten(message, layout.result_bytes))
    } else {
        "Result: failed.".to_owned()
    }
}

/// A result and the answer to it. It has no request: an example that goes from a request over a
/// call to an answer makes tiny models answer before they act.
fn sample_ending() -> (String, String) {
    let result = serde_json::json!({"device": "hall fan", "on": true, "text": "hall fan: on"});
    (
        format!(
            "Result: {}\n{}",
            crate::call::json::spaced(&result),
            ending(&result)
        ),
        Reply::Answer("hall fan: on".to_owned()).to_text(),
    )
}

/// What is known: where results are kept as facts, from steps before the last one.
fn known(task: &Task, limit: usize) -> String {
    if task.steps < 2 && task.current().is_none_or(|state| state.keep_results) {
        return String::new();
    }
    let facts = task.facts.text(limit);
    if facts.is_empty() {
        facts
    } else {
        format!("Known:\n{facts}")
    }
}

/// How a step that went well may end the task: an answer made of the tool's own words where it
/// has any (the member `text` of its result), so that a model that copies tells the truth.
fn ending(result: &Value) -> String {
    match result.get("text").and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => format!(
            "If nothing is left to do, reply {}",
            Reply::Answer(shorten(text.trim(), 200)).to_text()
        ),
        _ => "If nothing is left to do, reply with an answer.".to_owned(),
    }
}

/// `text`, cut between characters where it is longer than `limit` bytes; the cut says so.
fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!(
        "{}… (cut: {} of {} bytes shown)",
        &text[..end],
        end,
        text.len()
    )
}

/// The tools for the model, without any live value.
fn describe(tools: &Moves, how: ToolsInPrompt) -> String {
    let mut text = String::new();
    for legal in &tools.moves {
        match how {
            ToolsInPrompt::None => {}
            ToolsInPrompt::Names => {
                text.push_str(&format!(
                    "{}: {}\n",
                    legal.spec.name, legal.spec.description
                ));
            }
            ToolsInPrompt::Full => text.push_str(&format!(
                "{}: {} Arguments: {}\n",
                legal.spec.name,
                legal.spec.description,
                crate::call::json::spaced(&legal.spec.parameters)
            )),
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("Tools:\n{}", text.trim_end())
    }
}
