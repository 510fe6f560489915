//! A disk that is full at each single write, sync and rename of apply, confirm, rollback and recover: only that once, or from
//! then on. The host is as before or completely changed, and messages name the file and the error.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{Confirmed, Ending, Error, Outcome, Policy, Request, RunResult, Store, confirm, history, pending};
use ringwise_knob::{IfRefused, Setting, compare};
use ringwise_model::Snapshot;
use ringwise_model::errno::{EFBIG, ENOSPC};
use ringwise_testkit::sim::{At, Sim, SimulatedFault, build, killed};

const WORDS: &str = "No space left on device";

/// When the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    Once,
    /// Half of a line is still written.
    OnceInALine,
    FromThenOn,
}

/// Every call, with the ways in which the disk is full there: in `make test` permanently, and one of the others in rotation.
fn cases(points: usize) -> impl Iterator<Item = (Full, usize)> {
    let all = [Full::FromThenOn, Full::OnceInALine, Full::Once];
    let is_tried = move |f: Full, k: usize| f == all[0] || f == all[1 + k % 2] || ringwise_testkit::lane::everything();
    (0..points).flat_map(move |k| all.into_iter().filter(move |f| is_tried(*f, k)).map(move |f| (f, k)))
}

/// A store whose disk is full at write `k`, and a counter of its writes.
fn full(dir: &Dir, k: usize, full: Full) -> (Store, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let c = count.clone();
    let hook = move |path: &Path| {
        let n = c.fetch_add(1, Ordering::Relaxed);
        if n < k || (n > k && full != Full::FromThenOn) {
            return Ok(());
        }
        let is_journal = path.extension().is_some_and(|e| e == "jsonl");
        if full == Full::OnceInALine && is_journal && path.exists() {
            let mut file = std::fs::File::options().append(true).open(path).unwrap();
            file.write_all(b"{\"record\":\"done\",\"sett").unwrap();
        }
        Err(std::io::Error::from_raw_os_error(ENOSPC))
    };
    (dir.store().with_hook(Arc::new(hook)), count)
}

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()))
}

fn wanted() -> Vec<Setting> {
    vec![channels("eth0", 2), irq("eth0", 0, "2"), xps("eth0", 0, "2"), rfs(4096)]
}

fn go(sim: &Arc<Sim>, store: &Store, policy: &Policy) -> Result<Outcome, Error> {
    let request = request(&look(sim), &wanted());
    ringwise_apply::run(&host(sim), &request, store, policy, &mut |_| {})
}

fn back(sim: &Arc<Sim>, store: &Store) -> Result<Outcome, Error> {
    let request = Request {
        who: "root".into(),
        argv: vec!["ringwise".into(), "rollback".into(), "1".into()],
        ..Request::default()
    };
    ringwise_apply::rollback(&host(sim), store, 1, &request, &policy(), &mut |_| {})
}

fn recover_in(sim: &Arc<Sim>, store: &Store) -> Result<Outcome, Error> {
    ringwise_apply::recover(&host(sim), store, &policy(), &mut |_| {})
}

fn is(snapshot: &Snapshot, sim: &Arc<Sim>, what: &str) {
    assert_eq!(differing(snapshot, &look(sim)), Vec::<String>::new(), "{what}");
}

/// The error with its causes, as it is printed.
fn words(e: &Error) -> String {
    let cause = std::error::Error::source(e).map(|s| format!(": {s}"));
    format!("{e}{}", cause.unwrap_or_default())
}

/// Checks that the text names a file of the directory, and the error.
fn assert_names_file(text: &str, dir: &Dir, what: &str) {
    assert!(text.contains(WORDS), "{what}: {text}");
    let after = text.split(&dir.0.display().to_string()).nth(1);
    // Without the lock only the directory is known.
    let is_file = |t: &str| t.strip_prefix('/').is_some_and(|f| f.starts_with(|c: char| c.is_ascii_alphabetic()));
    assert!(after.is_some_and(|t| is_file(t) || t.starts_with(" cannot be written")), "{what}: {text}");
}

/// Number of calls if nothing goes wrong.
fn points(act: impl FnOnce(&Store)) -> usize {
    let dir = Dir::new();
    let (store, count) = full(&dir, usize::MAX, Full::Once);
    act(&store);
    count.load(Ordering::Relaxed)
}

/// A transaction that failed because the disk is full: all of it is restored, and reported as restored.
fn put_back(out: &Outcome, dir: &Dir, what: &str) {
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBack, 4), "{what}");
    let failed = out.failed.as_ref().unwrap();
    assert_eq!(failed.errno, Some(ENOSPC), "{what}: {failed:?}");
    assert_names_file(&format!("{} {}", failed.path.clone().unwrap_or_default(), failed.words), dir, what);
}

/// What the journals record afterwards: only the first `kept` were kept. If there is no end, recover writes one.
fn is_over(sim: &Arc<Sim>, dir: &Dir, before: &Snapshot, kept: usize, what: &str) {
    let now = look(sim);
    let list = history(&dir.store(), &now.host).unwrap();
    if list.last().is_some_and(|e| e.ending == Ending::Unfinished) {
        assert_eq!(recover(sim, dir).unwrap().verdict, RunResult::Recovered, "{what}");
    }
    is(before, sim, what);
    let list = history(&dir.store(), &now.host).unwrap();
    assert!(
        list.iter().skip(kept).all(|e| e.ending == Ending::PutBack),
        "{what}: {:?}",
        list.last().map(|e| &e.ending)
    );
    let temporary: Vec<_> = dir.files().into_iter().filter(|f| f.starts_with('.')).collect();
    assert!(temporary.is_empty(), "{what}: {temporary:?}");
}

#[test]
fn apply_with_and_without_a_trial() {
    for seconds in [None, Some(60)] {
        let policy = |h: &Here| Policy { trial: seconds.map(Duration::from_secs), ..h.policy() };
        let here = Here::default();
        let points = points(|store| assert_eq!(go(&sim(), store, &policy(&here)).unwrap().verdict, RunResult::Applied));
        assert!(points >= 20, "{points}");
        let mut seen = [0; 2];
        for (full_, k) in cases(points) {
            let what = format!("apply, trial {seconds:?}, call {k} of {points}, {full_:?}");
            let (sim, dir, here) = (sim(), Dir::new(), Here::default());
            let before = look(&sim);
            let (store, _) = full(&dir, k, full_);
            match go(&sim, &store, &policy(&here)) {
                Err(e) => {
                    seen[0] += 1;
                    assert_eq!((e.exit_status(), sim.writes()), (6, 0), "{what}");
                    assert_names_file(&words(&e), &dir, &what);
                }
                Ok(out) => {
                    seen[1] += 1;
                    put_back(&out, &dir, &what);
                }
            }
            assert!(here.state.lock().unwrap().lock.is_none(), "{what}: its guard is let go");
            is_over(&sim, &dir, &before, 0, &what);
            // Nothing blocks the next run.
            assert_eq!(apply(&sim, &dir, &wanted()).unwrap().verdict, RunResult::Applied, "{what}");
        }
        assert!(seen[0] >= 15 && seen[1] >= 15, "{seen:?}");
    }
}

/// A failure to record what was learned or seen is no reason to restore the settings.
#[test]
fn what_a_device_ignores_cannot_be_remembered() {
    let ignored = |sim: &Arc<Sim>, store: &Store| {
        sim.fault(SimulatedFault::Ignore { at: At::Matching("tx-0/xps".into()) });
        let request = request_if(&look(sim), &wanted(), IfRefused::Skip);
        ringwise_apply::run(&host(sim), &request, store, &policy(), &mut |_| {}).unwrap()
    };
    let dir = Dir::new();
    let store = dir.store().with_hook(Arc::new(|p: &Path| match p.ends_with("learned.json") {
        true => Err(std::io::Error::from_raw_os_error(ENOSPC)),
        false => Ok(()),
    }));
    let out = ignored(&sim(), &store);
    assert_eq!((out.verdict, out.ignored.len()), (RunResult::Applied, 1));
    assert_names_file(&out.notes.join(" "), &dir, "learned");
}

fn kept(sim: &Arc<Sim>, dir: &Dir) {
    assert_eq!(apply(sim, dir, &wanted()).unwrap().verdict, RunResult::Applied);
    sim.forget_writes();
}

#[test]
fn rollback() {
    let points = {
        let (sim, dir) = (sim(), Dir::new());
        kept(&sim, &dir);
        let (store, count) = full(&dir, usize::MAX, Full::Once);
        assert_eq!(back(&sim, &store).unwrap().verdict, RunResult::Applied);
        count.load(Ordering::Relaxed)
    };
    for (full_, k) in cases(points) {
        let what = format!("rollback, call {k} of {points}, {full_:?}");
        let (sim, dir) = (sim(), Dir::new());
        let first = look(&sim);
        kept(&sim, &dir);
        let applied = look(&sim);
        let (store, _) = full(&dir, k, full_);
        match back(&sim, &store) {
            Err(e) => {
                assert_eq!((e.exit_status(), sim.writes()), (6, 0), "{what}");
                assert_names_file(&words(&e), &dir, &what);
            }
            Ok(out) => put_back(&out, &dir, &what),
        }
        is_over(&sim, &dir, &applied, 1, &what);
        assert_eq!(back(&sim, &dir.store()).unwrap().verdict, RunResult::Applied, "{what}");
        is(&first, &sim, &what);
    }
}

/// Killed in the middle, without a guard.
fn half_done(sim: &Arc<Sim>, dir: &Dir) -> Snapshot {
    let before = look(sim);
    sim.fault(SimulatedFault::KillAfter { at: At::Write(2) });
    assert!(killed(|| _ = go(sim, &mortal(dir, sim), &policy())));
    sim.clear_faults();
    sim.forget_writes();
    before
}

/// On trial, but its guard is gone.
fn trial_alone(sim: &Arc<Sim>, dir: &Dir) -> Snapshot {
    let (before, here) = (look(sim), Here::default());
    let policy = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
    assert_eq!(go(sim, &dir.store(), &policy).unwrap().verdict, RunResult::Applied);
    sim.forget_writes();
    before
}

#[test]
fn recover_of_half_a_transaction_and_of_a_trial() {
    for begin in [half_done, trial_alone] {
        let points = {
            let (sim, dir) = (sim(), Dir::new());
            begin(&sim, &dir);
            let (store, count) = full(&dir, usize::MAX, Full::Once);
            assert_eq!(recover_in(&sim, &store).unwrap().verdict, RunResult::Recovered);
            count.load(Ordering::Relaxed)
        };
        let mut seen = [0; 2];
        for (full_, k) in cases(points) {
            let what = format!("recover, call {k} of {points}, {full_:?}");
            let (sim, dir) = (sim(), Dir::new());
            let before = begin(&sim, &dir);
            let left = look(&sim);
            let (store, _) = full(&dir, k, full_);
            match recover_in(&sim, &store) {
                Err(e) => {
                    seen[0] += 1;
                    assert_eq!(sim.writes(), 0, "{what}");
                    is(&left, &sim, &what);
                    assert_names_file(&words(&e), &dir, &what);
                }
                Ok(out) => {
                    seen[1] += 1;
                    assert_eq!(out.verdict, RunResult::Recovered, "{what}");
                    is(&before, &sim, &what);
                    // The rollback is complete but its end is not recorded, which is reported.
                    if history(&dir.store(), &before.host).unwrap()[0].ending != Ending::PutBack {
                        assert_names_file(&out.notes.join(" "), &dir, &what);
                    }
                }
            }
            let again = recover(&sim, &dir).unwrap();
            assert!(matches!(again.verdict, RunResult::Recovered | RunResult::NothingToDo), "{what}");
            is(&before, &sim, &what);
            is_over(&sim, &dir, &before, 0, &what);
        }
        // Only a failure to take the lock, or to decide a trial, is a reason to stop.
        assert!(seen[0] <= 3 * 2 && seen[1] > seen[0], "{seen:?}");
    }
}

#[test]
fn confirm_of_a_trial() {
    let here = Here::default();
    let policy = |h: &Here| Policy { trial: Some(Duration::from_secs(60)), ..h.policy() };
    let points = {
        let (sim, dir) = (sim(), Dir::new());
        go(&sim, &dir.store(), &policy(&here)).unwrap();
        let (store, count) = full(&dir, usize::MAX, Full::Once);
        confirm(&store, &look(&sim).host, "anna", sim.as_ref()).unwrap();
        count.load(Ordering::Relaxed)
    };
    assert!(points >= 5, "{points}");
    for (full_, k) in cases(points) {
        let what = format!("confirm, call {k} of {points}, {full_:?}");
        let (sim, dir, here) = (sim(), Dir::new(), Here::default());
        let before = look(&sim);
        go(&sim, &dir.store(), &policy(&here)).unwrap();
        let applied = look(&sim);
        let (store, _) = full(&dir, k, full_);
        match confirm(&store, &applied.host, "anna", sim.as_ref()) {
            // Still on trial: the guard ends it.
            Err(e) => {
                assert_names_file(&words(&e), &dir, &what);
                assert!(pending(&dir.store(), &applied.host).unwrap().is_some(), "{what}");
                assert_eq!(here.acts(&sim, &dir.store()).unwrap().unwrap().verdict, RunResult::PutBack, "{what}");
                is(&before, &sim, &what);
            }
            Ok(Confirmed::Kept { transaction: 1, noted: Err(why) }) => {
                assert_names_file(&why.to_string(), &dir, &what);
                assert_eq!(pending(&dir.store(), &applied.host).unwrap(), None, "{what}");
                assert_eq!(here.acts(&sim, &dir.store()).unwrap(), None, "{what}");
                is(&applied, &sim, &what);
                assert!(wanted().iter().all(|s| compare(s, &look(&sim)).holds()), "{what}");
                assert_eq!(history(&dir.store(), &applied.host).unwrap()[0].ending, Ending::Kept, "{what}");
            }
            Ok(said) => panic!("{what}: {said:?}"),
        }
    }
}

/// Set in a process whose files cannot grow beyond a limit.
const LIMITED: &str = "RINGWISE_TEST_LIMITED_FILES";

/// A file system that accepts part of a write, at every 512 bytes: runs the same test again in a process with a limit.
#[test]
fn short_writes_of_a_real_file_system() {
    if let Some(dir) = std::env::var_os(LIMITED) {
        return limited(Path::new(&dir));
    }
    let size = {
        let (sim, dir) = (sim(), Dir::new());
        kept(&sim, &dir);
        std::fs::metadata(dir.journal(1)).unwrap().len() as usize
    };
    let mut seen = [0; 3];
    for blocks in 1..size / 512 + 5 {
        let dir = Dir::new();
        let command = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut c = std::process::Command::new("/bin/sh");
        c.arg("-c").arg(command).arg("sh").arg(std::env::current_exe().unwrap());
        c.args(["--exact", "full_disk::short_writes_of_a_real_file_system", "--nocapture"]);
        let out = c.env(LIMITED, &dir.0).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{blocks}: {said}{}", String::from_utf8_lossy(&out.stderr));
        let kind =
            ["refused", "put back", "applied"].iter().position(|k| said.contains(&format!("came: {k}\n"))).unwrap();
        seen[kind] += 1;
        let list = history(&dir.store(), &look(&sim()).host).unwrap();
        assert_eq!(list.last().is_some_and(|e| e.ending == Ending::Kept), kind == 2, "{blocks}: {list:?}");
        // Other users see the true state, or nothing.
        if let Ok(text) = std::fs::read(dir.0.join("status.json")) {
            let status: serde_json::Value = serde_json::from_slice(&text).unwrap();
            let verdict = status["journals"].as_array().unwrap().last().map(|j| j["end"][0]["verdict"] == "applied");
            assert_eq!(
                (verdict.is_some(), verdict.unwrap_or(false)),
                (!list.is_empty(), kind == 2),
                "{blocks}: {status}"
            );
        }
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}

fn limited(dir: &Path) {
    let sim = sim();
    let before = look(&sim);
    match go(&sim, &Store::open(Some(dir)), &policy()) {
        Err(e) => {
            assert_eq!((e.exit_status(), sim.writes()), (6, 0));
            let text = words(&e);
            assert!(text.contains("File too large") && text.contains(&dir.display().to_string()), "{text}");
            println!("came: refused");
        }
        Ok(out) if out.verdict == RunResult::Applied => {
            assert!(wanted().iter().all(|s| compare(s, &look(&sim)).holds()));
            println!("came: applied");
        }
        Ok(out) => {
            assert_eq!((out.verdict, out.failed.as_ref().and_then(|f| f.errno)), (RunResult::PutBack, Some(EFBIG)));
            is(&before, &sim, "limited");
            println!("came: put back");
        }
    }
}
