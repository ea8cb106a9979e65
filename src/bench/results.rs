//! Result files of all suites, read back to be compared.

use super::bfcl::Category;
use super::interval::Share;
use super::mcnemar::Paired;
use super::record;
use serde_json::Value;
use std::collections::HashMap;

/// Steps of the longest task that is drawn.
const MOST_STEPS: usize = 10_000;

/// A run as a result file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRun {
    /// The suite.
    pub suite: String,
    /// The model, or `random logits`.
    pub model: String,
    /// What it did without.
    pub without: Vec<String>,
    /// The file's name, without its ending.
    pub file: String,
    /// Its requests, in order.
    pub items: Vec<Item>,
}

/// What is compared of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its id, and which of those with this id in the run it is.
    pub key: (String, usize),
    /// Its group.
    pub group: String,
    /// Whether it was right.
    pub right: bool,
    /// Number of calls; `None` where the file does not say.
    pub calls: Option<usize>,
    /// Tokens written; `None` where the file does not say.
    pub tokens: Option<f64>,
    /// Seconds; `None` where the file does not say.
    pub seconds: Option<f64>,
    /// How sure the model was, between 0 and 1.
    pub confidence: Option<f64>,
    /// Which step of its task it is, from 1; `None` where it is a task of its own.
    pub step: Option<usize>,
}

/// What is wrong with a result file.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// It is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is no result of a benchmark.
    #[error("no results of a benchmark: {0}")]
    Shape(String),
}

impl ResultRun {
    /// The name in tables and plots.
    pub fn label(&self) -> String {
        record::label(&self.model, &self.without)
    }

    /// Whether it shows what chance reaches.
    pub fn is_baseline(&self) -> bool {
        self.model == record::BASELINE
    }

    /// The share that is right among the items that `of` picks.
    pub fn share(&self, of: impl Fn(&Item) -> bool) -> Share {
        let mut share = Share::default();
        for item in self.items.iter().filter(|item| of(item)) {
            share.count(item.right);
        }
        share
    }

    /// A figure for each call, over the items for which both are known; `None` without a call.
    pub fn per_call(&self, figure: impl Fn(&Item) -> Option<f64>) -> Option<f64> {
        let mut sum = 0.0;
        let mut calls = 0;
        for item in &self.items {
            if let (Some(amount), Some(count)) = (figure(item), item.calls) {
                sum += amount;
                calls += count;
            }
        }
        (calls > 0).then(|| sum / calls as f64)
    }

    /// This run and another one on the requests that both have.
    pub fn paired(&self, other: &Self) -> Paired {
        let theirs: HashMap<&(String, usize), bool> = other
            .items
            .iter()
            .map(|item| (&item.key, item.right))
            .collect();
        let mut paired = Paired::default();
        for item in &self.items {
            if let Some(&right) = theirs.get(&item.key) {
                paired.count(item.right, right);
            }
        }
        paired
    }
}

/// Reads the runs of a result file; `file` is its name without its ending.
///
/// # Errors
/// [`ResultsError`].
pub fn read(file: &str, text: &str) -> Result<Vec<ResultRun>, ResultsError> {
    let value: Value = serde_json::from_str(text)?;
    let suite = value.get("suite").and_then(Value::as_str).unwrap_or("home");
    let run = |model: &str, without: Vec<String>, items: Vec<Item>| ResultRun {
        suite: suite.to_owned(),
        model: model.to_owned(),
        without,
        file: file.to_owned(),
        items,
    };
    if let Some(reports) = value.get("reports").and_then(Value::as_array) {
        return reports
            .iter()
            .map(|report| {
                let requests = member(report, "requests")?;
                let requests = requests
                    .as_array()
                    .ok_or_else(|| shape("`requests` is a list"))?;
                let model = member(report, "model")?.as_str().unwrap_or_default();
                let without = texts(report.get("without"));
                Ok(run(model, without, items(requests)?))
            })
            .collect();
    }
    if let Some(lines) = value.get("lines").and_then(Value::as_array) {
        return Ok(vec![run(file, Vec::new(), items(lines)?)]);
    }
    Err(shape("there is neither `reports` nor `lines`"))
}

fn shape(message: impl Into<String>) -> ResultsError {
    ResultsError::Shape(message.into())
}

fn member<'v>(value: &'v Value, name: &str) -> Result<&'v Value, ResultsError> {
    value
        .get(name)
        .ok_or_else(|| shape(format!("there is no `{name}`")))
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn items(requests: &[Value]) -> Result<Vec<Item>, ResultsError> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut items = Vec::with_capacity(requests.len());
    for request in requests {
        let id = member(request, "id")?
            .as_str()
            .ok_or_else(|| shape("an `id` is a text"))?;
        let right = request.get("right").or_else(|| request.get("valid"));
        let right = right
            .and_then(Value::as_bool)
            .ok_or_else(|| shape(format!("the request {id:?} has no `right`")))?;
        let count = seen.entry(id.to_owned()).or_default();
        let number = |name: &str| request.get(name).and_then(Value::as_f64);
        let tokens = match (number("forced"), number("chosen")) {
            (None, None) => None,
            (forced, chosen) => Some(forced.unwrap_or_default() + chosen.unwrap_or_default()),
        };
        items.push(Item {
            key: (id.to_owned(), *count),
            group: group(request, id),
            right,
            calls: request.get("calls").and_then(Value::as_array).map(Vec::len),
            tokens,
            seconds: number("seconds"),
            confidence: number("confidence").filter(|c| (0.0..=1.0).contains(c)),
            step: request
                .pointer("/step/number")
                .and_then(Value::as_u64)
                .and_then(|step| usize::try_from(step).ok())
                .filter(|step| (1..=MOST_STEPS).contains(step)),
        });
        *count += 1;
    }
    Ok(items)
}

/// The group that a request states; or its language and kind; or the leaderboard's category.
fn group(request: &Value, id: &str) -> String {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    match (text("group"), text("lang"), text("kind")) {
        (Some(group), ..) => group.to_owned(),
        (None, Some(language), Some(kind)) => format!("{language} {kind}"),
        (None, None, Some(kind)) => kind.to_owned(),
        _ => Category::of_id(id).map_or("all", Category::name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_kinds_of_result_files_are_read() {
        let ours = json!({"suite": "bfcl", "reports": [
            {"model": "m", "without": ["grammar"], "requests": [
                {"id": "a", "group": "g", "right": true, "calls": [1, 2], "forced": 3, "chosen": 1, "seconds": 0.5, "confidence": 0.9},
                {"id": "a", "group": "g", "right": false, "calls": []},
            ]},
        ]});
        let runs = read("f", &ours.to_string()).unwrap();
        assert_eq!(runs[0].label(), "m without grammar");
        assert_eq!(runs[0].items[1].key, ("a".to_owned(), 1));
        assert_eq!(runs[0].per_call(|item| item.tokens), Some(2.0));
        let home = json!({"reports": [{"model": "m", "requests": [
            {"id": "a", "lang": "en", "kind": "direct", "right": true}]}]});
        let runs = read("f", &home.to_string()).unwrap();
        assert_eq!(
            (runs[0].suite.as_str(), runs[0].items[0].group.as_str()),
            ("home", "en direct")
        );
        assert_eq!(runs[0].per_call(|item| item.seconds), None);
        let scored =
            json!({"suite": "bfcl", "lines": [{"id": "live_multiple_0-0-0", "valid": false}]});
        let runs = read("theirs", &scored.to_string()).unwrap();
        assert_eq!(
            (runs[0].model.as_str(), runs[0].items[0].group.as_str()),
            ("theirs", "live_multiple")
        );
    }

    #[test]
    fn what_is_no_result_is_said() {
        for (text, says) in [
            ("", "EOF"),
            ("[]", "neither `reports` nor `lines`"),
            ("{\"reports\": [{}]}", "there is no `requests`"),
            (
                "{\"reports\": [{\"requests\": 1, \"model\": \"m\"}]}",
                "`requests` is a list",
            ),
            (
                "{\"lines\": [{\"id\": \"a\"}]}",
                "the request \"a\" has no `right`",
            ),
            ("{\"lines\": [{\"id\": 1}]}", "an `id` is a text"),
        ] {
            let error = read("f", text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn runs_are_paired_by_request() {
        let run = |rights: &[(&str, bool)]| {
            let requests: Vec<Value> = rights
                .iter()
                .map(|(id, right)| json!({"id": id, "right": right}))
                .collect();
            let file = json!({"reports": [{"model": "m", "requests": requests}]});
            read("f", &file.to_string()).unwrap().remove(0)
        };
        let one = run(&[
            ("a", true),
            ("b", true),
            ("c", false),
            ("a", false),
            ("x", true),
        ]);
        let two = run(&[("a", true), ("a", true), ("b", false), ("c", false)]);
        assert_eq!(
            one.paired(&two),
            Paired {
                both: 1,
                first: 1,
                second: 1,
                neither: 1
            }
        );
    }
}
