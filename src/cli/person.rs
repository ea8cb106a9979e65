//! The person at the terminal. Without a terminal the answer is no.

use super::doubt::{MARGIN, doubt_text};
use super::inbox::Inbox;
use super::style::{FAINT, NAME, WARN, paint};
use super::view::call_line;
use super::wrap::{Layout, wrap};
use crate::agent::{Doubt, Person};
use crate::call::{Call, ToolSpec};
use crate::model::Cancel;
use crate::task::{Pending, Settlement};
use indicatif::ProgressBar;
use std::io::{BufRead, Write};
use unicode_width::UnicodeWidthStr;

/// Columns of a question beside the call that it is about: margin, mark, `allow?`, an answer.
const ASKING: usize = 7 + 15 + 4;

/// Somebody who is there to be asked.
pub struct Present {
    /// Waits until something can be read from a stream; `false` where the run was cancelled
    /// meanwhile.
    pub wait: Box<dyn FnMut() -> bool>,
    /// Cancels the run, and with it a question that is answered by lines as they come.
    pub cancel: Cancel,
    /// Columns of their terminal, where known.
    pub columns: Option<usize>,
}

/// Where the person's lines come from.
pub enum Lines<'i, R> {
    /// Read when they are asked for.
    Stream(R),
    /// Read as they come: the person may speak first.
    Inbox(&'i mut Inbox),
}

/// Asks on one stream and reads the answer from another.
pub struct Asker<'i, R, W> {
    input: Lines<'i, R>,
    output: W,
    present: Option<Present>,
    progress: ProgressBar,
    settlement: Option<Settlement>,
    answer: Option<String>,
}

impl<R, W> std::fmt::Debug for Asker<'_, R, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker")
            .field("present", &self.present.is_some())
            .finish_non_exhaustive()
    }
}

impl<'i, R: BufRead, W: Write> Asker<'i, R, W> {
    /// Asks on `output` where somebody is `present`, who may cancel instead; `progress` is cleared
    /// first.
    pub fn new(
        input: Lines<'i, R>,
        output: W,
        present: Option<Present>,
        progress: ProgressBar,
    ) -> Self {
        Self {
            input,
            output,
            present,
            progress,
            settlement: None,
            answer: None,
        }
    }

    /// The same, who knows what came of the first call that is asked about.
    #[must_use]
    pub fn with_settlement(mut self, settlement: Option<Settlement>) -> Self {
        self.settlement = settlement;
        self
    }

    /// The same, who knows the answer to the first question.
    #[must_use]
    pub fn with_answer(mut self, answer: Option<String>) -> Self {
        self.answer = answer;
        self
    }

    /// Whether there is an answer that no question was asked for.
    pub fn unused_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// One trimmed line; `None` at the end of the input, where the run is cancelled, or where a
    /// stream fails.
    fn ask(&mut self, question: &str) -> Option<String> {
        self.progress.finish_and_clear();
        if let Lines::Inbox(inbox) = &mut self.input {
            inbox.sort();
        }
        write!(self.output, "{question} ").ok()?;
        self.output.flush().ok()?;
        let present = self.present.as_mut()?;
        let line = match &mut self.input {
            Lines::Inbox(inbox) => inbox.answer(&present.cancel),
            Lines::Stream(_) if !(present.wait)() => None,
            Lines::Stream(input) => {
                let mut line = String::new();
                let read = input.read_line(&mut line).ok()?;
                (read > 0).then(|| line.trim().to_owned())
            }
        };
        if line.is_none() {
            _ = writeln!(self.output);
        }
        line
    }
}

impl<R: BufRead, W: Write> Person for Asker<'_, R, W> {
    fn steer(&mut self) -> Option<String> {
        match &mut self.input {
            Lines::Inbox(inbox) => inbox.steer(),
            Lines::Stream(_) => None,
        }
    }

    fn follow_up(&mut self) -> Option<String> {
        match &mut self.input {
            Lines::Inbox(inbox) => inbox.follow_up(),
            Lines::Stream(_) => None,
        }
    }

    fn approve(&mut self, call: &Call, spec: &ToolSpec, doubt: Option<&Doubt>) -> bool {
        let Some(present) = &self.present else {
            if let Some(doubt) = doubt {
                _ = writeln!(self.output, "     {}", doubt_text(doubt, None));
            }
            let doubted = doubt.and_then(|doubt| doubt.ungrounded.as_ref());
            let hint = if doubted.is_some() {
                "nobody is there to ask: say what is meant by its name, or resume the task where \
                 somebody is; --grounding false does what nobody spoke of without asking"
                    .to_owned()
            } else {
                format!(
                    "nobody is there to ask: --yes approves all that the policy asks about, \
                     --policy {}=allow this tool; --ask-below 0 leaves out how sure the model is",
                    spec.name
                )
            };
            _ = writeln!(self.output, "     {} {hint}", paint(NAME, "hint:"));
            return false;
        };
        let line = call_line(call, present.columns);
        let mark = paint(WARN, "?");
        let plain = call_line(call, None);
        let wide = anstream::adapter::strip_str(&plain).to_string().width() + ASKING;
        let question = match doubt {
            Some(doubt) => {
                let doubt = doubt_text(doubt, present.columns);
                format!("     {mark} {line}\n{MARGIN}{doubt}\n{MARGIN}allow? [y/N]")
            }
            None if present.columns.is_some_and(|columns| wide > columns) => {
                format!("     {mark} {line}\n{MARGIN}allow? [y/N]")
            }
            None => format!("     {mark} {line}  allow? [y/N]"),
        };
        let answer = self.ask(&question).unwrap_or_default();
        is_yes(&answer)
    }

    fn reply(&mut self, _question: &str) -> Option<String> {
        let prompt = format!("     {}", paint(NAME, "›"));
        if let Some(said) = self.answer.take() {
            self.progress.finish_and_clear();
            _ = writeln!(
                self.output,
                "{prompt} {}",
                crate::trace::sanitize_line(&said)
            );
            return Some(said);
        }
        self.present.as_ref()?;
        self.ask(&prompt).filter(|reply| !reply.is_empty())
    }

    fn settle(&mut self, pending: &Pending) -> Option<Settlement> {
        if let Some(said) = self.settlement.take() {
            return Some(said);
        }
        let columns = self.present.as_ref()?.columns;
        let laid = |text: &str, taken| {
            let margin = "     ";
            let layout = Layout {
                columns,
                taken,
                margin,
            };
            wrap(text, layout)
        };
        let line = call_line(&pending.call, columns);
        let words = laid("this call was interrupted; it may have taken effect", 5);
        _ = writeln!(self.output, "     {line}\n     {}", paint(FAINT, words));
        let words = laid(
            "did it? [y: yes, n: no, r: call it again, else: leave it]",
            7,
        );
        let question = format!("     {} {words}", paint(WARN, "?"));
        match self.ask(&question)?.as_str() {
            "r" | "R" => Some(Settlement::Repeat),
            "n" | "N" | "no" => Some(Settlement::DidNotHappen),
            answer if is_yes(answer) => Some(Settlement::Happened),
            _ => None,
        }
    }
}

/// Yes, and nothing that only might mean it.
fn is_yes(answer: &str) -> bool {
    matches!(
        answer.to_lowercase().as_str(),
        "y" | "yes" | "да" | "д" | "是"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Alternative;
    use crate::call::Effect;

    fn spec() -> ToolSpec {
        ToolSpec {
            name: "unlock".into(),
            description: String::new(),
            parameters: serde_json::json!({}),
            effect: Effect::Risk,
            idempotent: true,
        }
    }

    fn asker(input: &'static str, present: bool) -> Asker<'static, &'static [u8], Vec<u8>> {
        let present = present.then(|| Present {
            wait: Box::new(|| true),
            cancel: Cancel::default(),
            columns: None,
        });
        let input = Lines::Stream(input.as_bytes());
        Asker::new(input, Vec::new(), present, ProgressBar::hidden())
    }

    #[test]
    fn only_yes_is_yes() {
        let call = Call::new("unlock", [("device", "front door")]);
        for (input, present, granted) in [
            ("y\n", true, true),
            ("YES\n", true, true),
            ("да\n", true, true),
            ("\n", true, false),
            ("yep\n", true, false),
            ("", true, false),
            ("y\n", false, false),
        ] {
            let answer = asker(input, present).approve(&call, &spec(), None);
            assert_eq!(answer, granted, "{input:?} {present}");
        }
    }

    #[test]
    fn an_answer_that_is_known_is_given_once() {
        let mut told = asker("", false).with_answer(Some("the hall\u{1b}".to_owned()));
        assert!(told.unused_answer());
        assert_eq!(told.reply("which?").as_deref(), Some("the hall\u{1b}"));
        assert!(!told.unused_answer());
        assert_eq!(told.reply("which?"), None);
        let shown = String::from_utf8(told.output).unwrap();
        assert!(shown.contains("the hall\\u{1b}") && !shown.contains("hall\u{1b}"));
    }

    #[test]
    fn a_question_names_the_best_alternatives() {
        let call = Call::new("turn_on", [("device", "kitchen light")]);
        let doubt = Doubt {
            ungrounded: None,
            confidence: Some(0.62),
            alternatives: vec![Alternative {
                part: "device".to_owned(),
                text: "hall\u{1b} lamp".to_owned(),
                probability: 0.21,
            }],
            other: None,
        };
        for (present, columns, expected) in [
            (
                true,
                None,
                "     ? turn_on  device: kitchen light\n       62% sure, or: device hall\\u{1b} lamp 21%\n       allow? [y/N] ",
            ),
            (
                true,
                Some(40),
                "     ? turn_on  device: kitchen light\n       62% sure, or: device hall\\u{1b}\n       lamp 21%\n       allow? [y/N] ",
            ),
            (
                false,
                None,
                "     62% sure, or: device hall\\u{1b} lamp 21%\n     hint: nobody is there to ask",
            ),
        ] {
            let mut asker = asker("y\n", present);
            if let Some(present) = &mut asker.present {
                present.columns = columns;
            }
            assert_eq!(asker.approve(&call, &spec(), Some(&doubt)), present);
            let text = String::from_utf8(asker.output).unwrap();
            let text = anstream::adapter::strip_str(&text).to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn who_cancels_says_no_without_a_line() {
        let call = Call::new("unlock", [("device", "front door")]);
        let mut asker = asker("y\n", true);
        asker.present = Some(Present {
            wait: Box::new(|| false),
            cancel: Cancel::default(),
            columns: None,
        });
        assert!(!asker.approve(&call, &spec(), None));
        assert_eq!(asker.reply("Which?"), None);
        let Lines::Stream(input) = asker.input else {
            panic!("it reads a stream");
        };
        assert_eq!(input, b"y\n", "nothing was read");
    }

    #[test]
    fn interrupted_calls_are_settled_by_words() {
        let pending = Pending {
            step: 1,
            call: Call::new("unlock", [("device", "front door")]),
            effect: Effect::Risk,
            idempotent: false,
        };
        for (input, present, expected) in [
            ("y\n", true, Some(Settlement::Happened)),
            ("n\n", true, Some(Settlement::DidNotHappen)),
            ("r\n", true, Some(Settlement::Repeat)),
            ("\n", true, None),
            ("y\n", false, None),
        ] {
            assert_eq!(
                asker(input, present).settle(&pending),
                expected,
                "{input:?}"
            );
        }
        assert_eq!(
            asker("the left one\n", true).reply("Which?").as_deref(),
            Some("the left one")
        );
        assert_eq!(asker("\n", true).reply("Which?"), None);
        assert_eq!(asker("x\n", false).reply("Which?"), None);
    }
}
