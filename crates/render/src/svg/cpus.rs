//! The right half of the picture: CPUs by core and node, and which of them get a box.

use std::collections::BTreeSet;

use ringwise_model::{CpuId, NodeId, Topology};

use crate::columns::{Place, Ranks, columns};

/// Up to this many cores, all of them are drawn.
const ALL_CORES: usize = 16;

#[derive(Debug)]
pub(super) struct Core {
    pub rank: Option<usize>,
    pub l3: Option<usize>,
    /// CPUs with lines. They are below each other, so that each has a row for its lines.
    pub used: Vec<CpuId>,
    /// The other threads of the core, drawn beside them.
    pub idle: Vec<CpuId>,
}

impl Core {
    pub(super) fn rows(&self) -> usize {
        self.used.len().max(1)
    }
}

#[derive(Debug)]
pub(super) struct NodeBox {
    pub place: Place,
    /// The node of the device.
    pub own: bool,
    pub cores: Vec<Core>,
    /// The number of cores that are not drawn.
    pub other_cores: usize,
    pub other_cpus: usize,
}

impl NodeBox {
    pub(super) fn title(&self, numa: bool) -> String {
        match self.place {
            Place::Node(n) if self.own => format!("node {n}, the device's own"),
            Place::Node(n) => format!("node {n}"),
            _ if numa => "node unknown".into(),
            _ => "CPUs (a kernel without nodes)".into(),
        }
    }
}

pub(super) fn nodes(t: &Topology, used: &BTreeSet<CpuId>, own: Option<NodeId>) -> Vec<NodeBox> {
    let ranks = Ranks::of(t);
    let mut cores: Vec<(Place, Core)> = Vec::new();
    for c in columns(t, &ranks).into_iter().filter(|c| c.place != Place::Offline) {
        let same = cores.last().is_some_and(|(p, o)| *p == c.place && o.rank.is_some() && o.rank == c.core);
        if !same {
            cores.push((c.place, Core { rank: c.core, l3: c.l3, used: vec![], idle: vec![] }));
        }
        if let Some((_, core)) = cores.last_mut() {
            if used.contains(&c.cpu) { &mut core.used } else { &mut core.idle }.push(c.cpu);
        }
    }
    let all = cores.len() <= ALL_CORES;
    let mut out: Vec<NodeBox> = Vec::new();
    for (place, core) in cores {
        if out.last().is_none_or(|n| n.place != place) {
            let own = matches!((place, own), (Place::Node(a), Some(b)) if a == b);
            out.push(NodeBox { place, own, cores: vec![], other_cores: 0, other_cpus: 0 });
        }
        let Some(node) = out.last_mut() else { continue };
        if all || !core.used.is_empty() {
            node.cores.push(core);
        } else {
            node.other_cores += 1;
            node.other_cpus += core.idle.len();
        }
    }
    out
}
