//! Reads settings from a snapshot and lists the changes needed to reach other settings.

use std::collections::BTreeMap;

use ringwise_model::{Fact, Snapshot, Unread};
use serde::{Deserialize, Serialize};

use crate::{Address, Family, Setting, coalesce, order};

/// Settings by address; iteration follows the order in which they are written.
pub type SettingMap = BTreeMap<Address, Setting>;

/// How the value in the kernel compares with the requested value. Ordered from good to bad.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Equal to the requested value.
    Same,
    /// Accepted; takes effect at the next interrupt of the queue.
    Pending,
    /// The kernel or driver rounded, clamped or reduced the value as documented.
    Adjusted,
    /// Differs from the requested value.
    Differs,
    /// The queue, vector or device does not exist now.
    Gone,
    /// The current value could not be read.
    Unknown(Unread),
}

impl Match {
    /// Nothing needs to be written.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Same | Self::Pending | Self::Adjusted)
    }
}

/// One setting that differs from the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Address of the setting.
    pub address: Address,
    /// The current value. Absent: the queue or vector does not exist (yet).
    pub from: Fact<Setting>,
    /// The value to write.
    pub to: Setting,
}

/// The setting at `address` in this snapshot.
pub fn live(s: &Snapshot, address: &Address) -> Fact<Setting> {
    address.family().descriptor().live(s, address)
}

/// All settings of the device that this snapshot contains.
pub fn live_of_device(s: &Snapshot, dev: &str) -> SettingMap {
    let Some(nic) = s.nic(dev) else {
        return SettingMap::new();
    };
    let addresses = Family::ALL.iter().flat_map(|f| f.descriptor().addresses(nic));
    addresses.filter_map(|a| live(s, &a).known().cloned().map(|v| (a, v))).collect::<BTreeMap<_, _>>()
}

/// Compares the setting with this snapshot.
pub fn compare(want: &Setting, s: &Snapshot) -> Match {
    let Some(address) = want.address() else {
        return Match::Unknown(Unread::new("setting", None, "written by a newer version of ringwise"));
    };
    address.family().descriptor().compare(s, want, &live(s, &address))
}

/// Whether another setting of the target also produces this one.
fn follows(s: &Snapshot, want: &Setting, target: &SettingMap) -> bool {
    match want {
        Setting::Coalesce { dev, params } => s.nic(dev).is_some_and(|n| coalesce::shows_first_queue(n, params, target)),
        _ => false,
    }
}

/// The changes needed to reach `target`, in the order of writing. A setting whose queue does not exist now is a change
/// with an absent `from`, because an earlier change may create the queue.
pub fn diff(s: &Snapshot, target: &SettingMap) -> Vec<Change> {
    let mut out: Vec<Change> = target
        .iter()
        .filter(|(_, want)| !compare(want, s).holds() && !follows(s, want, target))
        .map(|(a, want)| Change { address: a.clone(), from: live(s, a), to: want.clone() })
        .collect();
    order(&mut out, |c| (&c.from, &c.to));
    out
}

/// Settings in `start` that a write to the `touched` addresses may change as a side effect. They are checked after the
/// write and restored if they changed.
pub fn collateral<'a>(start: &Snapshot, touched: impl IntoIterator<Item = &'a Address>) -> SettingMap {
    let mut out = SettingMap::new();
    for a in touched {
        let Some(dev) = a.dev() else { continue };
        let families = a.invalidates_of(start.nic(dev));
        if families.is_empty() {
            continue;
        }
        out.extend(live_of_device(start, dev).into_iter().filter(|(b, _)| families.contains(&b.family())));
    }
    out
}
