//! How alike two texts are, without a model: character n-grams that two texts share.
//!
//! Words are cut into trigrams with their edges marked, so that endings and small misspellings
//! cost little; scripts written without blanks are cut into single characters and pairs.

use rustc_hash::FxHashSet;

/// The n-grams of a text.
#[derive(Clone, Debug, Default)]
pub struct Grams(FxHashSet<[char; 3]>);

/// Stands for the edge of a word, and fills grams shorter than three characters.
const EDGE: char = '\0';

impl Grams {
    /// The n-grams of `text`; letters and digits only, case ignored.
    pub fn of(text: &str) -> Self {
        let mut grams = FxHashSet::default();
        let mut word: Vec<char> = Vec::new();
        let mut previous_dense = None;
        for c in text.chars().flat_map(char::to_lowercase) {
            if is_dense(c) {
                cut(&mut word, &mut grams);
                grams.insert([c, EDGE, EDGE]);
                if let Some(previous) = previous_dense {
                    grams.insert([previous, c, EDGE]);
                }
                previous_dense = Some(c);
            } else {
                previous_dense = None;
                if c.is_alphanumeric() {
                    word.push(c);
                } else {
                    cut(&mut word, &mut grams);
                }
            }
        }
        cut(&mut word, &mut grams);
        Self(grams)
    }

    /// Number of different n-grams.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the text had no letter or digit.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of n-grams that both have.
    pub fn shared(&self, other: &Self) -> usize {
        let (small, large) = if self.len() <= other.len() {
            (self, other)
        } else {
            (other, self)
        };
        small
            .0
            .iter()
            .filter(|gram| large.0.contains(*gram))
            .count()
    }

    /// The share of this text's n-grams that are also in `other`, 0 to 1: how much of a short
    /// text (a device's name) is found in a long one (the request).
    pub fn found_in(&self, other: &Self) -> f64 {
        ratio(self.shared(other), self.len())
    }

    /// Likeness of two texts of about the same length, 0 to 1 (Dice's coefficient).
    pub fn similarity(&self, other: &Self) -> f64 {
        ratio(2 * self.shared(other), self.len() + other.len())
    }

    /// Likeness that forgives different lengths, 0 to 1 (cosine of the two sets).
    pub fn cosine(&self, other: &Self) -> f64 {
        let product = as_f64(self.len()) * as_f64(other.len());
        if product == 0.0 {
            0.0
        } else {
            as_f64(self.shared(other)) / product.sqrt()
        }
    }
}

/// Trigrams of a finished word.
fn cut(word: &mut Vec<char>, grams: &mut FxHashSet<[char; 3]>) {
    if word.is_empty() {
        return;
    }
    word.insert(0, EDGE);
    word.push(EDGE);
    for gram in word.windows(3) {
        grams.insert([gram[0], gram[1], gram[2]]);
    }
    word.clear();
}

/// Letters of scripts that are written without blanks between words.
pub(crate) fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}'      // Thai, Lao
        | '\u{1000}'..='\u{109F}'    // Myanmar
        | '\u{1780}'..='\u{17FF}'    // Khmer
        | '\u{2E80}'..='\u{2FDF}'    // CJK radicals
        | '\u{3040}'..='\u{30FF}'    // kana
        | '\u{3400}'..='\u{9FFF}'    // CJK
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of n-grams are far below 2^52"
)]
fn as_f64(count: usize) -> f64 {
    count as f64
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        as_f64(part) / as_f64(whole)
    }
}

/// The indices of the `keep` texts most relevant to `request`, in their original order. Among
/// equals the earlier one stays.
pub fn most_relevant<'t>(
    request: &str,
    texts: impl IntoIterator<Item = &'t str>,
    keep: usize,
) -> Vec<usize> {
    let request = Grams::of(request);
    let mut scored: Vec<(usize, f64, usize)> = texts
        .into_iter()
        .map(Grams::of)
        .enumerate()
        .map(|(at, grams)| (at, grams.found_in(&request), grams.shared(&request)))
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then(a.0.cmp(&b.0)));
    scored.truncate(keep);
    let mut kept: Vec<usize> = scored.into_iter().map(|(at, ..)| at).collect();
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_text_wins_in_any_script() {
        let cases: [(&str, &[&str], usize); 5] = [
            (
                "Turn on the kitchen lights",
                &["hall lamp", "kitchen light", "garage door"],
                1,
            ),
            (
                "turn on the kichen light",
                &["hall light", "kitchen light"],
                1,
            ),
            (
                "включи свет на кухне",
                &["свет в спальне", "свет на кухне"],
                1,
            ),
            ("打开厨房的灯", &["卧室灯", "客厅灯", "厨房灯"], 2),
            ("😀", &["a", "b"], 0),
        ];
        for (request, texts, best) in cases {
            assert_eq!(
                most_relevant(request, texts.iter().copied(), 1),
                [best],
                "{request}"
            );
        }
    }

    #[test]
    fn measures_stay_between_0_and_1() {
        let (a, b) = (Grams::of("kitchen light"), Grams::of("Kitchen-LIGHT"));
        assert!((a.similarity(&b) - 1.0).abs() < 1e-9 && (a.cosine(&b) - 1.0).abs() < 1e-9);
        let none = Grams::of("?!");
        assert!(none.is_empty());
        assert_eq!(none.found_in(&a), 0.0);
        assert_eq!(none.cosine(&a), 0.0);
    }

    #[test]
    fn order_is_kept() {
        assert_eq!(most_relevant("c a", ["a", "b", "c"], 2), [0, 2]);
        assert_eq!(most_relevant("", ["a", "b", "c"], 2), [0, 1]);
    }
}
