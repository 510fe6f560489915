//! Settings that a goal proposes beside queues and CPUs, settings that it keeps, and competing programs that write the
//! same settings.

use ringwise_knob::{Setting, VectorName};
use ringwise_model::{Channels, CompetingProgram, Count, Fact, Goal, Intent, Pause, Snapshot};
use ringwise_plan::{Plan, plan};
use ringwise_testkit::machines::{HostSpec, NicSpec};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::CpuSpec;

/// Two nodes of four cores with two threads, and one interface on the first.
fn host(queues: u32) -> Snapshot {
    HostSpec {
        name: "edge3".into(),
        cpu: CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) },
        nics: vec![NicSpec::new("eth1", "igb", Some(0), queues, 8)],
        bonds: Vec::new(),
        rps_sock_flow_entries: 0,
        control: Vec::new(),
        held: Vec::new(),
    }
    .snapshot()
}

fn of(s: &Snapshot, goal: Goal, allow_disruption: bool) -> Plan {
    plan(s, &Intent { goal, allow_disruption, ..Intent::default() }, &[]).expect("can be planned")
}

/// Switching pause frames off interrupts the link: a step only with permission, and no step if they are off.
#[test]
fn pause_frames_are_switched_off_only_with_permission() {
    let with = |on: bool| {
        let mut s = host(4);
        s.nics[0].pause = Fact::Known(Pause { autoneg: Some(false), rx: Some(on), tx: Some(on) });
        s
    };
    let pause = |s: &Setting| matches!(s, Setting::Pause { .. });
    let found = |s: &Snapshot, goal, may| {
        let p = of(s, goal, may);
        let steps = p.steps.iter().filter(|s| pause(&s.setting)).count();
        (steps, p.left_out.iter().filter(|l| pause(&l.setting)).count())
    };
    let goals: Vec<Goal> = Goal::ALL.into_iter().filter(|g| found(&with(true), *g, false) == (0, 1)).collect();
    assert_eq!(goals, [Goal::Forward]);
    for goal in goals {
        assert_eq!(found(&with(true), goal, true), (1, 0), "{goal}");
        assert_eq!((found(&with(false), goal, false), found(&with(false), goal, true)), ((0, 0), (0, 0)), "{goal}");
    }
}

/// Drivers may report combined channels with a maximum of 0.
#[test]
fn channels_that_cannot_be_combined_are_set_by_direction() {
    let mut s = host(8);
    let count = |now, max| Some(Count { now, max });
    let Fact::Known(c) = &mut s.nics[0].channels else { panic!("there are some") };
    *c = Channels { rx: count(8, 8), tx: count(8, 8), combined: count(0, 0), ..*c };
    let intent = Intent { queues: Some(4), allow_disruption: true, ..Intent::default() };
    let p = plan(&s, &intent, &[]).expect("can be planned");
    let channels: Vec<&Setting> =
        p.steps.iter().map(|s| &s.setting).filter(|s| matches!(s, Setting::Channels { .. })).collect();
    assert_eq!(channels, [&Setting::Channels { dev: "eth1".into(), rx: Some(4), tx: Some(4), combined: None }]);
}

/// Another layout that is as good is kept, whoever created it: in another order, or on other cores with the same
/// distance.
#[test]
fn queues_stay_on_other_cpus_that_are_as_good() {
    for (chosen, found) in [(vec![0, 2, 4, 6], vec![6, 4, 2, 0]), (vec![0, 2], vec![4, 6])] {
        let s = host(chosen.len() as u32);
        let cpus = |p: &Plan| p.layout[0].queues.iter().filter_map(|q| q.cpu.map(|c| c.0)).collect::<Vec<u32>>();
        let first = of(&s, Goal::Balanced, false);
        assert_eq!(cpus(&first), chosen);
        let moved = found.iter().zip(0..).map(|(cpu, q)| Setting::IrqCpus {
            dev: "eth1".into(),
            of: VectorName::Rx(q),
            cpus: cpu.to_string().parse().expect("a list"),
            on: None,
        });
        let other = project(&project(&s, &first.target), &moved.collect::<Vec<_>>());
        let p = of(&other, Goal::Balanced, false);
        assert_eq!(cpus(&p), found);
        assert!(!p.steps.iter().any(|s| matches!(s.setting, Setting::IrqCpus { .. })), "{:?}", p.steps);
    }
}

/// A number that grows is shown with the reason that applies, not with that of another goal.
#[test]
fn fewer_cpus_for_latency_leave_cores_to_programs() {
    let s = host(8);
    let balanced = project(&s, &of(&s, Goal::Balanced, false).target);
    let p = of(&balanced, Goal::Latency, false);
    let worse: Vec<&str> = p
        .expected
        .iter()
        .filter(|e| e.before.is_some() && e.after > e.before)
        .map(|e| e.worth.as_deref().unwrap_or("none"))
        .collect();
    assert!(!worse.is_empty() && worse.iter().all(|w| *w == "the other cores are left to programs"), "{worse:?}");
}

/// An interrupt that is delivered to a CPU outside its mask counts on that CPU.
#[test]
fn an_interrupt_outside_its_mask_counts_on_its_effective_cpu() {
    let mut s = host(4);
    for (v, cpu) in s.nics[0].vectors.iter_mut().zip(["8", "8", "9", "2"]) {
        v.asked = Fact::Known("0-3".parse().expect("a list"));
        v.effective = Fact::Known(cpu.parse().expect("a list"));
    }
    let p = of(&s, Goal::Balanced, false);
    let texts: Vec<&str> = p.expected.iter().map(|e| e.text.as_str()).collect();
    assert!(texts.contains(&"busiest CPU takes 25 % of eth1's queues instead of 50 %"), "{texts:?}");
    assert!(texts.contains(&"interrupts on a remote node: 0 of 4 instead of 3"), "{texts:?}");
}

#[test]
fn competing_programs_are_reported_with_the_time_of_their_writes() {
    let warned = |name: &str, devices: &[&str], running| {
        let mut s = host(4);
        s.host.rival_details = vec![CompetingProgram {
            name: name.into(),
            sets: "channels, ring sizes".into(),
            devices: devices.iter().map(|d| d.to_string()).collect(),
            evidence: "process 41".into(),
            setup: Some("profile router".into()),
            running,
        }];
        of(&s, Goal::Balanced, false).warnings.into_iter().filter(|w| w.contains("channels, ring sizes")).collect()
    };
    let one: Vec<String> = warned("tuned", &[], true);
    let text = "tuned (process 41, profile router) sets channels, ring sizes when it starts, when its profile changes \
                or when a device appears, and overwrites this plan; ringwise verify reports that";
    assert_eq!(one, [text]);
    let link: Vec<String> = warned(CompetingProgram::UDEV_LINK, &["OriginalName=eth1"], false);
    assert!(link.len() == 1 && link[0].contains(" on OriginalName=eth1 when the device appears (boot"), "{link:?}");
    let other: Vec<String> = warned(CompetingProgram::UDEV_LINK, &["OriginalName=eth9"], false);
    assert!(other.is_empty(), "{other:?}");
}
