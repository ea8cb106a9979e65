//! The requests of home suites: the one that ships, and a person's own.

use super::error::Failure;
use super::input::read_text;
use crate::bench::suite::{Request, read};
use std::collections::BTreeMap;
use std::path::Path;

/// The suite that ships.
const SUITE: &str = include_str!("../../benches/suites/home.jsonl");

/// All requests of a file, or of the suite that ships.
///
/// # Errors
/// A file that cannot be read or is no suite.
pub fn read_suite(path: Option<&Path>) -> Result<Vec<Request>, Failure> {
    let (name, text) = match path {
        Some(path) => (path.display().to_string(), read_text(path)?),
        None => ("the suite that ships".to_owned(), SUITE.to_owned()),
    };
    read(&text).map_err(|error| Failure::input(format!("{name}: {error}")))
}

/// Every other request of each language and kind, to learn from, and the rest, to measure.
///
/// # Errors
/// Where nothing is left to measure.
pub fn halves(all: Vec<Request>) -> Result<(Vec<Request>, Vec<Request>), Failure> {
    let mut counts: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    let (mut lessons, mut measured) = (Vec::new(), Vec::new());
    for request in all {
        let count = counts
            .entry((request.lang.clone(), request.kind.name()))
            .or_default();
        *count += 1;
        if *count % 2 == 1 {
            lessons.push(request);
        } else {
            measured.push(request);
        }
    }
    if measured.is_empty() {
        return Err(
            Failure::input("no request is left to be measured after those that teach")
                .hint("learning needs two requests of a kind at least"),
        );
    }
    Ok((lessons, measured))
}

/// Those in a language, and of each language and kind the first `limit`.
///
/// # Errors
/// Where none is left.
pub fn pick(
    all: Vec<Request>,
    language: Option<&str>,
    limit: Option<usize>,
) -> Result<Vec<Request>, Failure> {
    let mut taken: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    let mut picked = Vec::new();
    for request in all {
        if language.is_some_and(|language| language != request.lang) {
            continue;
        }
        let count = taken
            .entry((request.lang.clone(), request.kind.name()))
            .or_default();
        *count += 1;
        if limit.is_none_or(|limit| *count <= limit) {
            picked.push(request);
        }
    }
    if picked.is_empty() {
        return Err(Failure::input("the suite has no such request"));
    }
    Ok(picked)
}
