//! Chat templates: messages in, what the model reads out.
//!
//! A template is a program from a model's file, and the messages are text from people and tools.
//! Neither may harm: the program runs with bounded fuel, memory and output and without a clock;
//! and it never sees the messages' contents, only placeholders. So a content cannot steer the
//! template, and special tokens that are written in a content stay text, while those of the
//! template's own text are recognised.

mod engine;
mod marks;
mod plain;
#[cfg(test)]
mod tests;
mod turns;
mod types;

pub use types::{FUEL, LONGEST_OUTPUT, LONGEST_TEMPLATE, RenderOptions, TemplateError};

use super::format::Format;
use super::generator::GenerateError;
use super::gguf::GgufInfo;
use super::prompt::{Message, Prompt, Rendered, Segment};
use engine::Engine;
use turns::Shape;

/// How messages become what a model reads.
#[derive(Debug)]
pub struct ChatTemplate(Kind);

#[derive(Debug)]
enum Kind {
    File(Box<Engine>),
    Plain,
}

impl ChatTemplate {
    /// A template in the language that model files use, with the texts of the tokens that begin
    /// and end a sequence.
    ///
    /// ```
    /// use snaffle::model::{ChatTemplate, Message, Prompt, RenderOptions, Role};
    ///
    /// let source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}";
    /// let template = ChatTemplate::from_source(source, "", "").unwrap();
    /// let message = Message { role: Role::User, content: "what is <|end|>?".into() };
    /// let prompt = Prompt { messages: vec![message], stable: 0 };
    /// let rendered = template.render(&prompt, RenderOptions::default()).unwrap();
    /// let parts: Vec<_> = rendered.segments.iter().map(|s| (s.text.as_str(), s.is_trusted())).collect();
    /// assert_eq!(parts, [("<|user|>", true), ("what is <|end|>?", false), ("<|end|>", true)]);
    /// ```
    ///
    /// # Errors
    /// [`TemplateError::TooLong`] or [`TemplateError::Syntax`].
    pub fn from_source(text: &str, bos: &str, eos: &str) -> Result<Self, TemplateError> {
        Ok(Self(Kind::File(Box::new(Engine::new(text, bos, eos)?))))
    }

    /// The template of a model file; the plain layout where it has none.
    ///
    /// # Errors
    /// As [`from_source`](Self::from_source).
    pub fn of_file(info: &GgufInfo) -> Result<Self, TemplateError> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        match &info.chat_template {
            Some(source) => Self::from_source(source, &text(&info.bos), &text(&info.eos)),
            None => Ok(Self::plain()),
        }
    }

    /// The layout for models that were not trained for chats: requests and replies in turn, as
    /// text that goes on.
    pub fn plain() -> Self {
        Self(Kind::Plain)
    }

    /// Renders `prompt`. Where the template refuses system messages or two messages of one role
    /// in a row, they are folded into the next one.
    ///
    /// # Errors
    /// [`TemplateError`], where the template fails however the messages are arranged.
    pub fn render(
        &self,
        prompt: &Prompt,
        options: RenderOptions,
    ) -> Result<Rendered, TemplateError> {
        let (segments, shape) = self.whole(&prompt.messages, options)?;
        let stable = self.stable_prefix(prompt, shape, options, &segments);
        Ok(split(segments, stable))
    }

    /// Renders all of `messages`, and says in which arrangement the template took them.
    fn whole(
        &self,
        messages: &[Message],
        options: RenderOptions,
    ) -> Result<(Vec<Segment>, Shape), TemplateError> {
        let mut first = None;
        for shape in Shape::ALL {
            match self.segments(messages, shape, options) {
                Ok(segments) => return Ok((segments, shape)),
                Err(error @ (TemplateError::Exhausted | TemplateError::Output)) => {
                    return Err(error);
                }
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(TemplateError::Exhausted))
    }

    fn segments(
        &self,
        messages: &[Message],
        shape: Shape,
        options: RenderOptions,
    ) -> Result<Vec<Segment>, TemplateError> {
        match &self.0 {
            Kind::Plain => Ok(plain::segments(messages, options.reply)),
            Kind::File(engine) => {
                let turns = turns::arrange(messages, shape);
                let text = engine.render(&turns, options)?;
                let segments = marks::fill(&text, messages)?;
                Ok(segments)
            }
        }
    }

    /// How many bytes of `whole` come from the stable messages and stay the same whatever follows
    /// them. 0 where the template makes earlier text depend on later messages.
    fn stable_prefix(
        &self,
        prompt: &Prompt,
        shape: Shape,
        options: RenderOptions,
        whole: &[Segment],
    ) -> usize {
        let count = prompt.stable.min(prompt.messages.len());
        if count == 0 {
            return 0;
        }
        let closed = RenderOptions {
            reply: false,
            ..options
        };
        let messages = &prompt.messages[..count];
        if let Ok(alone) = self.segments(messages, shape, closed)
            && let Some(length) = common(&alone, whole)
        {
            return length;
        }
        // Some templates end the last message in their own way: render one more message, of the
        // role that follows, and stop before its content.
        let Some(next) = prompt.messages.get(count) else {
            return 0;
        };
        let mut more = messages.to_vec();
        more.push(Message {
            role: next.role,
            content: "…".to_owned(),
        });
        let Ok(mut segments) = self.segments(&more, shape, closed) else {
            return 0;
        };
        let Some(last) = segments.iter().rposition(|segment| !segment.is_trusted()) else {
            return 0;
        };
        segments.truncate(last);
        common(&segments, whole).unwrap_or(0)
    }
}

impl Format for ChatTemplate {
    fn render(&self, prompt: &Prompt) -> Result<Rendered, GenerateError> {
        Ok(self.render(prompt, RenderOptions::default())?)
    }
}

/// Length in bytes of `start`, where `whole` begins with it: the same text with the same trust,
/// and a content never in part.
fn common(start: &[Segment], whole: &[Segment]) -> Option<usize> {
    for (number, (part, other)) in start.iter().zip(whole).enumerate() {
        let last = number + 1 == start.len();
        let fits = part == other
            || last
                && part.is_trusted()
                && other.is_trusted()
                && other.text.starts_with(&part.text);
        if !fits {
            return None;
        }
    }
    (start.len() <= whole.len()).then(|| start.iter().map(|segment| segment.text.len()).sum())
}

/// Marks the first `stable` bytes, splitting a segment where they end inside it.
fn split(segments: Vec<Segment>, stable: usize) -> Rendered {
    let mut rendered = Rendered::default();
    let mut left = stable;
    for segment in segments {
        if left == 0 {
            rendered.segments.push(segment);
        } else if segment.text.len() <= left {
            left -= segment.text.len();
            rendered.segments.push(segment);
            rendered.stable = rendered.segments.len();
        } else {
            let (text, rest) = segment.text.split_at(left);
            for text in [text, rest] {
                rendered.segments.push(Segment {
                    text: text.to_owned(),
                    message: segment.message,
                });
            }
            rendered.stable = rendered.segments.len() - 1;
            left = 0;
        }
    }
    rendered
}
