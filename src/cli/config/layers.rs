//! Where settings come from, the nearest first: flags, the environment, `snaffle.toml` of the
//! project, `snaffle.toml` of the user, defaults.
//!
//! A value replaces the one of a farther layer whole, lists too; only the permissions of `policy`
//! are joined tool by tool.

use super::ConfigError;
use super::file::{self, FILE_NAME};
use super::kind::Kind;
use super::registry::{SETTINGS, Setting};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;

/// What the program was started in. Passed in, so that a test can set it.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The current folder.
    pub folder: PathBuf,
    /// The environment's variables.
    pub variables: BTreeMap<String, String>,
}

impl Surroundings {
    /// Those of this process. Variables that are no Unicode are left out.
    ///
    /// # Errors
    /// Where the current folder does not exist any more.
    pub fn of_process() -> std::io::Result<Self> {
        Ok(Self {
            folder: std::env::current_dir()?,
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
        })
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The user's folder for settings of this program.
    pub fn user_config(&self) -> Option<PathBuf> {
        self.user_folder("XDG_CONFIG_HOME", "APPDATA", ".config")
    }

    /// The user's folder for data of this program.
    pub fn user_data(&self) -> Option<PathBuf> {
        self.user_folder("XDG_DATA_HOME", "LOCALAPPDATA", ".local/share")
    }

    fn user_folder(&self, unix: &str, windows: &str, in_home: &str) -> Option<PathBuf> {
        self.variable(unix)
            .or_else(|| self.variable(windows))
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| Some(Path::new(self.variable("HOME")?).join(in_home)))
            .map(|folder| folder.join("snaffle"))
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Built in.
    Default,
    /// A settings file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// A setting's value and where it comes from; no value where it is not set.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The setting.
    pub setting: &'static Setting,
    /// Its value.
    pub value: Option<Value>,
    /// Where it comes from.
    pub source: Source,
}

/// All settings, in the registry's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    values: Vec<Resolved>,
    project: Option<PathBuf>,
}

impl Layers {
    /// Reads all layers. `flags` are the settings given on the command line, as text; `file`, where
    /// given, is read instead of both settings files.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn read(
        surroundings: &Surroundings,
        file: Option<&Path>,
        flags: &[(&'static Setting, String)],
    ) -> Result<Self, ConfigError> {
        let mut layers = Self::defaults()?;
        let project = match file {
            Some(path) => Some(path.to_owned()),
            None => {
                let user = surroundings
                    .user_config()
                    .map(|folder| folder.join(FILE_NAME))
                    .filter(|path| path.is_file());
                if let Some(user) = user {
                    layers.add_file(&user)?;
                }
                file::nearest_ancestor(&surroundings.folder)
            }
        };
        if let Some(project) = &project {
            layers.add_file(project)?;
        }
        layers.project = project;
        for setting in SETTINGS {
            let variable = setting.variable();
            if let Some(text) = surroundings.variable(&variable) {
                let value = setting.kind.parse(text, Path::new("")).map_err(|message| {
                    ConfigError::Value {
                        place: variable.clone(),
                        message,
                    }
                })?;
                layers.set(setting.name, value, Source::Environment { variable });
            }
        }
        for (setting, text) in flags {
            let value =
                setting
                    .kind
                    .parse(text, Path::new(""))
                    .map_err(|message| ConfigError::Value {
                        place: format!("--{}", setting.flag()),
                        message,
                    })?;
            layers.set(setting.name, value, Source::Flag);
        }
        Ok(layers)
    }

    /// The defaults alone.
    fn defaults() -> Result<Self, ConfigError> {
        let mut values = Vec::with_capacity(SETTINGS.len());
        for setting in SETTINGS {
            let value = match setting.default {
                None => None,
                Some(text) => Some(setting.kind.parse(text, Path::new("")).map_err(|message| {
                    ConfigError::Value {
                        place: setting.name.to_owned(),
                        message,
                    }
                })?),
            };
            values.push(Resolved {
                setting,
                value,
                source: Source::Default,
            });
        }
        Ok(Self {
            values,
            project: None,
        })
    }

    fn add_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        for (name, value, line) in file::read(path)? {
            let path = path.to_owned();
            self.set(name, value, Source::File { path, line });
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: Value, source: Source) {
        let Some(resolved) = self
            .values
            .iter_mut()
            .find(|resolved| resolved.setting.name == name)
        else {
            return;
        };
        let repeated = resolved.source == Source::Flag && source == Source::Flag;
        resolved.value = Some(match (resolved.value.take(), value) {
            (Some(Value::Table(mut old)), Value::Table(new))
                if resolved.setting.kind == Kind::Permissions =>
            {
                old.extend(new);
                Value::Table(old)
            }
            (Some(Value::Array(mut old)), Value::Array(new)) if repeated => {
                old.extend(new);
                Value::Array(old)
            }
            (_, new) => new,
        });
        resolved.source = source;
    }

    /// Each setting, in the registry's order.
    pub fn iter(&self) -> impl Iterator<Item = &Resolved> {
        self.values.iter()
    }

    /// The project's settings file, where there is one.
    pub fn project_file(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// The values that are set, as one table.
    pub fn table(&self) -> toml::Table {
        self.values
            .iter()
            .filter_map(|resolved| {
                Some((resolved.setting.name.to_owned(), resolved.value.clone()?))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::registry::find;

    fn shown(layers: &Layers, name: &str) -> String {
        let resolved = layers.iter().find(|r| r.setting.name == name).unwrap();
        let value = resolved.value.as_ref().map(ToString::to_string);
        format!("{} from {}", value.unwrap_or_default(), resolved.source)
    }

    #[test]
    fn the_nearest_layer_wins() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) = (folder.path().join("user"), folder.path().join("project"));
        let inner = project.join("a/b");
        for dir in [&user.join("snaffle"), &inner] {
            fs_err::create_dir_all(dir).unwrap();
        }
        let user_file = user.join("snaffle/snaffle.toml");
        let text = "seed = 1\nmax_turns = 1\ntop_p = 0.1\nthreads = 1\n[policy]\na = \"deny\"\nb = \"ask\"\n";
        fs_err::write(&user_file, text).unwrap();
        let project_file = project.join("snaffle.toml");
        let text =
            "seed = 2\nmax_turns = 2\ntop_p = 0.2\nhouse = \"h.toml\"\n[policy]\na = \"allow\"\n";
        fs_err::write(&project_file, text).unwrap();
        let surroundings = Surroundings {
            folder: inner,
            variables: BTreeMap::from([
                ("XDG_CONFIG_HOME".to_owned(), user.display().to_string()),
                ("SNAFFLE_SEED".to_owned(), "3".to_owned()),
                ("SNAFFLE_MAX_TURNS".to_owned(), "3".to_owned()),
                ("SNAFFLE_THREADS".to_owned(), String::new()),
            ]),
        };
        let flags = [
            (find("seed").unwrap(), "4".to_owned()),
            (find("tools").unwrap(), "x".to_owned()),
            (find("tools").unwrap(), "y".to_owned()),
        ];
        let layers = Layers::read(&surroundings, None, &flags).unwrap();
        let (user_file, project_file) = (user_file.display(), project_file.display());
        let house = project.join("h.toml");
        for (name, expected) in [
            ("seed", "4 from command line".to_owned()),
            ("max_turns", "3 from SNAFFLE_MAX_TURNS".to_owned()),
            ("top_p", format!("0.2 from {project_file}:3")),
            ("threads", format!("1 from {user_file}:4")),
            ("context", "0 from default".to_owned()),
            (
                "house",
                format!("\"{}\" from {project_file}:4", house.display()),
            ),
            ("tools", "[\"x\", \"y\"] from command line".to_owned()),
            (
                "policy",
                format!("{{ a = \"allow\", b = \"ask\" }} from {project_file}:5"),
            ),
        ] {
            assert_eq!(shown(&layers, name), expected);
        }
    }

    #[test]
    fn wrong_values_name_their_place() {
        let surroundings = Surroundings {
            variables: BTreeMap::from([("SNAFFLE_SEED".to_owned(), "x".to_owned())]),
            ..Surroundings::default()
        };
        let error = Layers::read(&surroundings, None, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "SNAFFLE_SEED is not a whole number: \"x\""
        );
        let flags = [(find("top_p").unwrap(), "2".to_owned())];
        let error = Layers::read(&Surroundings::default(), None, &flags).unwrap_err();
        assert_eq!(error.to_string(), "--top-p is 2; it wants number, 0 to 1");
        let missing = Path::new("no/such.toml");
        let error = Layers::read(&Surroundings::default(), Some(missing), &[]).unwrap_err();
        assert!(error.to_string().contains("no/such.toml"), "{error}");
    }
}
