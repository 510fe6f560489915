//! Restoring while a CPU is offline that the original values name: what the kernel accepts is restored, the rest waits.

use std::sync::Arc;
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{Ending, NotPutBack, Outcome, Policy, RunResult};
use ringwise_knob::{Address, Setting, live};
use ringwise_model::{CpuId, Snapshot};
use ringwise_testkit::sim::{At, Sim, SimulatedFault, build, killed};

const THREE: CpuId = CpuId(3);

/// CPU 3 serves one queue's interrupt and transmits on another queue, and is in two masks of RPS: alone, and with other CPUs.
fn sim() -> Arc<Sim> {
    let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()));
    let irqs: Vec<u32> = look(&sim).nic("eth0").unwrap().queue_vectors().map(|v| v.irq.0).collect();
    sim.outside(|h| {
        let write = |path: &str, text: &str| h.write(path, text.as_bytes()).unwrap();
        for (q, irq) in irqs.iter().enumerate() {
            write(&format!("/proc/irq/{irq}/smp_affinity_list"), if q == 0 { "3" } else { "1-3" });
        }
        write("/sys/class/net/eth0/queues/tx-1/xps_cpus", "8");
        write("/sys/class/net/eth0/queues/rx-1/rps_cpus", "c");
        write("/sys/class/net/eth0/queues/rx-2/rps_cpus", "8");
    });
    sim.traffic("eth0");
    sim
}

fn wanted() -> Vec<Setting> {
    let mut all = vec![rfs(4096)];
    for q in 0..4 {
        all.extend([irq("eth0", q, "0"), irq_tx("eth0", q, "0"), xps("eth0", q, "0"), rps("eth0", q, "0")]);
    }
    all
}

/// Settings that wait for CPU 3, in writing order.
fn waits() -> Vec<Address> {
    let all = [irq("eth0", 0, "3"), xps("eth0", 1, "3"), rps("eth0", 1, "2-3"), rps("eth0", 2, "3")];
    all.map(|s| s.address().unwrap()).to_vec()
}

fn of(list: &[NotPutBack]) -> Vec<Address> {
    assert!(list.iter().all(|w| w.offline == cpus("3") && w.why == "CPU 3 is offline"), "{list:?}");
    list.iter().map(|w| w.address.clone()).collect()
}

/// Everything is as before except the waiting settings, of which the kernel has accepted a part.
fn is_before_but(before: &Snapshot, sim: &Arc<Sim>) {
    let now = look(sim);
    let mut left = differing(before, &now);
    left.retain(|d| !waits().iter().any(|a| d.starts_with(&format!("{a} "))));
    assert!(left.is_empty(), "{left:?}");
    let value = |s: &Setting| live(&now, &s.address().unwrap()).known().cloned();
    assert_eq!(value(&rps("eth0", 1, "")), Some(rps("eth0", 1, "2")));
    assert_eq!(value(&rps("eth0", 2, "")), Some(rps("eth0", 2, "")));
    assert_eq!(value(&xps("eth0", 1, "")), Some(xps("eth0", 1, "")));
}

fn is_before(before: &Snapshot, sim: &Arc<Sim>) {
    let left = differing(before, &look(sim));
    assert!(left.is_empty(), "{left:?}");
}

fn rolled_back(out: &Outcome) {
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Applied, 3), "{:?}", out.failed);
    assert_eq!(of(&out.waiting), waits());
    assert!(!out.notes.iter().any(|n| n.contains("changed outside ringwise")), "the kernel moved it: {:?}", out.notes);
}

#[test]
fn a_rollback_restores_the_rest_and_recover_finishes_it() {
    for id in [0, 1] {
        let (sim, dir) = (sim(), Dir::new());
        let before = look(&sim);
        assert_eq!(apply(&sim, &dir, &wanted()).unwrap().exit_status(), 0);
        sim.traffic("eth0");
        sim.cpu_offline(THREE);
        rolled_back(&rollback(&sim, &dir, id, &policy()).unwrap());
        is_before_but(&before, &sim);
        // As long as the CPU is offline, there is nothing more to do, and nothing is written.
        let writes = sim.writes();
        let out = recover(&sim, &dir).unwrap();
        assert_eq!((out.verdict, out.exit_status(), of(&out.waiting)), (RunResult::NothingToDo, 3, waits()));
        assert_eq!(sim.writes(), writes);
        sim.cpu_online(THREE);
        let out = recover(&sim, &dir).unwrap();
        assert_eq!((out.verdict, out.exit_status(), out.applied.len()), (RunResult::Applied, 0, 4), "{out:?}");
        is_before(&before, &sim);
        assert_eq!(recover(&sim, &dir).unwrap().notes.len(), 1, "nothing is left");
        assert!(ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap().settings.is_empty());
    }
}

#[test]
fn a_second_rollback_finishes_it_too() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    apply(&sim, &dir, &wanted()).unwrap();
    sim.cpu_offline(THREE);
    rolled_back(&rollback(&sim, &dir, 0, &policy()).unwrap());
    let again = rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!((again.verdict, again.exit_status(), of(&again.waiting)), (RunResult::NothingToDo, 3, waits()));
    sim.cpu_online(THREE);
    let out = rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Applied, 0));
    is_before(&before, &sim);
}

#[test]
fn manually_restored_settings_wait_no_more() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &wanted()).unwrap();
    sim.cpu_offline(THREE);
    rollback(&sim, &dir, 0, &policy()).unwrap();
    sim.cpu_online(THREE);
    let irq =
        ringwise_knob::irq::vector(look(&sim).nic("eth0").unwrap(), ringwise_knob::VectorName::Rx(0)).unwrap().irq;
    sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), b"3")).unwrap();
    let out = recover(&sim, &dir).unwrap();
    assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, 3), "{out:?}");
}

#[test]
fn recover_restores_the_rest_and_finishes_it_later() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let request = request(&before, &wanted());
    sim.forget_writes();
    sim.fault(SimulatedFault::KillAfter { at: At::Matching("rps_sock_flow_entries".into()) });
    assert!(killed(|| _ = ringwise_apply::run(&host(&sim), &request, &mortal(&dir, &sim), &policy(), &mut |_| {})));
    sim.clear_faults();
    sim.cpu_offline(THREE);
    for _ in 0..2 {
        let out = recover(&sim, &dir).unwrap();
        assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBackIncomplete, 5));
        assert_eq!(of(&out.put_back_incomplete), waits());
        is_before_but(&before, &sim);
    }
    sim.cpu_online(THREE);
    let out = recover(&sim, &dir).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Recovered, 0));
    is_before(&before, &sim);
}

#[test]
fn the_guard_restores_the_rest() {
    let (sim, dir, here) = (sim(), Dir::new(), Here::default());
    let before = look(&sim);
    let policy = Policy { trial: Some(Duration::from_secs(60)), ..here.policy() };
    let request = request(&before, &wanted());
    ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy, &mut |_| {}).unwrap();
    sim.cpu_offline(THREE);
    let out = here.acts(&sim, &dir.store()).unwrap().unwrap();
    assert_eq!((out.verdict, of(&out.put_back_incomplete)), (RunResult::PutBackIncomplete, waits()));
    is_before_but(&before, &sim);
    let ending = ringwise_apply::history(&dir.store(), &before.host).unwrap()[0].ending.clone();
    assert_eq!(ending, Ending::PutBackIncomplete);
    sim.cpu_online(THREE);
    assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::Recovered);
    is_before(&before, &sim);
}

#[test]
fn a_mask_that_lost_a_cpu_is_not_as_applied() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &[rps("eth0", 0, "0-1")]).unwrap();
    let verify = || ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap().exit_status();
    assert_eq!(verify(), 0);
    sim.outside(|h| h.write("/sys/class/net/eth0/queues/rx-0/rps_cpus", b"1")).unwrap();
    assert_eq!(verify(), 3);
}
