//! The traffic between two samples, as far as rules need it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ringwise_model::{BusyThread, CpuCounter, CpuCounts, CpuId, Dir, Fact, IrqId, PoolUse};

/// The traffic between two samples.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTraffic {
    /// Time between the samples.
    pub seconds: f64,
    /// By name of the interface.
    pub links: BTreeMap<String, LinkTraffic>,
    /// CPUs that were online in both samples.
    pub cpus: BTreeMap<CpuId, CpuTraffic>,
    /// Counters of protocols, by the kernel's names (`Udp:RcvbufErrors`): increases.
    pub protocols: BTreeMap<String, u64>,
    /// Busy threads of programs, the busiest one first.
    pub threads: Fact<Vec<BusyThread>>,
    /// Local addresses of the connections of the processes of these threads, by process ID.
    pub connections: Fact<BTreeMap<u32, BTreeSet<IpAddr>>>,
}

/// One interface: increases. `None`: not reported, or reset in between.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkTraffic {
    /// Packets received.
    pub rx_packets: Option<u64>,
    /// Packets sent.
    pub tx_packets: Option<u64>,
    /// The share of the link's bit rate in use, for the busier direction.
    pub line_percent: Option<f64>,
    /// Every counter by the kernel's name (`rx_missed_errors`, `qdisc_drops`).
    pub counts: BTreeMap<String, u64>,
    /// Buffers that could not be allocated, of all queues together.
    pub alloc_fail: Option<u64>,
    /// Receive and transmit queues.
    pub queues: Vec<QueueTraffic>,
    /// Page pools, by receive queue. Empty: the kernel or the driver does not count them.
    pub pools: BTreeMap<u32, PoolUse>,
    /// Packets of the busiest receive queue, divided by the mean of all receive queues.
    pub rx_max_over_mean: Option<f64>,
}

/// One queue: increases. `None`: not known.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueTraffic {
    /// Direction of the queue.
    pub dir: Dir,
    /// Number of the queue within its direction.
    pub queue: u32,
    /// Packets received or sent.
    pub packets: Option<u64>,
    /// Bytes received or sent.
    pub bytes: Option<u64>,
    /// Interrupt of the queue's vector.
    pub irq: Option<IrqId>,
    /// Interrupts that the vector raised.
    pub interrupts: Option<u64>,
    /// Packets of all queues of the vector, divided by its interrupts.
    pub packets_per_interrupt: Option<f64>,
    /// The CPU that handled most of these interrupts.
    pub cpu: Option<CpuId>,
    /// How often the kernel's watchdog found it stuck.
    pub timeouts: Option<u64>,
}

/// One CPU, in per cent of the time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuTraffic {
    /// In softirqs, those of ksoftirqd included.
    pub softirq: Option<f64>,
    /// In interrupt handlers.
    pub irq: Option<f64>,
    /// Taken by the hypervisor for other guests.
    pub steal: Option<f64>,
    /// In its ksoftirqd; a part of `softirq`.
    pub ksoftirqd: Option<f64>,
    /// Interrupts of queues: increase.
    pub interrupts: u64,
    /// `CpuCounter::SOFTNET`: increases.
    pub counts: CpuCounts,
}

impl Default for HostTraffic {
    fn default() -> Self {
        Self {
            seconds: 0.0,
            links: BTreeMap::new(),
            cpus: BTreeMap::new(),
            protocols: BTreeMap::new(),
            threads: Fact::not_requested("/proc/PID/task/TID/stat"),
            connections: Fact::not_requested("/proc/PID/fd"),
        }
    }
}

impl CpuTraffic {
    /// In softirqs and interrupts together, in per cent.
    pub fn busy(&self) -> Option<f64> {
        Some(self.softirq? + self.irq.unwrap_or(0.0))
    }
}

impl HostTraffic {
    /// An increase between the samples as a rate.
    pub fn per_second(&self, n: u64) -> f64 {
        if self.seconds > 0.0 { n as f64 / self.seconds } else { 0.0 }
    }

    /// The busiest CPU, and the mean of all, in per cent.
    pub fn busiest(&self) -> Option<(CpuId, f64, f64)> {
        let busy: Vec<(CpuId, f64)> = self.cpus.iter().filter_map(|(c, t)| Some((*c, t.busy()?))).collect();
        let mean = busy.iter().map(|(_, b)| b).sum::<f64>() / busy.len().max(1) as f64;
        let top = busy.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        Some((top.0, top.1, mean))
    }

    /// CPUs where this counter grew, and by how much.
    pub(crate) fn cpus_of(&self, counter: CpuCounter) -> Vec<(CpuId, u64)> {
        self.cpus.iter().filter_map(|(c, cpu)| Some((*c, cpu.counts.get(counter).filter(|n| *n > 0)?))).collect()
    }

    /// Increase of a counter of a protocol; 0 where it is not known.
    pub fn protocol(&self, name: &str) -> u64 {
        self.protocols.get(name).copied().unwrap_or(0)
    }

    /// Share of UDP among received IPv4 packets, in per cent. `None`: too few packets were received.
    pub(crate) fn udp_percent(&self) -> Option<f64> {
        // Datagrams count as received, too, if no socket wanted them or its buffer was full.
        let udp: u64 = ["Udp:InDatagrams", "Udp:NoPorts", "Udp:InErrors"].map(|n| self.protocol(n)).iter().sum();
        let all = self.protocol("Ip:InReceives");
        (self.per_second(all) > 100.0).then(|| udp as f64 * 100.0 / all as f64)
    }
}

impl LinkTraffic {
    /// Increase of a counter of the interface; 0 where it is not known.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// The queues of one direction.
    pub fn of(&self, dir: Dir) -> impl Iterator<Item = &QueueTraffic> {
        self.queues.iter().filter(move |q| q.dir == dir)
    }
}
