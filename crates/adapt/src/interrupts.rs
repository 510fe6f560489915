//! The second actuator: which interrupt moves to another CPU. It is tried when no table entry can move.
//!
//! Loads are all time of a CPU that is not idle, programs included. An interrupt may move for two reasons: its CPU serves more than one
//! queue, or programs take most of the time of a CPU that serves a queue. A queue that has its CPU for itself stays: elsewhere it
//! would need the same time.

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::SAMPLES;
use crate::load::{CpuLoadSample, HOT_PERCENT, HOT_POINTS, HOT_SAMPLES, LoadSample};
use crate::moves::{Crowded, InterruptMove, Moves, NoStep};
use crate::propose::{Gain, Gains, Predicted, Proposal};
use crate::receiver::{beside, has_room, limit, points_beside};

/// A queue whose packets take less of a CPU than this is left where it is: what it gains cannot be measured.
pub const LEAST_POINTS: f64 = 5.0;

/// What a move is computed from.
pub struct InterruptSituation<'a> {
    /// The samples of the window, oldest first.
    pub samples: &'a [&'a LoadSample],
    /// CPUs that may serve the queues of the interface.
    pub permitted: &'a BTreeSet<u32>,
    /// Whether the interrupt with this first queue must keep its CPU.
    pub rests: &'a dyn Fn(u32) -> bool,
}

/// Whether a CPU with these times may be too busy for the queues that it serves.
pub fn may_be_crowded(cpu: &CpuLoadSample) -> bool {
    cpu.total_percent.is_some_and(|t| t >= HOT_PERCENT) && cpu.busy_percent.is_some_and(|p| p >= LEAST_POINTS)
}

/// Whether a CPU that serves queues may be too busy, before it is known which other CPUs may serve them.
pub fn is_busy(samples: &[&LoadSample]) -> bool {
    let busy = |s: &&LoadSample, cpu: u32| s.cpus.get(&cpu).is_some_and(may_be_crowded);
    let Some(last) = samples.last() else { return false };
    movable(last).values().any(|cpu| samples.iter().filter(|s| busy(s, *cpu)).count() >= HOT_SAMPLES)
}

/// CPU of each interrupt that can be moved. One whose queues are not all balanced stays.
fn movable(s: &LoadSample) -> BTreeMap<u32, u32> {
    let all = || s.queues.iter().filter_map(|q| Some((q.interrupt?, q)));
    let fixed: BTreeSet<u32> = all().filter(|(_, q)| q.excluded.is_some()).map(|(i, _)| i).collect();
    all().filter(|(i, _)| !fixed.contains(i)).filter_map(|(i, q)| Some((i, q.cpu?))).collect()
}

/// Means of the newest samples.
struct Means<'a> {
    samples: &'a [&'a LoadSample],
    last: &'a LoadSample,
    /// All time of each CPU that serves queues of the interface or may do so, in percent.
    total: BTreeMap<u32, f64>,
}

impl Means<'_> {
    fn mean(&self, of: impl Fn(&LoadSample) -> Option<f64>) -> Option<f64> {
        let all: Vec<f64> = self.samples.iter().map(|s| of(s)).collect::<Option<_>>()?;
        Some(all.iter().sum::<f64>() / all.len().max(1) as f64)
    }

    /// Time with packets, in percent.
    fn with_packets(&self, cpu: u32) -> Option<f64> {
        self.mean(|s| s.cpus.get(&cpu)?.busy_percent)
    }

    /// Packets of these queues. `None`: those of one are unknown.
    fn packets(&self, of: impl Fn(usize) -> bool) -> Option<f64> {
        self.mean(|s| {
            let all = s.queues.iter().enumerate().filter(|(i, _)| of(*i));
            all.map(|(_, q)| q.packets).sum::<Option<u64>>().map(|n| n as f64)
        })
    }

    fn node(&self, cpu: u32) -> Option<u32> {
        self.last.cpus.get(&cpu)?.node
    }

    /// All time of the busiest other thread of its core, in percent.
    fn beside(&self, cpu: u32) -> f64 {
        beside(self.samples, cpu)
    }

    fn queues_on(&self, cpu: u32) -> usize {
        self.last.queues.iter().filter(|q| q.cpu == Some(cpu)).count()
    }
}

/// Finds the interrupt whose move gains most: from the busiest CPU from which one may move.
pub fn propose(s: &InterruptSituation<'_>) -> Result<Proposal, NoStep> {
    let Some(last) = s.samples.last() else { return Err(NoStep::TooFewTimes { known: 0 }) };
    let serving: BTreeSet<u32> = last.queues.iter().filter_map(|q| q.cpu).collect();
    let online = |cpu: &u32| last.cpus.get(cpu).is_some_and(|c| c.total_percent.is_some());
    let cpus: BTreeSet<u32> = s.permitted.union(&serving).copied().filter(online).collect();
    if !serving.is_subset(&cpus) {
        return Err(NoStep::NotWorthIt);
    }
    let totals = |x: &LoadSample| -> Option<BTreeMap<u32, f64>> {
        let same =
            x.queues.len() == last.queues.len() && x.queues.iter().zip(&last.queues).all(|(a, b)| a.cpu == b.cpu);
        same.then(|| cpus.iter().map(|c| Some((*c, x.cpus.get(c)?.total_percent?))).collect())?
    };
    let known: Vec<(&LoadSample, BTreeMap<u32, f64>)> =
        s.samples.iter().filter_map(|x| Some((*x, totals(x)?))).collect();
    if known.len() < HOT_SAMPLES {
        return Err(NoStep::TooFewTimes { known: known.len() as u32 });
    }
    let newest: Vec<&LoadSample> = known[known.len() - SAMPLES.min(known.len())..].iter().map(|(x, _)| *x).collect();
    let mut means = Means { samples: &newest, last, total: BTreeMap::new() };
    means.total = cpus.iter().filter_map(|c| Some((*c, means.mean(|x| x.cpus.get(c)?.total_percent)?))).collect();
    let mean = |loads: &BTreeMap<u32, f64>| loads.values().sum::<f64>() / loads.len().max(1) as f64;
    let is_hot = |cpu: &u32| {
        let hot = |loads: &BTreeMap<u32, f64>| {
            loads.get(cpu).is_some_and(|l| *l >= HOT_PERCENT && l - mean(loads) >= HOT_POINTS)
        };
        known.iter().filter(|(_, loads)| hot(loads)).count() >= HOT_SAMPLES
    };
    let mut donors: Vec<(u32, f64)> =
        means.total.iter().filter(|(c, _)| serving.contains(c) && is_hot(c)).map(|(c, l)| (*c, *l)).collect();
    if donors.is_empty() {
        return Err(NoStep::Even);
    }
    donors.sort_by(|a, b| b.1.total_cmp(&a.1));
    donors.into_iter().find_map(|(donor, _)| best_of(s, &means, donor, &serving)).ok_or(NoStep::NotWorthIt)
}

/// The best move away from this CPU.
fn best_of(s: &InterruptSituation<'_>, means: &Means<'_>, donor: u32, serving: &BTreeSet<u32>) -> Option<Proposal> {
    let load = *means.total.get(&donor)?;
    let with_packets = means.with_packets(donor)?;
    let queues = |interrupt: u32| -> Vec<u32> {
        (0u32..).zip(&means.last.queues).filter(|(_, q)| q.interrupt == Some(interrupt)).map(|(i, _)| i).collect()
    };
    let own = means.packets(|i| means.last.queues[i].cpu == Some(donor))?;
    let all = own + means.mean(|x| x.cpus.get(&donor)?.other_packets.map(|n| n as f64))?;
    let programs = load - with_packets;
    let why = match programs >= with_packets {
        true => Crowded::Programs { percent: programs },
        false => Crowded::Queues,
    };
    let mut best: Option<Proposal> = None;
    for interrupt in movable(means.last).into_iter().filter(|(_, cpu)| *cpu == donor).map(|(i, _)| i) {
        let queues = queues(interrupt);
        if queues.first().is_none_or(|q| (s.rests)(*q)) {
            continue;
        }
        let packets = means.packets(|i| queues.contains(&(i as u32)))?;
        let points = with_packets * packets / all.max(1.0);
        if points < LEAST_POINTS {
            continue;
        }
        let Some(to) = receiver(s, means, donor, serving, points) else { continue };
        let move_ = InterruptMove { queues, from: donor, to, points, why };
        if let Some(p) = worth(means, load, move_)
            && best.as_ref().is_none_or(|b| gained(&p) > gained(b))
        {
            best = Some(p);
        }
    }
    best
}

/// By how much the most loaded of the CPUs that serve the queue, or stay beside it, falls.
fn gained(p: &Proposal) -> f64 {
    let most = |p: &Predicted| p.loads.values().copied().fold(0.0, f64::max);
    most(&p.before) - most(&p.predicted)
}

/// `None`: it gains too little.
fn worth(means: &Means<'_>, load: f64, m: InterruptMove) -> Option<Proposal> {
    let received = means.total.get(&m.to)?;
    let of = |loads: &[(u32, f64)]| Predicted { loads: loads.iter().copied().collect(), ..Predicted::default() };
    let before = of(&[(m.from, load), (m.to, *received)]);
    let after = (m.to, received + points_beside(m.points, means.beside(m.to)));
    let (predicted, why) = match m.why {
        // Programs take the time that it leaves, so only its new CPU counts.
        Crowded::Programs { .. } => (of(&[after]), Gain::Maximum { points: load - after.1 }),
        Crowded::Queues => {
            let predicted = of(&[after, (m.from, load - m.points)]);
            let why = Gains::new(&before, &predicted).worth()?;
            (predicted, why)
        }
    };
    Some(Proposal { moves: Moves::Interrupt(m), before, predicted, why })
}

/// The least loaded CPU that may receive `points`: one of the same node if possible.
fn receiver(
    s: &InterruptSituation<'_>,
    means: &Means<'_>,
    donor: u32,
    serving: &BTreeSet<u32>,
    points: f64,
) -> Option<u32> {
    let of_queues: Vec<f64> = serving.iter().filter_map(|c| means.total.get(c).copied()).collect();
    let mean = of_queues.iter().sum::<f64>() / of_queues.len().max(1) as f64;
    let most = limit(mean, *means.total.get(&donor)?);
    // A program that polls a queue, or an AF_XDP socket, uses its CPU in its own way.
    let others = |cpu: u32| means.last.queues.iter().any(|q| q.cpu == Some(cpu) && q.excluded.is_some());
    let free = s.permitted.iter().copied().filter(|c| *c != donor && !others(*c));
    let free = free.filter(|c| has_room(&means.last.cpus, *c, donor, means.beside(*c), most));
    let with = |c: u32, l: f64| l + points_beside(points, means.beside(c));
    let accepts = free.filter_map(|c| Some((c, *means.total.get(&c)?))).filter(|(c, l)| with(*c, *l) <= most);
    let home = means.node(donor);
    let near = |cpu: u32| home.is_some() && means.node(cpu) == home;
    let rank = |a: &(u32, f64), b: &(u32, f64)| {
        let by = |(cpu, _): &(u32, f64)| (!near(*cpu), means.queues_on(*cpu));
        // Both threads of a core count, so that an idle core comes before an idle thread of a busy one.
        let core = |(cpu, load): &(u32, f64)| load + means.beside(*cpu);
        let loads = core(a).total_cmp(&core(b)).then(a.1.total_cmp(&b.1));
        by(a).0.cmp(&by(b).0).then(loads).then(by(a).1.cmp(&by(b).1)).then(a.0.cmp(&b.0))
    };
    accepts.min_by(rank).map(|(cpu, _)| cpu)
}

#[cfg(test)]
#[path = "interrupts_tests.rs"]
mod tests;
