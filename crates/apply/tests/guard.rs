//! The guard: nothing is written without one; whenever the applier dies, the guard restores the settings; a trial ends in exactly
//! one way.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{
    Confirmed, Ending, Outcome, Policy, Refusal, RunResult, Store, TrialResult, UndoneBy, confirm, pending, undo_now,
};
use ringwise_knob::Setting;
use ringwise_model::Snapshot;
use ringwise_model::errno::ENOSPC;
use ringwise_sys::Clock;
use ringwise_testkit::sim::{At, Killed, Sim, SimulatedFault, build, killed};

fn sim() -> Arc<Sim> {
    let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()));
    let table: Vec<u32> = (0..128).map(|i| if i % 3 == 0 { 1 } else { 0 }).collect();
    sim.ethtool_x("eth0", &table).unwrap();
    sim
}

fn wanted() -> Vec<Setting> {
    let mut all = vec![channels("eth0", 2), rfs(4096)];
    for q in 0..2 {
        let cpu = ((q + 1) % 4).to_string();
        all.extend([irq("eth0", q, &cpu), irq_tx("eth0", q, &cpu), xps("eth0", q, &cpu), rps("eth0", q, "")]);
    }
    all
}

fn go(sim: &Arc<Sim>, store: &Store, policy: &Policy) -> Result<Outcome, ringwise_apply::Error> {
    let request = request(&look(sim), &wanted());
    ringwise_apply::run(&host(sim), &request, store, policy, &mut |_| {})
}

fn trial(here: &Here, seconds: u64) -> Policy {
    Policy { trial: Some(Duration::from_secs(seconds)), ..here.policy() }
}

fn ending(dir: &Dir, now: &Snapshot) -> Ending {
    ringwise_apply::history(&dir.store(), &now.host).unwrap()[0].ending.clone()
}

fn is_before(before: &Snapshot, sim: &Arc<Sim>, what: &str) {
    let left = differing(before, &look(sim));
    assert!(left.is_empty(), "{what}: {left:?}");
}

#[test]
fn without_a_guard_nothing_is_touched() {
    let (sim, dir) = (sim(), Dir::new());
    let here = Here { refuses: true, ..Here::default() };
    let e = go(&sim, &dir.store(), &here.policy()).unwrap_err();
    assert_eq!((e.exit_status(), sim.writes()), (6, 0));
    assert!(matches!(e.refusal(), Some(Refusal::NoGuard { why }) if why.contains("EAGAIN")), "{e}");
    assert_eq!(dir.files(), ["lock", "status.json"], "no journal, no value as first found");
    assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::NothingToDo);
}

#[test]
fn one_for_each_run_that_writes() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let told = |here: &Here| {
        let s = here.state.lock().unwrap();
        (s.armed, s.done.clone(), s.lock.is_some())
    };
    assert_eq!(go(&sim, &dir.store(), &here.policy()).unwrap().verdict, RunResult::Applied);
    assert_eq!(told(&here), (1, vec![false], false));
    assert_eq!(go(&sim, &dir.store(), &here.policy()).unwrap().verdict, RunResult::NothingToDo);
    assert_eq!(told(&here), (1, vec![false], false));
    assert_eq!(rollback(&sim, &dir, 1, &here.policy()).unwrap().verdict, RunResult::Applied);
    assert_eq!(told(&here), (2, vec![false, false], false));
    // A guard without a journal in the end is released as well.
    let full = dir.store().with_hook(Arc::new(|p: &Path| match p.to_string_lossy().contains("tx-") {
        true => Err(std::io::Error::from_raw_os_error(ENOSPC)),
        false => Ok(()),
    }));
    assert_eq!(go(&sim, &full, &here.policy()).unwrap_err().exit_status(), 6);
    assert_eq!(told(&here), (3, vec![false, false, false], false));
}

#[test]
fn a_guard_that_dies_takes_the_transaction_along() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    let mut done = 0;
    let state = here.state.clone();
    let request = request(&before, &wanted());
    let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &here.policy(), &mut |e| {
        if matches!(e, ringwise_apply::Event::Done { .. }) {
            done += 1;
            state.lock().unwrap().gone = done >= 2;
        }
    })
    .unwrap();
    assert_eq!((out.verdict, out.failed.unwrap().words.as_str()), (RunResult::PutBack, "the guard is gone"));
    is_before(&before, &sim, "guard gone");
}

/// Every point at which the host or the journal is written.
fn points(policy: &dyn Fn(&Here) -> Policy) -> (usize, usize) {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let count = Arc::new(AtomicUsize::new(0));
    let c = count.clone();
    let store = dir.store().with_hook(Arc::new(move |_: &Path| {
        c.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }));
    assert_eq!(go(&sim, &store, &policy(&here)).unwrap().verdict, RunResult::Applied);
    (sim.writes(), count.load(Ordering::Relaxed))
}

/// After the death: if there was a guard, it leaves the host as before, and the user need not do anything.
fn guard_ends_it(sim: &Arc<Sim>, dir: &Dir, here: &Here, before: &Snapshot, what: &str) {
    sim.clear_faults();
    let begun = here.state.lock().unwrap().lock.is_some();
    if begun {
        let e = go(sim, &dir.store(), &policy());
        let locked = matches!(&e, Err(e) if matches!(e.refusal(), Some(Refusal::Locked { .. })));
        let changed = !differing(before, &look(sim)).is_empty();
        assert!(locked || !changed, "{what}: {e:?}");
        here.acts(sim, &dir.store()).unwrap();
    }
    is_before(before, sim, what);
    assert_eq!(recover(sim, dir).unwrap().verdict, RunResult::NothingToDo, "{what}");
    let trials: Vec<String> = dir.files().into_iter().filter(|f| f.ends_with("-0001.json")).collect();
    assert!(trials.is_empty(), "{what}: {trials:?}");
}

#[test]
fn killed_at_every_write() {
    let (writes, _) = points(&Here::policy);
    assert!(writes >= 8, "{writes}");
    for k in 0..writes {
        for after in [false, true] {
            let (sim, dir, here) = (sim(), Dir::new(), Here::default());
            let before = look(&sim);
            let at = At::Write(k);
            sim.fault(if after { SimulatedFault::KillAfter { at } } else { SimulatedFault::KillBefore { at } });
            let store = mortal(&dir, &sim);
            assert!(killed(|| _ = go(&sim, &store, &here.policy())));
            guard_ends_it(&sim, &dir, &here, &before, &format!("write {k}, after it: {after}"));
            assert_eq!(ending(&dir, &before), Ending::PutBack);
        }
    }
}

fn dying_at(dir: &Dir, sim: &Arc<Sim>, point: usize) -> Store {
    let count = AtomicUsize::new(0);
    let sim = sim.clone();
    dir.store().with_hook(Arc::new(move |_: &Path| {
        if sim.is_dead() {
            std::panic::panic_any(Killed);
        }
        if count.fetch_add(1, Ordering::Relaxed) == point {
            sim.kill();
        }
        Ok(())
    }))
}

#[test]
fn killed_at_every_point_of_the_journal_with_and_without_a_trial() {
    for seconds in [None, Some(60)] {
        let policy = |h: &Here| Policy { trial: seconds.map(Duration::from_secs), ..h.policy() };
        let (_, points) = points(&policy);
        assert!(points > 20, "{points}");
        for k in 0..points {
            let (sim, dir, here) = (sim(), Dir::new(), Here::default());
            let before = look(&sim);
            let store = dying_at(&dir, &sim, k);
            assert!(killed(|| _ = go(&sim, &store, &policy(&here))), "point {k}");
            let what = format!("point {k} of {points}, trial {seconds:?}");
            // The last point is the sync of the end, which is in the file by then: a kept transaction without a trial is not
            // rolled back.
            let kept = ending_of(&dir, &before);
            if matches!(kept, Some(Ending::Kept)) {
                assert!(k + 1 == points && seconds.is_none(), "{what}");
                sim.clear_faults();
                assert_eq!(here.acts(&sim, &dir.store()).unwrap(), None, "{what}");
                continue;
            }
            guard_ends_it(&sim, &dir, &here, &before, &what);
        }
    }
}

fn ending_of(dir: &Dir, now: &Snapshot) -> Option<Ending> {
    ringwise_apply::history(&dir.store(), &now.host).unwrap().first().map(|e| e.ending.clone())
}

#[test]
fn a_trial_without_confirmation_expires() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    let out = go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Applied, 0));
    let t = out.trial.unwrap();
    assert_eq!((t.seconds, t.fate), (60, TrialResult::Pending));
    assert_eq!(here.state.lock().unwrap().done, [true]);
    assert!(matches!(ending(&dir, &before), Ending::OnTrial { until_unix } if until_unix == t.until_unix));
    let v = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    let p = v.trial.clone().unwrap();
    assert_eq!((v.exit_status(), p.transaction, p.guard.is_some()), (3, 1, true));
    assert!(!v.settings.is_empty() && v.unfinished.is_none());
    // No other run can start, and the refusal names the reason. The host's clock counts, not the wall clock.
    let e = go(&sim, &dir.store(), &here.policy()).unwrap_err();
    let Some(Refusal::Locked { holder, .. }) = e.refusal() else { panic!("{e}") };
    assert_eq!((holder.transaction, holder.trial_until_unix), (Some(1), Some(t.until_unix)));
    assert!(e.to_string().contains("transaction 1 is on trial") && e.to_string().contains("ringwise confirm"), "{e}");
    let begin = sim.since_boot();
    let out = here.acts(&sim, &dir.store()).unwrap().unwrap();
    assert!(sim.since_boot() - begin >= Duration::from_secs(50));
    assert_eq!(out.verdict, RunResult::PutBack);
    assert!(out.failed.as_ref().unwrap().words.contains("not confirmed within 60 s"), "{:?}", out.failed);
    is_before(&before, &sim, "expired");
    assert_eq!(dir.files(), ["first-found.json", "lock", "status.json", "tx-0001.jsonl"]);
    let h = &ringwise_apply::history(&dir.store(), &before.host).unwrap()[0];
    assert_eq!(h.ending, Ending::PutBack);
    assert!(
        matches!(&h.trial.as_ref().unwrap().fate, TrialResult::Undone { by, .. } if *by == UndoneBy::Timer),
        "{:?}",
        h.trial
    );
    let late = confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap();
    assert!(matches!(late, Confirmed::TooLate { transaction: 1, .. }), "{late:?}");
    assert!(ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap().settings.is_empty());
}

#[test]
fn a_confirmed_trial_is_kept() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    assert_eq!(confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap(), Confirmed::Nothing);
    go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
    let applied = look(&sim);
    let said = confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap();
    assert_eq!(said, Confirmed::Kept { transaction: 1, noted: Ok(()) });
    assert_eq!(here.acts(&sim, &dir.store()).unwrap(), None);
    is_before(&applied, &sim, "kept");
    assert_eq!(ending(&dir, &before), Ending::Kept);
    let h = &ringwise_apply::history(&dir.store(), &before.host).unwrap()[0];
    assert_eq!(h.trial.as_ref().unwrap().fate, TrialResult::Confirmed { by: Some("anna".into()) });
    assert_eq!(
        confirm(&dir.store(), &before.host, "otto", sim.as_ref()).unwrap(),
        Confirmed::Already { transaction: 1 }
    );
    assert_eq!(ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap().exit_status(), 0);
    assert_eq!(rollback(&sim, &dir, 1, &policy()).unwrap().verdict, RunResult::Applied);
    is_before(&before, &sim, "rolled back");
    // The last transaction was not on trial.
    assert_eq!(confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap(), Confirmed::Nothing);
}

#[test]
fn a_confirmation_that_the_journal_does_not_take_counts_all_the_same() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let now = look(&sim);
    go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
    let applied = look(&sim);
    let full = dir.store().with_hook(Arc::new(|p: &Path| match p.extension().is_some_and(|e| e == "jsonl") {
        true => Err(std::io::Error::from_raw_os_error(ENOSPC)),
        false => Ok(()),
    }));
    let said = confirm(&full, &now.host, "anna", sim.as_ref()).unwrap();
    assert!(matches!(said, Confirmed::Kept { noted: Err(_), .. }), "{said:?}");
    assert_eq!(here.acts(&sim, &dir.store()).unwrap(), None);
    is_before(&applied, &sim, "kept");
    assert_eq!(ending(&dir, &now), Ending::Kept);
    assert_eq!(confirm(&dir.store(), &now.host, "otto", sim.as_ref()).unwrap(), Confirmed::Already { transaction: 1 });
}

#[test]
fn one_of_both_wins() {
    // At the deadline the guard and a person try at the same time: both look first, then both rename.
    for round in 0..60 {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        go(&sim, &dir.store(), &trial(&here, 5)).unwrap();
        Clock::sleep(sim.as_ref(), Duration::from_millis(4990));
        let barrier = std::sync::Barrier::new(2);
        let (said, out) = std::thread::scope(|s| {
            let person = s.spawn(|| {
                barrier.wait();
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
                confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap()
            });
            barrier.wait();
            let out = here.acts(&sim, &dir.store()).unwrap();
            (person.join().unwrap(), out)
        });
        match (&said, &out) {
            (Confirmed::Kept { .. }, None) => {
                assert!(!differing(&before, &look(&sim)).is_empty());
                assert_eq!(ending(&dir, &before), Ending::Kept);
            }
            (Confirmed::TooLate { .. } | Confirmed::Overdue { .. }, Some(o)) => {
                assert_eq!(o.verdict, RunResult::PutBack);
                is_before(&before, &sim, "too late");
            }
            both => panic!("round {round}: {both:?}"),
        }
    }
}

#[test]
fn a_trial_that_cannot_be_written_down_is_put_back() {
    for name in ["trial-0001.json", "tx-0001.jsonl"] {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        let trying = sim.clone();
        // Only after everything is applied; in the journal, from the record of the trial on.
        let dead = Arc::new(AtomicUsize::new(0));
        let d = dir.0.clone();
        let store = dir.store().with_hook(Arc::new(move |p: &Path| {
            let now = p.file_name().is_some_and(|n| n == name)
                && (name.starts_with("trial") || d.join("trial-0001.json").exists());
            if now && dead.fetch_add(1, Ordering::Relaxed) == 0 {
                assert!(trying.writes() >= 8);
                return Err(std::io::Error::from_raw_os_error(ENOSPC));
            }
            Ok(())
        }));
        let out = go(&sim, &store, &trial(&here, 60)).unwrap();
        assert_eq!((out.verdict, out.trial.is_none()), (RunResult::PutBack, true), "{name}");
        assert!(out.failed.as_ref().unwrap().words.contains("No space left"), "{:?}", out.failed);
        is_before(&before, &sim, name);
        assert_eq!(here.state.lock().unwrap().done, [false]);
        assert_eq!(dir.files(), ["first-found.json", "lock", "status.json", "tx-0001.jsonl"], "{name}");
    }
}

#[test]
fn a_guard_that_is_gone_when_the_trial_begins() {
    let (sim, dir) = (sim(), Dir::new());
    let here = Here { dies_on_trial: true, ..Here::default() };
    let before = look(&sim);
    let out = go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
    assert_eq!((out.verdict, out.trial.is_none()), (RunResult::PutBack, true));
    is_before(&before, &sim, "guard gone");
    assert_eq!(ending(&dir, &before), Ending::PutBack);
    assert_eq!(dir.files(), ["first-found.json", "lock", "status.json", "tx-0001.jsonl"]);
}

#[test]
fn a_guard_that_is_killed_during_the_trial() {
    // There is no guard any more: readers report that, no other run can start, and both ways out work.
    for way in ["confirm", "recover", "again"] {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
        let applied = look(&sim);
        here.state.lock().unwrap().lock = None;
        let p = pending(&dir.store(), &before.host).unwrap().unwrap();
        assert_eq!((p.transaction, p.guard), (1, None));
        let e = go(&sim, &dir.store(), &here.policy()).unwrap_err();
        assert!(matches!(e.refusal(), Some(Refusal::OnTrial { transaction: 1 })), "{e}");
        let e = rollback(&sim, &dir, 1, &policy()).unwrap_err();
        assert_eq!(e.exit_status(), 6, "{e}");
        match way {
            "confirm" => {
                let said = confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap();
                assert!(matches!(said, Confirmed::Kept { .. }));
                is_before(&applied, &sim, way);
                assert_eq!(ending(&dir, &before), Ending::Kept);
            }
            "recover" => {
                assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::Recovered);
                is_before(&before, &sim, way);
            }
            _ => {
                // Like systemd, which restarts it: the guard takes the lock again and continues from what is on disk.
                let out = Here::started_again(&sim, &dir).unwrap().unwrap();
                assert_eq!(out.verdict, RunResult::PutBack);
                is_before(&before, &sim, way);
            }
        }
        assert_eq!(pending(&dir.store(), &before.host).unwrap(), None);
    }
}

#[test]
fn a_confirmation_past_the_deadline_is_refused() {
    for guard in [true, false] {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
        if !guard {
            here.state.lock().unwrap().lock = None;
        }
        let overdue = |sim: &Arc<Sim>| {
            let p = pending(&dir.store(), &before.host).unwrap().unwrap();
            p.trial.overdue(sim.since_boot())
        };
        Clock::sleep(sim.as_ref(), Duration::from_secs(63));
        assert_eq!(overdue(&sim), None, "it may be about to act");
        Clock::sleep(sim.as_ref(), Duration::from_secs(37));
        let late = overdue(&sim).unwrap();
        assert!((35..41).contains(&late.as_secs()), "{late:?}");
        let said = confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap();
        let Confirmed::Overdue { transaction: 1, late: said, guard: by } = said else { panic!("{said:?}") };
        assert_eq!((said, by.is_some()), (late, guard));
        // That decides nothing.
        assert!(dir.0.join("trial-0001.json").exists());
        let out = match guard {
            true => here.acts(&sim, &dir.store()).unwrap().unwrap(),
            false => recover(&sim, &dir).unwrap(),
        };
        assert_eq!(out.verdict, if guard { RunResult::PutBack } else { RunResult::Recovered });
        is_before(&before, &sim, "overdue");
    }
}

#[test]
fn undone_on_request() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    go(&sim, &dir.store(), &trial(&here, 3600)).unwrap();
    assert!(undo_now(&dir.store(), 1, "health command", "it ended with status 7", 0).unwrap());
    let begin = sim.since_boot();
    let out = here.acts(&sim, &dir.store()).unwrap().unwrap();
    assert!(sim.since_boot() - begin < Duration::from_secs(600));
    let f = out.failed.as_ref().unwrap();
    assert_eq!((f.words.as_str(), f.meaning.as_str()), ("it ended with status 7", "undone by health command"));
    is_before(&before, &sim, "undone");
    assert_eq!(undo_now(&dir.store(), 1, "anna", "", 0).unwrap_err().exit_status(), 6);
}

#[test]
fn a_reboot_ends_it() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
    here.state.lock().unwrap().lock = None;
    // A reboot would lose the kernel's settings; the test restores them itself.
    let other = self::sim();
    other.boot_id("99999999-2222-3333-4444-555555555555");
    let now = look(&other);
    assert_eq!(pending(&dir.store(), &now.host).unwrap(), None);
    assert_eq!(confirm(&dir.store(), &now.host, "anna", sim.as_ref()).unwrap(), Confirmed::Nothing);
    assert_eq!(recover(&other, &dir).unwrap().verdict, RunResult::NothingToDo);
    let h = &ringwise_apply::history(&dir.store(), &now.host).unwrap()[0];
    assert!(!h.this_boot && h.trial.as_ref().unwrap().fate == TrialResult::Pending);
    let out = go(&other, &dir.store(), &Here::default().policy()).unwrap();
    assert_eq!((out.verdict, out.transaction), (RunResult::Applied, Some(2)));
    assert!(out.notes.iter().any(|n| n.contains("transaction 1 was on trial and is closed now")), "{:?}", out.notes);
    assert!(!dir.0.join("trial-0001.json").exists());
}

#[test]
fn the_undo_itself_fails() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
    sim.forget_writes();
    sim.fault(SimulatedFault::Fail {
        at: At::Matching("rps_sock_flow_entries".into()),
        errno: 5,
        times: ringwise_testkit::sim::Times::Always,
    });
    let out = here.acts(&sim, &dir.store()).unwrap().unwrap();
    assert_eq!((out.verdict, out.put_back_incomplete.len()), (RunResult::PutBackIncomplete, 1), "{out:?}");
    let now = look(&sim);
    assert_eq!(ending(&dir, &now), Ending::PutBackIncomplete);
    sim.clear_faults();
    assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::Recovered);
}

#[test]
fn the_journal_cannot_be_written_when_the_trial_ends() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    go(&sim, &dir.store(), &trial(&here, 60)).unwrap();
    let broken = dir.store().with_hook(Arc::new(|_: &Path| Err(std::io::Error::from_raw_os_error(ENOSPC))));
    let out = here.acts(&sim, &broken).unwrap().unwrap();
    assert_eq!(out.verdict, RunResult::PutBack);
    is_before(&before, &sim, "put back without an account");
}
