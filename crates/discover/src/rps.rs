//! RPS masks (Documentation/networking/scaling.rst).

use ringwise_kfmt::cpumask;
use ringwise_knob::path;
use ringwise_model::{CpuSet, Fact};

use crate::read::Reader;

/// `rps_cpus` of one receive queue. Empty: off. Absent: a kernel without RPS.
pub(crate) fn mask(r: &mut Reader, dev: &str, queue: u32) -> Fact<CpuSet> {
    r.parse(&path::of_rx(dev, queue, "rps_cpus"), cpumask::parse)
}

pub(crate) const DEFAULT_MASK: &str = "/proc/sys/net/core/rps_default_mask";

/// sysctl `net.core.rps_default_mask` (since 6.3), which new queues get. Reading it takes the network lock
/// (net/core/sysctl_net_core.c), which an unresponsive device may hold, so it is only read with a deadline.
pub(crate) fn default_mask(r: &mut Reader) -> Fact<CpuSet> {
    // The kernel prints an empty line if it was never written (net/core/sysctl_net_core.c).
    r.parse(DEFAULT_MASK, |t| if t.trim().is_empty() { Ok(CpuSet::new()) } else { cpumask::parse(t) })
}
