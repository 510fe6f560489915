//! A host with igb interfaces: applied, then something happens to it, and the service looks.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_apply::{SettingInEffect, Verify};
use ringwise_kfmt::notification::{InterfaceChange, InterfaceNotification, Uevent};
use ringwise_knob::irqbalance::BannedInterrupts;
use ringwise_knob::{Match, Setting, SettingMap, VectorName, compare, live};
use ringwise_model::{CpuSet, Fact, Rss, Snapshot};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

use crate::evidence::NotificationEvidence;
use crate::keep::{KeepDecision, KeepInput, decide};

fn host() -> Snapshot {
    let nic = |n: &str| NicSpec::new(n, "igb", Some(0), 4, 4);
    machines::host("edge3", CpuSpec::flat(4, 2), vec![nic("eth0"), nic("eth1")]).snapshot()
}

/// One CPU for each queue of eth0.
fn applied() -> Vec<Setting> {
    let irq = |q: u32| Setting::IrqCpus {
        dev: "eth0".into(),
        of: VectorName::Rx(q),
        cpus: CpuSet::from_iter([ringwise_model::CpuId(q)]),
        on: None,
    };
    let xps =
        |q: u32| Setting::XpsCpus { dev: "eth0".into(), queue: q, cpus: CpuSet::from_iter([ringwise_model::CpuId(q)]) };
    (0..4).map(irq).chain((0..4).map(xps)).collect()
}

fn verify(now: &Snapshot, wants: &[Setting]) -> Verify {
    let standing = |want: &Setting| SettingInEffect {
        transaction: 7,
        unix_time: 0,
        adopted: false,
        how: compare(want, now),
        now: live(now, &want.address().unwrap()),
        want: want.clone(),
        changed: None,
    };
    Verify {
        schema: "ringwise.verify".into(),
        version: 1,
        settings: wants.iter().map(standing).collect(),
        unfinished: None,
        running: None,
        trial: None,
        newer: Vec::new(),
        made: Vec::new(),
    }
}

fn look(now: &Snapshot, base: &[Setting], evidence: &NotificationEvidence, anew: &[&str]) -> KeepDecision {
    let v = verify(now, base);
    let anew: BTreeSet<String> = anew.iter().map(ToString::to_string).collect();
    let resting = BTreeSet::new();
    let known = SettingMap::new();
    decide(KeepInput {
        now,
        in_effect: &v,
        base: &v,
        balanced: &[],
        programs: &BTreeSet::new(),
        evidence,
        anew: &anew,
        resting: &resting,
        newly_isolated: &CpuSet::new(),
        known: &known,
    })
}

fn heard(change: InterfaceNotification) -> NotificationEvidence {
    let mut e = NotificationEvidence::default();
    assert!(e.interface(&InterfaceChange { change, ifindex: None, name: Some("eth0".into()) }));
    e
}

fn as_applied() -> Snapshot {
    ringwise_testkit::project::project(&host(), &applied())
}

/// The driver requests its vectors again: all CPUs, no XPS.
fn reset(s: &mut Snapshot) {
    let all = s.topology.online.clone();
    let nic = s.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    for v in nic.vectors.iter_mut().filter(|v| !v.rx().is_empty()) {
        v.asked = Fact::Known(all.clone());
    }
    for q in &mut nic.tx_queues {
        q.xps_cpus = Fact::Known(CpuSet::new());
    }
}

#[test]
fn nothing_to_do_where_everything_is_as_applied() {
    let now = as_applied();
    for e in [
        NotificationEvidence::default(),
        NotificationEvidence::incomplete(),
        heard(InterfaceNotification::Link),
        heard(InterfaceNotification::Rings),
    ] {
        assert_eq!(look(&now, &applied(), &e, &[]), KeepDecision::default());
    }
    // Without a lost setting a new channel count alone is a reason to plan: other queues may be without a CPU.
    let mut fewer = now;
    let nic = fewer.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    nic.rx_queues.truncate(2);
    nic.tx_queues.truncate(2);
    nic.vectors.retain(|v| v.rx().iter().chain(v.tx()).all(|q| *q < 2));
    let t = look(&fewer, &applied(), &heard(InterfaceNotification::Channels), &[]);
    assert_eq!((t.steps.len(), t.plan), (0, BTreeSet::from(["eth0".to_string()])));
    assert!(t.manual.is_empty(), "queues that are gone are no manual changes: {:?}", t.manual);
}

#[test]
fn what_a_reset_has_lost_is_written_again() {
    let mut now = as_applied();
    reset(&mut now);
    for (e, anew) in [
        (heard(InterfaceNotification::Link), &[][..]),
        (NotificationEvidence::default(), &["eth0"][..]),
        (heard(InterfaceNotification::Channels), &[]),
    ] {
        let t = look(&now, &applied(), &e, anew);
        let written: Vec<_> = t.steps.iter().map(|s| s.setting.clone()).collect();
        assert_eq!(written.len(), applied().len(), "{written:?}");
        assert!(applied().iter().all(|s| written.contains(s)) && t.manual.is_empty() && t.plan.is_empty());
        assert!(t.steps.iter().all(|s| s.reason == ringwise_knob::Reason::AppliedBefore { transaction: 7 }));
        let after = ringwise_testkit::project::project(&now, &written);
        assert_eq!(look(&after, &applied(), &e, anew), KeepDecision::default(), "and then there is nothing to do");
    }
}

#[test]
fn manual_changes_stay() {
    let mut now = as_applied();
    let mine = CpuSet::from_iter([ringwise_model::CpuId(6)]);
    let nic = now.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    let index = nic.vectors.iter().position(|v| v.rx() == [2]).unwrap();
    nic.vectors[index].asked = Fact::Known(mine.clone());
    nic.vectors[index].effective = Fact::Known(mine.clone());
    for e in [
        NotificationEvidence::default(),
        NotificationEvidence::incomplete(),
        heard(InterfaceNotification::Link),
        heard(InterfaceNotification::Channels),
    ] {
        let t = look(&now, &applied(), &e, &[]);
        assert!(t.steps.is_empty(), "{e:?}: {:?}", t.steps);
        assert_eq!(t.manual.len(), 1, "{e:?}");
    }
    // Nothing was heard that would explain a default value: then a person has written it.
    let mut now = as_applied();
    reset(&mut now);
    let t = look(&now, &applied(), &NotificationEvidence::default(), &[]);
    assert_eq!((t.steps.len(), t.manual.len()), (0, applied().len()));
    // In the middle of a reset, the change of a person stays and the rest is written again.
    let nic = now.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    nic.vectors[index].asked = Fact::Known(mine);
    let t = look(&now, &applied(), &heard(InterfaceNotification::Link), &[]);
    assert_eq!((t.steps.len(), t.manual.len()), (applied().len() - 1, 1));
}

/// irqbalance was started again and has moved one interrupt so far; the others may follow until the ban is in effect.
#[test]
fn a_lost_ban_covers_interrupts_that_still_hold() {
    let mut now = as_applied();
    let irqbalance = r#"{"pid": 812, "socket": {"known": "/run/irqbalance/irqbalance812.sock"},
        "interval_s": {"known": 10}, "args": {"known": []}, "banned": {"known": []}, "unit": "absent"}"#;
    now.host.irqbalance = Fact::Known(serde_json::from_str(irqbalance).unwrap());
    let ban = Setting::IrqbalanceBan { dev: "eth0".into(), left: BannedInterrupts::All };
    let mut wants = applied();
    wants.push(ban.clone());
    let vector = |now: &mut Snapshot, cpus: u32| {
        let nic = now.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
        let v = nic.vectors.iter_mut().find(|v| v.rx() == [2]).unwrap();
        v.asked = Fact::Known(CpuSet::from_iter([ringwise_model::CpuId(cpus)]));
        v.effective = v.asked.clone();
    };
    vector(&mut now, 6);
    let t = look(&now, &wants, &NotificationEvidence::default(), &[]);
    let written: Vec<_> = t.steps.iter().map(|s| &s.setting).collect();
    assert_eq!(written, [&ban, &applied()[2]]);
    let held: Vec<_> = applied()[..4].iter().enumerate().filter(|(q, _)| *q != 2).map(|(_, s)| s.clone()).collect();
    assert_eq!((t.held, t.manual.len()), (held, 0));
    // It does not answer: who moved the interrupt is unknown.
    let Fact::Known(b) = &mut now.host.irqbalance else { unreachable!() };
    b.banned = Fact::unknown("irqbalance setup", "timed out");
    let t = look(&now, &wants, &NotificationEvidence::default(), &[]);
    assert_eq!((t.held.len(), t.steps.len(), t.manual.len()), (0, 0, 0));
    // What a driver has reset is known all the same.
    let mut reset_by_driver = now.clone();
    reset(&mut reset_by_driver);
    let t = look(&reset_by_driver, &wants, &heard(InterfaceNotification::Link), &[]);
    assert_eq!((t.steps.len(), t.manual.len()), (applied().len(), 0));
    // Nothing has to be held while the ban is in effect.
    let numbers: Vec<u32> = now.nic("eth0").unwrap().vectors.iter().map(|v| v.irq.0).collect();
    let Fact::Known(b) = &mut now.host.irqbalance else { unreachable!() };
    b.banned = Fact::Known(numbers);
    let t = look(&now, &wants, &NotificationEvidence::default(), &[]);
    assert_eq!((t.held.len(), t.steps.len(), t.manual.len()), (0, 0, 1));
}

#[test]
fn a_cpu_that_is_offline_needs_a_new_plan_and_queues_come_home() {
    let mut now = as_applied();
    let gone = ringwise_model::CpuId(3);
    let online: CpuSet = now.topology.online.iter().filter(|c| *c != gone).collect();
    now.topology.online = online.clone();
    let nic = now.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    let v = nic.vectors.iter_mut().find(|v| v.rx() == [3]).unwrap();
    (v.asked, v.effective) = (Fact::Known(online), Fact::Known(CpuSet::from_iter([ringwise_model::CpuId(0)])));
    let mut e = NotificationEvidence::default();
    e.uevent(&Uevent::Cpu { cpu: 3, online: false });
    let t = look(&now, &applied(), &e, &[]);
    assert_eq!((t.steps.len(), t.plan), (0, BTreeSet::from(["eth0".to_string()])));
    assert!(t.manual.is_empty(), "{:?}", t.manual);

    // A user has moved the queue to another CPU meanwhile: that stays.
    let mut moved = now.clone();
    let nic = moved.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    let v = nic.vectors.iter_mut().find(|v| v.rx() == [3]).unwrap();
    v.asked = Fact::Known(CpuSet::from_iter([ringwise_model::CpuId(6)]));
    let t = look(&moved, &applied(), &e, &[]);
    assert_eq!(t.manual.len(), 1, "{:?}", t.manual);
    // The CPU is back before the service looks; the kernel's mask does not have it.
    let mut back = now;
    back.topology.online = as_applied().topology.online;
    let t = look(&back, &applied(), &e, &[]);
    assert_eq!(t.steps.iter().map(|s| s.setting.clone()).collect::<Vec<_>>(), [applied()[3].clone()]);

    // The service had moved the queue to CPU 4; the CPU is online again.
    let elsewhere = Setting::IrqCpus {
        dev: "eth0".into(),
        of: VectorName::Rx(3),
        cpus: CpuSet::from_iter([ringwise_model::CpuId(4)]),
        on: None,
    };
    let now = ringwise_testkit::project::project(&as_applied(), std::slice::from_ref(&elsewhere));
    let mut own = applied();
    own[3] = elsewhere;
    let (in_effect, base) = (verify(&now, &own), verify(&now, &applied()));
    let (none, known) = (BTreeSet::new(), SettingMap::new());
    let t = decide(KeepInput {
        now: &now,
        in_effect: &in_effect,
        base: &base,
        balanced: &[],
        programs: &BTreeSet::new(),
        evidence: &e,
        anew: &none,
        resting: &none,
        newly_isolated: &CpuSet::new(),
        known: &known,
    });
    assert_eq!(t.steps.iter().map(|s| s.setting.clone()).collect::<Vec<_>>(), [applied()[3].clone()]);
    // An interface at rest is skipped.
    let resting = BTreeSet::from(["eth0".to_string()]);
    let t = decide(KeepInput {
        now: &now,
        in_effect: &in_effect,
        base: &base,
        balanced: &[],
        programs: &BTreeSet::new(),
        evidence: &e,
        anew: &none,
        resting: &resting,
        newly_isolated: &CpuSet::new(),
        known: &known,
    });
    assert_eq!(t, KeepDecision::default());
}

#[test]
fn a_table_is_lost_only_if_it_is_the_default_and_something_came_before() {
    let table = |t: Vec<u32>| Setting::RssTable { dev: "eth0".into(), table: t };
    let size = 128;
    let mut now = host();
    let nic = now.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    nic.rss = Fact::Known(Rss {
        table: vec![0; size],
        function: Fact::Absent,
        key: Fact::Absent,
        fields: BTreeMap::new(),
        symmetric: Fact::Absent,
        contexts: Fact::Absent,
    });
    let even: Vec<u32> = (0..size as u32).map(|i| i % 4).collect();
    let blocks: Vec<u32> = (0..size as u32).map(|i| i * 4 / size as u32).collect();
    let weighted: Vec<u32> = (0..size as u32).map(|i| u32::from(i % 4 != 0)).collect();
    let others: Vec<u32> = (0..size as u32).map(|i| u32::from(i % 8 != 0)).collect();
    let with = |t: &[u32]| ringwise_testkit::project::project(&now, &[table(t.to_vec())]);
    let base = [table(weighted.clone())];
    for default in [&even, &blocks] {
        let now = with(default);
        assert_eq!(look(&now, &base, &heard(InterfaceNotification::Link), &[]).steps.len(), 1);
        assert_eq!(look(&now, &base, &heard(InterfaceNotification::Channels), &[]).steps.len(), 1);
        let t = look(&now, &base, &NotificationEvidence::default(), &[]);
        assert_eq!((t.steps.len(), t.manual.len()), (0, 1), "ethtool -X default by a person");
        let t = look(&now, &base, &heard(InterfaceNotification::Rss), &[]);
        assert_eq!((t.steps.len(), t.manual.len()), (0, 1));
    }
    let t = look(&with(&others), &base, &heard(InterfaceNotification::Channels), &[]);
    assert_eq!((t.steps.len(), t.manual.len()), (0, 1), "another table is a choice");
}

#[test]
fn a_context_is_lost_only_when_the_device_was_set_up_again() {
    let mut now = host();
    let nic = now.nics.iter_mut().find(|n| n.dev.name == "eth0").unwrap();
    nic.rss = Fact::Known(Rss {
        table: vec![0; 128],
        function: Fact::Absent,
        key: Fact::Absent,
        fields: BTreeMap::new(),
        symmetric: Fact::Absent,
        contexts: Fact::Known(BTreeMap::new()),
    });
    let base = [Setting::RssContext { dev: "eth0".into(), context: 1, table: Some(vec![0, 1]), key: None }];
    let t = look(&now, &base, &NotificationEvidence::default(), &["eth0"]);
    assert_eq!((t.steps.len(), t.manual.len()), (1, 0), "{t:?}");
    let t = look(&now, &base, &heard(InterfaceNotification::Link), &[]);
    assert_eq!((t.steps.len(), t.manual.len()), (0, 1), "a person removed it");
}

#[test]
fn traffic_is_interrupted_only_where_the_device_was_set_up_again() {
    let now = host();
    let channels = |n: u32| Setting::Channels { dev: "eth0".into(), rx: None, tx: None, combined: Some(n) };
    let base = [channels(2)];
    let t = look(&now, &base, &heard(InterfaceNotification::Channels), &[]);
    assert_eq!((t.steps.len(), t.manual.len()), (0, 1), "ethtool -L by a user: the new count stays");
    let t = look(&now, &base, &NotificationEvidence::default(), &["eth0"]);
    assert_eq!(
        t.steps.iter().map(|s| (s.setting.clone(), s.interrupts_traffic)).collect::<Vec<_>>(),
        [(channels(2), true)]
    );
}

/// A layout that was applied on an isolated CPU is meant so; one whose CPU was isolated later is not.
#[test]
fn queues_leave_only_cpus_that_were_isolated_later() {
    let now = host();
    let mut v = verify(&now, &applied());
    v.settings.iter_mut().for_each(|s| s.how = Match::Same);
    let own = applied().iter().find_map(|s| match s {
        Setting::IrqCpus { cpus, .. } => Some(cpus.clone()),
        _ => None,
    });
    let own = own.unwrap();
    let mut e = NotificationEvidence::default();
    e.cpus = true;
    let (none, known) = (BTreeSet::new(), SettingMap::new());
    let plan = |newly_isolated: &CpuSet| {
        let look = KeepInput {
            now: &now,
            in_effect: &v,
            base: &v,
            balanced: &[],
            programs: &BTreeSet::new(),
            evidence: &e,
            anew: &none,
            resting: &none,
            newly_isolated,
            known: &known,
        };
        decide(look).plan
    };
    assert_eq!(plan(&own), BTreeSet::from(["eth0".to_string()]));
    assert_eq!(plan(&CpuSet::new()), BTreeSet::new());
}
