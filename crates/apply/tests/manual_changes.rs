//! Manual changes: when they happened, keeping them, adopting them, and the rollback to the values as first found.

use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use ringwise_apply::{DriftCause, Event, Outcome, Policy, RunResult, TransactionKind, Verify};
use ringwise_knob::{ChangeWindow, ManualChange, Match, Origin, Setting};
use ringwise_sys::Clock;
use ringwise_testkit::sim::{Sim, build};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).virtio("eth1", 0, 4).done()))
}

fn layout(dev: &str, queues: u32) -> Vec<Setting> {
    (0..queues).flat_map(|q| [irq(dev, q, &q.to_string()), xps(dev, q, &q.to_string())]).collect()
}

/// Writes the file outside ringwise.
fn set_xps_manually(sim: &Arc<Sim>, dev: &str, queue: u32, cpus: &str) {
    let mask: u64 = cpus.parse::<u64>().map(|c| 1 << c).unwrap();
    let path = format!("/sys/class/net/{dev}/queues/tx-{queue}/xps_cpus");
    sim.outside(|h| h.write(&path, format!("{mask:x}").as_bytes())).unwrap();
}

fn set_irq_manually(sim: &Arc<Sim>, dev: &str, queue: u32, cpus: &str) {
    let now = look(sim);
    let v = ringwise_knob::irq::vector(now.nic(dev).unwrap(), ringwise_knob::VectorName::Rx(queue)).unwrap();
    sim.outside(|h| h.write(&format!("/proc/irq/{}/smp_affinity_list", v.irq), cpus.as_bytes())).unwrap();
}

/// Verifies like a command that records what it saw.
fn verify(sim: &Arc<Sim>, dir: &Dir) -> Verify {
    let now = look(sim);
    let mut v = ringwise_apply::verify_in(&now, &dir.store()).unwrap();
    ringwise_apply::note_seen(&dir.store(), &now, &mut v, sim.unix_time());
    v
}

fn adopt(sim: &Arc<Sim>, dir: &Dir, devs: &[&str]) -> Result<Outcome, ringwise_apply::Error> {
    let devs: Vec<String> = devs.iter().map(ToString::to_string).collect();
    let request = ringwise_apply::Request {
        title: ringwise_model::Title::Adopt { devs: Vec::new() },
        who: "root".into(),
        ..Default::default()
    };
    ringwise_apply::adopt(&host(sim), &dir.store(), &devs, &request, &policy(), &mut |_| {})
}

fn pass(sim: &Arc<Sim>, seconds: u64) -> u64 {
    sim.sleep(Duration::from_secs(seconds));
    sim.unix_time()
}

#[test]
fn the_window_is_between_the_last_look_that_was_right_and_the_first_that_was_not() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    let end = sim.unix_time();
    set_xps_manually(&sim, "eth1", 2, "7");
    // No command has looked since the transaction.
    let first = pass(&sim, 60);
    let v = verify(&sim, &dir);
    let changed: Vec<_> = v.drifted().map(|s| s.changed.unwrap()).collect();
    assert_eq!(changed, [ChangeWindow { after: end, by: Some(first) }]);
    assert_eq!(v.settings[0].unix_time, end);
    // A later look does not widen the window, and another change has its own window.
    let second = pass(&sim, 60);
    verify(&sim, &dir);
    set_irq_manually(&sim, "eth1", 0, "7");
    let third = pass(&sim, 60);
    let windows = |v: &Verify| v.drifted().map(|s| s.changed.unwrap()).collect::<Vec<_>>();
    let both = [ChangeWindow { after: second, by: Some(third) }, ChangeWindow { after: end, by: Some(first) }];
    assert_eq!(windows(&verify(&sim, &dir)), both);
    // Without a recorded look, only the windows of new changes stay open.
    assert_eq!(windows(&ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap()), both);
    // Correct again and changed again: the window begins at the look that saw it correct.
    set_xps_manually(&sim, "eth1", 2, "2");
    let fourth = pass(&sim, 60);
    assert_eq!(verify(&sim, &dir).drifted().count(), 1);
    set_xps_manually(&sim, "eth1", 2, "6");
    let fifth = pass(&sim, 60);
    assert_eq!(windows(&verify(&sim, &dir))[1], ChangeWindow { after: fourth, by: Some(fifth) });
}

#[test]
fn a_renamed_device_keeps_its_windows() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    let end = sim.unix_time();
    set_xps_manually(&sim, "eth1", 2, "7");
    let first = pass(&sim, 60);
    verify(&sim, &dir);
    sim.rename("eth1", "wan");
    pass(&sim, 60);
    let v = verify(&sim, &dir);
    let drifted: Vec<_> = v.drifted().collect();
    assert_eq!(drifted[0].want.address().unwrap().to_string(), "wan tx-2 xps_cpus");
    assert_eq!(drifted[0].changed, Some(ChangeWindow { after: end, by: Some(first) }));
    assert_eq!(v.manual_changes().len(), 1);
}

#[test]
fn looking_writes_nothing_where_nothing_is_in_force_or_nothing_can_be_written() {
    let (sim, dir) = (sim(), Dir::new());
    verify(&sim, &dir);
    assert_eq!(dir.files(), Vec::<String>::new());
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    let full = dir.store().with_hook(Arc::new(|_| Err(std::io::Error::from_raw_os_error(28))));
    let now = look(&sim);
    let mut v = ringwise_apply::verify_in(&now, &full).unwrap();
    ringwise_apply::note_seen(&full, &now, &mut v, sim.unix_time());
    assert!(!dir.files().contains(&"seen.json".to_string()));
    // A torn file, and one of another boot, count as missing.
    for text in
        ["{\"format\":1", "{\"format\":1,\"boot_id\":\"x\",\"machine_id\":null,\"at\":1,\"apart\":[],\"devices\":[]}"]
    {
        std::fs::write(dir.0.join("seen.json"), text).unwrap();
        assert_eq!(verify(&sim, &dir).exit_status(), 0);
        assert!(std::fs::read_to_string(dir.0.join("seen.json")).unwrap().contains("11111111"), "written anew");
    }
    assert!(!dir.files().iter().any(|f| f.starts_with(".seen")), "{:?}", dir.files());
}

#[test]
fn what_else_happened_to_the_device_is_evidence() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth0", 8)).unwrap();
    let drift_cause = |sim: &Arc<Sim>| ringwise_apply::drift_cause(&dir.store(), &look(sim), "eth0");
    assert_eq!(drift_cause(&sim), None);
    verify(&sim, &dir);
    set_xps_manually(&sim, "eth0", 2, "7");
    verify(&sim, &dir);
    assert_eq!(drift_cause(&sim), Some(DriftCause::Nothing));
    sim.ethtool_l("eth0", 4).unwrap();
    sim.sleep_past_link();
    verify(&sim, &dir);
    let Some(DriftCause::Channels { from, to }) = drift_cause(&sim) else { panic!("{:?}", drift_cause(&sim)) };
    assert_eq!((from.value_text(), to.value_text()), ("combined 8".into(), "combined 4".into()));
}

#[test]
fn adopted_is_wanted_and_the_host_is_not_touched() {
    let (sim, dir) = (sim(), Dir::new());
    let start = look(&sim);
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    set_xps_manually(&sim, "eth1", 2, "7");
    set_irq_manually(&sim, "eth1", 0, "5");
    let hands = verify(&sim, &dir).manual_changes();
    assert_eq!(hands.iter().map(|h| (h.origin, h.transaction)).collect::<Vec<_>>(), [(Origin::ByHand, 1); 2]);
    assert_eq!(hands[1].applied, xps("eth1", 2, "2"));
    let as_set = look(&sim);
    sim.forget_writes();
    // Another device, with nothing to adopt.
    assert_eq!(adopt(&sim, &dir, &["eth0"]).unwrap().verdict, RunResult::NothingToDo);
    let out = adopt(&sim, &dir, &["eth1"]).unwrap();
    assert_eq!((out.verdict, out.transaction, out.changed), (RunResult::Applied, Some(2), false));
    assert_eq!((out.applied.len(), out.already_so.len(), sim.writes()), (0, 2, 0));
    let v = verify(&sim, &dir);
    assert_eq!((v.exit_status(), v.settings.len()), (0, 8));
    let adopted: Vec<ManualChange> = v.manual_changes();
    assert!(adopted.iter().all(|h| h.origin == Origin::Adopted && h.transaction == 2), "{adopted:?}");
    assert_eq!(adopted.len(), 2);
    assert_eq!(adopt(&sim, &dir, &["eth1"]).unwrap().verdict, RunResult::NothingToDo);
    let list = ringwise_apply::history(&dir.store(), &start.host).unwrap();
    assert_eq!((&list[1].kind, list[1].steps, list[1].undone_by), (&TransactionKind::Adopt, 2, None));
    // The adopted setting is changed outside ringwise again: it is manual again.
    set_xps_manually(&sim, "eth1", 2, "3");
    let again = verify(&sim, &dir).manual_changes();
    assert!(again.iter().any(|h| h.origin == Origin::ByHand && h.transaction == 2), "{again:?}");
    set_xps_manually(&sim, "eth1", 2, "7");
    // The adopt is rolled back: drift as before, and no write.
    sim.forget_writes();
    let out = rollback(&sim, &dir, 2, &policy()).unwrap();
    assert_eq!((out.verdict, out.transaction, out.changed), (RunResult::Applied, Some(3), false));
    assert_eq!(sim.writes(), 0);
    assert!(differing(&as_set, &look(&sim)).is_empty());
    assert_eq!((verify(&sim, &dir).exit_status(), verify(&sim, &dir).drifted().count()), (3, 2));
    // That is rolled back too: adopted again.
    rollback(&sim, &dir, 3, &policy()).unwrap();
    assert_eq!(verify(&sim, &dir).exit_status(), 0);
    // Back to before the first transaction: adopted settings are ringwise's to restore.
    assert_eq!(rollback(&sim, &dir, 1, &policy()).unwrap().verdict, RunResult::Applied);
    assert!(differing(&start, &look(&sim)).is_empty(), "{:?}", differing(&start, &look(&sim)));
    assert!(verify(&sim, &dir).settings.is_empty());
}

#[test]
fn manually_removed_channels_are_adopted_with_their_queues() {
    let (sim, dir) = (sim(), Dir::new());
    let start = look(&sim);
    apply(&sim, &dir, &layout("eth0", 8)).unwrap();
    sim.ethtool_l("eth0", 4).unwrap();
    sim.sleep_past_link();
    assert!(verify(&sim, &dir).drifted().any(|s| s.how == Match::Gone));
    adopt(&sim, &dir, &[]).unwrap();
    let v = verify(&sim, &dir);
    assert_eq!(v.exit_status(), 0, "{:?}", v.drifted().collect::<Vec<_>>());
    assert!(v.manual_changes().contains(&ManualChange {
        origin: Origin::Adopted,
        setting: channels("eth0", 4),
        applied: channels("eth0", 4),
        transaction: 2,
        changed: None,
    }));
    // What ringwise never managed is not restored: four queues keep the values as first found for them.
    rollback(&sim, &dir, 0, &policy()).unwrap();
    let now = look(&sim);
    assert_eq!(now.nic("eth0").unwrap().rx_queues.len(), 4);
    for s in settings(&start).into_values() {
        let how = ringwise_knob::compare(&s, &now);
        let ours = s.address().is_some_and(|a| {
            matches!(a, ringwise_knob::Address::XpsCpus { .. } | ringwise_knob::Address::IrqCpus { .. })
        });
        assert!(
            !ours || how == Match::Gone || how.holds() || s.address().unwrap().to_string().contains("tx-"),
            "{s:?}"
        );
    }
}

#[test]
fn settings_lost_by_reinitialization_are_not_manual_changes() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth0", 8)).unwrap();
    for n in [4, 8] {
        sim.ethtool_l("eth0", n).unwrap();
        sim.sleep_past_link();
    }
    let v = verify(&sim, &dir);
    assert!(v.drifted().count() > 8, "{v:?}");
    assert_eq!(v.manual_changes(), []);
    // A value that was chosen manually since is reported.
    set_xps_manually(&sim, "eth0", 6, "1");
    assert_eq!(verify(&sim, &dir).manual_changes().len(), 1);
    set_irq_manually(&sim, "eth0", 3, "6");
    // The vectors do not indicate a reset any more: then each value may be intended.
    assert!(verify(&sim, &dir).manual_changes().len() > 8);
}

#[test]
fn an_adopt_on_a_full_disk_is_refused_and_leaves_nothing() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    set_xps_manually(&sim, "eth1", 2, "7");
    let files = dir.files();
    for left in 0..12 {
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(left));
        let store = dir.store().with_hook(Arc::new(move |_| {
            use std::sync::atomic::Ordering::SeqCst;
            match count.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)) {
                Ok(_) => Ok(()),
                Err(_) => Err(std::io::Error::from_raw_os_error(28)),
            }
        }));
        let request = ringwise_apply::Request::default();
        match ringwise_apply::adopt(&host(&sim), &store, &[], &request, &policy(), &mut |_| {}) {
            Err(e) => {
                assert_eq!(e.exit_status(), 6, "{e}");
                assert_eq!(dir.files(), files, "after {left}");
            }
            Ok(o) => {
                assert_eq!(o.verdict, RunResult::Applied);
                assert!(left > 2);
                return;
            }
        }
    }
    panic!("twelve writes were not enough");
}

#[test]
fn a_reviewed_plan_counts_on_what_it_left_alone() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth1", 2)).unwrap();
    let now = look(&sim);
    let wanted = [xps("eth1", 3, "3")];
    let mut request = request(&now, &wanted);
    request.relies_on = layout("eth1", 2);
    set_xps_manually(&sim, "eth1", 0, "6");
    set_xps_manually(&sim, "eth1", 3, "6");
    sim.forget_writes();
    let e = run(&sim, &dir, &request).unwrap_err();
    let text = e.to_string();
    assert_eq!((e.exit_status(), sim.writes()), (6, 0));
    assert!(
        text.contains("eth1 tx-0 xps_cpus: was 0, is 6") && text.contains("eth1 tx-3 xps_cpus: was none, is 6"),
        "{text}"
    );
    set_xps_manually(&sim, "eth1", 0, "0");
    sim.outside(|h| h.write("/sys/class/net/eth1/queues/tx-3/xps_cpus", b"0")).unwrap();
    assert_eq!(run(&sim, &dir, &request).unwrap().verdict, RunResult::Applied);
    assert_eq!(run(&sim, &dir, &request).unwrap().verdict, RunResult::NothingToDo);
    // Nothing is left to do, but the host is not as reviewed.
    set_xps_manually(&sim, "eth1", 0, "6");
    assert_eq!(run(&sim, &dir, &request).unwrap_err().exit_status(), 6);
}

#[test]
fn what_a_plan_found_right_is_wanted_like_its_steps() {
    let (sim, dir) = (sim(), Dir::new());
    let start = look(&sim);
    let mut request = request(&start, &[irq("eth1", 0, "3")]);
    let found = ringwise_knob::live(&start, &xps("eth1", 2, "0").address().unwrap()).known().cloned().unwrap();
    request.already = vec![found.clone(), xps("eth1", 3, "0,7")];
    run(&sim, &dir, &request).unwrap();
    // Except for what changed between the plan and now.
    assert_eq!(verify(&sim, &dir).settings.iter().filter(|s| s.want == found).count(), 1);
    assert_eq!(verify(&sim, &dir).settings.len(), 2);
    set_xps_manually(&sim, "eth1", 2, "5");
    let hands = verify(&sim, &dir).manual_changes();
    assert_eq!((hands.len(), &hands[0].applied), (1, &found));
    // ringwise never wrote it, and yet it had another value when it was first found.
    rollback(&sim, &dir, 0, &policy()).unwrap();
    assert!(differing(&start, &look(&sim)).is_empty(), "{:?}", differing(&start, &look(&sim)));
}

#[test]
fn a_kept_manual_value_survives_a_change_of_channels() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth0", 8)).unwrap();
    set_irq_manually(&sim, "eth0", 1, "6");
    set_xps_manually(&sim, "eth0", 2, "7");
    let hands = verify(&sim, &dir).manual_changes();
    let mut wanted = vec![channels("eth0", 4)];
    wanted.extend(layout("eth0", 4).into_iter().filter(|s| !hands.iter().any(|h| h.address() == s.address())));
    let mut request = request(&look(&sim), &wanted);
    request.kept = hands.clone();
    let out = run(&sim, &dir, &request).unwrap();
    assert_eq!((out.verdict, &out.kept), (RunResult::Applied, &hands), "{:?}", out.failed);
    let v = verify(&sim, &dir);
    assert_eq!(
        v.manual_changes().iter().map(|h| &h.setting).collect::<Vec<_>>(),
        hands.iter().map(|h| &h.setting).collect::<Vec<_>>()
    );
}

/// Random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Any number of transactions, manual changes of ringwise's settings, adopts, rollbacks and renames: `rollback 0` restores the
/// host as first found.
#[test]
fn rollback_zero_after_anything() {
    let usual = if ringwise_testkit::lane::everything() { 50 } else { 10 };
    let seeds: u64 = std::env::var("RINGWISE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    for seed in 1..=seeds {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (sim, dir) = (sim(), Dir::new());
        let start = look(&sim);
        let mut names = ["eth0".to_string(), "eth1".to_string()];
        let mut log = Vec::new();
        for n in 0..12 {
            let which = dice.roll(2) as usize;
            let dev = names[which].clone();
            let now = look(&sim);
            let queues = now.nic(&dev).unwrap().tx_queues.len() as u64;
            let q = dice.roll(queues) as u32;
            let cpu = dice.roll(8).to_string();
            // Changes only settings that ringwise manages: others are not restored.
            let touched = verify(&sim, &dir).settings.iter().any(|s| s.want.address() == xps(&dev, q, "0").address());
            match dice.roll(9) {
                0 | 1 => {
                    log.push(format!("apply {dev} {q} {cpu}"));
                    let mut request = request(&now, &[irq(&dev, q, &cpu), xps(&dev, q, &cpu)]);
                    // A plan also lists settings that are right already.
                    let other = xps(&dev, dice.roll(queues) as u32, "0").address().unwrap();
                    let right = ringwise_knob::live(&now, &other).known().cloned();
                    request.already =
                        right.filter(|s| s.address() != xps(&dev, q, "0").address()).into_iter().collect();
                    run(&sim, &dir, &request).unwrap();
                }
                2 => {
                    let to = [2, 3, 4][dice.roll(3) as usize];
                    log.push(format!("channels {dev} {to}"));
                    apply(&sim, &dir, &[channels(&dev, to)]).unwrap();
                    sim.sleep_past_link();
                }
                3 | 4 if touched => {
                    log.push(format!("outside {dev} {q} {cpu}"));
                    set_xps_manually(&sim, &dev, q, &cpu);
                }
                5 => {
                    log.push("adopt".into());
                    adopt(&sim, &dir, &[]).unwrap();
                    let v = verify(&sim, &dir);
                    assert_eq!(v.exit_status(), 0, "seed {seed} {log:?} {:?}", v.drifted().collect::<Vec<_>>());
                }
                6 => {
                    let list = ringwise_apply::history(&dir.store(), &now.host).unwrap();
                    if !list.is_empty() {
                        let id = list[dice.roll(list.len() as u64) as usize].id;
                        log.push(format!("rollback {id}"));
                        let _ = rollback(&sim, &dir, id, &Policy { take_over: true, ..policy() });
                        sim.sleep_past_link();
                    }
                }
                7 => {
                    let new = format!("{}{n}", ["lan", "wan"][which]);
                    log.push(format!("rename {dev} {new}"));
                    sim.rename(&dev, &new);
                    names[which] = new;
                }
                _ => sim.traffic(&dev),
            }
            pass(&sim, 10);
        }
        for (which, first) in ["eth0", "eth1"].into_iter().enumerate() {
            if names[which] != first {
                sim.rename(&names[which], first);
            }
        }
        let out = rollback(&sim, &dir, 0, &policy()).unwrap();
        assert!(
            matches!(out.verdict, RunResult::Applied | RunResult::NothingToDo),
            "seed {seed} {log:?}: {:?}",
            out.failed
        );
        sim.sleep_past_link();
        let left = differing(&start, &look(&sim));
        assert!(left.is_empty(), "seed {seed} {log:?}: {left:?}");
        assert!(verify(&sim, &dir).settings.is_empty(), "seed {seed} {log:?}");
    }
}

/// Runs `wanted` as the service does. Queue `queue` of eth1 is set manually to `cpus` when `at` is written.
fn with_a_change_at(at: &Setting, queue: u32, cpus: &str, keep: bool) -> (Vec<String>, Vec<String>, Verify) {
    let (sim, dir) = (sim(), Dir::new());
    let now = look(&sim);
    let policy = Policy { differs: true, keep_concurrent_changes: keep, ..policy() };
    let mut changed = false;
    let o = ringwise_apply::run(&host(&sim), &request(&now, &layout("eth1", 4)), &dir.store(), &policy, &mut |e| {
        if matches!(e, Event::Writing { setting, .. } if setting == at) && !changed {
            changed = true;
            set_xps_manually(&sim, "eth1", queue, cpus);
        }
    })
    .unwrap();
    assert_eq!((o.verdict, changed), (RunResult::Applied, true));
    let written = o.applied.iter().filter_map(Setting::address).map(|a| a.to_string()).collect();
    (written, o.notes, verify(&sim, &dir))
}

#[test]
fn manual_changes_during_a_transaction_stay_if_requested() {
    let stays = "eth1 tx-2 xps_cpus changed during the transaction, and stays";
    // Before its step, and after it.
    for at in [irq("eth1", 0, "0"), xps("eth1", 3, "3")] {
        let (applied, notes, v) = with_a_change_at(&at, 2, "7", true);
        assert_eq!(notes, [stays]);
        assert!(!applied.iter().any(|a| a == "eth1 tx-2 xps_cpus"));
        let drifted: Vec<String> = v.drifted().map(|s| s.want.address().unwrap().to_string()).collect();
        assert_eq!(drifted, ["eth1 tx-2 xps_cpus"]);
        // Otherwise ringwise corrects it: the host has the requested values at the end.
        let (_, notes, v) = with_a_change_at(&at, 2, "7", false);
        assert_eq!((notes.len(), v.drifted().count()), (0, 0));
    }
}
