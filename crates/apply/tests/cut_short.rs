//! SIGKILL at every write and at every point of the journal, then `recover`; damaged and foreign journals; a full disk.

use crate::common;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::*;
use ringwise_apply::{Ending, Refusal, Request, RunResult, Store};
use ringwise_knob::Setting;
use ringwise_model::errno::ENOSPC;
use ringwise_testkit::sim::{At, Killed, Sim, SimulatedFault, build, killed};

fn sim() -> Arc<Sim> {
    let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 6).done()));
    let table: Vec<u32> = (0..128).map(|i| if i % 3 == 0 { 1 } else { 0 }).collect();
    sim.ethtool_x("eth0", &table).unwrap();
    let now = look(&sim);
    sim.outside(|h| {
        for q in 0..6 {
            let dir = "/sys/class/net/eth0/queues";
            h.write(&format!("{dir}/tx-{q}/xps_cpus"), format!("{:x}", 1 << (q % 4)).as_bytes()).unwrap();
            h.write(&format!("{dir}/rx-{q}/rps_cpus"), b"6").unwrap();
        }
        for (n, v) in now.nic("eth0").unwrap().queue_vectors().enumerate() {
            h.write(&format!("/proc/irq/{}/smp_affinity_list", v.irq), format!("{}\n", n % 4).as_bytes()).unwrap();
        }
    });
    sim
}

fn wanted() -> Vec<Setting> {
    let mut all = vec![channels("eth0", 4), rfs(4096)];
    for q in 0..4 {
        let cpu = ((q + 1) % 4).to_string();
        all.extend([irq("eth0", q, &cpu), irq_tx("eth0", q, &cpu), xps("eth0", q, &cpu), rps("eth0", q, "")]);
    }
    all
}

fn try_run(sim: &Arc<Sim>, store: &Store, request: &Request) -> bool {
    killed(|| _ = ringwise_apply::run(&host(sim), request, store, &policy(), &mut |_| {}))
}

/// After the kill: the next run is refused, and recovery restores the start. Recovering twice does no harm.
fn recovers(sim: &Arc<Sim>, dir: &Dir, before: &ringwise_model::Snapshot, request: &Request, what: &str) {
    sim.clear_faults();
    let cut =
        ringwise_apply::history(&dir.store(), &before.host).unwrap().iter().any(|e| e.ending == Ending::Unfinished);
    if cut {
        let now = look(sim);
        let e = run(sim, dir, &common::request(&now, &wanted())).map(|o| o.verdict);
        // A run may succeed only if there is nothing left to do.
        match e {
            Err(e) => assert!(matches!(e.refusal(), Some(Refusal::Unfinished { transaction: 1 })), "{what}: {e}"),
            Ok(v) => panic!("{what}: {v:?}"),
        }
        assert_eq!(ringwise_apply::verify(&host(sim), &dir.store(), &policy()).unwrap().exit_status(), 3, "{what}");
        let out = recover(sim, dir).unwrap();
        assert_eq!((out.verdict, out.exit_status(), out.transaction), (RunResult::Recovered, 0, Some(1)), "{what}");
        assert!(differing(before, &look(sim)).is_empty(), "{what}: {:?}", differing(before, &look(sim)));
    }
    sim.forget_writes();
    let out = recover(sim, dir).unwrap();
    assert_eq!((out.verdict, sim.writes()), (RunResult::NothingToDo, 0), "{what}");
    if cut {
        assert_eq!(run(sim, dir, request).unwrap().verdict, RunResult::Applied, "{what}");
    }
}

#[test]
fn at_every_write() {
    let writes = {
        let (sim, dir) = (sim(), Dir::new());
        assert_eq!(apply(&sim, &dir, &wanted()).unwrap().verdict, RunResult::Applied);
        sim.writes()
    };
    assert!(writes > 15);
    for k in 0..writes {
        for after in [false, true] {
            let (sim, dir) = (sim(), Dir::new());
            let before = look(&sim);
            let request = request(&before, &wanted());
            let at = At::Write(k);
            sim.fault(if after { SimulatedFault::KillAfter { at } } else { SimulatedFault::KillBefore { at } });
            assert!(try_run(&sim, &mortal(&dir, &sim), &request));
            recovers(&sim, &dir, &before, &request, &format!("write {k}, after it: {after}"));
        }
    }
}

/// A store that counts its writes and calls a function at one of them.
fn at_point(
    dir: &Dir,
    sim: &Arc<Sim>,
    point: usize,
    act: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
) -> (Store, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (c, sim) = (count.clone(), sim.clone());
    let store = dir.store().with_hook(Arc::new(move |_: &Path| {
        if sim.is_dead() {
            std::panic::panic_any(Killed);
        }
        if c.fetch_add(1, Ordering::Relaxed) == point { act() } else { Ok(()) }
    }));
    (store, count)
}

#[test]
fn at_every_point_of_the_journal() {
    let points = {
        let (sim, dir) = (sim(), Dir::new());
        let (store, count) = at_point(&dir, &sim, usize::MAX, || Ok(()));
        let request = request(&look(&sim), &wanted());
        assert!(!try_run(&sim, &store, &request));
        count.load(Ordering::Relaxed)
    };
    assert!(points > 30, "{points}");
    for k in 0..points {
        let (sim, dir) = (sim(), Dir::new());
        let before = look(&sim);
        let request = request(&before, &wanted());
        let dying = sim.clone();
        let (store, _) = at_point(&dir, &sim, k, move || dying.kill());
        assert!(try_run(&sim, &store, &request), "point {k}");
        recovers(&sim, &dir, &before, &request, &format!("point {k}"));
    }
}

#[test]
fn while_it_recovers() {
    for k in 0..12 {
        let (sim, dir) = (sim(), Dir::new());
        let before = look(&sim);
        let request = request(&before, &wanted());
        sim.fault(SimulatedFault::KillAfter { at: At::Write(8) });
        assert!(try_run(&sim, &mortal(&dir, &sim), &request));
        sim.clear_faults();
        sim.forget_writes();
        sim.fault(SimulatedFault::KillBefore { at: At::Write(k) });
        let store = mortal(&dir, &sim);
        if killed(|| _ = ringwise_apply::recover(&host(&sim), &store, &policy(), &mut |_| {})) {
            recovers(&sim, &dir, &before, &request, &format!("recovery, write {k}"));
        } else {
            assert!(differing(&before, &look(&sim)).is_empty());
        }
    }
}

#[test]
fn a_full_disk() {
    let points = 40;
    let mut seen = [0; 3];
    for k in 0..points {
        let (sim, dir) = (sim(), Dir::new());
        let before = look(&sim);
        let (store, _) = at_point(&dir, &sim, k, || Err(std::io::Error::from_raw_os_error(ENOSPC)));
        let out = ringwise_apply::run(&host(&sim), &request(&before, &wanted()), &store, &policy(), &mut |_| {});
        match out {
            Err(e) => {
                seen[0] += 1;
                assert_eq!((e.exit_status(), sim.writes()), (6, 0), "point {k}");
                assert!(e.to_string().contains("No space left"), "{e}");
            }
            Ok(out) if out.verdict == RunResult::PutBack => {
                seen[1] += 1;
                assert_eq!(out.failed.as_ref().unwrap().meaning, "the journal cannot be written");
                assert!(differing(&before, &look(&sim)).is_empty(), "point {k}");
            }
            Ok(out) => {
                seen[2] += 1;
                assert_eq!(out.verdict, RunResult::Applied, "point {k}");
            }
        }
        // Nothing blocks the next run.
        assert_eq!(apply(&sim, &dir, &wanted()).unwrap().exit_status(), 0, "point {k}");
    }
    assert!(seen[0] >= 3 && seen[1] > 20, "{seen:?}");
}

fn cut(sim: &Arc<Sim>, dir: &Dir) -> ringwise_model::Snapshot {
    let before = look(sim);
    sim.fault(SimulatedFault::KillAfter { at: At::Write(4) });
    assert!(try_run(sim, &mortal(dir, sim), &request(&before, &wanted())));
    sim.clear_faults();
    before
}

#[test]
fn from_another_boot_or_machine_it_is_closed_and_reported() {
    for other in ["boot", "machine"] {
        let (sim, dir) = (sim(), Dir::new());
        cut(&sim, &dir);
        if other == "boot" {
            sim.boot_id("99999999-2222-3333-4444-555555555555");
        } else {
            sim.machine_id("ffffffffffffffffffffffffffffffff");
        }
        assert_eq!(recover(&sim, &dir).unwrap().verdict, RunResult::NothingToDo);
        let out = apply(&sim, &dir, &wanted()).unwrap();
        assert_eq!((out.verdict, out.transaction), (RunResult::Applied, Some(2)));
        assert!(out.notes[0].contains("transaction 1 was cut short and is closed now: it "), "{:?}", out.notes);
        let history = ringwise_apply::history(&dir.store(), &look(&sim).host).unwrap();
        assert!(matches!(&history[0].ending, Ending::Closed { why } if why.contains(other)), "{:?}", history[0].ending);
        assert!(!history[0].this_boot);
    }
}

#[test]
fn of_another_format_it_stops_everything_and_is_left_alone() {
    let (sim, dir) = (sim(), Dir::new());
    cut(&sim, &dir);
    // A later version need not know these checksums.
    let text = std::fs::read_to_string(dir.journal(1)).unwrap().replacen("\"format\":2", "\"format\":9", 1);
    let text = text.replace(",\"crc32\":\"", ",\"sum\":\"");
    std::fs::write(dir.journal(1), &text).unwrap();
    let e = apply(&sim, &dir, &wanted()).unwrap_err();
    assert_eq!(e.exit_status(), 6);
    assert!(e.to_string().contains("in another format (9)"), "{e}");
    assert_eq!(recover(&sim, &dir).unwrap_err().exit_status(), 6);
    // The version that wrote the journal can still recover.
    assert_eq!(std::fs::read_to_string(dir.journal(1)).unwrap(), text);
    let history = ringwise_apply::history(&dir.store(), &look(&sim).host).unwrap();
    assert_eq!(history[0].ending, Ending::Unfinished);
}

#[test]
fn a_torn_tail_is_passed_over() {
    let whole = {
        let (sim, dir) = (sim(), Dir::new());
        cut(&sim, &dir);
        std::fs::read(dir.journal(1)).unwrap()
    };
    let header = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    let step = if ringwise_testkit::lane::everything() { 97 } else { 389 };
    for length in (0..whole.len()).step_by(step).chain([header - 1, header, header + 1]) {
        let (sim, dir) = (sim(), Dir::new());
        let before = cut(&sim, &dir);
        std::fs::write(dir.journal(1), &whole[..length]).unwrap();
        let out = recover(&sim, &dir).unwrap();
        if length >= header - 1 {
            assert_eq!(out.verdict, RunResult::Recovered, "{length}");
            assert!(differing(&before, &look(&sim)).is_empty(), "{length}");
        } else {
            // Nothing is written to the kernel before the header is complete.
            assert_eq!(out.verdict, RunResult::NothingToDo, "{length}");
        }
        assert_eq!(apply(&sim, &dir, &wanted()).unwrap().verdict, RunResult::Applied, "{length}");
    }
}

#[test]
fn the_journal_can_be_used_without_ringwise() {
    let (sim, dir) = (sim(), Dir::new());
    let before = cut(&sim, &dir);
    let text = std::fs::read_to_string(dir.journal(1)).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&header["format"], &header["who"], &header["reason"]), (&2.into(), &"root".into(), &"CHG-1".into()));
    assert_eq!(header["boot_id"].as_str(), before.host.boot_id.known().map(String::as_str));
    let undo: Vec<&str> = header["undo"].as_array().unwrap().iter().map(|u| u.as_str().unwrap()).collect();
    assert_eq!(undo[0], "ethtool -L eth0 combined 6");
    assert!(undo.contains(&"echo 2 > /sys/class/net/eth0/queues/tx-1/xps_cpus"), "{undo:?}");
    assert!(text.lines().count() > 5);
}
