//! The watched interfaces, their queues and vectors, and how they belong together. Pure.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, Dir, IrqId, NodeId, Snapshot};

/// Interfaces, queues and vectors as the last discovery found them. Counters are read and reported by this layout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// By name of the interface.
    pub links: BTreeMap<String, Wiring>,
    /// Node of each CPU, where the kernel has nodes.
    pub nodes: BTreeMap<CpuId, NodeId>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wiring {
    /// `None`: not known.
    pub driver: Option<String>,
    /// `None`: not known, which is not node 0.
    pub node: Option<NodeId>,
    /// Mb/s, while there is a link.
    pub speed_mbps: Option<u32>,
    /// Queues that exist, and the vector of each where it is known.
    pub rx: BTreeMap<u32, Option<IrqId>>,
    /// The same for transmit queues.
    pub tx: BTreeMap<u32, Option<IrqId>>,
    /// The CPUs to which each vector is delivered, as of the last discovery ([`ringwise_model::Vector::taken_by`]).
    pub goes_to: BTreeMap<IrqId, CpuSet>,
}

/// Builds a map entry by entry, because `collect` adds code for sorting to the program for each type.
pub(crate) fn gather<K: Ord, V>(all: impl Iterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut out = BTreeMap::new();
    for (k, v) in all {
        out.insert(k, v);
    }
    out
}

impl Layout {
    /// The layout of these interfaces; if `named` is empty, of all with queues of their own.
    pub fn of(s: &Snapshot, named: &[String]) -> Self {
        let wanted = |n: &&ringwise_model::Nic| {
            if named.is_empty() { n.has_own_queues() } else { named.iter().any(|d| d == n.name()) }
        };
        let links = s.nics.iter().filter(wanted).map(|n| {
            let queue = |dir, id| (id, n.vector_of(dir, id).map(|v| v.irq));
            let wiring = Wiring {
                driver: n.driver.known().cloned(),
                node: n.node.known().copied(),
                speed_mbps: n.link.speed_mbps.known().copied(),
                rx: gather(n.rx_queues.iter().map(|q| queue(Dir::Rx, q.id))),
                tx: gather(n.tx_queues.iter().map(|q| queue(Dir::Tx, q.id))),
                goes_to: gather(
                    n.queue_vectors()
                        .filter_map(|v| Some((v.irq, v.taken_by()?.clone())))
                        .filter(|(_, cpus)| !cpus.is_empty()),
                ),
            };
            (n.name().to_string(), wiring)
        });
        let node = |(id, c): (&CpuId, &ringwise_model::Cpu)| Some((*id, *c.node.known()?));
        Self { links: gather(links), nodes: gather(s.topology.cpus.iter().filter_map(node)) }
    }

    /// Every vector that serves a queue, once.
    pub fn vectors(&self) -> Vec<IrqId> {
        let mut all: Vec<u32> = Vec::new();
        for w in self.links.values() {
            all.extend(w.rx.values().chain(w.tx.values()).flatten().map(|i| i.0));
        }
        all.sort();
        all.dedup();
        all.into_iter().map(IrqId).collect()
    }
}
