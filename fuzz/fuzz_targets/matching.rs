//! Texts against grammars, both from anywhere: what matches can be ended, what does not says where.
#![no_main]

#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::matching(data));
