//! Reads a definition from a TOML file, and says of each fault on which line it is.

use super::check::Part;
use super::definition::Definition;
use crate::call::ToolSpec;
use crate::files::bytes_of;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml_edit::{Document, Item, TableLike};

/// Longest definition, in bytes: every task keeps its own copy in the journal.
pub const LARGEST: u64 = 256 << 10;

/// A definition's file that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is too long.
    #[error("{}: longer than {LARGEST} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is no definition.
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

/// A fault with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedFault {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Whether the definition works all the same.
    pub warning: bool,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for LocatedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.path.display(), self.line)?;
        if self.warning {
            f.write_str("warning: ")?;
        }
        f.write_str(&self.message)
    }
}

/// A definition and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The definition.
    pub definition: Definition,
    /// In the order of their lines.
    pub faults: Vec<LocatedFault>,
}

/// A definition's text, read and understood, not yet checked: what it [uses](Definition::uses) has
/// to be loaded first.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    text: String,
    /// The definition, its paths made absolute.
    pub definition: Definition,
}

impl Source {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let error = |source| LoadError::Read {
            path: path.to_owned(),
            source,
        };
        let bytes = std::fs::File::open(path)
            .and_then(|file| bytes_of(file, LARGEST))
            .map_err(error)?
            .ok_or_else(|| LoadError::TooLarge {
                path: path.to_owned(),
            })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| error(io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text")))?;
        let mut source = Self::parse(text, path)?;
        let folder = path.canonicalize().map_err(error)?;
        let folder = folder.parent().unwrap_or(Path::new("/")).to_owned();
        for file in &mut source.definition.uses {
            *file = folder.join(&*file);
        }
        source.definition.folder = Some(folder);
        Ok(source)
    }

    /// Understands a text; `path` stands in messages.
    ///
    /// # Errors
    /// [`LoadError::Invalid`].
    pub fn parse(text: String, path: &Path) -> Result<Self, LoadError> {
        let definition = toml::from_str(&text).map_err(|error: toml::de::Error| {
            let message = error.message().trim().replace('\n', ", ");
            LoadError::Invalid {
                path: path.to_owned(),
                line: line_at(&text, error.span().map_or(0, |span| span.start)),
                message,
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            text,
            definition,
        })
    }

    /// What is wrong with it, in the order of lines; `tools` are all that it may call.
    pub fn faults(&self, tools: Option<&[Arc<ToolSpec>]>) -> Vec<LocatedFault> {
        // It was parsed before: what fails here has no lines, and the faults stand at the first.
        let document = Document::parse(self.text.as_str()).ok();
        let mut faults: Vec<LocatedFault> = self
            .definition
            .faults(tools)
            .into_iter()
            .map(|fault| LocatedFault {
                path: self.path.clone(),
                line: document.as_ref().map_or(1, |document| {
                    line_at(&self.text, offset(document.as_item(), &fault.place))
                }),
                warning: fault.warning,
                message: fault.message,
            })
            .collect();
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}

/// Reads and checks a text, as [`Source::parse`] and [`Source::faults`].
///
/// # Errors
/// A text that is no definition at all.
pub fn parse(
    text: &str,
    path: &Path,
    tools: Option<&[Arc<ToolSpec>]>,
) -> Result<Checked, LoadError> {
    let source = Source::parse(text.to_owned(), path)?;
    Ok(Checked {
        faults: source.faults(tools),
        definition: source.definition,
    })
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|&&byte| byte == b'\n').count() + 1
}

/// Where a place begins, in bytes: as far as the way to it exists in the file.
fn offset(root: &Item, place: &[Part]) -> usize {
    let mut offset = 0;
    let mut here = Place::Item(root);
    for part in place {
        let Some(next) = here.step(part, &mut offset) else {
            break;
        };
        here = next;
    }
    offset
}

/// What a way through a document passes.
enum Place<'d> {
    Item(&'d Item),
    Value(&'d toml_edit::Value),
    Table(&'d dyn TableLike),
}

impl<'d> Place<'d> {
    fn table(&self) -> Option<&'d dyn TableLike> {
        match self {
            Self::Item(item) => item.as_table_like(),
            Self::Value(value) => value.as_inline_table().map(|table| table as &dyn TableLike),
            Self::Table(table) => Some(*table),
        }
    }

    /// One step on; `offset` follows where the file says where.
    fn step(&self, part: &Part, offset: &mut usize) -> Option<Self> {
        match part {
            Part::Key(key) => {
                let table = self.table()?;
                let item = table.get(key)?;
                let span = table.key(key).and_then(toml_edit::Key::span);
                if let Some(span) = span.or_else(|| item.span()) {
                    *offset = span.start;
                }
                Some(Self::Item(item))
            }
            Part::Item(at) => {
                let (place, span) = match self {
                    Self::Item(Item::ArrayOfTables(tables)) => {
                        let table = tables.get(*at)?;
                        (Self::Table(table), table.span())
                    }
                    Self::Item(Item::Value(toml_edit::Value::Array(array)))
                    | Self::Value(toml_edit::Value::Array(array)) => {
                        let value = array.get(*at)?;
                        (Self::Value(value), value.span())
                    }
                    _ => return None,
                };
                if let Some(span) = span {
                    *offset = span.start;
                }
                Some(place)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Effect;
    use serde_json::json;

    fn spec(name: &str, effect: Effect) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({
                "type": "object",
                "properties": {"city": {"type": "string"}, "flight": {"type": "string"}},
            }),
            effect,
            idempotent: false,
        })
    }

    /// Each text, after two lines, with all of its faults.
    const CASES: &[(&str, &[&str])] = &[
        ("start='a'\n[state.a]\nend=true", &[]),
        (
            "start='b'\n[state.a]\nend=true",
            &["2: `start` names the state \"b\", which does not exist"],
        ),
        (
            "start='serch'\n[state.search]\nend=true",
            &["2: `start` names the state \"serch\", which does not exist (is it \"search\"?)"],
        ),
        (
            "start='a'\n[state.a]\ntools=['search']\n\ngo=[\n {on='success',to='c'},\n {on='failure',to='z'}]\n[state.z]\nend=true",
            &["7: `to` names the state \"c\", which does not exist"],
        ),
        (
            "start='a'\n[state.a]\n[state.z]\nend=true",
            &[
                "3: dead end: \"a\" is no end, and nothing leads out of it",
                "4: no way leads from \"a\" to \"z\"",
            ],
        ),
        (
            "start='a'\n[state.a]\ntools=['search']\ngo=[{on='success',to='b'},{on='failure',to='z'}]\n\
             [state.b]\ntools=['book']\ngo=[{on='success',to='c'}]\n\
             [state.c]\ntools=['book']\ngo=[{on='success',to='b'}]\n[state.z]\nend=true",
            &[
                "6: dead end: no way leads from \"b\" to an end",
                "9: dead end: no way leads from \"c\" to an end",
            ],
        ),
        (
            "start='a'\n[state.a]\ntools=[]\nask=false\ngo=[{on='success',to='z'}]\n[state.z]\nend=true",
            &[
                "3: nothing can be done in \"a\": no tool, no question, no answer",
                "3: dead end: \"a\" is no end, and nothing leads out of it",
                "7: no way leads from \"a\" to \"z\"",
            ],
        ),
        (
            "start='a'\n[state.a]\ndo=' '\ntools=['search']\ngo=[{on='success',to='z'}]\n\
             [state.z]\nend=true\ndo='rest'",
            &[
                "4: `do` is one line of 1 to 200 bytes",
                "9: \"z\" is an end: `do` has no effect",
            ],
        ),
        (
            "start='a'\n[state.a]\ntools=['search','bok']\ngo=[{on='success',to='z'}]\n[state.z]\nend=true",
            &["4: there is no tool \"bok\" (is it \"book\"?)"],
        ),
        (
            "start='a'\n[state.a]\ntools=['search']\n\
             bind=[{tool='search',argument='town',fact='f'}]\n\
             remember=[{tool='book',pointer='x',fact='g'}]\ngo=[{on='success',to='z'}]\n\
             [state.z]\nend=true",
            &[
                "5: search has no argument \"town\" (it has: city, flight)",
                "5: the fact \"f\" is used, and nothing remembers it",
                "6: the tool \"book\" is not legal in this state",
                "6: \"x\" is no JSON Pointer (empty, or beginning with '/')",
            ],
        ),
        (
            "start='a'\n[state.a]\ntools=['book']\nbind=[{tool='book',argument='flight',fact='flights'}]\n\
             go=[{on='success',to='b'}]\n\
             [state.b]\ntools=['search']\nremember=[{pointer='/flights',fact='flights'}]\n\
             go=[{on='success',to='z'}]\n[state.z]\nend=true",
            &["5: the fact \"flights\" is used before it can exist"],
        ),
        (
            "start='a'\n[state.a]\ntools=['search']\nremember=[{pointer='/flights',fact='flights'}]\n\
             go=[{on='success',to='b'},{on='failure',to='b'}]\n\
             [state.b]\ntools=['book']\nbind=[{tool='book',argument='flight',fact='flights'}]\n\
             go=[{on='success',to='z'}]\n[state.z]\nend=true",
            &["9: warning: the fact \"flights\" may not be there yet: book can then not be called"],
        ),
        (
            "start='a'\n[state.a]\ntools=['search']\nanswer=true\n\
             go=[{on='success',to='z'},{on='success',tool='search',to='a'},{on='unproven',to='a'}]\n\
             [state.z]\nend=true\nremember=[{fact='f'}]",
            &[
                "5: an answer leads nowhere: no `go` is on \"answer\"",
                "6: warning: never followed: an earlier one always fits",
                "6: nothing is to be proved: there is no `[[proof]]`",
                "9: \"z\" is an end: `remember` has no effect",
            ],
        ),
        (
            "start='a'\n[limits]\nturns=0\n[facts]\nday=2026-01-02\n[state.a]\nend=true\nfailed=true\n\
             [[proof]]\nfact='x'\nexists=true\n[[proof]]\ntool='book'\npointer=''\nexists=true\narguments={flight=7}",
            &[
                "4: a limit of 0 turns leaves no room for anything",
                "6: facts have no dates: write them as text",
                "7: no state is an end at which the task is done",
                "10: the fact \"x\" is used, and nothing remembers it",
                "13: a proof changes nothing: book does not only read",
                "13: book cannot be called so: 7 is not of type \"string\"",
            ],
        ),
        (
            "start='a'\n[state.a]\ntools=['search']\nguard=[{tool='search',fact='open {door}',is=true}]\n\
             go=[{on='success',when=[{fact='found',empty=false}],to='z'}]\nremember=[{fact='found'}]\n\
             [state.z]\nend=true\nsay='{found} {lost}'",
            &[
                "5: search has no argument \"door\" (it has: city, flight)",
                "5: the fact \"open {door}\" is used, and nothing remembers it",
                "10: the fact \"lost\" is used, and nothing remembers it",
            ],
        ),
    ];

    #[test]
    fn every_fault_is_named_with_its_line() {
        let tools = [spec("search", Effect::Read), spec("book", Effect::Risk)];
        for (text, expected) in CASES {
            let text = format!("name='n'\n{text}");
            let checked = parse(&text, "f".as_ref(), Some(&tools)).unwrap();
            let found: Vec<String> = checked
                .faults
                .iter()
                .map(|fault| fault.to_string()[2..].to_owned())
                .collect();
            assert_eq!(&found, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_definition_has_a_line_too() {
        for (text, expected) in [
            ("start='a'\nstate={}\ntypo=1", "f:3: unknown field `typo`"),
            ("start=1", "f:1: invalid type: integer"),
            (
                "name='n'\nstart='a'\n[state.a]\nend=true\ngo=[\n{on='luck',to='a'}]",
                "f:6: unknown variant `luck`",
            ),
            (
                "name='n'\nstart='a'\n[state.a]\nend=true\nguard=[\n{tool='t',fact='x'}]",
                "f:5: a test is missing",
            ),
            ("name=\n", "f:1: "),
        ] {
            let error = parse(text, "f".as_ref(), None).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn paths_are_from_the_files_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("task.toml");
        let text = "name='n'\nstart='a'\nuses=['t.toml']\n[state.a]\nend=true\n\
                    [[proof]]\ncommand=['./no-such-program']\n";
        std::fs::write(&path, text).unwrap();
        let source = Source::read(&path).unwrap();
        let real = folder.path().canonicalize().unwrap();
        assert_eq!(source.definition.uses, [real.join("t.toml")]);
        let faults = source.faults(None);
        assert!(
            faults[0]
                .to_string()
                .ends_with("task.toml:6: there is no program ./no-such-program"),
            "{faults:?}"
        );
        std::fs::write(&path, vec![b' '; 300_000]).unwrap();
        assert!(matches!(
            Source::read(&path),
            Err(LoadError::TooLarge { .. })
        ));
        std::fs::write(&path, b"\xff").unwrap();
        assert!(matches!(Source::read(&path), Err(LoadError::Read { .. })));
    }
}
