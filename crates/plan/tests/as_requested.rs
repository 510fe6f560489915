//! Plans with `--far-node ok` or another number of queues cite only rules that `check` reports for the host, and the request.

use std::collections::BTreeSet;

use ringwise_knob::{Reason, Setting};
use ringwise_model::{
    ConfiguredBy, Fact, FarNode, Goal, Intent, Knob, Shaper, ShaperPlace, Shapers, Smt, Snapshot, Wish,
};
use ringwise_plan::{Plan, plan};
use ringwise_testkit::machines::{self, Irqs, NicSpec};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::CpuSpec;

fn ok(s: &Snapshot, intent: &Intent) -> Plan {
    plan(s, intent, &[]).expect("can be planned")
}

fn rules(p: &Plan) -> BTreeSet<&str> {
    p.steps.iter().map(|s| s.rule.as_str()).collect::<BTreeSet<_>>()
}

/// Each of the ten machines as a plan without the request leaves it: `check` reports nothing about its layout.
#[test]
fn a_layout_without_findings_gets_none_by_a_request() {
    let (mut far, mut fewer) = (0, 0);
    for host in machines::ten() {
        // Groups of queues may use remote CPUs in any case, and move queues for other reasons.
        for goal in Goal::ALL.into_iter().filter(|g| *g != Goal::Mixed) {
            let plain = Intent { goal, ..Intent::default() };
            let s = host.snapshot();
            let Ok(p) = plan(&s, &plain, &[]) else { continue };
            let s = project(&s, &p.target);
            assert_eq!(rules(&ok(&s, &plain)), BTreeSet::new(), "{} {goal}", host.name);
            let p = ok(&s, &Intent { far_node: Some(FarNode::Ok), ..plain.clone() });
            assert!(rules(&p).is_subset(&["W01"].into()), "{} {goal}: {:#?}", host.name, p.steps);
            far += p.steps.len();
            for queues in [1, 2, 3] {
                let p = plan(&s, &Intent { queues: Some(queues), allow_disruption: true, ..plain.clone() }, &[]);
                let Ok(p) = p else { continue };
                // A single queue is a finding of its own: RPS helps it.
                let allowed = BTreeSet::from(["R0.11", "R0.12", "Q04", "Q07", "W01"]);
                let moved = p.steps.iter().filter(|s| !matches!(s.reason, Reason::Reset { .. }));
                let cited: BTreeSet<&str> = moved.map(|s| s.rule.as_str()).collect();
                assert!(cited.is_subset(&allowed), "{} {goal} {queues}: {:?} {:#?}", host.name, cited, p.steps);
                fewer += p.steps.len();
            }
        }
    }
    assert!(far > 100 && fewer > 100, "{far} {fewer}");
}

/// Eight queues on the four cores of node 0, with two nodes.
fn host(irqs: Irqs, queues: u32) -> Snapshot {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 1) };
    let nic = NicSpec { irqs, ..NicSpec::new("eth0", "igb", Some(0), queues, 8) };
    machines::host("db1", cpu, vec![nic]).snapshot()
}

#[test]
fn queues_on_one_cpu_are_still_a_finding() {
    let s = host(Irqs::AllOnFirst, 8);
    for intent in [
        Intent { far_node: Some(FarNode::Ok), ..Intent::default() },
        Intent { queues: Some(2), allow_disruption: true, ..Intent::default() },
    ] {
        assert!(rules(&ok(&s, &intent)).contains("A01"), "{intent:?}");
    }
}

#[test]
fn the_warning_proposes_a_queue_for_each_cpu_that_was_permitted() {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 1) };
    let nic = |name, node| NicSpec::new(name, "ice", Some(node), 32, 32);
    let s = machines::host("db1", cpu, vec![nic("eth0", 0), NicSpec::new("eth1", "igb", Some(1), 2, 8)]).snapshot();
    let warning = |far_node| {
        let p = ok(&s, &Intent { goal: Goal::Rpc, far_node, ..Intent::default() });
        let Setting::Channels { combined, .. } = p.left_out[0].setting else { panic!("{:?}", p.left_out) };
        (p.warnings.into_iter().find(|w| w.contains("queues share CPUs")).expect("32 queues on 8 CPUs"), combined)
    };
    // The goal itself proposes the number.
    let (local, proposed) = warning(None);
    assert!(
        local.contains("(plan only eth0, so that no others change, and add --allow-disruption)") && proposed == Some(4),
        "{local} {proposed:?}"
    );
    let (far, proposed) = warning(Some(FarNode::Ok));
    assert!(
        far.contains("(plan only eth0, so that no others change, and add --allow-disruption)") && proposed == Some(8),
        "{far}"
    );
}

#[test]
fn better_counts_interrupts_that_may_move() {
    let s = host(Irqs::Round, 4);
    let p = ok(&s, &Intent::default());
    let text = |p: &Plan| p.expected.iter().find(|e| e.unit == "interrupts" && e.text.contains("may move")).cloned();
    let e = text(&p).expect("they were free");
    assert_eq!(e.text, "interrupts that may move among several CPUs: 0 instead of 4");
    assert_eq!((e.before, e.after, e.worth), (Some(4.0), Some(0.0), None));
    let s = project(&s, &p.target);
    assert!(text(&ok(&s, &Intent::default())).is_none());
    let knob = Knob::IrqCpus { queues: None, cpus: "0-3".parse().unwrap() };
    let by = ConfiguredBy::Argument { argument: "eth0.irq_cpus=0-3".into() };
    let wish = Wish { dev: Some("eth0".into()), knob, by, params_by: Default::default() };
    let e = text(&ok(&s, &Intent { wishes: vec![wish], ..Intent::default() })).expect("they get free");
    assert_eq!(e.text, "interrupts that may move among several CPUs: 4 instead of 0: as requested");
}

#[test]
fn one_of_the_two_tables_of_rfs_is_not_enough() {
    let s = host(Irqs::Round, 4);
    let set = |dev: Option<&str>, knob| Wish {
        dev: dev.map(str::to_string),
        knob,
        by: ConfiguredBy::Argument { argument: "the test".into() },
        params_by: Default::default(),
    };
    let of_host = || set(None, Knob::RfsEntries { entries: 32768 });
    let of_queues = || set(Some("eth0"), Knob::RpsFlowCnt { queues: None, entries: 4096 });
    let off = || set(None, Knob::RfsEntries { entries: 0 });
    let warnings = |s: &Snapshot, goal, wishes| -> Vec<String> {
        let p = ok(s, &Intent { goal, wishes, ..Intent::default() });
        p.warnings.into_iter().filter(|w| w.contains("RFS stays off")).collect()
    };
    let w = warnings(&s, Goal::Balanced, vec![of_host()]);
    assert!(w.len() == 1 && w[0].ends_with("--set eth0.rps_flow_cnt=8192"), "{w:?}");
    let w = warnings(&s, Goal::Balanced, vec![of_queues()]);
    assert!(w.len() == 1 && w[0].starts_with("eth0: ") && w[0].ends_with("--set host.rfs_entries=32768"), "{w:?}");
    assert_eq!(warnings(&s, Goal::Balanced, vec![of_host(), of_queues()]), Vec::<String>::new());
    // The goal sets the other one, or RFS is turned off.
    assert_eq!(warnings(&s, Goal::Rpc, vec![of_queues()]), Vec::<String>::new());
    assert_eq!(warnings(&s, Goal::Balanced, vec![off()]), Vec::<String>::new());
    // The other one is there already.
    let p = ok(&s, &Intent { wishes: vec![of_host(), of_queues()], ..Intent::default() });
    assert_eq!(warnings(&project(&s, &p.target), Goal::Balanced, vec![of_host()]), Vec::<String>::new());
}

#[test]
fn queues_share_the_configured_number_of_rfs_entries() {
    let s = host(Irqs::Round, 4);
    let plan = |entries| {
        let by = ConfiguredBy::Argument { argument: "the test".into() };
        let wish = Wish { dev: None, knob: Knob::RfsEntries { entries }, by, params_by: Default::default() };
        ok(&s, &Intent { goal: Goal::Rpc, wishes: vec![wish], ..Intent::default() })
    };
    let of_queues = |p: &Plan| -> Vec<u32> {
        let entries = |t: &Setting| match t {
            Setting::RpsFlowCnt { entries, .. } => Some(*entries),
            _ => None,
        };
        p.target.iter().filter_map(entries).collect()
    };
    let p = plan(65_536);
    assert_eq!(of_queues(&p), [16_384; 4], "not a share of the 32768 of the goal");
    let why = p.steps.iter().find(|s| matches!(s.setting, Setting::RpsFlowCnt { .. })).unwrap().reason.to_string();
    assert_eq!(why, "65536 entries divided among 4 queues, rounded down to a power of two");
    assert!(p.target.contains(&Setting::RfsEntries { entries: 65_536 }));
    // The kernel rounds the table up.
    assert_eq!(of_queues(&plan(40_000)), [16_384; 4]);
    assert_eq!(of_queues(&plan(0)), [0; 4], "RFS is off");
}

/// Eight queues fit on the second threads or on the other node: nothing proposes fewer.
#[test]
fn goal_rpc_counts_the_cpus_that_the_options_permit() {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    let nic = |queues| vec![NicSpec::new("eth0", "igb", Some(0), queues, 32)];
    let proposed = |queues, smt, far_node| {
        let s = machines::host("db1", cpu.clone(), nic(queues)).snapshot();
        let p = ok(&s, &Intent { goal: Goal::Rpc, smt, far_node, ..Intent::default() });
        let channels = p.left_out.iter().filter(|l| matches!(l.setting, Setting::Channels { .. }));
        channels.map(|l| (l.setting.value_text(), l.reason.to_string())).next()
    };
    let (count, why) = proposed(8, None, None).expect("four cores");
    assert_eq!(count, "combined 4");
    assert!(why.starts_with("one queue per physical core: 8 queues for the 4 usable cores"), "{why}");
    assert_eq!(proposed(8, Some(Smt::All), None), None);
    assert_eq!(proposed(8, None, Some(FarNode::Ok)), None);
    assert_eq!(proposed(16, Some(Smt::All), Some(FarNode::Ok)), None);
    let (count, why) = proposed(20, Some(Smt::All), Some(FarNode::Ok)).expect("sixteen CPUs");
    assert_eq!(count, "combined 16");
    assert!(why.starts_with("one queue per CPU that the options permit: 20 queues for 16 CPUs"), "{why}");
}

#[test]
fn no_number_of_queues_is_proposed_where_it_cannot_be_changed() {
    let mut s = host(Irqs::Round, 8);
    let warning = |s: &Snapshot| {
        let p = ok(s, &Intent { goal: Goal::Rpc, queues: Some(4), ..Intent::default() });
        p.warnings.into_iter().find(|w| w.contains("queues share CPUs")).expect("8 queues on 4 CPUs")
    };
    assert!(warning(&s).contains("reduce the queues (add --queues 4 --allow-disruption)"), "{}", warning(&s));
    s.nics[0].channels = Fact::unknown("channels-get eth0", "not in this capture");
    let text = warning(&s);
    let why = "their number cannot be changed: the channel counts could not be read (not in this capture)";
    assert!(text.contains(why) && !text.contains("--queues"), "{text}");
    s.nics[0].channels = Fact::Absent;
    let text = warning(&s);
    let why = "their number cannot be changed: the driver does not support changing the number of channels";
    assert!(text.contains(why) && !text.contains("--queues"), "{text}");
}

/// Two interfaces lose their link, a third one has none.
#[test]
fn outages_of_interfaces_with_a_link() {
    let cpu = CpuSpec::flat(4, 1);
    let nic = |name| NicSpec::new(name, "igb", Some(0), 8, 8);
    let mut s = machines::host("db1", cpu, vec![nic("eth0"), nic("eth1")]).snapshot();
    let intent = |allow_disruption| Intent { goal: Goal::Rpc, allow_disruption, ..Intent::default() };
    assert!(ok(&s, &intent(false)).outages.is_empty());
    let p = ok(&s, &intent(true));
    let got: Vec<_> = p.outages.iter().map(|o| (o.dev.as_str(), o.effect.as_str(), o.steps)).collect();
    assert_eq!(got, [("eth0", "link down about 3 s", 1), ("eth1", "link down about 3 s", 1)]);
    (s.nics[1].link.carrier, s.nics[1].link.operstate) = (Fact::Known(false), Fact::Known("down".into()));
    let p = ok(&s, &Intent { devs: vec!["eth0".into(), "eth1".into()], ..intent(true) });
    assert_eq!(p.outages.iter().map(|o| o.dev.as_str()).collect::<Vec<_>>(), ["eth0"]);
}

/// Second threads are proposed where the goal leaves them idle, and not if the user excluded them.
#[test]
fn the_warning_about_shared_cpus_names_second_threads() {
    let nic = NicSpec { irqs: Irqs::Round, ..NicSpec::new("eth0", "mqnic", Some(0), 16, 16) };
    let warned = |cpu: CpuSpec, smt| {
        let mut s = machines::host("db1", cpu, vec![nic.clone()]).snapshot();
        s.nics[0].channels = Fact::Absent;
        let p = ok(&s, &Intent { goal: Goal::Rpc, smt, ..Intent::default() });
        p.warnings.iter().find(|w| w.contains("queues share CPUs")).expect("a warning").clone()
    };
    let two = || CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    let text = warned(two(), None);
    assert!(
        text.ends_with("; to spread them, use remote CPUs too (--far-node ok), or second threads (--smt all)"),
        "{text}"
    );
    let text = warned(CpuSpec::flat(4, 2), None);
    assert!(text.ends_with("; to spread them, use second threads too (--smt all)"), "{text}");
    for text in [warned(two(), Some(Smt::OnePerCore)), warned(two(), Some(Smt::All)), warned(CpuSpec::flat(4, 1), None)]
    {
        assert!(!text.contains("--smt"), "{text}");
    }
}

/// The reserved CPUs are the reason only if the interface could have used them.
#[test]
fn costs_name_reserved_cpus_of_the_interface_alone() {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    let nic = NicSpec { irqs: Irqs::Round, ..NicSpec::new("eth0", "mqnic", Some(0), 16, 16) };
    let s = machines::host("db1", cpu, vec![nic]).snapshot();
    let costs = |reserve: &str, cpus: Option<&str>, allow_disruption| {
        let (reserve, cpus) = (reserve.parse().unwrap(), cpus.map(|c| c.parse().unwrap()));
        let p = ok(&s, &Intent { goal: Goal::Rpc, reserve, cpus, allow_disruption, ..Intent::default() });
        let all: BTreeSet<String> = p.expected.into_iter().filter_map(|e| e.worth).collect();
        all.into_iter().collect::<Vec<_>>().join("; ")
    };
    let plain = costs("", None, false);
    // Second threads would halve the share of the busiest CPU, but not the number of queues on one core.
    let nearer = "in exchange, more of its interrupts are on its own node";
    let threads = "one thread of each core takes queues: two on one core slow each other down";
    assert_eq!(plain, format!("{nearer}; {nearer}; {threads}"));
    // A CPU of the other node, and one whose core has another thread for the queue.
    assert_eq!((costs("8", None, false), costs("0", None, false)), (plain.clone(), plain));
    assert_eq!(costs("0-1", None, false), "CPUs 0-1 are kept free of queues, as requested");
    assert_eq!(costs("", Some("0-1"), false), "queues may use only CPUs 0-1, as requested");
    assert_eq!(costs("0-1", None, true), "there are fewer queues, one per physical core");
}

/// A transmit queue that the NIC limits below the speed of the link is named, with its limit; one above it is not.
#[test]
fn limits_inside_the_nic_are_a_warning() {
    let mut s = machines::ten()[0].snapshot();
    let nic = s.nics.iter_mut().find(|n| n.tx_queues.len() > 2).expect("several queues");
    nic.link.speed_mbps = Fact::Known(1000);
    let limit =
        |queue, mbps: u64| Shaper { max_rate: Some(mbps * 1_000_000), ..Shaper::unset(ShaperPlace::Queue(queue)) };
    nic.shapers = Fact::Known(Shapers::Set(vec![limit(1, 100), limit(2, 2000)]));
    let name = nic.name().to_string();
    let p = ok(&s, &Intent::default());
    let limited: Vec<&String> = p.warnings.iter().filter(|w| w.contains("net-shaper")).collect();
    assert_eq!(limited.len(), 1, "{:?}", p.warnings);
    let w = limited[0];
    assert!(w.contains(&name) && w.contains("tx-1") && w.contains("100 Mb/s") && !w.contains("tx-2"), "{w}");
}
