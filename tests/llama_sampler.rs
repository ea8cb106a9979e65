//! Allowed tokens against llama.cpp's own grammar sampler, step by step along random walks.
//!
//! An independent implementation of the same notation is the best judge there is. Control tokens,
//! the end of generation and tokens with a NUL are left aside. Where the two differ, llama.cpp is
//! at fault in one of the ways that [`Fault`] names, each of which has a test of its own that
//! shows it; any other difference fails.
//!
//! `SNAFFLE_COMPARE=full` takes 200 walks per grammar with SmolLM2 and 20 with Gemma instead of a
//! tenth (`scripts/compare-llama-sampler`). A model that is not in `models/` is skipped.
#![cfg(feature = "llama")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may"
)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use rand::{RngExt, SeedableRng};
use snaffle::grammar::{Limits, gbnf};
use snaffle::mask::{Lexicon, MaskStore, Matcher};
use snaffle::vocab::{Token, TokenId, TokenKind, Vocabulary};

/// What llama.cpp's sampler gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fault {
    /// It lets bytes through that are not UTF-8: it takes continuation bytes unchecked, and
    /// overlong forms, surrogates and numbers above U+10FFFF for characters.
    NotUtf8,
    /// It refuses the first bytes of a character where a negated class excludes some other
    /// character that begins with the same bytes.
    NegatedClass,
    /// It lets the first bytes of a character through of which no token can spell the rest.
    DeadEnd,
}

struct Model {
    name: &'static str,
    model: LlamaModel,
    lexicon: Arc<Lexicon>,
    store: Arc<MaskStore>,
}

impl Model {
    fn load(backend: &LlamaBackend, name: &'static str) -> Option<Self> {
        let path = Path::new("models").join(name);
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
            return None;
        }
        let params = LlamaModelParams::default().with_vocab_only(true);
        let model = LlamaModel::load_from_file(backend, &path, &params).unwrap();
        let vocab = model.vocab();
        let mut end_of_generation = Vec::new();
        let tokens = (0..vocab.n_tokens())
            .map(|id| {
                let token = LlamaToken(id);
                if vocab.is_eog(token) {
                    end_of_generation.push(id as TokenId);
                }
                let bytes = vocab.token_to_piece(token, true, None);
                let kind = if vocab.is_control(token) || vocab.is_eog(token) || bytes.contains(&0) {
                    TokenKind::Control
                } else {
                    TokenKind::Text
                };
                Token { bytes, kind }
            })
            .collect();
        let vocabulary = Vocabulary::new(tokens, end_of_generation);
        Some(Self {
            name,
            model,
            lexicon: Arc::new(Lexicon::new(Arc::new(vocabulary))),
            store: Arc::new(MaskStore::default()),
        })
    }

    fn matcher(&self, grammar: &str) -> Matcher {
        let limits = Limits::default();
        let parsed = gbnf::parse(grammar, &limits).unwrap_or_else(|e| panic!("{e}"));
        Matcher::new(&parsed.grammar, &self.lexicon, &self.store, &limits).unwrap()
    }

    fn sampler(&self, grammar: &str) -> LlamaSampler {
        LlamaSampler::grammar(&self.model, grammar, "root").unwrap()
    }

    /// Text tokens that llama.cpp allows.
    fn allowed(&self, sampler: &mut LlamaSampler) -> Vec<TokenId> {
        let vocabulary = self.lexicon.vocabulary();
        let all = (0..vocabulary.len() as TokenId)
            .filter(|&id| !vocabulary.bytes(id).is_empty())
            .map(|id| LlamaTokenData::new(LlamaToken(id as i32), 0.0, 0.0))
            .collect();
        let mut candidates = LlamaTokenDataArray::new(all, false);
        sampler.apply(&mut candidates);
        candidates
            .data
            .iter()
            .filter(|data| data.logit() > f32::NEG_INFINITY)
            .map(|data| data.id().0 as TokenId)
            .collect()
    }

    /// Why llama.cpp thinks otherwise of `token` after `text`; `None` if there is no excuse.
    fn fault(&self, grammar: &str, text: &[u8], token: TokenId, we_allow: bool) -> Option<Fault> {
        let vocabulary = self.lexicon.vocabulary();
        let mut longer = text.to_vec();
        longer.extend_from_slice(vocabulary.bytes(token));
        match std::str::from_utf8(&longer) {
            Ok(_) => None,
            // An incomplete character at the end.
            Err(error) if error.error_len().is_none() => {
                if we_allow {
                    return grammar.contains("[^").then_some(Fault::NegatedClass);
                }
                let begun = &longer[error.valid_up_to()..];
                let spellable = (0..=char::MAX as u32).filter_map(char::from_u32).any(|c| {
                    let mut buffer = [0; 4];
                    let bytes = c.encode_utf8(&mut buffer).as_bytes();
                    bytes.starts_with(begun)
                        && bytes[begun.len()..]
                            .iter()
                            .all(|&byte| vocabulary.spellable()[usize::from(byte)])
                });
                (!spellable).then_some(Fault::DeadEnd)
            }
            Err(_) => (!we_allow).then_some(Fault::NotUtf8),
        }
    }

    /// Compares along one walk; returns the number of steps, and counts excused differences.
    fn walk(
        &self,
        name: &str,
        grammar: &str,
        matcher: &Matcher,
        seed: u64,
        excused: &mut HashMap<Fault, usize>,
    ) -> usize {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut matcher = matcher.clone();
        let mut sampler = self.sampler(grammar);
        let mut text = Vec::new();
        let mut steps = 0;
        while steps < 16 {
            let ours: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            let plain = matcher.mask_plain().unwrap();
            assert!(plain.iter().eq(ours.iter().copied()), "{name}");
            let theirs = self.allowed(&mut sampler);
            steps += 1;
            let mut both = Vec::with_capacity(ours.len());
            let (mut left, mut right) = (ours.iter().peekable(), theirs.iter().peekable());
            loop {
                let token = match (left.peek(), right.peek()) {
                    (None, None) => break,
                    (Some(a), Some(b)) if a == b => {
                        both.push(**a);
                        left.next();
                        right.next();
                        continue;
                    }
                    (Some(&&a), Some(&&b)) if a < b => (a, true),
                    (_, Some(&&b)) => (b, false),
                    (Some(&&a), None) => (a, true),
                };
                if token.1 {
                    left.next();
                } else {
                    right.next();
                }
                let Some(fault) = self.fault(grammar, &text, token.0, token.1) else {
                    panic!(
                        "{}, {name}, after {:?}: {:?} is {}",
                        self.name,
                        String::from_utf8_lossy(&text),
                        String::from_utf8_lossy(self.lexicon.vocabulary().bytes(token.0)),
                        if token.1 {
                            "allowed by us alone"
                        } else {
                            "allowed by llama.cpp alone"
                        },
                    );
                };
                *excused.entry(fault).or_default() += 1;
            }
            // Only what both allow: the sampler aborts the process on anything else.
            if both.is_empty() {
                break;
            }
            let token = both[random.random_range(0..both.len())];
            text.extend_from_slice(self.lexicon.vocabulary().bytes(token));
            assert!(matcher.accept_token(token).unwrap());
            sampler.accept(LlamaToken(token as i32));
        }
        steps
    }
}

fn grammars() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = fs_err::read_dir("tests/grammars")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "gbnf"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs_err::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

const SMOLLM: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const GEMMA: &str = "gemma-3-270m-q4_k_m.gguf";

// One test: llama.cpp's backend is one per process.
#[test]
fn allowed_tokens_equal_those_of_llama_cpp() {
    let full = std::env::var("SNAFFLE_COMPARE").is_ok_and(|value| value == "full");
    let mut backend = LlamaBackend::init().unwrap();
    backend.void_logs();
    let grammars = grammars();
    assert!(grammars.len() >= 40);
    for (file, walks) in [(SMOLLM, 20), (GEMMA, 2)] {
        let Some(model) = Model::load(&backend, file) else {
            continue;
        };
        each_fault_is_shown(&model);
        let walks = if full { walks * 10 } else { walks };
        let mut steps = 0;
        let mut excused = HashMap::new();
        for (name, grammar) in &grammars {
            let matcher = model.matcher(grammar);
            for seed in 0..walks {
                steps += model.walk(name, grammar, &matcher, seed, &mut excused);
            }
        }
        println!(
            "{file}: {} grammars, {walks} walks each, {steps} steps equal; \
             tokens that differ by known faults of llama.cpp: {excused:?}",
            grammars.len()
        );
    }
}

/// Each fault of llama.cpp that the comparison excuses.
fn each_fault_is_shown(model: &Model) {
    let vocabulary = Arc::clone(model.lexicon.vocabulary());
    let token_of = |bytes: &[u8]| {
        (0..vocabulary.len() as TokenId)
            .find(|&id| !bytes.is_empty() && vocabulary.bytes(id) == bytes)
    };
    // `ж` is D0 B6: llama.cpp refuses D0, with which `и` begins too.
    let negated = "root ::= [^ж]+";
    if let Some(first) = token_of(b"\xD0") {
        assert!(model.matcher(negated).mask().unwrap().contains(first));
        assert!(!model.allowed(&mut model.sampler(negated)).contains(&first));
        assert_eq!(
            model.fault(negated, b"", first, true),
            Some(Fault::NegatedClass)
        );
    }
    // C0 begins no character; F5 neither; a continuation byte must follow E4.
    for (before, bytes) in [(&b""[..], &b"\xC0"[..]), (b"", b"\xF5"), (b"\xE4", b"\xE4")] {
        let any = "root ::= .+";
        let (mut matcher, mut sampler) = (model.matcher(any), model.sampler(any));
        if let Some(first) = token_of(before) {
            assert!(matcher.accept_token(first).unwrap());
            sampler.accept(LlamaToken(first as i32));
        }
        if let Some(token) = token_of(bytes) {
            assert!(!matcher.mask().unwrap().contains(token));
            if model.allowed(&mut sampler).contains(&token) {
                assert_eq!(model.fault(any, before, token, false), Some(Fault::NotUtf8));
            }
        }
    }
}
