//! Pause frames (`ethtool -A`).

use ringwise_model::errno::EINVAL;
use ringwise_model::{Fact, Nic, Pause, Snapshot};

use crate::{Address, Descriptor, Match, NotProjected, Reaction, Setting, known, nic};

pub(crate) struct PauseFamily;

impl Descriptor for PauseFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        vec![Address::Pause { dev: nic.dev.name.clone() }]
    }

    fn label(&self, address: &Address) -> String {
        format!("{} pause frames", address.dev().unwrap_or_default())
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        address.dev().and_then(|d| s.nic(d)).map_or(Fact::Absent, live)
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::Pause { autoneg, rx, tx, .. }, Setting::Pause { autoneg: a, rx: r, tx: t, .. }) => {
                compare((*autoneg, *rx, *tx), (*a, *r, *t))
            }
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::Pause { dev, autoneg, rx, tx } => project(known(&mut nic(s, dev)?.pause)?, (*autoneg, *rx, *tx)),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, _: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        (errno == Some(EINVAL)).then_some((
            Reaction::Refused,
            "the driver refuses this combination: autonegotiation may need support by the link partner, and some \
             drivers need the same value for rx and tx",
        ))
    }

    fn interrupts_traffic(&self, _: &Address) -> bool {
        true
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Pause { autoneg, rx, tx, .. } => text(*autoneg, *rx, *tx),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Pause { dev, autoneg, rx, tx } => Some(command(dev, *autoneg, *rx, *tx)),
            _ => None,
        }
    }
}

type Values = (Option<bool>, Option<bool>, Option<bool>);

/// Pause parameters in this snapshot.
pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.pause.as_ref().map(|p: &Pause| Setting::Pause { dev, autoneg: p.autoneg, rx: p.rx, tx: p.tx })
}

/// Compares only the values that were requested.
pub fn compare(want: Values, got: Values) -> Match {
    let same = |w: Option<bool>, g: Option<bool>| w.is_none_or(|w| g == Some(w));
    if same(want.0, got.0) && same(want.1, got.1) && same(want.2, got.2) { Match::Same } else { Match::Differs }
}

pub(crate) fn project(p: &mut Pause, want: Values) -> Result<(), NotProjected> {
    (p.autoneg, p.rx, p.tx) = (want.0.or(p.autoneg), want.1.or(p.rx), want.2.or(p.tx));
    Ok(())
}

/// Text of the parameters for people.
pub fn text(autoneg: Option<bool>, rx: Option<bool>, tx: Option<bool>) -> String {
    let parts = [("autoneg", autoneg), ("rx", rx), ("tx", tx)];
    let s: Vec<String> =
        parts.iter().filter_map(|(k, v)| v.map(|v| format!("{k} {}", if v { "on" } else { "off" }))).collect();
    s.join(" ")
}

/// The `ethtool -A` command.
pub fn command(dev: &str, autoneg: Option<bool>, rx: Option<bool>, tx: Option<bool>) -> String {
    format!("ethtool -A {dev} {}", text(autoneg, rx, tx))
}
