//! What a person gives to work on: files and standard input, bounded.

use super::error::Failure;
use crate::files;
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
    text_of(read_bytes_up_to(path, limit)?, &name_of(path))
}

/// The bytes of a file, or of standard input for `-`.
///
/// # Errors
/// A file that is missing or too large.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    read_bytes_up_to(path, MAX_BYTES)
}

fn read_bytes_up_to(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let name = name_of(path);
    if path == Path::new("-") {
        return bytes_of(&mut io::stdin().lock(), &name, limit);
    }
    let cannot = |error: &io::Error| Failure::input(format!("{name}: {error}"));
    if path.is_dir() {
        return Err(Failure::input(format!("{name} is a folder, not a file")));
    }
    bytes_of(&mut File::open(path).map_err(|e| cannot(&e))?, &name, limit)
}

fn name_of(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// A request: given as an argument, or `-` for standard input; not blank.
///
/// # Errors
/// A blank request, or standard input that cannot be read.
pub fn request(argument: &str) -> Result<String, Failure> {
    not_blank(argument, "request", "say what is to be done")
}

/// A question: given as an argument, or `-` for standard input; not blank.
///
/// # Errors
/// As [`request`].
pub fn question(argument: &str) -> Result<String, Failure> {
    not_blank(argument, "question", "say what is to be decided")
}

fn not_blank(argument: &str, what: &str, hint: &str) -> Result<String, Failure> {
    let text = if argument == "-" {
        read_text(Path::new("-"))?
    } else {
        argument.to_owned()
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::input(format!("the {what} is empty")).hint(hint));
    }
    Ok(text.to_owned())
}

fn bytes_of(reader: &mut dyn Read, name: &str, limit: u64) -> Result<Vec<u8>, Failure> {
    files::bytes_of(reader, limit)
        .map_err(|error| Failure::input(format!("{name}: {error}")))?
        .ok_or_else(|| {
            let mebibytes = limit >> 20;
            Failure::input(format!(
                "{name} has more than the {mebibytes} MiB that are read"
            ))
        })
}

fn text_of(bytes: Vec<u8>, name: &str) -> Result<String, Failure> {
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
