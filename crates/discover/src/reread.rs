//! Reads one setting again, with the readers of the whole discovery. Settings are read back this way after a write, so
//! every file has one reader, and an errno means the same everywhere.

use std::sync::Arc;
use std::time::Duration;

use ringwise_kfmt::{cpumask, sysctl};
use ringwise_knob::rules::BY_CONTENT;
use ringwise_knob::{Address, Setting, irq as vectors, live, path};
use ringwise_model::{Fact, IrqId, Nic, RxQueue, Snapshot, TxQueue};
use ringwise_sys::{Host, read_with_deadline};

use crate::read::Reader;
use crate::{
    channels, coalesce, competing_programs, features, host as files, irq, napi, pause, rfs, rings, rps, rss, rules, xps,
};

/// Reads the setting at `address` into `now`, and returns it.
///
/// Absent: the host does not have it any more, or `now` does not contain its device, queue or vector. What takes longer
/// than `deadline` is unknown with that reason. After a change of channels, rings or features, read the whole host
/// instead, because queues and interrupts may have changed.
pub fn read_address(host: &Arc<dyn Host>, now: &mut Snapshot, address: &Address, deadline: Duration) -> Fact<Setting> {
    let ask = Ask { host, deadline, address };
    match address {
        Address::IrqbalanceRestart { .. } | Address::IrqbalanceBan { .. } => {
            now.host.irqbalance = ask.fact(|r| competing_programs::irqbalance(r.host, None));
        }
        Address::Sysctl { name } => sysctl_again(&ask, now, name),
        Address::CpuLatency { cpu } => {
            let id = *cpu;
            now.host.cpu_latency.insert(id, ask.fact(move |r| files::latency_of(r, id)));
        }
        Address::RfsEntries => now.host.rps_sock_flow_entries = ask.fact(rfs::global),
        Address::Channels { dev } => with(nic(now, dev), |n| n.channels = ask.of(dev, channels::channels)),
        Address::Rings { dev } => with(nic(now, dev), |n| n.rings = ask.of(dev, rings::rings)),
        Address::Pause { dev } => with(nic(now, dev), |n| n.pause = ask.of(dev, pause::pause)),
        Address::Feature { dev, .. } => with(nic(now, dev), |n| n.features = ask.of(dev, features::features)),
        Address::Ntuple { dev } => with(nic(now, dev), |n| {
            n.features = ask.of(dev, features::features);
            // Many drivers drop all rules when it is switched off.
            n.rules = ask.of(dev, rules::rules);
        }),
        Address::Coalesce { dev } => with(nic(now, dev), |n| moderation(&ask, n, coalesce::again)),
        Address::QueueCoalesce { dev, queue } => {
            let queue = *queue;
            with(nic(now, dev), |n| moderation(&ask, n, move |r, n| coalesce::queue_again(r, n, queue)));
        }
        Address::RssHash { dev }
        | Address::RssFields { dev, .. }
        | Address::RssTable { dev }
        | Address::RssContext { dev, .. } => with(nic(now, dev), |n| n.rss = ask.of(dev, rss::rss)),
        Address::FlowRule { dev, location } => with(nic(now, dev), |n| rule(&ask, n, *location)),
        Address::IrqCpus { dev, of } => with(nic(now, dev), |n| {
            let Some(number) = vectors::vector(n, *of).map(|v| v.irq) else { return };
            interrupt(&ask, n, number);
        }),
        Address::XpsCpus { dev, queue } => {
            with(tx(now, dev, *queue), |q| q.xps_cpus = ask.of_queue(dev, *queue, xps::cpus));
        }
        Address::XpsRxqs { dev, queue } => {
            with(tx(now, dev, *queue), |q| q.xps_rxqs = ask.of_queue(dev, *queue, xps::rx_queues));
        }
        Address::RpsCpus { dev, queue } => {
            with(rx(now, dev, *queue), |q| q.rps_cpus = ask.of_queue(dev, *queue, rps::mask));
        }
        Address::RpsFlowCnt { dev, queue } => {
            with(rx(now, dev, *queue), |q| q.rps_flow_cnt = ask.of_queue(dev, *queue, rfs::queue));
        }
        Address::NapiDevice { dev } | Address::Napi { dev, .. } | Address::NapiThread { dev, .. } => {
            with(nic(now, dev), |n| n.napi = ask.of(dev, napi::again));
        }
    }
    live(now, address)
}

fn with<T>(there: Option<T>, read: impl FnOnce(T)) {
    if let Some(t) = there {
        read(t);
    }
}

fn nic<'a>(now: &'a mut Snapshot, dev: &str) -> Option<&'a mut Nic> {
    now.nics.iter_mut().find(|n| n.dev.name == dev)
}

fn rx<'a>(now: &'a mut Snapshot, dev: &str, queue: u32) -> Option<&'a mut RxQueue> {
    nic(now, dev)?.rx_queues.iter_mut().find(|q| q.id == queue)
}

fn tx<'a>(now: &'a mut Snapshot, dev: &str, queue: u32) -> Option<&'a mut TxQueue> {
    nic(now, dev)?.tx_queues.iter_mut().find(|q| q.id == queue)
}

/// Reads the host within a deadline.
struct Ask<'a> {
    host: &'a Arc<dyn Host>,
    deadline: Duration,
    address: &'a Address,
}

impl Ask<'_> {
    fn within<T: Send + 'static>(&self, read: impl FnOnce(&mut Reader) -> T + Send + 'static) -> Option<T> {
        let host = Arc::clone(self.host);
        read_with_deadline(self.deadline, move || read(&mut Reader::new(host.as_ref())))
    }

    fn late<T>(&self) -> Fact<T> {
        Fact::late(self.address.file().unwrap_or_else(|| self.address.to_string()), self.deadline)
    }

    fn fact<T: Send + 'static>(&self, read: impl FnOnce(&mut Reader) -> Fact<T> + Send + 'static) -> Fact<T> {
        self.within(read).unwrap_or_else(|| self.late())
    }

    fn of<T: Send + 'static>(&self, dev: &str, read: fn(&mut Reader, &str) -> Fact<T>) -> Fact<T> {
        let dev = dev.to_string();
        self.fact(move |r| read(r, &dev))
    }

    fn of_queue<T: Send + 'static>(
        &self,
        dev: &str,
        queue: u32,
        read: fn(&mut Reader, &str, u32) -> Fact<T>,
    ) -> Fact<T> {
        let dev = dev.to_string();
        self.fact(move |r| read(r, &dev, queue))
    }
}

/// Values of the device and of its queues, because each may change or show the other.
fn moderation(ask: &Ask, nic: &mut Nic, read: impl FnOnce(&mut Reader, &mut Nic) + Send + 'static) {
    let mut fresh = nic.clone();
    let read = ask.within(move |r| {
        read(r, &mut fresh);
        (fresh.coalesce, fresh.queue_coalesce)
    });
    (nic.coalesce, nic.queue_coalesce) = read.unwrap_or_else(|| (ask.late(), ask.late()));
}

/// One location, or all if the driver chose the location.
fn rule(ask: &Ask, nic: &mut Nic, location: u32) {
    let dev = nic.dev.name.clone();
    let (Fact::Known(all), true) = (&mut nic.rules, location & BY_CONTENT == 0) else {
        nic.rules = ask.of(&dev, rules::rules);
        return;
    };
    match ask.fact(move |r| rules::rule(r, &dev, location)) {
        Fact::Known(rule) => _ = all.rules.insert(location, rule),
        Fact::Absent => _ = all.rules.remove(&location),
        Fact::Unknown(u) => nic.rules = Fact::Unknown(u),
    }
}

fn interrupt(ask: &Ask, nic: &mut Nic, number: IrqId) {
    let read = ask.within(move |r| irq::one(r, number));
    let late = || Fact::late(path::affinity(number), ask.deadline);
    let (asked, effective) = read.unwrap_or_else(|| (late(), late()));
    for v in nic.vectors.iter_mut().filter(|v| v.irq == number) {
        (v.asked, v.effective) = (asked.clone(), effective.clone());
    }
}

fn sysctl_again(ask: &Ask, now: &mut Snapshot, name: &str) {
    let value = if name == sysctl::RPS_DEFAULT_MASK {
        now.host.rps_default_mask = ask.fact(rps::default_mask);
        now.host.rps_default_mask.as_ref().map(|m| cpumask::format(m, None))
    } else {
        let name = name.to_string();
        ask.fact(move |r| files::sysctl(r, &name))
    };
    now.host.sysctls.insert(name.to_string(), value);
}
