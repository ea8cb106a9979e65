//! Reading files of data sets, which may be anything, up to a limit.

use std::io::{self, Read as _};
use std::path::Path;

/// The text of a file; `None` where it has more than `most` bytes.
///
/// # Errors
/// A file that cannot be read or is not UTF-8.
pub(super) fn read(path: &Path, most: u64) -> io::Result<Option<String>> {
    let mut text = String::new();
    fs_err::File::open(path)?
        .take(most + 1)
        .read_to_string(&mut text)?;
    Ok((text.len() as u64 <= most).then_some(text))
}
