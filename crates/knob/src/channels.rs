//! Channel counts (`ethtool -L`). A change renumbers queues and interrupts and resets other settings; which ones differs
//! by driver.

use ringwise_model::errno::ENOSPC;
use ringwise_model::{Bql, Channels, CpuSet, Fact, Nic, Role, RxQueue, Snapshot, TxQueue};

use crate::{Address, Descriptor, Family, Match, NotProjected, Reaction, Setting, known, nic, rss};

pub(crate) struct ChannelsFamily;

impl Descriptor for ChannelsFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        vec![Address::Channels { dev: nic.dev.name.clone() }]
    }

    fn label(&self, address: &Address) -> String {
        format!("{} channels", address.dev().unwrap_or_default())
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        address.dev().and_then(|d| s.nic(d)).map_or(Fact::Absent, live)
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (
                Setting::Channels { rx, tx, combined, .. },
                Setting::Channels { rx: got_rx, tx: got_tx, combined: got_combined, .. },
            ) => compare((*rx, *tx, *combined), (*got_rx, *got_tx, *got_combined)),
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        let Setting::Channels { dev, rx, tx, combined } = setting else { return Err(NotProjected::OTHER_FAMILY) };
        let default_mask = s.host.rps_default_mask.clone();
        project(nic(s, dev)?, (*rx, *tx, *combined), default_mask)
    }

    /// irqbalance does not know the new interrupts: its bans name the old ones.
    fn invalidates(&self, _: &Address) -> &'static [Family] {
        &[
            Family::Rivals,
            Family::Rings,
            Family::Coalesce,
            Family::Rss,
            Family::Rules,
            Family::Irq,
            Family::Xps,
            Family::Rps,
            Family::Rfs,
            Family::Napi,
        ]
    }

    /// drivers/pci/msi/msi.c, `__pci_enable_msix_range`: fewer vectors are left than the driver requires.
    fn react(&self, _: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        (errno? == ENOSPC).then_some((
            Reaction::Fail,
            "too few interrupt vectors are left for these channels: request fewer channels, here or on other devices (ringwise check --explain A10)",
        ))
    }

    fn interrupts_traffic(&self, _: &Address) -> bool {
        true
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Channels { rx, tx, combined, .. } => text(*rx, *tx, *combined),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Channels { dev, rx, tx, combined } => Some(command(dev, *rx, *tx, *combined)),
            _ => None,
        }
    }
}

/// What the device has now. A count that the driver does not report is not part of the setting.
pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.channels.as_ref().map(|c: &Channels| Setting::Channels {
        dev,
        rx: c.rx.map(|c| c.now),
        tx: c.tx.map(|c| c.now),
        combined: c.combined.map(|c| c.now),
    })
}

/// Compares only the counts that were requested. A count of 0 and a count that the driver does not report mean the same
/// (interfaces.md A.6).
pub fn compare(want: (Option<u32>, Option<u32>, Option<u32>), got: (Option<u32>, Option<u32>, Option<u32>)) -> Match {
    let same = |w: Option<u32>, g: Option<u32>| w.is_none_or(|w| g.unwrap_or(0) == w);
    if same(want.0, got.0) && same(want.1, got.1) && same(want.2, got.2) { Match::Same } else { Match::Differs }
}

/// More queues than any device has. A configuration may request any number.
const MOST_QUEUES: u32 = 4096;

/// Removed queues lose their vectors, and new queues have no vectors yet: drivers request all vectors again.
/// `default_mask`: RPS mask of new receive queues.
pub(crate) fn project(
    nic: &mut Nic,
    (rx, tx, combined): (Option<u32>, Option<u32>, Option<u32>),
    default_mask: Fact<CpuSet>,
) -> Result<(), NotProjected> {
    let counts = |n: &Nic| n.channels.known().map(|c| (c.rx_queues(), c.tx_queues()));
    let before = counts(nic).map(|c| c.0).filter(|n| *n > 0).unwrap_or(nic.rx_queues.len() as u32);
    let c = known(&mut nic.channels)?;
    for (have, want) in [(&mut c.rx, rx), (&mut c.tx, tx), (&mut c.combined, combined)] {
        if let (Some(have), Some(want)) = (have, want) {
            have.now = want;
        }
    }
    // The counts stay unknown: without reported counts, the requested ones cannot be assumed.
    let Some((rx, tx)) = counts(nic).filter(|c| c.0 > 0 && c.1 > 0) else { return Ok(()) };
    if let (Fact::Known(r), true) = (&mut nic.rss, before > 0) {
        let driver = nic.driver.known().map_or("", String::as_str);
        r.table = rss::after_channels(driver, &r.table, before, rx);
    }
    let unset = match default_mask {
        Fact::Absent => Fact::Known(CpuSet::new()),
        mask => mask,
    };
    nic.rx_queues.retain(|q| q.id < rx);
    for id in nic.rx_queues.len() as u32..rx.min(MOST_QUEUES) {
        nic.rx_queues.push(RxQueue { id, rps_cpus: unset.clone(), rps_flow_cnt: Fact::Known(0) });
    }
    nic.tx_queues.retain(|q| q.id < tx);
    for id in nic.tx_queues.len() as u32..tx.min(MOST_QUEUES) {
        nic.tx_queues.push(TxQueue { id, xps_cpus: not_yet(), xps_rxqs: not_yet(), bql: not_yet::<Bql>() });
    }
    if let Fact::Known(all) = &mut nic.queue_coalesce {
        all.retain(|q, _| *q < rx.max(tx));
    }
    nic.vectors.retain_mut(|v| match &mut v.role {
        Role::Queues { rx: r, tx: t } => {
            r.retain(|q| *q < rx);
            t.retain(|q| *q < tx);
            !(r.is_empty() && t.is_empty())
        }
        _ => true,
    });
    Ok(())
}

/// Some drivers fill the maps of new queues; most do not.
fn not_yet<T>() -> Fact<T> {
    Fact::unknown("queue", "it does not exist yet")
}

/// Text of the counts for people.
pub fn text(rx: Option<u32>, tx: Option<u32>, combined: Option<u32>) -> String {
    let parts = [("rx", rx), ("tx", tx), ("combined", combined)];
    // A count of 0 carries no information if other counts are above 0.
    let any = parts.iter().any(|(_, n)| n.is_some_and(|n| n > 0));
    let shown = parts.iter().filter_map(|(k, n)| n.filter(|n| *n > 0 || !any).map(|n| format!("{k} {n}")));
    let s: Vec<String> = shown.collect();
    if s.is_empty() { "none".into() } else { s.join(" ") }
}

/// The `ethtool -L` command.
pub fn command(dev: &str, rx: Option<u32>, tx: Option<u32>, combined: Option<u32>) -> String {
    format!("ethtool -L {dev} {}", text(rx, tx, combined))
}
