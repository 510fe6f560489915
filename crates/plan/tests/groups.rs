//! Groups of queues: their queues and CPUs, their moderation, and the flows steered to them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ringwise_knob::{CreatedObject, Setting, VectorName, diff};
use ringwise_model::{
    Action, Coalesce, ConfiguredBy, CpuSet, Fact, FarNode, Feature, Flow, Goal, GroupQueues, GroupWish, Intent, Napi,
    NapiInstance, NapiValues, Rss, RssContext, Rule, Rules, Snapshot,
};
use ringwise_plan::{Group, ManualChanges, Obstacle, Plan, Refusal, plan, plan_around};
use ringwise_testkit::machines::{self, HostSpec, NicSpec, Vectors};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::{CpuSpec, Numbering};

fn params(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

pub(crate) fn spec(cpu: CpuSpec, nics: Vec<NicSpec>) -> HostSpec {
    machines::host("edge3", cpu, nics)
}

/// Adds the features of a large card: moderation by queue, rules, contexts.
pub(crate) fn with_knobs(mut s: Snapshot) -> Snapshot {
    for n in &mut s.nics {
        let queues = n.rx_queues.len() as u32;
        let now = params(&[("rx-usecs", 50), ("tx-usecs", 50), ("use-adaptive-rx", 1), ("use-adaptive-tx", 1)]);
        n.coalesce = Fact::Known(Coalesce(now.clone()));
        n.queue_coalesce = Fact::Known((0..queues).map(|q| (q, Coalesce(now.clone()))).collect());
        n.rss = Fact::Known(Rss {
            table: (0..512).map(|i| i % queues.max(1)).collect(),
            function: Fact::Known("toeplitz".into()),
            key: Fact::Known("6d".repeat(52)),
            fields: [("tcp4".to_string(), "sdfn".to_string())].into(),
            symmetric: Fact::Absent,
            contexts: Fact::Known(BTreeMap::new()),
        });
        let ntuple = Feature { on: false, wanted: false, fixed: false };
        n.features = Fact::Known([("rx-ntuple-filter".to_string(), ntuple)].into());
        n.rules = Fact::Known(Rules { capacity: 512, chooses_location: false, rules: BTreeMap::new() });
        n.napi = Fact::Known(Napi { device: NapiValues::default(), instances: Vec::new() });
    }
    s
}

/// Two nodes of twelve cores with two threads, one card with 48 queues.
pub(crate) fn article() -> Snapshot {
    let cpu = CpuSpec { packages: 2, numbering: Numbering::ThreadsLast, ..CpuSpec::flat(12, 2) };
    with_knobs(spec(cpu, vec![NicSpec::new("ens1f0", "ice", Some(0), 48, 48)]).snapshot())
}

pub(crate) fn mixed() -> Intent {
    Intent { goal: Goal::Mixed, ..Intent::default() }
}

pub(crate) fn wish(name: &str, policy: &str, queues: GroupQueues) -> GroupWish {
    GroupWish {
        name: name.into(),
        dev: "ens1f0".into(),
        policy: policy.into(),
        queues,
        cpus: None,
        weight: None,
        context: false,
        flows: Vec::new(),
        by: ConfiguredBy::File { path: "ringwise.toml".into(), line: 3 },
    }
}

pub(crate) fn port(n: u32) -> Flow {
    Flow::Match { flow: "tcp4".into(), fields: [("dst-port".to_string(), n.to_string())].into() }
}

pub(crate) fn group<'a>(p: &'a Plan, name: &str) -> &'a Group {
    p.groups.iter().find(|g| g.name == name).unwrap_or_else(|| panic!("{:?}", p.groups))
}

fn has(p: &Plan, what: &str) -> bool {
    p.target.iter().any(|t| t.address().is_some_and(|a| a.to_string() == what))
}

fn wrong(s: &Snapshot, i: &Intent) -> Vec<String> {
    match plan(s, i, &[]) {
        Err(Refusal::WrongWishes { wrong }) => {
            wrong.into_iter().map(|w| format!("{}: {}; {}", w.what, w.mistake.found(), w.mistake.right())).collect()
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn forty_eight_queues_on_two_nodes() {
    let p = plan(&article(), &mixed(), &[]).unwrap();
    let (latency, bulk) = (group(&p, "latency"), group(&p, "bulk"));
    assert_eq!(latency.queues, (0..16).collect::<Vec<_>>());
    assert_eq!(bulk.queues, (16..48).collect::<Vec<_>>());
    // Every local core, then second threads of local cores: no queue is on the other node.
    assert_eq!(latency.cpus.to_string(), "0-11,24-27");
    assert_eq!(bulk.cpus.to_string(), "12-23,28-47");
    assert!(p.layout[0].queues[..16].iter().all(|q| q.far == Some(false)));
    let twice: Vec<_> = p.doubled_cores.iter().filter(|d| d.group.as_deref() == Some("bulk")).collect();
    assert_eq!(twice.len(), 12);
    assert_eq!(p.doubled_cores.iter().filter(|d| d.group.as_deref() == Some("latency")).count(), 4);
    assert!(
        p.warnings
            .iter()
            .any(|w| w
                == "ens1f0 (12 physical cores: CPUs 12-23,36-47): each of these cores carries several bulk queues"),
        "{:?}",
        p.warnings
    );
    let queue = |q: u32| {
        p.target.iter().find_map(|t| match t {
            Setting::QueueCoalesce { queue, params, .. } if *queue == q => Some(params.clone()),
            _ => None,
        })
    };
    let of =
        |rx, tx| Some(params(&[("rx-usecs", rx), ("tx-usecs", tx), ("use-adaptive-rx", 0), ("use-adaptive-tx", 0)]));
    assert_eq!((queue(0), queue(15), queue(16), queue(47)), (of(5, 10), of(5, 10), of(62, 122), of(62, 122)));
    // No flows are steered: the table stays, and the plan reports that.
    assert!(!has(&p, "ens1f0 RSS table"));
    assert!(p.advice.iter().any(|a| a.starts_with("ens1f0: no flows are steered to groups yet")), "{:?}", p.advice);
    assert!(p.advice.iter().any(|a| a.starts_with("Workload unknown? Keep adaptive")));
    assert!(p.advice.iter().any(|a| a.starts_with("ens1f0 (now 16 of 48 queues for latency): the groups have fixed")));
    assert_eq!((latency.entries, bulk.entries), (Some(176), Some(336)));
    assert!(p.refused.is_empty(), "{:?}", p.refused);
}

#[test]
fn groups_are_resized_and_kept_on_the_local_node() {
    let p = plan(&article(), &Intent { latency_queues: Some(24), ..mixed() }, &[]).unwrap();
    assert_eq!(group(&p, "latency").cpus.to_string(), "0-11,24-35");
    assert!(p.layout[0].queues[..24].iter().all(|q| q.far == Some(false)));
    let near = plan(&article(), &Intent { far_node: Some(FarNode::Never), ..mixed() }, &[]).unwrap();
    assert_eq!(near.layout[0].queues.iter().filter(|q| q.far == Some(true)).count(), 0);
    assert!(near.warnings.iter().any(|w| w.starts_with("ens1f0 (48 queues on 24 CPUs")));
    for n in [0, 48, 49] {
        let got = wrong(&article(), &Intent { latency_queues: Some(n), ..mixed() });
        assert_eq!(
            got,
            [format!(
                "ens1f0 group latency of {n} queues: the interface has 48 queues, and the group can have 47 of them; expected 1 to 47 queues"
            )]
        );
    }
}

#[test]
fn the_articles_layout_with_its_policies() {
    let i = Intent { pair_as_article: true, ..mixed() };
    let p = plan(&article(), &i, &[]).unwrap();
    assert_eq!(group(&p, "latency").cpus.to_string(), "0-7,12-19");
    assert_eq!(group(&p, "bulk").cpus.to_string(), "8-11,20-47");
    assert_eq!(p.target.iter().filter(|t| matches!(t, Setting::QueueCoalesce { .. })).count(), 48);
    let plain = plan(&article(), &Intent { goal: Goal::Balanced, ..i }, &[]).unwrap();
    assert!(!plain.target.iter().any(|t| matches!(t, Setting::QueueCoalesce { .. } | Setting::Coalesce { .. })));
}

#[test]
fn a_number_of_latency_queues_is_never_ignored() {
    let number = |p: &Plan| {
        p.warnings.iter().any(|w| w.starts_with("3 latency queues (--latency-queues, or latency_queues) have no"))
    };
    let three = Intent { latency_queues: Some(3), ..mixed() };
    let p = plan(&article(), &Intent { goal: Goal::Rpc, ..three.clone() }, &[]).unwrap();
    assert!(number(&p), "{:?}", p.warnings);
    // Groups with other names have their own sizes.
    let web = wish("web", "latency", GroupQueues::Count(4));
    let p = plan(&article(), &Intent { groups: vec![web.clone()], ..three.clone() }, &[]).unwrap();
    assert!(number(&p), "{:?}", p.warnings);
    assert!(
        p.advice.iter().any(|a| a.starts_with("ens1f0 (now web 4 of 48 queues): ")
            && a.ends_with("Resize them in the configuration file.")),
        "{:?}",
        p.advice
    );
    // The group leaves the number open, has the same number, or another one.
    let group = |queues| Intent { groups: vec![wish("latency", "cpu", queues)], ..three.clone() };
    for queues in [GroupQueues::Auto, GroupQueues::Count(3), GroupQueues::These(vec![7, 8, 9])] {
        let p = plan(&article(), &group(queues.clone()), &[]).unwrap();
        assert!(!number(&p), "{:?}", p.warnings);
        let latency = p.groups.iter().find(|g| g.name == "latency").unwrap();
        assert_eq!((latency.queues.len(), latency.policy.as_deref()), (3, Some("cpu")));
        // The name of the policy does not matter.
        let now = match queues {
            GroupQueues::These(_) => "ens1f0 (now latency 3, bulk 45 of 48 queues): the groups have fixed",
            _ => "ens1f0 (now 3 of 48 queues for latency): the groups have fixed",
        };
        assert!(p.advice.iter().any(|a| a.contains(now)), "{:?}", p.advice);
    }
    for queues in [GroupQueues::Count(1), GroupQueues::These(vec![7])] {
        assert_eq!(
            wrong(&article(), &group(queues)),
            ["ens1f0 group latency of 1 queue: --latency-queues, or latency_queues, is 3; \
              expected the same number, or only one of the two"]
        );
    }
    let paired = Intent { pair_as_article: true, ..three };
    let p = plan(&article(), &paired, &[]).unwrap();
    assert_eq!((group_len(&p, "latency"), group_len(&p, "bulk")), (3, 45));
    let Err(e) = plan(&article(), &Intent { latency_queues: Some(48), ..paired }, &[]) else { panic!("not refused") };
    assert!(e.to_string().contains("with 48 latency queues: ens1f0 has 48 queues; expected 1 to 47"), "{e}");
}

fn group_len(p: &Plan, name: &str) -> usize {
    group(p, name).queues.len()
}

#[test]
fn no_other_group_beside_the_layout_of_the_article() {
    let mut w = wish("latency", "cpu", GroupQueues::Auto);
    w.cpus = Some("2-3".parse().unwrap());
    for goal in [Goal::Mixed, Goal::Balanced] {
        let i = Intent { pair_as_article: true, groups: vec![w.clone()], goal, ..Intent::default() };
        assert_eq!(
            wrong(&article(), &i),
            ["ens1f0 group latency: --pair-as-article divides all queues into groups latency and bulk; \
              use either the group or --pair-as-article"]
        );
    }
}

#[test]
fn named_flows_get_a_context_and_the_rest_stays_off_their_queues() {
    let mut w = wish("latency", "latency", GroupQueues::Count(4));
    w.flows = vec![port(443), port(53)];
    let p = plan(&article(), &Intent { groups: vec![w], ..mixed() }, &[]).unwrap();
    let text: Vec<String> = p
        .target
        .iter()
        .filter(|t| {
            matches!(
                t,
                Setting::RssTable { .. }
                    | Setting::RssContext { .. }
                    | Setting::FlowRule { .. }
                    | Setting::Ntuple { .. }
            )
        })
        .map(|t| format!("{}: {}", t.address().unwrap(), t.value_text()))
        .collect();
    let bulk: Vec<String> = (4..48).map(|q| format!("{q}:{}", if q < 32 { 12 } else { 11 })).collect();
    assert_eq!(
        text,
        [
            &format!("ens1f0 RSS table: 512 entries: {}", bulk.join(" ")),
            "ens1f0 RSS context 1: 512 entries: queues 0-3 128 each",
            "ens1f0 rx-ntuple-filter: on",
            "ens1f0 flow rule 0: tcp4 dst-port 443 context 1 action 0",
            "ens1f0 flow rule 1: tcp4 dst-port 53 context 1 action 0",
        ]
    );
    let g = group(&p, "latency");
    assert_eq!((g.entries, g.rules, g.context), (Some(0), Some(2), Some(1)));
    assert!(!p.advice.iter().any(|a| a.contains("no flows are steered")));
    // After the plan is applied, nothing is left to do.
    let after = project(&article(), &p.target);
    let mut w = wish("latency", "latency", GroupQueues::Count(4));
    w.flows = vec![port(443), port(53)];
    let again = plan(&after, &Intent { groups: vec![w], ..mixed() }, &[]).unwrap();
    assert!(again.steps.is_empty(), "{:?}", again.steps);
}

#[test]
fn without_contexts_each_rule_steers_to_one_queue() {
    let mut s = article();
    if let Fact::Known(r) = &mut s.nics[0].rss {
        r.contexts = Fact::Absent;
    }
    let mut w = wish("latency", "latency", GroupQueues::Count(4));
    w.flows = vec![port(443), port(53)];
    w.context = true;
    let p = plan(&s, &Intent { groups: vec![w], ..mixed() }, &[]).unwrap();
    let rules: Vec<String> =
        p.target.iter().filter(|t| matches!(t, Setting::FlowRule { .. })).map(Setting::value_text).collect();
    assert_eq!(rules, ["tcp4 dst-port 443 action 0", "tcp4 dst-port 53 action 1"]);
    assert!(p.refused.iter().any(|r| r.what == "ens1f0 RSS context of group latency"));
    assert!(
        p.warnings.iter().any(|w| w.contains("2 of the 4 queues of group latency get no flows from its 2 rules")),
        "{:?}",
        p.warnings
    );
}

#[test]
fn shares_of_the_table() {
    let mut a = wish("web", "latency", GroupQueues::These(vec![0, 1]));
    a.weight = Some(1);
    let mut b = wish("backup", "cpu", GroupQueues::Auto);
    b.weight = Some(3);
    let p = plan(&article(), &Intent { groups: vec![a, b], ..Intent::default() }, &[]).unwrap();
    assert_eq!((group(&p, "web").entries, group(&p, "backup").entries), (Some(128), Some(384)));
    assert_eq!(group(&p, "backup").queues.len(), 46);
    assert_eq!(group(&p, "backup").moderation.as_deref(), Some("rx-usecs 125 tx-usecs 250 on each queue"));
}

#[test]
fn a_driver_that_moderates_the_device_only() {
    let mut s = article();
    s.nics[0].queue_coalesce = Fact::Absent;
    let p = plan(&s, &mixed(), &[]).unwrap();
    let device = p.target.iter().find(|t| matches!(t, Setting::Coalesce { .. })).unwrap();
    assert_eq!(device.value_text(), "rx-usecs 62 tx-usecs 122 use-adaptive-rx 0 use-adaptive-tx 0");
    let r = p.refused.iter().find(|r| r.what == "ens1f0 moderation of single queues").unwrap();
    assert_eq!((r.needed, &r.why), (true, &Obstacle::OnePolicyForAll { policy: "bulk".into() }));
    // If the kernel defers single instances, the device interrupts at once and bulk queues wait.
    let values = NapiValues { defer_hard_irqs: Some(0), gro_flush_timeout_ns: Some(0), ..NapiValues::default() };
    let one =
        |q: u32| NapiInstance { id: 100 + q, rx: vec![q], tx: vec![q], values: Fact::Known(values), thread: None };
    s.nics[0].napi = Fact::Known(Napi { device: NapiValues::default(), instances: (0..48).map(one).collect() });
    let p = plan(&s, &mixed(), &[]).unwrap();
    let device = p.target.iter().find(|t| matches!(t, Setting::Coalesce { .. })).unwrap();
    assert_eq!(device.value_text(), "rx-usecs 5 tx-usecs 10 use-adaptive-rx 0 use-adaptive-tx 0");
    let napi = |q: u32| {
        p.target.iter().find_map(|t| match t {
            Setting::Napi { of: VectorName::Rx(n), values, .. } if *n == q => Some(*values),
            _ => None,
        })
    };
    assert_eq!(napi(0), Some(values));
    assert_eq!(napi(20).and_then(|v| v.gro_flush_timeout_ns), Some(62_000));
    assert!(p.refused.is_empty(), "{:?}", p.refused);
    // By queue and by instance: the second is the alternative to the first.
    s.nics[0].queue_coalesce = article().nics[0].queue_coalesce.clone();
    let p = plan(&s, &mixed(), &[]).unwrap();
    let step = p.steps.iter().find(|s| matches!(s.setting, Setting::QueueCoalesce { queue: 20, .. })).unwrap();
    assert!(
        matches!(step.instead.as_slice(), [Setting::Napi { of: VectorName::Rx(20), .. }, Setting::Coalesce { .. }]),
        "{:?}",
        step.instead
    );
}

#[test]
fn queues_without_moderation_of_their_own_are_deferred() {
    let mut s = article();
    let values = NapiValues { defer_hard_irqs: Some(0), gro_flush_timeout_ns: Some(0), ..NapiValues::default() };
    let one =
        |q: u32| NapiInstance { id: 100 + q, rx: vec![q], tx: vec![q], values: Fact::Known(values), thread: None };
    s.nics[0].napi = Fact::Known(Napi { device: NapiValues::default(), instances: (0..48).map(one).collect() });
    if let Fact::Known(all) = &mut s.nics[0].queue_coalesce {
        all.retain(|q, _| q % 2 == 0);
    }
    let p = plan(&s, &mixed(), &[]).unwrap();
    let napi: Vec<u32> = p
        .target
        .iter()
        .filter_map(|t| match t {
            Setting::Napi { of: VectorName::Rx(q), .. } => Some(*q),
            _ => None,
        })
        .collect();
    assert_eq!(napi, (0..48).filter(|q| q % 2 == 1).collect::<Vec<_>>());
    assert_eq!(p.target.iter().filter(|t| matches!(t, Setting::QueueCoalesce { .. })).count(), 24);
    assert!(p.refused.is_empty(), "{:?}", p.refused);
}

#[test]
fn one_queue_cannot_be_divided() {
    let one = with_knobs(spec(CpuSpec::flat(4, 1), vec![NicSpec::new("eth0", "e1000e", Some(0), 1, 1)]).snapshot());
    let p = plan(&one, &mixed(), &[]).unwrap();
    assert!(p.groups.is_empty() && p.warnings.iter().any(|w| w.contains("it has one queue")), "{:?}", p.warnings);
    let shared = NicSpec { vectors: Vectors::Shared, ..NicSpec::new("eth0", "ice", Some(0), 4, 4) };
    let p = plan(&with_knobs(spec(CpuSpec::flat(4, 1), vec![shared]).snapshot()), &mixed(), &[]).unwrap();
    assert!(p.warnings.iter().any(|w| w.contains("share one interrupt")), "{:?}", p.warnings);
}

#[test]
fn two_groups_never_claim_one_queue() {
    let a = wish("web", "latency", GroupQueues::These(vec![0, 1, 2]));
    let b = wish("backup", "bulk", GroupQueues::These(vec![2, 3, 99]));
    let c = wish("voice", "fast", GroupQueues::Count(1));
    let mut d = wish("web", "cpu", GroupQueues::Count(1));
    d.cpus = Some("7,99".parse().unwrap());
    let got = wrong(&article(), &Intent { groups: vec![a, b, c, d], ..Intent::default() });
    assert_eq!(
        got,
        [
            "ens1f0 group backup queue 2: it already belongs to group web; expected each queue in one group only",
            "ens1f0 group backup queue 99: there are 48 rx queues; expected queues 0-47",
            "ens1f0 group voice policy fast: there is no such policy; expected one of latency bulk cpu",
            "ens1f0 group web: two groups have this name; expected a different name for each group",
            "ens1f0 group web cpus: CPU 99 is not online; online CPUs are 0-47",
        ]
    );
    let all = wish("all", "bulk", GroupQueues::Count(49));
    let got = wrong(&article(), &Intent { groups: vec![all], ..Intent::default() });
    assert_eq!(
        got,
        [
            "ens1f0 group all of 49 queues: the interface has 48 queues, and the group can have 48 of them; expected 1 to 48 queues"
        ]
    );
    // Queues are divided only among valid groups: with an invalid one, numbers are not checked.
    let unknown = wish("voice", "fast", GroupQueues::Count(49));
    assert_eq!(
        wrong(&article(), &Intent { groups: vec![unknown], ..Intent::default() }),
        ["ens1f0 group voice policy fast: there is no such policy; expected one of latency bulk cpu"]
    );
    let twins = vec![wish("web", "bulk", GroupQueues::Count(49)), wish("web", "bulk", GroupQueues::Count(1))];
    assert_eq!(
        wrong(&article(), &Intent { groups: twins, ..Intent::default() }),
        ["ens1f0 group web: two groups have this name; expected a different name for each group"]
    );
}

#[test]
fn groups_on_cpus_of_their_own() {
    let mut w = wish("web", "latency", GroupQueues::Count(4));
    w.cpus = Some("30-31".parse().unwrap());
    let p = plan(&article(), &Intent { groups: vec![w], ..Intent::default() }, &[]).unwrap();
    let cpus: Vec<u32> = p.layout[0].queues.iter().take(4).map(|q| q.cpu.unwrap().0).collect();
    assert_eq!(cpus, [30, 31, 30, 31]);
    assert_eq!(p.target.iter().filter(|t| matches!(t, Setting::QueueCoalesce { .. })).count(), 4);
}

#[test]
fn a_goal_of_one_interface() {
    let cpu = CpuSpec::flat(8, 1);
    let nics = vec![NicSpec::new("eth1", "ice", Some(0), 4, 4), NicSpec::new("eth2", "ice", Some(0), 4, 4)];
    let s = with_knobs(spec(cpu, nics).snapshot());
    let i = Intent { dev_goals: [("eth2".to_string(), Goal::Mixed)].into(), ..Intent::default() };
    let p = plan(&s, &i, &[]).unwrap();
    assert!(p.groups.iter().all(|g| g.dev == "eth2") && p.groups.len() == 2);
    // No CPU has two queues: the interfaces share the machine regardless of their goals.
    let used: BTreeSet<_> = p.layout.iter().flat_map(|l| &l.queues).map(|q| q.cpu).collect();
    assert_eq!(used.len(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(600), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_are_disjoint_near_and_final(
        (packages, cores, threads) in (1u32..=2, 1u32..=8, 1u32..=2),
        queues in 2u32..=24,
        node in prop::option::of(0u32..2),
        latency in prop::option::of(1u32..=6),
        twos in any::<bool>(),
        far in prop::option::of(Just(FarNode::Never)),
        flows in any::<bool>(),
    ) {
        let cpu = CpuSpec { packages, ..CpuSpec::flat(cores, threads) };
        let nic = NicSpec {
            vectors: if twos { Vectors::Twos } else { Vectors::Paired },
            ..NicSpec::new("ens1f0", "ice", node.filter(|n| *n < packages), queues, 64)
        };
        let s = with_knobs(spec(cpu, vec![nic]).snapshot());
        let mut w = wish("latency", "latency", latency.map_or(GroupQueues::Auto, GroupQueues::Count));
        w.flows = if flows { vec![port(80)] } else { Vec::new() };
        let i = Intent { groups: vec![w], far_node: far, ..mixed() };
        let p = match plan(&s, &i, &[]) {
            Ok(p) => p,
            Err(Refusal::WrongWishes { .. }) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let mut seen = BTreeSet::new();
        for q in p.groups.iter().flat_map(|g| &g.queues) {
            prop_assert!(seen.insert(*q), "queue {q} twice");
        }
        if let [a, b] = p.groups.as_slice() {
            prop_assert_eq!(seen.len() as u32, queues);
            prop_assert!(latency.is_some() || twos || queues < 3 || a.queues.len() < b.queues.len());
        }
        // A queue must not be on a remote CPU while a local CPU has no queue.
        let used = p.layout[0].queues.iter().filter_map(|q| q.cpu).collect::<CpuSet>();
        if p.layout[0].queues.iter().any(|q| q.far == Some(true)) {
            let near = p.layout[0].node.and_then(|n| s.topology.node(n)).map(|n| n.cpus.clone()).unwrap_or_default();
            prop_assert!(near.is_subset(&used), "near {near}, used {used}");
            prop_assert!(far.is_none());
        }
        // After the plan is applied, nothing is left to do.
        let after = project(&s, &p.target);
        let again = plan(&after, &i, &[]).expect("possible before");
        prop_assert!(again.steps.is_empty(), "{:?}", again.steps);
        prop_assert_eq!(&again.groups, &p.groups);
        let map = p.target.iter().filter_map(|t| t.address().map(|a| (a, t.clone()))).collect();
        prop_assert!(diff(&after, &map).is_empty());
    }
}

/// An interface with one queue has no groups: it stays on the local node, on a CPU that has a queue already.
#[test]
fn one_queue_is_not_placed_on_a_remote_node() {
    let nics = vec![
        NicSpec::new("eth0", "ice", Some(1), 8, 8),
        NicSpec { vectors: Vectors::Shared, ..NicSpec::new("eth1", "e1000e", Some(1), 1, 0) },
    ];
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 1) };
    let s = spec(cpu, nics).snapshot();
    let p = plan(&s, &Intent { goal: Goal::Mixed, ..Intent::default() }, &[]).unwrap();
    let of = |dev: &str| &p.layout.iter().find(|l| l.dev == dev).unwrap().queues;
    assert!(of("eth0").iter().any(|q| q.far == Some(true)), "{:?}", of("eth0"));
    assert_eq!(of("eth1")[0].far, Some(false));
}

/// The number of queues after the plan counts: planning again finds one queue there and must not move it.
#[test]
fn an_interface_with_one_queue_left_stays_on_the_local_node() {
    let nics = ["eth0", "eth1"].map(|n| NicSpec::new(n, "igb", Some(1), if n == "eth0" { 1 } else { 2 }, 2));
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(1, 1) };
    let s = spec(cpu, nics.to_vec()).snapshot();
    let i = Intent { goal: Goal::Mixed, queues: Some(1), allow_disruption: true, ..Intent::default() };
    let p = plan(&s, &i, &[]).unwrap();
    assert!(p.interrupts_traffic());
    assert!(p.layout.iter().flat_map(|l| &l.queues).all(|q| q.far == Some(false)), "{:?}", p.layout);
    assert_eq!(plan(&project(&s, &p.target), &i, &[]).unwrap().steps, []);
}

/// A context that an earlier plan created is used again, unless a rule of another program steers to it.
#[test]
fn a_context_of_an_earlier_plan_is_used_again() {
    let context = |rule: Option<Option<u32>>| {
        let mut s = article();
        let n = &mut s.nics[0];
        let table: Vec<u32> = (0..512).map(|i| i % 2).collect();
        let Fact::Known(rss) = &mut n.rss else { panic!("there is one") };
        rss.contexts = Fact::Known([(1, RssContext { table: table.clone(), key: None })].into());
        let Fact::Known(rules) = &mut n.rules else { panic!("there are some") };
        let fields = || [("dst-port".to_string(), "22".to_string())].into();
        let other = |context| Rule { flow: "tcp4".into(), fields: fields(), action: Action::Queue(0), context };
        rules.rules.extend(rule.map(|context| (9, other(context))));
        let dev = || "ens1f0".to_string();
        let made = CreatedObject {
            setting: Setting::RssContext { dev: dev(), context: 1, table: Some(table), key: None },
            before: Setting::RssContext { dev: dev(), context: 1, table: None, key: None },
            transaction: 7,
            as_left: true,
        };
        let mut w = wish("latency", "latency", GroupQueues::Count(4));
        w.flows = vec![port(443)];
        let hands = ManualChanges { made: vec![made], ..ManualChanges::default() };
        let p = plan_around(&s, &Intent { groups: vec![w], ..mixed() }, &[], &hands).unwrap();
        group(&p, "latency").context
    };
    assert_eq!(context(None), Some(1));
    assert_eq!(context(Some(None)), Some(1), "a rule of another program without a context");
    assert_eq!(context(Some(Some(1))), Some(2), "a rule of another program to this context");
}

/// The service adds the rules when the program starts, and may not restart the device then.
#[test]
fn a_program_that_does_not_listen_yet_gets_the_feature_first_if_that_restarts_the_device() {
    let mut w = wish("latency", "latency", GroupQueues::Count(4));
    w.flows = vec![Flow::Program("nginx".into())];
    let i = Intent { groups: vec![w], ..mixed() };
    let asked = |driver: &str| {
        let mut s = article();
        s.nics[0].driver = Fact::Known(driver.into());
        plan(&s, &i, &[]).unwrap().left_out.iter().any(|l| matches!(l.setting, Setting::Ntuple { .. }))
    };
    assert!(asked("i40e") && !asked("ice"));
}
