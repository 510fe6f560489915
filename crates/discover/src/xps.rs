//! XPS maps: which CPUs, or which receive queues, send on a transmit queue.

use ringwise_kfmt::cpumask;
use ringwise_model::{CpuSet, Fact};

use crate::read::Reader;

/// `xps_cpus` of one transmit queue directory. Absent on a device with one queue (no file, or ENOENT on reading it).
pub(crate) fn cpus(r: &mut Reader, queue_dir: &str) -> Fact<CpuSet> {
    r.parse(&format!("{queue_dir}/xps_cpus"), cpumask::parse)
}

/// `xps_rxqs` (since 4.18): a mask of receive queue numbers in the same notation.
pub(crate) fn rx_queues(r: &mut Reader, queue_dir: &str) -> Fact<Vec<u32>> {
    r.parse(&format!("{queue_dir}/xps_rxqs"), cpumask::parse).map(|set| set.iter().map(|c| c.0).collect())
}
