//! A generator that says what it was told to: for tests of everything above a model.
//!
//! It obeys no grammar, as a remote backend may not, so that what checks its text is really
//! tested.

use super::generator::{
    Chosen, GenerateError, GenerateRequest, Generation, GenerationStats, Generator, Stop,
};
use super::prompt::Prompt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A prepared reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedReply {
    /// The text.
    pub text: String,
    /// Why it ends.
    pub stop: Stop,
    /// How sure of it the generator says that it is, 0 to 1; `None`: it does not say.
    pub confidence: Option<f64>,
    /// What it says that it chose from.
    pub choices: Vec<Chosen>,
}

impl ScriptedReply {
    /// A complete reply of which nothing more is known.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stop: Stop::Complete,
            confidence: None,
            choices: Vec::new(),
        }
    }

    /// The same, of which the generator is so sure.
    #[must_use]
    pub fn sure(mut self, confidence: f64) -> Self {
        self.confidence = Some(confidence);
        self
    }
}

/// Gives prepared replies in order.
#[derive(Debug)]
pub struct ScriptedGenerator {
    replies: VecDeque<ScriptedReply>,
    capacity: usize,
    seen: Arc<Mutex<Vec<Prompt>>>,
}

impl ScriptedGenerator {
    /// A generator of these replies, each complete.
    pub fn new<T: Into<String>>(replies: impl IntoIterator<Item = T>) -> Self {
        Self::with_stops(replies.into_iter().map(|text| (text, Stop::Complete)))
    }

    /// A generator of replies that end for a given reason.
    pub fn with_stops<T: Into<String>>(replies: impl IntoIterator<Item = (T, Stop)>) -> Self {
        let reply = |(text, stop): (T, Stop)| ScriptedReply {
            stop,
            ..ScriptedReply::new(text)
        };
        Self::of(replies.into_iter().map(reply))
    }

    /// A generator of these replies.
    pub fn of(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
            capacity: 1 << 16,
            seen: Arc::default(),
        }
    }

    /// With room for `capacity` tokens; a token is taken to be one byte.
    #[must_use]
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// The prompts that it was given so far, also after it was moved away.
    pub fn prompts(&self) -> ScriptedPrompts {
        ScriptedPrompts(Arc::clone(&self.seen))
    }
}

/// A view of the prompts that a [`ScriptedGenerator`] was given.
#[derive(Clone, Debug)]
pub struct ScriptedPrompts(Arc<Mutex<Vec<Prompt>>>);

impl ScriptedPrompts {
    /// A copy of all of them, in order.
    pub fn all(&self) -> Vec<Prompt> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Generator for ScriptedGenerator {
    fn name(&self) -> &str {
        "scripted"
    }

    fn obeys_grammar(&self) -> bool {
        false
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn count(&mut self, prompt: &Prompt) -> Result<usize, GenerateError> {
        Ok(prompt.messages.iter().map(|m| m.content.len()).sum())
    }

    fn generate(&mut self, request: &GenerateRequest<'_>) -> Result<Generation, GenerateError> {
        let prompt = self.count(request.prompt)?;
        if prompt > self.capacity {
            return Err(GenerateError::PromptTooLong {
                prompt,
                capacity: self.capacity,
                reserved: 0,
            });
        }
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.prompt.clone());
        let reply = if request.cancel.is_cancelled() {
            ScriptedReply {
                stop: Stop::Cancelled,
                ..ScriptedReply::new("")
            }
        } else {
            self.replies
                .pop_front()
                .ok_or_else(|| GenerateError::Backend {
                    backend: "scripted",
                    message: "no reply is left".to_owned(),
                })?
        };
        Ok(Generation {
            stats: GenerationStats {
                prompt_evaluated: prompt,
                chosen: reply.text.len(),
                ..GenerationStats::default()
            },
            text: reply.text,
            stop: reply.stop,
            log_probability: reply.confidence.map(f64::ln),
            choices: reply.choices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::generator::{Cancel, Sampling};
    use crate::model::prompt::{Message, Role};

    #[test]
    fn replies_come_in_order_and_prompts_are_remembered() {
        let mut generator =
            ScriptedGenerator::with_stops([("one", Stop::Complete), ("two", Stop::Budget)]);
        let prompts = generator.prompts();
        let prompt = Prompt {
            messages: vec![Message {
                role: Role::User,
                content: "hello".to_owned(),
            }],
            stable: 0,
        };
        let cancel = Cancel::default();
        let request = GenerateRequest {
            prompt: &prompt,
            grammar: None,
            sampling: Sampling::default(),
            max_tokens: 10,
            jump_ahead: true,
            calibration: None,
            cancel: cancel.clone(),
        };
        let said: Vec<_> = (0..2)
            .map(|_| generator.generate(&request).unwrap())
            .map(|g| (g.text, g.stop))
            .collect();
        assert_eq!(
            said,
            [
                ("one".to_owned(), Stop::Complete),
                ("two".to_owned(), Stop::Budget)
            ]
        );
        assert!(generator.generate(&request).is_err());
        assert_eq!(prompts.all().len(), 3);
        cancel.cancel();
        assert_eq!(generator.generate(&request).unwrap().stop, Stop::Cancelled);
        let mut small = ScriptedGenerator::new(["x"]).with_capacity(4);
        assert!(matches!(
            small.generate(&request),
            Err(GenerateError::PromptTooLong { prompt: 5, .. })
        ));
    }
}
