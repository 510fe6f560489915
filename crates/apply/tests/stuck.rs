//! If a queue is stuck after its interrupt was moved, the setting is restored: by the run, by the guard of a trial, and by the
//! guard of a run that was kept.

use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::guard::watch_on;
use ringwise_apply::{
    Ending, Error, Event, Outcome, Phase, Policy, RunResult, TransactionKind, TrialResult, UndoneBy, history,
};
use ringwise_knob::Setting;
use ringwise_model::CpuId;
use ringwise_sys::Clock;
use ringwise_testkit::sim::{Sim, build};

use crate::common::guards::Here;
use crate::common::*;

const WORDS: &str = "eth0 tx-1 completed nothing for 3 s after its interrupt was moved to CPU 2 (3028 bytes in flight)";

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).linked().done()))
}

fn watching() -> Policy {
    Policy { watch: Duration::from_secs(4), ..policy() }
}

fn go(sim: &Arc<Sim>, dir: &Dir, policy: &Policy, wanted: &[Setting]) -> Result<Outcome, Error> {
    let request = request(&look(sim), wanted);
    ringwise_apply::run(&host(sim), &request, &dir.store(), policy, &mut |_| {})
}

fn wanted() -> [Setting; 2] {
    [irq_tx("eth0", 1, "2"), xps("eth0", 1, "2")]
}

#[test]
fn a_stuck_queue_is_put_back() {
    let (sim, dir) = (sim(), Dir::new());
    sim.stalled_cpu(CpuId(2));
    let before = look(&sim);
    let out = go(&sim, &dir, &watching(), &wanted()).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBack, 4));
    assert_eq!(out.failed.unwrap().words, WORDS);
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
    // On another CPU it sends.
    let out = go(&sim, &dir, &watching(), &[irq_tx("eth0", 1, "3")]).unwrap();
    assert_eq!((out.verdict, out.notes), (RunResult::Applied, Vec::new()));
    // Without a watch there is no wait.
    assert_eq!(go(&sim, &dir, &policy(), &wanted()).unwrap().verdict, RunResult::Applied);
}

#[test]
fn a_signal_during_the_watch_puts_everything_back() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let policy = watching();
    let request = request(&look(&sim), &wanted());
    let stop = policy.stop.clone();
    // The signal arrives after the last step has been verified.
    let mut on_verified = |e: &Event| {
        if matches!(e, Event::Verified { phase: Phase::Apply, .. }) {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy, &mut on_verified).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBack, 4));
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
}

#[test]
fn what_stood_still_before_is_named_and_not_the_fault_of_the_run() {
    let (sim, dir) = (sim(), Dir::new());
    go(&sim, &dir, &policy(), &[irq_tx("eth0", 0, "1")]).unwrap();
    sim.stalled_cpu(CpuId(1));
    let out = go(&sim, &dir, &watching(), &wanted()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    let said = "already stuck before anything was changed: eth0 tx-0 completed nothing for 3 s (3028 bytes in flight)";
    assert_eq!(out.notes, [said]);
}

#[test]
fn the_guard_of_a_trial_does_not_wait_for_its_end() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    let policy = Policy { watch: Duration::from_secs(4), trial: Some(Duration::from_secs(600)), ..here.policy() };
    let out = go(&sim, &dir, &policy, &wanted()).unwrap();
    assert!(out.trial.is_some(), "{:?}", out.failed);
    let begin = sim.since_boot();
    sim.stalled_cpu(CpuId(2));
    let out = here.acts(&sim, &dir.store()).unwrap().unwrap();
    assert_eq!((out.verdict, out.failed.unwrap().words.as_str()), (RunResult::PutBack, WORDS));
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
    assert!(sim.since_boot().saturating_sub(begin) < Duration::from_secs(60));
    let now = look(&sim);
    let list = history(&dir.store(), &now.host).unwrap();
    assert!(
        matches!(&list[0].trial.as_ref().unwrap().fate, TrialResult::Undone { by, why } if *by == UndoneBy::Guard && why == WORDS)
    );
}

#[test]
fn the_guard_of_a_run_that_was_kept_rolls_it_back() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let later = |id| watch_on(&host(&sim), &dir.store(), id, &policy(), &mut |_| {}).unwrap();
    assert_eq!(go(&sim, &dir, &watching(), &wanted()).unwrap().verdict, RunResult::Applied);
    assert_eq!(later(1), None, "no queue is stuck");
    sim.stalled_cpu(CpuId(2));
    let out = later(1).unwrap();
    assert_eq!((out.verdict, out.transaction), (RunResult::Applied, Some(2)));
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
    let now = look(&sim);
    let list = history(&dir.store(), &now.host).unwrap();
    let last = list.last().unwrap();
    assert_eq!((&last.kind, last.ending.clone()), (&TransactionKind::Rollback { before: 1 }, Ending::Kept));
    assert_eq!((last.who.as_str(), last.reason.as_deref(), last.stuck.len()), ("guard", Some(WORDS), 1));
    // Only the last transaction is watched, and only if it requested a watch.
    assert_eq!((later(1), later(2)), (None, None));
    go(&sim, &dir, &policy(), &wanted()).unwrap();
    assert_eq!(later(3), None);
}
