//! Settings as a run uses them: typed, every default resolved, made from the [layers](Layers) of
//! text. Two types, so that nothing unchecked is ever used.

use super::config::ConfigError;
use super::config::layers::{Layers, Surroundings};
use crate::model::Sampling;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A name in the manifest, or a path.
    pub model: String,
    /// Where models are kept.
    pub models_dir: PathBuf,
    /// Tokens of context; `None`: the backend's choice.
    pub context: Option<usize>,
    /// Threads; `None`: the backend's choice.
    pub threads: Option<usize>,
    /// Layers on a graphics processor; `None`: the backend's choice.
    pub gpu_layers: Option<u32>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Most tokens of one reply.
    pub max_tokens: usize,
    /// Most turns.
    pub max_turns: usize,
    /// Most tokens of a run.
    pub max_run_tokens: usize,
    /// Longest run.
    pub max_time: Duration,
    /// Attempts at one step.
    pub max_attempts: usize,
    /// Most calls in a turn.
    pub max_calls: usize,
    /// Strength of calibrated choice.
    pub alpha: Option<f64>,
    /// How much likelier a call is taken to be than the model finds it.
    pub call_bias: Option<f64>,
    /// Calls that the model is less sure of are asked about.
    pub ask_below: f64,
    /// What is done about these: `ask` or `look-again`.
    pub unsure: String,
    /// Calls about what nobody spoke of are asked about.
    pub grounding: bool,
    /// The task's definition.
    pub task: Option<PathBuf>,
    /// What is run after each turn.
    pub after_turn: Option<PathBuf>,
    /// The house file.
    pub house: Option<PathBuf>,
    /// Files of command tools.
    pub tools: Vec<PathBuf>,
    /// Whether the assistant's tools are offered.
    pub assistant: bool,
    /// The weather tool's data.
    pub weather: Option<PathBuf>,
    /// The mail tool's folder.
    pub outbox: Option<PathBuf>,
    /// The file tools' folder.
    pub workspace: Option<PathBuf>,
    /// Offer only this many tools; `None`: all.
    pub select_tools: Option<usize>,
    /// Permissions by tool or pattern: `allow`, `ask` or `deny`.
    pub policy: BTreeMap<String, String>,
    /// Execute nothing.
    pub dry_run: bool,
    /// Files of examples; empty: those that ship.
    pub examples: Vec<PathBuf>,
    /// Most examples in a prompt.
    pub max_examples: Option<usize>,
    /// `none`, `names` or `full`; `None`: what suits the model.
    pub tools_in_prompt: Option<String>,
    /// The journal.
    pub journal: PathBuf,
    /// Whether examples are learned, and those that were are used.
    pub learn: bool,
    /// File of the examples that were learned or added.
    pub learned: PathBuf,
    /// The traces' folder.
    pub trace_dir: PathBuf,
    /// Traces kept; 0: none is written.
    pub trace_keep: usize,
    /// Arguments blanked in traces.
    pub redact: Vec<String>,
    /// Prompts in traces although something is redacted.
    pub keep_prompts: bool,
    /// Folder of evaluated prefixes; `None`: they are not kept.
    pub prefix_cache: Option<PathBuf>,
    /// Bytes for token masks.
    pub mask_store: usize,
}

impl Settings {
    /// Resolves what the layers say.
    ///
    /// # Errors
    /// A value that no setting can have; the layers have checked all but combinations.
    pub fn resolve(layers: &Layers, surroundings: &Surroundings) -> Result<Self, ConfigError> {
        let read = Reader(layers.table());
        let project = layers
            .project_file()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let state = read
            .optional::<PathBuf>("state_dir")?
            .unwrap_or_else(|| shorten(project.join(".snaffle"), &surroundings.folder));
        let in_state = |name: &str| state.join(name);
        let house: Option<PathBuf> = read.optional("house")?;
        let task: Option<PathBuf> = read.optional("task")?;
        let weather: Option<PathBuf> = read.optional("weather")?;
        let outbox: Option<PathBuf> = read.optional("outbox")?;
        let workspace: Option<PathBuf> = read.optional("workspace")?;
        let keep_prefix: bool = read.required("keep_prefix")?;
        let prefix_cache: Option<PathBuf> = read.optional("prefix_cache")?;
        Ok(Self {
            model: read.required("model")?,
            models_dir: match read.optional("models_dir")? {
                Some(folder) => folder,
                None => default_models_dir(surroundings),
            },
            context: positive(read.required("context")?),
            threads: positive(read.required("threads")?),
            gpu_layers: read.optional("gpu_layers")?,
            sampling: Sampling {
                temperature: read.required("temperature")?,
                top_p: read.required("top_p")?,
                min_p: read.required("min_p")?,
                seed: read.required("seed")?,
                first_name: Vec::new(),
            },
            max_tokens: read.required("max_tokens")?,
            max_turns: read.required("max_turns")?,
            max_run_tokens: read.required("max_run_tokens")?,
            max_time: Duration::from_secs(read.required("max_seconds")?),
            max_attempts: read.required("max_attempts")?,
            max_calls: read.required("max_calls")?,
            alpha: read.optional("alpha")?,
            call_bias: read.optional("call_bias")?,
            ask_below: read.required("ask_below")?,
            grounding: read.required("grounding")?,
            unsure: read.required("unsure")?,
            assistant: read.optional("assistant")?.unwrap_or_else(|| {
                (house.is_none() && task.is_none())
                    || weather.is_some()
                    || outbox.is_some()
                    || workspace.is_some()
            }),
            task,
            after_turn: read.optional("after_turn")?,
            house,
            tools: read.optional("tools")?.unwrap_or_default(),
            weather,
            outbox,
            workspace,
            select_tools: positive(read.required("select_tools")?),
            policy: read.optional("policy")?.unwrap_or_default(),
            dry_run: read.required("dry_run")?,
            examples: read.optional("examples")?.unwrap_or_default(),
            max_examples: read.optional("max_examples")?,
            tools_in_prompt: read.optional("tools_in_prompt")?,
            journal: read
                .optional("journal")?
                .unwrap_or_else(|| in_state("journal.sqlite")),
            learn: read.required("learn")?,
            learned: read
                .optional("learned")?
                .unwrap_or_else(|| in_state("learned.jsonl")),
            trace_dir: read
                .optional("trace_dir")?
                .unwrap_or_else(|| in_state("traces")),
            trace_keep: read.required("trace_keep")?,
            redact: read.optional("redact")?.unwrap_or_default(),
            keep_prompts: read.required("keep_prompts")?,
            prefix_cache: keep_prefix.then(|| prefix_cache.unwrap_or_else(|| in_state("prefix"))),
            mask_store: read.required("mask_store")?,
        })
    }
}

/// 0 stands for "not set".
fn positive(number: usize) -> Option<usize> {
    (number > 0).then_some(number)
}

/// `models` of the nearest project that has a manifest, else the user's data folder.
fn default_models_dir(surroundings: &Surroundings) -> PathBuf {
    surroundings
        .folder
        .ancestors()
        .map(|folder| folder.join("models"))
        .find(|folder| folder.join("models.toml").is_file())
        .map(|folder| shorten(folder, &surroundings.folder))
        .or_else(|| Some(surroundings.user_data()?.join("models")))
        .unwrap_or_else(|| PathBuf::from("models"))
}

/// A path as a person standing in `folder` would write it.
fn shorten(path: PathBuf, folder: &Path) -> PathBuf {
    match path.strip_prefix(folder) {
        Ok(rest) if !folder.as_os_str().is_empty() => rest.to_owned(),
        _ => path,
    }
}

/// Reads checked values as types.
struct Reader(toml::Table);

impl Reader {
    fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        value
            .clone()
            .try_into()
            .map(Some)
            .map_err(|error: toml::de::Error| ConfigError::Value {
                place: name.to_owned(),
                message: format!("is not usable: {}", error.message()),
            })
    }

    fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, ConfigError> {
        self.optional(name)?.ok_or_else(|| ConfigError::Value {
            place: name.to_owned(),
            message: "has no value and no default".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::registry::{SETTINGS, find};

    fn resolve(flags: &[(&str, &str)]) -> Settings {
        let flags: Vec<_> = flags
            .iter()
            .map(|(name, text)| (find(name).unwrap(), (*text).to_owned()))
            .collect();
        let surroundings = Surroundings::default();
        let layers = Layers::read(&surroundings, None, &flags).unwrap();
        Settings::resolve(&layers, &surroundings).unwrap()
    }

    #[test]
    fn every_setting_is_read() {
        let source = include_str!("settings.rs");
        for setting in SETTINGS {
            let quoted = format!("(\"{}\")", setting.name);
            assert!(source.contains(&quoted), "{} has no effect", setting.name);
        }
    }

    #[test]
    fn defaults_follow_from_other_settings() {
        let settings = resolve(&[]);
        assert_eq!(settings.sampling, Sampling::default());
        assert!(settings.assistant);
        assert_eq!(settings.journal, Path::new(".snaffle/journal.sqlite"));
        assert_eq!(settings.context, None);
        let settings = resolve(&[("house", "h.toml"), ("state_dir", "s"), ("trace_dir", "t")]);
        assert!(!settings.assistant);
        assert_eq!(settings.journal, Path::new("s/journal.sqlite"));
        assert_eq!(settings.trace_dir, Path::new("t"));
        assert_eq!(
            settings.prefix_cache.as_deref(),
            Some(Path::new("s/prefix"))
        );
        let settings = resolve(&[
            ("keep_prefix", "false"),
            ("context", "512"),
            ("mask_store", "1MiB"),
        ]);
        assert_eq!(settings.prefix_cache, None);
        assert_eq!(settings.context, Some(512));
        assert_eq!(settings.mask_store, 1 << 20);
    }
}
