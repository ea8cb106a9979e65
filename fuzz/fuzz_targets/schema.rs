//! JSON Schemas from anywhere: compiled or refused, and what was compiled writes what validates.
#![no_main]

#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::schema(data));
