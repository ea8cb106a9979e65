//! "Did you mean": the nearest of some names.

/// The candidate that is nearest to `name`, where one is near enough to be what was meant: at most
/// a third of its characters changed (Levenshtein's distance).
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let name: Vec<char> = name.chars().take(64).collect();
    candidates
        .into_iter()
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(distance, candidate)| distance * 3 <= candidate.chars().count().max(name.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Fewest insertions, deletions and replacements of a character that turn one text into the other.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["temperature", "top_p", "кухня"];
        for (name, expected) in [
            ("tempature", Some("temperature")),
            ("topp", Some("top_p")),
            ("кухна", Some("кухня")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names).as_deref(), expected, "{name:?}");
        }
    }
}
