//! What must hold for any bytes. The fuzz targets call these, and `tests/fuzz.rs` calls them with
//! the inputs that fuzzing found.
#![allow(dead_code, reason = "each fuzz target calls one of these")]

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use snaffle::grammar::lower::LowerError;
use snaffle::grammar::schema::{Limits as SchemaLimits, SchemaOptions, compile};
use snaffle::grammar::{
    Grammar, Limits, Recogniser, SampleError, SampleLength, for_llama_cpp, gbnf, sample,
};

/// Small enough for thousands of inputs a second, large enough to reach everything.
fn limits() -> Limits {
    Limits {
        grammar_bytes: 1 << 16,
        nesting: 64,
        rules: 2_000,
        instructions: 50_000,
        configurations: 512,
        states: 5_000,
        frames: 20_000,
        ..Limits::default()
    }
}

const LENGTH: SampleLength = SampleLength {
    wanted: 40,
    most: 2_000,
};

/// Any text is read or refused; a grammar that was read is the same after printing.
pub fn gbnf(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = limits();
    let grammar = match gbnf::parse(text, &limits) {
        Ok(parsed) => {
            for warning in parsed.warnings {
                assert!(!warning.to_string().is_empty());
            }
            parsed.grammar
        }
        Err(error) => {
            assert!(error.place.line > 0 && !error.to_string().is_empty());
            return;
        }
    };
    let printed = grammar.to_string();
    let roomy = Limits::default();
    let again = match gbnf::parse(&printed, &roomy) {
        Ok(parsed) => parsed.grammar,
        Err(error) => panic!("{error}\nin what was printed:\n{printed}"),
    };
    assert_eq!(printed, again.to_string(), "printing is not stable");
    same_samples(&grammar, &again, &limits);
    if let Ok(compatible) = for_llama_cpp(&grammar, &limits) {
        same_samples(&grammar, &compatible, &limits);
        same_samples(&compatible, &grammar, &limits);
    }
}

/// Samples of one grammar match another one that should be the same.
fn same_samples(left: &Grammar, right: &Grammar, limits: &Limits) {
    let (left, right) = (
        Recogniser::new(left, limits),
        Recogniser::new(right, limits),
    );
    let (Ok(mut left), Ok(mut right)) = (left, right) else {
        return;
    };
    let mut random = ChaCha8Rng::seed_from_u64(3);
    for _ in 0..4 {
        let text = match sample(&mut left, &mut random, LENGTH) {
            Ok(text) => text,
            Err(SampleError::TooLong { .. } | SampleError::Limit(_)) => return,
        };
        match right.matches(text.as_bytes()) {
            Ok(matches) => assert!(matches, "{text:?} is lost"),
            Err(_) => return,
        }
    }
}

/// Any schema is compiled or refused; a text of the grammar is JSON and, where the coverage says
/// that nothing is left to check, satisfies the schema.
pub fn schema(data: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let options = SchemaOptions {
        limits: SchemaLimits {
            nodes: 5_000,
            rules: 2_000,
            terms: 2_000,
            alternatives: 12,
            states: 300,
            ..SchemaLimits::default()
        },
        ..SchemaOptions::default()
    };
    let compiled = match compile(&schema, &options) {
        Ok(compiled) => compiled,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let mut recogniser = match Recogniser::new(&compiled.grammar, &limits()) {
        Ok(recogniser) => recogniser,
        Err(LowerError::Limit(_)) => return,
        Err(error) => panic!("{schema}: {error}"),
    };
    // A document that names another dialect, or breaks the rules of its own, has no judge.
    let judge = (compiled.coverage.is_complete() && schema.get("$schema").is_none())
        .then(|| {
            jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)
                .ok()
        })
        .flatten();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..4 {
        let Ok(text) = sample(&mut recogniser, &mut random, LENGTH) else {
            return;
        };
        let value: Value = match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(error) => panic!("{schema} made {text}: {error}"),
        };
        if let Some(judge) = &judge {
            assert!(
                judge.is_valid(&value),
                "{schema} made {text}: {:?}",
                judge.validate(&value).err().map(|error| error.to_string())
            );
        }
    }
}

/// A grammar, a NUL, and a text: how far it matches is where it stops, what matches can be ended,
/// and what is forced can follow.
pub fn matching(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == 0) else {
        return;
    };
    let (grammar, text) = (&data[..end], &data[end + 1..]);
    let Ok(grammar) = std::str::from_utf8(grammar) else {
        return;
    };
    let limits = limits();
    let Ok(parsed) = gbnf::parse(grammar, &limits) else {
        return;
    };
    let Ok(mut recogniser) = Recogniser::new(&parsed.grammar, &limits) else {
        return;
    };
    let Ok(matched) = recogniser.push_all(text) else {
        return;
    };
    // What matches is the beginning of a text.
    if let Err(error) = std::str::from_utf8(&text[..matched]) {
        assert!(
            error.error_len().is_none(),
            "{:?} matches",
            &text[..matched]
        );
    }
    if let Some(&next) = text.get(matched) {
        assert!(!recogniser.allowed().any(|byte| byte == next));
    }
    let distance = recogniser.distance();
    assert!(
        distance < u64::MAX,
        "a dead end after {:?}",
        &text[..matched]
    );
    let Ok(forced) = recogniser.forced_bytes(50) else {
        return;
    };
    let here = recogniser.position();
    assert_eq!(recogniser.push_all(&forced), Ok(forced.len()));
    recogniser.go_to(here);
    if let Ok(Some(closing)) = recogniser.closing_bytes(500) {
        assert_eq!(closing.len() as u64, distance);
        assert_eq!(recogniser.push_all(&closing), Ok(closing.len()));
        assert!(recogniser.is_accepting());
    }
}
