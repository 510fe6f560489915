//! Features, pause frames and settings of the host, through a transaction and back.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Refusal, RunResult};
use ringwise_knob::{IfRefused, Setting};
use ringwise_model::CpuId;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build};

fn feature(dev: &str, name: &str, on: bool) -> Setting {
    Setting::Feature { dev: dev.into(), name: name.into(), on }
}

fn sysctl(name: &str, value: &str) -> Setting {
    Setting::Sysctl { name: format!("net.core.{name}"), value: value.into() }
}

fn latency(cpu: u32, value: &str) -> Setting {
    Setting::CpuLatency { cpu: CpuId(cpu), value: value.into() }
}

fn pause(dev: &str, autoneg: Option<bool>, rx: Option<bool>, tx: Option<bool>) -> Setting {
    Setting::Pause { dev: dev.into(), autoneg, rx, tx }
}

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).virtio("eth1", 1, 4).mqnic("eth2", 0, 4).done()))
}

fn on(sim: &Arc<Sim>, dev: &str, name: &str) -> (bool, bool) {
    let f = look(sim).nic(dev).unwrap().features.known().unwrap()[name];
    (f.on, f.wanted)
}

#[test]
fn written_read_back_and_rolled_back() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let wanted = [
        feature("eth0", "rx-udp-gro-forwarding", true),
        feature("eth0", "rx-vlan-hw-parse", false),
        feature("eth1", "rx-gro", false),
        pause("eth2", None, Some(true), None),
        sysctl("netdev_budget", "600"),
        sysctl("netdev_budget_usecs", "16000"),
        sysctl("flow_limit_cpu_bitmap", "f"),
        sysctl("rps_default_mask", "3"),
        latency(2, "20"),
        latency(3, "n/a"),
    ];
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, wanted.len()), "{out:?}");
    let now = look(&sim);
    assert!(wanted.iter().all(|w| ringwise_knob::compare(w, &now).holds()));
    assert_eq!(now.nic("eth2").unwrap().pause.known().unwrap().tx, Some(false));
    assert_eq!(now.host.rps_default_mask.known().unwrap().to_string(), "0-1");
    // A second time there is nothing to do.
    assert_eq!(apply(&sim, &dir, &wanted).unwrap().verdict, RunResult::NothingToDo);
    let back = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert!(back.put_back_incomplete.is_empty(), "{back:?}");
    let after = look(&sim);
    assert!(differing(&before, &after).is_empty());
    assert_eq!((&after.host.sysctls, &after.host.cpu_latency), (&before.host.sysctls, &before.host.cpu_latency));
}

#[test]
fn what_depends_on_it_goes_and_comes_with_it() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let out = apply(&sim, &dir, &[feature("eth0", "tx-checksum-ip-generic", false)]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{out:?}");
    assert!(
        out.notes.iter().any(|n| n.contains("also turned off tx-tcp-segmentation tx-tcp6-segmentation")),
        "{:?}",
        out.notes
    );
    assert!(out.side_effects.is_empty(), "{:?}", out.side_effects);
    // Still requested: the recorded request did not change.
    assert_eq!(on(&sim, "eth0", "tx-tcp-segmentation"), (false, true));
    let back = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert!(back.put_back_incomplete.is_empty(), "{back:?}");
    assert!(differing(&before, &look(&sim)).is_empty());
    assert_eq!(on(&sim, "eth0", "tx-tcp-segmentation"), (true, true));
}

#[test]
fn a_wish_that_is_not_granted_does_not_stay_behind() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &[feature("eth0", "tx-tcp6-segmentation", false)]).unwrap();
    apply(&sim, &dir, &[feature("eth0", "tx-checksum-ip-generic", false)]).unwrap();
    let now = look(&sim);
    let wish = [feature("eth0", "tx-tcp6-segmentation", true)];
    let out = run(&sim, &dir, &request_if(&now, &wish, IfRefused::Skip)).unwrap();
    assert_eq!((out.verdict, out.ignored.len()), (RunResult::Applied, 1), "{out:?}");
    assert_eq!(on(&sim, "eth0", "tx-tcp6-segmentation"), (false, false));
    // If the step must hold, the settings are restored, and the failure suggests a reason.
    let out = apply(&sim, &dir, &wish).unwrap();
    assert_eq!(out.verdict, RunResult::PutBack);
    let failed = out.failed.unwrap();
    assert!(failed.words.contains("reads back as off") && failed.meaning.contains("depends on"), "{failed:?}");
    assert_eq!(on(&sim, "eth0", "tx-tcp6-segmentation"), (false, false));
}

#[test]
fn fixed_and_unknown_features() {
    let (sim, dir) = (sim(), Dir::new());
    let now = look(&sim);
    let out = run(&sim, &dir, &request_if(&now, &[feature("eth0", "rx-lro", true)], IfRefused::Skip)).unwrap();
    assert_eq!(out.ignored.len(), 1, "{out:?}");
    let wish = [feature("eth0", "rx-nonsense", true)];
    let no = run(&sim, &dir, &request_if(&now, &wish, IfRefused::Skip)).unwrap_err();
    assert!(matches!(no.refusal(), Some(Refusal::NotThere { .. })), "{no}");
}

#[test]
fn pause_with_autonegotiation_is_the_partners() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &[pause("eth0", Some(true), None, None)]).unwrap();
    let out = apply(&sim, &dir, &[pause("eth0", None, Some(true), None)]).unwrap();
    assert_eq!(out.verdict, RunResult::PutBack, "{out:?}");
    let now = look(&sim).nic("eth0").unwrap().pause.known().copied().unwrap();
    assert_eq!((now.autoneg, now.rx), (Some(true), Some(false)));
    // A driver without pause frames.
    let now = look(&sim);
    let wish = [pause("eth1", None, Some(true), None)];
    let no = run(&sim, &dir, &request_if(&now, &wish, IfRefused::Skip)).unwrap_err();
    assert!(matches!(no.refusal(), Some(Refusal::NotThere { .. })), "{no}");
}

#[test]
fn values_that_the_kernel_refuses_put_everything_back() {
    for (bad, errno) in [
        (sysctl("netdev_budget_usecs", "4000"), 22),
        (sysctl("flow_limit_table_len", "1000"), 22),
        (sysctl("rps_default_mask", "100"), 75),
        (latency(7, "-1"), 22),
    ] {
        let (sim, dir) = (sim(), Dir::new());
        let before = look(&sim);
        let wanted = [feature("eth0", "rx-gro", false), sysctl("busy_poll", "50"), latency(1, "5"), bad.clone()];
        let out = apply(&sim, &dir, &wanted).unwrap();
        assert_eq!(out.verdict, RunResult::PutBack, "{bad:?}");
        assert_eq!(out.failed.unwrap().errno, Some(errno), "{bad:?}");
        let after = look(&sim);
        assert!(differing(&before, &after).is_empty());
        assert_eq!((&after.host.sysctls, &after.host.cpu_latency), (&before.host.sysctls, &before.host.cpu_latency));
    }
}

#[test]
fn a_failure_at_any_write_puts_everything_back() {
    let wanted = [
        feature("eth0", "tx-checksum-ip-generic", false),
        feature("eth1", "rx-gro-hw", false),
        pause("eth2", None, Some(true), Some(true)),
        sysctl("netdev_max_backlog", "5000"),
        latency(0, "10"),
    ];
    let count = {
        let (sim, dir) = (sim(), Dir::new());
        sim.forget_writes();
        apply(&sim, &dir, &wanted).unwrap();
        sim.writes()
    };
    assert!(count >= wanted.len());
    for k in 0..count {
        let (sim, dir) = (sim(), Dir::new());
        let before = look(&sim);
        sim.forget_writes();
        sim.fault(SimulatedFault::Fail { at: At::Write(k), errno: 5, times: Times::Once });
        let out = apply(&sim, &dir, &wanted).unwrap();
        assert_eq!(out.verdict, RunResult::PutBack, "write {k}: {out:?}");
        let after = look(&sim);
        assert!(differing(&before, &after).is_empty(), "write {k}");
        assert_eq!(
            after.nics.iter().map(|n| &n.features).collect::<Vec<_>>(),
            before.nics.iter().map(|n| &n.features).collect::<Vec<_>>()
        );
    }
}
