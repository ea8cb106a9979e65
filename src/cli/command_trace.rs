//! `snaffle trace`: which traces there are, and one of them for a person.

use super::context::Context;
use super::error::Failure;
use super::terminal::Terminal;
use crate::trace::{RenderOptions, render, sanitize_line};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Lists the traces of a folder, oldest first.
///
/// # Errors
/// A folder that cannot be read; that there is none is not an error.
pub fn list(context: &mut Context, folder: &Path) -> Result<(), Failure> {
    let terminal = &mut context.terminal;
    let traces = traces(folder)?;
    if traces.is_empty() {
        terminal.note("no trace yet");
    }
    for path in traces {
        if terminal.json {
            let bytes = fs_err::metadata(&path)?.len();
            terminal.write_json(&json!({ "path": path.to_string_lossy(), "bytes": bytes }))?;
        } else {
            writeln!(terminal.out, "{}", sanitize_line(&path.to_string_lossy()))?;
        }
    }
    Ok(())
}

/// Shows a trace: a file, or the newest one of a task.
///
/// # Errors
/// No such trace, or one that cannot be read.
pub fn show(context: &mut Context, folder: &Path, name: &str, full: bool) -> Result<(), Failure> {
    let path = find(folder, name)?;
    let mut reader = BufReader::new(fs_err::File::open(&path)?);
    let terminal = &mut context.terminal;
    if terminal.json {
        return lines(reader, &path, terminal);
    }
    let mut first = Vec::new();
    (&mut reader).take(1 << 20).read_until(b'\n', &mut first)?;
    // One that was cut off before its first line is empty.
    let is_event = serde_json::from_slice::<serde_json::Map<String, Value>>(&first).is_ok();
    if !first.is_empty() && !is_event {
        return Err(Failure::input(format!("{} is no trace", path.display())));
    }
    let mut reader = first.as_slice().chain(reader);
    Ok(render(
        &mut reader,
        &mut terminal.out,
        RenderOptions { full },
    )?)
}

/// The trace's lines as they are. Those that are none (the end of a run that was killed) are left
/// out, and said so.
fn lines(mut reader: impl BufRead, path: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
    let (mut events, mut left_out) = (0, 0);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        match serde_json::from_slice::<serde_json::Map<String, Value>>(&line) {
            Ok(_) => {
                events += 1;
                let text = String::from_utf8_lossy(&line);
                writeln!(terminal.out, "{}", text.trim_end())?;
            }
            Err(_) => left_out += 1,
        }
        line.clear();
    }
    if events == 0 && left_out > 0 {
        return Err(Failure::input(format!("{} is no trace", path.display())));
    }
    if left_out > 0 {
        terminal.warn(&format!("{left_out} lines are no events"));
    }
    Ok(())
}

fn find(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let file = PathBuf::from(name);
    if file.is_file() {
        return Ok(file);
    }
    let of_task = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        !name.is_empty()
            && stem
                .split_once('-')
                .is_some_and(|(_, id)| id.starts_with(name))
    };
    traces(folder)?
        .into_iter()
        .rev()
        .find(of_task)
        .ok_or_else(|| {
            Failure::input(format!("there is no trace {name:?}"))
                .hint("`snaffle trace list` shows the traces that are kept")
        })
}

/// All traces, oldest first: their names begin with the time.
fn traces(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_found_by_file_and_by_task() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "20260101T000000Z-1aa-x",
            "20260102T000000Z-1aa-x",
            "20260103T000000Z-2bb-y",
        ] {
            fs_err::write(folder.path().join(format!("{name}.jsonl")), "").unwrap();
        }
        let found = |name: &str| {
            let path = find(folder.path(), name).ok()?;
            Some(path.file_stem()?.to_string_lossy().into_owned())
        };
        for (name, expected) in [
            ("1aa-x", Some("20260102T000000Z-1aa-x")),
            ("2b", Some("20260103T000000Z-2bb-y")),
            ("3", None),
            ("", None),
        ] {
            assert_eq!(found(name).as_deref(), expected, "{name:?}");
        }
        let path = folder.path().join("20260101T000000Z-1aa-x.jsonl");
        assert_eq!(find(folder.path(), &path.to_string_lossy()).unwrap(), path);
    }
}
