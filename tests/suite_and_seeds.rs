//! No seed example is a request of a benchmark in disguise: with names and numbers masked out, none
//! of them is alike.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failing helper fails its test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use snaffle::bench::overlap::plain;
use snaffle::bench::steps::{Kind, Plan};
use snaffle::bench::suite;
use snaffle::tool::home::HouseFile;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// What stands for a name or a hole: a letter that no text has.
const MASK: &str = "ꙮ";

/// `text` with every name as [`MASK`], longest names first.
fn masked(text: &str, names: &[String]) -> String {
    let mut text = text.to_lowercase();
    let mut names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names.iter().filter(|name| !name.is_empty()) {
        text = text.replace(name, MASK);
    }
    plain(&text)
}

/// `text` with every hole as [`MASK`].
fn holes_masked(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, next)) = after.split_once('}') else {
            break;
        };
        masked.push_str(before);
        masked.push_str(MASK);
        rest = next;
    }
    masked.push_str(rest);
    plain(&masked)
}

fn seeds() -> BTreeMap<String, String> {
    let mut seeds = BTreeMap::new();
    for file in files(&root().join("fewshot"), "jsonl") {
        for line in fs::read_to_string(&file)
            .unwrap()
            .lines()
            .filter(|line| !line.is_empty())
        {
            let seed: Value = serde_json::from_str(line).unwrap();
            let request = seed["request"].as_str().unwrap().to_owned();
            seeds.insert(holes_masked(&request), request);
        }
    }
    assert!(seeds.len() > 200, "only {} seeds were read", seeds.len());
    seeds
}

#[test]
fn no_seed_is_a_request_of_the_suite() {
    let seeds = seeds();
    let text = fs::read_to_string(root().join("benches/suites/home.jsonl")).unwrap();
    let mut alike = Vec::new();
    for request in suite::read(&text).unwrap() {
        let path = root().join(format!("examples/houses/{}.toml", request.house));
        let house = HouseFile::open(path).unwrap().house().unwrap();
        let devices = house.devices.iter().map(|device| device.id.clone());
        let names: Vec<String> = devices
            .chain(house.areas.iter().map(|area| area.id.clone()))
            .collect();
        if let Some(seed) = seeds.get(&masked(&request.request, &names)) {
            alike.push(format!(
                "{}: {:?} is alike the seed {seed:?}",
                request.id, request.request
            ));
        }
    }
    assert!(alike.is_empty(), "{}", alike.join("\n"));
}

#[test]
fn no_seed_is_a_public_request() {
    let data = std::env::var_os("SNAFFLE_TEST_DATA")
        .map_or_else(|| root().join("../shared/data"), PathBuf::from)
        .join("home-assist");
    if !data.is_dir() {
        println!(
            "skipped: {} is not here (SNAFFLE_TEST_DATA names the folder)",
            data.display()
        );
        return;
    }
    let seeds = seeds();
    let mut read = 0;
    let mut alike = Vec::new();
    for house in fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if !house.is_dir() {
            continue;
        }
        let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let fixtures = fs::read_to_string(house.join("_fixtures.yaml")).unwrap();
        let names: Vec<String> = fixtures
            .lines()
            .filter_map(|line| Some(unquoted(line.split_once("name:")?.1)))
            .collect();
        for file in files(&house, "yaml") {
            // The sentences are the plain items of the file's lists.
            for line in fs::read_to_string(&file).unwrap().lines() {
                let Some(item) = line.trim_start().strip_prefix("- ") else {
                    continue;
                };
                read += 1;
                if let Some(seed) = seeds.get(&masked(&unquoted(item), &names)) {
                    alike.push(format!("{item:?} is alike the seed {seed:?}"));
                }
            }
        }
    }
    assert!(read > 50, "only {read} public requests were read");
    assert!(alike.is_empty(), "{}", alike.join("\n"));
}

/// The examples of a step share neither names nor wording with the tasks of fifty steps.
#[test]
fn no_seed_is_a_step_of_a_generated_task() {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| word.chars().any(char::is_alphabetic));
        words.map(str::to_lowercase).collect()
    };
    let mut names = BTreeSet::new();
    let mut wordings = BTreeSet::new();
    for seed in 0..40 {
        let plan = Plan::new(seed, 0);
        for kind in Kind::ALL {
            names.extend(words(kind.argument()));
            names.extend(plan.values(kind).iter().flat_map(|value| words(value)));
        }
        for order in &plan.orders {
            names.extend(words(&order.customer));
        }
        let names: Vec<String> = names.iter().cloned().collect();
        for state in plan.definition().unwrap().states.values() {
            wordings.extend(state.purpose.as_deref().map(|text| masked(text, &names)));
        }
    }
    let tools: BTreeSet<&str> = Kind::ALL.into_iter().map(Kind::tool).collect();
    let text = fs::read_to_string(root().join("fewshot/steps.jsonl")).unwrap();
    let mut read = 0;
    for line in text.lines() {
        let seed: Value = serde_json::from_str(line).unwrap();
        let request = seed["request"].as_str().unwrap();
        let call = &seed["calls"][0];
        assert!(!tools.contains(call["tool"].as_str().unwrap()), "{line}");
        let shared: Vec<String> = words(request).intersection(&names).cloned().collect();
        assert!(shared.is_empty(), "{shared:?}: {line}");
        let own: Vec<String> = call["arguments"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(name, value)| [name.clone(), value.as_str().unwrap().to_owned()])
            .collect();
        let (_, wanted) = request.rsplit_once("Next: ").unwrap();
        assert!(!wordings.contains(&masked(wanted, &own)), "{line}");
        read += 1;
    }
    assert!(read >= 6, "only {read} steps were read");
}
