//! Old traces leave when a new run begins.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is kept of earlier traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Most trace files.
    pub files: usize,
    /// Most bytes of trace files together.
    pub bytes: u64,
}

impl Default for Retention {
    /// 100 runs, 256 MiB.
    fn default() -> Self {
        Self {
            files: 100,
            bytes: 256 * 1024 * 1024,
        }
    }
}

/// Deletes the oldest traces of `folder` until the rest fits, then the grammars that are older
/// than any trace left. Only `*.jsonl` and `grammars/*.gbnf` are looked at. Returns how many
/// files were deleted; one that cannot be deleted (or is deleted by another process at the same
/// time) is passed over.
///
/// # Errors
/// Where the folder cannot be listed.
pub fn prune(folder: &Path, retention: Retention) -> io::Result<usize> {
    let mut traces = list(folder, "jsonl")?;
    // Names begin with the time of the run.
    traces.sort_by(|a, b| b.path.file_name().cmp(&a.path.file_name()));
    let mut bytes = 0u64;
    let mut deleted = 0;
    let mut oldest_kept: Option<SystemTime> = None;
    for (number, trace) in traces.iter().enumerate() {
        bytes = bytes.saturating_add(trace.bytes);
        if number >= retention.files || bytes > retention.bytes {
            deleted += usize::from(fs_err::remove_file(&trace.path).is_ok());
        } else {
            // A trace's own start is earlier than its last write; its grammars are touched when
            // they are used, which is before that write and after the previous trace's.
            oldest_kept = Some(trace.created.unwrap_or(trace.modified));
        }
    }
    let grammars = folder.join("grammars");
    if deleted > 0 && grammars.is_dir() {
        for grammar in list(&grammars, "gbnf")? {
            if oldest_kept.is_none_or(|oldest| grammar.modified < oldest) {
                deleted += usize::from(fs_err::remove_file(&grammar.path).is_ok());
            }
        }
    }
    Ok(deleted)
}

struct Found {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
    created: Option<SystemTime>,
}

fn list(folder: &Path, extension: &str) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        if path.extension().is_none_or(|e| e != extension) {
            continue;
        }
        let Ok(about) = fs::symlink_metadata(&path) else {
            continue;
        };
        if let (true, Ok(modified)) = (about.is_file(), about.modified()) {
            found.push(Found {
                path,
                bytes: about.len(),
                modified,
                created: about.created().ok(),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        let day =
            |number: u64| SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(24 * number);
        for (files, bytes, kept) in [
            (100, u64::MAX, "1 2 3 4 "),
            (2, u64::MAX, "3 4 "),
            (100, 25, "3 4 "),
            (100, 5, ""),
            (0, u64::MAX, ""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("grammars")).unwrap();
            for number in 1..=4 {
                let trace = folder.path().join(format!("{number}.jsonl"));
                fs::write(&trace, "0123456789").unwrap();
                let grammar = folder.path().join(format!("grammars/{number}.gbnf"));
                fs::write(&grammar, "root ::= \"a\"").unwrap();
                let file = fs::File::options().write(true).open(&grammar).unwrap();
                file.set_modified(day(number)).unwrap();
            }
            fs::write(folder.path().join("notes.txt"), "keep").unwrap();
            prune(folder.path(), Retention { files, bytes }).unwrap();
            let mut left = String::new();
            for number in 1..=4 {
                if folder.path().join(format!("{number}.jsonl")).exists() {
                    left += &format!("{number} ");
                }
            }
            assert_eq!(left, kept, "{files} {bytes}");
            assert!(folder.path().join("notes.txt").exists());
            // All grammars here are older than every trace: they leave with the first trace.
            let grammars = fs::read_dir(folder.path().join("grammars"))
                .unwrap()
                .count();
            assert_eq!(grammars, if left.len() == 8 { 4 } else { 0 });
        }
    }
}
