//! Channel counts (`ethtool -L`). Renumbers queues and interrupts; resets much, differently by driver.

use ringwise_model::{Channels, Fact, Nic};

use crate::{Match, Setting};

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

/// Only counts that were asked for are compared. Drivers that report a count of 0 and one that
/// reports none mean the same (interfaces.md A.6).
pub fn compare(want: (Option<u32>, Option<u32>, Option<u32>), got: (Option<u32>, Option<u32>, Option<u32>)) -> Match {
    let same = |w: Option<u32>, g: Option<u32>| w.is_none_or(|w| g.unwrap_or(0) == w);
    if same(want.0, got.0) && same(want.1, got.1) && same(want.2, got.2) { Match::Same } else { Match::Differs }
}

pub fn text(rx: Option<u32>, tx: Option<u32>, combined: Option<u32>) -> String {
    let parts = [("rx", rx), ("tx", tx), ("combined", combined)];
    // A zero beside other counts says nothing.
    let any = parts.iter().any(|(_, n)| n.is_some_and(|n| n > 0));
    let shown = parts.iter().filter_map(|(k, n)| n.filter(|n| *n > 0 || !any).map(|n| format!("{k} {n}")));
    let s: Vec<String> = shown.collect();
    if s.is_empty() { "none".into() } else { s.join(" ") }
}

pub fn command(dev: &str, rx: Option<u32>, tx: Option<u32>, combined: Option<u32>) -> String {
    format!("ethtool -L {dev} {}", text(rx, tx, combined))
}
