//! Transmit packet steering (`queues/tx-N/xps_cpus`, `xps_rxqs`).

use ringwise_model::errno::{ENOENT, EOPNOTSUPP, EOVERFLOW, ERANGE};
use ringwise_model::{CpuId, CpuSet, Fact, Nic, Snapshot};

use crate::mask::mask;
use crate::{Address, Descriptor, Match, NotProjected, Reaction, Setting, path, set_text, tx_queue};

pub(crate) struct XpsFamily;

impl Descriptor for XpsFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        let dev = || nic.dev.name.clone();
        let of_queue = |queue| [Address::XpsCpus { dev: dev(), queue }, Address::XpsRxqs { dev: dev(), queue }];
        nic.tx_queues.iter().flat_map(|q| of_queue(q.id)).collect::<Vec<_>>()
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::XpsCpus { dev, queue } => format!("{dev} tx-{queue} xps_cpus"),
            Address::XpsRxqs { dev, queue } => format!("{dev} tx-{queue} xps_rxqs"),
            _ => String::new(),
        }
    }

    fn file(&self, address: &Address) -> Option<String> {
        match address {
            Address::XpsCpus { dev, queue } => Some(path::of_tx(dev, *queue, "xps_cpus")),
            Address::XpsRxqs { dev, queue } => Some(path::of_tx(dev, *queue, "xps_rxqs")),
            _ => None,
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match (address.dev().and_then(|d| s.nic(d)), address) {
            (Some(n), Address::XpsCpus { queue, .. }) => live(n, *queue),
            (Some(n), Address::XpsRxqs { queue, .. }) => live_rxqs(n, *queue),
            _ => Fact::Absent,
        }
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::XpsCpus { cpus, .. }, Setting::XpsCpus { cpus: got, .. }) => compare(cpus, got),
            _ if want == got => Match::Same,
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::XpsCpus { dev, queue, cpus } => {
                tx_queue(s, dev, *queue)?.xps_cpus = Fact::Known(cpus.clone());
            }
            Setting::XpsRxqs { dev, queue, rxqs } => {
                tx_queue(s, dev, *queue)?.xps_rxqs = Fact::Known(rxqs.clone());
            }
            _ => return Err(NotProjected::OTHER_FAMILY),
        }
        Ok(())
    }

    fn react(&self, address: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        match (address, errno?) {
            (Address::XpsCpus { .. }, EOVERFLOW | ERANGE) => Some(crate::react::NO_SUCH_CPU),
            (_, ENOENT | EOPNOTSUPP) => Some((Reaction::Refused, "a device with one transmit queue has no XPS")),
            _ => None,
        }
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::XpsCpus { cpus, .. } => set_text(cpus),
            Setting::XpsRxqs { rxqs, .. } => set_text(&queues(rxqs)),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::XpsCpus { dev, queue, cpus } => Some(command(dev, *queue, cpus)),
            Setting::XpsRxqs { dev, queue, rxqs } => Some(command_rxqs(dev, *queue, rxqs)),
            _ => None,
        }
    }
}

/// A set of queues, written like one of CPUs.
fn queues(rxqs: &[u32]) -> CpuSet {
    rxqs.iter().map(|q| CpuId(*q)).collect()
}

/// XPS CPUs of a queue in this snapshot.
pub fn live(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.tx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.xps_cpus.as_ref().map(|cpus: &CpuSet| Setting::XpsCpus { dev, queue, cpus: cpus.clone() })
}

/// XPS receive queues of a queue in this snapshot.
pub fn live_rxqs(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.tx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.xps_rxqs.as_ref().map(|rxqs: &Vec<u32>| Setting::XpsRxqs { dev, queue, rxqs: rxqs.clone() })
}

/// Compares the requested set with the current one.
pub fn compare(want: &CpuSet, got: &CpuSet) -> Match {
    if want == got { Match::Same } else { Match::Differs }
}

/// The command that writes the mask of CPUs.
pub fn command(dev: &str, queue: u32, cpus: &CpuSet) -> String {
    format!("echo {} > {}", mask(cpus), path::of_tx(dev, queue, "xps_cpus"))
}

/// The command that writes the mask of receive queues.
pub fn command_rxqs(dev: &str, queue: u32, rxqs: &[u32]) -> String {
    format!("echo {} > {}", mask(&queues(rxqs)), path::of_tx(dev, queue, "xps_rxqs"))
}
