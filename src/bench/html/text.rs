//! Text in HTML.

/// `text` with `&`, `<`, `>` and both quotes as entities, and without control characters, which no
/// browser shows.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() || is_bidi(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Marks that turn the direction of what follows.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` cut to `limit` characters, and escaped.
pub(super) fn short(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return escaped(text);
    }
    let cut: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", escaped(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escaped("<a href='x' title=\"y\">&\u{7}\u{202e}"),
            "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;\u{fffd}\u{fffd}"
        );
        assert_eq!(short("<<<<", 3), "&lt;&lt;…");
        assert_eq!(short("abc", 3), "abc");
    }
}
