//! Configured settings: their addresses, the settings that they imply, and errors in them.

use std::collections::BTreeMap;

use ringwise_knob::{Reason, Setting, SideEffect, VectorName};
use ringwise_model::{
    Action, Coalesce, ConfiguredBy, Count, CpuId, CpuSet, Fact, Feature, Goal, Intent, Knob, Napi, NapiInstance,
    NapiThread, NapiValues, RingValues, Rings, Rss, Rule, Rules, Snapshot, Table, Wish, not_requested,
};
use ringwise_plan::{AfterChange, NotPossible, Obstacle, Plan, ProposedChange, Refusal, plan};
use ringwise_testkit::machines::{self, NicSpec, Vectors};
use ringwise_testkit::topo::CpuSpec;

fn params(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

/// Eight cores, one device with eight queues and all knobs.
pub(crate) fn host() -> Snapshot {
    let nics = vec![NicSpec::new("eth1", "ice", Some(0), 8, 8)];
    let mut s = machines::host("w", CpuSpec::flat(8, 1), nics).snapshot();
    let n = &mut s.nics[0];
    let values = params(&[("rx-usecs", 50), ("tx-usecs", 50), ("use-adaptive-rx", 1), ("use-adaptive-tx", 0)]);
    n.coalesce = Fact::Known(Coalesce(values.clone()));
    n.queue_coalesce = Fact::Known((0..8).map(|q| (q, Coalesce(values.clone()))).collect());
    n.rings = Fact::Known(Rings::sizes(Some(Count { now: 512, max: 4096 }), Some(Count { now: 512, max: 4096 })));
    n.rss = Fact::Known(Rss {
        table: (0..128).map(|i| i % 8).collect(),
        function: Fact::Known("toeplitz".into()),
        key: Fact::Known("00".repeat(40)),
        fields: [("tcp4".to_string(), "sdfn".to_string()), ("udp4".to_string(), "sd".to_string())].into(),
        symmetric: Fact::Absent,
        contexts: Fact::Known(BTreeMap::new()),
    });
    let feature = |on, fixed| Feature { on, wanted: on, fixed };
    n.features = Fact::Known(
        [
            ("rx-ntuple-filter".to_string(), feature(false, false)),
            ("rx-lro".to_string(), feature(false, true)),
            ("rx-gro".to_string(), feature(true, false)),
        ]
        .into(),
    );
    n.rules = Fact::Known(Rules { capacity: 16, chooses_location: false, rules: BTreeMap::new() });
    s.host.sysctls = [("net.core.netdev_budget".to_string(), Fact::Known("300".to_string()))].into();
    s
}

fn wish(knob: Knob) -> Wish {
    Wish {
        dev: Some("eth1".into()),
        knob,
        by: ConfiguredBy::File { path: "/etc/ringwise/ringwise.toml".into(), line: 7 },
        params_by: Default::default(),
    }
}

pub(crate) fn intent(knobs: Vec<Knob>) -> Intent {
    Intent { wishes: knobs.into_iter().map(wish).collect(), ..Intent::default() }
}

fn rule(port: &str, queue: u32) -> Rule {
    Rule {
        flow: "tcp4".into(),
        fields: [("dst-port".to_string(), port.to_string())].into(),
        action: Action::Queue(queue),
        context: None,
    }
}

pub(crate) fn configured_steps(p: &Plan) -> Vec<String> {
    let mine = p.steps.iter().filter(|s| s.rule == "W01");
    mine.map(|s| format!("{}: {}", s.setting.address().unwrap(), s.setting.value_text())).collect()
}

pub(crate) fn wrong(s: &Snapshot, i: &Intent) -> Vec<String> {
    match plan(s, i, &[]) {
        Err(Refusal::WrongWishes { wrong }) => {
            wrong.into_iter().map(|w| format!("{}: {}; {}", w.what, w.mistake.found(), w.mistake.right())).collect()
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn configured_settings_are_planned_with_their_source() {
    let p = plan(
        &host(),
        &intent(vec![Knob::RssTable { context: None, table: Table::Weight { weights: vec![3, 1], start: 0 } }]),
        &[],
    )
    .unwrap();
    assert_eq!(configured_steps(&p), ["eth1 RSS table: 128 entries: 0:96 1:32"]);
    let starved = "eth1: 2 of 8 queues have a weight; queues 2-7 get no packets from the RSS table";
    assert!(p.warnings.iter().any(|w| w == starved), "{:?}", p.warnings);
    let step = p.steps.iter().find(|s| s.rule == "W01").unwrap();
    let by = vec![ConfiguredBy::File { path: "/etc/ringwise/ringwise.toml".into(), line: 7 }];
    assert_eq!(step.reason, Reason::Configured { by, with: None });
    assert_eq!(step.source, "/etc/ringwise/ringwise.toml");
    assert!(p.refused.is_empty() && p.left_out.is_empty());
}

#[test]
fn configured_settings_override_the_goal() {
    let cpus: CpuSet = "5".parse().unwrap();
    let p = plan(&host(), &intent(vec![Knob::IrqCpus { queues: Some(vec![0]), cpus: cpus.clone() }]), &[]).unwrap();
    let of_zero: Vec<&Setting> =
        p.target.iter().filter(|t| matches!(t, Setting::IrqCpus { of: VectorName::Rx(0), .. })).collect();
    assert_eq!(of_zero, [&Setting::IrqCpus { dev: "eth1".into(), of: VectorName::Rx(0), cpus, on: None }]);
    // The other queues are placed around it, and XPS follows.
    let mut used: Vec<u32> = p.layout[0].queues.iter().map(|q| q.cpu.unwrap().0).collect();
    assert_eq!(used[0], 5);
    used.sort_unstable();
    assert_eq!(used, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(p.target.contains(&Setting::XpsCpus { dev: "eth1".into(), queue: 0, cpus: "5".parse().unwrap() }));
}

#[test]
fn adaptive_moderation_is_switched_off_before_a_fixed_value() {
    let p =
        plan(&host(), &intent(vec![Knob::Coalesce { queues: None, params: params(&[("rx-usecs", 5)]) }]), &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 moderation: rx-usecs 5 use-adaptive-rx 0"]);
    assert!(p.steps.iter().any(|s| matches!(s.reason, Reason::Configured { with: Some(SideEffect::AdaptiveOff), .. })));
    // Transmit has no adaptive moderation here: nothing is added.
    let p =
        plan(&host(), &intent(vec![Knob::Coalesce { queues: None, params: params(&[("tx-usecs", 5)]) }]), &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 moderation: tx-usecs 5"]);
    let both = Knob::Coalesce { queues: None, params: params(&[("rx-usecs", 5), ("use-adaptive-rx", 1)]) };
    assert_eq!(
        wrong(&host(), &intent(vec![both])),
        [
            "eth1 moderation rx-usecs 5: use-adaptive-rx is configured as on and would overwrite it; expected use-adaptive-rx off, or no fixed value"
        ]
    );
}

#[test]
fn device_values_are_written_to_each_queue_if_one_has_its_own() {
    let knobs = vec![
        Knob::Coalesce { queues: None, params: params(&[("rx-usecs", 62), ("use-adaptive-rx", 0)]) },
        Knob::Coalesce { queues: Some(vec![1]), params: params(&[("rx-usecs", 5), ("use-adaptive-rx", 0)]) },
    ];
    let p = plan(&host(), &intent(knobs), &[]).unwrap();
    let mine = configured_steps(&p);
    assert_eq!(mine[0], "eth1 moderation: use-adaptive-rx 0");
    assert_eq!(mine[1], "eth1 moderation queue 0: rx-usecs 62");
    assert_eq!(mine[2], "eth1 moderation queue 1: rx-usecs 5 use-adaptive-rx 0");
    assert_eq!(mine.len(), 9);
}

#[test]
fn a_rule_needs_the_feature_and_a_location() {
    let rules = |l| Knob::FlowRule { location: l, rule: rule("443", 2) };
    let p = plan(&host(), &intent(vec![rules(None), Knob::FlowRule { location: Some(0), rule: rule("80", 1) }]), &[])
        .unwrap();
    assert_eq!(
        configured_steps(&p),
        [
            "eth1 rx-ntuple-filter: on",
            "eth1 flow rule 0: tcp4 dst-port 80 action 1",
            "eth1 flow rule 1: tcp4 dst-port 443 action 2"
        ]
    );
    // The setting is in effect already: it stays.
    let mut s = host();
    let there = Rules { capacity: 16, chooses_location: false, rules: [(9, rule("443", 2))].into() };
    s.nics[0].rules = Fact::Known(there);
    let p = plan(&s, &intent(vec![rules(None)]), &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 rx-ntuple-filter: on"]);
    assert!(p.target.iter().any(|t| matches!(t, Setting::FlowRule { location: 9, .. })));
}

#[test]
fn a_context_comes_before_the_rule_that_names_it() {
    let mut r = rule("443", 0);
    r.context = Some(1);
    let knobs = vec![
        Knob::FlowRule { location: None, rule: r },
        Knob::RssTable { context: Some(1), table: Table::Equal { queues: 2, start: 6 } },
    ];
    let p = plan(&host(), &intent(knobs.clone()), &[]).unwrap();
    let mine = configured_steps(&p);
    assert_eq!(mine[0], "eth1 RSS context 1: 128 entries: queues 6-7 64 each");
    assert!(mine[2].starts_with("eth1 flow rule 0: tcp4 dst-port 443 context 1"), "{mine:?}");
    assert_eq!(
        wrong(&host(), &intent(vec![knobs[0].clone()])),
        ["eth1 flow rule tcp4 dst-port 443 context 1 action 0: there is no RSS context 1; configure the context too"]
    );
    let third = Knob::RssTable { context: Some(3), table: Table::Equal { queues: 2, start: 6 } };
    // With the requested context number, whichever lower numbers are free.
    let p = plan(&host(), &intent(vec![third]), &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 RSS context 3: 128 entries: queues 6-7 64 each"]);
}

#[test]
fn all_mistakes_are_reported_together() {
    let mut i = intent(vec![
        Knob::Coalesce { queues: Some([3].into_iter().chain(8..100).collect()), params: params(&[("rx-usecs", 5)]) },
        Knob::Rings { values: RingValues::sizes(Some(8192), None) },
        Knob::Channels { rx: None, tx: None, combined: Some(9) },
        Knob::Feature { name: "rx-grow".into(), on: true },
        Knob::RssTable { context: None, table: Table::Weight { weights: vec![0, 0], start: 0 } },
        Knob::RssTable { context: None, table: Table::Equal { queues: 9, start: 0 } },
        Knob::RssHash { function: None, key: Some("00:11".into()), symmetric: None },
        Knob::RssFields { flow: "udp7".into(), fields: "sd".into() },
        Knob::RssFields { flow: "udp4".into(), fields: "sdx".into() },
        Knob::FlowRule { location: None, rule: rule("443", 8) },
        Knob::IrqCpus { queues: None, cpus: "0,9".parse().unwrap() },
        Knob::XpsCpus { queues: Some(vec![9]), cpus: CpuSet::new() },
    ]);
    i.wishes.push(Wish {
        dev: Some("eth9".into()),
        knob: Knob::Pause { autoneg: None, rx: None, tx: Some(false) },
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    });
    let sysctl = |name: &str| Knob::Sysctl { name: name.into(), value: "600".into() };
    i.wishes.push(Wish {
        dev: None,
        knob: sysctl("net.ipv4.ip_forward"),
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    });
    i.wishes.push(Wish {
        dev: None,
        knob: Knob::CpuLatency { cpus: vec![CpuId(1)], value: "fast".into() },
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    });
    let got = wrong(&host(), &i);
    let want = [
        "eth1 channels combined 9: the driver supports at most 8; expected 0 to 8",
        "eth1 moderation of queues 8-99: there are 8 rx queues; expected queues 0-7",
        "eth1 rings rx 8192: the current value is 512, and the driver supports at most 4096; expected 1 to 4096 descriptors",
        "eth1 rx-grow: the device has no such feature; expected, for example, rx-gro, rx-ntuple-filter",
        "eth1 RSS table: the weights sum to zero: at least one must not be 0; expected a table of 128 entries over queues 0-7",
        "eth1 RSS table: queue 8 does not exist: there are only queues 0-7; expected a table of 128 entries over queues 0-7",
        "eth1 RSS key: the key has 2 bytes; expected 40 bytes in hex",
        "eth1 RSS fields udp7: there is no such flow type; expected one of tcp4 udp4",
        "eth1 RSS fields udp4 sdx: 'x' is not a hash field; expected letters of mvtsdfnelr, such as sdfn",
        "eth1 interrupt CPU: of CPUs 0,9, 9 is not online; online CPUs are 0-7",
        "eth1 XPS CPUs of queue 9: there are 8 tx queues; expected queues 0-7",
        "eth9 pause frames: there is no such interface; expected one of eth1",
        "net.ipv4.ip_forward: ringwise does not set this sysctl here; expected one of net.core.netdev_budget",
        "resume latency fast: not a valid resume latency; expected microseconds, 0 for no limit, or n/a for no latency at all",
        "eth1 flow rule tcp4 dst-port 443 action 8 of queue 8: there are 8 rx queues; expected queues 0-7",
    ];
    assert_eq!(got, want);
}

#[test]
fn unsupported_settings_are_listed_in_the_plan() {
    let mut s = host();
    s.nics[0].queue_coalesce = Fact::Absent;
    s.nics[0].rules = not_requested();
    let mut i = intent(vec![
        Knob::Pause { autoneg: None, rx: Some(false), tx: None },
        Knob::Coalesce { queues: Some(vec![0, 1]), params: params(&[("rx-usecs", 5)]) },
        Knob::FlowRule { location: None, rule: rule("443", 2) },
        Knob::Napi { queues: None, values: NapiValues { defer_hard_irqs: Some(2), ..NapiValues::default() } },
        Knob::RssHash { function: None, key: None, symmetric: Some("symmetric-xor".into()) },
    ]);
    let p = plan(&s, &i, &[]).unwrap();
    let said = "(configured in /etc/ringwise/ringwise.toml line 7)";
    let got: Vec<String> = p.refused.iter().map(|r| format!("{}: {}", r.what, r.why)).collect();
    assert_eq!(
        got,
        [
            format!("eth1 pause frames: the driver does not support setting pause frames {said}"),
            format!(
                "eth1 moderation of queues 0-1: the driver moderates only the whole device, not single queues {said}"
            ),
            format!("eth1 NAPI: not readable, so left unchanged: knob: not read {said}"),
            format!("eth1 RSS hash: this kernel has no symmetric transforms (needs Linux 6.8 or later) {said}"),
            format!(
                "eth1 flow rule tcp4 dst-port 443 action 2: not readable, so left unchanged: knob: not read {said}"
            ),
        ]
    );
    assert!(configured_steps(&p).is_empty() && p.refused.iter().all(NotPossible::is_user_configured));
    i.strict = true;
    assert_eq!(wrong(&s, &i).len(), 5);
}

/// The goal requests the same settings.
#[test]
fn a_configured_setting_that_is_not_readable_is_reported_once() {
    let mut s = host();
    (s.nics[0].features, s.nics[0].pause) = (not_requested(), not_requested());
    let knobs = vec![
        Knob::Feature { name: "lro".into(), on: false },
        Knob::Pause { autoneg: None, rx: Some(false), tx: Some(false) },
    ];
    let of = |i: &Intent| {
        let p = plan(&s, i, &[]).unwrap();
        p.refused.iter().map(|r| r.what.clone()).collect::<Vec<_>>()
    };
    let i = Intent { goal: ringwise_model::Goal::Forward, ..intent(knobs) };
    assert_eq!(of(&i), ["eth1 lro", "eth1 pause frames"]);
    let goal_alone = Intent { wishes: Vec::new(), ..i };
    assert_eq!(of(&goal_alone), ["eth1 LRO, pause frames"]);
}

#[test]
fn a_parameter_that_the_driver_does_not_have() {
    let mut s = host();
    let Fact::Known(has) = &mut s.nics[0].coalesce else { panic!("no moderation") };
    has.0.remove("use-adaptive-rx");
    has.0.insert("use-adaptive-tx".into(), 0);
    let with = |adaptive: u32| {
        intent(vec![
            Knob::Coalesce { queues: None, params: params(&[("use-adaptive-rx", adaptive), ("rx-usecs", 62)]) },
            Knob::Feature { name: "lro".into(), on: true },
        ])
    };
    let p = plan(&s, &with(1), &[]).unwrap();
    let said = "(configured in /etc/ringwise/ringwise.toml line 7)";
    let got: Vec<String> = p.refused.iter().map(|r| format!("{}: {}", r.what, r.why)).collect();
    assert_eq!(
        got,
        [
            format!(
                "eth1 moderation use-adaptive-rx: not supported by the driver, which supports rx-usecs tx-usecs \
                 use-adaptive-tx {said}"
            ),
            format!("eth1 lro on: fixed at off by the driver {said}"),
        ]
    );
    assert!(p.refused.iter().all(NotPossible::is_user_configured));
    assert_eq!(configured_steps(&p), ["eth1 moderation: rx-usecs 62"], "the rest is planned");
    // A switch that does not exist is off already.
    let p = plan(&s, &with(0), &[]).unwrap();
    assert_eq!(p.refused.iter().map(|r| r.what.as_str()).collect::<Vec<_>>(), ["eth1 lro on"]);
    assert_eq!(configured_steps(&p), ["eth1 moderation: rx-usecs 62"]);
    let strict = |i: Intent| wrong(&s, &Intent { strict: true, ..i });
    assert_eq!(strict(with(0)).len(), 1, "off holds with --strict too");
    assert_eq!(
        strict(with(1)),
        [
            "eth1 moderation use-adaptive-rx: not supported by the driver, which supports rx-usecs tx-usecs \
             use-adaptive-tx; remove it, or omit --strict",
            "eth1 lro on: fixed at off by the driver; remove it, or omit --strict",
        ]
    );
}

#[test]
fn settings_that_interrupt_traffic_need_permission() {
    let knobs = vec![
        Knob::Channels { rx: None, tx: None, combined: Some(4) },
        Knob::Rings { values: RingValues::sizes(Some(1024), None) },
    ];
    let i = intent(knobs);
    let p = plan(&host(), &i, &[]).unwrap();
    assert!(!p.interrupts_traffic() && configured_steps(&p).is_empty());
    let out: Vec<String> = p.left_out.iter().map(|l| format!("{} | {}", l.setting.value_text(), l.command)).collect();
    assert_eq!(out, ["combined 4 | ringwise plan --allow-disruption", "rx 1024 | ringwise plan --allow-disruption"]);
    assert!(p.left_out.iter().all(ProposedChange::is_user_configured));
    let p = plan(&host(), &Intent { allow_disruption: true, ..i }, &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 channels: combined 4", "eth1 rings: rx 1024"]);
    assert_eq!(p.layout[0].queues.len(), 4);
}

#[test]
fn queues_that_exist_only_after_a_skipped_change() {
    let mut s = host();
    let fewer = NicSpec::new("eth1", "ice", Some(0), 4, 8);
    s.nics = machines::host("w", CpuSpec::flat(8, 1), vec![fewer]).snapshot().nics;
    let i = intent(vec![
        Knob::Channels { rx: None, tx: None, combined: Some(8) },
        Knob::XpsCpus { queues: Some(vec![6]), cpus: "6".parse().unwrap() },
    ]);
    let p = plan(&s, &i, &[]).unwrap();
    assert!(
        p.refused.iter().any(|r| {
            let Obstacle::Configured { obstacle, .. } = &r.why else { return false };
            let whose = AfterChange::Named;
            r.what == "eth1 XPS CPUs of queues 6" && **obstacle == Obstacle::AfterChannelChange { whose }
        }),
        "{:?}",
        p.refused
    );
    let p = plan(&s, &Intent { allow_disruption: true, ..i }, &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 channels: combined 8", "eth1 tx-6 xps_cpus: 6"]);
    // The first queue beyond those after the channel change never exists.
    let i = intent(vec![
        Knob::Channels { rx: None, tx: None, combined: Some(8) },
        Knob::XpsCpus { queues: Some(vec![8]), cpus: "6".parse().unwrap() },
    ]);
    assert_eq!(wrong(&s, &i), ["eth1 XPS CPUs of queue 8: there are 4 tx queues; expected queues 0-3"]);
}

#[test]
fn xps_by_receive_queue_needs_queues_that_exist() {
    let by = |rxqs: &[u32]| intent(vec![Knob::XpsRxqs { queues: Some(vec![1, 2]), rxqs: rxqs.to_vec() }]);
    let p = plan(&host(), &by(&[0, 7]), &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 tx-1 xps_rxqs: 0,7", "eth1 tx-2 xps_rxqs: 0,7"]);
    assert_eq!(
        wrong(&host(), &by(&[0, 8])),
        ["eth1 XPS rx queues of queue 8: there are 8 rx queues; expected queues 0-7"]
    );
}

#[test]
fn queues_of_one_interrupt_share_one_affinity() {
    let nics = vec![NicSpec { vectors: Vectors::Twos, ..NicSpec::new("eth1", "ice", Some(0), 4, 4) }];
    let s = machines::host("w", CpuSpec::flat(8, 1), nics).snapshot();
    let to = |q: u32, cpus: &str| Knob::IrqCpus { queues: Some(vec![q]), cpus: cpus.parse().unwrap() };
    let got = wrong(&s, &intent(vec![to(0, "3"), to(1, "4")]));
    assert_eq!(
        got,
        [
            "eth1 interrupt CPU 4: it shares its interrupt with queue 0, which is configured for CPUs 3 (/etc/ringwise/ringwise.toml line 7); expected the same CPUs for all queues of one interrupt"
        ]
    );
    // The same queue is configured twice: the later entry applies.
    let p = plan(&s, &intent(vec![to(0, "3"), to(0, "4")]), &[]).unwrap();
    assert_eq!(p.layout[0].queues[1].cpu, Some(CpuId(4)));
}

#[test]
fn later_values_override_earlier_ones_and_keep_the_rest() {
    let i = intent(vec![
        Knob::Coalesce { queues: None, params: params(&[("rx-usecs", 5), ("tx-usecs", 7), ("use-adaptive-rx", 0)]) },
        Knob::Coalesce { queues: None, params: params(&[("rx-usecs", 9)]) },
    ]);
    let p = plan(&host(), &i, &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 moderation: rx-usecs 9 tx-usecs 7 use-adaptive-rx 0"]);
}

#[test]
fn interfaces_that_are_not_planned() {
    let mut s = host();
    s.nics[0].link.carrier = Fact::Known(false);
    s.nics[0].link.operstate = Fact::Known("down".into());
    let other = NicSpec::new("eth2", "ice", Some(0), 2, 2);
    let more =
        machines::host("w", CpuSpec::flat(8, 1), vec![NicSpec::new("x", "ice", Some(0), 1, 1), other]).snapshot();
    s.nics.push(more.nics[1].clone());
    let knobs = vec![Knob::Rings { values: RingValues::sizes(Some(1024), None) }];
    let p = plan(&s, &intent(knobs.clone()), &[]).unwrap();
    let alone = Obstacle::LeftAlone { obstacle: Box::new(Obstacle::LinkDown) };
    let configured = |r: &NotPossible| matches!(&r.why, Obstacle::Configured { obstacle, .. } if **obstacle == alone);
    assert!(p.refused.iter().any(configured), "{:?}", p.refused);
    let named = Intent { devs: vec!["eth2".into()], ..intent(knobs) };
    let p = plan(&s, &named, &[]).unwrap();
    assert!(p.refused.is_empty() && p.left_out.is_empty());
}

#[test]
fn a_host_with_one_cpu_accepts_configured_settings() {
    let mut s = host();
    let small = machines::host("w", CpuSpec::flat(1, 1), vec![NicSpec::new("eth1", "ice", Some(0), 1, 1)]).snapshot();
    let old = s.nics.remove(0);
    s = Snapshot { host: s.host, ..small };
    s.nics[0].coalesce = old.coalesce;
    let i = intent(vec![Knob::Coalesce { queues: None, params: params(&[("tx-usecs", 5)]) }]);
    assert_eq!(configured_steps(&plan(&s, &i, &[]).unwrap()), ["eth1 moderation: tx-usecs 5"]);
}

/// The kernel's request for single queues has no field for them.
#[test]
fn parameters_of_the_device_are_refused_for_queues() {
    let mut s = host();
    let values = params(&[("rx-usecs", 50), ("use-cqe-mode-rx", 0), ("rx-profile.0.usec", 1)]);
    s.nics[0].coalesce = Fact::Known(Coalesce(values));
    let asked = params(&[("rx-usecs", 5), ("use-cqe-mode-rx", 1), ("rx-profile.0.usec", 2)]);
    let of = |queues| Knob::Coalesce { queues, params: asked.clone() };
    let found = wrong(&s, &intent(vec![of(Some(vec![0, 3]))]));
    assert_eq!(
        found,
        ["eth1 moderation of queues 0,3 rx-profile.0.usec use-cqe-mode-rx: the kernel sets this only for the \
          whole device, not for single queues; configure it without queues"]
    );
    let p = plan(&s, &intent(vec![of(None)]), &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 moderation: rx-profile.0.usec 2 rx-usecs 5 use-cqe-mode-rx 1"]);
}

#[test]
fn a_kernel_without_transforms_is_reported() {
    let transform = |name: &str| Knob::RssHash { function: None, key: None, symmetric: Some(name.into()) };
    let p = plan(&host(), &intent(vec![transform("symmetric-xor")]), &[]).unwrap();
    assert!(configured_steps(&p).is_empty());
    let why: Vec<&Obstacle> = p.refused.iter().filter(|r| r.needed).map(|r| &r.why).collect();
    assert!(
        matches!(why[..], [Obstacle::Configured { obstacle, .. }] if **obstacle == Obstacle::NoSymmetric),
        "{why:?}"
    );
    // No transform is in effect, which is what `none` requests.
    let p = plan(&host(), &intent(vec![transform("none")]), &[]).unwrap();
    assert!(configured_steps(&p).is_empty() && p.refused.iter().all(|r| !r.needed), "{:?}", p.refused);
}

/// One thread per queue, on the CPU of the queue's interrupt; also for a thread that the plan creates.
#[test]
fn napi_threads_run_on_the_cpu_of_their_queue() {
    let mut s = host();
    let own = NapiValues { threaded: Some(0), ..NapiValues::default() };
    let thread = |q: u32| NapiThread { pid: 100 + q, cpus: Fact::Known(CpuSet::range(0, 7)) };
    let instances = |on: bool| -> Vec<NapiInstance> {
        let one = |q| NapiInstance {
            id: 8193 + q,
            rx: vec![q],
            tx: vec![q],
            values: Fact::Known(own),
            thread: on.then(|| thread(q)),
        };
        (0..8).map(one).collect()
    };
    let threads = |p: &Plan| -> Vec<(u32, String, bool)> {
        let each = p.steps.iter().filter_map(|x| match &x.setting {
            Setting::NapiThread { of: VectorName::Rx(q), cpus, .. } => Some((*q, cpus.to_string(), x.from.is_known())),
            _ => None,
        });
        each.collect()
    };
    let of_irq = |p: &Plan, known: bool| -> Vec<(u32, String, bool)> {
        let each = p.target.iter().filter_map(|x| match x {
            Setting::IrqCpus { of: VectorName::Rx(q), cpus, .. } => Some((*q, cpus.to_string(), known)),
            _ => None,
        });
        each.collect()
    };
    s.nics[0].napi = Fact::Known(Napi { device: own, instances: instances(false) });
    let p = plan(&s, &intent(vec![]), &[]).unwrap();
    assert!(threads(&p).is_empty());
    let on = NapiValues { threaded: Some(1), ..NapiValues::default() };
    let p = plan(&s, &intent(vec![Knob::Napi { queues: None, values: on }]), &[]).unwrap();
    assert_eq!((threads(&p).len(), threads(&p)), (8, of_irq(&p, false)));
    let p = plan(&s, &intent(vec![Knob::Napi { queues: Some(vec![2]), values: on }]), &[]).unwrap();
    assert_eq!(threads(&p), [of_irq(&p, false)[2].clone()]);
    // A thread exists already and may run on any CPU; an instance that is switched off has no thread.
    s.nics[0].napi = Fact::Known(Napi { device: on, instances: instances(true) });
    let irqs = Knob::IrqCpus { queues: Some(vec![3]), cpus: "1-2".parse().unwrap() };
    let p = plan(&s, &intent(vec![irqs]), &[]).unwrap();
    assert_eq!((threads(&p).len(), threads(&p)), (8, of_irq(&p, true)));
    assert_eq!(threads(&p)[3].1, "1-2");
    let p = plan(&s, &intent(vec![Knob::Napi { queues: None, values: own }]), &[]).unwrap();
    assert!(threads(&p).is_empty());
    // A channel change creates new instances, which have a thread only if the device is threaded.
    let fewer = Intent { queues: Some(4), allow_disruption: true, ..Intent::default() };
    let p = plan(&s, &fewer, &[]).unwrap();
    assert_eq!(threads(&p).into_iter().map(|t| t.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    s.nics[0].napi = Fact::Known(Napi { device: own, instances: instances(false) });
    let p = plan(&s, &fewer, &[]).unwrap();
    assert!(p.interrupts_traffic() && threads(&p).is_empty(), "{:?}", p.steps);
}

#[test]
fn a_sysctl_is_configured_if_the_kernel_has_it() {
    let knob = Knob::Sysctl { name: "net.core.netdev_budget".into(), value: "600".into() };
    let i = Intent {
        wishes: vec![Wish {
            dev: None,
            knob,
            by: ConfiguredBy::Flag { name: "--set".into() },
            params_by: Default::default(),
        }],
        ..Intent::default()
    };
    let mut s = host();
    assert_eq!(configured_steps(&plan(&s, &i, &[]).expect("can be planned")), ["net.core.netdev_budget: 600"]);
    s.host.sysctls.insert("net.core.netdev_budget".into(), Fact::Absent);
    match plan(&s, &i, &[]) {
        Ok(p) => assert_eq!(configured_steps(&p), [""; 0]),
        Err(e) => assert!(e.to_string().contains("no such sysctl"), "{e}"),
    }
}

/// The goal wants the same settings, but the user has configured them: each has one line.
#[test]
fn a_configured_setting_that_cannot_be_read_is_reported_once() {
    let nic = NicSpec::new("eth0", "ice", Some(0), 8, 8);
    let mut s = machines::host("db1", CpuSpec::flat(4, 1), vec![nic]).snapshot();
    s.nics[0].channels = Fact::unknown("channels-get eth0", "not in this capture");
    s.nics[0].features = Fact::unknown("features-get eth0", "not in this capture");
    let lines = |knobs: Vec<Knob>| {
        let of_eth0 = |knob| Wish { dev: Some("eth0".into()), ..wish(knob) };
        let wishes = knobs.into_iter().map(of_eth0).collect();
        let p = plan(&s, &Intent { goal: Goal::Rpc, wishes, ..Intent::default() }, &[]).expect("can be planned");
        let all = p.refused.into_iter().filter(|r| r.is_unread()).map(|r| (r.what, r.needed));
        all.filter(|(what, _)| what.contains("channels") || what.contains("ntuple")).collect::<Vec<_>>()
    };
    let of_goal = [("eth0 channels".to_string(), false), ("eth0 rx-ntuple-filter".to_string(), false)];
    let sorted = |mut all: Vec<(String, bool)>| {
        all.sort();
        all
    };
    assert_eq!(sorted(lines(Vec::new())), of_goal);
    let channels = Knob::Channels { rx: None, tx: None, combined: Some(4) };
    let ntuple = Knob::Feature { name: "ntuple".into(), on: true };
    let configured = [("eth0 channels".to_string(), true), ("eth0 ntuple".to_string(), true)];
    assert_eq!(sorted(lines(vec![channels, ntuple])), configured);
}
