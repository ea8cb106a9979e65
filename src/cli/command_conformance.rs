//! `snaffle bench maskbench` and `snaffle bench schema-suite`: thousands of schemas, each in a
//! process that may take only so much time and memory.

use super::args::{Conformance, Order};
use super::context::Context;
use super::engine::Words;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_text;
use super::interrupt::Interrupts;
use super::progress::bar;
use super::style::{FAINT, STRONG, WARN, paint};
use super::workers::{Ended, Pool, limit_memory};
use crate::bench::conformance::case::read_suite;
use crate::bench::conformance::{
    Case, Figures, Judgement, Masks, Reason, Verdict, judge, table, walk,
};
use crate::call::json::spaced;
use crate::grammar::schema::SchemaOptions;
use crate::mask::MaskStore;
use crate::trace::sanitize_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Drafts of the official suite: folder, and the URI of their dialect.
const DRAFTS: [(&str, &str); 2] = [
    (
        "draft2020-12",
        "https://json-schema.org/draft/2020-12/schema",
    ),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
];

/// Bytes of the workers' mask stores: the default of the settings.
const STORE: usize = 32 << 20;

/// Schemas of one data set, as lines for a worker.
struct DataSet {
    name: String,
    lines: Vec<String>,
}

/// Judges every JSON Lines file of a folder.
///
/// # Errors
/// A folder or file that is wrong, or a worker that does not start.
pub fn maskbench(context: &mut Context, args: &Conformance) -> Result<Exit, Failure> {
    let mut sets = Vec::new();
    for file in files(&args.data, "jsonl")? {
        let name = stem(&file);
        if !is_wanted(args, &name) {
            continue;
        }
        let text = read_text(&file)?;
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || args.limit.is_some_and(|limit| lines.len() >= limit) {
                continue;
            }
            Case::from_line(line, at + 1)
                .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
            lines.push(line.to_owned());
        }
        sets.push(DataSet { name, lines });
    }
    run(context, args, sets)
}

/// Judges the official suite: each file is a data set, named after its keyword.
///
/// # Errors
/// As [`maskbench`].
pub fn schema_suite(context: &mut Context, args: &Conformance) -> Result<Exit, Failure> {
    let mut sets = Vec::new();
    for (draft, dialect) in DRAFTS {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == draft) {
            continue;
        }
        // `format` is an annotation in the main files, as the standard has it by default, and
        // enforced in those that test the formats themselves.
        for (inner, formats) in [("", false), ("optional/format", true)] {
            for file in files(&args.data.join(draft).join(inner), "json")? {
                let mode = if formats { "format/" } else { "" };
                let name = format!("{draft} {mode}{}", stem(&file));
                let text = read_text(&file)?;
                let cases = read_suite(&text, &name, dialect, formats)
                    .map_err(|error| Failure::input(error.to_string()))?;
                let lines = cases
                    .iter()
                    .take(args.limit.unwrap_or(usize::MAX))
                    .map(serde_json::to_string)
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|error| Failure::input(format!("{name}: {error}")))?;
                sets.push(DataSet { name, lines });
            }
        }
    }
    run(context, args, sets)
}

fn is_wanted(args: &Conformance, name: &str) -> bool {
    args.only.is_empty() || args.only.iter().any(|only| only == name)
}

fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The files of a folder with this extension, by name.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Failure> {
    let input = |error: std::io::Error| Failure::input(error.to_string());
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder).map_err(input)? {
        let path = entry.map_err(input)?.path();
        if path.is_file() && path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What came of one schema.
struct Done {
    judgement: Judgement,
    masks: BTreeMap<String, Masks>,
}

fn run(context: &mut Context, args: &Conformance, sets: Vec<DataSet>) -> Result<Exit, Failure> {
    if sets.iter().all(|set| set.lines.is_empty()) {
        let folder = args.data.display();
        return Err(Failure::input(format!("{folder} has no such data"))
            .hint("--data names the folder of the data"));
    }
    let settings = context.settings(&args.settings.given)?;
    for model in &args.vocab {
        // What is wrong with a model is said once, here.
        Words::open(model, &settings)?;
    }
    let jobs = args
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let cancel = Interrupts::install()?.begin();
    let mut reports = Vec::new();
    for &order in &args.key_order {
        let pool = Pool {
            arguments: worker_arguments(args, order, &settings.models_dir),
            jobs: jobs.max(1),
            limit: Duration::from_secs(args.seconds.max(1)),
            cancel: cancel.clone(),
        };
        let judged = judged(context, args, &sets, &pool)?;
        reports.push(show(context, args, order, &judged)?);
    }
    let value = match <[Value; 1]>::try_from(reports) {
        Ok([report]) => report,
        Err(reports) => json!({ "orders": reports }),
    };
    if let Some(path) = &args.output {
        fs_err::write(path, format!("{value}\n"))?;
    }
    if context.terminal.json {
        context.terminal.write_json(&value)?;
    }
    if cancel.is_cancelled() {
        let message = "cancelled; the figures are of a part";
        return Err(Failure::new(Exit::Cancelled, message));
    }
    Ok(Exit::Success)
}

/// What came of the schemas of each data set.
fn judged(
    context: &Context,
    args: &Conformance,
    sets: &[DataSet],
    pool: &Pool,
) -> Result<Vec<(String, Vec<Done>)>, Failure> {
    let pieces: Vec<String> = sets.iter().flat_map(|set| set.lines.clone()).collect();
    let bar = bar(context.terminal.shows_progress(), pieces.len());
    let mut results: Vec<Option<Done>> = pieces.iter().map(|_| None).collect();
    pool.run(&pieces, &mut |at, ended| {
        bar.inc(1);
        // Ctrl-C ends the workers too: that is no fault of their schemas.
        if matches!(ended, Ended::Done(_)) || !pool.cancel.is_cancelled() {
            results[at] = done(&pieces[at], ended, args);
        }
    })?;
    bar.finish_and_clear();
    let mut results = results.into_iter();
    let judged = sets.iter().map(|set| {
        let own = results.by_ref().take(set.lines.len()).flatten();
        (set.name.clone(), own.collect())
    });
    Ok(judged.collect())
}

/// Workers are started with what they need to know; paths as they are here.
fn worker_arguments(args: &Conformance, order: Order, models_dir: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["--quiet", "bench", "worker", "--key-order"]
        .map(OsString::from)
        .to_vec();
    arguments.push(
        clap::ValueEnum::to_possible_value(&order)
            .map_or_else(OsString::new, |value| value.get_name().into()),
    );
    arguments.push(format!("--memory={}", args.memory).into());
    let mut folder = OsString::from("--models-dir=");
    folder.push(models_dir);
    arguments.push(folder);
    arguments.extend(
        args.vocab
            .iter()
            .map(|model| format!("--vocab={model}").into()),
    );
    arguments
}

/// The answer of a worker about the schema in `line`.
fn done(line: &str, ended: Ended, args: &Conformance) -> Option<Done> {
    let (replies, lost) = match ended {
        Ended::Done(replies) => (replies, None),
        Ended::Late(replies) => {
            let message = format!("more than {} s", args.seconds);
            (replies, Some((Reason::Time, message)))
        }
        Ended::OutOfMemory(replies) => {
            let message = format!("more than {} MiB", args.memory);
            (replies, Some((Reason::Memory, message)))
        }
        Ended::Died(replies, how) => (replies, Some((Reason::Crash, how))),
    };
    let mut judgement = None;
    let mut masks = BTreeMap::new();
    for mut reply in replies {
        if let Ok(found) = serde_json::from_value::<Judgement>(reply["judgement"].take()) {
            judgement = Some(found);
        } else if let Some(name) = reply["vocabulary"].as_str().map(str::to_owned)
            && let Ok(found) = serde_json::from_value::<Masks>(reply["masks"].take())
        {
            masks.insert(name, found);
        }
    }
    let judgement = match (judgement, lost) {
        // The schema was judged, and lost only while its masks were measured.
        (Some(judgement), Some((reason, message))) => {
            let stopped = Some(format!("{}: {message}", reason.name()));
            let lost = Masks {
                stopped,
                ..Masks::default()
            };
            masks.entry("(lost)".to_owned()).or_insert(lost);
            judgement
        }
        (Some(judgement), None) => judgement,
        (None, lost) => {
            let case = Case::from_line(line, 1).ok()?;
            let (reason, message) = lost.unwrap_or_else(|| (Reason::Crash, "no answer".to_owned()));
            Judgement::lost(&case, reason, message)
        }
    };
    Some(Done { judgement, masks })
}

/// Shows the figures of one order of keys, and returns the report of it.
fn show(
    context: &mut Context,
    args: &Conformance,
    order: Order,
    judged: &[(String, Vec<Done>)],
) -> Result<Value, Failure> {
    let mut total = Figures::default();
    let mut rows: Vec<(&str, Figures)> = Vec::new();
    for (name, schemas) in judged {
        let mut figures = Figures::default();
        for done in schemas {
            figures.add(&done.judgement);
            for (vocabulary, masks) in &done.masks {
                figures.add_masks(vocabulary, masks);
            }
        }
        total.merge(&figures);
        rows.push((name, figures));
    }
    rows.push(("all", total));
    let value = report(args, order, judged, &rows);
    let terminal = &mut context.terminal;
    if terminal.json {
        return Ok(value);
    }
    if args.key_order.len() > 1 {
        let title = format!("keys in {} order", order_name(order));
        writeln!(terminal.out, "{}", paint(STRONG, title))?;
    }
    let rows: Vec<(&str, &Figures)> = rows
        .iter()
        .map(|(name, figures)| (*name, figures))
        .collect();
    write!(terminal.out, "{}", table(&rows))?;
    let mut hidden = 0;
    for (name, schemas) in judged {
        for done in schemas {
            for (always, line) in trouble(&done.judgement) {
                if args.list || always {
                    let name = paint(FAINT, sanitize_line(name));
                    writeln!(terminal.out, "{name} {line}")?;
                } else {
                    hidden += 1;
                }
            }
        }
    }
    if hidden > 0 {
        terminal.note(&format!(
            "{hidden} refusals, instances in another order and false acceptances are not listed: --list does"
        ));
    }
    Ok(value)
}

fn order_name(order: Order) -> String {
    format!("{order:?}").to_lowercase()
}

/// Lines about what is wrong with a schema, and whether they are shown unasked.
fn trouble(judgement: &Judgement) -> Vec<(bool, String)> {
    let id = paint(STRONG, sanitize_line(&judgement.id));
    match &judgement.verdict {
        Verdict::Refused { reason, message } => {
            let word = paint(WARN, reason.name());
            let line = format!("{id} refused, {word}: {}", sanitize_line(message));
            vec![(!reason.is_sound(), line)]
        }
        Verdict::Compiled(compared) => {
            let rejections = compared.false_rejections.iter().map(|rejection| {
                let [before, after] = &rejection.excerpt;
                let why = if rejection.order { " (order)" } else { "" };
                let line = format!(
                    "{id} instance {} rejected{why}: {}{}{}",
                    rejection.test,
                    sanitize_line(before),
                    paint(WARN, "⟂"),
                    sanitize_line(after)
                );
                (!rejection.order, line)
            });
            let acceptances = compared.false_acceptances.iter().map(|acceptance| {
                let caught = if acceptance.caught {
                    ""
                } else {
                    ", not by the validator either"
                };
                let line = format!(
                    "{id} instance {} not rejected{caught} [{}]: {}",
                    acceptance.test,
                    sanitize_line(&acceptance.checked.join(", ")),
                    sanitize_line(&acceptance.excerpt)
                );
                (!acceptance.reported, line)
            });
            rejections.chain(acceptances).collect()
        }
    }
}

/// Everything, for a machine.
fn report(
    args: &Conformance,
    order: Order,
    judged: &[(String, Vec<Done>)],
    rows: &[(&str, Figures)],
) -> Value {
    let figures: serde_json::Map<String, Value> = rows
        .iter()
        .map(|(name, figures)| ((*name).to_owned(), figures.to_json()))
        .collect();
    let schemas: Vec<Value> = judged
        .iter()
        .flat_map(|(name, schemas)| schemas.iter().map(move |done| (name, done)))
        .map(|(name, done)| json!({ "set": name, "judgement": done.judgement }))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "key_order": order_name(order),
        "seconds": args.seconds,
        "memory_mib": args.memory,
        "vocabularies": args.vocab,
        "figures": figures,
        "schemas": schemas,
    })
}

/// Answers lines on standard input until there are no more.
///
/// # Errors
/// A model that cannot be used, or a stream that fails.
pub fn work(context: &mut Context, args: &Conformance) -> Result<Exit, Failure> {
    let settings = context.settings(&args.settings.given)?;
    let vocabularies = args
        .vocab
        .iter()
        .map(|model| {
            Ok((
                Words::open(model, &settings)?,
                Arc::new(MaskStore::new(STORE)),
            ))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let options = SchemaOptions {
        key_order: args.key_order.first().copied().unwrap_or_default().into(),
        ..SchemaOptions::default()
    };
    limit_memory(args.memory << 20)?;
    let terminal = &mut context.terminal;
    let mut say = |value: &Value| -> Result<(), Failure> {
        terminal.write_json(value)?;
        Ok(terminal.out.flush()?)
    };
    say(&json!({ "ready": true }))?;
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let case =
            Case::from_line(&line?, at + 1).map_err(|error| Failure::input(error.to_string()))?;
        let (judgement, compiled) = judge(&case, &options);
        say(&json!({ "judgement": judgement }))?;
        let Some(compiled) = compiled else {
            say(&json!({ "done": true }))?;
            continue;
        };
        let texts = accepted(&case, &judgement);
        for (words, store) in &vocabularies {
            let tokens = texts
                .iter()
                .map(|text| Ok((text.clone(), words.tokenize(text)?)))
                .collect::<Result<Vec<_>, Failure>>()?;
            let masks = walk(&compiled.grammar, &tokens, 1, &words.lexicon, store);
            say(&json!({ "vocabulary": words.name, "masks": masks }))?;
        }
        say(&json!({ "done": true }))?;
    }
    Ok(Exit::Success)
}

/// The valid instances that the grammar accepts.
fn accepted(case: &Case, judgement: &Judgement) -> Vec<String> {
    let Verdict::Compiled(compared) = &judgement.verdict else {
        return Vec::new();
    };
    let rejected = |at: usize| compared.false_rejections.iter().any(|r| r.test == at);
    case.tests
        .iter()
        .enumerate()
        .filter(|(at, test)| test.valid && !rejected(*at))
        .map(|(_, test)| spaced(&test.data))
        .collect()
}
