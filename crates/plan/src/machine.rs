//! The host's CPUs with dense indices, so that placing thousands of queues needs few map lookups.

use std::collections::{BTreeMap, HashMap};

use ringwise_model::{CpuId, CpuSet, Fact, Nic, NodeId, Topology};

/// Distance up to which another node counts as near: the same socket on machines with sub-NUMA nodes.
const NEAR_DISTANCE: u32 = 12;

pub(crate) struct Machine<'a> {
    pub topo: &'a Topology,
    pub isolated: CpuSet,
    /// Online CPUs, ascending. All other lists are indexed by the position in this list.
    pub cpus: Vec<CpuId>,
    index: Vec<u32>,
    pub core: Vec<usize>,
    pub l3: Vec<usize>,
    pub node: Vec<Option<NodeId>>,
    pub package: Vec<Option<u32>>,
    /// 0 for the biggest cores of a hybrid machine.
    pub weakness: Vec<u32>,
    /// Online threads of each core, ascending.
    pub cores: Vec<Vec<usize>>,
    /// Online CPUs of each locality unit, ascending: an L3 domain within one node.
    pub l3s: Vec<Vec<usize>>,
    /// Online CPUs by node; one entry under `None` if the nodes are unknown.
    pub by_node: BTreeMap<Option<NodeId>, Vec<usize>>,
    /// CPUs that are kept free of queues for other work.
    pub kept_free: CpuSet,
    /// CPUs that serve interrupts of network functions without an interface here, once for each interrupt.
    pub loaded_elsewhere: Vec<usize>,
}

const NONE: u32 = u32::MAX;

impl<'a> Machine<'a> {
    pub(crate) fn new(topo: &'a Topology) -> Self {
        let cpus: Vec<CpuId> = topo.online.iter().collect();
        let mut index = vec![NONE; cpus.last().map_or(0, |c| c.0 as usize + 1)];
        for (i, c) in cpus.iter().enumerate() {
            index[c.0 as usize] = i as u32;
        }
        let n = cpus.len();
        let mut m = Self {
            topo,
            isolated: topo.isolated_all(),
            cpus,
            index,
            core: Vec::with_capacity(n),
            l3: Vec::with_capacity(n),
            node: Vec::with_capacity(n),
            package: Vec::with_capacity(n),
            weakness: vec![0; n],
            cores: Vec::new(),
            l3s: Vec::new(),
            by_node: BTreeMap::new(),
            kept_free: CpuSet::new(),
            loaded_elsewhere: Vec::new(),
        };
        let mut core_of: HashMap<CpuId, usize> = HashMap::new();
        let mut l3_of: HashMap<(Option<NodeId>, u8, u32), usize> = HashMap::new();
        let strongest = topo.cpus.values().filter_map(|c| c.capacity.known()).max().copied();
        for i in 0..n {
            let id = m.cpus[i];
            let cpu = topo.cpu(id);
            let node = cpu.and_then(|c| c.node.known()).copied();
            let package = cpu.and_then(|c| c.package.known()).copied();
            let lead = |set: &CpuSet| set.iter().find(|c| topo.online.contains(*c)).unwrap_or(id);
            let core_key = cpu.and_then(|c| c.siblings.known()).map_or(id, lead);
            let l3_key = match (cpu.and_then(|c| c.l3.known()), node, package) {
                (Some(set), _, _) => (0, lead(set).0),
                (None, Some(n), _) => (1, n.0),
                (None, None, Some(p)) => (2, p),
                // Caches, nodes and packages are unknown: all CPUs form one unit, otherwise no CPUs could share anything.
                (None, None, None) => (3, 0),
            };
            let core = *core_of.entry(core_key).or_insert_with(|| {
                m.cores.push(Vec::new());
                m.cores.len() - 1
            });
            m.cores[core].push(i);
            let l3 = *l3_of.entry((node, l3_key.0, l3_key.1)).or_insert_with(|| {
                m.l3s.push(Vec::new());
                m.l3s.len() - 1
            });
            m.l3s[l3].push(i);
            m.by_node.entry(node).or_default().push(i);
            m.core.push(core);
            m.l3.push(l3);
            m.node.push(node);
            m.package.push(package);
            if let (Some(max), Some(c)) = (strongest, cpu.and_then(|c| c.capacity.known())) {
                m.weakness[i] = max - c;
            }
        }
        m
    }

    pub(crate) fn at(&self, cpu: CpuId) -> Option<usize> {
        self.index.get(cpu.0 as usize).filter(|i| **i != NONE).map(|i| *i as usize)
    }

    pub(crate) fn set(&self, cpus: impl IntoIterator<Item = usize>) -> CpuSet {
        cpus.into_iter().map(|i| self.cpus[i]).collect()
    }

    /// Whether several nodes have CPUs, so that local and remote differ.
    pub(crate) fn has_nodes(&self) -> bool {
        self.by_node.len() > 1
    }

    /// What counts as near for this device.
    pub(crate) fn near(&self, nic: &Nic) -> Near {
        if let Fact::Known(n) = &nic.node
            && self.topo.node(*n).is_some()
            && self.node.iter().any(Option::is_some)
        {
            return Near::Node(*n);
        }
        if let Fact::Known(local) = &nic.local_cpus {
            let local = local.intersection(&self.topo.online);
            if !local.is_empty() && local != self.topo.online {
                return Near::Cpus(local);
            }
        }
        Near::All
    }

    /// Class and distance of every CPU for devices with the same `near`. `wide`: nodes up to distance 12 count as near,
    /// so that an idle core there takes precedence over a second thread of the device's node (`forward`); otherwise the
    /// device's own node is filled first, second threads included.
    pub(crate) fn zone(&self, near: &Near, wide: bool) -> Zone {
        let n = self.cpus.len();
        let mut z = Zone { class: vec![Class::Near; n], distance: vec![0; n], home: vec![true; n] };
        let home_packages = |m: &Self, z: &Zone| -> Vec<u32> {
            let mut p: Vec<u32> = (0..n).filter(|i| z.home[*i]).filter_map(|i| m.package[i]).collect();
            p.sort();
            p.dedup();
            p
        };
        match near {
            Near::All => {}
            Near::Cpus(local) => {
                for i in 0..n {
                    z.home[i] = local.contains(self.cpus[i]);
                }
                let packages = home_packages(self, &z);
                for i in (0..n).filter(|i| !local.contains(self.cpus[*i])) {
                    let same = self.package[i].is_some_and(|p| packages.contains(&p));
                    (z.class[i], z.distance[i]) = if same { (Class::Socket, 1) } else { (Class::Far, 2) };
                }
            }
            Near::Node(node) => {
                // A node may have no online CPUs: the nearest nodes with online CPUs replace it.
                let far = u32::MAX;
                let tell: BTreeMap<Option<NodeId>, u32> = self
                    .by_node
                    .keys()
                    .map(|k| (*k, k.and_then(|k| self.topo.distance(*node, k)).unwrap_or(far)))
                    .collect();
                let home: Vec<Option<NodeId>> = if self.by_node.contains_key(&Some(*node)) {
                    vec![Some(*node)]
                } else {
                    let least = tell.values().min().copied();
                    tell.iter().filter(|(_, d)| Some(**d) == least).map(|(k, _)| *k).collect()
                };
                for i in 0..n {
                    z.home[i] = home.contains(&self.node[i]);
                }
                let packages = home_packages(self, &z);
                for i in (0..n).filter(|i| !home.contains(&self.node[*i])) {
                    let d = tell[&self.node[i]];
                    z.distance[i] = d;
                    z.class[i] = if wide && d <= NEAR_DISTANCE {
                        Class::Near
                    } else if d <= NEAR_DISTANCE || self.package[i].is_some_and(|p| packages.contains(&p)) {
                        Class::Socket
                    } else {
                        Class::Far
                    };
                }
            }
        }
        z
    }
}

/// What a device is near to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Near {
    Node(NodeId),
    /// The node is unknown, but the device lists its local CPUs.
    Cpus(CpuSet),
    /// Unknown: all CPUs are treated alike.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// The device's node; in a wide zone also nodes up to distance 12.
    Near,
    /// Other nodes of the same socket, or up to distance 12.
    Socket,
    /// Other sockets.
    Far,
}

/// By dense CPU index.
pub(crate) struct Zone {
    pub class: Vec<Class>,
    pub distance: Vec<u32>,
    /// The device's own node.
    pub home: Vec<bool>,
}
