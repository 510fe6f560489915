//! A simulated interface under load, for control loops that move table entries or interrupts.
//!
//! ```text
//!   Traffic: CPU share of each entry ─► table ─► queue ─► CPU ─► Observed, with the noise of counted ticks ─► Policy
//!                                         ▲        ▲                                                            │
//!                                         └────────┴──────────────────────── Change ◄───────────────────────────┘
//! ```
//!
//! One step is one second. Programs take what packets leave of a CPU. Packets cost the same time each; a CPU handles [`PACKETS_PER_S`] and drops the rest. The clock
//! is the number of the step, and all chance comes from seeds, so a run can be repeated.

mod measure;
mod noise;
mod policies;
mod traffic;

pub use measure::SimulationReport;
pub use noise::SeededRandom;
pub use policies::{IrqbalancePolicy, Katalyst, StandStill};
pub use traffic::SimulatedTraffic;

use measure::Meter;

/// Packets per second that one CPU can handle: 1 µs each.
pub const PACKETS_PER_S: f64 = 1_000_000.0;
/// Descriptors of a receive ring.
pub const RING: f64 = 1024.0;

/// What a policy can read after each second.
#[derive(Debug, Clone)]
pub struct PolicyInput {
    /// End of the second, since the begin of the simulation.
    pub second: u64,
    /// Time in softirq of each CPU, in percent: ticks of 250 Hz.
    pub busy_percent: Vec<f64>,
    /// All time of each CPU that is not idle, in percent: the same ticks, and those of programs.
    pub total_percent: Vec<f64>,
    /// Packets of each queue that reached the stack.
    pub packets: Vec<u64>,
    /// Packets of each queue that were dropped.
    pub drops: Vec<u64>,
    /// Packets of each entry that reached the stack.
    pub entries: Vec<u64>,
    /// Packets that overtook others because their entry moved in this second.
    pub out_of_order: u64,
}

/// What a policy changes at the end of a second.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyChange {
    /// Entries, with their new queues.
    pub entries: Vec<(usize, u32)>,
    /// Queues, with the new CPUs of their interrupts.
    pub interrupts: Vec<(u32, u32)>,
}

/// A rule that moves entries or interrupts.
pub trait BalancePolicy {
    /// Called at the end of each second.
    fn second(&mut self, seen: &PolicyInput, interface: &Interface) -> PolicyChange;
}

/// The layout of the interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// Receive queue of each entry.
    pub table: Vec<u32>,
    /// CPU of each queue.
    pub cpus: Vec<u32>,
    /// Number of CPUs.
    pub cpu_count: usize,
    /// Programs.
    pub programs: Vec<CpuLoad>,
}

/// A program that is bound to a CPU and takes the time that packets leave, up to its demand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuLoad {
    /// Its CPU.
    pub cpu: u32,
    /// The time that it would take alone, 1.0 for all of it.
    pub demand: f64,
    /// The second of its start.
    pub from: u64,
    /// The second of its end.
    pub to: u64,
}

impl Interface {
    /// The even table: entry i has queue i modulo `queues`, whose CPU is the queue modulo `cpus`.
    pub fn even(entries: usize, queues: u32, cpus: u32) -> Self {
        Self {
            table: (0..entries as u32).map(|i| i % queues).collect(),
            cpus: (0..queues).map(|q| q % cpus).collect(),
            cpu_count: cpus as usize,
            programs: Vec::new(),
        }
    }

    /// The work for each CPU, 1.0 for all of its time, if `entries` is that of each entry.
    pub fn offered(&self, entries: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.cpu_count];
        for (queue, share) in self.table.iter().zip(entries) {
            out[self.cpus[*queue as usize] as usize] += share;
        }
        out
    }

    /// The time of each CPU that programs take in this second, 1.0 for all of it.
    fn taken_by_programs(&self, second: u64, offered: &[f64]) -> Vec<f64> {
        let demand = |cpu: usize| {
            let own = |p: &&CpuLoad| p.cpu as usize == cpu && (p.from..p.to).contains(&second);
            self.programs.iter().filter(own).map(|p| p.demand).sum::<f64>()
        };
        offered.iter().enumerate().map(|(cpu, packets)| demand(cpu).min((1.0 - packets).max(0.0))).collect()
    }

    /// The busiest CPU over the mean.
    pub fn max_to_mean(&self, entries: &[f64]) -> f64 {
        let offered = self.offered(entries);
        let sum: f64 = offered.iter().sum();
        offered.iter().copied().fold(0.0, f64::max) * offered.len() as f64 / sum
    }
}

/// Lets a policy control the interface for some seconds, and returns what happened.
pub fn run(
    interface: &mut Interface,
    traffic: &mut SimulatedTraffic,
    policy: &mut dyn BalancePolicy,
    seconds: u64,
    seed: u64,
) -> SimulationReport {
    let mut chance = SeededRandom::new(seed);
    let mut meter = Meter::new();
    let mut out_of_order = 0;
    for second in 1..=seconds {
        let entries = traffic.second(second);
        let offered = interface.offered(entries);
        meter.second(&offered);
        let programs = interface.taken_by_programs(second, &offered);
        let mut seen = observe(interface, entries, &offered, &programs, &mut chance);
        (seen.second, seen.out_of_order) = (second, out_of_order);
        let change = policy.second(&seen, interface);
        out_of_order = reordered(interface, entries, &offered, &change);
        meter.change(second, interface, &change);
        for (entry, queue) in change.entries {
            interface.table[entry] = queue;
        }
        for (queue, cpu) in change.interrupts {
            interface.cpus[queue as usize] = cpu;
        }
    }
    meter.report(seconds)
}

fn observe(
    interface: &Interface,
    entries: &[f64],
    offered: &[f64],
    programs: &[f64],
    chance: &mut SeededRandom,
) -> PolicyInput {
    let handled = |cpu: u32| 1.0 / offered[cpu as usize].max(1.0);
    let busy_percent: Vec<f64> = offered.iter().map(|o| chance.ticks_percent(*o)).collect();
    // Without programs no chance is drawn, so that runs without them stay as they were.
    let with_programs = busy_percent.iter().zip(programs).map(|(busy, p)| {
        let own = if *p > 0.0 { chance.ticks_percent(*p) } else { 0.0 };
        (busy + own).min(100.0)
    });
    let mut out = PolicyInput {
        second: 0,
        total_percent: with_programs.collect(),
        busy_percent,
        packets: vec![0; interface.cpus.len()],
        drops: vec![0; interface.cpus.len()],
        entries: Vec::with_capacity(entries.len()),
        out_of_order: 0,
    };
    for (queue, share) in interface.table.iter().zip(entries) {
        let queue = *queue as usize;
        let arrived = chance.around(share * PACKETS_PER_S);
        let packets = (arrived as f64 * handled(interface.cpus[queue])) as u64;
        out.entries.push(packets);
        out.packets[queue] += packets;
        out.drops[queue] += arrived - packets;
    }
    out
}

/// What waits in the ring of the old queue may be overtaken by what arrives at the new one.
fn reordered(interface: &Interface, entries: &[f64], offered: &[f64], change: &PolicyChange) -> u64 {
    let wait_s = |queue: u32| {
        let load = offered[interface.cpus[queue as usize] as usize];
        let packets = if load < 1.0 { (load / (2.0 * (1.0 - load))).min(RING) } else { RING };
        packets / PACKETS_PER_S
    };
    let overtaken = change
        .entries
        .iter()
        .map(|(entry, to)| entries[*entry] * PACKETS_PER_S * (wait_s(interface.table[*entry]) - wait_s(*to)).max(0.0));
    overtaken.sum::<f64>() as u64
}
