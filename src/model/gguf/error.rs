//! What can be wrong with a GGUF file. One line each, names from the file shortened and escaped.

use std::path::PathBuf;

/// A file that must not be given to a model runtime, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct GgufError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: GgufProblem,
}

/// What is wrong with a GGUF file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufProblem {
    /// There is no such file.
    #[error("no such file")]
    Missing,
    /// A directory, a device or a pipe.
    #[error("not a regular file")]
    NotAFile,
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// It does not begin with `GGUF`.
    #[error("not a GGUF file: it begins with \"{0}\", not \"GGUF\"")]
    Magic(String),
    /// Written for the other byte order.
    #[error("a big-endian GGUF file; only little-endian ones can be read")]
    BigEndian,
    /// A version that nobody can read (1) or that does not exist yet.
    #[error("GGUF version {0}; versions 2 and 3 can be read")]
    Version(u32),
    /// The file ends too early.
    #[error("truncated: the file ends inside {section} (at byte {at} of {length})")]
    Truncated {
        /// The part of the file.
        section: String,
        /// Where reading stood.
        at: u64,
        /// Length of the file in bytes.
        length: u64,
    },
    /// A count over its limit.
    #[error("hostile or damaged: {count} {what}, at most {limit} are read")]
    TooMany {
        /// What is counted.
        what: String,
        /// How many the file claims.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// A string over its limit.
    #[error("hostile or damaged: {what} of {length} bytes, at most {limit} are read")]
    TooLong {
        /// Which string.
        what: String,
        /// Its claimed length in bytes.
        length: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A name that is not text.
    #[error("damaged: {0} is not UTF-8")]
    NotText(String),
    /// A key or a tensor that is there twice, or has no name.
    #[error("damaged: {what} \"{name}\" is empty or there twice")]
    Name {
        /// `key` or `tensor`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A value of a type that does not exist.
    #[error("damaged: the value of \"{key}\" has the unknown type {kind}")]
    ValueType {
        /// The key.
        key: String,
        /// The type's number.
        kind: u32,
    },
    /// A value of the wrong type.
    #[error("damaged: \"{key}\" must be {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A key without which nothing can be loaded.
    #[error("not a model: \"{0}\" is missing")]
    MissingKey(String),
    /// No tensors.
    #[error("not a model: it has no tensors")]
    NoTensors,
    /// An alignment that is no power of two, or too large.
    #[error("hostile or damaged: alignment {0}, must be a power of two up to 1048576")]
    Alignment(u64),
    /// Too many or zero dimensions, or a product that overflows.
    #[error("hostile or damaged: tensor \"{tensor}\" has the impossible shape {shape}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// Its shape, or the number of its dimensions.
        shape: String,
    },
    /// A tensor type that is not known.
    #[error("tensor \"{tensor}\" has the unknown type {kind}; this build cannot read it")]
    TensorType {
        /// The tensor.
        tensor: String,
        /// The type's number.
        kind: u32,
    },
    /// A tensor whose data is not where it must be.
    #[error("hostile or damaged: tensor \"{tensor}\" {reason}")]
    Place {
        /// The tensor.
        tensor: String,
        /// What is wrong with its place.
        reason: String,
    },
    /// Parts that contradict each other.
    #[error("damaged: {0}")]
    Inconsistent(String),
}
