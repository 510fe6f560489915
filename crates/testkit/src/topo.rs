//! CPU topologies from a few numbers.

use std::collections::BTreeMap;

use ringwise_model::{Cpu, CpuId, CpuSet, Fact, Node, NodeId, Topology};
use serde::{Deserialize, Serialize};

/// How the firmware numbers the CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Numbering {
    /// 0/1, 2/3, … are threads of one core.
    #[default]
    Adjacent,
    /// First threads of all cores, then the second ones.
    ThreadsLast,
    /// As before, but the packages alternate.
    RoundRobin,
}

fn one() -> u32 {
    1
}

/// A machine's processors. Every count is per the level above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuSpec {
    /// CPU sockets of the machine, at least 1.
    #[serde(default = "one")]
    pub packages: u32,
    /// NUMA nodes per package; 0: a kernel without NUMA.
    #[serde(default = "one")]
    pub nodes: u32,
    /// L3 domains per node.
    #[serde(default = "one")]
    pub l3s: u32,
    /// Cores per L3 domain.
    pub cores: u32,
    /// Hardware threads per core.
    #[serde(default = "one")]
    pub threads: u32,
    /// Which CPU numbers the threads of a core have.
    #[serde(default)]
    pub numbering: Numbering,
    /// Instead of `nodes`: package p lies on node p modulo this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternate_nodes: Option<u32>,
    /// Distance between nodes of one package.
    #[serde(default = "twelve")]
    pub socket_distance: u32,
    /// CPUs that are present and offline; they have no topology, as in sysfs.
    #[serde(default)]
    pub offline: CpuSet,
    /// As `/sys/devices/system/cpu/isolated`.
    #[serde(default)]
    pub isolated: CpuSet,
    /// As `/sys/devices/system/cpu/nohz_full`.
    #[serde(default)]
    pub nohz_full: CpuSet,
    /// Cores that are half as strong, counted from the end.
    #[serde(default)]
    pub small_cores: u32,
    /// Name of the hypervisor in a guest. None: bare metal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
}

fn twelve() -> u32 {
    12
}

impl CpuSpec {
    /// One package, one node, one L3.
    pub fn flat(cores: u32, threads: u32) -> Self {
        Self {
            packages: 1,
            nodes: 1,
            l3s: 1,
            cores,
            threads,
            numbering: Numbering::Adjacent,
            alternate_nodes: None,
            socket_distance: 12,
            offline: CpuSet::new(),
            isolated: CpuSet::new(),
            nohz_full: CpuSet::new(),
            small_cores: 0,
            hypervisor: None,
        }
    }

    /// What discovery would return for these processors; no fact of it is unknown.
    pub fn topology(&self) -> Topology {
        let per_node = self.l3s * self.cores;
        let per_package = self.nodes.max(1) * per_node;
        let total = self.packages * per_package;
        let number = |core: u32, thread: u32| match self.numbering {
            Numbering::Adjacent => core * self.threads + thread,
            Numbering::ThreadsLast => thread * total + core,
            Numbering::RoundRobin => thread * total + core % per_package * self.packages + core / per_package,
        };
        let cores: Vec<u32> = (0..total).collect();
        let set = |f: &dyn Fn(u32) -> bool| -> CpuSet {
            let of = cores.iter().copied().filter(|c| f(*c));
            of.flat_map(|c| (0..self.threads).map(move |t| CpuId(number(c, t)))).collect()
        };
        let possible = set(&|_| true);
        let online = possible.difference(&self.offline);
        let node_of = |core: u32| match self.alternate_nodes {
            Some(n) => core / per_package % n,
            None => core / per_node,
        };
        let mut cpus = BTreeMap::new();
        let mut nodes: BTreeMap<NodeId, CpuSet> = BTreeMap::new();
        for core in 0..total {
            let siblings = set(&|c| c == core).intersection(&online);
            let l3 = set(&|c| c / self.cores == core / self.cores).intersection(&online);
            let node = if self.nodes == 0 { Fact::Absent } else { Fact::Known(NodeId(node_of(core))) };
            if let Fact::Known(n) = &node {
                let all = nodes.entry(*n).or_default();
                *all = all.union(&siblings);
            }
            for thread in 0..self.threads {
                let id = CpuId(number(core, thread));
                if !online.contains(id) {
                    continue;
                }
                let small = core + self.small_cores >= total;
                let cpu = Cpu {
                    id,
                    package: Fact::Known(core / per_package),
                    die: Fact::Known(0),
                    core: Fact::Known(core % per_package),
                    siblings: Fact::Known(siblings.clone()),
                    l3: Fact::Known(l3.clone()),
                    node: node.clone(),
                    capacity: if self.small_cores > 0 {
                        Fact::Known(if small { 512 } else { 1024 })
                    } else {
                        Fact::Absent
                    },
                };
                cpus.insert(id, cpu);
            }
        }
        let package_of = |n: NodeId| if self.alternate_nodes.is_some() { n.0 } else { n.0 / self.nodes.max(1) };
        let ids: Vec<NodeId> = nodes.keys().copied().collect();
        let distance = |a: NodeId, b: NodeId| {
            if a == b {
                10
            } else if package_of(a) == package_of(b) {
                self.socket_distance
            } else {
                21
            }
        };
        let nodes: BTreeMap<NodeId, Node> = nodes
            .into_iter()
            .map(|(id, cpus)| {
                let distances = ids.iter().map(|o| (*o, distance(id, *o))).collect();
                (id, Node { id, cpus, distances: Fact::Known(distances), memory: Fact::Absent })
            })
            .collect();
        Topology {
            online,
            possible: Fact::Known(possible.clone()),
            present: Fact::Known(possible),
            isolated: Fact::Known(self.isolated.clone()),
            nohz_full: Fact::Known(self.nohz_full.clone()),
            cgroup_isolated: Fact::Absent,
            pods_exclusive: Fact::Absent,
            smt_active: Fact::Known(self.threads > 1),
            cpus,
            nodes: if self.nodes == 0 { Fact::Absent } else { Fact::Known(nodes) },
            hypervisor: self.hypervisor.clone().map_or(Fact::Absent, Fact::Known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_48_cpu_machine_of_the_article() {
        let t = CpuSpec { packages: 2, numbering: Numbering::ThreadsLast, ..CpuSpec::flat(12, 2) }.topology();
        let node = |n| t.node(NodeId(n)).map(|n| n.cpus.to_string());
        assert_eq!(node(0).as_deref(), Some("0-11,24-35"));
        assert_eq!(node(1).as_deref(), Some("12-23,36-47"));
        assert_eq!(t.siblings_of(CpuId(8)).to_string(), "8,32");
    }

    #[test]
    fn alternating_sockets() {
        let t = CpuSpec { packages: 8, alternate_nodes: Some(2), ..CpuSpec::flat(1, 1) }.topology();
        assert_eq!(t.node(NodeId(1)).map(|n| n.cpus.to_string()).as_deref(), Some("1,3,5,7"));
    }
}
