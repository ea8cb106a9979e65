//! A question and its options become a prompt and a grammar; the scores become a decision.

use super::decision::{Choice, Level, YesNo};
use super::options::Options;
use crate::grammar::Grammar;
use crate::model::{
    Calibration, Cancel, GenerateError, GenerateRequest, Generation, Generator, Message, Prompt,
    Role, Sampling, Stop,
};

/// Decides questions by a model.
pub struct Decider<'g> {
    /// The model.
    pub generator: &'g mut dyn Generator,
    /// How much of an option's score without the question is subtracted, 0 (nothing) to 1.
    pub alpha: f64,
    /// Stops it.
    pub cancel: Cancel,
}

impl std::fmt::Debug for Decider<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decider")
            .field("generator", &self.generator.name())
            .field("alpha", &self.alpha)
            .finish_non_exhaustive()
    }
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// There is no question.
    #[error("the question is empty")]
    EmptyQuestion,
    /// The backend says what it would write, but not how likely the options are.
    #[error("{backend} gives no probabilities of the options, so nothing is decided")]
    NoProbabilities {
        /// Its name.
        backend: String,
    },
    /// No token sequence of the model's vocabulary is this option.
    #[error("this model's vocabulary cannot spell the option {option:?}")]
    Unspellable {
        /// The option.
        option: String,
    },
    /// It was stopped.
    #[error("cancelled")]
    Cancelled,
    /// The model failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

impl Decider<'_> {
    /// Which of the options is the answer.
    ///
    /// # Errors
    /// [`DecideError`]
    ///
    /// ```
    /// # use snaffle::decide::{Decider, Options};
    /// # use snaffle::decode::SessionGenerator;
    /// # use snaffle::mask::{Lexicon, Limits, MaskStore};
    /// # use snaffle::model::{Cancel, ChatTemplate, RandomSession};
    /// # use snaffle::vocab::Vocabulary;
    /// # use std::sync::Arc;
    /// # let vocabulary = Arc::new(Vocabulary::of_bytes());
    /// # let mut generator = SessionGenerator::new(
    /// #     "random",
    /// #     Box::new(RandomSession::new(Arc::clone(&vocabulary), 4096, 1)),
    /// #     Box::new(ChatTemplate::plain()),
    /// #     Arc::new(Lexicon::new(vocabulary)),
    /// #     Arc::new(MaskStore::new(1 << 20)),
    /// #     Limits::default(),
    /// # );
    /// let mut decider = Decider {
    ///     generator: &mut generator,
    ///     alpha: 0.5,
    ///     cancel: Cancel::default(),
    /// };
    /// let options = Options::new(["billing", "shipping"]).unwrap();
    /// let choice = decider.choose("Who handles this? “Charged twice.”", &options).unwrap();
    /// let sum: f64 = choice.options.iter().map(|(_, probability)| probability).sum();
    /// assert!((sum - 1.0).abs() < 1e-9);
    /// ```
    pub fn choose(&mut self, question: &str, options: &Options) -> Result<Choice, DecideError> {
        let question = question.trim();
        if question.is_empty() {
            return Err(DecideError::EmptyQuestion);
        }
        let (asked, blank) = (prompt(question, options), prompt("", options));
        let calibration = Calibration {
            blank: &blank,
            alpha: self.alpha,
        };
        let grammar = options.grammar();
        let written = self.generate(&asked, &grammar, options, Some(calibration));
        let generation = match written {
            Ok(generation) if generation.stop == Stop::Cancelled => {
                return Err(DecideError::Cancelled);
            }
            Ok(generation) => generation,
            Err(error @ GenerateError::Grammar(_)) => {
                return Err(match self.unspellable(&asked, options) {
                    Some(option) => DecideError::Unspellable { option },
                    None => error.into(),
                });
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(choice) = decision(&generation, options) {
            return Ok(choice);
        }
        Err(match self.unspellable(&asked, options) {
            Some(option) => DecideError::Unspellable { option },
            None => DecideError::NoProbabilities {
                backend: self.generator.name().to_owned(),
            },
        })
    }

    /// Whether it is so.
    ///
    /// # Errors
    /// [`DecideError`]
    pub fn yes_no(&mut self, question: &str) -> Result<YesNo, DecideError> {
        Ok(self.choose(question, &Options::yes_no())?.into())
    }

    /// Which of the levels, given from the lowest to the highest, it is.
    ///
    /// # Errors
    /// [`DecideError`]
    pub fn level(&mut self, question: &str, levels: &Options) -> Result<Level, DecideError> {
        Ok(self.choose(question, levels)?.into())
    }

    fn generate(
        &mut self,
        prompt: &Prompt,
        grammar: &Grammar,
        options: &Options,
        calibration: Option<Calibration<'_>>,
    ) -> Result<Generation, GenerateError> {
        self.generator.generate(&GenerateRequest {
            prompt,
            grammar: Some(grammar),
            // The likeliest: what is decided is not left to chance.
            sampling: Sampling::default(),
            max_tokens: options.most_tokens(),
            jump_ahead: true,
            calibration,
            cancel: self.cancel.clone(),
        })
    }

    /// The first option that cannot be written although nothing else may be.
    fn unspellable(&mut self, prompt: &Prompt, options: &Options) -> Option<String> {
        if !self.generator.obeys_grammar() {
            return None;
        }
        for (option, grammar) in options.alone() {
            let written = self.generate(prompt, &grammar, options, None);
            if matches!(written, Err(GenerateError::Grammar(_))) {
                return Some(option.to_owned());
            }
        }
        None
    }
}

/// The prompt of a decision: the options first, so that they are evaluated once for many questions.
/// They stand there as plain words, and no example comes after them: with quotes, after the
/// question, or with four examples both tiny models were right less often (of 30 questions,
/// SmolLM2-135M 18 so and 11 to 14 otherwise, Gemma 3 270M 22 and 14 to 18).
fn prompt(question: &str, options: &Options) -> Prompt {
    let message = |role, content| Message { role, content };
    Prompt {
        messages: vec![
            message(
                Role::System,
                format!("Answer with one of: {}.", options.list()),
            ),
            message(Role::User, question.to_owned()),
        ],
        stable: 1,
    }
}

/// The decision of a generation whose options were all scored.
fn decision(generation: &Generation, options: &Options) -> Option<Choice> {
    let chosen = generation.choices.first()?;
    // What all options begin with was forced and stands before the alternatives.
    let begun = generation.text.get(1..chosen.at)?;
    let find = |rest: &str| options.find(&format!("{begun}{rest}"));
    let mut found = vec![None; options.iter().len()];
    for (rest, probability) in &chosen.alternatives {
        *found.get_mut(find(rest)?)? = Some(*probability);
    }
    let taken = find(&chosen.alternatives.get(chosen.taken)?.0)?;
    let probabilities: Vec<f64> = found.into_iter().collect::<Option<_>>()?;
    if probabilities.iter().any(|p| !p.is_finite()) {
        return None;
    }
    Some(Choice {
        options: options
            .iter()
            .map(str::to_owned)
            .zip(probabilities)
            .collect(),
        taken,
        stats: generation.stats.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::SessionGenerator;
    use crate::mask::{Lexicon, Limits, MaskStore};
    use crate::model::{ChatTemplate, RandomSession, ScriptedGenerator};
    use crate::vocab::{Token, TokenKind, Vocabulary};
    use std::sync::Arc;

    /// Random logits over all bytes but these.
    fn without(missing: &[u8], seed: u64) -> SessionGenerator {
        let tokens = (0..=u8::MAX).map(|byte| Token {
            bytes: if missing.contains(&byte) {
                b"<none>".to_vec()
            } else {
                vec![byte]
            },
            kind: if missing.contains(&byte) {
                TokenKind::Control
            } else {
                TokenKind::Byte
            },
        });
        let vocabulary = Arc::new(Vocabulary::new(tokens.collect(), Vec::new()));
        SessionGenerator::new(
            "random",
            Box::new(RandomSession::new(Arc::clone(&vocabulary), 8192, seed)),
            Box::new(ChatTemplate::plain()),
            Arc::new(Lexicon::new(vocabulary)),
            Arc::new(MaskStore::new(1 << 20)),
            Limits::default(),
        )
    }

    fn decider(generator: &mut dyn Generator, alpha: f64) -> Decider<'_> {
        Decider {
            generator,
            alpha,
            cancel: Cancel::default(),
        }
    }

    #[test]
    fn every_option_has_its_probability_whatever_it_is_made_of() {
        let many: Vec<String> = (0..256).map(|n| format!("number {n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for options in [
            &["yes", "no"][..],
            &["да", "нет", "не знаю"],
            &["红", "绿色", "💡", "👩\u{200d}👧"],
            &["a", "ab", "abc"],
            &["no", "not sure", "nothing"],
            &["one, two", "say \"three\"", "back\\slash", "line\nend"],
            &["same beginning: one", "same beginning: two"],
            // Characters that begin with the same bytes.
            &["红", "绿", "é", "è"],
            &["è", "é"],
            &many,
        ] {
            let options = Options::new(options).unwrap();
            for (seed, alpha) in [(1, 0.0), (2, 0.5), (3, 1.0)] {
                let mut generator = without(&[], seed);
                let mut decider = decider(&mut generator, alpha);
                let choice = decider.choose("Which one?", &options).unwrap();
                let texts: Vec<&str> = choice.options.iter().map(|(t, _)| t.as_str()).collect();
                assert_eq!(texts, options.iter().collect::<Vec<_>>());
                let sum: f64 = choice.options.iter().map(|(_, p)| p).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{sum}");
                let best = choice.ranked()[0];
                assert_eq!(best, (choice.option(), choice.probability()));
                assert!(choice.options.iter().all(|(_, p)| *p <= best.1));
            }
        }
    }

    #[test]
    fn decisions_are_of_their_type() {
        let mut generator = without(&[], 7);
        let mut decider = decider(&mut generator, 0.5);
        let said = decider.yes_no("Is it so?").unwrap();
        assert_eq!(said.yes, said.choice.option() == "yes");
        assert_eq!(said.yes, said.probability >= 0.5);
        let levels = Options::new(["low", "medium", "high"]).unwrap();
        let level = decider.level("How high?", &levels).unwrap();
        let names: Vec<&str> = levels.iter().collect();
        assert_eq!(names[level.number - 1], level.choice.option());
        assert!((1.0..=3.0).contains(&level.expected));
    }

    #[test]
    fn what_is_preferred_without_the_question_is_subtracted() {
        let options = Options::new(["left", "right", "neither"]).unwrap();
        let mut generator = without(&[], 5);
        let asked = |generator: &mut SessionGenerator, alpha| {
            let mut decider = decider(generator, alpha);
            let choice = decider.choose("Where to?", &options).unwrap();
            choice.options.iter().map(|(_, p)| *p).collect::<Vec<_>>()
        };
        let plain = asked(&mut generator, 0.0);
        let (half, whole) = (asked(&mut generator, 0.5), asked(&mut generator, 1.0));
        // The score is linear in α: at a half it is the mean of the other two.
        let odds = |p: &[f64]| (p[0] / p[1]).ln();
        let mean = f64::midpoint(odds(&plain), odds(&whole));
        assert!((odds(&half) - mean).abs() < 1e-3);
        assert!((odds(&plain) - odds(&whole)).abs() > 1e-3);
    }

    #[test]
    fn what_cannot_be_decided_is_not() {
        let options = Options::new(["yes", "no", "zoo"]).unwrap();
        let error = |generator: &mut dyn Generator, question: &str| {
            let mut decider = decider(generator, 0.5);
            decider.choose(question, &options).unwrap_err().to_string()
        };
        assert_eq!(error(&mut without(&[], 1), " \n"), "the question is empty");
        for missing in [&b"z"[..], b"zn"] {
            let said = error(&mut without(missing, 1), "Which?");
            let option = if missing.len() == 1 { "zoo" } else { "no" };
            assert_eq!(
                said,
                format!("this model's vocabulary cannot spell the option {option:?}")
            );
        }
        let mut mute = ScriptedGenerator::new(["\"yes\""]);
        assert_eq!(
            error(&mut mute, "Which?"),
            "scripted gives no probabilities of the options, so nothing is decided"
        );
        let long = "word ".repeat(2000);
        assert!(error(&mut without(&[], 1), &long).starts_with("the prompt has "));
        let mut generator = without(&[], 1);
        let mut stopped = decider(&mut generator, 0.5);
        stopped.cancel.cancel();
        let stopped = stopped.choose("Which?", &options);
        assert!(matches!(stopped, Err(DecideError::Cancelled)));
    }
}
