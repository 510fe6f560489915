//! Receive flow steering: `queues/rx-N/rps_flow_cnt` and sysctl `net.core.rps_sock_flow_entries`.

use ringwise_kfmt::sysfs;
use ringwise_model::Snapshot;
use ringwise_sys::Result;

use crate::cx::Cx;

const ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

fn path(dev: &str, queue: u32) -> String {
    format!("/sys/class/net/{dev}/queues/rx-{queue}/rps_flow_cnt")
}

pub(crate) fn write(cx: &Cx, dev: &str, queue: u32, entries: u32) -> Result<()> {
    cx.write(&path(dev, queue), format!("{entries}\n"))
}

pub(crate) fn write_entries(cx: &Cx, entries: u32) -> Result<()> {
    cx.write(ENTRIES, format!("{entries}\n"))
}

pub(crate) fn read(cx: &Cx, now: &mut Snapshot, dev: &str, queue: u32) {
    let entries = cx.fact(&path(dev, queue), sysfs::parse_u32);
    let queues = now.nics.iter_mut().filter(|x| x.dev.name == dev).flat_map(|x| &mut x.rx_queues);
    for q in queues.filter(|q| q.id == queue) {
        q.rps_flow_cnt = entries.clone();
    }
}

pub(crate) fn read_entries(cx: &Cx, now: &mut Snapshot) {
    now.host.rps_sock_flow_entries = cx.fact(ENTRIES, sysfs::parse_u32);
}
