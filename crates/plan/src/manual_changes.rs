//! Manual changes: kept as they are, or marked if a step would undo them.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, CreatedObject, ManualChange, Setting, Step, VectorName, irq};
use ringwise_model::{Fact, Snapshot};

use crate::KeptChange;
use crate::dev::Dev;
use crate::machine::Machine;
use crate::wanted::RequestedSetting;

/// Manual changes by how the plan treats them.
#[derive(Debug, Clone, Default)]
pub struct ManualChanges {
    /// These settings stay; the value that the plan proposes instead is in [`crate::Plan::kept`].
    pub keep: Vec<ManualChange>,
    /// A step that changes one of these is also in [`crate::Plan::by_hand`].
    pub mark: Vec<ManualChange>,
    /// Objects that active transactions created for groups; they are no manual changes. Those that no group needs are
    /// removed.
    pub made: Vec<CreatedObject>,
    /// Interfaces whose present layout is the driver's, because they appeared or were set up again. Ports that share one
    /// layout take it from the other ports, if there are any.
    pub late: BTreeSet<String>,
}

impl ManualChanges {
    pub(crate) fn addresses(&self, s: &Snapshot) -> BTreeSet<Address> {
        self.keep.iter().chain(&self.mark).flat_map(|h| names(s, &h.setting)).collect()
    }

    pub(crate) fn marked(&self, s: &Snapshot, steps: &[Step]) -> Vec<ManualChange> {
        if self.mark.is_empty() {
            return Vec::new();
        }
        let steps: BTreeSet<Address> = steps.iter().filter_map(|st| st.setting.address()).collect();
        let hit = |h: &&ManualChange| names(s, &h.setting).iter().any(|a| steps.contains(a));
        self.mark.iter().filter(hit).cloned().collect()
    }
}

/// The address of the setting; for an interrupt, the addresses of all queues that its vector serves now.
pub(crate) fn names(s: &Snapshot, setting: &Setting) -> Vec<Address> {
    let Some(address) = setting.address() else { return Vec::new() };
    let vector = match &address {
        Address::IrqCpus { dev, of } => s.nic(dev).and_then(|n| irq::vector(n, *of)).map(|v| (dev, v)),
        _ => None,
    };
    let Some((dev, v)) = vector else { return vec![address] };
    let queues = v.rx().iter().map(|q| VectorName::Rx(*q)).chain(v.tx().iter().map(|q| VectorName::Tx(*q)));
    let mut out: Vec<Address> = queues.map(|of| Address::IrqCpus { dev: dev.clone(), of }).collect();
    if !out.contains(&address) {
        out.push(address);
    }
    out
}

/// Objects that earlier plans created for groups, by device.
#[derive(Debug, Default)]
pub(crate) struct MadeByDevice(BTreeMap<String, Vec<CreatedObject>>);

impl MadeByDevice {
    pub(crate) fn new(made: &[CreatedObject]) -> Self {
        let mut by: BTreeMap<String, Vec<CreatedObject>> = BTreeMap::new();
        for m in made {
            if let Some(dev) = m.address().as_ref().and_then(Address::dev) {
                by.entry(dev.to_string()).or_default().push(m.clone());
            }
        }
        Self(by)
    }

    pub(crate) fn of(&self, dev: &str) -> &[CreatedObject] {
        self.0.get(dev).map_or(&[], Vec::as_slice)
    }
}

/// Settings that stay, by all of their addresses.
#[derive(Debug, Default)]
pub(crate) struct KeptSettings {
    by: BTreeMap<Address, ManualChange>,
    /// Settings for which the plan proposed another value.
    pub done: Vec<KeptChange>,
    /// Addresses of the manual changes in `done`.
    noted: BTreeSet<Address>,
    /// Interrupts among `done`, by device: their indices in the list.
    interrupts: BTreeMap<String, Vec<usize>>,
}

impl KeptSettings {
    pub(crate) fn new(s: &Snapshot, keep: &[ManualChange]) -> Self {
        let by = keep.iter().flat_map(|h| names(s, &h.setting).into_iter().map(|a| (a, h.clone())));
        Self { by: by.collect::<BTreeMap<_, _>>(), ..Self::default() }
    }

    fn note(&mut self, hand: ManualChange, wanted: Setting) {
        // Each address has at most one manual change.
        if !hand.address().is_some_and(|a| self.noted.insert(a)) {
            return;
        }
        if let Setting::IrqCpus { dev, .. } = &hand.setting {
            self.interrupts.entry(dev.clone()).or_default().push(self.done.len());
        }
        self.done.push(KeptChange { hand, wanted });
    }

    /// The value that stays instead of the proposed one. `None`: the plan continues with the proposed one.
    pub(crate) fn instead_of(&mut self, address: &Address, w: &RequestedSetting) -> Option<Setting> {
        let hand = self.by.get(address)?.clone();
        if !matches!(w.live, Fact::Known(_)) {
            return None;
        }
        let now = hand.setting.clone();
        if !w.matched.holds() {
            self.note(hand, w.setting.clone());
        }
        Some(now)
    }

    /// Whether a manual change of the channel count stays.
    pub(crate) fn channels(&mut self, dev: &str, wanted: &Setting) -> bool {
        let Some(hand) = self.by.get(&Address::Channels { dev: dev.to_string() }).cloned() else { return false };
        self.note(hand, wanted.clone());
        true
    }

    /// Whether an interrupt of this device stays on another CPU than the plan proposes.
    pub(crate) fn moves(&self, dev: &str) -> bool {
        self.interrupts.contains_key(dev)
    }

    /// Updates the layout with the interrupts that stay, for the reports about it.
    pub(crate) fn lay_out(&self, m: &Machine, d: &mut Dev) {
        for k in self.interrupts.get(d.name()).into_iter().flatten().filter_map(|at| self.done.get(*at)) {
            let Setting::IrqCpus { of, cpus, .. } = &k.hand.setting else { continue };
            let Some(v) = irq::vector(d.nic, *of) else { continue };
            let only = if cpus.len() == 1 { cpus.first() } else { None };
            let at = only.map_or_else(|| Dev::now(m, v), |c| m.at(c));
            for q in v.rx().iter().chain(v.tx()) {
                if let Some(cpu) = d.cpu.get_mut(*q as usize) {
                    *cpu = at;
                }
            }
        }
    }
}
