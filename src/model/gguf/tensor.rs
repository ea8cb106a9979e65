//! The tensor section: names, shapes, types, and whether the data is where it must be.

use super::super::shown::shown_bytes as shown;
use super::error::GgufProblem;
use super::reader::Reader;
use std::collections::HashSet;
use std::io::{Read, Seek};

/// Most tensors. The largest models have a few thousand.
pub const MOST_TENSORS: u64 = 1 << 16;
/// Longest tensor name in bytes, as ggml has it.
pub const LONGEST_NAME: u64 = 63;
/// Largest alignment in bytes.
pub const LARGEST_ALIGNMENT: u64 = 1 << 20;

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// The number in the file.
    pub id: u32,
    /// ggml's name.
    pub name: &'static str,
    /// Weights in a block.
    pub block: u64,
    /// Bytes of a block.
    pub bytes: u64,
}

const fn kind(id: u32, name: &'static str, block: u64, bytes: u64) -> TensorType {
    TensorType {
        id,
        name,
        block,
        bytes,
    }
}

/// Every type that ggml reads from files.
pub const TYPES: &[TensorType] = &[
    kind(0, "F32", 1, 4),
    kind(1, "F16", 1, 2),
    kind(2, "Q4_0", 32, 18),
    kind(3, "Q4_1", 32, 20),
    kind(6, "Q5_0", 32, 22),
    kind(7, "Q5_1", 32, 24),
    kind(8, "Q8_0", 32, 34),
    kind(9, "Q8_1", 32, 36),
    kind(10, "Q2_K", 256, 84),
    kind(11, "Q3_K", 256, 110),
    kind(12, "Q4_K", 256, 144),
    kind(13, "Q5_K", 256, 176),
    kind(14, "Q6_K", 256, 210),
    kind(15, "Q8_K", 256, 292),
    kind(16, "IQ2_XXS", 256, 66),
    kind(17, "IQ2_XS", 256, 74),
    kind(18, "IQ3_XXS", 256, 98),
    kind(19, "IQ1_S", 256, 50),
    kind(20, "IQ4_NL", 32, 18),
    kind(21, "IQ3_S", 256, 110),
    kind(22, "IQ2_S", 256, 82),
    kind(23, "IQ4_XS", 256, 136),
    kind(24, "I8", 1, 1),
    kind(25, "I16", 1, 2),
    kind(26, "I32", 1, 4),
    kind(27, "I64", 1, 8),
    kind(28, "F64", 1, 8),
    kind(29, "IQ1_M", 256, 56),
    kind(30, "BF16", 1, 2),
    kind(34, "TQ1_0", 256, 54),
    kind(35, "TQ2_0", 256, 66),
    kind(39, "MXFP4", 32, 17),
    kind(40, "NVFP4", 64, 36),
    kind(41, "Q1_0", 128, 18),
    kind(42, "Q2_0", 64, 18),
];

/// All tensors of a file, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensors {
    /// How many.
    pub count: u64,
    /// Weights in all.
    pub parameters: u64,
    /// Bytes of data without padding.
    pub bytes: u64,
    /// Bytes by type, most first.
    pub by_type: Vec<(&'static str, u64)>,
    /// Layers that have attention keys, by the tensors' names.
    pub attention_layers: u64,
    /// Whether there is a separate output matrix.
    pub has_output: bool,
}

struct Placed {
    name: String,
    offset: u64,
    bytes: u64,
}

/// Reads `count` tensor infos and checks that the data lies inside the file, in order, without
/// gaps or overlaps, as ggml requires.
pub fn read<R: Read + Seek>(
    reader: &mut Reader<R>,
    count: u64,
    alignment: u64,
) -> Result<Tensors, GgufProblem> {
    reader.section("the tensor list");
    let mut names = HashSet::new();
    let mut tensors = Tensors {
        count,
        ..Tensors::default()
    };
    let mut placed: Vec<Placed> = Vec::new();
    for _ in 0..count {
        let name = reader.name(LONGEST_NAME, "a tensor name")?;
        reader.keep(name.len() + 128)?;
        if name.is_empty() || !names.insert(name.clone()) {
            return Err(GgufProblem::Name {
                what: "tensor",
                name: shown(name.as_bytes()),
            });
        }
        let (row, elements) = shape(reader, &name)?;
        let id = reader.u32()?;
        let kind =
            TYPES
                .iter()
                .find(|kind| kind.id == id)
                .ok_or_else(|| GgufProblem::TensorType {
                    tensor: shown(name.as_bytes()),
                    kind: id,
                })?;
        if row % kind.block != 0 {
            return Err(GgufProblem::Shape {
                tensor: shown(name.as_bytes()),
                shape: format!(
                    "rows of {row}, no multiple of {}'s {}",
                    kind.name, kind.block
                ),
            });
        }
        // `elements` fits 63 bits and a block never has more bytes than 8 per weight.
        let bytes = (elements / kind.block)
            .checked_mul(kind.bytes)
            .ok_or_else(|| impossible(&name, &elements))?;
        let offset = reader.u64()?;
        tensors.parameters = tensors.parameters.saturating_add(elements);
        tensors.bytes = tensors.bytes.saturating_add(bytes);
        match tensors
            .by_type
            .iter_mut()
            .find(|(known, _)| *known == kind.name)
        {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => tensors.by_type.push((kind.name, bytes)),
        }
        tensors.has_output |= name == "output.weight";
        tensors.attention_layers +=
            u64::from(name.ends_with(".attn_k.weight") || name.ends_with(".attn_qkv.weight"));
        placed.push(Placed {
            name,
            offset,
            bytes,
        });
    }
    tensors
        .by_type
        .sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    check_places(reader, &placed, alignment)?;
    Ok(tensors)
}

fn impossible(name: &str, shape: &impl ToString) -> GgufProblem {
    GgufProblem::Shape {
        tensor: shown(name.as_bytes()),
        shape: shape.to_string(),
    }
}

/// Reads a shape: the length of a row and the number of elements.
fn shape<R: Read + Seek>(reader: &mut Reader<R>, name: &str) -> Result<(u64, u64), GgufProblem> {
    let count = reader.u32()?;
    if count > 4 {
        return Err(impossible(name, &format!("of {count} dimensions")));
    }
    let mut sizes = Vec::new();
    for _ in 0..count {
        sizes.push(reader.u64()?);
    }
    let shown_sizes = || {
        let parts: Vec<String> = sizes.iter().map(u64::to_string).collect();
        format!("[{}]", parts.join(", "))
    };
    let mut elements: u64 = 1;
    for size in &sizes {
        elements = match elements.checked_mul(*size) {
            Some(product) if *size > 0 && i64::try_from(product).is_ok() => product,
            _ => return Err(impossible(name, &shown_sizes())),
        };
    }
    Ok((sizes.first().copied().unwrap_or(1), elements))
}

fn check_places<R: Read + Seek>(
    reader: &Reader<R>,
    placed: &[Placed],
    alignment: u64,
) -> Result<(), GgufProblem> {
    let start = reader.position().next_multiple_of(alignment);
    let available = reader.length().saturating_sub(start);
    let mut next: u64 = 0;
    for tensor in placed {
        let wrong = |reason: String| GgufProblem::Place {
            tensor: shown(tensor.name.as_bytes()),
            reason,
        };
        if tensor.offset % alignment != 0 {
            return Err(wrong(format!(
                "begins at {}, no multiple of {alignment}",
                tensor.offset
            )));
        }
        let end = tensor.offset.checked_add(tensor.bytes);
        if end.is_none_or(|end| end > available) {
            return Err(wrong(format!(
                "needs {} bytes at {}, but the file has {available} bytes of data: truncated?",
                tensor.bytes, tensor.offset
            )));
        }
        if tensor.offset != next {
            return Err(wrong(format!(
                "begins at {}, but the one before ends at {next}",
                tensor.offset
            )));
        }
        // Inside the file, hence no overflow but for the padding after the last one.
        next = tensor
            .offset
            .saturating_add(tensor.bytes)
            .checked_next_multiple_of(alignment)
            .unwrap_or(u64::MAX);
    }
    Ok(())
}
