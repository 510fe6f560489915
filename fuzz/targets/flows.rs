#![no_main]

#[path = "../../crates/flow/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::flows(data));
