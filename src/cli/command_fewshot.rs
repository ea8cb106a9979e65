//! `snaffle fewshot`: the examples that prompts get, and those of them that were learned or added.

use super::args_fewshot::{Add, ExampleSource, Fewshot};
use super::context::Context;
use super::error::Failure;
use super::exit::Exit;
use super::input::read_text;
use super::settings::Settings;
use super::style::{FAINT, NAME, STRONG, paint};
use super::suggest::nearest;
use super::world;
use crate::call::Reply;
use crate::fewshot::learned::LONGEST_LINE;
use crate::fewshot::{Example, ExampleId, LearnedFile, Pool, Source};
use crate::trace::sanitize_line;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// Runs it.
///
/// # Errors
/// A file that is wrong, an example that is none, an id that nothing has.
pub fn run(context: &mut Context, command: &Fewshot) -> Result<(), Failure> {
    match command {
        Fewshot::List {
            tool,
            source,
            settings,
        } => {
            let settings = context.settings(&settings.given)?;
            let source = source.map(ExampleSource::source);
            list(context, &settings, tool.as_deref(), source)
        }
        Fewshot::Add(args) => add(context, args),
        Fewshot::Forget { ids, settings } => {
            let settings = context.settings(&settings.given)?;
            forget(context, &settings, ids)
        }
        Fewshot::Export {
            source,
            output,
            settings,
        } => {
            let settings = context.settings(&settings.given)?;
            let source = source.map(ExampleSource::source);
            export(context, &settings, source, output.as_deref())
        }
    }
}

/// All examples; what is damaged is told of.
fn pool(context: &mut Context, settings: &Settings) -> Result<Pool, Failure> {
    let (pool, damage) = world::whole_pool(settings)?;
    if let Some(damage) = damage {
        context.terminal.warn(&damage);
    }
    Ok(pool)
}

fn list(
    context: &mut Context,
    settings: &Settings,
    tool: Option<&str>,
    source: Option<Source>,
) -> Result<(), Failure> {
    let pool = pool(context, settings)?;
    let wanted = |example: &Example| {
        source.is_none_or(|source| example.source == source)
            && tool.is_none_or(|tool| example.kind().split('+').any(|name| name == tool))
    };
    let mut kinds: BTreeMap<String, Vec<(&ExampleId, &Example)>> = BTreeMap::new();
    for (id, example) in pool.iter().filter(|(_, example)| wanted(example)) {
        kinds.entry(example.kind()).or_default().push((id, example));
    }
    let terminal = &mut context.terminal;
    if kinds.is_empty() {
        terminal.note("no such example");
    }
    for (kind, examples) in kinds {
        if !terminal.json {
            writeln!(terminal.out, "{}", paint(STRONG, sanitize_line(&kind)))?;
        }
        for (id, example) in examples {
            if terminal.json {
                terminal.write_json(&as_json(id, example))?;
                continue;
            }
            let from = match example.failure {
                Some(failure) => format!("{} ({failure})", example.source.as_str()),
                None => example.source.as_str().to_owned(),
            };
            writeln!(
                terminal.out,
                "  {}  {}  {}",
                paint(NAME, id),
                sanitize_line(&example.request),
                paint(FAINT, from),
            )?;
        }
    }
    Ok(())
}

fn as_json(id: &ExampleId, example: &Example) -> Value {
    let mut value = json!({
        "id": id.to_string(),
        "source": example.source,
        "kind": example.kind(),
        "request": example.request,
        "failure": example.failure,
    });
    let (key, reply) = match &example.reply {
        Reply::Calls(calls) => ("calls", json!(calls)),
        Reply::Ask(text) => ("ask", json!(text)),
        Reply::Answer(text) => ("answer", json!(text)),
    };
    value[key] = reply;
    value
}

fn add(context: &mut Context, args: &Add) -> Result<(), Failure> {
    let settings = context.settings(&args.settings.given)?;
    let examples = match &args.file {
        Some(path) => read(path)?,
        None => vec![from_flags(args)?],
    };
    check_tools(&settings, &examples)?;
    let known = pool(context, &settings)?;
    // What is there already is left as it is, unless it was only learned: then it stays for good.
    let written: BTreeSet<&ExampleId> = known
        .iter()
        .filter(|(_, example)| example.source != Source::Learned)
        .map(|(id, _)| id)
        .collect();
    let new: BTreeMap<ExampleId, Example> = examples
        .into_iter()
        .map(|example| (example.id(), example))
        .filter(|(id, _)| !written.contains(id))
        .map(|(id, example)| {
            let source = Source::Added;
            (id, Example { source, ..example })
        })
        .collect();
    let all: Vec<Example> = new.values().cloned().collect();
    if !all.is_empty() {
        LearnedFile::new(&settings.learned).add(&all)?;
    }
    let terminal = &mut context.terminal;
    for (id, example) in &new {
        if terminal.json {
            terminal.write_json(&as_json(id, example))?;
        } else {
            let request = sanitize_line(&example.request);
            writeln!(terminal.out, "{}  {request}", paint(NAME, id))?;
        }
    }
    if new.is_empty() {
        terminal.note("nothing is added: it was there already");
    }
    Ok(())
}

/// The examples of a file, all of them or none.
fn read(path: &Path) -> Result<Vec<Example>, Failure> {
    let text = read_text(path)?;
    let wrong = |error: String| Failure::input(format!("{}: {error}", path.display()));
    let mut examples = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let example = Example::parse(line, number + 1).map_err(|error| wrong(error.to_string()))?;
        let example =
            usable(example).map_err(|why| wrong(format!("line {}: {why}", number + 1)))?;
        examples.push(example);
    }
    if examples.is_empty() {
        return Err(wrong("it holds no example".to_owned()));
    }
    Ok(examples)
}

/// The example that the flags make.
fn from_flags(args: &Add) -> Result<Example, Failure> {
    let mut line = json!({ "request": args.request });
    if !args.call.is_empty() {
        let calls: Result<Vec<Value>, _> = args
            .call
            .iter()
            .map(|call| serde_json::from_str(call))
            .collect();
        line["calls"] = calls
            .map_err(|error| Failure::input(format!("--call is not JSON: {error}")))?
            .into();
    }
    for (key, text) in [("ask", &args.ask), ("answer", &args.answer)] {
        if let Some(text) = text {
            line[key] = text.as_str().into();
        }
    }
    let wrong = |why: String| {
        // There is one line only, and nobody wrote it as such.
        let why = why.strip_prefix("line 1: ").unwrap_or(&why);
        Failure::input(format!("the example is wrong: {why}"))
            .hint(r#"a call is written {"tool": "turn_on", "arguments": {"device": "{device}"}}"#)
    };
    let example = Example::parse(&line.to_string(), 1).map_err(|error| wrong(error.to_string()))?;
    usable(example).map_err(|why| wrong(why.to_owned()))
}

/// What the format allows and no prompt can use.
fn usable(example: Example) -> Result<Example, &'static str> {
    if example.request.trim().is_empty() {
        return Err("the request is empty");
    }
    if example.to_line().len() >= LONGEST_LINE {
        return Err("it is too long for a prompt");
    }
    Ok(example)
}

/// Refuses calls of tools that do not exist, where tools are given.
fn check_tools(settings: &Settings, examples: &[Example]) -> Result<(), Failure> {
    let given = settings.house.is_some()
        || !settings.tools.is_empty()
        || settings.weather.is_some()
        || settings.outbox.is_some()
        || settings.workspace.is_some();
    if !given {
        return Ok(());
    }
    let settings = Settings {
        // They are only looked at: nobody's house is held for it.
        dry_run: true,
        ..settings.clone()
    };
    let registry = world::registry(&settings)?;
    let names: Vec<&str> = registry.specs().map(|spec| spec.name.as_str()).collect();
    let mut calls = examples.iter().flat_map(Example::calls);
    match calls.find(|call| !names.contains(&call.tool.as_str())) {
        None => Ok(()),
        Some(call) => {
            let guess = nearest(&call.tool, names.iter().copied());
            Err(Failure::input(format!("there is no tool {:?}", call.tool))
                .maybe_hint(guess.map(|name| format!("did you mean {name:?}?"))))
        }
    }
}

fn forget(context: &mut Context, settings: &Settings, names: &[String]) -> Result<(), Failure> {
    let pool = pool(context, settings)?;
    let mut ids = BTreeSet::new();
    for name in names {
        ids.insert(found(&pool, settings, name)?);
    }
    let ids: Vec<ExampleId> = ids.into_iter().collect();
    LearnedFile::new(&settings.learned).forget(&ids)?;
    let terminal = &mut context.terminal;
    for id in ids {
        if terminal.json {
            terminal.write_json(&json!({ "id": id.to_string(), "forgotten": true }))?;
        } else if !terminal.quiet {
            writeln!(terminal.out, "{} is forgotten", paint(NAME, &id))?;
        }
    }
    Ok(())
}

/// The one example whose id begins so, if it can be forgotten.
fn found(pool: &Pool, settings: &Settings, name: &str) -> Result<ExampleId, Failure> {
    let begins = |id: &ExampleId| !name.is_empty() && id.to_string().starts_with(name);
    let mut all = pool.iter().filter(|(id, _)| begins(id));
    let (Some((id, example)), rest) = (all.next(), all.count()) else {
        return Err(Failure::input(format!("there is no example {name:?}"))
            .hint("`snaffle fewshot list` shows the ids"));
    };
    if rest > 0 {
        let count = rest + 1;
        let message = format!("{name:?} is the beginning of the ids of {count} examples");
        return Err(Failure::input(message).hint("write more of it"));
    }
    if example.source != Source::Seed {
        return Ok(id.clone());
    }
    if settings.examples.is_empty() {
        Err(
            Failure::input(format!("{id} ships with snaffle and cannot be forgotten")).hint(
                "to do without it, `snaffle fewshot export --source seed --output FILE`, take its \
                 line out, and set --examples FILE",
            ),
        )
    } else {
        Err(
            Failure::input(format!("{id} stands in a file of the setting `examples`"))
                .hint("take its line out there"),
        )
    }
}

fn export(
    context: &mut Context,
    settings: &Settings,
    source: Option<Source>,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let pool = pool(context, settings)?;
    let lines: Vec<String> = pool
        .iter()
        .filter(|(_, example)| source.is_none_or(|source| example.source == source))
        .map(|(_, example)| harmless(&example.to_line()))
        .collect();
    let terminal = &mut context.terminal;
    match output {
        None => {
            for line in lines {
                writeln!(terminal.out, "{line}")?;
            }
        }
        Some(path) => {
            let count = lines.len();
            let text: String = lines.into_iter().map(|line| line + "\n").collect();
            // Somebody may have worked on what is there.
            let mut file = match fs_err::File::create_new(path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    let message = format!("{} exists already", path.display());
                    return Err(Failure::new(Exit::Files, message)
                        .hint("name another file, or delete this one"));
                }
                file => file?,
            };
            file.write_all(text.as_bytes())?;
            terminal.note(&format!("{count} examples in {}", path.display()));
        }
    }
    Ok(())
}

/// JSON that says the same and that no terminal obeys: what [`sanitize_line`] would change is
/// written as JSON's own escapes.
fn harmless(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        let mut bytes = [0; 4];
        let text = &*c.encode_utf8(&mut bytes);
        if sanitize_line(text) == text {
            safe.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_lines_say_the_same_and_move_no_cursor() {
        for text in ["свет 💡", "a\u{1b}[2J", "\u{202e}x", "\u{e0041}", "\"\\\n"] {
            let json = json!(text).to_string();
            let safe = harmless(&json);
            assert_eq!(sanitize_line(&safe), safe);
            assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), text);
        }
    }
}
