//! Rows for many interrupts: those that are alike share one.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::CpuId;

use super::groups::Groups;
use super::rows::{Block, Row, Target, several};
use crate::columns::{Column, CpuGroup};

/// With more interrupts than this, those that are delivered to the same CPU share a row.
const MAX_SINGLE: usize = 24;
/// With more rows than this, the interrupts of a node share one, first those in which nothing is wrong.
const MAX_ROWS: usize = 32;

/// What the interrupts of a row have in common.
type Key = (usize, Target, bool, Option<usize>);

/// Bundles the blocks of a device. `columns` orders the rows as the CPUs are, so that lines do not cross; `wrong`
/// decides which CPUs keep rows of their own.
pub(super) fn bundled<'a>(
    blocks: Vec<Block<'a>>,
    columns: &[Column],
    groups: &Groups,
    wrong: &dyn Fn(CpuId) -> bool,
) -> Vec<Block<'a>> {
    if blocks.iter().filter(|b| !b.vectors.is_empty()).count() <= MAX_SINGLE {
        return blocks;
    }
    let mut out = merged(blocks, columns, groups, &|t| t.clone());
    for also_wrong in [false, true] {
        if out.len() <= MAX_ROWS {
            break;
        }
        let node = |t: &Target| match t {
            Target::Cpus(c) if also_wrong || !c.iter().any(|c| wrong(*c)) => {
                one_place(c, columns).map_or_else(|| t.clone(), Target::Fold)
            }
            _ => t.clone(),
        };
        out = merged(out, columns, groups, &node);
    }
    out
}

/// The node of these CPUs, if it is the same for all.
fn one_place(cpus: &[CpuId], columns: &[Column]) -> Option<CpuGroup> {
    let places: BTreeSet<CpuGroup> = columns.iter().filter(|c| cpus.contains(&c.cpu)).map(|c| c.place).collect();
    places.first().copied().filter(|_| places.len() == 1)
}

fn merged<'a>(
    blocks: Vec<Block<'a>>,
    columns: &[Column],
    groups: &Groups,
    target: &dyn Fn(&Target) -> Target,
) -> Vec<Block<'a>> {
    let mut of: BTreeMap<Key, Vec<Block<'a>>> = BTreeMap::new();
    let mut loose = Vec::new();
    for b in blocks {
        if b.vectors.is_empty() {
            loose.push(b);
            continue;
        }
        let to = target(&b.target);
        let at = match &to {
            Target::Cpus(c) => columns.iter().position(|o| c.first() == Some(&o.cpu)),
            Target::Fold(p) => columns.iter().position(|o| o.place == *p),
            Target::Words(_) => None,
        };
        let queues = b.rows.iter().flat_map(|r| r.rx.iter().chain(&r.tx)).flat_map(|c| &c.queues);
        let group = groups.common(queues.copied());
        of.entry((at.unwrap_or(usize::MAX), to, b.doubtful(), group)).or_default().push(b);
    }
    let mut out: Vec<Block<'a>> = of.into_iter().map(|((_, target, ..), all)| one(target, all)).collect();
    out.extend(loose);
    out
}

/// One block for several.
fn one<'a>(target: Target, mut all: Vec<Block<'a>>) -> Block<'a> {
    if all.len() == 1 {
        return Block { target, ..all.swap_remove(0) };
    }
    let queues = |pick: fn(&Row) -> Option<&super::rows::Cell>| -> BTreeSet<u32> {
        all.iter().flat_map(|b| &b.rows).filter_map(pick).flat_map(|c| c.queues.iter().copied()).collect()
    };
    let row = Row { rx: several("rx", queues(|r| r.rx.as_ref())), tx: several("tx", queues(|r| r.tx.as_ref())) };
    let vectors = all.iter().flat_map(|b| b.vectors.iter().copied()).collect();
    Block { vectors, rows: vec![row], target }
}
