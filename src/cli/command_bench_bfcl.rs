//! `snaffle bench bfcl` and `snaffle bench score`.

use super::args_bench::{BenchBfcl, BenchScore, Measured, Part, ScoredSuite};
use super::bench_run::{Attempt, Suite, add, refuse_idle};
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_text;
use crate::agent::ToolsInPrompt;
use crate::bench::bfcl::dataset::read;
use crate::bench::bfcl::run::{AskError, Asker, PARALLEL_CALLS};
use crate::bench::bfcl::score::{Scores, score};
use crate::bench::bfcl::{Category, DatasetError, Names, Question};
use crate::bench::record::{Record, Run, shown, table};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        let failure = Self::input(error.to_string());
        match &error {
            DatasetError::NotThere { .. } => {
                failure.hint("scripts/fetch-bfcl FOLDER fetches the package and unpacks it")
            }
            _ => failure,
        }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Self::new(Exit::Internal, error.to_string())
    }
}

/// Runs it.
///
/// # Errors
/// A folder that is not the package's, or a model that cannot be used.
pub fn run(context: &mut Context, args: &BenchBfcl) -> Result<Exit, Failure> {
    let settings = context.settings(&args.measured.settings.given)?;
    let questions = questions(args)?;
    let Measured { runs, without, .. } = &args.measured;
    // There is one reply, with nothing that exists and nothing that happened before.
    let idle = [Part::Domains, Part::Grounding, Part::Hints, Part::State];
    refuse_idle(without, &idle)?;
    let mut suite = Suite::open(
        context,
        "bfcl",
        &settings,
        runs,
        without,
        questions.len(),
        |agent| {
            // The functions are new to the model: it must at least be told what they do.
            if settings.tools_in_prompt.is_none() {
                agent.layout.tools = ToolsInPrompt::Full;
            }
        },
    )?;
    let cancel = suite.cancel.clone();
    let mut runs: Vec<Run> = Vec::new();
    suite.each(&mut |measuring, attempt| {
        let Attempt {
            repetition,
            generator,
            mut examples,
            agent,
            model,
            without,
            ..
        } = attempt;
        let mut asker = Asker {
            generator,
            examples: &mut examples,
            settings: agent,
            cancel: cancel.clone(),
        };
        let mut one = |question: &Question| Ok(asker.ask(question)?);
        let records: Vec<Record> = measuring.run(
            &model,
            repetition,
            &questions,
            |question| &question.id,
            &mut one,
        )?;
        add(&mut runs, model, without, records);
        Ok(())
    })?;
    let mut value = suite.head();
    value["reports"] = runs.iter().map(Run::to_json).collect();
    let mut text = table(&runs);
    let _ = writeln!(
        text,
        "\nOne reply a question, nothing executed. Up to {PARALLEL_CALLS} calls in the parallel \
         categories, {} in the others.",
        suite.agent.max_calls
    );
    for run in &runs {
        text.push_str(&refused(run));
    }
    suite.finish(context, &value, &text)
}

/// The questions that the arguments pick.
fn questions(args: &BenchBfcl) -> Result<Vec<Question>, Failure> {
    let categories: Vec<Category> = Category::ALL
        .into_iter()
        .filter(|category| args.category.is_empty() || args.category.contains(category))
        .collect();
    let mut questions = read(&args.data, &categories)?;
    if let Some(limit) = args.limit {
        let mut taken: BTreeMap<Category, usize> = BTreeMap::new();
        questions.retain(|question| {
            let count = taken.entry(question.category).or_default();
            *count += 1;
            *count <= limit
        });
    }
    if questions.is_empty() {
        return Err(Failure::input("there is no question to ask"));
    }
    Ok(questions)
}

/// Questions that could not be put to the model, by reason: they count as wrong.
fn refused(run: &Run) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &run.records {
        let error = record.error.as_deref().unwrap_or_default();
        if record.text.is_none() && !error.is_empty() {
            let reason = error.split(':').next().unwrap_or_default();
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let mut text = String::new();
    for (reason, count) in reasons {
        let _ = writeln!(text, "{}: {count} not put to it ({reason})", run.label());
    }
    text
}

/// Scores a file of outputs.
///
/// # Errors
/// A file or folder that cannot be read.
pub fn score_file(context: &mut Context, args: &BenchScore) -> Result<Exit, Failure> {
    match args.suite {
        ScoredSuite::Bfcl => {}
    }
    let text = read_text(&args.file)?;
    let questions = read(&args.data, &Category::ALL)?;
    let names = if args.underscore_names {
        Names::Underscored
    } else {
        Names::AsGiven
    };
    let scores = score(&text, &questions, names)
        .map_err(|error| Failure::input(format!("{}: {error}", args.file.display())))?;
    let terminal = &mut context.terminal;
    if terminal.json {
        terminal.write_json(&scores.to_json())?;
    } else {
        write!(terminal.out, "{}", score_table(&scores))?;
    }
    Ok(Exit::Success)
}

fn score_table(scores: &Scores) -> String {
    let mut text = format!("{:<24}  {:>28}  most frequent error\n", "category", "right");
    let mut all = crate::bench::Share::default();
    for (category, sum) in scores.by_category() {
        let most = sum.errors.iter().max_by_key(|(_, count)| **count);
        let most = most.map_or(String::new(), |(name, count)| format!("{name} ({count})"));
        all.right += sum.right.right;
        all.of += sum.right.of;
        let row = format!("{:<24}  {:>28}  {most}", category.name(), shown(sum.right));
        let _ = writeln!(text, "{}", row.trim_end());
    }
    let _ = writeln!(text, "{:<24}  {:>28}", "all lines", shown(all));
    for (category, (questions, unanswered)) in &scores.unanswered {
        if *unanswered > 0 {
            let _ = writeln!(
                text,
                "{}: {unanswered} of {questions} questions have no output",
                category.name()
            );
        }
    }
    for (kind, count) in &scores.other {
        let kind = crate::trace::sanitize_line(kind);
        let _ = writeln!(text, "{kind}: not scored here (lines: {count})");
    }
    let (stated, different) = scores.agreement();
    if stated > 0 {
        let _ = writeln!(
            text,
            "verdicts stated in the file: {stated}, of which {different} are others than these"
        );
    }
    text
}
