//! `snaffle config`: what is set, and where that comes from.

use super::args::Config;
use super::config::layers::{Layers, Resolved, Source};
use super::config::registry::{Group, SETTINGS};
use super::context::Context;
use super::error::Failure;
use super::style::{FAINT, NAME, STRONG, paint};
use crate::trace::sanitize_line;
use serde_json::{Value, json};
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// Runs it.
///
/// # Errors
/// A wrong setting, or a stream that fails.
pub fn run(context: &mut Context, command: &Config) -> Result<(), Failure> {
    match command {
        Config::Show { changed, settings } => {
            let layers = context.layers(&settings.given)?;
            // What cannot be resolved is an error here too.
            context.resolve(&layers)?;
            show(context, &layers, *changed)
        }
        Config::Explain if context.terminal.json => {
            for setting in SETTINGS {
                context.terminal.write_json(&json!({
                    "name": setting.name,
                    "group": setting.group.title(),
                    "type": setting.kind.describe(),
                    "default": setting.default,
                    "unset": setting.default.is_none().then_some(setting.unset),
                    "meaning": setting.doc,
                }))?;
            }
            Ok(())
        }
        Config::Explain => Ok(write!(context.terminal.out, "{}", explain())?),
    }
}

fn show(context: &mut Context, layers: &Layers, changed: bool) -> Result<(), Failure> {
    let shown: Vec<&Resolved> = layers
        .iter()
        .filter(|resolved| !changed || resolved.source != Source::Default)
        .collect();
    let terminal = &mut context.terminal;
    if terminal.json {
        for resolved in shown {
            terminal.write_json(&as_json(resolved))?;
        }
        return Ok(());
    }
    let values: Vec<String> = shown.iter().map(|resolved| value_text(resolved)).collect();
    let name_width = shown
        .iter()
        .map(|r| r.setting.name.len())
        .max()
        .unwrap_or(0);
    let value_width = values.iter().map(|v| v.width()).max().unwrap_or(0).min(40);
    for group in Group::ALL {
        let rows: Vec<_> = shown
            .iter()
            .zip(&values)
            .filter(|(resolved, _)| resolved.setting.group == group)
            .collect();
        if rows.is_empty() {
            continue;
        }
        writeln!(terminal.out, "{}", paint(STRONG, group.title()))?;
        for (resolved, value) in rows {
            let name = format!("{:<name_width$}", resolved.setting.name);
            let padding = " ".repeat(value_width.saturating_sub(value.width()));
            let (value, source) = match resolved.source {
                Source::Default => (paint(FAINT, value), paint(FAINT, "default")),
                _ => (
                    value.clone(),
                    sanitize_line(&resolved.source.to_string()).into_owned(),
                ),
            };
            writeln!(
                terminal.out,
                "  {}  {value}{padding}  {source}",
                paint(NAME, name)
            )?;
        }
    }
    Ok(())
}

fn value_text(resolved: &Resolved) -> String {
    match &resolved.value {
        Some(toml::Value::String(text)) => sanitize_line(text).into_owned(),
        Some(value) => sanitize_line(&value.to_string()).into_owned(),
        None => format!("({})", resolved.setting.unset.replace('`', "")),
    }
}

fn as_json(resolved: &Resolved) -> Value {
    let source = match &resolved.source {
        Source::Default => json!({ "from": "default" }),
        Source::File { path, line } => {
            json!({ "from": "file", "path": path.to_string_lossy(), "line": line })
        }
        Source::Environment { variable } => {
            json!({ "from": "environment", "variable": variable })
        }
        Source::Flag => json!({ "from": "command line" }),
    };
    // TOML values are JSON values, dates aside, and no setting is a date.
    let value = serde_json::to_value(&resolved.value).unwrap_or_default();
    json!({ "name": resolved.setting.name, "value": value, "source": source })
}

/// Every setting in Markdown: the README's table.
pub fn explain() -> String {
    let mut text = String::from("| setting | type | default | meaning |\n|---|---|---|---|\n");
    for setting in SETTINGS {
        let default = match setting.default {
            Some(default) => format!("`{default}`"),
            None => setting.unset.to_owned(),
        };
        text.push_str(&format!(
            "| `{}` | {} | {default} | {} |\n",
            setting.name,
            setting.kind.describe(),
            setting.doc,
        ));
    }
    text
}
