//! One flipped bit in any file of the state directory, then each command: the test reads the simulated host back. Every setting
//! has its original value, the value that was left, or the requested one; and no command reports a half-changed host as fine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{Confirmed, Error, Outcome, Policy, Refusal, RunResult, Verify};
use ringwise_knob::{IfRefused, Setting, SettingMap, compare};
use ringwise_model::Snapshot;
use ringwise_sys::Clock;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, build, killed};

/// A state directory and its host, created again for each bit.
struct Scene {
    name: &'static str,
    files: BTreeMap<String, Vec<u8>>,
    /// Before anything was applied.
    first: Snapshot,
    /// Before the last transaction.
    before: Snapshot,
    left: Snapshot,
}

fn first_wanted() -> Vec<Setting> {
    vec![irq("eth0", 0, "2"), xps("eth0", 0, "2"), rfs(4096), xps("eth0", 3, "3")]
}

fn second_wanted() -> Vec<Setting> {
    vec![channels("eth0", 2), irq("eth0", 0, "1"), xps("eth0", 0, "3"), rps("eth0", 1, "3"), rfs(8192)]
}

/// The settings of a third run, which finds the host as it was left.
fn third_wanted() -> Vec<Setting> {
    vec![irq("eth0", 1, "3"), rps("eth0", 0, "1-2"), rfs(1024)]
}

/// What happens after the first transaction, which is kept and has learned something.
enum Then {
    Nothing,
    Kept,
    Killed,
    /// Its guard is gone.
    OnTrial,
    Confirmed,
    ConfirmedAndKept,
    RolledBack,
}

fn scene(name: &'static str, then: &Then) -> Scene {
    let (sim, dir, here) =
        (Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done())), Dir::new(), Here::default());
    let first = look(&sim);
    sim.fault(SimulatedFault::Ignore { at: At::Matching("tx-3".into()) });
    let request = request_if(&first, &first_wanted(), IfRefused::Skip);
    let out = run(&sim, &dir, &request).unwrap();
    assert_eq!((out.verdict, out.ignored.len()), (RunResult::Applied, 1));
    sim.clear_faults();
    let mut before = look(&sim);
    let second = |policy: &Policy| {
        let request = crate::common::request(&look(&sim), &second_wanted());
        ringwise_apply::run(&host(&sim), &request, &mortal(&dir, &sim), policy, &mut |_| {}).unwrap().verdict
    };
    match then {
        Then::Nothing => {}
        Then::Kept => assert_eq!(second(&policy()), RunResult::Applied),
        Then::Killed => {
            sim.forget_writes();
            sim.fault(SimulatedFault::KillAfter { at: At::Write(3) });
            assert!(killed(|| _ = second(&policy())));
            sim.clear_faults();
        }
        Then::OnTrial => {
            let policy = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
            assert_eq!(second(&policy), RunResult::Applied);
        }
        Then::Confirmed | Then::ConfirmedAndKept => {
            let policy = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
            assert_eq!(second(&policy), RunResult::Applied);
            here.state.lock().unwrap().lock = None;
            let said = ringwise_apply::confirm(&dir.store(), &before.host, "anna", sim.as_ref()).unwrap();
            assert_eq!(said, Confirmed::Kept { transaction: 2, noted: Ok(()) });
            if matches!(then, Then::ConfirmedAndKept) {
                before = look(&sim);
                assert_eq!(apply(&sim, &dir, &[rfs(16384)]).unwrap().verdict, RunResult::Applied);
            }
        }
        Then::RolledBack => assert_eq!(rollback(&sim, &dir, 1, &policy()).unwrap().verdict, RunResult::Applied),
    }
    let left = look(&sim);
    // What `status` records.
    let mut v = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    ringwise_apply::note_seen(&dir.store(), &left, &mut v, sim.unix_time());
    let files = dir.files().into_iter().map(|n| (n.clone(), std::fs::read(dir.0.join(n)).unwrap())).collect();
    Scene { name, files, first, before, left }
}

impl Scene {
    fn again(&self) -> (Arc<Sim>, Dir) {
        let dir = Dir::new();
        for (name, bytes) in &self.files {
            std::fs::write(dir.0.join(name), bytes).unwrap();
        }
        (Arc::new(Sim::new(&self.left)), dir)
    }

    /// The values that this host may have afterwards.
    fn known(&self, asked: &[Setting]) -> BTreeMap<ringwise_knob::Address, Vec<Setting>> {
        let mut out: BTreeMap<_, Vec<Setting>> = BTreeMap::new();
        for s in [&self.first, &self.before, &self.left] {
            settings(s).into_iter().for_each(|(a, s)| out.entry(a).or_default().push(s));
        }
        asked.iter().for_each(|s| out.entry(s.address().unwrap()).or_default().push(s.clone()));
        out
    }

    /// Checks that no setting has a value that was in none of the files.
    fn check_values(&self, now: &Snapshot, asked: &[Setting], what: &str) {
        let known = self.known(asked);
        for (address, setting) in settings(now) {
            // A queue that is created again has the kernel's defaults.
            let Some(known) = known.get(&address) else { continue };
            assert!(known.contains(&setting), "{what}: {address} is {}", setting.value_text());
        }
    }
}

/// The result of a command, and the host after it.
struct Came {
    sim: Arc<Sim>,
    dir: Dir,
    out: Result<Outcome, Error>,
    /// The host's settings.
    now: Snapshot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Recover,
    RollBack(u64),
    Apply,
}

impl Op {
    fn requested_settings(self) -> Vec<Setting> {
        if self == Op::Apply { third_wanted() } else { Vec::new() }
    }

    fn go(self, sim: &Arc<Sim>, dir: &Dir) -> Result<Outcome, Error> {
        match self {
            Op::Recover => recover(sim, dir),
            Op::RollBack(id) => rollback(sim, dir, id, &policy()),
            Op::Apply => apply(sim, dir, &third_wanted()),
        }
    }
}

fn flip(path: &std::path::Path, bit: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, bytes).unwrap();
}

/// Bits of the file: spread evenly, another selection for each `phase`; and one in each of its last lines, which are short.
fn bits(bytes: &[u8], phase: usize) -> Vec<usize> {
    let count = if ringwise_testkit::lane::everything() { 60 } else { 3 };
    let all = bytes.len() * 8;
    // An odd step, so that all bits of a byte occur.
    let step = (all / count).max(1) | 1;
    let ends: Vec<usize> = (0..bytes.len()).rev().filter(|i| bytes[*i] == b'\n').take(4).collect();
    let middles = ends.windows(2).map(|w| (w[0] + w[1]) / 2 * 8 + phase % 7);
    (phase * step / 7 % step..all).step_by(step).chain(middles).collect()
}

fn settings_of(v: &Verify) -> SettingMap {
    v.settings.iter().map(|s| (s.want.address().unwrap(), s.want.clone())).collect()
}

/// Runs status, then each command on a separate host.
fn every_command(scene: &Scene, check: impl Fn(&str, Op, &Came)) {
    let (sim, dir) = scene.again();
    let whole = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    let learned = dir.store().learned().unwrap();
    for (n, (file, bytes)) in scene.files.iter().enumerate() {
        for bit in bits(bytes, n) {
            let (sim, dir) = scene.again();
            flip(&dir.0.join(file), bit);
            let what = format!("{}: {file} bit {bit}: status", scene.name);
            // The host is as it was, or status reports that it needs attention.
            match ringwise_apply::verify(&host(&sim), &dir.store(), &policy()) {
                Ok(v)
                    if v.exit_status() == whole.exit_status()
                        && v.newer.is_empty()
                        && v.unfinished == whole.unfinished =>
                {
                    assert_eq!((settings_of(&v), &v.trial), (settings_of(&whole), &whole.trial), "{what}");
                }
                Ok(v) => assert_eq!(v.exit_status(), 3, "{what}"),
                Err(e) => assert!(e.to_string().contains(file), "{what}: {e}"),
            }
            match dir.store().learned() {
                Ok(l) => assert_eq!(l, learned, "{what}"),
                Err(e) => assert!(e.to_string().contains(file), "{what}: {e}"),
            }
        }
        for (m, op) in [Op::Recover, Op::RollBack(0), Op::RollBack(1), Op::Apply].into_iter().enumerate() {
            for bit in bits(bytes, n + 3 * m) {
                let (sim, dir) = scene.again();
                flip(&dir.0.join(file), bit);
                let what = format!("{}: {file} bit {bit}: {op:?}", scene.name);
                let out = op.go(&sim, &dir);
                let now = look(&sim);
                scene.check_values(&now, &op.requested_settings(), &what);
                if out.is_err() {
                    assert_eq!((sim.writes(), differing(&scene.left, &now)), (0, Vec::new()), "{what}");
                }
                check(&what, op, &Came { sim, dir, out, now });
            }
        }
    }
}

fn kept(name: &'static str, then: &Then) {
    let scene = scene(name, then);
    every_command(&scene, |what, op, came| match (op, &came.out) {
        // The record of its confirmation may be damaged: the message refers to `recover`, and that works.
        (Op::Apply, Err(e)) if matches!(e.refusal(), Some(Refusal::OnTrial { .. })) => {
            assert_eq!(recover(&came.sim, &came.dir).unwrap().verdict, RunResult::Recovered, "{what}");
            assert_eq!(differing(&scene.before, &look(&came.sim)), Vec::<String>::new(), "{what}");
        }
        (_, Err(e)) => assert!(!e.to_string().is_empty(), "{what}"),
        // The record of its end may be damaged: then the transaction counts as interrupted.
        (Op::Recover, Ok(o)) if o.verdict == RunResult::Recovered => {
            let before = if o.transaction == Some(1) { &scene.first } else { &scene.before };
            assert_eq!(differing(before, &came.now), Vec::<String>::new(), "{what}");
        }
        (Op::Recover, Ok(o)) => {
            assert_eq!((o.verdict, came.sim.writes()), (RunResult::NothingToDo, 0), "{what}");
        }
        (Op::RollBack(_), Ok(o)) => {
            assert_eq!((o.verdict, differing(&scene.first, &came.now)), (RunResult::Applied, Vec::new()), "{what}");
        }
        (Op::Apply, Ok(o)) => {
            assert_eq!(o.verdict, RunResult::Applied, "{what}");
            assert!(third_wanted().iter().all(|s| compare(s, &came.now).holds()), "{what}");
            // The values as first found are still known, or the loss is reported.
            match rollback(&came.sim, &came.dir, 0, &policy()) {
                Ok(_) => {
                    assert_eq!(differing(&scene.first, &look(&came.sim)), Vec::<String>::new(), "{what}, and back")
                }
                Err(e) => assert!(!e.to_string().is_empty()),
            }
        }
    });
}

#[test]
fn of_a_transaction_that_is_kept() {
    kept("one kept", &Then::Nothing);
}

#[test]
fn of_two_transactions_that_are_kept() {
    kept("two kept", &Then::Kept);
}

#[test]
fn of_a_transaction_that_was_confirmed() {
    kept("confirmed", &Then::Confirmed);
}

#[test]
fn of_a_transaction_that_was_confirmed_before_another() {
    kept("confirmed, and one more kept", &Then::ConfirmedAndKept);
}

#[test]
fn of_a_transaction_that_was_cut_short() {
    let scene = scene("cut short", &Then::Killed);
    assert!(!differing(&scene.before, &scene.left).is_empty());
    every_command(&scene, |what, op, came| match (op, &came.out) {
        (Op::Recover, Ok(o)) => {
            assert_eq!((o.verdict, differing(&scene.before, &came.now)), (RunResult::Recovered, Vec::new()), "{what}");
        }
        (_, Ok(o)) => panic!("{what}: {o:?}"),
        (_, Err(e)) => assert!(e.exit_status() == 6 && !e.to_string().is_empty(), "{what}: {e}"),
    });
}

#[test]
fn of_a_transaction_on_trial() {
    let scene = scene("on trial", &Then::OnTrial);
    every_command(&scene, |what, op, came| match (op, &came.out) {
        (Op::Recover, Ok(o)) => {
            assert_eq!((o.verdict, differing(&scene.before, &came.now)), (RunResult::Recovered, Vec::new()), "{what}");
        }
        (_, Ok(o)) => panic!("{what}: {o:?}"),
        (_, Err(e)) => assert!(!e.to_string().is_empty(), "{what}: {e}"),
    });
    // `confirm` keeps the transaction, whatever happened to the trial's file.
    for (n, (file, bytes)) in scene.files.iter().enumerate() {
        for bit in bits(bytes, n) {
            let (sim, dir) = scene.again();
            flip(&dir.0.join(file), bit);
            let said = ringwise_apply::confirm(&dir.store(), &scene.left.host, "anna", sim.as_ref());
            assert_eq!(differing(&scene.left, &look(&sim)), Vec::<String>::new());
            let v = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
            let what = format!("{file} bit {bit}: {said:?}");
            match said.unwrap() {
                Confirmed::Kept { transaction: 2, noted: Ok(()) } => assert_eq!(v.trial, None, "{what}"),
                _ => assert_eq!(v.exit_status(), 3, "{what}"),
            }
        }
    }
}

#[test]
fn of_a_rollback() {
    let scene = scene("rolled back", &Then::RolledBack);
    assert_eq!(differing(&scene.first, &scene.left), Vec::<String>::new());
    every_command(&scene, |what, op, came| match (op, &came.out) {
        (Op::Apply, Ok(o)) => assert_eq!(o.verdict, RunResult::Applied, "{what}"),
        // As before the rollback, whose end is damaged.
        (Op::Recover, Ok(o)) if o.transaction == Some(2) => {
            assert_eq!(differing(&scene.before, &came.now), Vec::<String>::new(), "{what}");
        }
        (_, Ok(_)) => assert_eq!(differing(&scene.first, &came.now), Vec::<String>::new(), "{what}"),
        (_, Err(e)) => assert!(!e.to_string().is_empty(), "{what}"),
    });
}
