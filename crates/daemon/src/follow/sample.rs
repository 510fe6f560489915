//! What the interfaces and their CPUs did in one second, as the adapter wants it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_adapt::load::{CpuSample, Exclusion, QueueSample, Sample};
use ringwise_model::{CpuId, CpuSet, Dir, IrqId};
use ringwise_observe::{Layout, Rates, Wiring};

/// Fewer queues cannot share the load in another way.
const FEWEST_QUEUES: usize = 2;
/// Segments of the whole host that arrived out of order.
const OUT_OF_ORDER: &str = "TcpExt:TCPOFOQueue";

/// The CPU that serves each receive queue. `None`: its interrupt may be delivered to several, or its NAPI thread may run on several, or
/// this is unknown.
pub(super) fn served(w: &Wiring) -> BTreeMap<u32, Option<CpuId>> {
    let one = |cpus: &CpuSet| cpus.first().filter(|_| cpus.len() == 1);
    let cpu = |(q, irq): (&u32, &Option<IrqId>)| match w.threads.as_ref()?.get(q) {
        // The interrupt only wakes the thread.
        Some(thread) => thread.cpu,
        None => irq.and_then(|i| w.goes_to.get(&i)).and_then(one),
    };
    w.rx.iter().map(|all| (*all.0, cpu(all))).collect()
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
        // A load without the time of its NAPI threads would be too low.
        let busy = |r: &ringwise_observe::CpuRates| r.napi_threads_percent.and(r.busy_percent());
        let busy_percent = rate.and_then(busy);
        (c.0, CpuSample { busy_percent, node: rate.and_then(|r| r.node).map(|n| n.0) })
    };
    Sample {
        at,
        queues: queues.collect(),
        cpus: cpus.values().flatten().map(cpu).collect(),
        out_of_order: rates.traffic.get(OUT_OF_ORDER).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_observe::NapiThread;

    #[test]
    fn a_queue_is_served_by_the_cpu_of_its_thread() {
        let on = |cpu: u32| CpuSet::one(CpuId(cpu));
        let mut w = Wiring {
            rx: [(0, Some(IrqId(30))), (1, Some(IrqId(31))), (2, Some(IrqId(32)))].into(),
            goes_to: [(IrqId(30), on(0)), (IrqId(31), on(1)), (IrqId(32), on(2))].into(),
            threads: Some(
                [
                    (1, NapiThread { pid: 11, cpu: Some(CpuId(5)) }),
                    // It may run on several CPUs.
                    (2, NapiThread { pid: 12, cpu: None }),
                ]
                .into(),
            ),
            ..Wiring::default()
        };
        let cpus = |w: &Wiring| served(w).into_values().map(|c| c.map(|c| c.0)).collect::<Vec<_>>();
        assert_eq!(cpus(&w), [Some(0), Some(5), None]);
        w.threads = Some(BTreeMap::new());
        assert_eq!(cpus(&w), [Some(0), Some(1), Some(2)]);
        w.threads = None;
        assert_eq!(cpus(&w), [None; 3], "it is unknown whether threads poll");
    }
}
