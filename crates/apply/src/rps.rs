//! Receive packet steering: `queues/rx-N/rps_cpus`.

use ringwise_kfmt::cpumask;
use ringwise_model::{CpuSet, Snapshot};
use ringwise_sys::Result;

use crate::cx::Cx;

fn path(dev: &str, queue: u32) -> String {
    format!("/sys/class/net/{dev}/queues/rx-{queue}/rps_cpus")
}

pub(crate) fn write(cx: &Cx, dev: &str, queue: u32, cpus: &CpuSet) -> Result<()> {
    cx.write(&path(dev, queue), format!("{}\n", cpumask::format(cpus, None)))
}

pub(crate) fn read(cx: &Cx, now: &mut Snapshot, dev: &str, queue: u32) {
    let cpus = cx.fact(&path(dev, queue), cpumask::parse);
    let queues = now.nics.iter_mut().filter(|x| x.dev.name == dev).flat_map(|x| &mut x.rx_queues);
    for q in queues.filter(|q| q.id == queue) {
        q.rps_cpus = cpus.clone();
    }
}
