//! Each goal on a host with four kinds of NIC: planned, applied, complete, and rolled back.

use std::sync::Arc;
use std::time::Duration;

use crate::common::schema::check;
use crate::common::{golden, newest_schema};
use ringwise_apply::{Event, Outcome, Policy, Request, RunResult, Store};
use ringwise_discover::Options;
use ringwise_knob::{Address, Reason, ReplacedValue, Setting, compare, live, live_of_device};
use ringwise_model::{ConfiguredBy, CpuId, Fact, Goal, Intent, Knob, Pause, Snapshot, Wish};
use ringwise_plan::{Plan, plan};
use ringwise_render::plan as page;
use ringwise_sys::Host;
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Quirk, Sim, build};
use ringwise_text::Style;

const DEVS: [&str; 4] = ["eth0", "eth1", "eth2", "eth3"];

/// igb, virtio-net, vmxnet3 and the test NIC.
fn sim() -> Arc<Sim> {
    let built = build::host(16, 2).kernel("6.12.48").igb("eth0", 0, 8).virtio("eth1", 0, 4);
    Arc::new(Sim::new(&built.vmxnet3("eth2", 1, 4).mqnic("eth3", 1, 8).done()))
}

fn host(sim: &Arc<Sim>) -> Arc<dyn Host> {
    sim.clone()
}

fn look(sim: &Arc<Sim>) -> Snapshot {
    ringwise_discover::snapshot(&host(sim), &Options::all()).unwrap()
}

fn store(dir: &Dir) -> Store {
    Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-test{}", dir.0.display()))
}

fn intent(goal: Goal, allow_disruption: bool) -> Intent {
    Intent { goal, allow_disruption, ..Intent::default() }
}

/// Includes learned refusals.
fn made(sim: &Arc<Sim>, dir: &Dir, i: &Intent) -> Plan {
    plan(&look(sim), i, &store(dir).learned().unwrap()).unwrap()
}

fn policy() -> Policy {
    Policy { deadline: Duration::from_secs(5), ..Policy::default() }
}

fn words() -> Request {
    Request { who: "root".into(), argv: vec!["ringwise".into(), "apply".into()], ..Request::default() }
}

fn run(sim: &Arc<Sim>, dir: &Dir, p: &Plan) -> Outcome {
    let request = Request {
        devices: p.devices.clone(),
        steps: p.steps.clone(),
        title: ringwise_model::Title::Text("goal".into()),
        ..words()
    };
    let out = ringwise_apply::run(&host(sim), &request, &store(dir), &policy(), &mut |_: &Event| {}).unwrap();
    DEVS.iter().for_each(|d| sim.traffic(d));
    out
}

/// Applies a plan, then returns the next plan.
fn done(sim: &Arc<Sim>, dir: &Dir, i: &Intent) -> (Plan, Outcome, Plan) {
    let (mut p, mut out) = (made(sim, dir, i), None);
    // vmxnet3 reports its number of channels and refuses another one: put back, and skipped by the next plan.
    for _ in 0..2 {
        p = made(sim, dir, i);
        let done = run(sim, dir, &p);
        let refused = done.failed.as_ref().and_then(|f| f.setting.as_ref());
        let again = matches!(refused, Some(Setting::Channels { dev, .. }) if dev == "eth2");
        assert!(!again || done.verdict == RunResult::PutBack);
        out = Some(done);
        if !again {
            break;
        }
    }
    let out = out.unwrap();
    assert!(matches!(out.verdict, RunResult::Applied | RunResult::NothingToDo), "{:?}: {out:#?}", i.goal);
    let again = made(sim, dir, i);
    assert!(again.steps.is_empty(), "{:?}: {:#?}", i.goal, again.steps);
    (p, out, again)
}

fn differing(before: &Snapshot, now: &Snapshot) -> Vec<String> {
    let mut all: Vec<Setting> = DEVS.iter().flat_map(|d| live_of_device(before, d).into_values()).collect();
    let cpus = before.host.cpu_latency.keys().map(|cpu| live(before, &Address::CpuLatency { cpu: *cpu }));
    all.extend(cpus.filter_map(|f| f.known().cloned()));
    let moved = all.iter().filter(|s| !compare(s, now).holds());
    moved.map(|s| format!("{} was {}", s.address().unwrap(), s.value_text())).collect()
}

fn param(s: &Snapshot, dev: &str, name: &str) -> Option<u32> {
    s.nic(dev).unwrap().coalesce.known().unwrap().0.get(name).copied()
}

fn feature(s: &Snapshot, dev: &str, name: &str) -> bool {
    s.nic(dev).unwrap().features.known().unwrap()[name].on
}

fn refusals(p: &Plan, what: &str) -> Vec<String> {
    p.refused.iter().filter(|r| r.what.contains(what)).map(|r| r.why.to_string()).collect()
}

fn put_pause(sim: &Arc<Sim>, dev: &str, autoneg: bool, on: bool) {
    let s = look(sim);
    let setting = Setting::Pause { dev: dev.into(), autoneg: Some(autoneg), rx: Some(on), tx: Some(on) };
    let i = Intent {
        wishes: vec![Wish {
            dev: Some(dev.into()),
            knob: Knob::Pause { autoneg: None, rx: Some(on), tx: Some(on) },
            by: ConfiguredBy::Flag { name: "--set".into() },
            params_by: Default::default(),
        }],
        allow_disruption: true,
        ..Intent::default()
    };
    let mut p = plan(&s, &i, &[]).unwrap();
    p.steps.retain(|st| matches!(st.setting, Setting::Pause { .. }));
    run(sim, &Dir::new(), &p);
    assert!(autoneg || compare(&setting, &look(sim)).holds());
}

#[test]
fn every_goal_is_applied_leaves_nothing_to_do_and_goes_back() {
    for goal in Goal::ALL {
        for allow in [false, true] {
            let (sim, dir) = (sim(), Dir::new());
            put_pause(&sim, "eth3", false, true);
            let before = look(&sim);
            let (p, ..) = done(&sim, &dir, &intent(goal, allow));
            assert!(allow || !p.interrupts_traffic());
            let mut print = |_: &Event| {};
            let back = ringwise_apply::rollback(&host(&sim), &store(&dir), 0, &words(), &policy(), &mut print).unwrap();
            assert!(back.put_back_incomplete.is_empty(), "{goal}: {back:#?}");
            DEVS.iter().for_each(|d| sim.traffic(d));
            assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "{goal}");
        }
    }
}

#[test]
fn one_goal_after_the_other() {
    let (sim, dir) = (sim(), Dir::new());
    for goal in [Goal::Mixed, Goal::Latency, Goal::Rpc, Goal::Stream, Goal::Forward, Goal::Latency, Goal::Balanced] {
        done(&sim, &dir, &intent(goal, false));
    }
    // Settings of single queues from goal mixed do not remain.
    let s = look(&sim);
    let queues = s.nic("eth3").unwrap().queue_coalesce.known().unwrap();
    assert!(queues.values().all(|c| c.0["rx-usecs"] == 5 && c.0["tx-usecs"] == 10), "{queues:?}");
}

#[test]
fn forward_proposes_what_interrupts_traffic() {
    let (sim, dir) = (sim(), Dir::new());
    put_pause(&sim, "eth3", false, true);
    let p = made(&sim, &dir, &intent(Goal::Forward, false));
    let left = |f: fn(&Setting) -> bool| p.left_out.iter().find(|l| f(&l.setting)).unwrap();
    let lro = left(|s| matches!(s, Setting::Feature { name, .. } if name == "rx-lro"));
    let pause = left(|s| matches!(s, Setting::Pause { .. }));
    for l in [lro, pause] {
        assert!(l.command.ends_with("--goal forward --allow-disruption") && !l.outage.is_empty(), "{l:?}");
    }
    assert_eq!((lro.rule.as_str(), pause.rule.as_str()), ("M11", "R1.07"));
    assert_eq!(pause.setting.value_text(), "rx off tx off");
    done(&sim, &dir, &intent(Goal::Forward, true));
    let s = look(&sim);
    assert!(!feature(&s, "eth2", "rx-lro") && feature(&s, "eth2", "rx-gro") && feature(&s, "eth1", "rx-gro-hw"));
    assert_eq!(
        s.nic("eth3").unwrap().pause,
        Fact::Known(Pause { autoneg: Some(false), rx: Some(false), tx: Some(false) })
    );
    // A feature that is fixed at off counts as off.
    assert!(refusals(&p, "lro").is_empty() && refusals(&p, "LRO").is_empty());
}

#[test]
fn rpc_lets_the_driver_adapt() {
    let (sim, dir) = (sim(), Dir::new());
    done(&sim, &dir, &intent(Goal::Stream, false));
    assert_eq!(param(&look(&sim), "eth0", "rx-usecs"), Some(62));
    let (.., p) = done(&sim, &dir, &intent(Goal::Rpc, false));
    let s = look(&sim);
    assert_eq!(param(&s, "eth3", "use-adaptive-rx"), Some(1));
    // igb has no switch for adaptive moderation: 3 us select its adaptive mode.
    assert_eq!(param(&s, "eth0", "rx-usecs"), Some(3));
    assert_eq!(refusals(&p, "adaptive moderation"), ["not supported by the driver; its fixed interval stays"]);
}

#[test]
fn stream_waits_and_latency_does_not() {
    let (sim, dir) = (sim(), Dir::new());
    done(&sim, &dir, &intent(Goal::Rpc, false));
    let (.., p) = done(&sim, &dir, &intent(Goal::Stream, false));
    let s = look(&sim);
    assert_eq!((param(&s, "eth0", "rx-usecs"), param(&s, "eth3", "rx-usecs")), (Some(62), Some(62)));
    assert_eq!((param(&s, "eth3", "tx-usecs"), param(&s, "eth3", "use-adaptive-rx")), (Some(122), Some(0)));
    assert_eq!(
        refusals(&p, "eth0 tx-usecs"),
        ["one interrupt serves receive and transmit, and rx-usecs is its interval"]
    );
    // The driver refuses it, and the kernel's words are shown.
    assert!(refusals(&p, "eth1 moderation")[0].contains("EOPNOTSUPP"), "{:?}", p.refused);
    assert_eq!(refusals(&p, "eth2 moderation"), ["not supported by the driver"]);
    assert_eq!(refusals(&p, "eth3 TSO"), ["not supported by the device"]);
    assert!(p.advice.iter().any(|a| a.contains("rings.rx=N")), "{:?}", p.advice);

    let (first, out, p) = done(&sim, &dir, &intent(Goal::Latency, false));
    let s = look(&sim);
    assert_eq!((param(&s, "eth3", "rx-usecs"), param(&s, "eth3", "tx-usecs")), (Some(5), Some(10)));
    // igb is known to refuse 5, so 5 is not tried.
    assert_eq!(param(&s, "eth0", "rx-usecs"), Some(10));
    let step = first.steps.iter().find(|st| matches!(&st.setting, Setting::Coalesce { dev, .. } if dev == "eth0"));
    let Some(Reason::Policy { moved, .. }) = step.map(|st| &st.reason) else { panic!("{step:?}") };
    assert_eq!(*moved, [ReplacedValue { name: "rx-usecs".into(), wanted: 5, takes: 10 }]);
    assert!(out.failed.is_none() && p.advice.iter().any(|a| a.contains("SO_BUSY_POLL")), "{out:?}");
    for (dev, q) in [("eth0", 0), ("eth3", 7)] {
        let layout = p.layout.iter().find(|l| l.dev == dev).unwrap();
        let cpu = layout.queues[q].cpu.unwrap();
        assert_eq!(s.host.cpu_latency[&cpu], Fact::Known("5".into()), "{dev}");
    }
    let all: Vec<CpuId> = p.layout.iter().flat_map(|l| l.queues.iter().filter_map(|q| q.cpu)).collect();
    let free = s.host.cpu_latency.iter().filter(|(c, _)| !all.contains(c));
    assert!(free.clone().count() > 0 && free.clone().all(|(_, v)| *v == Fact::Known("0".into())));
}

#[test]
fn offloads_that_are_off_come_on_for_streams() {
    let (sim, dir) = (sim(), Dir::new());
    let mut off = intent(Goal::Balanced, true);
    let wish = |name: &str| Wish {
        dev: Some("eth0".into()),
        knob: Knob::Feature { name: name.into(), on: false },
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    };
    off.wishes = vec![wish("gro"), wish("tso")];
    done(&sim, &Dir::new(), &off);
    let p = made(&sim, &dir, &intent(Goal::Stream, false));
    let on = |s: &Setting| matches!(s, Setting::Feature { name, on: true, .. } if name == "rx-gro");
    assert!(p.steps.iter().any(|s| on(&s.setting)));
    assert_eq!(p.left_out.iter().filter(|l| matches!(l.setting, Setting::Feature { on: true, .. })).count(), 2);
    done(&sim, &dir, &intent(Goal::Stream, true));
    let s = look(&sim);
    assert!(["rx-gro", "tx-tcp-segmentation", "tx-tcp6-segmentation"].iter().all(|f| feature(&s, "eth0", f)));
}

#[test]
fn what_the_user_lays_down_goes_before_the_goal() {
    let (sim, dir) = (sim(), Dir::new());
    let mut i = intent(Goal::Latency, false);
    let params = [("rx-usecs".to_string(), 20)].into();
    let mine = |dev: Option<&str>, knob| Wish {
        dev: dev.map(Into::into),
        knob,
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    };
    i.wishes = vec![
        mine(Some("eth3"), Knob::Coalesce { queues: None, params }),
        mine(None, Knob::CpuLatency { cpus: (0..16).map(CpuId).collect(), value: "40".into() }),
    ];
    let (p, ..) = done(&sim, &dir, &i);
    let s = look(&sim);
    assert_eq!((param(&s, "eth3", "rx-usecs"), param(&s, "eth3", "tx-usecs")), (Some(20), Some(50)));
    assert!(s.host.cpu_latency.values().all(|v| *v == Fact::Known("40".into())));
    assert!(p.steps.iter().all(|st| st.rule != "H07"));
    // A value that is stricter than the goal stays as the user set it.
    let (sim, dir) = (sim2("n/a"), Dir::new());
    let (p, ..) = done(&sim, &dir, &intent(Goal::Latency, false));
    assert!(p.target.iter().all(|t| !matches!(t, Setting::CpuLatency { .. })));
}

fn sim2(latency: &str) -> Arc<Sim> {
    let sim = sim();
    let i = Intent {
        wishes: vec![Wish {
            dev: None,
            knob: Knob::CpuLatency { cpus: (0..16).map(CpuId).collect(), value: latency.into() },
            by: ConfiguredBy::Flag { name: "--set".into() },
            params_by: Default::default(),
        }],
        ..Intent::default()
    };
    done(&sim, &Dir::new(), &i);
    sim
}

#[test]
fn drivers_that_round_ignore_or_refuse() {
    for (quirk, goal) in [
        (Quirk::Rounds, Goal::Stream),
        (Quirk::IgnoresModeration, Goal::Stream),
        (Quirk::IgnoresModeration, Goal::Rpc),
        (Quirk::OddQueues, Goal::Latency),
    ] {
        let (sim, dir) = (sim(), Dir::new());
        sim.quirk("eth3", quirk);
        let before = look(&sim);
        let (_, out, again) = done(&sim, &dir, &intent(goal, false));
        let adjusted = !out.adjusted_by_driver.is_empty();
        assert!(adjusted || !refusals(&again, "eth3 moderation").is_empty(), "{quirk:?} {goal}: {:#?}", again.refused);
        let mut print = |_: &Event| {};
        let back = ringwise_apply::rollback(&host(&sim), &store(&dir), 0, &words(), &policy(), &mut print).unwrap();
        assert!(back.put_back_incomplete.is_empty(), "{quirk:?}: {back:#?}");
        DEVS.iter().for_each(|d| sim.traffic(d));
        assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "{quirk:?}");
    }
}

#[test]
fn for_people() {
    for (goal, allow) in [(Goal::Forward, false), (Goal::Rpc, false), (Goal::Stream, true), (Goal::Latency, false)] {
        let sim = sim();
        put_pause(&sim, "eth3", false, true);
        let s = look(&sim);
        let p = plan(&s, &intent(goal, allow), &[]).unwrap();
        let out = page::text(
            &p,
            Some(&s),
            &page::PlanPageOptions { again: format!("--goal {goal}"), ..page::PlanPageOptions::default() },
            &Style::plain(Some(80)),
        );
        for l in out.lines() {
            assert!(l.chars().count() <= 80, "{l}");
        }
        golden(&format!("plan-{goal}-80.txt"), &out);
        let wrong = check(&newest_schema("ringwise.plan"), &serde_json::to_value(&p).unwrap());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
