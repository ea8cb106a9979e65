//! Grammars of schemas in the form for llama.cpp, run by llama.cpp's own parser and sampler: the
//! instances that our engine accepts it accepts, and those that ours rejects it rejects.
//!
//! Schemas of tool calls from MaskBench, every so manyth; `SNAFFLE_COMPARE=full` takes all. Skipped
//! where the data or the model is absent.
#![cfg(feature = "llama")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may"
)]

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use snaffle::bench::conformance::{Case, Verdict, judge};
use snaffle::call::json::spaced;
use snaffle::grammar::schema::{Bounds, SchemaOptions};
use snaffle::grammar::{Grammar, Limits, for_llama_cpp, gbnf};
use std::path::{Path, PathBuf};

const MODEL: &str = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

struct Reference {
    model: LlamaModel,
    end: LlamaToken,
}

impl Reference {
    /// Whether llama.cpp's sampler accepts the whole text; `None` if the vocabulary cannot spell it.
    fn accepts(&self, grammar: &str, text: &str) -> Option<bool> {
        let mut sampler = LlamaSampler::grammar(&self.model, grammar, "root")
            .unwrap_or_else(|error| panic!("{error:?} for\n{grammar}"));
        let vocab = self.model.vocab();
        let tokens = vocab.tokenize(text.as_bytes(), false, false);
        let spelled: Vec<u8> = tokens
            .iter()
            .flat_map(|&token| vocab.token_to_piece(token, true, None))
            .collect();
        if spelled != text.as_bytes() {
            return None;
        }
        for token in tokens {
            if !allows(&mut sampler, token) {
                return Some(false);
            }
            sampler.accept(token);
        }
        Some(allows(&mut sampler, self.end))
    }
}

/// Whether the sampler allows this token: it aborts the process on one that it does not.
fn allows(sampler: &mut LlamaSampler, token: LlamaToken) -> bool {
    let mut candidates =
        LlamaTokenDataArray::new(vec![LlamaTokenData::new(token, 0.0, 0.0)], false);
    sampler.apply(&mut candidates);
    candidates.data[0].logit() > f32::NEG_INFINITY
}

fn data() -> Option<PathBuf> {
    let base = std::env::var_os("SNAFFLE_TEST_DATA")
        .map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let path = base.join("maskbench");
    if !path.is_dir() {
        println!("skipped: {} is absent", path.display());
        return None;
    }
    Some(path)
}

/// As `snaffle grammar compile --llama-cpp` has it.
fn options() -> SchemaOptions {
    let options = SchemaOptions::default();
    SchemaOptions {
        bounds: Bounds {
            string: None,
            items: None,
            properties: None,
            ..options.bounds
        },
        ..options
    }
}

// One test: llama.cpp's backend is one per process.
#[test]
fn llama_cpp_runs_the_form_that_is_made_for_it() {
    if !Path::new(MODEL).exists() {
        println!("skipped: {MODEL} is not there");
        return;
    }
    let mut backend = LlamaBackend::init().unwrap();
    backend.void_logs();
    let params = LlamaModelParams::default().with_vocab_only(true);
    let model = LlamaModel::load_from_file(&backend, MODEL, &params).unwrap();
    let end = model.vocab().eos();
    let reference = Reference { model, end };
    large_counts(&reference);
    let Some(folder) = data() else {
        return;
    };
    let full = std::env::var("SNAFFLE_COMPARE").is_ok_and(|value| value == "full");
    for (set, every) in [("BFCL", 12), ("Glaiveai2K", 40), ("JME", 3), ("MCPspec", 3)] {
        let text = fs_err::read_to_string(folder.join(format!("{set}.jsonl"))).unwrap();
        let every = if full { 1 } else { every };
        let (mut schemas, mut instances, mut looser) = (0, 0, 0);
        for (at, line) in text.lines().enumerate().step_by(every) {
            let case = Case::from_line(line, at + 1).unwrap();
            let (judgement, compiled) = judge(&case, &options());
            let (Verdict::Compiled(compared), Some(compiled)) = (judgement.verdict, compiled)
            else {
                continue;
            };
            schemas += 1;
            let grammar = for_llama_cpp(&compiled.grammar, &Limits::default()).unwrap();
            let printed = grammar.to_string();
            for (number, test) in case.tests.iter().enumerate() {
                let ours = if test.valid {
                    !compared.false_rejections.iter().any(|r| r.test == number)
                } else {
                    compared.false_acceptances.iter().any(|a| a.test == number)
                };
                let Some(theirs) = reference.accepts(&printed, &spaced(&test.data)) else {
                    continue;
                };
                instances += 1;
                if ours && !theirs && is_excused(&printed, &test.data) {
                    looser += 1;
                    continue;
                }
                assert_eq!(theirs, ours, "{}: {}\n{printed}", case.id, test.data);
            }
        }
        println!("{set}: {schemas} schemas, {instances} instances alike, {looser} excused");
        assert!(schemas > 5 && instances > 5, "{set}");
    }
}

/// llama.cpp refuses the first bytes of a character where a negated class excludes some other
/// character that begins with the same bytes (see `llama_sampler.rs`): only tokens that end inside
/// a character are concerned.
fn is_excused(grammar: &str, data: &serde_json::Value) -> bool {
    grammar.contains("[^") && !data.to_string().is_ascii()
}

/// Counts that llama.cpp refuses, or takes for none, hold in the form that is made for it.
fn large_counts(reference: &Reference) {
    let limits = Limits::default();
    let word = |count: usize| format!("\"{}\"", "ab".repeat(count));
    for (text, right, wrong) in [
        (
            "root ::= \"\\\"\" (\"ab\"){0,2500} \"\\\"\"",
            [word(0), word(2500)],
            [word(2501), "\"a\"".to_owned()],
        ),
        (
            "root ::= \"\\\"\" (\"a\" | \"b\"){4500,5000} \"\\\"\"",
            [word(2250), word(2500)],
            [word(2249), word(2501)],
        ),
        (
            "root ::= \"\\\"\" (\"ab\"?){3000} \"\\\"\"",
            [word(0), word(3000)],
            [word(3001), "\"ba\"".to_owned()],
        ),
        // An optional group counts as many copies as there are rules in it.
        (
            "root ::= \"\\\"\" (ab{0,900} | \"b\" ab{0,900} | \"ba\" ab{1,900})? \"\\\"\"\nab ::= \"ab\"\n",
            [word(0), word(900)],
            [word(901), "\"baab".to_owned()],
        ),
    ] {
        let grammar: Grammar = gbnf::parse(text, &limits).unwrap().grammar;
        let printed = for_llama_cpp(&grammar, &limits).unwrap().to_string();
        for (texts, expected) in [(right, true), (wrong, false)] {
            for instance in texts {
                let found = reference.accepts(&printed, &instance);
                let length = instance.len();
                assert_eq!(found, Some(expected), "{length} bytes in {text}\n{printed}");
            }
        }
    }
}
