//! A queue that is never empty is polled on the CPU where that began: an interrupt that was moved meanwhile changes
//! nothing, whether it comes (the NAPI is scheduled already) or not.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet};

/// Fewer packets than these prove nothing.
const ENOUGH: u64 = 100;
/// GRO makes one of so many packets, at most (net/core/gro.c, 64 KB of segments of 536 bytes).
const MERGED: u64 = 128;

/// Where the packets of a vector's receive queues are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolledOn {
    /// On the CPUs that were planned, or that is not known.
    Planned,
    /// On other CPUs. `cpu`: the only one that can be it.
    Elsewhere {
        /// `None`: several CPUs are possible.
        cpu: Option<CpuId>,
    },
}

/// `packets`: received by the queues of the vector. `processed`: increase of the first column of
/// `/proc/net/softnet_stat` in the same time. `with_queues`: CPUs to which interrupts of other queues go. Only for
/// queues without RPS and XDP, which process packets elsewhere, or nowhere that is counted.
pub fn polled_on(packets: u64, planned: &CpuSet, with_queues: &CpuSet, processed: &BTreeMap<CpuId, u64>) -> PolledOn {
    let at_least = packets / MERGED;
    let on_planned: u64 = processed.iter().filter(|(c, _)| planned.contains(**c)).map(|(_, n)| n).sum();
    let counted = planned.iter().all(|c| processed.contains_key(&c));
    if packets < ENOUGH || !counted || on_planned >= at_least.max(1) {
        return PolledOn::Planned;
    }
    let mut others = processed.iter().filter(|(c, n)| !planned.contains(**c) && **n >= at_least.max(1));
    let mut without = others.clone().map(|(c, _)| *c).filter(|c| !with_queues.contains(*c));
    match (others.next(), without.next(), without.next()) {
        (None, ..) => PolledOn::Planned,
        (_, Some(cpu), None) => PolledOn::Elsewhere { cpu: Some(cpu) },
        _ => PolledOn::Elsewhere { cpu: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn processed(list: &[(u32, u64)]) -> BTreeMap<CpuId, u64> {
        list.iter().map(|(c, n)| (CpuId(*c), *n)).collect()
    }

    #[test]
    fn a_queue_that_is_polled_on_its_old_cpu() {
        let on = |packets, seen: &[(u32, u64)]| polled_on(packets, &set("1"), &set("0,2"), &processed(seen));
        assert_eq!(on(600, &[(1, 600), (7, 0)]), PolledOn::Planned);
        assert_eq!(on(600, &[(1, 0), (7, 600)]), PolledOn::Elsewhere { cpu: Some(CpuId(7)) });
        // Merged by GRO it is still enough.
        assert_eq!(on(60_000, &[(1, 1000), (7, 0)]), PolledOn::Planned);
        assert_eq!(on(60_000, &[(1, 2), (7, 1000)]), PolledOn::Elsewhere { cpu: Some(CpuId(7)) });
        // On one of several, or on one that has queues of its own: which is not known.
        assert_eq!(on(600, &[(1, 0), (6, 300), (7, 600)]), PolledOn::Elsewhere { cpu: None });
        assert_eq!(on(600, &[(1, 0), (2, 600)]), PolledOn::Elsewhere { cpu: None });
        // Dropped before they are counted, few, or a CPU that is not counted.
        assert_eq!(on(600, &[(1, 0), (7, 0)]), PolledOn::Planned);
        assert_eq!(on(99, &[(1, 0), (7, 99)]), PolledOn::Planned);
        assert_eq!(on(600, &[(7, 600)]), PolledOn::Planned);
    }
}
