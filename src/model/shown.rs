//! Text from files and programs as it may be shown in a message: short, one line, no control
//! characters.

/// At most `limit` characters of `text`, control and direction-changing characters escaped.
pub(super) fn shown(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (number, character) in text.chars().enumerate() {
        if number == limit {
            out.push('…');
            break;
        }
        if character.is_control() || turns_direction(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

/// As [`shown`], for a name of at most 60 characters that may not be UTF-8.
pub(super) fn shown_bytes(name: &[u8]) -> String {
    shown(&String::from_utf8_lossy(name), 60)
}

/// Characters that change the direction of the text around them.
fn turns_direction(character: char) -> bool {
    matches!(character, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{shown, shown_bytes};

    #[test]
    fn is_short_and_harmless() {
        for (text, limit, expected) in [
            ("кухня 厨房 🦊", 20, "кухня 厨房 🦊"),
            ("厨房厨房", 2, "厨房…"),
            ("a\nb\u{1b}[2J", 20, r"a\u{a}b\u{1b}[2J"),
            ("\u{202e}gpj", 20, r"\u{202e}gpj"),
        ] {
            assert_eq!(shown(text, limit), expected);
        }
        assert_eq!(shown_bytes(&[b'a'; 100]).chars().count(), 61);
        assert_eq!(shown_bytes(&[0xff]), "\u{fffd}");
    }
}
