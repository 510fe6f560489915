//! Rows of the matrix that irqbalance or the kernel had won.

use ringwise_knob::Setting;
use ringwise_model::{CpuId, CpuSet, Fact, Goal, Intent, Knob, Snapshot};
use ringwise_plan::{Plan, plan};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::CpuSpec;

const GOALS: [Goal; 2] = [Goal::Forward, Goal::Balanced];

/// Row "udp" of the matrix: eight cores with two threads (0 and 1 of one core, 2 and 3, …), of which the router has six, and three ports
/// with eight queues, where the kernel placed them. All interrupts are free to move.
fn router() -> Snapshot {
    let nics = (0..3).map(|n| NicSpec::new(&format!("eth{n}"), "igb", Some(0), 8, 8)).collect();
    let mut s = machines::host("router12", CpuSpec::flat(8, 2), nics).snapshot();
    let placed = [[3, 4, 5, 6, 7, 8, 9, 10], [13, 15, 1, 2, 3, 4, 5, 6], [0, 7, 8, 9, 10, 11, 13, 15]];
    for (nic, placed) in s.nics.iter_mut().zip(placed) {
        for (v, cpu) in nic.vectors.iter_mut().filter(|v| v.is_queue()).zip(placed) {
            v.effective = Fact::Known(CpuSet::one(CpuId(cpu)));
        }
    }
    s
}

fn planned(s: &Snapshot, goal: Goal) -> Plan {
    let intent = Intent { goal, exclude_cpus: "12-15".parse().unwrap(), ..Intent::default() };
    plan(s, &intent, &[]).unwrap()
}

fn cpus(p: &Plan) -> Vec<Vec<u32>> {
    p.layout.iter().map(|d| d.queues.iter().map(|q| q.cpu.unwrap().0).collect()).collect()
}

/// The pairs of ports whose queues of this number are on one core.
fn on_one_core(layout: &[Vec<u32>], queue: usize) -> usize {
    let core = |port: usize| layout[port][queue] / 2;
    [(0, 1), (0, 2), (1, 2)].into_iter().filter(|(a, b)| core(*a) == core(*b)).count()
}

#[test]
fn ports_of_a_router_have_queues_of_one_number_on_different_cores() {
    for goal in GOALS {
        let layout = cpus(&planned(&router(), goal));
        for queue in 0..8 {
            assert_eq!(on_one_core(&layout, queue), 0, "{goal}: queue {queue} of {layout:?}");
        }
        // Still two queues on each of the twelve CPUs.
        let on = |cpu: u32| layout.iter().flatten().filter(|c| **c == cpu).count();
        assert_eq!((0..16).map(on).collect::<Vec<_>>(), [[2; 12].as_slice(), &[0; 4]].concat(), "{goal}");
    }
}

#[test]
fn the_layout_stays_when_it_is_planned_again() {
    for goal in GOALS {
        let s = router();
        let first = planned(&s, goal);
        let again = planned(&project(&s, &first.target), goal);
        assert_eq!(cpus(&again), cpus(&first), "{goal}");
        assert!(again.steps.is_empty(), "{goal}: {:?}", again.steps);
    }
}

/// Queue *i* on CPU *i* of every port, as the loops of old articles have it: queues do not move only because of their numbers.
#[test]
fn queues_that_are_pinned_to_their_cpus_stay() {
    let mut s = machines::host(
        "loop",
        CpuSpec::flat(8, 1),
        (0..2).map(|n| NicSpec::new(&format!("eth{n}"), "igb", Some(0), 8, 8)).collect(),
    )
    .snapshot();
    for nic in &mut s.nics {
        for (v, cpu) in nic.vectors.iter_mut().filter(|v| v.is_queue()).zip(0..) {
            let one = Fact::Known(CpuSet::one(CpuId(cpu)));
            (v.asked, v.effective) = (one.clone(), one);
        }
    }
    let p = plan(&s, &Intent::default(), &[]).unwrap();
    assert_eq!(cpus(&p), [[0, 1, 2, 3, 4, 5, 6, 7]; 2]);
}

/// Row "few-cpus" of the matrix: more queues than CPUs. A CPU that forwards what several receive queues get sends through all transmit
/// queues whose interrupts it handles: one ring alone is full before the CPU cleans it.
#[test]
fn a_cpu_with_several_queues_sends_through_all_of_them() {
    let nics = (0..3).map(|n| NicSpec::new(&format!("eth{n}"), "igb", Some(0), 8, 8)).collect();
    let s = machines::host("router4", CpuSpec::flat(4, 2), nics).snapshot();
    let masks = |goal| -> Vec<(u32, CpuSet)> {
        let intent = Intent { goal, exclude_cpus: "4-7".parse().unwrap(), ..Intent::default() };
        let of = |t: &Setting| match t {
            Setting::XpsCpus { dev, queue, cpus } if dev == "eth2" => Some((*queue, cpus.clone())),
            _ => None,
        };
        plan(&s, &intent, &[]).unwrap().target.iter().filter_map(of).collect()
    };
    let of_cpu = |masks: &[(u32, CpuSet)], cpu| masks.iter().filter(|(_, m)| m.contains(CpuId(cpu))).count();
    for goal in GOALS {
        let masks = masks(goal);
        assert_eq!((0..8).map(|cpu| of_cpu(&masks, cpu)).collect::<Vec<_>>(), [2, 2, 2, 2, 1, 1, 1, 1], "{goal}");
    }
    // Programs on the other CPUs share no queue with them.
    let masks = masks(Goal::Rpc);
    assert!((0..8).all(|cpu| of_cpu(&masks, cpu) == 1), "{masks:?}");
}

/// A CPU in a configured mask sends through no other queue, and no CPU of any node is left without one.
#[test]
fn configured_masks_leave_no_cpu_without_a_queue() {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 1) };
    let s = machines::host("two", cpu, vec![NicSpec::new("eth1", "igb", Some(0), 4, 4)]).snapshot();
    for (goal, mask) in [Goal::Balanced, Goal::Rpc].into_iter().flat_map(|g| ["0", "3", "0,5"].map(|m| (g, m))) {
        let mask: CpuSet = mask.parse().unwrap();
        let knob = Knob::XpsCpus { queues: Some(vec![0]), cpus: mask.clone() };
        let intent = Intent { goal, ..crate::wishes::intent(vec![knob]) };
        let p = plan(&s, &intent, &[]).unwrap();
        let of = |t: &Setting| match t {
            Setting::XpsCpus { queue, cpus, .. } => Some((*queue, cpus.clone())),
            _ => None,
        };
        let masks: Vec<(u32, CpuSet)> = p.target.iter().filter_map(of).collect();
        let others = masks.iter().filter(|(q, _)| *q != 0).fold(CpuSet::new(), |all, (_, m)| all.union(m));
        assert_eq!(others, s.topology.online.difference(&mask), "{goal} {mask}: {masks:?}");
    }
}

/// Queues that cannot move are counted, whatever the order of the interfaces.
#[test]
fn queues_go_around_those_that_stay() {
    let mut s = machines::host(
        "late",
        CpuSpec::flat(8, 1),
        (0..2).map(|n| NicSpec::new(&format!("eth{n}"), "igb", Some(0), 4, 4)).collect(),
    )
    .snapshot();
    // Queue 0 of the second interface is pinned where the first one would have its queue 0.
    let at = cpus(&plan(&s, &Intent::default(), &[]).unwrap());
    let one = Fact::Known(CpuSet::one(CpuId(at[0][0])));
    let v = s.nics[1].vectors.iter_mut().find(|v| v.is_queue()).unwrap();
    (v.asked, v.effective) = (one.clone(), one);
    let then = cpus(&plan(&s, &Intent::default(), &[]).unwrap());
    for queue in 0..4 {
        assert_ne!(then[0][queue], then[1][queue], "queue {queue}: {then:?}");
    }
}
