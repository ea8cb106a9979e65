//! Lines broken between words, for terminals that are narrower than what is said.

use unicode_width::UnicodeWidthChar;

/// Narrower than this, text is not squeezed: the terminal breaks it.
const NARROWEST: usize = 20;

/// Text laid out for a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'m> {
    /// Columns of the terminal; `None`: lines are never broken.
    pub columns: Option<usize>,
    /// Columns that are taken on the first line.
    pub taken: usize,
    /// What every further line begins with.
    pub margin: &'m str,
}

/// `text` with its lines under one another, and those that are too long broken: between words, or
/// inside of one that has no room on a line of its own (Chinese has no spaces).
pub fn wrap(text: &str, layout: Layout<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut room = layout.columns.map(|columns| left(columns, layout.taken));
    let later = layout
        .columns
        .map(|columns| left(columns, layout.margin.chars().count()));
    for line in text.split('\n') {
        let mut rest = line;
        loop {
            let (now, next) = match room {
                Some(room) => break_line(rest, room),
                None => (rest, None),
            };
            if !out.is_empty() {
                out.push('\n');
                out.push_str(layout.margin);
            }
            out.push_str(now);
            room = later;
            match next {
                Some(next) => rest = next,
                None => break,
            }
        }
    }
    out
}

fn left(columns: usize, taken: usize) -> usize {
    columns.saturating_sub(taken).max(NARROWEST)
}

/// What fits into `room` columns of `line`, and the rest.
fn break_line(line: &str, room: usize) -> (&str, Option<&str>) {
    let mut width = 0;
    // Where the line can be broken: after a word, or before a wide character.
    let mut last = None;
    let mut joined = false;
    for (at, c) in line.char_indices() {
        let own = c.width().unwrap_or(0);
        if c == ' ' || own > 1 && !joined && at > 0 {
            last = Some(at);
        }
        if width + own > room && own > 0 && !joined && c != ' ' {
            let at = last.filter(|&last| last > 0).unwrap_or(at);
            let (now, next) = line.split_at(at);
            return (now.trim_end(), Some(next.trim_start_matches(' ')));
        }
        width += own;
        joined = c == '\u{200d}';
    }
    (line, None)
}

/// Items one after another with ` · ` between them; as many on a line as fit.
pub fn items(items: &[String], columns: Option<usize>) -> String {
    const BETWEEN: &str = " · ";
    let wide = |text: &str| -> usize { text.chars().filter_map(UnicodeWidthChar::width).sum() };
    let mut out = String::new();
    let mut width = 0;
    for item in items {
        let own = wide(item);
        if width == 0 {
            width = own;
        } else if columns.is_some_and(|columns| width + 3 + own > columns) {
            out.push('\n');
            width = own;
        } else {
            out.push_str(BETWEEN);
            width += 3 + own;
        }
        out.push_str(item);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(text: &str, columns: usize, taken: usize, margin: &str) -> String {
        let columns = Some(columns);
        wrap(
            text,
            Layout {
                columns,
                taken,
                margin,
            },
        )
    }

    #[test]
    fn lines_break_between_words_and_where_they_must() {
        for (text, expected) in [
            ("", ""),
            ("short", "short"),
            (
                "one two three four five six",
                "one two three four\n> five six",
            ),
            // Twenty columns exactly, and one more.
            ("aaaaaaaaaa bbbbbbbbb", "aaaaaaaaaa bbbbbbbbb"),
            ("aaaaaaaaaa bbbbbbbbbb", "aaaaaaaaaa\n> bbbbbbbbbb"),
            ("a\nb", "a\n> b"),
            (
                "abcdefghijklmnopqrstuvwxyz",
                "abcdefghijklmnopqrst\n> uvwxyz",
            ),
            (
                "打开客厅的灯然后把窗帘关上",
                "打开客厅的灯然后把窗\n> 帘关上",
            ),
            (
                "включи свет на кухне пожалуйста",
                "включи свет на кухне\n> пожалуйста",
            ),
        ] {
            assert_eq!(laid(text, 20, 0, "> "), expected, "{text}");
        }
    }

    #[test]
    fn what_is_joined_stays_together() {
        let family = "👩\u{200d}👩\u{200d}👧";
        let text = format!("{}{family}", "x".repeat(19));
        assert_eq!(
            laid(&text, 20, 0, ""),
            format!("{}\n{family}", "x".repeat(19))
        );
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_too_wide() {
        let text = "Turn on the 灯 in the кухня, and say 💡 when that is done; thank you!";
        for columns in 20..90 {
            let laid = laid(text, columns, 3, "     ");
            let words: String = laid.split_whitespace().collect();
            assert_eq!(words, text.split_whitespace().collect::<String>());
            for (number, line) in laid.lines().enumerate() {
                let taken = if number == 0 { 3 } else { 0 };
                let width: usize = line.chars().filter_map(UnicodeWidthChar::width).sum();
                assert!(width + taken <= columns.max(25), "{columns}: {line:?}");
            }
        }
        let never = Layout {
            columns: None,
            taken: 0,
            margin: "  ",
        };
        assert_eq!(wrap("a b\nc", never), "a b\n  c");
    }

    #[test]
    fn items_fill_lines() {
        let texts = ["2 turns", "0.8 s", "prompt: 1 token"].map(str::to_owned);
        for (columns, expected) in [
            (None, "2 turns · 0.8 s · prompt: 1 token"),
            (Some(20), "2 turns · 0.8 s\nprompt: 1 token"),
            (Some(5), "2 turns\n0.8 s\nprompt: 1 token"),
        ] {
            assert_eq!(items(&texts, columns), expected);
        }
    }
}
