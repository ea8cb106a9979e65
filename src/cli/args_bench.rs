//! The command line of the benchmarks, as it is written.

use super::flags::{Everything, SettingFlags, Tuning};
use crate::bench::bfcl::Category;
use clap::ValueEnum;
use std::path::PathBuf;

/// How often a suite is run, and where its results are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct Runs {
    /// Write the whole report as JSON here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Leave out the random baseline
    #[arg(long)]
    pub no_baseline: bool,
    /// Run every request N times, each time with the next seed and a fresh pool
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Append each result to this file as it comes, and leave out those that it has already
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

/// A part of the harness that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The model writes what it likes
    Grammar,
    /// The grammar holds no live values: arguments are what the tools' schemas allow
    Domains,
    /// The alternatives of closed sets are chosen from token by token
    Calibration,
    /// No examples
    Pool,
    /// The same examples whatever is asked
    Retrieval,
    /// What nobody spoke of is acted on without asking
    Grounding,
    /// After a failure the model is told that it failed, and nothing else
    Hints,
    /// All that was said and done instead of facts and the last step; the grammar holds all tools
    State,
}

impl Part {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grammar => "grammar",
            Self::Domains => "domains",
            Self::Calibration => "calibration",
            Self::Pool => "pool",
            Self::Retrieval => "retrieval",
            Self::Grounding => "grounding",
            Self::Hints => "hints",
            Self::State => "state",
        }
    }
}

/// What is common to all suites that can leave out parts of the harness.
#[derive(Debug, clap::Args)]
pub struct Measured {
    /// Leave out a part of the harness; can be repeated
    #[arg(long, value_name = "PART", value_enum)]
    pub without: Vec<Part>,
    /// Repetition and results.
    #[command(flatten)]
    pub runs: Runs,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Everything>,
}

/// `snaffle model tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = TUNE)]
pub struct Tune {
    /// A name in the manifest, or a GGUF file
    pub model: String,
    /// The requests to fit it to, JSON Lines as `bench home` reads them; none of them may be one
    /// that `bench home` measures
    #[arg(long, value_name = "FILE")]
    pub suite: PathBuf,
    /// The folder of the houses that the requests name [default: the houses that ship]
    #[arg(long, value_name = "FOLDER")]
    pub houses: Option<PathBuf>,
    /// Only the first requests of each language and kind
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// What to fit
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub fit: Fitted,
    /// What to try: weights between 0 and 1, or biases between -8 and 8; 0 is always among them
    /// [default: 0,0.25,0.5,0.75,1 for alpha, -4,-2,-1,0,1,2,4 for call-bias]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_hyphen_values = true, value_parser = tried)]
    pub grid: Vec<f64>,
    /// Parts into which the requests are dealt: each is judged with the weight that serves the
    /// others best
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub folds: u32,
    /// Write the whole report as JSON here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Append each result to this file as it comes, and leave out those that it has already
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Tuning>,
}

/// What `snaffle model tune` fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fitted {
    /// The weight of the blanked prompt in choices among closed sets
    #[default]
    Alpha,
    /// How much likelier a call is taken to be beside asking and answering
    CallBias,
}

/// What stands below the help of `snaffle model tune`.
const TUNE: &str = "Each request is run once with each of them; no file of settings is changed. \
The line that is printed at the end goes into the model's entry of models.toml, or into \
snaffle.toml, where it holds for all models.";

/// `snaffle bench bfcl`.
#[derive(Debug, clap::Args)]
pub struct BenchBfcl {
    /// The folder of the Python package bfcl-eval (scripts/fetch-bfcl fetches it)
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// Only this category; can be repeated [default: all]
    #[arg(long, value_name = "CATEGORY", value_parser = category)]
    pub category: Vec<Category>,
    /// Only the first questions of each category
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// What is common to all suites that can leave out parts.
    #[command(flatten)]
    pub measured: Measured,
}

/// `snaffle bench home-assist`.
#[derive(Debug, clap::Args)]
pub struct BenchHomeAssist {
    /// The folder of home-assistant-datasets with a folder for each home
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// Only the first requests of each group
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// What is common to all suites that can leave out parts.
    #[command(flatten)]
    pub measured: Measured,
}

/// `snaffle bench steps`.
#[derive(Debug, clap::Args)]
pub struct BenchSteps {
    /// How many tasks of fifty steps each
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = tasks)]
    pub tasks: usize,
    /// Only the first tasks
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Leave out the same model with grammar alone and a growing history
    #[arg(long)]
    pub no_history: bool,
    /// What is common to all suites that can leave out parts.
    #[command(flatten)]
    pub measured: Measured,
}

/// `snaffle bench replay`.
#[derive(Debug, clap::Args)]
pub struct BenchReplay {
    /// Recorded requests and replies, JSON Lines (`bench home --record` writes them)
    pub file: PathBuf,
    /// The folder of the houses that the requests name [default: the houses that ship]
    #[arg(long, value_name = "FOLDER")]
    pub houses: Option<PathBuf>,
    /// Only the first requests
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// A suite whose foreign outputs can be scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScoredSuite {
    /// The Berkeley Function Calling Leaderboard
    Bfcl,
}

/// `snaffle bench score`.
#[derive(Debug, clap::Args)]
pub struct BenchScore {
    /// Outputs, JSON Lines: `{"id": …, "result": …}` as in result files, or `{"id": …, "output": …}`
    pub file: PathBuf,
    /// What they answer
    #[arg(long, value_name = "SUITE", value_enum)]
    pub suite: ScoredSuite,
    /// The folder of the Python package bfcl-eval (scripts/fetch-bfcl fetches it)
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// The outputs write functions' names with `_` for `.`
    #[arg(long)]
    pub underscore_names: bool,
}

/// `snaffle bench report`.
#[derive(Debug, clap::Args)]
pub struct BenchReport {
    /// Result files of any suite: `--output` and `bench score --json` write them
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Write the page here
    #[arg(long, value_name = "FILE")]
    pub html: PathBuf,
    /// Its heading
    #[arg(long, default_value = "Snaffle benchmarks")]
    pub title: String,
}

fn tasks(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=10_000).contains(&count) => Ok(count),
        _ => Err(format!("{text} is not in 1..=10000")),
    }
}

fn category(name: &str) -> Result<Category, String> {
    Category::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Category::ALL.into_iter().map(Category::name).collect();
        format!("there are {}", known.join(", "))
    })
}

fn tried(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(tried) if (-8.0..=8.0).contains(&tried) => Ok(tried),
        _ => Err(format!("{text:?} is no number between -8 and 8")),
    }
}
