//! What the model reads in a turn, section by section, with the tokens of each: `--explain`.

use super::style::{FAINT, NAME, paint};
use super::wrap::{Layout, wrap};
use crate::trace::{Section, sanitize_line};
use std::fmt::Write as _;

/// Columns where none are known: what most terminals have.
const USUAL: usize = 80;

/// Lines of a section that are shown; `trace show --full` has all of them.
const LINES: usize = 4;

/// Columns of the names and the numbers, and where the text begins.
const NAMES: usize = 9;
const NUMBERS: usize = 6;
const MARGIN: &str = "                        ";

/// A prompt as a table: a row a section, the template's own, and all of it.
pub fn prompt(
    sections: &[Section],
    template: Option<usize>,
    tokens: usize,
    columns: Option<usize>,
) -> String {
    let mut out = String::new();
    for section in sections {
        let layout = Layout {
            columns: Some(columns.unwrap_or(USUAL)),
            taken: MARGIN.len(),
            margin: MARGIN,
        };
        let lines: Vec<_> = section.text.lines().map(sanitize_line).collect();
        let text = wrap(&lines.join("\n"), layout);
        let all = text.lines().count();
        let mut shown: Vec<&str> = text.lines().take(LINES).collect();
        let more = format!("{MARGIN}… {} more lines", all.saturating_sub(LINES - 1));
        if all > LINES {
            shown.truncate(LINES - 1);
            shown.push(&more);
        }
        let tokens = section.tokens.map(|tokens| tokens.to_string());
        row(&mut out, &section.name, tokens, &shown.join("\n"));
    }
    if let Some(template) = template {
        let note = paint(FAINT, "the chat template's own");
        row(&mut out, "template", Some(template.to_string()), &note);
    }
    row(&mut out, "in all", Some(tokens.to_string()), "");
    out
}

/// What of a prompt was there already, and what was not.
pub fn evaluation(reused: usize, evaluated: usize) -> String {
    let mut out = String::new();
    let note = if reused == 0 && evaluated == 0 {
        paint(FAINT, "all that was written was forced")
    } else {
        String::new()
    };
    row(&mut out, "reused", Some(reused.to_string()), "");
    row(&mut out, "evaluated", Some(evaluated.to_string()), &note);
    out
}

fn row(out: &mut String, name: &str, number: Option<String>, text: &str) {
    let number = number.unwrap_or_else(|| "?".to_owned());
    let name = paint(NAME, format!("{:<NAMES$}", sanitize_line(name)));
    let line = format!("     {name}  {number:>NUMBERS$}  {text}");
    // Writing to a string does not fail.
    _ = writeln!(out, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn section(name: &str, text: &str, tokens: Option<u64>) -> Section {
        Section {
            name: name.to_owned(),
            text: text.to_owned(),
            tokens,
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_prompt_is_a_table() {
        let sections = [
            section(
                "role",
                "You act through tools. Reply with one JSON object: a call, a question or an answer.",
                Some(23),
            ),
            section("examples", "one\ntwo\nthree\nfour\nfive", Some(12)),
            section(
                "request",
                "включи свет\u{1b}[2J\tна кухне, и 打开客厅的灯",
                Some(1234),
            ),
            section("hint", "no such device", None),
        ];
        let text = prompt(&sections, Some(31), 1300, None) + &evaluation(1250, 50);
        let text = plain(&text);
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.width() <= USUAL));
        let narrow = plain(&prompt(&sections, None, 1300, Some(50)));
        assert!(narrow.lines().all(|line| line.width() <= 50), "{narrow}");
        let forced = plain(&evaluation(0, 0));
        assert!(forced.contains("all that was written was forced"));
    }
}
