//! Many hosts: groups of hosts with the same plan.
//!
//! Two plans are the same if they write the same values in the same order for the same goals, on interfaces of the same
//! drivers. Names of interfaces are replaced by their position in natural order. Names of hosts, identities of devices,
//! present values and reasons do not count. Settings name queues, never interrupt numbers. Hosts whose interfaces are
//! in another order get groups of their own, because a number of a queue or CPU would then mean something else.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use ringwise_knob::{IfRefused, Setting};
use ringwise_model::order::Order;
use ringwise_model::{Goal, natural};
use serde::Serialize;

use crate::Plan;

/// What must be equal in two plans, as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SamePlan(String);

#[derive(Serialize)]
struct Normal<'a> {
    goal: Goal,
    devices: Vec<(Goal, &'a str)>,
    steps: Vec<NormalStep>,
}

#[derive(Serialize)]
struct NormalStep {
    setting: Setting,
    interrupts_traffic: bool,
    if_refused: IfRefused,
    instead: Vec<Setting>,
}

impl SamePlan {
    /// `driver`: the driver of an interface by its name; an empty text if it is unknown.
    pub fn of<'a>(plan: &Plan, driver: impl Fn(&str) -> &'a str) -> Self {
        let devs: BTreeSet<&str> = plan.steps.iter().filter_map(|s| s.setting.dev()).collect();
        let mut devs: Vec<&str> = devs.into_iter().collect();
        devs.order_by(|a, b| natural::compare(a, b));
        let place: HashMap<&str, String> = devs.iter().zip(1..).map(|(d, n): (_, u32)| (*d, format!("#{n}"))).collect();
        let renamed = |s: &Setting| match s.dev().and_then(|d| place.get(d)) {
            Some(name) => s.renamed(name),
            None => s.clone(),
        };
        let step = |s: &ringwise_knob::Step| NormalStep {
            setting: renamed(&s.setting),
            interrupts_traffic: s.interrupts_traffic,
            if_refused: s.if_refused,
            instead: s.instead.iter().map(renamed).collect(),
        };
        let normal = Normal {
            goal: plan.intent.goal,
            devices: devs.iter().map(|d| (plan.intent.goal_of(d), driver(d))).collect(),
            steps: plan.steps.iter().map(step).collect(),
        };
        // All keys of the maps inside settings are texts or numbers, so this cannot fail. If it did, the plan would only be
        // in a group with others like it.
        Self(serde_json::to_string(&normal).unwrap_or_default())
    }
}

/// One of many hosts with its plan, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedHost {
    /// The capture, as the user named it.
    pub file: String,
    /// `None`: the name is unknown, or the host has none.
    pub host: Option<String>,
    /// Planned interfaces and their drivers (empty: unknown), in natural order.
    pub devices: Vec<(String, String)>,
    /// The goal of the host.
    pub goal: Goal,
    /// Number of settings that would be written.
    pub steps: usize,
    /// Whether one of them interrupts traffic.
    pub interrupts_traffic: bool,
    /// Number of requested settings that are not possible or need permission.
    pub not_planned: usize,
}

impl PlannedHost {
    /// The short form of a plan for the capture `file`.
    pub fn of<'a>(plan: &Plan, file: &str, driver: impl Fn(&str) -> &'a str) -> Self {
        let name = plan.host.name.known().filter(|n| *n != "(none)");
        let named = plan.left_out.iter().filter(|l| l.is_user_configured()).count();
        Self {
            file: file.to_string(),
            host: name.cloned(),
            devices: plan.considered.iter().map(|d| (d.clone(), driver(d).to_string())).collect(),
            goal: plan.intent.goal,
            steps: plan.steps.len(),
            interrupts_traffic: plan.interrupts_traffic(),
            not_planned: named + plan.refused.iter().filter(|r| r.is_user_configured()).count(),
        }
    }
}

/// Hosts with the same plan, in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanGroup {
    /// The first host of the group.
    pub example: PlannedHost,
    /// The files of the others.
    pub others: Vec<String>,
}

impl PlanGroup {
    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        1 + self.others.len()
    }
}

/// Collects hosts into groups. Each different plan is kept once.
#[derive(Debug, Default)]
pub struct PlanGroups {
    by_plan: HashMap<SamePlan, usize>,
    groups: Vec<PlanGroup>,
}

impl PlanGroups {
    /// Adds a host. Returns the file of the first host with the same plan; `None`: this is the first one.
    pub fn add(&mut self, key: SamePlan, host: PlannedHost) -> Option<&str> {
        let at = *self.by_plan.entry(key).or_insert(self.groups.len());
        if at == self.groups.len() {
            self.groups.push(PlanGroup { example: host, others: Vec::new() });
            return None;
        }
        let group = self.groups.get_mut(at)?;
        group.others.push(host.file);
        Some(&group.example.file)
    }

    /// The groups: those with something to do first, then the largest, then the most steps.
    pub fn finish(self) -> Vec<PlanGroup> {
        let mut groups = self.groups;
        groups.order_by_key(|g| Reverse((g.example.steps > 0, g.hosts(), g.example.steps)));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_knob::{Reason, Step};
    use ringwise_model::{Fact, Intent};
    use ringwise_testkit::machines;

    fn set(text: &str) -> ringwise_model::CpuSet {
        text.parse().unwrap()
    }

    fn rps(dev: &str, cpus: &str) -> Setting {
        Setting::RpsCpus { dev: dev.into(), queue: 0, cpus: set(cpus) }
    }

    fn plan(name: &str, settings: &[Setting]) -> Plan {
        let mut p = crate::plan(&machines::ten()[0].snapshot(), &Intent::default(), &[]).unwrap();
        p.host.name = Fact::Known(name.into());
        let step = |s: &Setting| Step {
            setting: s.clone(),
            from: Fact::unknown(name, "differs from host to host"),
            rule: "A02".into(),
            reason: Reason::Text(name.into()),
            source: "test".into(),
            interrupts_traffic: false,
            if_refused: IfRefused::Skip,
            instead: Vec::new(),
        };
        p.steps = settings.iter().map(step).collect();
        p
    }

    fn key(p: &Plan) -> SamePlan {
        SamePlan::of(p, |_| "igb")
    }

    #[test]
    fn names_and_present_values_do_not_count() {
        let one = plan("a", &[rps("eth0", "0-3"), rps("eth1", "4-7")]);
        let two = plan("b", &[rps("ens9f0", "0-3"), rps("ens10f0", "4-7")]);
        assert_eq!(key(&one), key(&two));
    }

    #[test]
    fn order_values_goals_and_drivers_count() {
        let one = plan("a", &[rps("eth0", "0-3"), rps("eth1", "4-7")]);
        let swapped = plan("a", &[rps("eth1", "0-3"), rps("eth0", "4-7")]);
        let other_value = plan("a", &[rps("eth0", "0-3"), rps("eth1", "4-6")]);
        assert_ne!(key(&one), key(&swapped));
        assert_ne!(key(&one), key(&other_value));
        assert_ne!(key(&one), SamePlan::of(&one, |d| if d == "eth1" { "ixgbe" } else { "igb" }));
        let mut goal = one.clone();
        goal.intent.dev_goals.insert("eth1".into(), Goal::Rpc);
        assert_ne!(key(&one), key(&goal));
        let mut outage = one.clone();
        outage.steps[1].interrupts_traffic = true;
        assert_ne!(key(&one), key(&outage));
    }

    #[test]
    fn the_largest_group_comes_first_and_hosts_without_steps_last() {
        let mut groups = PlanGroups::default();
        let mut add =
            |file: &str, p: &Plan| groups.add(key(p), PlannedHost::of(p, file, |_| "igb")).map(str::to_string);
        let (idle, small, large) = (plan("x", &[]), plan("y", &[rps("eth0", "1")]), plan("z", &[rps("eth0", "2")]));
        let added: Vec<Option<String>> = [&idle, &small, &large, &idle, &large, &idle]
            .iter()
            .zip(["a", "b", "c", "d", "e", "f"])
            .map(|(p, file)| add(file, p))
            .collect();
        let first = |f: &str| Some(f.to_string());
        assert_eq!(added, [None, None, None, first("a"), first("c"), first("a")]);
        let sizes: Vec<(String, usize)> =
            groups.finish().into_iter().map(|g| (g.example.file.clone(), g.hosts())).collect();
        assert_eq!(sizes, [("c".to_string(), 2), ("b".to_string(), 1), ("a".to_string(), 3)]);
    }
}
