//! A sample of the traffic decides about the policy of the bulk group and about the sizes of the groups.

use ringwise_knob::{Reason, Setting};
use ringwise_model::{
    Action, CpuId, Fact, Goal, GroupQueues, Intent, NotSampled, Policy, Rule, Sample, SampledCpu, SampledInterface,
    SampledQueue, Snapshot, TrafficSample,
};
use ringwise_plan::{
    BUSY_PERCENT, BulkPolicy, FEWEST_FRAMES_PER_S, GroupSizes, GroupsUndecided, PlacementChoice, Plan,
    SMALL_FRAME_BYTES, plan,
};
use ringwise_testkit::machines::{NicSpec, Vectors};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::CpuSpec;

use crate::groups::{article, group, mixed, port, spec, wish, with_knobs};

const FULL_FRAME_BYTES: u64 = 1514;

/// Ten seconds with a million frames of this size. Each of 48 CPUs is as busy, and queue n was served by CPU n.
fn sample(busy_permille: u32, frame_bytes: u64) -> TrafficSample {
    let (busy_permille, interrupt_permille) = (Some(busy_permille), Some(busy_permille / 2));
    let cpu = |n| SampledCpu { cpu: CpuId(n), busy_permille, interrupt_permille };
    let queue = |n| SampledQueue {
        queue: n,
        packets: Some(20_000),
        bytes: Some(20_000 * frame_bytes),
        interrupts: Some(9000),
        cpu: Some(CpuId(n)),
    };
    let frames = 1_000_000;
    TrafficSample {
        duration_ms: 10_000,
        cpus: (0..48).map(cpu).collect(),
        interfaces: vec![SampledInterface {
            dev: "ens1f0".into(),
            frames: Some(frames),
            bytes: Some(frames * frame_bytes),
            queues: (0..48).map(queue).collect(),
        }],
    }
}

fn sampled(s: TrafficSample) -> Intent {
    Intent { sample: Some(Sample::Taken(s)), ..mixed() }
}

fn planned(s: &Snapshot, i: &Intent) -> Plan {
    plan(s, i, &[]).unwrap()
}

/// The chosen policy, and how busy the CPUs were.
fn policy(p: &Plan) -> (String, u32) {
    match &p.sampled[0].policy {
        BulkPolicy::Load { policy, busy_percent, threshold_percent } => {
            assert_eq!((*threshold_percent, group(p, "bulk").policy.as_ref()), (BUSY_PERCENT, Some(policy)));
            (policy.clone(), *busy_percent)
        }
        BulkPolicy::Kept { why } => panic!("{why:?}"),
    }
}

/// The share of small frames, and the sizes of both groups.
fn sizes(p: &Plan) -> (u32, usize, usize) {
    let of = |name| group(p, name).queues.len();
    match &p.sampled[0].sizes {
        GroupSizes::Traffic { small_percent, latency_queues, of_queues, .. } => {
            assert_eq!((*latency_queues as usize, *of_queues as usize), (of("latency"), of("latency") + of("bulk")));
            (*small_percent, of("latency"), of("bulk"))
        }
        other => panic!("{other:?}"),
    }
}

/// Why policy and sizes are as without a sample, which they must be.
fn kept(s: &Snapshot, i: &Intent) -> (Option<GroupsUndecided>, Option<GroupsUndecided>) {
    let p = planned(s, i);
    let without = planned(s, &Intent { sample: None, ..i.clone() });
    let policy = match &p.sampled[0].policy {
        BulkPolicy::Kept { why } => Some(*why),
        BulkPolicy::Load { .. } => None,
    };
    let sizes = match &p.sampled[0].sizes {
        GroupSizes::Kept { why } => Some(*why),
        GroupSizes::Traffic { .. } | GroupSizes::Steered { .. } => None,
    };
    if policy.is_some() && sizes.is_some() {
        assert_eq!((&p.groups, &p.target, &p.layout), (&without.groups, &without.target, &without.layout));
        assert!(p.warnings.iter().any(|w| w.contains("--sample does not decide")), "{:?}", p.warnings);
    }
    (policy, sizes)
}

#[test]
fn bulk_while_cpus_are_idle_and_cpu_while_they_are_busy() {
    let of = |permille| policy(&planned(&article(), &sampled(sample(permille, 800))));
    assert_eq!(of(30), ("bulk".to_string(), 3));
    assert_eq!(of(900), ("cpu".to_string(), 90));
    // The policy follows the number that is printed.
    assert_eq!(of(494), ("bulk".to_string(), 49));
    assert_eq!(of(496), ("cpu".to_string(), 50));
    assert_eq!(of(500), ("cpu".to_string(), BUSY_PERCENT));
    let p = planned(&article(), &sampled(sample(900, 800)));
    let bulk = group(&p, "bulk").queues[0];
    let step = p.steps.iter().find(|s| matches!(s.setting, Setting::QueueCoalesce { queue, .. } if queue == bulk));
    let step = step.unwrap();
    let Setting::QueueCoalesce { params, .. } = &step.setting else { panic!() };
    assert_eq!((params["rx-usecs"], params["tx-usecs"]), (125, 250));
    let Reason::GroupPolicy { policy, busy_percent, .. } = &step.reason else { panic!("{:?}", step.reason) };
    assert_eq!((policy.as_str(), *busy_percent), ("cpu", Some(90)));
    assert!(
        step.reason.to_string().ends_with("the CPUs of its queues were 90 % busy in the sample"),
        "{}",
        step.reason
    );
    let note = p.advice.iter().find(|a| a.contains("90 % busy")).unwrap();
    assert!(note.contains("at least 50 % (a rule of thumb), so the queues get policy cpu"), "{note}");
    assert!(!p.advice.iter().any(|a| a.contains("The load of the CPUs is unknown")), "{:?}", p.advice);
}

/// All interrupts are on CPU 0 now. The plan spreads them, so the CPUs of the group will not be busy by them. What
/// programs use of a CPU stays there.
#[test]
fn interrupts_move_with_their_queues() {
    let mut s = sample(0, 800);
    s.interfaces[0].queues.iter_mut().for_each(|q| q.cpu = Some(CpuId(0)));
    s.cpus[0] = SampledCpu { cpu: CpuId(0), busy_permille: Some(1000), interrupt_permille: Some(960) };
    assert_eq!(policy(&planned(&article(), &sampled(s.clone()))), ("bulk".to_string(), 2));
    // Queues without interrupts have nothing that could move.
    let still = |s: &mut TrafficSample, interrupts| {
        s.interfaces[0].queues.iter_mut().for_each(|q| (q.cpu, q.interrupts) = (None, interrupts));
        s.cpus[0] = SampledCpu { cpu: CpuId(0), busy_permille: Some(0), interrupt_permille: Some(0) };
    };
    still(&mut s, Some(0));
    assert_eq!(policy(&planned(&article(), &sampled(s.clone()))), ("bulk".to_string(), 0));
    still(&mut s, None);
    assert_eq!(kept(&article(), &sampled(s)).0, Some(GroupsUndecided::LoadUnknown));
}

#[test]
fn sizes_follow_the_share_of_small_frames() {
    let of = |bytes| sizes(&planned(&article(), &sampled(sample(100, bytes))));
    assert_eq!(of(821), (50, 24, 24));
    assert_eq!(of(1168), (25, 12, 36));
    // Each group has at least one queue.
    for small in [60, u64::from(SMALL_FRAME_BYTES)] {
        assert_eq!(of(small), (100, 47, 1));
    }
    for full in [FULL_FRAME_BYTES, 9000] {
        assert_eq!(of(full), (0, 1, 47));
    }
    let p = planned(&article(), &sampled(sample(100, 821)));
    let note = p.advice.iter().find(|a| a.contains("frames with a mean")).unwrap();
    assert!(note.contains("1,000,000 frames with a mean of 821 bytes"), "{note}");
    assert!(note.contains("About 50 % of them were small, so 24 of 48 queues are for latency"), "{note}");
    assert!(p.advice.iter().any(|a| a.contains("stay when the traffic changes")), "{:?}", p.advice);
    assert!(!p.advice.iter().any(|a| a.contains("fixed sizes")), "{:?}", p.advice);
}

/// With the article's layout, each group has queues on both nodes.
#[test]
fn halves_of_the_articles_layout() {
    let i = |bytes| Intent { pair_as_article: true, ..sampled(sample(800, bytes)) };
    let p = planned(&article(), &i(821));
    assert_eq!(sizes(&p), (50, 24, 24));
    assert_eq!(group(&p, "latency").cpus.to_string(), "0-23");
    assert_eq!(policy(&p), ("cpu".to_string(), 80));
    for (bytes, want) in [(60, (100, 46, 2)), (FULL_FRAME_BYTES, (0, 2, 46))] {
        let p = planned(&article(), &i(bytes));
        assert_eq!(sizes(&p), want);
        for name in ["latency", "bulk"] {
            let cpus = &group(&p, name).cpus;
            assert!(cpus.iter().any(|c| c.0 % 24 < 12) && cpus.iter().any(|c| c.0 % 24 >= 12), "{name} {cpus}");
        }
    }
    let three = Intent { latency_queues: Some(3), ..i(821) };
    assert_eq!(kept(&article(), &three), (None, Some(GroupsUndecided::Configured)));
    assert_eq!(group(&planned(&article(), &three), "latency").queues.len(), 3);
}

/// Queues that share an interrupt stay in one group.
#[test]
fn shared_interrupts_are_not_divided() {
    let nic = NicSpec { vectors: Vectors::Twos, ..NicSpec::new("ens1f0", "i40e", Some(0), 8, 8) };
    let s = with_knobs(spec(CpuSpec::flat(24, 2), vec![nic]).snapshot());
    for (bytes, want) in [(60, (100, 6, 2)), (821, (50, 4, 4)), (FULL_FRAME_BYTES, (0, 2, 6))] {
        assert_eq!(sizes(&planned(&s, &sampled(sample(100, bytes)))), want);
    }
}

#[test]
fn what_the_sample_does_not_tell_stays_as_without_it() {
    let s = article();
    let both = |why| (Some(why), Some(why));
    for why in [NotSampled::NotRecorded, NotSampled::Passive, NotSampled::NoTimePassed] {
        let i = Intent { sample: Some(Sample::NotTaken(why)), ..mixed() };
        assert_eq!(kept(&s, &i), both(GroupsUndecided::NotSampled { why }));
    }
    let with = |change: &dyn Fn(&mut TrafficSample)| {
        let mut taken = sample(900, 800);
        change(&mut taken);
        kept(&s, &sampled(taken))
    };
    assert_eq!(with(&|t| t.interfaces.clear()), both(GroupsUndecided::NotCounted));
    assert_eq!(with(&|t| t.interfaces[0].frames = None), both(GroupsUndecided::NotCounted));
    assert_eq!(with(&|t| t.interfaces[0].bytes = None), (None, Some(GroupsUndecided::NotCounted)));
    let few = FEWEST_FRAMES_PER_S * 10;
    let frames = few - 1;
    assert_eq!(with(&|t| t.interfaces[0].frames = Some(frames)), both(GroupsUndecided::NoTraffic { frames }));
    assert_eq!(with(&|t| t.interfaces[0].frames = Some(few)), (None, None));
    // A CPU of the bulk group, and the CPU that served one of its queues.
    let unknown = (Some(GroupsUndecided::LoadUnknown), None);
    assert_eq!(with(&|t| t.cpus[47].busy_permille = None), unknown);
    assert_eq!(with(&|t| t.cpus.truncate(47)), unknown);
    assert_eq!(with(&|t| t.interfaces[0].queues[47].cpu = None), unknown);
    assert_eq!(with(&|t| t.interfaces[0].queues.truncate(40)), unknown);
    let mut without_mtu = s.clone();
    without_mtu.nics[0].link.mtu = Fact::unknown("mtu", "not in this capture");
    assert_eq!(kept(&without_mtu, &sampled(sample(900, 800))), (None, Some(GroupsUndecided::MtuUnknown)));
}

#[test]
fn what_is_configured_takes_precedence() {
    let s = article();
    let busy = || sampled(sample(900, 800));
    let with = |groups| kept(&s, &Intent { groups, ..busy() });
    let fixed = Some(GroupsUndecided::Configured);
    assert_eq!(kept(&s, &Intent { latency_queues: Some(5), ..busy() }), (None, fixed));
    assert_eq!(with(vec![wish("latency", "latency", GroupQueues::Count(5))]), (None, fixed));
    assert_eq!(with(vec![wish("latency", "latency", GroupQueues::Auto)]), (None, None));
    assert_eq!(with(vec![wish("bulk", "bulk", GroupQueues::Auto)]), (fixed, None));
    assert_eq!(with(vec![wish("web", "latency", GroupQueues::Count(5))]), (fixed, fixed));
    let mut steered = wish("latency", "latency", GroupQueues::Auto);
    steered.flows = vec![port(443)];
    assert_eq!(with(vec![steered]), (None, Some(GroupsUndecided::FlowsNotSteered)));
    // An own policy overrides the built-in one.
    let mut own: Policy = ringwise_plan::policies::find("cpu", &[]).unwrap();
    own.params.insert("rx-usecs".into(), 200);
    let p = planned(&s, &Intent { policies: vec![own], ..busy() });
    let slow = |t: &Setting| matches!(t, Setting::QueueCoalesce { params, .. } if params["rx-usecs"] == 200);
    assert_eq!(p.target.iter().filter(|t| slow(t)).count(), group(&p, "bulk").queues.len());
}

/// The flows of the latency group are steered to queues of their own, so the counters of these queues are its traffic.
#[test]
fn steered_flows_are_counted_at_their_queues() {
    let mut latency = wish("latency", "latency", GroupQueues::Auto);
    latency.flows = vec![port(443), port(53)];
    let without = Intent { groups: vec![latency], ..mixed() };
    let s = project(&article(), &planned(&article(), &without).target);
    // 16 of 48 queues now, with half of the packets. The size of frames does not matter.
    let mut taken = sample(100, FULL_FRAME_BYTES);
    taken.interfaces[0].queues.iter_mut().for_each(|q| q.packets = Some(if q.queue < 16 { 20_000 } else { 10_000 }));
    let with = |s: &Snapshot, t: &TrafficSample| {
        let i = Intent { sample: Some(Sample::Taken(t.clone())), ..without.clone() };
        let p = planned(s, &i);
        (p.sampled[0].sizes.clone(), group(&p, "latency").queues.len(), p)
    };
    let (sizes, n, p) = with(&s, &taken);
    let want = GroupSizes::Steered { packets: 640_000, latency_percent: 50, latency_queues: 24, of_queues: 48 };
    assert_eq!((sizes, n), (want, 24));
    let note = "of 640,000 packets received in the sample of 10 s, 50 % were for the latency group by the flow rules";
    assert!(p.advice.iter().any(|a| a.contains(note)), "{:?}", p.advice);
    // Applied, and with the same share on the new queues, nothing is left to do.
    let after = project(&s, &p.target);
    taken.interfaces[0].queues.iter_mut().for_each(|q| q.packets = Some(10_000));
    let (_, n, again) = with(&after, &taken);
    assert!(n == 24 && again.steps.is_empty(), "{:#?}", again.steps);
    let kept = |s: &Snapshot, t: &TrafficSample| match with(s, t).0 {
        GroupSizes::Kept { why } => why,
        other => panic!("{other:?}"),
    };
    // Another rule sends to a queue of the group; the table does; a rule is missing.
    let rules = |s: &mut Snapshot, change: &dyn Fn(&mut ringwise_model::Rules)| match &mut s.nics[0].rules {
        Fact::Known(r) => change(r),
        other => panic!("{other:?}"),
    };
    let ssh = Rule {
        flow: "tcp4".into(),
        fields: [("dst-port".to_string(), "22".to_string())].into(),
        action: Action::Queue(3),
        context: None,
    };
    let mut other = after.clone();
    rules(&mut other, &|r| _ = r.rules.insert(99, ssh.clone()));
    assert_eq!(kept(&other, &taken), GroupsUndecided::FlowsNotSteered);
    let mut other = after.clone();
    rules(&mut other, &|r| _ = r.rules.pop_first());
    assert_eq!(kept(&other, &taken), GroupsUndecided::FlowsNotSteered);
    let mut other = after.clone();
    let Fact::Known(rss) = &mut other.nics[0].rss else { panic!() };
    rss.table[0] = 0;
    assert_eq!(kept(&other, &taken), GroupsUndecided::FlowsNotSteered);
    // What was not counted is not 0.
    let mut unknown = taken.clone();
    unknown.interfaces[0].queues[40].packets = None;
    assert_eq!(kept(&after, &unknown), GroupsUndecided::NotCounted);
    taken.interfaces[0].queues.iter_mut().for_each(|q| q.packets = Some(1));
    assert_eq!(kept(&after, &taken), GroupsUndecided::NoTraffic { frames: 48 });
}

/// The plan contains the sample, so that what is made of its intent, or read from its file, is the same plan.
#[test]
fn the_sample_is_part_of_the_plan() {
    let s = article();
    let i = sampled(sample(900, 821));
    let p = planned(&s, &i);
    assert_eq!(p.intent.sample, i.sample);
    assert_eq!(serde_json::from_value::<Plan>(serde_json::to_value(&p).unwrap()).unwrap(), p);
    assert_eq!(planned(&s, &p.intent).target, p.target);
    let after = project(&s, &p.steps.iter().map(|x| x.setting.clone()).collect::<Vec<_>>());
    let again = planned(&after, &p.intent);
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
    assert_eq!(again.groups, p.groups);
}

#[test]
fn another_goal_has_no_groups_to_choose() {
    let i = Intent { goal: Goal::Rpc, ..sampled(sample(900, 800)) };
    let p = planned(&article(), &i);
    assert!(p.sampled.is_empty(), "{:?}", p.sampled);
    let placement = p.sampled_placement.as_ref().map(|s| &s.choice);
    assert_eq!(placement, Some(&PlacementChoice::AsGood { packets: 960_000 }));
    let without = planned(&article(), &Intent { sample: None, ..i });
    assert_eq!(p.target, without.target);
}

#[test]
fn what_a_later_version_recorded_is_kept_readable() {
    let later = serde_json::json!({ "dev": "eth0", "sizes": { "choice": "kept", "why": { "code": "new", "x": 1 } },
        "policy": { "choice": "kept", "why": { "code": "no_traffic", "frames": 3 } } });
    let read: ringwise_plan::SampledGroups = serde_json::from_value(later).unwrap();
    assert_eq!(read.sizes, GroupSizes::Kept { why: GroupsUndecided::Unknown });
    assert_eq!(read.policy, BulkPolicy::Kept { why: GroupsUndecided::NoTraffic { frames: 3 } });
}
