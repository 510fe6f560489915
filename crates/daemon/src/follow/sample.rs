//! What the interfaces and their CPUs did in one second, as the adapter wants it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_adapt::Forbidden;
use ringwise_adapt::interrupts::may_be_crowded;
use ringwise_adapt::load::{CpuLoadSample, LoadSample, QueueSample};
use ringwise_model::{CpuCounter, CpuId, CpuSet, Dir, IrqId};
use ringwise_observe::{CpuRates, Layout, QueueRates, Rates, Wiring};

use super::facts::Facts;
use crate::compared::LoadLayout;

/// Below this load with packets of every CPU no table can be suspect. In percent.
const BUSY_PERCENT: f64 = 45.0;

/// Segments of the whole host that arrived out of order.
pub(crate) const OUT_OF_ORDER: &str = "TcpExt:TCPOFOQueue";

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

/// Interfaces with receive queues, each served by a known CPU.
pub(crate) fn followed(layout: &Layout) -> impl Iterator<Item = (&String, &Wiring)> {
    layout.links.iter().filter(|(_, w)| !w.rx.is_empty() && served(w).values().all(Option::is_some))
}

/// Whether the load of a CPU of these interfaces may be suspect, so that all counters have to be read.
pub(crate) fn may_be_suspect(layout: &Layout, rates: &Rates, machine: &LoadLayout) -> bool {
    let mut cpus: BTreeSet<CpuId> = followed(layout).flat_map(|(_, w)| served(w).into_values().flatten()).collect();
    let masks = followed(layout).filter_map(|(dev, _)| machine.masks.get(dev));
    cpus.extend(masks.flat_map(|m| &m.applied).map(|c| CpuId(*c)));
    let suspect = |c: &CpuRates| c.busy_percent().is_some_and(|p| p >= BUSY_PERCENT) || may_be_crowded(&cpu_sample(c));
    cpus.iter().filter_map(|c| rates.cpus.get(c)).any(suspect)
}

/// Packets that the receive queues of all interfaces brought each CPU. `None`: unknown.
pub(crate) type PacketsByCpu = BTreeMap<CpuId, Option<u64>>;

/// `None`: queues were not read, or it is unknown which CPU serves one that received packets.
pub(crate) fn packets_by_cpu(layout: &Layout, rates: &Rates) -> Option<PacketsByCpu> {
    if rates.links.is_empty() {
        return None;
    }
    let mut out = PacketsByCpu::new();
    for (dev, w) in &layout.links {
        let queues = receiving(rates, dev);
        // Some drivers count no packets of queues: a queue has all of those of its interface, or none of no packets.
        let all = rates.links.get(dev).and_then(|l| l.rx.packets);
        let of_each = all.filter(|n| *n == 0 || w.rx.len() == 1);
        // Interfaces without an interrupt pass on what others receive.
        for (queue, cpu) in served(w).into_iter().filter(|(q, _)| w.rx.get(q).is_some_and(Option::is_some)) {
            match (cpu, queues.get(&queue).and_then(|q| q.packets).or(of_each)) {
                (Some(cpu), packets) => {
                    let sum = out.entry(cpu).or_insert(Some(0));
                    *sum = sum.zip(packets).map(|(sum, n)| sum + n);
                }
                (None, Some(0)) => {}
                (None, _) => return None,
            }
        }
    }
    Some(out)
}

/// The rates of its receive queues.
fn receiving<'a>(rates: &'a Rates, dev: &str) -> BTreeMap<u32, &'a QueueRates> {
    let queues = rates.links.get(dev).into_iter().flat_map(|l| &l.queues);
    queues.filter(|q| q.dir == Dir::Rx).map(|q| (q.queue, q)).collect()
}

/// What is read of an interface in one second.
pub(super) struct Reading<'a> {
    pub dev: &'a str,
    pub wiring: &'a Wiring,
    pub rates: &'a Rates,
    /// Of all interfaces.
    pub packets: Option<&'a PacketsByCpu>,
    /// CPUs that may serve its queues. `None`: unknown.
    pub permitted: Option<&'a BTreeSet<u32>>,
    pub machine: &'a LoadLayout,
    /// Why its table must not be written. `None`: nothing is known against it.
    pub no_table: Option<Forbidden>,
}

/// The sample of one interface. Counters that were not read are unknown. `facts`: `None` before they are read.
pub(super) fn sample(r: &Reading<'_>, facts: Option<&Facts>, at: Duration) -> LoadSample {
    let cpus = served(r.wiring);
    let threads = r.wiring.threads.as_ref();
    // An interrupt that only wakes a thread does not decide where packets are processed.
    let interrupt = |queue: &u32| {
        let irq = (*r.wiring.rx.get(queue)?)?;
        let own = threads.is_some_and(|t| !t.contains_key(queue));
        (own && facts.is_none_or(|f| !f.immovable.contains(&irq))).then_some(irq.0)
    };
    let rates = receiving(r.rates, r.dev);
    let queues: Vec<QueueSample> = cpus
        .iter()
        .map(|(id, cpu)| {
            let q = rates.get(id);
            QueueSample {
                cpu: cpu.map(|c| c.0),
                packets: q.and_then(|q| q.packets),
                drops: q.and_then(|q| q.drops),
                excluded: facts.and_then(|f| f.excluded.get(id).copied()),
                interrupt: interrupt(id),
            }
        })
        .collect();
    let others = |cpu: CpuId| {
        let own = queues.iter().filter(|q| q.cpu == Some(cpu.0)).map(|q| q.packets).sum::<Option<u64>>()?;
        let all = r.packets?.get(&cpu).copied().unwrap_or(Some(0))?;
        Some(all.saturating_sub(own))
    };
    let core = |c: u32| r.machine.core.get(&c).copied();
    let beside = |c: CpuId| {
        let others = r.rates.cpus.iter().filter(|(other, _)| **other != c && core(other.0) == core(c.0));
        others.filter_map(|(_, rates)| cpu_sample(rates).total_percent).reduce(f64::max)
    };
    let cpu = |c: CpuId| {
        let known = r.rates.cpus.get(&c).map(cpu_sample).unwrap_or_default();
        let sibling_percent = core(c.0).and_then(|_| beside(c));
        (c.0, CpuLoadSample { other_packets: others(c), core: core(c.0), sibling_percent, ..known })
    };
    let permitted = facts.and(r.permitted).into_iter().flatten();
    let mask = r.machine.masks.get(r.dev).into_iter().flat_map(|m| m.applied.union(&m.helpers));
    let more = permitted.chain(mask).map(|c| CpuId(*c));
    let cpus = cpus.values().flatten().copied().chain(more).map(cpu).collect();
    let drops = r.rates.links.get(r.dev).map(|l| l.drops).unwrap_or_default();
    let out_of_order = r.rates.traffic.get(OUT_OF_ORDER).copied();
    LoadSample { at, cpus, queues, out_of_order, nic_drops: drops.nic, stack_drops: drops.stack }
}

fn cpu_sample(r: &CpuRates) -> CpuLoadSample {
    CpuLoadSample {
        // A load without the time of its NAPI threads would be too low.
        busy_percent: r.napi_threads_percent.and(r.busy_percent()),
        total_percent: r.idle_percent.map(|idle| (100.0 - idle).clamp(0.0, 100.0)),
        node: r.node.map(|n| n.0),
        backlog_drops: r.counts.get(CpuCounter::SoftnetDropped),
        ..CpuLoadSample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_observe::NapiThread;

    #[test]
    fn packets_of_all_interfaces_by_cpu() {
        use crate::follow::tests::of_queue;
        use ringwise_observe::{DirectionRates, LinkRates};

        let wiring = |queues: &[(u32, u32)]| Wiring {
            rx: queues.iter().map(|(q, _)| (*q, Some(IrqId(100 + q)))).collect(),
            goes_to: queues.iter().map(|(q, cpu)| (IrqId(100 + q), CpuSet::one(CpuId(*cpu)))).collect(),
            threads: Some(BTreeMap::new()),
            ..Wiring::default()
        };
        let link = |packets: &[Option<u64>], all| LinkRates {
            queues: (0..).zip(packets).map(|(q, n)| QueueRates { packets: *n, ..of_queue(q) }).collect(),
            rx: DirectionRates { packets: all, ..DirectionRates::default() },
            ..LinkRates::default()
        };
        let mut layout = Layout::default();
        layout.links.insert("eth0".into(), wiring(&[(0, 0), (1, 1)]));
        layout.links.insert("eth1".into(), wiring(&[(0, 1)]));
        let mut rates = Rates { seconds: 1.0, ..Rates::default() };
        assert_eq!(packets_by_cpu(&layout, &rates), None, "no queue was read");
        rates.links.insert("eth0".into(), link(&[Some(5), Some(7)], Some(12)));
        rates.links.insert("eth1".into(), link(&[None], Some(3)));
        let sums = |rates: &Rates| packets_by_cpu(&layout, rates).unwrap();
        assert_eq!(sums(&rates), [(CpuId(0), Some(5)), (CpuId(1), Some(10))].into(), "its only queue has all");
        rates.links.insert("eth1".into(), link(&[None], None));
        assert_eq!(sums(&rates), [(CpuId(0), Some(5)), (CpuId(1), None)].into());
        rates.links.insert("eth0".into(), link(&[None, None], Some(0)));
        assert_eq!(sums(&rates)[&CpuId(0)], Some(0));
    }

    #[test]
    fn drops_of_the_interface_by_place() {
        use crate::follow::tests::of_queue;
        use ringwise_observe::{Drops, LinkRates};

        let wiring = Wiring { rx: [(0, Some(IrqId(30)))].into(), threads: Some(BTreeMap::new()), ..Wiring::default() };
        let drops = |links: BTreeMap<String, LinkRates>| {
            let rates = Rates { seconds: 1.0, links, ..Rates::default() };
            let machine = &LoadLayout::default();
            let r = Reading {
                dev: "eth0",
                wiring: &wiring,
                rates: &rates,
                packets: None,
                permitted: None,
                machine,
                no_table: None,
            };
            let s = sample(&r, None, Duration::from_secs(7));
            (s.nic_drops, s.stack_drops, s.queues[0].drops)
        };
        let link = |nic, stack| {
            let drops = Drops { nic, stack, tx: Some(90), ..Drops::default() };
            LinkRates { drops, queues: vec![of_queue(0)], ..LinkRates::default() }
        };
        assert_eq!(drops([("eth0".into(), link(Some(5), Some(2)))].into()), (Some(5), Some(2), None));
        assert_eq!(drops([("eth0".into(), link(Some(0), None))].into()), (Some(0), None, None));
        assert_eq!(drops([("eth1".into(), link(Some(5), Some(2)))].into()), (None, None, None), "not read");
    }

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
