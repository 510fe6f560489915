//! Stage 2: which few entries to move, and whether it is worth it.
//!
//! The weight of an entry is CPU time: the measured time of the CPU that served it, shared by segments. CPUs are balanced,
//! not queues, because one CPU may serve several queues.

use std::collections::BTreeMap;

use ringwise_flow::balance::{Balanced, MoveLimits, balance_within};
use serde::{Deserialize, Serialize};

use crate::buckets::CheckedEvidence;
use crate::load::{LoadSample, busiest};
use crate::moves::{Moves, TableMove};
use crate::receiver::{beside, has_room, limit};

/// Entries that a step may move if the table has [`USUAL_TABLE`] entries.
const STEP_ENTRIES: f64 = 4.0;
const USUAL_TABLE: f64 = 128.0;
/// Share of the packets that a step may move, in percent.
const STEP_PACKETS_PERCENT: u64 = 10;
/// A step is worth it if it lowers the load of the busiest CPU by this much, in points.
pub(crate) const MAXIMUM_FALL_POINTS: f64 = 10.0;
/// A step is worth it if it lowers the variance of the loads by this much, in percent.
const VARIANCE_FALL_PERCENT: f64 = 25.0;
/// A fall of the variance counts only if it is at least the square of this, in points: twice the error of loads that were
/// measured for ten seconds with ticks of 250 Hz.
const NOISE_POINTS: f64 = 2.0;
/// The other entries of an elephant's CPU have this part of its weight at most when it is named.
const NEIGHBOURS: f64 = 0.05;
/// Load of the busiest CPU over the mean that the balance tries to reach.
const TARGET: f64 = 1.05;
/// Higher targets that are tried where this one cannot be reached, evenly spread up to the present ratio.
const TARGETS: u32 = 16;
/// Units of a weight for each point of load.
const UNITS: f64 = 10_000.0;

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// What moves.
    pub moves: Moves,
    /// The load of each CPU before, in percent. The CPU of a named elephant is left out. For an interrupt or a mask: the time of the CPUs
    /// that lose or get packets that is not idle.
    pub before: Predicted,
    /// Its load after the step, in percent.
    pub predicted: Predicted,
    /// Why it is worth it.
    pub why: Gain,
}

impl Proposal {
    /// CPUs whose load changes.
    pub fn involved(&self) -> Vec<u32> {
        if let Some(m) = self.moves.interrupt() {
            return vec![m.from, m.to];
        }
        if let Some(m) = self.moves.rps() {
            return m.processing(true).union(&m.processing(false)).copied().collect();
        }
        let changes = |(cpu, load): (&u32, &f64)| {
            let predicted = self.predicted.loads.get(cpu)?;
            ((predicted - load).abs() > 1.0 / UNITS).then_some(*cpu)
        };
        self.before.loads.iter().filter_map(changes).collect()
    }

    /// What these CPUs gain.
    pub fn gain_of(&self, cpus: &[u32]) -> Gain {
        let of = |p: &Predicted| Predicted {
            loads: p.loads.iter().filter(|(cpu, _)| cpus.contains(cpu)).map(|(cpu, l)| (*cpu, *l)).collect(),
            unavoidable: p.unavoidable.clone(),
        };
        Gains::new(&of(&self.before), &of(&self.predicted)).kind()
    }
}

/// Loads that follow from a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Predicted {
    /// The load of each CPU, in percent.
    pub loads: BTreeMap<u32, f64>,
    /// The part that no table can avoid: by how much entries on the CPU are heavier than the mean, in points. CPUs without
    /// such entries are missing.
    pub unavoidable: BTreeMap<u32, f64>,
}

impl Predicted {
    /// These loads without what no table can avoid, in percent. `scale`: present mean over the mean of the prediction.
    pub fn avoidable(&self, loads: &BTreeMap<u32, f64>, scale: f64) -> BTreeMap<u32, f64> {
        let unavoidable = |cpu: &u32| self.unavoidable.get(cpu).copied().unwrap_or(0.0) * scale;
        loads.iter().map(|(cpu, l)| (*cpu, (l - unavoidable(cpu)).max(0.0))).collect()
    }
}

/// What a step gains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gain {
    /// The load of the busiest CPU, without the part that no table can avoid, falls.
    Maximum {
        /// By this much, in points.
        points: f64,
    },
    /// The variance of the loads, without the part that no table can avoid, falls.
    Variance {
        /// By this much, in percent.
        percent: f64,
    },
}

/// An entry that is too heavy for any CPU. A rule for its flow, or RFS, would help.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Elephant {
    /// Index into the table.
    pub entry: usize,
    /// Its receive queue.
    pub queue: u32,
    /// The CPU that serves it.
    pub cpu: u32,
    /// Its share of the packets, in percent.
    pub packets_percent: f64,
    /// The load that it causes, in points of a CPU.
    pub points: f64,
}

/// Why there is no step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoProposal {
    /// The entry is too heavy for any CPU, and nothing else can be improved.
    Elephant(Elephant),
    /// The best step within the limits gains too little.
    TooLittle {
        /// Entries of this step.
        entries: usize,
        /// The fall of the busiest CPU's load, in points.
        maximum_points: f64,
        /// The fall of the variance, in percent.
        variance_percent: f64,
    },
    /// Loads, queues or CPUs are unknown.
    Unknown,
}

/// What a step is computed from.
pub struct TableSituation<'a> {
    /// Receive queue of each entry.
    pub table: &'a [u32],
    /// What the entries received.
    pub counts: CheckedEvidence<'a>,
    /// The load of each CPU meanwhile, in percent.
    pub loads: &'a BTreeMap<u32, f64>,
    /// The newest sample: CPUs and nodes of the queues, excluded queues.
    pub sample: &'a LoadSample,
    /// Whether an entry must keep its queue.
    pub pinned: &'a dyn Fn(usize) -> bool,
    /// Whether such an entry may move soon.
    pub rests: &'a dyn Fn(usize) -> bool,
    /// Entries that may move at most.
    pub most: usize,
    /// The entry of an elephant that was named: nothing is moved for it while it is one.
    pub named: Option<usize>,
}

/// Entries that one step may move in a table of this size: 4 of 128, and with the square root of the size.
pub fn step_entries(table: usize) -> usize {
    (STEP_ENTRIES * (table as f64 / USUAL_TABLE).sqrt()).round().max(1.0) as usize
}

/// The CPUs as a table for `flow`: bin i is the CPU `cpus[i]`.
struct Bins {
    cpus: Vec<u32>,
    /// Bin of each entry; `u32::MAX`: its queue is not balanced.
    table: Vec<u32>,
    /// Weight of each entry.
    weights: Vec<u64>,
    /// Weight of each CPU that no entry can move.
    fixed: Vec<u64>,
}

impl Bins {
    fn new(s: &TableSituation<'_>) -> Option<Self> {
        let cpus: Vec<u32> = s.loads.keys().copied().collect();
        let bin = |cpu: u32| cpus.binary_search(&cpu).ok();
        let bin_of = |queue: u32| {
            let q = s.sample.queues.get(queue as usize).filter(|q| q.excluded.is_none())?;
            bin(q.cpu?)
        };
        let table: Vec<u32> = s.table.iter().map(|q| bin_of(*q).map_or(u32::MAX, |b| b as u32)).collect();
        let mut work = vec![0u64; cpus.len()];
        for (b, e) in table.iter().zip(s.counts.entries) {
            if let Some(sum) = work.get_mut(*b as usize) {
                *sum += e.work();
            }
        }
        // A CPU that also serves excluded queues: their part of its time does not move with the entries.
        let mut packets = vec![(0u64, 0u64); cpus.len()];
        for q in &s.sample.queues {
            let Some(sums) = q.cpu.and_then(bin).and_then(|b| packets.get_mut(b)) else { continue };
            let n = q.packets?;
            *(if q.excluded.is_none() { &mut sums.0 } else { &mut sums.1 }) += n;
        }
        let units: Vec<f64> = s.loads.values().map(|l| l * UNITS).collect();
        let movable = |b: usize| match packets[b] {
            _ if work[b] == 0 => 0.0,
            (_, 0) => units[b],
            (own, excluded) => units[b] * own as f64 / (own + excluded) as f64,
        };
        let movable: Vec<f64> = (0..cpus.len()).map(movable).collect();
        let weight = |(b, e): (&u32, &crate::buckets::ReceivedByEntry)| match movable.get(*b as usize) {
            Some(m) if e.work() > 0 => (m * e.work() as f64 / work[*b as usize] as f64) as u64,
            _ => 0,
        };
        let weights: Vec<u64> = table.iter().zip(s.counts.entries).map(weight).collect();
        let fixed = units.iter().zip(&movable).map(|(u, m)| (u - m) as u64).collect();
        Some(Self { cpus, table, weights, fixed })
    }

    /// The loads with this table, without those of `left_out`.
    fn predict(&self, table: &[u32], mean: f64, left_out: Option<u32>) -> Predicted {
        let mut sums = self.fixed.clone();
        let mut excess = vec![0.0; self.cpus.len()];
        for (b, w) in table.iter().zip(&self.weights) {
            if let Some(sum) = sums.get_mut(*b as usize) {
                *sum += w;
                excess[*b as usize] += (*w as f64 / UNITS - mean).max(0.0);
            }
        }
        let cpus = || self.cpus.iter().copied().enumerate().filter(|(_, cpu)| Some(*cpu) != left_out);
        Predicted {
            loads: cpus().map(|(b, cpu)| (cpu, sums[b] as f64 / UNITS)).collect(),
            unavoidable: cpus().filter(|(b, _)| excess[*b] > 0.0).map(|(b, cpu)| (cpu, excess[b])).collect(),
        }
    }

    /// The heaviest entry of the CPU.
    fn heaviest(&self, bin: u32) -> Option<usize> {
        (0..self.table.len()).filter(|e| self.table[*e] == bin).max_by_key(|e| self.weights[*e])
    }
}

/// The variance of the loads, in points squared.
pub fn variance(loads: &BTreeMap<u32, f64>) -> f64 {
    let n = loads.len().max(1) as f64;
    let mean = loads.values().sum::<f64>() / n;
    loads.values().map(|l| (l - mean) * (l - mean)).sum::<f64>() / n
}

/// Finds the step that lowers the load of the busiest CPUs, within all limits.
pub fn propose(s: &TableSituation<'_>) -> Result<Proposal, NoProposal> {
    let bins = Bins::new(s).ok_or(NoProposal::Unknown)?;
    let (_, _, mean) = busiest(s.loads).filter(|_| s.loads.len() > 1).ok_or(NoProposal::Unknown)?;
    let elephant_of = |entry: usize| {
        let bin = *bins.table.get(entry)?;
        let cpu = *bins.cpus.get(bin as usize)?;
        let points = bins.weights[entry] as f64 / UNITS;
        let packets_percent = s.counts.entries[entry].packets as f64 * 100.0 / s.counts.packets.max(1) as f64;
        // Even alone on its CPU the entry keeps this CPU above the target.
        (points >= mean * TARGET).then_some(Elephant { entry, queue: s.table[entry], cpu, packets_percent, points })
    };
    let named = s.named.and_then(elephant_of);
    let left_out = named.map(|e| e.cpu);
    // What an entry has above the mean stays wherever it is: the balance sees the rest, and moves its neighbours.
    let heaviest = (mean * UNITS) as u64;
    let weights: Vec<u64> = bins.weights.iter().map(|w| (*w).min(heaviest)).collect();
    let kept = |entry: usize| {
        let cpu = bins.cpus.get(bins.table[entry] as usize).copied();
        cpu.is_none() || cpu == left_out || bins.weights[entry] > heaviest
    };
    let pinned = |entry: usize| kept(entry) || (s.pinned)(entry);
    let start = bins.predict(&bins.table, mean, None);
    let load_before = |bin: u32| bins.cpus.get(bin as usize).map_or(0.0, |c| start.loads[c]);
    let most = |from: u32| limit(mean, load_before(from));
    let accepts = |from: u32, _: u32, load: u64| load as f64 / UNITS <= most(from);
    let may_pass = |from: u32, to: u32| {
        let cpu = |bin: u32| bins.cpus.get(bin as usize).copied();
        let most = most(from);
        let room = |(to, from)| has_room(&s.sample.cpus, to, from, beside(&[s.sample], to), most);
        cpu(to).zip(cpu(from)).is_some_and(room)
    };
    let node = |bin: u32| bins.cpus.get(bin as usize).and_then(|c| s.sample.cpus.get(c)?.node);
    let near = |a: u32, b: u32| node(a).is_some() && node(a) == node(b);
    let packets: Vec<u64> = s.counts.entries.iter().map(|e| e.packets).collect();
    let n = bins.cpus.len() as u32;
    let may = |bin: u32| {
        bins.cpus.get(bin as usize).is_some_and(|c| Some(*c) != left_out && !start.unavoidable.contains_key(c))
    };
    let balanced = |target: f64, entries: usize, cost: u64| {
        let limits = MoveLimits {
            entries,
            pinned: &pinned,
            costs: &packets,
            cost,
            accepts: &accepts,
            may_pass: &may_pass,
            near: &near,
        };
        balance_within(&bins.table, &weights, &bins.fixed, n, may, target, &limits)
    };
    let step = step_entries(s.table.len()).min(s.most);
    let (target, together) = best_target(|target| balanced(target, usize::MAX, u64::MAX));
    let b = balanced(target, step, s.counts.packets * STEP_PACKETS_PERCENT / 100);
    let before = bins.predict(&bins.table, mean, left_out);
    let predicted = bins.predict(&b.table, mean, left_out);
    let gain = Gains::new(&before, &predicted);
    // Steps are small. All steps together must be worth it; this one must be more than noise.
    let all = match gain.worth() {
        Some(_) => gain,
        None => Gains::new(&before, &bins.predict(&together.table, mean, left_out)),
    };
    let why = all.worth().filter(|_| !b.moves.is_empty() && gain.is_measurable()).map(|_| gain.kind());
    let Some(why) = why else {
        let hot = busiest(&start.loads).and_then(|(cpu, load, _)| Some((bins.cpus.binary_search(&cpu).ok()?, load)));
        let elephant = hot.and_then(|(bin, load)| {
            let elephant = elephant_of(bins.heaviest(bin as u32)?)?;
            // Neighbours that only rest will move later.
            let resting = (0..bins.table.len()).any(|e| bins.table[e] == bin as u32 && (s.rests)(e));
            (!resting || load - elephant.points <= elephant.points * NEIGHBOURS).then_some(elephant)
        });
        let little = NoProposal::TooLittle {
            entries: b.moves.len(),
            maximum_points: all.maximum_points,
            variance_percent: all.variance_percent,
        };
        return Err(elephant.map_or(little, NoProposal::Elephant));
    };
    let mut received = queue_packets(s);
    let moves = b.moves.iter().map(|m| {
        let to = emptiest_queue(s.sample, bins.cpus[m.to as usize], &received).ok_or(NoProposal::Unknown)?;
        *received.entry(to).or_default() += packets[m.entry];
        let points = m.packets as f64 / UNITS;
        Ok(TableMove { entry: m.entry, from: s.table[m.entry], to, packets: packets[m.entry], points })
    });
    let moves = Moves::Table(moves.collect::<Result<_, _>>()?);
    Ok(Proposal { moves, before, predicted, why })
}

/// The target of a step, and what all steps together reach with it. The early moves towards a target that cannot be reached take the room
/// that a heavy entry needs; with a higher one the maximum may end lower.
fn best_target(pass: impl Fn(f64) -> Balanced) -> (f64, Balanced) {
    let first = pass(TARGET);
    if first.reached() || first.after <= first.floor {
        return (TARGET, first);
    }
    let (low, high) = (TARGET.max(first.floor), first.before);
    let targets = (1..=TARGETS).map(|n| low + (high - low) * f64::from(n) / f64::from(TARGETS));
    let lower = |best: (f64, Balanced), next: (f64, Balanced)| if next.1.after < best.1.after { next } else { best };
    targets.map(|target| (target, pass(target))).fold((TARGET, first), lower)
}

/// What a table gains, without what no table can avoid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gains {
    maximum_points: f64,
    /// In points squared.
    variance: f64,
    variance_percent: f64,
}

impl Gains {
    pub(crate) fn new(before: &Predicted, after: &Predicted) -> Self {
        let (was, is) = (before.avoidable(&before.loads, 1.0), after.avoidable(&after.loads, 1.0));
        let maximum = |loads: &BTreeMap<u32, f64>| busiest(loads).map_or(0.0, |(_, load, _)| load);
        let (before, fall) = (variance(&was), variance(&was) - variance(&is));
        let variance_percent = if before > 0.0 { 100.0 * fall / before } else { 0.0 };
        Self { maximum_points: maximum(&was) - maximum(&is), variance: fall, variance_percent }
    }

    fn kind(self) -> Gain {
        if self.maximum_points >= MAXIMUM_FALL_POINTS {
            Gain::Maximum { points: self.maximum_points }
        } else {
            Gain::Variance { percent: self.variance_percent }
        }
    }

    /// `Some`: it is enough to act.
    pub(crate) fn worth(self) -> Option<Gain> {
        let variance = self.variance_percent >= VARIANCE_FALL_PERCENT && self.variance >= NOISE_POINTS * NOISE_POINTS;
        (self.maximum_points >= MAXIMUM_FALL_POINTS || variance).then(|| self.kind())
    }

    /// Whether a judgement can tell it from noise.
    fn is_measurable(self) -> bool {
        self.maximum_points >= NOISE_POINTS || self.variance >= NOISE_POINTS * NOISE_POINTS
    }
}

fn queue_packets(s: &TableSituation<'_>) -> BTreeMap<u32, u64> {
    let mut out = BTreeMap::new();
    for (queue, e) in s.table.iter().zip(s.counts.entries) {
        *out.entry(*queue).or_default() += e.packets;
    }
    out
}

/// The balanced queue of the CPU with the fewest packets.
fn emptiest_queue(sample: &LoadSample, cpu: u32, received: &BTreeMap<u32, u64>) -> Option<u32> {
    let queues = sample.balanced().filter(|(_, q)| q.cpu == Some(cpu)).map(|(queue, _)| queue);
    queues.min_by_key(|q| (received.get(q).copied().unwrap_or(0), *q))
}

#[cfg(test)]
#[path = "propose_tests.rs"]
mod tests;
