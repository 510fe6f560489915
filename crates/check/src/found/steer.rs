//! Steering in software: RPS, RFS, XPS.

use std::fmt;

use ringwise_model::CpuSet;
use ringwise_model::words::plural;
use serde::{Deserialize, Serialize};

use super::words::{count, queues};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum SteerFound {
    /// To the CPUs of the interrupts, which are busy.
    RpsToOwnCpu {
        queues: Vec<u32>,
        cpus: CpuSet,
    },
    RpsToOtherNode {
        queues: Vec<u32>,
        cpus: CpuSet,
    },
    RpsToSibling {
        queues: Vec<u32>,
        cpus: CpuSet,
    },
    /// `share`: what each queue should hold.
    RfsShares {
        queues: u32,
        flows: u64,
        entries: u32,
        share: u32,
    },
    RfsTableAlone {
        entries: u32,
    },
    RfsQueuesAlone,
    RfsOnRouter {
        entries: u32,
    },
    RfsTableSmall {
        entries: u32,
        sockets: u64,
    },
    AcceleratedRfsOff {
        driver: String,
    },
    CpusWithoutXps {
        cpus: CpuSet,
    },
    OneTransmitQueue {
        queue: u32,
        of: u32,
        percent: u64,
    },
    RpsForNewQueues {
        mask: CpuSet,
    },
    NoFlowLimit,
}

impl fmt::Display for SteerFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RpsToOwnCpu { queues: q, cpus } => {
                write!(f, "RPS of {} hands packets to CPUs {cpus}, which take their interrupts and are busy", queues(q))
            }
            Self::RpsToOtherNode { queues: q, cpus } => {
                write!(f, "RPS of {} hands packets to CPUs {cpus} of another node", queues(q))
            }
            Self::RpsToSibling { queues: q, cpus } => write!(
                f,
                "RPS of {} hands packets to CPUs {cpus}, second threads of the cores that take them",
                queues(q)
            ),
            Self::RfsShares { queues, flows, entries, share } => write!(
                f,
                "{} hold {} flows together, the host's table {}: {} each would be right",
                plural(*queues as usize, "queue"),
                count(*flows),
                count((*entries).into()),
                count((*share).into())
            ),
            Self::RfsTableAlone { entries } => {
                write!(f, "rps_sock_flow_entries is {}, but no queue has rps_flow_cnt", count((*entries).into()))
            }
            Self::RfsQueuesAlone => f.write_str("rps_flow_cnt is set, but rps_sock_flow_entries is 0"),
            Self::RfsOnRouter { entries } => {
                write!(f, "RFS with {} entries on a host that forwards", count((*entries).into()))
            }
            Self::RfsTableSmall { entries, sockets } => {
                write!(f, "{} entries for {} TCP sockets", count((*entries).into()), count(*sockets))
            }
            Self::AcceleratedRfsOff { driver } => {
                write!(f, "RFS is on and {driver} could steer flows itself, but ntuple is off")
            }
            Self::CpusWithoutXps { cpus } => write!(f, "CPUs {cpus} are in no XPS mask and fall back to the hash"),
            Self::OneTransmitQueue { queue, of, percent } => {
                write!(f, "transmit queue {queue} of {of} sends {percent} % of the bytes")
            }
            Self::RpsForNewQueues { mask } => {
                write!(f, "net.core.rps_default_mask is {mask}: later interfaces get RPS over these CPUs")
            }
            Self::NoFlowLimit => f.write_str("packets are dropped at full backlogs and no CPU has the flow limit"),
        }
    }
}
