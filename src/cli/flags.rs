//! Settings as flags: clap arguments made from the registry, for commands made with derive.

use super::config::kind::Kind;
use super::config::registry::{Group, SETTINGS, Setting};
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use std::marker::PhantomData;
use std::sync::LazyLock;

/// Which settings a command takes as flags. Settings files and the environment hold for all.
pub trait Taken {
    /// Whether this one is taken.
    fn takes(setting: &Setting) -> bool;
}

/// All settings: commands that run the agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

/// The model, how it samples, and the mask store: commands that only generate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Generating;

/// What a measurement of calibrated choice depends on, without what it sets itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tuning;

/// The model, and how the options of a decision are weighed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deciding;

/// Where models are.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelPlaces;

/// Where journal and traces are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places;

/// Where tools are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Toolboxes;

impl Taken for Toolboxes {
    fn takes(setting: &Setting) -> bool {
        matches!(
            setting.name,
            "house" | "tools" | "assistant" | "weather" | "outbox" | "workspace"
        )
    }
}

impl Taken for Everything {
    fn takes(_setting: &Setting) -> bool {
        true
    }
}

/// Whether a setting of how tokens are chosen means something only where calls are made.
fn is_about_calls(setting: &Setting) -> bool {
    matches!(
        setting.name,
        "alpha" | "call_bias" | "ask_below" | "unsure" | "grounding"
    )
}

impl Taken for Generating {
    fn takes(setting: &Setting) -> bool {
        match setting.group {
            Group::Model => true,
            // What is only about calls is not.
            Group::Sampling => !is_about_calls(setting),
            _ => setting.name == "mask_store",
        }
    }
}

impl Taken for Tuning {
    fn takes(setting: &Setting) -> bool {
        match setting.group {
            Group::Model => setting.name != "model",
            Group::Sampling => !is_about_calls(setting),
            Group::Limits => true,
            Group::World | Group::Storage => matches!(
                setting.name,
                "policy" | "examples" | "max_examples" | "tools_in_prompt" | "mask_store"
            ),
        }
    }
}

impl Taken for Deciding {
    fn takes(setting: &Setting) -> bool {
        setting.group == Group::Model || matches!(setting.name, "alpha" | "mask_store")
    }
}

impl Taken for ModelPlaces {
    fn takes(setting: &Setting) -> bool {
        matches!(setting.name, "models_dir" | "context")
    }
}

impl Taken for Places {
    fn takes(setting: &Setting) -> bool {
        matches!(setting.name, "state_dir" | "journal" | "trace_dir")
    }
}

/// The settings given as flags, as text, in the registry's order.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags<T> {
    /// Each with its text; those that can be repeated, once for each time.
    pub given: Vec<(&'static Setting, String)>,
    taken: PhantomData<T>,
}

/// Flag names live as long as the program, as clap wants them.
static FLAGS: LazyLock<Vec<(&'static Setting, String)>> =
    LazyLock::new(|| SETTINGS.iter().map(|s| (s, s.flag())).collect());

impl<T: Taken> clap::Args for SettingFlags<T> {
    fn augment_args(command: Command) -> Command {
        FLAGS
            .iter()
            .filter(|(setting, _)| T::takes(setting))
            .fold(command, |command, (setting, flag)| {
                command.arg(argument(setting, flag))
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Taken> FromArgMatches for SettingFlags<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Vec::new();
        for setting in SETTINGS.iter().filter(|setting| T::takes(setting)) {
            for text in matches
                .get_many::<String>(setting.name)
                .into_iter()
                .flatten()
            {
                given.push((setting, text.clone()));
            }
        }
        Ok(Self {
            given,
            taken: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(setting: &'static Setting, flag: &'static str) -> Arg {
    let value = match setting.default {
        Some(default) => format!("[default: {default}]"),
        None => format!("[default: {}]", setting.unset),
    };
    let argument = Arg::new(setting.name)
        .long(flag)
        .value_name(setting.kind.placeholder())
        .help(format!("{} {value}", setting.doc))
        .long_help(format!(
            "{}\n{value} [env: {}]",
            setting.doc,
            setting.variable()
        ))
        .help_heading(setting.group.title())
        .hide_short_help(!is_everyday(setting))
        .value_parser(clap::builder::NonEmptyStringValueParser::new());
    match setting.kind {
        Kind::Switch => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name("BOOL"),
        kind if kind.is_repeatable() => argument.action(ArgAction::Append),
        Kind::Integer { .. } | Kind::Number { .. } => argument.allow_negative_numbers(true),
        _ => argument,
    }
}

/// Those that `-h` shows; `--help` shows all.
fn is_everyday(setting: &Setting) -> bool {
    matches!(
        setting.name,
        "model"
            | "task"
            | "house"
            | "tools"
            | "policy"
            | "dry_run"
            | "temperature"
            | "max_tokens"
            | "max_turns"
    )
}
