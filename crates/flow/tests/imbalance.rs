//! Compares how uneven random flows are with figures from a separate simulation (busiest queue divided by the mean,
//! default table). The figures are means of several draws, with a tolerance for their variation.

use ringwise_flow::balance::balance;
use ringwise_flow::hash::input;
use ringwise_flow::population::evenness;
use ringwise_flow::synthetic::{Rng, Synthetic};
use ringwise_flow::{Fields, Toeplitz, Transform};

struct Means {
    before: f64,
    after: f64,
    moves: f64,
}

fn draw(count: u32, zipf: f64, entries: usize, queues: u32) -> Means {
    // With many flows all draws give nearly the same result, so two are enough.
    let rounds = if count > 100_000 { 2 } else { 9 };
    let mut m = Means { before: 0.0, after: 0.0, moves: 0.0 };
    for seed in 1..=rounds {
        let mut rng = Rng(seed * 7919);
        let key: Vec<u8> = (0..40).map(|_| rng.draw() as u8).collect();
        let tables = Toeplitz::new(&key);
        let fields = Fields::parse("sdfn").unwrap();
        let mut loads = vec![0u64; entries];
        let flows = Synthetic { count, zipf, seed, packets: 100_000_000, ..Synthetic::default() }.flows();
        for f in &flows {
            loads[tables.hash(input(&f.tuple, fields, Transform::None).bytes()) as usize & (entries - 1)] += f.packets;
        }
        let table: Vec<u32> = (0..entries as u32).map(|i| i % queues).collect();
        let b = balance(&table, &loads, &[], queues, |_| true, 1.05);
        let mut sums = vec![0u64; queues as usize];
        b.table.iter().zip(&loads).for_each(|(q, l)| sums[*q as usize] += l);
        let heaviest = flows.iter().map(|f| f.packets).max().unwrap();
        let computed = evenness(&sums, heaviest).unwrap();
        assert!((computed.max_to_mean - b.after).abs() < 1e-9, "the reported ratio is that of the table");
        assert!(b.after <= b.before + 1e-9 && b.after >= b.floor - 1e-9 && b.floor >= computed.floor - 1e-9);
        assert_eq!(b.moves.len(), table.iter().zip(&b.table).filter(|(x, y)| x != y).count());
        m.before += b.before / rounds as f64;
        m.after += b.after / rounds as f64;
        m.moves += b.moves.len() as f64 / rounds as f64;
    }
    m
}

#[test]
fn as_simulated() {
    // Flows, exponent, entries, queues; before; after; moves at most.
    for (count, zipf, entries, queues, before, after, moves) in [
        (2_000, 0.0, 128, 16, 1.17, 1.05, 12.0),
        (2_000, 0.8, 128, 16, 1.72, 1.05, 25.0),
        (2_000, 1.0, 128, 8, 1.81, 1.05, 30.0),
        (2_000, 1.0, 128, 16, 2.71, 2.01, 30.0),
        (20_000, 0.8, 512, 16, 1.45, 1.05, 30.0),
        (20_000, 1.0, 128, 16, 2.34, 1.60, 30.0),
        (200_000, 1.0, 512, 16, 2.05, 1.27, 60.0),
    ] {
        let m = draw(count, zipf, entries, queues);
        let text =
            format!("{count} flows, s={zipf}, {entries}x{queues}: {:.2} -> {:.2} in {:.1}", m.before, m.after, m.moves);
        println!("{text}");
        assert!((m.before - before).abs() < before * 0.2, "{text}, expected {before}");
        assert!((m.after - after).abs() < after * 0.1, "{text}, expected {after}");
        assert!(m.moves <= moves, "{text}");
    }
}

/// If one flow is most of the traffic, no table helps, however many flows there are.
#[test]
fn elephants() {
    for count in [2_000, 20_000] {
        let m = draw(count, 1.2, 128, 16);
        let text = format!("{count} flows, s=1.2, 128x16: {:.2} -> {:.2} in {:.1}", m.before, m.after, m.moves);
        println!("{text}");
        assert!((3.7 * 0.9..4.8 * 1.1).contains(&m.before), "{text}");
        assert!((3.1 * 0.9..4.2 * 1.1).contains(&m.after) && m.after < m.before, "{text}");
        assert!(m.moves <= 40.0, "{text}");
    }
}
