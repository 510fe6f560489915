//! What was counted between two samples, as far as rules ask for it.

use std::collections::BTreeMap;

use ringwise_model::{CpuCounter, CpuCounts, CpuId, Dir, IrqId};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traffic {
    pub seconds: f64,
    pub links: BTreeMap<String, LinkTraffic>,
    pub cpus: BTreeMap<CpuId, CpuTraffic>,
    /// Counters of protocols, by the kernel's names (`Udp:RcvbufErrors`): increases.
    pub protocols: BTreeMap<String, u64>,
}

/// One interface: increases. `None`: not told, or reset in between.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkTraffic {
    pub rx_packets: Option<u64>,
    pub tx_packets: Option<u64>,
    /// Of the link's bits, the busier direction.
    pub line_percent: Option<f64>,
    /// Every counter by the kernel's name (`rx_missed_errors`, `qdisc_drops`).
    pub counts: BTreeMap<String, u64>,
    /// Of all queues together.
    pub alloc_fail: Option<u64>,
    pub queues: Vec<QueueTraffic>,
    /// Most packets of a receive queue by their mean.
    pub rx_max_over_mean: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct QueueTraffic {
    pub dir: Dir,
    pub queue: u32,
    pub packets: Option<u64>,
    pub bytes: Option<u64>,
    pub irq: Option<IrqId>,
    pub interrupts: Option<u64>,
    pub packets_per_interrupt: Option<f64>,
    /// The CPU that took most of them.
    pub cpu: Option<CpuId>,
    pub timeouts: Option<u64>,
}

/// One CPU, in per cent of the time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuTraffic {
    pub softirq: Option<f64>,
    pub irq: Option<f64>,
    pub steal: Option<f64>,
    pub ksoftirqd: Option<f64>,
    /// Interrupts of queues: increase.
    pub interrupts: u64,
    /// `CpuCounter::SOFTNET`: increases.
    pub counts: CpuCounts,
}

impl CpuTraffic {
    pub fn busy(&self) -> Option<f64> {
        Some(self.softirq? + self.irq.unwrap_or(0.0))
    }
}

impl Traffic {
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

    pub fn protocol(&self, name: &str) -> u64 {
        self.protocols.get(name).copied().unwrap_or(0)
    }

    /// Share of UDP among received IPv4 packets, in per cent. `None`: too few were received to tell.
    pub(crate) fn udp_percent(&self) -> Option<f64> {
        // Datagrams that had no socket or no room were received all the same.
        let udp: u64 = ["Udp:InDatagrams", "Udp:NoPorts", "Udp:InErrors"].map(|n| self.protocol(n)).iter().sum();
        let all = self.protocol("Ip:InReceives");
        (self.per_second(all) > 100.0).then(|| udp as f64 * 100.0 / all as f64)
    }
}

impl LinkTraffic {
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    pub fn of(&self, dir: Dir) -> impl Iterator<Item = &QueueTraffic> {
        self.queues.iter().filter(move |q| q.dir == dir)
    }
}
