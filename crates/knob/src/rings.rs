//! Ring sizes (`ethtool -G`), in descriptors. Known here so that a channel change can be put back whole.

use ringwise_model::{Fact, Nic, Rings};

use crate::{Match, NotProjected, Setting};

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
