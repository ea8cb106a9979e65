//! A run as a person sees it: request, each turn's call and what it changed, answer, figures.
//!
//! Whatever comes from a model, a tool or a file is sanitised here.

use super::doubt::sure;
use super::explain;
use super::style::{BAD, FAINT, GOOD, NAME, STRONG, WARN, paint};
use super::wrap::{Layout, items, wrap};
use crate::agent::{Event, Figures, Look, Observer, StopReason};
use crate::call::Call;
use crate::call::json::spaced;
use crate::model::Cancel;
use crate::task::Task;
use crate::tool::Outcome;
use crate::tool::command::Program;
use crate::trace::{sanitize, sanitize_line};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::ControlFlow;
use unicode_width::UnicodeWidthStr;

/// Columns before a call.
const MARGIN: usize = 5;

/// Most characters of a tool's result or an argument that are shown; the trace has all of it.
const SHOWN: usize = 240;

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The whole session.
    Session,
    /// The answer or the question alone.
    Quiet,
    /// One JSON object an event.
    Json,
}

/// Shows a run as it happens.
pub struct View<W: Write> {
    out: W,
    style: Style,
    cancel: Cancel,
    progress: ProgressBar,
    /// Columns of the terminal; `None` where it is none.
    columns: Option<usize>,
    /// The turn whose number has not been shown yet.
    turn: Option<usize>,
    /// Whether anything was shown of the turns.
    busy: bool,
    announced: bool,
    failure: Option<io::Error>,
    /// What is run after each turn.
    hook: Option<Program>,
    /// Whether prompts are shown.
    explain: bool,
}

impl<W: Write> std::fmt::Debug for View<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

impl<W: Write> View<W> {
    /// Writes to `out`, a terminal of so many columns or none. Where that fails, `cancel` ends the
    /// run; `progress` is cleared before anything is written.
    pub fn new(
        out: W,
        style: Style,
        cancel: Cancel,
        progress: ProgressBar,
        columns: Option<usize>,
    ) -> Self {
        Self {
            out,
            style,
            cancel,
            progress,
            columns,
            turn: None,
            busy: false,
            announced: false,
            failure: None,
            hook: None,
            explain: false,
        }
    }

    /// The same view, which runs a program after each turn.
    #[must_use]
    pub fn with_hook(mut self, hook: Option<Program>) -> Self {
        self.hook = hook;
        self
    }

    /// The same view, which shows what the model reads if `explain`.
    #[must_use]
    pub fn explaining(mut self, explain: bool) -> Self {
        self.explain = explain;
        self
    }

    /// Shows what is about to be begun, before anything is recorded: where that cannot be written,
    /// nothing should be begun.
    ///
    /// # Errors
    /// Where the stream fails.
    pub fn announce(&mut self, task: &str, request: &str) -> io::Result<()> {
        self.event(&Event::RunStarted {
            task: task.to_owned(),
            request: request.to_owned(),
            resumed: false,
        });
        self.announced = true;
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// The first thing that could not be written.
    pub fn finish(&mut self) -> io::Result<()> {
        self.progress.finish_and_clear();
        match self.failure.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// What the view was written to.
    #[cfg(test)]
    pub fn into_inner(self) -> W {
        self.out
    }

    /// The margin of a line: the turn's number on its first one.
    fn margin(&mut self) -> String {
        self.busy = true;
        match self.turn.take() {
            Some(turn) => paint(FAINT, format!("{turn:>3}  ")),
            None => "     ".to_owned(),
        }
    }

    /// A note beside a call, or under it where there is no room.
    fn beside(&self, line: &str, style: anstyle::Style, note: &str) -> String {
        let last = line.rsplit('\n').next().unwrap_or_default();
        let taken = anstream::adapter::strip_str(last).to_string().width();
        let fits = |columns| MARGIN + taken + 2 + note.width() <= columns;
        let between = if self.columns.is_none_or(fits) {
            "  "
        } else {
            "\n       "
        };
        format!("{between}{}", paint(style, note))
    }

    fn session(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::RunStarted {
                task,
                request,
                resumed,
            } => {
                let request = paint(STRONG, self.laid(request, 2, "  "));
                let note = if *resumed {
                    paint(FAINT, format!("  (task {task}, resumed)"))
                } else {
                    String::new()
                };
                writeln!(self.out, "{} {request}{note}\n", paint(NAME, "›"))
            }
            Event::TurnStarted { turn } => {
                self.turn = Some(*turn);
                Ok(())
            }
            Event::Prompt {
                sections,
                template,
                tokens,
                ..
            } => {
                let space = if self.busy { "\n" } else { "" };
                let margin = self.margin();
                let table = explain::prompt(sections, *template, *tokens, self.columns);
                let title = paint(STRONG, "prompt");
                write!(self.out, "{space}{margin}{title}\n{table}")
            }
            Event::Generated {
                reused, evaluated, ..
            } => {
                // An empty line follows already.
                self.busy = false;
                let rows = explain::evaluation(*reused, *evaluated);
                writeln!(self.out, "{rows}")
            }
            Event::Prefill { .. } | Event::Reply { .. } => Ok(()),
            Event::CallStarted { call, dry } => {
                let margin = self.margin();
                let line = call_line(call, self.columns);
                let note = if *dry {
                    self.beside(&line, FAINT, "(dry run: not executed)")
                } else {
                    String::new()
                };
                writeln!(self.out, "{margin}{line}{note}")
            }
            // Whoever asks says so.
            Event::Unsure { .. } | Event::Approval { granted: true, .. } => Ok(()),
            Event::LookedAgain { confidence, look } => {
                let margin = self.margin();
                let came = match look {
                    Look::Agreed => "the same",
                    Look::Overruled => "another reply, and sure of it",
                    Look::Open => "another reply, and not sure of it either",
                };
                let line = format!("{}; looked again: {came}", sure(*confidence));
                writeln!(self.out, "{margin}{}", paint(FAINT, line))
            }
            Event::Approval { call, .. } => {
                let margin = self.margin();
                let line = call_line(call, self.columns);
                let word = self.beside(&line, WARN, "not approved");
                writeln!(self.out, "{margin}{line}{word}")
            }
            Event::CallFinished { outcome, .. } => self.outcome(outcome),
            Event::Failure { kind, hint } => {
                let margin = self.margin();
                let kind = sanitize_line(kind).replace('_', " ");
                writeln!(self.out, "{margin}{}", paint(WARN, kind))?;
                writeln!(
                    self.out,
                    "     {} {}",
                    paint(NAME, "hint:"),
                    self.laid(hint, 11, "           ")
                )
            }
            Event::Heard { text, follow_up } => {
                let mark = paint(NAME, if *follow_up { "›" } else { "+" });
                if *follow_up {
                    let text = self.laid(text, 2, "  ");
                    writeln!(self.out, "\n{mark} {text}\n")
                } else {
                    let text = self.laid(text, 7, "       ");
                    writeln!(self.out, "     {mark} {text}")
                }
            }
            Event::Verified { failed: None } => {
                let margin = self.margin();
                writeln!(self.out, "{margin}{}", paint(GOOD, "proved to be done"))
            }
            // The failure that follows says why.
            Event::Verified { failed: Some(_) } => Ok(()),
            Event::Question { text } => {
                let margin = self.margin();
                let mark = paint(WARN, "?");
                let text = self.laid(text, 7, "       ");
                writeln!(self.out, "{margin}{mark} {text}")
            }
            Event::Answer { text, flag } => {
                self.turn = None;
                let text = self.laid(text, 2, "  ");
                let space = if self.busy { "\n" } else { "" };
                writeln!(self.out, "{space}  {text}")?;
                match flag {
                    Some(flag) => {
                        let word = paint(BAD, "not to be believed:");
                        let flag = self.laid(&sanitize_line(flag), 22, "  ");
                        writeln!(self.out, "  {word} {flag}")
                    }
                    None => Ok(()),
                }
            }
            Event::Stopped { reason, figures } => self.end(reason, figures),
        }
    }

    /// A text that may have several lines, those after the first behind `margin`.
    fn laid(&self, text: &str, taken: usize, margin: &str) -> String {
        let layout = Layout {
            columns: self.columns,
            taken,
            margin,
        };
        wrap(&sanitize(text.trim()), layout)
    }

    fn outcome(&mut self, outcome: &Outcome) -> io::Result<()> {
        if outcome.changes.is_empty() {
            let text = shortened(&result_text(&outcome.result));
            let text = self.laid(&text, 5, "     ");
            return writeln!(self.out, "     {text}");
        }
        for change in &outcome.changes {
            let change = shortened(&sanitize_line(change));
            let change = self.laid(&change, 5, "       ");
            writeln!(self.out, "     {}", paint(GOOD, change))?;
        }
        Ok(())
    }

    fn end(&mut self, reason: &StopReason, figures: &Figures) -> io::Result<()> {
        match reason {
            StopReason::Answered
            | StopReason::AnswerFlagged
            | StopReason::Completed
            | StopReason::ToolEnded
            | StopReason::Asked => {}
            StopReason::DryRun => writeln!(self.out, "\n  {reason}")?,
            StopReason::Repeated
            | StopReason::FailedEnd
            | StopReason::Stuck
            | StopReason::Hook(_)
            | StopReason::TooManyFailures
            | StopReason::Refused
            | StopReason::TurnLimit
            | StopReason::TokenLimit
            | StopReason::TimeLimit
            | StopReason::Cancelled => {
                let reason = reason.to_string();
                let reason = sanitize_line(&reason);
                writeln!(self.out, "\n  {} {reason}", paint(WARN, "stopped:"))?;
            }
        }
        let line = items(&figures_line(figures), self.columns);
        writeln!(self.out, "\n{}", paint(FAINT, line))?;
        if let Some(trace) = &figures.trace {
            let trace = format!("trace {}", trace.display());
            writeln!(self.out, "{}", paint(FAINT, sanitize_line(&trace)))?;
        }
        Ok(())
    }

    fn quiet(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Answer { text, flag: None } | Event::Question { text } => {
                writeln!(self.out, "{}", sanitize(text))
            }
            Event::Answer {
                text,
                flag: Some(flag),
            } => writeln!(self.out, "{} ({})", sanitize(text), sanitize_line(flag)),
            Event::CallStarted { call, dry: true } => {
                writeln!(self.out, "{}", call_line(call, None))
            }
            _ => Ok(()),
        }
    }
}

impl<W: Write> Observer for View<W> {
    fn event(&mut self, event: &Event) {
        let told = self.announced && matches!(event, Event::RunStarted { .. });
        let unasked = matches!(event, Event::Prompt { .. } | Event::Generated { .. });
        if told || unasked && !self.explain || self.failure.is_some() {
            return;
        }
        if !matches!(event, Event::Prefill { .. }) {
            self.progress.finish_and_clear();
        }
        let written = match self.style {
            Style::Session => self.session(event),
            Style::Quiet => self.quiet(event),
            Style::Json => match as_json(event) {
                Some(value) => writeln!(self.out, "{value}"),
                None => Ok(()),
            },
        };
        // What a person waits for must not stay in a buffer.
        if let Err(error) = written.and_then(|()| self.out.flush()) {
            self.failure = Some(error);
            self.cancel.cancel();
        }
    }

    fn after_turn(&mut self, task: &Task) -> ControlFlow<String> {
        match &self.hook {
            None => ControlFlow::Continue(()),
            Some(hook) => verdict(hook, task),
        }
    }
}

/// What the program after a turn says of going on.
fn verdict(hook: &Program, task: &Task) -> ControlFlow<String> {
    let facts: serde_json::Map<String, Value> = task
        .facts
        .iter()
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    let last = task
        .last
        .as_ref()
        .map(|last| json!({ "step": last.step, "call": last.call, "result": last.result }));
    let input = json!({
        "task": task.id,
        "goal": task.goal,
        "turn": task.turns,
        "state": task.state,
        "facts": facts,
        "last": last,
    });
    match hook.run(input.to_string().as_bytes()) {
        Ok(_) => ControlFlow::Continue(()),
        // A guard that cannot be asked is no guard: the run stops.
        Err(error) => ControlFlow::Break(error.to_string()),
    }
}

/// `turn_on  device: kitchen light`, behind a margin of five columns.
pub fn call_line(call: &Call, columns: Option<usize>) -> String {
    let arguments: Vec<String> = call
        .arguments
        .iter()
        .map(|(name, value)| format!("{}: {}", sanitize_line(name), value_text(value)))
        .collect();
    let name = sanitize_line(&call.tool);
    if arguments.is_empty() {
        return paint(NAME, name);
    }
    let layout = Layout {
        columns,
        taken: 5 + name.chars().count() + 2,
        margin: "       ",
    };
    let arguments = wrap(&shortened(&arguments.join(", ")), layout);
    format!("{}  {arguments}", paint(NAME, name))
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => sanitize_line(text).into_owned(),
        other => sanitize_line(&spaced(other)).into_owned(),
    }
}

/// A result in its own words where it has any, else as JSON.
fn result_text(result: &Value) -> String {
    match (result, result.get("text")) {
        (Value::String(text), _) | (_, Some(Value::String(text))) => text.clone(),
        _ => spaced(result),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// `2 turns`, `1.3 s`, `prompt: 412 tokens evaluated, 380 reused`, `written: 20 forced, 4 chosen`
fn figures_line(figures: &Figures) -> [String; 4] {
    let turns = if figures.turns == 1 { "turn" } else { "turns" };
    [
        format!("{} {turns}", figures.turns),
        format!("{:.1} s", figures.elapsed.as_secs_f64()),
        format!(
            "prompt: {} tokens evaluated, {} reused",
            figures.prompt_evaluated, figures.prompt_reused
        ),
        format!(
            "written: {} forced, {} chosen",
            figures.forced, figures.chosen
        ),
    ]
}

/// An event for machines; progress is not one.
fn as_json(event: &Event) -> Option<Value> {
    Some(match event {
        Event::RunStarted {
            task,
            request,
            resumed,
        } => {
            json!({ "event": "run_started", "task": task, "request": request, "resumed": resumed })
        }
        Event::TurnStarted { turn } => json!({ "event": "turn_started", "turn": turn }),
        Event::Prompt {
            turn,
            sections,
            template,
            tokens,
        } => json!({
            "event": "prompt",
            "turn": turn,
            "sections": sections,
            "template": template,
            "tokens": tokens,
        }),
        Event::Generated {
            turn,
            reused,
            evaluated,
        } => json!({
            "event": "generated",
            "turn": turn,
            "prompt_reused": reused,
            "prompt_evaluated": evaluated,
        }),
        Event::Prefill { .. } => return None,
        Event::Reply { text } => json!({ "event": "reply", "text": text }),
        Event::CallStarted { call, dry } => {
            json!({ "event": "call_started", "call": call, "dry_run": dry })
        }
        Event::Approval { call, granted } => {
            json!({ "event": "approval", "call": call, "granted": granted })
        }
        Event::Unsure { call, doubt } => {
            json!({ "event": "unsure", "call": call, "doubt": doubt })
        }
        Event::LookedAgain { confidence, look } => {
            json!({ "event": "looked_again", "confidence": confidence, "look": look })
        }
        Event::CallFinished { call, outcome } => json!({
            "event": "call_finished",
            "call": call,
            "result": outcome.result,
            "changes": outcome.changes,
        }),
        Event::Failure { kind, hint } => json!({ "event": "failure", "kind": kind, "hint": hint }),
        Event::Heard { text, follow_up } => {
            json!({ "event": "heard", "text": text, "follow_up": follow_up })
        }
        Event::Verified { failed } => json!({ "event": "verified", "failed": failed }),
        Event::Question { text } => json!({ "event": "question", "text": text }),
        Event::Answer { text, flag } => json!({ "event": "answer", "text": text, "flag": flag }),
        Event::Stopped { reason, figures } => json!({
            "event": "stopped",
            "reason": reason.name(),
            "why": reason.to_string(),
            "turns": figures.turns,
            "prompt_evaluated": figures.prompt_evaluated,
            "prompt_reused": figures.prompt_reused,
            "forced": figures.forced,
            "chosen": figures.chosen,
            "seconds": figures.elapsed.as_secs_f64(),
            "mask_seconds": figures.mask_time.as_secs_f64(),
            "trace": figures.trace.as_ref().map(|path| path.to_string_lossy()),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Doubt;
    use crate::trace::Section;
    use std::time::Duration;

    fn session() -> Vec<Event> {
        let call = Call::new("turn_on", [("device", "kitchen light")]);
        let figures = Figures {
            turns: 2,
            prompt_reused: 380,
            prompt_evaluated: 412,
            forced: 20,
            chosen: 4,
            elapsed: Duration::from_millis(1340),
            mask_time: Duration::ZERO,
            confidence: None,
            trace: Some("t/1.jsonl".into()),
        };
        vec![
            Event::RunStarted {
                task: "1ngsz80-007".into(),
                request: "turn on the kitchen light".into(),
                resumed: false,
            },
            Event::TurnStarted { turn: 1 },
            Event::CallStarted {
                call: call.clone(),
                dry: false,
            },
            Event::CallFinished {
                call,
                outcome: Outcome {
                    result: json!({ "on": true }),
                    changes: vec!["kitchen light: on false → true".into()],
                },
            },
            Event::TurnStarted { turn: 2 },
            Event::Answer {
                text: "The kitchen light is on.".into(),
                flag: None,
            },
            Event::Stopped {
                reason: StopReason::Answered,
                figures,
            },
        ]
    }

    fn shown(style: Style, events: &[Event]) -> String {
        shown_in(None, style, events)
    }

    fn shown_in(columns: Option<usize>, style: Style, events: &[Event]) -> String {
        let out = anstream::StripStream::new(Vec::new());
        let bar = ProgressBar::hidden();
        let mut view = View::new(out, style, Cancel::default(), bar, columns);
        for event in events {
            view.event(event);
        }
        view.finish().unwrap();
        String::from_utf8(view.into_inner().into_inner()).unwrap()
    }

    #[test]
    fn a_session_reads_like_one() {
        insta::assert_snapshot!(shown(Style::Session, &session()), @r"
        › turn on the kitchen light

          1  turn_on  device: kitchen light
             kitchen light: on false → true

          The kitchen light is on.

        2 turns · 1.3 s · prompt: 412 tokens evaluated, 380 reused · written: 20 forced, 4 chosen
        trace t/1.jsonl
        ");
        assert_eq!(
            shown(Style::Quiet, &session()),
            "The kitchen light is on.\n"
        );
    }

    #[test]
    fn a_narrow_terminal_breaks_between_words() {
        let mut events = session();
        events[0] = Event::RunStarted {
            task: "1".into(),
            request: "включи свет на кухне, и 打开客厅的灯 💡 too, please".into(),
            resumed: false,
        };
        events[5] = Event::Answer {
            text: "The kitchen light is on, and so is the one in the living room.".into(),
            flag: Some("no call had an effect".into()),
        };
        insta::assert_snapshot!(shown_in(Some(40), Style::Session, &events), @r"
        › включи свет на кухне, и 打开客厅的灯
          💡 too, please

          1  turn_on  device: kitchen light
             kitchen light: on false → true

          The kitchen light is on, and so is the
          one in the living room.
          not to be believed: no call had an
          effect

        2 turns · 1.3 s
        prompt: 412 tokens evaluated, 380 reused
        written: 20 forced, 4 chosen
        trace t/1.jsonl
        ");
    }

    #[test]
    fn trouble_is_shown_and_nothing_obeys_the_model() {
        let unlock = Call::new("unlock", [("device", "front\u{1b}[2Jdoor")]);
        let events = [
            Event::TurnStarted { turn: 1 },
            Event::Failure {
                kind: "outside_domain".into(),
                hint: "no such device\nexample: …".into(),
            },
            Event::TurnStarted { turn: 2 },
            Event::LookedAgain {
                confidence: Some(0.314),
                look: Look::Open,
            },
            Event::Unsure {
                call: unlock.clone(),
                doubt: Doubt::default(),
            },
            Event::Approval {
                call: unlock.clone(),
                granted: false,
            },
            Event::CallStarted {
                call: unlock.clone(),
                dry: true,
            },
            Event::CallFinished {
                call: unlock,
                outcome: Outcome {
                    result: json!({ "text": "21 °C" }),
                    changes: vec![],
                },
            },
            Event::Question {
                text: "Which\u{202e} one?".into(),
            },
            Event::Answer {
                text: "Done.".into(),
                flag: Some("no call had an effect".into()),
            },
            Event::Stopped {
                reason: StopReason::Refused,
                figures: Figures::default(),
            },
        ];
        insta::assert_snapshot!(shown(Style::Session, &events), @r"
          1  outside domain
             hint: no such device
                   example: …
          2  31% sure; looked again: another reply, and not sure of it either
             unlock  device: front\u{1b}[2Jdoor  not approved
             unlock  device: front\u{1b}[2Jdoor  (dry run: not executed)
             21 °C
             ? Which\u{202e} one?

          Done.
          not to be believed: no call had an effect

          stopped: the call was not approved

        0 turns · 0.0 s · prompt: 0 tokens evaluated, 0 reused · written: 0 forced, 0 chosen
        ");
    }

    #[test]
    fn prompts_are_shown_where_that_is_wanted() {
        let mut events = session();
        let prompt = |turn| Event::Prompt {
            turn,
            sections: vec![Section {
                name: "request".into(),
                text: "turn on the kitchen\u{202e} light".into(),
                tokens: Some(6),
            }],
            template: Some(5),
            tokens: 11,
        };
        let generated = |turn| Event::Generated {
            turn,
            reused: 4,
            evaluated: 7,
        };
        for (at, turn) in [(5, 2), (2, 1)] {
            events.insert(at, generated(turn));
            events.insert(at, prompt(turn));
        }
        let explained = |style| {
            let out = anstream::StripStream::new(Vec::new());
            let bar = ProgressBar::hidden();
            let view = View::new(out, style, Cancel::default(), bar, Some(60));
            let mut view = view.explaining(true);
            for event in &events {
                view.event(event);
            }
            view.finish().unwrap();
            String::from_utf8(view.into_inner().into_inner()).unwrap()
        };
        insta::assert_snapshot!(explained(Style::Session));
        let lines = explained(Style::Json).lines().count();
        assert_eq!(lines, events.len());
        // Nobody asked.
        assert_eq!(
            shown(Style::Session, &events),
            shown(Style::Session, &session())
        );
    }

    #[test]
    fn machines_get_an_object_an_event() {
        let text = shown(Style::Json, &session());
        let events: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(events.len(), session().len());
        assert_eq!(events[6]["reason"], "answered");
        assert_eq!(events[3]["changes"][0], "kitchen light: on false → true");
    }

    #[test]
    fn a_stream_that_fails_stops_the_run() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let cancel = Cancel::default();
        let bar = ProgressBar::hidden();
        let mut view = View::new(Full, Style::Session, cancel.clone(), bar, None);
        for event in session() {
            view.event(&event);
        }
        assert!(cancel.is_cancelled());
        let error = view.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
