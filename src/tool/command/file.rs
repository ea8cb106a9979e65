//! Reads declarations of command tools: every mistake is named with file and line, and nothing is
//! left to be found out when the tool is called.

use super::process::Program;
use crate::call::arguments::ArgumentSchema;
use crate::call::{Effect, ToolSpec};
use crate::tool::text::read_file;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// A tool as it was declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// What the model and the gate see.
    pub spec: ToolSpec,
    /// What is run.
    pub program: Program,
    /// Where live values come from, by argument.
    pub domains: BTreeMap<String, Live>,
    /// Looks whether an interrupted call took effect.
    pub check: Option<Program>,
    /// Whether a success ends the run, its result being the answer.
    pub ends: bool,
}

/// Where the live values of an argument come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// These.
    Values(Vec<Value>),
    /// What a program lists, asked at every turn.
    Program(Program),
}

/// What can be wrong with a file of command tools.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Something in it is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
}

/// Reads the declarations in the file at `path`. Programs are named by a path from that file's
/// folder, where they then run, or by a name to be found in `PATH`.
///
/// # Errors
/// [`CommandError`]: also for a schema that is none and for a program that is not there.
pub fn load(path: &Path) -> Result<Vec<Declaration>, CommandError> {
    let text = read_file(path)?;
    let folder = fs_err::canonicalize(path)?;
    let folder = folder.parent().unwrap_or(Path::new("/")).to_owned();
    let reader = Reader {
        text: &text,
        path,
        folder,
    };
    let raw: RawFile = toml::from_str(&text).map_err(|error| {
        reader.invalid(
            error.span().unwrap_or(0..0),
            error.message().trim().replace('\n', ", "),
        )
    })?;
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut declarations = Vec::with_capacity(raw.tool.len());
    for tool in raw.tool {
        let name = tool.name.get_ref();
        let line = reader.line(&tool.name.span());
        if let Some(first) = names.insert(name.clone(), line) {
            return Err(reader.invalid(
                tool.name.span(),
                format!("there are two tools called `{name}`, the first at line {first}"),
            ));
        }
        declarations.push(reader.declaration(tool)?);
    }
    Ok(declarations)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    tool: Vec<RawTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    name: Spanned<String>,
    description: String,
    effect: Option<Effect>,
    #[serde(default)]
    idempotent: bool,
    timeout_seconds: Option<Spanned<f64>>,
    max_output_bytes: Option<Spanned<u64>>,
    program: Spanned<Vec<String>>,
    #[serde(default)]
    environment: Vec<String>,
    parameters: Option<Spanned<toml::Table>>,
    parameters_json: Option<Spanned<String>>,
    #[serde(default)]
    domains: BTreeMap<Spanned<String>, RawLive>,
    check: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    ends: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawLive {
    Values(Vec<toml::Value>),
    Program(RawLister),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLister {
    program: Vec<String>,
}

struct Reader<'t> {
    text: &'t str,
    path: &'t Path,
    folder: PathBuf,
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().iter().take(span.start);
        before.filter(|&&byte| byte == b'\n').count() + 1
    }

    fn invalid(&self, span: Range<usize>, message: impl Into<String>) -> CommandError {
        CommandError::Invalid {
            path: self.path.to_owned(),
            line: self.line(&span),
            message: message.into(),
        }
    }

    fn declaration(&self, raw: RawTool) -> Result<Declaration, CommandError> {
        let at_name = raw.name.span();
        let name = raw.name.into_inner();
        if !ToolSpec::is_name(&name) {
            return Err(self.invalid(
                at_name,
                format!("a tool's name is 1 to 64 letters, digits, `_`, `.` and `-`, not {name:?}"),
            ));
        }
        let (parameters, at_parameters) = match (raw.parameters, raw.parameters_json) {
            (Some(_), Some(json)) => {
                return Err(self.invalid(
                    json.span(),
                    "`parameters` and `parameters_json` are two ways to say the same: give one",
                ));
            }
            (Some(table), None) => {
                let span = table.span();
                let value = to_json(toml::Value::Table(table.into_inner()))
                    .map_err(|message| self.invalid(span.clone(), message))?;
                (value, span)
            }
            (None, Some(json)) => {
                let span = json.span();
                let value = serde_json::from_str(json.get_ref()).map_err(|error| {
                    self.invalid(span.clone(), format!("parameters_json: {error}"))
                })?;
                (value, span)
            }
            (None, None) => (
                serde_json::json!({"type": "object", "properties": {}}),
                at_name.clone(),
            ),
        };
        let spec = ToolSpec {
            name,
            description: raw.description,
            parameters,
            effect: raw.effect.unwrap_or(Effect::Risk),
            idempotent: raw.idempotent,
        };
        ArgumentSchema::new(&spec)
            .map_err(|error| self.invalid(at_parameters, error.to_string()))?;

        let timeout = match raw.timeout_seconds {
            None => Duration::from_secs(10),
            Some(seconds) => Some(*seconds.get_ref())
                .filter(|seconds| *seconds > 0.0 && *seconds <= 3600.0)
                .map(Duration::from_secs_f64)
                .ok_or_else(|| {
                    self.invalid(
                        seconds.span(),
                        "`timeout_seconds` is above 0 and at most 3600",
                    )
                })?,
        };
        let max_output = match raw.max_output_bytes {
            None => 64 << 10,
            Some(bytes) => usize::try_from(*bytes.get_ref())
                .ok()
                .filter(|bytes| (1..=16 << 20).contains(bytes))
                .ok_or_else(|| {
                    self.invalid(
                        bytes.span(),
                        "`max_output_bytes` is from 1 to 16777216 (16 MiB)",
                    )
                })?,
        };
        let program = |words: &[String], span: Range<usize>| -> Result<Program, CommandError> {
            let (executable, arguments) = words
                .split_first()
                .ok_or_else(|| self.invalid(span.clone(), "`program` is empty"))?;
            Ok(Program {
                executable: self
                    .find(executable)
                    .map_err(|message| self.invalid(span, message))?,
                arguments: arguments.to_vec(),
                folder: self.folder.clone(),
                environment: raw.environment.clone(),
                timeout,
                max_output,
            })
        };
        let main = program(raw.program.get_ref(), raw.program.span())?;
        let check = match &raw.check {
            Some(words) => Some(program(words.get_ref(), words.span())?),
            None => None,
        };
        let mut domains = BTreeMap::new();
        for (argument, live) in raw.domains {
            let span = argument.span();
            let argument = argument.into_inner();
            let declared = spec
                .parameters
                .get("properties")
                .is_some_and(|properties| properties.get(&argument).is_some());
            if !declared {
                return Err(self.invalid(
                    span,
                    format!("`{}` has no argument `{argument}`", spec.name),
                ));
            }
            let live = match live {
                RawLive::Program(lister) => Live::Program(program(&lister.program, span)?),
                RawLive::Values(values) => Live::Values(
                    values
                        .into_iter()
                        .map(to_json)
                        .collect::<Result<_, _>>()
                        .map_err(|message| self.invalid(span, message))?,
                ),
            };
            domains.insert(argument, live);
        }
        Ok(Declaration {
            spec,
            program: main,
            check,
            ends: raw.ends,
            domains,
        })
    }

    /// The executable file that a program's name means.
    #[expect(
        clippy::disallowed_methods,
        reason = "where programs are is the environment's to say, not a setting"
    )]
    fn find(&self, name: &str) -> Result<PathBuf, String> {
        let is_program = |path: &Path| {
            std::fs::metadata(path)
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        if name.contains('/') {
            let path = self.folder.join(name);
            return if is_program(&path) {
                Ok(path)
            } else if path.is_file() {
                Err(format!("{} may not be executed", path.display()))
            } else {
                Err(format!("there is no program {}", path.display()))
            };
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| is_program(path))
            .ok_or_else(|| format!("there is no program {name:?} in PATH"))
    }
}

fn to_json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or("JSON has no such number")?,
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(_) => return Err("JSON has no dates: write them as text".into()),
        toml::Value::Array(items) => items.into_iter().map(to_json).collect::<Result<_, _>>()?,
        toml::Value::Table(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, value)| Ok((key, to_json(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}
