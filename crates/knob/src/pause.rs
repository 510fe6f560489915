//! Pause frames (`ethtool -A`).

use ringwise_model::{Fact, Nic, Pause};

use crate::{Match, NotProjected, Setting};

type Values = (Option<bool>, Option<bool>, Option<bool>);

pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.pause.as_ref().map(|p: &Pause| Setting::Pause { dev, autoneg: p.autoneg, rx: p.rx, tx: p.tx })
}

/// Only what was asked for is compared.
pub fn compare(want: Values, got: Values) -> Match {
    let same = |w: Option<bool>, g: Option<bool>| w.is_none_or(|w| g == Some(w));
    if same(want.0, got.0) && same(want.1, got.1) && same(want.2, got.2) { Match::Same } else { Match::Differs }
}

pub(crate) fn project(p: &mut Pause, want: Values) -> Result<(), NotProjected> {
    (p.autoneg, p.rx, p.tx) = (want.0.or(p.autoneg), want.1.or(p.rx), want.2.or(p.tx));
    Ok(())
}

pub fn text(autoneg: Option<bool>, rx: Option<bool>, tx: Option<bool>) -> String {
    let parts = [("autoneg", autoneg), ("rx", rx), ("tx", tx)];
    let s: Vec<String> =
        parts.iter().filter_map(|(k, v)| v.map(|v| format!("{k} {}", if v { "on" } else { "off" }))).collect();
    s.join(" ")
}

pub fn command(dev: &str, autoneg: Option<bool>, rx: Option<bool>, tx: Option<bool>) -> String {
    format!("ethtool -A {dev} {}", text(autoneg, rx, tx))
}
