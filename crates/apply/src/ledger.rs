//! `first-found.json`: the value of each setting before ringwise first changed it in this boot.

use std::path::{Path, PathBuf};

use ringwise_knob::{Address, Family, Setting, SettingMap, compare};
use ringwise_model::{DevId, Host, Snapshot};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::names::DeviceRenames;
use crate::newer::elsewhere;
use crate::state_file::{self, SUMMED};
use crate::store::{Lock, Store};

/// What the user can do if the file is damaged.
const MOVE_AWAY: &str = "the settings as first found since boot are unknown; ringwise rollback ID works without the \
                         file, and if you move it away, the next transaction records the settings that it finds as \
                         first found";

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    format: u32,
    boot_id: Option<String>,
    machine_id: Option<String>,
    /// Settings by device, under the device's name at that time.
    devices: Vec<(DevId, Vec<Setting>)>,
    host: Vec<Setting>,
}

impl Ledger {
    fn path(dir: &Path) -> PathBuf {
        dir.join("first-found.json")
    }

    /// The ledger of this boot; empty if it does not exist or is of another boot or machine.
    pub(crate) fn read(lock: &Lock, host: &Host) -> Result<Self, Error> {
        Self::read_in(&lock.dir, host)
    }

    /// The same without the lock: another ringwise may be replacing the file at this moment.
    pub(crate) fn read_in(dir: &Path, host: &Host) -> Result<Self, Error> {
        let fresh = Self {
            format: SUMMED,
            boot_id: host.boot_id.known().cloned(),
            machine_id: host.machine_id.known().cloned(),
            ..Self::default()
        };
        let found: Option<Self> = state_file::read(&Self::path(dir), MOVE_AWAY)?;
        Ok(found.filter(|l| elsewhere(&l.machine_id, &l.boot_id, host).is_none()).unwrap_or(fresh))
    }

    /// Adds settings that are not in the ledger yet, and writes the file if any were added.
    pub(crate) fn note(mut self, store: &Store, lock: &Lock, now: &Snapshot, start: &SettingMap) -> Result<(), Error> {
        // A ledger that was read from a file of version 0.1 is written in the present format as well.
        self.format = SUMMED;
        let mut added = false;
        for (address, setting) in start {
            let mut noted = setting.clone();
            let list = match address.dev() {
                None => &mut self.host,
                Some(name) => {
                    let Some(nic) = now.nic(name) else { continue };
                    let at = self.devices.iter().position(|(d, _)| d.same_device(&nic.dev)).unwrap_or_else(|| {
                        self.devices.push((nic.dev.clone(), Vec::new()));
                        self.devices.len() - 1
                    });
                    // All settings of a device are recorded under the name that it had first, whatever its present name is.
                    noted = setting.renamed(&self.devices[at].0.name);
                    &mut self.devices[at].1
                }
            };
            // If the ledger has a device's channels, it has all settings of the device: a setting that exists only with other
            // channels did not exist at first.
            let channels = list.iter().find(|s| matches!(s, Setting::Channels { .. }));
            let other = channels.is_some_and(|c| {
                address.dev().is_some_and(|d| !compare(&c.renamed(d), now).holds()) && per_queue(address)
            });
            if other {
                continue;
            }
            // A device that was renamed must not get the same setting twice.
            let here = |s: &Setting| match address.dev() {
                Some(name) => s.renamed(name).address(),
                None => s.address(),
            };
            if !list.iter().any(|s| here(s).as_ref() == Some(address)) {
                list.push(noted);
                added = true;
            }
        }
        if added { store.write_json(&Self::path(&lock.dir), &self) } else { Ok(()) }
    }

    /// All settings under the present device names, and the devices that are gone.
    pub(crate) fn settings(&self, now: &Snapshot) -> (SettingMap, Vec<String>) {
        let ids: Vec<DevId> = self.devices.iter().map(|(d, _)| d.clone()).collect();
        let names = DeviceRenames::new(&ids, now);
        let mut map = SettingMap::new();
        for s in self.host.iter().chain(self.devices.iter().flat_map(|(_, l)| l)) {
            let s = names.setting(s);
            if let Some(a) = s.address() {
                map.insert(a, s);
            }
        }
        (map, names.gone)
    }
}

fn per_queue(address: &Address) -> bool {
    match address {
        Address::QueueCoalesce { .. } | Address::Napi { .. } | Address::NapiThread { .. } => true,
        _ => matches!(address.family(), Family::Irq | Family::Xps | Family::Rps | Family::Rfs | Family::Rivals),
    }
}
