//! XPS within each traffic class (mqprio, taprio).

use std::collections::BTreeMap;

use ringwise_knob::Setting;
use ringwise_model::{
    CpuId, CpuSet, Fact, Goal, GroupQueues, GroupWish, Intent, QueueRange, Snapshot, TrafficClasses, Unread,
};
use ringwise_plan::{Obstacle, Plan, plan, xps_masks};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

use crate::groups::wish;

/// Eight CPUs, eight queues.
fn host(ranges: &[(u32, u32)]) -> Snapshot {
    let mut s =
        machines::host("eight", CpuSpec::flat(8, 1), vec![NicSpec::new("eth1", "igb", Some(0), 8, 8)]).snapshot();
    let queues = ranges.iter().map(|(first, count)| QueueRange { first: *first, count: *count }).collect();
    s.nics[0].classes = Fact::Known(TrafficClasses { of_priority: vec![0; 16], queues });
    s
}

fn ok(s: &Snapshot) -> Plan {
    plan(s, &Intent::default(), &[]).expect("can be planned")
}

fn masks(p: &Plan) -> BTreeMap<u32, CpuSet> {
    let of = |t: &Setting| match t {
        Setting::XpsCpus { queue, cpus, .. } => Some((*queue, cpus.clone())),
        _ => None,
    };
    p.target.iter().filter_map(of).collect()
}

fn refused(p: &Plan) -> Vec<&Obstacle> {
    p.refused.iter().filter(|r| r.what == "eth1 XPS CPUs").map(|r| &r.why).collect()
}

#[test]
fn every_cpu_has_one_queue_in_each_class() {
    let ranges = [(0, 2), (2, 2), (4, 3)];
    let s = host(&ranges);
    let p = ok(&s);
    let all = masks(&p);
    for (first, count) in ranges {
        let of_class: Vec<&CpuSet> = (first..first + count).map(|q| &all[&q]).collect();
        let covered = of_class.iter().fold(CpuSet::new(), |a, m| a.union(m));
        assert_eq!(covered, s.topology.online, "class from {first}");
        assert_eq!(of_class.iter().map(|m| m.len()).sum::<usize>(), 8, "a CPU twice in the class from {first}");
        assert!(of_class.iter().all(|m| !m.is_empty()));
    }
    // The kernel accepts no mask for a queue that belongs to no class (`__netif_set_xps_queue`: EINVAL).
    assert_eq!((all.get(&7), refused(&p)), (None, vec![]));
    // The CPU of the queue's interrupt sends through this queue.
    let layout = &p.layout.iter().find(|l| l.dev == "eth1").unwrap().queues;
    for q in (0..7).filter(|q| layout[*q as usize].cpu.is_some()) {
        assert!(all[&q].contains(layout[q as usize].cpu.unwrap()), "queue {q}");
    }
    // The service that moves interrupts lays the same masks out.
    let cpus: Vec<CpuId> = layout.iter().map(|q| q.cpu.unwrap()).collect();
    let same = xps_masks(&s.nics[0], &s.topology, Goal::Balanced, &cpus).unwrap();
    assert_eq!(all.into_values().collect::<Vec<_>>(), same[..7]);
    assert!(same[7].is_empty());
}

#[test]
fn without_classes_every_cpu_has_one_queue() {
    for (ranges, classes) in [(vec![], 0), (vec![(0, 8)], 1)] {
        let mut s = host(&ranges);
        let with = masks(&ok(&s));
        s.nics[0].classes = Fact::Absent;
        assert_eq!(with, masks(&ok(&s)), "{classes} classes");
        s.nics[0].classes = ringwise_model::not_requested();
        assert_eq!(with, masks(&ok(&s)), "a recording of an earlier version");
    }
}

#[test]
fn classes_that_are_unknown_or_do_not_fit_leave_xps_alone() {
    let mut s = host(&[(0, 4), (4, 8)]);
    let p = ok(&s);
    assert_eq!((masks(&p).len(), refused(&p)), (0, vec![&Obstacle::ClassesNeedQueues { need: 12, queues: 8 }]));
    let unread = Unread::new("qdisc-get (dump)", Some(1), "not permitted");
    s.nics[0].classes = Fact::Unknown(unread.clone());
    let p = ok(&s);
    assert_eq!((masks(&p).len(), refused(&p)), (0, vec![&Obstacle::ClassesUnread { unread }]));
    assert_eq!(xps_masks(&s.nics[0], &s.topology, Goal::Balanced, &[CpuId(0); 8]), None);
    // The second of two overlapping classes has no queue of its own (`netdev_txq_to_tc` finds the first).
    let p = ok(&host(&[(0, 4), (2, 4)]));
    assert_eq!(masks(&p).into_keys().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_configured_group_with_queues_of_several_classes_is_reported() {
    let mut s = host(&[(0, 4), (4, 3)]);
    let about = |s: &Snapshot, first: &str| {
        let group = |name: &str, queues: &str| GroupWish {
            dev: "eth1".into(),
            ..wish(name, name, GroupQueues::These(queues.parse::<CpuSet>().unwrap().iter().map(|c| c.0).collect()))
        };
        let rest = if first == "0-3" { "4-7" } else { "6-7" };
        let intent = Intent { groups: vec![group("latency", first), group("bulk", rest)], ..Intent::default() };
        let p = plan(s, &intent, &[]).expect("can be planned");
        p.warnings.into_iter().filter(|w| w.contains("traffic class")).collect::<Vec<_>>()
    };
    let text = "eth1: group latency has queues of traffic classes 0, 1: the masks of XPS stay within each class";
    assert_eq!(about(&s, "0-5"), [text]);
    // Queue 7 belongs to no class.
    assert_eq!(about(&s, "0-3"), [""; 0]);
    s.nics[0].classes = Fact::Absent;
    assert_eq!(about(&s, "0-5"), [""; 0]);
}
