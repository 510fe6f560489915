//! Findings about forwarding, upper interfaces and members, links, and old kernels.

use std::fmt;

use ringwise_model::CpuId;
use ringwise_model::words::plural;
use serde::{Deserialize, Serialize};

use super::words::count;

/// What the rules about forwarding found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum ForwardFound {
    /// Connections are tracked on a host with a busy CPU.
    TrackingBusyCpu {
        /// Entries in the connection table (`nf_conntrack_count`).
        connections: u64,
        /// The busiest CPU.
        cpu: CpuId,
        /// Its share of time in softirqs and interrupts.
        percent: f64,
    },
    /// The connection table is nearly full; new connections will be dropped.
    TrackingNearlyFull {
        /// Entries in the table.
        connections: u64,
        /// `nf_conntrack_max`.
        most: u64,
    },
    /// Rules of the old iptables (xtables) are in use.
    IptablesTables {
        /// Names of the tables, from `/proc/net/ip_tables_names`.
        tables: Vec<String>,
    },
    /// A router tracks connections without a flowtable, which would let their packets bypass the rules.
    NoFlowtable {
        /// Entries in the connection table.
        connections: u64,
    },
    /// Reverse path filtering is on, on a router. 1 is strict, 2 is loose.
    ReversePathFilter {
        /// The larger one of the interface and of `all`.
        value: u64,
    },
    /// Packets that a bridge switches pass the rules of iptables.
    BridgeCallsIptables {
        /// Name of an interface that is a port of a bridge.
        port: String,
    },
    /// The device could insert or strip VLAN tags, but this is off.
    VlanOffloadsOff {
        /// The features that are off, by the kernel's names.
        features: Vec<String>,
        /// VLAN interfaces above this one.
        vlans: u32,
    },
    /// A bond distributes flows by MAC addresses only.
    BondHashesLayer2 {
        /// Members of the bond.
        members: u32,
    },
    /// RPS is configured on an interface above the device, where it is not needed.
    RpsWithoutQueues {
        /// The mask, as text.
        mask: String,
    },
    /// Members of a bond have different settings: `rings`, `512/512` and `1024/512`.
    MembersDiffer {
        /// What differs between the members of a bond or bridge, and each value that occurs.
        differs: Vec<(String, Vec<String>)>,
    },
    /// A virtual function has another queueing discipline than the synthetic device above it (hv_netvsc).
    TwoDisciplines {
        /// The discipline of the interface.
        here: String,
        /// The discipline of the device below it.
        below: String,
        /// Name of the device below it.
        dev: String,
    },
    /// The driver is not part of this kernel: its module is marked as out of tree.
    ModuleFromElsewhere {
        /// Name of the module.
        module: String,
    },
    /// The link runs in half duplex.
    HalfDuplex,
    /// Energy-efficient Ethernet is active, and the goal is latency.
    EnergyEfficientEthernet,
    /// The interface receives packets for all addresses and is not a port of a bridge.
    Promiscuous,
    /// The host reassembles IPv4 fragments.
    Fragments {
        /// Fragments.
        per_second: f64,
    },
    /// A queueing discipline assigns transmit queues to traffic classes. `queues` is `None` if it is unknown.
    ClassesOwnQueues {
        /// The discipline, for example `mqprio`.
        discipline: String,
        /// Transmit queues of the interface.
        queues: Option<u32>,
        /// The queues of each class from 0 on, as text. Empty: unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        classes: Vec<String>,
    },
    /// A tunnel is used, and the device does not parse the packets inside it.
    TunnelOffloadOff {
        /// `vxlan` or `geneve`.
        kind: String,
        /// Interfaces of this kind.
        interfaces: u32,
    },
    /// The kernel is older than 3.6 and caches routes by flow.
    RouteCache {
        /// Its version.
        kernel: String,
    },
    /// The kernel is older than 4.0 and looks up routes more slowly.
    OldRouteTree {
        /// Its version.
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
                write!(f, "{} of {} connection table entries are in use", count(*connections), count(*most))
            }
            Self::IptablesTables { tables } => write!(f, "loaded iptables tables: {}", tables.join(" ")),
            Self::NoFlowtable { connections } => {
                write!(f, "{} connections are tracked, but there is no flowtable", count(*connections))
            }
            Self::ReversePathFilter { value } => {
                write!(f, "rp_filter is {value} ({})", if *value == 1 { "strict" } else { "loose" })
            }
            Self::BridgeCallsIptables { port } => {
                write!(f, "bridge-nf-call-iptables is 1, and {port} is a port of a bridge")
            }
            Self::VlanOffloadsOff { features, vlans } => {
                let vlans = plural(*vlans as usize, "VLAN interface");
                write!(f, "VLAN offloads are off, with {vlans}: {}", features.join(", "))
            }
            Self::BondHashesLayer2 { members } => {
                write!(f, "xmit_hash_policy is layer2, with {}", plural(*members as usize, "member"))
            }
            Self::RpsWithoutQueues { mask } => {
                write!(f, "rps_cpus is {mask} on an interface without queues of its own")
            }
            Self::MembersDiffer { differs } => {
                let each: Vec<String> =
                    differs.iter().map(|(what, values)| format!("{what} {}", values.join(" and "))).collect();
                write!(f, "members differ: {}", each.join(", "))
            }
            Self::TwoDisciplines { here, below, dev } => {
                write!(f, "{here} on this interface and {below} on {dev} below it")
            }
            Self::ModuleFromElsewhere { module } => write!(f, "module {module} is not part of this kernel"),
            Self::HalfDuplex => f.write_str("the link is half duplex"),
            Self::EnergyEfficientEthernet => f.write_str("energy-efficient Ethernet is active"),
            Self::Promiscuous => f.write_str("the interface is promiscuous, but not a bridge port"),
            Self::Fragments { per_second } => write!(f, "the host reassembles {per_second:.0} fragments/s"),
            Self::ClassesOwnQueues { discipline, queues, classes } => {
                let number = queues.map_or_else(String::new, |n| format!("{n} "));
                write!(f, "{discipline} assigns the {number}transmit queues to traffic classes")?;
                let all: Vec<String> = (0..).zip(classes).map(|(at, c): (u32, _)| format!("{at}: {c}")).collect();
                if all.is_empty() { Ok(()) } else { write!(f, " ({})", all.join(", ")) }
            }
            Self::TunnelOffloadOff { kind, interfaces } => write!(
                f,
                "rx-udp_tunnel-port-offload is off, with {}",
                plural(*interfaces as usize, &format!("{kind} interface"))
            ),
            Self::RouteCache { kernel } => write!(f, "kernel {kernel} has a route cache"),
            Self::OldRouteTree { kernel } => write!(f, "kernel {kernel} has the old, slower route tree"),
        }
    }
}
