//! What a person gives to work on: files and standard input, bounded.

use super::error::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest grammar, schema or suite that is read, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// The text of a file, or of standard input for `-`.
///
/// # Errors
/// A file that is missing, too large or not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    read_up_to(path, MAX_BYTES)
}

/// As [`read_text`], with a limit of one's own.
///
/// # Errors
/// As [`read_text`].
pub fn read_up_to(path: &Path, limit: u64) -> Result<String, Failure> {
    let name = path.display();
    if path == Path::new("-") {
        return text_of(&mut io::stdin().lock(), "standard input", limit);
    }
    let cannot = |error: &io::Error| Failure::input(format!("{name}: {error}"));
    if path.is_dir() {
        return Err(Failure::input(format!("{name} is a folder, not a file")));
    }
    text_of(
        &mut File::open(path).map_err(|e| cannot(&e))?,
        &name.to_string(),
        limit,
    )
}

/// A request: given as an argument, or `-` for standard input; not blank.
///
/// # Errors
/// A blank request, or standard input that cannot be read.
pub fn request(argument: &str) -> Result<String, Failure> {
    let text = if argument == "-" {
        text_of(&mut io::stdin().lock(), "standard input", MAX_BYTES)?
    } else {
        argument.to_owned()
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::input("the request is empty").hint("say what is to be done"));
    }
    Ok(text.to_owned())
}

fn text_of(reader: &mut dyn Read, name: &str, limit: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    reader
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::input(format!("{name}: {error}")))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::input(format!(
            "{name} has more than the {} MiB that are read",
            limit >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::input(format!("{name} is not UTF-8 text (byte {at})"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        fs_err::write(&file, b"ab\xff").unwrap();
        for (path, expected) in [
            (file.clone(), "is not UTF-8 text (byte 2)"),
            (folder.path().to_owned(), "is a folder, not a file"),
            (folder.path().join("none"), "No such file"),
        ] {
            let failure = read_text(&path).unwrap_err();
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
        fs_err::write(&file, "свет").unwrap();
        assert_eq!(read_text(&file).unwrap(), "свет");
    }

    #[test]
    fn requests_are_not_blank() {
        assert_eq!(request("  light on\n").unwrap(), "light on");
        assert!(request(" \n\t").is_err());
    }
}
