//! Stage 2: which few entries to move, and whether it is worth it.
//!
//! The weight of an entry is CPU time: the measured time of the CPU that served it, shared by segments. CPUs are balanced,
//! not queues, because one CPU may serve several queues.

use std::collections::BTreeMap;

use ringwise_flow::balance::{MoveLimits, balance_within};
use serde::{Deserialize, Serialize};

use crate::buckets::CheckedEvidence;
use crate::load::{Sample, busiest};

/// Entries that a step may move if the table has [`USUAL_TABLE`] entries.
const STEP_ENTRIES: f64 = 4.0;
const USUAL_TABLE: f64 = 128.0;
/// Share of the packets that a step may move, in percent.
const STEP_PACKETS_PERCENT: u64 = 10;
/// A step is worth it if it lowers the load of the busiest CPU by this much, in points.
const MAXIMUM_FALL_POINTS: f64 = 10.0;
/// A step is worth it if it lowers the variance of the loads by this much, in percent.
const VARIANCE_FALL_PERCENT: f64 = 25.0;
/// A receiver may get up to this load, in percent.
const RECEIVER_PERCENT: f64 = 60.0;
/// A receiver may get up to this much above the mean, in points, if that is more.
const RECEIVER_POINTS: f64 = 10.0;
/// A receiver stays this much below the load that the donor had, in points, so that a step at overload is possible too.
const BELOW_DONOR_POINTS: f64 = 10.0;
/// Load of the busiest CPU over the mean that the balance tries to reach.
const TARGET: f64 = 1.05;
/// Units of a weight for each point of load.
const UNITS: f64 = 10_000.0;

/// An entry of the table that gets another queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableMove {
    /// Index into the table.
    pub entry: usize,
    /// Its queue: if the table has another one when it is written, another program has changed it.
    pub from: u32,
    /// Its new queue.
    pub to: u32,
    /// Packets that it received while they were counted.
    pub packets: u64,
    /// The load that moves with it, in points of a CPU.
    pub points: f64,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The entries that move.
    pub moves: Vec<TableMove>,
    /// The load of each CPU before, in percent. The CPU of a named elephant is left out.
    pub before: BTreeMap<u32, f64>,
    /// Its load after the step, in percent.
    pub predicted: BTreeMap<u32, f64>,
    /// Why it is worth it.
    pub why: Gain,
}

impl Proposal {
    /// The moves that restore the table.
    pub fn back(&self) -> Vec<TableMove> {
        self.moves.iter().map(|m| TableMove { from: m.to, to: m.from, ..*m }).collect()
    }
}

/// What a step gains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gain {
    /// The load of the busiest CPU falls.
    Maximum {
        /// By this much, in points.
        points: f64,
    },
    /// The variance of the loads falls.
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
pub struct Situation<'a> {
    /// Receive queue of each entry.
    pub table: &'a [u32],
    /// What the entries received.
    pub counts: CheckedEvidence<'a>,
    /// The load of each CPU meanwhile, in percent.
    pub loads: &'a BTreeMap<u32, f64>,
    /// The newest sample: CPUs and nodes of the queues, excluded queues.
    pub sample: &'a Sample,
    /// Whether an entry must keep its queue.
    pub pinned: &'a dyn Fn(usize) -> bool,
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
    fn new(s: &Situation<'_>) -> Option<Self> {
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
        let weight = |(b, e): (&u32, &crate::buckets::EntryCount)| match movable.get(*b as usize) {
            Some(m) if e.work() > 0 => (m * e.work() as f64 / work[*b as usize] as f64) as u64,
            _ => 0,
        };
        let weights: Vec<u64> = table.iter().zip(s.counts.entries).map(weight).collect();
        let fixed = units.iter().zip(&movable).map(|(u, m)| (u - m) as u64).collect();
        Some(Self { cpus, table, weights, fixed })
    }

    fn load_percent(&self, table: &[u32]) -> BTreeMap<u32, f64> {
        let mut sums = self.fixed.clone();
        for (b, w) in table.iter().zip(&self.weights) {
            if let Some(sum) = sums.get_mut(*b as usize) {
                *sum += w;
            }
        }
        self.cpus.iter().copied().zip(sums.iter().map(|s| *s as f64 / UNITS)).collect()
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
pub fn propose(s: &Situation<'_>) -> Result<Proposal, NoProposal> {
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
    let pinned = |entry: usize| {
        let cpu = bins.cpus.get(bins.table[entry] as usize).copied();
        cpu.is_none() || cpu == left_out || (s.pinned)(entry)
    };
    let start = bins.load_percent(&bins.table);
    let load_before = |bin: u32| bins.cpus.get(bin as usize).map_or(0.0, |c| start[c]);
    let accepts = |from: u32, _: u32, load: u64| {
        let load = load as f64 / UNITS;
        let most = RECEIVER_PERCENT.max(mean + RECEIVER_POINTS).min(load_before(from) - BELOW_DONOR_POINTS);
        load <= most
    };
    let node = |bin: u32| bins.cpus.get(bin as usize).and_then(|c| s.sample.cpus.get(c)?.node);
    let near = |a: u32, b: u32| node(a).is_some() && node(a) == node(b);
    let packets: Vec<u64> = s.counts.entries.iter().map(|e| e.packets).collect();
    let limits = MoveLimits {
        entries: step_entries(s.table.len()).min(s.most),
        pinned: &pinned,
        costs: &packets,
        cost: s.counts.packets * STEP_PACKETS_PERCENT / 100,
        accepts: &accepts,
        near: &near,
    };
    let may = |bin: u32| bins.cpus.get(bin as usize).copied() != left_out;
    let n = bins.cpus.len() as u32;
    let b = balance_within(&bins.table, &bins.weights, &bins.fixed, n, may, TARGET, &limits);
    let judged = |mut loads: BTreeMap<u32, f64>| {
        loads.retain(|cpu, _| Some(*cpu) != left_out);
        loads
    };
    let (before, predicted) = (judged(start.clone()), judged(bins.load_percent(&b.table)));
    let maximum = |loads: &BTreeMap<u32, f64>| busiest(loads).map_or(0.0, |(_, load, _)| load);
    let maximum_points = maximum(&before) - maximum(&predicted);
    let variance_percent = match variance(&before) {
        0.0 => 0.0,
        v => 100.0 * (1.0 - variance(&predicted) / v),
    };
    let why = if b.moves.is_empty() {
        None
    } else if maximum_points >= MAXIMUM_FALL_POINTS {
        Some(Gain::Maximum { points: maximum_points })
    } else {
        (variance_percent >= VARIANCE_FALL_PERCENT).then_some(Gain::Variance { percent: variance_percent })
    };
    let Some(why) = why else {
        let hot = busiest(&start).and_then(|(cpu, ..)| bins.cpus.binary_search(&cpu).ok());
        let elephant = hot.and_then(|bin| bins.heaviest(bin as u32)).and_then(elephant_of);
        let little = NoProposal::TooLittle { entries: b.moves.len(), maximum_points, variance_percent };
        return Err(elephant.map_or(little, NoProposal::Elephant));
    };
    let mut received = queue_packets(s);
    let moves = b.moves.iter().map(|m| {
        let to = emptiest_queue(s.sample, bins.cpus[m.to as usize], &received).ok_or(NoProposal::Unknown)?;
        *received.entry(to).or_default() += packets[m.entry];
        let points = m.packets as f64 / UNITS;
        Ok(TableMove { entry: m.entry, from: s.table[m.entry], to, packets: packets[m.entry], points })
    });
    Ok(Proposal { moves: moves.collect::<Result<_, _>>()?, before, predicted, why })
}

fn queue_packets(s: &Situation<'_>) -> BTreeMap<u32, u64> {
    let mut out = BTreeMap::new();
    for (queue, e) in s.table.iter().zip(s.counts.entries) {
        *out.entry(*queue).or_default() += e.packets;
    }
    out
}

/// The balanced queue of the CPU with the fewest packets.
fn emptiest_queue(sample: &Sample, cpu: u32, received: &BTreeMap<u32, u64>) -> Option<u32> {
    let queues = sample.balanced().filter(|(_, q)| q.cpu == Some(cpu)).map(|(queue, _)| queue);
    queues.min_by_key(|q| (received.get(q).copied().unwrap_or(0), *q))
}

#[cfg(test)]
#[path = "propose_tests.rs"]
mod tests;
