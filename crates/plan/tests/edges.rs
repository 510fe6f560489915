//! Unusual hosts: unknown values, earlier refusals, devices that programs use.

use std::collections::BTreeSet;

use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{Address, Learned, Setting, VectorName};
use ringwise_model::{
    Confidence, CpuId, CpuSet, Fact, FarNode, Goal, IfIndex, Intent, NicKind, NodeId, Role, Smt, Snapshot, User,
};
use ringwise_plan::{NotPossible, Obstacle, Plan, Refusal, plan, score};
use ringwise_testkit::machines::{self, HostSpec, Irqs, NicSpec, Vectors};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::CpuSpec;

fn set(s: &str) -> CpuSet {
    s.parse().expect("a list")
}

/// Two nodes of four cores with two threads.
fn host(nics: Vec<NicSpec>) -> Snapshot {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    machines::host("edge3", cpu, nics).snapshot()
}

fn igb(name: &str, node: u32, queues: u32) -> NicSpec {
    NicSpec::new(name, "igb", Some(node), queues, 8)
}

fn ok(s: &Snapshot, intent: &Intent) -> Plan {
    plan(s, intent, &[]).expect("can be planned")
}

fn cpus(p: &Plan, dev: &str) -> Vec<Option<u32>> {
    let l = p.layout.iter().find(|l| l.dev == dev).expect("planned");
    l.queues.iter().map(|q| q.cpu.map(|c| c.0)).collect()
}

fn learned(s: &Snapshot, asked: Setting, what: LearnedWrite) -> Learned {
    let nic = s.nic("eth1").expect("there");
    Learned {
        device: nic.dev.clone(),
        driver: nic.driver.known().cloned(),
        kernel: "6.12.48".into(),
        address: asked.address().expect("known"),
        asked,
        what,
        unix_time: 1,
    }
}

#[test]
fn other_interrupts_are_placed_around_a_refused_one() {
    let s = host(vec![NicSpec { irqs: Irqs::Round, ..igb("eth1", 0, 4) }]);
    let asked = Setting::IrqCpus { dev: "eth1".into(), of: VectorName::Rx(1), cpus: set("2"), on: None };
    let l = learned(&s, asked, LearnedWrite::Refused { errno: 1, words: "Operation not permitted".into() });
    let p = plan(&s, &Intent::default(), std::slice::from_ref(&l)).expect("can be planned");
    // Queue 1 was found on CPU 1 and stays: the rest takes the three other cores, and queue 2 is on one of them.
    assert_eq!(cpus(&p, "eth1"), [Some(4), Some(1), Some(2), Some(6)]);
    assert_eq!(p.refused.len(), 1);
    assert_eq!(p.refused[0].why, Obstacle::Learned { what: l.what.clone() });
    assert!(!p.target.iter().any(|t| t.address() == Some(l.address.clone())));
    // Another kernel: the setting is tried again.
    let other = Learned { kernel: "6.1.0".into(), ..l };
    assert!(plan(&s, &Intent::default(), &[other]).expect("can be planned").refused.is_empty());
}

/// An interrupt that may move and is on another CPU than planned: the plan explains the pin and the move.
#[test]
fn a_move_of_a_free_interrupt_has_a_reason_of_its_own() {
    let mut s = host(vec![NicSpec { irqs: Irqs::Round, ..igb("eth1", 0, 8) }]);
    s.nics[0].vectors.iter_mut().for_each(|v| v.asked = Fact::Known(set("0-7")));
    let i = Intent { reserve: set("0"), ..Intent::default() };
    let p = ok(&s, &i);
    let causes: BTreeSet<String> = p
        .steps
        .iter()
        .filter(|st| matches!(&st.setting, Setting::IrqCpus { of: VectorName::Rx(0), .. }))
        .map(|st| st.reason.to_string())
        .collect();
    let want = "may run on any of CPUs 0-7: pin it to one; the CPU that it is on now is excluded from queue interrupts";
    assert_eq!(causes, BTreeSet::from([want.to_string()]));
}

#[test]
fn an_ignored_mask_is_not_written_again() {
    let mut s = host(vec![igb("eth1", 0, 4)]);
    let first = ok(&s, &Intent::default());
    let asked = first.target.iter().find(|t| matches!(t, Setting::XpsCpus { queue: 2, .. })).cloned().expect("XPS");
    let got = Setting::XpsCpus { dev: "eth1".into(), queue: 2, cpus: CpuSet::new() };
    let l = learned(&s, asked.clone(), LearnedWrite::Ignored { got });
    let rest: Vec<Setting> = first.target.iter().filter(|t| **t != asked).cloned().collect();
    s = project(&s, &rest);
    let p = plan(&s, &Intent::default(), &[l]).expect("can be planned");
    assert!(p.steps.is_empty(), "{:?}", p.steps);
    assert!(matches!(&p.refused[0].why, Obstacle::Learned { what: LearnedWrite::Ignored { .. } }), "{:?}", p.refused);
}

#[test]
fn unreadable_settings_are_not_written() {
    let mut s = host(vec![NicSpec { irqs: Irqs::Round, ..igb("eth1", 0, 4) }]);
    s.nics[0].vectors[2].asked = Fact::unknown("/proc/irq/32/smp_affinity_list", "needs root");
    s.nics[0].tx_queues[3].xps_cpus = Fact::unknown("tx-3/xps_cpus", "needs root");
    s.host.rps_sock_flow_entries = Fact::unknown("rps_sock_flow_entries", "not in this capture");
    let p = ok(&s, &Intent { goal: Goal::Rpc, ..Intent::default() });
    let unread: Vec<_> = p.refused.iter().filter(|r| r.what != "eth1 moderation").collect();
    let what: Vec<&str> = unread.iter().map(|r| r.what.as_str()).collect();
    assert_eq!(what, ["eth1 interrupt CPU rx-2", "eth1 tx-3 xps_cpus", "net.core.rps_sock_flow_entries"]);
    let why = |r: &NotPossible| match &r.why {
        Obstacle::NotReadable { unread } => unread.why.clone(),
        other => panic!("{other:?}"),
    };
    let why: Vec<String> = unread.into_iter().map(why).collect();
    assert_eq!(why, ["needs root", "needs root", "not in this capture"]);
    let reach = |a: &Address| p.target.iter().any(|t| t.address().as_ref() == Some(a));
    assert!(!reach(&Address::RfsEntries) && !reach(&Address::XpsCpus { dev: "eth1".into(), queue: 3 }));
}

#[test]
fn an_unknown_node_is_not_node_0() {
    let mut s = host(vec![NicSpec { node: None, ..igb("eth1", 0, 2) }]);
    let p = ok(&s, &Intent::default());
    assert!(p.warnings.iter().any(|w| w.contains("node is unknown")), "{:?}", p.warnings);
    assert_eq!(p.layout[0].node, None);
    assert!(p.layout[0].queues.iter().all(|q| q.far.is_none()));
    // One queue on each L3 domain, which is one per node: no node is preferred.
    assert_eq!(cpus(&p, "eth1"), [Some(0), Some(8)]);
    // The device's own list of local CPUs is used if it is known.
    s.nics[0].local_cpus = Fact::Known(set("8-15"));
    assert_eq!(cpus(&ok(&s, &Intent::default()), "eth1"), [Some(8), Some(10)]);
}

#[test]
fn a_node_without_cpus_uses_the_nearest_cpus() {
    let mut s = host(vec![igb("eth1", 0, 4)]);
    if let Fact::Known(nodes) = &mut s.topology.nodes {
        let far = [(NodeId(0), 21), (NodeId(1), 15), (NodeId(7), 10)].into();
        nodes.insert(
            NodeId(7),
            ringwise_model::Node {
                id: NodeId(7),
                cpus: CpuSet::new(),
                distances: Fact::Known(far),
                memory: Fact::Absent,
            },
        );
    }
    s.nics[0].node = Fact::Known(NodeId(7));
    assert_eq!(cpus(&ok(&s, &Intent::default()), "eth1"), [Some(8), Some(10), Some(12), Some(14)]);
}

#[test]
fn remote_cpus_only_if_no_nearby_cpu_is_left() {
    let s = host(vec![igb("eth1", 0, 4)]);
    let away = Intent { exclude_cpus: set("0-7"), ..Intent::default() };
    let p = ok(&s, &away);
    assert_eq!(cpus(&p, "eth1"), [Some(8), Some(10), Some(12), Some(14)]);
    assert!(p.warnings.iter().any(|w| w.contains("no nearby CPU is left")), "{:?}", p.warnings);
    let never = Intent { far_node: Some(FarNode::Never), ..away };
    let refusal = plan(&s, &never, &[]).expect_err("nothing near");
    assert_eq!(refusal.kind(), "no_near_candidates");
    assert!(refusal.to_string().contains("local CPUs are 0-7"), "{refusal}");
    // Twelve queues stay on the local node, with several queues per core, unless the intent permits otherwise.
    let s = host(vec![NicSpec::new("eth1", "ice", Some(0), 12, 12)]);
    assert!(ok(&s, &Intent::default()).layout[0].queues.iter().all(|q| q.far == Some(false)));
    let p = ok(&s, &Intent { far_node: Some(FarNode::Ok), ..Intent::default() });
    assert_eq!(p.layout[0].queues.iter().filter(|q| q.far == Some(true)).count(), 4);
    assert_eq!(p.doubled_cores.len(), 4);
}

#[test]
fn isolated_cpus_only_if_they_are_named() {
    let mut s = host(vec![igb("eth1", 0, 2)]);
    s.topology.isolated = Fact::Known(set("0-3"));
    assert_eq!(cpus(&ok(&s, &Intent::default()), "eth1"), [Some(4), Some(6)]);
    let p = ok(&s, &Intent { cpus: Some(set("0-3")), ..Intent::default() });
    assert_eq!(cpus(&p, "eth1"), [Some(0), Some(2)]);
    assert!(p.warnings.iter().any(|w| w.contains("isolated")), "{:?}", p.warnings);
}

#[test]
fn a_control_interrupt_on_an_isolated_cpu_is_reported_and_not_moved() {
    let mut s = host(vec![igb("eth1", 0, 2)]);
    s.topology.isolated = Fact::Known(set("0"));
    let p = ok(&s, &Intent::default());
    assert!(p.warnings.iter().any(|w| w.contains("serves no queue")), "{:?}", p.warnings);
    let control = |t: &Setting| matches!(t, Setting::IrqCpus { of: VectorName::Control(_), .. });
    assert!(!p.target.iter().any(control));
}

#[test]
fn down_software_and_driverless_devices() {
    let mut s = host(vec![igb("eth1", 0, 2), NicSpec { down: true, ..igb("eth2", 0, 2) }, igb("vlan7", 0, 1)]);
    s.nics[2].kind = NicKind::Software { kind: "vlan".into() };
    s.nics[2].lower = vec![IfIndex(2)];
    let p = ok(&s, &Intent::default());
    assert_eq!(p.considered, ["eth1"]);
    let alone: Vec<(&str, &Obstacle)> = p.left_alone.iter().map(|l| (l.dev.as_str(), &l.why)).collect();
    let vlan = Obstacle::Software { kind: "vlan".into() };
    assert_eq!(alone, [("eth2", &Obstacle::LinkDown), ("vlan7", &vlan)]);
    // A named interface is planned even while its link is down, if it has interrupts.
    let named = |dev: &str| Intent { devs: vec![dev.into()], ..Intent::default() };
    assert_eq!(ok(&s, &named("eth2")).considered, ["eth2"]);
    let r = plan(&s, &named("vlan7"), &[]).expect_err("no queues");
    let why = Obstacle::LiesOn { obstacle: Box::new(vlan), below: vec!["eth1".into()] };
    assert_eq!(r, Refusal::NotTunable { dev: "vlan7".into(), why: Box::new(why) });
    s.nics[1].vectors.iter_mut().for_each(|v| v.role = Role::Idle);
    let r = plan(&s, &named("eth2"), &[]).expect_err("no interrupts");
    assert_eq!(r, Refusal::NotTunable { dev: "eth2".into(), why: Box::new(Obstacle::LinkDownNoInterrupts) });
    s.nics[0].driver = Fact::Absent;
    let r = plan(&s, &Intent::default(), &[]).expect_err("nothing");
    assert!(matches!(&r, Refusal::NothingTunable { left_alone } if left_alone.len() == 3), "{r}");
}

#[test]
fn channels_in_use_are_not_changed() {
    let of_device = [User::Rdma { device: "mlx5_0".into() }, User::Ovs];
    for user in of_device.into_iter().chain(crate::held_queues::holders(3)) {
        let s = host(vec![NicSpec { users: vec![user.clone()], ..igb("eth1", 0, 8) }]);
        // A goal leaves them alone; a number that the user wants is reported as not possible.
        let p = ok(&s, &Intent { goal: Goal::Rpc, reserve: set("0"), allow_disruption: true, ..Intent::default() });
        let of_channels = |r: &NotPossible| matches!(r.address, Some(Address::Channels { .. }));
        assert!(!p.interrupts_traffic() && !p.refused.iter().any(of_channels));
        assert_eq!(p.left_alone.len(), 1);
        assert_eq!(p.left_alone[0].why, Obstacle::ChannelsInUse { by: vec![user.clone()] });
        let p = ok(&s, &Intent { queues: Some(4), allow_disruption: true, ..Intent::default() });
        assert!(!p.interrupts_traffic() && p.left_alone.is_empty());
        let not: Vec<(&Obstacle, bool)> = p.refused.iter().map(|r| (&r.why, r.needed)).collect();
        assert_eq!(not[0], (&Obstacle::InUse { by: vec![user] }, true));
    }
    let user = User::Userspace { driver: "vfio-pci".into() };
    let s = host(vec![igb("eth1", 0, 8), NicSpec { users: vec![user], ..igb("eth2", 0, 8) }]);
    assert_eq!(ok(&s, &Intent::default()).considered, ["eth1"]);
}

/// With one thread of a core reserved, an interrupt on the other one slows the reserved program down.
#[test]
fn half_a_reserved_core_is_reported() {
    let s = host(vec![igb("eth1", 0, 8)]);
    let threads = s.topology.beside(&set("0")).union(&set("0")).to_string();
    let warned = |reserve: &str| {
        let p =
            ok(&s, &Intent { goal: Goal::Balanced, smt: Some(Smt::All), reserve: set(reserve), ..Intent::default() });
        p.warnings.iter().any(|w| w.contains(&format!("--reserve {threads}")))
    };
    assert!(warned("0") && !warned(&threads));
}

#[test]
fn another_number_of_queues_needs_permission() {
    let s = host(vec![igb("eth1", 0, 8)]);
    let asked = Intent { queues: Some(2), reserve: set("0"), ..Intent::default() };
    let p = ok(&s, &asked);
    assert!(!p.interrupts_traffic());
    assert_eq!(p.left_out[0].command, "ringwise plan --reserve 0 --queues 2 --allow-disruption");
    assert_eq!(p.left_out[0].outage, "link down about 3 s");
    let p = ok(&s, &Intent { allow_disruption: true, ..asked });
    assert!(p.left_out.is_empty() && p.interrupts_traffic());
    assert_eq!(cpus(&p, "eth1"), [Some(2), Some(4)]);
    // The plan sets both directions, because it is unknown whether they will share a vector.
    let of = |of| p.steps.iter().any(|s| s.setting.address() == Some(Address::IrqCpus { dev: "eth1".into(), of }));
    assert!(of(VectorName::Rx(1)) && of(VectorName::Tx(1)) && !of(VectorName::Rx(2)));
    // A device without channel counts that can be set is reported.
    let s = host(vec![NicSpec::new("eth1", "e1000e", Some(0), 1, 0)]);
    let p = ok(&s, &Intent { queues: Some(2), ..Intent::default() });
    assert!(p.refused.iter().any(|r| r.what == "eth1 channels" && r.needed), "{:?}", p.refused);
}

#[test]
fn names_do_not_change_the_layout() {
    let s = host(vec![igb("eth1", 0, 4), igb("eth2", 0, 4)]);
    let mut other = s.clone();
    other.nics[0].dev.name = "zeta".into();
    other.nics[1].dev.name = "alpha".into();
    let (a, b) = (ok(&s, &Intent::default()), ok(&other, &Intent::default()));
    assert_eq!(cpus(&a, "eth1"), cpus(&b, "zeta"));
    assert_eq!(cpus(&a, "eth2"), cpus(&b, "alpha"));
}

#[test]
fn interrupts_whose_queue_is_unknown() {
    let mut s = host(vec![igb("eth1", 0, 2)]);
    s.nics[0].vectors.iter_mut().for_each(|v| v.confidence = Confidence::None);
    let p = ok(&s, &Intent::default());
    assert!(p.steps.is_empty(), "{:?}", p.steps);
    let text = "eth1: the queues of 2 interrupts are unknown; they stay unchanged";
    assert!(p.warnings.iter().any(|w| w == text), "{:?}", p.warnings);
    s.nics[0].vectors.retain(|v| v.rx() != [0]);
    let text = "eth1: the queue of 1 interrupt is unknown; it stays unchanged";
    assert!(ok(&s, &Intent::default()).warnings.iter().any(|w| w == text));
    assert_eq!(cpus(&p, "eth1"), [None, None]);
    // A single queue without a known interrupt still gets help from the CPUs of its node.
    let s = host(vec![NicSpec { vectors: Vectors::None, ..NicSpec::new("eth1", "hv_netvsc", Some(1), 1, 0) }]);
    let p = ok(&s, &Intent::default());
    assert_eq!(p.target, [Setting::RpsCpus { dev: "eth1".into(), queue: 0, cpus: set("8-15") }]);
}

#[test]
fn the_rfs_table_of_the_host_is_shared() {
    let mut s = host(vec![
        NicSpec { rps_flow_cnt: 4096, ..igb("eth1", 0, 2) },
        NicSpec { rps_flow_cnt: 512, ..igb("eth2", 1, 2) },
    ]);
    s.host.rps_sock_flow_entries = Fact::Known(65_536);
    let one = |goal| Intent { goal, devs: vec!["eth1".into()], ..Intent::default() };
    let entries = |p: &Plan| {
        p.target.iter().find_map(|t| match t {
            Setting::RfsEntries { entries } => Some(*entries),
            _ => None,
        })
    };
    assert_eq!(entries(&ok(&s, &one(Goal::Forward))), None);
    assert_eq!(entries(&ok(&s, &one(Goal::Stream))), Some(65_536));
    assert_eq!(entries(&ok(&s, &Intent { goal: Goal::Forward, ..Intent::default() })), Some(0));
    assert_eq!(entries(&ok(&s, &Intent { goal: Goal::Stream, ..Intent::default() })), Some(8_192));
    assert_eq!(entries(&ok(&s, &Intent { goal: Goal::Rpc, ..Intent::default() })), Some(65_536));
    // With different goals of the interfaces, the table is as large as the most demanding one needs, and a larger table
    // that exists stays where one of them asks for "at least".
    let goals = |a, b| Intent { dev_goals: [("eth1".into(), a), ("eth2".into(), b)].into(), ..Intent::default() };
    for (a, b) in [(Goal::Stream, Goal::Rpc), (Goal::Rpc, Goal::Stream)] {
        s.host.rps_sock_flow_entries = Fact::Known(65_536);
        assert_eq!(entries(&ok(&s, &goals(a, b))), Some(65_536), "{a} {b}");
        s.host.rps_sock_flow_entries = Fact::Known(0);
        assert_eq!(entries(&ok(&s, &goals(a, b))), Some(32_768), "{a} {b}");
    }
}

/// The text that a user copies into a unit: the CPUs of the queues, and the memory policy.
#[test]
fn the_drop_in_of_programs_names_cpus_and_memory() {
    let drop_in = |s: &Snapshot| {
        let p = ok(s, &Intent { goal: Goal::Rpc, ..Intent::default() });
        let [program] = p.programs.as_slice() else { panic!("{:?}", p.programs) };
        program.drop_in.clone()
    };
    let near = "[Service]\nCPUAffinity=0,2,4,6\nNUMAPolicy=preferred\nNUMAMask=0\n";
    assert_eq!(drop_in(&host(vec![igb("eth1", 0, 4)])), near);
    // Queues on both nodes: memory of the node where a thread runs.
    let both = host(vec![NicSpec { node: None, ..igb("eth1", 0, 2) }]);
    assert_eq!(drop_in(&both), "[Service]\nCPUAffinity=0,8\nNUMAPolicy=local\n");
    // A device without a node gets no node, even if its queues are on one.
    let intent = Intent { goal: Goal::Rpc, cpus: Some(set("0-7")), ..Intent::default() };
    let program = ok(&both, &intent).programs.swap_remove(0);
    assert_eq!((program.drop_in.as_str(), program.node_cpus), ("[Service]\nCPUAffinity=0,2\nNUMAPolicy=local\n", None));
    // With one node there is no memory policy to choose.
    let nics = vec![NicSpec::new("eth1", "igb", Some(0), 2, 8)];
    let one = ringwise_testkit::machines::host("one", CpuSpec::flat(4, 1), nics).snapshot();
    assert_eq!(drop_in(&one), "[Service]\nCPUAffinity=0-1\n");
}

#[test]
fn the_score_of_a_layout() {
    let s = host(vec![igb("eth1", 0, 8), igb("eth2", 1, 8)]);
    let before = score(&s);
    assert_eq!((before.queues, before.far, before.stacked, before.smt_shared), (16, 8, 16, 0));
    let p = ok(&s, &Intent::default());
    let after = score(&project(&s, &p.target));
    assert_eq!((after.far, after.stacked, after.smt_shared), (0, 0, 16));
    let may = Intent { goal: Goal::Forward, allow_disruption: true, ..Intent::default() };
    let threads = score(&project(&s, &ok(&s, &may).target));
    assert_eq!((threads.queues, threads.far, threads.stacked, threads.smt_shared), (16, 0, 0, 16));
    let may = Intent { smt: Some(Smt::OnePerCore), ..may };
    let cores = score(&project(&s, &ok(&s, &may).target));
    assert_eq!((cores.queues, cores.far, cores.stacked, cores.smt_shared), (8, 0, 0, 0));
}

#[test]
fn the_expected_effect_in_numbers() {
    let mut s = host(vec![igb("eth1", 0, 8)]);
    // As in the example of an untuned host: 4 on CPU 0, 2 on the remote CPU 9, one each on 2 and 3.
    for (v, cpu) in s.nics[0].vectors.iter_mut().zip([0, 0, 0, 0, 9, 9, 2, 3]) {
        v.effective = Fact::Known(CpuSet::one(CpuId(cpu)));
    }
    let p = ok(&s, &Intent::default());
    let texts: Vec<&str> = p.expected.iter().map(|e| e.text.as_str()).collect();
    assert!(texts.contains(&"busiest CPU takes 13 % of eth1's queues instead of 50 %"), "{texts:?}");
    assert!(texts.contains(&"interrupts on a remote node: 0 of 8 instead of 2"), "{texts:?}");
    // No interrupt occurred yet: the current CPUs are unknown and reported as unknown.
    let s = host(vec![NicSpec { irqs: Irqs::NoneYet, ..igb("eth1", 0, 8) }]);
    let p = ok(&s, &Intent::default());
    let busiest = p.expected.iter().find(|e| e.unit == "percent of queues").expect("reported");
    assert_eq!((busiest.before, busiest.after), (None, Some(12.5)));
    assert!(busiest.text.ends_with("unknown"));
}

#[test]
fn only_members_of_the_same_bond_are_reported_as_missing() {
    let in_bond = |name: &str, bond| NicSpec { master: Some(bond), ..igb(name, 0, 4) };
    let nics = vec![in_bond("eth1", 20), in_bond("eth2", 20), in_bond("eth3", 21), in_bond("eth4", 21)];
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    let bonds = vec![20, 21];
    let s = HostSpec { bonds, ..machines::host("edge3", cpu, nics) }.snapshot();
    let p = ok(&s, &Intent { devs: vec!["eth1".into()], ..Intent::default() });
    let about: Vec<&String> = p.warnings.iter().filter(|w| w.contains("not in this plan")).collect();
    let [one] = about[..] else { panic!("{about:?}") };
    assert!(one.contains("eth2 is not in this plan") && !one.contains("eth3"), "{one}");
}

/// `--queues` is for all interfaces of a command, so a number that suits only some of them comes with their names.
#[test]
fn a_number_of_queues_for_some_interfaces_names_them() {
    let warning = |nics: Vec<NicSpec>| {
        let p = ok(&host(nics), &Intent { reserve: set("8-9,12-13"), ..Intent::default() });
        p.warnings.into_iter().filter(|w| w.contains("queues share CPUs")).collect::<Vec<_>>()
    };
    let many = |name: &str, node| NicSpec::new(name, "mqnic", Some(node), 16, 16);
    let both = warning(vec![many("eth1", 0), many("eth2", 1)]);
    assert!(
        both.iter()
            .any(|w| w.contains("(plan only eth1, so that no others change, and add --queues 8 --allow-disruption)")),
        "{both:?}"
    );
    assert!(
        both.iter()
            .any(|w| w.contains("(plan only eth2, so that no others change, and add --queues 4 --allow-disruption)")),
        "{both:?}"
    );
    let alike = warning(vec![many("eth1", 0), many("eth2", 0)]);
    assert!(alike.iter().all(|w| w.contains("(add --queues 8 --allow-disruption)")) && alike.len() == 1, "{alike:?}");
}

/// The goal proposes pause frames off on eth0 alone. The command for it names eth0 if a command without a name would also
/// change the number of queues of eth1.
#[test]
fn a_proposed_change_names_its_interface_beside_changes_of_others() {
    let pause = |n: &mut ringwise_model::Nic| {
        n.pause = Fact::Known(ringwise_model::Pause { autoneg: Some(true), rx: Some(true), tx: Some(true) });
    };
    let commands = |eth1_queues| {
        let nics =
            vec![NicSpec::new("eth0", "igb", Some(0), 4, 4), NicSpec::new("eth1", "mqnic", Some(0), eth1_queues, 16)];
        let mut s = host(nics);
        s.nics.iter_mut().filter(|n| n.name() == "eth0").for_each(pause);
        s.nics.iter_mut().filter(|n| n.name() == "eth1").for_each(|n| n.pause = Fact::Absent);
        let p = ok(&s, &Intent { goal: Goal::Forward, ..Intent::default() });
        p.left_out.into_iter().map(|l| (l.setting.address().unwrap().dev().unwrap().to_string(), l.command)).collect()
    };
    let own = |dev: &str| (dev.to_string(), format!("ringwise plan {dev} --goal forward --allow-disruption"));
    let beside: BTreeSet<(String, String)> = commands(16);
    assert_eq!(beside, [own("eth0"), own("eth1")].into());
    let alone: BTreeSet<(String, String)> = commands(8);
    assert_eq!(alone, [("eth0".into(), "ringwise plan --goal forward --allow-disruption".into())].into());
}

/// Nodes of one socket at a distance of 12: goal forward prefers their idle cores to second threads, unless it must not.
#[test]
fn never_excludes_nodes_of_the_same_socket_too() {
    let cpu = CpuSpec { nodes: 2, ..CpuSpec::flat(4, 2) };
    let s = machines::host("edge3", cpu, vec![NicSpec::new("eth1", "ice", Some(0), 8, 8)]).snapshot();
    let far = |far_node| {
        let p = ok(&s, &Intent { goal: Goal::Forward, far_node, ..Intent::default() });
        p.layout[0].queues.iter().filter(|q| q.far == Some(true)).count()
    };
    assert_eq!((far(None), far(Some(FarNode::Last)), far(Some(FarNode::Never))), (4, 4, 0));
}

/// What the warning proposes makes a difference.
#[test]
fn remote_cpus_are_proposed_where_they_help() {
    let s = host(vec![NicSpec::new("eth1", "mqnic", Some(0), 16, 16)]);
    let remote = |goal, far_node| {
        let p = ok(&s, &Intent { goal, far_node, ..Intent::default() });
        let warning = p.warnings.iter().find(|w| w.contains("queues share CPUs")).expect("16 queues, 8 CPUs near");
        (warning.contains("--far-node ok"), p.layout[0].queues.iter().map(|q| q.cpu).collect::<BTreeSet<_>>().len())
    };
    assert_eq!(remote(Goal::Rpc, None), (true, 4));
    assert_eq!(remote(Goal::Rpc, Some(FarNode::Never)), (false, 4));
    assert_eq!(remote(Goal::Rpc, Some(FarNode::Ok)), (false, 8));
    // It takes half of the local cores, and no others.
    assert_eq!(remote(Goal::Latency, None), (false, 2));
    assert_eq!(remote(Goal::Latency, Some(FarNode::Ok)), (false, 2));
}

/// The CPUs of node 1 have queues of eth2, so eth1, whose node is unknown, gets two queues on each CPU of node 0.
#[test]
fn queues_that_share_cpus_because_of_another_interface() {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 1) };
    let nic = |name, node| NicSpec { irqs: Irqs::Round, ..NicSpec::new(name, "igb", node, 8, 8) };
    let s = machines::host("db1", cpu, vec![nic("eth1", None), nic("eth2", Some(1))]).snapshot();
    let plain = |dev: &str| ok(&s, &Intent { devs: vec![dev.into()], ..Intent::default() });
    let s = project(&s, &plain("eth2").target);
    let both = ok(&s, &Intent { goal: Goal::Rpc, ..Intent::default() });
    let used: BTreeSet<Option<u32>> = cpus(&both, "eth1").into_iter().collect();
    assert_eq!(used, [0, 1, 2, 3].map(Some).into());
    let about = |p: &Plan| p.warnings.iter().find(|w| w.starts_with("eth1 (8 queues on")).cloned();
    let warning = about(&both).expect("two queues on each CPU");
    assert!(warning.contains("because the other CPUs have more queues of other interfaces"), "{warning}");
    assert!(warning.ends_with("or plan only eth1 to give each queue a CPU"), "{warning}");
    let worth = both.expected.iter().find_map(|e| e.worth.clone().filter(|_| e.dev.as_deref() == Some("eth1")));
    let spread = "queues of all interfaces together are spread evenly, at most 2 on a CPU instead of 3";
    assert_eq!(worth.as_deref(), Some(spread));
    let alone = ok(&s, &Intent { goal: Goal::Rpc, devs: vec!["eth1".into()], ..Intent::default() });
    assert_eq!((about(&alone), cpus(&alone, "eth1").into_iter().collect::<BTreeSet<_>>().len()), (None, 8));
}
