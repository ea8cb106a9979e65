//! `snaffle fewshot` as it is written.

use super::config::registry::Setting;
use super::flags::{SettingFlags, Taken, Toolboxes};
use crate::fewshot::Source;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

/// Where examples are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pools;

impl Taken for Pools {
    fn takes(setting: &Setting) -> bool {
        matches!(setting.name, "state_dir" | "learned" | "examples")
    }
}

/// Where examples and tools are.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolsAndTools;

impl Taken for PoolsAndTools {
    fn takes(setting: &Setting) -> bool {
        Pools::takes(setting) || Toolboxes::takes(setting)
    }
}

/// `snaffle fewshot`.
#[derive(Debug, Subcommand)]
pub enum Fewshot {
    /// List the examples that a prompt may get, by the tool that they call
    List {
        /// Only those that call this tool; `ask` and `answer`: those that do
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only those that come from there
        #[arg(long, value_name = "SOURCE", value_enum)]
        source: Option<ExampleSource>,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Pools>,
    },
    /// Add examples of your own; where tools are given, those that they call must exist
    Add(Box<Add>),
    /// Forget examples that were learned or added
    Forget {
        /// Their ids, or the beginnings of them
        #[arg(required = true)]
        ids: Vec<String>,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Pools>,
    },
    /// Write examples as JSON Lines, as `add` and the setting `examples` read them
    Export {
        /// Only those that come from there
        #[arg(long, value_name = "SOURCE", value_enum)]
        source: Option<ExampleSource>,
        /// Write them here [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Pools>,
    },
}

/// `snaffle fewshot add`.
#[derive(Debug, clap::Args)]
pub struct Add {
    /// A file of examples, JSON Lines; `-` reads standard input
    #[arg(required_unless_present = "request", conflicts_with_all = ["request", "call", "ask", "answer"])]
    pub file: Option<PathBuf>,
    /// What is asked for; `{device}` stands for a value that the call has too
    #[arg(long, value_name = "TEXT", requires = "reply")]
    pub request: Option<String>,
    /// The right call: {"tool": …, "arguments": {…}}; repeated, one after another
    #[arg(long, value_name = "JSON", group = "reply", requires = "request")]
    pub call: Vec<String>,
    /// The right question
    #[arg(long, value_name = "TEXT", group = "reply", requires = "request")]
    pub ask: Option<String>,
    /// The right answer
    #[arg(long, value_name = "TEXT", group = "reply", requires = "request")]
    pub answer: Option<String>,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<PoolsAndTools>,
}

/// Where an example comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExampleSource {
    /// Those that ship, or the files of the setting `examples`
    Seed,
    /// Retries that succeeded
    Learned,
    /// `fewshot add`
    Added,
}

impl ExampleSource {
    /// As the pool calls it.
    pub fn source(self) -> Source {
        match self {
            Self::Seed => Source::Seed,
            Self::Learned => Source::Learned,
            Self::Added => Source::Added,
        }
    }
}
