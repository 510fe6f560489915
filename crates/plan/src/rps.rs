//! Receive packet steering: other CPUs help only devices with one receive queue.

use ringwise_knob::{Match, Reason, Setting, path, rps as knob_rps};
use ringwise_model::{CpuId, CpuSet, Fact, Goal, Intent, Knob, Nic, Smt, Snapshot, Topology};

use crate::dev::{Dev, LearnedIndex};
use crate::goal;
use crate::machine::{Class, Machine, Zone};
use crate::permitted::isolation_is_known;
use crate::place::Placement;
use crate::target::{PlanBuilder, StepReason};
use crate::unhashed;
use crate::wanted::RequestedSetting;

/// CPUs that help the single queue: those that share the L3 with its interrupt, without the interrupt's own core (rules
/// Q06 Q08); if an L3 has only one core, those of the node, else any near ones.
fn helpers(m: &Machine, at: Option<usize>, zone: &Zone, may: &[bool], one_per_core: bool) -> CpuSet {
    let core = at.map(|c| m.core[c]);
    let ring = |f: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..m.cpus.len()).filter(|c| may[*c] && Some(m.core[*c]) != core && f(*c)).collect()
    };
    let l3 = at.map(|c| m.l3[c]);
    let mut found = if l3.is_some() { ring(&|c| Some(m.l3[c]) == l3) } else { Vec::new() };
    if found.is_empty() {
        found = ring(&|c| zone.home[c]);
    }
    if found.is_empty() {
        found = ring(&|c| zone.class[c] == Class::Near);
    }
    if one_per_core {
        let mut seen = vec![false; m.cores.len()];
        found.retain(|c| !std::mem::replace(&mut seen[m.core[*c]], true));
    }
    m.set(found)
}

/// The kernel silently drops isolated CPUs from the mask, so the plan never requests them.
fn allowed(m: &Machine, usable: impl Fn(usize) -> bool) -> Vec<bool> {
    (0..m.cpus.len()).map(|c| usable(c) && !m.isolated.contains(m.cpus[c])).collect()
}

/// The CPUs that may help the only receive queue of this interface while `cpu` serves its interrupt, for the service that changes masks
/// because of the load. `None`: the interface has several queues, or the goal, a group of queues or the configuration decides its
/// mask, or which CPUs are isolated is unknown.
pub fn rps_helpers(topology: &Topology, nic: &Nic, intent: &Intent, cpu: CpuId) -> Option<CpuSet> {
    let goal = intent.goal_of(nic.name());
    let own = |dev: &Option<String>| dev.as_ref().is_none_or(|d| d == nic.name());
    let configured = intent.wishes.iter().any(|w| own(&w.dev) && matches!(w.knob, Knob::RpsCpus { .. }));
    let by_layout = goal == Goal::Mixed || intent.pair_as_article || intent.groups.iter().any(|g| g.dev == nic.name());
    let one = nic.rx_queues.len() == 1 && goal::rps_for_one_queue(goal);
    if !one || configured || by_layout || !isolation_is_known(topology) {
        return None;
    }
    let intent = goal::resolve(&Intent { goal, ..intent.clone() });
    let m = Machine::new(topology);
    let usable = goal::usable(topology, &intent).cpus;
    let zone = m.zone(&m.near(nic), goal::near_is_wide(goal));
    let may = allowed(&m, |c| usable.contains(m.cpus[c]));
    Some(helpers(&m, Some(m.at(cpu)?), &zone, &may, intent.smt == Some(Smt::OnePerCore)))
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
        let may = allowed(m, |c| usable[c]);
        let at = d.cpu.first().copied().flatten();
        helpers(m, at, &place.zone, &may, intent.smt == Some(Smt::OnePerCore))
    } else {
        CpuSet::new()
    };
    // A queue that an earlier step creates starts without RPS unless the host has a default mask.
    let born_with = s.host.rps_default_mask.known().is_some_and(|c| !c.is_empty());
    // Without RPS, all packets of such an interface stay on the CPU of one queue.
    let may_need_it = d.rx > 1 && goal::rps_for_one_queue(d.goal);
    let kinds = if may_need_it { unhashed::kinds_over(s, d.nic) } else { Vec::new() };
    let (mut left, mut first) = (CpuSet::new(), None);
    for q in 0..d.rx {
        let dev = name.to_string();
        let live = d.rx_queue(q).map_or(Fact::Absent, |r| {
            r.rps_cpus.as_ref().map(|c: &CpuSet| Setting::RpsCpus { dev: dev.clone(), queue: q, cpus: c.clone() })
        });
        let exists = d.rx_queue(q).is_some();
        if mask.is_empty() && (if exists { live.is_absent() } else { !born_with }) {
            continue;
        }
        if !kinds.is_empty() && !exists {
            continue;
        }
        // The mask is not part of the plan: whoever set it decides about it.
        if let Fact::Known(now @ Setting::RpsCpus { cpus, .. }) = &live
            && !kinds.is_empty()
            && !cpus.is_empty()
            && now.address().is_some_and(|a| out.is_open(&a))
        {
            left = left.union(cpus);
            first = first.or(Some(q));
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
    let Some(queue) = first else { return };
    // Why the masks stay, and how to remove them.
    let text = format!(
        "RPS stays on, although the interface has several queues: packets of {} interfaces may arrive on it, and most \
         NICs do not spread them (ringwise help pppoe). If it carries no such traffic, remove the mask of each queue:",
        kinds.join(", ")
    );
    out.advice.with_example(name, text, format!("echo 0 > {}", path::of_rx(name, queue, "rps_cpus")));
    let kept_free = left.intersection(&m.kept_free);
    if !kept_free.is_empty() {
        out.warnings.about(
            name,
            format!("RPS passes packets to CPUs {kept_free}, which are kept free of queues; other CPUs: --set {name}.rps_cpus=LIST"),
        );
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

#[cfg(test)]
mod tests {
    use ringwise_model::Wish;
    use ringwise_testkit::sim::build;

    use super::*;

    fn of(s: &Snapshot, intent: &Intent, cpu: u32) -> Option<String> {
        rps_helpers(&s.topology, s.nic("eth0").unwrap(), intent, CpuId(cpu)).map(|c| c.to_string())
    }

    /// The mask of the plan for the same interface.
    fn planned(s: &Snapshot, intent: &Intent) -> CpuSet {
        let plan = crate::plan(s, intent, &[]).unwrap();
        let mask = |s: &ringwise_knob::Step| match &s.setting {
            Setting::RpsCpus { cpus, .. } => Some(cpus.clone()),
            _ => None,
        };
        plan.steps.iter().find_map(mask).unwrap()
    }

    #[test]
    fn the_service_uses_the_cpus_of_the_plan() {
        let s = build::host(8, 1).igb("eth0", 0, 1).isolated("7").done();
        for goal in [Goal::Balanced, Goal::Forward, Goal::Stream] {
            let intent = Intent { goal, reserve: CpuSet::one(CpuId(6)), ..Intent::default() };
            let plan = crate::plan(&s, &intent, &[]).unwrap();
            let at = plan.steps.iter().find_map(|x| match &x.setting {
                Setting::IrqCpus { cpus, .. } => cpus.first(),
                _ => None,
            });
            let at = at.or_else(|| s.nics[0].queue_vectors().next()?.taken_by()?.first()).unwrap();
            assert_eq!(of(&s, &intent, at.0), Some(planned(&s, &intent).to_string()), "{goal:?}");
        }
    }

    #[test]
    fn no_cpus_if_something_else_decides_the_mask() {
        let s = build::host(8, 1).igb("eth0", 0, 1).done();
        let intent = |goal| Intent { goal, ..Intent::default() };
        assert!(of(&s, &intent(Goal::Forward), 0).is_some_and(|c| !c.is_empty()));
        assert_eq!((of(&s, &intent(Goal::Latency), 0), of(&s, &intent(Goal::Mixed), 0)), (None, None));
        let wish = |dev: &str| Wish {
            dev: Some(dev.into()),
            knob: Knob::RpsCpus { queues: None, cpus: CpuSet::new() },
            by: Default::default(),
            params_by: Default::default(),
        };
        let with = |dev| Intent { wishes: vec![wish(dev)], ..intent(Goal::Forward) };
        assert_eq!((of(&s, &with("eth0"), 0), of(&s, &with("eth1"), 0).is_some()), (None, true));
        let many = build::host(8, 1).igb("eth0", 0, 4).done();
        assert_eq!(of(&many, &intent(Goal::Forward), 0), None);
        let mut unknown = s.clone();
        unknown.topology.isolated = Fact::unknown("isolated CPUs", "not read");
        assert_eq!(of(&unknown, &intent(Goal::Forward), 0), None);
    }

    /// Many queues with RPS on a host with such an interface.
    fn with_masks(kind: &str) -> Snapshot {
        let mut s = build::host(8, 1).igb("eth0", 0, 4).done();
        s.nics[0].rx_queues.iter_mut().for_each(|q| q.rps_cpus = Fact::Known("1-3".parse().unwrap()));
        s.bystanders.count.insert(kind.into(), 1);
        s
    }

    fn rps_steps(s: &Snapshot, goal: Goal) -> (usize, Vec<String>) {
        let plan = crate::plan(s, &Intent { goal, ..Intent::default() }, &[]).unwrap();
        let rps = |x: &&ringwise_knob::Step| matches!(x.setting, Setting::RpsCpus { .. });
        let about = |a: &&String| a.starts_with("eth0: RPS stays on");
        (plan.steps.iter().filter(rps).count(), plan.advice.iter().filter(about).cloned().collect())
    }

    #[test]
    fn masks_stay_where_packets_may_arrive_that_the_device_does_not_hash() {
        let (steps, advice) = rps_steps(&with_masks("ppp"), Goal::Forward);
        assert_eq!(
            (steps, advice.as_slice()),
            (
                0,
                ["eth0: RPS stays on, although the interface has several queues: packets of ppp interfaces may arrive on it, \
                 and most NICs do not spread them (ringwise help pppoe). If it carries no such traffic, remove the mask of \
                 each queue: echo 0 > /sys/class/net/eth0/queues/rx-0/rps_cpus"
                    .to_string()]
                .as_slice()
            )
        );
        for (kind, goal) in [("vxlan", Goal::Forward), ("ppp", Goal::Latency)] {
            assert_eq!(rps_steps(&with_masks(kind), goal), (4, vec![]), "{kind} {goal:?}");
        }
        // The plan does not contain the mask, so a later manual change of it concerns no setting of ringwise.
        let s = with_masks("ppp");
        let plan = crate::plan(&s, &Intent { goal: Goal::Forward, ..Intent::default() }, &[]).unwrap();
        assert!(plan.target.iter().all(|t| !matches!(t, Setting::RpsCpus { .. })));
        let reserved = Intent { goal: Goal::Forward, reserve: "2-3".parse().unwrap(), ..Intent::default() };
        let warnings = crate::plan(&s, &reserved, &[]).unwrap().warnings;
        let text =
            "eth0: RPS passes packets to CPUs 2-3, which are kept free of queues; other CPUs: --set eth0.rps_cpus=LIST";
        assert!(warnings.iter().any(|w| w == text), "{warnings:?}");
        // Without a mask nothing is kept, and there is nothing to report.
        let mut s = with_masks("ppp");
        s.nics[0].rx_queues.iter_mut().for_each(|q| q.rps_cpus = Fact::Known(CpuSet::new()));
        assert_eq!(rps_steps(&s, Goal::Forward), (0, vec![]));
    }

    /// Masks that replaced those of ringwise: the plan asks about them, keeps them or undoes them, as elsewhere.
    #[test]
    fn a_manually_changed_mask_is_not_skipped() {
        let s = with_masks("ppp");
        let mask = |q, cpus: &str| Setting::RpsCpus { dev: "eth0".into(), queue: q, cpus: cpus.parse().unwrap() };
        let hand = |q| ringwise_knob::ManualChange {
            origin: ringwise_knob::Origin::ByHand,
            setting: mask(q, "1-3"),
            applied: mask(q, ""),
            transaction: 1,
            changed: None,
        };
        let intent = Intent { goal: Goal::Forward, ..Intent::default() };
        let steps = |hands: &crate::ManualChanges| {
            let plan = crate::plan_around(&s, &intent, &[], hands).unwrap();
            let rps = plan.steps.iter().filter(|x| matches!(x.setting, Setting::RpsCpus { .. })).count();
            (rps, plan.kept.len(), plan.by_hand.len())
        };
        let keep = crate::ManualChanges { keep: vec![hand(0)], ..Default::default() };
        assert_eq!(steps(&keep), (0, 1, 0));
        let mark = crate::ManualChanges { mark: vec![hand(0)], ..Default::default() };
        assert_eq!(steps(&mark), (1, 0, 1));
    }

    #[test]
    fn a_configured_mask_takes_precedence_over_the_present_one() {
        let s = with_masks("ppp");
        let wish = Wish {
            dev: Some("eth0".into()),
            knob: Knob::RpsCpus { queues: None, cpus: "4-5".parse().unwrap() },
            by: Default::default(),
            params_by: Default::default(),
        };
        let intent = Intent { goal: Goal::Forward, wishes: vec![wish], ..Intent::default() };
        assert_eq!(planned(&s, &intent).to_string(), "4-5");
        assert!(crate::plan(&s, &intent, &[]).unwrap().advice.iter().all(|a| !a.contains("RPS stays on")));
    }
}
