//! What is watched, and how it hangs together: interfaces, their queues and vectors. Pure.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, Dir, IrqId, NodeId, Snapshot};
use serde::{Deserialize, Serialize};

/// The chain as it was when somebody last looked; counters are read and told along it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub links: BTreeMap<String, Wiring>,
    /// Node of each CPU, where the kernel has nodes.
    pub nodes: BTreeMap<CpuId, NodeId>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wiring {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// `None`: not known, which is not node 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Mb/s, while there is a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbps: Option<u32>,
    /// Queues that exist, and the vector of each where it is known.
    pub rx: BTreeMap<u32, Option<IrqId>>,
    pub tx: BTreeMap<u32, Option<IrqId>>,
    /// Where the vectors went when somebody last looked.
    pub goes_to: BTreeMap<IrqId, CpuSet>,
}

impl Layout {
    /// Of these interfaces; `named` empty: those with queues of their own.
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
                rx: n.rx_queues.iter().map(|q| queue(Dir::Rx, q.id)).collect(),
                tx: n.tx_queues.iter().map(|q| queue(Dir::Tx, q.id)).collect(),
                goes_to: n
                    .queue_vectors()
                    .filter_map(|v| Some((v.irq, v.effective.known()?.clone())))
                    .filter(|(_, cpus)| !cpus.is_empty())
                    .collect(),
            };
            (n.name().to_string(), wiring)
        });
        let node = |(id, c): (&CpuId, &ringwise_model::Cpu)| Some((*id, *c.node.known()?));
        Self { links: links.collect(), nodes: s.topology.cpus.iter().filter_map(node).collect() }
    }

    /// Every vector of a queue, once.
    pub fn vectors(&self) -> Vec<IrqId> {
        let of = |w: &Wiring| w.rx.values().chain(w.tx.values()).flatten().copied().collect::<Vec<_>>();
        let all: std::collections::BTreeSet<IrqId> = self.links.values().flat_map(of).collect();
        all.into_iter().collect()
    }
}
