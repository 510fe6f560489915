//! Transmit packet steering: `queues/tx-N/xps_cpus` and `xps_rxqs`.

use ringwise_kfmt::cpumask;
use ringwise_model::{CpuId, CpuSet, Snapshot};
use ringwise_sys::Result;

use crate::cx::Cx;

fn path(dev: &str, queue: u32, file: &str) -> String {
    format!("/sys/class/net/{dev}/queues/tx-{queue}/{file}")
}

pub(crate) fn write(cx: &Cx, dev: &str, queue: u32, cpus: &CpuSet) -> Result<()> {
    cx.write(&path(dev, queue, "xps_cpus"), format!("{}\n", cpumask::format(cpus, None)))
}

pub(crate) fn write_rxqs(cx: &Cx, dev: &str, queue: u32, rxqs: &[u32]) -> Result<()> {
    let set: CpuSet = rxqs.iter().map(|q| CpuId(*q)).collect();
    cx.write(&path(dev, queue, "xps_rxqs"), format!("{}\n", cpumask::format(&set, None)))
}

/// Both maps, into the snapshot.
pub(crate) fn read(cx: &Cx, now: &mut Snapshot, dev: &str, queue: u32) {
    let cpus = cx.fact(&path(dev, queue, "xps_cpus"), cpumask::parse);
    let rxqs = cx.fact(&path(dev, queue, "xps_rxqs"), |t| {
        cpumask::parse(t).map(|s| s.iter().map(|c| c.0).collect::<Vec<u32>>())
    });
    let queues = now.nics.iter_mut().filter(|x| x.dev.name == dev).flat_map(|x| &mut x.tx_queues);
    for q in queues.filter(|q| q.id == queue) {
        q.xps_cpus = cpus.clone();
        q.xps_rxqs = rxqs.clone();
    }
}
