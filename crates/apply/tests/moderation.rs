//! Moderation of devices and queues, NAPI, and the replacements of settings that a driver refuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Outcome, Request, RunResult};
use ringwise_knob::{IfRefused, Match, Setting, VectorName, compare, live};
use ringwise_model::{Fact, NapiValues};
use ringwise_testkit::sim::{At, Quirk, Sim, SimulatedFault, Times, build, killed};

fn params(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

fn queue(dev: &str, queue: u32, rx: u32) -> Setting {
    Setting::QueueCoalesce { dev: dev.into(), queue, params: params(&[("rx-usecs", rx), ("use-adaptive-rx", 0)]) }
}

fn device(dev: &str, rx: u32) -> Setting {
    Setting::Coalesce { dev: dev.into(), params: params(&[("rx-usecs", rx)]) }
}

fn napi(dev: &str, q: u32, flush: u64) -> Setting {
    let values = NapiValues { defer_hard_irqs: Some(2), gro_flush_timeout_ns: Some(flush), ..NapiValues::default() };
    Setting::Napi { dev: dev.into(), of: VectorName::Rx(q), values }
}

fn threaded(dev: &str, on: u32) -> Setting {
    let values = NapiValues { threaded: Some(on), ..NapiValues::default() };
    Setting::NapiDevice { dev: dev.into(), values }
}

fn thread(dev: &str, q: u32, list: &str) -> Setting {
    Setting::NapiThread { dev: dev.into(), of: VectorName::Rx(q), cpus: cpus(list) }
}

fn usecs(sim: &Sim, dev: &str) -> Vec<u32> {
    let nic = sim.nic(dev).unwrap();
    nic.queue_coalesce.known().unwrap().values().map(|c| c.0["rx-usecs"]).collect()
}

/// Each step may be refused, and has these replacements.
fn with(request: Request, instead: &dyn Fn(&Setting) -> Vec<Setting>) -> Request {
    let mut r = request;
    for s in &mut r.steps {
        s.instead = instead(&s.setting);
    }
    r
}

fn rollback(sim: &Arc<Sim>, dir: &Dir) -> Outcome {
    let r = Request { who: "root".into(), argv: vec!["ringwise".into(), "rollback".into()], ..Request::default() };
    ringwise_apply::rollback(&host(sim), &dir.store(), 0, &r, &policy(), &mut |_| {}).unwrap()
}

fn mqnic() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 1).mqnic("eth0", 0, 4).done()))
}

fn linked(kernel: &str) -> Arc<Sim> {
    Arc::new(Sim::new(
        &build::host(8, 1).kernel(kernel).mqnic("eth0", 0, 4).linked().virtio("eth1", 0, 4).linked().done(),
    ))
}

#[test]
fn queues_by_themselves_and_back() {
    let (sim, dir) = (mqnic(), Dir::new());
    let before = look(&sim);
    assert_eq!(before.nic("eth0").unwrap().queue_coalesce.known().unwrap().len(), 4);
    let want = [queue("eth0", 0, 5), queue("eth0", 2, 62)];
    let out = apply(&sim, &dir, &want).unwrap();
    assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, 2), "{out:#?}");
    assert_eq!(usecs(&sim, "eth0"), [5, 50, 62, 50]);
    // Nothing else of the queue was changed.
    assert_eq!(sim.nic("eth0").unwrap().queue_coalesce.known().unwrap()[&0].0["rx-max-frames"], 64);
    assert_eq!(apply(&sim, &dir, &want).unwrap().verdict, RunResult::NothingToDo);
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
}

#[test]
fn the_device_overwrites_its_queues_and_both_come_back() {
    let (sim, dir) = (mqnic(), Dir::new());
    for (q, us) in [(0, 7), (1, 9), (3, 11)] {
        apply(&sim, &Dir::new(), &[queue("eth0", q, us)]).unwrap();
    }
    let before = look(&sim);
    let out = apply(&sim, &dir, &[device("eth0", 20)]).unwrap();
    assert_eq!((out.verdict, out.side_effects.len()), (RunResult::Applied, 0), "{out:#?}");
    assert_eq!(usecs(&sim, "eth0"), [20, 20, 20, 20]);
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(usecs(&sim, "eth0"), [7, 9, 50, 11]);
    assert_eq!(look(&sim), before);
}

#[test]
fn a_device_value_with_single_queues_besides() {
    let (sim, dir) = (mqnic(), Dir::new());
    let out = apply(&sim, &dir, &[device("eth0", 125), queue("eth0", 1, 5)]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert_eq!(usecs(&sim, "eth0"), [125, 5, 125, 125]);
}

#[test]
fn a_rounded_value_is_adjusted_a_strange_one_is_not_kept() {
    let (sim, dir) = (mqnic(), Dir::new());
    sim.quirk("eth0", Quirk::Rounds);
    let out = apply(&sim, &dir, &[queue("eth0", 1, 62)]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert_eq!(usecs(&sim, "eth0")[1], 56);
    let Setting::QueueCoalesce { params, .. } = &out.adjusted_by_driver[0].kept else { panic!() };
    assert_eq!(params["rx-usecs"], 56);
    assert_eq!(compare(&queue("eth0", 1, 62), &look(&sim)), Match::Adjusted);
    assert_eq!(compare(&queue("eth0", 1, 66), &look(&sim)), Match::Differs);
}

#[test]
fn odd_queues_that_refuse_are_deferred_by_napi() {
    let (sim, dir) = (linked("6.18.15"), Dir::new());
    sim.quirk("eth0", Quirk::OddQueues);
    let before = look(&sim);
    // The queues that refuse have no moderation of their own, so the setting is absent.
    assert!(live(&before, &queue("eth0", 1, 5).address().unwrap()).is_absent());
    let all: Vec<Setting> = (0..4).map(|q| queue("eth0", q, 62)).collect();
    let instead = |s: &Setting| match s {
        Setting::QueueCoalesce { queue, .. } => vec![napi("eth0", *queue, 62_000), device("eth0", 62)],
        _ => Vec::new(),
    };
    let out = run(&sim, &dir, &with(request_if(&before, &all, IfRefused::Skip), &instead)).unwrap();
    assert_eq!((out.verdict, out.instead.len(), out.refused.len()), (RunResult::Applied, 2, 0), "{out:#?}");
    assert_eq!((&out.instead[0].asked, &out.instead[0].kept), (&all[1], &napi("eth0", 1, 62_000)));
    assert_eq!(out.instead[0].failure.errno, Some(95));
    let now = look(&sim);
    for s in [&all[0], &all[2], &napi("eth0", 1, 62_000), &napi("eth0", 3, 62_000)] {
        assert_eq!(compare(s, &now), Match::Same, "{s:?}");
    }
    // ringwise manages it: an outside change is drift, and a rollback restores it.
    let standing = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    assert_eq!((standing.settings.len(), standing.holding()), (4, 4));
    let nic = before.nic("eth0").unwrap();
    let learned = dir.store().learned().unwrap();
    assert!(learned.iter().any(|l| l.applies(&nic.dev, Some("mqnic"), "6.18.15", &queue("eth0", 3, 99))));
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
}

#[test]
fn a_queue_that_ignores_has_something_else_in_its_place() {
    let (sim, dir) = (linked("6.18.15"), Dir::new());
    sim.quirk("eth0", Quirk::IgnoresModeration);
    let before = look(&sim);
    let r = with(request_if(&before, &[queue("eth0", 0, 5)], IfRefused::Skip), &|_| vec![napi("eth0", 0, 5_000)]);
    let out = run(&sim, &dir, &r).unwrap();
    assert_eq!((out.verdict, out.instead.len(), out.ignored.len()), (RunResult::Applied, 1, 0), "{out:#?}");
    assert!(
        out.instead[0].failure.words.starts_with("accepted, but reads back as"),
        "{}",
        out.instead[0].failure.words
    );
    let learned = dir.store().learned().unwrap();
    assert_eq!(learned[0].asked, queue("eth0", 0, 5));
}

#[test]
fn an_answer_proves_nothing_virtio_refuses_and_the_device_too() {
    // 6.12 has no napi-set; the remaining way is the device, which does not accept microseconds either.
    let (sim, dir) = (linked("6.12.48"), Dir::new());
    let before = look(&sim);
    assert!(before.nic("eth1").unwrap().queue_coalesce.is_known());
    let want = [queue("eth1", 0, 5), irq("eth1", 0, "3")];
    let of_queue = |s: &Setting| match s {
        Setting::QueueCoalesce { .. } => vec![napi("eth1", 0, 5_000), device("eth1", 5)],
        _ => Vec::new(),
    };
    let out = run(&sim, &dir, &with(request_if(&before, &want, IfRefused::Skip), &of_queue)).unwrap();
    assert_eq!((out.verdict, out.instead.len(), out.refused.len()), (RunResult::Applied, 0, 1), "{out:#?}");
    assert_eq!(dir.store().learned().unwrap().len(), 2);
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
    // The same if the step must hold.
    let (sim, dir) = (linked("6.12.48"), Dir::new());
    let out = run(&sim, &dir, &with(request(&before, &want), &of_queue)).unwrap();
    assert_eq!(out.verdict, RunResult::PutBack);
    assert_eq!(look(&sim), before);
}

#[test]
fn one_policy_for_the_device_and_no_two() {
    let (sim, dir) = (Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done())), Dir::new());
    let before = look(&sim);
    let mut want: Vec<Setting> = (0..3).map(|q| queue("eth0", q, 62)).collect();
    want.push(queue("eth0", 3, 125));
    let instead = |s: &Setting| match s {
        Setting::QueueCoalesce { params, .. } => vec![device("eth0", params["rx-usecs"])],
        _ => Vec::new(),
    };
    let out = run(&sim, &dir, &with(request_if(&before, &want, IfRefused::Skip), &instead)).unwrap();
    assert_eq!((out.verdict, out.instead.len(), out.refused.len()), (RunResult::Applied, 3, 1), "{out:#?}");
    assert_eq!(out.applied, [device("eth0", 62)]);
    assert_eq!(compare(&device("eth0", 62), &look(&sim)), Match::Same);
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
}

#[test]
fn less_of_the_same_where_a_parameter_is_refused() {
    let all = Setting::Coalesce { dev: "eth0".into(), params: params(&[("rx-usecs", 62), ("tx-usecs", 122)]) };
    let less = device("eth0", 62);
    let igb = || Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done()));
    let (sim, dir) = (igb(), Dir::new());
    let before = look(&sim);
    // One interrupt serves both directions, so igb refuses tx-usecs.
    let mut r = request_if(&before, std::slice::from_ref(&all), IfRefused::Skip);
    r.steps[0].instead = vec![less.clone()];
    let out = run(&sim, &dir, &r).unwrap();
    assert_eq!((out.verdict, out.instead.len(), out.refused.len()), (RunResult::Applied, 1, 0), "{out:#?}");
    assert_eq!((&out.instead[0].asked, &out.instead[0].kept), (&all, &less));
    let standing = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    assert_eq!((standing.settings.len(), standing.holding()), (1, 1));
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
    for k in 0..sim.writes() {
        let (sim, dir) = (igb(), Dir::new());
        sim.fault(SimulatedFault::Fail { at: At::Write(k), errno: 5, times: Times::Once });
        let out = run(&sim, &dir, &r).unwrap();
        sim.clear_faults();
        if out.verdict == RunResult::Applied {
            rollback(&sim, &dir);
        }
        assert!(look(&sim) == before, "write {k}: {out:#?}");
    }
    // Nor does any part of the first attempt stay if it was accepted but changed.
    let (sim, dir) = (mqnic(), Dir::new());
    sim.quirk("eth0", Quirk::IgnoresModeration);
    let before = look(&sim);
    let mut r = request_if(&before, std::slice::from_ref(&all), IfRefused::Skip);
    r.steps[0].instead = vec![less];
    let out = run(&sim, &dir, &r).unwrap();
    assert_eq!((out.verdict, out.instead.len(), out.ignored.len()), (RunResult::Applied, 0, 1), "{out:#?}");
    assert_eq!(look(&sim), before);
}

#[test]
fn threads_are_made_and_pinned_with_their_queue() {
    let (sim, dir) = (linked("6.18.15"), Dir::new());
    let before = look(&sim);
    let want = [threaded("eth0", 1), thread("eth0", 0, "3"), thread("eth0", 1, "5"), napi("eth0", 1, 62_000)];
    let out = apply(&sim, &dir, &want).unwrap();
    assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, 4), "{out:#?}");
    let now = look(&sim);
    let threads: Vec<String> = now
        .nic("eth0")
        .unwrap()
        .napi
        .known()
        .unwrap()
        .instances
        .iter()
        .map(|i| i.thread.as_ref().unwrap().cpus.known().unwrap().to_string())
        .collect();
    assert_eq!(threads, ["3", "5", "0-7", "0-7"]);
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
    assert!(look(&sim).nic("eth0").unwrap().napi.known().unwrap().instances.iter().all(|i| i.thread.is_none()));
}

#[test]
fn instances_that_a_channel_change_makes_anew_get_their_values_again() {
    let built = build::host(8, 1).kernel("6.18.15").igb("eth0", 0, 8).linked().done();
    let (sim, dir) = (Arc::new(Sim::new(&built)), Dir::new());
    let set = apply(&sim, &Dir::new(), &[napi("eth0", 1, 62_000)]).unwrap();
    assert_eq!(set.verdict, RunResult::Applied);
    let id = |q| {
        let s = look(&sim);
        ringwise_knob::napi::instance(s.nic("eth0").unwrap(), VectorName::Rx(q)).unwrap().id
    };
    let (was, before) = (id(1), look(&sim));
    let out = apply(&sim, &dir, &[channels("eth0", 6), napi("eth0", 2, 9_000)]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{out:#?}");
    assert_ne!(id(1), was);
    let now = look(&sim);
    assert_eq!(compare(&napi("eth0", 1, 62_000), &now), Match::Same);
    assert_eq!(compare(&napi("eth0", 2, 9_000), &now), Match::Same);
    assert!(out.side_effects.contains(&live(&now, &napi("eth0", 1, 0).address().unwrap()).known().cloned().unwrap()));
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    let now = look(&sim);
    assert_eq!(compare(&napi("eth0", 1, 62_000), &now), Match::Same);
    assert_eq!(
        live(&now, &napi("eth0", 2, 0).address().unwrap()),
        live(&before, &napi("eth0", 2, 0).address().unwrap())
    );
}

/// All settings of this family in one plan.
fn mixed(sim: &Arc<Sim>) -> Request {
    let now = look(sim);
    let want = [
        device("eth0", 20),
        queue("eth0", 0, 5),
        queue("eth0", 1, 62),
        queue("eth1", 0, 5),
        threaded("eth0", 1),
        thread("eth0", 0, "3"),
        napi("eth0", 2, 62_000),
    ];
    with(request_if(&now, &want, IfRefused::Skip), &|s| match s {
        Setting::QueueCoalesce { dev, queue, .. } => vec![napi(dev, *queue, 5_000)],
        _ => Vec::new(),
    })
}

#[test]
fn a_failure_at_every_write_puts_everything_back() {
    let sim = linked("6.18.15");
    sim.quirk("eth0", Quirk::OddQueues);
    let dir = Dir::new();
    // The test NIC with this quirk refuses the device after its first queue: that queue is restored too.
    let out = run(&sim, &dir, &mixed(&sim)).unwrap();
    assert_eq!((out.verdict, out.instead.len(), out.refused.len()), (RunResult::Applied, 2, 1), "{out:#?}");
    let writes = sim.writes();
    assert!(writes >= 8, "{writes}");
    for k in 0..writes {
        for errno in [5, 22, 95] {
            let (sim, dir) = (linked("6.18.15"), Dir::new());
            sim.quirk("eth0", Quirk::OddQueues);
            let before = look(&sim);
            let request = mixed(&sim);
            sim.fault(SimulatedFault::Fail { at: At::Write(k), errno, times: Times::Once });
            let out = run(&sim, &dir, &request).unwrap();
            match out.verdict {
                RunResult::PutBack => assert_eq!(look(&sim), before, "write {k} errno {errno}: {out:#?}"),
                RunResult::Applied => {
                    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied, "write {k} errno {errno}");
                    assert_eq!(look(&sim), before, "write {k} errno {errno}");
                }
                other => panic!("write {k} errno {errno}: {other:?} {out:#?}"),
            }
        }
    }
}

#[test]
fn recovered_when_killed_at_every_write() {
    let sim = linked("6.18.15");
    sim.quirk("eth0", Quirk::OddQueues);
    run(&sim, &Dir::new(), &mixed(&sim)).unwrap();
    for k in 0..sim.writes() {
        let (sim, dir) = (linked("6.18.15"), Dir::new());
        sim.quirk("eth0", Quirk::OddQueues);
        let before = look(&sim);
        let request = mixed(&sim);
        sim.fault(SimulatedFault::KillAfter { at: At::Write(k) });
        let died = killed(|| _ = run(&sim, &dir, &request));
        assert!(died, "write {k}");
        sim.clear_faults();
        let out = ringwise_apply::recover(&host(&sim), &dir.store(), &policy(), &mut |_| {}).unwrap();
        assert_eq!(out.verdict, RunResult::Recovered, "write {k}: {out:#?}");
        assert_eq!(look(&sim), before, "write {k}");
    }
}

#[test]
fn a_device_of_an_older_kernel_has_files_only() {
    let (sim, dir) = (linked("6.1.0"), Dir::new());
    let before = look(&sim);
    let found = before.nic("eth0").unwrap().napi.known().unwrap().clone();
    assert!(found.instances.is_empty() && found.device.threaded == Some(0));
    let values = NapiValues { defer_hard_irqs: Some(2), gro_flush_timeout_ns: Some(9_000), ..NapiValues::default() };
    let want = Setting::NapiDevice { dev: "eth0".into(), values };
    assert_eq!(apply(&sim, &dir, std::slice::from_ref(&want)).unwrap().verdict, RunResult::Applied);
    assert_eq!(compare(&want, &look(&sim)), Match::Same);
    assert_eq!(rollback(&sim, &dir).verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
    // A value that the kernel refuses leaves nothing half done: it accepts 0 and 1.
    let values = NapiValues { defer_hard_irqs: Some(3), threaded: Some(7), ..NapiValues::default() };
    let want = Setting::NapiDevice { dev: "eth0".into(), values };
    let out = run(&sim, &Dir::new(), &request_if(&before, &[want], IfRefused::Skip)).unwrap();
    assert_eq!((out.verdict, out.refused.len()), (RunResult::Applied, 1));
    assert_eq!(look(&sim).nic("eth0").unwrap().napi.known().unwrap().device, found.device);
    assert!(matches!(before.nic("eth1").unwrap().queue_coalesce, Fact::Absent), "virtio answers since 6.6");
}
