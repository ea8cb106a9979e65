//! Texts as sets of character n-grams: how alike two short texts are, in any script.
//!
//! Two to four characters, blanks at word ends included; single characters too where a character
//! is a word (Chinese, Japanese). Numbers count as alike.

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// The n-grams of a text, as hashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Grams(FxHashSet<u64>);

impl Grams {
    /// Of a text.
    pub(super) fn of(text: &str) -> Self {
        let text = normal(text);
        let mut grams = FxHashSet::default();
        for length in 2..=4 {
            for gram in text.windows(length) {
                // A gram of blanks and one end says nothing.
                if gram.iter().any(|c| c.is_alphanumeric()) {
                    grams.insert(hash(gram));
                }
            }
        }
        for c in text.iter().filter(|c| is_word(**c)) {
            grams.insert(hash(std::slice::from_ref(c)));
        }
        Self(grams)
    }

    /// With its words, and each two words that follow one another, the ends of the text as words.
    pub(super) fn with_words(text: &str) -> Self {
        let mut grams = Self::of(text);
        let text: String = normal(text).into_iter().collect();
        let mut last = "";
        for word in text.split(' ').chain([""]) {
            if word.is_empty() && last.is_empty() {
                continue;
            }
            let mut hasher = FxHasher::default();
            word.hash(&mut hasher);
            if !word.is_empty() {
                grams.0.insert(hasher.finish());
            }
            last.hash(&mut hasher);
            grams.0.insert(hasher.finish());
            last = word;
        }
        grams
    }

    pub(super) fn contains(&self, gram: u64) -> bool {
        self.0.contains(&gram)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }
}

fn hash(gram: &[char]) -> u64 {
    let mut hasher = FxHasher::default();
    gram.hash(&mut hasher);
    hasher.finish()
}

/// Whether a character is a common one of Chinese, which has no spaces between words.
pub(super) fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9FFF}').contains(&c)
}

/// Whether a character is a word of its own.
fn is_word(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}')
}

/// Lower case; full-width forms, `ё` and decomposed `й` folded; every number one `#`; everything
/// else that is no letter and no question mark one blank; a blank at both ends.
fn normal(text: &str) -> Vec<char> {
    let mut normal = vec![' '];
    for c in text.chars() {
        let c = match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
            c => c,
        };
        for c in c.to_lowercase() {
            let last = normal.last().copied();
            match c {
                'ё' => normal.push('е'),
                // A combining breve after и is й; other marks are dropped.
                '\u{306}' if last == Some('и') => {
                    normal.pop();
                    normal.push('й');
                }
                '\u{300}'..='\u{36f}' => {}
                '\'' | '’' => {}
                c if c.is_numeric() => {
                    if last != Some('#') {
                        normal.push('#');
                    }
                }
                // What is asked differs from what is ordered in little else.
                '?' => normal.push('?'),
                c if c.is_alphabetic() => normal.push(c),
                _ => {
                    if last != Some(' ') {
                        normal.push(' ');
                    }
                }
            }
        }
    }
    if normal.last() != Some(&' ') {
        normal.push(' ');
    }
    normal
}

/// In how many texts of a collection each n-gram occurs; rare ones weigh more.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    texts: u32,
    found_in: FxHashMap<u64, u32>,
}

impl Weights {
    /// Of a collection.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a Grams>) -> Self {
        let mut weights = Self::default();
        for grams in texts {
            weights.add(grams);
        }
        weights
    }

    /// Adds a text to the collection.
    pub(super) fn add(&mut self, grams: &Grams) {
        self.texts += 1;
        for gram in grams.iter() {
            *self.found_in.entry(gram).or_insert(0) += 1;
        }
    }

    /// Inverse document frequency, smoothed: never 0.
    pub(super) fn weight(&self, gram: u64) -> f64 {
        let found_in = self.found_in.get(&gram).copied().unwrap_or(0);
        (f64::from(self.texts + 1) / f64::from(found_in + 1)).ln() + 0.1
    }

    /// Cosine of two texts, 0 to 1; n-grams of `without` do not count in `b`.
    pub(super) fn cosine(&self, a: &Grams, b: &Grams, without: &[Grams]) -> f64 {
        let counts = |gram: u64| {
            !without
                .iter()
                .any(|w| w.contains(gram) && !a.contains(gram))
        };
        let mut common = 0.0;
        let mut length_a = 0.0;
        for gram in a.iter() {
            let weight = self.weight(gram).powi(2);
            length_a += weight;
            if b.contains(gram) {
                common += weight;
            }
        }
        let length_b: f64 = b
            .iter()
            .filter(|gram| counts(*gram))
            .map(|gram| self.weight(gram).powi(2))
            .sum();
        if common == 0.0 {
            return 0.0;
        }
        common / (length_a * length_b).sqrt()
    }

    /// The share of `part`'s weight that `whole` contains, 0 to 1.
    pub(super) fn containment(&self, part: &Grams, whole: &Grams) -> f64 {
        let (mut found, mut all) = (0.0, 0.0);
        for gram in part.iter() {
            let weight = self.weight(gram);
            all += weight;
            if whole.contains(gram) {
                found += weight;
            }
        }
        if all == 0.0 { 0.0 } else { found / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_forms() {
        for (text, expected) in [
            ("Turn ON the light!", " turn on the light "),
            ("don't — 45.5%", " dont # # "),
            ("Включи ЁЛКУ, мой", " включи елку мой "),
            ("мои\u{306}？", " мой? "),
            ("把客厅灯调到５０％", " 把客厅灯调到# "),
            ("", " "),
        ] {
            assert_eq!(normal(text).into_iter().collect::<String>(), expected);
        }
    }

    #[test]
    fn alike_and_not() {
        let texts = [
            "turn on the",
            "turn off the",
            "включи",
            "выключи",
            "打开",
            "关闭",
            "is it on",
        ]
        .map(Grams::of);
        let weights = Weights::of(texts.iter());
        for (request, best) in [
            ("Turn on the lamp", 0),
            ("please turn off the lamp", 1),
            ("Включи лампу", 2),
            ("выключи лампу", 3),
            ("请打开客厅的灯", 4),
            ("把灯关闭", 5),
        ] {
            let request_grams = Grams::of(request);
            let score = |at: usize| weights.cosine(&texts[at], &request_grams, &[]);
            let found = (0..texts.len()).max_by(|a, b| score(*a).total_cmp(&score(*b)));
            assert_eq!(found, Some(best), "{request}");
        }
        let light = Grams::of("кухонный свет");
        assert!((weights.cosine(&light, &light, &[]) - 1.0).abs() < 1e-9);
        assert!(
            (weights.containment(&light, &Grams::of("включи кухонный свет")) - 1.0).abs() < 0.2
        );
        assert!(weights.containment(&light, &Grams::of("打开")).abs() < 1e-9);
    }

    proptest::proptest! {
        #[test]
        fn scores_are_shares(a: String, b: String) {
            let (a, b) = (Grams::of(&a), Grams::of(&b));
            let weights = Weights::of([&a, &b].into_iter());
            for score in [weights.cosine(&a, &b, &[]), weights.containment(&a, &b)] {
                proptest::prop_assert!((0.0..=1.0 + 1e-9).contains(&score), "{}", score);
            }
        }
    }
}
