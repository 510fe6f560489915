//! Interrupts on other CPUs than configured (rule A10): the move is pending, or no vector was free on the CPU.

use std::collections::BTreeMap;

use ringwise_knob::path::FREE_VECTORS;
use ringwise_model::order::Order;
use ringwise_model::{CpuId, CpuSet, Fact, Immovable, Movable, Nic};

use crate::finding_sink::FindingSink;
use crate::found::{IrqFound, Misdelivered};
use crate::rule_context::RuleContext;
use crate::severity::Severity;

pub(super) fn judge(cx: &RuleContext, say: &mut FindingSink) -> Option<()> {
    let free = cx.i.extra.free_vectors.clone().unwrap_or_else(|| Fact::not_requested(FREE_VECTORS));
    let unknown = match &free {
        Fact::Known(_) => None,
        Fact::Absent => {
            Some(format!("{FREE_VECTORS} does not exist: debugfs is not mounted, or the kernel does not have the file"))
        }
        Fact::Unknown(u) => Some(format!("{}: {}", u.what, u.why)),
    };
    cx.each(say, |n, say| {
        let mut interrupts = elsewhere(n, free.known());
        // The text names the first one.
        interrupts.order_by_key(|m| m.free_vectors != Some(0));
        if let Some(first) = interrupts.first() {
            let severity = if first.free_vectors == Some(0) { Severity::Warning } else { Severity::Info };
            say.found(IrqFound::Elsewhere { interrupts, free_vectors_unknown: unknown.clone() }).severity(severity);
        }
        Some(())
    })
}

fn elsewhere(n: &Nic, free: Option<&BTreeMap<CpuId, u32>>) -> Vec<Misdelivered> {
    let mut out = Vec::new();
    for v in n.queue_vectors() {
        let (Some(asked), Some(goes_to)) = (v.asked.known(), v.effective.known()) else { continue };
        if goes_to.is_empty() || goes_to.intersects(asked) {
            continue;
        }
        // Managed interrupts have reserved vectors (kernel/irq/matrix.c, `irq_matrix_reserve_managed`).
        let free = free.filter(|_| v.movable != Movable::No(Immovable::Managed));
        let free_vectors = free.and_then(|by_cpu| left_on(by_cpu, asked));
        let name = v.names.first().cloned();
        out.push(Misdelivered { name, asked: asked.clone(), goes_to: goes_to.clone(), free_vectors });
    }
    out
}

/// Vectors that these CPUs have left together. `None`: all of them are offline.
fn left_on(by_cpu: &BTreeMap<CpuId, u32>, cpus: &CpuSet) -> Option<u32> {
    cpus.iter().filter_map(|c| by_cpu.get(&c)).copied().reduce(u32::saturating_add)
}
