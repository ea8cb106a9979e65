//! The data set's files: a folder a home, `_fixtures.yaml` with its inventory, and beside it files
//! of requests.

use crate::files;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A synthetic home.
#[derive(Clone, Debug, PartialEq)]
pub struct Home {
    /// Its folder's name.
    pub name: String,
    /// Its rooms.
    pub areas: Vec<Area>,
    /// What is in it.
    pub entities: Vec<Entity>,
}

/// A room.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Area {
    /// For people.
    pub name: String,
    /// For references.
    pub id: String,
}

/// Something that has a state.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Entity {
    /// For people.
    pub name: String,
    /// `domain.name`.
    pub id: String,
    /// The id of its room.
    #[serde(default)]
    pub area: Option<String>,
    /// Its state.
    #[serde(flatten)]
    pub condition: Condition,
}

/// A state and attributes, or a change of some of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Condition {
    /// The state, where it is stated.
    #[serde(default)]
    pub state: Option<Value>,
    /// The attributes that are stated.
    #[serde(default)]
    pub attributes: Map<String, Value>,
}

impl Condition {
    /// This one with what `change` states in place of what it stated.
    #[must_use]
    pub fn changed(&self, change: &Self) -> Self {
        let mut changed = self.clone();
        if change.state.is_some() {
            changed.state.clone_from(&change.state);
        }
        for (name, value) in &change.attributes {
            changed.attributes.insert(name.clone(), value.clone());
        }
        changed
    }
}

/// A request in a home.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `home/file/test.sentence`, both counted from 1.
    pub id: String,
    /// The home.
    pub home: Arc<Home>,
    /// The data set's own category.
    pub category: String,
    /// What is said.
    pub sentence: String,
    /// The device that it is said to, where that matters.
    pub context_device: Option<String>,
    /// What the home is like before, where it is not as in the inventory.
    pub setup: BTreeMap<String, Condition>,
    /// What has to be so afterwards; all else as before.
    pub expected: BTreeMap<String, Condition>,
    /// What does not matter afterwards: names of attributes, or `state`.
    pub ignored: BTreeMap<String, Vec<String>>,
}

/// Why the data set cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The folder holds no home.
    #[error("{}: there is no folder with a _fixtures.yaml in it", folder.display())]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// A file is larger than [`LARGEST`] bytes.
    #[error("{}: more than {LARGEST} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file is not what it should be.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

/// Bytes of the largest file that is read. The data set's largest has 12 kB.
pub const LARGEST: u64 = 1 << 20;

/// Reads every request of every home in `folder`, in the order of names.
///
/// # Errors
/// [`DatasetError`].
pub fn read(folder: &Path) -> Result<Vec<Case>, DatasetError> {
    let mut cases = Vec::new();
    let mut homes = 0;
    for home in sorted(folder)? {
        let fixtures = home.join("_fixtures.yaml");
        if !fixtures.is_file() {
            continue;
        }
        homes += 1;
        let name = file_name(&home);
        let inventory: Inventory = parse(&fixtures)?;
        let home_read = Arc::new(Home {
            name,
            areas: inventory.areas,
            entities: inventory.entities,
        });
        for path in sorted(&home)? {
            let is_requests =
                path.extension().is_some_and(|ending| ending == "yaml") && path != fixtures;
            if is_requests {
                cases.extend(requests(&home_read, &path)?);
            }
        }
    }
    if homes == 0 {
        return Err(DatasetError::Empty {
            folder: folder.to_owned(),
        });
    }
    Ok(cases)
}

fn requests(home: &Arc<Home>, path: &Path) -> Result<Vec<Case>, DatasetError> {
    let file: Requests = parse(path)?;
    let mut cases = Vec::new();
    for (at, test) in file.tests.into_iter().enumerate() {
        let stated = test.setup.keys().chain(test.expect_changes.keys());
        for id in stated {
            if !home.entities.iter().any(|entity| entity.id == *id) {
                return Err(DatasetError::File {
                    path: path.to_owned(),
                    message: format!("test {}: the home has no entity {id:?}", at + 1),
                });
            }
        }
        let ignored: BTreeMap<String, Vec<String>> = test
            .ignore_changes
            .into_iter()
            .map(|(id, names)| (id, names.into_names()))
            .collect();
        for (number, sentence) in test.sentences.into_iter().enumerate() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            cases.push(Case {
                id: format!("{}/{stem}/{}.{}", home.name, at + 1, number + 1),
                home: Arc::clone(home),
                category: file.category.clone(),
                sentence,
                context_device: test.context_device.clone(),
                setup: test.setup.clone(),
                expected: test.expect_changes.clone(),
                ignored: ignored.clone(),
            });
        }
    }
    Ok(cases)
}

#[derive(Deserialize)]
struct Inventory {
    #[serde(default)]
    areas: Vec<Area>,
    #[serde(default)]
    entities: Vec<Entity>,
}

#[derive(Deserialize)]
struct Requests {
    category: String,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    sentences: Vec<String>,
    #[serde(default)]
    context_device: Option<String>,
    #[serde(default)]
    setup: BTreeMap<String, Condition>,
    expect_changes: BTreeMap<String, Condition>,
    #[serde(default)]
    ignore_changes: BTreeMap<String, Ignored>,
}

/// A list of names, or a mapping whose keys are the names.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ignored {
    Names(Vec<String>),
    Members(BTreeMap<String, Value>),
}

impl Ignored {
    fn into_names(self) -> Vec<String> {
        match self {
            Self::Names(names) => names,
            Self::Members(members) => members.into_keys().collect(),
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, DatasetError> {
    let text = files::text_of(fs_err::File::open(path)?, LARGEST)?.ok_or_else(|| {
        DatasetError::TooLarge {
            path: path.to_owned(),
        }
    })?;
    serde_saphyr::from_str(&text).map_err(|error| DatasetError::File {
        path: path.to_owned(),
        message: error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    })
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let mut paths = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
