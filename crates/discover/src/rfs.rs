//! RFS table sizes: of the host and of each receive queue.

use ringwise_kfmt::sysfs;
use ringwise_model::Fact;

use crate::read::Reader;

/// `rps_flow_cnt` of one receive queue directory, entries. 0: off.
pub(crate) fn queue(r: &mut Reader, queue_dir: &str) -> Fact<u32> {
    r.parse(&format!("{queue_dir}/rps_flow_cnt"), sysfs::parse_u32)
}

/// sysctl `net.core.rps_sock_flow_entries`. 0: RFS off. Absent: a kernel without RPS.
pub(crate) fn global(r: &mut Reader) -> Fact<u32> {
    r.parse("/proc/sys/net/core/rps_sock_flow_entries", sysfs::parse_u32)
}
