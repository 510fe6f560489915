//! Rolling back, verifying, and manual changes of the same settings.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Ending, Policy, Refusal, Request, RunResult, TransactionKind};
use ringwise_knob::{Address, Match, Setting, live};
use ringwise_model::{Goal, Intent, Requested};
use ringwise_testkit::sim::{At, Quirk, Sim, SimulatedFault, build};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).virtio("eth1", 0, 4).done()))
}

fn layout(dev: &str, queues: u32) -> Vec<Setting> {
    (0..queues).flat_map(|q| [irq(dev, q, &q.to_string()), xps(dev, q, &q.to_string())]).collect()
}

fn verify(sim: &Arc<Sim>, dir: &Dir) -> ringwise_apply::Verify {
    ringwise_apply::verify(&host(sim), &dir.store(), &policy()).unwrap()
}

#[test]
fn igb_from_eight_to_four_and_back_with_manual_values_everywhere() {
    let (sim, dir) = (sim(), Dir::new());
    let table: Vec<u32> = (0..128).map(|i| [0, 0, 0, 3, 5][i % 5]).collect();
    sim.ethtool_x("eth0", &table).unwrap();
    let now = look(&sim);
    sim.outside(|h| {
        for (n, v) in now.nic("eth0").unwrap().queue_vectors().enumerate() {
            h.write(&format!("/proc/irq/{}/smp_affinity_list", v.irq), format!("{}\n", 7 - n).as_bytes()).unwrap();
            let xps = format!("/sys/class/net/eth0/queues/tx-{n}/xps_cpus");
            h.write(&xps, format!("{:x}", 1 << (7 - n)).as_bytes()).unwrap();
        }
    });
    let before = look(&sim);
    let mut wanted = vec![channels("eth0", 4)];
    for q in 0..4 {
        wanted.extend([
            irq("eth0", q, &q.to_string()),
            irq_tx("eth0", q, &q.to_string()),
            xps("eth0", q, &q.to_string()),
        ]);
    }
    let mut waited = false;
    let out = ringwise_apply::run(&host(&sim), &request(&before, &wanted), &dir.store(), &policy(), &mut |e| {
        waited |= matches!(e, ringwise_apply::Event::LinkBack { .. });
    })
    .unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert!(waited);
    assert_eq!(verify(&sim, &dir).exit_status(), 0);
    let out = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert!(differing(&before, &look(&sim)).is_empty(), "{:?}", differing(&before, &look(&sim)));
    assert!(verify(&sim, &dir).settings.is_empty());
}

#[test]
fn a_collateral_layout_survives_a_change_of_channels() {
    // Only the channels are requested; the layout of the remaining queues was set outside ringwise.
    for (dev, from, to) in [("eth0", 8, 5), ("eth1", 4, 2)] {
        let (sim, dir) = (sim(), Dir::new());
        apply(&sim, &dir, &layout(dev, from)).unwrap();
        sim.traffic(dev);
        let out = apply(&sim, &dir, &[channels(dev, to)]).unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{dev}: {:?}", out.failed);
        assert!(!out.side_effects.is_empty(), "{dev}");
        let now = look(&sim);
        for s in layout(dev, to) {
            assert!(ringwise_knob::compare(&s, &now).holds(), "{s:?}");
        }
        // What the first transaction requested for queues that the second removed is not drift.
        assert_eq!(
            verify(&sim, &dir).exit_status(),
            0,
            "{dev}: {:?}",
            verify(&sim, &dir).drifted().collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_device_that_forgets_everything_gets_it_back() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic("eth0", 0, 8).done()));
    sim.quirk("eth0", Quirk::Resets);
    let dir = Dir::new();
    let rings =
        Setting::Rings { dev: "eth0".into(), values: ringwise_model::RingValues::sizes(Some(1024), Some(2048)) };
    let moderation = Setting::Coalesce { dev: "eth0".into(), params: [("rx-usecs".to_string(), 7)].into() };
    let mut first = layout("eth0", 8);
    first.extend([rings, moderation, table("eth0", &[0, 0, 1], 128)]);
    apply(&sim, &dir, &first).unwrap();
    let one = look(&sim);
    let out = apply(&sim, &dir, &[channels("eth0", 4)]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    // Four interrupts, the table, the rings, the moderation.
    assert_eq!(out.side_effects.len(), 7, "{:?}", out.side_effects);
    assert_eq!(verify(&sim, &dir).exit_status(), 0, "{:?}", verify(&sim, &dir).drifted().collect::<Vec<_>>());
    assert_eq!(rollback(&sim, &dir, 2, &policy()).unwrap().verdict, RunResult::Applied);
    assert!(differing(&one, &look(&sim)).is_empty(), "{:?}", differing(&one, &look(&sim)));
}

#[test]
fn channels_that_are_accepted_and_ignored_are_put_back() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic("eth0", 0, 8).done()));
    let dir = Dir::new();
    let before = look(&sim);
    sim.fault(SimulatedFault::Ignore { at: At::Matching("channels-set".into()) });
    let mut wanted = vec![channels("eth0", 4)];
    wanted.extend(layout("eth0", 4));
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!((out.verdict, sim.writes()), (RunResult::PutBack, 1));
    assert_eq!(out.failed.unwrap().words, "accepted, but reads back as combined 8");
    assert_eq!(dir.store().learned().unwrap().len(), 0, "nothing is learned from what failed");
    assert!(differing(&before, &look(&sim)).is_empty());
}

#[test]
fn moderation_that_is_rounded_is_no_silent_success() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic("eth0", 0, 8).done()));
    sim.quirk("eth0", Quirk::Rounds);
    let dir = Dir::new();
    let before = look(&sim);
    let moderation = Setting::Coalesce { dev: "eth0".into(), params: [("rx-usecs".to_string(), 33)].into() };
    let out = apply(&sim, &dir, std::slice::from_ref(&moderation)).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{out:?}");
    let Setting::Coalesce { params, .. } = &out.adjusted_by_driver[0].kept else { panic!("{out:?}") };
    assert_eq!(params["rx-usecs"], 32);
    assert!(!differing(&before, &look(&sim)).is_empty());
    // The request stays in effect: nothing has drifted, and nothing is written again.
    let writes = sim.writes();
    assert_eq!(verify(&sim, &dir).exit_status(), 0);
    assert_eq!(apply(&sim, &dir, &[moderation]).unwrap().applied.len(), 0);
    assert_eq!(sim.writes(), writes);
}

#[test]
fn a_manual_ethtool_change_is_found_and_corrected() {
    let (sim, dir) = (sim(), Dir::new());
    let mut wanted = vec![channels("eth0", 6)];
    wanted.extend(layout("eth0", 6));
    apply(&sim, &dir, &wanted).unwrap();
    sim.traffic("eth0");
    assert_eq!(verify(&sim, &dir).exit_status(), 0);
    sim.ethtool_l("eth0", 8).unwrap();
    sim.sleep_past_link();
    let v = verify(&sim, &dir);
    assert_eq!((v.exit_status(), v.drifted().count()), (3, 7), "{:?}", v.drifted().collect::<Vec<_>>());
    assert!(v.drifted().all(|s| s.how == Match::Differs));
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert_eq!(verify(&sim, &dir).exit_status(), 0);
}

#[test]
fn a_rollback_of_one_of_several() {
    let (sim, dir) = (sim(), Dir::new());
    let start = look(&sim);
    apply(&sim, &dir, &layout("eth0", 8)).unwrap();
    let one = look(&sim);
    apply(&sim, &dir, &[rps("eth0", 0, "4-7"), xps("eth0", 0, "7")]).unwrap();
    apply(&sim, &dir, &[channels("eth0", 4), rps("eth0", 0, "1")]).unwrap();
    assert_eq!(verify(&sim, &dir).exit_status(), 0, "{:?}", verify(&sim, &dir).drifted().collect::<Vec<_>>());
    // A rollback to before the second undoes the third as well.
    let out = rollback(&sim, &dir, 2, &policy()).unwrap();
    assert_eq!((out.verdict, out.transaction), (RunResult::Applied, Some(4)), "{:?}", out.failed);
    assert!(differing(&one, &look(&sim)).is_empty(), "{:?}", differing(&one, &look(&sim)));
    // The first is in effect again.
    let v = verify(&sim, &dir);
    assert_eq!((v.settings.len(), v.exit_status()), (16, 0));
    assert!(v.settings.iter().all(|s| s.transaction == 1));
    let history = ringwise_apply::history(&dir.store(), &start.host).unwrap();
    assert_eq!(history.iter().map(|e| e.undone_by).collect::<Vec<_>>(), [None, Some(4), Some(4), None]);
    assert_eq!((&history[3].kind, &history[3].ending), (&TransactionKind::Rollback { before: 2 }, &Ending::Kept));
    let e = rollback(&sim, &dir, 3, &policy()).unwrap_err();
    assert_eq!((e.exit_status(), e.to_string()), (6, "transaction 3 was rolled back already".into()));
    assert!(rollback(&sim, &dir, 9, &policy()).unwrap_err().to_string().contains("no transaction 9"));
    rollback(&sim, &dir, 1, &policy()).unwrap();
    assert!(differing(&start, &look(&sim)).is_empty(), "{:?}", differing(&start, &look(&sim)));
}

#[test]
fn a_rollback_can_be_rolled_back() {
    let (sim, dir) = (sim(), Dir::new());
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    apply(&sim, &dir, &[channels("eth0", 4), rps("eth0", 0, "1")]).unwrap();
    let two = look(&sim);
    rollback(&sim, &dir, 2, &policy()).unwrap();
    assert_eq!(verify(&sim, &dir).settings.len(), 8);
    let out = rollback(&sim, &dir, 3, &policy()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert!(differing(&two, &look(&sim)).is_empty(), "{:?}", differing(&two, &look(&sim)));
    assert_eq!((verify(&sim, &dir).settings.len(), verify(&sim, &dir).exit_status()), (10, 0));
    let undone: Vec<_> =
        ringwise_apply::history(&dir.store(), &two.host).unwrap().iter().map(|e| e.undone_by).collect();
    assert_eq!(undone, [None, None, Some(4), None]);
}

#[test]
fn a_run_under_way_is_not_cut_short() {
    let (sim, dir) = (sim(), Dir::new());
    let now = look(&sim);
    let mut seen = 0;
    ringwise_apply::run(&host(&sim), &request(&now, &layout("eth0", 8)), &dir.store(), &policy(), &mut |e| {
        if matches!(e, ringwise_apply::Event::Done { .. }) {
            seen += 1;
            let entries = ringwise_apply::history(&dir.store(), &now.host).unwrap();
            assert_eq!(entries[0].ending, Ending::Running { pid: Some(std::process::id()) });
            let v = verify(&sim, &dir);
            assert_eq!((v.unfinished, v.running.is_some()), (None, true));
        }
    })
    .unwrap();
    assert_eq!(seen, 16);
    assert_eq!(ringwise_apply::history(&dir.store(), &now.host).unwrap()[0].ending, Ending::Kept);
}

#[test]
fn rollback_zero_is_the_host_as_first_found() {
    let (sim, dir) = (sim(), Dir::new());
    let start = look(&sim);
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    apply(&sim, &dir, &[channels("eth0", 4), rfs(1024)]).unwrap();
    let mut four = vec![xps("eth0", 0, "1")];
    four.extend((0..4).flat_map(|q| [irq("eth0", q, "2"), irq_tx("eth0", q, "3")]));
    apply(&sim, &dir, &four).unwrap();
    rollback(&sim, &dir, 3, &policy()).unwrap();
    let out = rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert!(differing(&start, &look(&sim)).is_empty(), "{:?}", differing(&start, &look(&sim)));
    assert!(verify(&sim, &dir).settings.is_empty());
    sim.forget_writes();
    assert_eq!(rollback(&sim, &dir, 0, &policy()).unwrap().verdict, RunResult::NothingToDo);
    assert_eq!(sim.writes(), 0);
}

#[test]
fn manual_changes_are_not_overwritten_without_a_request() {
    let (sim, dir) = (sim(), Dir::new());
    let start = look(&sim);
    apply(&sim, &dir, &layout("eth1", 4)).unwrap();
    sim.outside(|h| h.write("/sys/class/net/eth1/queues/tx-2/xps_cpus", b"f0")).unwrap();
    sim.forget_writes();
    let e = rollback(&sim, &dir, 1, &policy()).unwrap_err();
    assert_eq!((e.exit_status(), sim.writes()), (6, 0));
    let Some(Refusal::Changed { moved }) = e.refusal() else { panic!("{e}") };
    assert_eq!(moved.iter().map(|m| m.address.to_string()).collect::<Vec<_>>(), ["eth1 tx-2 xps_cpus"]);
    assert!(e.to_string().contains("was 2, is 4-7"), "{e}");
    let out = rollback(&sim, &dir, 1, &Policy { take_over: true, ..policy() }).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    assert!(differing(&start, &look(&sim)).is_empty());
}

#[test]
fn rollback_zero_overwrites_manual_changes_and_reports_them() {
    let (sim, dir) = (sim(), Dir::new());
    sim.ethtool_x("eth0", &(0..128).map(|i| i % 3).collect::<Vec<u32>>()).unwrap();
    let start = look(&sim);
    apply(&sim, &dir, &[channels("eth0", 4)]).unwrap();
    rollback(&sim, &dir, 1, &policy()).unwrap();
    apply(&sim, &dir, &layout("eth0", 8)).unwrap();
    sim.ethtool_l("eth0", 4).unwrap();
    sim.outside(|h| h.write("/sys/class/net/eth0/queues/rx-1/rps_cpus", b"f0")).unwrap();
    let out = rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert!(differing(&start, &look(&sim)).is_empty(), "{:?}", differing(&start, &look(&sim)));
    assert!(out.notes.iter().any(|n| n == "eth0 rx-1 rps_cpus was changed outside ringwise to 4-7"), "{:?}", out.notes);
}

#[test]
fn what_was_put_back_or_is_of_another_boot_cannot_be_rolled_back() {
    let (sim, dir) = (sim(), Dir::new());
    let want = [rps("eth0", 0, "1"), irq("eth0", 0, "99")];
    let mut request = request(&look(&sim), &want);
    request.steps.sort_by_key(|s| matches!(s.setting, Setting::IrqCpus { .. }));
    assert_eq!(run(&sim, &dir, &request).unwrap().exit_status(), 4);
    assert!(rollback(&sim, &dir, 1, &policy()).unwrap_err().to_string().contains("nothing of transaction 1 was kept"));
    apply(&sim, &dir, &[rps("eth0", 0, "1")]).unwrap();
    sim.boot_id("99999999-2222-3333-4444-555555555555");
    assert!(rollback(&sim, &dir, 2, &policy()).unwrap_err().to_string().contains("reboot"));
    assert!(verify(&sim, &dir).settings.is_empty());
}

/// Queues were removed outside ringwise: the original table cannot be restored, but everything else is.
#[test]
fn a_table_for_queues_that_are_gone_does_not_stop_a_rollback() {
    let (sim, dir) = (Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done())), Dir::new());
    let before = look(&sim);
    apply(&sim, &dir, &[table("eth0", &[0, 1], 128), rps("eth0", 0, "1"), xps("eth0", 0, "3")]).unwrap();
    let attrs = ringwise_kfmt::ethtool_nl::channels_set(&ringwise_kfmt::ethtool_nl::ChannelCounts {
        combined: Some(4),
        ..Default::default()
    });
    let cmd = ringwise_kfmt::ethtool_nl::msg::CHANNELS_SET;
    let set = ringwise_sys::Request::EthtoolSet { cmd, name: "channels-set", dev: "eth0".into(), attrs };
    sim.outside(|h| h.kernel(&set).unwrap());
    let out = rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Applied, 3), "{out:#?}");
    let rss = Address::RssTable { dev: "eth0".into() };
    assert_eq!(out.unmet, [rss]);
    assert!(out.notes.iter().any(|n| n.starts_with("eth0 RSS table is not restored")), "{:?}", out.notes);
    let now = look(&sim);
    for a in [rps("eth0", 0, "1"), xps("eth0", 0, "3")].iter().filter_map(Setting::address) {
        assert_eq!(live(&now, &a), live(&before, &a), "{a}");
    }
}

/// The preview lists what the rollback then does, and writes nothing.
#[test]
fn what_a_rollback_would_do() {
    let (sim, dir) = (Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done())), Dir::new());
    apply(&sim, &dir, &[rps("eth0", 0, "1"), xps("eth0", 0, "3")]).unwrap();
    sim.outside(|h| h.write("/sys/class/net/eth0/queues/rx-0/rps_cpus", b"4")).unwrap();
    let (store, now, writes) = (dir.store(), look(&sim), sim.writes());
    for id in [1, 0] {
        let would = ringwise_apply::would_undo(&now, &store, id).unwrap();
        let addresses: Vec<_> = would.steps.iter().filter_map(|s| s.setting.address()).collect();
        assert_eq!(addresses, [xps("eth0", 0, "3"), rps("eth0", 0, "1")].map(|s| s.address().unwrap()));
        // The value as first found is restored, whatever changed it.
        assert_eq!((would.moved.len(), would.notes.len()), if id == 0 { (0, 1) } else { (1, 0) });
    }
    assert!(ringwise_apply::would_undo(&now, &store, 7).is_err());
    assert_eq!(sim.writes(), writes);
    let out = rollback(&sim, &dir, 0, &policy()).unwrap();
    assert_eq!(out.applied.len(), 2, "{out:#?}");
}

/// Nothing has to be written for another goal; that goal takes effect nevertheless, and the host is not changed.
#[test]
fn another_goal_is_on_record_though_it_changes_nothing() {
    let (sim, dir) = (Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done())), Dir::new());
    let before = look(&sim);
    let wanted = rps("eth0", 0, "1");
    apply(&sim, &dir, std::slice::from_ref(&wanted)).unwrap();
    let writes = sim.writes();
    let other = |goal: Goal| {
        let now = look(&sim);
        let devices = vec![now.nic("eth0").unwrap().dev.clone()];
        let request = Request {
            devices,
            already: vec![wanted.clone()],
            title: ringwise_model::Title::Goal { goal },
            requested: Some(Requested { flags: None, intent: Intent { goal, ..Intent::default() } }),
            ..Request::default()
        };
        ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy(), &mut |_| {}).unwrap()
    };
    let out = other(Goal::Balanced);
    assert_eq!((out.verdict, out.transaction, out.changed), (RunResult::Applied, Some(2), false), "{out:#?}");
    assert_eq!(other(Goal::Balanced).verdict, RunResult::NothingToDo);
    assert_eq!(other(Goal::Stream).transaction, Some(3));
    let kept = ringwise_apply::history(&dir.store(), &look(&sim).host).unwrap();
    let goals: Vec<_> = kept.iter().map(|e| e.requested.as_ref().map(|r| r.intent.goal)).collect();
    assert_eq!(goals, [None, Some(Goal::Balanced), Some(Goal::Stream)]);
    assert_eq!(sim.writes(), writes);
    let v = verify(&sim, &dir);
    assert_eq!((v.settings.len(), v.settings[0].transaction), (1, 3));
    // After the rollback the transaction before is in effect again; the value stays until the first of them is undone.
    rollback(&sim, &dir, 3, &policy()).unwrap();
    assert_eq!(verify(&sim, &dir).settings[0].transaction, 2);
    assert_eq!(sim.writes(), writes);
    rollback(&sim, &dir, 1, &policy()).unwrap();
    let address = wanted.address().unwrap();
    assert_eq!(live(&look(&sim), &address), live(&before, &address));
}

/// A driver that resets its device again and again: old journals of the service go, and nothing that matters goes with them.
#[test]
fn journals_of_the_service_are_pruned() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let wanted = layout("eth0", 4);
    apply(&sim, &dir, &wanted).unwrap();
    let keep = |settings: &[Setting]| {
        let title = ringwise_model::Title::Keep { devs: vec!["eth0".into()] };
        let request = Request { title, argv: vec!["x".into()], ..request(&look(&sim), settings) };
        let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy(), &mut |_| {}).unwrap();
        assert_eq!(out.verdict, RunResult::Applied);
    };
    // One that sets a queue which no other transaction sets, and one that sets again what only the first one set.
    keep(&[irq("eth0", 7, "7")]);
    let reset = |queue: usize| {
        let irq = before.nic("eth0").unwrap().queue_vectors().nth(queue).unwrap().irq;
        sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), b"0-7\n").unwrap());
    };
    reset(1);
    keep(&wanted[2..3]);
    for _ in 0..5 {
        reset(0);
        keep(&wanted[..1]);
    }
    let facts = before.host;
    let journals = || ringwise_apply::history(&dir.store(), &facts).unwrap().iter().map(|e| e.id).collect::<Vec<_>>();
    let in_effect = || verify(&sim, &dir).settings.iter().map(|s| (s.want.clone(), s.how.clone())).collect::<Vec<_>>();
    let undo = |id| ringwise_apply::would_undo(&look(&sim), &dir.store(), id).unwrap().steps;
    assert_eq!(journals(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let (effect, back) = (in_effect(), undo(1));
    assert_eq!(ringwise_apply::prune_service(&dir.store(), &facts, 2).unwrap(), 5);
    assert_eq!(journals(), [1, 2, 8], "the only one that set queue 7 stays");
    assert_eq!((in_effect(), undo(1)), (effect, back));
    assert_eq!(ringwise_apply::prune_service(&dir.store(), &facts, 1).unwrap(), 0);
}

/// The service corrected queues of the first transaction after the second one was applied: the second one's rollback is no
/// reason to take the corrections back.
#[test]
fn a_rollback_leaves_what_earlier_transactions_set_and_the_service_corrected() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let wanted = layout("eth0", 4);
    apply(&sim, &dir, &wanted).unwrap();
    apply(&sim, &dir, &[irq("eth0", 6, "6")]).unwrap();
    let vector = before.nic("eth0").unwrap().queue_vectors().next().unwrap().irq;
    sim.outside(|h| h.write(&format!("/proc/irq/{vector}/smp_affinity_list"), b"0-7\n").unwrap());
    let title = ringwise_model::Title::Keep { devs: vec!["eth0".into()] };
    let request = Request { title, argv: vec!["x".into()], ..request(&look(&sim), &wanted[..1]) };
    ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy(), &mut |_| {}).unwrap();
    rollback(&sim, &dir, 2, &policy()).unwrap();
    let v = verify(&sim, &dir);
    assert_eq!((v.settings.len(), v.drifted().count()), (wanted.len(), 0), "{:?}", v.settings);
    let queue_6 = irq("eth0", 6, "6").address().unwrap();
    assert_eq!(live(&look(&sim), &queue_6), live(&before, &queue_6));
    rollback(&sim, &dir, 1, &policy()).unwrap();
    assert!(differing(&before, &look(&sim)).is_empty(), "{:?}", differing(&before, &look(&sim)));
}

/// On igb with one queue, `tx-0/xps_cpus` is not there either.
#[test]
fn what_fewer_channels_removed_is_no_manual_change() {
    for (from, to) in [(2, 1), (4, 2), (8, 5)] {
        let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, from).done()));
        let dir = Dir::new();
        let start = look(&sim);
        apply(&sim, &dir, &layout("eth0", from)).unwrap();
        sim.traffic("eth0");
        let out = apply(&sim, &dir, &[channels("eth0", to)]).unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
        for id in 0..=2 {
            let would = ringwise_apply::would_undo(&look(&sim), &dir.store(), id).unwrap();
            assert!(would.moved.is_empty() && would.notes.is_empty(), "{from} to {to}, {id}: {would:?}");
        }
        let out = rollback(&sim, &dir, 1, &policy()).unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
        assert!(differing(&start, &look(&sim)).is_empty(), "{:?}", differing(&start, &look(&sim)));
    }
}

/// The service moves an entry of the table, as `ringwise daemon --act` does.
fn move_entry(sim: &Arc<Sim>, dir: &Dir, base: &[u32], from: &[u32], to: &[u32]) {
    let table = |t: &[u32]| Setting::RssTable { dev: "eth0".into(), table: t.to_vec() };
    let reason = ringwise_knob::Reason::UnevenLoad { before_percent: 90, predicted_percent: 70 };
    let request = Request {
        title: ringwise_model::Title::Balance { dev: "eth0".into() },
        base: vec![table(base)],
        steps: vec![ringwise_apply::balance_step(table(to), table(from), reason)],
        argv: vec!["x".into()],
        ..Request::default()
    };
    let out = ringwise_apply::run(&host(sim), &request, &dir.store(), &policy(), &mut |_| {}).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
}

/// The table with its first `n` entries on the next queue.
fn shifted(table: &[u32], n: usize) -> Vec<u32> {
    table.iter().enumerate().map(|(i, q)| if i < n { (q + 1) % 8 } else { *q }).collect()
}

fn balanced(sim: &Arc<Sim>, dir: &Dir) -> Vec<(Setting, Setting)> {
    let tables = ringwise_apply::Journals::read(&dir.store()).unwrap().balanced(&look(sim));
    tables.into_iter().map(|t| (t.base, t.moved)).collect()
}

#[test]
fn pruned_moves_keep_their_base() {
    let (sim, dir) = (sim(), Dir::new());
    let base = look(&sim).nic("eth0").unwrap().rss.known().unwrap().table.clone();
    apply(&sim, &dir, &layout("eth0", 4)).unwrap();
    for n in 0..12 {
        move_entry(&sim, &dir, &base, &shifted(&base, n), &shifted(&base, n + 1));
    }
    let (before, effect) = (balanced(&sim, &dir), verify(&sim, &dir));
    let undo = |id| ringwise_apply::would_undo(&look(&sim), &dir.store(), id).unwrap().steps;
    let back = undo(1);
    assert_eq!(before.len(), 1);
    let removed = ringwise_apply::prune_service(&dir.store(), &look(&sim).host, 3).unwrap();
    assert!(removed >= 8, "{removed}");
    assert_eq!(balanced(&sim, &dir), before);
    assert_eq!((verify(&sim, &dir).settings, undo(1)), (effect.settings, back));
    let by = Request { argv: vec!["x".into()], ..Request::default() };
    ringwise_apply::restore_balanced(&host(&sim), &dir.store(), None, &by, &policy()).unwrap();
    assert_eq!(look(&sim).nic("eth0").unwrap().rss.known().unwrap().table, base);
    assert!(balanced(&sim, &dir).is_empty());
}

/// A person applied something else, or a table, between two moves, and takes that back when no service runs any more.
#[test]
fn a_rollback_does_not_bring_moved_entries_back() {
    for with_table in [false, true] {
        let (sim, dir) = (sim(), Dir::new());
        let base = look(&sim).nic("eth0").unwrap().rss.known().unwrap().table.clone();
        let now = || look(&sim).nic("eth0").unwrap().rss.known().unwrap().table.clone();
        let table = |t: &[u32]| Setting::RssTable { dev: "eth0".into(), table: t.to_vec() };
        apply(&sim, &dir, &layout("eth0", 4)).unwrap();
        move_entry(&sim, &dir, &base, &base, &shifted(&base, 1));
        let own: Vec<u32> = (0..base.len() as u32).map(|i| i % 3).collect();
        let third = if with_table { table(&own) } else { irq("eth0", 6, "6") };
        apply(&sim, &dir, std::slice::from_ref(&third)).unwrap();
        if !with_table {
            move_entry(&sim, &dir, &base, &shifted(&base, 1), &shifted(&base, 2));
            let by = Request { argv: vec!["x".into()], ..Request::default() };
            ringwise_apply::restore_balanced(&host(&sim), &dir.store(), None, &by, &policy()).unwrap();
            assert_eq!(now(), base);
        }
        rollback(&sim, &dir, 3, &policy()).unwrap();
        assert_eq!(now(), base, "with a table: {with_table}");
        assert!(balanced(&sim, &dir).is_empty());
        assert_eq!(verify(&sim, &dir).drifted().count(), 0);
    }
}
