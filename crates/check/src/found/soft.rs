//! Queues in software.

use std::fmt;

use ringwise_model::CpuId;
use ringwise_model::words::plural;
use serde::{Deserialize, Serialize};

use super::words::{count, queues};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum SoftFound {
    /// Sysctls and their values, in microseconds.
    BusyPolling {
        values: Vec<(String, String)>,
    },
    LongQueue {
        packets: u64,
        discipline: String,
    },
    OneDiscipline {
        discipline: String,
        queues: u32,
    },
    Shaper {
        discipline: String,
        queues: u32,
        mbps: u32,
    },
    ByteLimitsLow {
        queues: Vec<u32>,
    },
    ShortBacklog {
        cpu: CpuId,
        places: u64,
    },
    StampsBeforeRps {
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
                write!(f, "{discipline} alone over {queues} transmit queues: one lock")
            }
            Self::Shaper { discipline, queues, mbps } => {
                write!(f, "{discipline} over {queues} transmit queues at {mbps} Mb/s: one lock")
            }
            Self::ByteLimitsLow { queues: q } => {
                write!(f, "limit_max of transmit {} is below two frames of the MTU", queues(q))
            }
            Self::ShortBacklog { cpu, places } => {
                write!(f, "CPU {cpu} gets more than 100,000 packets/s with RPS, the backlog has {places} places")
            }
            Self::StampsBeforeRps { packet_sockets } => write!(
                f,
                "netdev_tstamp_prequeue is 1 with RPS and {}",
                plural(*packet_sockets as usize, "packet socket")
            ),
        }
    }
}
