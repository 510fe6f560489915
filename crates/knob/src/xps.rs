//! Transmit packet steering (`queues/tx-N/xps_cpus`, `xps_rxqs`).

use ringwise_model::{CpuId, CpuSet, Fact, Nic};

use crate::mask::mask;
use crate::{Match, Setting, path};

pub fn live(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.tx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.xps_cpus.as_ref().map(|cpus: &CpuSet| Setting::XpsCpus { dev, queue, cpus: cpus.clone() })
}

pub fn live_rxqs(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.tx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.xps_rxqs.as_ref().map(|rxqs: &Vec<u32>| Setting::XpsRxqs { dev, queue, rxqs: rxqs.clone() })
}

pub fn compare(want: &CpuSet, got: &CpuSet) -> Match {
    if want == got { Match::Same } else { Match::Differs }
}

pub fn command(dev: &str, queue: u32, cpus: &CpuSet) -> String {
    format!("echo {} > {}", mask(cpus), path::of_tx(dev, queue, "xps_cpus"))
}

pub fn command_rxqs(dev: &str, queue: u32, rxqs: &[u32]) -> String {
    let set: CpuSet = rxqs.iter().map(|q| CpuId(*q)).collect();
    format!("echo {} > {}", mask(&set), path::of_tx(dev, queue, "xps_rxqs"))
}
