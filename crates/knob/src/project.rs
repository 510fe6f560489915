//! The one projection: a snapshot as it would read after the kernel took a setting.
//!
//! ```text
//!   Snapshot ── project(setting) ──► Snapshot ── live(address) ──► what the kernel keeps of it
//! ```
//!
//! What the kernel and drivers are documented to make of a value (rounding, CPUs that are dropped) is made of it here.
//! What a driver draws anew by itself (interrupts of queues that are created) cannot be known, and is left out.

use std::fmt;

use ringwise_model::{Fact, Nic, Rss, RssContext, RxQueue, Snapshot, TxQueue};

use crate::{Setting, channels, coalesce, features, host, irq, napi, offline, pause, rfs, rings, rivals, rps, rules};

/// The snapshot does not hold what the setting names, or the kernel would refuse it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotProjected(pub &'static str);

impl fmt::Display for NotProjected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for NotProjected {}

type Done = Result<(), NotProjected>;

const NO_QUEUE: NotProjected = NotProjected("no such queue");

/// Writes one setting into the snapshot, as the kernel would keep it.
///
/// Errors: the snapshot is left as it was.
pub fn project(s: &mut Snapshot, setting: &Setting) -> Done {
    let online = &s.topology.online;
    let kept = match online.is_empty() {
        true => setting.clone(),
        false => offline::accepted(setting, online).ok_or(NotProjected("no CPU of it is online"))?,
    };
    match &kept {
        Setting::IrqbalanceRestart { dev, left } => rivals::project_restart(s, dev, *left),
        Setting::IrqbalanceBan { dev, left } => rivals::project_ban(s, dev, left),
        Setting::Channels { dev, rx, tx, combined } => {
            let default_mask = s.host.rps_default_mask.clone();
            channels::project(nic(s, dev)?, (*rx, *tx, *combined), default_mask)
        }
        Setting::Rings { dev, rx, tx } => rings::project(known(&mut nic(s, dev)?.rings)?, *rx, *tx),
        Setting::Coalesce { dev, params } => coalesce::project(nic(s, dev)?, params),
        Setting::QueueCoalesce { dev, queue, params } => coalesce::project_queue(nic(s, dev)?, *queue, params),
        Setting::Feature { dev, name, on } => features::project(nic(s, dev)?, name, *on),
        Setting::Ntuple { dev, on } => features::project(nic(s, dev)?, features::NTUPLE, *on),
        Setting::Pause { dev, autoneg, rx, tx } => {
            pause::project(known(&mut nic(s, dev)?.pause)?, (*autoneg, *rx, *tx))
        }
        Setting::RssHash { dev, function, key, symmetric } => {
            let r = rss(s, dev)?;
            for (to, value) in [(&mut r.function, function), (&mut r.key, key), (&mut r.symmetric, symmetric)] {
                if let Some(v) = value {
                    *to = Fact::Known(v.clone());
                }
            }
            Ok(())
        }
        Setting::RssFields { dev, flow, fields } => {
            rss(s, dev)?.fields.insert(flow.clone(), fields.clone());
            Ok(())
        }
        Setting::RssTable { dev, table } => {
            rss(s, dev)?.table.clone_from(table);
            Ok(())
        }
        Setting::RssContext { dev, context, table, key } => {
            let all = known(&mut rss(s, dev)?.contexts)?;
            // A key that is not named stays; a new context gets one from the kernel, which nobody knows before.
            let key = key.clone().or_else(|| all.get(context).and_then(|c| c.key.clone()));
            match table {
                Some(t) => drop(all.insert(*context, RssContext { table: t.clone(), key })),
                None => drop(all.remove(context)),
            }
            Ok(())
        }
        Setting::FlowRule { dev, location, rule } => {
            rules::project(known(&mut nic(s, dev)?.rules)?, *location, rule.as_ref())
        }
        Setting::NapiDevice { dev, values } => napi::project_device(known(&mut nic(s, dev)?.napi)?, values),
        Setting::Napi { dev, of, values } => napi::project(nic(s, dev)?, *of, values),
        Setting::NapiThread { dev, of, cpus } => napi::project_thread(nic(s, dev)?, *of, cpus),
        Setting::Sysctl { name, value } => {
            if let (true, Some(mask)) = (host::is_rps_default_mask(name), host::mask(value)) {
                s.host.rps_default_mask = Fact::Known(mask);
            }
            s.host.sysctls.insert(name.clone(), Fact::Known(value.clone()));
            Ok(())
        }
        Setting::CpuLatency { cpu, value } => {
            s.host.cpu_latency.insert(*cpu, Fact::Known(value.clone()));
            Ok(())
        }
        Setting::IrqCpus { dev, of, cpus, on } => irq::project(nic(s, dev)?, *of, cpus, *on),
        Setting::XpsCpus { dev, queue, cpus } => {
            tx_queue(s, dev, *queue)?.xps_cpus = Fact::Known(cpus.clone());
            Ok(())
        }
        Setting::XpsRxqs { dev, queue, rxqs } => {
            tx_queue(s, dev, *queue)?.xps_rxqs = Fact::Known(rxqs.clone());
            Ok(())
        }
        Setting::RpsCpus { dev, queue, cpus } => {
            let cpus = rps::kept(&s.topology, cpus).ok_or(NotProjected("all its CPUs are isolated"))?;
            rx_queue(s, dev, *queue)?.rps_cpus = Fact::Known(cpus);
            Ok(())
        }
        Setting::RpsFlowCnt { dev, queue, entries } => {
            rx_queue(s, dev, *queue)?.rps_flow_cnt = Fact::Known(rfs::kept(*entries));
            Ok(())
        }
        Setting::RfsEntries { entries } => {
            s.host.rps_sock_flow_entries = Fact::Known(rfs::kept(*entries));
            Ok(())
        }
        Setting::Other(_) => Err(NotProjected("written by a newer version of ringwise")),
    }
}

fn nic<'a>(s: &'a mut Snapshot, dev: &str) -> Result<&'a mut Nic, NotProjected> {
    s.nics.iter_mut().find(|n| n.dev.name == dev).ok_or(NotProjected("no such device"))
}

fn rss<'a>(s: &'a mut Snapshot, dev: &str) -> Result<&'a mut Rss, NotProjected> {
    known(&mut nic(s, dev)?.rss)
}

fn rx_queue<'a>(s: &'a mut Snapshot, dev: &str, queue: u32) -> Result<&'a mut RxQueue, NotProjected> {
    nic(s, dev)?.rx_queues.iter_mut().find(|q| q.id == queue).ok_or(NO_QUEUE)
}

fn tx_queue<'a>(s: &'a mut Snapshot, dev: &str, queue: u32) -> Result<&'a mut TxQueue, NotProjected> {
    nic(s, dev)?.tx_queues.iter_mut().find(|q| q.id == queue).ok_or(NO_QUEUE)
}

pub(crate) fn known<T>(f: &mut Fact<T>) -> Result<&mut T, NotProjected> {
    match f {
        Fact::Known(v) => Ok(v),
        Fact::Absent => Err(NotProjected("the device has none")),
        Fact::Unknown(_) => Err(NotProjected("not known of the device")),
    }
}
