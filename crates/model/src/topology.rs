//! CPUs, cores, caches and nodes of the host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CpuId, CpuSet, Fact, NodeId};

/// The contents of `/sys/devices/system/cpu` and `/sys/devices/system/node`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// CPUs that are online now.
    pub online: CpuSet,
    /// CPUs that the kernel can have; the width of a mask.
    pub possible: Fact<CpuSet>,
    /// CPUs that are plugged in, online or not.
    pub present: Fact<CpuSet>,
    /// `isolcpus=` (`/sys/devices/system/cpu/isolated`).
    pub isolated: Fact<CpuSet>,
    /// `nohz_full=` (`/sys/devices/system/cpu/nohz_full`).
    pub nohz_full: Fact<CpuSet>,
    /// CPUs of isolated cpuset partitions (`cpuset.cpus.isolated`).
    pub cgroup_isolated: Fact<CpuSet>,
    /// CPUs that a kubelet has given to single containers (`/var/lib/kubelet/cpu_manager_state`, policy `static`), and online
    /// CPUs that the container runtime removed from `/proc/irq/default_smp_affinity`.
    pub pods_exclusive: Fact<CpuSet>,
    /// Several threads of a core are in use (`/sys/devices/system/cpu/smt/active`).
    pub smt_active: Fact<bool>,
    /// One entry per online CPU. Numbers may be sparse.
    pub cpus: BTreeMap<CpuId, Cpu>,
    /// Absent: a kernel without NUMA. Unknown: no node directory in the capture.
    pub nodes: Fact<BTreeMap<NodeId, Node>>,
    /// `kvm`, `vmware`, `xen`, …: the topology of a guest may be wrong.
    pub hypervisor: Fact<String>,
}

/// One online CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Number of the CPU.
    pub id: CpuId,
    /// `physical_package_id`: the socket.
    pub package: Fact<u32>,
    /// `die_id`: unique only within its package.
    pub die: Fact<u32>,
    /// `core_id`: unique only within its package; compare cores by `siblings`.
    pub core: Fact<u32>,
    /// Threads of the same core, this CPU included.
    pub siblings: Fact<CpuSet>,
    /// CPUs that share this one's last-level cache of level 3, this CPU included. Absent: no L3 shown.
    pub l3: Fact<CpuSet>,
    /// Absent: the kernel has no NUMA nodes.
    pub node: Fact<NodeId>,
    /// `cpu_capacity` (hybrid machines), 1024 = the biggest.
    pub capacity: Fact<u32>,
}

/// One NUMA node; may have no CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number of the node.
    pub id: NodeId,
    /// Online CPUs of the node.
    pub cpus: CpuSet,
    /// To every node, itself included (normally 10), in SLIT units.
    pub distances: Fact<BTreeMap<NodeId, u32>>,
    /// `nodeN/meminfo`.
    #[serde(default = "not_recorded")]
    pub memory: Fact<NodeMemory>,
}

/// Memory of a NUMA node. Not what is free: that changes all the time, and two snapshots of an unchanged host are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMemory {
    /// `MemTotal`, in bytes.
    pub total_bytes: u64,
}

fn not_recorded() -> Fact<NodeMemory> {
    Fact::unknown("memory of the node", "not recorded by the version that wrote this")
}

impl Topology {
    /// The CPU of this number. `None`: it is not online.
    pub fn cpu(&self, id: CpuId) -> Option<&Cpu> {
        self.cpus.get(&id)
    }

    /// Node of the CPU. `None`: offline, or unknown.
    pub fn node_of(&self, cpu: CpuId) -> Option<NodeId> {
        self.cpus.get(&cpu)?.node.known().copied()
    }

    /// Threads of the CPU's core; only the CPU itself if they are unknown.
    pub fn siblings_of(&self, cpu: CpuId) -> CpuSet {
        match self.cpus.get(&cpu).and_then(|c| c.siblings.known()) {
            Some(s) => s.clone(),
            None => CpuSet::from_iter([cpu]),
        }
    }

    /// Other hardware threads of the cores of these CPUs: a program there and these CPUs slow each other down.
    pub fn beside(&self, cpus: &CpuSet) -> CpuSet {
        cpus.iter().fold(CpuSet::new(), |all, c| all.union(&self.siblings_of(c))).difference(cpus)
    }

    /// CPUs of this node whose core handles none of these interrupts, isolated CPUs excepted: where a program is better
    /// off than beside an interrupt. `None`: the CPUs whose node is unknown.
    pub fn without_interrupts(&self, interrupts: &CpuSet, node: Option<NodeId>) -> CpuSet {
        let usable = self.online.difference(&self.isolated_all());
        let free = usable.difference(interrupts).difference(&self.beside(interrupts));
        free.iter().filter(|c| self.node_of(*c) == node).collect()
    }

    /// CPUs that share the L3 cache of `cpu`: as the kernel reports, otherwise its node, otherwise its package,
    /// otherwise itself.
    pub fn l3_of(&self, cpu: CpuId) -> CpuSet {
        let Some(c) = self.cpus.get(&cpu) else {
            return CpuSet::from_iter([cpu]);
        };
        if let Some(l3) = c.l3.known() {
            return l3.clone();
        }
        if let Some(node) = c.node.known().and_then(|n| self.node(*n)) {
            return node.cpus.clone();
        }
        if let Some(p) = c.package.known() {
            return self.cpus.values().filter(|o| o.package.known() == Some(p)).map(|o| o.id).collect();
        }
        CpuSet::from_iter([cpu])
    }

    /// The node of this number. `None`: it does not exist, or nodes are unknown.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.known()?.get(&id)
    }

    /// Distance between two nodes as the firmware reports it; 10 for the same node even without a table.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let told = self.node(from).and_then(|n| n.distances.known()).and_then(|d| d.get(&to)).copied();
        told.or((from == to).then_some(10))
    }

    /// CPUs that are kept free of other work, by whichever option of the kernel or by a kubelet.
    pub fn isolated_all(&self) -> CpuSet {
        let mut all = CpuSet::new();
        for f in [&self.isolated, &self.nohz_full, &self.cgroup_isolated, &self.pods_exclusive] {
            if let Some(s) = f.known() {
                all = all.union(s);
            }
        }
        all
    }
}
