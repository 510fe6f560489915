//! Lost packets, and CPUs at their limit.

use std::fmt;

use ringwise_model::words::plural;
use ringwise_model::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::words::{count, cpus, queues, rate};

/// Rates are per second, shares of time in per cent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum DropFound {
    /// Packets were dropped at full backlogs. `each` counts from the first sample. `limit` is `None` if it is unknown.
    BeforeStack {
        /// Packets dropped at full backlogs.
        per_second: f64,
        /// By CPU; CPUs that dropped none are not listed.
        each: Vec<(CpuId, u64)>,
        /// `net.core.netdev_max_backlog`.
        limit: Option<u64>,
    },
    /// The softirq of a busy CPU often stopped with packets left (`time_squeeze`).
    BudgetUsedUp {
        /// The CPU.
        cpu: CpuId,
        /// How often its softirq stopped.
        per_second: f64,
        /// Share of its time in softirqs.
        softirq_percent: f64,
    },
    /// The flow limit dropped packets of large flows.
    FlowLimit {
        /// Packets dropped.
        per_second: f64,
    },
    /// The NIC lost packets. `counters` count from the first sample, `seconds` ago. `received` is `None` if it is
    /// unknown.
    InNic {
        /// Packets lost, according to the larger of the two counters.
        per_second: f64,
        /// `rx_missed_errors` and `rx_fifo_errors`, as far as the driver counts them.
        counters: Vec<GrownCounter>,
        /// Time between the samples.
        seconds: f64,
        /// Packets received in the same time.
        received: Option<u64>,
    },
    /// The driver could not allocate memory for receive buffers.
    NoBuffers {
        /// Buffers that could not be allocated.
        per_second: f64,
    },
    /// Frames arrived damaged.
    Damaged {
        /// The kernel's name of the counter, and its increase per second.
        counters: Vec<(String, f64)>,
    },
    /// `rx_dropped` grows although no backlog was full, so probably no program on this host listens for the packets.
    ForNobody {
        /// Packets dropped.
        per_second: f64,
    },
    /// The kernel's watchdog found transmit queues stuck.
    TransmitTimeout {
        /// Numbers of the transmit queues.
        queues: Vec<u32>,
    },
    /// Packets were lost at full receive buffers of UDP sockets.
    UdpBuffers {
        /// Packets lost, IPv4 and IPv6 together.
        per_second: f64,
    },
    /// Connections were lost at full listen queues.
    ListenQueues {
        /// The larger of `TcpExt:ListenOverflows` and `TcpExt:ListenDrops`.
        per_second: f64,
    },
    /// Traffic exceeded an allowance of the cloud provider.
    Allowance {
        /// Name of the driver's counter (`bw_in_allowance_exceeded`), and its increase per second.
        exceeded: Vec<(String, f64)>,
    },
    /// Queueing disciplines dropped packets.
    QueueDiscipline {
        /// Packets dropped.
        per_second: f64,
    },
    /// A CPU often processes its softirqs in its thread ksoftirqd.
    Ksoftirqd {
        /// The CPU.
        cpu: CpuId,
        /// Share of its time in ksoftirqd.
        percent: f64,
    },
    /// One CPU is much busier with interrupts and softirqs than the others.
    OneCpu {
        /// The busiest CPU.
        cpu: CpuId,
        /// Its share of time in softirqs and interrupts.
        percent: f64,
        /// CPUs that were counted.
        cpus: u32,
        /// The mean of all these CPUs.
        mean_percent: f64,
    },
    /// The page allocator has to replace receive buffers that the page pool could not recycle.
    NotRecycled {
        /// Receive queue of the pool.
        queue: u32,
        /// Share of the pages that the driver took, in per cent.
        percent: f64,
        /// Pages that were not recycled because the ring of the pool was full.
        ring_full_per_second: f64,
        /// Pages that were not recycled because another reference to them was left.
        in_use_per_second: f64,
    },
    /// The page pool often has no recycled buffer, so that it takes new ones from the page allocator.
    SlowAllocations {
        /// Receive queue of the pool.
        queue: u32,
        /// The largest share of the pages that can come from the page allocator, in per cent.
        percent: f64,
        /// How often the pool went to the page allocator.
        per_second: f64,
    },
    /// The device sent pause frames for so long that it turned them off for a time.
    PauseStorms {
        /// How often.
        storms: u64,
    },
    /// The NIC sends or receives many pause frames.
    PauseFrames {
        /// Pause frames sent (`tx_pause`).
        sent_per_second: f64,
        /// Pause frames received (`rx_pause`).
        received_per_second: f64,
    },
}

/// A counter and by how much it grew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrownCounter {
    /// The kernel's or driver's name of the counter.
    pub name: String,
    /// Increase between the samples.
    pub by: u64,
}

impl fmt::Display for DropFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeStack { per_second, each, .. } => {
                let full: CpuSet = each.iter().map(|(cpu, _)| *cpu).collect();
                write!(f, "{} packets/s dropped at full backlogs of {}", rate(*per_second), cpus(&full))
            }
            Self::BudgetUsedUp { cpu, per_second, softirq_percent } => {
                write!(
                    f,
                    "CPU {cpu}: softirq budget used up {per_second:.0} times/s at {softirq_percent:.0} % softirq time"
                )
            }
            Self::FlowLimit { per_second } => {
                write!(f, "{} packets/s of large flows dropped by the flow limit", rate(*per_second))
            }
            Self::InNic { per_second, .. } => {
                write!(f, "{} packets/s lost in the NIC before any CPU saw them", rate(*per_second))
            }
            Self::NoBuffers { per_second } => {
                write!(f, "{} receive buffers/s could not be allocated", rate(*per_second))
            }
            Self::Damaged { counters } => write!(f, "damaged frames: {}", each_rate(counters)),
            Self::ForNobody { per_second } => {
                write!(f, "{} packets/s dropped, none missed: probably no listener on this host", rate(*per_second))
            }
            Self::TransmitTimeout { queues: q } => write!(f, "transmit {} timed out", queues(q)),
            Self::UdpBuffers { per_second } => {
                write!(f, "{} UDP packets/s lost at full socket buffers", rate(*per_second))
            }
            Self::ListenQueues { per_second } => {
                write!(f, "{} connections/s lost at full listen queues", rate(*per_second))
            }
            Self::Allowance { exceeded } => {
                write!(f, "traffic above the provider's allowance: {}", each_rate(exceeded))
            }
            Self::QueueDiscipline { per_second } => {
                write!(f, "{} packets/s dropped by the queueing discipline before sending", rate(*per_second))
            }
            Self::Ksoftirqd { cpu, percent } => write!(f, "ksoftirqd/{cpu} runs {percent:.0} % of the time"),
            Self::OneCpu { cpu, percent, cpus, mean_percent } => write!(
                f,
                "CPU {cpu} is at {percent:.0} % interrupt time, while the mean of the {cpus} CPUs is {mean_percent:.0} %"
            ),
            Self::NotRecycled { queue, percent, ring_full_per_second, in_use_per_second } => write!(
                f,
                "receive queue {queue}: {percent:.0} % of the buffers are not recycled ({}/s because the pool's ring is full, \
                 {}/s still in use)",
                rate(*ring_full_per_second),
                rate(*in_use_per_second)
            ),
            Self::SlowAllocations { queue, percent, per_second } => write!(
                f,
                "receive queue {queue}: up to {percent:.0} % of the buffers come from the page allocator ({} slow allocations/s)",
                rate(*per_second)
            ),
            Self::PauseStorms { storms } => write!(f, "pause storms: {}", plural(*storms as usize, "event")),
            Self::PauseFrames { sent_per_second, received_per_second } => {
                write!(f, "pause frames: {}/s sent, {}/s received", rate(*sent_per_second), rate(*received_per_second))
            }
        }
    }
}

impl DropFound {
    pub(super) fn evidence(&self) -> Vec<String> {
        match self {
            Self::BeforeStack { each, limit, .. } => {
                let limit = limit.map(|l| format!("net.core.netdev_max_backlog = {l}"));
                let each: Vec<String> = each.iter().map(|(cpu, n)| format!("CPU {cpu}: {n}")).collect();
                limit.into_iter().chain([each.join(", ")]).collect()
            }
            Self::InNic { counters, seconds, received, .. } => {
                let counters: Vec<String> = counters.iter().map(|c| format!("{} +{}", c.name, count(c.by))).collect();
                vec![
                    format!("{} in {seconds:.1} s", counters.join(", ")),
                    format!("received in the same time: {}", received.map_or("unknown".into(), count)),
                ]
            }
            _ => Vec::new(),
        }
    }
}

fn each_rate(all: &[(String, f64)]) -> String {
    let all: Vec<String> = all.iter().map(|(name, r)| format!("{name} {}/s", rate(*r))).collect();
    all.join(", ")
}
