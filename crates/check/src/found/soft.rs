//! Findings about the software path: queueing disciplines, backlogs, busy polling.

use std::fmt;

use ringwise_model::words::plural;
use ringwise_model::{CpuId, RateUnit};
use serde::{Deserialize, Serialize};

use super::words::{count, queues};

/// What the rules about the software path found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum SoftFound {
    /// Busy polling is on for all sockets. Values are in microseconds.
    BusyPolling {
        /// Name of the sysctl, and its value.
        values: Vec<(String, String)>,
    },
    /// The transmit queue of the interface is long.
    LongQueue {
        /// `txqueuelen`.
        packets: u64,
        /// Its root discipline.
        discipline: String,
    },
    /// One queueing discipline serves all transmit queues, with one lock.
    OneDiscipline {
        /// Its root discipline.
        discipline: String,
        /// Transmit queues of the interface.
        queues: u32,
    },
    /// One shaper serves all transmit queues of a link with 10 Gb/s or more, with one lock.
    Shaper {
        /// Its root discipline.
        discipline: String,
        /// Transmit queues of the interface.
        queues: u32,
        /// Speed of the link.
        mbps: u32,
    },
    /// The NIC limits transmit queues (net-shaper) to less than the speed of the link.
    QueuesLimited {
        /// Transmit queues with this limit.
        queues: Vec<u32>,
        /// The largest rate of each of them.
        rate: u64,
        /// Unit of `rate`.
        unit: RateUnit,
        /// Speed of the link. `None`: it is not known.
        mbps: Option<u32>,
    },
    /// The byte queue limit does not allow two full frames.
    ByteLimitsLow {
        /// Transmit queues with such a limit.
        queues: Vec<u32>,
    },
    /// A CPU gets many packets by RPS, and its backlog is short.
    ShortBacklog {
        /// The CPU.
        cpu: CpuId,
        /// `net.core.netdev_max_backlog`, in packets.
        places: u64,
    },
    /// Packets get their time stamp before RPS, and a packet socket may request stamps.
    StampsBeforeRps {
        /// Open packet sockets.
        packet_sockets: u32,
    },
}

impl fmt::Display for SoftFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BusyPolling { values } => {
                let each: Vec<String> = values.iter().map(|(name, v)| format!("{name} is {v} us")).collect();
                f.write_str(&each.join(", "))
            }
            Self::LongQueue { packets, discipline } => {
                write!(f, "txqueuelen is {} with {discipline}", count(*packets))
            }
            Self::OneDiscipline { discipline, queues } => {
                write!(f, "one {discipline} for {queues} transmit queues: they share its lock")
            }
            Self::Shaper { discipline, queues, mbps } => {
                write!(f, "one {discipline} for {queues} transmit queues at {mbps} Mb/s: they share its lock")
            }
            Self::QueuesLimited { queues: q, rate, unit, mbps } => {
                let each = if q.len() == 1 { "" } else { " each" };
                write!(f, "net-shaper limits transmit {} to {}{each}", queues(q), unit.text(*rate))?;
                mbps.map_or(Ok(()), |mbps| write!(f, "; the link has {mbps} Mb/s"))
            }
            Self::ByteLimitsLow { queues: q } => {
                write!(f, "limit_max of transmit {} is below two frames of the MTU", queues(q))
            }
            Self::ShortBacklog { cpu, places } => {
                write!(f, "CPU {cpu} gets more than 100,000 packets/s with RPS, but its backlog holds {places}")
            }
            Self::StampsBeforeRps { packet_sockets } => write!(
                f,
                "netdev_tstamp_prequeue is 1, with RPS on and {} open",
                plural(*packet_sockets as usize, "packet socket")
            ),
        }
    }
}
