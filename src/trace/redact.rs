//! Values that must not be written to disk.
//!
//! A pattern `tool.argument` (each part may contain `*`) names arguments whose values are
//! replaced by `[redacted]`. It holds for calls, approvals and generated text; the values met
//! there are then replaced wherever they appear later in the run (results, facts, hints,
//! answers). What comes before a call can hold the value where nobody can know it is one: with
//! any pattern set, requests, prompts, examples and the person's replies are withheld (their
//! length is kept) unless `keep_prompts` says otherwise, and so is generated text that cannot be
//! parsed.

use serde_json::{Map, Value};

const REDACTED: &str = "[redacted]";

/// Values shorter than this (in bytes) are replaced only in the argument itself: replacing every
/// "5" would destroy the trace and reveal the value.
const SHORTEST: usize = 4;

/// What is redacted.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    patterns: Vec<(String, String)>,
    keep_prompts: bool,
    secrets: Vec<String>,
}

/// Not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pattern:?} is no redaction pattern: write tool.argument, such as send_email.body or *.password"
)]
pub struct InvalidPattern {
    /// What was given.
    pub pattern: String,
}

impl Redaction {
    /// Redacts the arguments that `patterns` name.
    ///
    /// # Errors
    /// The first pattern that is none.
    pub fn new<S: AsRef<str>>(patterns: &[S], keep_prompts: bool) -> Result<Self, InvalidPattern> {
        let parse = |pattern: &S| {
            let pattern = pattern.as_ref();
            // Tool names may contain dots; argument names rarely do.
            match pattern.rsplit_once('.') {
                Some((tool, argument)) if !tool.is_empty() && !argument.is_empty() => {
                    Ok((tool.to_owned(), argument.to_owned()))
                }
                _ => Err(InvalidPattern {
                    pattern: pattern.to_owned(),
                }),
            }
        };
        Ok(Self {
            patterns: patterns.iter().map(parse).collect::<Result<_, _>>()?,
            keep_prompts,
            secrets: Vec::new(),
        })
    }

    /// Redacts one line of the trace in place, and remembers the values it met.
    pub fn apply(&mut self, line: &mut Map<String, Value>) {
        if self.patterns.is_empty() {
            return;
        }
        let kind = line
            .get("event")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        match kind.as_str() {
            "call" | "approval" => self.call(line),
            "generated" => {
                if let Some(text) = line.get("text").and_then(Value::as_str) {
                    let text = self.generated(text);
                    line.insert("text".into(), text.into());
                }
                line.remove("tokens");
            }
            "choice" => self.choice(line),
            "run_started" => self.withhold(line, &["request"]),
            "prompt" => self.withhold(line, &["sections"]),
            "examples" => self.withhold(line, &["shown"]),
            "replied" => self.withhold(line, &["text"]),
            _ => {}
        }
        for value in line.values_mut() {
            self.replace(value);
        }
    }

    fn matches(&self, tool: &str, argument: &str) -> bool {
        let fits = |(t, a): &(String, String)| glob(t, tool) && glob(a, argument);
        self.patterns.iter().any(fits)
    }

    /// A map with `tool` and `arguments`.
    fn call(&mut self, call: &mut Map<String, Value>) {
        let tool = call
            .get("tool")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        let Some(Value::Object(arguments)) = call.get_mut("arguments") else {
            return;
        };
        for (name, value) in arguments {
            if self.matches(&tool, name) {
                self.remember(value);
                *value = REDACTED.into();
            }
        }
    }

    fn remember(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.remember(item)),
            Value::Object(map) => map.values().for_each(|item| self.remember(item)),
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.remember_text(&number.to_string()),
            Value::String(text) => self.remember_text(text),
        }
    }

    fn remember_text(&mut self, text: &str) {
        if text.len() >= SHORTEST && !self.secrets.iter().any(|known| known == text) {
            self.secrets.push(text.to_owned());
            // A secret may contain another: the longer is replaced first.
            self.secrets
                .sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    fn generated(&mut self, text: &str) -> String {
        let Ok(Value::Object(mut turn)) = serde_json::from_str(text) else {
            return format!("[withheld: {} bytes that are no turn]", text.len());
        };
        match turn.get_mut("calls") {
            Some(Value::Array(calls)) => {
                for call in calls.iter_mut().filter_map(Value::as_object_mut) {
                    self.call(call);
                }
            }
            _ => self.call(&mut turn),
        }
        Value::Object(turn).to_string()
    }

    fn choice(&mut self, line: &mut Map<String, Value>) {
        let place = line.get("place").and_then(Value::as_str).unwrap_or("");
        let hit = place
            .rsplit_once('.')
            .is_some_and(|(tool, argument)| self.matches(tool, argument));
        if let (true, Some(Value::Array(options))) = (hit, line.get_mut("options")) {
            for option in options.iter_mut().filter_map(Value::as_object_mut) {
                option.insert("text".into(), REDACTED.into());
            }
        }
    }

    fn withhold(&self, line: &mut Map<String, Value>, keys: &[&str]) {
        if self.keep_prompts {
            return;
        }
        for key in keys {
            if let Some(value) = line.get_mut(*key) {
                *value = format!("[withheld: {} bytes]", text_length(value)).into();
            }
        }
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for secret in &self.secrets {
                    if text.contains(secret.as_str()) {
                        *text = text.replace(secret.as_str(), REDACTED);
                    }
                }
            }
            Value::Number(number) => {
                let text = number.to_string();
                if self.secrets.contains(&text) {
                    *value = REDACTED.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(map) => {
                for item in map.values_mut() {
                    self.replace(item);
                }
                let named = |key: &String| self.secrets.iter().any(|s| key.contains(s.as_str()));
                if map.keys().any(named) {
                    let old = std::mem::take(map);
                    for (mut key, item) in old {
                        for secret in &self.secrets {
                            key = key.replace(secret.as_str(), REDACTED);
                        }
                        map.insert(key, item);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Bytes of the strings in `value`.
fn text_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_length).sum(),
        Value::Object(map) => map.values().map(text_length).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Whether `text` fits `pattern`, where `*` is any run of characters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or("")) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn globs() {
        for (pattern, text, fits) in [
            ("send_email", "send_email", true),
            ("send_email", "send_emails", false),
            ("*", "", true),
            ("send_*", "send_email", true),
            ("*email", "send_email", true),
            ("s*e*l", "send_email", true),
            ("a*a", "a", false),
            ("*a*b*", "xbya", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
        for bad in ["", "body", ".body", "send."] {
            assert!(Redaction::new(&[bad], false).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_gone_from_every_line() {
        let lines = [
            json!({"event": "run_started", "request": "mail the secret plan to Bo"}),
            json!({"event": "prompt", "sections": [{"name": "request", "text": "secret plan"}]}),
            json!({"event": "generated", "tokens": [{"text": "secret"}], "text":
                "{\"calls\":[{\"tool\":\"send_email\",\"arguments\":{\"to\":\"Bo\",\"body\":\"secret plan\"}}]}"}),
            json!({"event": "generated", "text": "{\"calls\":[{\"tool\":\"send_email\",\"arguments\":{\"body\":\"secret pl"}),
            json!({"event": "rejected", "message": "body: \"secret plan\" is too short"}),
            json!({"event": "call", "step": 1, "tool": "send_email", "arguments": {"to": "Bo", "body": "secret plan"}}),
            json!({"event": "result", "step": 1, "result": {"secret plan": "sent: secret plan, 2"}}),
            json!({"event": "choice", "place": "send_email.body", "options": [{"text": "secret plan"}]}),
            json!({"event": "answered", "text": "I sent “secret plan”."}),
        ];
        let mut redaction = Redaction::new(&["send_*.body"], false).unwrap();
        let mut all = String::new();
        for line in lines {
            let Value::Object(mut line) = line else {
                panic!()
            };
            redaction.apply(&mut line);
            all += &format!("{}\n", Value::Object(line));
        }
        assert!(!all.contains("secret"), "{all}");
        assert!(all.contains("\\\"to\\\":\\\"Bo\\\""), "{all}");
    }

    #[test]
    fn without_patterns_nothing_changes() {
        let line = json!({"event": "prompt", "sections": "x", "tokens": 3});
        let Value::Object(mut map) = line.clone() else {
            panic!()
        };
        Redaction::new::<&str>(&[], false).unwrap().apply(&mut map);
        assert_eq!(Value::Object(map), line);
    }

    #[test]
    fn short_values_are_redacted_in_place_only() {
        let mut redaction = Redaction::new(&["*.pin"], true).unwrap();
        let call = json!({"event": "call", "tool": "unlock", "arguments": {"pin": 12}});
        let Value::Object(mut call) = call else {
            panic!()
        };
        redaction.apply(&mut call);
        assert_eq!(call["arguments"]["pin"], "[redacted]");
        let Value::Object(mut later) = json!({"event": "result", "step": 12}) else {
            panic!()
        };
        redaction.apply(&mut later);
        assert_eq!(later["step"], 12);
    }
}
