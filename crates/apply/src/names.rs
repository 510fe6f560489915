//! Finds the devices of a request or journal again under their present names.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, Step};
use ringwise_model::{DevId, Snapshot};

/// Maps old names to new ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceRenames {
    to: BTreeMap<String, String>,
    /// Names of devices that do not exist any more.
    pub gone: Vec<String>,
}

impl DeviceRenames {
    pub(crate) fn new(devices: &[DevId], now: &Snapshot) -> Self {
        let mut out = Self::default();
        for d in devices {
            // If several devices match (bond members may share a MAC and have no bus address), the one that kept its name.
            let same = |n: &&ringwise_model::Nic| d.same_device(&n.dev);
            let kept = now.nic(&d.name).filter(same);
            match kept.or_else(|| now.nics.iter().find(same)) {
                Some(n) => _ = out.to.insert(d.name.clone(), n.dev.name.clone()),
                None => out.gone.push(d.name.clone()),
            }
        }
        out
    }

    pub(crate) fn changed(&self) -> impl Iterator<Item = (&String, &String)> {
        self.to.iter().filter(|(a, b)| a != b)
    }

    fn name(&self, dev: &str) -> Option<&String> {
        self.to.get(dev).filter(|n| *n != dev)
    }

    pub(crate) fn address(&self, a: &Address) -> Address {
        a.dev().and_then(|d| self.name(d)).map_or_else(|| a.clone(), |n| a.renamed(n))
    }

    pub(crate) fn setting(&self, s: &Setting) -> Setting {
        let dev = s.address().and_then(|a| a.dev().map(str::to_string));
        dev.and_then(|d| self.name(&d).cloned()).map_or_else(|| s.clone(), |n| s.renamed(&n))
    }

    pub(crate) fn step(&self, step: &Step) -> Step {
        let mut out = step.clone();
        out.setting = self.setting(&step.setting);
        out.instead = step.instead.iter().map(|s| self.setting(s)).collect();
        out.from = step.from.clone().map(|s| self.setting(&s));
        out
    }
}
