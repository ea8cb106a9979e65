//! The tokens of a GGUF file, read without llama.cpp, and texts as the longest tokens that fit:
//! every library is given the same ones.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// What a token is for, as GGUF numbers it.
const NORMAL: u32 = 1;
const USER_DEFINED: u32 = 4;
const BYTE: u32 = 6;

/// A vocabulary: the bytes of each token, nothing for those that spell no text.
pub struct Words {
    pub name: String,
    pub path: PathBuf,
    pub tokens: Vec<Option<Vec<u8>>>,
    pub end: u32,
    ids: HashMap<Vec<u8>, u32>,
    longest: usize,
}

impl Words {
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs_err::read(path)?;
        let header = Header::read(&bytes)?;
        let spelling = if header.model == "gpt2" { gpt2 } else { pieces };
        let tokens: Vec<Option<Vec<u8>>> = header
            .tokens
            .iter()
            .enumerate()
            .map(
                |(at, text)| match header.kinds.get(at).copied().unwrap_or(NORMAL) {
                    BYTE => u8::from_str_radix(text.get(3..5)?, 16)
                        .ok()
                        .map(|b| vec![b]),
                    NORMAL | USER_DEFINED => spelling(text),
                    _ => None,
                },
            )
            .collect();
        let mut ids = HashMap::new();
        for (id, token) in tokens.iter().enumerate() {
            if let Some(token) = token.as_ref().filter(|token| !token.is_empty()) {
                ids.entry(token.clone()).or_insert(id as u32);
            }
        }
        let stem = path.file_stem().unwrap_or_default();
        Ok(Self {
            name: stem.to_string_lossy().into_owned(),
            path: path.to_owned(),
            end: header.end,
            longest: ids.keys().map(Vec::len).max().unwrap_or(0),
            tokens,
            ids,
        })
    }

    /// The longest tokens that fit, one after another; nothing where a byte has none.
    pub fn tokenize(&self, text: &str) -> Option<Vec<u32>> {
        let mut rest = text.as_bytes();
        let mut out = Vec::new();
        while !rest.is_empty() {
            let most = self.longest.min(rest.len());
            let (len, id) = (1..=most)
                .rev()
                .find_map(|len| Some((len, *self.ids.get(&rest[..len])?)))?;
            out.push(id);
            rest = &rest[len..];
        }
        Some(out)
    }
}

/// SentencePiece writes a space as U+2581.
fn pieces(text: &str) -> Option<Vec<u8>> {
    Some(text.replace('\u{2581}', " ").into_bytes())
}

/// GPT-2 writes each byte as a character of its own: printable ones as they are, others from U+0100.
fn gpt2(text: &str) -> Option<Vec<u8>> {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let others: Vec<u8> = (0..=255).filter(|&byte| !plain(byte)).collect();
    text.chars()
        .map(|c| match u32::from(c) {
            code @ 0x100.. => others.get(code as usize - 0x100).copied(),
            code => Some(code as u8),
        })
        .collect()
}

#[derive(Default)]
struct Header {
    model: String,
    tokens: Vec<String>,
    kinds: Vec<u32>,
    end: u32,
}

impl Header {
    fn read(bytes: &[u8]) -> io::Result<Self> {
        let mut from = Reader(bytes);
        if from.take(4)? != b"GGUF" {
            return Err(io::Error::other("no GGUF file"));
        }
        let (_version, _tensors) = (from.number(4)?, from.number(8)?);
        let mut header = Self::default();
        for _ in 0..from.number(8)? {
            let key = from.text()?;
            let kind = from.number(4)?;
            match key.as_str() {
                "tokenizer.ggml.model" => header.model = from.text()?,
                "tokenizer.ggml.eos_token_id" => header.end = from.number(4)? as u32,
                "tokenizer.ggml.tokens" => {
                    let (_, count) = (from.number(4)?, from.number(8)?);
                    header.tokens = (0..count).map(|_| from.text()).collect::<Result<_, _>>()?;
                }
                "tokenizer.ggml.token_type" => {
                    let (_, count) = (from.number(4)?, from.number(8)?);
                    let kinds = (0..count).map(|_| Ok(from.number(4)? as u32));
                    header.kinds = kinds.collect::<io::Result<_>>()?;
                }
                _ => from.skip(kind)?,
            }
        }
        Ok(header)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count as usize)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: u64) -> io::Result<u64> {
        let bytes = self.take(bytes)?.iter().rev();
        Ok(bytes.fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn text(&mut self) -> io::Result<String> {
        let count = self.number(8)?;
        Ok(String::from_utf8_lossy(self.take(count)?).into_owned())
    }

    /// Skips a value of type `kind`.
    fn skip(&mut self, kind: u64) -> io::Result<()> {
        let size = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => self.number(8)?,
            9 => {
                let (inner, count) = (self.number(4)?, self.number(8)?);
                for _ in 0..count {
                    self.skip(inner)?;
                }
                0
            }
            _ => return Err(io::Error::other("a type that GGUF does not have")),
        };
        self.take(size).map(drop)
    }
}
