//! Converts counters of the host to series. This module does no I/O.

use std::collections::BTreeMap;

use ringwise_model::{Counter as _, CpuCounter, CpuCounts, CpuId, IrqId, QueueCounter};
use ringwise_observe::{Counters, INTERRUPTS, Layout, LinkCounters, Source, Wiring, kind_of};

use crate::keep::{Keeper, Raw};
use crate::page::{Page, Value, labels};
use crate::table::{self as t, MetricFamily};

/// Counters of an interface: metric, direction, place, and the kernel's name.
const LINK: &[(&MetricFamily, &str, &str, &str)] = &[
    (&t::PACKETS, "rx", "", "rx_packets"),
    (&t::PACKETS, "tx", "", "tx_packets"),
    (&t::BYTES, "rx", "", "rx_bytes"),
    (&t::BYTES, "tx", "", "tx_bytes"),
    (&t::DROPS, "rx", "nic", "rx_missed_errors"),
    (&t::DROPS, "rx", "stack", "rx_dropped"),
    (&t::DROPS, "tx", "driver", "tx_dropped"),
    (&t::DROPS, "tx", "qdisc", "qdisc_drops"),
    (&t::ERRORS, "rx", "", "rx_errors"),
    (&t::ERRORS, "tx", "", "tx_errors"),
    (&t::PAUSE, "rx", "", "rx_pause"),
    (&t::PAUSE, "tx", "", "tx_pause"),
    (&t::CARRIER, "", "", "carrier_changes"),
];

/// Counters of a queue. The first one that exists is used.
const QUEUE: &[(&MetricFamily, &[QueueCounter])] = &[
    (&t::Q_PACKETS, &[QueueCounter::Packets]),
    (&t::Q_BYTES, &[QueueCounter::Bytes]),
    (&t::Q_DROPS, &QueueCounter::LOST),
    (&t::Q_ALLOC, &[QueueCounter::AllocFail]),
    (&t::Q_QDISC, &[QueueCounter::QdiscDrops]),
    (&t::Q_TIMEOUTS, &[QueueCounter::Timeouts]),
];

const QUEUE_NOW: &[(&MetricFamily, QueueCounter)] =
    &[(&t::Q_LIMIT, QueueCounter::BqlLimit), (&t::Q_INFLIGHT, QueueCounter::BqlInflight)];

const SOFTNET: &[(&MetricFamily, CpuCounter)] = &[
    (&t::SOFT_PACKETS, CpuCounter::SoftnetProcessed),
    (&t::SOFT_DROPS, CpuCounter::SoftnetDropped),
    (&t::SOFT_SQUEEZED, CpuCounter::SoftnetSqueezed),
    (&t::SOFT_RPS, CpuCounter::SoftnetRps),
    (&t::SOFT_LIMIT, CpuCounter::SoftnetFlowLimit),
];

/// The names are the values of the label `mode` as well.
const MODES: [CpuCounter; 5] =
    [CpuCounter::Softirq, CpuCounter::Irq, CpuCounter::Steal, CpuCounter::Iowait, CpuCounter::Idle];

/// The page that is filled, and the totals of earlier pages.
struct Fill<'a> {
    page: &'a mut Page,
    keep: &'a mut Keeper,
}

impl Fill<'_> {
    /// Adds a counter. `of`: its device, or empty.
    fn count(&mut self, f: &MetricFamily, of: &str, list: &[(&str, &str)], raw: Raw, to: fn(u64) -> Value) {
        let text = labels(list);
        let total = self.keep.total(&format!("{}{text}", f.name), of, raw);
        let group = list.first().map(|l| l.1.to_string()).unwrap_or_default();
        self.page.put(f, group, text, to(total));
    }
}

/// Adds all counters. Call [`Keeper::begin`] before.
pub fn counters(page: &mut Page, keep: &mut Keeper, layout: &Layout, c: &Counters) {
    let mut fill = Fill { page, keep };
    let none = Wiring::default();
    for name in &c.silent {
        fill.page.add(&t::ANSWERS, &[("device", name)], Value::Int(0));
    }
    for (name, l) in &c.links {
        fill.page.add(&t::ANSWERS, &[("device", name)], Value::Int(1));
        let wiring = layout.links.get(name).unwrap_or(&none);
        device(&mut fill, name, wiring, l);
        queues(&mut fill, name, wiring, l, layout);
        interrupts(&mut fill, name, wiring, l, layout, &c.irqs);
    }
    for (name, n) in &c.host {
        let raw = Raw { kind: kind_of(name), owner: 0, teller: 0, n: *n };
        fill.count(&t::SOCKETS, "", &[("reason", name)], raw, Value::Int);
    }
    for (id, c) in &c.cpus {
        cpu(&mut fill, *id, &node_of(layout, *id), &c.counts);
    }
}

fn node_of(layout: &Layout, cpu: CpuId) -> String {
    layout.nodes.get(&cpu).map(ToString::to_string).unwrap_or_default()
}

fn device(fill: &mut Fill, name: &str, wiring: &Wiring, l: &LinkCounters) {
    let node = wiring.node.map(|n| n.to_string()).unwrap_or_default();
    let source = match l.source {
        Source::Qstats => "qstats",
        Source::Ethtool => "ethtool",
        Source::Device => "device",
        Source::Nothing => "",
    };
    let driver = wiring.driver.as_deref().unwrap_or_default();
    let list = [("device", name), ("driver", driver), ("node", &node), ("queue_source", source)];
    fill.page.add(&t::DEVICE, &list, Value::Int(1));
    if let Some(mbps) = wiring.speed_mbps {
        fill.page.add(&t::SPEED, &[("device", name)], Value::Int(u64::from(mbps) * 125_000));
    }
    for (family, direction, place, counter) in LINK {
        let Some(n) = l.counts.get(*counter) else { continue };
        let raw = Raw { kind: kind_of(counter), owner: l.ifindex.into(), teller: 0, n: *n };
        fill.count(family, name, &[("device", name), ("direction", direction), ("place", place)], raw, Value::Int);
    }
}

fn queues(fill: &mut Fill, name: &str, wiring: &Wiring, l: &LinkCounters, layout: &Layout) {
    for (direction, wired, counted) in [("rx", &wiring.rx, &l.rx), ("tx", &wiring.tx, &l.tx)] {
        for (id, irq) in wired {
            let goes = irq.and_then(|i| wiring.goes_to.get(&i)).filter(|c| c.len() == 1);
            let cpu = goes.and_then(|c| c.first());
            let node = cpu.map(|c| node_of(layout, c)).unwrap_or_default();
            let (id, cpu) = (id.to_string(), cpu.map(|c| c.to_string()).unwrap_or_default());
            let list = [("device", name), ("queue", &id), ("direction", direction), ("cpu", &cpu), ("node", &node)];
            fill.page.add(&t::QUEUE, &list, Value::Int(1));
        }
        for (id, counts) in counted {
            let id = id.to_string();
            let list = [("device", name), ("queue", id.as_str()), ("direction", direction)];
            for (family, counters) in QUEUE {
                let Some((c, n)) = counters.iter().find_map(|c| Some((c, counts.get(*c)?))) else { continue };
                let raw = Raw { kind: c.kind(), owner: l.ifindex.into(), teller: l.source as u8, n };
                fill.count(family, name, &list, raw, Value::Int);
            }
            for (family, gauge) in QUEUE_NOW {
                if let Some(n) = counts.get(*gauge) {
                    fill.page.add(family, &list, Value::Int(n));
                }
            }
        }
    }
}

/// Adds the interrupts of each vector. A vector that serves several queues appears once.
fn interrupts(
    fill: &mut Fill,
    name: &str,
    wiring: &Wiring,
    l: &LinkCounters,
    layout: &Layout,
    irqs: &BTreeMap<IrqId, BTreeMap<CpuId, u64>>,
) {
    let mut of: BTreeMap<IrqId, (Vec<u32>, bool, bool)> = BTreeMap::new();
    for (rx, wired) in [(true, &wiring.rx), (false, &wiring.tx)] {
        for (id, irq) in wired {
            let Some(irq) = irq else { continue };
            let (ids, has_rx, has_tx) = of.entry(*irq).or_default();
            if !ids.contains(id) {
                ids.push(*id);
            }
            *has_rx |= rx;
            *has_tx |= !rx;
        }
    }
    for (irq, (mut ids, rx, tx)) in of {
        ids.sort();
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let ids = ids.join(",");
        let direction = match (rx, tx) {
            (true, true) => "rxtx",
            (true, false) => "rx",
            _ => "tx",
        };
        for (cpu, n) in irqs.get(&irq).into_iter().flatten() {
            let (node, cpu) = (node_of(layout, *cpu), cpu.to_string());
            let list = [("device", name), ("queue", &ids), ("direction", direction), ("cpu", &cpu), ("node", &node)];
            let owner = u64::from(l.ifindex) << 32 | u64::from(irq.0);
            fill.count(&t::Q_INTERRUPTS, name, &list, Raw { kind: INTERRUPTS, owner, teller: 0, n: *n }, Value::Int);
        }
    }
}

fn cpu(fill: &mut Fill, id: CpuId, node: &str, counts: &CpuCounts) {
    let id = id.to_string();
    let raw = |counter: CpuCounter, n| Raw { kind: counter.kind(), owner: 0, teller: 0, n };
    for mode in MODES {
        if let Some(n) = counts.get(mode) {
            let list = [("cpu", id.as_str()), ("node", node), ("mode", mode.name())];
            // The unit is USER_HZ, which is 100 on all supported architectures.
            fill.count(&t::CPU, "", &list, raw(mode, n), Value::Hundredths);
        }
    }
    let list = [("cpu", id.as_str()), ("node", node)];
    if let Some(ns) = counts.get(CpuCounter::KsoftirqdNs) {
        let raw = raw(CpuCounter::KsoftirqdNs, ns);
        fill.count(&t::KSOFTIRQD, "", &list, raw, |ns| Value::Num(ns as f64 / 1e9));
    }
    for (family, counter) in SOFTNET {
        if let Some(n) = counts.get(*counter) {
            fill.count(family, "", &list, raw(*counter, n), Value::Int);
        }
    }
    if let Some(n) = counts.get(CpuCounter::SoftnetBacklog) {
        fill.page.add(&t::BACKLOG, &list, Value::Int(n));
    }
}
