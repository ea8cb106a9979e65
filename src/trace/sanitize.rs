//! Text from a model, a tool or a file, made safe for a terminal.
//!
//! A terminal obeys control characters: they can hide text, rewrite what was printed, or set the
//! clipboard. Bidirectional controls make text read as something else than it is (CVE-2021-42574).
//! Both, and characters that show nothing and can carry hidden text, are shown as `\u{202e}`.
//! Scripts of all languages, emoji and their joiners pass unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with line ends and tabs kept, everything else that is not plain text escaped.
///
/// ```
/// use snaffle::trace::sanitize;
/// assert_eq!(sanitize("свет 💡 включён\n"), "свет 💡 включён\n");
/// assert_eq!(sanitize("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
/// ```
pub fn sanitize(text: &str) -> Cow<'_, str> {
    escape(text, |c| !matches!(c, '\n' | '\t') && is_unsafe(c))
}

/// `text` on one line: line ends and tabs are escaped too.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    escape(text, is_unsafe)
}

fn escape(text: &str, unsafe_here: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&unsafe_here) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !unsafe_here(c) => safe.push(c),
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            // Writing to a string does not fail.
            c => _ = write!(safe, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    Cow::Owned(safe)
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // soft hyphen, Arabic letter mark, Mongolian vowel separator
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // zero-width space, direction marks (joiners 200c and 200d are part of words and emoji)
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            // line and paragraph separators, embeddings, overrides, isolates
            | '\u{2028}'..='\u{202e}'
            // word joiner, invisible operators, isolates, deprecated format characters
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // tags: invisible copies of ASCII
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped() {
        for (text, expected) in [
            ("plain, текст, 文字, 👩‍👩‍👧 ☀️", "plain, текст, 文字, 👩‍👩‍👧 ☀️"),
            ("a\tb\nc", "a\tb\nc"),
            ("a\rb\u{7}", "a\\rb\\u{7}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("abc\u{202e}fdp", "abc\\u{202e}fdp"),
            ("\u{feff}x\u{200b}", "\\u{feff}x\\u{200b}"),
            ("hi\u{e0041}", "hi\\u{e0041}"),
            ("", ""),
        ] {
            assert_eq!(sanitize(text), expected);
        }
        assert_eq!(sanitize_line("a\tb\nc\u{2028}"), "a\\tb\\nc\\u{2028}");
        assert!(matches!(sanitize("ясно"), Cow::Borrowed(_)));
    }

    proptest::proptest! {
        #[test]
        fn nothing_unsafe_is_left(text: String) {
            let safe = sanitize_line(&text);
            proptest::prop_assert!(!safe.chars().any(is_unsafe));
            proptest::prop_assert_eq!(sanitize_line(&safe), safe.as_ref());
        }
    }
}
