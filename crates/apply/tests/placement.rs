//! Restoring also restores the CPU that served an interrupt, not only its mask: widening a mask moves nothing.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::RunResult;
use ringwise_knob::Setting;
use ringwise_model::{CpuId, Snapshot};
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build};

/// Interrupts that may run on any CPU, and are served by CPUs 0 to 3.
fn sim() -> Arc<Sim> {
    let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 4).done()));
    let irqs: Vec<u32> = look(&sim).nic("eth0").unwrap().queue_vectors().map(|v| v.irq.0).collect();
    for list in ["one", "0-7"] {
        for (n, irq) in irqs.iter().enumerate() {
            let list = if list == "one" { (n % 4).to_string() } else { list.to_string() };
            sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), list.as_bytes()).unwrap());
        }
        sim.traffic("eth0");
    }
    sim
}

fn wanted() -> Vec<Setting> {
    (0..4).flat_map(|q| [irq("eth0", q, &(q + 4).to_string()), irq_tx("eth0", q, &(q + 4).to_string())]).collect()
}

fn served_by(now: &Snapshot) -> Vec<CpuId> {
    now.nic("eth0").unwrap().queue_vectors().map(|v| v.effective.known().unwrap().first().unwrap()).collect()
}

#[test]
fn an_interrupt_goes_back_to_its_cpu_and_keeps_its_mask() {
    for back in ["rollback 1", "rollback 0", "put back", "recover"] {
        let (sim, dir) = (sim(), Dir::new());
        let before = look(&sim);
        let were = served_by(&before);
        sim.in_use("eth0");
        if matches!(back, "put back" | "recover") {
            let k = wanted().len() - 1;
            let at = At::Write(k);
            let fault = if back == "recover" {
                SimulatedFault::KillBefore { at }
            } else {
                SimulatedFault::Fail { at, errno: 5, times: Times::Once }
            };
            sim.fault(fault);
            let request = request(&before, &wanted());
            let store = mortal(&dir, &sim);
            let mut verdict = None;
            let go = || verdict = Some(ringwise_apply::run(&host(&sim), &request, &store, &policy(), &mut |_| {}));
            let killed = ringwise_testkit::sim::killed(go);
            sim.clear_faults();
            if killed {
                sim.traffic("eth0");
                assert_ne!(served_by(&look(&sim)), were);
                assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::Recovered);
            } else {
                assert_eq!(verdict.unwrap().unwrap().verdict, RunResult::PutBack);
            }
        } else {
            assert_eq!(apply(&sim, &dir, &wanted()).unwrap().verdict, RunResult::Applied);
            sim.traffic("eth0");
            assert_eq!(served_by(&look(&sim)).iter().min(), Some(&CpuId(4)));
            let id = if back == "rollback 1" { 1 } else { 0 };
            let out = rollback(&sim, &dir, id, &policy()).unwrap();
            assert_eq!((out.verdict, &out.notes[..]), (RunResult::Applied, &[][..]));
        }
        let now = look(&sim);
        assert_eq!(differing(&before, &now), [""; 0], "{back}");
        assert_eq!(served_by(&now), were, "{back}");
    }
}

#[test]
fn an_idle_queue_is_reported_to_stay_elsewhere() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    apply(&sim, &dir, &wanted()).unwrap();
    sim.traffic("eth0");
    // No interrupt is raised from here on.
    let out = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert_eq!((out.verdict, differing(&before, &look(&sim))), (RunResult::Applied, vec![]));
    let of_this = |n: &&String| n.contains("eth0 rx-0 (CPU 4, was CPU 0)");
    assert_eq!(out.notes.iter().filter(of_this).count(), 1, "{:?}", out.notes);
}
