//! Two runs that change one host but see different files: another state directory, or another mount namespace.

use std::sync::Arc;
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{Outcome, Policy, Refusal, RunResult, Store};
use ringwise_testkit::sim::{Sim, build};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()))
}

/// The store of a container: its own directory, but the network namespace of the host.
fn elsewhere(dir: &Dir, host: &Dir) -> Store {
    dir.store().with_socket_name(socket(host))
}

fn go(sim: &Arc<Sim>, store: &Store, policy: &Policy) -> Result<Outcome, ringwise_apply::Error> {
    let request = request(&look(sim), &[rfs(4096), xps("eth0", 0, "1")]);
    ringwise_apply::run(&host(sim), &request, store, policy, &mut |_| {})
}

#[test]
fn one_lock_for_two_state_directories() {
    let (sim, here, dirs) = (sim(), Here::default(), [Dir::new(), Dir::new()]);
    let trial = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
    assert_eq!(go(&sim, &dirs[0].store(), &trial).unwrap().verdict, RunResult::Applied);
    // The applier is gone; the lock that it passed to its guard is still held.
    sim.forget_writes();
    let theirs = elsewhere(&dirs[1], &dirs[0]);
    let wanted = request(&look(&sim), &[rfs(8192)]);
    let e = ringwise_apply::run(&host(&sim), &wanted, &theirs, &policy(), &mut |_| {}).unwrap_err();
    let Some(Refusal::Elsewhere { pid, socket: name, .. }) = e.refusal() else { panic!("{e}") };
    assert_eq!((e.exit_status(), *pid, sim.writes()), (6, Some(std::process::id()), 0));
    assert_eq!(*name, format!("@{}-0", socket(&dirs[0])));
    assert!(e.to_string().contains("is changing the interfaces of this host (process"), "{e}");
    assert_eq!(dirs[1].files(), ["lock"], "nothing else is left there");
    // `forget` changes only files in that directory, not the host, so it is not refused.
    theirs.forget(&[]).unwrap();
    here.acts(&sim, &dirs[0].store()).unwrap().unwrap();
    let wanted = request(&look(&sim), &[rfs(8192)]);
    let out = ringwise_apply::run(&host(&sim), &wanted, &theirs, &policy(), &mut |_| {}).unwrap();
    assert_eq!((out.verdict, out.notes.len()), (RunResult::Applied, 0), "{:?}", out.notes);
}

#[test]
fn a_guard_that_is_started_again_takes_both() {
    let (sim, here, dirs) = (sim(), Here::default(), [Dir::new(), Dir::new()]);
    let trial = Policy { trial: Some(Duration::from_secs(1)), ..here.policy() };
    go(&sim, &dirs[0].store(), &trial).unwrap();
    here.state.lock().unwrap().lock = None;
    let theirs = elsewhere(&dirs[1], &dirs[0]);
    let other = Here::default();
    let wanted = request(&look(&sim), &[rfs(8192)]);
    let long = Policy { trial: Some(Duration::from_secs(60)), ..other.policy() };
    ringwise_apply::run(&host(&sim), &wanted, &theirs, &long, &mut |_| {}).unwrap();
    // The guard waits until the other run has released the lock, and then restores its own settings.
    std::thread::scope(|s| {
        let guard = s.spawn(|| Here::started_again(&sim, &dirs[0]).unwrap().unwrap());
        std::thread::sleep(Duration::from_millis(300));
        assert!(!guard.is_finished());
        other.state.lock().unwrap().lock = None;
        assert_eq!(guard.join().unwrap().verdict, RunResult::PutBack);
    });
}
