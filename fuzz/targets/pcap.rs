#![no_main]

#[path = "../../crates/kfmt/tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::pcap(data));
