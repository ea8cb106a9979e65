//! A folder in which the program is run with the tiny model.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use super::{SMOLLM2, model_file};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with a copy of a house, and the model.
pub struct Place {
    pub folder: tempfile::TempDir,
    pub model: PathBuf,
}

impl Place {
    pub fn new() -> Option<Self> {
        let model = model_file(SMOLLM2)?;
        let folder = tempfile::tempdir().unwrap();
        let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/houses/maple.toml");
        fs::copy(house, folder.path().join("house.toml")).unwrap();
        Some(Self { folder, model })
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_snaffle"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("SNAFFLE_MODEL", &self.model)
            .env("SNAFFLE_HOUSE", "house.toml")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        read(&self.command(arguments).output().unwrap())
    }

    pub fn house(&self) -> String {
        fs::read_to_string(self.folder.path().join("house.toml")).unwrap()
    }

    /// Every task of the journal.
    pub fn tasks(&self) -> Vec<serde_json::Value> {
        let (code, out, err) = self.run(&["task", "list", "--json"]);
        assert_eq!(code, 0, "{err}");
        let lines = out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

pub fn read(output: &Output) -> (i32, String, String) {
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
