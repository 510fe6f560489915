//! Goal `forward` where queues cannot be as many as CPUs: each queue gets the part of the RSS table that its CPU carries.
//!
//! A thread whose core carries another queue has less of the core. With an even table its queue is the first to
//! overflow, while CPUs that have a core to themselves are not full.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, FOR_SHARES, Setting, rss as knob_rss};
use ringwise_model::{Fact, Goal, Snapshot};

use crate::dev::{Dev, LearnedIndex};
use crate::groups::{Cx, Team, Want};
use crate::machine::Machine;
use crate::target::{Out, SCALING};

/// What a core carries with queues on two threads or more, in percent of one thread alone (a model: each packet takes 1.5
/// times as long; lab/cost).
const CORE_PERCENT: f64 = 400.0 / 3.0;

/// A table is worth a step when the fullest CPU gets this much less.
const WORTH_PERCENT: f64 = 5.0;

/// What each CPU carries in percent of a core with one busy thread, by its index; the queues of all interfaces are busy.
pub(crate) fn capacity(m: &Machine, cpus: impl Iterator<Item = usize>) -> BTreeMap<usize, f64> {
    let busy: BTreeSet<usize> = cpus.collect();
    let mut threads: BTreeMap<usize, u32> = BTreeMap::new();
    busy.iter().for_each(|c| *threads.entry(m.core[*c]).or_default() += 1);
    let of = |c: usize| match threads[&m.core[c]] {
        1 => 100.0,
        n => CORE_PERCENT / f64::from(n),
    };
    busy.into_iter().map(|c| (c, of(c))).collect::<BTreeMap<_, _>>()
}

/// Load of the fullest CPU: parts of the interface's flows for each percent that the CPU carries.
fn fullest(cpus: &[usize], carries: &BTreeMap<usize, f64>, parts: &[f64]) -> f64 {
    let sum: f64 = parts.iter().sum();
    let mut load: BTreeMap<usize, f64> = BTreeMap::new();
    cpus.iter().zip(parts).for_each(|(c, p)| *load.entry(*c).or_default() += p / sum);
    load.into_iter().map(|(c, l)| l / carries[&c]).fold(0.0, f64::max)
}

fn entries(table: &[u32], queues: usize) -> Vec<f64> {
    let mut out = vec![0.0; queues];
    for q in table {
        if let Some(n) = out.get_mut(*q as usize) {
            *n += 1.0;
        }
    }
    out
}

/// Drivers have it by turns or in blocks.
fn is_even(table: &[u32], queues: u32) -> bool {
    let parts = entries(table, queues as usize);
    let (most, least) = (parts.iter().copied().fold(0.0, f64::max), parts.iter().copied().fold(f64::MAX, f64::min));
    most - least <= 1.0
}

/// The table by what CPUs carry; none where an even one does as well.
fn table(m: &Machine, devs: &[Dev], d: &Dev, size: usize) -> Option<Vec<u32>> {
    let cpus: Vec<usize> = d.cpu.get(..d.rx as usize)?.iter().copied().collect::<Option<_>>()?;
    if cpus.len() < 2 || size < cpus.len() {
        return None;
    }
    let carries = capacity(m, devs.iter().flat_map(|d| d.cpu.iter().flatten().copied()));
    let mut queues: BTreeMap<usize, u32> = BTreeMap::new();
    cpus.iter().for_each(|c| *queues.entry(*c).or_default() += 1);
    let weights: Vec<u32> = cpus.iter().map(|c| (carries[c] * 6.0 / f64::from(queues[c])).round() as u32).collect();
    let table = knob_rss::by_weight(&weights, size);
    let parts = entries(&table, cpus.len());
    let even = fullest(&cpus, &carries, &vec![1.0; cpus.len()]);
    let less = 100.0 - fullest(&cpus, &carries, &parts) * 100.0 / even;
    (less >= WORTH_PERCENT && parts.iter().all(|n| *n > 0.0)).then_some(table)
}

/// Wants the tables, and puts them down in the devices.
pub(crate) fn plan(
    s: &Snapshot,
    m: &Machine,
    devs: &mut [Dev],
    teams: &[Vec<Team>],
    learned: &LearnedIndex,
    out: &mut Out,
) {
    for i in 0..devs.len() {
        let d = &devs[i];
        let Fact::Known(rss) = &d.nic.rss else { continue };
        let address = Address::RssTable { dev: d.name().to_string() };
        if d.goal != Goal::Forward
            || out.keep.moves(d.name())
            || !teams.get(i).is_none_or(Vec::is_empty)
            || out.laid.contains(&address)
        {
            continue;
        }
        let Some(table) = table(m, devs, d, rss.table.len()) else { continue };
        // One that somebody else laid out stays.
        let made = out.made.of(d.name()).iter().any(|made| made.as_left && made.address().as_ref() == Some(&address));
        if !(is_even(&rss.table, d.rx_now) || made || rss.table == table) {
            continue;
        }
        let setting = Setting::RssTable { dev: d.name().to_string(), table: table.clone() };
        let reason =
            "each queue gets what its CPU carries: both threads of a core together a third more than one (modelled)";
        let (reason, source) = (reason.to_string(), SCALING.to_string());
        let want = Want { setting, instead: Vec::new(), rule: FOR_SHARES, reason, source, needed: false };
        Cx { s, d, learned, out }.want(want);
        let has = |(_, setting, _): &(Address, Setting, _)| matches!(setting, Setting::RssTable { table: t, .. } if *t == table);
        if out.entries.get(&address).is_some_and(has) {
            devs[i].table = Some(table);
        }
    }
}
