//! The settings of a plan while it is made, with an index by address.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, Step, alike};

/// A setting that the plan configures; the step is `None` if nothing has to be written.
pub(crate) type PlannedSetting = (Address, Setting, Option<Step>);

/// Entries in the order in which they were planned. Later stages look up an address once for each queue, so searching the
/// list would take quadratic time.
#[derive(Default)]
pub(crate) struct Entries {
    list: Vec<PlannedSetting>,
    /// Index in the list of the first entry at an address.
    places: BTreeMap<Address, usize>,
}

impl Entries {
    pub(crate) fn push(&mut self, entry: PlannedSetting) {
        self.places.entry(entry.0.clone()).or_insert(self.list.len());
        self.list.push(entry);
    }

    pub(crate) fn contains(&self, address: &Address) -> bool {
        self.places.contains_key(address)
    }

    pub(crate) fn get(&self, address: &Address) -> Option<&PlannedSetting> {
        self.places.get(address).and_then(|at| self.list.get(*at))
    }

    pub(crate) fn get_mut(&mut self, address: &Address) -> Option<&mut PlannedSetting> {
        self.places.get(address).and_then(|at| self.list.get_mut(*at))
    }

    /// Entries of the same kind and device from this address on, in the order in which they were planned.
    pub(crate) fn alike(&self, first: &Address) -> Vec<&PlannedSetting> {
        let mut places: Vec<usize> = alike(self.places.range(first..), first).map(|(_, at)| *at).collect();
        places.sort();
        places.into_iter().filter_map(|at| self.list.get(at)).collect()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, PlannedSetting> {
        self.list.iter()
    }

    pub(crate) fn into_list(self) -> Vec<PlannedSetting> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rfs(dev: &str, queue: u32, entries: u32) -> PlannedSetting {
        let setting = Setting::RpsFlowCnt { dev: dev.into(), queue, entries };
        (setting.address().unwrap(), setting, None)
    }

    fn at(dev: &str, queue: u32) -> Address {
        Address::RpsFlowCnt { dev: dev.into(), queue }
    }

    #[test]
    fn an_entry_is_found_by_its_address() {
        let mut e = Entries::default();
        [rfs("eth1", 7, 1), rfs("eth0", 0, 2), rfs("eth1", 2, 3)].into_iter().for_each(|x| e.push(x));
        assert!(e.contains(&at("eth1", 2)) && !e.contains(&at("eth0", 1)));
        assert_eq!(e.get(&at("eth1", 2)), Some(&rfs("eth1", 2, 3)));
        assert_eq!(e.get_mut(&at("eth0", 0)), Some(&mut rfs("eth0", 0, 2)));
        let kept: Vec<PlannedSetting> = e.into_list();
        assert_eq!(kept, [rfs("eth1", 7, 1), rfs("eth0", 0, 2), rfs("eth1", 2, 3)], "as planned");
    }

    #[test]
    fn entries_alike_are_those_of_one_device_and_kind() {
        let mut e = Entries::default();
        let rps = Setting::RpsCpus { dev: "eth1".into(), queue: 9, cpus: Default::default() };
        e.push((rps.address().unwrap(), rps, None));
        let all = [rfs("eth1", 7, 1), rfs("eth10", 0, 2), rfs("eth1", 2, 3), rfs("eth0", 5, 4), rfs("eth1", 0, 5)];
        all.iter().for_each(|x| e.push(x.clone()));
        let found: Vec<&PlannedSetting> = e.alike(&at("eth1", 0));
        assert_eq!(found, [&all[0], &all[2], &all[4]], "in the order in which they were planned");
        assert!(e.alike(&at("eth2", 0)).is_empty());
    }
}
