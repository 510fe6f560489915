//! Whoever runs programs on the CPUs that the plan proposes gets no finding about programs beside interrupts.

use ringwise_model::*;

use crate::goal;
use crate::world::{World, set};

/// The hosts of these tests after `ringwise apply`: cores of a node, queues of each interface, and the goal.
fn applied(cores: u32, queues: u32, g: Goal) -> World {
    let mut w = World::with_cores(cores, queues);
    goal(&mut w, g);
    w
}

fn beside_interrupts(w: &mut World, threads_on: &CpuSet) -> bool {
    w.threads(threads_on);
    let r = w.judge();
    assert!(!r.not_evaluated.contains(&"A05".to_string()) && r.unreadable.iter().all(|u| u.rule != "A05"));
    r.findings.iter().any(|f| f.rule == "A05")
}

#[test]
fn programs_on_the_proposed_cpus_are_not_beside_interrupts() {
    for g in [Goal::Rpc, Goal::Latency, Goal::Stream] {
        for (cores, queues) in [(4, 2), (4, 3), (4, 4), (8, 4), (8, 6)] {
            let mut w = applied(cores, queues, g);
            let programs = w.plan().programs;
            // With a queue on every core there is no core for a stream.
            assert_eq!(programs.is_empty(), g == Goal::Stream && cores == queues, "{g:?}, {cores} cores");
            for p in programs {
                let lists = [Some(p.cpus.clone()), p.node_cpus.clone()].into_iter().flatten();
                for cpus in lists {
                    assert!(!cpus.is_empty());
                    assert!(!beside_interrupts(&mut w, &cpus), "{g:?}, {cores} cores, {queues} queues: CPUs {cpus}");
                }
                // What the plan leaves out for this reason is exactly what the rule reports.
                for cpu in p.beside_interrupts.iter() {
                    assert!(beside_interrupts(&mut w, &CpuSet::one(cpu)), "{g:?}: CPU {cpu}");
                }
                if g == Goal::Rpc {
                    assert_eq!(p.beside_interrupts.is_empty(), queues == cores, "{cores} cores, {queues} queues");
                }
            }
        }
    }
}

#[test]
fn reserved_cores_and_interfaces_outside_the_plan_count_too() {
    // Every core that is left has an interrupt, and the reserved one is for other work.
    let mut w = World::with_cores(4, 3);
    w.intent.reserve = set("0-1");
    goal(&mut w, Goal::Rpc);
    let p = w.plan().programs.swap_remove(0);
    assert_eq!((p.node_cpus, p.beside_interrupts), (Some(set("2-7")), CpuSet::new()));
    assert!(!beside_interrupts(&mut w, &set("2-7")));

    // Both interfaces are on node 0, and only eth1 is planned.
    let mut w = World::with_cores(4, 2);
    w.s.nics[1].node = Fact::Known(NodeId(0));
    w.s.nics[1].local_cpus = w.s.nics[0].local_cpus.clone();
    for (v, cpu) in w.s.nics[1].vectors.iter_mut().filter(|v| v.is_queue()).zip(["4", "4"]) {
        (v.asked, v.effective) = (Fact::Known(set(cpu)), Fact::Known(set(cpu)));
    }
    w.intent.devs = vec!["eth1".into()];
    goal(&mut w, Goal::Rpc);
    let p = w.plan().programs.swap_remove(0);
    assert!(p.beside_interrupts.contains(CpuId(5)), "{p:?}");
    assert!(!beside_interrupts(&mut w, &p.node_cpus.unwrap()) && beside_interrupts(&mut w, &set("5")));
}
