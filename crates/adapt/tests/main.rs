//! The adapter in a closed loop.

#[allow(dead_code, unreachable_pub, reason = "the benchmark uses the rest")]
mod closed_loop;
mod scenarios;
