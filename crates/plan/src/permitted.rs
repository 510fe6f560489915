//! CPUs that may serve the queues of an interface besides those that the layout has chosen, for the service that moves interrupts
//! because of the load.

use std::collections::BTreeSet;

use ringwise_model::{CpuSet, Fact, FarNode, Goal, Intent, Knob, Nic, Smt, Topology};

use crate::goal;

/// The CPUs that are usable for queues with this intent, online and not isolated, and local unless the intent permits others.
/// `None`: the layout decides more than that (groups of queues, CPUs that were configured for interrupts), or which CPUs are isolated,
/// share a core or are on which node is unknown.
pub fn permitted_cpus(topology: &Topology, nic: &Nic, intent: &Intent) -> Option<CpuSet> {
    let goal = intent.goal_of(nic.name());
    let by_layout = matches!(goal, Goal::Latency | Goal::Mixed)
        || intent.pair_as_article
        || intent.groups.iter().any(|g| g.dev == nic.name());
    let own = |dev: &Option<String>| dev.as_ref().is_none_or(|d| d == nic.name());
    let configured = intent.wishes.iter().any(|w| own(&w.dev) && matches!(w.knob, Knob::IrqCpus { .. }));
    let t = topology;
    if by_layout || configured || !isolation_is_known(t) {
        return None;
    }
    let intent = goal::resolve(&Intent { goal, ..intent.clone() });
    let usable = goal::usable(t, &intent);
    let mut cpus = usable.cpus.difference(&usable.isolated);
    if intent.far_node != Some(FarNode::Ok) {
        match (&nic.node, &t.nodes) {
            (Fact::Known(node), Fact::Known(nodes)) => cpus = cpus.intersection(&nodes.get(node)?.cpus),
            (_, Fact::Unknown(_)) => return None,
            // As in the plan: without a node of its own, every CPU is as near as the others.
            _ => {}
        }
    }
    if intent.smt == Some(Smt::OnePerCore) {
        let mut cores = BTreeSet::new();
        for cpu in cpus.iter() {
            let siblings = t.cpus.get(&cpu)?.siblings.known()?;
            // The first thread that may serve queues.
            cores.insert(siblings.intersection(&cpus).first()?);
        }
        cpus = cores.into_iter().collect();
    }
    Some(cpus)
}

pub(crate) fn isolation_is_known(t: &Topology) -> bool {
    let isolated = [&t.isolated, &t.nohz_full, &t.cgroup_isolated, &t.pods_exclusive];
    !isolated.iter().any(|f| matches!(f, Fact::Unknown(_)))
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Snapshot, Wish};
    use ringwise_testkit::sim::build;

    use super::*;

    /// Four CPUs on each of two nodes.
    fn host() -> Snapshot {
        build::host(8, 2).igb("eth0", 0, 4).isolated("5").done()
    }

    fn of(s: &Snapshot, intent: &Intent) -> Option<String> {
        permitted_cpus(&s.topology, s.nic("eth0").unwrap(), intent).map(|c| c.to_string())
    }

    #[test]
    fn local_cpus_that_the_intent_leaves_for_queues() {
        let mut s = host();
        let local =
            s.topology.nodes.known().unwrap()[&s.nic("eth0").unwrap().node.known().copied().unwrap()].cpus.clone();
        let usable = local.difference(&"5".parse().unwrap());
        let forward = Intent { goal: Goal::Forward, ..Intent::default() };
        assert_eq!(of(&s, &forward), Some(usable.to_string()));
        let stream = Intent { goal: Goal::Stream, ..Intent::default() };
        assert_eq!(of(&s, &stream).as_deref(), Some("0-1"), "one thread of each core");
        let reserved = usable.first().unwrap();
        let less = Intent { reserve: CpuSet::one(reserved), ..forward.clone() };
        assert_eq!(of(&s, &less), Some(usable.difference(&CpuSet::one(reserved)).to_string()));
        let far = Intent { far_node: Some(FarNode::Ok), ..forward.clone() };
        assert_eq!(of(&s, &far).as_deref(), Some("0-4,6-7"), "without the isolated one");
        let named = Intent { cpus: Some("0,4-6".parse().unwrap()), far_node: Some(FarNode::Ok), ..forward.clone() };
        assert_eq!(of(&s, &named).as_deref(), Some("0,4,6"), "isolated ones never, although they are named");
        // Without a known node every CPU is as near as the others.
        s.nics.iter_mut().for_each(|n| n.node = Fact::unknown("node", "-1"));
        assert_eq!(of(&s, &forward).as_deref(), Some("0-4,6-7"));
        s.topology.nodes = Fact::unknown("nodes", "not asked");
        assert_eq!((of(&s, &forward), of(&s, &far).is_some()), (None, true));
        s.topology.isolated = Fact::unknown("isolated CPUs", "not asked");
        assert_eq!(of(&s, &far), None);
    }

    #[test]
    fn layouts_that_decide_more_permit_none() {
        let s = host();
        for goal in [Goal::Latency, Goal::Mixed] {
            assert_eq!(of(&s, &Intent { goal, ..Intent::default() }), None);
        }
        let cpus = Knob::IrqCpus { queues: None, cpus: "1".parse().unwrap() };
        let wish = |dev: Option<&str>| Wish {
            dev: dev.map(Into::into),
            knob: cpus.clone(),
            by: Default::default(),
            params_by: Default::default(),
        };
        assert_eq!(of(&s, &Intent { wishes: vec![wish(Some("eth0"))], ..Intent::default() }), None);
        assert!(of(&s, &Intent { wishes: vec![wish(Some("eth1"))], ..Intent::default() }).is_some());
    }
}
