//! One schema judged: is it compiled or refused, and are its instances told apart rightly?

use jsonschema::{PatternOptions, Validator};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

use super::case::{Case, Test};
use super::order::matches_in_some_order;
use crate::call::json::{shortened, spaced};
use crate::grammar::lower::LowerError;
use crate::grammar::schema::{Compiled, SchemaError, SchemaOptions, compile};
use crate::grammar::{LimitError, Limits, Recogniser};

/// Why a schema gives no grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// It breaks the rules of JSON Schema.
    Malformed,
    /// Nothing satisfies it.
    Unsatisfiable,
    /// It refers to something outside itself.
    External,
    /// It exceeds a limit that was named.
    Limit,
    /// Not one of the four reasons: it took longer than was allowed.
    Time,
    /// Not one of the four reasons: it took more memory than was allowed.
    Memory,
    /// Not one of the four reasons: the process died of it.
    Crash,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Unsatisfiable,
        Self::External,
        Self::Limit,
        Self::Time,
        Self::Memory,
        Self::Crash,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unsatisfiable => "unsatisfiable",
            Self::External => "external",
            Self::Limit => "limit",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Crash => "crash",
        }
    }

    /// Whether a schema may be refused for it.
    pub fn is_sound(self) -> bool {
        !matches!(self, Self::Time | Self::Memory | Self::Crash)
    }
}

/// What came of a schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The schema's name.
    pub id: String,
    /// Valid instances that there are.
    pub valid: usize,
    /// Invalid instances that there are.
    pub invalid: usize,
    /// Time from the schema to the grammar, of the processor: other programs do not count.
    pub compile: Duration,
    /// Time from the grammar to an automaton over bytes, likewise.
    pub lower: Duration,
    /// What came of it.
    pub verdict: Verdict,
}

/// Refused or compiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// There is no grammar.
    Refused {
        /// For which reason.
        reason: Reason,
        /// In words.
        message: String,
    },
    /// There is one, and its instances were tried.
    Compiled(Compared),
}

/// Where the grammar, and the grammar and the validator together, are wrong about instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Valid instances that the grammar rejects.
    pub false_rejections: Vec<FalseRejection>,
    /// Invalid instances that the grammar accepts.
    pub false_acceptances: Vec<FalseAcceptance>,
    /// Valid instances that the grammar accepts and the validator rejects.
    pub validator_rejects: usize,
    /// Why there is no validator, if there is none.
    pub no_validator: Option<String>,
}

/// A valid instance that the grammar rejects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FalseRejection {
    /// Which of the schema's instances, from 0.
    pub test: usize,
    /// Bytes that match.
    pub at: usize,
    /// The text up to there, and from there: its ends only.
    pub excerpt: [String; 2],
    /// Whether the instance is accepted with its members in another order.
    pub order: bool,
}

/// An invalid instance that the grammar accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FalseAcceptance {
    /// Which of the schema's instances, from 0.
    pub test: usize,
    /// Its beginning.
    pub excerpt: String,
    /// Keywords that the coverage reports as checked after generation (the first few), with their
    /// places.
    pub checked: Vec<String>,
    /// Whether the coverage reports anything as checked after generation.
    pub reported: bool,
    /// Whether the validator rejects it.
    pub caught: bool,
}

impl Judgement {
    /// A judgement on a schema that got none: its process took too long, too much, or died.
    pub fn lost(case: &Case, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            id: case.id.clone(),
            valid: case.tests.iter().filter(|test| test.valid).count(),
            invalid: case.tests.iter().filter(|test| !test.valid).count(),
            compile: Duration::ZERO,
            lower: Duration::ZERO,
            verdict: Verdict::Refused {
                reason,
                message: message.into(),
            },
        }
    }

    /// Whether there are both valid and invalid instances.
    pub fn has_both(&self) -> bool {
        self.valid > 0 && self.invalid > 0
    }

    /// Whether the grammar alone accepts all valid and rejects all invalid instances.
    pub fn is_right(&self) -> bool {
        matches!(&self.verdict, Verdict::Compiled(compared)
            if compared.false_rejections.is_empty() && compared.false_acceptances.is_empty())
    }

    /// The same for the grammar and the validator together.
    pub fn is_right_with_validator(&self) -> bool {
        matches!(&self.verdict, Verdict::Compiled(compared)
            if compared.false_rejections.is_empty()
                && compared.validator_rejects == 0
                && compared.false_acceptances.iter().all(|accepted| accepted.caught))
    }
}

/// Steps of a backtracking pattern (look-around, back references) in the validator.
const BACKTRACKING: usize = 1_000_000;

/// The validator that a call passes after generation, for any schema.
///
/// # Errors
/// A schema that it cannot use.
pub fn validator(schema: &Value, formats: bool) -> Result<Validator, String> {
    jsonschema::options()
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKING))
        .should_validate_formats(formats)
        .build(schema)
        .map_err(|error| shortened(&error.to_string(), 300))
}

/// Compiles the schema of `case` and tries its instances, serialised with `", "` and `": "` in
/// their own order. Returns the grammar too, where there is one.
pub fn judge(case: &Case, options: &SchemaOptions) -> (Judgement, Option<Compiled>) {
    let options = SchemaOptions {
        formats: options.formats && case.formats,
        ..*options
    };
    let mut judgement = Judgement::lost(case, Reason::Crash, "");
    let started = processor_time();
    let compiled = compile(&case.schema, &options);
    judgement.compile = processor_time().saturating_sub(started);
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            judgement.verdict = refused(reason(&error), &error);
            return (judgement, None);
        }
    };
    let started = processor_time();
    let recogniser = Recogniser::new(&compiled.grammar, &Limits::default());
    judgement.lower = processor_time().saturating_sub(started);
    let compared = match recogniser {
        Ok(mut recogniser) => compare(case, &compiled, &mut recogniser, options.formats),
        Err(error) => {
            judgement.verdict = refused(lowering(&error), &error);
            return (judgement, None);
        }
    };
    match compared {
        Ok(compared) => {
            judgement.verdict = Verdict::Compiled(compared);
            (judgement, Some(compiled))
        }
        Err(error) => {
            judgement.verdict = refused(Reason::Limit, &error);
            (judgement, None)
        }
    }
}

/// Time that the processor has given to this thread.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn refused(reason: Reason, error: &dyn std::error::Error) -> Verdict {
    Verdict::Refused {
        reason,
        message: shortened(&error.to_string(), 400),
    }
}

fn reason(error: &SchemaError) -> Reason {
    match error {
        SchemaError::Malformed { .. } => Reason::Malformed,
        SchemaError::Unsatisfiable { .. } => Reason::Unsatisfiable,
        SchemaError::ExternalReference { .. } => Reason::External,
        SchemaError::Limit { .. } => Reason::Limit,
    }
}

/// Schemas name no tokens and their grammars have no left recursion: either would be a fault.
fn lowering(error: &LowerError) -> Reason {
    match error {
        LowerError::MatchesNothing { .. } | LowerError::CannotBeSpelled { .. } => {
            Reason::Unsatisfiable
        }
        LowerError::Limit(_) => Reason::Limit,
        LowerError::LeftRecursion { .. } | LowerError::UnknownToken { .. } => Reason::Crash,
    }
}

fn compare(
    case: &Case,
    compiled: &Compiled,
    recogniser: &mut Recogniser,
    formats: bool,
) -> Result<Compared, LimitError> {
    let mut compared = Compared::default();
    let validator = match validator(&case.schema, formats) {
        Ok(validator) => Some(validator),
        Err(why) => {
            compared.no_validator = Some(why);
            None
        }
    };
    let passes = |data: &Value| validator.as_ref().is_none_or(|v| v.is_valid(data));
    for (at, Test { valid, data }) in case.tests.iter().enumerate() {
        let text = spaced(data);
        recogniser.reset();
        let matched = recogniser.push_all(text.as_bytes())?;
        let accepted = matched == text.len() && recogniser.is_accepting();
        match (valid, accepted) {
            (true, true) => compared.validator_rejects += usize::from(!passes(data)),
            (true, false) => compared.false_rejections.push(FalseRejection {
                test: at,
                at: matched,
                excerpt: excerpt(&text, matched),
                order: matches_in_some_order(recogniser, data)?,
            }),
            (false, true) => compared.false_acceptances.push(FalseAcceptance {
                test: at,
                excerpt: shortened(&text, 300),
                checked: checked(compiled),
                reported: !compiled.coverage.is_complete(),
                caught: !passes(data),
            }),
            (false, false) => {}
        }
    }
    Ok(compared)
}

fn checked(compiled: &Compiled) -> Vec<String> {
    let entries = compiled.coverage.checked().take(4);
    entries
        .map(|entry| shortened(&format!("{}/{}", entry.pointer, entry.keyword), 200))
        .collect()
}

/// Some characters before and after byte `at`.
fn excerpt(text: &str, at: usize) -> [String; 2] {
    let middle = text.floor_char_boundary(at.min(text.len()));
    let from = text.floor_char_boundary(middle.saturating_sub(80));
    let to = text.floor_char_boundary((middle + 40).min(text.len()));
    [text[from..middle].to_owned(), text[middle..to].to_owned()]
}
