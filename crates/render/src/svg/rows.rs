//! The left half of the picture: queues in rows by interrupt, and the CPUs of each interrupt.

use std::collections::BTreeSet;

use ringwise_model::{Confidence, CpuId, CpuSet, Fact, Nic, Topology, Vector};

use crate::columns::CpuGroup;
use ringwise_text::{is_down, numbers, plural};

/// If other queues have interrupts, more queues without one than this share a box.
const MAX_LOOSE: usize = 8;
/// An interrupt that may be handled by more CPUs than this has no lines.
const MAX_TARGETS: usize = 4;
/// A longer list of queues or interrupts becomes their number.
pub(super) const MAX_LIST: usize = 14;

#[derive(Debug, Default)]
pub(super) struct Row {
    pub rx: Option<Cell>,
    pub tx: Option<Cell>,
}

/// The box of one queue, or of several.
#[derive(Debug)]
pub(super) struct Cell {
    pub label: String,
    pub queues: Vec<u32>,
}

/// The queues of one interrupt, of several interrupts that share a row, or those without an interrupt.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// Empty: the queues have no interrupt.
    pub vectors: Vec<&'a Vector>,
    pub rows: Vec<Row>,
    pub target: Target,
}

impl Block<'_> {
    /// Whether the mapping of an interrupt to its queues is uncertain.
    pub(super) fn doubtful(&self) -> bool {
        self.vectors.iter().any(|v| doubtful(v))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Cpus(Vec<CpuId>),
    /// CPUs of one node that share a box.
    Fold(CpuGroup),
    /// A text instead of a line, with the reason.
    Words(String),
}

/// The blocks of a device. Each of its queues is in one block.
pub(super) fn blocks<'a>(t: &Topology, n: &'a Nic) -> Vec<Block<'a>> {
    let (mut rx_seen, mut tx_seen) = (BTreeSet::new(), BTreeSet::new());
    let mut out: Vec<Block> = Vec::new();
    for v in n.queue_vectors() {
        let rx: Vec<u32> = v.rx().iter().copied().filter(|q| rx_seen.insert(*q)).collect();
        let tx: Vec<u32> = v.tx().iter().copied().filter(|q| tx_seen.insert(*q)).collect();
        let rows = (0..rx.len().max(tx.len()).max(1))
            .map(|i| Row { rx: rx.get(i).map(|q| cell("rx", *q)), tx: tx.get(i).map(|q| cell("tx", *q)) })
            .collect();
        out.push(Block { vectors: vec![v], rows, target: target(t, v) });
    }
    let rx: BTreeSet<u32> = n.rx_queues.iter().map(|q| q.id).filter(|q| !rx_seen.contains(q)).collect();
    let tx: BTreeSet<u32> = n.tx_queues.iter().map(|q| q.id).filter(|q| !tx_seen.contains(q)).collect();
    let all: BTreeSet<u32> = rx.union(&tx).copied().collect();
    if all.is_empty() {
        return out;
    }
    let why = Target::Words(why_loose(n));
    let rows: Vec<Row> = if !out.is_empty() && all.len() > MAX_LOOSE {
        vec![Row { rx: several("rx", rx), tx: several("tx", tx) }]
    } else {
        all.iter()
            .map(|q| Row { rx: rx.contains(q).then(|| cell("rx", *q)), tx: tx.contains(q).then(|| cell("tx", *q)) })
            .collect()
    };
    out.push(Block { vectors: vec![], rows, target: why });
    out
}

fn cell(dir: &str, queue: u32) -> Cell {
    Cell { label: format!("{dir}-{queue}"), queues: vec![queue] }
}

/// One box for several queues, with their numbers or, if the list is long, with their number.
pub(super) fn several(dir: &str, queues: BTreeSet<u32>) -> Option<Cell> {
    let list = numbers(queues.iter().copied());
    let label = if list.len() <= MAX_LIST {
        format!("{dir}-{list}")
    } else {
        format!("{dir}: {}", plural(queues.len(), "queue"))
    };
    (!queues.is_empty()).then_some(Cell { label, queues: queues.into_iter().collect() })
}

fn why_loose(n: &Nic) -> String {
    match () {
        () if is_down(n) => "interrupts unknown: link is down".into(),
        () if n.vectors.is_empty() => "interrupts unknown: the device shows none".into(),
        () if n.queue_vectors().next().is_none() => "interrupts unknown: none could be matched to a queue".into(),
        () => "interrupt unknown".into(),
    }
}

fn target(t: &Topology, v: &Vector) -> Target {
    match &v.effective {
        Fact::Known(e) if !e.is_empty() => {
            let gone = e.difference(&t.online);
            match () {
                () if e.len() > MAX_TARGETS => Target::Words(format!("one of CPUs {}", short(e))),
                () if !gone.is_empty() => Target::Words(format!("CPU {} (offline)", short(&gone))),
                () => Target::Cpus(e.iter().collect()),
            }
        }
        _ => Target::Words(match &v.asked {
            Fact::Known(a) if !a.is_empty() => format!("CPU unknown, affinity: {}", short(a)),
            _ => "CPU unknown".into(),
        }),
    }
}

/// The list of CPUs, or their number if the list is long.
pub(super) fn short(c: &CpuSet) -> String {
    listed(c).unwrap_or_else(|| format!("{} CPUs", c.len()))
}

/// `CPU 3`, `CPUs 0-15`, or their number if the list is long.
pub(super) fn cpus(c: &CpuSet) -> String {
    let word = if c.len() == 1 { "CPU" } else { "CPUs" };
    listed(c).map_or_else(|| short(c), |list| format!("{word} {list}"))
}

fn listed(c: &CpuSet) -> Option<String> {
    Some(c.to_string()).filter(|s| s.len() <= 12)
}

fn doubtful(v: &Vector) -> bool {
    v.confidence != Confidence::Sure
}
