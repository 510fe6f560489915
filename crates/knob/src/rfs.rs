//! Receive flow steering: `queues/rx-N/rps_flow_cnt` and sysctl `net.core.rps_sock_flow_entries`, in entries.

use ringwise_model::{Fact, Host, Nic};

use crate::{Match, Setting, path};

pub fn live(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.rx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.rps_flow_cnt.as_ref().map(|n: &u32| Setting::RpsFlowCnt { dev, queue, entries: *n })
}

pub fn live_entries(host: &Host) -> Fact<Setting> {
    host.rps_sock_flow_entries.as_ref().map(|n: &u32| Setting::RfsEntries { entries: *n })
}

/// Both are rounded up to a power of two (net/core/net-sysfs.c, sysctl_net_core.c); 0 stays 0.
pub fn kept(entries: u32) -> u32 {
    if entries == 0 { 0 } else { entries.checked_next_power_of_two().unwrap_or(entries) }
}

pub fn compare(want: u32, got: u32) -> Match {
    if kept(want) == kept(got) { Match::Same } else { Match::Differs }
}

pub fn command(dev: &str, queue: u32, entries: u32) -> String {
    format!("echo {entries} > {}", path::of_rx(dev, queue, "rps_flow_cnt"))
}

pub fn command_entries(entries: u32) -> String {
    format!("echo {entries} > {}", path::RFS_ENTRIES)
}
