//! The prompt of a turn: what is byte-stable first, what changes last.
//!
//! In order: role and rules (and, if the settings say so, the task's tools without live values);
//! how a result is answered; the examples pinned for the request; the request; and, from the second
//! turn on, the last call, what is known from earlier steps and what came of the call. Never the
//! history (except where a measurement wants it). What the task's state wants and a hint after a
//! failure come at the very end. No clock, counter or random number enters a prompt.

use super::history::Past;
use crate::call::{Moves, Reply};
use crate::model::{Message, Part, Prompt, Role, TokenCounts};
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
    /// `role`, `tools`, `examples`, `request`, `facts`, `step`, `purpose` or `hint`.
    pub name: &'static str,
    /// Its text.
    pub text: String,
    /// Where in the messages it stands: what is in two of them begins twice.
    pub parts: Vec<Part>,
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

    /// Where the sections stand, in their order.
    pub fn parts(&self) -> Vec<Part> {
        let parts = self.sections.iter().flat_map(|section| &section.parts);
        parts.copied().collect()
    }

    /// The sections as the trace keeps them, each with its tokens where these were counted for
    /// [`parts`](Self::parts).
    pub fn counted(&self, counts: Option<&TokenCounts>) -> Vec<trace::Section> {
        let mut counts = counts.map(|counts| counts.parts.iter());
        let sections = self.sections.iter().map(|section| trace::Section {
            name: section.name.to_owned(),
            text: section.text.clone(),
            tokens: counts.as_mut().map(|counts| {
                let own = counts.take(section.parts.len());
                own.sum::<usize>() as u64
            }),
        });
        sections.collect()
    }
}

/// The messages of a prompt as they are written, and the sections that they are made of.
#[derive(Default)]
struct Draft {
    messages: Vec<Message>,
    sections: Vec<Section>,
}

impl Draft {
    /// A section that is a message.
    fn message(&mut self, name: &'static str, role: Role, content: &str) {
        self.messages.push(Message {
            role,
            content: content.to_owned(),
        });
        self.section(name, content, 0);
    }

    /// A section that is two messages.
    fn exchange(&mut self, name: &'static str, first: (Role, &str), second: (Role, &str)) {
        self.message(name, first.0, first.1);
        self.also(second.0, second.1);
    }

    /// The last section goes on in another message.
    fn also(&mut self, role: Role, content: &str) {
        self.messages.push(Message {
            role,
            content: content.to_owned(),
        });
        let part = self.here(0);
        if let Some(section) = self.sections.last_mut() {
            section.text.push('\n');
            section.text.push_str(content);
            section.parts.push(part);
        }
    }

    /// A section on a new line of the last message.
    fn line(&mut self, name: &'static str, text: &str) {
        let Some(last) = self.messages.last_mut() else {
            return;
        };
        if !last.content.ends_with('\n') {
            last.content.push('\n');
        }
        let start = last.content.len();
        last.content.push_str(text);
        self.section(name, text, start);
    }

    fn section(&mut self, name: &'static str, text: &str, start: usize) {
        let part = self.here(start);
        self.sections.push(Section {
            name,
            text: text.trim_end().to_owned(),
            parts: vec![part],
        });
    }

    /// A place in the last message.
    fn here(&self, start: usize) -> Part {
        Part {
            message: self.messages.len().saturating_sub(1),
            start,
        }
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
    let mut draft = Draft::default();
    draft.message("role", Role::System, &layout.instructions);
    let described = describe(tools, layout.tools);
    if !described.is_empty() {
        draft.line("tools", &described);
    }
    if layout.show_ending {
        let (result, answer) = sample_ending();
        let (result, answer) = ((Role::User, &*result), (Role::Assistant, &*answer));
        draft.exchange("examples", result, answer);
    }
    for Shown { request, reply } in examples {
        draft.exchange("examples", (Role::User, request), (Role::Assistant, reply));
    }
    let stable = draft.messages.len();
    draft.message("request", Role::User, &task.goal);
    let by_facts = layout.state && task.current().is_some_and(|state| !state.keep_results);
    if !layout.state {
        for past in tail.history {
            let (reply, results) = (&*past.reply, &*past.results);
            draft.exchange("step", (Role::Assistant, reply), (Role::User, results));
        }
    } else if let Some(step) = last_step(layout, task, tail.open) {
        draft.message("step", Role::Assistant, &step.call);
        if step.known.is_empty() {
            draft.also(Role::User, &step.result);
        } else {
            draft.message("facts", Role::User, &step.known);
            draft.line("step", &step.result);
        }
    } else if let Some((question, reply)) = &task.reply {
        let question = Reply::Ask(question.clone()).to_text();
        draft.exchange("step", (Role::Assistant, &question), (Role::User, reply));
    } else {
        let known = known(task, layout.summary_bytes);
        if !known.is_empty() {
            draft.line("facts", known.trim_end());
        }
    }
    let purpose = task.current().and_then(|state| state.purpose.as_deref());
    if let (Some(purpose), true) = (purpose, layout.state) {
        draft.line("purpose", &format!("Next: {purpose}"));
    }
    if let Some(hint) = tail.hint {
        draft.line("hint", hint);
    }
    Context {
        prompt: Prompt {
            messages: draft.messages,
            stable,
        },
        sections: draft.sections,
        by_facts,
    }
}

/// What stands at the very end of a prompt: what the person said meanwhile, and a hint.
pub(super) fn tail(notes: &[String], hint: Option<&str>) -> Option<String> {
    let notes = notes.iter().map(|note| format!("The person adds: {note}"));
    let lines: Vec<String> = notes.chain(hint.map(str::to_owned)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The last call as the model wrote it, what is known, and what the model is told came of it.
struct LastStep {
    call: String,
    /// What is known from the steps before; ends with a line end where there is any.
    known: String,
    result: String,
}

fn last_step(layout: &Layout, task: &Task, open: &[String]) -> Option<LastStep> {
    let last = task.last.as_ref()?;
    let call = Reply::Calls(vec![last.call.clone()]).to_text();
    let known = known(task, layout.summary_bytes);
    let may_end = open.is_empty() && task.current().is_none_or(State::may_answer);
    let mut text = match &last.result {
        Some(StepResult::Ok(value)) if may_end => ended_text(layout, value),
        result => result_text(layout, result.as_ref()),
    };
    if let Some(StepResult::Ok(_)) = &last.result
        && !open.is_empty()
    {
        text.push_str("\nStill to do: ");
        text.push_str(&open.join(", "));
    }
    if let Some((question, reply)) = &task.reply {
        text.push_str(&format!(
            "\nAsked: {}\nReply: {}",
            shorten(question, layout.result_bytes / 4),
            shorten(reply, layout.result_bytes / 4)
        ));
    }
    Some(LastStep {
        call,
        known,
        result: text,
    })
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
            ending(Some("hall fan: on"))
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

/// What the model is told came of a call after which the task may end: the result, and how to end.
/// The tool's own words (the member `text` of its result) stand in the answer and are not said
/// twice.
fn ended_text(layout: &Layout, result: &Value) -> String {
    let words = result.get("text").and_then(Value::as_str).map(str::trim);
    let words = words.filter(|words| !words.is_empty());
    let mut rest = result.clone();
    if let Some(members) = rest.as_object_mut()
        && members.len() > 1
        && words.is_some_and(|words| words.len() <= MOST_WORDS)
    {
        members.shift_remove("text");
    }
    let rest = result_text(layout, Some(&StepResult::Ok(rest)));
    format!("{rest}\n{}", ending(words))
}

/// How a step that went well may end the task: an answer made of the tool's own words where it
/// has any, so that a model that copies tells the truth.
fn ending(words: Option<&str>) -> String {
    match words {
        Some(words) => format!(
            "If nothing is left to do, reply {}",
            Reply::Answer(shorten(words, MOST_WORDS)).to_text()
        ),
        None => "If nothing is left to do, reply with an answer.".to_owned(),
    }
}

/// Most bytes of the tool's own words in an answer that the model is shown.
const MOST_WORDS: usize = 200;

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
