//! XPS maps: which CPUs, or which receive queues, send on a transmit queue.

use ringwise_kfmt::cpumask;
use ringwise_knob::path;
use ringwise_model::{CpuSet, Fact};

use crate::read::Reader;

/// `xps_cpus` of one transmit queue. Absent on a device with one queue (no file, or ENOENT on reading it).
pub(crate) fn cpus(r: &mut Reader, dev: &str, queue: u32) -> Fact<CpuSet> {
    r.parse(&path::of_tx(dev, queue, "xps_cpus"), cpumask::parse)
}

/// `xps_rxqs` (since 4.18): a mask of receive queue numbers in the same notation.
pub(crate) fn rx_queues(r: &mut Reader, dev: &str, queue: u32) -> Fact<Vec<u32>> {
    r.parse(&path::of_tx(dev, queue, "xps_rxqs"), cpumask::parse).map(|set| set.iter().map(|c| c.0).collect())
}
