//! CPUs that do not serve timers get no work.

use ringwise_apply::{Refusal, RunResult};
use ringwise_model::CpuId;
use ringwise_testkit::sim::{Sim, build};

use crate::common::*;
use std::sync::Arc;

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()))
}

#[test]
fn a_cpu_without_a_timer_is_refused_before_anything_is_written() {
    let (sim, dir) = (sim(), Dir::new());
    sim.late_cpu(CpuId(2), false);
    let before = look(&sim);
    for wanted in [irq("eth0", 1, "2"), rps("eth0", 0, "1-2")] {
        let e = apply(&sim, &dir, &[wanted]).unwrap_err();
        let Some(Refusal::DeafCpus { cpus }) = e.refusal() else { panic!("{e}") };
        assert_eq!(cpus.to_string(), "2");
        assert!(e.to_string().starts_with("timers do not run on CPU 2: "), "{e}");
    }
    assert_eq!(sim.writes(), 0);
    assert!(differing(&before, &look(&sim)).is_empty());
    // XPS sends no work to a CPU, and CPUs that get no work are not checked.
    let out = apply(&sim, &dir, &[xps("eth0", 1, "2"), irq("eth0", 1, "3")]).unwrap();
    assert_eq!((out.verdict, out.notes), (RunResult::Applied, Vec::new()));
}

#[test]
fn a_busy_cpu_is_reported_and_not_refused() {
    let (sim, dir) = (sim(), Dir::new());
    sim.late_cpu(CpuId(2), true);
    let out = apply(&sim, &dir, &[irq("eth0", 1, "2")]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    let said = "a sleep of 10 ms on CPU 2 took more than 2 s, probably because of other load";
    assert_eq!(out.notes, [said]);
}

#[test]
fn the_way_back_is_not_refused() {
    let (sim, dir) = (sim(), Dir::new());
    assert_eq!(apply(&sim, &dir, &[irq("eth0", 2, "0")]).unwrap().verdict, RunResult::Applied);
    sim.late_cpu(CpuId(2), false);
    let out = rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert!(out.notes.iter().any(|n| n.starts_with("timers do not run on CPU 2")), "{:?}", out.notes);
}
