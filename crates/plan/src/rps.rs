//! Receive packet steering: other CPUs help only devices with one receive queue.

use ringwise_knob::{Match, Reason, Setting, rps as knob_rps};
use ringwise_model::{CpuId, CpuSet, Fact, Intent, Smt, Snapshot};

use crate::dev::{Dev, LearnedIndex};
use crate::goal;
use crate::machine::{Class, Machine};
use crate::place::Placement;
use crate::target::{PlanBuilder, StepReason};
use crate::wanted::RequestedSetting;

/// CPUs that help the single queue: those that share the L3 with its interrupt, without the interrupt's own core (rules
/// Q06 Q08); if an L3 has only one core, those of the node, else any near ones.
fn helpers(m: &Machine, at: Option<usize>, place: &Placement, may: &[bool], one_per_core: bool) -> CpuSet {
    let core = at.map(|c| m.core[c]);
    let ring = |f: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..m.cpus.len()).filter(|c| may[*c] && Some(m.core[*c]) != core && f(*c)).collect()
    };
    let l3 = at.map(|c| m.l3[c]);
    let mut found = if l3.is_some() { ring(&|c| Some(m.l3[c]) == l3) } else { Vec::new() };
    if found.is_empty() {
        found = ring(&|c| place.zone.home[c]);
    }
    if found.is_empty() {
        found = ring(&|c| place.zone.class[c] == Class::Near);
    }
    if one_per_core {
        let mut seen = vec![false; m.cores.len()];
        found.retain(|c| !std::mem::replace(&mut seen[m.core[*c]], true));
    }
    m.set(found)
}

#[allow(clippy::too_many_arguments, reason = "inputs from different parts of the planner")]
pub(crate) fn plan(
    s: &Snapshot,
    m: &Machine,
    d: &Dev,
    place: &Placement,
    usable: &[bool],
    intent: &Intent,
    learned: &LearnedIndex,
    out: &mut PlanBuilder,
) {
    let name = d.name();
    let one = d.rx == 1 && place.home_cores > 1 && goal::rps_for_one_queue(d.goal);
    let mask = if one {
        // The kernel silently drops isolated CPUs from the mask, so the plan never requests them.
        let may: Vec<bool> = (0..usable.len()).map(|c| usable[c] && !m.isolated.contains(m.cpus[c])).collect();
        let at = d.cpu.first().copied().flatten();
        helpers(m, at, place, &may, intent.smt == Some(Smt::OnePerCore))
    } else {
        CpuSet::new()
    };
    // A queue that an earlier step creates starts without RPS unless the host has a default mask.
    let born_with = s.host.rps_default_mask.known().is_some_and(|c| !c.is_empty());
    for q in 0..d.rx {
        let dev = name.to_string();
        let live = d.rx_queue(q).map_or(Fact::Absent, |r| {
            r.rps_cpus.as_ref().map(|c: &CpuSet| Setting::RpsCpus { dev: dev.clone(), queue: q, cpus: c.clone() })
        });
        let exists = d.rx_queue(q).is_some();
        if mask.is_empty() && (if exists { live.is_absent() } else { !born_with }) {
            continue;
        }
        let matched = match &live {
            Fact::Known(Setting::RpsCpus { cpus: got, .. }) => knob_rps::compare(&mask, got),
            _ => Match::Gone,
        };
        let setting = Setting::RpsCpus { dev, queue: q, cpus: mask.clone() };
        // Masks of remaining queues survive a channel change (lab: igb, virtio_net, vmxnet3).
        let anew = d.channels.is_some() && !exists;
        out.want(Some(d.nic), learned, RequestedSetting { setting, live, matched, anew, needed: one }, || {
            why(d, place, &mask, d.cpu.first().copied().flatten().map(|c| m.cpus[c]))
        });
    }
}

fn why(d: &Dev, place: &Placement, mask: &CpuSet, cpu: Option<CpuId>) -> StepReason {
    let with = |rule, reason| StepReason { rule, reason };
    if !mask.is_empty() {
        return with("Q04", Reason::OneQueue { cpu, helpers: mask.clone() });
    }
    if !goal::rps_for_one_queue(d.goal) {
        return with("R3.17", Reason::RpsNotForGoal);
    }
    if d.rx == 1 {
        return with("Q07", Reason::NoHelper);
    }
    let cores = place.home_cores;
    with(
        "Q05",
        match d.rx >= cores {
            true => Reason::QueuesCoverCores { queues: d.rx, cores },
            false => Reason::DeviceSpreads { queues: d.rx },
        },
    )
}
