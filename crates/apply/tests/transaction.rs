//! A transaction that succeeds, and others that are refused before anything is changed.

use crate::common;
use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Refusal, RunResult};
use ringwise_knob::{IfRefused, compare};
use ringwise_model::{Fact, Snapshot};
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).mqnic("eth1", 1, 4).done()))
}

fn wanted() -> Vec<ringwise_knob::Setting> {
    let mut all: Vec<_> = (0..4).map(|q| irq("eth1", q, &(q + 2).to_string())).collect();
    all.extend((0..4).map(|q| xps("eth1", q, &(q + 2).to_string())));
    all.extend([rps("eth0", 0, "0-1"), flow_cnt("eth0", 0, 1000), rfs(30000)]);
    all
}

fn holds(now: &Snapshot, wanted: &[ringwise_knob::Setting]) {
    for s in wanted {
        assert!(compare(s, now).holds(), "{:?}: {:?}", s, compare(s, now));
    }
}

#[test]
fn applies_the_request_and_a_second_time_nothing() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let request = request(&before, &wanted());
    let out = run(&sim, &dir, &request).unwrap();
    assert_eq!((out.verdict, out.exit_status(), out.transaction), (RunResult::Applied, 0, Some(1)));
    assert_eq!((out.applied.len(), out.verified, out.verified_of), (11, 11, 11));
    assert!(out.changed && out.side_effects.is_empty() && out.failed.is_none());
    holds(&look(&sim), &wanted());
    assert_eq!(sim.writes(), 11);
    assert_eq!(dir.files(), ["first-found.json", "lock", "status.json", "tx-0001.jsonl"]);

    sim.forget_writes();
    let again = run(&sim, &dir, &ringwise_apply::Request { steps: request.steps.clone(), ..request }).unwrap();
    assert_eq!((again.verdict, again.transaction, again.changed), (RunResult::NothingToDo, None, false));
    assert_eq!((sim.writes(), again.already_so.len()), (0, 11));
    assert_eq!(dir.files().len(), 4);
}

#[test]
fn with_nothing_to_do_not_even_a_directory_is_made() {
    let (sim, dir) = (sim(), Dir::new());
    let place = dir.0.join("none");
    let store = ringwise_apply::Store::open(Some(&place));
    let now = look(&sim);
    let mut request = request(&now, &wanted());
    request.steps.clear();
    let out = ringwise_apply::run(&host(&sim), &request, &store, &policy(), &mut |_| {}).unwrap();
    assert_eq!(out.verdict, RunResult::NothingToDo);
    assert!(!place.exists());
    assert_eq!(sim.writes(), 0);
}

#[test]
fn idle_queues_are_pending_and_no_failure() {
    let (sim, dir) = (sim(), Dir::new());
    let effective = sim.nic("eth1").unwrap().vectors[0].effective.known().cloned().unwrap();
    let other = if effective == cpus("2") { "3" } else { "2" };
    let out = apply(&sim, &dir, &[irq("eth1", 0, other)]).unwrap();
    assert_eq!((out.verdict, out.pending.len()), (RunResult::Applied, 1));
    sim.traffic("eth1");
    let v = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    assert_eq!((v.settings.len(), v.pending().count(), v.exit_status()), (1, 0, 0));
}

#[test]
fn adjustments_by_the_driver_are_reported() {
    let (sim, dir) = (sim(), Dir::new());
    let rings = ringwise_knob::Setting::Rings {
        dev: "eth0".into(),
        values: ringwise_model::RingValues::sizes(Some(100), None),
    };
    let out = apply(&sim, &dir, &[rings]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert_eq!(out.adjusted_by_driver[0].kept.value_text(), "rx 104 tx 256");
}

#[test]
fn refuses_what_is_no_longer_as_planned_and_names_it() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let request = request(&before, &wanted());
    sim.outside(|h| {
        h.write("/sys/class/net/eth0/queues/rx-0/rps_cpus", b"80").unwrap();
        // This one already has the requested value, so it is no obstacle.
        h.write("/sys/class/net/eth1/queues/tx-1/xps_cpus", b"8").unwrap();
    });
    // It is also found before the user confirms.
    let early = ringwise_apply::still_fits(&host(&sim), &request, &policy()).unwrap_err();
    let e = run(&sim, &dir, &request).unwrap_err();
    assert_eq!((e.exit_status(), e.to_string()), (6, early.to_string()));
    let Some(Refusal::Changed { moved }) = e.refusal() else { panic!("{e}") };
    assert_eq!(moved.len(), 1);
    assert_eq!(e.to_string(), "a setting has changed since the plan was made:\n  eth0 rx-0 rps_cpus: was none, is 7");
    assert_eq!(sim.writes(), 0);
    assert!(!dir.journal(1).exists());
}

#[test]
fn only_one_at_a_time() {
    let (sim, dir) = (sim(), Dir::new());
    let lock = std::fs::File::create(dir.0.join("lock")).unwrap();
    lock.lock().unwrap();
    std::fs::write(dir.0.join("lock"), "4711\n").unwrap();
    let e = apply(&sim, &dir, &wanted()).unwrap_err();
    assert_eq!((e.exit_status(), sim.writes()), (6, 0));
    assert!(e.to_string().contains("process 4711"), "{e}");
    drop(lock);
    assert_eq!(apply(&sim, &dir, &wanted()).unwrap().verdict, RunResult::Applied);
}

#[test]
fn read_only_is_refused_with_the_cure() {
    let (sim, dir) = (sim(), Dir::new());
    let request = request(&look(&sim), &wanted());
    sim.read_only(true);
    let e = run(&sim, &dir, &request).unwrap_err();
    assert_eq!((e.exit_status(), e.refusal()), (6, Some(&Refusal::ReadOnly)));
    assert!(e.to_string().contains("mounted writable"));
    assert!(dir.files().is_empty());
}

#[test]
fn a_device_that_vanished_or_does_not_exist() {
    let (sim, dir) = (sim(), Dir::new());
    let request = request(&look(&sim), &wanted());
    sim.unplug("eth1");
    let e = run(&sim, &dir, &request).unwrap_err();
    assert_eq!((e.exit_status(), e.to_string()), (6, "eth1 does not exist any more".to_string()));
    assert_eq!(sim.writes(), 0);
}

#[test]
fn another_device_under_the_old_name_is_another_device() {
    let (sim, dir) = (sim(), Dir::new());
    let mut request = request(&look(&sim), &wanted());
    request.devices.iter_mut().find(|d| d.name == "eth1").unwrap().permanent_mac = Some("52:54:00:ff:ff:ff".into());
    let e = run(&sim, &dir, &request).unwrap_err();
    assert!(matches!(e.refusal(), Some(Refusal::Vanished { .. })), "{e}");
    assert_eq!(sim.writes(), 0);
}

#[test]
fn a_renamed_device_is_followed() {
    let (sim, dir) = (sim(), Dir::new());
    let request = request(&look(&sim), &wanted());
    sim.rename("eth1", "wan0");
    let out = run(&sim, &dir, &request).unwrap();
    assert_eq!(
        (out.verdict, out.notes.as_slice()),
        (RunResult::Applied, ["eth1 was renamed to wan0".to_string()].as_slice())
    );
    assert_eq!(sim.nic("wan0").unwrap().tx_queues[1].xps_cpus, Fact::Known(cpus("3")));
    // And back, with a third name.
    sim.rename("wan0", "wan1");
    assert_eq!(rollback(&sim, &dir, 1, &policy()).unwrap().verdict, RunResult::Applied);
    assert_eq!(sim.nic("wan1").unwrap().tx_queues[1].xps_cpus, Fact::Known(cpus("")));
}

#[test]
fn settings_of_a_newer_version_and_of_queues_that_are_not_there() {
    let (sim, dir) = (sim(), Dir::new());
    let mut request = request(&look(&sim), &wanted());
    request.steps[0].setting = serde_json::from_str(r#"{"knob":"warp","dev":"eth0"}"#).unwrap();
    assert!(matches!(run(&sim, &dir, &request).unwrap_err().refusal(), Some(Refusal::Unknown { .. })));
    let request = common::request(&look(&sim), &[xps("eth1", 9, "1")]);
    assert!(matches!(run(&sim, &dir, &request).unwrap_err().refusal(), Some(Refusal::NotThere { .. })));
    assert_eq!(sim.writes(), 0);
}

#[test]
fn refusals_that_are_allowed_are_remembered() {
    let built = build::host(4, 1).mqnic("eth0", 0, 4).managed().done();
    let (sim, dir) = (Arc::new(Sim::new(&built)), Dir::new());
    let now = look(&sim);
    let want = [irq("eth0", 0, "3"), xps("eth0", 0, "3")];
    let out = run(&sim, &dir, &request_if(&now, &want, IfRefused::Skip)).unwrap();
    assert_eq!((out.verdict, out.refused.len(), out.applied.len()), (RunResult::Applied, 1, 1));
    assert_eq!(out.refused[0].failure.errno, Some(1));
    let learned = dir.store().learned().unwrap();
    assert_eq!(learned.len(), 1);
    let nic = now.nic("eth0").unwrap();
    assert!(learned[0].applies(&nic.dev, Some("mqnic"), "6.12.48", &irq("eth0", 0, "2")));
    // The other mode: all settings are restored, and nothing is learned.
    let other = request_if(&now, &[irq("eth0", 1, "3"), xps("eth0", 1, "3")], IfRefused::PutBack);
    let out = run(&sim, &dir, &other).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBack, 4));
    assert_eq!(dir.store().learned().unwrap(), learned);
}

#[test]
fn accepted_and_ignored() {
    for (how, verdict) in [(IfRefused::Skip, RunResult::Applied), (IfRefused::PutBack, RunResult::PutBack)] {
        let (sim, dir) = (sim(), Dir::new());
        sim.fault(SimulatedFault::Ignore { at: At::Matching("rx-0/rps_cpus".into()) });
        let before = look(&sim);
        let want = [xps("eth0", 1, "1"), rps("eth0", 0, "0-1"), rps("eth0", 1, "0-1")];
        let out = run(&sim, &dir, &request_if(&before, &want, how)).unwrap();
        assert_eq!(out.verdict, verdict);
        assert_eq!(dir.store().learned().unwrap().len(), usize::from(how == IfRefused::Skip));
        assert_eq!(out.exit_status(), if how == IfRefused::Skip { 3 } else { 4 });
        if how == IfRefused::Skip {
            assert_eq!(out.ignored[0].now, Fact::Known(rps("eth0", 0, "")));
            assert_eq!(out.applied.len(), 2);
        } else {
            assert_eq!(out.failed.unwrap().words, "accepted, but reads back as none");
            assert!(differing(&before, &look(&sim)).is_empty());
        }
    }
}

/// A mask that the kernel is still applying when it is read does not count as another mask, nor as a manual change.
#[test]
fn a_mask_on_its_way_is_looked_at_again() {
    let (sim, dir) = (sim(), Dir::new());
    let number = sim.nic("eth0").unwrap().vectors[0].irq.0;
    sim.old_mask(number, 2);
    let out = apply(&sim, &dir, &[irq("eth0", 0, "1")]).unwrap();
    assert_eq!((out.verdict, sim.writes()), (RunResult::Applied, 1));
    // Four looks are the limit: a mask that stays different counts as not kept.
    sim.old_mask(number, 9);
    let out = apply(&sim, &dir, &[irq("eth0", 0, "2")]).unwrap();
    assert_eq!(out.failed.unwrap().words, "accepted, but reads back as 1");
    // Planned with the present mask while the kernel is still applying it: the first look finds the previous one.
    let (sim, dir) = (self::sim(), Dir::new());
    let mask = |cpu: &[u8]| sim.outside(|h| h.write(&format!("/proc/irq/{number}/smp_affinity_list"), cpu)).unwrap();
    mask(b"1");
    let request = request(&look(&sim), &[irq("eth0", 0, "2")]);
    mask(b"3");
    sim.old_mask(number, 1);
    mask(b"1");
    assert_eq!(run(&sim, &dir, &request).unwrap().verdict, RunResult::Applied);
    // A change by another program is still detected.
    let other = request_if(&look(&sim), &[irq("eth0", 0, "1")], IfRefused::PutBack);
    mask(b"3");
    let e = run(&sim, &dir, &other).unwrap_err();
    assert!(matches!(e, ringwise_apply::Error::Refused(r) if matches!(*r, Refusal::Changed { .. })));
}

#[test]
fn busy_is_tried_again_within_a_bound() {
    let (sim, dir) = (sim(), Dir::new());
    sim.fault(SimulatedFault::Fail { at: At::Write(0), errno: 16, times: Times::Once });
    let out = apply(&sim, &dir, &[rps("eth0", 0, "1")]).unwrap();
    assert_eq!((out.verdict, sim.writes()), (RunResult::Applied, 2));
    sim.forget_writes();
    sim.fault(SimulatedFault::Fail { at: At::Matching("rps_cpus".into()), errno: 16, times: Times::Always });
    let out = apply(&sim, &dir, &[rps("eth0", 0, "2")]).unwrap();
    assert_eq!((out.verdict, sim.writes()), (RunResult::PutBack, 5));
    assert_eq!(out.failed.unwrap().errno, Some(16));
}

#[test]
fn a_stop_at_a_step_boundary_puts_back() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let policy = policy();
    let stop = policy.stop.clone();
    let mut done = 0;
    let out = ringwise_apply::run(&host(&sim), &request(&before, &wanted()), &dir.store(), &policy, &mut |e| {
        if matches!(e, ringwise_apply::Event::Done { .. }) {
            done += 1;
            stop.store(done == 5, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let out = out.unwrap();
    assert_eq!((out.verdict, out.put_back.len()), (RunResult::PutBack, 5));
    assert_eq!(out.failed.unwrap().words, "stopped on request");
    assert!(differing(&before, &look(&sim)).is_empty());
}

#[test]
fn the_outcome_is_a_document() {
    let (sim, dir) = (sim(), Dir::new());
    let out = apply(&sim, &dir, &wanted()).unwrap();
    let text = serde_json::to_string(&out).unwrap();
    assert!(text.starts_with(r#"{"schema":"ringwise.outcome","version":1,"verdict":"applied""#), "{text}");
    assert_eq!(serde_json::from_str::<ringwise_apply::Outcome>(&text).unwrap(), out);
}
