//! An applier that hangs without dying: its guard takes over after a limit, and what the applier does later does not count.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::guard::{ApplierState, WatchedApplier, guard};
use ringwise_apply::{Ending, Event, Halt, OpenLock, Outcome, Phase, Policy, RunResult, TrialResult};
use ringwise_knob::Setting;
use ringwise_model::Snapshot;
use ringwise_sys::Clock;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, build, killed};

const BOUND: Duration = Duration::from_secs(30);

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()))
}

fn wanted() -> Vec<Setting> {
    vec![channels("eth0", 2), rfs(4096), irq("eth0", 0, "2"), xps("eth0", 0, "2"), rps("eth0", 1, "3")]
}

/// An applier that has begun, gives a sign of life every `alive`, and dies after `dies`.
struct Applier {
    sim: Arc<Sim>,
    begun: bool,
    alive: Option<Duration>,
    dies: Option<Duration>,
    silent: Duration,
    took: Duration,
    answered: usize,
    taken: bool,
}

impl Applier {
    fn silent(sim: &Arc<Sim>) -> Self {
        let sim = sim.clone();
        let none = Duration::ZERO;
        Self { sim, begun: false, alive: None, dies: None, silent: none, took: none, answered: 0, taken: false }
    }
}

impl WatchedApplier for Applier {
    fn look(&mut self, wait: Duration) -> ApplierState {
        if !std::mem::replace(&mut self.begun, true) {
            return ApplierState::Begun;
        }
        Clock::sleep(self.sim.as_ref(), wait);
        self.silent += wait;
        self.took += wait;
        if self.dies.is_some_and(|d| self.took >= d) {
            return ApplierState::Died("killed".into());
        }
        if self.alive.is_some_and(|a| self.silent >= a) {
            self.silent = Duration::ZERO;
            return ApplierState::Alive;
        }
        ApplierState::Quiet
    }

    fn answer(&mut self) {
        self.answered += 1;
    }

    fn halted(&self) -> (Option<u32>, Halt) {
        (Some(4711), Halt::Stopped)
    }

    fn take_over(&mut self) {
        self.taken = true;
    }
}

fn guards(sim: &Arc<Sim>, dir: &Dir, lock: Option<OpenLock<OwnedFd>>, applier: &mut Applier) -> Option<Outcome> {
    let policy = Policy { silence: BOUND, ..policy() };
    guard(&host(sim), &dir.store(), 1, lock, Some(applier), &policy, &mut |_| {}).unwrap()
}

fn is_before(before: &Snapshot, sim: &Arc<Sim>, what: &str) {
    let left = differing(before, &look(sim));
    assert!(left.is_empty(), "{what}: {left:?}");
}

/// Stopped after its fifth write.
fn half_done() -> (Arc<Sim>, Dir, Here, Snapshot) {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    let request = request(&before, &wanted());
    sim.fault(SimulatedFault::KillAfter { at: At::Write(4) });
    let store = mortal(&dir, &sim);
    assert!(killed(|| _ = ringwise_apply::run(&host(&sim), &request, &store, &here.policy(), &mut |_| {})));
    sim.clear_faults();
    assert!(!differing(&before, &look(&sim)).is_empty(), "it is half done");
    (sim, dir, here, before)
}

fn ending(dir: &Dir, now: &Snapshot) -> Ending {
    ringwise_apply::history(&dir.store(), &now.host).unwrap()[0].ending.clone()
}

#[test]
fn silence_is_taken_for_death_after_a_bound() {
    let (sim, dir, here, before) = half_done();
    let mut applier = Applier::silent(&sim);
    let lock = here.state.lock().unwrap().lock.take().unwrap();
    let shared =
        OpenLock { file: lock.file.as_fd(), socket: lock.socket.as_ref().map(AsFd::as_fd) }.try_clone().unwrap();
    let begin = sim.since_boot();
    let out = guards(&sim, &dir, Some(lock), &mut applier).unwrap();
    assert!(applier.took >= BOUND && applier.took < BOUND * 2, "{:?}", applier.took);
    assert!(sim.since_boot() - begin >= BOUND && applier.taken);
    assert_eq!(out.verdict, RunResult::PutBack);
    let failed = out.failed.unwrap();
    assert_eq!(failed.words, "the process that applied it (4711) has been stopped for 30 s");
    assert!(failed.meaning.contains("holds the lock until"), "{}", failed.meaning);
    is_before(&before, &sim, "taken over");
    assert_eq!(ending(&dir, &before), Ending::PutBack);
    // The applier shares the lock: a run that needs the lock gets that process named.
    let e = apply(&sim, &dir, &wanted()).unwrap_err();
    assert!(e.to_string().contains("process 4711, root, \"ringwise apply\""), "{e}");
    drop(shared);
    assert_eq!(apply(&sim, &dir, &wanted()).unwrap().verdict, RunResult::Applied);
}

#[test]
fn with_signs_of_life_it_waits() {
    let (sim, dir, here, before) = half_done();
    let lock = here.state.lock().unwrap().lock.take();
    let mut applier = Applier::silent(&sim);
    (applier.alive, applier.dies) = (Some(BOUND - Duration::from_secs(5)), Some(BOUND * 20));
    let out = guards(&sim, &dir, lock, &mut applier).unwrap();
    assert_eq!((out.failed.unwrap().words.as_str(), applier.taken), ("killed", false));
    assert!(applier.took >= BOUND * 20);
    is_before(&before, &sim, "killed");
}

#[test]
fn a_run_gives_signs_of_life_also_while_it_waits() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    here.state.lock().unwrap().clock = Some(sim.clone());
    // The link is down for longer than the guard would wait: the run fails, and restores the settings.
    let policy = Policy { link_wait: BOUND * 2, ..here.policy() };
    let request = request(&look(&sim), &wanted());
    let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy, &mut |e| {
        if matches!(e, Event::LinkWait { .. }) {
            sim.cable("eth0", false);
        }
    });
    assert_eq!(out.unwrap().verdict, RunResult::PutBack);
    let signs = here.state.lock().unwrap().signs.clone();
    let gap = signs.windows(2).map(|w| w[1].saturating_sub(w[0])).max().unwrap();
    assert!(*signs.last().unwrap() - signs[0] > BOUND * 2 && gap < Duration::from_secs(1), "{gap:?}");
}

#[test]
fn what_has_its_end_on_disk_is_not_taken_over() {
    // Stopped before it could inform its guard.
    for seconds in [None, Some(60)] {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        let policy = Policy { trial: seconds.map(Duration::from_secs), ..here.policy() };
        let request = request(&before, &wanted());
        ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy, &mut |_| {}).unwrap();
        let applied = look(&sim);
        let lock = here.state.lock().unwrap().lock.take();
        let mut applier = Applier::silent(&sim);
        let out = guards(&sim, &dir, lock, &mut applier);
        assert_eq!((applier.taken, applier.answered), (false, 2), "of begun and of done");
        match (seconds, out) {
            (None, None) => is_before(&applied, &sim, "kept"),
            (Some(_), Some(o)) => {
                assert!(o.failed.as_ref().unwrap().words.contains("not confirmed within 60 s"), "{:?}", o.failed);
                is_before(&before, &sim, "not confirmed");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Runs until the first event of this kind. There the applier is stopped until its guard has taken over and restored the
/// settings.
fn stopped_at(
    sim: &Arc<Sim>,
    dir: &Dir,
    here: &Here,
    policy: &Policy,
    stops: impl Fn(&Event) -> bool,
) -> Result<Outcome, ringwise_apply::Error> {
    let request = request(&look(sim), &wanted());
    let mut stopped = false;
    let out = ringwise_apply::run(&host(sim), &request, &mortal(dir, sim), policy, &mut |e| {
        if stopped || !stops(e) {
            return;
        }
        stopped = true;
        let lock = here.state.lock().unwrap().lock.take();
        let mut applier = Applier::silent(sim);
        let out = guards(sim, dir, lock, &mut applier).unwrap();
        assert_eq!((out.verdict, applier.taken), (RunResult::PutBack, true));
        here.state.lock().unwrap().took_over = true;
    });
    assert!(stopped);
    out
}

fn third_write() -> impl Fn(&Event) -> bool {
    let done = std::cell::Cell::new(0);
    move |e| {
        done.set(done.get() + u32::from(matches!(e, Event::Done { .. })));
        done.get() == 3
    }
}

#[test]
fn an_applier_that_goes_on_puts_back_what_it_still_did() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    let out = stopped_at(&sim, &dir, &here, &here.policy(), third_write()).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBack, 4));
    assert_eq!(out.failed.unwrap().words, "the guard has taken over");
    is_before(&before, &sim, "it went on");
    assert_eq!(ending(&dir, &before), Ending::PutBack);
    // Stopped between its check and its write: one write follows the guard's restoring.
    let (sim, dir, here) = (self::sim(), Dir::new(), Here::default());
    let writing = |e: &Event| matches!(e, Event::Writing { setting: Setting::RfsEntries { .. }, .. });
    let out = stopped_at(&sim, &dir, &here, &here.policy(), writing).unwrap();
    assert_eq!((out.verdict, out.put_back), (RunResult::PutBack, vec![rfs(0)]));
    is_before(&before, &sim, "one write later");
}

fn verified(e: &Event) -> bool {
    matches!(e, Event::Verified { phase: Phase::Apply, .. })
}

#[test]
fn an_end_that_is_written_after_it_does_not_count() {
    for seconds in [None, Some(60)] {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        here.state.lock().unwrap().unheard = true;
        let policy = Policy { trial: seconds.map(Duration::from_secs), ..here.policy() };
        let out = stopped_at(&sim, &dir, &here, &policy, verified).unwrap();
        assert_eq!((out.verdict, out.trial), (RunResult::PutBack, None), "{seconds:?}");
        assert_eq!(out.failed.unwrap().words, "the guard has taken over");
        is_before(&before, &sim, "ended");
        assert_eq!(ending(&dir, &before), Ending::PutBack);
        assert!(!dir.files().iter().any(|f| f.ends_with("-0001.json")), "{:?}", dir.files());
    }
}

#[test]
fn nor_does_it_where_the_applier_dies_behind_it() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    here.state.lock().unwrap().unheard = true;
    // Killed after it has recorded its end as kept, before it contacts its guard.
    here.state.lock().unwrap().kills_at_done = Some(sim.clone());
    assert!(killed(|| _ = stopped_at(&sim, &dir, &here, &here.policy(), verified)));
    sim.clear_faults();
    let journal = std::fs::read_to_string(dir.journal(1)).unwrap();
    let last = journal.lines().last().unwrap();
    assert!(last.contains("\"record\":\"end\"") && last.contains("\"verdict\":\"applied\""), "{last}");
    assert_eq!(ending(&dir, &before), Ending::PutBack);
    is_before(&before, &sim, "put back");
    assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::NothingToDo);
    assert!(ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap().settings.is_empty());
    let fate = ringwise_apply::history(&dir.store(), &before.host).unwrap()[0].trial.clone();
    assert!(fate.is_none_or(|t| t.fate != TrialResult::Pending));
}
