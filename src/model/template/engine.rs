//! The template language: minijinja as close to what model files expect as it gets, with bounds.

use super::super::shown::shown;
use super::turns::Turn;
use super::types::{FUEL, LONGEST_TEMPLATE, RenderOptions, TemplateError};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, context};
use regex::Regex;
use std::fmt;

const NAME: &str = "chat";
/// What templates are told when they ask for today's date: a prompt must not change with the
/// clock, and a model must not act on a date that nobody checked.
const DATE: jiff::civil::Date = jiff::civil::date(2026, 1, 1);

/// A compiled template.
pub(super) struct Engine {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("bos", &self.bos)
            .field("eos", &self.eos)
            .finish_non_exhaustive()
    }
}

impl Engine {
    pub(super) fn new(text: &str, bos: &str, eos: &str) -> Result<Self, TemplateError> {
        if text.len() > LONGEST_TEMPLATE {
            return Err(TemplateError::TooLong(text.len()));
        }
        let mut environment = Environment::new();
        // As the library does for which these templates are written.
        let rules = minijinja::syntax::SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| syntax(&error))?;
        environment.set_syntax(rules);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment
            .add_template_owned(NAME, without_training_tags(text)?)
            .map_err(|error| syntax(&error))?;
        Ok(Self {
            environment,
            bos: bos.to_owned(),
            eos: eos.to_owned(),
        })
    }

    /// Runs the template.
    pub(super) fn render(
        &self,
        turns: &[Turn],
        options: RenderOptions,
    ) -> Result<String, TemplateError> {
        let template = self
            .environment
            .get_template(NAME)
            .map_err(|error| failure(&error))?;
        let messages: Vec<Value> = turns
            .iter()
            .map(|turn| context! { role => turn.role, content => turn.content.as_str() })
            .collect();
        let values = context! {
            messages => messages,
            add_generation_prompt => options.reply,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
            // The switches of the families that think aloud.
            enable_thinking => options.think,
            thinking => options.think,
            // Calls never depend on what a template knows of tools.
            tools => (),
            documents => (),
        };
        template.render(values).map_err(|error| failure(&error))
    }
}

/// Marks for training masks, which mean nothing here, taken for conditions that hold.
fn without_training_tags(text: &str) -> Result<String, TemplateError> {
    let pattern = |word: &str| {
        Regex::new(&format!(r"\{{%([-+]?)\s*{word}\s*([-+]?)%\}}"))
            .map_err(|error| TemplateError::Syntax(error.to_string()))
    };
    let text = pattern("generation")?.replace_all(text, "{%$1 if true $2%}");
    let text = pattern("endgeneration")?.replace_all(&text, "{%$1 endif $2%}");
    Ok(text.into_owned())
}

const REFUSED: &str = "refused: ";

fn raise_exception(message: &str) -> Result<String, Error> {
    Err(Error::new(
        ErrorKind::InvalidOperation,
        format!("{REFUSED}{message}"),
    ))
}

fn strftime_now(format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, DATE)
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

fn syntax(error: &Error) -> TemplateError {
    TemplateError::Syntax(described(error))
}

fn failure(error: &Error) -> TemplateError {
    // What happened in an included part or a macro is the source of the error that is seen.
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(inner) = current.downcast_ref::<Error>() {
            if inner.kind() == ErrorKind::OutOfFuel {
                return TemplateError::Exhausted;
            }
            if let Some(reason) = inner.detail().and_then(|text| text.strip_prefix(REFUSED)) {
                return TemplateError::Refused(shown(reason, 200));
            }
        }
        cause = current.source();
    }
    TemplateError::Failed(described(error))
}

fn described(error: &Error) -> String {
    let detail = error.detail().unwrap_or_default();
    let line = error
        .line()
        .map_or(String::new(), |line| format!("line {line}: "));
    let colon = if detail.is_empty() { "" } else { ": " };
    shown(&format!("{line}{}{colon}{detail}", error.kind()), 240)
}
