//! The four reasons to refuse a schema.

/// Why a schema was refused. Whatever is merely hard to express is never refused: it is reported
/// in the [coverage](super::Coverage) and checked after generation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema breaks the rules of JSON Schema.
    #[error("the schema is malformed at {}: {reason}", place(.pointer))]
    Malformed {
        /// JSON Pointer of the place, empty for the root.
        pointer: String,
        /// What is wrong there.
        reason: String,
    },
    /// No JSON value satisfies the schema.
    #[error("no value can satisfy the schema at {}: {reason}", place(.pointer))]
    Unsatisfiable {
        /// JSON Pointer of the place, empty for the root.
        pointer: String,
        /// Why nothing can match.
        reason: String,
    },
    /// A reference leads outside the document. Nothing is ever fetched.
    #[error(
        "the reference \"{reference}\" at {} leads outside the schema, and nothing is fetched",
        place(.pointer)
    )]
    ExternalReference {
        /// JSON Pointer of the schema that holds the reference.
        pointer: String,
        /// The reference as written.
        reference: String,
    },
    /// The schema is larger than allowed.
    #[error("the schema exceeds the limit of {limit} {which} at {}", place(.pointer))]
    Limit {
        /// JSON Pointer of the place, empty for the root.
        pointer: String,
        /// What is counted: a field of [`Limits`](super::Limits) in words.
        which: &'static str,
        /// The limit that was exceeded.
        limit: usize,
    },
}

/// A pointer as a person reads it.
fn place(pointer: &str) -> String {
    if pointer.is_empty() {
        "its root".to_owned()
    } else {
        let short: String = pointer
            .chars()
            .take(200)
            .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
            .collect();
        format!("\"{short}\"")
    }
}
