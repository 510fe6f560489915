//! CPUs that a plan proposes for programs, beside the interrupts.

use ringwise_model::{CpuSet, Goal, Intent, Snapshot};
use ringwise_plan::{Plan, Program, plan};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

fn set(list: &str) -> CpuSet {
    list.parse().expect("a list")
}

/// Two nodes of `cores` cores; threads of a core are neighbours: 0 and 1, 2 and 3, …
fn host(cores: u32, threads: u32, nics: Vec<NicSpec>) -> Snapshot {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(cores, threads) };
    machines::host("db1", cpu, nics).snapshot()
}

fn igb(name: &str, node: u32, queues: u32) -> NicSpec {
    NicSpec::new(name, "igb", Some(node), queues, queues)
}

fn planned(s: &Snapshot, goal: Goal) -> Plan {
    plan(s, &Intent { goal, ..Intent::default() }, &[]).expect("can be planned")
}

fn only(p: Plan) -> Program {
    let [program] = p.programs.as_slice() else { panic!("{:?}", p.programs) };
    program.clone()
}

#[test]
fn busy_programs_do_not_get_the_other_thread_of_an_interrupts_core() {
    for goal in [Goal::Rpc, Goal::Latency] {
        let p = only(planned(&host(8, 2, vec![igb("eth1", 0, 4)]), goal));
        assert_eq!((p.cpus, p.node_cpus), (set("0,2,4,6"), Some(set("0,2,4,6,8-15"))));
        assert_eq!(p.beside_interrupts, set("1,3,5,7"));
        let drop_in = "[Service]\nCPUAffinity=0,2,4,6,8-15\nNUMAPolicy=preferred\nNUMAMask=0\n";
        assert_eq!(p.node_drop_in.as_deref(), Some(drop_in));
    }
}

#[test]
fn with_an_interrupt_on_every_core_all_threads_are_proposed() {
    let p = only(planned(&host(4, 2, vec![igb("eth1", 0, 4)]), Goal::Rpc));
    assert_eq!((p.cpus, p.node_cpus, p.beside_interrupts), (set("0,2,4,6"), Some(set("0-7")), CpuSet::new()));
}

#[test]
fn without_a_second_thread_nothing_is_left_out() {
    let p = only(planned(&host(8, 1, vec![igb("eth1", 0, 4)]), Goal::Rpc));
    assert_eq!((p.node_cpus, p.beside_interrupts), (Some(set("0-7")), CpuSet::new()));
}

#[test]
fn on_one_node_the_plan_limits_busy_programs_only_for_this() {
    let one = |queues| {
        let nic = NicSpec::new("eth1", "igb", Some(0), queues, queues);
        only(planned(&machines::host("one", CpuSpec::flat(4, 2), vec![nic]).snapshot(), Goal::Rpc))
    };
    let p = one(2);
    assert_eq!((p.node_cpus, p.beside_interrupts), (Some(set("0,2,4-7")), set("1,3")));
    assert_eq!(p.node_drop_in.as_deref(), Some("[Service]\nCPUAffinity=0,2,4-7\n"));
    let p = one(4);
    assert_eq!((p.node_cpus, p.beside_interrupts), (None, CpuSet::new()));
}

#[test]
fn the_interrupts_of_all_interfaces_count() {
    let p = planned(&host(8, 2, vec![igb("eth1", 0, 2), igb("eth2", 0, 2)]), Goal::Rpc);
    assert_eq!(p.programs.len(), 2);
    for one in &p.programs {
        let both: CpuSet = p.programs.iter().flat_map(|o| o.cpus.iter()).collect();
        assert_eq!((both.len(), one.beside_interrupts.len()), (4, 4), "{one:?}");
        assert_eq!(one.node_cpus.as_ref().map(CpuSet::len), Some(12));
        assert!(one.node_cpus.as_ref().is_some_and(|all| both.difference(all).is_empty()));
    }
}

/// Receivers on other cores of the node than the interrupts (article 003), and none on the other thread of such a core.
#[test]
fn streams_get_whole_cores_of_the_node() {
    let p = only(planned(&host(8, 2, vec![igb("eth1", 0, 4)]), Goal::Stream));
    assert_eq!((&p.cpus, p.node_cpus.as_ref()), (&set("8-15"), Some(&set("8-15"))));
    assert!(p.beside_interrupts.is_empty());
}
