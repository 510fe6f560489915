//! Settings of a snapshot, and what would have to be written to reach others.

use std::collections::BTreeMap;

use ringwise_model::{Fact, Nic, Snapshot, Unread};
use serde::{Deserialize, Serialize};

use crate::{
    Address, Setting, channels, coalesce, features, host, irq, napi, order, pause, rfs, rings, rivals, rps, rss, rules,
    xps,
};

/// Settings by address; iterating gives the order in which they are written.
pub type SettingMap = BTreeMap<Address, Setting>;

/// How what the kernel kept compares with what was asked. Ordered from good to bad.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    Same,
    /// Accepted; shows at the next interrupt of the queue.
    Pending,
    /// The kernel or driver rounded, clamped or reduced it within its documented rule.
    Adjusted,
    Differs,
    /// The queue, vector or device does not exist now.
    Gone,
    Unknown(Unread),
}

impl Match {
    /// Nothing needs to be written.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Same | Self::Pending | Self::Adjusted)
    }
}

/// One setting that is not as wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub address: Address,
    /// Absent: the queue or vector does not exist (yet).
    pub from: Fact<Setting>,
    pub to: Setting,
}

fn nic_fact(s: &Snapshot, dev: &str, f: impl FnOnce(&Nic) -> Fact<Setting>) -> Fact<Setting> {
    s.nic(dev).map_or(Fact::Absent, f)
}

/// The setting at `address` as this snapshot found it.
pub fn live(s: &Snapshot, address: &Address) -> Fact<Setting> {
    match address {
        Address::IrqbalanceRestart { dev } => rivals::live_restart(s, dev),
        Address::IrqbalanceBan { dev } => rivals::live_ban(s, dev),
        Address::Channels { dev } => nic_fact(s, dev, channels::live),
        Address::Rings { dev } => nic_fact(s, dev, rings::live),
        Address::Coalesce { dev } => nic_fact(s, dev, coalesce::live),
        Address::RssTable { dev } => nic_fact(s, dev, rss::live),
        Address::IrqCpus { dev, of } => nic_fact(s, dev, |n| irq::live(n, *of)),
        Address::XpsCpus { dev, queue } => nic_fact(s, dev, |n| xps::live(n, *queue)),
        Address::XpsRxqs { dev, queue } => nic_fact(s, dev, |n| xps::live_rxqs(n, *queue)),
        Address::RpsCpus { dev, queue } => nic_fact(s, dev, |n| rps::live(n, *queue)),
        Address::RpsFlowCnt { dev, queue } => nic_fact(s, dev, |n| rfs::live(n, *queue)),
        Address::RfsEntries => rfs::live_entries(&s.host),
        Address::Feature { dev, name } => nic_fact(s, dev, |n| features::live(n, name)),
        Address::Pause { dev } => nic_fact(s, dev, pause::live),
        Address::QueueCoalesce { dev, queue } => nic_fact(s, dev, |n| coalesce::live_queue(n, *queue)),
        Address::RssHash { dev } => nic_fact(s, dev, rss::live_hash),
        Address::RssFields { dev, flow } => nic_fact(s, dev, |n| rss::live_fields(n, flow)),
        Address::RssContext { dev, context } => nic_fact(s, dev, |n| rss::live_context(n, *context)),
        Address::Ntuple { dev } => nic_fact(s, dev, rules::live_ntuple),
        Address::FlowRule { dev, location } => nic_fact(s, dev, |n| rules::live(n, *location)),
        Address::NapiDevice { dev } => nic_fact(s, dev, napi::live_device),
        Address::Napi { dev, of } => nic_fact(s, dev, |n| napi::live(n, *of)),
        Address::NapiThread { dev, of } => nic_fact(s, dev, |n| napi::live_thread(n, *of)),
        Address::Sysctl { name } => host::live_sysctl(&s.host, name),
        Address::CpuLatency { cpu } => host::live_latency(&s.host, *cpu),
    }
}

/// Every setting of the device that could be read now.
pub fn live_of_device(s: &Snapshot, dev: &str) -> SettingMap {
    let Some(nic) = s.nic(dev) else {
        return SettingMap::new();
    };
    let name = || dev.to_string();
    let mut addresses = vec![
        Address::IrqbalanceRestart { dev: name() },
        Address::IrqbalanceBan { dev: name() },
        Address::Channels { dev: name() },
        Address::Rings { dev: name() },
        Address::Coalesce { dev: name() },
        Address::RssTable { dev: name() },
    ];
    addresses.extend(features::addresses(nic));
    addresses.push(Address::Pause { dev: name() });
    addresses.extend(coalesce::queue_addresses(nic));
    addresses.extend(rss::more_addresses(nic));
    addresses.extend(rules::addresses(nic));
    addresses.extend(napi::addresses(nic));
    addresses.extend(irq::addresses(nic).into_iter().map(|of| Address::IrqCpus { dev: name(), of }));
    for q in &nic.tx_queues {
        addresses.push(Address::XpsCpus { dev: name(), queue: q.id });
        addresses.push(Address::XpsRxqs { dev: name(), queue: q.id });
    }
    for q in &nic.rx_queues {
        addresses.push(Address::RpsCpus { dev: name(), queue: q.id });
        addresses.push(Address::RpsFlowCnt { dev: name(), queue: q.id });
    }
    addresses.into_iter().filter_map(|a| live(s, &a).known().cloned().map(|v| (a, v))).collect::<BTreeMap<_, _>>()
}

/// How the setting stands in this snapshot.
pub fn compare(want: &Setting, s: &Snapshot) -> Match {
    let Some(address) = want.address() else {
        return Match::Unknown(Unread::new("setting", None, "written by a newer version of ringwise"));
    };
    let moderation = match want {
        Setting::Coalesce { dev, params } | Setting::QueueCoalesce { dev, params, .. } => Some((dev, params)),
        _ => None,
    };
    if let (Some((dev, want)), Fact::Known(Setting::Coalesce { params, .. } | Setting::QueueCoalesce { params, .. })) =
        (moderation, &live(s, &address))
    {
        let driver = s.nic(dev).and_then(|n| n.driver.known());
        return coalesce::compare(driver.map(String::as_str), want, params);
    }
    if let Setting::IrqCpus { dev, of, cpus, .. } = want {
        return s.nic(dev).map_or(Match::Gone, |n| irq::compare(n, *of, cpus));
    }
    if address.family() == crate::Family::Rivals {
        return rivals::compare(s, want, &live(s, &address));
    }
    match live(s, &address) {
        Fact::Absent => Match::Gone,
        Fact::Unknown(u) => Match::Unknown(u),
        Fact::Known(got) => match (want, &got) {
            (Setting::RpsCpus { cpus, .. }, Setting::RpsCpus { cpus: got, .. }) => {
                rps::compare_on(&s.topology, cpus, got)
            }
            _ => compare_values(want, &got),
        },
    }
}

fn compare_values(want: &Setting, got: &Setting) -> Match {
    use Setting as S;
    match (want, got) {
        (S::Channels { rx, tx, combined, .. }, S::Channels { rx: r, tx: t, combined: c, .. }) => {
            channels::compare((*rx, *tx, *combined), (*r, *t, *c))
        }
        (S::Rings { rx, tx, .. }, S::Rings { rx: r, tx: t, .. }) => rings::compare((*rx, *tx), (*r, *t)),
        (S::Pause { autoneg, rx, tx, .. }, S::Pause { autoneg: a, rx: r, tx: t, .. }) => {
            pause::compare((*autoneg, *rx, *tx), (*a, *r, *t))
        }
        (S::RssHash { function, key, symmetric, .. }, S::RssHash { function: f, key: k, symmetric: y, .. }) => {
            rss::compare_hash((function, key, symmetric), (f, k, y))
        }
        (S::RssContext { table, key, .. }, S::RssContext { table: t, key: k, .. }) => {
            rss::compare_context((table, key), (t, k))
        }
        (S::NapiDevice { values, .. }, S::NapiDevice { values: v, .. })
        | (S::Napi { values, .. }, S::Napi { values: v, .. }) => napi::compare(values, v),
        (S::Sysctl { name, value }, S::Sysctl { value: v, .. }) => host::compare_sysctl(name, value, v),
        (S::XpsCpus { cpus, .. }, S::XpsCpus { cpus: c, .. }) => xps::compare(cpus, c),
        (S::RpsFlowCnt { entries, .. }, S::RpsFlowCnt { entries: e, .. })
        | (S::RfsEntries { entries }, S::RfsEntries { entries: e }) => rfs::compare(*entries, *e),
        _ if want == got => Match::Same,
        _ => Match::Differs,
    }
}

/// It comes by itself with another setting of the target.
fn follows(s: &Snapshot, want: &Setting, target: &SettingMap) -> bool {
    match want {
        Setting::Coalesce { dev, params } => s.nic(dev).is_some_and(|n| coalesce::shows_first_queue(n, params, target)),
        _ => false,
    }
}

/// What would have to be written, in order. A setting whose queue does not exist now is a change
/// with an absent `from`: an earlier change may create it.
pub fn diff(s: &Snapshot, target: &SettingMap) -> Vec<Change> {
    let mut out: Vec<Change> = target
        .iter()
        .filter(|(_, want)| !compare(want, s).holds() && !follows(s, want, target))
        .map(|(a, want)| Change { address: a.clone(), from: live(s, a), to: want.clone() })
        .collect();
    order(&mut out, |c| (&c.from, &c.to));
    out
}

/// Settings of `start` that writing the `touched` addresses may disturb without being asked to:
/// what must be looked at again, and put back where it moved.
pub fn collateral<'a>(start: &Snapshot, touched: impl IntoIterator<Item = &'a Address>) -> SettingMap {
    let mut out = SettingMap::new();
    for a in touched {
        let Some(dev) = a.dev() else { continue };
        let families = a.invalidates();
        if families.is_empty() {
            continue;
        }
        out.extend(live_of_device(start, dev).into_iter().filter(|(b, _)| families.contains(&b.family())));
    }
    out
}
