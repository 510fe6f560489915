//! One flipped bit in a journal, or a missing journal: the test reads the host back and ignores what is reported.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::guard::{ApplierState, WatchedApplier, guard};
use ringwise_apply::{Halt, OpenLock, Outcome, Policy, RunResult, Store};
use ringwise_knob::Setting;
use ringwise_model::Snapshot;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, build, killed};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()))
}

fn wanted() -> Vec<Setting> {
    vec![channels("eth0", 2), rfs(4096), irq("eth0", 0, "2"), xps("eth0", 0, "2"), rps("eth0", 1, "3")]
}

fn go(sim: &Arc<Sim>, store: &Store, policy: &Policy) -> Outcome {
    let request = request(&look(sim), &wanted());
    ringwise_apply::run(&host(sim), &request, store, policy, &mut |_| {}).unwrap()
}

/// Killed after its fifth write; the guard has not acted.
fn half_done() -> (Arc<Sim>, Dir, Here, Snapshot) {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    sim.fault(SimulatedFault::KillAfter { at: At::Write(4) });
    assert!(killed(|| _ = go(&sim, &mortal(&dir, &sim), &here.policy())));
    sim.clear_faults();
    assert!(!differing(&before, &look(&sim)).is_empty(), "it is half done");
    (sim, dir, here, before)
}

fn flip(path: &Path, bit: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, bytes).unwrap();
}

/// Bits of the journal: all around the ends of its first two lines, and samples elsewhere.
fn bits(path: &Path) -> Vec<usize> {
    let bytes = std::fs::read(path).unwrap();
    let first = bytes.iter().position(|b| *b == b'\n').unwrap();
    let near =
        |at: usize| (at.saturating_sub(12)..(at + 12).min(bytes.len())).flat_map(|b| (0..8).map(move |n| b * 8 + n));
    let all = std::env::var_os("RINGWISE_TESTS").is_some_and(|t| t == "all");
    let step = if all { 7 } else { bytes.len() * 8 / 120 };
    let mut out: Vec<usize> = (0..bytes.len() * 8).step_by(step).collect();
    if all {
        out.extend(near(12).chain(near(first)));
    } else {
        out.extend(near(first).step_by(5));
    }
    out
}

/// What the guard sees: the header, then something happens to the journal, then the applier ends.
struct Script<F: FnMut()> {
    says: Vec<ApplierState>,
    answered: usize,
    meanwhile: F,
}

impl<F: FnMut()> WatchedApplier for Script<F> {
    fn look(&mut self, _: Duration) -> ApplierState {
        if self.answered == 1 {
            (self.meanwhile)();
        }
        self.says.remove(0)
    }

    fn answer(&mut self) {
        self.answered += 1;
    }

    fn halted(&self) -> (Option<u32>, Halt) {
        (None, Halt::Silent)
    }

    fn take_over(&mut self) {}
}

/// A guard that had read the header before `meanwhile` runs.
fn guarded(sim: &Arc<Sim>, dir: &Dir, here: &Here, end: ApplierState, meanwhile: impl FnMut()) -> Option<Outcome> {
    let lock = here.state.lock().unwrap().lock.take();
    let mut script = Script { says: vec![ApplierState::Begun, end], answered: 0, meanwhile };
    let out = guard(&host(sim), &dir.store(), 1, lock, Some(&mut script), &policy(), &mut |_| {}).unwrap();
    assert!(script.answered >= 1, "it has said that it knows the header");
    out
}

#[test]
fn a_guard_puts_back_whatever_happens_to_the_journal() {
    let (_, dir, ..) = half_done();
    let bits = bits(&dir.journal(1));
    for bit in bits {
        let (sim, dir, here, before) = half_done();
        let journal = dir.journal(1);
        let out = guarded(&sim, &dir, &here, ApplierState::Died("killed".into()), || flip(&journal, bit));
        assert_eq!(out.map(|o| o.verdict), Some(RunResult::PutBack), "bit {bit}");
        assert!(differing(&before, &look(&sim)).is_empty(), "bit {bit}");
    }
    let gone: [fn(&Dir); 3] = [
        |d| std::fs::remove_file(d.journal(1)).unwrap(),
        |d| std::fs::write(d.journal(1), "").unwrap(),
        |d| std::fs::rename(&d.0, d.0.with_extension("away")).unwrap(),
    ];
    for (n, lose) in gone.into_iter().enumerate() {
        let (sim, dir, here, before) = half_done();
        let out = guarded(&sim, &dir, &here, ApplierState::Died("killed".into()), || lose(&dir));
        assert_eq!(out.map(|o| o.verdict), Some(RunResult::PutBack), "{n}");
        assert!(differing(&before, &look(&sim)).is_empty(), "{n}");
        let _ = std::fs::remove_dir_all(dir.0.with_extension("away"));
    }
}

#[test]
fn a_trial_ends_when_its_journal_is_damaged_or_gone() {
    let lost: [fn(&Dir); 3] = [
        |d| flip(&d.journal(1), 900),
        |d| std::fs::remove_file(d.journal(1)).unwrap(),
        |d| std::fs::rename(&d.0, d.0.with_extension("away")).unwrap(),
    ];
    for (n, lose) in lost.into_iter().enumerate() {
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        let policy = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
        assert_eq!(go(&sim, &dir.store(), &policy).verdict, RunResult::Applied);
        assert!(!differing(&before, &look(&sim)).is_empty());
        let out =
            guarded(&sim, &dir, &here, ApplierState::Done { on_trial: true }, || lose(&dir)).expect("it was put back");
        assert_eq!(out.verdict, RunResult::PutBack, "{n}");
        assert!(out.failed.as_ref().unwrap().words.starts_with("its journal is"), "{:?}", out.failed);
        assert!(differing(&before, &look(&sim)).is_empty(), "{n}");
        let _ = std::fs::remove_dir_all(dir.0.with_extension("away"));
    }
}

#[test]
fn what_the_applier_has_ended_stays_although_its_journal_is_lost() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    assert_eq!(go(&sim, &dir.store(), &here.policy()).verdict, RunResult::Applied);
    let applied = look(&sim);
    let lock = std::fs::File::options().read(true).write(true).open(dir.0.join("lock")).unwrap();
    here.state.lock().unwrap().lock = Some(OpenLock { file: lock.into(), socket: None });
    let journal = dir.journal(1);
    let out = guarded(&sim, &dir, &here, ApplierState::Done { on_trial: false }, || flip(&journal, 900));
    assert!(out.is_none() && differing(&applied, &look(&sim)).is_empty(), "{out:?}");
}

/// Without a guard: the start is restored, or nothing is changed and the reason is reported.
#[test]
fn recover_never_writes_what_is_not_verified() {
    let (_, dir, ..) = half_done();
    let bits = bits(&dir.journal(1));
    let (mut back, mut refused) = (0, 0);
    for bit in bits {
        let (sim, dir, here, before) = half_done();
        here.state.lock().unwrap().lock = None;
        flip(&dir.journal(1), bit);
        let half = look(&sim);
        let verify = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
        assert_eq!(verify.exit_status(), 3, "bit {bit}: it is not noticed");
        sim.forget_writes();
        match recover(&sim, &dir) {
            Ok(out) => {
                assert_eq!(out.verdict, RunResult::Recovered, "bit {bit}");
                assert!(differing(&before, &look(&sim)).is_empty(), "bit {bit}");
                back += 1;
            }
            Err(e) => {
                assert_eq!(e.exit_status(), 6, "bit {bit}: {e}");
                assert!(e.to_string().contains("is damaged"), "bit {bit}: {e}");
                assert_eq!(sim.writes(), 0, "bit {bit}");
                assert!(differing(&half, &look(&sim)).is_empty(), "bit {bit}");
                // The commands that could be read are shown to the user, and no other apply is possible meanwhile.
                let [newer] = &verify.newer[..] else { panic!("bit {bit}") };
                assert!(newer.damaged && e.to_string().contains(&newer.undo.join("\n  ")), "bit {bit}: {e}");
                refused += 1;
            }
        }
    }
    assert!(back > 10 && refused > 10, "{back} put back, {refused} refused");
}

#[test]
fn a_journal_of_version_0_1_is_still_put_back() {
    let (sim, dir, here, before) = half_done();
    here.state.lock().unwrap().lock = None;
    let path = dir.journal(1);
    let text = std::fs::read_to_string(&path).unwrap();
    let old: String = text
        .lines()
        .map(|l| {
            let (l, sum) = l.rsplit_once(",\"crc32\":\"").unwrap();
            assert_eq!(sum.len(), 10, "{sum}");
            format!("{}}}\n", l.replace("\"format\":2", "\"format\":1"))
        })
        .collect();
    std::fs::write(&path, old).unwrap();
    assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::Recovered);
    assert!(differing(&before, &look(&sim)).is_empty());
}
