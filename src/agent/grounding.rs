//! Whether a call is about something that anybody spoke of.
//!
//! A grammar of live values makes every call possible, and so a tiny model that is asked for what
//! does not exist ("start the dishwasher") does something else instead. Whether it was asked for is
//! seen without a model: of a value's name at least one word occurs in what was said or read, in
//! this form or another of the same stem. What no word speaks of is a guess.

use crate::call::relevance::is_dense;
use crate::call::{Call, Domains};
use serde_json::Value;
use std::collections::BTreeSet;

/// An argument of a call that nothing said or read speaks of.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Ungrounded {
    /// The argument.
    pub argument: String,
    /// Its value.
    pub value: String,
}

/// The first argument of `call` whose live values are known and whose own value no text of `told`
/// speaks of, where that can be told: names like `m-102` and names in another script than all that
/// was said cannot be judged so.
pub(super) fn ungrounded(call: &Call, live: &Domains, told: &[String]) -> Option<Ungrounded> {
    let words: BTreeSet<String> = told.iter().flat_map(|text| words(text)).collect();
    let scripts: BTreeSet<Script> = words.iter().flat_map(|word| scripts_of(word)).collect();
    call.arguments.iter().find_map(|(argument, value)| {
        live.get(argument)?;
        let value = value.as_str().filter(|value| !is_opaque(value))?;
        let comparable =
            scripts.is_empty() || scripts_of(value).any(|script| scripts.contains(&script));
        let spoken_of = || {
            words_of_a_name(value)
                .iter()
                .any(|own| words.iter().any(|word| alike(own, word)))
        };
        (comparable && !spoken_of()).then(|| Ungrounded {
            argument: argument.clone(),
            value: value.to_owned(),
        })
    })
}

/// The texts that a call can be grounded in, out of a JSON value: what a tool returned, a fact.
pub(super) fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(members) => members.values().for_each(|value| texts(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Names that nobody says: numbers and letters in one word, nothing but signs.
fn is_opaque(name: &str) -> bool {
    let one_word = !name.trim().contains(char::is_whitespace);
    (one_word && name.contains(|c: char| c.is_numeric())) || !name.contains(char::is_alphabetic)
}

/// The words of a text, in lower case; a script without blanks is one word as far as it reaches.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last: Option<bool> = None;
    for c in text.chars().flat_map(char::to_lowercase) {
        // Apostrophes and combining marks are inside of words.
        if matches!(c, '\'' | '’' | '\u{300}'..='\u{36f}') {
            continue;
        }
        if !c.is_alphanumeric() {
            last = None;
            continue;
        }
        let c = if c == 'ё' { 'е' } else { c };
        let dense = is_dense(c);
        match words.last_mut() {
            Some(word) if last == Some(dense) => word.push(c),
            _ => words.push(c.to_string()),
        }
        last = Some(dense);
    }
    words
}

/// Those words of a name that tell what it is: all, where they are nothing but little ones.
fn words_of_a_name(name: &str) -> Vec<String> {
    let all = words(name);
    let telling: Vec<String> = all
        .iter()
        .filter(|word| is_telling(word))
        .cloned()
        .collect();
    if telling.is_empty() { all } else { telling }
}

/// Whether a word is more than an article or a preposition.
fn is_telling(word: &str) -> bool {
    word.contains(is_dense) || word.chars().count() >= 3 && word != "the" && word != "and"
}

/// Whether two words are forms of one, as far as their letters show: equal, with a common
/// beginning of three letters and three fifths of the longer one, or one inside of the other with
/// four; of words of a script without blanks, with one character in common.
fn alike(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    if a.contains(is_dense) || b.contains(is_dense) {
        return a.chars().any(|c| is_dense(c) && b.contains(c));
    }
    let (short, long) = (a.chars().count(), b.chars().count());
    let (short, long) = (short.min(long), short.max(long));
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    (common >= 3 && common * 5 >= long * 3) || (short >= 4 && (a.contains(b) || b.contains(a)))
}

/// Which alphabet a character is of, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    /// Chinese, Japanese.
    Dense,
    /// By its block of 128 characters.
    Other(u32),
}

/// The alphabets of a text.
fn scripts_of(text: &str) -> impl Iterator<Item = Script> + '_ {
    text.chars().filter(|c| c.is_alphabetic()).map(|c| match c {
        '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Script::Latin,
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Script::Greek,
        '\u{400}'..='\u{52f}' => Script::Cyrillic,
        c if is_dense(c) => Script::Dense,
        c => Script::Other(u32::from(c) >> 7),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_grounded(value: &str, told: &[&str]) -> bool {
        let live = Domains::from([("device".to_owned(), vec![json!(value)])]);
        let call = Call::new("turn_on", [("device", value), ("mode", "eco")]);
        let told: Vec<String> = told.iter().map(|text| (*text).to_owned()).collect();
        ungrounded(&call, &live, &told).is_none()
    }

    #[test]
    fn a_name_is_grounded_by_one_of_its_words() {
        for (value, told) in [
            ("kitchen light", "is it dark in the kitchen?"),
            ("kitchen light", "Lights out"),
            ("Roborock Downstairs", "start ROBOROCK"),
            ("robot vacuum", "start vacuuming, please"),
            ("свет на кухне", "на кухню свети"),
            ("ёлка", "зажги елку"),
            ("厨房灯", "把灯打开"),
            ("厨房灯", "厨房太暗了"),
            ("Küchenlampe", "mach die Lampe an"),
            ("TV", "tv on"),
            ("Bob's lamp", "the bobs one"),
            // Cannot be told.
            ("office lamp", "включи лампу в кабинете"),
            ("kitchen light", "打开厨房的灯"),
            ("m-102", "delete the last mail"),
            ("lamp2", "lights"),
            ("42", "lights"),
        ] {
            assert!(is_grounded(value, &[told]), "{value}: {told}");
        }
    }

    #[test]
    fn a_name_that_nobody_spoke_of_is_a_guess() {
        for (value, told) in [
            ("hall fan", "start the dishwasher"),
            ("thermostat", "turn off the lights upstairs"),
            ("the den", "the garden"),
            ("TV", "turn on the radio"),
            ("свет на кухне", "запусти стирку на даче"),
            ("厨房灯", "开电视"),
            ("hall fan", "💡"),
            ("hall fan", "15"),
            ("hall fan", ""),
        ] {
            assert!(!is_grounded(value, &[told]), "{value}: {told}");
        }
        let live = Domains::from([("device".to_owned(), vec![json!("hall fan")])]);
        let call = Call::new("turn_on", [("device", "hall fan")]);
        assert_eq!(
            ungrounded(&call, &live, &["start the dishwasher".to_owned()]),
            Some(Ungrounded {
                argument: "device".to_owned(),
                value: "hall fan".to_owned()
            })
        );
    }

    #[test]
    fn what_was_read_counts_as_what_was_said() {
        let mut read = vec!["it is hot".to_owned()];
        assert!(!is_grounded("hall fan", &["it is hot"]));
        texts(
            &json!({"found": [{"name": "hall fan", "on": false}], "n": 1}),
            &mut read,
        );
        let told: Vec<&str> = read.iter().map(String::as_str).collect();
        assert!(is_grounded("hall fan", &told));
    }

    #[test]
    fn only_live_values_are_looked_at() {
        let call = Call::new("set", [("mode", "eco")]);
        assert_eq!(
            ungrounded(&call, &Domains::new(), &["warm".to_owned()]),
            None
        );
    }
}
