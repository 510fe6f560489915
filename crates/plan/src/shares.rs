//! Goal `forward` when the CPUs of an interface's queues differ in capacity: each queue gets a share of the RSS table that
//! matches the capacity of its CPU.
//!
//! A thread whose core handles another queue has less capacity. With an even table its queue overflows first, while CPUs
//! with a whole core are not fully loaded.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, FOR_SHARES, Reason, Setting, rss as knob_rss};
use ringwise_model::{Fact, Goal, Snapshot};

use crate::dev::{Dev, LearnedIndex};
use crate::groups::{GroupPlanner, GroupSetting, QueueGroup};
use crate::machine::Machine;
use crate::rules::source_of;
use crate::target::PlanBuilder;

/// How many times as long a packet takes while another thread of the core is busy, too (a model; lab/cost).
pub(crate) const BESIDE_BUSY_THREAD: f64 = 1.5;

/// Capacity of a core with queues on two or more threads, in percent of one thread alone.
const CORE_PERCENT: f64 = 200.0 / BESIDE_BUSY_THREAD;

/// A new table is worth a step if the load of the busiest CPU drops by this much.
const WORTH_PERCENT: f64 = 5.0;

/// Capacity of each CPU in percent of a core with one busy thread, by index, if the queues of all interfaces are busy. Reserved
/// and excluded CPUs are busy with other work.
pub(crate) fn capacity(m: &Machine, cpus: impl Iterator<Item = usize>) -> BTreeMap<usize, f64> {
    let busy: BTreeSet<usize> = cpus.collect();
    let free = (0..m.cpus.len()).filter(|c| m.kept_free.contains(m.cpus[*c]));
    let mut threads: BTreeMap<usize, u32> = BTreeMap::new();
    for c in busy.iter().copied().chain(free.filter(|c| !busy.contains(c))) {
        *threads.entry(m.core[c]).or_default() += 1;
    }
    let of = |c: usize| match threads[&m.core[c]] {
        1 => 100.0,
        n => CORE_PERCENT / f64::from(n),
    };
    busy.into_iter().map(|c| (c, of(c))).collect::<BTreeMap<_, _>>()
}

/// The share of an interface's flows that each CPU gets with this table; `None` if the CPU of a queue in it is unknown.
pub(crate) fn parts(cpus: &[Option<usize>], table: &[u32]) -> Option<BTreeMap<usize, f64>> {
    let mut entries: BTreeMap<usize, u32> = BTreeMap::new();
    for q in table {
        *entries.entry(cpus.get(*q as usize).copied().flatten()?).or_default() += 1;
    }
    Some(entries.into_iter().map(|(cpu, n)| (cpu, f64::from(n) / table.len() as f64)).collect())
}

/// The highest load relative to the capacity of its CPU.
pub(crate) fn fullest(load: &BTreeMap<usize, f64>, carries: &BTreeMap<usize, f64>) -> Option<f64> {
    load.iter().map(|(c, l)| l * 100.0 / carries[c]).max_by(f64::total_cmp)
}

/// The number of table entries of each queue. The highest number in relation to its weight is as low as whole entries
/// permit: 17 and 26 of 128 instead of 18 and 25, which ethtool's weights give the last and the heaviest of seven queues.
fn entries(weights: &[u32], size: usize) -> Vec<u32> {
    let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    let mut out: Vec<u32> = weights.iter().map(|w| (size as u64 * u64::from(*w) / sum.max(1)) as u32).collect();
    for _ in out.iter().sum::<u32>()..size as u32 {
        let filled = |q: usize, other: usize| u64::from(out[q] + 1) * u64::from(weights[other]);
        let next = (0..out.len()).min_by(|a, b| filled(*a, *b).cmp(&filled(*b, *a)));
        let Some(q) = next else { break };
        out[q] += 1;
    }
    out
}

/// The table weighted by capacity; `None` if an even table is as good. Ports with layouts of their own share the capacity of CPUs
/// that have queues of several of them.
fn table(m: &Machine, devs: &[Dev], d: &Dev, size: usize) -> Option<Vec<u32>> {
    // RPS spreads the packets of a port with one queue.
    let together = |other: &&Dev| d.apart && other.apart && other.rx > 1;
    let ports: Vec<&Dev> = devs.iter().filter(|other| other.name() == d.name() || together(other)).collect();
    let carries = capacity(m, devs.iter().flat_map(|d| d.cpu.iter().flatten().copied()));
    let mut queues: BTreeMap<usize, u32> = BTreeMap::new();
    ports.iter().flat_map(|d| cpus_of(d)).flatten().for_each(|c| *queues.entry(*c).or_default() += 1);
    let weighted = |d: &Dev, size: usize| -> Option<Vec<u32>> {
        let known: Vec<usize> = cpus_of(d).iter().copied().collect::<Option<_>>()?;
        if known.len() < 2 || size < known.len() {
            return None;
        }
        let weight = |c: &usize| (carries[c] * 6.0 / f64::from(queues[c])).round() as u32;
        Some(knob_rss::by_weight(&entries(&known.iter().map(weight).collect::<Vec<_>>(), size), size))
    };
    let table = weighted(d, size)?;
    let by_turns = |d: &Dev| (0..d.rx).collect::<Vec<u32>>();
    let even = fullest_of(&ports, d, &carries, &|d| by_turns(d))?;
    let less =
        100.0 - fullest_of(&ports, d, &carries, &|d| weighted(d, size).unwrap_or_else(|| by_turns(d)))? * 100.0 / even;
    let is_weighted = !knob_rss::is_even(&table, d.rx);
    (is_weighted && less >= WORTH_PERCENT && (0..d.rx).all(|q| table.contains(&q))).then_some(table)
}

/// CPUs of the receive queues.
fn cpus_of<'d>(d: &'d Dev<'_>) -> &'d [Option<usize>] {
    d.cpu.get(..d.rx as usize).unwrap_or_default()
}

/// The highest load of the CPUs of `d`, with that of all ports on them, if each port has a load of 1. Ports whose CPUs are unknown
/// do not count; `None` if `d` is one of them.
fn fullest_of(
    ports: &[&Dev],
    d: &Dev,
    carries: &BTreeMap<usize, f64>,
    table: &dyn Fn(&Dev) -> Vec<u32>,
) -> Option<f64> {
    let own = parts(cpus_of(d), &table(d))?;
    let mut load: BTreeMap<usize, f64> = BTreeMap::new();
    for part in ports.iter().filter_map(|p| parts(cpus_of(p), &table(p))) {
        part.into_iter()
            .filter(|(cpu, _)| own.contains_key(cpu))
            .for_each(|(cpu, n)| *load.entry(cpu).or_default() += n);
    }
    fullest(&load, carries)
}

/// Adds the tables to the plan, and records them in the devices.
pub(crate) fn plan(
    s: &Snapshot,
    m: &Machine,
    devs: &mut [Dev],
    teams: &[Vec<QueueGroup>],
    learned: &LearnedIndex,
    out: &mut PlanBuilder,
) {
    for i in 0..devs.len() {
        let d = &devs[i];
        let Fact::Known(rss) = &d.nic.rss else { continue };
        let address = Address::RssTable { dev: d.name().to_string() };
        // Another table would change which queues are busy.
        if d.goal != Goal::Forward
            || d.table_sampled
            || out.keep.moves(d.name())
            || !teams.get(i).is_none_or(Vec::is_empty)
            || out.laid.contains(&address)
        {
            continue;
        }
        let Some(table) = table(m, devs, d, rss.table.len()) else { continue };
        // A table that was configured outside ringwise is kept.
        let made = out.made.of(d.name()).iter().any(|made| made.as_left && made.address().as_ref() == Some(&address));
        if !(knob_rss::is_even(&rss.table, d.rx_now) || made || rss.table == table) {
            continue;
        }
        let setting = Setting::RssTable { dev: d.name().to_string(), table: table.clone() };
        let (reason, source) = (Reason::TableByCapacity, source_of(FOR_SHARES));
        let want = GroupSetting { setting, instead: Vec::new(), rule: FOR_SHARES, reason, source, needed: false };
        GroupPlanner { s, d, learned, out }.want(want);
        let has = |(_, setting, _): &(Address, Setting, _)| matches!(setting, Setting::RssTable { table: t, .. } if *t == table);
        if out.entries.get(&address).is_some_and(has) {
            devs[i].table = Some(table);
        }
    }
}
