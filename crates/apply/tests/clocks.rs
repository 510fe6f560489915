//! The deadline of a trial while clocks jump: changes of the wall clock do not count, suspended time does.

use std::sync::Arc;
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{Confirmed, Outcome, Policy, RunResult, TrialResult, confirm, pending};
use ringwise_model::CpuId;
use ringwise_sys::Clock;
use ringwise_testkit::sim::{ClockJump, Sim, build};

const TRIAL: Duration = Duration::from_secs(60);
const HOUR: i64 = 3600;
/// The guard looks every 0.2 s, and restoring waits for links.
const SOON: Duration = Duration::from_secs(5);

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).linked().done()))
}

/// Starts a trial now.
fn on_trial(sim: &Arc<Sim>, dir: &Dir, here: &Here, policy: Policy) -> Outcome {
    let policy = Policy { trial: Some(TRIAL), ..policy };
    let request = request(&look(sim), &[irq_tx("eth0", 1, "2"), rps("eth0", 0, "1")]);
    let out = ringwise_apply::run(&host(sim), &request, &dir.store(), &policy, &mut |_| {}).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert_eq!(out.trial.as_ref().unwrap().fate, TrialResult::Pending);
    assert!(here.state.lock().unwrap().lock.is_some());
    out
}

/// Time from the start of the trial until the guard restored the settings, in time since boot.
fn ends_after(jumps: &[(u64, ClockJump)]) -> Duration {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    on_trial(&sim, &dir, &here, here.policy());
    let begin = sim.since_boot();
    jumps.iter().for_each(|(after, jump)| sim.jump(Duration::from_secs(*after), *jump));
    let out = here.acts(&sim, &dir.store()).unwrap().expect("it is put back");
    assert_eq!(out.verdict, RunResult::PutBack);
    assert_eq!(out.failed.unwrap().words, "it was not confirmed within 60 s");
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
    sim.since_boot() - begin
}

fn is_about(took: Duration, expected: Duration, what: &str) {
    assert!(took >= expected && took < expected + SOON, "{what}: {took:?} instead of {expected:?}");
}

#[test]
fn the_wall_clock_neither_cuts_nor_extends_it() {
    for seconds in [5 * HOUR, -5 * HOUR, 10 * 365 * 24 * HOUR, -1_790_001_000, 30, -30] {
        let took = ends_after(&[(10, ClockJump::Wall(seconds))]);
        is_about(took, TRIAL, &format!("by {seconds} s"));
    }
    // Back and forth, like two programs that both set the clock.
    let jumps: Vec<_> = (1..50).map(|n| (n, ClockJump::Wall(if n % 2 == 0 { HOUR } else { -HOUR }))).collect();
    is_about(ends_after(&jumps), TRIAL, "again and again");
}

#[test]
fn a_suspend_counts_and_one_that_is_longer_ends_it_at_the_wake_up() {
    let suspend = |seconds| ClockJump::Suspend(Duration::from_secs(seconds));
    is_about(ends_after(&[(10, suspend(20))]), TRIAL, "shorter");
    is_about(ends_after(&[(10, suspend(20)), (40, suspend(15))]), TRIAL, "twice");
    is_about(ends_after(&[(10, suspend(3600))]), Duration::from_secs(10 + 3600), "longer");
    let wakes_up_with_another_clock = [(10, suspend(86_400)), (10, ClockJump::Wall(-24 * HOUR))];
    is_about(ends_after(&wakes_up_with_another_clock), Duration::from_secs(10 + 86_400), "for a day");
}

#[test]
fn it_can_be_confirmed_whatever_the_wall_clock_shows() {
    for seconds in [5 * HOUR, -5 * HOUR] {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        on_trial(&sim, &dir, &here, here.policy());
        let applied = look(&sim);
        sim.jump(Duration::from_secs(1), ClockJump::Wall(seconds));
        Clock::sleep(sim.as_ref(), Duration::from_secs(50));
        let said = confirm(&dir.store(), &applied.host, "anna", sim.as_ref()).unwrap();
        assert_eq!(said, Confirmed::Kept { transaction: 1, noted: Ok(()) });
        assert_eq!(here.acts(&sim, &dir.store()).unwrap(), None);
        assert_eq!(differing(&applied, &look(&sim)), Vec::<String>::new());
    }
}

#[test]
fn its_end_is_reported_on_the_clock_as_it_is_set_now() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let trial = on_trial(&sim, &dir, &here, here.policy()).trial.unwrap();
    assert_eq!(trial.until(sim.as_ref()), trial.until_unix);
    sim.jump(Duration::from_secs(10), ClockJump::Wall(-5 * HOUR));
    Clock::sleep(sim.as_ref(), Duration::from_secs(10));
    let now = pending(&dir.store(), &look(&sim).host).unwrap().unwrap().trial;
    assert_eq!((now.until_unix, now.until_boot_ms), (trial.until_unix, trial.until_boot_ms));
    assert_eq!(now.until(sim.as_ref()), trial.until_unix - 5 * 3600);
    // After the end: the moment when the trial ended.
    Clock::sleep(sim.as_ref(), Duration::from_secs(100));
    assert_eq!(now.until(sim.as_ref()), trial.until_unix - 5 * 3600);
}

/// A suspend does not count as time in which a queue was stuck.
#[test]
fn a_suspend_is_no_time_in_which_a_queue_stood_still() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    on_trial(&sim, &dir, &here, Policy { watch: Duration::from_secs(4), ..here.policy() });
    let begin = sim.since_boot();
    sim.stalled_cpu(CpuId(2));
    sim.jump(Duration::from_millis(500), ClockJump::Suspend(Duration::from_secs(8)));
    let out = here.acts(&sim, &dir.store()).unwrap().unwrap();
    // The queue is really stuck, and that is detected after three seconds.
    let words = out.failed.unwrap().words;
    assert!(words.starts_with("eth0 tx-1 completed nothing for 3 s"), "{words}");
    let awake = sim.since_boot() - begin - Duration::from_secs(8);
    assert!(awake >= Duration::from_millis(1200), "{awake:?}");
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
}
