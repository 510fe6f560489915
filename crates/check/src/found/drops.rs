//! Lost packets, and CPUs at their limit.

use std::fmt;

use ringwise_model::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::words::{count, queues, rate};

/// Rates are per second, shares of time in per cent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum DropFound {
    /// `each`: since the first sample. `limit`: of the backlog, where it is known.
    BeforeStack {
        per_second: f64,
        each: Vec<(CpuId, u64)>,
        limit: Option<u64>,
    },
    BudgetUsedUp {
        cpu: CpuId,
        per_second: f64,
        softirq_percent: f64,
    },
    FlowLimit {
        per_second: f64,
    },
    /// `counters`: since the first sample, `seconds` ago. `received`: `None` is unknown.
    InNic {
        per_second: f64,
        counters: Vec<Grown>,
        seconds: f64,
        received: Option<u64>,
    },
    NoBuffers {
        per_second: f64,
    },
    /// By counter, in a second.
    Damaged {
        counters: Vec<(String, f64)>,
    },
    ForNobody {
        per_second: f64,
    },
    TransmitTimeout {
        queues: Vec<u32>,
    },
    UdpBuffers {
        per_second: f64,
    },
    ListenQueues {
        per_second: f64,
    },
    /// By allowance, in a second.
    Allowance {
        exceeded: Vec<(String, f64)>,
    },
    QueueDiscipline {
        per_second: f64,
    },
    Ksoftirqd {
        cpu: CpuId,
        percent: f64,
    },
    /// Interrupt time.
    OneCpu {
        cpu: CpuId,
        percent: f64,
        cpus: u32,
        mean_percent: f64,
    },
    PauseFrames {
        sent_per_second: f64,
        received_per_second: f64,
    },
}

/// A counter and by how much it grew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    pub name: String,
    pub by: u64,
}

impl fmt::Display for DropFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeStack { per_second, each, .. } => {
                let cpus: CpuSet = each.iter().map(|(cpu, _)| *cpu).collect();
                write!(f, "{} packets/s dropped before the stack, on CPUs {cpus}", rate(*per_second))
            }
            Self::BudgetUsedUp { cpu, per_second, softirq_percent } => {
                write!(f, "CPU {cpu}: budget used up {per_second:.0} times/s at {softirq_percent:.0} % softirq")
            }
            Self::FlowLimit { per_second } => {
                write!(f, "{} packets/s of large flows dropped by the flow limit", rate(*per_second))
            }
            Self::InNic { per_second, .. } => {
                write!(f, "{} packets/s lost in the NIC before any CPU saw them", rate(*per_second))
            }
            Self::NoBuffers { per_second } => write!(f, "{} buffers/s could not be allocated", rate(*per_second)),
            Self::Damaged { counters } => f.write_str(&each_rate(counters)),
            Self::ForNobody { per_second } => {
                write!(f, "{} packets/s dropped and none missed: mostly for nobody here", rate(*per_second))
            }
            Self::TransmitTimeout { queues: q } => write!(f, "transmit {} timed out", queues(q)),
            Self::UdpBuffers { per_second } => {
                write!(f, "{} UDP packets/s lost at full socket buffers", rate(*per_second))
            }
            Self::ListenQueues { per_second } => {
                write!(f, "{} connections/s lost at full listen queues", rate(*per_second))
            }
            Self::Allowance { exceeded } => write!(f, "above the provider's allowance: {}", each_rate(exceeded)),
            Self::QueueDiscipline { per_second } => {
                write!(f, "{} packets/s dropped before they were sent", rate(*per_second))
            }
            Self::Ksoftirqd { cpu, percent } => write!(f, "ksoftirqd/{cpu} runs {percent:.0} % of the time"),
            Self::OneCpu { cpu, percent, cpus, mean_percent } => write!(
                f,
                "CPU {cpu} at {percent:.0} % interrupt time while the mean of the {cpus} CPUs is {mean_percent:.0} %"
            ),
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
                    format!("received meanwhile {}", received.map_or("unknown".into(), count)),
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
