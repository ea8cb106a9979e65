//! A task's definition as the command line uses it: read, its tools loaded, checked.

use super::error::Failure;
use super::settings::Settings;
use super::world;
use crate::call::ToolSpec;
use crate::task::{LoadError, Source};
use crate::tool::Registry;
use std::path::Path;
use std::sync::Arc;

/// Reads the definition in a file.
///
/// # Errors
/// A file that is none.
pub fn read(path: &Path) -> Result<Source, Failure> {
    if path.is_dir() {
        let message = format!("{} is a folder, not a file", path.display());
        return Err(Failure::input(message));
    }
    Ok(Source::read(path)?)
}

/// Refuses a definition that is wrong, by its first fault.
///
/// # Errors
/// The fault.
pub fn refuse_faults(source: &Source, registry: &Registry) -> Result<(), Failure> {
    let faults = source.faults(Some(&catalogue(registry)));
    match faults.iter().find(|fault| !fault.warning) {
        None => Ok(()),
        Some(fault) => {
            let hint = format!("`snaffle task check {}` shows all", fault.path.display());
            Err(Failure::input(fault.to_string()).hint(hint))
        }
    }
}

/// All tools, as definitions know them.
pub fn catalogue(registry: &Registry) -> Vec<Arc<ToolSpec>> {
    registry.specs().cloned().collect()
}

/// The tools that a definition may call: those that it uses, and those of the settings. `None`:
/// none at all are known, and none can be checked.
///
/// # Errors
/// A file that is wrong.
pub fn tools_of(source: &Source, settings: &Settings) -> Result<Option<Registry>, Failure> {
    let mut settings = settings.clone();
    // The tools are only looked at: nobody's house is held for it.
    settings.dry_run = true;
    let named = settings.house.is_some()
        || !settings.tools.is_empty()
        || !source.definition.uses.is_empty();
    if !named {
        return Ok(None);
    }
    settings
        .tools
        .extend(source.definition.uses.iter().cloned());
    Ok(Some(world::registry(&settings)?))
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::input(error.to_string())
    }
}
