//! Every setting: one table from which flags, help, documentation and `config show` come.

use super::kind::Kind;

/// A setting. It can be given as a flag (`--max-turns 5`), in the environment
/// (`SNAFFLE_MAX_TURNS=5`) and in a settings file (`max_turns = 5`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Its name in settings files.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its default as it would be written in the environment; `None`: not set.
    pub default: Option<&'static str>,
    /// What happens where it is not set, for people.
    pub unset: &'static str,
    /// Under which heading it is shown.
    pub group: Group,
    /// One sentence without its full stop.
    pub doc: &'static str,
}

/// The headings under which settings are shown, and which commands have them as flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The model and where it runs.
    Model,
    /// How text is chosen.
    Sampling,
    /// Bounds of a run.
    Limits,
    /// What the model can act on.
    World,
    /// Where the harness keeps what it knows.
    Storage,
}

impl Group {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 5] = [
        Self::Model,
        Self::Sampling,
        Self::Limits,
        Self::World,
        Self::Storage,
    ];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::Sampling => "Sampling",
            Self::Limits => "Limits",
            Self::World => "World",
            Self::Storage => "Storage",
        }
    }
}

impl Setting {
    /// The flag's name, without `--`.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable's name.
    pub fn variable(&self) -> String {
        format!("SNAFFLE_{}", self.name.to_uppercase())
    }
}

const fn setting(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        name,
        kind,
        default: Some(default),
        unset: "",
        group,
        doc,
    }
}

const fn optional(
    group: Group,
    name: &'static str,
    kind: Kind,
    unset: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        name,
        kind,
        default: None,
        unset,
        group,
        doc,
    }
}

/// A whole number of at least `min`.
const fn at_least(min: i64) -> Kind {
    Kind::Integer { min, max: i64::MAX }
}

/// A whole number within bounds.
const fn within(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

use Group::{Limits, Model, Sampling, Storage, World};

/// All settings.
pub static SETTINGS: &[Setting] = &[
    setting(
        Model,
        "model",
        Kind::Text,
        "smollm2-135m",
        "A model's name in the manifest, or the path of a GGUF file; `random`: random logits, for trying out tools and tasks",
    ),
    optional(
        Model,
        "models_dir",
        Kind::Path,
        "`models` of the project, else the user's data folder",
        "Where models are kept",
    ),
    setting(
        Model,
        "context",
        within(0, 1_048_576),
        "0",
        "Tokens of context, rounded up to a multiple of 256; 0: what the model was trained for, at most 4096",
    ),
    setting(
        Model,
        "threads",
        within(0, 1024),
        "0",
        "Threads for the model; 0: one per physical core",
    ),
    optional(
        Model,
        "gpu_layers",
        within(0, 10_000),
        "all where a graphics processor is built in and there, else none",
        "Layers of the model on the graphics processor",
    ),
    setting(
        Sampling,
        "temperature",
        Kind::Number { min: 0.0, max: 5.0 },
        "0",
        "Randomness of the choice between tokens; 0: always the likeliest",
    ),
    setting(
        Sampling,
        "top_p",
        Kind::Number { min: 0.0, max: 1.0 },
        "1",
        "Keep the likeliest tokens whose probabilities add up to this",
    ),
    setting(
        Sampling,
        "min_p",
        Kind::Number { min: 0.0, max: 1.0 },
        "0",
        "Drop tokens less likely than this share of the likeliest",
    ),
    optional(
        Sampling,
        "alpha",
        Kind::Number { min: 0.0, max: 1.0 },
        "closed sets are chosen from token by token",
        "Score the alternatives of a closed set whole, less this much of their score without the request",
    ),
    optional(
        Sampling,
        "call_bias",
        Kind::Number {
            min: -8.0,
            max: 8.0,
        },
        "what was fitted for the model, mostly nothing: it writes what it does token by token",
        "How much likelier a call is taken to be, in nats, than the model finds it beside asking and answering",
    ),
    setting(
        Sampling,
        "ask_below",
        Kind::Number { min: 0.0, max: 1.0 },
        "0",
        "Ask about a call that changes something where the model is less sure of it than this, even if it is allowed",
    ),
    setting(
        Sampling,
        "unsure",
        Kind::Choice(&["ask", "look-again"]),
        "ask",
        "What is done about such a call; look-again: the model is given other examples first, and asks no one where it then says the same, or something that it is sure enough of",
    ),
    setting(
        Sampling,
        "grounding",
        Kind::Switch,
        "true",
        "Ask about a call that changes something where nothing that was said or read speaks of what it is about, even if it is allowed",
    ),
    setting(
        Sampling,
        "seed",
        at_least(0),
        "0",
        "Seed of the random numbers",
    ),
    setting(
        Sampling,
        "max_tokens",
        within(1, 1_048_576),
        "256",
        "Most tokens of one reply",
    ),
    setting(
        Limits,
        "max_turns",
        within(1, 10_000),
        "12",
        "Most turns of a run",
    ),
    setting(
        Limits,
        "max_run_tokens",
        at_least(1),
        "4096",
        "Most tokens written in all turns of a run together",
    ),
    setting(
        Limits,
        "max_seconds",
        within(1, 604_800),
        "600",
        "Longest run, in seconds",
    ),
    setting(
        Limits,
        "max_attempts",
        within(1, 100),
        "3",
        "Attempts at one step before the run stops",
    ),
    setting(
        Limits,
        "max_calls",
        within(1, 16),
        "4",
        "Most calls in one turn, and no more than the request names things",
    ),
    optional(
        World,
        "task",
        Kind::Path,
        "act until answered",
        "The definition of the task: its states, what is legal in each and what proves it done",
    ),
    optional(
        World,
        "house",
        Kind::Path,
        "no home tools",
        "The house file that the home tools read and change",
    ),
    optional(
        World,
        "tools",
        Kind::Paths,
        "none",
        "Files that declare command tools, or a simulated world and its tools",
    ),
    optional(
        World,
        "assistant",
        Kind::Switch,
        "yes where there is no house or task, or a weather file, outbox or workspace",
        "Offer the assistant's tools: sums, weather, mail, file sizes",
    ),
    optional(
        World,
        "weather",
        Kind::Path,
        "no weather tool",
        "The data file of the weather tool",
    ),
    optional(
        World,
        "outbox",
        Kind::Path,
        "no mail tool",
        "The folder into which mail is written",
    ),
    optional(
        World,
        "workspace",
        Kind::Path,
        "no file tools",
        "The folder that file tools may look into",
    ),
    optional(
        World,
        "after_turn",
        Kind::Path,
        "no program",
        "A program that is run after each turn, with the task as JSON on its standard input; a code other than 0 stops the run",
    ),
    setting(
        World,
        "select_tools",
        within(0, 1000),
        "0",
        "Offer only this many tools, those nearest to the request; 0: all",
    ),
    optional(
        World,
        "policy",
        Kind::Permissions,
        "reading and changing: allow; what cannot be taken back: ask",
        "Permissions by tool, `@read`, `@change`, `@risk` or a name's beginning and `*`",
    ),
    setting(
        World,
        "dry_run",
        Kind::Switch,
        "false",
        "Show calls and execute nothing",
    ),
    optional(
        World,
        "examples",
        Kind::Paths,
        "the pools that ship",
        "Files of few-shot examples, JSON Lines",
    ),
    optional(
        World,
        "max_examples",
        within(0, 3),
        "what suits the model, mostly 2",
        "Most examples in a prompt",
    ),
    optional(
        World,
        "tools_in_prompt",
        Kind::Choice(&["none", "names", "full"]),
        "what suits the model",
        "How much of the tools' descriptions the prompt holds",
    ),
    optional(
        Storage,
        "state_dir",
        Kind::Path,
        "`.snaffle` beside snaffle.toml, else here",
        "Folder of journal, traces, what is learned and evaluated prefixes",
    ),
    optional(
        Storage,
        "journal",
        Kind::Path,
        "`journal.sqlite` in state_dir",
        "File of the journal",
    ),
    setting(
        Storage,
        "learn",
        Kind::Switch,
        "true",
        "Keep what retries that succeed teach as examples, and use them and those that were added",
    ),
    optional(
        Storage,
        "learned",
        Kind::Path,
        "`learned.jsonl` in state_dir",
        "File of the examples that were learned or added",
    ),
    optional(
        Storage,
        "trace_dir",
        Kind::Path,
        "`traces` in state_dir",
        "Folder of the traces",
    ),
    setting(
        Storage,
        "trace_keep",
        within(0, 1_000_000),
        "200",
        "Traces kept, oldest deleted first; 0: none is written",
    ),
    optional(
        Storage,
        "redact",
        Kind::Texts,
        "nothing",
        "Arguments that are blanked in traces: `tool.argument`, or `*.argument` whatever the tool",
    ),
    setting(
        Storage,
        "keep_prompts",
        Kind::Switch,
        "false",
        "Write prompts and grammars to traces although something is redacted",
    ),
    optional(
        Storage,
        "prefix_cache",
        Kind::Path,
        "`prefix` in state_dir",
        "Folder of evaluated prompt prefixes",
    ),
    setting(
        Storage,
        "keep_prefix",
        Kind::Switch,
        "true",
        "Save the evaluated prefix, so that the next run need not evaluate it again",
    ),
    setting(
        Storage,
        "mask_store",
        Kind::Size,
        "32MiB",
        "Memory for token masks",
    ),
];

/// The setting named `name`.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn names_are_unique_and_defaults_are_legal() {
        let names: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
        for setting in SETTINGS {
            assert!(
                !setting.doc.is_empty() && !setting.doc.ends_with('.'),
                "{}",
                setting.name
            );
            assert_eq!(
                setting.default.is_none(),
                !setting.unset.is_empty(),
                "{}",
                setting.name
            );
            if let Some(default) = setting.default {
                setting.kind.parse(default, Path::new("")).unwrap();
            }
        }
    }
}
