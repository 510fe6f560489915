//! CPUs that a plan proposes for programs, beside the interrupts.

use ringwise_model::{ConfiguredBy, CpuSet, Fact, Flow, Goal, GroupQueues, GroupWish, Intent, Snapshot};
use ringwise_plan::{ListeningProgram, ListeningSocket, Plan, ProgramPlacement, plan, program_cpus};
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

fn only(p: Plan) -> ProgramPlacement {
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

/// A program that listens on this address and TCP port, and may use these CPUs.
fn listening(address: &str, port: &str, cpus: &str) -> ListeningProgram {
    let matches = vec![("tcp4".to_string(), [("dst-port".to_string(), port.to_string())].into())];
    let sockets = vec![ListeningSocket { address: address.parse().expect("an address"), matches }];
    ListeningProgram { name: "nginx".into(), pid: 812, allowed: set(cpus), sockets }
}

#[test]
fn a_program_is_compared_with_the_interfaces_that_it_listens_on() {
    let mut s = host(8, 2, vec![igb("eth1", 0, 2), igb("eth2", 0, 2), igb("eth3", 1, 2)]);
    for (i, n) in (1..).zip(&mut s.nics) {
        n.addresses = Fact::Known(vec![format!("192.0.2.{i}/24")]);
    }
    let programs = planned(&s, Goal::Rpc).programs;
    let one = |l: ListeningProgram| program_cpus(&s, &programs, &[], &[l]);
    for p in &programs {
        let address = &s.nic(&p.dev).unwrap().addresses.known().unwrap()[0];
        let found = one(listening(address.split('/').next().unwrap(), "80", &p.cpus.to_string()));
        assert_eq!((found.len(), found[0].as_proposed, &found[0].proposed), (1, true, &p.cpus), "{}", p.dev);
        assert_eq!(found[0].proposed_for[0].dev, p.dev);
    }
    assert!(!one(listening("192.0.2.1", "80", "0-31"))[0].as_proposed);
    // On several nodes there is no limit, and on other addresses no proposal.
    assert_eq!(one(listening("0.0.0.0", "80", "0-31")), []);
    assert_eq!(one(listening("192.0.2.9", "80", "0-31")), []);
    // Interfaces of one node count together.
    let near: Vec<ProgramPlacement> = programs.iter().filter(|p| p.dev != "eth3").cloned().collect();
    let both = near[0].cpus.union(&near[1].cpus);
    let found = program_cpus(&s, &near, &[], &[listening("0.0.0.0", "80", &both.to_string())]);
    assert_eq!((&found[0].proposed, found[0].as_proposed, found[0].proposed_for.len()), (&both, true, 2));
    // Where busy programs have no limit, one that may use other CPUs may be such a program.
    let free: Vec<ProgramPlacement> = near.iter().map(|p| ProgramPlacement { node_cpus: None, ..p.clone() }).collect();
    assert_eq!(program_cpus(&s, &free, &[], &[listening("0.0.0.0", "80", "0-31")]), []);
    let found = program_cpus(&s, &free, &[], &[listening("0.0.0.0", "80", &both.to_string())]);
    assert_eq!((found[0].as_proposed, &found[0].proposed_for_many), (true, &None));
    // Processes of one name with the same CPUs are one entry.
    let workers = [812, 813].map(|pid| ListeningProgram { pid, ..listening("192.0.2.1", "80", "3") });
    let found = program_cpus(&s, &programs, &[], &workers);
    assert_eq!((found.len(), found[0].pids.as_slice()), (1, &[812, 813][..]));
}

#[test]
fn a_program_belongs_to_the_group_whose_flow_names_its_port() {
    let s = host(8, 2, vec![igb("eth1", 0, 4)]);
    let of_group = ProgramPlacement { group: Some("web".into()), ..only(planned(&s, Goal::Rpc)) };
    let fields = [("dst-port".to_string(), "80".to_string())].into();
    let web = GroupWish {
        name: "web".into(),
        dev: "eth1".into(),
        policy: "latency".into(),
        queues: GroupQueues::Count(2),
        cpus: None,
        weight: None,
        context: false,
        flows: vec![Flow::Program("nginx".into()), Flow::Match { flow: "tcp4".into(), fields }],
        by: ConfiguredBy::Unknown,
    };
    let found = |port| {
        program_cpus(
            &s,
            std::slice::from_ref(&of_group),
            std::slice::from_ref(&web),
            &[listening("0.0.0.0", port, "0-31")],
        )
    };
    assert_eq!(found("81"), []);
    let entry = found("80").swap_remove(0);
    assert_eq!((entry.proposed_for[0].group.as_deref(), entry.proposed_for_many), (Some("web"), None));
}
