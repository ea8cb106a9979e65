//! From what a user writes after `--model` to a file.

use super::manifest::{Entry, Manifest};
use super::shown::shown;
use std::path::{Path, PathBuf};

/// A model file that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The file.
    pub path: PathBuf,
    /// What the manifest says of it, where it is one of its models.
    pub entry: Option<Entry>,
}

/// Why there is no such file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LocateError {
    /// The manifest knows it, but it was not fetched.
    #[error("the model {name} is not there yet ({})", path.display())]
    NotFetched {
        /// Its name.
        name: String,
        /// Where it belongs.
        path: PathBuf,
    },
    /// There is no such file.
    #[error("no model file {}", path.display())]
    NoFile {
        /// What was asked for.
        path: PathBuf,
    },
    /// Neither a name in the manifest nor a file.
    #[error("no model \"{name}\"; known ones: {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names in the manifest.
        known: Vec<String>,
    },
    /// No model was named, and the manifest has no default.
    #[error("no model was named, and the manifest has no default")]
    NoDefault,
}

impl LocateError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFetched { name, .. } => Some(format!("snaffle model pull {name}")),
            Self::Unknown { .. } | Self::NoDefault => Some("snaffle model list".to_owned()),
            Self::NoFile { .. } => None,
        }
    }
}

/// The file that `model` means: the path of a GGUF file, or a name in the manifest, whose file is
/// in `folder`. `None` means the manifest's default.
///
/// # Errors
/// [`LocateError`], with a [`hint`](LocateError::hint).
pub fn locate(
    model: Option<&str>,
    folder: &Path,
    manifest: &Manifest,
) -> Result<Located, LocateError> {
    let entry = match model {
        None => Some(manifest.default_model().ok_or(LocateError::NoDefault)?),
        Some(name) => manifest.get(name),
    };
    if let Some(entry) = entry {
        let path = folder.join(&entry.file);
        return if path.is_file() {
            Ok(Located {
                path,
                entry: Some(entry.clone()),
            })
        } else {
            Err(LocateError::NotFetched {
                name: entry.name.clone(),
                path,
            })
        };
    }
    let name = model.unwrap_or_default();
    let path = PathBuf::from(name);
    if path.exists() {
        let file = path.file_name().and_then(|file| file.to_str());
        let size = path.metadata().map(|data| data.len()).ok();
        let known = manifest
            .models()
            .iter()
            .find(|entry| Some(entry.file.as_str()) == file && Some(entry.size) == size);
        return Ok(Located {
            entry: known.cloned(),
            path,
        });
    }
    let is_path = name.contains(std::path::is_separator)
        || path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
    Err(if is_path {
        LocateError::NoFile { path }
    } else {
        LocateError::Unknown {
            name: shown(name, 60),
            known: manifest
                .models()
                .iter()
                .map(|entry| entry.name.clone())
                .collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_paths_and_neither() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = Manifest::built_in().unwrap();
        let find = |model: Option<&str>| locate(model, folder.path(), &manifest);
        let default = manifest.default_model().unwrap();
        let path = folder.path().join(&default.file);

        let missing = find(None).unwrap_err();
        assert_eq!(
            missing.hint().unwrap(),
            format!("snaffle model pull {}", default.name)
        );
        std::fs::write(&path, "x").unwrap();
        let there = Located {
            path: path.clone(),
            entry: Some(default.clone()),
        };
        assert_eq!(find(None), Ok(there.clone()));
        assert_eq!(find(Some("SMOLLM2-135m")), Ok(there));
        // A path: of another size, hence not the manifest's.
        let found = find(path.to_str()).unwrap();
        assert_eq!((found.path, found.entry), (path, None));
        for (name, expected) in [
            ("models/none.gguf", "no model file models/none.gguf"),
            ("none.GGUF", "no model file none.GGUF"),
            (
                "gpt-9",
                "no model \"gpt-9\"; known ones: smollm2-135m, gemma3-270m",
            ),
        ] {
            let message = find(Some(name)).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
