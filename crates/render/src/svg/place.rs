//! The layout of the picture. Sizes follow from the content.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuId, CpuSet, Topology, Vector};

use super::MARGIN;
use super::cpus::{Core, NodeBox};
use super::rows::{Block, MAX_LIST, Row, Target, cpus, short};
use crate::columns::CpuGroup;
use ringwise_draw::canvas::{Point, at, width};
use ringwise_text::{numbers, plural};

pub(super) const NODE_HEAD: f64 = 24.0;
pub(super) const NODE_PAD: f64 = 10.0;
const NODE_GAP: f64 = 14.0;
const OTHERS: f64 = 18.0;
pub(super) const CORE_PAD: f64 = 3.0;
/// Horizontal padding in a box, of both sides together.
const INNER: f64 = 14.0;

/// Sizes that are the same everywhere.
#[derive(Debug)]
pub(super) struct Sizes {
    pub font: f64,
    /// Distance between queues.
    pub pitch: f64,
    pub cell: f64,
    /// Distance between CPUs of a core.
    pub cpu: f64,
    pub core_gap: f64,
}

/// Left edges and widths of the columns.
#[derive(Debug)]
pub(super) struct Columns {
    pub letter: f64,
    pub rx: f64,
    pub rx_w: f64,
    pub tx: f64,
    pub tx_w: f64,
    /// The line that joins the queues of one interrupt.
    pub join: f64,
    pub irq: f64,
    pub irq_w: f64,
    pub node: f64,
    pub node_w: f64,
    pub core: f64,
    pub core_w: f64,
    pub cell: f64,
    pub cell_w: f64,
    pub idle_w: f64,
}

impl Columns {
    pub(super) fn out(&self) -> f64 {
        self.irq + self.irq_w
    }

    pub(super) fn right(&self) -> f64 {
        self.node + self.node_w
    }
}

/// The labels of the CPU boxes.
#[derive(Debug)]
pub(super) struct Labels {
    pub cpu: BTreeMap<CpuId, String>,
    /// Boxes for several CPUs of a node.
    pub fold: BTreeMap<CpuSet, String>,
    /// CPUs that handle interrupts; the others are drawn for XPS or RPS.
    pub takes: BTreeSet<CpuId>,
    /// A CPU handles several interrupts.
    pub repeated: bool,
}

impl Labels {
    pub(super) fn of<'a>(
        t: &Topology,
        used: &BTreeSet<CpuId>,
        blocks: &[Block<'_>],
        folds: impl Iterator<Item = &'a CpuSet>,
    ) -> Self {
        let mut load: BTreeMap<CpuId, usize> = BTreeMap::new();
        for v in blocks.iter().filter(|b| !matches!(b.target, Target::Words(_))).flat_map(|b| &b.vectors) {
            v.effective.known().into_iter().flat_map(CpuSet::iter).for_each(|c| *load.entry(c).or_default() += 1);
        }
        let fold = |c: &CpuSet| {
            let most = c.iter().filter_map(|c| load.get(&c)).max().copied().unwrap_or(0);
            let least = c.iter().filter_map(|c| load.get(&c)).min().copied().unwrap_or(0);
            let each = if least == most { most.to_string() } else { format!("{least}-{most}") };
            (c.clone(), format!("{} ×{each}", cpus(c)))
        };
        let isolated = t.isolated_all();
        let label = |c: &CpuId| {
            let mut s = format!("CPU {c}");
            if isolated.contains(*c) {
                s.push_str(" i");
            }
            if let Some(n) = load.get(c).filter(|n| **n > 1) {
                s.push_str(&format!(" ×{n}"));
            }
            s
        };
        Self {
            fold: folds.map(fold).collect(),
            cpu: used.iter().map(|c| (*c, label(c))).collect::<BTreeMap<_, _>>(),
            takes: load.keys().copied().collect::<BTreeSet<_>>(),
            repeated: load.values().any(|n| *n > 1),
        }
    }
}

pub(super) fn irq_label(b: &Block<'_>) -> String {
    let list = numbers(b.vectors.iter().map(|v: &&Vector| v.irq.0));
    let text = if list.len() <= MAX_LIST { format!("irq {list}") } else { plural(b.vectors.len(), "interrupt") };
    format!("{text}{}", if b.doubtful() { " ?" } else { "" })
}

pub(super) fn core_label(c: &Core, caches: bool) -> String {
    match (c.rank, c.l3.filter(|_| caches)) {
        (Some(r), Some(l)) => format!("core {r} · L3 {l}"),
        (Some(r), None) => format!("core {r}"),
        (None, Some(l)) => format!("L3 {l}"),
        (None, None) => String::new(),
    }
}

/// `3 cores without a line: CPUs 2-7`
pub(super) fn others(n: &NodeBox, isolated: &CpuSet) -> Option<String> {
    let list = match n.other_cpus.intersection(isolated) {
        i if i.is_empty() => cpus(&n.other_cpus),
        i => format!("{} (isolated: {})", cpus(&n.other_cpus), short(&i)),
    };
    let cores = n.other_cores < n.other_cpus.len();
    match n.other_cores {
        0 => None,
        k if cores => Some(format!("{} without a line: {list}", plural(k, "core"))),
        _ => Some(format!("without a line: {list}")),
    }
}

/// Whether a node has several caches, so that the picture must show them.
pub(super) fn caches(nodes: &[NodeBox]) -> bool {
    let l3 = |n: &NodeBox| n.cores.iter().filter_map(|c| c.l3).collect::<BTreeSet<_>>().len();
    nodes.iter().any(|n| l3(n) > 1)
}

impl Sizes {
    pub(super) fn of(rows: usize) -> Self {
        match rows {
            0..=16 => Self { font: 12.0, pitch: 30.0, cell: 20.0, cpu: 22.0, core_gap: 7.0 },
            17..=32 => Self { font: 11.0, pitch: 24.0, cell: 17.0, cpu: 19.0, core_gap: 5.0 },
            _ => Self { font: 10.0, pitch: 20.0, cell: 14.0, cpu: 16.0, core_gap: 3.0 },
        }
    }

    pub(super) fn core(&self, c: &Core) -> f64 {
        c.rows() as f64 * self.cpu + 2.0 * CORE_PAD
    }

    pub(super) fn columns(
        &self,
        blocks: &[Block<'_>],
        nodes: &[NodeBox],
        labels: &Labels,
        isolated: &CpuSet,
        groups: bool,
    ) -> Columns {
        let w = |s: &str| width(s, self.font);
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        let rows = || blocks.iter().flat_map(|b| &b.rows);
        let cells = |pick: fn(&Row) -> Option<&super::rows::Cell>| {
            let most = widest(&mut rows().filter_map(pick).map(|c| w(&c.label)));
            if most > 0.0 { most.max(w("transmit")) + INNER } else { 0.0 }
        };
        let (rx_w, tx_w) = (cells(|r| r.rx.as_ref()), cells(|r| r.tx.as_ref()));
        let letter = MARGIN;
        let rx = letter + if groups { 20.0 } else { 0.0 };
        let tx = rx + rx_w;
        let join = tx + tx_w + 14.0;
        let irq = join + 20.0;
        let irq_w = widest(&mut blocks.iter().filter(|b| !b.vectors.is_empty()).map(|b| w(&irq_label(b))))
            .max(w("interrupt"))
            + INNER;
        let words = |b: &Block<'_>| match &b.target {
            Target::Words(t) if !b.vectors.is_empty() => w(t) + 40.0,
            Target::Words(t) => w(t) + 40.0 - irq_w,
            _ => 0.0,
        };
        let count = rows().count().min(64) as f64;
        let span = widest(&mut blocks.iter().map(words)).max(190.0 + 2.2 * count);
        let node = irq + irq_w + span;
        let core = node + 16.0;
        let cell = core + CORE_PAD + 1.0;
        let cell_w = widest(&mut labels.cpu.values().map(|l| w(l))).max(w("CPU 0")) + INNER;
        let all_cores = || nodes.iter().flat_map(|n| &n.cores);
        let idle_w = widest(&mut all_cores().flat_map(|c| &c.idle).map(|c| w(&c.to_string()))) + 10.0;
        let cells_w = |c: &Core| {
            let used = if c.used.is_empty() { 0.0 } else { cell_w };
            let used = labels.fold.get(&c.fold).map_or(used, |l| w(l) + INNER);
            used + c.idle.len() as f64 * idle_w
        };
        let core_w = widest(&mut all_cores().map(cells_w)) + 2.0 * CORE_PAD + 2.0;
        let with_caches = caches(nodes);
        let core_text = widest(&mut all_cores().map(|c| w(&core_label(c, with_caches))));
        let titles = widest(&mut nodes.iter().map(|n| w(&n.title(true))));
        let tails = widest(&mut nodes.iter().filter_map(|n| others(n, isolated)).map(|t| w(&t)));
        let node_w = 16.0 + (core_w + 8.0 + core_text).max(titles).max(tails) + NODE_PAD;
        Columns { letter, rx, rx_w, tx, tx_w, join, irq, irq_w, node, node_w, core, core_w, cell, cell_w, idle_w }
    }

    fn nodes_height(&self, nodes: &[NodeBox], stretch: f64) -> f64 {
        nodes.iter().map(|n| self.node_height(n, stretch)).sum::<f64>()
            + NODE_GAP * nodes.len().saturating_sub(1) as f64
    }

    fn node_height(&self, n: &NodeBox, stretch: f64) -> f64 {
        let cores: f64 = n.cores.iter().map(|c| self.core(c) + self.core_gap + stretch).sum();
        let tail = if n.other_cores > 0 { OTHERS } else { 0.0 };
        NODE_HEAD + cores + tail + NODE_PAD - if n.cores.is_empty() { 4.0 } else { self.core_gap + stretch }
    }
}

/// Vertical positions: one for each row of a block, and one for each node with its cores.
#[derive(Debug)]
pub(super) struct Places {
    pub blocks: Vec<Vec<f64>>,
    pub pitch: f64,
    pub nodes: Vec<NodePlace>,
    /// Left edge of each CPU with a box of its own, where its lines end.
    pub cpus: BTreeMap<CpuId, Point>,
    /// The same for boxes of several CPUs.
    pub folds: BTreeMap<CpuGroup, Point>,
    pub bottom: f64,
}

#[derive(Debug)]
pub(super) struct NodePlace {
    pub y: f64,
    pub h: f64,
    pub cores: Vec<f64>,
}

pub(super) fn places(z: &Sizes, x: &Columns, blocks: &[Block<'_>], nodes: &[NodeBox], top: f64) -> Places {
    let rows: usize = blocks.iter().map(|b| b.rows.len()).sum();
    let cores: usize = nodes.iter().map(|n| n.cores.len()).sum();
    let left = rows as f64 * z.pitch;
    let natural = z.nodes_height(nodes, 0.0);
    // The shorter half is stretched a little and then centred vertically.
    let pitch = (natural / rows.max(1) as f64).clamp(z.pitch, z.pitch * 1.5);
    // Without lines between the halves, nothing needs to be aligned.
    let lines = nodes.iter().flat_map(|n| &n.cores).any(|c| !c.used.is_empty() || !c.fold.is_empty());
    let pitch = if lines { pitch } else { z.pitch };
    let most = if lines { z.cpu * 0.6 } else { 0.0 };
    let stretch = ((left - natural) / cores.max(1) as f64).clamp(0.0, most);
    let (left, right) = (rows as f64 * pitch, z.nodes_height(nodes, stretch));
    let whole = left.max(right);
    let middle = |high: f64| if lines { (whole - high) / 2.0 } else { 0.0 };
    let mut y = top + middle(left) + pitch / 2.0;
    let mut at_rows = Vec::new();
    for b in blocks {
        at_rows.push((0..b.rows.len()).map(|i| y + i as f64 * pitch).collect());
        y += b.rows.len() as f64 * pitch;
    }
    let mut y = top + middle(right);
    let mut at_nodes = Vec::new();
    let (mut cpus, mut folds) = (BTreeMap::new(), BTreeMap::new());
    for n in nodes {
        let h = z.node_height(n, stretch);
        let mut cy = y + NODE_HEAD;
        let mut at_cores = Vec::new();
        for c in &n.cores {
            at_cores.push(cy);
            for (i, cpu) in c.used.iter().enumerate() {
                cpus.insert(*cpu, at(x.cell, cy + CORE_PAD + (i as f64 + 0.5) * z.cpu));
            }
            if !c.fold.is_empty() {
                folds.insert(n.place, at(x.cell, cy + z.core(c) / 2.0));
            }
            cy += z.core(c) + z.core_gap + stretch;
        }
        at_nodes.push(NodePlace { y, h, cores: at_cores });
        y += h + NODE_GAP;
    }
    Places { blocks: at_rows, pitch, nodes: at_nodes, cpus, folds, bottom: top + whole }
}
