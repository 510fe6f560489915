//! Measures how long planning takes and how it scales: `cargo bench -p ringwise-plan`.
//!
//! Fails if the big machine takes longer than 20 ms or if the time grows faster than n log n with the number of queues or
//! of interfaces (with a margin of two for the noise of a shared machine).

use std::hint::black_box;
use std::time::{Duration, Instant};

use ringwise_model::{Goal, Intent, Snapshot};
use ringwise_testkit::machines::{self, Irqs, NicSpec};
use ringwise_testkit::topo::CpuSpec;

/// `nodes` nodes of 16 cores with two threads; NICs are distributed over the nodes.
fn machine(packages: u32, nics: u32, queues_each: u32) -> Snapshot {
    let cpu = CpuSpec { packages, nodes: 2, l3s: 2, ..CpuSpec::flat(8, 2) };
    let nodes = packages * 2;
    let nics = (0..nics).map(|i| NicSpec::new(&format!("eth{i}"), "mlx5_core", Some(i % nodes), queues_each, 128));
    machines::host("big", cpu, nics.collect()).snapshot()
}

/// Interfaces with two queues each on two nodes; half of them are placed as planned already.
fn interfaces(n: u32) -> Snapshot {
    let irqs = |i: u32| if i.is_multiple_of(2) { Irqs::AllOnFirst } else { Irqs::Round };
    let nic = |i: u32| NicSpec { irqs: irqs(i), ..NicSpec::new(&format!("eth{i}"), "igb", Some(i % 2), 2, 8) };
    machines::host("many", CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) }, (0..n).map(nic).collect()).snapshot()
}

/// The fastest of many runs.
fn best(s: &Snapshot, goal: Goal, runs: u32) -> Duration {
    let intent = Intent { goal, ..Intent::default() };
    let once = || {
        let start = Instant::now();
        let p = ringwise_plan::plan(black_box(s), &intent, &[]).expect("can be planned");
        let took = start.elapsed();
        assert!(p.target.len() > p.layout.len());
        took
    };
    (0..runs).map(|_| once()).min().unwrap_or_default()
}

fn main() {
    // `cargo test --benches` only checks that the benchmark runs.
    let runs = if std::env::args().any(|a| a == "--test") { 1 } else { 30 };
    let small = machine(1, 1, 128);
    let big = machine(8, 16, 128);
    assert_eq!((small.topology.online.len(), big.topology.online.len()), (64, 512));
    let mut failed = false;
    for goal in Goal::ALL {
        let (a, b) = (best(&small, goal, runs), best(&big, goal, runs));
        let nlogn = |n: f64| n * n.log2();
        let (grown, may) = (b.as_secs_f64() / a.as_secs_f64(), 2.0 * nlogn(2048.0) / nlogn(128.0));
        println!(
            "plan {goal:9} 64 CPUs, 1 NIC, 128 queues {a:>9.2?}   512 CPUs, 16 NICs, 2,048 queues {b:>9.2?}   x{grown:.1} (n log n with margin: x{may:.1})"
        );
        failed |= runs > 1 && (b > Duration::from_millis(20) || grown > may);
    }
    let (few, many) = if runs > 1 { (500, 4000) } else { (5, 40) };
    let (small, big) = (interfaces(few), interfaces(many));
    for goal in Goal::ALL {
        let (a, b) = (best(&small, goal, runs.min(5)), best(&big, goal, runs.min(5)));
        let nlogn = |n: u32| f64::from(n) * f64::from(n).log2();
        let (grown, may) = (b.as_secs_f64() / a.as_secs_f64(), 2.0 * nlogn(many) / nlogn(few));
        println!(
            "plan {goal:9} {few} interfaces {a:>9.2?}   {many} interfaces {b:>9.2?}   x{grown:.1} (n log n with margin: x{may:.1})"
        );
        failed |= runs > 1 && grown > may;
    }
    if failed {
        println!("FAILED: above 20 ms, or steeper than n log n");
        std::process::exit(1);
    }
}
