//! Ring sizes (`ethtool -G`), in descriptors. Known here so that a channel change can be put back whole.

use ringwise_model::{Fact, Nic, Rings, Snapshot};

use crate::{Address, Descriptor, Family, Match, NotProjected, Setting, known, nic};

pub(crate) struct RingsFamily;

impl Descriptor for RingsFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        vec![Address::Rings { dev: nic.dev.name.clone() }]
    }

    fn label(&self, address: &Address) -> String {
        format!("{} rings", address.dev().unwrap_or_default())
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        address.dev().and_then(|d| s.nic(d)).map_or(Fact::Absent, live)
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::Rings { rx, tx, .. }, Setting::Rings { rx: got_rx, tx: got_tx, .. }) => {
                compare((*rx, *tx), (*got_rx, *got_tx))
            }
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::Rings { dev, rx, tx } => project(known(&mut nic(s, dev)?.rings)?, *rx, *tx),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn invalidates(&self, _: &Address) -> &'static [Family] {
        &[Family::Rivals, Family::Coalesce, Family::Rss, Family::Irq, Family::Xps, Family::Napi]
    }

    fn interrupts_traffic(&self, _: &Address) -> bool {
        true
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Rings { rx, tx, .. } => text(*rx, *tx),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Rings { dev, rx, tx } => Some(command(dev, *rx, *tx)),
            _ => None,
        }
    }
}

pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.rings.as_ref().map(|r: &Rings| Setting::Rings { dev, rx: r.rx.map(|c| c.now), tx: r.tx.map(|c| c.now) })
}

/// Drivers round up (igb: multiples of 8, at least 64; vmxnet3: multiples of 32; others: powers of two).
pub fn compare(want: (Option<u32>, Option<u32>), got: (Option<u32>, Option<u32>)) -> Match {
    let one = |w: Option<u32>, g: Option<u32>| match (w, g) {
        (None, _) => Match::Same,
        (Some(w), Some(g)) if w == g => Match::Same,
        (Some(w), Some(g)) if g > w && g <= most(w) => Match::Adjusted,
        _ => Match::Differs,
    };
    one(want.0, got.0).max(one(want.1, got.1))
}

/// As it is asked: by how much a driver rounds up is its own.
pub(crate) fn project(r: &mut Rings, rx: Option<u32>, tx: Option<u32>) -> Result<(), NotProjected> {
    for (have, want) in [(&mut r.rx, rx), (&mut r.tx, tx)] {
        if let (Some(have), Some(want)) = (have, want) {
            have.now = want;
        }
    }
    Ok(())
}

/// What a driver may make of it at most, by rounding up.
pub fn most(want: u32) -> u32 {
    want.checked_next_power_of_two().unwrap_or(want).max(64)
}

pub fn text(rx: Option<u32>, tx: Option<u32>) -> String {
    let s: Vec<String> = [("rx", rx), ("tx", tx)].iter().filter_map(|(k, n)| n.map(|n| format!("{k} {n}"))).collect();
    s.join(" ")
}

pub fn command(dev: &str, rx: Option<u32>, tx: Option<u32>) -> String {
    format!("ethtool -G {dev} {}", text(rx, tx))
}
