//! A settings file: where it is looked for, and its keys with their lines.

use super::ConfigError;
use super::registry::{self, SETTINGS};
use crate::cli::suggest::nearest;
use crate::files::text_of;
use std::path::{Path, PathBuf};
use toml::Value;
use toml_edit::Document;

/// The name of a settings file.
pub const FILE_NAME: &str = "snaffle.toml";

/// Largest settings file that is read, in bytes: a thousand times what one needs.
const MAX_BYTES: u64 = 1 << 20;

/// The nearest `snaffle.toml` in `folder` or above it.
pub fn nearest_ancestor(folder: &Path) -> Option<PathBuf> {
    folder
        .ancestors()
        .map(|ancestor| ancestor.join(FILE_NAME))
        .find(|path| path.is_file())
}

/// The checked values of a settings file, each with its line. Paths are relative to the file.
///
/// # Errors
/// A file that cannot be read, is no TOML, or has a key or a value that no setting has.
pub fn read(path: &Path) -> Result<Vec<(&'static str, Value, usize)>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { source };
    let text = fs_err::File::open(path)
        .and_then(|file| text_of(file, MAX_BYTES))
        .map_err(unreadable)?;
    let Some(text) = text else {
        return Err(ConfigError::InFile {
            path: path.to_owned(),
            line: 1,
            message: format!("has more than the {MAX_BYTES} bytes of a settings file"),
            suggestion: None,
        });
    };
    parse(path, &text)
}

/// As [`read`], for text that was read already.
fn parse(path: &Path, text: &str) -> Result<Vec<(&'static str, Value, usize)>, ConfigError> {
    let wrong =
        |at: Option<usize>, message: String, suggestion: Option<String>| ConfigError::InFile {
            path: path.to_owned(),
            line: line_of(text, at.unwrap_or(0)),
            message,
            suggestion,
        };
    let document = Document::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        wrong(error.span().map(|span| span.start), message, None)
    })?;
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        wrong(
            error.span().map(|span| span.start),
            error.message().into(),
            None,
        )
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    let mut values = Vec::with_capacity(table.len());
    for (name, value) in table {
        let at = document
            .as_table()
            .get_key_value(&name)
            .and_then(|(key, item)| key.span().or_else(|| item.span()))
            .map(|span| span.start);
        let Some(setting) = registry::find(&name) else {
            let suggestion = nearest(&name, SETTINGS.iter().map(|setting| setting.name));
            return Err(wrong(
                at,
                format!("there is no setting {name:?}"),
                suggestion,
            ));
        };
        let value = setting
            .kind
            .check(value, base)
            .map_err(|message| wrong(at, format!("{name} {message}"), None))?;
        values.push((setting.name, value, line_of(text, at.unwrap_or(0))));
    }
    Ok(values)
}

/// The line, from 1, of the byte at `offset`.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|&byte| byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_line() {
        let cases: [(&str, &str); 9] = [
            (
                "model = \"a\"\ntempature = 1",
                "f/snaffle.toml:2: there is no setting \"tempature\"",
            ),
            (
                "\n\ntemperature = \"hot\"",
                "f/snaffle.toml:3: temperature wants number, 0 to 5, not text",
            ),
            (
                "max_turns = 0",
                "f/snaffle.toml:1: max_turns is 0; it wants integer, 1 to 10000",
            ),
            (
                "[policy]\nunlock = 1",
                "f/snaffle.toml:1: policy says 1 for \"unlock\"; it wants allow, ask or deny",
            ),
            ("seed = 1\nseed = 2", "f/snaffle.toml:2: duplicate key"),
            (
                "x = ",
                "f/snaffle.toml:1: string values must be quoted, expected literal string",
            ),
            ("model = \"\"", "f/snaffle.toml:1: model is empty"),
            (
                "tools = \"a\"",
                "f/snaffle.toml:1: tools wants list of paths, not text",
            ),
            (
                "tools = [1]",
                "f/snaffle.toml:1: tools wants list of paths, not a whole number",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(Path::new("f/snaffle.toml"), text).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn values_carry_their_lines_and_paths_their_folder() {
        let text = "# мир\nhouse = \"h.toml\"\n\ntemperature = 1\n[policy]\nunlock = \"deny\"\n";
        let values = parse(Path::new("f/snaffle.toml"), text).unwrap();
        let shown: Vec<String> = values
            .iter()
            .map(|(name, value, line)| format!("{line} {name} {value}"))
            .collect();
        assert_eq!(
            shown,
            [
                "2 house \"f/h.toml\"",
                "4 temperature 1.0",
                "5 policy { unlock = \"deny\" }"
            ]
        );
    }
}
