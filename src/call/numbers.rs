//! The numbers that a text names in digits.

use std::ops::Range;

/// A number in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Where it stands, in bytes.
    pub at: Range<usize>,
    /// Its digits, a decimal comma as a point, without a sign.
    pub text: String,
}

/// The numbers in a text, in their order.
pub fn numbers(text: &str) -> Vec<Number> {
    let mut found: Vec<Number> = Vec::new();
    let mut open = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let more = characters.peek().is_some_and(|(_, c)| c.is_ascii_digit());
        match found.last_mut() {
            Some(number) if open && c.is_ascii_digit() => {
                number.text.push(c);
                number.at.end = at + 1;
            }
            Some(number)
                if open && matches!(c, '.' | ',') && more && !number.text.contains('.') =>
            {
                number.text.push('.');
            }
            _ => {
                open = c.is_ascii_digit();
                if open {
                    found.push(Number {
                        at: at..at + 1,
                        text: c.to_string(),
                    });
                }
            }
        }
    }
    found
}

/// `text` with the number `old` as `reply` has it, where it names exactly one. `None`: it names
/// none or several, or `text` has no such number.
pub fn amended(text: &str, old: &str, reply: &str) -> Option<String> {
    let [new] = &numbers(reply)[..] else {
        return None;
    };
    let number = numbers(text)
        .into_iter()
        .find(|number| number.text == old)?;
    let (before, after) = (text.get(..number.at.start)?, text.get(number.at.end..)?);
    Some(format!("{before}{}{after}", reply.get(new.at.clone())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_they_stand() {
        for (text, expected) in [
            ("поставь 21,5 градуса, в 7", &["21.5", "7"][..]),
            ("调到500度", &["500"]),
            ("1.2.3", &["1.2", "3"]),
            ("at 5. Then 6,", &["5", "6"]),
            ("none", &[]),
        ] {
            let found = numbers(text);
            let texts: Vec<&str> = found.iter().map(|number| number.text.as_str()).collect();
            assert_eq!(texts, expected, "{text}");
            for number in found {
                assert_eq!(text[number.at].replace(',', "."), number.text);
            }
        }
    }

    #[test]
    fn a_number_is_amended_by_the_only_one_of_a_reply() {
        for (text, old, reply, expected) in [
            ("dim it to 150%", "150", "15%", Some("dim it to 15%")),
            (
                "поставь 215,5 градуса",
                "215.5",
                "лучше 21,5",
                Some("поставь 21,5 градуса"),
            ),
            ("调到500度", "500", "二十 20", Some("调到20度")),
            ("lamp 2 to 150", "150", "to 15", Some("lamp 2 to 15")),
            ("dim it to 150%", "150", "no, off", None),
            ("dim it to 150%", "150", "10 or 20", None),
            ("dim it", "150", "15", None),
        ] {
            assert_eq!(amended(text, old, reply).as_deref(), expected, "{text}");
        }
    }
}
