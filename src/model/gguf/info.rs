//! What a checked file is: the figures that people and the harness need.

use super::super::shown::shown_bytes as shown;
use super::error::GgufProblem;
use super::metadata::{Metadata, Value, string_at};
use super::reader::Reader;
use super::tensor::Tensors;
use std::io::{Read, Seek};

/// Tokens evaluated at once, as compute buffers are estimated for.
pub const COMPUTE_BATCH: u64 = 512;
/// Most layers, as llama.cpp has it.
const MOST_LAYERS: u64 = 512;

/// A GGUF model file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GgufInfo {
    /// llama.cpp's name of the architecture, such as `llama` or `gemma3`.
    pub architecture: String,
    /// The name that its makers gave it.
    pub name: Option<String>,
    /// The licence that the file states.
    pub licence: Option<String>,
    /// Size of the file in bytes.
    pub size: u64,
    /// Bytes of weights in it.
    pub weights: u64,
    /// Number of weights.
    pub parameters: u64,
    /// Number of tensors.
    pub tensors: u64,
    /// How most weights are stored, such as `Q4_K_M`.
    pub quantisation: String,
    /// Bytes by tensor type, most first.
    pub types: Vec<(&'static str, u64)>,
    /// Tokens of context that it was trained for.
    pub context_length: Option<u64>,
    /// Number of tokens in its vocabulary.
    pub vocabulary: Option<u64>,
    /// Kind of tokeniser: `gpt2` is byte-level BPE, `llama` is SentencePiece.
    pub tokenizer: Option<String>,
    /// The chat template's text, where the file has one (of at most a MiB).
    pub chat_template: Option<String>,
    /// Text of the token that begins a sequence.
    pub bos: Option<String>,
    /// Text of the token that ends one.
    pub eos: Option<String>,
    /// Layers.
    pub layers: Option<u64>,
    /// Layers with attention, all unless the model is hybrid.
    pub attention_layers: Option<u64>,
    /// Width of the residual stream.
    pub embedding: Option<u64>,
    /// Width of the feed-forward layers.
    pub feed_forward: Option<u64>,
    /// Attention heads, the most that a layer has.
    pub heads: Option<u64>,
    /// Key-value heads of all layers together.
    pub kv_heads: Option<u64>,
    /// Width of a key and of a value of one head.
    pub key_length: Option<u64>,
    /// See `key_length`.
    pub value_length: Option<u64>,
    /// Tokens that some of its layers look back, where they do not look back all the way.
    pub sliding_window: Option<u64>,
    /// Whether some layers keep a running state in place of keys and values (hybrid or
    /// recurrent): such a memory cannot be cut back.
    pub recurrent: bool,
    /// Bytes of that state for one sequence.
    pub recurrent_state: u64,
    /// Number of files that the model is split into.
    pub split: Option<u64>,
}

/// Memory that a model needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Weights, mapped from the file.
    pub weights: u64,
    /// Keys and values in half precision, as if every layer kept the whole context, and the state
    /// of recurrent layers.
    pub cache: u64,
    /// Estimate of the compute buffers for batches of [`COMPUTE_BATCH`] tokens.
    pub compute: u64,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights
            .saturating_add(self.cache)
            .saturating_add(self.compute)
    }
}

impl GgufInfo {
    /// Memory needed with a context of `context` tokens: an upper bound for the cache (layers
    /// with a sliding window may need less), an estimate for the compute buffers. `None` where
    /// the file does not say enough.
    pub fn memory_at(&self, context: u64) -> Option<Memory> {
        let per_token = self
            .kv_heads?
            .saturating_mul(self.key_length?.saturating_add(self.value_length?))
            .saturating_mul(2);
        // Logits, and a handful of activations, of a batch; attention scores of one layer.
        let activations = self
            .embedding?
            .saturating_mul(6)
            .saturating_add(self.feed_forward.unwrap_or(0).saturating_mul(2))
            .saturating_add(self.heads?.saturating_mul(context));
        let compute = self
            .vocabulary?
            .saturating_add(activations)
            .saturating_mul(4 * COMPUTE_BATCH.min(context));
        Some(Memory {
            weights: self.weights,
            cache: per_token
                .saturating_mul(context)
                .saturating_add(self.recurrent_state),
            compute,
        })
    }
}

/// Reads typed values of a file.
struct Fields<'a> {
    metadata: &'a Metadata,
    architecture: String,
}

impl Fields<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, GgufProblem> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(Value::LongText(_)) => Err(GgufProblem::WrongType {
                key: key.to_owned(),
                expected: "UTF-8 text of at most a MiB",
            }),
            Some(_) => Err(GgufProblem::WrongType {
                key: key.to_owned(),
                expected: "text",
            }),
        }
    }

    fn number(&self, key: &str) -> Result<Option<u64>, GgufProblem> {
        let wrong = || GgufProblem::WrongType {
            key: key.to_owned(),
            expected: "a whole number from 0 on",
        };
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => u64::try_from(*number).map(Some).map_err(|_| wrong()),
            Some(_) => Err(wrong()),
        }
    }

    /// A number of the architecture.
    fn own(&self, key: &str) -> Result<Option<u64>, GgufProblem> {
        self.number(&format!("{}.{key}", self.architecture))
    }

    /// A number, or one for each layer.
    fn per_layer(&self, key: &str) -> Result<Option<Vec<u64>>, GgufProblem> {
        let key = format!("{}.{key}", self.architecture);
        let Some(Value::Array(array)) = self.metadata.get(&key) else {
            return Ok(self.number(&key)?.map(|number| vec![number]));
        };
        let numbers = array.numbers.iter().flatten();
        let numbers: Result<Vec<u64>, _> = numbers.map(|n| u64::try_from(*n)).collect();
        match numbers {
            Ok(numbers) if !numbers.is_empty() => Ok(Some(numbers)),
            _ => Err(GgufProblem::WrongType {
                key,
                expected: "a whole number, or one for each layer",
            }),
        }
    }

    /// Number of elements of an array.
    fn count(&self, key: &str) -> Result<Option<u64>, GgufProblem> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::Array(array)) => Ok(Some(array.count)),
            Some(_) => Err(GgufProblem::WrongType {
                key: key.to_owned(),
                expected: "an array",
            }),
        }
    }
}

/// Puts together what a file is from its parts.
pub(super) fn describe<R: Read + Seek>(
    reader: &mut Reader<R>,
    metadata: &Metadata,
    tensors: Tensors,
) -> Result<GgufInfo, GgufProblem> {
    let mut fields = Fields {
        metadata,
        architecture: String::new(),
    };
    let architecture = fields
        .text("general.architecture")?
        .ok_or_else(|| GgufProblem::MissingKey("general.architecture".to_owned()))?;
    fields.architecture.clone_from(&architecture);

    let layers = fields.own("block_count")?;
    if let Some(count) = layers.filter(|count| *count > MOST_LAYERS) {
        return Err(GgufProblem::TooMany {
            what: "layers".to_owned(),
            count,
            limit: MOST_LAYERS,
        });
    }
    let recurrent = metadata
        .keys()
        .any(|key| key.starts_with(&format!("{architecture}.ssm.")))
        || fields.own("shortconv.l_cache")?.is_some();
    let attention_layers = layers.map(|layers| {
        if recurrent {
            tensors.attention_layers.min(layers)
        } else {
            layers
        }
    });
    let heads = fields
        .per_layer("attention.head_count")?
        .and_then(|heads| heads.into_iter().max())
        .filter(|heads| *heads > 0);
    let kv_heads = match fields.per_layer("attention.head_count_kv")? {
        Some(each) if each.len() > 1 => Some(
            each.iter()
                .fold(0_u64, |sum, heads| sum.saturating_add(*heads)),
        ),
        one => one
            .and_then(|one| one.first().copied())
            .or(heads)
            .zip(attention_layers)
            .map(|(heads, layers)| heads.saturating_mul(layers)),
    };
    let embedding = fields.own("embedding_length")?;
    let head_width = embedding.zip(heads).map(|(width, heads)| width / heads);
    let vocabulary = check_vocabulary(&fields)?;
    let (bos, eos) = special_texts(reader, &fields, vocabulary)?;
    Ok(GgufInfo {
        name: fields.text("general.name")?,
        licence: fields.text("general.license")?,
        size: reader.length(),
        weights: tensors.bytes,
        parameters: tensors.parameters,
        tensors: tensors.count,
        quantisation: quantisation(fields.number("general.file_type")?, &tensors),
        types: tensors.by_type,
        context_length: fields.own("context_length")?,
        vocabulary: vocabulary.or(fields.own("vocab_size")?),
        tokenizer: fields.text("tokenizer.ggml.model")?,
        chat_template: fields.text("tokenizer.chat_template")?,
        bos,
        eos,
        layers,
        attention_layers,
        embedding,
        feed_forward: fields
            .per_layer("feed_forward_length")?
            .and_then(|each| each.into_iter().max()),
        heads,
        kv_heads,
        key_length: fields.own("attention.key_length")?.or(head_width),
        value_length: fields.own("attention.value_length")?.or(head_width),
        sliding_window: fields
            .own("attention.sliding_window")?
            .filter(|window| *window > 0),
        recurrent,
        recurrent_state: recurrent_state(&fields, layers, attention_layers)?,
        split: fields.number("split.count")?.filter(|count| *count > 1),
        architecture,
    })
}

/// The lists that describe tokens must be of one length. Returns it.
fn check_vocabulary(fields: &Fields<'_>) -> Result<Option<u64>, GgufProblem> {
    let Some(tokens) = fields.count("tokenizer.ggml.tokens")? else {
        return Ok(None);
    };
    for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
        if let Some(count) = fields.count(key)?.filter(|count| *count != tokens) {
            return Err(GgufProblem::Inconsistent(format!(
                "{tokens} tokens, but \"{key}\" has {count} entries"
            )));
        }
    }
    Ok(Some(tokens))
}

/// Texts of the tokens that begin and end a sequence.
fn special_texts<R: Read + Seek>(
    reader: &mut Reader<R>,
    fields: &Fields<'_>,
    vocabulary: Option<u64>,
) -> Result<(Option<String>, Option<String>), GgufProblem> {
    let mut texts = [None, None];
    let keys = ["tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"];
    for (text, key) in texts.iter_mut().zip(keys) {
        let Some((id, tokens)) = fields.number(key)?.zip(vocabulary) else {
            continue;
        };
        if id >= tokens {
            return Err(GgufProblem::Inconsistent(format!(
                "\"{key}\" is {id}, but there are {tokens} tokens"
            )));
        }
        if let Some(Value::Array(array)) = fields.metadata.get("tokenizer.ggml.tokens") {
            reader.section("the vocabulary");
            *text = string_at(reader, array, id)?;
        }
    }
    let [bos, eos] = texts;
    Ok((bos, eos))
}

/// Bytes of the running state of all recurrent layers, in single precision.
fn recurrent_state(
    fields: &Fields<'_>,
    layers: Option<u64>,
    attention_layers: Option<u64>,
) -> Result<u64, GgufProblem> {
    let Some((layers, attention)) = layers.zip(attention_layers) else {
        return Ok(0);
    };
    let read = |key: &str| Ok(fields.own(key)?.unwrap_or(0));
    let inner: u64 = read("ssm.inner_size")?;
    let state: u64 = read("ssm.state_size")?;
    let kernel: u64 = read("ssm.conv_kernel")?;
    let groups: u64 = read("ssm.group_count")?;
    let convolution = kernel
        .saturating_sub(1)
        .saturating_mul(inner.saturating_add(groups.saturating_mul(2).saturating_mul(state)));
    Ok(convolution
        .saturating_add(inner.saturating_mul(state))
        .saturating_mul(4)
        .saturating_mul(layers.saturating_sub(attention)))
}

/// The name by which people know how the weights are stored.
fn quantisation(file_type: Option<u64>, tensors: &Tensors) -> String {
    let known = match file_type {
        Some(0) => "F32",
        Some(1) => "F16",
        Some(2) => "Q4_0",
        Some(3) => "Q4_1",
        Some(7) => "Q8_0",
        Some(8) => "Q5_0",
        Some(9) => "Q5_1",
        Some(10) => "Q2_K",
        Some(11) => "Q3_K_S",
        Some(12) => "Q3_K_M",
        Some(13) => "Q3_K_L",
        Some(14) => "Q4_K_S",
        Some(15) => "Q4_K_M",
        Some(16) => "Q5_K_S",
        Some(17) => "Q5_K_M",
        Some(18) => "Q6_K",
        Some(19) => "IQ2_XXS",
        Some(20) => "IQ2_XS",
        Some(21) => "Q2_K_S",
        Some(22) => "IQ3_XS",
        Some(23) => "IQ3_XXS",
        Some(24) => "IQ1_S",
        Some(25) => "IQ4_NL",
        Some(26) => "IQ3_S",
        Some(27) => "IQ3_M",
        Some(28) => "IQ2_S",
        Some(29) => "IQ2_M",
        Some(30) => "IQ4_XS",
        Some(31) => "IQ1_M",
        Some(32) => "BF16",
        Some(36) => "TQ1_0",
        Some(37) => "TQ2_0",
        Some(38) => "MXFP4",
        Some(39) => "NVFP4",
        Some(40) => "Q1_0",
        Some(41) => "Q2_0",
        // Not stated: what most bytes are stored as.
        _ => tensors.by_type.first().map_or("unknown", |(name, _)| name),
    };
    shown(known.as_bytes())
}
