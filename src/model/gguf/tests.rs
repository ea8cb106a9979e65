//! Files that are right, and many that are wrong.

use super::*;
use proptest::prelude::*;
use std::io::Cursor;

/// Writes small GGUF files.
#[derive(Clone, Default)]
pub(crate) struct Builder {
    keys: Vec<u8>,
    key_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: u64,
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}

impl Builder {
    fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        string(&mut self.keys, key.as_bytes());
        self.keys.extend(kind.to_le_bytes());
        self.keys.extend(value);
        self.key_count += 1;
        self
    }

    pub(crate) fn text(self, key: &str, text: &str) -> Self {
        let mut value = Vec::new();
        string(&mut value, text.as_bytes());
        self.raw(key, 8, &value)
    }

    pub(crate) fn number(self, key: &str, number: u32) -> Self {
        self.raw(key, 4, &number.to_le_bytes())
    }

    fn array(self, key: &str, kind: u32, count: u64, elements: &[u8]) -> Self {
        let mut value = kind.to_le_bytes().to_vec();
        value.extend(count.to_le_bytes());
        value.extend(elements);
        self.raw(key, 9, &value)
    }

    pub(crate) fn texts(self, key: &str, texts: &[&str]) -> Self {
        let mut elements = Vec::new();
        for text in texts {
            string(&mut elements, text.as_bytes());
        }
        self.array(key, 8, texts.len() as u64, &elements)
    }

    fn tensor_at(mut self, name: &str, sizes: &[u64], kind: u32, offset: u64) -> Self {
        string(&mut self.tensors, name.as_bytes());
        self.tensors.extend((sizes.len() as u32).to_le_bytes());
        for size in sizes {
            self.tensors.extend(size.to_le_bytes());
        }
        self.tensors.extend(kind.to_le_bytes());
        self.tensors.extend(offset.to_le_bytes());
        self.tensor_count += 1;
        self
    }

    /// An F32 tensor of one dimension, placed after those before.
    pub(crate) fn tensor(self, name: &str, size: u64) -> Self {
        let offset = self.data;
        let mut next = self.tensor_at(name, &[size], 0, offset);
        next.data = (offset + 4 * size).next_multiple_of(32);
        next
    }

    fn head(&self, tensors: u64, keys: u64) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend(tensors.to_le_bytes());
        out.extend(keys.to_le_bytes());
        out
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.head(self.tensor_count, self.key_count);
        out.extend(&self.keys);
        out.extend(&self.tensors);
        let start = out.len().next_multiple_of(32);
        out.resize(start + self.data as usize, 0);
        out
    }
}

pub(crate) fn small() -> Builder {
    Builder::default()
        .text("general.architecture", "llama")
        .text("general.name", "Tiny")
        .number("llama.block_count", 2)
        .number("llama.context_length", 128)
        .number("llama.embedding_length", 8)
        .number("llama.feed_forward_length", 16)
        .number("llama.attention.head_count", 2)
        .number("llama.attention.head_count_kv", 1)
        .text("tokenizer.ggml.model", "gpt2")
        .texts("tokenizer.ggml.tokens", &["<s>", "</s>", "a", "🦊"])
        .array("tokenizer.ggml.token_type", 5, 4, &[0; 16])
        .number("tokenizer.ggml.bos_token_id", 0)
        .number("tokenizer.ggml.eos_token_id", 1)
        .text("tokenizer.chat_template", "{{ messages }}")
        .tensor("token_embd.weight", 32)
        .tensor("blk.0.attn_k.weight", 10)
}

fn check(bytes: &[u8]) -> Result<GgufInfo, GgufProblem> {
    inspect_reader(Cursor::new(bytes), bytes.len() as u64)
}

#[test]
fn describes_a_small_file() {
    let bytes = small().bytes();
    let info = check(&bytes).unwrap();
    let expected = GgufInfo {
        architecture: "llama".into(),
        name: Some("Tiny".into()),
        size: bytes.len() as u64,
        weights: 168,
        parameters: 42,
        tensors: 2,
        quantisation: "F32".into(),
        types: vec![("F32", 168)],
        context_length: Some(128),
        vocabulary: Some(4),
        tokenizer: Some("gpt2".into()),
        chat_template: Some("{{ messages }}".into()),
        bos: Some("<s>".into()),
        eos: Some("</s>".into()),
        layers: Some(2),
        attention_layers: Some(2),
        embedding: Some(8),
        feed_forward: Some(16),
        heads: Some(2),
        kv_heads: Some(2),
        key_length: Some(4),
        value_length: Some(4),
        ..GgufInfo::default()
    };
    assert_eq!(info, expected);
    // 2 heads in all, 4 + 4 wide, 2 bytes each.
    assert_eq!(info.memory_at(100).unwrap().cache, 2 * 8 * 2 * 100);
}

/// Layers without attention keep a state of fixed size in place of keys and values.
#[test]
fn counts_the_memory_of_hybrid_models() {
    let bytes = Builder::default()
        .text("general.architecture", "hybrid")
        .number("hybrid.block_count", 4)
        .number("hybrid.embedding_length", 8)
        .number("hybrid.attention.head_count", 2)
        .number("hybrid.attention.head_count_kv", 1)
        .number("hybrid.ssm.inner_size", 16)
        .number("hybrid.ssm.state_size", 4)
        .number("hybrid.ssm.conv_kernel", 4)
        .number("hybrid.ssm.group_count", 1)
        .number("hybrid.vocab_size", 10)
        .tensor("blk.3.attn_k.weight", 8)
        .bytes();
    let info = check(&bytes).unwrap();
    assert!(info.recurrent);
    assert_eq!(info.attention_layers, Some(1));
    assert_eq!(info.recurrent_state, 3 * 4 * (3 * (16 + 2 * 4) + 16 * 4));
    let cache = info.memory_at(10).unwrap().cache;
    assert_eq!(cache, 10 * 8 * 2 + info.recurrent_state);
}

/// Every place where a file can end too early.
#[test]
fn every_truncation_is_an_error() {
    let bytes = small().bytes();
    // The last tensor's 40 bytes are followed by padding, which may be missing.
    for length in 0..bytes.len() - 24 {
        let problem = check(&bytes[..length]).expect_err("a truncated file passed");
        assert_eq!(problem.to_string().lines().count(), 1);
        let right = match length {
            0 => matches!(problem, GgufProblem::Empty),
            1..=3 => matches!(problem, GgufProblem::Magic(_)),
            _ => matches!(
                problem,
                GgufProblem::Truncated { .. } | GgufProblem::Place { .. }
            ),
        };
        assert!(right, "{length}: {problem}");
    }
    assert!(check(&bytes[..bytes.len() - 24]).is_ok());
}

#[test]
fn hostile_files_are_refused_in_one_clear_line() {
    let huge = u64::MAX.to_le_bytes();
    let with = |position: usize, bytes: &[u8]| {
        let mut file = small().bytes();
        file[position..position + bytes.len()].copy_from_slice(bytes);
        file
    };
    let long_key = |length: u64| {
        let mut file = Builder::default().head(1, 1);
        file.extend(length.to_le_bytes());
        file.resize(200, b'a');
        file
    };
    let quoted = |builder: Builder| builder.bytes();
    let base = Builder::default().text("general.architecture", "x");
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "not GGUF",
            b"PK\x03\x04 a zip file".to_vec(),
            "not a GGUF file",
        ),
        ("escape codes", b"\x1b[2J....".to_vec(), r"\u{1b}[2J"),
        ("version 1", with(4, &1_u32.to_le_bytes()), "version 1"),
        ("version 4", with(4, &4_u32.to_le_bytes()), "version 4"),
        ("big-endian", with(4, &3_u32.to_be_bytes()), "big-endian"),
        (
            "tensor count",
            with(8, &huge),
            "18446744073709551615 tensors",
        ),
        ("key count", with(16, &huge), "metadata entries"),
        (
            "more keys than there are",
            with(16, &999_u64.to_le_bytes()),
            "damaged",
        ),
        (
            "key length",
            long_key(u64::MAX),
            "a key of 18446744073709551615 bytes",
        ),
        ("key longer than the file", long_key(4000), "truncated"),
        (
            "empty key",
            quoted(base.clone().number("", 1)),
            "empty or there twice",
        ),
        (
            "key twice",
            quoted(base.clone().number("k", 1).number("k", 2)),
            "empty or there twice",
        ),
        (
            "value type",
            quoted(base.clone().raw("k", 77, &[0; 8])),
            "unknown type 77",
        ),
        (
            "text length",
            quoted(base.clone().raw("k", 8, &(65_u64 << 20).to_le_bytes())),
            "at most 67108864",
        ),
        (
            "array count",
            quoted(base.clone().array("k", 4, u64::MAX, &[])),
            "elements of \"k\"",
        ),
        (
            "array longer than the file",
            quoted(base.clone().array("k", 12, 1 << 26, &[])),
            "truncated",
        ),
        (
            "array of arrays",
            quoted(base.clone().array("k", 9, 1, &[0; 64])),
            "unknown type 9",
        ),
        (
            "alignment 0",
            quoted(base.clone().number("general.alignment", 0)),
            "alignment 0",
        ),
        (
            "alignment 48",
            quoted(base.clone().number("general.alignment", 48)),
            "alignment 48",
        ),
        (
            "alignment 2 MiB",
            quoted(base.clone().number("general.alignment", 2 << 20)),
            "alignment 2097152",
        ),
        (
            "alignment as text",
            quoted(base.clone().text("general.alignment", "32")),
            "32-bit",
        ),
        (
            "no architecture",
            quoted(Builder::default().tensor("t", 1)),
            "general.architecture",
        ),
        ("no tensors", quoted(base.clone()), "no tensors"),
        (
            "five dimensions",
            quoted(base.clone().tensor_at("t", &[1; 5], 0, 0)),
            "5 dimensions",
        ),
        (
            "overflow",
            quoted(base.clone().tensor_at("t", &[1 << 40, 1 << 40], 0, 0)),
            "impossible shape",
        ),
        (
            "zero rows",
            quoted(base.clone().tensor_at("t", &[8, 0], 0, 0)),
            "impossible shape",
        ),
        (
            "bytes overflow",
            quoted(base.clone().tensor_at("t", &[1 << 62], 0, 0)),
            "impossible",
        ),
        (
            "tensor type",
            quoted(base.clone().tensor_at("t", &[32], 5, 0)),
            "unknown type 5",
        ),
        (
            "part of a block",
            quoted(base.clone().tensor_at("t", &[33], 2, 0)),
            "rows of 33",
        ),
        (
            "long name",
            quoted(base.clone().tensor_at(&"n".repeat(64), &[1], 0, 0)),
            "64 bytes",
        ),
        (
            "tensor twice",
            quoted(base.clone().tensor("t", 8).tensor("t", 8)),
            "empty or there twice",
        ),
        (
            "offset outside the file",
            quoted(base.clone().tensor("t", 8).tensor_at("u", &[8], 0, 1 << 40)),
            "truncated?",
        ),
        (
            "offset overflows",
            quoted(
                base.clone()
                    .tensor("t", 8)
                    .tensor_at("u", &[8], 0, u64::MAX - 31),
            ),
            "truncated?",
        ),
        (
            "offset not aligned",
            quoted(base.clone().tensor("t", 8).tensor_at("u", &[1], 0, 3)),
            "no multiple of 32",
        ),
        (
            "overlap",
            quoted(base.clone().tensor("t", 32).tensor_at("u", &[8], 0, 0)),
            "the one before ends at 128",
        ),
        (
            "token lists of different lengths",
            quoted(
                base.clone()
                    .texts("tokenizer.ggml.tokens", &["a", "b"])
                    .array("tokenizer.ggml.scores", 6, 1, &[0; 4])
                    .tensor("t", 8),
            ),
            "has 1 entries",
        ),
        (
            "token id outside the vocabulary",
            quoted(
                base.clone()
                    .texts("tokenizer.ggml.tokens", &["a", "b"])
                    .number("tokenizer.ggml.eos_token_id", 2)
                    .tensor("t", 8),
            ),
            "there are 2 tokens",
        ),
        (
            "layers",
            quoted(
                base.clone()
                    .number("x.block_count", 4_000_000_000)
                    .tensor("t", 8),
            ),
            "4000000000 layers",
        ),
        (
            "layers as text",
            quoted(base.clone().text("x.block_count", "two").tensor("t", 8)),
            "whole number",
        ),
    ];
    for (name, bytes, expected) in cases {
        let message = check(&bytes).expect_err(name).to_string();
        assert!(message.contains(expected), "{name}: {message}");
        assert_eq!(message.lines().count(), 1, "{name}: {message}");
        assert!(!message.contains('\u{1b}'), "{name}");
    }
}

#[test]
fn kept_memory_is_bounded() {
    let text = "x".repeat(1 << 20);
    let many = (0..40).fold(small(), |builder, number| {
        builder.text(&format!("k{number}"), &text)
    });
    let message = check(&many.bytes()).unwrap_err().to_string();
    assert!(message.contains("names and values"), "{message}");
    // Longer than a MiB: walked over, not kept.
    let long = "x".repeat((1 << 20) + 1);
    let many = (0..40).fold(small(), |builder, number| {
        builder.text(&format!("k{number}"), &long)
    });
    assert!(check(&many.bytes()).is_ok());
}

#[test]
fn paths_that_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.gguf");
    std::fs::write(&empty, b"").unwrap();
    for (path, expected) in [
        (folder.path().join("none.gguf"), "no such file"),
        (folder.path().to_owned(), "not a regular file"),
        (empty, "the file is empty"),
    ] {
        let message = inspect(&path).unwrap_err().to_string();
        assert!(message.ends_with(expected), "{message}");
        assert!(message.contains(&path.display().to_string()));
    }
}

/// The figures of the shipped tiny models, where they were fetched.
#[test]
fn real_models() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    for (file, architecture, quantisation, vocabulary, parameters, bos, template) in [
        (
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "llama",
            "Q4_1",
            49_152,
            134_515_008,
            "<|im_start|>",
            true,
        ),
        (
            "gemma-3-270m-q4_k_m.gguf",
            "gemma3",
            "Q4_K_M",
            262_144,
            268_098_176,
            "<bos>",
            false,
        ),
    ] {
        let path = models.join(file);
        if !path.exists() {
            continue;
        }
        let info = inspect(&path).unwrap();
        assert_eq!(info.architecture, architecture);
        assert_eq!(info.quantisation, quantisation);
        assert_eq!(info.vocabulary, Some(vocabulary));
        assert_eq!(info.parameters, parameters);
        assert_eq!(info.bos.as_deref(), Some(bos));
        assert_eq!(info.chat_template.is_some(), template);
        assert!(info.memory_at(2048).is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is changed in a file, it is described or refused.
    #[test]
    fn mutations_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = small().bytes();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match check(&bytes) {
            Ok(info) => { let _ = info.memory_at(u64::MAX); }
            Err(problem) => prop_assert_eq!(problem.to_string().lines().count(), 1),
        }
    }
}
