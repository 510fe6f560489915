use super::*;
use crate::load::{CpuLoadSample, Exclusion, QueueSample};

/// Eight CPUs on two nodes. Queue i has the CPU `cpus[i]`, and as many packets as the others.
#[derive(Clone)]
struct Host {
    cpus: Vec<u32>,
    packets: Vec<u64>,
    /// Time with packets and with programs, by CPU.
    loads: Vec<(f64, f64)>,
    permitted: BTreeSet<u32>,
    excluded: Option<u32>,
    rests: Option<u32>,
}

impl Host {
    fn new(cpus: &[u32], loads: &[(f64, f64)]) -> Self {
        let mut all = vec![(2.0, 3.0); 8];
        all[..loads.len()].copy_from_slice(loads);
        let (cpus, packets) = (cpus.to_vec(), vec![1000; cpus.len()]);
        Self { cpus, packets, loads: all, permitted: (0..8).collect(), excluded: None, rests: None }
    }

    fn sample(&self, second: u64) -> LoadSample {
        let queue = |i: u32| QueueSample {
            cpu: Some(self.cpus[i as usize]),
            packets: Some(self.packets[i as usize]),
            drops: Some(0),
            excluded: (self.excluded == Some(i)).then_some(Exclusion::BusyPolled),
            interrupt: Some(100 + i),
        };
        let cpu = |(i, (packets, programs)): (u32, &(f64, f64))| {
            let node = Some(i / 4);
            let total_percent = Some(packets + programs);
            (
                i,
                CpuLoadSample {
                    busy_percent: Some(*packets),
                    total_percent,
                    other_packets: Some(0),
                    node,
                    ..CpuLoadSample::default()
                },
            )
        };
        LoadSample {
            at: std::time::Duration::from_secs(second),
            queues: (0..self.cpus.len() as u32).map(queue).collect(),
            cpus: (0..).zip(&self.loads).map(cpu).collect(),
            out_of_order: Some(0),
            ..LoadSample::default()
        }
    }

    fn of(&self, samples: &[LoadSample]) -> Result<Proposal, NoStep> {
        let samples: Vec<&LoadSample> = samples.iter().collect();
        let rests = |q: u32| self.rests == Some(q);
        propose(&InterruptSituation { samples: &samples, permitted: &self.permitted, rests: &rests })
    }

    fn propose(&self) -> Result<Proposal, NoStep> {
        self.of(&(1..=10).map(|n| self.sample(n)).collect::<Vec<_>>())
    }

    fn moved(&self) -> InterruptMove {
        self.propose().unwrap().moves.interrupt().unwrap().clone()
    }
}

/// Two queues on CPU 1 of node 0 take 80 %.
fn shared() -> Host {
    Host::new(&[0, 1, 1, 2], &[(30.0, 0.0), (80.0, 2.0), (30.0, 0.0)])
}

/// A program takes what the one queue on CPU 1 leaves.
fn program() -> Host {
    Host::new(&[0, 1, 2], &[(20.0, 0.0), (25.0, 75.0), (20.0, 0.0)])
}

#[test]
fn one_of_two_queues_moves_to_an_idle_cpu_of_the_node() {
    let p = shared().propose().unwrap();
    let m = p.moves.interrupt().unwrap();
    assert_eq!((m.queues.as_slice(), m.from, m.to, m.points), (&[1][..], 1, 3, 40.0), "{m:?}");
    assert_eq!(m.why, Crowded::Queues);
    assert_eq!(p.why, Gain::Maximum { points: 82.0 - 45.0 });
    assert_eq!(p.involved(), [1, 3]);
    let mut other = shared();
    other.packets = vec![1000, 3000, 1000, 1000];
    assert_eq!(other.moved().queues, [2], "the smaller one: the larger one would take 65 % of its CPU");
}

#[test]
fn a_queue_moves_away_from_a_program() {
    let p = program().propose().unwrap();
    let m = p.moves.interrupt().unwrap();
    assert_eq!((m.queues.as_slice(), m.from, m.to, m.points), (&[1][..], 1, 3, 25.0));
    assert_eq!(m.why, Crowded::Programs { percent: 75.0 });
    assert_eq!((p.why, p.predicted.loads.get(&3)), (Gain::Maximum { points: 70.0 }, Some(&30.0)));
    // Packets alone are no reason: elsewhere they take as much.
    let mut alone = program();
    alone.loads[1] = (100.0, 0.0);
    assert_eq!(alone.propose(), Err(NoStep::NotWorthIt));
    // Nor is a program beside a queue that has hardly any.
    alone.loads[1] = (4.0, 96.0);
    assert_eq!(alone.propose(), Err(NoStep::NotWorthIt));
    alone.loads[1] = (30.0, 30.0);
    assert_eq!(alone.propose(), Err(NoStep::Even), "60 % are not much");
}

#[test]
fn another_node_only_if_it_is_permitted_and_no_cpu_of_the_own_one_can() {
    let mut h = shared();
    h.loads[3] = (30.0, 0.0);
    assert_eq!(h.moved().to, 4, "70 % are too much for CPU 0, 2 and 3");
    h.permitted = (0..4).collect();
    assert_eq!(h.propose(), Err(NoStep::NotWorthIt));
    h.permitted = [1, 6].into();
    assert_eq!(h.moved().to, 6);
    h.permitted = BTreeSet::new();
    assert!(h.propose().is_err(), "no CPU is permitted");
}

#[test]
fn a_receiver_stays_below_sixty_percent_and_the_donor() {
    let mut h = shared();
    h.permitted = [1, 3].into();
    for (load, moves) in [(20.0, true), (21.0, false)] {
        h.loads[3] = (0.0, load);
        assert_eq!(h.propose().is_ok(), moves, "{load} and 40 %");
    }
    // With two queues that fill their CPU, the mean allows more; the receiver stays 10 points below the donor.
    let mut h = Host::new(&[1, 1], &[(0.0, 0.0), (100.0, 0.0)]);
    h.permitted = [0, 1].into();
    for (load, moves) in [(40.0, true), (41.0, false)] {
        h.loads[0] = (load, 0.0);
        h.permitted = [0, 1, 2, 3].into();
        (2..4).for_each(|c| h.loads[c] = (0.0, 60.0));
        assert_eq!(h.propose().is_ok_and(|p| p.moves.interrupt().unwrap().to == 0), moves, "{load} and 50 %");
    }
}

#[test]
fn queues_that_others_use_stay_and_so_do_their_cpus() {
    let mut h = shared();
    h.excluded = Some(1);
    assert_eq!(h.moved().queues, [2]);
    h.rests = Some(2);
    assert_eq!(h.propose(), Err(NoStep::NotWorthIt), "it was moved a short time ago");
    // A queue that is polled is on CPU 3.
    let mut h = shared();
    h.cpus.push(3);
    h.packets.push(10);
    h.excluded = Some(4);
    assert_eq!(h.moved().to, 4);
}

#[test]
fn queues_with_one_interrupt_move_together() {
    let h = shared();
    let mut samples: Vec<LoadSample> = (1..=10).map(|n| h.sample(n)).collect();
    let share = |s: &mut LoadSample, excluded| {
        (s.queues[1].interrupt, s.queues[2].interrupt) = (Some(7), Some(7));
        s.queues[2].excluded = excluded;
    };
    samples.iter_mut().for_each(|s| share(s, None));
    assert_eq!(h.of(&samples), Err(NoStep::NotWorthIt), "both would share the next CPU");
    samples.iter_mut().for_each(|s| s.cpus.get_mut(&1).unwrap().busy_percent = Some(40.0));
    let p = h.of(&samples).unwrap();
    assert_eq!(p.moves.interrupt().unwrap().queues, [1, 2], "away from a program");
    samples.iter_mut().for_each(|s| share(s, Some(Exclusion::AfXdp)));
    assert!(h.of(&samples).is_err(), "one of them is not balanced");
}

#[test]
fn unknown_values_move_nothing() {
    let change = |with: &dyn Fn(&mut LoadSample)| {
        let h = shared();
        let mut samples: Vec<LoadSample> = (1..=10).map(|n| h.sample(n)).collect();
        samples.iter_mut().for_each(with);
        h.of(&samples)
    };
    assert!(change(&|_| {}).is_ok());
    assert!(change(&|s| s.cpus.get_mut(&1).unwrap().other_packets = None).is_err());
    assert!(change(&|s| s.cpus.get_mut(&1).unwrap().busy_percent = None).is_err());
    assert!(change(&|s| s.cpus.get_mut(&1).unwrap().total_percent = None).is_err());
    assert!(change(&|s| s.queues[2].packets = None).is_err());
    assert!(change(&|s| s.queues.iter_mut().for_each(|q| q.interrupt = None)).is_err());
    // A CPU whose time is unknown receives nothing.
    let other = change(&|s| s.cpus.get_mut(&3).unwrap().total_percent = None).unwrap();
    assert_ne!(other.moves.interrupt().unwrap().to, 3);
}

#[test]
fn six_of_ten_samples_must_show_it() {
    let (hot, calm) = (program(), Host { loads: vec![(20.0, 0.0); 8], ..program() });
    let of = |hot_samples: u64| -> Vec<LoadSample> {
        (1..=10).map(|n| if n > 10 - hot_samples { hot.sample(n) } else { calm.sample(n) }).collect()
    };
    assert_eq!(hot.of(&of(5)), Err(NoStep::Even));
    assert!(hot.of(&of(6)).is_ok());
    assert_eq!(hot.of(&of(10)[..5]), Err(NoStep::TooFewTimes { known: 5 }));
    let refs: Vec<LoadSample> = of(6);
    assert!(is_busy(&refs.iter().collect::<Vec<_>>()) && !is_busy(&[]));
    let refs: Vec<LoadSample> = of(5);
    assert!(!is_busy(&refs.iter().collect::<Vec<_>>()));
}

#[test]
fn packets_of_other_interfaces_stay_on_the_cpu() {
    let h = program();
    let samples: Vec<LoadSample> = (1..=10)
        .map(|n| {
            let mut s = h.sample(n);
            let cpu = s.cpus.get_mut(&1).unwrap();
            (cpu.busy_percent, cpu.total_percent, cpu.other_packets) = (Some(80.0), Some(80.0), Some(3000));
            s
        })
        .collect();
    let p = h.of(&samples).unwrap();
    let m = p.moves.interrupt().unwrap();
    assert_eq!((m.points, m.why), (20.0, Crowded::Queues), "a quarter of its packets");
}

/// The samples of this host with cores of two threads each.
fn with_cores(h: &Host) -> Vec<LoadSample> {
    let pair = |s: &mut LoadSample| {
        let totals: Vec<Option<f64>> = s.cpus.values().map(|c| c.total_percent).collect();
        for (i, c) in &mut s.cpus {
            (c.core, c.sibling_percent) = (Some(i & !1), totals[(i ^ 1) as usize]);
        }
    };
    let mut samples: Vec<LoadSample> = (1..=10).map(|n| h.sample(n)).collect();
    samples.iter_mut().for_each(pair);
    samples
}

#[test]
fn an_idle_core_comes_before_an_idle_thread_of_a_busy_one() {
    // CPU 3 is the least busy one of the node, but CPU 2 beside it is not idle; CPU 0 is beside the donor.
    let mut h = Host::new(&[1, 1], &[(0.0, 1.0), (80.0, 2.0), (0.0, 50.0), (0.0, 1.0)]);
    h.permitted = (0..8).collect();
    let to = |h: &Host| h.of(&with_cores(h)).map(|p| p.moves.interrupt().unwrap().to);
    assert_eq!(h.moved().to, 0, "nothing is known about cores");
    assert_eq!(to(&h), Ok(3), "the thread beside the donor gets nothing");
    let p = h.of(&with_cores(&h)).unwrap();
    assert_eq!(p.predicted.loads[&3], 1.0 + 40.0 * 1.25, "half of the time it shares its core");
    // Both CPUs of another core are idler together.
    h.loads[4..8].copy_from_slice(&[(0.0, 8.0), (0.0, 8.0), (0.0, 0.0), (0.0, 40.0)]);
    h.permitted = (4..8).collect();
    assert_eq!(to(&h), Ok(4), "CPU 6 is idle, but beside CPU 7");
    // A busy core has no room, however idle its other thread is.
    h.permitted = [1, 6].into();
    for (load, moves) in [(28.0, true), (73.0, false)] {
        h.loads[7] = (0.0, load);
        assert_eq!(to(&h).is_ok(), moves, "{load} %: 10 points below the donor is the limit");
    }
    h.permitted = [0, 1].into();
    assert_eq!(to(&h), Err(NoStep::NotWorthIt), "only the donor's own core is permitted");
}
