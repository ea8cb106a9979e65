//! GBNF text from anywhere: read or refused, and what was read keeps its language when printed.
#![no_main]

#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::gbnf(data));
