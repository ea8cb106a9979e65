//! What llama.cpp logs, kept instead of printed.
//!
//! llama.cpp has one log callback per process and its functions fail with nothing but a null
//! pointer; the reason is in the log. The last warnings and errors are kept here so that our own
//! errors can say it. This is the one piece of global state that llama.cpp forces on us.

use std::collections::VecDeque;
use std::sync::Mutex;

/// Most lines kept; a failed load writes two or three.
const MOST_LINES: usize = 16;
/// Longest line kept, in bytes.
const LONGEST_LINE: usize = 400;

/// The last lines of warnings and errors, oldest first.
struct Tail {
    lines: VecDeque<String>,
    /// Whether the last line still waits for its end.
    open: bool,
}

static TAIL: Mutex<Tail> = Mutex::new(Tail {
    lines: VecDeque::new(),
    open: false,
});

/// How grave a piece of log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Not kept.
    Quiet,
    /// Kept.
    Grave,
    /// Goes on with the line before.
    Continued,
}

/// Takes a piece of the log; never panics, since it is called from C.
pub(super) fn record(level: Level, text: &str) {
    let Ok(mut tail) = TAIL.lock() else { return };
    let continues = level == Level::Continued && tail.open;
    if level != Level::Grave && !continues {
        if level == Level::Quiet {
            tail.open = false;
        }
        return;
    }
    for (number, piece) in text.trim_end_matches('\n').split('\n').enumerate() {
        let clean: String = piece.chars().filter(|c| !c.is_control()).collect();
        if number == 0
            && continues
            && let Some(last) = tail.lines.back_mut()
        {
            push_bounded(last, &clean);
            continue;
        }
        let mut line = String::new();
        push_bounded(&mut line, &clean);
        tail.lines.push_back(line);
        if tail.lines.len() > MOST_LINES {
            tail.lines.pop_front();
        }
    }
    tail.open = !text.ends_with('\n');
}

/// Forgets what was logged before.
pub(super) fn clear() {
    if let Ok(mut tail) = TAIL.lock() {
        tail.lines.clear();
        tail.open = false;
    }
}

/// What was logged since [`clear`], as one line; `fallback` where nothing was.
pub(super) fn reason(fallback: &str) -> String {
    let Ok(tail) = TAIL.lock() else {
        return fallback.to_owned();
    };
    let mut said: Vec<&str> = Vec::new();
    for line in &tail.lines {
        let line = strip_function_name(line.trim());
        if !line.is_empty() && !said.contains(&line) {
            said.push(line);
        }
    }
    if said.is_empty() {
        fallback.to_owned()
    } else {
        said.join("; ")
    }
}

/// `llama_model_load: error loading model: x` → `error loading model: x`.
fn strip_function_name(line: &str) -> &str {
    match line.split_once(": ") {
        Some((name, rest))
            if !name.is_empty()
                && name.contains('_')
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':') =>
        {
            rest.trim()
        }
        _ => line,
    }
}

fn push_bounded(line: &mut String, text: &str) {
    for c in text.chars() {
        if line.len() + c.len_utf8() > LONGEST_LINE {
            return;
        }
        line.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_names_are_left_out() {
        for (line, expected) in [
            (
                "llama_model_load: error loading model: x",
                "error loading model: x",
            ),
            ("gguf_init_from_file_impl: invalid magic", "invalid magic"),
            ("error: x", "error: x"),
            ("no colon", "no colon"),
        ] {
            assert_eq!(strip_function_name(line), expected);
        }
    }
}
