//! A sample of the traffic chooses the CPUs of queues.

use ringwise_knob::{Reason, Setting};
use ringwise_model::{
    Fact, Goal, Intent, NotSampled, Rss, Sample, SampledInterface, SampledQueue, Snapshot, TrafficSample,
};
use ringwise_plan::{GroupsUndecided, PlacementChoice, Plan, plan};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::{CpuSpec, Numbering};

/// Row "heavy" of the matrix: three ports with eight queues on six cores with two threads (0 and 6 of one core, 1 and 7, …).
fn router() -> Snapshot {
    let nics = (0..3).map(|n| NicSpec::new(&format!("eth{n}"), "igb", Some(0), 8, 8)).collect();
    machines::host("router12", CpuSpec { numbering: Numbering::ThreadsLast, ..CpuSpec::flat(6, 2) }, nics).snapshot()
}

/// Ten seconds in which each queue received as many thousand packets.
fn received(thousands: &[[u64; 8]]) -> Sample {
    let queues = |n: &[u64; 8]| -> Vec<SampledQueue> {
        let each = n.iter().enumerate();
        each.map(|(q, n)| SampledQueue {
            queue: q as u32,
            packets: Some(n * 1000),
            bytes: Some(n * 60_000),
            interrupts: None,
            cpu: None,
        })
        .collect()
    };
    let interface = |(i, n): (usize, &[u64; 8])| SampledInterface {
        dev: format!("eth{i}"),
        frames: Some(n.iter().sum::<u64>() * 1000),
        bytes: None,
        queues: queues(n),
    };
    Sample::Taken(TrafficSample {
        duration_ms: 10_000,
        cpus: Vec::new(),
        interfaces: thousands.iter().enumerate().map(interface).collect(),
    })
}

/// Six flows on each of two ports, and what is forwarded leaves through the third.
const TWELVE_FLOWS: [[u64; 8]; 3] = [[10, 0, 20, 0, 20, 0, 10, 0], [20, 0, 10, 0, 10, 0, 20, 0], [0; 8]];

fn sampled(goal: Goal, sample: Sample) -> Intent {
    Intent { goal, sample: Some(sample), ..Intent::default() }
}

fn ok(s: &Snapshot, i: &Intent) -> Plan {
    plan(s, i, &[]).unwrap()
}

/// Packets by core, in thousands: of both threads, the second one counted half.
fn loads(p: &Plan, thousands: &[[u64; 8]]) -> Vec<f64> {
    let mut of = [0u64; 12];
    for d in &p.layout {
        let n: usize = d.dev.trim_start_matches("eth").parse().unwrap();
        for q in &d.queues {
            of[q.cpu.unwrap().0 as usize] += thousands[n][q.queue as usize];
        }
    }
    (0..6)
        .map(|core| {
            let (a, b) = (of[core].max(of[core + 6]) as f64, of[core].min(of[core + 6]) as f64);
            a + b / 2.0
        })
        .collect()
}

fn busiest(p: &Plan, thousands: &[[u64; 8]]) -> f64 {
    loads(p, thousands).into_iter().fold(0.0, f64::max)
}

/// How often each CPU has a queue of each interface.
fn on_cpus(p: &Plan) -> Vec<(String, u32, usize)> {
    let mut out = Vec::new();
    for d in &p.layout {
        for cpu in 0..12 {
            let n = d.queues.iter().filter(|q| q.cpu.map(|c| c.0) == Some(cpu)).count();
            out.push((d.dev.clone(), cpu, n));
        }
    }
    out
}

#[test]
fn busy_queues_get_cores_of_their_own() {
    let s = router();
    for goal in [Goal::Balanced, Goal::Forward, Goal::Rpc] {
        let without = ok(&s, &Intent { goal, ..Intent::default() });
        let p = ok(&s, &sampled(goal, received(&TWELVE_FLOWS)));
        // 120,000 packets on six cores: 20,000 on each, and with 8 busy queues two cores must use both threads.
        let (was, is) = (busiest(&without, &TWELVE_FLOWS), busiest(&p, &TWELVE_FLOWS));
        assert!(is <= 20.0 && was >= 30.0, "{goal}: {was} → {is}: {:?}", loads(&p, &TWELVE_FLOWS));
        let Some(PlacementChoice::Load { packets, times, queues }) = p.sampled_placement.as_ref().map(|s| &s.choice)
        else {
            panic!("{:?}", p.sampled_placement)
        };
        assert_eq!((*packets, (times * 10.0).round()), (120_000, (was / is * 10.0).round()));
        assert!(*queues > 0 && *queues <= 16, "{queues}");
        // No interface has more queues on a CPU than without the sample.
        let most = |p: &Plan| on_cpus(p).into_iter().map(|c| c.2).max();
        assert_eq!(most(&p), most(&without), "{goal}");
        assert!(
            p.advice.iter().any(|a| a.contains("received 120,000 packets in the sample of 10 s")),
            "{:?}",
            p.advice
        );
    }
}

#[test]
fn an_even_load_changes_nothing() {
    let s = router();
    for even in [[[10; 8]; 3], [[9, 10, 11, 10, 10, 9, 11, 10], [10; 8], [11; 8]]] {
        let p = ok(&s, &sampled(Goal::Balanced, received(&even)));
        let without = ok(&s, &Intent::default());
        assert_eq!((&p.layout, &p.target), (&without.layout, &without.target));
        assert!(matches!(p.sampled_placement.unwrap().choice, PlacementChoice::AsGood { .. }));
    }
}

#[test]
fn a_flow_that_fills_a_core_does_not_hide_the_others() {
    let elephant = [[400, 0, 20, 0, 20, 0, 20, 0], [0, 0, 20, 0, 20, 0, 20, 0], [0; 8]];
    let s = router();
    let p = ok(&s, &sampled(Goal::Forward, received(&elephant)));
    let mut got = loads(&p, &elephant);
    got.sort_by(f64::total_cmp);
    assert_eq!(got[5], 400.0, "{got:?}");
    assert!(got[4] <= 30.0, "{got:?}");
    assert!(p.advice.iter().any(|a| a.contains("the busiest core stays as busy")), "{:?}", p.advice);
}

#[test]
fn planning_again_with_the_same_load_changes_nothing() {
    let s = router();
    let i = sampled(Goal::Forward, received(&TWELVE_FLOWS));
    let p = ok(&s, &i);
    let after = project(&s, &p.target);
    let again = ok(&after, &i);
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
    // A little more or less on each queue is no reason to move them again.
    let mut later = TWELVE_FLOWS.map(|port| port.map(|n| n * 100));
    (later[0][2], later[1][0]) = (2030, 1980);
    let again = ok(&after, &sampled(Goal::Forward, received(&later)));
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
}

#[test]
fn steps_name_the_sample_as_their_reason() {
    let s = router();
    let pinned = project(&s, &ok(&s, &Intent { goal: Goal::Forward, ..Intent::default() }).target);
    let p = ok(&pinned, &sampled(Goal::Forward, received(&TWELVE_FLOWS)));
    let moved: Vec<_> = p.steps.iter().filter(|s| matches!(s.reason, Reason::BusyInSample { .. })).collect();
    assert!(!moved.is_empty(), "{:#?}", p.steps);
    assert!(moved[0].reason.to_string().contains("in the sample"), "{}", moved[0].reason);
    assert!(!p.steps.iter().any(|s| s.interrupts_traffic), "{:#?}", p.steps);
}

#[test]
fn what_the_sample_does_not_tell_stays_as_without_it() {
    let s = router();
    let without = ok(&s, &Intent::default());
    let kept = |sample: Sample| {
        let p = ok(&s, &sampled(Goal::Balanced, sample));
        assert_eq!((&p.layout, &p.target), (&without.layout, &without.target));
        assert!(p.warnings.iter().any(|w| w.contains("--sample does not decide about the CPUs")), "{:?}", p.warnings);
        match p.sampled_placement.unwrap().choice {
            PlacementChoice::Kept { why } => why,
            other => panic!("{other:?}"),
        }
    };
    let not = Sample::NotTaken(NotSampled::Passive);
    assert_eq!(kept(not), GroupsUndecided::NotSampled { why: NotSampled::Passive });
    assert_eq!(kept(received(&[[0; 8]; 3])), GroupsUndecided::NoTraffic { frames: 0 });
    assert_eq!(kept(received(&TWELVE_FLOWS[..2])), GroupsUndecided::NotCounted);
    let Sample::Taken(mut taken) = received(&TWELVE_FLOWS) else { panic!() };
    taken.interfaces[1].queues[4].packets = None;
    assert_eq!(kept(Sample::Taken(taken)), GroupsUndecided::NotCounted);
}

#[test]
fn counters_of_queues_that_change_do_not_count() {
    let s = router();
    let i = Intent { queues: Some(4), allow_disruption: true, ..sampled(Goal::Balanced, received(&TWELVE_FLOWS)) };
    let p = ok(&s, &i);
    let Some(PlacementChoice::Kept { why }) = p.sampled_placement.as_ref().map(|s| &s.choice) else {
        panic!("{:?}", p.sampled_placement)
    };
    assert_eq!(*why, GroupsUndecided::QueuesChange);
    assert_eq!(p.target, ok(&s, &Intent { sample: None, ..i }).target);
}

/// The sample holds for the table with which it was counted, also if no queue moves.
#[test]
fn the_table_that_was_sampled_stays() {
    let mut s = router();
    s.nics.retain(|n| n.name() == "eth0");
    s.nics[0].rss = Fact::Known(Rss {
        table: (0..128).map(|i| i / 16).collect(),
        function: Fact::Absent,
        key: Fact::Absent,
        fields: Default::default(),
        symmetric: Fact::Absent,
        contexts: Fact::Absent,
    });
    let writes = |p: &Plan| p.target.iter().any(|t| matches!(t, Setting::RssTable { .. }));
    assert!(writes(&ok(&s, &Intent { goal: Goal::Forward, ..Intent::default() })));
    for load in [[10; 8], TWELVE_FLOWS[0]] {
        let p = ok(&s, &sampled(Goal::Forward, received(&[load])));
        assert!(!writes(&p), "{:?}", p.sampled_placement);
    }
}

/// Remote CPUs are no better because they are idle: queues move only between equally near ones.
#[test]
fn queues_stay_on_their_node() {
    let nics = vec![NicSpec::new("eth0", "ice", Some(0), 8, 8)];
    let s = machines::host("db", CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) }, nics).snapshot();
    let load = [[50, 0, 0, 0, 50, 0, 0, 0]];
    let p = ok(&s, &sampled(Goal::Balanced, received(&load)));
    assert!(matches!(p.sampled_placement.unwrap().choice, PlacementChoice::Load { .. }));
    for q in &p.layout[0].queues {
        assert_eq!(q.far, Some(false), "{q:?}");
    }
}
