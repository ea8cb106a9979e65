//! The coverage of a schema as a table: what the grammar enforces, and what it does not.

use super::source::{Report, Source};
use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::style::{FAINT, GOOD, NAME, STRONG, WARN, paint};
use crate::grammar::schema::{CoverageEntry, Treatment};
use crate::trace::sanitize_line;
use serde_json::{Value, json};
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// The treatments, the weightiest first.
const TREATMENTS: [Treatment; 4] = [
    Treatment::Checked,
    Treatment::Bounded,
    Treatment::Enforced,
    Treatment::Annotation,
];

/// Columns of a pointer beyond which the note does not wait for it.
const WIDEST: usize = 48;

/// Writes the coverage of `source`.
///
/// # Errors
/// Where the stream fails.
pub fn write(context: &mut Context, source: &Source) -> Result<(), Failure> {
    let terminal = &mut context.terminal;
    if terminal.json {
        return Ok(terminal.write_json(&to_json(source))?);
    }
    for report in &source.coverage {
        if let Some(tool) = &report.tool {
            writeln!(terminal.out, "{}", paint(STRONG, sanitize_line(tool)))?;
        }
        for line in lines(&report.entries) {
            writeln!(terminal.out, "{line}")?;
        }
    }
    let summary = summary(&source.coverage);
    writeln!(terminal.out, "{}", paint(FAINT, summary))?;
    Ok(())
}

/// The coverage for a machine.
pub fn to_json(source: &Source) -> Value {
    let entries: Vec<Value> = source
        .coverage
        .iter()
        .flat_map(|report| report.entries.iter().map(move |entry| (report, entry)))
        .map(|(report, entry)| {
            json!({
                "tool": report.tool,
                "keyword": entry.keyword,
                "pointer": entry.pointer,
                "treatment": entry.treatment.to_string(),
                "note": entry.note,
            })
        })
        .collect();
    json!({ "complete": source.is_complete(), "entries": entries })
}

fn lines(entries: &[CoverageEntry]) -> Vec<String> {
    let rows: Vec<[String; 3]> = entries
        .iter()
        .map(|entry| {
            let place = if entry.pointer.is_empty() {
                "/"
            } else {
                &entry.pointer
            };
            [
                &entry.keyword,
                place,
                entry.note.as_deref().unwrap_or_default(),
            ]
            .map(|cell| sanitize_line(cell).into_owned())
        })
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].width());
        widths.filter(|&width| width <= WIDEST).max().unwrap_or(0)
    };
    let (keywords, places) = (width(0), width(1));
    entries
        .iter()
        .zip(&rows)
        .map(|(entry, [keyword, place, note])| {
            let treatment = format!("{:<10}", entry.treatment.to_string());
            let style = match entry.treatment {
                Treatment::Enforced => GOOD,
                Treatment::Bounded => NAME,
                Treatment::Annotation => FAINT,
                Treatment::Checked => WARN,
            };
            let line = format!(
                "{}  {}  {}  {note}",
                paint(style, treatment),
                padded(keyword, keywords),
                padded(place, places)
            );
            line.trim_end().to_owned()
        })
        .collect()
}

/// `text` with blanks up to `width` columns, as a terminal counts them.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

fn summary(reports: &[Report]) -> String {
    let entries = || reports.iter().flat_map(|report| &report.entries);
    if entries().next().is_none() {
        return "no keyword: nothing is constrained".to_owned();
    }
    let counts: Vec<String> = TREATMENTS
        .iter()
        .map(|&treatment| {
            let count = entries()
                .filter(|entry| entry.treatment == treatment)
                .count();
            (treatment, count)
        })
        .filter(|&(_, count)| count > 0)
        .map(|(treatment, count)| match treatment {
            Treatment::Checked => format!("{count} checked after generation"),
            Treatment::Bounded => format!("{count} bounded by default"),
            Treatment::Enforced => format!("{count} enforced by the grammar"),
            Treatment::Annotation if count == 1 => "1 annotation".to_owned(),
            Treatment::Annotation => format!("{count} annotations"),
        })
        .collect();
    counts.join(", ")
}
