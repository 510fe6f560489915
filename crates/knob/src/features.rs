//! Features of a device (`ethtool -K`), by the kernel's names.

use ringwise_model::{Fact, Nic};

use crate::{Address, Setting};

/// Of rules and accelerated RFS: written late, because switching it off drops rules.
pub const NTUPLE: &str = "rx-ntuple-filter";

/// What is in force. Absent: the device has no such feature.
pub fn live(nic: &Nic, name: &str) -> Fact<Setting> {
    nic.features.as_ref().and_then(|all| match all.get(name) {
        Some(f) => Fact::Known(Setting::Feature { dev: nic.dev.name.clone(), name: name.to_string(), on: f.on }),
        None => Fact::Absent,
    })
}

/// Those that can be changed.
pub fn addresses(nic: &Nic) -> Vec<Address> {
    let all = nic.features.known().into_iter().flatten();
    all.filter(|(k, f)| !f.fixed && *k != NTUPLE)
        .map(|(k, _)| Address::Feature { dev: nic.dev.name.clone(), name: k.clone() })
        .collect()
}

pub fn text(on: bool) -> String {
    if on { "on" } else { "off" }.to_string()
}

pub fn command(dev: &str, name: &str, on: bool) -> String {
    format!("ethtool -K {dev} {name} {}", text(on))
}
