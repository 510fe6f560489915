//! irqbalance on the same host: it gets the bans, gets them again after renumbering and after a restart, and gets its old list
//! back in the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::*;
use ringwise_apply::RunResult;
use ringwise_knob::irqbalance::BannedInterrupts;
use ringwise_knob::{IfRefused, Setting, VectorName, compare};
use ringwise_model::Fact;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build, killed};

const DEVICES: &str = "/run/ringwise/irqbalance-devices";
const BANS: &str = "/run/ringwise/irqbalance-bans";
const DROPIN: &str = "/run/systemd/system/irqbalance.service.d/90-ringwise.conf";

fn sim(by_systemd: bool) -> Arc<Sim> {
    let sim = Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).mqnic("eth1", 1, 4).done()));
    sim.irqbalance(&["--foreground", "--banirq=7"], by_systemd);
    sim
}

fn ban(dev: &str) -> Setting {
    Setting::IrqbalanceBan { dev: dev.into(), left: BannedInterrupts::All }
}

fn restart(dev: &str) -> Setting {
    Setting::IrqbalanceRestart { dev: dev.into(), left: true }
}

fn numbers(sim: &Arc<Sim>, dev: &str) -> BTreeSet<u32> {
    sim.nic(dev).unwrap().vectors.iter().map(|v| v.irq.0).collect()
}

fn with_others(numbers: BTreeSet<u32>) -> Vec<u32> {
    numbers.into_iter().chain([7]).collect::<BTreeSet<_>>().into_iter().collect()
}

fn layout(dev: &str) -> Vec<Setting> {
    let mut all: Vec<_> = (0..4).map(|q| irq(dev, q, &(q + 2).to_string())).collect();
    all.push(ban(dev));
    all
}

fn holds(sim: &Arc<Sim>, wanted: &[Setting]) -> bool {
    let now = look(sim);
    wanted.iter().all(|s| compare(s, &now).holds())
}

#[test]
fn a_layout_holds_with_the_ban_and_not_without_it() {
    let (sim, dir) = (sim(false), Dir::new());
    let only: Vec<Setting> = layout("eth1").into_iter().filter(|s| *s != ban("eth1")).collect();
    apply(&sim, &dir, &only).unwrap();
    sim.irqbalance_scan();
    assert!(!holds(&sim, &only));
    apply(&sim, &dir, &layout("eth1")).unwrap();
    sim.irqbalance_scan();
    assert!(holds(&sim, &layout("eth1")));
    assert_eq!(sim.irqbalance_bans(), with_others(numbers(&sim, "eth1")));
}

#[test]
fn interrupts_moved_by_a_restarted_irqbalance_are_drift_not_manual_changes() {
    let (sim, dir) = (sim(false), Dir::new());
    apply(&sim, &dir, &layout("eth1")).unwrap();
    sim.irqbalance_restart();
    sim.irqbalance_scan();
    let v = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    assert_eq!((v.exit_status(), v.drifted().count()), (3, layout("eth1").len()));
    assert_eq!(v.manual_changes(), Vec::new());
    // It is not refused as a manual change either.
    assert_eq!(rollback(&sim, &dir, 1, &policy()).unwrap().verdict, RunResult::Applied);
    assert_eq!(sim.irqbalance_bans(), [7]);
}

#[test]
fn what_it_moves_between_plan_and_apply_is_no_reason_to_refuse() {
    let (sim, dir) = (sim(false), Dir::new());
    let now = look(&sim);
    let planned = request(&now, &layout("eth1"));
    let without: Vec<Setting> = layout("eth1").into_iter().filter(|s| *s != ban("eth1")).collect();
    let bare = request(&now, &without);
    sim.irqbalance_scan();
    // Without steps that ban the interrupt, the run is refused because irqbalance moved it.
    assert!(matches!(run(&sim, &dir, &bare), Err(ringwise_apply::Error::Refused(_))));
    run(&sim, &dir, &planned).unwrap();
    assert!(holds(&sim, &layout("eth1")));
}

#[test]
fn interrupts_that_irqbalance_moves_before_its_ban_are_corrected() {
    let (sim, dir) = (sim(false), Dir::new());
    let right: Vec<Setting> = (0..4).map(|q| irq("eth1", q, &(q + 2).to_string())).collect();
    apply(&sim, &dir, &right).unwrap();
    let mut planned = request(&look(&sim), &layout("eth1"));
    assert_eq!(planned.steps.len(), 1, "only the ban");
    planned.already = right.clone();
    sim.irqbalance_scan();
    assert!(!holds(&sim, &right));
    let out = run(&sim, &dir, &planned).unwrap();
    assert_eq!((out.verified, out.verdict), (5, RunResult::Applied));
    assert!(holds(&sim, &layout("eth1")));
}

#[test]
fn the_list_is_as_before_after_a_rollback() {
    let (sim, dir) = (sim(false), Dir::new());
    // A ban that another program made on one of our interrupts stays, too.
    let theirs = *numbers(&sim, "eth1").first().unwrap();
    sim.irqbalance_ban(&[7, theirs]);
    let before = sim.irqbalance_bans();
    let out = apply(&sim, &dir, &layout("eth1")).unwrap();
    assert!(out.notes.iter().any(|n| n.contains("irqbalance loses its bans when it restarts")), "{:?}", out.notes);
    assert!(sim.placed(BANS).is_some_and(|t| t.lines().count() == numbers(&sim, "eth1").len()));
    let out = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert_eq!(sim.irqbalance_bans(), before);
    assert_eq!(sim.all_placed(), Vec::<String>::new());
}

#[test]
fn bans_of_others_made_meanwhile_stay() {
    let (sim, dir) = (sim(false), Dir::new());
    apply(&sim, &dir, &layout("eth1")).unwrap();
    let mut list = sim.irqbalance_bans();
    list.push(4000);
    sim.irqbalance_ban(&list);
    rollback(&sim, &dir, 1, &policy()).unwrap();
    assert_eq!(sim.irqbalance_bans(), [7, 4000]);
}

#[test]
fn other_numbers_are_banned_and_the_old_ones_let_go() {
    let (sim, dir) = (sim(false), Dir::new());
    apply(&sim, &dir, &layout("eth0")).unwrap();
    let old = numbers(&sim, "eth0");
    apply(&sim, &dir, &[channels("eth0", 4)]).unwrap();
    let new = numbers(&sim, "eth0");
    assert_ne!(old, new, "the simulated driver gives other numbers");
    assert_eq!(sim.irqbalance_bans(), with_others(new));
    rollback(&sim, &dir, 1, &policy()).unwrap();
    assert_eq!(sim.irqbalance_bans(), [7]);
}

#[test]
fn a_failure_gives_the_list_back() {
    let (sim, dir) = (sim(true), Dir::new());
    let mut wanted = layout("eth1");
    wanted.push(restart("eth1"));
    sim.fault(SimulatedFault::Fail { at: At::Matching("smp_affinity_list".into()), errno: 28, times: Times::Once });
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!(out.verdict, RunResult::PutBack, "{out:?}");
    assert_eq!(sim.irqbalance_bans(), [7]);
    assert_eq!(sim.all_placed(), Vec::<String>::new());
}

#[test]
fn a_restarted_one_leaves_the_device_alone_and_the_rollback_is_whole() {
    let (sim, dir) = (sim(true), Dir::new());
    let mut wanted = layout("eth1");
    wanted.push(restart("eth1"));
    let before = look(&sim);
    apply(&sim, &dir, &wanted).unwrap();
    let text = sim.placed(DROPIN).unwrap();
    assert!(
        text.contains("ExecStart=\nExecStart=/usr/sbin/irqbalance --foreground --banirq=7 --policyscript="),
        "{text}"
    );
    assert_eq!(sim.placed(DEVICES).unwrap().trim(), sim.nic("eth1").unwrap().dev.bus_address.unwrap());

    sim.irqbalance_restart();
    assert_eq!(sim.irqbalance_bans(), [7], "irqbalance loses its bans when it restarts");
    sim.irqbalance_scan();
    assert!(holds(&sim, &wanted));
    // Also with other interrupt numbers.
    sim.ethtool_l("eth1", 2).unwrap();
    assert!(holds(&sim, &[ban("eth1"), restart("eth1")]));
    sim.ethtool_l("eth1", 4).unwrap();

    rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!(sim.all_placed(), Vec::<String>::new());
    assert_eq!(look(&sim).host.irqbalance.known().unwrap().kept, Vec::<String>::new());
    assert_eq!(sim.irqbalance_bans(), [7]);
    assert_eq!(before.host.irqbalance.known().unwrap().start, look(&sim).host.irqbalance.known().unwrap().start);
}

#[test]
fn killed_at_every_write_it_is_recovered() {
    let begin = || {
        let (sim, dir) = (sim(true), Dir::new());
        let before = look(&sim);
        let wanted: Vec<Setting> = [layout("eth1"), vec![restart("eth1")]].concat();
        let request = request(&before, &wanted);
        sim.forget_writes();
        (sim, dir, before, request)
    };
    let (all, ..) = begin();
    let (writes, dir) = (all.writes(), Dir::new());
    assert_eq!(writes, 0);
    let now = look(&all);
    run(&all, &dir, &request(&now, &[layout("eth1"), vec![restart("eth1")]].concat())).unwrap();
    let writes = all.writes();
    assert!(writes > 8, "{:?}", all.log());
    for k in 0..writes {
        for after in [false, true] {
            let (sim, dir, before, request) = begin();
            let at = At::Write(k);
            sim.fault(if after { SimulatedFault::KillAfter { at } } else { SimulatedFault::KillBefore { at } });
            let store = mortal(&dir, &sim);
            assert!(killed(|| _ = ringwise_apply::run(&host(&sim), &request, &store, &policy(), &mut |_| {})), "{k}");
            sim.clear_faults();
            recover(&sim, &dir).unwrap();
            let now = look(&sim);
            assert!(differing(&before, &now).is_empty(), "{k} {after}: {:?}", differing(&before, &now));
            assert_eq!(sim.irqbalance_bans(), [7], "{k} {after}");
            // The record of our bans may stay: it names no interrupt that exists.
            let left: Vec<String> = sim.all_placed().into_iter().filter(|p| p != BANS).collect();
            assert_eq!(left, Vec::<String>::new(), "{k} {after}");
        }
    }
}

#[test]
fn one_device_goes_and_the_other_stays() {
    let (sim, dir) = (sim(true), Dir::new());
    apply(&sim, &dir, &[ban("eth0"), restart("eth0")]).unwrap();
    apply(&sim, &dir, &[ban("eth1"), restart("eth1")]).unwrap();
    assert_eq!(sim.placed(DEVICES).unwrap().lines().count(), 2);
    rollback(&sim, &dir, 2, &policy()).unwrap();
    assert_eq!(sim.placed(DEVICES).unwrap().lines().count(), 1);
    assert!(holds(&sim, &[ban("eth0"), restart("eth0")]));
    assert_eq!(sim.irqbalance_bans(), with_others(numbers(&sim, "eth0")));
    assert!(sim.placed(DROPIN).is_some());
}

#[test]
fn where_the_unit_cannot_be_added_to_the_rest_is_done() {
    let (sim, dir) = (sim(true), Dir::new());
    let mut wanted = layout("eth1");
    wanted.push(restart("eth1"));
    sim.fault(SimulatedFault::Fail { at: At::Matching("daemon-reload".into()), errno: 5, times: Times::Always });
    let now = look(&sim);
    let out = run(&sim, &dir, &request_if(&now, &wanted, IfRefused::Skip)).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert_eq!(out.refused.iter().map(|r| &r.asked).collect::<Vec<_>>(), [&restart("eth1")]);
    assert!(sim.placed(DROPIN).is_none() && sim.placed(DEVICES).is_none());
    assert!(holds(&sim, &layout("eth1")));
}

#[test]
fn without_irqbalance_nothing_is_read_or_written() {
    let (sim, dir) = (Arc::new(Sim::new(&build::host(8, 2).mqnic("eth1", 1, 4).done())), Dir::new());
    assert_eq!(look(&sim).host.irqbalance, Fact::Absent);
    apply(&sim, &dir, &layout("eth1")).unwrap();
    assert_eq!(sim.all_placed(), Vec::<String>::new());
    assert!(sim.log().iter().all(|l| l.contains("smp_affinity_list")), "{:?}", sim.log());
    // An interrupt that vanished meanwhile is not drift.
    let gone = Setting::IrqbalanceBan {
        dev: "eth1".into(),
        left: BannedInterrupts::These(BTreeSet::from([VectorName::Rx(0)])),
    };
    assert!(holds(&sim, &[gone]));
}

#[test]
fn a_list_that_is_too_long_is_refused_and_nothing_is_cut() {
    let (sim, dir) = (sim(false), Dir::new());
    let long: Vec<u32> = (1000..1120).collect();
    sim.irqbalance_ban(&long);
    let now = look(&sim);
    let out = run(&sim, &dir, &request_if(&now, &layout("eth1"), IfRefused::Skip)).unwrap();
    assert_eq!(out.refused.len(), 1, "{out:?}");
    assert!(out.refused[0].failure.words.contains("EMSGSIZE"), "{:?}", out.refused[0]);
    assert_eq!(sim.irqbalance_bans(), long);
}
