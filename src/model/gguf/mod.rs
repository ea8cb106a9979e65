//! GGUF files, checked and described in safe Rust before any model runtime sees them.
//!
//! llama.cpp aborts the process on some malformed files and accepts strings of a gigabyte, so
//! that every length, count, shape and offset is checked here first. Large arrays (a vocabulary
//! has 262,144 tokens) are walked, never kept: reading a file takes at most
//! [`KEPT_BYTES`] of memory whatever it claims.

mod error;
mod info;
mod metadata;
mod reader;
mod tensor;
#[cfg(test)]
pub(crate) mod tests;

pub use error::{GgufError, GgufProblem};
pub use info::{COMPUTE_BATCH, GgufInfo, Memory};
pub use reader::KEPT_BYTES;
pub use tensor::{TYPES, TensorType};

use metadata::Value;
use reader::Reader;
use std::io::{Read, Seek};
use std::path::Path;

/// Checks the file at `path` and says what it is.
///
/// # Errors
/// [`GgufError`]: the file is missing, no GGUF file, truncated, hostile, or no model.
pub fn inspect(path: &Path) -> Result<GgufInfo, GgufError> {
    let wrong = |problem| GgufError {
        path: path.to_owned(),
        problem,
    };
    let read = |error: std::io::Error| {
        wrong(match error.kind() {
            std::io::ErrorKind::NotFound => GgufProblem::Missing,
            _ => GgufProblem::Read(error),
        })
    };
    // Asked before opening: opening a pipe would wait for its other end.
    if !std::fs::metadata(path).map_err(read)?.is_file() {
        return Err(wrong(GgufProblem::NotAFile));
    }
    let file = std::fs::File::open(path).map_err(read)?;
    let length = file.metadata().map_err(read)?.len();
    inspect_reader(file, length).map_err(wrong)
}

/// As [`inspect`], for anything that can be read from its start and has `length` bytes.
///
/// # Errors
/// What is wrong.
pub fn inspect_reader<R: Read + Seek>(inner: R, length: u64) -> Result<GgufInfo, GgufProblem> {
    if length == 0 {
        return Err(GgufProblem::Empty);
    }
    let mut reader = Reader::new(inner, length);
    let (tensor_count, key_count) = header(&mut reader)?;
    let metadata = metadata::read(&mut reader, key_count)?;
    let alignment = match metadata.get("general.alignment") {
        None => 32,
        Some(Value::Integer(number)) => u64::try_from(*number).unwrap_or(0),
        Some(_) => {
            return Err(GgufProblem::WrongType {
                key: "general.alignment".to_owned(),
                expected: "a 32-bit number",
            });
        }
    };
    if !alignment.is_power_of_two() || alignment > tensor::LARGEST_ALIGNMENT {
        return Err(GgufProblem::Alignment(alignment));
    }
    let tensors = tensor::read(&mut reader, tensor_count, alignment)?;
    if tensors.count == 0 {
        return Err(GgufProblem::NoTensors);
    }
    info::describe(&mut reader, &metadata, tensors)
}

/// Reads the fixed part: the numbers of tensors and of key-value pairs.
fn header<R: Read + Seek>(reader: &mut Reader<R>) -> Result<(u64, u64), GgufProblem> {
    let known = usize::try_from(reader.length().min(4)).unwrap_or(4);
    let mut magic = Vec::new();
    for _ in 0..known {
        magic.extend(reader.bytes::<1>()?);
    }
    if magic != b"GGUF" {
        return Err(GgufProblem::Magic(super::shown::shown_bytes(&magic)));
    }
    let version = reader.u32()?;
    match version {
        2 | 3 => {}
        // 2 or 3, the bytes the other way round.
        0x0200_0000 | 0x0300_0000 => return Err(GgufProblem::BigEndian),
        other => return Err(GgufProblem::Version(other)),
    }
    let mut count = |what: &str, limit: u64| {
        let count = reader.u64()?;
        if count > limit {
            return Err(GgufProblem::TooMany {
                what: what.to_owned(),
                count,
                limit,
            });
        }
        Ok(count)
    };
    let tensors = count("tensors", tensor::MOST_TENSORS)?;
    let keys = count("metadata entries", metadata::MOST_KEYS)?;
    Ok((tensors, keys))
}
