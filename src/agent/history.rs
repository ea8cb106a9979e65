//! All that was said and done in a run, for prompts without a state: a measurement of what the
//! state is worth. Nothing else keeps it.

/// A reply, and what the model was told came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// As it was written.
    pub reply: String,
    /// A line for each call that was made, or for what was wrong with the reply.
    pub results: String,
}

/// What a run has said and done so far.
#[derive(Clone, Debug)]
pub(super) struct History {
    kept: bool,
    past: Vec<Past>,
}

impl History {
    /// Keeps what it is told, or nothing.
    pub(super) fn new(kept: bool) -> Self {
        Self {
            kept,
            past: Vec::new(),
        }
    }

    /// All of it, the latest last.
    pub(super) fn past(&self) -> &[Past] {
        &self.past
    }

    /// Something was said.
    pub(super) fn said(&mut self, reply: &str) {
        if self.kept {
            self.past.push(Past {
                reply: reply.to_owned(),
                results: String::new(),
            });
        }
    }

    /// That came of it; it is only written where it is kept.
    pub(super) fn came(&mut self, result: impl FnOnce() -> String) {
        if let Some(last) = self.past.last_mut() {
            if !last.results.is_empty() {
                last.results.push('\n');
            }
            last.results.push_str(&result());
        }
    }
}
