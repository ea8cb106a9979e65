//! Does a text match a grammar, and if not: where does it stop, and what could have stood there?

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::exit::Exit;
use crate::cli::input::read_bytes;
use crate::cli::style::{BAD, FAINT, GOOD, paint};
use crate::grammar::gbnf::Place;
use crate::grammar::{CharClass, Grammar, LimitError, Limits, Recogniser};
use crate::trace::{sanitize, sanitize_line};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Bytes of a suggested end, and of what follows a suggested character.
const LONGEST_END: usize = 200;
const LONGEST_RUN: usize = 24;
/// Alternatives that are listed one by one, and ranges of characters.
const MOST_LISTED: usize = 10;

/// Where a text stops matching.
#[derive(Debug)]
struct Stop {
    /// Byte of the character that does not match, or the text's length.
    at: usize,
    /// That character; `None` at the end of the text.
    found: Option<String>,
    /// What could have stood there.
    possible: Vec<String>,
    /// A shortest text that ends the match from there.
    closing: Option<String>,
    place: Place,
}

/// The text of an argument: as it is, `@file`, or `-` for standard input.
///
/// # Errors
/// A file that cannot be read.
pub fn text(argument: &str) -> Result<Vec<u8>, Failure> {
    match argument.strip_prefix('@') {
        Some(file) => read_bytes(Path::new(file)),
        None if argument == "-" => read_bytes(Path::new("-")),
        None => Ok(argument.as_bytes().to_vec()),
    }
}

/// Matches and reports; [`Exit::Refused`] where the text does not match.
///
/// # Errors
/// A grammar that cannot be compiled, or a limit met on the way.
pub fn write(context: &mut Context, grammar: &Grammar, text: &[u8]) -> Result<Exit, Failure> {
    let mut recogniser = Recogniser::new(grammar, &Limits::default())
        .map_err(|error| Failure::input(error.to_string()))?;
    let stop = stop(&mut recogniser, text).map_err(|error| Failure::input(error.to_string()))?;
    let terminal = &mut context.terminal;
    if terminal.json {
        terminal.write_json(&to_json(text, stop.as_ref()))?;
    } else if let Some(stop) = &stop {
        let Place { line, column, .. } = stop.place;
        let found = match &stop.found {
            Some(found) => format!("found {}", sanitize_line(found)),
            None => "the text ends too early".to_owned(),
        };
        writeln!(
            terminal.out,
            "{}: line {line}, column {column} (byte {}): {found}",
            paint(BAD, "not accepted"),
            stop.at
        )?;
        writeln!(terminal.out, "{}", sanitize(&stop.place.to_string()))?;
        let possible = stop.possible.join("  ");
        writeln!(terminal.out, "possible here: {}", sanitize_line(&possible))?;
        if let Some(closing) = stop.closing.as_ref().filter(|closing| !closing.is_empty()) {
            writeln!(
                terminal.out,
                "{}",
                paint(FAINT, format!("a shortest end: {}", sanitize_line(closing)))
            )?;
        }
        if text.get(stop.at..).is_some_and(is_line_end) {
            terminal.note("the text matches without the line end that it ends with");
        }
    } else {
        let bytes = text.len();
        writeln!(terminal.out, "{} ({bytes} bytes)", paint(GOOD, "accepted"))?;
    }
    Ok(if stop.is_none() {
        Exit::Success
    } else {
        Exit::Refused
    })
}

fn is_line_end(rest: &[u8]) -> bool {
    matches!(rest, b"\n" | b"\r\n")
}

fn to_json(text: &[u8], stop: Option<&Stop>) -> Value {
    match stop {
        None => json!({ "accepted": true, "bytes": text.len() }),
        Some(stop) => json!({
            "accepted": false,
            "bytes": text.len(),
            "at": stop.at,
            "line": stop.place.line,
            "column": stop.place.column,
            "found": stop.found,
            "possible": stop.possible,
            "closing": stop.closing,
        }),
    }
}

fn stop(recogniser: &mut Recogniser, text: &[u8]) -> Result<Option<Stop>, LimitError> {
    let matched = recogniser.push_all(text)?;
    if matched == text.len() && recogniser.is_accepting() {
        return Ok(None);
    }
    // To the beginning of the character: what matched of it says nothing to a person.
    let at = match std::str::from_utf8(&text[..matched]) {
        Ok(_) => matched,
        Err(error) => error.valid_up_to(),
    };
    recogniser.reset();
    recogniser.push_all(&text[..at])?;
    let possible = possible(recogniser)?;
    let closing = recogniser
        .closing_bytes(LONGEST_END)?
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    // What matched is UTF-8, so that replacing what is not keeps the place.
    let shown = String::from_utf8_lossy(text);
    let found = text[at..].first().map(|byte| {
        let end = (at + 4).min(text.len());
        match text[at..end]
            .utf8_chunks()
            .next()
            .map(|chunk| chunk.valid().chars().next())
        {
            Some(Some(found)) => quoted(&found.to_string()),
            _ => format!("the byte 0x{byte:02X}, which is not UTF-8"),
        }
    });
    Ok(Some(Stop {
        at,
        found,
        possible,
        closing,
        place: Place::of(&shown, at),
    }))
}

/// What can stand at the recogniser's place, for a person.
fn possible(recogniser: &mut Recogniser) -> Result<Vec<String>, LimitError> {
    let class = characters(recogniser)?;
    let mut shown = Vec::new();
    let size: u64 = class.ranges().iter().map(|&range| span(range)).sum();
    if size <= MOST_LISTED as u64 {
        for c in class.ranges().iter().flat_map(|&(low, high)| low..=high) {
            shown.push(quoted(&with_what_follows(recogniser, c)?));
        }
    } else if size > u64::from(u32::from(char::MAX)) / 2 {
        let without = ranges(&class.negated());
        shown.push(if without.is_empty() {
            "any character".to_owned()
        } else {
            format!("any character except {}", without.join(" "))
        });
    } else {
        shown = ranges(&class);
    }
    if recogniser.is_accepting() {
        shown.push("the end of the text".to_owned());
    }
    Ok(shown)
}

/// The characters that can stand at the recogniser's place.
fn characters(recogniser: &mut Recogniser) -> Result<CharClass, LimitError> {
    let mut first = [false; 256];
    for byte in recogniser.allowed() {
        first[usize::from(byte)] = true;
    }
    let start = recogniser.position();
    let mut found = Vec::new();
    let mut buffer = [0; 4];
    for c in '\0'..=char::MAX {
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        if !first[usize::from(bytes[0])] {
            continue;
        }
        if recogniser.push_all(bytes)? == bytes.len() {
            found.push((c, c));
        }
        recogniser.go_to(start);
    }
    Ok(CharClass::from_ranges(found))
}

/// `c`, and what must follow it.
fn with_what_follows(recogniser: &mut Recogniser, c: char) -> Result<String, LimitError> {
    let start = recogniser.position();
    let mut text = c.to_string();
    recogniser.push_all(text.as_bytes())?;
    let forced = recogniser.forced_bytes(LONGEST_RUN)?;
    recogniser.go_to(start);
    // A run that is cut in the middle of a character leaves that one out.
    if let Some(chunk) = forced.utf8_chunks().next() {
        text.push_str(chunk.valid());
    }
    Ok(text)
}

fn span((low, high): (char, char)) -> u64 {
    u64::from(u32::from(high) - u32::from(low)) + 1
}

/// Ranges as a person reads them, the first few.
fn ranges(class: &CharClass) -> Vec<String> {
    let mut shown = Vec::new();
    for &(low, high) in class.ranges().iter().take(MOST_LISTED) {
        shown.push(match span((low, high)) {
            1 => quoted(&low.to_string()),
            2 => format!("{} {}", quoted(&low.to_string()), quoted(&high.to_string())),
            _ => format!(
                "{} to {}",
                quoted(&low.to_string()),
                quoted(&high.to_string())
            ),
        });
    }
    let more = class.ranges().len().saturating_sub(MOST_LISTED);
    if more > 0 {
        shown.push(format!("and {more} more ranges"));
    }
    shown
}

/// `text` in quotes in which it does not itself occur.
fn quoted(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| match c {
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            c if c.is_control() => format!("U+{:04X}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    if text.contains('\'') {
        format!("`{text}`")
    } else {
        format!("'{text}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::gbnf;

    fn shown(grammar: &str, text: &str) -> String {
        let limits = Limits::default();
        let grammar = gbnf::parse(grammar, &limits).unwrap().grammar;
        let mut recogniser = Recogniser::new(&grammar, &limits).unwrap();
        match stop(&mut recogniser, text.as_bytes()).unwrap() {
            None => "accepted".to_owned(),
            Some(stop) => format!(
                "{}: {} | {} | {}",
                stop.at,
                stop.found.unwrap_or_default(),
                stop.possible.join(" "),
                stop.closing.unwrap_or_default()
            ),
        }
    }

    #[test]
    fn the_place_and_what_was_possible_are_named() {
        let string = "root ::= \"\\\"\" [^\"\\\\\\x00-\\x1F]* \"\\\"\"";
        for (grammar, text, expected) in [
            ("root ::= \"yes\" | \"no\"", "yes", "accepted"),
            ("root ::= \"yes\" | \"no\"", "yeh", "2: 'h' | 's' | s"),
            ("root ::= \"yes\" | \"no\"", "", "0:  | 'no' 'yes' | no"),
            (
                "root ::= \"a\"{2,}",
                "aab",
                "2: 'b' | 'a' the end of the text | ",
            ),
            (
                "root ::= [а-я]+",
                "дом1",
                "6: '1' | 'а' to 'я' the end of the text | ",
            ),
            // The first byte of `и` is that of `ж`.
            ("root ::= \"ж\"", "и", "0: 'и' | 'ж' | ж"),
            (
                string,
                "\"a\n",
                "2: '\\n' | any character except 'U+0000' to 'U+001F' '\\' | \"",
            ),
        ] {
            assert_eq!(shown(grammar, text), expected, "{grammar} with {text:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        let limits = Limits::default();
        let grammar = gbnf::parse("root ::= .*", &limits).unwrap().grammar;
        let mut recogniser = Recogniser::new(&grammar, &limits).unwrap();
        for (text, at) in [(&b"a\xFF"[..], 1), (b"ab\xD0", 2), (b"\xE4\xB8a", 0)] {
            let stop = stop(&mut recogniser, text).unwrap().unwrap();
            assert_eq!(stop.at, at, "{text:?}");
            assert!(stop.found.unwrap().contains("not UTF-8"));
            recogniser.reset();
        }
    }
}
