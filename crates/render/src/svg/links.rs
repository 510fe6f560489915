//! Lines between the halves: from interrupts to CPUs, and those of XPS and RPS if they are not too many.

use std::collections::BTreeSet;

use ringwise_model::{CpuId, CpuSet, Fact, Nic, Topology};

use super::rows::{Block, Target};

/// With more lines than this, a single line cannot be followed.
const MAX_XPS: usize = 128;
const MAX_RPS: usize = 64;
/// The same where interrupts share rows, because the lines of their queues begin at one point.
const MAX_BUNDLED: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Steering {
    /// Transmit queue and the CPUs that send on it.
    pub xps: Vec<(u32, Vec<CpuId>)>,
    /// Receive queue and the CPUs that RPS sends its packets to.
    pub rps: Vec<(u32, Vec<CpuId>)>,
    /// The number of XPS settings that are not drawn because they are too many.
    pub xps_left_out: usize,
    pub rps_left_out: usize,
}

impl Steering {
    /// The lines of a device. `bundled`: interrupts share rows.
    pub(super) fn of(t: &Topology, n: &Nic, bundled: bool) -> Self {
        let most = |max: usize| if bundled { MAX_BUNDLED } else { max };
        let online = |f: &Fact<CpuSet>| -> Vec<CpuId> {
            f.known().map(|c| c.intersection(&t.online).iter().collect()).unwrap_or_default()
        };
        let set = |(_, c): &(u32, Vec<CpuId>)| !c.is_empty();
        let xps: Vec<_> = n.tx_queues.iter().map(|q| (q.id, online(&q.xps_cpus))).filter(set).collect();
        let rps: Vec<_> = n.rx_queues.iter().map(|q| (q.id, online(&q.rps_cpus))).filter(set).collect();
        let (xps, xps_left_out) = few(xps, most(MAX_XPS));
        let (rps, rps_left_out) = few(rps, most(MAX_RPS));
        Self { xps, rps, xps_left_out, rps_left_out }
    }

    /// CPUs at the end of a line.
    pub(super) fn used(&self, blocks: &[Block<'_>]) -> BTreeSet<CpuId> {
        let irqs = blocks.iter().filter_map(|b| match &b.target {
            Target::Cpus(c) => Some(c.as_slice()),
            Target::Fold(_) | Target::Words(_) => None,
        });
        let steered = self.xps.iter().chain(&self.rps).map(|(_, c)| c.as_slice());
        irqs.chain(steered).flatten().copied().collect::<BTreeSet<_>>()
    }
}

type Lines = Vec<(u32, Vec<CpuId>)>;

fn few(lines: Lines, max: usize) -> (Lines, usize) {
    let n = lines.iter().map(|(_, c)| c.len()).sum();
    if n > max { (vec![], n) } else { (lines, 0) }
}
