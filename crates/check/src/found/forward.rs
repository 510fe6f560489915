//! Hosts that forward, interfaces above and beside, links, and old kernels.

use std::fmt;

use ringwise_model::CpuId;
use ringwise_model::words::plural;
use serde::{Deserialize, Serialize};

use super::words::count;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum ForwardFound {
    TrackingBusyCpu {
        connections: u64,
        cpu: CpuId,
        percent: f64,
    },
    TrackingNearlyFull {
        connections: u64,
        most: u64,
    },
    IptablesTables {
        tables: Vec<String>,
    },
    NoFlowtable {
        connections: u64,
    },
    /// 1 is strict, all others are loose.
    ReversePathFilter {
        value: u64,
    },
    BridgeCallsIptables {
        port: String,
    },
    VlanOffloadsOff {
        features: Vec<String>,
        vlans: u32,
    },
    BondHashesLayer2 {
        members: u32,
    },
    RpsWithoutQueues {
        mask: String,
    },
    /// What differs, and the values: `rings`, `512/512` and `1024/512`.
    MembersDiffer {
        differs: Vec<(String, Vec<String>)>,
    },
    TwoDisciplines {
        here: String,
        below: String,
        dev: String,
    },
    ModuleFromElsewhere {
        module: String,
    },
    HalfDuplex,
    EnergyEfficientEthernet,
    Promiscuous,
    Fragments {
        per_second: f64,
    },
    /// `queues`: `None` is unknown.
    ClassesOwnQueues {
        discipline: String,
        queues: Option<u32>,
    },
    TunnelOffloadOff {
        kind: String,
        interfaces: u32,
    },
    RouteCache {
        kernel: String,
    },
    OldRouteTree {
        kernel: String,
    },
}

impl fmt::Display for ForwardFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TrackingBusyCpu { connections, cpu, percent } => write!(
                f,
                "{} connections are tracked while CPU {cpu} is {percent:.0} % busy with packets",
                count(*connections)
            ),
            Self::TrackingNearlyFull { connections, most } => {
                write!(f, "{} of {} connections", count(*connections), count(*most))
            }
            Self::IptablesTables { tables } => write!(f, "tables of iptables: {}", tables.join(" ")),
            Self::NoFlowtable { connections } => {
                write!(f, "{} connections are tracked and no flowtable is there", count(*connections))
            }
            Self::ReversePathFilter { value } => {
                write!(f, "rp_filter is {value} ({})", if *value == 1 { "strict" } else { "loose" })
            }
            Self::BridgeCallsIptables { port } => {
                write!(f, "bridge-nf-call-iptables is 1, and {port} is a port of a bridge")
            }
            Self::VlanOffloadsOff { features, vlans } => {
                write!(f, "{} off with {vlans} VLANs above", features.join(", "))
            }
            Self::BondHashesLayer2 { members } => {
                write!(f, "xmit_hash_policy layer2 over {}", plural(*members as usize, "member"))
            }
            Self::RpsWithoutQueues { mask } => {
                write!(f, "rps_cpus is {mask} on an interface without queues of its own")
            }
            Self::MembersDiffer { differs } => {
                let each: Vec<String> =
                    differs.iter().map(|(what, values)| format!("{what} {}", values.join(" and "))).collect();
                write!(f, "members differ: {}", each.join(", "))
            }
            Self::TwoDisciplines { here, below, dev } => write!(f, "{here} here and {below} on {dev}"),
            Self::ModuleFromElsewhere { module } => write!(f, "{module} was not built with this kernel"),
            Self::HalfDuplex => f.write_str("the link is half duplex"),
            Self::EnergyEfficientEthernet => f.write_str("energy efficient ethernet is active"),
            Self::Promiscuous => f.write_str("the interface is promiscuous and no port of a bridge"),
            Self::Fragments { per_second } => write!(f, "{per_second:.0} fragments/s have to be put together"),
            Self::ClassesOwnQueues { discipline, queues: Some(n) } => {
                write!(f, "{discipline} hands the {n} transmit queues out to classes")
            }
            Self::ClassesOwnQueues { discipline, queues: None } => {
                write!(f, "{discipline} hands the transmit queues out to classes")
            }
            Self::TunnelOffloadOff { kind, interfaces } => write!(
                f,
                "rx-udp_tunnel-port-offload is off, with {}",
                plural(*interfaces as usize, &format!("{kind} interface"))
            ),
            Self::RouteCache { kernel } => write!(f, "kernel {kernel} keeps a cache of routes"),
            Self::OldRouteTree { kernel } => write!(f, "kernel {kernel} has the old tree of routes"),
        }
    }
}
