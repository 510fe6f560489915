//! Rates of single queues, and how evenly they share the packets. Pure.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, Dir, IrqId, NodeId, PoolUse, QueueCounter, QueueCounts};

use crate::counters::{LinkCounters, grown};
use crate::interrupts::Interrupts;
use crate::layout::{Layout, Wiring};

type Irqs = BTreeMap<IrqId, Option<Interrupts>>;

/// One queue in one direction. `None`: not known, or the driver does not count it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueRates {
    /// Direction of the queue.
    pub dir: Dir,
    /// Number of the queue within its direction.
    pub queue: u32,
    /// Packets in the interval.
    pub packets: Option<u64>,
    /// Bytes in the interval.
    pub bytes: Option<u64>,
    /// Packets lost in the interval: the first counter of [`QueueCounter::LOST`] that the driver has.
    pub drops: Option<u64>,
    /// How often the driver got no memory for a buffer.
    pub alloc_fail: Option<u64>,
    /// Share of the packets of all queues of its direction, in per cent.
    pub share_percent: Option<f64>,
    /// Interrupt of its vector.
    pub irq: Option<IrqId>,
    /// Interrupts of its vector.
    pub interrupts: Option<u64>,
    /// Packets of all queues of the vector in both directions, divided by its interrupts.
    pub packets_per_interrupt: Option<f64>,
    /// The CPU that handled most interrupts; without interrupts, the CPU where they are delivered.
    pub cpu: Option<CpuId>,
    /// Every CPU that handled an interrupt of its vector.
    pub cpus: CpuSet,
    /// Node of `cpu`.
    pub node: Option<NodeId>,
    /// What is special about the queue in this interval; `None`: nothing.
    pub mark: Option<QueueMark>,
    /// Byte queue limit at the end of the interval.
    pub bql_limit: Option<u64>,
    /// Bytes handed to the device and not completed yet, at the end of the interval.
    pub bql_inflight: Option<u64>,
    /// How often the watchdog found it stuck.
    pub timeouts: Option<u64>,
    /// Packets that its queueing discipline dropped.
    pub qdisc_drops: Option<u64>,
    /// What the page pool of its NAPI instance did.
    pub pool: Option<PoolUse>,
}

/// What is special about a queue in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueMark {
    /// It has more than one and a half times the mean.
    Hot,
    /// A counter went backwards, because the queue was created again.
    Reset,
    /// Only the second sample has it.
    Came,
    /// Only the first sample has it.
    Gone,
}

/// How evenly the queues of a direction share the packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// 1 is even.
    pub max_over_mean: f64,
    /// Standard deviation divided by the mean.
    pub variation: f64,
    /// The queue with most packets, if it is hot.
    pub hot: Option<u32>,
}

/// A queue is hot above this multiple of the mean, if it has enough packets that this is no accident.
const HOT: f64 = 1.5;
const ENOUGH: u64 = 100;

/// The rates of all queues: receive queues first, each direction by number.
pub(crate) fn queues(
    wiring: &Wiring,
    layout: &Layout,
    before: &LinkCounters,
    after: &LinkCounters,
    irqs: &Irqs,
) -> (Vec<QueueRates>, Option<Balance>, Option<Balance>) {
    let mut rx = direction(Dir::Rx, wiring, layout, (&before.rx, &after.rx), irqs);
    let mut tx = direction(Dir::Tx, wiring, layout, (&before.tx, &after.tx), irqs);
    let (rx_balance, tx_balance) = (balance(&mut rx), balance(&mut tx));
    rx.append(&mut tx);
    let mut by_vector: BTreeMap<IrqId, Option<u64>> = BTreeMap::new();
    for q in &rx {
        if let Some(irq) = q.irq {
            let sum = by_vector.entry(irq).or_insert(Some(0));
            *sum = sum.zip(q.packets).map(|(a, b)| a.saturating_add(b));
        }
    }
    for q in &mut rx {
        let packets = q.irq.and_then(|irq| by_vector[&irq]);
        let both = packets.zip(q.interrupts).filter(|(_, i)| *i > 0);
        q.packets_per_interrupt = both.map(|(p, i)| p as f64 / i as f64);
    }
    (rx, rx_balance, tx_balance)
}

fn direction(
    dir: Dir,
    wiring: &Wiring,
    layout: &Layout,
    (before, after): (&BTreeMap<u32, QueueCounts>, &BTreeMap<u32, QueueCounts>),
    irqs: &Irqs,
) -> Vec<QueueRates> {
    let wired = if dir == Dir::Rx { &wiring.rx } else { &wiring.tx };
    let all = wired.keys().chain(before.keys()).chain(after.keys());
    let mut ids: Vec<u32> = all.copied().collect();
    ids.sort();
    ids.dedup();
    let thread = |id: u32| wiring.threads.as_ref()?.get(&id).filter(|_| dir == Dir::Rx);
    let one = |id: u32| {
        let now = after.get(&id);
        let (counts, mark) = match (before.get(&id), now) {
            (Some(b), Some(a)) => {
                let (counts, reset) = grown(b, a);
                (counts, (!reset.is_empty()).then_some(QueueMark::Reset))
            }
            (None, Some(_)) => (QueueCounts::default(), (!before.is_empty()).then_some(QueueMark::Came)),
            (Some(_), None) => (QueueCounts::default(), (!after.is_empty()).then_some(QueueMark::Gone)),
            (None, None) => (QueueCounts::default(), None),
        };
        let irq = wired.get(&id).copied().flatten();
        let took = irq.and_then(|i| irqs.get(&i)?.as_ref());
        let aim = || wiring.goes_to.get(&irq?).filter(|c| c.len() == 1).and_then(CpuSet::first);
        // The interrupt only wakes the thread.
        let cpu = match thread(id) {
            Some(thread) => thread.cpu,
            None => took.and_then(Interrupts::most).or_else(aim),
        };
        QueueRates {
            dir,
            queue: id,
            packets: counts.get(QueueCounter::Packets),
            bytes: counts.get(QueueCounter::Bytes),
            drops: QueueCounter::LOST.into_iter().find_map(|c| counts.get(c)),
            alloc_fail: counts.get(QueueCounter::AllocFail),
            share_percent: None,
            irq,
            interrupts: took.map(Interrupts::total),
            packets_per_interrupt: None,
            cpu,
            cpus: took.map(Interrupts::cpus).unwrap_or_default(),
            node: cpu.and_then(|c| layout.nodes.get(&c).copied()),
            mark,
            bql_limit: now.and_then(|c| c.get(QueueCounter::BqlLimit)),
            bql_inflight: now.and_then(|c| c.get(QueueCounter::BqlInflight)),
            timeouts: counts.get(QueueCounter::Timeouts),
            qdisc_drops: counts.get(QueueCounter::QdiscDrops),
            pool: PoolUse::of(&counts),
        }
    };
    ids.into_iter().map(one).collect()
}

/// How evenly the queues with known packets share them. Also fills in their shares and marks the hot one.
fn balance(queues: &mut [QueueRates]) -> Option<Balance> {
    let known: Vec<f64> = queues.iter().filter_map(|q| q.packets).map(|n| n as f64).collect();
    let sum: u64 = queues.iter().filter_map(|q| q.packets).fold(0, u64::saturating_add);
    if sum == 0 {
        return None;
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let variance = known.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / known.len() as f64;
    let max_over_mean = known.iter().copied().fold(0.0, f64::max) / mean;
    for q in &mut *queues {
        q.share_percent = q.packets.map(|n| n as f64 * 100.0 / sum as f64);
    }
    let hottest = queues.iter_mut().max_by_key(|q| (q.packets, std::cmp::Reverse(q.queue)))?;
    let mut hot = None;
    if max_over_mean > HOT && sum >= ENOUGH {
        hot = Some(hottest.queue);
        hottest.mark.get_or_insert(QueueMark::Hot);
    }
    Some(Balance { max_over_mean, variation: variance.sqrt() / mean, hot })
}
