//! Compares the load and the results of two windows. Pure. A difference is an observation and proves no cause.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuCounter, CpuId, Dir};

use crate::rates::{LinkRates, Rates};

/// One number before and after. `None`: not known, or not present.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparedFigure {
    /// Name in JSON, with its unit.
    pub key: &'static str,
    /// Name for people, with its unit.
    pub what: &'static str,
    /// Value of the first window.
    pub before: Option<f64>,
    /// Value of the second window.
    pub after: Option<f64>,
}

impl ComparedFigure {
    /// The change in per cent; `None` also if the first value is 0.
    pub fn change_percent(&self) -> Option<f64> {
        let (b, a) = self.before.zip(self.after)?;
        (b != 0.0).then(|| (a - b) * 100.0 / b)
    }
}

/// The comparison, by interface and for the host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowComparison {
    /// By name of the interface; interfaces of either window. Each has the same figures in the same order.
    pub links: BTreeMap<String, Vec<ComparedFigure>>,
    /// Figures of the CPUs, backlogs and sockets of the host.
    pub host: Vec<ComparedFigure>,
    /// Packets received per second, of all interfaces together.
    pub load: Option<ComparedFigure>,
    /// Sentences: counters that were reset, devices that came or went.
    pub notes: Vec<String>,
}

type OfLink = (&'static str, &'static str, fn(&One<'_>) -> Option<f64>);
type OfHost = (&'static str, &'static str, fn(&Rates) -> Option<f64>);

fn per_second(n: Option<u64>, seconds: f64) -> Option<f64> {
    n.map(|n| n as f64 / seconds)
}

/// One window of one interface.
struct One<'a> {
    link: &'a LinkRates,
    rates: &'a Rates,
}

impl One<'_> {
    /// Interrupts of all its vectors, each counted once, and the packets of their queues.
    fn interrupts(&self) -> Option<(u64, Option<u64>)> {
        let mut seen = BTreeSet::new();
        let (mut sum, mut packets, mut any) = (0u64, Some(0u64), false);
        for q in &self.link.queues {
            let (Some(irq), Some(n)) = (q.irq, q.interrupts) else { continue };
            any = true;
            packets = packets.zip(q.packets).map(|(a, b)| a.saturating_add(b));
            if seen.insert(irq) {
                sum = sum.saturating_add(n);
            }
        }
        any.then_some((sum, packets))
    }

    fn share(&self, dir: Dir) -> Option<f64> {
        let b = if dir == Dir::Rx { self.link.rx_balance } else { self.link.tx_balance };
        b.map(|b| b.max_over_mean)
    }
}

const LINK: [OfLink; 14] = [
    ("rx_packets_per_second", "received packets/s", |o| o.link.rx.pps),
    ("rx_megabits_per_second", "received Mb/s", |o| o.link.rx.mbps),
    ("tx_packets_per_second", "sent packets/s", |o| o.link.tx.pps),
    ("tx_megabits_per_second", "sent Mb/s", |o| o.link.tx.mbps),
    ("dropped_nic_per_second", "packets/s lost by the NIC", |o| per_second(o.link.drops.nic, o.rates.seconds)),
    ("dropped_stack_per_second", "packets/s lost in driver, stack", |o| {
        per_second(o.link.drops.stack, o.rates.seconds)
    }),
    ("dropped_tx_per_second", "packets/s lost on transmit", |o| per_second(o.link.drops.tx, o.rates.seconds)),
    ("dropped_qdisc_per_second", "packets/s lost in qdiscs", |o| per_second(o.link.drops.qdisc, o.rates.seconds)),
    ("rx_max_over_mean", "busiest receive queue/mean", |o| o.share(Dir::Rx)),
    ("tx_max_over_mean", "busiest transmit queue/mean", |o| o.share(Dir::Tx)),
    ("interrupts_per_second", "interrupts/s", |o| o.interrupts().map(|i| i.0 as f64 / o.rates.seconds)),
    ("packets_per_interrupt", "packets per interrupt", |o| {
        let (n, packets) = o.interrupts()?;
        packets.filter(|_| n > 0).map(|p| p as f64 / n as f64)
    }),
    ("busiest_cpu_percent", "its busiest CPU, softirq+irq+NAPI %", |o| o.rates.busiest(o.link).map(|b| b.1)),
    ("cpus_with_interrupts", "CPUs that handled its interrupts", |o| {
        let told = o.link.queues.iter().any(|q| q.interrupts.is_some());
        let cpus: BTreeSet<CpuId> = o.link.queues.iter().flat_map(|q| q.cpus.iter()).collect();
        told.then_some(cpus.len() as f64)
    }),
];

fn softnet(r: &Rates, counter: CpuCounter) -> Option<f64> {
    let told: Vec<u64> = r.cpus.values().filter_map(|c| c.counts.get(counter)).collect();
    (!told.is_empty()).then(|| told.iter().fold(0u64, |a, b| a.saturating_add(*b)) as f64 / r.seconds)
}

fn busy(r: &Rates) -> Vec<f64> {
    r.cpus.values().filter_map(crate::CpuRates::busy_percent).collect()
}

const HOST: [OfHost; 5] = [
    ("busiest_cpu_percent", "busiest CPU, softirq+irq+NAPI %", |r| busy(r).into_iter().reduce(f64::max)),
    ("mean_cpu_percent", "all CPUs, softirq+irq+NAPI %", |r| {
        let all = busy(r);
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }),
    ("backlog_dropped_per_second", "packets/s lost at full backlogs", |r| softnet(r, CpuCounter::SoftnetDropped)),
    ("squeezed_per_second", "softirq runs/s cut short", |r| softnet(r, CpuCounter::SoftnetSqueezed)),
    ("socket_dropped_per_second", "packets/s lost at sockets", |r| {
        Some(r.socket_drops.values().fold(0u64, |a, b| a.saturating_add(*b)) as f64 / r.seconds)
    }),
];

impl WindowComparison {
    /// Without a second window each figure has its `before` only.
    pub fn of(before: &Rates, after: Option<&Rates>) -> Self {
        let mut out = Self::default();
        let names: BTreeSet<&String> =
            before.links.keys().chain(after.into_iter().flat_map(|a| a.links.keys())).collect();
        for name in names {
            let one = |r: &Rates, f: fn(&One<'_>) -> Option<f64>| f(&One { link: r.links.get(name)?, rates: r });
            let figures = LINK.iter().map(|(key, what, f)| ComparedFigure {
                key,
                what,
                before: one(before, *f),
                after: after.and_then(|a| one(a, *f)),
            });
            out.links.insert(name.clone(), figures.collect());
        }
        let host =
            HOST.iter().map(|(key, what, f)| ComparedFigure { key, what, before: f(before), after: after.and_then(f) });
        out.host = host.collect();
        let load = |r: &Rates| r.links.values().map(|l| l.rx.pps).sum::<Option<f64>>();
        let (b, a) = (load(before), after.and_then(load));
        let what = "received packets/s of all interfaces together";
        out.load = Some(ComparedFigure { key: "rx_packets_per_second", what, before: b, after: a })
            .filter(|f| !before.links.is_empty() && f.before.is_some());
        for (when, r) in [("before", Some(before)), ("after", after)] {
            let Some(r) = r else { continue };
            for (name, l) in &r.links {
                if !l.reset.is_empty() {
                    let list = l.reset.join(", ");
                    out.notes
                        .push(format!("{name}: counters were reset in the \"{when}\" window and are omitted: {list}"));
                }
                if l.queues.iter().any(|q| q.mark == Some(crate::QueueMark::Reset)) {
                    out.notes.push(format!("{name}: counters of queues were reset in the \"{when}\" window"));
                }
            }
            for name in &r.gone {
                out.notes.push(format!("{name} disappeared in the \"{when}\" window"));
            }
            for name in &r.came {
                out.notes.push(format!("{name} appeared in the \"{when}\" window"));
            }
        }
        out
    }

    /// Whether the two windows had so different loads that most other differences may come from that.
    pub fn loads_differ(&self) -> bool {
        match &self.load {
            Some(ComparedFigure { before: Some(b), after: Some(a), .. }) => (a - b).abs() > 0.1 * b.max(*a),
            _ => false,
        }
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
