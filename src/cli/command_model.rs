//! `snaffle model`: which models there are, fetching, describing and checking them.

use super::args::{Model, Origin};
use super::command_tune;
use super::context::Context;
use super::engine::manifest;
use super::error::Failure;
use super::exit::Exit;
use super::interrupt::Interrupts;
use super::style::{FAINT, GOOD, NAME, STRONG, WARN, paint};
use super::suggest::nearest;
use super::terminal::Terminal;
use crate::model::manifest::Source;
use crate::model::{
    Cancel, Entry, GgufInfo, Manifest, Progress, PullSettings, inspect, locate, pull, verify,
};
use crate::trace::sanitize_line;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Contexts for which the needed memory is shown.
const CONTEXTS: [u64; 3] = [2048, 4096, 32_768];

/// Runs it.
///
/// # Errors
/// A model that is unknown, cannot be fetched, or is not what it should be.
pub fn run(context: &mut Context, command: &Model) -> Result<Exit, Failure> {
    match command {
        Model::List { settings } => {
            let folder = context.settings(&settings.given)?.models_dir;
            list(context, &folder)?;
        }
        Model::Pull {
            name,
            from,
            settings,
        } => {
            let folder = context.settings(&settings.given)?.models_dir;
            fetch(context, &folder, name, *from)?;
        }
        Model::Info { model, settings } => {
            let settings = context.settings(&settings.given)?;
            info(context, &settings.models_dir, model, settings.context)?;
        }
        Model::Verify { names, settings } => {
            let folder = context.settings(&settings.given)?.models_dir;
            check(context, &folder, names)?;
        }
        Model::Tune(args) => return command_tune::run(context, args),
    }
    Ok(Exit::Success)
}

fn list(context: &mut Context, folder: &Path) -> Result<(), Failure> {
    let manifest = manifest(folder)?;
    let terminal = &mut context.terminal;
    for entry in manifest.models() {
        let path = folder.join(&entry.file);
        let here = path.is_file();
        if terminal.json {
            terminal.write_json(&json!({
                "name": entry.name,
                "title": entry.title,
                "here": here,
                "path": path.to_string_lossy(),
                "bytes": entry.size,
                "licence": entry.licence,
                "default": entry.default,
            }))?;
            continue;
        }
        let state = if here {
            paint(GOOD, "here     ")
        } else {
            paint(FAINT, "not here ")
        };
        let mark = if entry.default { " (default)" } else { "" };
        writeln!(
            terminal.out,
            "{}  {state}  {:>10}  {}{mark}, {}",
            paint(NAME, format!("{:<24}", entry.name)),
            HumanBytes(entry.size).to_string(),
            entry.title,
            entry.licence,
        )?;
    }
    terminal.note(&format!("in {}", folder.display()));
    Ok(())
}

fn known<'m>(manifest: &'m Manifest, name: &str) -> Result<&'m Entry, Failure> {
    manifest.get(name).ok_or_else(|| {
        let names = manifest.models().iter().map(|entry| entry.name.as_str());
        let hint = match nearest(name, names) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "`snaffle model list` shows all models".to_owned(),
        };
        Failure::new(Exit::Model, format!("the manifest has no model {name:?}")).hint(hint)
    })
}

fn fetch(context: &mut Context, folder: &Path, name: &str, from: Origin) -> Result<(), Failure> {
    let manifest = manifest(folder)?;
    let mut entry = known(&manifest, name)?.clone();
    entry.sources.retain(|source| match source {
        Source::Hub { .. } => from != Origin::Python,
        Source::Python { .. } => from != Origin::Hub,
    });
    let interrupts = Interrupts::install()?;
    let settings = PullSettings {
        hub_endpoint: context
            .surroundings
            .variable("HF_ENDPOINT")
            .map(str::to_owned),
        cancel: interrupts.begin(),
        ..PullSettings::default()
    };
    let mut progress = Bar::new(&context.terminal);
    let path = pull(&entry, folder, &settings, &mut progress);
    progress.0.finish_and_clear();
    let path = path?;
    let terminal = &mut context.terminal;
    if terminal.json {
        let value =
            json!({ "name": entry.name, "path": path.to_string_lossy(), "bytes": entry.size });
        return Ok(terminal.write_json(&value)?);
    }
    if !terminal.quiet {
        writeln!(
            terminal.out,
            "{} {} ({}, hash checked)",
            paint(NAME, &entry.name),
            sanitize_line(&path.to_string_lossy()),
            HumanBytes(entry.size),
        )?;
    }
    Ok(())
}

fn check(context: &mut Context, folder: &Path, names: &[String]) -> Result<(), Failure> {
    let manifest = manifest(folder)?;
    let entries: Vec<&Entry> = if names.is_empty() {
        let here = |entry: &&Entry| folder.join(&entry.file).is_file();
        manifest.models().iter().filter(here).collect()
    } else {
        let named = names.iter().map(|name| known(&manifest, name));
        named.collect::<Result<_, _>>()?
    };
    if entries.is_empty() {
        context.terminal.note("no model of the manifest is here");
    }
    for entry in entries {
        let mut progress = Bar::new(&context.terminal);
        let verified = verify(entry, folder, &Cancel::default(), &mut progress);
        progress.0.finish_and_clear();
        let verified = verified?;
        let terminal = &mut context.terminal;
        let what = if verified.whole_hash {
            "size and hash are right"
        } else {
            "size is right, and the published beginning of the hash"
        };
        if terminal.json {
            terminal.write_json(&json!({
                "name": entry.name,
                "path": verified.path.to_string_lossy(),
                "whole_hash": verified.whole_hash,
            }))?;
        } else {
            writeln!(
                terminal.out,
                "{} {}",
                paint(NAME, &entry.name),
                paint(GOOD, what)
            )?;
        }
    }
    Ok(())
}

fn info(
    context: &mut Context,
    folder: &Path,
    model: &str,
    wanted: Option<usize>,
) -> Result<(), Failure> {
    let located = locate(Some(model), folder, &manifest(folder)?)?;
    let info = inspect(&located.path)?;
    let mut contexts: Vec<u64> = match wanted {
        Some(wanted) => vec![wanted as u64],
        None => CONTEXTS.to_vec(),
    };
    if let (None, Some(trained)) = (wanted, info.context_length) {
        contexts.retain(|context| *context <= trained);
    }
    let path = located.path.to_string_lossy();
    let terminal = &mut context.terminal;
    if terminal.json {
        let memory: Vec<_> = contexts
            .iter()
            .filter_map(|context| Some((context, info.memory_at(*context)?)))
            .map(|(context, memory)| {
                json!({
                    "context": context,
                    "weights": memory.weights,
                    "cache": memory.cache,
                    "compute": memory.compute,
                    "total": memory.total(),
                })
            })
            .collect();
        return Ok(terminal.write_json(&json!({
            "path": path,
            "name": info.name,
            "architecture": info.architecture,
            "bytes": info.size,
            "parameters": info.parameters,
            "quantisation": info.quantisation,
            "context_length": info.context_length,
            "vocabulary": info.vocabulary,
            "tokenizer": info.tokenizer,
            "sliding_window": info.sliding_window,
            "recurrent": info.recurrent,
            "chat_template": info.chat_template,
            "licence": info.licence,
            "memory": memory,
        }))?);
    }
    writeln!(terminal.out, "{}", paint(STRONG, sanitize_line(&path)))?;
    for (name, value) in rows(&info) {
        writeln!(
            terminal.out,
            "  {}  {}",
            paint(NAME, format!("{name:<14}")),
            sanitize_line(&value)
        )?;
    }
    for context in contexts {
        let Some(memory) = info.memory_at(context) else {
            continue;
        };
        writeln!(
            terminal.out,
            "  {}  {} with {context} tokens of context ({} weights, {} cache, {} compute)",
            paint(NAME, format!("{:<14}", "memory")),
            HumanBytes(memory.total()),
            HumanBytes(memory.weights),
            HumanBytes(memory.cache),
            HumanBytes(memory.compute),
        )?;
    }
    if info.chat_template.is_none() {
        let text = "the file has no chat template; the plain layout is used";
        writeln!(terminal.out, "  {}", paint(WARN, text))?;
    }
    Ok(())
}

/// What a file says of itself, by name.
fn rows(info: &GgufInfo) -> Vec<(&'static str, String)> {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let template = info.chat_template.as_ref();
    let kind = match (info.recurrent, info.sliding_window) {
        (true, _) => Some("hybrid or recurrent: its memory cannot be cut".to_owned()),
        (false, Some(window)) => Some(format!("sliding window of {window} tokens")),
        (false, None) => None,
    };
    [
        ("name", info.name.clone()),
        ("architecture", Some(info.architecture.clone())),
        ("size", Some(HumanBytes(info.size).to_string())),
        (
            "parameters",
            Some(format!("{:.0} million", info.parameters as f64 / 1e6)),
        ),
        ("quantisation", Some(info.quantisation.clone())),
        ("context", number(info.context_length)),
        ("vocabulary", number(info.vocabulary)),
        ("tokenizer", info.tokenizer.clone()),
        ("attention", kind),
        (
            "template",
            template.map(|text| format!("{} bytes", text.len())),
        ),
        ("licence", info.licence.clone()),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// Shows a fetch on standard error, where a person sees it.
struct Bar(ProgressBar);

impl Bar {
    fn new(terminal: &Terminal) -> Self {
        let columns = terminal.columns();
        if !terminal.shows_progress() {
            return Self(ProgressBar::hidden());
        }
        let template = match columns {
            Some(columns) if columns < 80 => "{wide_msg}  {bytes}/{total_bytes}",
            _ => "{msg}  {bytes}/{total_bytes}  {bytes_per_sec}  {wide_bar:.cyan/dim}",
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(0).with_style(style))
    }
}

impl Progress for Bar {
    fn stage(&mut self, text: &str) {
        self.0.set_message(sanitize_line(text).into_owned());
    }

    fn bytes(&mut self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }
}
