//! Which requests two suites have in common: what is fitted on a request must not be measured on
//! it.
//!
//! Requests are compared by their words, whatever their case, punctuation and numbers: another
//! temperature does not make another request. Ids and houses do not count.

use super::suite::Request;
use std::collections::HashSet;

/// A request as it is compared: its words in lower case, one blank between them, every number `#`.
pub fn plain(request: &str) -> String {
    let mut plain = String::new();
    let mut number = false;
    for c in request.to_lowercase().chars() {
        if c.is_numeric() {
            if !number {
                plain.push('#');
            }
            number = true;
            continue;
        }
        // A number's own point does not end it.
        number = number && matches!(c, '.' | ',');
        if c.is_alphabetic() {
            plain.push(c);
        } else if !number && !plain.ends_with(' ') {
            plain.push(' ');
        }
    }
    plain.trim().to_owned()
}

/// Those of `requests` that are among `evaluated`, in order.
pub fn shared<'r>(requests: &'r [Request], evaluated: &[Request]) -> Vec<&'r Request> {
    let known: HashSet<String> = evaluated
        .iter()
        .map(|request| plain(&request.request))
        .collect();
    requests
        .iter()
        .filter(|request| known.contains(&plain(&request.request)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::read;

    #[test]
    fn requests_are_compared_by_their_words() {
        for (one, other, same) in [
            ("Turn on the lamp.", "turn on  the LAMP!", true),
            ("set it to 21.5 degrees", "Set it to 7 degrees", true),
            ("set it to 21, please", "set it to 21 please", true),
            ("включи свет", "Включи свет…", true),
            ("打开灯", "打开灯。", true),
            ("turn on the lamp", "turn off the lamp", false),
            ("turn on lamp 1", "turn on lamp", false),
        ] {
            assert_eq!(plain(one) == plain(other), same, "{one} / {other}");
        }
    }

    #[test]
    fn a_suite_under_other_names_is_the_same_suite() {
        let line = |id: &str, house: &str, request: &str| {
            serde_json::json!({"id": id, "house": house, "lang": "en", "kind": "none",
                               "request": request, "right": []})
            .to_string()
        };
        let suite = |lines: &[String]| read(&lines.join("\n")).unwrap();
        let evaluated = suite(&[
            line("a", "h", "Order a pizza!"),
            line("b", "h", "Good night"),
        ]);
        let copied = suite(&[
            line("x", "g", "order a pizza"),
            line("y", "g", "book a flight"),
        ]);
        let ids: Vec<&str> = shared(&copied, &evaluated)
            .iter()
            .map(|request| request.id.as_str())
            .collect();
        assert_eq!(ids, ["x"]);
    }
}
