//! Sampled traffic that most devices cannot spread by ports: how much of each class there is, which queue gets it, and what
//! would help on this interface. Pure.

use std::collections::BTreeMap;

use ringwise_kfmt::traffic_class::{HashedBy, TrafficClass};
use ringwise_model::{CpuSet, Dir, Fact, Nic, Snapshot};

use crate::flows::{ClassCount, Flows};

/// Kernel name of the feature that flow steering rules need (`ethtool -k`: `ntuple-filters`).
const NTUPLE: &str = "rx-ntuple-filter";
/// A class is listed from this share of the sampled packets on, in percent.
pub const LISTED_PERCENT: f64 = 1.0;
/// Fewer sampled packets show no share: an idle interface receives ARP and little else.
const ENOUGH: u64 = 20;

/// One class of traffic, of all queues together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassTotal {
    /// The class.
    pub class: TrafficClass,
    /// Sampled packets of all queues.
    pub count: ClassCount,
    /// The queue with most of these packets. `None`: the driver does not report it.
    pub busiest: Option<u32>,
    /// Sampled packets of the class on that queue.
    pub on_busiest: u64,
}

impl Flows {
    /// The classes that were seen, in their own order.
    pub fn classes(&self) -> Vec<ClassTotal> {
        let mut by: BTreeMap<TrafficClass, ClassTotal> = BTreeMap::new();
        for (queue, q) in &self.queues {
            for (class, c) in &q.classes {
                let first = ClassTotal { class: *class, count: ClassCount::default(), busiest: *queue, on_busiest: 0 };
                let t = by.entry(*class).or_insert(first);
                t.count.packets += c.packets;
                t.count.bytes += c.bytes;
                if c.packets > t.on_busiest {
                    (t.busiest, t.on_busiest) = (*queue, c.packets);
                }
            }
        }
        by.into_values().collect()
    }

    fn limited(&self) -> u64 {
        self.classes().iter().filter(|t| t.class.is_limited()).map(|t| t.count.packets).sum()
    }

    /// Share of the sampled packets whose flows may share a queue even if all ports are hashed, in percent. `None`: nothing
    /// was sampled.
    pub fn limited_percent(&self) -> Option<f64> {
        percent(self.limited(), self.packets())
    }

    /// Whether such packets are worth a report: at least 20 of them, and 1 % of the sample.
    pub fn is_much_limited(&self) -> bool {
        self.limited() >= ENOUGH && self.limited_percent().is_some_and(|p| p >= LISTED_PERCENT)
    }
}

/// `None`: `all` is 0.
pub fn percent(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 * 100.0 / all as f64)
}

/// Whether flow steering rules can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowRules {
    /// The feature `ntuple` is on.
    On,
    /// It is off and can be turned on.
    Off,
    /// The device or its driver does not support them.
    Unsupported,
    /// The features could not be read.
    #[default]
    Unknown,
}

impl FlowRules {
    /// Name in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Unsupported => "unsupported",
            Self::Unknown => "unknown",
        }
    }
}

/// A kind of software interface that receives what the kernel unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunnelKind {
    /// PPP, over PPPoE or anything else.
    Ppp,
    /// GRE with IP inside (not gretap, which looks like Ethernet).
    Gre,
    /// IPIP, SIT, or IPv4 or IPv6 in IPv6.
    IpInIp,
    /// WireGuard.
    Wireguard,
}

impl TunnelKind {
    /// `devtype`: DEVTYPE of the interface's `uevent`. `arp_type`: its file `type` (`linux/if_arp.h`). `None`: neither is of
    /// a known kind.
    pub fn of(devtype: Option<&str>, arp_type: Option<u32>) -> Option<Self> {
        match (devtype, arp_type) {
            (Some("ppp"), _) | (_, Some(512)) => Some(Self::Ppp),
            (Some("wireguard"), _) => Some(Self::Wireguard),
            (_, Some(778 | 823)) => Some(Self::Gre),
            (_, Some(768 | 769 | 776)) => Some(Self::IpInIp),
            _ => None,
        }
    }

    /// Whether packets of this class may arrive on such an interface after the kernel unpacked them.
    fn receives(self, class: TrafficClass) -> bool {
        matches!(
            (self, class),
            (Self::Ppp, TrafficClass::PppoeIpv4 | TrafficClass::PppoeIpv6)
                | (Self::Gre, TrafficClass::Gre)
                | (Self::IpInIp, TrafficClass::IpInIp)
                | (Self::Wireguard, TrafficClass::Wireguard)
        )
    }
}

/// A software interface of the host that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Name of the interface.
    pub dev: String,
    /// Its kind.
    pub kind: TunnelKind,
    /// Whether its queue 0 has an RPS mask. `None`: not readable.
    pub rps: Option<bool>,
    /// Whether its NAPI instances are polled by threads. `None`: not readable, or not in this kernel.
    pub threaded: Option<bool>,
}

/// What an interface and its host have against such traffic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AvailableRemedies {
    /// Name of the interface.
    pub dev: String,
    /// Its driver. `None`: unknown.
    pub driver: Option<String>,
    /// CPUs to which RPS could pass packets: local ones that are online and not isolated; empty if unknown.
    pub cpus: CpuSet,
    /// CPUs of the core that takes the interrupt of a receive queue, as far as they are known. It is busy with the packets
    /// already.
    pub interrupt_cores: BTreeMap<u32, CpuSet>,
    /// RPS masks of the receive queues, as far as they could be read.
    pub rps: BTreeMap<u32, CpuSet>,
    /// Hash fields of `udp4` and `udp6` by ethtool's letters, as far as the driver reports them.
    pub udp_fields: BTreeMap<&'static str, String>,
    /// Whether flow rules are possible.
    pub flow_rules: FlowRules,
    /// Input transformation of the hash (`none`, `symmetric-xor`, …). `None`: not reported.
    pub symmetric: Option<String>,
    /// Software interfaces that receive unpacked packets.
    pub tunnels: Vec<Tunnel>,
}

impl AvailableRemedies {
    /// The means of `nic`, with the tunnels that were found on its host.
    pub fn of(s: &Snapshot, nic: &Nic, tunnels: Vec<Tunnel>) -> Self {
        let t = &s.topology;
        let mut cpus = match &nic.local_cpus {
            Fact::Known(local) if local.intersects(&t.online) => local.intersection(&t.online),
            _ => t.online.clone(),
        };
        for apart in [&t.isolated, &t.cgroup_isolated, &t.pods_exclusive] {
            cpus = apart.known().map_or(cpus.clone(), |a| cpus.difference(a));
        }
        let flow_rules = match &nic.features {
            Fact::Known(f) => match f.get(NTUPLE) {
                Some(f) if f.on => FlowRules::On,
                Some(f) if !f.fixed => FlowRules::Off,
                _ => FlowRules::Unsupported,
            },
            Fact::Absent => FlowRules::Unsupported,
            Fact::Unknown(_) => FlowRules::Unknown,
        };
        let core = |q: u32| {
            let cpus = nic.vector_of(Dir::Rx, q)?.taken_by().filter(|c| c.len() == 1)?;
            Some((q, t.siblings_of(cpus.first()?)))
        };
        let rss = nic.rss.known();
        let fields = |flow: &'static str| Some((flow, rss?.fields.get(flow)?.clone()));
        Self {
            dev: nic.dev.name.clone(),
            driver: nic.driver.known().cloned(),
            cpus,
            interrupt_cores: nic.rx_queues.iter().filter_map(|q| core(q.id)).collect(),
            rps: nic.rx_queues.iter().filter_map(|q| Some((q.id, q.rps_cpus.known()?.clone()))).collect(),
            udp_fields: ["udp4", "udp6"].into_iter().filter_map(fields).collect(),
            flow_rules,
            symmetric: rss.and_then(|r| r.symmetric.known()).cloned(),
            tunnels,
        }
    }

    /// CPUs to which RPS could pass packets of this queue: others than those of its interrupt's core, if there are any.
    fn cpus_beside(&self, queue: Option<u32>) -> CpuSet {
        let core = queue.and_then(|q| self.interrupt_cores.get(&q));
        let others = core.map(|core| self.cpus.difference(core)).filter(|c| !c.is_empty());
        others.unwrap_or_else(|| self.cpus.clone())
    }

    /// Whether the driver hashes the addresses of UDP without its ports; these flow types.
    pub fn udp_by_addresses(&self) -> Vec<&'static str> {
        self.udp_fields.iter().filter(|(_, letters)| *letters == "sd").map(|(flow, _)| *flow).collect()
    }
}

/// A part of the header by which flow rules can distinguish packets of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKey {
    /// Security parameter index of ESP or AH: one rule for each association.
    Spi,
    /// Addresses of the tunnel's ends: one rule for each peer.
    Addresses,
    /// Address and port of the peer.
    PeerPort,
}

/// A setting that spreads packets of a class, or moves some of them to another queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// RPS on a receive queue of the interface, because the kernel hashes the flow inside.
    Rps {
        /// The queue with most of the class.
        queue: u32,
        /// CPUs to pass packets to.
        cpus: CpuSet,
        /// The queue already has a mask.
        in_effect: bool,
    },
    /// RPS on the software interface that receives the unpacked packets.
    RpsAbove {
        /// Name of the software interface.
        dev: String,
        /// CPUs to pass packets to.
        cpus: CpuSet,
        /// It already has a mask.
        in_effect: bool,
    },
    /// Threaded NAPI of a WireGuard interface, whose peers each have a NAPI instance. Linux 6.16 turns it on.
    ThreadedNapi {
        /// Name of the interface.
        dev: String,
        /// It is on.
        in_effect: bool,
    },
    /// Hash the ports of UDP.
    HashUdpPorts {
        /// The flow types that are hashed by addresses: `udp4`, `udp6`.
        flow_types: Vec<&'static str>,
    },
    /// Flow rules move some tunnels or peers to other queues, if the driver accepts such rules.
    FlowRules {
        /// What distinguishes them.
        by: RuleKey,
        /// The feature `ntuple` is on.
        in_effect: bool,
    },
}

/// What helps against a class whose busiest queue is `queue`; empty if no setting of the interface does.
pub fn remedies(class: TrafficClass, queue: Option<u32>, means: &AvailableRemedies) -> Vec<Remedy> {
    let mut out = Vec::new();
    let cpus = means.cpus_beside(queue);
    if class.is_spread_by_rps()
        && let Some(queue) = queue
        && let Some(mask) = means.rps.get(&queue)
        && (!cpus.is_empty() || !mask.is_empty())
    {
        let in_effect = !mask.is_empty();
        let cpus = if in_effect { mask.clone() } else { cpus.clone() };
        out.push(Remedy::Rps { queue, cpus, in_effect });
    }
    for t in means.tunnels.iter().filter(|t| t.kind.receives(class)) {
        let dev = t.dev.clone();
        if let (TunnelKind::Wireguard, Some(in_effect)) = (t.kind, t.threaded) {
            out.push(Remedy::ThreadedNapi { dev: dev.clone(), in_effect });
        }
        // WireGuard's packets enter its interface on the CPU of the peer's NAPI instance, others on that of the queue.
        let cpus = if t.kind == TunnelKind::Wireguard { &means.cpus } else { &cpus };
        if let Some(in_effect) = t.rps.filter(|_| !cpus.is_empty()) {
            out.push(Remedy::RpsAbove { dev, cpus: cpus.clone(), in_effect });
        }
    }
    let by_addresses = means.udp_by_addresses();
    if matches!(class.hashed_by(), HashedBy::EntropyPorts | HashedBy::PeerPorts) && !by_addresses.is_empty() {
        out.push(Remedy::HashUdpPorts { flow_types: by_addresses });
    }
    let key = match class {
        TrafficClass::Esp | TrafficClass::Ah => Some(RuleKey::Spi),
        TrafficClass::Gre | TrafficClass::IpInIp => Some(RuleKey::Addresses),
        _ if class.hashed_by() == HashedBy::PeerPorts => Some(RuleKey::PeerPort),
        _ => None,
    };
    if let (Some(by), FlowRules::On | FlowRules::Off) = (key, means.flow_rules) {
        out.push(Remedy::FlowRules { by, in_effect: means.flow_rules == FlowRules::On });
    }
    out
}

#[cfg(test)]
#[path = "unhashed_tests.rs"]
mod tests;
