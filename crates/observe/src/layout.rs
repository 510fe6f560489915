//! The watched interfaces, their queues and vectors, and how they belong together. Pure.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuId, CpuSet, Dir, Fact, IrqId, NapiInstance, Nic, NodeId, Snapshot};

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
    /// The NAPI threads of receive queues. `None`: unknown, or not recorded.
    pub threads: Option<BTreeMap<u32, NapiThread>>,
}

/// The thread that polls a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NapiThread {
    /// Process id.
    pub pid: u32,
    /// `None`: it may run on several CPUs, or on which is unknown.
    pub cpu: Option<CpuId>,
}

/// Builds a map entry by entry, because `collect` adds code for sorting to the program for each type.
pub(crate) fn gather<K: Ord, V>(all: impl Iterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut out = BTreeMap::new();
    for (k, v) in all {
        out.insert(k, v);
    }
    out
}

fn threads(n: &Nic) -> Option<BTreeMap<u32, NapiThread>> {
    let napi = match &n.napi {
        Fact::Known(napi) => napi,
        Fact::Absent => return Some(BTreeMap::new()),
        Fact::Unknown(_) => return None,
    };
    let of = |i: &NapiInstance| {
        let thread = i.thread.as_ref()?;
        let cpu = thread.cpus.known().filter(|c| c.len() == 1).and_then(CpuSet::first);
        Some((i.rx.clone(), NapiThread { pid: thread.pid, cpu }))
    };
    let each = napi.instances.iter().filter_map(of).flat_map(|(queues, t)| queues.into_iter().map(move |q| (q, t)));
    let found: BTreeMap<u32, NapiThread> = gather(each);
    // Before Linux 6.7 the kernel does not report which threads poll.
    let hidden = found.is_empty() && napi.device.threaded.is_some_and(|t| t > 0);
    (!hidden).then_some(found)
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
                threads: threads(n),
            };
            (n.name().to_string(), wiring)
        });
        let node = |(id, c): (&CpuId, &ringwise_model::Cpu)| Some((*id, *c.node.known()?));
        Self { links: gather(links), nodes: gather(s.topology.cpus.iter().filter_map(node)) }
    }

    /// Every NAPI thread, once.
    pub fn napi_threads(&self) -> BTreeSet<u32> {
        self.links.values().filter_map(|w| w.threads.as_ref()).flat_map(BTreeMap::values).map(|t| t.pid).collect()
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
