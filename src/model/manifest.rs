//! The manifest: which models are known by name, where they come from, and what they must hash to.

use crate::files;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of the longest manifest that is read.
const LONGEST: u64 = 1 << 20;

const BUILT_IN: &str = include_str!("../../models/models.toml");

/// The known models.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    models: Vec<Entry>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name to call it by.
    pub name: String,
    /// What people read.
    pub title: String,
    /// Its file's name in the folder of models.
    pub file: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// SHA-256 of the file, 64 hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The first digits of it, where only they are known.
    #[serde(default)]
    pub sha256_prefix: Option<String>,
    /// Licence, as its makers name it.
    pub licence: String,
    /// How messages become what it reads.
    #[serde(default)]
    pub template: TemplateSource,
    /// How it is asked to write calls.
    #[serde(default = "usual_dialect")]
    pub dialect: String,
    /// Strength of calibrated choice, where it was fitted.
    #[serde(default)]
    pub alpha: Option<f64>,
    /// How much likelier a call is taken to be than it finds it, where that was fitted.
    #[serde(default)]
    pub call_bias: Option<f64>,
    /// Most examples in a prompt that serve it, where that was measured.
    #[serde(default)]
    pub examples: Option<usize>,
    /// Whether it is used where none is named.
    #[serde(default)]
    pub default: bool,
    /// Where it can be fetched, best first.
    #[serde(default, rename = "source")]
    pub sources: Vec<Source>,
}

fn read(path: &Path) -> io::Result<String> {
    files::text_of(fs_err::File::open(path)?, LONGEST)?
        .ok_or_else(|| io::ErrorKind::FileTooLarge.into())
}

fn usual_dialect() -> String {
    "snaffle".to_owned()
}

/// How messages become what a model reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TemplateSource {
    /// By the template in the file; the plain layout where it has none.
    #[default]
    File,
    /// By the plain layout.
    Plain,
}

/// Where a file can be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// The model hub.
    Hub {
        /// `owner/name`.
        repo: String,
        /// The file's path in the repository.
        file: String,
        /// Branch, tag or commit.
        #[serde(default = "usual_revision")]
        revision: String,
    },
    /// Python packages that carry the file, in parts where there are several.
    Python {
        /// In order.
        parts: Vec<Part>,
    },
}

fn usual_revision() -> String {
    "main".to_owned()
}

/// A part of a file in a Python package.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Name of the package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Path inside the wheel.
    pub member: String,
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not TOML, or not of this form.
    #[error("{place}, line {line}: {message}")]
    Syntax {
        /// The file.
        place: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// An entry says something impossible.
    #[error("{place}: model \"{name}\": {message}")]
    Entry {
        /// The file.
        place: String,
        /// The model.
        name: String,
        /// What is wrong.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default, rename = "model")]
    models: Vec<Entry>,
}

impl Manifest {
    /// The one that ships.
    ///
    /// # Errors
    /// Only where it was damaged when this program was built.
    pub fn built_in() -> Result<Self, ManifestError> {
        Self::parse(BUILT_IN, "models/models.toml")
    }

    /// The one that ships, with the user's file, where there is one, read over it.
    ///
    /// # Errors
    /// [`ManifestError`] about the user's file.
    pub fn with_user_file(path: Option<&Path>) -> Result<Self, ManifestError> {
        let mut manifest = Self::built_in()?;
        let Some(path) = path else {
            return Ok(manifest);
        };
        let text = read(path).map_err(|source| ManifestError::Read {
            path: path.to_owned(),
            source,
        })?;
        let user = Self::parse(&text, &path.display().to_string())?;
        if user.models.iter().any(|entry| entry.default) {
            for entry in &mut manifest.models {
                entry.default = false;
            }
        }
        for entry in user.models {
            match manifest
                .models
                .iter_mut()
                .find(|known| known.name == entry.name)
            {
                Some(known) => *known = entry,
                None => manifest.models.push(entry),
            }
        }
        Ok(manifest)
    }

    /// Reads a manifest; `place` names it in errors.
    ///
    /// # Errors
    /// [`ManifestError`]: not TOML, an unknown key, or an entry that is impossible.
    pub fn parse(text: &str, place: &str) -> Result<Self, ManifestError> {
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            ManifestError::Syntax {
                place: place.to_owned(),
                line: 1 + text.as_bytes()[..start]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count(),
                message: super::shown::shown(error.message(), 300),
            }
        })?;
        let mut models: Vec<Entry> = Vec::new();
        for entry in raw.models {
            let check = entry.check().and_then(|()| {
                if models.iter().any(|known| known.name == entry.name) {
                    Err("is there twice".to_owned())
                } else if entry.default && models.iter().any(|known| known.default) {
                    Err("a second default".to_owned())
                } else {
                    Ok(())
                }
            });
            if let Err(message) = check {
                return Err(ManifestError::Entry {
                    place: place.to_owned(),
                    name: super::shown::shown(&entry.name, 60),
                    message,
                });
            }
            models.push(entry);
        }
        Ok(Self { models })
    }

    /// All models, in the file's order.
    pub fn models(&self) -> &[Entry] {
        &self.models
    }

    /// The model of that name, whatever its case.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.models
            .iter()
            .find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// The model that is used where none is named.
    pub fn default_model(&self) -> Option<&Entry> {
        self.models.iter().find(|entry| entry.default)
    }
}

impl Entry {
    /// The known digits of the SHA-256, lower case; all 64 where the whole hash is known.
    pub fn hash(&self) -> String {
        let digits = self.sha256.as_deref().or(self.sha256_prefix.as_deref());
        digits.unwrap_or_default().to_ascii_lowercase()
    }

    /// Whether the whole hash is known.
    pub fn whole_hash(&self) -> bool {
        self.sha256.is_some()
    }

    /// Names and paths must be what they seem: they become file names and program arguments.
    fn check(&self) -> Result<(), String> {
        let plain = |text: &str, more: &str| {
            !text.is_empty()
                && text.len() <= 200
                && !text.starts_with(['-', '.'])
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let path = |text: &str| text.split('/').all(|piece| plain(piece, "._- +()"));
        let hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
        if !plain(&self.name, "._-") {
            return Err("a name has letters, digits, '.', '_' and '-' only".to_owned());
        }
        if !plain(&self.file, "._- +()") || !self.file.ends_with(".gguf") {
            return Err("\"file\" must be a plain file name that ends in .gguf".to_owned());
        }
        match (&self.sha256, &self.sha256_prefix) {
            (Some(hash), None) if hash.len() == 64 && hex(hash) => {}
            (None, Some(hash)) if (8..64).contains(&hash.len()) && hex(hash) => {}
            _ => {
                return Err(
                    "needs \"sha256\" (64 hexadecimal digits) or \"sha256_prefix\" (8 or more)"
                        .to_owned(),
                );
            }
        }
        if self.size == 0 {
            return Err("\"size\" must not be 0".to_owned());
        }
        if self
            .alpha
            .is_some_and(|alpha| !(0.0..=4.0).contains(&alpha))
        {
            return Err("\"alpha\" must be from 0 to 4".to_owned());
        }
        if self
            .call_bias
            .is_some_and(|bias| !(-8.0..=8.0).contains(&bias))
        {
            return Err("\"call_bias\" must be from -8 to 8".to_owned());
        }
        if self.examples.is_some_and(|examples| examples > 3) {
            return Err("\"examples\" must be from 0 to 3".to_owned());
        }
        for source in &self.sources {
            let right = match source {
                Source::Hub {
                    repo,
                    file,
                    revision,
                } => repo.split('/').count() == 2 && path(repo) && path(file) && path(revision),
                Source::Python { parts } => {
                    !parts.is_empty()
                        && parts.iter().all(|part| {
                            plain(&part.package, "._-")
                                && plain(&part.version, ".+!_-")
                                && path(&part.member)
                        })
                }
            };
            if !right {
                return Err("a source has an impossible name, path or version".to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = r#"[[model]]
name = "mine"
title = "Mine"
file = "mine.gguf"
size = 10
sha256_prefix = "0123abcd"
licence = "MIT"
"#;

    #[test]
    fn ships_right() {
        let manifest = Manifest::built_in().unwrap();
        let default = manifest.default_model().unwrap();
        assert_eq!(default.name, "smollm2-135m");
        assert_eq!(manifest.get("SmolLM2-135M"), Some(default));
        assert_eq!(
            manifest.get("gemma3-270m").unwrap().template,
            TemplateSource::Plain
        );
        assert!(
            manifest
                .models()
                .iter()
                .all(|entry| !entry.sources.is_empty())
        );
    }

    #[test]
    fn errors_name_the_place() {
        for (text, expected) in [
            ("[[model]\n", "m.toml, line 1: "),
            ("\n[[model]]\nname = 3\n", "m.toml, line 3: invalid type"),
            (
                &format!("{ENTRY}colour = 1\n"),
                "m.toml, line 8: unknown field `colour`",
            ),
            ("[[model]]\nname = \"a\"\n", "missing field"),
            (&format!("{ENTRY}{ENTRY}"), "model \"mine\": is there twice"),
            (
                &ENTRY.replace("mine.gguf", "../mine.gguf"),
                "plain file name",
            ),
            (&ENTRY.replace("mine.gguf", ".mine.gguf"), "plain file name"),
            (&ENTRY.replace("0123abcd", "0123"), "sha256_prefix"),
            (&ENTRY.replace("0123abcd", "0123abcg"), "sha256_prefix"),
            (&ENTRY.replace("size = 10", "size = 0"), "must not be 0"),
            (&format!("{ENTRY}alpha = nan\n"), "from 0 to 4"),
            (&format!("{ENTRY}call_bias = 9.0\n"), "from -8 to 8"),
            (&format!("{ENTRY}examples = 4\n"), "from 0 to 3"),
            (
                &format!("{ENTRY}[[model.source]]\nkind = \"ftp\"\n"),
                "unknown variant `ftp`",
            ),
            (
                &format!(
                    "{ENTRY}[[model.source]]\nkind = \"hub\"\nrepo = \"../x\"\nfile = \"x\"\n"
                ),
                "impossible",
            ),
            (
                &format!(
                    "{ENTRY}[[model.source]]\nkind = \"python\"\nparts = [{{ package = \"--index\", version = \"1\", member = \"m\" }}]\n"
                ),
                "impossible",
            ),
            (
                &format!(
                    "{ENTRY}[[model.source]]\nkind = \"python\"\nparts = [{{ package = \"p\", version = \"1\", member = \"../m\" }}]\n"
                ),
                "impossible",
            ),
        ] {
            let message = Manifest::parse(text, "m.toml").expect_err(text).to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn a_users_file_is_read_over_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.toml");
        let other = ENTRY.replace("\"mine\"", "\"qwen3-4b\"");
        std::fs::write(&path, format!("{ENTRY}default = true\n{other}")).unwrap();
        let manifest = Manifest::with_user_file(Some(&path)).unwrap();
        assert_eq!(manifest.default_model().unwrap().name, "mine");
        assert_eq!(manifest.get("qwen3-4b").unwrap().size, 10);
        let count = Manifest::built_in().unwrap().models().len();
        assert_eq!(manifest.models().len(), count + 1);
        let missing = Manifest::with_user_file(Some(&folder.path().join("none.toml")));
        assert!(matches!(missing, Err(ManifestError::Read { .. })));
    }
}
