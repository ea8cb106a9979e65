//! What comes of a question: probabilities, and what they mean.

use crate::model::GenerationStats;

/// One of several options was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// All options in the order in which they were given, each with its probability; together 1.
    /// What is out of the question (some 10⁻⁵ of the likeliest) has 0.
    pub options: Vec<(String, f64)>,
    /// Which of them is the likeliest.
    pub taken: usize,
    /// What it cost.
    pub stats: GenerationStats,
}

impl Choice {
    /// The likeliest option.
    pub fn option(&self) -> &str {
        self.options
            .get(self.taken)
            .map_or("", |(text, _)| text.as_str())
    }

    /// Its probability.
    pub fn probability(&self) -> f64 {
        self.options
            .get(self.taken)
            .map_or(0.0, |(_, probability)| *probability)
    }

    /// The options, the likeliest first; equal ones as they were given.
    pub fn ranked(&self) -> Vec<(&str, f64)> {
        let mut ranked: Vec<(usize, &str, f64)> = self
            .options
            .iter()
            .enumerate()
            .map(|(at, (text, probability))| (at, text.as_str(), *probability))
            .collect();
        ranked.sort_by(|a, b| {
            let taken = |at: usize| at != self.taken;
            b.2.total_cmp(&a.2).then(taken(a.0).cmp(&taken(b.0)))
        });
        ranked
            .into_iter()
            .map(|(_, text, probability)| (text, probability))
            .collect()
    }
}

/// A question was answered with yes or no.
#[derive(Clone, Debug, PartialEq)]
pub struct YesNo {
    /// The likelier answer.
    pub yes: bool,
    /// How likely `yes` is.
    pub probability: f64,
    /// The choice between `yes` and `no`.
    pub choice: Choice,
}

impl From<Choice> for YesNo {
    /// Of a choice whose first option means yes.
    fn from(choice: Choice) -> Self {
        Self {
            yes: choice.taken == 0,
            probability: choice.options.first().map_or(0.0, |first| first.1),
            choice,
        }
    }
}

/// One of several levels, which were given from the lowest to the highest, was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The likeliest level, counted from 1.
    pub number: usize,
    /// The level that is to be expected: the mean of the levels' numbers, each counted as often as
    /// it is likely. Between 1 and the number of levels.
    pub expected: f64,
    /// The choice among the levels.
    pub choice: Choice,
}

impl From<Choice> for Level {
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are a few hundred at most"
    )]
    fn from(choice: Choice) -> Self {
        let levels = choice.options.iter().enumerate();
        Self {
            number: choice.taken + 1,
            expected: levels
                .map(|(at, (_, probability))| (at + 1) as f64 * probability)
                .sum(),
            choice,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn choice(options: &[(&str, f64)], taken: usize) -> Choice {
        Choice {
            options: options.iter().map(|(t, p)| ((*t).to_owned(), *p)).collect(),
            taken,
            stats: GenerationStats::default(),
        }
    }

    #[test]
    fn decisions_follow_from_probabilities() {
        let levels = choice(&[("low", 0.2), ("medium", 0.2), ("high", 0.6)], 2);
        assert_eq!((levels.option(), levels.probability()), ("high", 0.6));
        let texts: Vec<&str> = levels.ranked().iter().map(|(text, _)| *text).collect();
        assert_eq!(texts, ["high", "low", "medium"]);
        let level = Level::from(levels);
        assert_eq!(level.number, 3);
        assert!((level.expected - 2.4).abs() < 1e-9);
        for (yes, probability, taken) in [(true, 0.7, 0), (false, 0.4, 1)] {
            let said = YesNo::from(choice(&[("yes", probability), ("no", 0.3)], taken));
            assert_eq!((said.yes, said.probability), (yes, probability));
        }
        // Of equal ones the one that was taken comes first.
        let equal = choice(&[("a", 0.5), ("b", 0.5)], 1);
        assert_eq!(equal.ranked()[0].0, "b");
    }
}
