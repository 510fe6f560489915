//! Members of a bond, and the user's connection to the host.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Event, Policy, Refusal, Request, RunResult};
use ringwise_knob::Setting;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build};

fn bonded(mode: &str) -> Arc<Sim> {
    let host = build::host(8, 1).igb("eth1", 0, 8).igb("eth2", 0, 8).bond("bond0", mode, &["eth1", "eth2"]);
    Arc::new(Sim::new(&host.done()))
}

fn rings(dev: &str, n: u32) -> Setting {
    Setting::Rings { dev: dev.into(), values: ringwise_model::RingValues::sizes(Some(n), Some(n)) }
}

fn both() -> Vec<Setting> {
    vec![channels("eth1", 4), channels("eth2", 4), rings("eth1", 512), rings("eth2", 512)]
}

/// Runs the request, and returns its events in short form.
fn watched(
    sim: &Arc<Sim>,
    dir: &Dir,
    r: &Request,
    p: &Policy,
) -> (Result<ringwise_apply::Outcome, String>, Vec<String>) {
    let mut seen = Vec::new();
    let out = ringwise_apply::run(&host(sim), r, &dir.store(), p, &mut |e| match e {
        Event::Done { setting, .. } => seen.push(setting.address().unwrap().to_string()),
        Event::BondBack { dev, bond, .. } => seen.push(format!("{bond} uses {dev}")),
        _ => {}
    });
    (out.map_err(|e| e.to_string()), seen)
}

#[test]
fn one_member_after_the_other_with_all_that_interrupts_it() {
    for mode in ["802.3ad", "active-backup"] {
        let (sim, dir) = (bonded(mode), Dir::new());
        let (out, seen) = watched(&sim, &dir, &request(&look(&sim), &both()), &policy());
        let out = out.unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{out:?}");
        let mut want = vec!["eth1 channels", "eth1 rings", "eth2 channels", "eth2 rings"];
        if mode == "802.3ad" {
            // LACP needs a while after each link change; the last time the verification waits for it.
            want = vec![
                "eth1 channels",
                "bond0 uses eth1",
                "eth1 rings",
                "bond0 uses eth1",
                "eth2 channels",
                "bond0 uses eth2",
                "eth2 rings",
                "bond0 uses eth2",
            ];
        }
        assert_eq!(seen[..want.len()], want, "{mode}");
    }
}

#[test]
fn a_member_that_does_not_come_back_to_the_bond_is_put_back_before_the_next_is_touched() {
    let (sim, dir) = (bonded("802.3ad"), Dir::new());
    let before = look(&sim);
    let request = request(&before, &both());
    let s = sim.clone();
    let mut seen = Vec::new();
    let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy(), &mut |e| {
        if let Event::Writing { setting, .. } = e {
            seen.push(setting.address().unwrap().to_string());
            s.bond_leaves_out("eth1", seen.len() == 1);
        }
    });
    let out = out.unwrap();
    assert_eq!(out.verdict, RunResult::PutBack, "{out:?}");
    let failed = out.failed.unwrap();
    assert!(failed.words.contains("bond0 did not use eth1 again within 45 s"), "{failed:?}");
    assert!(!seen.iter().any(|s| s.starts_with("eth2")), "{seen:?}");
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
}

#[test]
fn the_last_member_is_refused_before_anything_is_touched() {
    for mode in ["802.3ad", "active-backup"] {
        let (sim, dir) = (bonded(mode), Dir::new());
        sim.cable("eth2", false);
        let e = apply(&sim, &dir, &[channels("eth1", 4), xps("eth1", 0, "1")]).unwrap_err();
        assert_eq!((e.exit_status(), sim.writes()), (6, 0));
        assert!(matches!(e.refusal(), Some(Refusal::LastMember { .. })), "{e}");
        assert!(e.to_string().contains("eth1 is the last member of bond0 that carries traffic (eth2 does not)"), "{e}");
        // Settings that interrupt nothing are allowed, and so is interrupting the member without a link.
        assert_eq!(apply(&sim, &dir, &[xps("eth1", 0, "1")]).unwrap().verdict, RunResult::Applied);
        assert_eq!(apply(&sim, &dir, &[channels("eth2", 4)]).unwrap().verdict, RunResult::Applied);
    }
}

#[test]
fn the_last_member_is_left_in_peace_when_the_other_fails_on_the_way() {
    let (sim, dir) = (bonded("802.3ad"), Dir::new());
    let before = look(&sim);
    // The cable of the first member is pulled after its own change is complete, just before the change of the second.
    let request = request(&before, &[channels("eth1", 4), channels("eth2", 4)]);
    let s = sim.clone();
    let mut seen = Vec::new();
    let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy(), &mut |e| match e {
        Event::BondBack { dev, .. } if dev == "eth1" => s.cable("eth1", false),
        Event::Done { setting, .. } => seen.push(setting.address().unwrap().to_string()),
        _ => {}
    });
    let out = out.unwrap();
    let failed = out.failed.clone().unwrap();
    assert!(
        failed.words.contains("eth2 is the last member of bond0 that carries traffic (eth1 does not)"),
        "{failed:?}"
    );
    assert!(!seen.iter().any(|s| s == "eth2 channels"), "{seen:?}");
    // Channels can be restored without a cable.
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBack, 4), "{out:?}");
    sim.cable("eth1", true);
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
}

#[test]
fn the_way_back_goes_one_by_one_too() {
    let (sim, dir) = (bonded("802.3ad"), Dir::new());
    let before = look(&sim);
    let mut wanted = both();
    wanted.push(rps("eth2", 0, "1"));
    sim.fault(SimulatedFault::Fail { at: At::Matching("rps_cpus".into()), errno: 22, times: Times::Always });
    let (mut order, mut waits) = (Vec::new(), 0);
    let out = ringwise_apply::run(&host(&sim), &request(&before, &wanted), &dir.store(), &policy(), &mut |e| match e {
        Event::Done { phase: ringwise_apply::Phase::PutBack, setting, .. } => {
            let a = setting.address().unwrap();
            if a.interrupts_traffic() {
                order.push(a.to_string());
            }
        }
        Event::BondBack { .. } => waits += 1,
        _ => {}
    });
    assert_eq!(out.unwrap().verdict, RunResult::PutBack);
    assert_eq!(order, ["eth1 channels", "eth1 rings", "eth2 channels", "eth2 rings"]);
    assert!(waits >= 7, "{waits} waits for the bond");
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
}

fn forced() -> Policy {
    Policy { force: true, trial: Some(std::time::Duration::from_secs(60)), ..policy() }
}

#[test]
fn the_way_in_is_cut_only_by_force_and_on_trial() {
    let sim = bonded("802.3ad");
    sim.ssh_from("192.0.2.10", "bond0");
    let r = request(&look(&sim), &[channels("eth2", 4)]);
    for p in [policy(), Policy { force: true, ..policy() }, Policy { force: false, ..forced() }] {
        let dir = Dir::new();
        let e = ringwise_apply::run(&host(&sim), &r, &dir.store(), &p, &mut |_| {}).unwrap_err();
        assert_eq!((e.exit_status(), sim.writes()), (6, 0));
        let text = e.to_string();
        assert!(text.contains("your ssh session (192.0.2.10 over bond0 -> eth1 eth2)"), "{text}");
        assert!(text.contains("--force") && text.contains("--confirm"), "{text}");
    }
    let dir = Dir::new();
    let (out, _) = watched(&sim, &dir, &r, &forced());
    let out = out.unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert!(out.notes.iter().any(|n| n.starts_with("forced: this interrupts your ssh session")), "{:?}", out.notes);
}

#[test]
fn what_interrupts_nothing_or_runs_elsewhere_needs_no_force() {
    let host = build::host(8, 1).igb("eth0", 0, 8).igb("eth1", 0, 8);
    let (sim, dir) = (Arc::new(Sim::new(&host.done())), Dir::new());
    sim.ssh_from("192.0.2.10", "eth0");
    assert_eq!(apply(&sim, &dir, &[xps("eth0", 0, "1"), channels("eth1", 4)]).unwrap().verdict, RunResult::Applied);
    assert_eq!(apply(&sim, &dir, &[channels("eth0", 4)]).unwrap_err().exit_status(), 6);
    // A rollback interrupts traffic as well, and has the same requirements.
    let e = rollback(&sim, &dir, 1, &policy()).map(|o| o.verdict);
    assert_eq!(e.unwrap(), RunResult::Applied, "it restarts eth1 only");
}

#[test]
fn not_knowing_counts_as_the_way_in() {
    let (sim, dir) = (bonded("active-backup"), Dir::new());
    sim.sessions_unreadable(true);
    let e = apply(&sim, &dir, &[channels("eth1", 4)]).unwrap_err();
    assert_eq!((e.exit_status(), sim.writes()), (6, 0));
    assert!(e.to_string().contains("possibly ssh sessions (needs root"), "{e}");
    // The path cannot be determined: the peer is known, its route is not.
    sim.sessions_unreadable(false);
    sim.ssh_from("192.0.2.10", "nowhere0");
    let e = apply(&sim, &dir, &[channels("eth1", 4)]).unwrap_err();
    assert!(e.to_string().contains("your ssh session (192.0.2.10 over unknown"), "{e}");
    let r = request(&look(&sim), &[channels("eth1", 4)]);
    assert_eq!(watched(&sim, &dir, &r, &forced()).0.unwrap().verdict, RunResult::Applied);
}
