//! Shows where packets are lost, and which CPU, interrupt and queue limit the throughput. Pure.

use ringwise_model::{CpuCounter, CpuId, Dir, IrqId, NodeId};

use crate::queues::QueueRates;
use crate::rates::{CpuRates, LinkRates, Rates};

/// Losses, the busiest CPU and full links of one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bottleneck {
    /// The place with most packets first. Empty: no packets were lost.
    pub lost: Vec<PacketLoss>,
    /// The busiest CPU; `None` where the kernel does not report the times of CPUs.
    pub busiest: Option<Busiest>,
    /// Directions whose link is full.
    pub full: Vec<FullLink>,
}

/// Packets that were lost at one place during the interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketLoss {
    /// Where they were lost.
    pub place: BottleneckPlace,
    /// Never 0.
    pub packets: u64,
}

/// Where packets can be lost. The `String` is the name of the interface, unless noted otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BottleneckPlace {
    /// The NIC had no free descriptor. The number is the queue that lost most, if the driver counts losses by queue.
    Ring(String, Option<u32>),
    /// Driver or stack. Losses of a full backlog are not listed a second time here.
    Stack(String),
    /// The driver or the device dropped packets to send (`tx_dropped`).
    Tx(String),
    /// Queueing disciplines dropped packets to send.
    Qdisc(String),
    /// There was no memory for a buffer. It depends on the driver whether the packet is lost, too.
    NoBuffer(String),
    /// The backlog of this CPU was full.
    Backlog(CpuId),
    /// The flow limit of this CPU's backlog dropped packets of a heavy flow (`net.core.flow_limit_cpu_bitmap`).
    FlowLimit(CpuId),
    /// Sockets of the host, by the kernel's name of the counter (`Udp:RcvbufErrors`).
    Socket(String),
}

/// The CPU that spent most of the interval in softirqs and interrupts.
#[derive(Debug, Clone, PartialEq)]
pub struct Busiest {
    /// With several equally busy CPUs, the one that processed most packets, then the lowest number.
    pub cpu: CpuId,
    /// `None` where the node is not known.
    pub node: Option<NodeId>,
    /// Share of the time in softirqs and interrupts.
    pub busy_percent: f64,
    /// `busy_percent` as a grade.
    pub load: CpuLoadLevel,
    /// Among the queues whose interrupts it handles, the one with most packets.
    pub queue: Option<HotQueue>,
    /// Other CPUs steer packets to it (RPS).
    pub steered: bool,
    /// Times its softirq stopped with packets left, because budget or time was used up (`time_squeeze`).
    pub squeezed: u64,
}

/// The queue that keeps a CPU busy.
#[derive(Debug, Clone, PartialEq)]
pub struct HotQueue {
    /// Name of the interface.
    pub link: String,
    /// Whether it is a receive or a transmit queue.
    pub dir: Dir,
    /// Number of the queue within its direction.
    pub queue: u32,
    /// Interrupt of its vector; `None` where it is not known.
    pub irq: Option<IrqId>,
    /// Other queues of the same interface and direction whose interrupts it handles.
    pub others: usize,
    /// Share of all these queues together in the packets of the direction, in per cent.
    pub share_percent: Option<f64>,
    /// The CPU is on another node than the device.
    pub far: bool,
}

/// How busy a CPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuLoadLevel {
    /// At its limit.
    Full,
    /// At least 60 %.
    High,
    /// Below 60 %.
    Fine,
}

/// One direction of an interface that is near its line rate (95 % or more).
#[derive(Debug, Clone, PartialEq)]
pub struct FullLink {
    /// Name of the interface.
    pub link: String,
    /// The direction that is full.
    pub dir: Dir,
    /// Share of the line rate in use.
    pub percent: f64,
    /// `percent` is the share of the packets of 64 bytes that the line rate allows; otherwise the share of the bits.
    pub by_packets: bool,
}

const FULL: f64 = 90.0;
const HIGH: f64 = 60.0;
const LINE: f64 = 95.0;

impl CpuLoadLevel {
    /// The grade of a share of time, in per cent.
    pub fn of(busy_percent: f64) -> Self {
        match busy_percent {
            n if n >= FULL => Self::Full,
            n if n >= HIGH => Self::High,
            _ => Self::Fine,
        }
    }
}

impl Bottleneck {
    /// Evaluates one interval.
    pub fn of(r: &Rates) -> Self {
        Self { lost: lost(r), busiest: busiest(r), full: full(r) }
    }
}

fn lost(r: &Rates) -> Vec<PacketLoss> {
    let mut out = Vec::new();
    let mut add = |place: BottleneckPlace, n: Option<u64>| {
        if let Some(packets) = n.filter(|n| *n > 0) {
            out.push(PacketLoss { place, packets });
        }
    };
    let count = |counter| -> u64 { r.cpus.values().filter_map(|c| c.counts.get(counter)).sum() };
    let stack: u64 = r.links.values().filter_map(|l| l.drops.stack).sum();
    // The kernel counts losses of a full backlog at the interface, too. The backlogs may also have dropped packets of
    // interfaces that are not watched.
    let told = stack > 0 && stack <= count(CpuCounter::SoftnetDropped) + count(CpuCounter::SoftnetFlowLimit);
    for (name, l) in &r.links {
        let d = &l.drops;
        add(BottleneckPlace::Ring(name.clone(), worst(l)), d.nic);
        add(BottleneckPlace::Stack(name.clone()), d.stack.filter(|_| !told));
        add(BottleneckPlace::Tx(name.clone()), d.tx);
        add(BottleneckPlace::Qdisc(name.clone()), d.qdisc);
        add(BottleneckPlace::NoBuffer(name.clone()), d.no_buffer);
    }
    for (cpu, c) in &r.cpus {
        add(BottleneckPlace::Backlog(*cpu), c.counts.get(CpuCounter::SoftnetDropped));
        add(BottleneckPlace::FlowLimit(*cpu), c.counts.get(CpuCounter::SoftnetFlowLimit));
    }
    for (name, n) in &r.socket_drops {
        add(BottleneckPlace::Socket(name.clone()), Some(*n));
    }
    out.sort_by_key(|l| (matches!(l.place, BottleneckPlace::NoBuffer(_)), std::cmp::Reverse(l.packets)));
    out
}

/// The receive queue that lost most.
fn worst(l: &LinkRates) -> Option<u32> {
    let lossy = l.queues.iter().filter(|q| q.dir == Dir::Rx && q.drops.is_some_and(|n| n > 0));
    lossy.max_by_key(|q| (q.drops, std::cmp::Reverse(q.queue))).map(|q| q.queue)
}

fn busiest(r: &Rates) -> Option<Busiest> {
    let known = r.cpus.iter().filter_map(|(id, c)| Some((*id, c, c.busy_percent()?)));
    let of = |c: &CpuRates, counter| c.counts.get(counter).unwrap_or(0);
    // Among equally busy CPUs, prefer the one that processed most packets.
    let rank = |c: &CpuRates, busy: f64| (busy.round() as u64, of(c, CpuCounter::SoftnetProcessed));
    let (cpu, c, busy) = known.max_by_key(|(id, c, busy)| (rank(c, *busy), std::cmp::Reverse(*id)))?;
    Some(Busiest {
        cpu,
        node: c.node,
        busy_percent: busy,
        load: CpuLoadLevel::of(busy),
        queue: hot(r, cpu),
        steered: of(c, CpuCounter::SoftnetRps) > 0,
        squeezed: of(c, CpuCounter::SoftnetSqueezed),
    })
}

fn hot(r: &Rates, cpu: CpuId) -> Option<HotQueue> {
    let all = r.links.iter().flat_map(|(name, l)| l.queues.iter().map(move |q| (name, l, q)));
    let here = all.filter(|(_, _, q)| q.cpu == Some(cpu));
    let load = |q: &QueueRates| (q.packets.unwrap_or(0), q.interrupts.unwrap_or(0), q.dir == Dir::Rx);
    let (name, l, q) = here.max_by_key(|(_, _, q)| (load(q), std::cmp::Reverse(q.queue)))?;
    // A queue without packets and interrupts is not the reason.
    if load(q).0 == 0 && load(q).1 == 0 {
        return None;
    }
    let same = |o: &&QueueRates| o.dir == q.dir && o.cpu == q.cpu;
    let shares: Vec<f64> = l.queues.iter().filter(same).filter_map(|o| o.share_percent).collect();
    Some(HotQueue {
        link: name.clone(),
        dir: q.dir,
        queue: q.queue,
        irq: q.irq,
        others: l.queues.iter().filter(same).count() - 1,
        share_percent: (!shares.is_empty()).then(|| shares.iter().sum()),
        far: l.node.zip(q.node).is_some_and(|(a, b)| a != b),
    })
}

fn full(r: &Rates) -> Vec<FullLink> {
    let mut out = Vec::new();
    for (name, l) in &r.links {
        for (dir, f) in [(Dir::Rx, &l.rx), (Dir::Tx, &l.tx)] {
            let limits = [(f.line_packets_percent, true), (f.line_percent, false)];
            let most = limits.iter().filter_map(|(n, by)| Some((n.filter(|n| *n >= LINE)?, *by)));
            if let Some((percent, by_packets)) = most.max_by(|a, b| a.0.total_cmp(&b.0)) {
                out.push(FullLink { link: name.clone(), dir, percent, by_packets });
            }
        }
    }
    out
}

#[cfg(test)]
#[path = "bottleneck_tests.rs"]
mod tests;
