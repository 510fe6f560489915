//! Accelerated RFS: the device steers each flow to the queue whose interrupt is handled where its program runs. It needs
//! the tables of RFS, the feature `ntuple`, and a driver that supports it.
//!
//! User space cannot read whether a driver supports it, nor the map from CPUs to queues that the driver computes from the
//! interrupts' affinity. ringwise decides by the name of the driver. For other drivers the feature may do harm (ixgbe
//! stops its own sampling of flows), so it stays unchanged.

use ringwise_knob::{Address, IfRefused, Match, Reason, Setting, features, rules};
use ringwise_model::{Fact, Goal, Intent, Knob};

use crate::dev::{Dev, LearnedIndex};
use crate::goal_knobs::{configured, fits};
use crate::target::{PlanBuilder, StepReason};
use crate::wanted::RequestedSetting;

/// Drivers with `ndo_rx_flow_steer` in the source of Linux 6.12, and the lab's test NIC.
const DRIVERS: &[&str] = &[
    "bnxt_en",
    "enic",
    "hns3",
    "ice",
    "mlx4_en",
    "mlx4_core",
    "mlx5_core",
    "qede",
    "sfc",
    "sfc-falcon",
    "sfc-siena",
    "mqnic",
];

/// Drivers of hardware that are known to support it.
pub fn arfs_drivers() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().copied().filter(|d| *d != "mqnic")
}

/// Whether the driver is known to support it.
pub(crate) fn has(driver: Option<&str>) -> bool {
    driver.is_some_and(|d| DRIVERS.contains(&d))
}

pub(crate) fn plan(devs: &[Dev], intent: &Intent, learned: &LearnedIndex, out: &mut PlanBuilder) {
    for d in devs.iter().filter(|d| d.goal == Goal::Rpc && d.rx > 1) {
        let Some(driver) = d.nic.driver.known().filter(|n| has(Some(n))) else { continue };
        let feature =
            d.nic.features.as_ref().and_then(|f| f.get(features::NTUPLE).copied().map_or(Fact::Absent, Fact::Known));
        let dev = d.name().to_string();
        let address = Address::Ntuple { dev: dev.clone() };
        // Flow rules may need the feature, or the user has configured it.
        let names = |k: &Knob| matches!(k, Knob::Feature { name, .. } if fits(name, features::NTUPLE));
        if out.entries.contains(&address) || configured(intent, &dev, names) {
            continue;
        }
        let live = rules::live_ntuple(d.nic);
        let matched = match &feature {
            Fact::Known(f) if f.fixed => continue,
            Fact::Known(f) if f.on => Match::Same,
            Fact::Known(_) => Match::Differs,
            Fact::Unknown(u) => Match::Unknown(u.clone()),
            Fact::Absent => continue,
        };
        let setting = Setting::Ntuple { dev, on: true };
        let w = RequestedSetting { setting, live, matched, anew: d.channels.is_some(), needed: false };
        let why = Reason::AcceleratedRfs { driver: driver.clone() };
        out.want(Some(d.nic), learned, w, || StepReason { rule: "R2.04", reason: why });
        // No other step depends on this one.
        if let Some((_, _, Some(step))) = out.entries.get_mut(&address) {
            step.if_refused = IfRefused::Skip;
        }
    }
}
