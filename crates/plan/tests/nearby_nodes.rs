//! Hosts with several nodes per socket: when queues get CPUs of a nearby node, and what the plan reports about it.

use ringwise_knob::{Address, MoveCause, Reason, VectorName};
use ringwise_model::{CpuSet, Fact, FarNode, Goal, Intent, NodeId, Smt, Snapshot};
use ringwise_plan::{Obstacle, Plan, plan};
use ringwise_testkit::machines::{self, NicSpec, Vectors};
use ringwise_testkit::topo::CpuSpec;

/// One socket with two nodes. Node 0 has CPUs 0-7, node 1 has 8-15; a node has two L3 caches of two cores with two threads.
fn host(nics: Vec<NicSpec>) -> Snapshot {
    let cpu = CpuSpec { nodes: 2, l3s: 2, ..CpuSpec::flat(2, 2) };
    machines::host("db1", cpu, nics).snapshot()
}

fn ice(name: &str, queues: u32) -> NicSpec {
    NicSpec::new(name, "ice", Some(0), queues, 16)
}

/// Pins the interrupts of an interface to these CPUs.
fn pin(s: &mut Snapshot, dev: &str, cpus: &[u32]) {
    let nic = s.nics.iter_mut().find(|n| n.name() == dev).expect("there");
    assert_eq!(nic.queue_vectors().count(), cpus.len());
    for (v, cpu) in nic.vectors.iter_mut().filter(|v| v.is_queue()).zip(cpus) {
        let cpu: CpuSet = cpu.to_string().parse().expect("a CPU");
        (v.asked, v.effective) = (Fact::Known(cpu.clone()), Fact::Known(cpu));
    }
}

fn rpc() -> Intent {
    Intent { goal: Goal::Rpc, ..Intent::default() }
}

fn ok(s: &Snapshot, intent: &Intent) -> Plan {
    plan(s, intent, &[]).expect("can be planned")
}

fn cpus(p: &Plan, dev: &str) -> Vec<u32> {
    let l = p.layout.iter().find(|l| l.dev == dev).expect("planned");
    l.queues.iter().filter_map(|q| q.cpu.map(|c| c.0)).collect()
}

fn reason(p: &Plan, dev: &str, queue: u32) -> Option<Reason> {
    let at = Address::IrqCpus { dev: dev.into(), of: VectorName::Rx(queue) };
    p.steps.iter().find(|s| s.setting.address().as_ref() == Some(&at)).map(|s| s.reason.clone())
}

/// The order of docs/plan.md, "More queues than cores".
#[test]
fn queues_beyond_the_local_cpus_that_smt_allows() {
    let s = host(vec![ice("eth0", 6)]);
    let layout = |intent: Intent| {
        let mut cpus = cpus(&ok(&s, &intent), "eth0");
        cpus.sort();
        cpus
    };
    let on_first_threads = |cpus: &[u32]| cpus.iter().all(|c| c % 2 == 0);
    // One thread per core: the queues beyond the local cores go to the other node, and local second threads stay idle.
    let last = layout(rpc());
    assert_eq!((&last[..4], last[4..].iter().all(|c| *c >= 8)), (&[0, 2, 4, 6][..], true));
    assert!(on_first_threads(&last));
    let never = layout(Intent { far_node: Some(FarNode::Never), ..rpc() });
    assert!(never.iter().all(|c| *c < 8) && on_first_threads(&never), "{never:?}");
    let all = layout(Intent { smt: Some(Smt::All), ..rpc() });
    let mut once = all.clone();
    once.dedup();
    assert!(all.iter().all(|c| *c < 8) && once == all, "{all:?}");
    // With all threads, the other node follows when each of them has a queue.
    let s = host(vec![ice("eth0", 10)]);
    let far = cpus(&ok(&s, &Intent { smt: Some(Smt::All), ..rpc() }), "eth0").into_iter().filter(|c| *c >= 8).count();
    assert_eq!(far, 2);
}

#[test]
fn a_cpu_that_another_interface_gets_is_the_reason() {
    let mut s = host(vec![ice("eth0", 4), ice("eth1", 2)]);
    pin(&mut s, "eth0", &[0, 2, 4, 6]);
    pin(&mut s, "eth1", &[1, 3]);
    let p = ok(&s, &rpc());
    let at = cpus(&p, "eth0");
    let moved: Vec<u32> = (0..4).filter(|q| at[*q as usize] >= 8).collect();
    assert!(!moved.is_empty(), "{at:?}");
    let why = Reason::CpuOfOtherInterface { other: "eth1".into(), node: Some(NodeId(1)) };
    for q in &moved {
        assert_eq!(reason(&p, "eth0", *q), Some(why.clone()), "queue {q}");
    }
    assert_eq!(
        why.to_string(),
        "eth1 gets its CPU, and no other local CPU that --smt allows is free: the planned CPU is on remote node 1"
    );
    // Alone, it keeps its CPUs.
    assert_eq!(cpus(&ok(&s, &Intent { devs: vec!["eth0".into()], ..rpc() }), "eth0"), [0, 2, 4, 6]);
    // The same for interrupts that may move among CPUs.
    let all: CpuSet = "0-15".parse().expect("a list");
    s.nics[0].vectors.iter_mut().for_each(|v| v.asked = Fact::Known(all.clone()));
    let p = ok(&s, &rpc());
    for q in moved {
        let why = reason(&p, "eth0", q);
        let cause = Some(MoveCause::CpuOfOtherInterface);
        assert!(matches!(&why, Some(Reason::FreeToMove { moved, .. }) if *moved == cause), "queue {q}: {why:?}");
    }
}

/// Two interrupts with two queues each are on two cores of one cache, and the other cache of the node has none.
#[test]
fn queues_that_share_an_interrupt_count_once_for_a_cache() {
    let mut s = host(vec![NicSpec { vectors: Vectors::Twos, ..ice("eth0", 4) }]);
    pin(&mut s, "eth0", &[0, 2]);
    let p = ok(&s, &rpc());
    assert_eq!(cpus(&p, "eth0"), [0, 0, 4, 4]);
    assert_eq!(reason(&p, "eth0", 2), Some(Reason::CrowdedCache { dev: "eth0".into() }));
}

#[test]
fn an_unread_number_of_queues_is_reported_if_the_goal_needs_another() {
    let unread = |queues, intent: &Intent| {
        let mut s = host(vec![ice("eth0", queues)]);
        s.nics[0].channels = Fact::unknown("channels-get eth0", "not in this capture");
        let p = ok(&s, intent);
        p.refused.into_iter().find(|r| r.what == "eth0 channels").map(|r| (r.why, r.needed))
    };
    let (why, needed) = unread(6, &rpc()).expect("six queues on four cores");
    assert!(matches!(why, Obstacle::NotReadableStays { .. }) && !needed, "{why:?}");
    assert!(unread(6, &Intent { allow_disruption: true, ..rpc() }).is_some());
    assert_eq!(unread(4, &rpc()), None);
    assert_eq!(unread(6, &Intent::default()), None);
    // A number that the user requests is needed.
    let (why, needed) = unread(6, &Intent { queues: Some(4), ..rpc() }).expect("requested");
    assert!(matches!(why, Obstacle::ChannelCountsUnread { .. }) && needed, "{why:?}");
}

/// Interrupts of all queues move to two nodes: the cost names every option that keeps them local.
#[test]
fn the_cost_of_a_nearby_node_names_the_options_that_prevent_it() {
    let mut s = host(vec![ice("eth0", 6)]);
    pin(&mut s, "eth0", &[0, 1, 2, 3, 4, 5]);
    let cost = |intent: &Intent| {
        let p = ok(&s, intent);
        p.expected.into_iter().find(|e| e.text.starts_with("interrupts on a remote node")).and_then(|e| e.worth)
    };
    let rpc_cost = cost(&rpc()).expect("six queues on four cores");
    assert!(rpc_cost.contains("--far-node never") && rpc_cost.contains("--smt all"), "{rpc_cost}");
    // Both options do.
    assert_eq!(cost(&Intent { smt: Some(Smt::All), ..rpc() }), None);
    assert_eq!(cost(&Intent { far_node: Some(FarNode::Never), ..rpc() }), None);
}

#[test]
fn cpus_for_programs_of_several_nodes_name_no_single_one() {
    let p = ok(&host(vec![ice("eth0", 6)]), &rpc());
    let [program] = p.programs.as_slice() else { panic!("{:?}", p.programs) };
    assert!(program.why.starts_with("the CPUs of its interrupts, on several nodes: "), "{}", program.why);
    let of = |cpus: &CpuSet, memory: &str| format!("[Service]\nCPUAffinity={cpus}\n{memory}");
    assert_eq!(program.drop_in, of(&program.cpus, "NUMAPolicy=local\n"));
    let node: CpuSet = "0-7".parse().expect("a list");
    assert_eq!(program.node_drop_in.as_deref(), Some(of(&node, "NUMAPolicy=preferred\nNUMAMask=0\n").as_str()));
    assert_eq!(program.node_cpus, Some(node));
    // On one node, in two caches.
    let mut s = host(vec![ice("eth0", 2)]);
    let why = |s: &Snapshot| ok(s, &rpc()).programs[0].why.clone();
    assert!(why(&s).starts_with("the CPUs of its interrupts, in several L3 caches: "), "{}", why(&s));
    // Without a known cache, none is named.
    s.topology.cpus.values_mut().for_each(|c| c.l3 = Fact::unknown("cache", "not in this capture"));
    assert!(why(&s).starts_with("the CPUs of its interrupts: ") && !why(&s).contains("L3"), "{}", why(&s));
}

/// With `--smt all` the interrupts use every CPU of the node, which is half of the host: other programs get these CPUs too.
#[test]
fn interrupts_on_every_cpu_of_the_node_limit_other_programs_to_it() {
    let p = ok(&host(vec![ice("eth0", 8)]), &Intent { smt: Some(Smt::All), ..rpc() });
    let [program] = p.programs.as_slice() else { panic!("{:?}", p.programs) };
    let node: CpuSet = "0-7".parse().expect("a list");
    assert_eq!((&program.cpus, program.node_cpus.as_ref()), (&node, Some(&node)));
    assert_eq!(program.node_drop_in.as_ref(), Some(&program.drop_in));
    assert_eq!(program.drop_in, "[Service]\nCPUAffinity=0-7\nNUMAPolicy=preferred\nNUMAMask=0\n");
}

#[test]
fn a_drop_in_does_not_list_every_cpu() {
    let nic = NicSpec::new("eth0", "ena", None, 4, 8);
    let s = machines::host("guest", CpuSpec::flat(4, 2), vec![nic]).snapshot();
    let p = ok(&s, &rpc());
    let [program] = p.programs.as_slice() else { panic!("{:?}", p.programs) };
    assert_eq!((&program.node_cpus, &program.node_drop_in), (&None, &None));
    assert_eq!(program.drop_in, "[Service]\nCPUAffinity=0,2,4,6\n");
}
