//! What the interfaces and their CPUs did in one second, as the adapter wants it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_adapt::load::{CpuSample, Exclusion, QueueSample, Sample};
use ringwise_model::{CpuId, CpuSet, Dir};
use ringwise_observe::{Layout, Rates, Wiring};

/// Fewer queues cannot share the load in another way.
const FEWEST_QUEUES: usize = 2;
/// Segments of the whole host that arrived out of order.
const OUT_OF_ORDER: &str = "TcpExt:TCPOFOQueue";

/// The CPU that serves each receive queue. `None`: its interrupt may be delivered to several, or is unknown.
pub(super) fn served(w: &Wiring) -> BTreeMap<u32, Option<CpuId>> {
    let one = |cpus: &CpuSet| cpus.first().filter(|_| cpus.len() == 1);
    w.rx.iter().map(|(q, irq)| (*q, irq.and_then(|i| w.goes_to.get(&i)).and_then(one))).collect()
}

/// Interfaces whose receive queues are served by at least two CPUs, each by a known one.
pub(crate) fn balanced(layout: &Layout) -> impl Iterator<Item = (&String, &Wiring)> {
    layout.links.iter().filter(|(_, w)| {
        let cpus = served(w);
        let different: BTreeSet<&CpuId> = cpus.values().flatten().collect();
        cpus.len() >= FEWEST_QUEUES && different.len() >= FEWEST_QUEUES && cpus.values().all(Option::is_some)
    })
}

/// The highest share of a second that a CPU of these interfaces spent with packets, in percent. `None`: unknown.
pub(crate) fn busiest(layout: &Layout, rates: &Rates) -> Option<f64> {
    let cpus: BTreeSet<CpuId> = balanced(layout).flat_map(|(_, w)| served(w).into_values().flatten()).collect();
    cpus.iter().filter_map(|c| rates.cpus.get(c)?.busy_percent()).max_by(f64::total_cmp)
}

/// The sample of one interface. Counters that were not read are unknown.
pub(crate) fn sample(
    dev: &str,
    wiring: &Wiring,
    rates: &Rates,
    excluded: &BTreeMap<u32, Exclusion>,
    at: Duration,
) -> Sample {
    let link = rates.links.get(dev);
    let cpus = served(wiring);
    let queues = cpus.iter().map(|(id, cpu)| {
        let q = link.and_then(|l| l.queues.iter().find(|q| q.dir == Dir::Rx && q.queue == *id));
        QueueSample {
            cpu: cpu.map(|c| c.0),
            packets: q.and_then(|q| q.packets),
            drops: q.and_then(|q| q.drops),
            excluded: excluded.get(id).copied(),
        }
    });
    let cpu = |c: &CpuId| {
        let rate = rates.cpus.get(c);
        let busy_percent = rate.and_then(ringwise_observe::CpuRates::busy_percent);
        (c.0, CpuSample { busy_percent, node: rate.and_then(|r| r.node).map(|n| n.0) })
    };
    Sample {
        at,
        queues: queues.collect(),
        cpus: cpus.values().flatten().map(cpu).collect(),
        out_of_order: rates.traffic.get(OUT_OF_ORDER).copied(),
    }
}
