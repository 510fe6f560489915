//! Measures hashes per second, compared with the definition bit by bit, and the time to balance a table. Run it with
//! `cargo bench -p ringwise-flow`.
//!
//! It fails below 20 million IPv4 hashes over addresses and ports per second, and if balancing 100,000 flows, 512
//! entries and 64 queues takes more than 100 ms.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ringwise_flow::balance::balance;
use ringwise_flow::hash::input;
use ringwise_flow::synthetic::Synthetic;
use ringwise_flow::toeplitz::bit_by_bit;
use ringwise_flow::{Fields, Toeplitz, Transform};

fn best(mut f: impl FnMut()) -> Duration {
    (0..7)
        .map(|_| {
            let t = Instant::now();
            f();
            t.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let key: Vec<u8> = (0..40u8).map(|i| i.wrapping_mul(67).wrapping_add(13)).collect();
    let tables = Toeplitz::new(&key);
    let fields = Fields::parse("sdfn").unwrap_or_default();
    let flows = Synthetic { count: 100_000, zipf: 1.0, ..Synthetic::default() }.flows();
    let n = flows.len() as f64;
    let mut sums = (0u32, 0u32);
    let fast = best(|| {
        sums.0 =
            flows.iter().fold(0, |s, f| s ^ tables.hash(input(black_box(&f.tuple), fields, Transform::None).bytes()))
    });
    let slow = best(|| {
        sums.1 = flows
            .iter()
            .fold(0, |s, f| s ^ bit_by_bit(&key, input(black_box(&f.tuple), fields, Transform::None).bytes()))
    });
    assert_eq!(sums.0, sums.1, "both compute the same");
    let rate = n / fast.as_secs_f64() / 1e6;
    println!(
        "IPv4, addresses and ports: {rate:.1} million hashes per second with tables, {:.1} bit by bit",
        n / slow.as_secs_f64() / 1e6
    );
    let new = best(|| _ = black_box(Toeplitz::new(black_box(&key))));
    println!("time to prepare the tables of a key: {new:?}");
    let table: Vec<u32> = (0..512).map(|i| i % 64).collect();
    let mut moves = (0, 0.0, 0.0);
    let time = best(|| {
        let mut loads = vec![0u64; 512];
        for f in &flows {
            loads[tables.hash(input(&f.tuple, fields, Transform::None).bytes()) as usize & 511] += f.packets;
        }
        let b = balance(&table, &loads, &[], 64, |_| true, 1.05);
        moves = (b.moves.len(), b.before, b.after);
    });
    println!(
        "100,000 flows, 512 entries, 64 queues: {time:?} including hashes; {} moves, {:.2} to {:.2}",
        moves.0, moves.1, moves.2
    );
    assert!(rate >= 20.0, "{rate:.1} million hashes per second, expected at least 20");
    assert!(time < Duration::from_millis(100), "{time:?}, expected at most 100 ms");
}
