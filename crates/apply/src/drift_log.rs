//! `seen.json`: when the settings in effect were last seen as applied, and when they were first seen changed. It narrows down
//! when a manual change happened, and nothing else depends on it. It is written without a lock if possible, and a file that is
//! missing, torn or of another boot only makes the window larger.

use std::io::Write;
use std::path::{Path, PathBuf};

use ringwise_knob::{Address, ChangeWindow, Match, Setting, live};
use ringwise_model::{DevId, Fact, Snapshot};
use ringwise_sys::trust::ReplacementFile;
use serde::{Deserialize, Serialize};

use crate::names::DeviceRenames;
use crate::state_file::{self, SUMMED};
use crate::store::Store;
use crate::{SettingInEffect, Verify};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DriftLog {
    format: u32,
    boot_id: Option<String>,
    machine_id: Option<String>,
    /// Time of the last look. Settings that are not in `apart` were as applied then.
    at: u64,
    apart: Vec<DriftedSetting>,
    /// Devices as they were when all of their settings were last as applied.
    devices: Vec<Device>,
}

/// A setting that was not seen as applied in the last look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DriftedSetting {
    transaction: u64,
    want: Setting,
    right: u64,
    /// `None`: it could not be read then.
    wrong: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Device {
    id: DevId,
    channels: Option<Setting>,
}

fn path(dir: &Path) -> PathBuf {
    dir.join("seen.json")
}

/// The file of this boot; any other file is ignored.
pub(crate) fn read(store: &Store, now: &Snapshot) -> Option<DriftLog> {
    let read = |dir: &PathBuf| state_file::read_whole::<DriftLog>(&path(dir));
    let seen = store.dirs().iter().find_map(read)?;
    let same = |a: &Option<String>, b: &Fact<String>| a.as_ref() == b.known();
    let ours = seen.format == SUMMED && same(&seen.boot_id, &now.host.boot_id);
    (ours && same(&seen.machine_id, &now.host.machine_id)).then_some(seen)
}

impl DriftLog {
    fn names(&self, now: &Snapshot) -> DeviceRenames {
        let ids: Vec<DevId> = self.devices.iter().map(|d| d.id.clone()).collect();
        DeviceRenames::new(&ids, now)
    }

    fn of(&self, names: &DeviceRenames, s: &SettingInEffect) -> Option<&DriftedSetting> {
        self.apart.iter().find(|a| a.transaction == s.transaction && names.setting(&a.want) == s.want)
    }

    /// What else happened to the device meanwhile, as an explanation. `None`: not known.
    fn drift_cause(&self, now: &Snapshot, dev: &str) -> Option<DriftCause> {
        let nic = now.nic(dev)?;
        let was = self.devices.iter().find(|d| d.id.same_device(&nic.dev))?;
        if was.id.ifindex != nic.dev.ifindex {
            return Some(DriftCause::SetUpAnew);
        }
        let address = Address::Channels { dev: dev.to_string() };
        match (was.channels.as_ref().map(|c| c.renamed(dev)), live(now, &address)) {
            (Some(a), Fact::Known(b)) if a != b => Some(DriftCause::Channels { from: Box::new(a), to: Box::new(b) }),
            (Some(_), Fact::Known(_)) => Some(DriftCause::Nothing),
            _ => None,
        }
    }
}

/// What was seen to have happened to a device since its settings were as applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftCause {
    /// Nothing that would explain a change.
    Nothing,
    /// It has another interface index: it was unbound or unplugged, or the driver was reloaded.
    SetUpAnew,
    /// Its number of queues was changed.
    Channels {
        /// The channels as applied.
        from: Box<Setting>,
        /// The present channels.
        to: Box<Setting>,
    },
}

/// What else happened to this device since its settings were last seen as applied. `None`: not known.
pub fn drift_cause(store: &Store, now: &Snapshot, dev: &str) -> Option<DriftCause> {
    read(store, now)?.drift_cause(now, dev)
}

/// When it was last known to be as applied, and when it was first seen changed.
fn known(seen: Option<&DriftLog>, names: &DeviceRenames, s: &SettingInEffect) -> (u64, Option<u64>) {
    let Some(seen) = seen else { return (s.unix_time, None) };
    match seen.of(names, s) {
        Some(a) => (a.right.max(s.unix_time), a.wrong),
        None => (seen.at.max(s.unix_time), None),
    }
}

fn differs(s: &SettingInEffect) -> bool {
    matches!(s.how, Match::Differs | Match::Gone)
}

/// Fills in the windows as far as they are known.
pub(crate) fn windows(seen: Option<&DriftLog>, now: &Snapshot, v: &mut Verify) {
    let names = seen.map(|s| s.names(now)).unwrap_or_default();
    for s in v.settings.iter_mut() {
        let (after, by) = known(seen, &names, s);
        s.changed = differs(s).then_some(ChangeWindow { after, by });
    }
}

/// Records this look, and ends the windows of settings that are seen changed for the first time. `v` must be made from `now`.
pub fn note_seen(store: &Store, now: &Snapshot, v: &mut Verify, unix_time: u64) {
    let seen = read(store, now);
    let names = seen.as_ref().map(|s| s.names(now)).unwrap_or_default();
    let mut apart = Vec::new();
    for s in &mut v.settings {
        let (right, wrong) = known(seen.as_ref(), &names, s);
        // After a clock was set back, a window must not end before it begins.
        let right = right.min(unix_time);
        let unknown = matches!(s.how, Match::Unknown(_));
        let wrong = differs(s).then(|| wrong.unwrap_or(unix_time).max(right));
        if unknown || wrong.is_some() {
            apart.push(DriftedSetting { transaction: s.transaction, want: s.want.clone(), right, wrong });
        }
        s.changed = wrong.map(|by| ChangeWindow { after: right, by: Some(by) });
    }
    // While a run is active, a changed setting is not a manual change.
    if v.settings.is_empty() || v.running.is_some() || v.unfinished.is_some() {
        return;
    }
    let old = seen.iter().flat_map(|s| &s.devices);
    let devices = now.nics.iter().filter_map(|n| {
        let mut of_dev = v.settings.iter().filter(|s| s.want.address().is_some_and(|a| a.dev() == Some(n.name())));
        let first = of_dev.next()?;
        if first.how.holds() && of_dev.all(|s| s.how.holds()) {
            let channels = live(now, &Address::Channels { dev: n.dev.name.clone() }).known().cloned();
            return Some(Device { id: n.dev.clone(), channels });
        }
        let was = old.clone().find(|d| d.id.same_device(&n.dev));
        // The device is seen for the first time: its earlier state is unknown, but its name must be followed.
        Some(was.cloned().unwrap_or_else(|| Device { id: n.dev.clone(), channels: None }))
    });
    let new = DriftLog {
        format: SUMMED,
        boot_id: now.host.boot_id.known().cloned(),
        machine_id: now.host.machine_id.known().cloned(),
        at: unix_time,
        apart,
        devices: devices.collect(),
    };
    if seen.as_ref() != Some(&new) {
        // Written only into the directory of the journals. A user who cannot write there changes nothing.
        let place = store.journals().ok().and_then(|j| j.last().and_then(|(_, p)| p.parent().map(Path::to_path_buf)));
        if let Some(dir) = place {
            let _ = write(store, &dir, &new);
        }
    }
}

/// Renamed into place but not synced: after a power failure the file is of another boot anyway.
fn write(store: &Store, dir: &Path, seen: &DriftLog) -> std::io::Result<()> {
    let to = path(dir);
    store.before_write(&to)?;
    let text = state_file::text(seen)?;
    let mut new = ReplacementFile::create(&to, 0o600)?;
    new.file.write_all(&text)?;
    new.place()
}
