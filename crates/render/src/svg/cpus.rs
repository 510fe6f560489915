//! The right half of the picture: CPUs by core and node, and which of them get a box.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuId, CpuSet, NodeId, Topology};

use super::rows::{Block, Target};
use crate::columns::{CpuGroup, Ranks, columns};

#[derive(Debug)]
pub(super) struct Core {
    pub rank: Option<usize>,
    pub l3: Option<usize>,
    /// CPUs with lines. They are below each other, so that each has a row for its lines.
    pub used: Vec<CpuId>,
    /// The other threads of the core, drawn beside them.
    pub idle: Vec<CpuId>,
    /// Not a core, but one box for these CPUs of the node.
    pub fold: CpuSet,
}

impl Core {
    pub(super) fn rows(&self) -> usize {
        self.used.len().max(1)
    }
}

#[derive(Debug)]
pub(super) struct NodeBox {
    pub place: CpuGroup,
    /// The node of the device.
    pub own: bool,
    pub cores: Vec<Core>,
    /// The number of cores without a line, which are not drawn, and their CPUs.
    pub other_cores: usize,
    pub other_cpus: CpuSet,
}

impl NodeBox {
    pub(super) fn title(&self, numa: bool) -> String {
        match self.place {
            CpuGroup::Node(n) if self.own => format!("node {n}, the device's own"),
            CpuGroup::Node(n) => format!("node {n}"),
            _ if numa => "node unknown".into(),
            _ => "CPUs (a kernel without nodes)".into(),
        }
    }
}

/// The CPUs whose interrupts share a row, by node.
pub(super) fn folds(blocks: &[Block<'_>]) -> BTreeMap<CpuGroup, CpuSet> {
    let mut out: BTreeMap<CpuGroup, CpuSet> = BTreeMap::new();
    for b in blocks {
        let Target::Fold(place) = b.target else { continue };
        let cpus = b.vectors.iter().filter_map(|v| v.effective.known()).flat_map(CpuSet::iter);
        let all = out.entry(place).or_default();
        *all = all.union(&cpus.collect());
    }
    out
}

/// The nodes with their cores. Cores without a line are only counted.
pub(super) fn nodes(
    t: &Topology,
    used: &BTreeSet<CpuId>,
    folds: &BTreeMap<CpuGroup, CpuSet>,
    own: Option<NodeId>,
) -> Vec<NodeBox> {
    let ranks = Ranks::of(t);
    let mut cores: Vec<(CpuGroup, Core)> = Vec::new();
    for c in columns(t, &ranks).into_iter().filter(|c| c.place != CpuGroup::Offline) {
        let same = cores.last().is_some_and(|(p, o)| *p == c.place && o.rank.is_some() && o.rank == c.core);
        if !same {
            cores.push((c.place, Core { rank: c.core, l3: c.l3, used: vec![], idle: vec![], fold: CpuSet::new() }));
        }
        if let Some((_, core)) = cores.last_mut() {
            if used.contains(&c.cpu) { &mut core.used } else { &mut core.idle }.push(c.cpu);
        }
    }
    let mut out: Vec<NodeBox> = Vec::new();
    for (place, core) in cores {
        let fold = folds.get(&place);
        if out.last().is_none_or(|n| n.place != place) {
            let own = matches!((place, own), (CpuGroup::Node(a), Some(b)) if a == b);
            let one = |fold: &CpuSet| Core { rank: None, l3: None, used: vec![], idle: vec![], fold: fold.clone() };
            let cores = fold.map(one).into_iter().collect();
            out.push(NodeBox { place, own, cores, other_cores: 0, other_cpus: CpuSet::new() });
        }
        let Some(node) = out.last_mut() else { continue };
        if !core.used.is_empty() {
            node.cores.push(core);
        } else if !core.idle.iter().any(|c| fold.is_some_and(|f| f.contains(*c))) {
            node.other_cores += 1;
            node.other_cpus = node.other_cpus.union(&core.idle.into_iter().collect());
        }
    }
    out
}
