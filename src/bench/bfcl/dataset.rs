//! Questions and answers, read from the folder of the Python package `bfcl-eval`.

use super::json;
use super::value::Value;
use crate::files;
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A single-turn category of the Berkeley leaderboard's version 4, for Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// One function, one call.
    Simple,
    /// Several functions, one call.
    Multiple,
    /// One function, several calls.
    Parallel,
    /// Several functions, several calls.
    ParallelMultiple,
    /// No function fits: no call.
    Irrelevance,
    /// As simple, asked by people.
    LiveSimple,
    /// As multiple, asked by people.
    LiveMultiple,
    /// As parallel, asked by people.
    LiveParallel,
    /// As parallel multiple, asked by people.
    LiveParallelMultiple,
    /// As irrelevance, asked by people.
    LiveIrrelevance,
    /// A function fits: some call, whichever.
    LiveRelevance,
}

impl Category {
    /// Every category, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Simple,
        Self::Multiple,
        Self::Parallel,
        Self::ParallelMultiple,
        Self::Irrelevance,
        Self::LiveSimple,
        Self::LiveMultiple,
        Self::LiveParallel,
        Self::LiveParallelMultiple,
        Self::LiveIrrelevance,
        Self::LiveRelevance,
    ];

    /// The leaderboard's name, which its files and ids have.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple_python",
            Self::Multiple => "multiple",
            Self::Parallel => "parallel",
            Self::ParallelMultiple => "parallel_multiple",
            Self::Irrelevance => "irrelevance",
            Self::LiveSimple => "live_simple",
            Self::LiveMultiple => "live_multiple",
            Self::LiveParallel => "live_parallel",
            Self::LiveParallelMultiple => "live_parallel_multiple",
            Self::LiveIrrelevance => "live_irrelevance",
            Self::LiveRelevance => "live_relevance",
        }
    }

    /// The category of that name; `simple` will do for `simple_python`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "simple" {
            "simple_python"
        } else {
            name
        };
        Self::ALL
            .into_iter()
            .find(|category| category.name() == name)
    }

    /// The category that a question's id begins with: `live_multiple_3-2-0`.
    pub fn of_id(id: &str) -> Option<Self> {
        let (name, number) = id.rsplit_once('_')?;
        let is_number = number.starts_with(|c: char| c.is_ascii_digit());
        Self::from_name(name).filter(|_| is_number)
    }

    /// Whether several calls are expected.
    pub fn is_parallel(self) -> bool {
        matches!(
            self,
            Self::Parallel
                | Self::ParallelMultiple
                | Self::LiveParallel
                | Self::LiveParallelMultiple
        )
    }

    /// Whether there are answers to compare with; the others ask only whether there is a call.
    pub fn has_answers(self) -> bool {
        !matches!(
            self,
            Self::Irrelevance | Self::LiveIrrelevance | Self::LiveRelevance
        )
    }
}

/// A function that a question offers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Function {
    /// Its name, dots included.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// Its parameters in the leaderboard's own kind of schema.
    pub parameters: Json,
}

/// Who says something in a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// Standing instructions.
    System,
    /// The person.
    User,
    /// The model, earlier.
    Assistant,
}

/// Something said in a question.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Said {
    /// By whom.
    pub role: Speaker,
    /// What.
    pub content: String,
}

/// A question with its answers.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// Its category, which the id begins with.
    pub category: Category,
    /// The conversation; its last message is the request.
    pub messages: Vec<Said>,
    /// The functions offered.
    pub functions: Vec<Function>,
    /// The calls that are right, each `{name: {parameter: [value, …]}}`; none where only the
    /// presence of a call counts.
    pub answers: Vec<Value>,
}

impl Question {
    /// What the person asks for: the last thing they say.
    pub fn request(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .find(|said| said.role == Speaker::User)
            .map_or("", |said| &said.content)
    }
}

/// Why the questions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The folder has no such file.
    #[error("{}: no folder of bfcl-eval: there is no BFCL_v4_{name}.json in it", folder.display())]
    NotThere {
        /// The folder.
        folder: PathBuf,
        /// The category.
        name: &'static str,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// A file is larger than [`LARGEST`] bytes.
    #[error("{}: more than {LARGEST} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line is not a question or an answer.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

/// Bytes of the largest file that is read. The package's largest has 6 MB.
pub const LARGEST: u64 = 64 << 20;

/// Reads the questions of these categories, in their files' order. `folder` is the package's
/// `data`, the package, or what it was unpacked into.
///
/// # Errors
/// [`DatasetError`].
pub fn read(folder: &Path, categories: &[Category]) -> Result<Vec<Question>, DatasetError> {
    let mut questions = Vec::new();
    for &category in categories {
        let name = format!("BFCL_v4_{}.json", category.name());
        let data = ["", "data", "bfcl_eval/data"]
            .into_iter()
            .map(|inner| folder.join(inner))
            .find(|data| data.join(&name).is_file())
            .ok_or_else(|| DatasetError::NotThere {
                folder: folder.to_owned(),
                name: category.name(),
            })?;
        let mut answers = if category.has_answers() {
            read_answers(&data.join("possible_answer").join(&name))?
        } else {
            HashMap::new()
        };
        let path = data.join(&name);
        for (line, text) in lines(&text_of(&path)?) {
            let wrong = |message: String| DatasetError::Line {
                path: path.clone(),
                line,
                message,
            };
            let read: RawQuestion =
                serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
            if Category::of_id(&read.id) != Some(category) {
                return Err(wrong(format!(
                    "the id {:?} is of another category",
                    read.id
                )));
            }
            let answers = match answers.remove(&read.id) {
                Some(answers) => answers,
                None if category.has_answers() => {
                    return Err(wrong(format!("there is no answer to {:?}", read.id)));
                }
                None => Vec::new(),
            };
            let messages: Vec<Said> = read.question.into_iter().flatten().collect();
            if !messages.iter().any(|said| said.role == Speaker::User) {
                return Err(wrong(format!("{:?} asks nothing", read.id)));
            }
            questions.push(Question {
                id: read.id,
                category,
                messages,
                functions: read.function,
                answers,
            });
        }
    }
    Ok(questions)
}

#[derive(Deserialize)]
struct RawQuestion {
    id: String,
    /// Turns of messages; these categories have one turn.
    question: Vec<Vec<Said>>,
    function: Vec<Function>,
}

fn read_answers(path: &Path) -> Result<HashMap<String, Vec<Value>>, DatasetError> {
    let mut answers = HashMap::new();
    for (line, text) in lines(&text_of(path)?) {
        let wrong = |message: String| DatasetError::Line {
            path: path.to_owned(),
            line,
            message,
        };
        let value = json::read(text).map_err(|error| wrong(error.to_string()))?;
        let id = value.get("id").and_then(Value::as_str);
        let calls = value.get("ground_truth").and_then(Value::as_list);
        let (Some(id), Some(calls)) = (id, calls) else {
            return Err(wrong("an answer has `id` and `ground_truth`".to_owned()));
        };
        answers.insert(id.to_owned(), calls.to_vec());
    }
    Ok(answers)
}

/// The lines that are not blank, numbered from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim().is_empty())
}

fn text_of(path: &Path) -> Result<String, DatasetError> {
    files::text_of(fs_err::File::open(path)?, LARGEST)?.ok_or_else(|| DatasetError::TooLarge {
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_the_category() {
        for (id, category) in [
            ("simple_python_12", Some(Category::Simple)),
            ("multiple_0", Some(Category::Multiple)),
            ("live_multiple_3-2-0", Some(Category::LiveMultiple)),
            (
                "live_parallel_multiple_0-0-0",
                Some(Category::LiveParallelMultiple),
            ),
            ("parallel_multiple_7", Some(Category::ParallelMultiple)),
            ("simple_java_1", None),
            ("multiple_x", None),
            ("multiple", None),
            ("", None),
        ] {
            assert_eq!(Category::of_id(id), category, "{id}");
        }
        for category in Category::ALL {
            assert_eq!(Category::from_name(category.name()), Some(category));
        }
    }

    fn folder(question: &str, answer: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("bfcl_eval/data");
        fs_err::create_dir_all(data.join("possible_answer")).unwrap();
        let name = "BFCL_v4_multiple.json";
        fs_err::write(data.join(name), question).unwrap();
        fs_err::write(data.join("possible_answer").join(name), answer).unwrap();
        folder
    }

    const QUESTION: &str = r#"{"id": "multiple_0", "question": [[{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]], "function": [{"name": "f.g", "description": "d", "parameters": {"type": "dict", "properties": {}, "required": []}}]}"#;
    const ANSWER: &str = r#"{"id": "multiple_0", "ground_truth": [{"f.g": {}}]}"#;

    #[test]
    fn a_package_is_read_from_any_of_its_folders() {
        let made = folder(QUESTION, ANSWER);
        for inner in ["", "bfcl_eval", "bfcl_eval/data"] {
            let read = read(&made.path().join(inner), &[Category::Multiple]).unwrap();
            assert_eq!(read.len(), 1);
            assert_eq!(read[0].request(), "u");
            assert_eq!(read[0].answers.len(), 1);
        }
    }

    #[test]
    fn what_is_wrong_has_its_file_and_line() {
        let cases = [
            (
                QUESTION.replace("multiple_0", "parallel_0"),
                ANSWER.to_owned(),
                "multiple.json:1: the id \"parallel_0\" is of another category",
            ),
            (
                format!("\n{{\n{QUESTION}"),
                ANSWER.to_owned(),
                "multiple.json:2: EOF",
            ),
            (
                QUESTION.to_owned(),
                String::new(),
                "multiple.json:1: there is no answer to \"multiple_0\"",
            ),
            (
                QUESTION.to_owned(),
                "{\"id\": 1}".to_owned(),
                "multiple.json:1: an answer has `id` and `ground_truth`",
            ),
            (
                QUESTION.replace("\"user\"", "\"system\""),
                ANSWER.to_owned(),
                "\"multiple_0\" asks nothing",
            ),
        ];
        for (question, answer, says) in cases {
            let made = folder(&question, &answer);
            let error = read(made.path(), &[Category::Multiple])
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
            let error = read(made.path(), &[Category::Simple])
                .unwrap_err()
                .to_string();
            assert!(error.contains("no BFCL_v4_simple_python.json"), "{error}");
        }
    }
}
