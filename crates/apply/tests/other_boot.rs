//! Journals of another boot or of another machine, in every state in which they can be left: nothing of them is written, and each
//! command reports what they are.

use std::sync::Arc;
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{Confirmed, Ending, Error, Outcome, Policy, RunResult, TrialResult, confirm, history, pending};
use ringwise_knob::{Setting, compare};
use ringwise_model::Snapshot;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build, killed};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()))
}

fn wanted() -> Vec<Setting> {
    vec![channels("eth0", 2), irq("eth0", 0, "2"), xps("eth0", 0, "2"), rfs(4096)]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Unfinished,
    /// No guard waits for it any more.
    OnTrial,
    Kept,
    PutBackIncomplete,
}

const ALL: [Left; 4] = [Left::Unfinished, Left::OnTrial, Left::Kept, Left::PutBackIncomplete];

/// A state directory as the earlier boot left it.
fn left(how: Left) -> Dir {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let go = |policy: &Policy| {
        let request = request(&look(&sim), &wanted());
        ringwise_apply::run(&host(&sim), &request, &mortal(&dir, &sim), policy, &mut |_| {}).unwrap().verdict
    };
    match how {
        Left::Unfinished => {
            sim.fault(SimulatedFault::KillAfter { at: At::Write(2) });
            assert!(killed(|| _ = go(&policy())));
        }
        Left::OnTrial => {
            let trial = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
            assert_eq!(go(&trial), RunResult::Applied);
        }
        Left::Kept => assert_eq!(go(&policy()), RunResult::Applied),
        Left::PutBackIncomplete => {
            sim.fault(SimulatedFault::Fail { at: At::Write(3), errno: 5, times: Times::Always });
            assert_eq!(go(&policy()), RunResult::PutBackIncomplete);
        }
    }
    dir
}

/// The present host: another program has set something meanwhile, including settings that the journal contains.
fn now(other: &str) -> (Arc<Sim>, Snapshot) {
    let sim = sim();
    match other {
        "boot" => sim.boot_id("99999999-2222-3333-4444-555555555555"),
        _ => sim.machine_id("ffffffffffffffffffffffffffffffff"),
    }
    sim.outside(|h| {
        h.write("/proc/sys/net/core/rps_sock_flow_entries", b"512").unwrap();
        h.write("/sys/class/net/eth0/queues/tx-0/xps_cpus", b"8").unwrap();
    });
    let as_is = look(&sim);
    (sim, as_is)
}

fn each(check: impl Fn(&str, Left, &str, &Arc<Sim>, &Dir, &Snapshot)) {
    for how in ALL {
        for other in ["boot", "machine"] {
            let dir = left(how);
            let (sim, as_is) = now(other);
            check(&format!("{how:?} of another {other}"), how, other, &sim, &dir, &as_is);
        }
    }
}

fn untouched(sim: &Arc<Sim>, as_is: &Snapshot, what: &str) {
    assert_eq!((sim.writes(), differing(as_is, &look(sim))), (0, Vec::new()), "{what}");
}

/// Why the journal does not describe this host.
fn why(other: &str) -> &'static str {
    if other == "boot" {
        "it was made before a reboot, which reset its settings"
    } else {
        "it was made on another machine"
    }
}

fn is_open(how: Left) -> bool {
    matches!(how, Left::Unfinished | Left::OnTrial)
}

fn outcome_text(out: &Result<Outcome, Error>) -> String {
    match out {
        Ok(o) => o.notes.join("\n"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn status_finds_nothing_in_effect_and_history_names_the_origin() {
    each(|what, how, other, sim, dir, as_is| {
        let v = ringwise_apply::verify(&host(sim), &dir.store(), &policy()).unwrap();
        assert_eq!((v.exit_status(), v.settings.len(), v.unfinished, &v.trial), (0, 0, None, &None), "{what}");
        assert!(v.newer.is_empty(), "{what}");
        let list = history(&dir.store(), &as_is.host).unwrap();
        assert_eq!(
            (list.len(), list[0].this_boot, list[0].elsewhere.as_deref()),
            (1, false, Some(why(other))),
            "{what}"
        );
        match how {
            Left::Unfinished => assert_eq!(list[0].ending, Ending::Closed { why: why(other).into() }, "{what}"),
            Left::OnTrial => assert_eq!(list[0].trial.as_ref().unwrap().fate, TrialResult::Pending, "{what}"),
            Left::Kept => assert_eq!(list[0].ending, Ending::Kept, "{what}"),
            Left::PutBackIncomplete => assert_eq!(list[0].ending, Ending::PutBackIncomplete, "{what}"),
        }
        assert_eq!(pending(&dir.store(), &as_is.host).unwrap(), None, "{what}");
        untouched(sim, as_is, what);
    });
}

#[test]
fn recover_puts_nothing_back_and_reports_why() {
    each(|what, how, other, sim, dir, as_is| {
        let out = recover(sim, dir);
        assert_eq!(out.as_ref().unwrap().verdict, RunResult::NothingToDo, "{what}");
        untouched(sim, as_is, what);
        // A transaction that is over is not mentioned.
        assert_eq!(outcome_text(&out).contains(why(other)), is_open(how), "{what}: {}", outcome_text(&out));
    });
}

#[test]
fn rollback_is_refused_by_number_and_has_nothing_to_go_back_to() {
    each(|what, how, other, sim, dir, as_is| {
        let out = rollback(sim, dir, 1, &Policy { take_over: true, ..policy() });
        assert_eq!(out.as_ref().unwrap_err().exit_status(), 6, "{what}");
        assert!(outcome_text(&out).contains(why(other)), "{what}: {}", outcome_text(&out));
        untouched(sim, as_is, what);
        let _ = how;
        // As first found in this boot, in which nothing was changed.
        let out = rollback(sim, dir, 0, &Policy { take_over: true, ..policy() });
        assert_eq!(out.as_ref().unwrap().verdict, RunResult::NothingToDo, "{what}");
        untouched(sim, as_is, what);
    });
}

#[test]
fn apply_closes_it_and_counts_from_the_host_as_it_is() {
    each(|what, how, other, sim, dir, as_is| {
        let out = apply(sim, dir, &wanted());
        let o = out.as_ref().unwrap();
        assert_eq!((o.verdict, o.transaction), (RunResult::Applied, Some(2)), "{what}");
        assert_eq!(outcome_text(&out).contains(why(other)), is_open(how), "{what}: {}", outcome_text(&out));
        assert!(wanted().iter().all(|s| compare(s, &look(sim)).holds()), "{what}");
        let trials: Vec<String> =
            dir.files().into_iter().filter(|f| f.contains("-0001.json") && !f.ends_with('l')).collect();
        assert!(trials.is_empty(), "{what}: {trials:?}");
        // Rollbacks in both ways restore what others have set in this boot, not the values of the earlier boot.
        assert_eq!(rollback(sim, dir, 2, &policy()).unwrap().verdict, RunResult::Applied, "{what}");
        assert_eq!(differing(as_is, &look(sim)), Vec::<String>::new(), "{what}");
        assert_eq!(apply(sim, dir, &wanted()).unwrap().verdict, RunResult::Applied, "{what}");
        assert_eq!(rollback(sim, dir, 0, &policy()).unwrap().verdict, RunResult::Applied, "{what}");
        assert_eq!(differing(as_is, &look(sim)), Vec::<String>::new(), "{what}");
    });
}

#[test]
fn confirm_has_nothing_to_keep() {
    each(|what, _, _, sim, dir, as_is| {
        assert_eq!(confirm(&dir.store(), &as_is.host, "anna", sim.as_ref()).unwrap(), Confirmed::Nothing, "{what}");
        untouched(sim, as_is, what);
    });
}

/// Run by systemd, or by a user who found its command line in a log.
#[test]
fn a_guard_that_is_started_again_leaves_it_alone() {
    each(|what, _, _, sim, dir, as_is| {
        assert_eq!(Here::started_again(sim, dir).unwrap(), None, "{what}");
        untouched(sim, as_is, what);
    });
}

/// It is unknown whether the journal is of this boot: it counts as such, and that is reported.
#[test]
fn without_a_boot_id_it_counts_as_of_this_boot() {
    let dir = left(Left::Unfinished);
    let (sim, _) = now("boot");
    sim.boot_id_unreadable();
    let v = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    assert_eq!((v.exit_status(), v.unfinished), (3, Some(1)));
    let e = apply(&sim, &dir, &wanted()).unwrap_err();
    assert_eq!(e.exit_status(), 6, "{e}");
    let out = recover(&sim, &dir);
    assert_eq!(out.as_ref().unwrap().verdict, RunResult::Recovered);
    assert!(outcome_text(&out).contains("the boot ID cannot be read"), "{}", outcome_text(&out));
    // Nothing is lost: the values as first found are still there, and the next transaction does not replace them.
    let dir = left(Left::Kept);
    let (first, sim) = (look(&self::sim()), self::sim());
    sim.boot_id_unreadable();
    assert_eq!(apply(&sim, &dir, &[rfs(1024)]).unwrap().verdict, RunResult::Applied);
    assert_eq!(rollback(&sim, &dir, 0, &policy()).unwrap().verdict, RunResult::Applied);
    assert_eq!(differing(&first, &look(&sim)), Vec::<String>::new());
}
