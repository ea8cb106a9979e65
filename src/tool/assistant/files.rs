//! `get_file_size`: of a file in a workspace folder, and of no other. The folder is held open as a
//! capability: no path of the model's leaves it, whatever links lie in it or are laid meanwhile.

use crate::call::{CheckedCall, Domains, Effect, ToolSpec};
use crate::tool::{Outcome, Tool, ToolError, text_argument};
use cap_std::fs::Dir;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// Files offered to the model, and folder entries looked at, at one turn.
const MOST_FILES: usize = 1_000;
const MOST_ENTRIES: usize = 20_000;

/// The workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot open the workspace: {source}", path.display())]
pub struct FilesError {
    /// The folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Tells how large a file is.
#[derive(Debug)]
pub struct GetFileSize {
    workspace: Dir,
    spec: ToolSpec,
}

impl GetFileSize {
    /// Files below the folder `workspace`.
    ///
    /// # Errors
    /// A folder that cannot be opened.
    pub fn new(workspace: impl AsRef<Path>) -> Result<Self, FilesError> {
        let path = workspace.as_ref();
        let workspace =
            Dir::open_ambient_dir(path, cap_std::ambient_authority()).map_err(|source| {
                FilesError {
                    path: path.to_owned(),
                    source,
                }
            })?;
        Ok(Self {
            workspace,
            spec: ToolSpec {
                name: "get_file_size".into(),
                description: "Tell the size of a file in bytes.".into(),
                parameters: json!({
                    "type": "object",
                    "properties": {"path": {"type": "string"}},
                    "required": ["path"],
                    "additionalProperties": false,
                }),
                effect: Effect::Read,
                idempotent: true,
            },
        })
    }

    /// Paths of files, shallow folders first, sorted within a folder. Hidden files, names that are
    /// not Unicode, and links that lead outside are left out; links to folders are not followed.
    fn files(&self) -> io::Result<Vec<String>> {
        let mut files = Vec::new();
        let mut folders = VecDeque::from([String::new()]);
        let mut seen = 0;
        while let Some(folder) = folders.pop_front() {
            let at = if folder.is_empty() { "." } else { &folder };
            let entries = match self.workspace.read_dir(at) {
                Ok(entries) => entries,
                Err(error) if folder.is_empty() => return Err(error),
                // A folder that is gone or closed to us holds nothing for us.
                Err(_) => continue,
            };
            let mut names: Vec<String> = entries
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .filter(|name| !name.starts_with('.') && !name.chars().any(char::is_control))
                .take(MOST_ENTRIES - seen)
                .collect();
            seen += names.len();
            names.sort_unstable();
            for name in names {
                let path = if folder.is_empty() {
                    name
                } else {
                    format!("{folder}/{name}")
                };
                let Ok(metadata) = self.workspace.symlink_metadata(&path) else {
                    continue;
                };
                if metadata.is_dir() {
                    folders.push_back(path);
                } else if self
                    .workspace
                    .metadata(&path)
                    .is_ok_and(|meta| meta.is_file())
                {
                    files.push(path);
                    if files.len() == MOST_FILES {
                        return Ok(files);
                    }
                }
            }
        }
        Ok(files)
    }
}

impl Tool for GetFileSize {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn domains(&self) -> Result<Domains, ToolError> {
        let files = self
            .files()
            .map_err(|error| ToolError::new(format!("the workspace: {error}")))?;
        let files = files.into_iter().map(Value::from).collect();
        Ok(Domains::from([("path".to_owned(), files)]))
    }

    fn run(&mut self, call: &CheckedCall) -> Result<Outcome, ToolError> {
        let path = text_argument(call, "path")?;
        let metadata = self
            .workspace
            .metadata(path)
            .map_err(|error| ToolError::new(format!("{path:?}: {error}")))?;
        if !metadata.is_file() {
            return Err(ToolError::new(format!("{path:?} is not a file")));
        }
        Ok(Outcome {
            result: json!({"path": path, "bytes": metadata.len()}),
            changes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, Move, Moves, Policy, Verdict};
    use crate::tool::Registry;

    #[cfg(unix)]
    #[test]
    fn files_inside_are_offered_and_none_outside() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("work");
        fs_err::create_dir_all(workspace.join("тексты/deep")).unwrap();
        fs_err::write(folder.path().join("secret"), "12345").unwrap();
        fs_err::write(workspace.join("a.txt"), "123").unwrap();
        fs_err::write(workspace.join("тексты/deep/b c.txt"), "").unwrap();
        fs_err::write(workspace.join(".hidden"), "x").unwrap();
        symlink("../secret", workspace.join("out")).unwrap();
        symlink(folder.path(), workspace.join("up")).unwrap();
        symlink("a.txt", workspace.join("in")).unwrap();
        symlink(".", workspace.join("loop")).unwrap();

        let mut registry = Registry::new();
        registry
            .register(Box::new(GetFileSize::new(&workspace).unwrap()))
            .unwrap();
        let moves = registry.moves(&Policy::default()).unwrap();
        let offered = &moves.moves[0].domains["path"];
        assert_eq!(
            *offered,
            [json!("a.txt"), json!("in"), json!("тексты/deep/b c.txt")]
        );

        // Even a call that got past the live values does not leave the folder.
        let unbounded = Moves {
            moves: vec![Move {
                domains: Domains::new(),
                ..moves.moves[0].clone()
            }],
            ..moves.clone()
        };
        let cases = [
            ("a.txt", Some(3)),
            ("in", Some(3)),
            ("../secret", None),
            ("out", None),
            ("up/secret", None),
            ("/etc/passwd", None),
            ("тексты", None),
            ("none", None),
        ];
        for (path, size) in cases {
            let Ok(Verdict::Checked(call)) =
                unbounded.check(Call::new("get_file_size", [("path", path)]))
            else {
                panic!("not checked");
            };
            let bytes = registry
                .run(&call)
                .ok()
                .and_then(|o| o.result["bytes"].as_u64());
            assert_eq!(bytes, size, "{path}");
        }
    }

    #[test]
    fn a_workspace_that_is_not_there_is_an_error() {
        let error = GetFileSize::new("/nowhere/at/all").unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
