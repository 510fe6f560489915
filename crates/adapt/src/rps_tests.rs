use super::*;
use crate::load::{CpuLoadSample, Exclusion};

/// Eight CPUs, two threads on each core. Queue 0 is on CPU 0; CPUs 2 to 7 may help.
#[derive(Clone)]
struct Host {
    mask: BTreeSet<u32>,
    helpers: BTreeSet<u32>,
    /// Time with packets and with programs, by CPU.
    loads: Vec<(f64, f64)>,
    drops: u64,
    excluded: Option<Exclusion>,
}

impl Host {
    fn new(mask: &[u32], loads: &[(f64, f64)]) -> Self {
        let mut all = vec![(2.0, 1.0); 8];
        all[..loads.len()].copy_from_slice(loads);
        Self { mask: cpus(mask), helpers: (2..8).collect(), loads: all, drops: 0, excluded: None }
    }

    fn sample(&self, second: u64) -> LoadSample {
        let total = |(packets, programs): (f64, f64)| packets + programs;
        let cpu = |i: usize| CpuLoadSample {
            busy_percent: Some(self.loads[i].0),
            total_percent: Some(total(self.loads[i])),
            core: Some(i as u32 & !1),
            sibling_percent: Some(total(self.loads[i ^ 1])),
            ..CpuLoadSample::default()
        };
        let (excluded, drops) = (self.excluded, Some(self.drops));
        LoadSample {
            at: std::time::Duration::from_secs(second),
            queues: vec![QueueSample { cpu: Some(0), packets: Some(1000), drops, excluded, interrupt: Some(30) }],
            cpus: (0..8).map(|i| (i as u32, cpu(i))).collect(),
            out_of_order: Some(0),
            ..LoadSample::default()
        }
    }

    fn samples(&self, n: u64) -> Vec<LoadSample> {
        (1..=n).map(|second| self.sample(second)).collect()
    }

    fn of(&self, samples: &[LoadSample]) -> Result<Proposal, NoStep> {
        let samples: Vec<&LoadSample> = samples.iter().collect();
        let found = propose(&RpsSituation { samples: &samples, queue: 0, mask: &self.mask, helpers: &self.helpers });
        assert!(found.is_err() || is_busy(&samples, 0, &self.mask), "what is cheap to test must not hide a step");
        found
    }

    fn propose(&self) -> Result<Proposal, NoStep> {
        self.of(&self.samples(10))
    }

    fn mask_of_the_step(&self) -> Vec<u32> {
        self.propose().unwrap().moves.rps().unwrap().to.iter().copied().collect()
    }
}

fn cpus(list: &[u32]) -> BTreeSet<u32> {
    list.iter().copied().collect()
}

/// RPS is off, and packets fill the CPU of the queue.
fn off() -> Host {
    Host::new(&[], &[(90.0, 0.0)])
}

/// Six CPUs take the packets; a program takes the rest of CPU 4.
fn beside_a_program() -> Host {
    let mut h = Host::new(&[2, 3, 4, 5, 6, 7], &[(30.0, 0.0)]);
    (2..8).for_each(|c| h.loads[c] = (10.0, 2.0));
    h.loads[4] = (10.0, 90.0);
    h
}

#[test]
fn rps_is_switched_on_for_a_busy_queue() {
    let p = off().propose().unwrap();
    let m = p.moves.rps().unwrap();
    assert_eq!((m.queue, m.cpu, m.why, &m.from, &m.to), (0, 0, BusyFor::Queue, &cpus(&[]), &cpus(&[2, 3, 4, 5, 6, 7])));
    assert_eq!((p.why, p.predicted.loads.get(&0)), (Gain::Maximum { points: 45.0 }, Some(&45.0)), "half of the work");
    assert_eq!(p.involved(), [0, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn it_stays_off_if_the_load_is_low_or_even() {
    let mut h = off();
    h.loads[0] = (64.0, 0.0);
    assert_eq!(h.propose(), Err(NoStep::Even));
    // A queue that drops is hot from 50 % on.
    h.drops = 5;
    assert!(h.propose().is_ok());
    h.loads[0] = (49.0, 0.0);
    assert_eq!(h.propose(), Err(NoStep::Even));
    let mut h = off();
    h.loads = vec![(80.0, 0.0); 8];
    assert_eq!(h.propose(), Err(NoStep::Even));
    // Programs are no reason: RPS moves packets.
    h = off();
    h.loads[0] = (20.0, 80.0);
    assert_eq!(h.propose(), Err(NoStep::Even));
}

#[test]
fn helpers_have_headroom_even_if_they_get_all_of_the_work() {
    let mut h = off();
    h.helpers = cpus(&[2, 4]);
    for (load, to) in [(15.0, vec![2, 4]), (16.0, vec![])] {
        h.loads[4] = (0.0, load);
        let found = h.propose().map(|p| p.moves.rps().unwrap().to.iter().copied().collect::<Vec<_>>());
        assert_eq!(found.unwrap_or_default(), to, "{load} and 45 %: up to 60 %; CPU 2 alone would get 90 %");
    }
    h.helpers = cpus(&[]);
    assert_eq!(h.propose(), Err(NoStep::Even), "no CPU may help, so none is less busy");
    // A CPU with a program is left out, and so is the other thread of its core.
    let mut h = off();
    h.loads[4] = (0.0, 95.0);
    assert_eq!(h.mask_of_the_step(), [2, 3, 6, 7]);
    // The other thread of the queue's core never helps.
    let mut h = off();
    h.helpers = (1..8).collect();
    assert!(!h.mask_of_the_step().contains(&1));
}

#[test]
fn a_cpu_with_a_program_leaves_the_mask() {
    let p = beside_a_program().propose().unwrap();
    let m = p.moves.rps().unwrap();
    assert_eq!((m.cpu, m.why, &m.to), (4, BusyFor::Mask, &cpus(&[2, 3, 5, 6, 7])));
    assert_eq!(p.before.loads[&4], 100.0);
    assert_eq!((p.predicted.loads.get(&4), p.predicted.loads[&2]), (None, 14.0), "60 points on five CPUs");
    // Hardly any packets: nothing to gain.
    let mut h = beside_a_program();
    (2..8).for_each(|c| h.loads[c].0 = 3.0);
    assert_eq!(h.propose(), Err(NoStep::NotWorthIt));
    let mut h = beside_a_program();
    h.loads[4] = (10.0, 50.0);
    assert_eq!(h.propose(), Err(NoStep::Even), "60 % are not much");
}

#[test]
fn a_mask_that_is_too_small_grows() {
    let mut h = Host::new(&[2], &[(20.0, 0.0), (0.0, 0.0), (80.0, 0.0)]);
    let p = h.propose().unwrap();
    // CPU 3 is the other thread of the busy core, but CPU 2 is in the mask already.
    assert_eq!(p.moves.rps().unwrap().to, cpus(&[2, 4, 5, 6, 7]));
    assert_eq!(p.predicted.loads[&2], 16.0);
    h.helpers = cpus(&[2]);
    assert_eq!(h.propose(), Err(NoStep::NotWorthIt), "no other CPU may help");
    // The CPU of the queue alone is busy, although RPS is on: the driver's part cannot move.
    let h = Host::new(&[2, 4], &[(90.0, 0.0), (0.0, 0.0), (20.0, 0.0), (0.0, 0.0), (20.0, 0.0)]);
    assert_eq!(h.propose(), Err(NoStep::Even));
}

#[test]
fn unknown_values_change_nothing() {
    for h in [off(), beside_a_program()] {
        let change = |with: &dyn Fn(&mut LoadSample)| {
            let mut samples = h.samples(10);
            samples.iter_mut().for_each(with);
            h.of(&samples)
        };
        assert!(change(&|_| {}).is_ok());
        assert!(change(&|s| s.queues[0].cpu = None).is_err());
        assert!(change(&|s| s.queues[0].excluded = Some(Exclusion::AfXdp)).is_err());
        assert!(change(&|s| s.cpus.get_mut(&0).unwrap().total_percent = None).is_err());
        let all = |s: &mut LoadSample| s.cpus.values_mut().for_each(|c| c.busy_percent = None);
        assert!(change(&all).is_err());
        assert_eq!(h.of(&h.samples(5)), Err(NoStep::TooFewTimes { known: 5 }));
        assert_eq!(h.of(&[]), Err(NoStep::TooFewTimes { known: 0 }));
    }
    // A CPU whose time is unknown does not help.
    let mut samples = off().samples(10);
    samples.iter_mut().for_each(|s| s.cpus.get_mut(&3).unwrap().total_percent = None);
    assert!(!off().of(&samples).unwrap().moves.rps().unwrap().to.contains(&3));
}
