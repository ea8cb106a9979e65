//! `snaffle task list` and `show`: what the journal has. (Resuming is a run: `command_run`.)

use super::context::Context;
use super::error::Failure;
use super::style::{FAINT, GOOD, NAME, STRONG, WARN, paint};
use super::terminal::Terminal;
use crate::task::{Event, Journal, Status, StepResult, Task};
use crate::trace::sanitize_line;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Most characters of a text in a list.
const SHOWN: usize = 100;

/// Lists all tasks.
///
/// # Errors
/// A journal that cannot be read; that there is none is not an error.
pub fn list(context: &mut Context, path: &Path) -> Result<(), Failure> {
    let terminal = &mut context.terminal;
    // An empty file is what a full disk left of a journal.
    let empty = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0);
    if empty || !path.exists() {
        terminal.note("no task yet");
        return Ok(());
    }
    let journal = Journal::open_read_only(path)?;
    for row in journal.tasks()? {
        let record = journal.read(&row.id)?;
        let task = Task::fold(&row.id, &record.entries).ok();
        let damaged = record.damage.is_some() || task.is_none();
        let (goal, created, status) = match &task {
            Some(task) => (
                task.goal.clone(),
                Some(task.created),
                status_word(&task.shown_status(record.running)),
            ),
            None => (String::new(), None, "damaged"),
        };
        let status = if damaged { "damaged" } else { status };
        if terminal.json {
            terminal.write_json(&json!({
                "id": row.id,
                "status": status,
                "goal": goal,
                "created": created.map(|time| time.to_string()),
                "events": row.events,
                "running": row.running,
            }))?;
            continue;
        }
        let style = match status {
            "answered" => GOOD,
            "running" => NAME,
            _ => WARN,
        };
        writeln!(
            terminal.out,
            "{}  {}  {}  {}",
            paint(STRONG, &row.id),
            paint(FAINT, created.map(local).unwrap_or_default()),
            paint(style, format!("{status:<11}")),
            cut(&sanitize_line(&goal)),
        )?;
    }
    Ok(())
}

/// Shows one task: how it stands, what it knows, and its events.
///
/// # Errors
/// No such task, or a journal that cannot be read.
pub fn show(context: &mut Context, path: &Path, name: &str) -> Result<(), Failure> {
    let journal = Journal::open_read_only(path)?;
    let id = journal.find(name)?;
    let record = journal.read(&id)?;
    let terminal = &mut context.terminal;
    if terminal.json {
        for entry in &record.entries {
            terminal.write_json(&json!({
                "sequence": entry.sequence,
                "time": entry.time.to_string(),
                "event": entry.event,
            }))?;
        }
        return Ok(());
    }
    if let Ok(task) = Task::fold(&id, &record.entries) {
        summary(terminal, &task, record.running)?;
    }
    for entry in &record.entries {
        let (what, text) = describe(&entry.event);
        writeln!(
            terminal.out,
            "{}  {}  {text}",
            paint(
                FAINT,
                format!("{:>4}  {}", entry.sequence, time_of_day(entry.time))
            ),
            paint(NAME, format!("{what:<9}")),
        )?;
    }
    if let Some(damage) = &record.damage {
        terminal.warn(&format!(
            "the journal of this task is damaged after that: {damage}"
        ));
    }
    Ok(())
}

fn summary(terminal: &mut Terminal, task: &Task, running: bool) -> Result<(), Failure> {
    let status = task.shown_status(running);
    let mut line = status_word(&status).to_owned();
    match &status {
        Status::Asked(question) => line = format!("{line}: {}", sanitize_line(question)),
        Status::Stopped(reason) => line = format!("{line}: {}", reason_words(reason)),
        Status::Running | Status::Answered | Status::Interrupted => {}
    }
    writeln!(terminal.out, "{}", paint(STRONG, sanitize_line(&task.goal)))?;
    writeln!(
        terminal.out,
        "{} · {} · {line}\n",
        task.id,
        local(task.created)
    )?;
    for (name, value) in task.facts.iter() {
        let value = cut(&sanitize_line(&value.to_string()));
        writeln!(terminal.out, "  {} = {value}", sanitize_line(name))?;
    }
    if !task.facts.is_empty() {
        writeln!(terminal.out)?;
    }
    Ok(())
}

fn status_word(status: &Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Answered => "answered",
        Status::Asked(_) => "asked",
        Status::Stopped(_) => "stopped",
        Status::Interrupted => "interrupted",
    }
}

fn reason_words(reason: &crate::task::StopReason) -> String {
    use crate::task::StopReason::{
        Cancelled, Error, Failures, NobodyToAsk, Repeated, Seconds, Tokens, Turns,
    };
    match reason {
        Turns => "the limit on turns".into(),
        Tokens => "the limit on tokens".into(),
        Seconds => "the limit on time".into(),
        Failures => "too many failures".into(),
        Repeated => "the same call again".into(),
        Cancelled => "cancelled".into(),
        NobodyToAsk => "a call was not approved".into(),
        Error(error) => sanitize_line(error).into_owned(),
    }
}

/// An event's kind and the rest of it in one line.
fn describe(event: &Event) -> (&'static str, String) {
    let (what, text) = match event {
        Event::TaskCreated { goal, .. } => ("created", goal.clone()),
        Event::TurnStarted { turn } => ("turn", turn.to_string()),
        Event::Intent { call, .. } => ("intent", call.to_text()),
        Event::Outcome {
            result, changes, ..
        } => ("outcome", outcome(result, changes)),
        Event::Settled { how, .. } => ("settled", format!("{how:?}").to_lowercase()),
        Event::Asked { question } => ("asked", question.clone()),
        Event::Replied { text } => ("replied", text.clone()),
        Event::Approved { call } => ("approved", call.to_text()),
        Event::Refused { call, reason } => ("refused", format!("{} ({reason})", call.to_text())),
        Event::Rejected { kind, message } => ("rejected", format!("{kind}: {message}")),
        Event::HintGiven { text, .. } => ("hint", text.clone()),
        Event::FactsChanged { set, removed } => {
            let mut names: Vec<String> = set.keys().cloned().collect();
            names.extend(removed.iter().map(|name| format!("−{name}")));
            ("facts", names.join(", "))
        }
        Event::StateMoved { from, to } => ("state", format!("{from} → {to}")),
        Event::Answered { text, flagged } => match flagged {
            Some(flag) => ("answered", format!("{text} ({flag})")),
            None => ("answered", text.clone()),
        },
        Event::Stopped { reason } => ("stopped", reason_words(reason)),
        Event::Resumed => ("resumed", String::new()),
        Event::Rewound { to } => ("rewound", format!("to event {to}")),
    };
    (what, cut(&sanitize_line(&text)))
}

fn outcome(result: &StepResult, changes: &[String]) -> String {
    match result {
        StepResult::Ok(_) if !changes.is_empty() => changes.join("; "),
        StepResult::Ok(value) => value.to_string(),
        StepResult::Error {
            message,
            effect_unknown: true,
        } => format!("failed, perhaps with an effect: {message}"),
        StepResult::Error { message, .. } => format!("failed: {message}"),
    }
}

fn local(time: Timestamp) -> String {
    let zoned = time.to_zoned_datetime(TimeZone::system());
    zoned.strftime("%Y-%m-%d %H:%M").to_string()
}

fn time_of_day(time: Timestamp) -> String {
    let zoned = time.to_zoned_datetime(TimeZone::system());
    zoned.strftime("%H:%M:%S").to_string()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
