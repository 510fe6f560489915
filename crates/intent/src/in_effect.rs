//! The settings in effect as a configuration: `persist` writes it when no flag requests anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use ringwise_apply::{HistoryEntry, SettingInEffect, Verify};
use ringwise_config::Config;
use ringwise_knob::{Setting, VectorName};
use ringwise_model::{ConfiguredBy, CpuId, CpuSet, Goal, Intent, Knob, Wish};

/// The configuration from the journals of this boot, oldest first. `None`: nothing is in effect; an empty file would
/// request the default goal.
pub fn in_effect(v: &Verify, history: &[HistoryEntry]) -> Option<Config> {
    if v.settings.is_empty() {
        return None;
    }
    let in_effect: Vec<&HistoryEntry> = history.iter().rev().filter(|e| e.is_in_effect()).collect();
    let by_people = in_effect.iter().filter(|e| !e.is_of_service());
    let requests: Vec<&Intent> = by_people.filter_map(|e| Some(&e.requested.as_ref()?.intent)).collect();
    // What the goal decided is planned again at each boot, for the CPUs and queues that it finds. Values of other settings stay.
    let replaces = |s: &SettingInEffect| {
        let by = in_effect.iter().find(|e| e.id == s.transaction);
        let by_service = by.is_some_and(|e| e.is_of_service());
        let planned = by.is_some_and(|e| e.requested.is_some()) || by_service && !requests.is_empty();
        planned && !s.adopted && !is_configured(&s.want, &requests)
    };
    let wishes = wishes(v.settings.iter().filter(|s| !replaces(s)).map(|s| &s.want));
    // Options such as `reserve` are those of the newest request for all interfaces, if there is one.
    let options = of_all(&requests).map_or_else(Intent::default, Clone::clone);
    let goals = goals(&requests, &v.settings);
    let mut c = Config::of_intent(&Intent {
        wishes,
        dev_goals: goals.of_devs,
        devs: goals.devs,
        goal: goals.of_host.unwrap_or_default(),
        // The number is among the values, by interface.
        queues: None,
        // Without it, the next boot would skip settings that were applied with it.
        allow_disruption: requests.iter().any(|i| i.allow_disruption),
        ..options
    });
    c.host.goal = goals.of_host;
    Some(c)
}

struct Goals {
    of_host: Option<Goal>,
    /// Where they differ from that of the host.
    of_devs: BTreeMap<String, Goal>,
    /// Empty: all interfaces.
    devs: Vec<String>,
}

/// The goals of several requests, newest first. Each interface has that of the newest one that covers it.
fn goals(requests: &[&Intent], settings: &[SettingInEffect]) -> Goals {
    let of_host = of_all(requests).map(|i| i.goal);
    let present: BTreeSet<&str> = settings.iter().filter_map(|s| s.want.dev()).collect();
    let of = |dev: &str| {
        requests.iter().find(|i| i.devs.is_empty() || i.devs.iter().any(|d| d == dev)).map(|i| i.goal_of(dev))
    };
    let of_devs =
        present.iter().filter_map(|d| Some((d.to_string(), of(d)?))).filter(|(_, g)| Some(*g) != of_host).collect();
    let devs = match requests.iter().any(|i| i.devs.is_empty()) {
        true => Vec::new(),
        false => present.iter().filter(|d| of(d).is_some()).map(|d| d.to_string()).collect(),
    };
    Goals { of_host, of_devs, devs }
}

/// The newest request for all interfaces, or else the newest one.
fn of_all<'a>(requests: &[&'a Intent]) -> Option<&'a Intent> {
    requests.iter().find(|i| i.devs.is_empty()).or(requests.first()).copied()
}

/// Whether a user configured this setting, by itself or by the number of queues.
fn is_configured(s: &Setting, requests: &[&Intent]) -> bool {
    if matches!(s, Setting::Channels { .. }) && requests.iter().any(|i| i.queues.is_some()) {
        return true;
    }
    let Some((dev, knob)) = knob(s) else { return false };
    let same = |w: &Wish| (w.dev.is_none() || w.dev == dev) && discriminant(&w.knob) == discriminant(&knob);
    requests.iter().flat_map(|i| &i.wishes).any(same)
}

/// Settings as a user would configure them. Queues with the same value are grouped.
fn wishes<'a>(settings: impl Iterator<Item = &'a Setting>) -> Vec<Wish> {
    let mut out: Vec<Wish> = Vec::new();
    for s in settings {
        let Some((dev, knob)) = knob(s) else { continue };
        let same = out.iter_mut().filter(|w| w.dev == dev).find_map(|w| join(&w.knob, &knob).map(|k| (w, k)));
        match same {
            Some((w, k)) => w.knob = k,
            None => out.push(Wish { dev, knob, by: ConfiguredBy::InEffect, params_by: Default::default() }),
        }
    }
    out
}

/// `None`: the configuration file has no key for it (irqbalance, vectors that serve no queue, threads).
fn knob(s: &Setting) -> Option<(Option<String>, Knob)> {
    let queue = |q: &u32| Some(vec![*q]);
    let of = |of: &VectorName| match of {
        VectorName::Rx(q) => Some(vec![*q]),
        VectorName::Tx(_) | VectorName::Control(_) => None,
    };
    Some(match s.clone() {
        Setting::Channels { dev, rx, tx, combined } => (Some(dev), Knob::Channels { rx, tx, combined }),
        Setting::Rings { dev, values } => (Some(dev), Knob::Rings { values }),
        Setting::Coalesce { dev, params } => (Some(dev), Knob::Coalesce { queues: None, params }),
        Setting::QueueCoalesce { dev, queue: q, params } => (Some(dev), Knob::Coalesce { queues: queue(&q), params }),
        Setting::Feature { dev, name, on } => (Some(dev), Knob::Feature { name, on }),
        Setting::Ntuple { dev, on } => (Some(dev), Knob::Feature { name: "rx-ntuple-filter".into(), on }),
        Setting::Pause { dev, autoneg, rx, tx } => (Some(dev), Knob::Pause { autoneg, rx, tx }),
        Setting::RssTable { dev, table } => {
            (Some(dev), Knob::RssTable { context: None, table: ringwise_model::Table::Explicit(table) })
        }
        Setting::RssContext { dev, context, table: Some(table), .. } => {
            let table = ringwise_model::Table::Explicit(table);
            (Some(dev), Knob::RssTable { context: Some(context), table })
        }
        Setting::RssHash { dev, function, key, symmetric } => (Some(dev), Knob::RssHash { function, key, symmetric }),
        Setting::RssFields { dev, flow, fields } => (Some(dev), Knob::RssFields { flow, fields }),
        Setting::FlowRule { dev, location, rule: Some(rule) } => {
            (Some(dev), Knob::FlowRule { location: Some(location), rule })
        }
        Setting::NapiDevice { dev, values } => (Some(dev), Knob::Napi { queues: None, values }),
        Setting::Napi { dev, of: o, values } => (Some(dev), Knob::Napi { queues: Some(of(&o)?), values }),
        Setting::IrqCpus { dev, of: o, cpus, .. } => (Some(dev), Knob::IrqCpus { queues: Some(of(&o)?), cpus }),
        Setting::XpsCpus { dev, queue: q, cpus } if !cpus.is_empty() => {
            (Some(dev), Knob::XpsCpus { queues: queue(&q), cpus })
        }
        Setting::XpsRxqs { dev, queue: q, rxqs } if !rxqs.is_empty() => {
            (Some(dev), Knob::XpsRxqs { queues: queue(&q), rxqs })
        }
        Setting::RpsCpus { dev, queue: q, cpus } if !cpus.is_empty() => {
            (Some(dev), Knob::RpsCpus { queues: queue(&q), cpus })
        }
        Setting::RpsFlowCnt { dev, queue: q, entries } => (Some(dev), Knob::RpsFlowCnt { queues: queue(&q), entries }),
        Setting::Sysctl { name, value } => (None, Knob::Sysctl { name, value }),
        Setting::CpuLatency { cpu, value } => (None, Knob::CpuLatency { cpus: vec![cpu], value }),
        Setting::RfsEntries { entries } => (None, Knob::RfsEntries { entries }),
        _ => return None,
    })
}

/// Merges two knobs that differ only in their queues.
fn join(a: &Knob, b: &Knob) -> Option<Knob> {
    use Knob as K;
    let queues = |a: &Option<Vec<u32>>, b: &Option<Vec<u32>>| -> Option<Option<Vec<u32>>> {
        let all: CpuSet = a.as_ref()?.iter().chain(b.as_ref()?).map(|q| CpuId(*q)).collect();
        Some(Some(all.iter().map(|c| c.0).collect()))
    };
    Some(match (a, b) {
        (K::Coalesce { queues: a, params: x }, K::Coalesce { queues: b, params: y }) if x == y => {
            K::Coalesce { queues: queues(a, b)?, params: x.clone() }
        }
        (K::Napi { queues: a, values: x }, K::Napi { queues: b, values: y }) if x == y => {
            K::Napi { queues: queues(a, b)?, values: *x }
        }
        (K::IrqCpus { queues: a, cpus: x }, K::IrqCpus { queues: b, cpus: y }) if x == y => {
            K::IrqCpus { queues: queues(a, b)?, cpus: x.clone() }
        }
        (K::XpsCpus { queues: a, cpus: x }, K::XpsCpus { queues: b, cpus: y }) if x == y => {
            K::XpsCpus { queues: queues(a, b)?, cpus: x.clone() }
        }
        (K::XpsRxqs { queues: a, rxqs: x }, K::XpsRxqs { queues: b, rxqs: y }) if x == y => {
            K::XpsRxqs { queues: queues(a, b)?, rxqs: x.clone() }
        }
        (K::RpsCpus { queues: a, cpus: x }, K::RpsCpus { queues: b, cpus: y }) if x == y => {
            K::RpsCpus { queues: queues(a, b)?, cpus: x.clone() }
        }
        (K::RpsFlowCnt { queues: a, entries: x }, K::RpsFlowCnt { queues: b, entries: y }) if x == y => {
            K::RpsFlowCnt { queues: queues(a, b)?, entries: *x }
        }
        (K::CpuLatency { cpus: a, value: x }, K::CpuLatency { cpus: b, value: y }) if x == y => {
            let all: CpuSet = a.iter().chain(b).copied().collect();
            K::CpuLatency { cpus: all.iter().collect(), value: x.clone() }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringwise_apply::{Policy, Request, Store, rollback, run};
    use ringwise_discover::Options;
    use ringwise_model::{IntentFlags, Requested};
    use ringwise_sys::Host;
    use ringwise_testkit::dir::Dir;
    use ringwise_testkit::sim::{Sim, build};

    use super::*;
    use crate::{ManualChangePolicy, Planning, PlanningHost, request};

    /// What `persist` writes after these requests, one after the other.
    fn file(requests: &[IntentFlags]) -> String {
        after(requests, None)
    }

    /// The same; the first of them is rolled back at once if `undone` is its number.
    fn after(requests: &[IntentFlags], undone: Option<u64>) -> String {
        let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).igb("eth1", 0, 8).done()));
        let (host, dir): (Arc<dyn Host>, Dir) = (sim.clone(), Dir::new());
        let store = Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-intent{}", dir.0.display()));
        let now = || ringwise_discover::snapshot(&host, &Options::all()).unwrap();
        for flags in requests {
            let (options, snapshot) = (Options::all(), now());
            let at = PlanningHost {
                options,
                snapshot,
                learned: Vec::new(),
                hands: Vec::new(),
                made: Vec::new(),
                late: BTreeSet::new(),
            };
            let bound = ringwise_config::bind(&crate::of_flags(flags).unwrap(), &[], &at.snapshot).unwrap();
            let planning = Planning::new(host.as_ref(), at, bound.intent, true, false).unwrap();
            let plan = planning.plan(ManualChangePolicy::Over).unwrap();
            let requested = Requested { flags: Some(flags.clone()), intent: planning.requested.clone() };
            let by = Request { who: "root".into(), argv: vec!["x".into()], ..Request::default() };
            run(&host, &request(&plan, requested, false).by(&by), &store, &Policy::default(), &mut |_| {}).unwrap();
            if let Some(id) = undone.filter(|_| std::ptr::eq(flags, &requests[0])) {
                let by = Request { who: "root".into(), argv: vec!["x".into()], ..Request::default() };
                rollback(&host, &store, id, &by, &Policy::default(), &mut |_| {}).unwrap();
            }
        }
        let s = now();
        let v = ringwise_apply::verify_in(&s, &store).unwrap();
        let c = in_effect(&v, &ringwise_apply::history(&store, &s.host).unwrap()).expect("settings are in effect");
        let text = ringwise_config::print(&c);
        assert_eq!(ringwise_config::parse("x", &text).unwrap().without_places(), c.without_places());
        text
    }

    #[test]
    fn an_interface_without_settings_in_effect_is_late() {
        let host: Arc<dyn Host> = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).igb("eth1", 0, 8).done()));
        let dir = Dir::new();
        let store = Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-intent{}", dir.0.display()));
        let late = || {
            let s = ringwise_discover::snapshot(&host, &Options::all()).unwrap();
            let late = crate::interfaces_without_settings(&s, &ringwise_apply::verify_in(&s, &store).unwrap());
            (s, late.into_iter().collect::<Vec<_>>().join(" "))
        };
        let (s, before) = late();
        assert_eq!(before, "eth0 eth1");
        let intent = Intent { devs: vec!["eth1".into()], ..Intent::default() };
        let plan = ringwise_plan::plan(&s, &intent, &[]).unwrap();
        let by = Request { who: "root".into(), argv: vec!["x".into()], ..Request::default() };
        let wanted = request(&plan, Requested { flags: None, intent }, false).by(&by);
        run(&host, &wanted, &store, &Policy::default(), &mut |_| {}).unwrap();
        assert_eq!(late().1, "eth0");
    }

    /// The layout of a goal is planned again at each boot; only what the user configured has a value.
    #[test]
    fn what_the_goal_decided_has_no_value() {
        let of = |goal| IntentFlags { goal: Some(ringwise_model::GoalChoice::Of(goal)), ..IntentFlags::default() };
        let reserve = || Some("0".parse().unwrap());
        let set = |text: &str| vec![text.to_string()];
        let text = file(&[IntentFlags { reserve: reserve(), set: set("eth1.rps_cpus.2=5"), ..of(Goal::Rpc) }]);
        assert!(text.contains("goal = \"rpc\"") && text.contains("reserve = \"0\""), "{text}");
        assert!(text.contains("rps_cpus = { \"2\" = \"5\" }"), "{text}");
        assert!(!text.contains("irq_cpus") && !text.contains("xps_cpus") && !text.contains("interfaces"), "{text}");
        // Each interface has the goal of its own request; an interface that no request named stays unchanged.
        let only = |dev: &str, goal| IntentFlags { devs: set(dev), ..of(goal) };
        let text = file(&[only("eth1", Goal::Rpc)]);
        assert!(text.contains("interfaces = [\"eth1\"]") && text.contains("goal = \"rpc\""), "{text}");
        let text = file(&[of(Goal::Forward), only("eth1", Goal::Rpc)]);
        let (host, eth1) = text.split_once("[[interface]]").unwrap();
        assert!(host.contains("goal = \"forward\"") && eth1.contains("goal = \"rpc\""), "{text}");
        // A later request for one interface does not take the reserved CPU from the others.
        let text = file(&[IntentFlags { reserve: reserve(), ..of(Goal::Forward) }, only("eth1", Goal::Rpc)]);
        assert!(text.contains("reserve = \"0\""), "{text}");
        // What was rolled back is not in effect.
        let text = after(&[of(Goal::Forward), only("eth1", Goal::Rpc)], Some(1));
        assert!(text.contains("interfaces = [\"eth1\"]") && !text.contains("forward"), "{text}");
    }

    #[test]
    fn queues_with_one_value_stand_together() {
        let irq = |q, c: &str| Setting::IrqCpus {
            dev: "eth1".into(),
            of: VectorName::Rx(q),
            cpus: c.parse().unwrap(),
            on: None,
        };
        let all = [irq(0, "2"), irq(1, "3"), irq(2, "2"), Setting::RfsEntries { entries: 0 }];
        let c = Config::of_intent(&Intent { wishes: wishes(all.iter()), ..Intent::default() });
        let text = ringwise_config::print(&c);
        assert!(text.contains("irq_cpus = { \"0,2\" = \"2\", \"1\" = \"3\" }"), "{text}");
        assert!(text.contains("rfs_entries = 0"), "{text}");
        assert_eq!(ringwise_config::parse("x", &text).unwrap().without_places(), c.without_places());
    }
}
