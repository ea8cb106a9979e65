//! A trace as a person reads it.
//!
//! It reads any version's lines: what it does not know is shown as it is, a line that is no JSON
//! (the last one of a run that was killed) is named. All text is sanitised.

use super::sanitize::{sanitize, sanitize_line};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::{self, BufRead, Read as _, Write};

/// Longest line that is read, in bytes.
const LINE_LIMIT: u64 = 16 * 1024 * 1024;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Prompts, examples and tokens in full; otherwise the first lines.
    pub full: bool,
}

/// Renders a whole trace.
///
/// # Errors
/// Where `reader` or `writer` fails.
pub fn render(
    reader: &mut dyn BufRead,
    writer: &mut dyn Write,
    options: RenderOptions,
) -> io::Result<()> {
    let mut renderer = Renderer::new(options);
    loop {
        let mut line = Vec::new();
        reader.take(LINE_LIMIT).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let text = renderer.line(&String::from_utf8_lossy(&line));
        writer.write_all(text.as_bytes())?;
    }
}

/// Renders line by line.
#[derive(Clone, Debug)]
pub struct Renderer {
    options: RenderOptions,
    number: usize,
    turn: Option<u64>,
}

impl Renderer {
    /// At the beginning of a trace.
    pub fn new(options: RenderOptions) -> Self {
        Self {
            options,
            number: 0,
            turn: None,
        }
    }

    /// The text for one line of the trace: lines that end in a line end, or nothing.
    pub fn line(&mut self, line: &str) -> String {
        self.number += 1;
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            return String::new();
        }
        match serde_json::from_str(line) {
            Ok(Value::Object(event)) => self.event(&event),
            Ok(_) | Err(_) => format!(
                "(line {}: {} bytes that are no event; the run was cut off there, or the file is damaged)\n",
                self.number,
                line.len()
            ),
        }
    }

    fn event(&mut self, event: &Map<String, Value>) -> String {
        let mut out = String::new();
        if let Some(turn) = event.get("turn").and_then(Value::as_u64)
            && self.turn != Some(turn)
        {
            self.turn = Some(turn);
            let _ = writeln!(out, "\nturn {turn}");
        }
        let text = |key: &str| text_of(event.get(key));
        let kind = event.get("event").and_then(Value::as_str).unwrap_or("?");
        match kind {
            "run_started" => {
                let _ = writeln!(out, "{}  trace {}", text("time"), text("trace_id"));
                field(&mut out, "model", &text("model"));
                if event.contains_key("task") {
                    field(&mut out, "task", &text("task"));
                }
                field(&mut out, "request", &text("request"));
            }
            "prompt" => self.prompt(&mut out, event),
            "grammar" => {
                let line = format!("{} ({} bytes)", text("hash"), text("bytes"));
                field(&mut out, "grammar", &line);
            }
            "examples" => self.examples(&mut out, event),
            "generated" => self.generated(&mut out, event),
            "choice" => self.choice(&mut out, event),
            "rejected" => {
                let line = format!("{}: {}", text("kind"), text("message"));
                field(&mut out, "rejected", &line);
            }
            "call" => {
                let line = format!("{}. {}", text("step"), call_of(event));
                field(&mut out, "call", &line);
            }
            "approval" => {
                let allowed = event.get("allowed").and_then(Value::as_bool) == Some(true);
                let word = if allowed { "allowed" } else { "refused" };
                field(
                    &mut out,
                    word,
                    &format!("{} (by {})", call_of(event), text("by")),
                );
            }
            "result" => result(&mut out, event),
            "hint" => field(&mut out, "hint", &text("text")),
            "state_moved" => {
                field(
                    &mut out,
                    "state",
                    &format!("{} → {}", text("from"), text("to")),
                );
            }
            "facts" => {
                if let Some(Value::Object(set)) = event.get("set") {
                    for (name, value) in set {
                        let line = format!("{}: {}", sanitize_line(name), text_of(Some(value)));
                        field(&mut out, "fact", &line);
                    }
                }
            }
            "asked" => field(&mut out, "asks", &text("question")),
            "replied" => field(&mut out, "reply", &text("text")),
            "answered" => {
                field(&mut out, "answer", &text("text"));
                if event.contains_key("flagged") {
                    field(&mut out, "beware", &text("flagged"));
                }
            }
            "run_ended" => {
                let _ = writeln!(out, "\n{}  {}", text("time"), text("reason"));
                if let Some(Value::Object(figures)) = event.get("figures") {
                    field(&mut out, "figures", &figures_text(figures));
                }
            }
            "cut" => field(&mut out, "cut", &text("reason")),
            "note" => {
                let line = format!("{}: {}", text("name"), text("data"));
                field(&mut out, "note", &line);
            }
            _ => {
                let rest: Vec<String> = event
                    .iter()
                    .filter(|(key, _)| !matches!(key.as_str(), "event" | "trace_id" | "time"))
                    .map(|(key, value)| format!("{}={}", sanitize_line(key), text_of(Some(value))))
                    .collect();
                field(&mut out, &sanitize_line(kind), &rest.join(" "));
            }
        }
        out
    }

    fn prompt(&self, out: &mut String, event: &Map<String, Value>) {
        let tokens = text_of(event.get("tokens"));
        let parts = parts_text(event);
        field(out, "prompt", &format!("{tokens} tokens{parts}"));
        let Some(Value::Array(sections)) = event.get("sections") else {
            field(out, "", &text_of(event.get("sections")));
            return;
        };
        for section in sections {
            let name = text_of(section.get("name"));
            let text = section.get("text").and_then(Value::as_str).unwrap_or("");
            self.block(out, &format!("[{name}]"), text);
        }
    }

    fn examples(&self, out: &mut String, event: &Map<String, Value>) {
        let Some(Value::Array(shown)) = event.get("shown") else {
            field(out, "examples", &text_of(event.get("shown")));
            return;
        };
        for example in shown {
            let part = |at: usize| text_of(example.get(at));
            field(
                out,
                "example",
                &format!("{} ⇒ {} ({})", part(1), part(2), part(0)),
            );
        }
    }

    fn generated(&self, out: &mut String, event: &Map<String, Value>) {
        let stop = text_of(event.get("stop"));
        let text = event.get("text").and_then(Value::as_str).unwrap_or("");
        self.block(out, &format!("wrote ({stop})"), text);
        if let Some(Value::Object(figures)) = event.get("figures") {
            field(out, "figures", &figures_text(figures));
        }
        if let (true, Some(Value::Array(tokens))) = (self.options.full, event.get("tokens")) {
            for token in tokens {
                let forced = token.get("forced").and_then(Value::as_bool) == Some(true);
                let line = format!(
                    "{:?} {} of {} allowed, mask {} ns",
                    text_of(token.get("text")),
                    if forced { "forced" } else { "chosen" },
                    text_of(token.get("allowed")),
                    text_of(token.get("mask_nanoseconds")),
                );
                field(out, "token", &line);
            }
        }
    }

    fn choice(&self, out: &mut String, event: &Map<String, Value>) {
        let Some(Value::Array(options)) = event.get("options") else {
            return;
        };
        let most = if self.options.full { usize::MAX } else { 3 };
        let shown: Vec<String> = options
            .iter()
            .take(most)
            .map(|option| {
                let probability = option.get("probability").and_then(Value::as_f64);
                let percent = probability.unwrap_or(f64::NAN) * 100.0;
                format!("{} {percent:.0}%", text_of(option.get("text")))
            })
            .collect();
        let left = options.len().saturating_sub(most);
        let more = if left > 0 {
            format!(", {left} more")
        } else {
            String::new()
        };
        let line = format!(
            "{}: {}{more}",
            text_of(event.get("place")),
            shown.join(", ")
        );
        field(out, "choice", &line);
    }

    /// A text of several lines; unless in full, the first four.
    fn block(&self, out: &mut String, name: &str, text: &str) {
        let safe = sanitize(text);
        let most = if self.options.full { usize::MAX } else { 4 };
        let count = safe.lines().count();
        for (number, line) in safe.lines().take(most).enumerate() {
            let name = if number == 0 { name } else { "" };
            if self.options.full {
                field(out, name, line);
            } else {
                field(out, name, &shorten(line, 160));
            }
        }
        if count > most {
            field(out, "", &format!("… {} more lines", count - most));
        }
    }
}

fn result(out: &mut String, event: &Map<String, Value>) {
    let ok = event.get("ok").and_then(Value::as_bool) == Some(true);
    let word = if ok { "result" } else { "failed" };
    let micros = event
        .get("microseconds")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let line = format!("{} ({})", text_of(event.get("result")), duration(micros));
    field(out, word, &line);
    if let Some(Value::Array(changes)) = event.get("changes") {
        for change in changes {
            field(out, "changed", &text_of(Some(change)));
        }
    }
}

/// `: role 23, request 6, template 12`, sections of one name together; nothing where the tokens
/// were not told apart.
fn parts_text(event: &Map<String, Value>) -> String {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let sections = event.get("sections").and_then(Value::as_array);
    for section in sections.into_iter().flatten() {
        let Some(tokens) = section.get("tokens").and_then(Value::as_u64) else {
            continue;
        };
        let name = text_of(section.get("name"));
        match parts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(tokens),
            None => parts.push((name, tokens)),
        }
    }
    if let Some(tokens) = event.get("template").and_then(Value::as_u64) {
        parts.push(("template".to_owned(), tokens));
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, tokens)| format!("{name} {tokens}"))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(": {}", parts.join(", "))
    }
}

/// `  name      text`.
fn field(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "  {name:<9} {text}");
}

/// `tool {"argument":…}` with everything on one line.
fn call_of(event: &Map<String, Value>) -> String {
    format!(
        "{} {}",
        text_of(event.get("tool")),
        text_of(event.get("arguments"))
    )
}

/// A value on one line: strings as they are, everything else as JSON.
fn text_of(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => sanitize_line(text).into_owned(),
        Some(other) => sanitize_line(&other.to_string()).into_owned(),
    }
}

fn shorten(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn figures_text(figures: &Map<String, Value>) -> String {
    let number = |key: &str| figures.get(key).and_then(Value::as_u64).unwrap_or(0);
    format!(
        "prompt {} evaluated, {} reused; {} forced, {} chosen; {} masks ({} computed, {}); prefill {}, in all {}",
        number("prompt_evaluated"),
        number("prompt_reused"),
        number("forced"),
        number("chosen"),
        number("masks"),
        number("masks_computed"),
        duration(number("mask_microseconds")),
        duration(number("prefill_microseconds")),
        duration(number("total_microseconds")),
    )
}

/// Microseconds as people read them.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn duration(microseconds: u64) -> String {
    match microseconds {
        0..1_000 => format!("{microseconds} µs"),
        1_000..1_000_000 => format!("{:.1} ms", microseconds as f64 / 1e3),
        _ => format!("{:.2} s", microseconds as f64 / 1e6),
    }
}
