//! What is chosen from: checked once, so that nothing later has to doubt it.

use crate::decode::{LONGEST_ALTERNATIVE, MOST_ALTERNATIVES};
use crate::grammar::{Expr, Grammar, GrammarBuilder};
use std::collections::HashSet;

/// Most options of a decision: as many as are scored whole.
pub const MOST_OPTIONS: usize = MOST_ALTERNATIVES;

/// Bytes of the longest option, as a JSON string without its quotes.
pub const LONGEST_OPTION: usize = LONGEST_ALTERNATIVE;

/// Two options or more, all different, none of them blank, in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    texts: Vec<String>,
    /// The same as JSON strings, quotes included: what the model writes.
    spelled: Vec<String>,
}

/// Why there is nothing to choose from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// One option is no choice.
    #[error("a decision needs two options or more, not {0}")]
    TooFew(usize),
    /// More than [`MOST_OPTIONS`].
    #[error("a decision has at most {MOST_OPTIONS} options, not {0}")]
    TooMany(usize),
    /// An option without a word; counts from 1.
    #[error("option {0} is empty")]
    Empty(usize),
    /// An option that is there already.
    #[error("the option {0:?} is there twice")]
    Twice(String),
    /// An option of more than [`LONGEST_OPTION`] bytes; counts from 1.
    #[error("option {0} has {1} bytes, at most {LONGEST_OPTION} are weighed")]
    TooLong(usize, usize),
}

impl Options {
    /// Takes the options; blanks around one do not belong to it.
    ///
    /// # Errors
    /// [`OptionsError`]
    ///
    /// ```
    /// use snaffle::decide::{Options, OptionsError};
    ///
    /// let options = Options::new(["keep", " throw away "]).unwrap();
    /// assert_eq!(options.iter().collect::<Vec<_>>(), ["keep", "throw away"]);
    /// assert_eq!(Options::new(["keep"]), Err(OptionsError::TooFew(1)));
    /// ```
    pub fn new<T: AsRef<str>>(options: impl IntoIterator<Item = T>) -> Result<Self, OptionsError> {
        let texts: Vec<String> = options
            .into_iter()
            .map(|option| option.as_ref().trim().to_owned())
            .collect();
        let mut seen = HashSet::new();
        let mut spelled = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            if text.is_empty() {
                return Err(OptionsError::Empty(at + 1));
            }
            if !seen.insert(text) {
                return Err(OptionsError::Twice(text.clone()));
            }
            let json = serde_json::Value::from(text.as_str()).to_string();
            let bytes = json.len() - 2;
            if bytes > LONGEST_OPTION {
                return Err(OptionsError::TooLong(at + 1, bytes));
            }
            spelled.push(json);
        }
        match texts.len() {
            0 | 1 => Err(OptionsError::TooFew(texts.len())),
            count if count > MOST_OPTIONS => Err(OptionsError::TooMany(count)),
            _ => Ok(Self { texts, spelled }),
        }
    }

    /// `yes` and `no`, in this order.
    pub fn yes_no() -> Self {
        let texts = ["yes", "no"];
        Self {
            texts: texts.map(str::to_owned).into(),
            spelled: texts.map(|text| format!("\"{text}\"")).into(),
        }
    }

    /// The options in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// As the prompt lists them.
    pub(super) fn list(&self) -> String {
        let commas = self.iter().any(|option| option.contains(','));
        self.texts.join(if commas { "; " } else { ", " })
    }

    /// Where the option is whose JSON string is `inner` between its quotes.
    pub(super) fn find(&self, inner: &str) -> Option<usize> {
        let own = |spelled: &String| {
            spelled.strip_prefix('"').and_then(|s| s.strip_suffix('"')) == Some(inner)
        };
        self.spelled.iter().position(own)
    }

    /// The grammar of all of them.
    pub(super) fn grammar(&self) -> Grammar {
        grammar_of(&self.spelled)
    }

    /// Each with a grammar of it alone.
    pub(super) fn alone(&self) -> impl Iterator<Item = (&str, Grammar)> {
        let grammars = self.spelled.chunks(1).map(grammar_of);
        self.iter().zip(grammars)
    }

    /// Most tokens that one of them can take, a token a byte.
    pub(super) fn most_tokens(&self) -> usize {
        self.spelled.iter().map(String::len).max().unwrap_or(0)
    }
}

fn grammar_of(texts: &[String]) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let root = builder.add("root", Expr::alt(texts.iter().map(Expr::literal)));
    builder.finish(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_choice_is_refused() {
        let long = "я".repeat(LONGEST_OPTION / 2);
        let longer = format!("{long}!");
        let many: Vec<String> = (0..=MOST_OPTIONS).map(|n| n.to_string()).collect();
        let most: Vec<&str> = many[1..].iter().map(String::as_str).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (options, expected) in [
            (&["a", "b"][..], Ok(2)),
            (&["да", "нет", "不知道", "💡"], Ok(4)),
            (&["a, b", "say \"c\"\n"], Ok(2)),
            (&[&long, "b"], Ok(2)),
            (&most, Ok(MOST_OPTIONS)),
            (&[], Err(OptionsError::TooFew(0))),
            (&["a"], Err(OptionsError::TooFew(1))),
            (&["a", " \t"], Err(OptionsError::Empty(2))),
            (&["a", "b", " a"], Err(OptionsError::Twice("a".into()))),
            (
                &[&longer, "b"],
                Err(OptionsError::TooLong(1, LONGEST_OPTION + 1)),
            ),
            (&many, Err(OptionsError::TooMany(MOST_OPTIONS + 1))),
        ] {
            let count = Options::new(options).map(|options| options.iter().len());
            assert_eq!(count, expected);
        }
    }

    #[test]
    fn yes_and_no_are_options_like_others() {
        assert_eq!(Options::new(["yes", "no"]), Ok(Options::yes_no()));
    }
}
