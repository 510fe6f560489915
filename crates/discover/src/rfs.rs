//! RFS table sizes: of the host and of each receive queue.

use ringwise_kfmt::sysfs;
use ringwise_knob::path;
use ringwise_model::Fact;

use crate::read::Reader;

/// `rps_flow_cnt` of one receive queue, entries. 0: off.
pub(crate) fn queue(r: &mut Reader, dev: &str, queue: u32) -> Fact<u32> {
    r.parse(&path::of_rx(dev, queue, "rps_flow_cnt"), sysfs::parse_u32)
}

/// sysctl `net.core.rps_sock_flow_entries`. 0: RFS off. Absent: a kernel without RPS.
pub(crate) fn global(r: &mut Reader) -> Fact<u32> {
    r.parse(path::RFS_ENTRIES, sysfs::parse_u32)
}
