//! An example of several calls, made of examples of one.
//!
//! A request that names several things is rarely like an example that was written for several: too
//! many tools go together. So it is cut into one part per thing, the example nearest to each part
//! is chosen, and their requests and calls are joined.

use super::ngram::is_han;
use super::pool::{Pool, Query, Shown};
use crate::call::Reply;
use std::ops::Range;

/// Ends of sentences.
const ENDS: [char; 4] = ['.', '!', '。', '！'];

impl Pool {
    /// One example that does for each of the `named` live values what the request seems to want,
    /// in the order of the request. `None` where fewer than two of them are found in it, or a part
    /// has no example.
    pub fn compose(&self, query: &Query<'_>, named: &[String]) -> Option<Shown> {
        let parts = parts(query.request, named)?;
        let mut joined: Option<(Shown, Vec<crate::call::Call>)> = None;
        for (part, name) in parts.iter().zip(named) {
            let single = Query {
                request: part,
                most: 4,
                most_talk: 0,
                most_calls: 1,
                literal: false,
                ..query.clone()
            };
            let (shown, call) = self.select(&single).into_iter().find_map(|shown| {
                let Reply::Calls(calls) = &shown.reply else {
                    return None;
                };
                let [call] = calls.as_slice() else {
                    return None;
                };
                let about = call
                    .arguments
                    .values()
                    .any(|value| value.as_str() == Some(name));
                let call = about.then(|| call.clone())?;
                Some((shown, call))
            })?;
            match &mut joined {
                None => joined = Some((shown, vec![call])),
                Some((first, calls)) => {
                    let request = shown.request.trim_end_matches(ENDS);
                    first.request = join(&first.request, request);
                    first.score = first.score.min(shown.score);
                    calls.push(call);
                }
            }
        }
        let (mut shown, calls) = joined.filter(|(_, calls)| calls.len() > 1)?;
        shown.reply = Reply::Calls(calls);
        Some(shown)
    }
}

/// Where each of `names` stands in a text, in bytes of its lower-case form: whole, or else the first
/// of its words that no other of the names has. `None` for one that is not found.
pub fn anchors(text: &str, names: &[String]) -> Vec<Option<Range<usize>>> {
    let text = text.to_lowercase();
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let found = |part: &str| text.find(part).map(|at| at..at + part.len());
    names
        .iter()
        .map(|name| {
            let own = |word: &&str| {
                let mut others = names.iter().filter(|other| *other != name);
                !others.any(|other| other.split_whitespace().any(|part| part == *word))
            };
            found(name).or_else(|| name.split_whitespace().filter(own).find_map(found))
        })
        .collect()
}

/// The request cut into one part per name, in lower case: each part reaches from the end of the
/// name before to the end of its own, or to a comma behind it, the last one to the request's end.
/// A part that is hardly more than a name gets the words of the part before it.
fn parts(request: &str, named: &[String]) -> Option<Vec<String>> {
    if named.len() < 2 {
        return None;
    }
    let lower = request.to_lowercase();
    let anchors: Vec<Range<usize>> = anchors(request, named).into_iter().collect::<Option<_>>()?;
    let mut parts: Vec<String> = Vec::new();
    let mut from = 0;
    for (number, (name, anchor)) in named.iter().zip(&anchors).enumerate() {
        let name = name.to_lowercase();
        let end = match anchors.get(number + 1) {
            None => lower.len(),
            Some(next) => {
                let between = lower.get(anchor.end..next.start)?;
                let ends = LINKS.iter().filter_map(|link| between.find(link));
                anchor.end + ends.min().unwrap_or(0)
            }
        };
        let before = lower
            .get(from..anchor.start)?
            .trim_start_matches(SEPARATORS);
        let after = lower.get(anchor.end..end)?;
        let said = [before, after]
            .iter()
            .flat_map(|words| words.split_whitespace())
            .filter(|word| !["and", "the", "then", "also", "both", "и", "а"].contains(word))
            .flat_map(str::chars)
            .filter(|c| c.is_alphanumeric())
            .count();
        let part = format!("{before}{name}{after}").trim().to_owned();
        parts.push(match (parts.last(), number.checked_sub(1)) {
            (Some(last), Some(previous)) if said < words_of(&part) => {
                last.replacen(&named[previous].to_lowercase(), &name, 1)
            }
            _ => part,
        });
        from = end;
    }
    Some(parts)
}

/// What parts begin with that says nothing.
const SEPARATORS: [char; 7] = [',', ';', '.', '，', '；', '。', ' '];

/// What stands between two parts.
const LINKS: [&str; 12] = [
    ",", ";", ".", "，", "；", "。", " and ", " then ", " и ", "和", "然后", "并",
];

/// How many letters or digits beside its name a part has at least, if it says what to do: in
/// Chinese one does.
fn words_of(part: &str) -> usize {
    if has_han(part) { 1 } else { 3 }
}

fn has_han(text: &str) -> bool {
    text.chars().any(is_han)
}

/// Two requests as one, in the language that they are written in.
fn join(first: &str, second: &str) -> String {
    let first = first.trim_end_matches(ENDS);
    let link = if has_han(first) {
        "，"
    } else if first.chars().any(|c| ('\u{400}'..='\u{4FF}').contains(&c)) {
        " и "
    } else {
        " and "
    };
    let mut letters = second.chars();
    let second: String = match letters.next() {
        Some(head) => head.to_lowercase().chain(letters).collect(),
        None => String::new(),
    };
    format!("{first}{link}{second}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(request: &str, named: &[&str]) -> Option<Vec<String>> {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        parts(request, &named)
    }

    #[test]
    fn a_request_is_cut_at_its_names() {
        for (request, named, parts) in [
            (
                "Turn on the desk lamp and the fan",
                vec!["desk lamp", "fan"],
                vec!["turn on the desk lamp", "turn on the fan"],
            ),
            (
                "desk lamp off, fan on please",
                vec!["desk lamp", "fan"],
                vec!["desk lamp off", "fan on please"],
            ),
            (
                "hall light off and blind down",
                vec!["hall light", "hall blind"],
                vec!["hall light off", "and hall blind down"],
            ),
            (
                "Open the gate and put the fan on",
                vec!["gate", "fan"],
                vec!["open the gate", "and put the fan on"],
            ),
            (
                "открой ворота и включи вентилятор",
                vec!["ворота", "вентилятор"],
                vec!["открой ворота", "и включи вентилятор"],
            ),
            (
                "打开台灯，关掉风扇",
                vec!["台灯", "风扇"],
                vec!["打开台灯", "关掉风扇"],
            ),
        ] {
            assert_eq!(cut(request, &named).unwrap(), parts, "{request}");
        }
        assert_eq!(cut("only the fan", &["fan"]), None);
        assert_eq!(cut("only the fan", &["fan", "gate"]), None);
    }

    #[test]
    fn requests_are_joined_in_their_language() {
        assert_eq!(join("Open it.", "Close that"), "Open it and close that");
        assert_eq!(join("Открой", "Закрой"), "Открой и закрой");
        assert_eq!(join("打开台灯。", "关掉风扇"), "打开台灯，关掉风扇");
    }
}
