//! Timer interrupts, which show that a CPU serves timers.

use std::collections::BTreeMap;

use ringwise_kfmt::interrupts;
use ringwise_model::CpuId;
use ringwise_sys::Host;

use crate::irq::INTERRUPTS;

/// Timer interrupts of each CPU: row `LOC` on x86, the architecture's timer elsewhere. `None`: they are not counted
/// here.
pub fn timers(host: &dyn Host) -> Option<BTreeMap<CpuId, u64>> {
    let text = host.read_text(INTERRUPTS).ok()?;
    let table = interrupts::parse(text.as_bytes()).ok()?;
    let mut sums = BTreeMap::new();
    let timer = |h: &interrupts::InterruptRowHead| h.label == "LOC" || h.names.iter().any(|n| n.ends_with("timer"));
    for row in table.rows.iter().filter(|r| timer(&r.head) && table.is_whole(r)) {
        for (cpu, n) in table.cpus.iter().zip(&row.counts) {
            *sums.entry(*cpu).or_insert(0u64) += n;
        }
    }
    (!sums.is_empty()).then_some(sums)
}
