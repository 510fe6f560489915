//! Findings about steering in software: RPS, RFS, XPS.

use std::fmt;

use ringwise_model::CpuSet;
use ringwise_model::words::plural;
use serde::{Deserialize, Serialize};

use super::words::{self, count, queues};

/// What the rules about RPS, RFS and XPS found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum SteerFound {
    /// RPS sends packets to the CPUs of the interrupts, which are busy.
    RpsToOwnCpu {
        /// Receive queues with such a mask.
        queues: Vec<u32>,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// RPS sends packets to another node.
    RpsToOtherNode {
        /// Receive queues with such a mask.
        queues: Vec<u32>,
        /// The CPUs of another node.
        cpus: CpuSet,
    },
    /// RPS sends packets to the second hardware thread of the core that handles the interrupt.
    RpsToSibling {
        /// Receive queues with such a mask.
        queues: Vec<u32>,
        /// The second hardware threads.
        cpus: CpuSet,
    },
    /// The flow tables of the queues do not match the host's table. `share`: entries that each queue should have.
    RfsShares {
        /// Receive queues with a flow table.
        queues: u32,
        /// Entries of all these tables together.
        flows: u64,
        /// Entries of the host's table (`rps_sock_flow_entries`).
        entries: u32,
        /// Entries of the host's table, divided by the queues.
        share: u32,
    },
    /// The host has a flow table, and no queue has one: RFS is off.
    RfsTableAlone {
        /// `rps_sock_flow_entries`.
        entries: u32,
    },
    /// Queues have flow tables, and the host has none: RFS is off.
    RfsQueuesAlone,
    /// RFS is on, on a host that forwards.
    RfsOnRouter {
        /// `rps_sock_flow_entries`.
        entries: u32,
    },
    /// The flow table is small for the number of sockets.
    RfsTableSmall {
        /// `rps_sock_flow_entries`.
        entries: u32,
        /// TCP sockets in use.
        sockets: u64,
    },
    /// The driver supports accelerated RFS, but the feature `ntuple` is off.
    AcceleratedRfsOff {
        /// Name of the driver.
        driver: String,
    },
    /// Some CPUs are in no XPS mask, although others are.
    CpusWithoutXps {
        /// These CPUs.
        cpus: CpuSet,
    },
    /// One transmit queue sends most of the traffic.
    OneTransmitQueue {
        /// Number of the transmit queue.
        queue: u32,
        /// Transmit queues of the interface.
        of: u32,
        /// Its share of the bytes sent.
        percent: u64,
    },
    /// Interfaces that appear later get RPS (`net.core.rps_default_mask`).
    RpsForNewQueues {
        /// The default mask.
        mask: CpuSet,
    },
    /// Backlogs overflow, and the flow limit is on for no CPU.
    NoFlowLimit,
}

impl fmt::Display for SteerFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RpsToOwnCpu { queues: q, cpus } => {
                let handles = if cpus.len() == 1 { "handles" } else { "handle" };
                let verb = if cpus.len() == 1 { "is" } else { "are" };
                let cpus = words::cpus(cpus);
                write!(f, "RPS of {} includes {cpus}, which {handles} the interrupts and {verb} busy", queues(q))
            }
            Self::RpsToOtherNode { queues: q, cpus } => {
                write!(f, "RPS of {} sends packets to {} on another node", queues(q), words::cpus(cpus))
            }
            Self::RpsToSibling { queues: q, cpus } => {
                write!(f, "RPS of {} sends packets to {} on the cores of the interrupts", queues(q), words::cpus(cpus))
            }
            Self::RfsShares { queues, flows, entries, share } => write!(
                f,
                "{} have {} RFS entries in total, the host has {}: expected {} per queue",
                plural(*queues as usize, "queue"),
                count(*flows),
                count((*entries).into()),
                count((*share).into())
            ),
            Self::RfsTableAlone { entries } => {
                write!(f, "rps_sock_flow_entries is {}, but rps_flow_cnt is 0 on every queue", count((*entries).into()))
            }
            Self::RfsQueuesAlone => f.write_str("rps_flow_cnt is set, but rps_sock_flow_entries is 0"),
            Self::RfsOnRouter { entries } => {
                write!(f, "RFS with {} entries on a host that forwards", count((*entries).into()))
            }
            Self::RfsTableSmall { entries, sockets } => {
                write!(f, "the RFS table has {} entries for {} TCP sockets", count((*entries).into()), count(*sockets))
            }
            Self::AcceleratedRfsOff { driver } => {
                write!(f, "RFS is on and {driver} could steer flows itself, but ntuple is off")
            }
            Self::CpusWithoutXps { cpus } => {
                let (are, fall) = if cpus.len() == 1 { ("is", "falls") } else { ("are", "fall") };
                write!(f, "{} {are} in no XPS mask and {fall} back to the hash", words::cpus(cpus))
            }
            Self::OneTransmitQueue { queue, of, percent } => {
                write!(f, "transmit queue {queue} of {of} sends {percent} % of the bytes")
            }
            Self::RpsForNewQueues { mask } => {
                write!(f, "net.core.rps_default_mask is {mask}: new interfaces get RPS on these CPUs")
            }
            Self::NoFlowLimit => {
                f.write_str("packets are dropped at full backlogs, and the flow limit is off on all CPUs")
            }
        }
    }
}
