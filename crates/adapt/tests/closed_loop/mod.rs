//! The adapter, and greedy rebalancing, as policies of the closed loop.

use std::collections::BTreeSet;
use std::time::Duration;

use ringwise_adapt::buckets::{CountMethod, EntryEvidence, ReceivedByEntry};
use ringwise_adapt::load::{CpuLoadSample, LoadSample, QueueSample};
use ringwise_adapt::moves::{Moves, TableMove};
use ringwise_adapt::propose::Elephant;
use ringwise_adapt::{Adapter, AdapterAction, Forbidden, Permitted, Settled, Signals};
use ringwise_flow::balance::balance;
use ringwise_testkit::closed_loop::{BalancePolicy, Interface, PolicyChange, PolicyInput};

/// The adapter with a caller that writes whatever it proposes.
#[derive(Default)]
pub struct Adaptive {
    pub adapter: Adapter,
    /// Packets of each entry since the count began.
    counting: Option<(CountMethod, u64, Vec<u64>)>,
    /// Elephants, with the seconds in which they were named.
    pub named: Vec<(u64, Elephant)>,
    /// Moves of entries with their seconds, restorations included.
    pub table_moves: Vec<(u64, TableMove)>,
    /// Size of the adapter's state when it is stored, at the end of each hour, in bytes.
    pub stored_bytes: Vec<usize>,
    /// What forbids to write the table.
    pub forbidden: Vec<Forbidden>,
    pub restored: usize,
    pub off_seconds: u64,
    /// Actions with their seconds, without those that repeat.
    pub log: Vec<(u64, AdapterAction)>,
}

impl BalancePolicy for Adaptive {
    fn second(&mut self, seen: &PolicyInput, interface: &Interface) -> PolicyChange {
        let now = Duration::from_secs(seen.second);
        let queue = |q: usize| QueueSample {
            cpu: Some(interface.cpus[q]),
            packets: Some(seen.packets[q]),
            drops: Some(seen.drops[q]),
            excluded: None,
            interrupt: Some(q as u32),
        };
        let cpu = |(i, busy): (u32, &f64)| {
            let total = Some(seen.total_percent[i as usize]);
            let node = Some(0);
            (
                i,
                CpuLoadSample {
                    busy_percent: Some(*busy),
                    total_percent: total,
                    other_packets: Some(0),
                    node,
                    ..CpuLoadSample::default()
                },
            )
        };
        let sample = LoadSample {
            at: now,
            queues: (0..interface.cpus.len()).map(queue).collect(),
            cpus: (0..).zip(&seen.busy_percent).map(cpu).collect(),
            out_of_order: Some(seen.out_of_order),
            ..LoadSample::default()
        };
        if let Some((_, seconds, sums)) = &mut self.counting {
            *seconds += 1;
            sums.iter_mut().zip(&seen.entries).for_each(|(sum, n)| *sum += n);
        }
        let counts = self.counting.take_if(|(_, seconds, _)| *seconds >= 3);
        let counts = counts.map(|(method, seconds, sums)| EntryEvidence {
            method,
            duration: Duration::from_secs(seconds),
            entries: sums
                .into_iter()
                .map(|n| ReceivedByEntry { packets: n, segments: Some(n), bytes: n * 1000, elsewhere: 0 })
                .collect(),
            unhashed: 0,
            unknown_queue: 0,
        });
        let permitted: BTreeSet<u32> = (0..interface.cpu_count as u32).collect();
        let signals = Signals {
            sample: Some(&sample),
            table: Some(&interface.table),
            forbidden: self.forbidden.as_slice(),
            counts: counts.as_ref(),
            permitted: Permitted::Cpus(&permitted),
            rps: None,
        };
        let action = self.adapter.step(now, &signals);
        if seen.second.is_multiple_of(3600) {
            self.stored_bytes.push(serde_json::to_string(&self.adapter).map_or(usize::MAX, |text| text.len()));
        }
        let kind = std::mem::discriminant(&action);
        if self.log.last().is_none_or(|(_, a)| std::mem::discriminant(a) != kind) && self.log.len() < 10_000 {
            self.log.push((seen.second, action.clone()));
        }
        let moves = match action {
            AdapterAction::CountEntries { method, .. } => {
                if self.counting.as_ref().is_none_or(|(m, ..)| *m != method) {
                    self.counting = Some((method, 0, vec![0; interface.table.len()]));
                }
                return PolicyChange::default();
            }
            AdapterAction::Propose(proposal) => proposal.moves,
            AdapterAction::Restore { moves, .. } => {
                self.restored += 1;
                moves
            }
            AdapterAction::Named { elephant } => {
                self.named.push((seen.second, elephant));
                Moves::Table(Vec::new())
            }
            AdapterAction::Off { .. } => {
                self.off_seconds += 1;
                Moves::Table(Vec::new())
            }
            AdapterAction::Rest(_) | AdapterAction::Suspect { .. } => Moves::Table(Vec::new()),
        };
        self.counting = None;
        let change = match &moves {
            Moves::Table(list) if list.is_empty() => return PolicyChange::default(),
            Moves::Table(list) => {
                assert!(list.iter().all(|m| interface.table[m.entry] == m.from));
                PolicyChange { entries: list.iter().map(|m| (m.entry, m.to)).collect(), interrupts: Vec::new() }
            }
            // No mask is known here.
            Moves::Rps(_) => unreachable!("the adapter changes no mask that it was not given"),
            Moves::Interrupt(m) => {
                assert!(m.queues.iter().all(|q| interface.cpus[*q as usize] == m.from));
                PolicyChange { entries: Vec::new(), interrupts: m.queues.iter().map(|q| (*q, m.to)).collect() }
            }
        };
        self.adapter.settled(now, Settled::Written);
        self.table_moves.extend(moves.entries().iter().map(|m| (seen.second, *m)));
        change
    }
}

/// RSS++, simplified: every second all entries are counted, and entries move until the busiest CPU is within 2 % of the
/// mean. There is no limit, and no memory.
#[derive(Default)]
pub struct Greedy;

impl BalancePolicy for Greedy {
    fn second(&mut self, seen: &PolicyInput, interface: &Interface) -> PolicyChange {
        // CPUs are balanced: one may serve several queues.
        let table: Vec<u32> = interface.table.iter().map(|q| interface.cpus[*q as usize]).collect();
        let mut packets = vec![0u64; interface.cpu_count];
        for (cpu, n) in table.iter().zip(&seen.entries) {
            packets[*cpu as usize] += n;
        }
        let weight = |(cpu, n): (&u32, &u64)| {
            let c = *cpu as usize;
            (seen.busy_percent[c] * 10_000.0 * *n as f64 / packets[c].max(1) as f64) as u64
        };
        let weights: Vec<u64> = table.iter().zip(&seen.entries).map(weight).collect();
        let b = balance(&table, &weights, &[], interface.cpu_count as u32, |_| true, 1.02);
        let queue = |cpu: u32| interface.cpus.iter().position(|c| *c == cpu).map_or(0, |q| q as u32);
        PolicyChange { entries: b.moves.iter().map(|m| (m.entry, queue(m.to))).collect(), interrupts: Vec::new() }
    }
}
