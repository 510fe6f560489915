//! Goal `forward` with queues on CPUs of different capacity: the RSS table is weighted by the capacity of each CPU.

use std::collections::BTreeMap;

use ringwise_knob::{Address, CreatedObject, Setting};
use ringwise_model::{CpuId, Fact, Goal, Intent, Rss, Snapshot};
use ringwise_plan::{ManualChanges, Plan, plan, plan_around};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::{CpuSpec, Numbering};

fn rss(table: Vec<u32>) -> Fact<Rss> {
    Fact::Known(Rss {
        table,
        function: Fact::Absent,
        key: Fact::Absent,
        fields: Default::default(),
        symmetric: Fact::Absent,
        contexts: Fact::Absent,
    })
}

/// One node of cores with two threads (0 and 4 of one core, 1 and 5, …), and one interface.
fn host(cores: u32, queues: u32) -> Snapshot {
    let mut s = machines::host(
        "edge3",
        CpuSpec { numbering: Numbering::ThreadsLast, ..CpuSpec::flat(cores, 2) },
        vec![NicSpec::new("eth1", "igb", Some(0), queues, queues)],
    )
    .snapshot();
    s.nics[0].rss = rss((0..128).map(|i| i * queues / 128).collect());
    s
}

fn intent(goal: Goal) -> Intent {
    Intent { goal, ..Intent::default() }
}

fn ok(s: &Snapshot, goal: Goal) -> Plan {
    plan(s, &intent(goal), &[]).unwrap()
}

/// The table in the plan: that of a step, else the current one if it is right.
fn table(p: &Plan) -> Option<Vec<u32>> {
    p.target.iter().find_map(|t| match t {
        Setting::RssTable { table, .. } => Some(table.clone()),
        _ => None,
    })
}

fn entries(table: &[u32], queues: u32) -> Vec<usize> {
    (0..queues).map(|q| table.iter().filter(|t| **t == q).count()).collect()
}

#[test]
fn a_queue_that_shares_its_core_gets_two_thirds() {
    let s = host(4, 6);
    let p = ok(&s, Goal::Forward);
    let alone: Vec<bool> = p.layout[0].queues.iter().map(|q| !q.shares_core).collect();
    assert_eq!(alone.iter().filter(|a| **a).count(), 2);
    let got = entries(&table(&p).unwrap(), 6);
    for (n, alone) in got.iter().zip(&alone) {
        // 3/14 or 2/14 of the 128 entries.
        let right = if *alone { 27..=28 } else { 18..=19 };
        assert!(right.contains(n), "{got:?} {alone:?}");
    }
    let rules: Vec<&str> =
        p.steps.iter().filter(|s| matches!(s.setting, Setting::RssTable { .. })).map(|s| s.rule.as_str()).collect();
    assert_eq!(rules, ["Q33"]);
    assert!(!p.steps.iter().any(|s| s.interrupts_traffic && s.rule == "Q33"));
    let gain = p.expected.iter().find(|e| e.unit.contains("modelled")).unwrap();
    assert!(gain.after < gain.before, "{gain:?}");
    // The effect is given by entries of the table: the busiest CPU has 28 of 128.
    let text = "busiest CPU takes 22 % of eth1's RSS table instead of 100 %";
    assert!(p.expected.iter().any(|e| e.text.starts_with(text) && e.after == Some(21.875)), "{:?}", p.expected);
}

/// The best table of 128 entries takes 5.2 % off the busiest CPU. One that is rounded badly takes 1.6 % off.
#[test]
fn rounding_does_not_cost_the_gain() {
    let p = ok(&host(4, 7), Goal::Forward);
    let mut got = entries(&table(&p).unwrap(), 7);
    got.sort_unstable();
    assert_eq!(got, [17, 17, 17, 17, 17, 17, 26]);
}

#[test]
fn a_second_plan_has_no_step() {
    let s = host(4, 6);
    let after = project(&s, &ok(&s, Goal::Forward).target);
    let again = ok(&after, Goal::Forward);
    assert!(again.steps.is_empty(), "{:?}", again.steps);
    assert!(table(&again).is_some());
}

#[test]
fn an_even_table_if_all_cpus_have_the_same_capacity() {
    for queues in [2, 4, 8] {
        assert_eq!(table(&ok(&host(4, queues), Goal::Forward)), None, "{queues} queues on four cores");
    }
    // More queues than CPUs: some CPUs have two queues, each of which gets half of the share.
    let p = ok(&host(2, 6), Goal::Forward);
    let mut got = entries(&table(&p).unwrap(), 6);
    got.sort_unstable();
    assert_eq!(got, [16, 16, 16, 16, 32, 32]);
}

#[test]
fn other_goals_do_not_change_the_table() {
    for goal in [Goal::Balanced, Goal::Rpc, Goal::Stream, Goal::Latency] {
        assert_eq!(table(&ok(&host(4, 6), goal)), None, "{goal}");
    }
}

#[test]
fn a_table_set_outside_ringwise_stays() {
    let mut s = host(4, 6);
    let own: Vec<u32> = (0..128).map(|i| if i < 64 { 0 } else { i % 6 }).collect();
    s.nics[0].rss = rss(own.clone());
    assert_eq!(table(&ok(&s, Goal::Forward)), None);
    // A table that an earlier plan has set is replaced.
    let setting = Setting::RssTable { dev: "eth1".into(), table: own };
    let even = Setting::RssTable { dev: "eth1".into(), table: (0..128).map(|i| i % 6).collect() };
    let made = CreatedObject { setting, before: even.clone(), transaction: 7, as_left: true };
    let hands = ManualChanges { made: vec![made], ..ManualChanges::default() };
    let p = plan_around(&s, &intent(Goal::Forward), &[], &hands).unwrap();
    assert_eq!(entries(&table(&p).unwrap(), 6).iter().max(), Some(&28));
    // Another goal restores the table from before.
    let p = plan_around(&s, &intent(Goal::Balanced), &[], &hands).unwrap();
    let address = Address::RssTable { dev: "eth1".into() };
    let back: Vec<&Setting> =
        p.steps.iter().map(|s| &s.setting).filter(|s| s.address() == Some(address.clone())).collect();
    assert_eq!(back, [&even]);
}

#[test]
fn no_weights_without_a_table_or_with_a_short_one() {
    let mut s = host(4, 6);
    s.nics[0].rss = Fact::Absent;
    assert_eq!(table(&ok(&s, Goal::Forward)), None);
    s.nics[0].rss = Fact::unknown("RSS table", "EPERM");
    assert_eq!(table(&ok(&s, Goal::Forward)), None);
    // Four entries cannot give each of six queues a share.
    s.nics[0].rss = rss(vec![0, 1, 2, 3]);
    assert_eq!(table(&ok(&s, Goal::Forward)), None);
}

/// The CPU next to an excluded one adds capacity, so the number of queues that a plan recommends counts it.
#[test]
fn the_recommended_number_of_queues_uses_every_cpu() {
    let s = host(4, 8);
    let of = |queues, allow_disruption| Intent {
        reserve: "0".parse().unwrap(),
        queues,
        allow_disruption,
        ..intent(Goal::Forward)
    };
    let load = |p: &Plan| {
        let mut all = p.expected.iter().filter(|e| e.dev.is_none() && e.unit.starts_with("load of the busiest CPU"));
        all.next().and_then(|e| e.after).expect("fewer CPUs change the load")
    };
    let open = plan(&s, &of(None, false), &[]).unwrap();
    let Setting::Channels { combined, .. } = open.left_out[0].setting else { panic!("{:?}", open.left_out) };
    assert_eq!(combined, Some(7));
    let named = plan(&s, &of(Some(8), false), &[]).unwrap();
    // The two queues on one CPU have half of its share of the table each, so fewer queues would change nothing.
    for p in [&open, &named] {
        assert!(!p.warnings.iter().any(|w| w.contains("queues share CPUs")), "{:?}", p.warnings);
    }
    let fewer = plan(&s, &of(combined, true), &[]).unwrap();
    // Both use all seven CPUs; what remains is the rounding of table entries.
    assert!(load(&fewer) < load(&open) * 1.06, "{:?} {:?}", fewer.expected, open.expected);
    let six = plan(&s, &of(Some(6), true), &[]).unwrap();
    assert!(load(&six) > load(&fewer), "{:?}", six.expected);
}

/// bnxt_en stops and starts the device when the table is written.
#[test]
fn a_table_that_restarts_the_device_needs_permission() {
    let mut s = host(4, 6);
    s.nics[0].driver = Fact::Known("bnxt_en".into());
    let p = ok(&s, Goal::Forward);
    assert_eq!(table(&p), None);
    let skipped: Vec<_> = p.left_out.iter().filter(|l| matches!(l.setting, Setting::RssTable { .. })).collect();
    assert_eq!(skipped.len(), 1, "{:?}", p.left_out);
    assert!(skipped[0].command.contains("--allow-disruption"), "{}", skipped[0].command);
    assert!(!p.interrupts_traffic());
    let p = plan(&s, &Intent { allow_disruption: true, ..intent(Goal::Forward) }, &[]).unwrap();
    let step = p.steps.iter().find(|s| matches!(s.setting, Setting::RssTable { .. })).expect("the table is permitted");
    assert!(step.interrupts_traffic);
    // The same table on a device that stays up.
    assert!(ok(&host(4, 6), Goal::Forward).steps.iter().all(|s| !s.interrupts_traffic));
}

/// Two sockets with one node each, cores with two threads, and ports on node 0.
fn ports(cores: u32, queues: u32, ports: usize) -> Snapshot {
    let nics = (1..=ports).map(|i| NicSpec::new(&format!("eth{i}"), "igb", Some(0), queues, queues)).collect();
    let cpus = CpuSpec { numbering: Numbering::ThreadsLast, packages: 2, ..CpuSpec::flat(cores, 2) };
    let mut s = machines::host("edge3", cpus, nics).snapshot();
    s.nics.iter_mut().for_each(|n| n.rss = rss((0..128).map(|i| i * queues / 128).collect()));
    s
}

/// The number of queues on each CPU that has any.
fn queues_by_cpu(p: &Plan) -> BTreeMap<CpuId, u32> {
    let mut out = BTreeMap::new();
    let cpus = p.layout.iter().flat_map(|d| &d.queues).map(|q| q.cpu.unwrap());
    cpus.for_each(|c| *out.entry(c).or_default() += 1);
    out
}

/// With one layout for both, eight of twelve CPUs would do the work (six cores; lab/bench/60-matrix-uniform.sh).
#[test]
fn ports_with_fewer_queues_than_cpus_use_all_cpus_of_their_node_together() {
    for n in [2, 3] {
        let s = ports(6, 8, n);
        let p = ok(&s, Goal::Forward);
        let by = queues_by_cpu(&p);
        assert_eq!(by.len(), 12, "{by:?}");
        assert!(by.values().all(|n| *n <= 2) && p.layout.iter().flat_map(|d| &d.queues).all(|q| q.far == Some(false)));
        // Six cores carry eight loads. Some CPUs have queues of two ports, others of one; the tables make up for it, up to 7 %.
        let load = p.expected.iter().find(|e| e.unit.contains("modelled")).unwrap().after.unwrap();
        assert!(load < n as f64 / 8.0 * 1.07, "{n} ports: {load}");
        // It is not moved again.
        let after = project(&s, &p.target);
        assert!(ok(&after, Goal::Forward).steps.iter().all(|s| !matches!(s.setting, Setting::IrqCpus { .. })));
    }
}

#[test]
fn ports_get_one_layout_where_others_would_add_nothing() {
    // As many queues as CPUs, and eleven of twelve.
    for queues in [12, 11] {
        let p = ok(&ports(6, queues, 2), Goal::Forward);
        let cpus: Vec<Vec<_>> = p.layout.iter().map(|d| d.queues.iter().map(|q| q.cpu).collect()).collect();
        assert_eq!(cpus[0], cpus[1], "{queues}");
    }
    // One queue each: two interrupts on two cores.
    assert_eq!(queues_by_cpu(&ok(&ports(6, 1, 2), Goal::Forward)).len(), 2);
}

#[test]
fn ports_without_a_usable_cpu_on_their_node_get_others() {
    let s = ports(6, 8, 2);
    // Node 1 has CPUs 6-11 and 18-23.
    let p = plan(&s, &Intent { cpus: Some("6-11,18-23".parse().unwrap()), ..intent(Goal::Forward) }, &[]).unwrap();
    assert!(p.layout.iter().flat_map(|d| &d.queues).all(|q| q.cpu.is_some_and(|c| (6..12).contains(&(c.0 % 12)))));
}
