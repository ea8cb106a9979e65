//! JSON Schema (drafts 2020-12 and 7) to a [`Grammar`].
//!
//! A schema describes a set of values; the grammar matches their JSON texts. What a grammar
//! cannot say is never ignored and never refused: the grammar then admits more, and the
//! [`Coverage`] names the keyword so that the value is validated after generation.

mod algebra;
mod combinations;
mod complement;
mod coverage;
mod decimal;
mod document;
mod emit;
mod emptiness;
mod error;
mod intersection;
mod options;
mod parse;
mod parse_containers;
mod patterns;
mod shape;
mod sites;
mod text;

#[cfg(test)]
mod any_order_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod tests;

pub use coverage::{Coverage, CoverageEntry, Treatment};
pub use error::SchemaError;
pub use options::{Bounds, KeyOrder, Limits, SchemaOptions, Whitespace};

use serde_json::Value;

use super::ast::{Expr, Grammar, GrammarBuilder, RuleId};

/// A schema as a grammar.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Matches the JSON texts of the schema's values.
    pub grammar: Grammar,
    /// What became of each keyword.
    pub coverage: Coverage,
}

/// Compiles `schema` to a grammar whose root matches one JSON value.
///
/// # Errors
/// Only for the four reasons of [`SchemaError`].
pub fn compile(schema: &Value, options: &SchemaOptions) -> Result<Compiled, SchemaError> {
    let mut builder = GrammarBuilder::new();
    let (root, coverage) = compile_into(&mut builder, schema, options, "root")?;
    Ok(Compiled {
        grammar: builder.finish(root),
        coverage,
    })
}

/// Adds the rules of `schema` to a larger grammar under construction and returns the rule that
/// matches its value, named after `name_hint`.
///
/// # Errors
/// Only for the four reasons of [`SchemaError`]. The builder may then hold unfinished rules.
pub fn compile_into(
    builder: &mut GrammarBuilder,
    schema: &Value,
    options: &SchemaOptions,
    name_hint: &str,
) -> Result<(RuleId, Coverage), SchemaError> {
    let document = document::Document::new(schema, &options.limits)?;
    let algebra = algebra::Algebra::new(document, *options);
    let (rule, algebra) = emit::Emitter::new(algebra, builder).run(name_hint)?;
    let coverage = algebra.sites.coverage(&algebra.document);
    Ok((rule, coverage))
}

/// The JSON text of `value`, spelled as the grammars of this module spell it.
pub fn literal(value: &Value, options: &SchemaOptions) -> Expr {
    emit::json::literal(value, options)
}
