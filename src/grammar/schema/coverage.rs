//! What became of every keyword of a schema.

use std::fmt;

/// How a keyword is upheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Treatment {
    /// The grammar admits only texts that satisfy it.
    Enforced,
    /// The schema sets no bound here and the grammar sets one, so that generation ends.
    Bounded,
    /// It constrains nothing: a description, an unknown keyword, an unknown format.
    Annotation,
    /// No grammar says it, or not at a bearable size: the value must be validated after
    /// generation.
    Checked,
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enforced => "enforced",
            Self::Bounded => "bounded",
            Self::Annotation => "annotation",
            Self::Checked => "checked",
        })
    }
}

/// One keyword at one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoverageEntry {
    /// The keyword, such as `minLength`.
    pub keyword: String,
    /// JSON Pointer of the schema that holds it.
    pub pointer: String,
    /// What became of it.
    pub treatment: Treatment,
    /// Why, where it is not simply enforced.
    pub note: Option<String>,
}

/// The report of one compilation: every keyword that was met, in the order it was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    entries: Vec<CoverageEntry>,
}

impl Coverage {
    pub(super) fn new(entries: Vec<CoverageEntry>) -> Self {
        Self { entries }
    }

    /// All keywords, each with its place.
    pub fn entries(&self) -> &[CoverageEntry] {
        &self.entries
    }

    /// Those that a generated value must still be validated against.
    pub fn checked(&self) -> impl Iterator<Item = &CoverageEntry> {
        self.with(Treatment::Checked)
    }

    /// Those of one treatment.
    pub fn with(&self, treatment: Treatment) -> impl Iterator<Item = &CoverageEntry> {
        self.entries
            .iter()
            .filter(move |entry| entry.treatment == treatment)
    }

    /// Whether every text of the grammar satisfies the schema, so that no validation is needed.
    pub fn is_complete(&self) -> bool {
        self.checked().next().is_none()
    }

    /// Adds another report, such as that of the next tool.
    pub fn extend(&mut self, other: Coverage) {
        self.entries.extend(other.entries);
    }
}
