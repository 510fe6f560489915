//! Measures how long all rules take on a host of 512 CPUs, and how that grows with the number of interfaces.
//! `cargo bench -p ringwise-check` runs it. It fails above 50 ms, or if four times the interfaces take more than eight
//! times as long.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ringwise_check::{AuditInput, CpuTraffic, GoalOrigin, HostTraffic, LinkTraffic, QueueTraffic, judge};
use ringwise_model::{CheckOnlyFacts, Dir, Fact, Intent};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

/// The time that the plan and the rules take on a host with this many interfaces, of which none is tuned and half of
/// the facts are unknown.
fn of_many(interfaces: u32) -> (Duration, Duration) {
    let nics = (0..interfaces).map(|i| NicSpec::new(&format!("eth{i}"), "igb", Some(i % 2), 2, 8)).collect();
    let mut s = machines::host("many", CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) }, nics).snapshot();
    for n in &mut s.nics {
        let name = n.name().to_string();
        n.rss = Fact::unknown(format!("rss-get {name}"), "not in this capture");
        n.rings = Fact::unknown(format!("rings-get {name}"), "not in this capture");
        n.pause = Fact::unknown(format!("pause-get {name}"), "not in this capture");
    }
    let intent = Intent::default();
    let plan = ringwise_plan::plan(&s, &intent, &[]).expect("can be planned");
    let planned = |_| {
        let start = Instant::now();
        assert!(ringwise_plan::plan(black_box(&s), &intent, &[]).is_ok());
        start.elapsed()
    };
    let planned = (0..3).map(planned).min().unwrap_or_default();
    let extra = CheckOnlyFacts::default();
    let input = AuditInput {
        snapshot: &s,
        extra: &extra,
        plan: Ok(&plan),
        intent: &intent,
        goal_from: GoalOrigin::Default,
        traffic: None,
        drift: None,
        devs: &[],
    };
    let once = |_| {
        let start = Instant::now();
        assert!(judge(black_box(&input)).findings.len() as u32 > interfaces);
        start.elapsed()
    };
    (planned, (0..3).map(once).min().unwrap_or_default())
}

/// Four times the interfaces may take eight times as long: each may take twice as long, because caches hold a smaller
/// part of them. A quadratic search would take sixteen times as long.
fn growth(sizes: &[u32], judged: bool) {
    let times: Vec<(u32, (Duration, Duration))> = sizes.iter().map(|n| (*n, of_many(*n))).collect();
    for (n, (plan, judge)) in &times {
        println!("{n} interfaces: plan {plan:.1?}, rules {judge:.1?}");
    }
    for (few, many) in times.iter().zip(&times[2..]).filter(|_| judged) {
        assert!(many.1.0 < few.1.0 * 8, "the plan grows faster than the number of interfaces: {} to {}", few.0, many.0);
        assert!(many.1.1 < few.1.1 * 8, "the rules grow faster than the number of interfaces: {} to {}", few.0, many.0);
    }
}

fn main() {
    if std::env::args().any(|a| a == "--test") {
        growth(&[10, 20, 40], false);
    } else {
        growth(&[500, 1000, 2000, 4000, 8000], true);
    }
    let cpu = CpuSpec { packages: 8, nodes: 2, l3s: 2, ..CpuSpec::flat(8, 2) };
    let nics = (0..16).map(|i| NicSpec::new(&format!("eth{i}"), "mlx5_core", Some(i % 16), 128, 128)).collect();
    let s = machines::host("big", cpu, nics).snapshot();
    assert_eq!(s.topology.online.len(), 512);
    let intent = Intent::default();
    let plan = ringwise_plan::plan(&s, &intent, &[]).expect("can be planned");
    let queue = |q: u32| QueueTraffic {
        dir: Dir::Rx,
        queue: q,
        packets: Some(1000),
        bytes: Some(64_000),
        irq: None,
        interrupts: Some(100),
        packets_per_interrupt: Some(10.0),
        cpu: s.topology.online.first(),
        timeouts: Some(0),
    };
    let link = LinkTraffic {
        rx_packets: Some(128_000),
        tx_packets: Some(0),
        queues: (0..128).map(queue).collect(),
        rx_max_over_mean: Some(1.0),
        ..LinkTraffic::default()
    };
    let busy = CpuTraffic { softirq: Some(10.0), irq: Some(0.0), ..CpuTraffic::default() };
    let traffic = HostTraffic {
        seconds: 1.0,
        links: s.nics.iter().map(|n| (n.name().to_string(), link.clone())).collect(),
        cpus: s.topology.online.iter().map(|c| (c, busy.clone())).collect(),
        ..HostTraffic::default()
    };
    let extra = CheckOnlyFacts::default();
    let input = AuditInput {
        snapshot: &s,
        extra: &extra,
        plan: Ok(&plan),
        intent: &intent,
        goal_from: GoalOrigin::Default,
        traffic: Some(&traffic),
        drift: Some(Vec::new()),
        devs: &[],
    };
    // `cargo test --benches` only checks that the benchmark runs.
    let runs = if std::env::args().any(|a| a == "--test") { 1 } else { 20 };
    let once = || {
        let start = Instant::now();
        let r = judge(black_box(&input));
        assert!(!r.findings.is_empty());
        start.elapsed()
    };
    let best = (0..runs).map(|_| once()).min().unwrap_or_default();
    println!("check: all rules, 512 CPUs, 16 NICs, 2,048 queues: {best:.2?}");
    if runs > 1 && best > Duration::from_millis(50) {
        println!("FAILED: above 50 ms");
        std::process::exit(1);
    }
}
