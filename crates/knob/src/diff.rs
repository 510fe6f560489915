//! Settings of a snapshot, and what would have to be written to reach others.

use std::collections::BTreeMap;

use ringwise_model::{Fact, Snapshot, Unread};
use serde::{Deserialize, Serialize};

use crate::{Address, Family, Setting, coalesce, order};

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

/// The setting at `address` as this snapshot found it.
pub fn live(s: &Snapshot, address: &Address) -> Fact<Setting> {
    address.family().descriptor().live(s, address)
}

/// Every setting of the device that could be read now.
pub fn live_of_device(s: &Snapshot, dev: &str) -> SettingMap {
    let Some(nic) = s.nic(dev) else {
        return SettingMap::new();
    };
    let addresses = Family::ALL.iter().flat_map(|f| f.descriptor().addresses(nic));
    addresses.filter_map(|a| live(s, &a).known().cloned().map(|v| (a, v))).collect::<BTreeMap<_, _>>()
}

/// How the setting stands in this snapshot.
pub fn compare(want: &Setting, s: &Snapshot) -> Match {
    let Some(address) = want.address() else {
        return Match::Unknown(Unread::new("setting", None, "written by a newer version of ringwise"));
    };
    address.family().descriptor().compare(s, want, &live(s, &address))
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
