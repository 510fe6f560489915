//! A queue that is never empty stays on the CPU where polling began. If its interrupt is moved meanwhile, nothing
//! changes even when the interrupt arrives, because the NAPI is scheduled already.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet};

/// With fewer packets than this nothing can be concluded.
const ENOUGH: u64 = 100;
/// GRO merges at most this many packets into one (net/core/gro.c, 64 KB of segments of 536 bytes).
const MERGED: u64 = 128;

/// Where the packets of a vector's receive queues are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolledOn {
    /// On the planned CPUs, or the CPU is not known.
    Planned,
    /// On other CPUs. `cpu`: the only CPU that is possible.
    Elsewhere {
        /// `None`: several CPUs are possible.
        cpu: Option<CpuId>,
    },
}

/// `packets`: received by the queues of the vector. `processed`: increase of the first column of
/// `/proc/net/softnet_stat` in the same time. `with_queues`: CPUs that handle interrupts of other queues. This only
/// works for queues without RPS and XDP; with these, packets are processed on other CPUs or not counted at all.
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
        // Packets that GRO merged are still enough.
        assert_eq!(on(60_000, &[(1, 1000), (7, 0)]), PolledOn::Planned);
        assert_eq!(on(60_000, &[(1, 2), (7, 1000)]), PolledOn::Elsewhere { cpu: Some(CpuId(7)) });
        // Not known: on one of several CPUs, or on one that has queues of its own.
        assert_eq!(on(600, &[(1, 0), (6, 300), (7, 600)]), PolledOn::Elsewhere { cpu: None });
        assert_eq!(on(600, &[(1, 0), (2, 600)]), PolledOn::Elsewhere { cpu: None });
        // Not known: packets that were dropped before they were counted, few packets, or a CPU that is not counted.
        assert_eq!(on(600, &[(1, 0), (7, 0)]), PolledOn::Planned);
        assert_eq!(on(99, &[(1, 0), (7, 99)]), PolledOn::Planned);
        assert_eq!(on(600, &[(7, 600)]), PolledOn::Planned);
    }
}
