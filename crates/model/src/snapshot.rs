//! Everything that was read from a host at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::function::{FunctionWithoutInterface, UserspaceFunction};
use crate::{ControlPath, Fact, IfIndex, Nic, NicKind, Topology, Unread, natural};

/// Name of the JSON document in `show -j` and in captures.
pub const SCHEMA: &str = "ringwise.snapshot";
/// An additional field does not change it; a removed or changed field raises it.
pub const VERSION: u32 = 1;

/// Everything that was read from a host at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The host as a whole.
    pub host: Host,
    /// CPUs and NUMA nodes.
    pub topology: Topology,
    /// Interfaces with queues of their own or that carry others, by name in natural order (`eth2` before `eth10`).
    pub nics: Vec<Nic>,
    /// Software interfaces that were only counted.
    pub bystanders: QueuelessInterfaces,
    /// Connections that must not be interrupted. Known and empty: there are none.
    #[serde(default = "not_recorded")]
    pub control: Fact<Vec<ControlPath>>,
    /// Network functions that a user-space driver holds: they have no interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<UserspaceFunction>,
    /// Network functions with a driver of the kernel whose interface is in another network namespace, or that have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_interface: Vec<FunctionWithoutInterface>,
    /// What could not be read and belongs to no single device.
    pub unread: Vec<Unread>,
}

/// The host itself: name, kernel, boot and settings that belong to no interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// `/proc/sys/kernel/hostname`.
    pub name: Fact<String>,
    /// `6.12.48` as in `/proc/sys/kernel/osrelease`.
    pub kernel: Fact<String>,
    /// ID of this boot; journals of another boot are not restored.
    pub boot_id: Fact<String>,
    /// `/etc/machine-id`.
    pub machine_id: Fact<String>,
    /// sysctl `net.core.rps_sock_flow_entries`; 0: RFS off.
    pub rps_sock_flow_entries: Fact<u32>,
    /// sysctl `net.core.rps_default_mask` (mask given to new queues).
    pub rps_default_mask: Fact<crate::CpuSet>,
    /// Running programs that would change the settings of ringwise, by name (`irqbalance`).
    pub rivals: Fact<Vec<String>>,
    /// What each of them, and configuration files, would set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rival_details: Vec<crate::CompetingProgram>,
    /// irqbalance, and the interrupts that it skips. Absent: it does not run.
    #[serde(default = "crate::competing_programs::not_recorded")]
    pub irqbalance: Fact<crate::Irqbalance>,
    /// sysctl `net.ipv4.ip_forward` or the IPv6 one is on.
    pub forwarding: Fact<bool>,
    /// sysctls of the network core by name (`net.core.netdev_budget`), as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, Fact<String>>,
    /// `power/pm_qos_resume_latency_us` of each CPU: microseconds, 0 for no limit, `n/a` for none at all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_latency: BTreeMap<crate::CpuId, Fact<String>>,
    /// How the machine saves power; only shown. `None`: not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// `/proc` or `/sys` cannot be written (as in a container).
    pub read_only: Fact<bool>,
}

/// What determines how fast CPUs and buses wake up; ringwise does not set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    /// `scaling_governor`, and the CPUs that have it. Absent: nothing scales the frequency.
    pub governor: Fact<BTreeMap<String, crate::CpuSet>>,
    /// `energy_performance_preference` of CPUs that are not isolated, because reading it interrupts the CPU.
    pub preference: Fact<BTreeMap<String, crate::CpuSet>>,
    /// Frequencies above the nominal one are allowed (`intel_pstate/no_turbo`, `cpufreq/boost`).
    pub turbo: Fact<bool>,
    /// Policy of `pcie_aspm`. Absent: the kernel has none.
    pub aspm: Fact<String>,
}

/// Interfaces without queues of their own: counted by kind, with the interfaces below them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuelessInterfaces {
    /// `vlan` → 2114.
    pub count: BTreeMap<String, u32>,
    /// Per kind: interfaces on top of this one.
    pub above: BTreeMap<IfIndex, BTreeMap<String, u32>>,
}

fn not_recorded() -> Fact<Vec<ControlPath>> {
    Fact::unknown("control path", "not recorded by the version that wrote this")
}

impl Snapshot {
    /// Discovery sorts the interfaces by name, and each step of a plan looks for its own among thousands. Snapshots
    /// in another order are searched from the beginning.
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        let sorted = self.nics.binary_search_by(|n| natural::compare(&n.dev.name, name)).ok();
        sorted.and_then(|i| self.nics.get(i)).or_else(|| self.nics.iter().find(|n| n.dev.name == name))
    }

    /// The interface with this index. `None`: it does not exist, or its index is unknown.
    pub fn nic_by_index(&self, index: IfIndex) -> Option<&Nic> {
        self.nics.iter().find(|n| n.dev.ifindex == Some(index))
    }

    /// Interfaces with queues of their own on which this one is stacked: the members of a bond or bridge, the interface
    /// below a VLAN. Empty if it has queues of its own.
    pub fn members_of(&self, nic: &Nic) -> Vec<&Nic> {
        let (mut found, mut seen) = (BTreeMap::new(), BTreeSet::new());
        let mut todo: Vec<&Nic> = if nic.has_own_queues() { Vec::new() } else { vec![nic] };
        while let Some(n) = todo.pop() {
            for below in n.lower.iter().filter(|i| seen.insert(**i)).filter_map(|i| self.nic_by_index(*i)) {
                if below.has_own_queues() {
                    found.insert(below.dev.ifindex, below);
                } else {
                    todo.push(below);
                }
            }
        }
        found.into_values().collect()
    }

    /// Interfaces with queues of their own that receive packets for this address of the host: the interface that has the address, or
    /// those on which it is stacked.
    pub fn interfaces_with(&self, address: IpAddr) -> Vec<&Nic> {
        let has = |n: &&Nic| {
            let all = n.addresses.known().into_iter().flatten();
            let mut plain = all.filter_map(|a| a.split('/').next()?.parse::<IpAddr>().ok());
            plain.any(|a| a == address)
        };
        let below = |n| if Nic::has_own_queues(n) { vec![n] } else { self.members_of(n) };
        self.nics.iter().filter(has).flat_map(below).collect()
    }

    /// All interfaces by number, for many lookups: [`Self::nic_by_index`] searches the whole list each time.
    pub fn by_index(&self) -> BTreeMap<IfIndex, &Nic> {
        let mut out = BTreeMap::new();
        for n in &self.nics {
            if let Some(index) = n.dev.ifindex {
                out.entry(index).or_insert(n);
            }
        }
        out
    }

    /// Interfaces that a plan may consider: own queues, a driver.
    pub fn tunable(&self) -> impl Iterator<Item = &Nic> {
        self.nics.iter().filter(|n| n.has_own_queues() && !matches!(n.kind, NicKind::Unknown) && !n.driver.is_absent())
    }
}
