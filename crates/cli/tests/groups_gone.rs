//! Groups that shrink, change or vanish: what an earlier transaction created for them is removed; manual objects stay.

use crate::common::lay::{Lay, differing};
use ringwise_apply::RunResult;
use ringwise_knob::{Address, Reason};
use ringwise_model::{Action, ConfiguredBy, Fact, Flow, Goal, GroupQueues, GroupWish, Intent, Rules, Snapshot};
use ringwise_plan::Plan;
use ringwise_testkit::sim::{At, SimulatedFault, Times, build};

fn card() -> Snapshot {
    build::host(8, 2).kernel("6.18.15").mqnic("eth0", 0, 8).linked().done()
}

fn group(queues: u32, ports: &[u32]) -> Intent {
    let port = |n: &u32| Flow::Match { flow: "tcp4".into(), fields: [("dst-port".to_string(), n.to_string())].into() };
    let latency = GroupWish {
        name: "latency".into(),
        dev: "eth0".into(),
        policy: "latency".into(),
        queues: GroupQueues::Count(queues),
        cpus: None,
        weight: None,
        context: false,
        flows: ports.iter().map(port).collect(),
        by: ConfiguredBy::File { path: "ringwise.toml".into(), line: 9 },
    };
    Intent { goal: Goal::Mixed, groups: vec![latency], ..Intent::default() }
}

fn mixed() -> Intent {
    Intent { goal: Goal::Mixed, ..Intent::default() }
}

/// Two queues for two ports: context 1, rules 0 and 1.
fn applied_layout() -> Lay {
    applied_layout_on(&card())
}

fn applied_layout_on(s: &Snapshot) -> Lay {
    let lay = Lay::on(s);
    assert_eq!(lay.apply(&group(2, &[443, 53])).verdict, RunResult::Applied);
    assert_eq!((contexts(&lay), rules(&lay)), (vec![1], vec!["0 443 context 1".into(), "1 53 context 1".into()]));
    lay
}

fn contexts(lay: &Lay) -> Vec<u32> {
    let nic = lay.sim.nic("eth0").unwrap();
    nic.rss.known().unwrap().contexts.known().unwrap().keys().copied().collect()
}

/// `0 443 context 1`, `1 53 queue 0`
fn rules(lay: &Lay) -> Vec<String> {
    let nic = lay.sim.nic("eth0").unwrap();
    let to = |r: &ringwise_model::Rule| match (r.context, r.action) {
        (Some(c), _) => format!("context {c}"),
        (None, Action::Queue(q)) => format!("queue {q}"),
        other => panic!("{other:?}"),
    };
    nic.rules.known().unwrap().rules.iter().map(|(at, r)| format!("{at} {} {}", r.fields["dst-port"], to(r))).collect()
}

fn table(lay: &Lay) -> Vec<u32> {
    lay.sim.nic("eth0").unwrap().rss.known().unwrap().table.clone()
}

/// Applies, and checks that a second apply would change nothing.
fn settles(lay: &Lay, i: &Intent) -> Plan {
    let p = lay.plan(i);
    let out = lay.run(&p, false);
    assert_eq!((out.verdict, &out.refused, &out.ignored), (RunResult::Applied, &vec![], &vec![]), "{out:#?}");
    lay.sim.traffic("eth0");
    let again = lay.plan(i);
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
    p
}

fn why<'a>(p: &'a Plan, what: &str) -> (&'a str, &'a Reason) {
    let step = p.steps.iter().find(|s| s.setting.address().is_some_and(|a| a.to_string() == what));
    let step = step.unwrap_or_else(|| panic!("{what}: {:#?}", p.steps));
    (&step.rule, &step.reason)
}

#[test]
fn one_queue_needs_no_context() {
    let lay = applied_layout();
    let before = lay.look();
    let p = settles(&lay, &group(1, &[443, 53]));
    assert_eq!((contexts(&lay), rules(&lay)), (vec![], vec!["0 443 queue 0".to_string(), "1 53 queue 0".into()]));
    assert_eq!(why(&p, "eth0 RSS context 1"), ("R4.06", &Reason::NotNeededByGroup { transaction: 1 }));
    // Rules are removed before the context.
    let place = |what: &str| p.steps.iter().position(|s| s.setting.address().unwrap().to_string() == what).unwrap();
    assert!(place("eth0 flow rule 0") < place("eth0 RSS context 1"));
    assert_eq!(lay.rollback(2).verdict, RunResult::Applied);
    assert_eq!(differing(&before, &lay.look()), Vec::<String>::new());
    // A rollback restores it, and it is again recorded as created for groups.
    settles(&lay, &Intent::default());
    assert_eq!((contexts(&lay), rules(&lay).len()), (vec![], 0));
}

#[test]
fn another_flow_and_one_less() {
    let lay = applied_layout();
    let p = settles(&lay, &group(2, &[8443]));
    assert_eq!((contexts(&lay), rules(&lay)), (vec![1], vec!["2 8443 context 1".to_string()]));
    assert_eq!(why(&p, "eth0 flow rule 0"), ("R4.06", &Reason::FlowNotLed { transaction: 1 }));
    // Other queues and other flows at once: the context is used again.
    settles(&lay, &group(3, &[25]));
    assert_eq!((contexts(&lay), rules(&lay)), (vec![1], vec!["0 25 context 1".to_string()]));
    assert_eq!(lay.rollback(0).verdict, RunResult::Applied);
    assert_eq!(differing(&card_as_found(), &lay.look()), Vec::<String>::new());
}

fn card_as_found() -> Snapshot {
    Lay::on(&card()).look()
}

#[test]
fn no_groups_any_more() {
    for gone in [mixed(), Intent::default(), Intent { goal: Goal::Stream, ..Intent::default() }] {
        let lay = applied_layout();
        let before = table(&Lay::on(&card()));
        assert_ne!(table(&lay), before);
        let p = settles(&lay, &gone);
        assert_eq!((contexts(&lay), rules(&lay).len()), (vec![], 0), "{}", gone.goal);
        assert!(table(&lay).contains(&0) && table(&lay).contains(&7), "{}: every queue takes part", gone.goal);
        let place = |what: &str| p.steps.iter().position(|s| s.setting.address().unwrap().to_string() == what).unwrap();
        assert!(place("eth0 flow rule 1") < place("eth0 RSS context 1"));
        assert!(p.refused.iter().all(|r| !r.needed), "{:?}", p.refused);
        assert_eq!(lay.rollback(0).verdict, RunResult::Applied);
        assert_eq!(differing(&card_as_found(), &lay.look()), Vec::<String>::new(), "{}", gone.goal);
    }
}

#[test]
fn what_others_made_or_changed_stays_and_is_named() {
    let lay = applied_layout();
    let other = lay.sim.ethtool_x_new("eth0", &[5; 128]).unwrap();
    lay.sim.ethtool_n("eth0", "tcp4 dst-port 22 action 3 loc 9").unwrap();
    lay.sim.ethtool_n("eth0", "tcp4 dst-port 53 action 6 loc 1").unwrap();
    let p = settles(&lay, &Intent::default());
    assert_eq!((contexts(&lay), other), (vec![2], 2));
    assert_eq!(rules(&lay), ["1 53 queue 6", "9 22 queue 3"]);
    let has = |text: &str| assert!(p.warnings.iter().any(|w| w == text), "{text}\n{:#?}", p.warnings);
    has(
        "eth0 flow rule 1: no group needs it any more, but it was changed outside ringwise since transaction 1 created it: it stays",
    );
    has(
        "flow rules and RSS contexts that were not created for a group stay unchanged: eth0 flow rule 9, eth0 RSS context 2",
    );
}

#[test]
fn a_context_with_a_rule_of_another_program_stays() {
    let lay = applied_layout();
    lay.sim.ethtool_n("eth0", "tcp4 dst-port 22 context 1 action 0 loc 9").unwrap();
    // After resizing it still belongs to the group.
    settles(&lay, &group(3, &[443, 53]));
    assert_eq!(contexts(&lay), [1]);
    let p = settles(&lay, &Intent::default());
    assert_eq!((contexts(&lay), rules(&lay)), (vec![1], vec!["9 22 context 1".to_string()]));
    assert!(
        p.warnings.iter().any(|w| w
            == "eth0 RSS context 1: no group needs it any more (transaction 2 created it), but flow rule 9, which belongs to no group, steers to it: it stays"),
        "{:#?}",
        p.warnings
    );
}

#[test]
fn the_rule_that_a_groups_had_replaced_comes_back() {
    let on = |lay: &Lay| {
        let i = Intent {
            wishes: vec![ringwise_model::Wish {
                dev: Some("eth0".into()),
                knob: ringwise_model::Knob::FlowRule {
                    location: Some(4),
                    rule: ringwise_model::Rule {
                        flow: "tcp4".into(),
                        fields: [("dst-port".to_string(), "443".to_string())].into(),
                        action: Action::Queue(6),
                        context: None,
                    },
                },
                by: ConfiguredBy::Flag { name: "--set".into() },
                params_by: Default::default(),
            }],
            ..Intent::default()
        };
        assert_eq!(lay.apply(&i).verdict, RunResult::Applied);
    };
    let lay = Lay::on(&card());
    on(&lay);
    assert_eq!(rules(&lay), ["4 443 queue 6"]);
    settles(&lay, &group(2, &[443, 53]));
    assert_eq!(rules(&lay), ["0 53 context 1", "4 443 context 1"]);
    settles(&lay, &Intent::default());
    // A rule that was configured separately belongs to no group, and stays until it is rolled back.
    assert_eq!((contexts(&lay), rules(&lay)), (vec![], vec!["4 443 queue 6".to_string()]));
    settles(&lay, &mixed());
    assert_eq!(rules(&lay), ["4 443 queue 6"]);
}

#[test]
fn a_full_table_of_rules_is_used_again() {
    let mut s = card();
    s.nics[0].rules = Fact::Known(Rules { capacity: 2, chooses_location: false, rules: Default::default() });
    let lay = applied_layout_on(&s);
    settles(&lay, &group(2, &[8443, 25]));
    assert_eq!(rules(&lay), ["0 8443 context 1", "1 25 context 1"]);
}

#[test]
fn where_the_driver_chooses_places_too() {
    let mut s = card();
    s.nics[0].rules = Fact::Known(Rules { capacity: 64, chooses_location: true, rules: Default::default() });
    let lay = Lay::on(&s);
    settles(&lay, &group(2, &[443, 53]));
    assert_eq!(rules(&lay).len(), 2);
    settles(&lay, &group(1, &[443]));
    assert_eq!((contexts(&lay), rules(&lay)), (vec![], vec!["63 443 queue 0".to_string()]));
    settles(&lay, &Intent::default());
    assert_eq!(rules(&lay).len(), 0);
    assert_eq!(lay.rollback(0).verdict, RunResult::Applied);
}

#[test]
fn a_failure_at_every_write_on_the_way_out() {
    let (p, writes) = {
        let lay = applied_layout();
        lay.sim.forget_writes();
        let p = lay.plan(&Intent::default());
        assert_eq!(lay.run(&p, false).verdict, RunResult::Applied);
        (p, lay.sim.writes())
    };
    assert!(writes > 3, "{writes}");
    for k in 0..writes {
        for errno in [5, 16, 28, 95] {
            let lay = applied_layout();
            let before = lay.look();
            lay.sim.forget_writes();
            lay.sim.fault(SimulatedFault::Fail { at: At::Write(k), errno, times: Times::Once });
            let out = lay.run(&p, true);
            let what = format!("errno {errno} at write {k}: {:?}", out.failed);
            match out.verdict {
                RunResult::PutBack => assert_eq!(differing(&before, &lay.look()), Vec::<String>::new(), "{what}"),
                RunResult::Applied => {}
                other => panic!("{what}: {other:?} {:?}", out.put_back_incomplete),
            }
        }
        for at in [SimulatedFault::KillBefore { at: At::Write(k) }, SimulatedFault::KillAfter { at: At::Write(k) }] {
            let lay = applied_layout();
            let before = lay.look();
            lay.sim.forget_writes();
            let what = format!("{at:?}");
            lay.sim.fault(at);
            assert!(lay.dies(&p), "{what}");
            lay.sim.clear_faults();
            assert_eq!(lay.recover().verdict, RunResult::Recovered, "{what}");
            assert_eq!(differing(&before, &lay.look()), Vec::<String>::new(), "{what}");
            settles(&lay, &Intent::default());
        }
    }
}

#[test]
fn fewer_channels_take_rules_of_groups_with_them() {
    let lay = Lay::on(&card());
    let mut i = group(1, &[443]);
    i.groups[0].queues = GroupQueues::These(vec![7]);
    settles(&lay, &i);
    assert_eq!(rules(&lay), ["0 443 queue 7"]);
    let fewer = Intent { queues: Some(4), allow_disruption: true, ..Intent::default() };
    let p = lay.plan(&fewer);
    assert!(p.refused.is_empty(), "{:?}", p.refused);
    assert_eq!(lay.run(&p, false).verdict, RunResult::Applied);
    lay.sim.sleep_past_link();
    assert_eq!((rules(&lay).len(), lay.look().nic("eth0").unwrap().rx_queues.len()), (0, 4));
    assert!(lay.plan(&Intent { queues: Some(4), ..Intent::default() }).steps.is_empty());
}

#[test]
fn a_context_on_removed_queues_is_reported_to_move_and_moves() {
    let lay = Lay::on(&card());
    let half: Vec<u32> = (0..128).map(|i| if i < 32 { 1 } else { 6 }).collect();
    assert_eq!(lay.sim.ethtool_x_new("eth0", &half).unwrap(), 1);
    let fewer = Intent { queues: Some(4), allow_disruption: true, ..Intent::default() };
    let p = lay.plan(&fewer);
    assert!(
        p.warnings.iter().any(|w| w
            == "eth0 RSS context 1: 96 of its 128 entries point to queues that are removed; they are redistributed among queues 0-3"),
        "{:#?}",
        p.warnings
    );
    assert!(!lay.plan(&Intent::default()).warnings.iter().any(|w| w.contains("RSS context")));
    assert_eq!(lay.run(&p, false).verdict, RunResult::Applied);
    let nic = lay.sim.nic("eth0").unwrap();
    let then = &nic.rss.known().unwrap().contexts.known().unwrap()[&1].table;
    assert_eq!((&then[..32], &then[32..]), (&half[..32], &vec![2; 96][..]));
    let address = Address::RssContext { dev: "eth0".into(), context: 1 };
    assert!(!p.steps.iter().any(|s| s.setting.address().as_ref() == Some(&address)));
}

#[test]
fn without_its_rules_no_queue_is_left_out_of_the_table() {
    let lay = Lay::on(&card());
    let before = lay.look();
    let refused = || SimulatedFault::Fail { at: At::Matching("SRXCLSRLINS".into()), errno: 95, times: Times::Always };
    lay.sim.fault(refused());
    let out = lay.apply(&group(2, &[443, 53]));
    assert_eq!(out.verdict, RunResult::PutBack, "{out:#?}");
    assert_eq!(differing(&before, &lay.look()), Vec::<String>::new());
    // A known refusal is not tried again at any location, and then no queue is excluded from the table.
    let s = lay.look();
    let learned = lay.store().learned().unwrap();
    let p = ringwise_plan::plan(&s, &group(2, &[443, 53]), &learned).unwrap();
    let rules = p.refused.iter().filter(|r| r.what.contains("flow rule")).count();
    assert_eq!(rules, 2, "{:#?}", p.refused);
    assert!(!p.steps.iter().any(|s| matches!(s.setting, ringwise_knob::Setting::RssTable { .. })), "{:#?}", p.steps);
}

/// Like igb in the lab: every kind of rule is refused, each at location 0, one by one.
#[test]
fn each_refused_kind_of_rule_is_remembered() {
    let lay = Lay::on(&card());
    lay.sim.fault(SimulatedFault::Fail { at: At::Matching("SRXCLSRLINS".into()), errno: 95, times: Times::Always });
    let kind = |flow: &str, field: &str| Flow::Match { flow: flow.into(), fields: [(field.into(), "7".into())].into() };
    let mut three = group(2, &[443]);
    three.groups[0].flows.extend([kind("udp4", "vlan"), kind("udp4", "tos")]);
    let once = || {
        let p = ringwise_plan::plan(&lay.look(), &three, &lay.store().learned().unwrap()).unwrap();
        lay.run(&p, false)
    };
    for known in 1..=3 {
        assert_eq!(once().verdict, RunResult::PutBack);
        assert_eq!(lay.store().learned().unwrap().len(), known);
    }
    let out = once();
    assert_eq!((out.verdict, rules(&lay)), (RunResult::Applied, vec![]), "{out:#?}");
    assert_eq!(lay.store().learned().unwrap().len(), 3);
}
