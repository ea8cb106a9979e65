//! What every command is given: streams, surroundings, settings.

use super::args::Global;
use super::config::ConfigError;
use super::config::layers::{Layers, Surroundings};
use super::config::registry::Setting;
use super::error::Failure;
use super::settings::Settings;
use super::terminal::Terminal;

/// What every command is given.
#[derive(Debug)]
pub struct Context {
    /// Where to write.
    pub terminal: Terminal,
    /// What the program was started in.
    pub surroundings: Surroundings,
    /// What holds for every command.
    pub global: Global,
}

impl Context {
    /// All layers of settings with these flags.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn layers(&self, flags: &[(&'static Setting, String)]) -> Result<Layers, ConfigError> {
        Layers::read(&self.surroundings, self.global.config.as_deref(), flags)
    }

    /// What the layers mean.
    ///
    /// # Errors
    /// See [`Settings::resolve`].
    pub fn resolve(&self, layers: &Layers) -> Result<Settings, ConfigError> {
        Settings::resolve(layers, &self.surroundings)
    }

    /// Settings with these flags.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn settings(&self, flags: &[(&'static Setting, String)]) -> Result<Settings, Failure> {
        Ok(self.resolve(&self.layers(flags)?)?)
    }
}
