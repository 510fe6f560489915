//! Makes irqbalance skip the interrupts that the plan pins, and reports other competing programs with the
//! consequences.

use std::collections::BTreeSet;

use ringwise_knob::irqbalance::{BannedInterrupts, compare, live_ban, live_restart};
use ringwise_knob::{Address, BanLossCause, Reason, Setting};
use ringwise_model::{CompetingProgram, Fact, Snapshot};

use crate::dev::{Dev, LearnedIndex, named};
use crate::target::{PlanBuilder, StepReason};
use crate::wanted::RequestedSetting;

/// Runs last, for the devices whose interrupts the plan sets.
pub(crate) fn plan(s: &Snapshot, devs: &[Dev], learned: &LearnedIndex, out: &mut PlanBuilder) {
    others(s, devs, out);
    let Fact::Known(b) = &s.host.irqbalance else { return };
    let placed: BTreeSet<String> = out
        .entries
        .iter()
        .filter_map(|(a, ..)| match a {
            Address::IrqCpus { dev, .. } => Some(dev.clone()),
            _ => None,
        })
        .collect();
    for d in devs.iter().filter(|d| placed.contains(d.name())) {
        let dev = d.name().to_string();
        let restart = Setting::IrqbalanceRestart { dev: dev.clone(), left: true };
        let live = live_restart(s, &dev);
        let lasts = live.is_known();
        if lasts {
            let matched = compare(s, &restart, &live);
            let w = RequestedSetting { setting: restart, live, matched, anew: false, needed: false };
            out.want(Some(d.nic), learned, w, || StepReason { rule: "A06", reason: Reason::RestartForgetsBan });
        }
        let ban = Setting::IrqbalanceBan { dev: dev.clone(), left: BannedInterrupts::All };
        let live = live_ban(s, &dev);
        let matched = compare(s, &ban, &live);
        let w = RequestedSetting { setting: ban, live, matched, anew: false, needed: true };
        out.want(Some(d.nic), learned, w, || {
            let forgets =
                (!lasts).then(|| if b.unit.is_known() { BanLossCause::UnitFixed } else { BanLossCause::NotByUnit });
            let reason = Reason::IrqbalanceMoves { interval_s: b.interval_s.known().copied(), forgets };
            StepReason { rule: "A06", reason }
        });
    }
}

/// Reports competing programs that ringwise does not control. Programs that only use an interface are reported at that
/// interface.
fn others(s: &Snapshot, devs: &[Dev], out: &mut PlanBuilder) {
    for r in s.host.rival_details.iter().filter(|r| r.name != "irqbalance" && !r.sets.is_empty()) {
        if concerns(r, devs) {
            out.warnings.push(sentence(r));
        }
    }
}

/// Whether the program may affect one of the devices. False only if it lists plain names, none of which is a device
/// of the plan.
fn concerns(r: &CompetingProgram, devs: &[Dev]) -> bool {
    let names: Vec<&str> = r.devices.iter().filter_map(|d| d.strip_prefix("OriginalName=")).collect();
    let plain = |n: &&str| !n.contains(['*', '?', '[', '!', ' ']);
    names.is_empty() || !names.iter().all(plain) || names.iter().any(|n| named(devs, n).is_some())
}

fn sentence(r: &CompetingProgram) -> String {
    let on = if r.devices.is_empty() { String::new() } else { format!(" on {}", r.devices.join(" ")) };
    let next = match (r.running, r.name.as_str()) {
        (true, "tuned") => "when it starts, when its profile changes or when a device appears",
        (true, _) => "at any time",
        (false, CompetingProgram::UDEV_LINK) => "when the device appears (boot, driver reload, udevadm trigger)",
        (false, _) => "when it runs",
    };
    format!(
        "{} ({}) sets {}{on} {next}, and overwrites this plan; ringwise verify reports that",
        r.name,
        r.shown(),
        r.sets
    )
}
