//! Computes what happened between two [`Counters`]. Pure.
//!
//! A counter that went backwards gets a mark instead of a number. So does everything that appeared or disappeared in
//! between.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{Counter as _, CounterKind, CpuCounter, CpuCounts, CpuId, IrqId, NodeId};

use crate::counters::{Counters, Counts, CpuSample, LinkCounters, Source, grown, grown_by_name, increase};
use crate::idle;
use crate::interrupts::{self, Interrupts};
use crate::layout::{Layout, Wiring};
use crate::queues::{Balance, QueueRates, queues};

/// The rates of one interval, between two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// Length of the interval; greater than 0.
    pub seconds: f64,
    /// Time of the second sample, in seconds since 1970.
    pub unix_time: u64,
    /// By name: interfaces that are in both samples with the same index.
    pub links: BTreeMap<String, LinkRates>,
    /// Interfaces that are in the first sample only.
    pub gone: Vec<String>,
    /// Interfaces that are new, or were created again, in the second sample.
    pub came: Vec<String>,
    /// Interfaces that exist and did not answer in time.
    pub silent: Vec<String>,
    /// By vector. `None`: the increase is not known, because the vector is new or its number was freed and reused.
    pub irqs: BTreeMap<IrqId, Option<Interrupts>>,
    /// CPUs that are online in both samples.
    pub cpus: BTreeMap<CpuId, CpuRates>,
    /// CPUs that are online in the first sample only.
    pub cpus_gone: Vec<CpuId>,
    /// CPUs that are online in the second sample only.
    pub cpus_came: Vec<CpuId>,
    /// Packets that sockets of the host lost, by the kernel's names; counters that did not grow are left out.
    pub socket_drops: Counts,
    /// Kinds of traffic, by the kernel's names (`Udp:InDatagrams`).
    pub traffic: Counts,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkRates {
    /// Name of the driver; `None`: not known.
    pub driver: Option<String>,
    /// Node of the device; `None`: not known, which is not node 0.
    pub node: Option<NodeId>,
    /// Mb/s; `None` without a link.
    pub speed_mbps: Option<u32>,
    /// Receiving.
    pub rx: DirectionRates,
    /// Sending.
    pub tx: DirectionRates,
    /// Packets lost in the interval.
    pub drops: Drops,
    /// Increase of every counter of the interface.
    pub counts: Counts,
    /// Counters that went backwards; their increase is not known.
    pub reset: Vec<String>,
    /// Where the counters of the queues come from.
    pub source: Source,
    /// Receive queues first, each direction by number.
    pub queues: Vec<QueueRates>,
    /// How evenly the receive queues share the packets; `None`: no packet was counted.
    pub rx_balance: Option<Balance>,
    /// The same for transmit queues.
    pub tx_balance: Option<Balance>,
}

/// One direction of an interface. `None`: not known, because a counter was reset or is not reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DirectionRates {
    /// Packets in the interval.
    pub packets: Option<u64>,
    /// Bytes in the interval, as the kernel counts them.
    pub bytes: Option<u64>,
    /// Packets per second.
    pub pps: Option<f64>,
    /// 10^6 bit/s of frames as the kernel counts them, without preamble, gap and checksum.
    pub mbps: Option<f64>,
    /// Bytes per packet; `None` also without packets.
    pub avg_bytes: Option<f64>,
    /// Share of the line rate in bits, with preamble, gap and checksum.
    pub line_percent: Option<f64>,
    /// Share of the packets of 64 bytes that the line rate allows.
    pub line_packets_percent: Option<f64>,
}

/// Packets lost in between, by place. `None`: not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// The NIC had no free descriptor (`rx_missed_errors`).
    pub nic: Option<u64>,
    /// Times that no memory for a buffer was available, of all queues together.
    pub no_buffer: Option<u64>,
    /// The driver or the stack dropped them (`rx_dropped`); this includes losses of a full backlog.
    pub stack: Option<u64>,
    /// The driver or the device dropped packets to send (`tx_dropped`).
    pub tx: Option<u64>,
    /// Queueing disciplines dropped them; `None` also for an interface without one.
    pub qdisc: Option<u64>,
}

impl Drops {
    /// All losses but `no_buffer`: it depends on the driver whether such a packet is lost, or only the buffer arrives
    /// later. An interface without a queueing discipline loses nothing there.
    pub fn total(&self) -> Option<u64> {
        let all = [self.nic?, self.stack?, self.tx?, self.qdisc.unwrap_or(0)];
        Some(all.into_iter().fold(0, u64::saturating_add))
    }
}

/// One CPU. Shares are of the time, in per cent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuRates {
    /// Node of the CPU; `None`: not known.
    pub node: Option<NodeId>,
    /// In softirqs, those of ksoftirqd included.
    pub softirq_percent: Option<f64>,
    /// In interrupt handlers.
    pub irq_percent: Option<f64>,
    /// Taken by the hypervisor for other guests.
    pub steal_percent: Option<f64>,
    /// Idle, waiting for I/O included.
    pub idle_percent: Option<f64>,
    /// In its ksoftirqd; a part of `softirq_percent`.
    pub ksoftirqd_percent: Option<f64>,
    /// In the NAPI threads of watched queues that may run on this CPU only. `None`: the time of one of them, or which threads there are, is
    /// unknown or not recorded.
    pub napi_threads_percent: Option<f64>,
    /// Share of the time in each of its idle states, shallow ones first; a part of `idle_percent`. Empty if they were
    /// not read.
    pub idle_states: Vec<(String, f64)>,
    /// Interrupts of the watched queues.
    pub interrupts: u64,
    /// [`CpuCounter::SOFTNET`]: increases.
    pub counts: CpuCounts,
    /// Packets in its backlog at the end of the interval.
    pub backlog: Option<u64>,
    /// Counters that went backwards.
    pub reset: Vec<String>,
}

impl CpuRates {
    /// In softirqs and interrupts together, with the time of NAPI threads where it is known; `None` where one of the first two is not known.
    pub fn busy_percent(&self) -> Option<f64> {
        Some((self.softirq_percent? + self.irq_percent? + self.napi_threads_percent.unwrap_or(0.0)).min(100.0))
    }
}

/// Bytes on the wire in addition to the frame: checksum 4, preamble 8, gap 12. A frame has at least 60 bytes.
const OVERHEAD: f64 = 24.0;
const SHORTEST: f64 = 60.0;

impl Rates {
    /// `None`: the second sample is not later than the first, for example after a reboot or with two recordings in one
    /// file.
    pub fn between(layout: &Layout, first: &Counters, second: &Counters) -> Option<Self> {
        let us = second.at_us.checked_sub(first.at_us).filter(|us| *us > 0)?;
        let seconds = us as f64 / 1e6;
        let irqs = interrupts::between(first, second);
        let mut out = Self { seconds, unix_time: second.unix_time, ..Self::default() };
        let none = Wiring::default();
        for (name, after) in &second.links {
            // A device that was created again under the same name has counters of its own.
            let Some(before) = first.links.get(name).filter(|b| b.ifindex == after.ifindex) else {
                // An interface that answers again has rates from the next interval on.
                if !first.silent.contains(name) {
                    out.came.push(name.clone());
                }
                continue;
            };
            let wiring = layout.links.get(name).unwrap_or(&none);
            out.links.insert(name.clone(), link(wiring, layout, before, after, &irqs, seconds));
        }
        out.silent = second.silent.clone();
        let stays = |name: &&String| !out.links.contains_key(*name) && !out.silent.contains(name);
        out.gone = first.links.keys().filter(stays).cloned().collect();
        let mut by_cpu: BTreeMap<CpuId, u64> = BTreeMap::new();
        for (cpu, n) in irqs.values().flatten().flat_map(|i| &i.0) {
            *by_cpu.entry(*cpu).or_default() += n;
        }
        let threads = threads_by_cpu(layout, first, second);
        for (cpu, after) in &second.cpus {
            match first.cpus.get(cpu) {
                Some(before) => {
                    let mut c = self::cpu(before, after, seconds);
                    let ns = threads.as_ref().map(|t| t.get(cpu).copied().unwrap_or(Some(0.0)));
                    c.napi_threads_percent = ns.flatten().map(|ns| (ns / seconds / 1e7).min(100.0));
                    c.node = layout.nodes.get(cpu).copied();
                    c.interrupts = by_cpu.get(cpu).copied().unwrap_or(0);
                    out.cpus.insert(*cpu, c);
                }
                None => out.cpus_came.push(*cpu),
            }
        }
        out.cpus_gone = first.cpus.keys().filter(|c| !second.cpus.contains_key(c)).copied().collect();
        out.irqs = irqs;
        let host = grown_by_name(&first.host, &second.host).0;
        for (name, n) in host {
            let drop = ringwise_kfmt::snmp::DROPS.contains(&name.as_str());
            if !drop {
                out.traffic.insert(name, n);
            } else if n > 0 {
                out.socket_drops.insert(name, n);
            }
        }
        Some(out)
    }

    /// The busiest CPU among those that took interrupts of this interface.
    pub fn busiest(&self, link: &LinkRates) -> Option<(CpuId, f64)> {
        let of_link = link.queues.iter().filter_map(|q| q.cpu);
        let mut busy: Vec<(CpuId, f64)> =
            of_link.filter_map(|c| Some((c, self.cpus.get(&c)?.busy_percent()?))).collect();
        busy.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        busy.first().copied()
    }
}

/// Nanoseconds of the NAPI threads of each CPU that has some. A thread that may run on several CPUs is not counted. `None`: the threads of
/// an interface are unknown.
fn threads_by_cpu(layout: &Layout, first: &Counters, second: &Counters) -> Option<BTreeMap<CpuId, Option<f64>>> {
    let mut out: BTreeMap<CpuId, Option<f64>> = BTreeMap::new();
    let mut pinned: BTreeSet<(u32, CpuId)> = BTreeSet::new();
    for w in layout.links.values() {
        // A thread may serve several queues.
        pinned.extend(w.threads.as_ref()?.values().filter_map(|t| Some((t.pid, t.cpu?))));
    }
    for (pid, cpu) in pinned {
        let ran = || second.threads_ns.get(&pid)?.checked_sub(*first.threads_ns.get(&pid)?);
        let sum = out.entry(cpu).or_insert(Some(0.0));
        *sum = sum.zip(ran()).map(|(sum, ns)| sum + ns as f64);
    }
    Some(out)
}

fn link(
    wiring: &Wiring,
    layout: &Layout,
    before: &LinkCounters,
    after: &LinkCounters,
    irqs: &BTreeMap<IrqId, Option<Interrupts>>,
    seconds: f64,
) -> LinkRates {
    let (counts, reset) = grown_by_name(&before.counts, &after.counts);
    let of = |name: &str| counts.get(name).copied();
    let flow = |packets, bytes| flow(of(packets), of(bytes), seconds, wiring.speed_mbps);
    // Counters of different sources cannot be compared.
    let empty = LinkCounters::default();
    let before = if before.source == after.source { before } else { &empty };
    let (queues, rx_balance, tx_balance) = queues(wiring, layout, before, after, irqs);
    let failed = queues.iter().filter_map(|q| q.alloc_fail);
    let drops = Drops {
        nic: of("rx_missed_errors"),
        no_buffer: failed.reduce(u64::saturating_add),
        stack: of("rx_dropped"),
        tx: of("tx_dropped"),
        qdisc: of("qdisc_drops"),
    };
    LinkRates {
        driver: wiring.driver.clone(),
        node: wiring.node,
        speed_mbps: wiring.speed_mbps,
        rx: flow("rx_packets", "rx_bytes"),
        tx: flow("tx_packets", "tx_bytes"),
        drops,
        counts,
        reset,
        source: after.source,
        queues,
        rx_balance,
        tx_balance,
    }
}

fn flow(packets: Option<u64>, bytes: Option<u64>, seconds: f64, speed_mbps: Option<u32>) -> DirectionRates {
    let pps = packets.map(|n| n as f64 / seconds);
    let avg_bytes = packets.zip(bytes).filter(|(p, _)| *p > 0).map(|(p, b)| b as f64 / p as f64);
    let bits = speed_mbps.filter(|s| *s > 0).map(|s| f64::from(s) * 1e6);
    let on_wire = match (packets, bytes) {
        (Some(p), Some(b)) => Some((b as f64).max(p as f64 * SHORTEST) + p as f64 * OVERHEAD),
        _ => None,
    };
    DirectionRates {
        packets,
        bytes,
        pps,
        mbps: bytes.map(|n| n as f64 * 8.0 / seconds / 1e6),
        avg_bytes,
        line_percent: on_wire.zip(bits).map(|(w, bits)| w * 8.0 / seconds / bits * 100.0),
        line_packets_percent: pps.zip(bits).map(|(p, bits)| p * (SHORTEST + OVERHEAD) * 8.0 / bits * 100.0),
    }
}

fn cpu(before: &CpuSample, after: &CpuSample, seconds: f64) -> CpuRates {
    let (counts, backwards) = grown(&before.counts, &after.counts);
    let ticks: Option<u64> = ringwise_kfmt::procstat::COLUMNS.iter().map(|c| counts.get(*c)).sum();
    let share = |counter| {
        let all = ticks.filter(|t| *t > 0)?;
        Some(counts.get(counter)? as f64 * 100.0 / all as f64)
    };
    let mut reset = Vec::new();
    let mut idle_states = Vec::new();
    for (state, a) in &after.idle_us {
        let Some((_, b)) = before.idle_us.iter().find(|(s, _)| s == state) else { continue };
        match increase(CounterKind::Bits64, *b, *a) {
            Some(us) => idle_states.push((idle::name(state), (us as f64 / seconds / 1e4).min(100.0))),
            None => reset.push(format!("idle_us:{state}")),
        }
    }
    reset.extend(backwards.iter().map(|c| c.name().to_string()));
    let ksoftirqd = counts.get(CpuCounter::KsoftirqdNs);
    CpuRates {
        node: None,
        softirq_percent: share(CpuCounter::Softirq),
        irq_percent: share(CpuCounter::Irq),
        steal_percent: share(CpuCounter::Steal),
        idle_percent: share(CpuCounter::Idle).zip(share(CpuCounter::Iowait)).map(|(a, b)| a + b),
        ksoftirqd_percent: ksoftirqd.map(|ns| (ns as f64 / seconds / 1e7).min(100.0)),
        // The layout knows the threads; see `threads_by_cpu`.
        napi_threads_percent: None,
        idle_states,
        interrupts: 0,
        counts: CpuCounter::SOFTNET.into_iter().filter_map(|c| Some((c, counts.get(c)?))).collect(),
        backlog: after.counts.get(CpuCounter::SoftnetBacklog),
        reset,
    }
}

#[cfg(test)]
#[path = "rates_tests.rs"]
mod tests;
