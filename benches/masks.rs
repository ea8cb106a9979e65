//! Masks of known and unknown states, and compiling, with real vocabularies where the models are
//! in `models/` (a synthetic one otherwise).
#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark prints its table"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use snaffle::grammar::{Grammar, Limits, gbnf};
use snaffle::mask::{Lexicon, MaskStore, Matcher};
use snaffle::vocab::{Token, TokenKind, Vocabulary};

/// A tool call with live values and free text.
const CALL: &str = r#"root ::= "{\"calls\":[{\"tool\":\"" call "}]}" | "{\"ask\":" string "}" | "{\"answer\":" string "}"
call ::= "turn_on\",\"arguments\":{\"device\":" device "}" | "set_brightness\",\"arguments\":{\"device\":" device ",\"brightness\":" percent "}" | "send_email\",\"arguments\":{\"to\":" string ",\"subject\":" string ",\"body\":" string "}"
device ::= "\"" ("kitchen light" | "hall lamp" | "bedroom lamp" | "радио на кухне" | "客厅灯") "\""
percent ::= "100" | [1-9]? [0-9]
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})){0,400} "\""
"#;

const TEXT: &str = r#"{"calls":[{"tool":"send_email","arguments":{"to":"a@b.c","subject":"Hi","body":"Dear \"all\": 你好, привет."}}]}"#;

fn lexicons() -> Vec<(&'static str, Arc<Lexicon>)> {
    let mut found = Vec::new();
    #[cfg(feature = "llama")]
    for (name, file) in [
        ("smollm2", "models/SmolLM2-135M-Instruct.Q4_1.gguf"),
        ("gemma3", "models/gemma-3-270m-q4_k_m.gguf"),
    ] {
        if let Some(vocabulary) = real(file) {
            let started = Instant::now();
            let lexicon = Lexicon::new(Arc::new(vocabulary));
            println!(
                "{name}: trie in {:?}, {} MiB",
                started.elapsed(),
                lexicon.bytes_held() >> 20
            );
            found.push((name, Arc::new(lexicon)));
        }
    }
    if found.is_empty() {
        found.push(("synthetic", Arc::new(Lexicon::new(Arc::new(synthetic())))));
    }
    found
}

#[cfg(feature = "llama")]
fn real(file: &str) -> Option<Vocabulary> {
    use llama_cpp_2::llama_backend::LlamaBackend;
    use llama_cpp_2::model::{LlamaModel, params::LlamaModelParams};
    use llama_cpp_2::token::LlamaToken;
    if !std::path::Path::new(file).exists() {
        return None;
    }
    let mut backend = LlamaBackend::init().ok()?;
    backend.void_logs();
    let params = LlamaModelParams::default().with_vocab_only(true);
    let model = LlamaModel::load_from_file(&backend, file, &params).ok()?;
    let vocab = model.vocab();
    let tokens = (0..vocab.n_tokens())
        .map(|id| {
            let token = LlamaToken(id);
            let control = vocab.is_control(token) || vocab.is_eog(token);
            Token {
                bytes: vocab.token_to_piece(token, true, None),
                kind: if control {
                    TokenKind::Control
                } else {
                    TokenKind::Text
                },
            }
        })
        .collect();
    Some(Vocabulary::new(tokens, Vec::new()))
}

/// All bytes, and 50,000 words of a made-up language.
fn synthetic() -> Vocabulary {
    let mut tokens: Vec<Token> = (0..=255_u8)
        .map(|byte| Token {
            bytes: vec![byte],
            kind: TokenKind::Byte,
        })
        .collect();
    let syllables = [
        "ka", "to", " mi", "ren", "\"", ", ", "os", "ин", "ж", "中", "1", "_x",
    ];
    for n in 0..50_000_usize {
        let mut rest = n * 2_654_435_761 % 248_832;
        let mut bytes = Vec::new();
        for _ in 0..1 + n % 5 {
            bytes.extend_from_slice(syllables[rest % syllables.len()].as_bytes());
            rest /= syllables.len();
        }
        tokens.push(Token {
            bytes,
            kind: TokenKind::Text,
        });
    }
    Vocabulary::new(tokens, Vec::new())
}

fn grammar() -> Grammar {
    match gbnf::parse(CALL, &Limits::default()) {
        Ok(parsed) => parsed.grammar,
        Err(error) => panic!("{error}"),
    }
}

fn start(grammar: &Grammar, lexicon: &Arc<Lexicon>, store: &Arc<MaskStore>) -> Matcher {
    match Matcher::new(grammar, lexicon, store, &Limits::default()) {
        Ok(matcher) => matcher,
        Err(error) => panic!("{error}"),
    }
}

/// The time of each mask along `TEXT`, one byte at a time.
fn along(matcher: &Matcher) -> Vec<Duration> {
    let mut matcher = matcher.clone();
    let mut times = Vec::new();
    for byte in TEXT.bytes() {
        let started = Instant::now();
        black_box(matcher.mask().ok());
        times.push(started.elapsed());
        assert!(matcher.accept_bytes(&[byte]).is_ok_and(|accepted| accepted));
    }
    times.sort_unstable();
    times
}

fn masks(c: &mut Criterion) {
    let grammar = grammar();
    for (name, lexicon) in lexicons() {
        let store = Arc::new(MaskStore::default());
        let matcher = start(&grammar, &lexicon, &store);
        for run in ["empty store", "known states"] {
            let times = along(&matcher);
            let total: Duration = times.iter().sum();
            println!(
                "{name}, {run}: median {:?}, p90 {:?}, worst {:?}, total {total:?} of {} masks",
                times[times.len() / 2],
                times[times.len() * 9 / 10],
                times[times.len() - 1],
                times.len(),
            );
        }
        let warm = start(&grammar, &lexicon, &store);
        let times = along(&warm);
        println!(
            "{name}, new automaton, warm store: median {:?}, worst {:?}",
            times[times.len() / 2],
            times[times.len() - 1]
        );
        println!(
            "{name}: store {:?}, automaton {} KiB",
            store.stats(),
            warm.bytes_held() >> 10
        );
        c.bench_function(&format!("{name}/known"), |b| {
            let mut matcher = matcher.clone();
            b.iter(|| black_box(matcher.mask().ok()));
        });
        c.bench_function(&format!("{name}/compile"), |b| {
            b.iter(|| black_box(start(&grammar, &lexicon, &store)));
        });
        c.bench_function(&format!("{name}/first mask"), |b| {
            b.iter_batched(
                || start(&grammar, &lexicon, &Arc::new(MaskStore::default())),
                |mut matcher| black_box(matcher.mask().ok()),
                BatchSize::SmallInput,
            );
        });
        c.bench_function(&format!("{name}/string, nothing known"), |b| {
            b.iter_batched(
                || {
                    let mut matcher = start(&grammar, &lexicon, &Arc::new(MaskStore::default()));
                    let _ = matcher.accept_bytes(b"{\"ask\":\"a");
                    matcher
                },
                |mut matcher| black_box(matcher.mask().ok()),
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    targets = masks
}
criterion_main!(benches);
