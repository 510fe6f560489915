//! Generated sessions for tests of the reports.

use ringwise_bench::compare::{compare, compare_all};
use ringwise_bench::file::Results;
use ringwise_bench::result::*;
use ringwise_bench::rng::Rng;

/// About 1, with a deviation of a few per cent.
fn near(rng: &mut Rng, percent: f64) -> f64 {
    let sum: f64 = (0..12).map(|_| rng.below(1_000_000) as f64 / 1e6).sum();
    1.0 + (sum - 6.0) * percent / 100.0
}

fn state(name: &str, what: &str) -> State {
    State { name: name.into(), what: what.into(), ..State::default() }
}

fn session(workload: &str, states: Vec<State>, blocks: u32) -> Session {
    let port = |name: &str| Port { name: name.into(), driver: "igb".into(), speed_mbit_per_s: Some(1000) };
    Session {
        schema: SCHEMA.into(),
        version: VERSION,
        ringwise: "0.1.0".into(),
        started_unix: 1_790_000_000,
        title: None,
        workload: workload.into(),
        driver: "built-in".into(),
        ports: vec![port("eth1"), port("eth2")],
        caveat: None,
        peer: Some("10.0.0.2:4710".into()),
        states,
        swept: None,
        design: Design {
            seed: 7,
            blocks,
            calibration_blocks: 2,
            warmup_s: 1.0,
            trial_s: 10.0,
            equivalent_percent: 2.0,
            alpha: 0.05,
            weight: None,
        },
        environment: Environment {
            hash: "5f0c11d2a9b3e877".into(),
            facts: [
                ("kernel", "Linux 6.12.48"),
                ("cpu", "8 CPUs of <Virtual> CPU & co"),
                ("eth1 driver", "igb 6.12.48, firmware unknown"),
                ("governor", "not readable: no cpufreq here"),
            ]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into(),
            peer: [("kernel".to_string(), "Linux 6.12.48".to_string())].into(),
            capture: Some("bench-7.capture.tar.gz".into()),
        },
    }
}

fn cpus(busy: &[f64]) -> Vec<CpuUse> {
    let one = |(i, b): (usize, &f64)| CpuUse {
        cpu: i as u32,
        busy_percent: *b,
        user_percent: 0.0,
        system_percent: b * 0.1,
        softirq_percent: b * 0.85,
        irq_percent: b * 0.05,
        delay_p99_us: Some(40.0 + b * b / 10.0),
        delay_max_us: Some(300.0 + b * b),
    };
    busy.iter().enumerate().map(one).collect()
}

/// Routing by size: all interrupts on CPU 0 against one CPU a queue; line rate is met at 1000 and 500 bytes.
pub(crate) fn forward() -> Results {
    let states = vec![state("cpu0", "--set irq.affinity=0"), state("spread", "--goal forward")];
    let mut s = session("forward", states, 20);
    s.caveat = Some("emulated NIC (igb in QEMU), not a NIC".into());
    s.title = Some("Routing with <one> CPU & with eight".into());
    let mut rng = Rng::new(1);
    let mut trials = Vec::new();
    for size in [1000u32, 500, 250, 100, 50, 20] {
        for block in 0..20 {
            for (order, name) in ["cpu0", "spread"].into_iter().enumerate() {
                let frame = (size + 46).max(64);
                let line = 1e9 / 8.0 / f64::from(frame + 20);
                let can = if name == "cpu0" { 410e3 } else { 1.21e6 } * near(&mut rng, 3.0);
                let done = can.min(line * 0.999);
                let lost = (1.0 - done / line).max(0.0) * 100.0;
                let one = (done / can * 100.0).min(99.8);
                let busy: Vec<f64> = match name {
                    "cpu0" => std::iter::once(one).chain([2.0; 7]).collect(),
                    _ => (0..8).map(|_| (one * near(&mut rng, 2.0)).min(100.0)).collect(),
                };
                let total: f64 = busy.iter().sum();
                let link = done >= line * 0.99;
                trials.push(Trial {
                    point: Point { size_bytes: Some(size), flows: Some(65_536), ..Point::default() },
                    state: name.into(),
                    phase: Phase::Measure,
                    block,
                    order: order as u32,
                    at_s: trials.len() as f64 * 12.0,
                    seconds: 10.0,
                    loads: vec![LoadResult {
                        unit: Unit::Packets,
                        threads: 2,
                        sent_per_s: line,
                        done_per_s: done,
                        // In one block the sink did not answer.
                        lost_percent: (!(size == 250 && name == "spread")).then_some(lost),
                        bits_per_s: done * f64::from(frame) * 8.0,
                        counted: BitRateLayer::Frame,
                        busiest_thread_percent: Some(64.0),
                        ..LoadResult::default()
                    }],
                    host: HostSide {
                        cpus: cpus(&busy),
                        received_per_s: Some(line),
                        transmitted_per_s: Some(done),
                        interrupts_per_s: Some(18_000.0 * near(&mut rng, 4.0)),
                        interrupts_per_packet: Some(18_000.0 / done),
                        cpu_ns_per_packet: Some(total * 1e7 / done),
                        budget_ns_per_packet: Some(1e9 / line),
                        line_rate_percent: Some(done / line * 100.0),
                        lost: [("eth1 ring".to_string(), ((line - done) * 10.0) as u64)].into(),
                        queues: (0..8)
                            .map(|q| QueueUse {
                                dev: "eth1".into(),
                                queue: q,
                                packets: (1e6 * near(&mut rng, 8.0)) as u64,
                            })
                            .collect(),
                        queue_max_over_mean: Some(1.1 * near(&mut rng, 2.0)),
                        unknown: [("cycles".to_string(), "ENOENT: no performance counters in this guest".to_string())]
                            .into(),
                        ..HostSide::default()
                    },
                    limit: match (link, name) {
                        (true, _) => Limit::Link("eth2".into()),
                        (_, "cpu0") => Limit::Cpu(vec![0]),
                        _ => Limit::Cpu((0..8).collect()),
                    },
                    doubts: match (size, block, name) {
                        (20, 3, "spread") => vec!["1.4 % of the packets on eth1 were not of this test".into()],
                        _ => vec![],
                    },
                });
            }
        }
    }
    let comparisons = compare(&s, &trials);
    let mut rates = Vec::new();
    for (size, base, with) in [(1000u32, 115e3, 116e3), (100, 380e3, 724e3), (20, 391e3, 1.15e6)] {
        for (name, found) in [("cpu0", base), ("spread", with)] {
            for loss_percent in [0.0, 0.5] {
                for block in 0..3 {
                    let none = size == 20 && name == "cpu0" && loss_percent == 0.0 && block == 1;
                    let found = found * (1.0 + loss_percent / 10.0) * near(&mut rng, 1.0);
                    rates.push(Rate {
                        point: Point { size_bytes: Some(size), flows: Some(65_536), ..Point::default() },
                        state: name.into(),
                        block,
                        loss_percent,
                        found_per_s: (!none).then_some(found),
                        above_per_s: Some(found * 1.01),
                        trials: 9,
                        limit: if name == "cpu0" { Limit::Cpu(vec![0]) } else { Limit::Unknown },
                    });
                }
            }
        }
    }
    let end = Some(End { restored: true, notes: vec![], seconds: 1342.0 });
    Results { session: s, trials, comparisons, rates, end, notes: vec![] }
}

/// Latency and throughput threads at once, three states; it has no end.
pub(crate) fn mixed() -> Results {
    let states = vec![
        state("before", "as found"),
        state("adaptive", "--set eth1.coalesce.adaptive_rx=on"),
        state("groups", "--goal mixed"),
    ];
    let mut s = session("mixed", states, 12);
    s.driver = "netperf".into();
    let mut rng = Rng::new(2);
    let mut trials = Vec::new();
    for size in [64u32, 1024, 65_536] {
        for (threads, level) in [(2u32, "light"), (16, "heavy")] {
            for mix in ["1/2:1/2", "2/3:1/3"] {
                for block in 0..12 {
                    for (order, name) in ["before", "adaptive", "groups"].into_iter().enumerate() {
                        let heavy = level == "heavy";
                        let gain = match (name, heavy) {
                            ("groups", true) => 1.25,
                            ("groups", false) => 1.06,
                            ("adaptive", true) => 1.08,
                            ("adaptive", false) => 0.93,
                            _ => 1.0,
                        };
                        let base = if heavy { 210.0 } else { 62.0 } + f64::from(size) / 900.0;
                        let mean = base / gain * near(&mut rng, 2.5);
                        let rate = 64_000.0 * f64::from(threads) / (1.0 + f64::from(size) / 9000.0)
                            * gain
                            * near(&mut rng, 2.5);
                        let busy = [if heavy { 92.0 } else { 24.0 } * near(&mut rng, 1.0) / gain; 8];
                        trials.push(Trial {
                            point: Point {
                                size_bytes: Some(size),
                                threads: Some(threads),
                                level: Some(level.into()),
                                mix: Some(mix.into()),
                                ..Point::default()
                            },
                            state: name.into(),
                            phase: Phase::Measure,
                            block,
                            order: order as u32,
                            at_s: trials.len() as f64 * 12.0,
                            seconds: 10.0,
                            loads: vec![
                                LoadResult {
                                    group: "latency".into(),
                                    unit: Unit::Transactions,
                                    threads: threads / 2,
                                    sent_per_s: 1e6 / mean,
                                    done_per_s: 1e6 / mean,
                                    bits_per_s: 2.0 * f64::from(size) * 8e6 / mean,
                                    latency: Some(Latency {
                                        open_loop: false,
                                        count: 100_000,
                                        mean_us: mean,
                                        deviation_us: mean * 0.4,
                                        p50_us: mean * 0.94,
                                        p90_us: mean * 1.5,
                                        p99_us: mean * 3.1 * near(&mut rng, 4.0),
                                        p999_us: (size != 65_536).then_some(mean * 9.0 * near(&mut rng, 8.0)),
                                        max_us: mean * 40.0 * near(&mut rng, 15.0),
                                    }),
                                    ..LoadResult::default()
                                },
                                LoadResult {
                                    group: "throughput".into(),
                                    unit: Unit::Transactions,
                                    threads: threads / 2,
                                    sent_per_s: rate,
                                    done_per_s: rate,
                                    bits_per_s: rate * 2.0 * f64::from(size) * 8.0,
                                    ..LoadResult::default()
                                },
                            ],
                            host: HostSide { cpus: cpus(&busy), ..HostSide::default() },
                            limit: if heavy { Limit::Unknown } else { Limit::Offered },
                            doubts: vec![],
                        });
                    }
                }
            }
        }
    }
    let comparisons = compare(&s, &trials);
    Results { session: s, trials, comparisons, rates: vec![], end: None, notes: vec![] }
}

/// Rate by queues, one of two states with too few pairs to say anything.
pub(crate) fn queues() -> Results {
    let mut s = session("receive", vec![state("7.1", "as found"), state("7.2", "--goal forward")], 3);
    s.caveat = Some("network namespaces on one host, not a NIC".into());
    s.peer = None;
    let mut rng = Rng::new(3);
    let mut trials = Vec::new();
    for queues in [1u32, 2, 4, 6, 8] {
        for block in 0..3 {
            for (order, name) in ["7.1", "7.2"].into_iter().enumerate() {
                let each = if name == "7.1" { 190e3 } else { 240e3 };
                let done = (each * f64::from(queues)).min(1.4e6) * near(&mut rng, 2.0);
                trials.push(Trial {
                    point: Point { queues: Some(queues), size_bytes: Some(18), ..Point::default() },
                    state: name.into(),
                    block,
                    order: order as u32,
                    seconds: 10.0,
                    loads: vec![LoadResult {
                        unit: Unit::Packets,
                        threads: 2,
                        sent_per_s: 1.488e6,
                        done_per_s: done,
                        bits_per_s: done * 512.0,
                        counted: BitRateLayer::Frame,
                        ..LoadResult::default()
                    }],
                    host: HostSide { budget_ns_per_packet: Some(672.0), ..HostSide::default() },
                    limit: if queues == 8 {
                        Limit::Generator("its busiest thread had 97 % of a CPU".into())
                    } else {
                        Limit::Cpu((0..queues).collect())
                    },
                    ..Trial::default()
                });
            }
        }
    }
    let comparisons = compare(&s, &trials);
    let notes = vec!["ended by Ctrl-C".into(), "eth1 rx-usecs: 3 at the start, 10 now".into()];
    Results {
        session: s,
        trials,
        comparisons,
        rates: vec![],
        end: Some(End { restored: false, notes, seconds: 95.0 }),
        notes: vec![],
    }
}

/// Values of one key against what was found; with searched rates, and a load that had trouble.
pub(crate) fn sweep() -> Results {
    let mut states = vec![state("before", "as found")];
    for queues in [1u32, 2, 4, 8] {
        let value = Some(f64::from(queues));
        states.push(State { value, ..state(&format!("queues={queues}"), &format!("--set eth1.channels={queues}")) });
    }
    let mut s = session("forward", states.clone(), 12);
    s.swept = Some("eth1.channels".into());
    let mut rng = Rng::new(4);
    let (mut trials, mut rates) = (Vec::new(), Vec::new());
    for block in 0..12 {
        for (order, state) in states.iter().enumerate() {
            let can = state.value.map_or(420e3, |q| (400e3 * q).min(1.3e6)) * near(&mut rng, 2.0);
            trials.push(Trial {
                state: state.name.clone(),
                block,
                order: order as u32,
                seconds: 10.0,
                loads: vec![LoadResult {
                    unit: Unit::Packets,
                    threads: 2,
                    sent_per_s: 1.488e6,
                    done_per_s: can,
                    bits_per_s: can * 512.0,
                    counted: BitRateLayer::Frame,
                    trouble: (block == 4 && order == 2).then(|| "3 sends failed, the first with ENOBUFS".into()),
                    ..LoadResult::default()
                }],
                host: HostSide { budget_ns_per_packet: Some(672.0), ..HostSide::default() },
                ..Trial::default()
            });
            rates.push(Rate {
                state: state.name.clone(),
                block,
                found_per_s: Some(can * 0.94),
                above_per_s: Some(can * 0.95),
                trials: 8,
                ..Rate::default()
            });
        }
    }
    let comparisons = compare_all(&s, &trials, &rates);
    let end = Some(End { restored: true, notes: vec![], seconds: 800.0 });
    Results { session: s, trials, comparisons, rates, end, notes: vec![] }
}

/// Latency and CPU by interrupt interval, against what was found.
pub(crate) fn intervals() -> Results {
    let key = "eth1.coalesce.rx-usecs";
    let mut states = vec![state("before", "as found")];
    for usecs in [0u32, 5, 62, 125] {
        let value = Some(f64::from(usecs));
        states.push(State { value, ..state(&format!("rx-usecs={usecs}"), &format!("--set {key}={usecs}")) });
    }
    let mut s = session("rr", states.clone(), 8);
    s.swept = Some(key.into());
    let mut rng = Rng::new(5);
    let mut trials = Vec::new();
    for block in 0..8 {
        for (order, state) in states.iter().enumerate() {
            let usecs = state.value.unwrap_or(3.0);
            let mean = (20.0 + usecs * 0.8) * near(&mut rng, 1.0);
            trials.push(Trial {
                point: Point { size_bytes: Some(64), threads: Some(4), ..Point::default() },
                state: state.name.clone(),
                block,
                order: order as u32,
                seconds: 10.0,
                loads: vec![LoadResult {
                    unit: Unit::Transactions,
                    threads: 4,
                    sent_per_s: 1e6 / mean,
                    done_per_s: 1e6 / mean,
                    bits_per_s: 1e9 / mean,
                    latency: Some(Latency { count: 100_000, mean_us: mean, ..Latency::default() }),
                    ..LoadResult::default()
                }],
                host: HostSide {
                    cpus: cpus(&[90.0 / (1.0 + usecs / 20.0) * near(&mut rng, 1.0)]),
                    ..HostSide::default()
                },
                limit: Limit::Offered,
                ..Trial::default()
            });
        }
    }
    let comparisons = compare(&s, &trials);
    Results { session: s, trials, comparisons, rates: vec![], end: None, notes: vec![] }
}

/// Frames of two sizes by offered rate: a single CPU loses packets from 4,000/s on, six never do.
pub(crate) fn offered() -> Results {
    let s = session("forward", vec![state("cpu0", "--cpus 0"), state("spread", "--goal forward")], 4);
    let mut rng = Rng::new(6);
    let mut trials = Vec::new();
    for frame in [60u32, 1000] {
        for offered in [1000.0f64, 2000.0, 4000.0, 8000.0] {
            for block in 0..4 {
                for (order, name) in ["cpu0", "spread"].into_iter().enumerate() {
                    let can = if name == "cpu0" { 3000.0 * near(&mut rng, 1.0) } else { 1e6 };
                    let done = offered.min(can);
                    trials.push(Trial {
                        point: Point { frame_bytes: Some(frame), offered_per_s: Some(offered), ..Point::default() },
                        state: name.into(),
                        block,
                        order: order as u32,
                        seconds: 10.0,
                        loads: vec![LoadResult {
                            unit: Unit::Packets,
                            threads: 1,
                            offered_per_s: Some(offered),
                            sent_per_s: offered,
                            done_per_s: done,
                            lost_percent: Some(100.0 * (1.0 - done / offered)),
                            bits_per_s: done * f64::from(frame + 4) * 8.0,
                            counted: BitRateLayer::Frame,
                            ..LoadResult::default()
                        }],
                        host: HostSide {
                            cpu_ns_per_packet: Some(500.0),
                            cycles_per_packet: Some(1300.0),
                            received_per_s: Some(offered),
                            transmitted_per_s: Some(done),
                            budget_ns_per_packet: Some(f64::from(frame + 24) * 8.0),
                            ..HostSide::default()
                        },
                        limit: if done < offered { Limit::Cpu(vec![0]) } else { Limit::Offered },
                        ..Trial::default()
                    });
                }
            }
        }
    }
    let comparisons = compare(&s, &trials);
    Results { session: s, trials, comparisons, rates: vec![], end: None, notes: vec![] }
}

/// All of them, with their names.
pub(crate) fn all() -> [(&'static str, Results); 6] {
    [
        ("forward", forward()),
        ("mixed", mixed()),
        ("queues", queues()),
        ("sweep", sweep()),
        ("intervals", intervals()),
        ("offered", offered()),
    ]
}
