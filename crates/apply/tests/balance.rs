//! Interrupts that the service has moved because of the load, beside a table: their base, and who restores it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::guard::{ApplierState, WatchedApplier, guard_tables};
use ringwise_apply::{Ending, Halt, Journals, Request, RunResult, balance_step, restore_balanced};
use ringwise_knob::{Reason, Setting, live};
use ringwise_model::{CpuId, Title};
use ringwise_testkit::sim::{At, Killed, Sim, SimulatedFault, build, killed};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done()))
}

fn by() -> Request {
    Request { argv: vec!["x".into()], ..Request::default() }
}

/// As `ringwise daemon --act` requests it.
fn request(sim: &Arc<Sim>, base: &Setting, to: &Setting) -> Request {
    let from = live(&look(sim), &to.address().unwrap()).known().unwrap().clone();
    let reason = Reason::UnevenLoad { before_percent: 90, predicted_percent: 70 };
    Request {
        title: Title::Balance { dev: "eth0".into() },
        base: vec![base.clone()],
        steps: vec![balance_step(to.clone(), from, reason)],
        ..by()
    }
}

fn moved(sim: &Arc<Sim>, dir: &Dir, base: &Setting, to: &Setting) {
    let request = request(sim, base, to);
    let out = ringwise_apply::run(&host(sim), &request, &dir.store(), &policy(), &mut |_| {}).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    sim.traffic("eth0");
}

fn balanced(sim: &Arc<Sim>, dir: &Dir) -> Vec<(Setting, Setting)> {
    let all = Journals::read(&dir.store()).unwrap().balanced(&look(sim));
    all.into_iter().map(|t| (t.base, t.moved)).collect()
}

fn table(sim: &Arc<Sim>) -> Setting {
    let table = look(sim).nic("eth0").unwrap().rss.known().unwrap().table.clone();
    Setting::RssTable { dev: "eth0".into(), table }
}

/// The process that followed the load is gone.
struct Gone;

impl WatchedApplier for Gone {
    fn look(&mut self, _: Duration) -> ApplierState {
        ApplierState::Died("gone".into())
    }
    fn answer(&mut self) {}
    fn halted(&self) -> (Option<u32>, Halt) {
        (None, Halt::Silent)
    }
    fn take_over(&mut self) {}
}

/// Eight queues with a CPU of their own; then queues 2 and 3 and an entry of the table are moved.
fn with_moves(dir: &Dir) -> (Arc<Sim>, Setting) {
    let sim = sim();
    let layout: Vec<Setting> = (0..8).map(|q| irq("eth0", q, &q.to_string())).collect();
    apply(&sim, dir, &layout).unwrap();
    let base = table(&sim);
    let Setting::RssTable { dev, table: mut entries } = base.clone() else { unreachable!() };
    entries[0] = 7;
    moved(&sim, dir, &irq("eth0", 2, "2"), &irq("eth0", 2, "5"));
    moved(&sim, dir, &base, &Setting::RssTable { dev, table: entries });
    moved(&sim, dir, &irq("eth0", 2, "2"), &irq("eth0", 2, "6"));
    moved(&sim, dir, &irq("eth0", 3, "3"), &irq("eth0", 3, "5"));
    (sim, base)
}

#[test]
fn the_guard_restores_interrupts_and_tables_in_one_transaction() {
    let dir = Dir::new();
    let (sim, base) = with_moves(&dir);
    let bases: Vec<Setting> = balanced(&sim, &dir).into_iter().map(|(base, _)| base).collect();
    assert_eq!(bases.len(), 3, "{bases:?}");
    assert!(bases.contains(&irq("eth0", 2, "2")) && bases.contains(&irq("eth0", 3, "3")) && bases.contains(&base));
    let journals = dir.files().len();
    let out = guard_tables(&host(&sim), &dir.store(), &mut Gone, &policy()).unwrap().unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert_eq!(dir.files().iter().filter(|f| f.starts_with("tx-")).count(), 6, "{journals} files before");
    sim.traffic("eth0");
    for q in 0..8 {
        assert!(ringwise_knob::compare(&irq("eth0", q, &q.to_string()), &look(&sim)).holds(), "queue {q}");
    }
    assert_eq!((table(&sim), balanced(&sim, &dir)), (base, Vec::new()));
    let v = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    assert_eq!((v.settings.len(), v.drifted().count()), (8, 0), "the layout is in effect: {:?}", v.settings);
}

/// An interrupt that a user moved meanwhile stays, and so does one whose base is offline.
#[test]
fn only_what_holds_and_can_be_written_is_restored() {
    let dir = Dir::new();
    let (sim, base) = with_moves(&dir);
    let number = look(&sim).nic("eth0").unwrap().vector_of(ringwise_model::Dir::Rx, 2).unwrap().irq;
    sim.outside(|h| h.write(&format!("/proc/irq/{number}/smp_affinity_list"), b"7\n").unwrap());
    sim.cpu_offline(CpuId(3));
    restore_balanced(&host(&sim), &dir.store(), None, &by(), &policy()).unwrap();
    assert_eq!(table(&sim), base);
    let now = look(&sim);
    for (queue, cpu) in [(2, "7"), (3, "5")] {
        assert!(ringwise_knob::compare(&irq("eth0", queue, cpu), &now).holds(), "queue {queue}");
    }
    // Once the CPU is back, nothing keeps it.
    sim.cpu_online(CpuId(3));
    restore_balanced(&host(&sim), &dir.store(), Some("eth0"), &by(), &policy()).unwrap();
    assert!(ringwise_knob::compare(&irq("eth0", 3, "3"), &look(&sim)).holds());
}

/// The CPU that served it is recorded with the base; `placement` shows that it is written first.
#[test]
fn a_base_of_several_cpus_comes_back() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &[irq("eth0", 1, "0-7")]).unwrap();
    let mut base = irq("eth0", 1, "0-7");
    let Setting::IrqCpus { on, .. } = &mut base else { unreachable!() };
    *on = Some(CpuId(2));
    moved(&sim, &dir, &base, &irq("eth0", 1, "5"));
    assert_eq!(balanced(&sim, &dir), [(base.clone(), irq("eth0", 1, "5"))]);
    restore_balanced(&host(&sim), &dir.store(), None, &by(), &policy()).unwrap();
    assert!(ringwise_knob::compare(&base, &look(&sim)).holds());
    assert!(balanced(&sim, &dir).is_empty());
}

/// Where the process dies during the change of a table.
#[derive(Debug, Clone, Copy)]
enum Death {
    BeforeWrite(usize),
    AfterWrite(usize),
    /// At the n-th access to the state directory.
    InJournal(usize),
}

/// Entries and an interrupt were moved before; the process is killed during the next change of the table, and then the base comes back.
#[test]
fn killed_at_every_point_of_a_change() {
    let (writes, accesses) = {
        let dir = Dir::new();
        let (sim, base) = with_moves(&dir);
        let count = Arc::new(AtomicUsize::new(0));
        let c = count.clone();
        let store = dir.store().with_hook(Arc::new(move |_: &Path| {
            c.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }));
        sim.forget_writes();
        let request = request(&sim, &base, &other_table(&sim));
        ringwise_apply::run(&host(&sim), &request, &store, &Here::default().policy(), &mut |_| {}).unwrap();
        (sim.writes(), count.load(Ordering::Relaxed))
    };
    assert!(writes >= 1 && accesses > 5, "{writes} writes, {accesses} accesses");
    let at_writes = (0..writes).flat_map(|k| [Death::BeforeWrite(k), Death::AfterWrite(k)]);
    for death in at_writes.chain((0..accesses).map(Death::InJournal)) {
        let (dir, here) = (Dir::new(), Here::default());
        let (sim, base) = with_moves(&dir);
        let request = request(&sim, &base, &other_table(&sim));
        sim.forget_writes();
        let accessed = AtomicUsize::new(0);
        let dying = sim.clone();
        let store = dir.store().with_hook(Arc::new(move |_: &Path| {
            let now = accessed.fetch_add(1, Ordering::Relaxed);
            if dying.is_dead() {
                std::panic::panic_any(Killed);
            }
            if matches!(death, Death::InJournal(k) if k == now) {
                dying.kill();
            }
            Ok(())
        }));
        match death {
            Death::BeforeWrite(k) => sim.fault(SimulatedFault::KillBefore { at: At::Write(k) }),
            Death::AfterWrite(k) => sim.fault(SimulatedFault::KillAfter { at: At::Write(k) }),
            Death::InJournal(_) => {}
        }
        assert!(
            killed(|| _ = ringwise_apply::run(&host(&sim), &request, &store, &here.policy(), &mut |_| {})),
            "{death:?}"
        );
        sim.clear_faults();
        // First the guard of this change, if there was one, then the one of the service.
        if here.state.lock().unwrap().lock.is_some() {
            here.acts_on(6, &sim, &dir.store()).unwrap();
        }
        guard_tables(&host(&sim), &dir.store(), &mut Gone, &policy()).unwrap();
        sim.traffic("eth0");
        assert_eq!(table(&sim), base, "{death:?}");
        for queue in [2, 3] {
            let own = irq("eth0", queue, &queue.to_string());
            assert!(ringwise_knob::compare(&own, &look(&sim)).holds(), "{death:?}: queue {queue}");
        }
        assert!(balanced(&sim, &dir).is_empty(), "{death:?}");
        let unfinished = ringwise_apply::history(&dir.store(), &look(&sim).host).unwrap();
        assert!(unfinished.iter().all(|t| !matches!(t.ending, Ending::Unfinished)), "{death:?}: {unfinished:?}");
    }
}

/// The present table with one more entry moved.
fn other_table(sim: &Arc<Sim>) -> Setting {
    let Setting::RssTable { dev, table: mut entries } = table(sim) else { unreachable!() };
    entries[1] = 6;
    Setting::RssTable { dev, table: entries }
}
