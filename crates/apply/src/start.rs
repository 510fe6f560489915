//! The settings of the host before the steps.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, SettingMap, Step, collateral, irq, live};
use ringwise_model::Snapshot;

use crate::fallback;

/// Values before the steps: of the settings that they name, and of those that they may disturb.
pub(crate) fn start_of(now: &Snapshot, steps: &[Step]) -> SettingMap {
    let touched: Vec<Address> = fallback::settings(steps).filter_map(Setting::address).collect();
    let mut start = collateral(now, &touched);
    let canonical = touched.iter().map(|a| canonical(now, a));
    start.extend(canonical.filter_map(|a| live(now, &a).known().cloned().map(|s| (a, s))));
    start.into_iter().map(|(a, s)| (a, crate::irq::with_place(now, s))).collect::<BTreeMap<_, _>>()
}

/// An interrupt vector that serves both a receive and a transmit queue has one affinity, so it gets one address.
pub(crate) fn canonical(now: &Snapshot, address: &Address) -> Address {
    let Address::IrqCpus { dev, of } = address else { return address.clone() };
    let found = now.nic(dev).and_then(|n| irq::vector(n, *of)).and_then(irq::canonical);
    found.map_or_else(|| address.clone(), |of| Address::IrqCpus { dev: dev.clone(), of })
}
