//! Contexts and rules that no group needs any more, and those that belong to no group.

use std::collections::BTreeMap;

use ringwise_knob::{CreatedObject, Setting};
use ringwise_model::{Action, Fact, Intent, Rss, RssContext, Rule, Rules, Snapshot};
use ringwise_plan::{ManualChanges, Plan, plan, plan_around};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

/// Eight cores, one device with eight queues and these contexts and rules.
fn host(contexts: &[(u32, &[u32])], rules: &[(u32, Rule)]) -> Snapshot {
    let nics = vec![NicSpec::new("eth0", "ice", Some(0), 8, 8)];
    let mut s = machines::host("c", CpuSpec::flat(8, 1), nics).snapshot();
    let context = |(n, table): &(u32, &[u32])| (*n, RssContext { table: table.to_vec(), key: None });
    s.nics[0].rss = Fact::Known(Rss {
        table: (0..128).map(|i| i % 8).collect(),
        function: Fact::Known("toeplitz".into()),
        key: Fact::Known("6d".repeat(52)),
        fields: BTreeMap::new(),
        symmetric: Fact::Absent,
        contexts: Fact::Known(contexts.iter().map(context).collect()),
    });
    let rules = rules.iter().cloned().collect();
    s.nics[0].rules = Fact::Known(Rules { capacity: 64, chooses_location: false, rules });
    s
}

fn rule(port: &str, context: u32) -> Rule {
    Rule {
        flow: "tcp4".into(),
        fields: [("dst-port".to_string(), port.to_string())].into(),
        action: Action::Queue(0),
        context: Some(context),
    }
}

fn about_contexts(p: &Plan) -> Vec<&str> {
    p.warnings.iter().filter(|w| w.starts_with("eth0 RSS context")).map(String::as_str).collect()
}

/// Transaction 7 created context 1 and rule 0 for a group that is not configured any more.
#[test]
fn a_context_is_removed_unless_another_rule_steers_to_it() {
    let dev = || "eth0".to_string();
    let context = |table| Setting::RssContext { dev: dev(), context: 1, table, key: None };
    let flow_rule = |rule| Setting::FlowRule { dev: dev(), location: 0, rule };
    let planned = |other: u32| {
        let s = host(&[(1, &[0, 1]), (2, &[2, 3])], &[(0, rule("443", 1)), (9, rule("22", other))]);
        let made = |setting, before| CreatedObject { setting, before, transaction: 7, as_left: true };
        let made = vec![
            made(context(Some(vec![0, 1])), context(None)),
            made(flow_rule(Some(rule("443", 1))), flow_rule(None)),
        ];
        let hands = ManualChanges { made, ..ManualChanges::default() };
        plan_around(&s, &Intent::default(), &[], &hands).unwrap()
    };
    let removes = |p: &Plan, what: &Setting| p.steps.iter().any(|s| s.setting == *what);
    let p = planned(2);
    assert!(removes(&p, &flow_rule(None)) && removes(&p, &context(None)), "{:?}", p.steps);
    assert_eq!(about_contexts(&p), [""; 0]);
    let p = planned(1);
    assert!(removes(&p, &flow_rule(None)) && !removes(&p, &context(None)), "{:?}", p.steps);
    assert_eq!(
        about_contexts(&p),
        [
            "eth0 RSS context 1: no group needs it any more (transaction 7 created it), but flow rule 9, which belongs to no group, steers to it: it stays"
        ]
    );
}

#[test]
fn entries_of_contexts_that_lose_their_queue_are_counted() {
    let s = host(&[(1, &[0, 1, 2, 3]), (3, &[3, 4, 5, 7])], &[]);
    let fewer = Intent { queues: Some(4), allow_disruption: true, ..Intent::default() };
    let p = plan(&s, &fewer, &[]).unwrap();
    assert!(p.steps.iter().any(|s| matches!(s.setting, Setting::Channels { .. })), "{:?}", p.steps);
    assert_eq!(
        about_contexts(&p),
        [
            "eth0 RSS context 3: 3 of its 4 entries point to queues that are removed; they are redistributed among queues 0-3"
        ]
    );
    assert_eq!(about_contexts(&plan(&s, &Intent::default(), &[]).unwrap()), [""; 0]);
}
