//! The CPUs of a host as columns: by node, with the threads of a core side by side, and with their caches.

use std::collections::BTreeMap;

use ringwise_model::order::Order;
use ringwise_model::{CpuId, CpuSet, NodeId, Topology};

/// One CPU as a column of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub cpu: CpuId,
    pub place: CpuGroup,
    /// Index of the core on the host. `None`: its siblings are unknown, or the CPU is offline.
    pub core: Option<usize>,
    /// Index of the L3 cache on the host.
    pub l3: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CpuGroup {
    Node(NodeId),
    /// The CPU is online, and its node is not known.
    NoNode,
    Offline,
}

/// Indexes of cores and caches, in the order of their first CPU.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    core: BTreeMap<CpuId, usize>,
    l3: BTreeMap<CpuId, usize>,
}

impl Ranks {
    pub(crate) fn of(t: &Topology) -> Self {
        let rank = |sets: Vec<(CpuId, CpuSet)>| {
            let mut firsts: Vec<CpuId> = sets.iter().filter_map(|(_, s)| s.first()).collect();
            firsts.sort();
            firsts.dedup();
            sets.into_iter()
                .filter_map(|(cpu, s)| Some((cpu, firsts.binary_search(&s.first()?).ok()?)))
                .collect::<BTreeMap<_, _>>()
        };
        Self {
            core: rank(t.cpus.values().filter_map(|c| Some((c.id, c.siblings.known()?.clone()))).collect()),
            l3: rank(t.cpus.values().filter_map(|c| Some((c.id, c.l3.known()?.clone()))).collect()),
        }
    }

    pub(crate) fn core(&self, c: CpuId) -> Option<usize> {
        self.core.get(&c).copied()
    }

    pub(crate) fn l3(&self, c: CpuId) -> Option<usize> {
        self.l3.get(&c).copied()
    }

    /// Whether any core has more than one thread.
    pub(crate) fn smt(&self) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        self.core.values().any(|c| !seen.insert(*c))
    }
}

/// Every present CPU, by node, with the threads of a core side by side. Offline CPUs are last.
pub(crate) fn columns(t: &Topology, ranks: &Ranks) -> Vec<Column> {
    let all = t.present.known().map_or_else(|| t.online.clone(), |p| p.union(&t.online));
    let mut out: Vec<Column> = all
        .iter()
        .map(|cpu| {
            let place = if !t.online.contains(cpu) {
                CpuGroup::Offline
            } else {
                t.node_of(cpu).map_or(CpuGroup::NoNode, CpuGroup::Node)
            };
            Column { cpu, place, core: ranks.core(cpu), l3: ranks.l3(cpu) }
        })
        .collect();
    out.order_by_key(|c| (c.place, c.core, c.cpu));
    out
}
