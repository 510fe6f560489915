//! Flow rules in plans: rules that prevent fewer queues, locations that the driver chooses, accelerated RFS.

use ringwise_knob::{Address, IfRefused, Reason, Setting, rules};
use ringwise_model::{Action, ConfiguredBy, Fact, Feature, Goal, Intent, Knob, Rule, Rules, Snapshot, Unread, Wish};
use ringwise_plan::{Obstacle, Plan, Refusal, plan};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

fn host(driver: &str, there: &[(u32, Rule)]) -> Snapshot {
    let nics = vec![NicSpec::new("eth1", driver, Some(0), 8, 8)];
    let mut s = machines::host("w", CpuSpec::flat(8, 1), nics).snapshot();
    let off = Feature { on: false, wanted: false, fixed: false };
    s.nics[0].features = Fact::Known([("rx-ntuple-filter".to_string(), off)].into());
    s.nics[0].rules =
        Fact::Known(Rules { capacity: 16, chooses_location: false, rules: there.iter().cloned().collect() });
    s
}

fn rule(port: &str, queue: u32) -> Rule {
    let fields = [("dst-port".to_string(), port.to_string())].into();
    Rule { flow: "tcp4".into(), fields, action: Action::Queue(queue), context: None }
}

fn configured_rule(location: Option<u32>, rule: Rule) -> Wish {
    Wish {
        dev: Some("eth1".into()),
        knob: Knob::FlowRule { location, rule },
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    }
}

fn four(wishes: Vec<Wish>) -> Intent {
    Intent { queues: Some(4), allow_disruption: true, wishes, ..Intent::default() }
}

fn at(p: &Plan, f: impl Fn(&Address) -> bool) -> Option<(usize, &ringwise_knob::Step)> {
    p.steps.iter().enumerate().find(|(_, s)| s.setting.address().is_some_and(|a| f(&a)))
}

#[test]
fn a_rule_that_the_plan_does_not_mention_keeps_its_queue() {
    let s = host("ixgbe", &[(3, rule("80", 6)), (5, rule("81", 7)), (6, rule("82", 1))]);
    let p = plan(&s, &four(Vec::new()), &[]).unwrap();
    assert!(at(&p, |a| matches!(a, Address::Channels { .. })).is_none(), "{:?}", p.steps);
    let why = &p.refused.iter().find(|r| r.what == "eth1 channels").unwrap().why;
    assert_eq!(
        why.to_string(),
        "flow rule 3 (tcp4 dst-port 80 action 6) steers to a queue that would not exist with 4 queues (and 1 \
         more): delete it (ethtool -N eth1 delete 3), or configure another rule in its place"
    );
    // Rules to queues with low numbers do not prevent the change.
    let p = plan(&host("ixgbe", &[(6, rule("82", 1))]), &four(Vec::new()), &[]).unwrap();
    assert!(at(&p, |a| matches!(a, Address::Channels { .. })).is_some());
}

#[test]
fn a_rule_is_moved_off_a_removed_queue_first() {
    let s = host("ixgbe", &[(3, rule("80", 6))]);
    let p = plan(&s, &four(vec![configured_rule(Some(3), rule("80", 2)), configured_rule(None, rule("443", 3))]), &[])
        .unwrap();
    let (turned, step) = at(&p, |a| matches!(a, Address::FlowRule { location: 3, .. })).unwrap();
    let (fewer, _) = at(&p, |a| matches!(a, Address::Channels { .. })).unwrap();
    let (added, _) = at(&p, |a| matches!(a, Address::FlowRule { location: 0, .. })).unwrap();
    assert!(turned < fewer && fewer < added, "{turned} {fewer} {added}");
    let old = Setting::FlowRule { dev: "eth1".into(), location: 3, rule: Some(rule("80", 6)) };
    assert_eq!(step.from, Fact::Known(old));
}

#[test]
fn drivers_that_choose_the_location() {
    let mut s = host("sfc", &[(40, rule("80", 1))]);
    if let Fact::Known(r) = &mut s.nics[0].rules {
        r.chooses_location = true;
    }
    let intent = |w| Intent { wishes: vec![w], ..Intent::default() };
    let p = plan(&s, &intent(configured_rule(None, rule("443", 2))), &[]).unwrap();
    let place = rules::by_content(&rule("443", 2));
    assert!(at(&p, |a| matches!(a, Address::FlowRule { location, .. } if *location == place)).is_some());
    // The rule exists already, at any location.
    let p = plan(&s, &intent(configured_rule(None, rule("80", 1))), &[]).unwrap();
    assert!(at(&p, |a| matches!(a, Address::FlowRule { .. })).is_none(), "{:?}", p.steps);
    match plan(&s, &intent(configured_rule(Some(3), rule("443", 2))), &[]) {
        Err(Refusal::WrongWishes { wrong }) => {
            assert!(wrong[0].mistake.found().contains("chooses the locations"), "{wrong:?}")
        }
        other => panic!("{other:?}"),
    }
}

/// ixgbe resets the device when the feature is switched (`ixgbe_set_features`); ice does not.
#[test]
fn rules_wait_for_a_feature_that_restarts_the_device() {
    let asked = |allow_disruption| Intent {
        allow_disruption,
        wishes: vec![configured_rule(None, rule("443", 2))],
        ..Intent::default()
    };
    let is_feature = |a: &Address| matches!(a, Address::Ntuple { .. });
    let is_rule = |a: &Address| matches!(a, Address::FlowRule { .. });
    let s = host("ixgbe", &[]);
    let p = plan(&s, &asked(false), &[]).unwrap();
    assert!(at(&p, is_feature).is_none() && at(&p, is_rule).is_none(), "{:?}", p.steps);
    assert!(
        p.left_out.iter().any(|l| l.setting == Setting::Ntuple { dev: "eth1".into(), on: true }),
        "{:?}",
        p.left_out
    );
    let refused: Vec<_> = p.refused.iter().filter(|r| r.why == Obstacle::RulesNeedRestart).collect();
    assert!(refused.len() == 1 && refused[0].needed, "{:?}", p.refused);
    let p = plan(&s, &asked(true), &[]).unwrap();
    assert!(at(&p, is_feature).unwrap().1.interrupts_traffic && at(&p, is_rule).is_some());
    let p = plan(&host("ice", &[]), &asked(false), &[]).unwrap();
    assert!(!at(&p, is_feature).unwrap().1.interrupts_traffic && at(&p, is_rule).is_some());
    // A goal asks for permission, too.
    let rpc = Intent { goal: Goal::Rpc, ..Intent::default() };
    let p = plan(&host("bnxt_en", &[]), &rpc, &[]).unwrap();
    assert!(at(&p, is_feature).is_none() && p.left_out.iter().any(|l| matches!(l.setting, Setting::Ntuple { .. })));
}

#[test]
fn accelerated_rfs_if_the_driver_supports_it() {
    let rpc = Intent { goal: Goal::Rpc, ..Intent::default() };
    let ntuple = |s: &Snapshot, i: &Intent| {
        let p = plan(s, i, &[]).unwrap();
        let found = at(&p, |a| matches!(a, Address::Ntuple { .. })).map(|(n, s)| (n, s.clone()));
        let tables = at(&p, |a| matches!(a, Address::RpsFlowCnt { .. })).map(|(n, _)| n);
        (found, tables)
    };
    let (found, tables) = ntuple(&host("ice", &[]), &rpc);
    let (place, step) = found.unwrap();
    assert_eq!((step.rule.as_str(), step.if_refused), ("R2.04", IfRefused::Skip));
    assert!(step.reason == Reason::AcceleratedRfs { driver: "ice".into() }, "{}", step.reason);
    assert!(place < tables.unwrap());
    assert!(ntuple(&host("ixgbe", &[]), &rpc).0.is_none(), "rules, but no steering of its own flows");
    assert!(ntuple(&host("ice", &[]), &Intent::default()).0.is_none(), "not for every goal");
    let mut s = host("ice", &[]);
    let fixed = Feature { on: false, wanted: false, fixed: true };
    s.nics[0].features = Fact::Known([("rx-ntuple-filter".to_string(), fixed)].into());
    assert!(ntuple(&s, &rpc).0.is_none(), "a fixed feature");

    // Nothing is left out in silence.
    let mut s = host("ice", &[]);
    s.nics[0].features = Fact::Unknown(Unread::new("features eth0", Some(1), "Operation not permitted"));
    let p = plan(&s, &rpc, &[]).unwrap();
    let refused = p.refused.iter().find(|n| matches!(n.address, Some(Address::Ntuple { .. }))).unwrap();
    assert!(!refused.needed && refused.why.to_string().contains("Operation not permitted"), "{}", refused.why);
}
