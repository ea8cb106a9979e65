//! What tests share: models that may be there, and tasks to work on without one.
#![allow(dead_code, reason = "each test binary uses another part of this")]
#![expect(clippy::print_stderr, reason = "says why a test is skipped")]

pub mod place;
pub mod program;
pub mod tasks;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by each test that computes: two models at once, with a thread a core each, wait for each
/// other's threads and take ten times as long.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A BPE vocabulary of 49,152 tokens, ChatML template.
pub const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// A SentencePiece vocabulary of 262,144 tokens, sliding-window attention, no template.
pub const GEMMA: &str = "gemma-3-270m-q4_k_m.gguf";

/// The path of a model file, or `None` with the reason on standard error: the test is skipped.
pub fn model_file(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("models")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "skipped: {} is missing (snaffle model pull)",
        path.display()
    );
    None
}
