//! What `apply`, `verify`, `history` and `status` print for constructed values.

use std::time::Duration;

use crate::common::*;
use ringwise_apply::{
    DriftCause, Ending, Event, Failure, HistoryEntry, NotPutBack, Outcome, Phase, SettingInEffect, TransactionKind,
    Verify,
};
use ringwise_cli::logbook;
use ringwise_knob::{ChangeWindow, Match, Setting, VectorName};
use ringwise_model::{Boot, CpuId, Fact, Snapshot, Unread};
use ringwise_observe::StallKind;
use ringwise_plan::{ProgramCpus, ProgramReport, ProposedFor};
use ringwise_render::manual_changes::{Advice, DriftEvidence};
use ringwise_render::outcome::{self, ValuesBefore};
use ringwise_render::status::{self, HostStatus, StatusOptions, UnrestoredSettings};
use ringwise_render::verify_history::{self, InterruptCount, Observed};
use ringwise_text::Style;

fn irq(q: u32, cpus: &str) -> Setting {
    Setting::IrqCpus { dev: "eth2".into(), of: VectorName::Rx(q), cpus: set(cpus), on: None }
}

fn failure() -> Failure {
    Failure {
        setting: Some(irq(5, "3")),
        errno: Some(28),
        words: "ENOSPC (No space left on device)".into(),
        meaning: "no interrupt vector is left on that CPU".into(),
        path: Some("/proc/irq/39/smp_affinity_list".into()),
        data: Some("3".into()),
        late: false,
    }
}

fn outcome(verdict: &str) -> Outcome {
    let failed = if verdict == "applied" { serde_json::Value::Null } else { serde_json::to_value(failure()).unwrap() };
    let left = serde_json::json!([{
        "address": irq(3, "14").address(), "was": irq(3, "12"), "now": Fact::<Setting>::Absent,
        "why": "ENODEV (No such device)", "command": "echo 12 > /proc/irq/37/smp_affinity_list",
    }]);
    let left = if verdict == "put_back_incomplete" { left } else { serde_json::json!([]) };
    serde_json::from_value(serde_json::json!({
        "schema": "ringwise.outcome", "version": 1, "verdict": verdict, "transaction": 13, "changed": true,
        "applied": [irq(0, "8"), irq(1, "10")], "already_so": [], "pending": [irq(1, "10").address()],
        "adjusted_by_driver": [], "refused": [], "ignored": [], "side_effects": [], "failed": failed,
        "put_back": [], "put_back_incomplete": left, "verified": 40, "verified_of": 41, "notes": [], "took_ms": 940,
    }))
    .unwrap()
}

#[test]
fn a_line_as_it_happens() {
    let before: ValuesBefore = [(irq(0, "8").address().unwrap(), "0-15".to_string())].into();
    let style = Style::plain(Some(80));
    let done = |setting: Setting, how: Match| Event::Done {
        phase: Phase::Apply,
        now: setting.clone(),
        setting,
        how,
        took: Duration::from_millis(2),
    };
    let events = [
        Event::Begun { transaction: 13, steps: 41 },
        done(irq(0, "8"), Match::Same),
        done(irq(1, "10"), Match::Pending),
        Event::Failed { phase: Phase::Apply, failure: failure() },
        Event::PuttingBack { why: "eth2 interrupt CPU rx-5 failed".into() },
        Event::Done {
            phase: Phase::PutBack,
            setting: irq(0, "0-15"),
            now: irq(0, "0-15"),
            how: Match::Same,
            took: Duration::from_secs(1),
        },
        Event::Verified { phase: Phase::PutBack, ok: 41, of: 41, pending: vec![] },
    ];
    let text: Vec<String> = events.iter().filter_map(|e| outcome::event(e, &before, "14:02:07", &style)).collect();
    golden("events.txt", &(text.join("\n") + "\n"));
}

#[test]
fn what_came_of_it() {
    let style = Style::plain(Some(80));
    let mut all = String::new();
    for v in ["applied", "put_back", "recovered", "put_back_incomplete"] {
        all.push_str(&format!("== {v}\n{}", outcome::summary(&outcome(v), outcome::Run::Apply, &style)));
    }
    golden("outcomes.txt", &all);
}

fn drift() -> Verify {
    let standing = |q: u32, want: &str, now: &str, how: Match| SettingInEffect {
        transaction: 12,
        unix_time: 1_795_183_300,
        adopted: false,
        want: irq(q, want),
        now: Fact::Known(irq(q, now)),
        changed: (how == Match::Differs).then_some(ChangeWindow { after: 1_795_183_330, by: Some(1_795_183_360) }),
        how,
    };
    Verify {
        schema: "ringwise.verify".into(),
        version: 1,
        settings: vec![
            standing(0, "8", "8", Match::Same),
            standing(1, "10", "10", Match::Pending),
            standing(3, "14", "12", Match::Differs),
        ],
        unfinished: None,
        running: None,
        newer: vec![],
        made: vec![],
        trial: None,
    }
}

fn entry(id: u64) -> HistoryEntry {
    HistoryEntry {
        id,
        kind: if id == 13 { TransactionKind::Rollback { before: 12 } } else { TransactionKind::Apply },
        title: ringwise_model::Title::Goal { goal: ringwise_model::Goal::Forward },
        who: "root".into(),
        command: "ringwise apply --goal forward --yes".into(),
        argv: Vec::new(),
        requested: None,
        reason: Some("CHG-4711".into()),
        unix_time: 1_795_183_327,
        this_boot: true,
        elsewhere: None,
        devices: vec!["eth2".into()],
        steps: 3,
        ending: if id == 14 { Ending::Unfinished } else { Ending::Kept },
        undone_by: (id == 11).then_some(13),
        trial: None,
        stuck: Vec::new(),
        damaged: 0,
        outcome: None,
        undo: vec!["echo 0-15 > /proc/irq/37/smp_affinity_list".into()],
        path: "/var/lib/ringwise/tx-0012.jsonl".into(),
    }
}

#[test]
fn drift_is_reported_setting_by_setting() {
    let style = Style::plain(Some(80));
    let seen = |q: u32, planned: &str, on: Option<&str>, n: Option<u64>| InterruptCount {
        dev: "eth2".into(),
        queue: format!("rx-{q}"),
        planned: set(planned),
        seen_on: on.map(set),
        interrupts: n,
        packets: None,
        stuck: None,
        polled: false,
        polled_on: None,
    };
    let counted = [
        seen(0, "8", Some("8"), Some(9120)),
        seen(1, "10", Some(""), Some(0)),
        seen(3, "14", Some("12"), Some(7)),
        seen(4, "9", None, None),
        // A queue without interrupts that is not idle.
        InterruptCount {
            packets: Some(81_000),
            polled: true,
            polled_on: Some(CpuId(4)),
            ..seen(5, "11", Some(""), Some(0))
        },
        InterruptCount {
            stuck: Some(StallKind::NothingCompleted { ms: 3000, bytes: 3028 }),
            ..seen(6, "13", Some(""), Some(0))
        },
    ];
    let advice = Advice {
        again: Some("ringwise apply --goal forward".into()),
        last: Some(12),
        evidence: DriftEvidence { devices: vec![("eth2".into(), DriftCause::Nothing)], rivals: Some(vec![]) },
        now: Some(1_795_183_400),
    };
    let programs = programs();
    let (observed, none) =
        (Observed { counted: Some((&counted, 5.0)), programs: Some(&programs) }, Observed::default());
    golden("verify.txt", &verify_history::verify("edge3", &drift(), &observed, &advice, &style));
    // A reviewed plan was applied, so no flags request the same again.
    let text = verify_history::verify("edge3", &drift(), &none, &Advice { again: None, ..advice }, &style);
    assert!(text.contains("Put back: run the apply command from ringwise history 12 again"), "{text}");
    assert!(text.contains("Keep:     ringwise adopt"), "{text}");
    let mut good = drift();
    good.settings.truncate(1);
    let text = verify_history::verify("edge3", &good, &none, &Advice::default(), &style);
    assert_eq!(text, "edge3: 1 of 1 settings as applied by transaction 12\n");
    good.settings.clear();
    good.unfinished = Some(14);
    assert!(verify_history::verify("edge3", &good, &none, &Advice::default(), &style).contains("ringwise recover"));
}

/// One program as proposed, two others, and a process that could not be examined.
fn programs() -> ProgramReport {
    let one = |name: &str, pids: &[u32], allowed: &str, group: Option<&str>| {
        let proposed_for = vec![ProposedFor { dev: "eth2".into(), group: group.map(str::to_string) }];
        let (allowed, proposed) = (set(allowed), set("4-7"));
        let as_proposed = allowed.is_subset(&proposed);
        let proposed_for_many = group.is_none().then(|| set("4-7,12-15"));
        ProgramCpus {
            name: name.into(),
            pids: pids.to_vec(),
            proposed_for,
            allowed,
            proposed,
            proposed_for_many,
            as_proposed,
        }
    };
    ProgramReport {
        list: vec![
            one("nginx", &[812], "4-7", None),
            one("postgres", &[900, 901, 902, 903, 904], "0-15", None),
            one("cached", &[950], "3", Some("latency")),
        ],
        unread: Some(Unread::new("/proc/77/fd", Some(13), "EACCES (Permission denied)")),
        unplanned: vec![],
    }
}

#[test]
fn history_newest_first() {
    let list: Vec<HistoryEntry> = (11..=14).map(entry).collect();
    let style = Style::plain(Some(100));
    golden(
        "history.txt",
        &(verify_history::history(&list, false, &style) + "\n" + &verify_history::entry(&list[1], &style)),
    );
    assert!(verify_history::history(&[], false, &style).contains("ringwise plan"));
}

#[test]
fn repeated_transactions_of_the_service_share_a_line() {
    let keep = |id, dev: &str| HistoryEntry {
        title: ringwise_model::Title::Keep { devs: vec![dev.into()] },
        kind: TransactionKind::Apply,
        ending: Ending::Kept,
        undone_by: None,
        devices: vec![dev.into()],
        reason: None,
        ..entry(id)
    };
    let list = [entry(15), keep(16, "eth0"), keep(17, "eth1"), keep(18, "eth0"), entry(19), keep(20, "eth0")];
    let style = Style::plain(Some(100));
    let ids = |all| {
        let text = verify_history::history(&list, all, &style);
        text.lines().skip(1).map(|l| l.split_whitespace().next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(false), ["20", "19", "16-18", "15", "0"]);
    assert_eq!(ids(true), ["20", "19", "18", "17", "16", "15", "0"]);
    let text = verify_history::history(&list, false, &style);
    assert!(text.contains("keep eth0 eth1, 3 times, 9 changes"), "{text}");
}

#[test]
fn the_first_screen() {
    let style = Style::plain(Some(80));
    let s = edge3();
    let st = HostStatus { verify: Some(drift()), last: Some(entry(12)), ..HostStatus::default() };
    assert!(status::needs_attention(&st));
    golden("status.txt", &status::page(&s, &st, StatusOptions::default(), &style));
    let st = HostStatus { unreadable: Some("/var/lib/ringwise: permission denied".into()), ..HostStatus::default() };
    assert!(status::page(&s, &st, StatusOptions::default(), &style).contains("permission denied"));
    // Unknown state is not shown as success.
    assert!(status::needs_attention(&st));
}

#[test]
fn what_the_next_boot_applies() {
    let of = |boot: Boot| {
        let st = HostStatus { verify: Some(drift()), boot: Some(boot), ..HostStatus::default() };
        let page = status::page(&edge3(), &st, StatusOptions::default(), &Style::plain(Some(120)));
        page.lines().find_map(|l| l.strip_prefix("boot")).unwrap().trim().to_string()
    };
    let config = || "/etc/ringwise/ringwise.toml".to_string();
    assert_eq!(of(Boot::Nothing), "settings are lost at reboot");
    assert_eq!(of(Boot::Applies { config: config() }), format!("{} is applied (ringwise.service)", config()));
    let service = Boot::Service { config: Some(config()) };
    assert_eq!(serde_json::to_value(&service).unwrap(), serde_json::json!({ "service": { "config": config() } }));
    assert_eq!(of(service), format!("{} is applied, and kept (ringwise-daemon.service)", config()));
    let without = of(Boot::Service { config: None });
    assert_eq!(without, "settings are lost at reboot; until then ringwise-daemon.service keeps them");
}

#[test]
fn the_first_line_shows_whether_anything_is_wrong() {
    let page = |s: &Snapshot, st: &HostStatus| status::page(s, st, StatusOptions::default(), &Style::plain(Some(100)));
    let first = |s: &Snapshot, st: &HostStatus| page(s, st).lines().next().unwrap().to_string();
    let mut st = HostStatus { verify: Some(drift()), last: Some(entry(12)), ..HostStatus::default() };
    assert_eq!(first(&edge3(), &st), "Needs attention: 1 of 3 settings differ from what was applied (eth2)");
    let nothing = Some(Verify { settings: Vec::new(), ..drift() });
    st.verify = nothing.clone();
    assert_eq!(
        first(&edge3(), &st),
        "Could be better: eth1 has 4 queues on CPU 0, 2 queues on a remote node; also eth2"
    );
    assert!(page(&edge3(), &st).ends_with("Next: ringwise check\n      ringwise show eth1\n"));
    // Interrupts that ringwise has placed are where they were requested.
    let mut placed = drift();
    placed.settings.truncate(1);
    st.verify = Some(placed);
    assert!(!page(&edge3(), &st).contains("eth2 has"));
    // A problem comes before everything else.
    st = HostStatus { half_way: Some(12), verify: nothing.clone(), ..HostStatus::default() };
    assert_eq!(first(&edge3(), &st), "Needs attention: transaction 12 is not fully restored");
    st.half_way = None;
    assert_eq!(
        first(&big64(), &st),
        "Interrupts of 1 interface: none on a remote or isolated CPU; ringwise check looks at the rest"
    );
    assert!(page(&big64(), &st).ends_with("Next: ringwise check\n      ringwise plan\n"));
    let how = StatusOptions { better_goal: Some(ringwise_model::Goal::Forward), ..StatusOptions::default() };
    let router = status::page(&big64(), &st, how, &Style::plain(Some(100)));
    assert!(router.ends_with("Next: ringwise check\n      ringwise plan --goal forward\n"), "{router}");
}

/// Two queues on the threads of one core, while another local core has none: `check` reports A04 then. An interrupt that is
/// pinned to another core and has not moved yet counts as there.
#[test]
fn the_first_line_names_a_shared_core() {
    let line = |s: &Snapshot| {
        let style = Style::plain(Some(100));
        status::page(s, &HostStatus::default(), StatusOptions::default(), &style).lines().next().unwrap().to_string()
    };
    let mut s = edge3();
    s.nics.retain(|n| n.name() == "eth1");
    let n = &mut s.nics[0];
    n.vectors.retain(|v| v.is_queue());
    let siblings = s.topology.siblings_of(CpuId(2));
    assert_eq!(siblings.len(), 2);
    // Four queues on two cores.
    n.vectors.truncate(4);
    let others = s.topology.siblings_of(CpuId(4));
    for (v, cpu) in n.vectors.iter_mut().zip(siblings.iter().chain(others.iter())) {
        v.effective = Fact::Known([cpu].into_iter().collect());
        v.asked = v.effective.clone();
    }
    let both = siblings.union(&others);
    assert_eq!(line(&s), format!("Could be better: eth1 has 4 queues on only 2 cores (CPUs {both})"));
    let n = &mut s.nics[0];
    n.vectors.truncate(2);
    for (v, cpu) in n.vectors.iter_mut().zip(siblings.iter()) {
        v.effective = Fact::Known([cpu].into_iter().collect());
        v.asked = v.effective.clone();
    }
    assert_eq!(line(&s), format!("Could be better: eth1 has 2 queues on one core (CPUs {siblings})"));
    s.nics[0].vectors[1].asked = Fact::Known(set("4"));
    assert!(line(&s).starts_with("Interrupts of 1 interface: none on a remote or isolated CPU"), "{}", line(&s));
}

/// Devices with the same message, the same gain or the same skipped change share a line.
#[test]
fn a_plan_for_many_interfaces_repeats_nothing() {
    let file = "../../fixtures/hosts/lab-router16-6.12/capture.tar.gz";
    let page = |goal: &str| {
        let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_ringwise"));
        let out = run.args(["plan", "--goal", goal, "--from", file]).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let mixed = page("mixed");
    let begin = |b: &str| mixed.lines().filter(|l| l.starts_with(b)).count();
    assert!(begin("Warning: ") + begin("Note: ") + begin("x ") <= 12, "{mixed}");
    assert!(mixed.contains("\nNote: eth0 eth1 eth2 mq0 mq1 mq2 mq3: no flows are steered to groups yet"), "{mixed}");
    assert!(mixed.contains("\nx eth0 eth1 mq0 mq1 mq2 mq3 moderation of single queues: "), "{mixed}");
    let better = "\nBetter:\n  CPUs in no XPS mask of eth0: 0 instead of 16 (same for eth1 eth2 mq0 mq1 mq2 mq3)\n";
    let costs = "\nCosts:\n  interrupts on a remote node: 16 of 54 instead of 2: ";
    assert!(mixed.contains(better) && mixed.contains(costs), "{mixed}");
    assert!(mixed.contains("\n107 changes on eth0 eth1 eth2 eth3 mq0 mq1 mq2 mq3, 159 settings checked. "), "{mixed}");
    let forward = page("forward");
    let command = format!("      ringwise plan --goal forward --allow-disruption --from {file}\n");
    assert_eq!(forward.matches(&command).count(), 1, "{forward}");
    assert!(forward.contains("\nSkipped because it interrupts traffic:\n  eth0 eth1  pause frames "), "{forward}");
}

#[test]
fn unrestored_settings_need_attention() {
    let ended = |id: u64, ending: Ending| HistoryEntry { ending, undone_by: None, ..entry(id) };
    let stuck = [ended(11, Ending::Kept), ended(12, Ending::PutBackIncomplete)];
    assert_eq!(verify_history::to_recover(&stuck).map(|e| e.id), Some(12));
    // A later transaction has overridden it.
    let later = [stuck[0].clone(), stuck[1].clone(), ended(13, Ending::Kept)];
    assert!(verify_history::to_recover(&later).is_none());
    let cut = [stuck[0].clone(), ended(12, Ending::Unfinished)];
    assert_eq!(verify_history::to_recover(&cut).map(|e| e.id), Some(12));
    let verify = Some(Verify { settings: Vec::new(), ..drift() });
    let st = HostStatus { half_way: Some(12), verify, ..HostStatus::default() };
    assert!(status::needs_attention(&st));
    let text = status::page(&edge3(), &st, StatusOptions::default(), &Style::plain(Some(80)));
    assert!(text.contains("transaction 12 failed and is not fully restored: ringwise recover"), "{text}");
    assert!(text.ends_with("Next: ringwise recover\n"), "{text}");
}

#[test]
fn what_waits_for_an_offline_cpu_is_named() {
    let left = NotPutBack {
        address: irq(3, "3").address().unwrap(),
        was: irq(3, "3"),
        now: Fact::Known(irq(3, "0-2")),
        why: "CPU 3 is offline".into(),
        command: Some("echo 3 > /proc/irq/37/smp_affinity_list".into()),
        offline: set("3"),
    };
    let mut o = outcome("applied");
    (o.put_back_incomplete, o.waiting) = (Vec::new(), vec![left.clone()]);
    assert_eq!(o.exit_status(), 3);
    let style = Style::plain(Some(100));
    let text = outcome::summary(&o, outcome::Run::RollBack, &style);
    let said = "1 setting not restored yet:\n  eth2 interrupt CPU rx-3 was 3, now 0-2: CPU 3 is offline\n";
    assert!(text.contains(said) && text.contains("When CPU 3 is online again: ringwise recover\n"), "{text}");
    let line = logbook::outcome(&o).unwrap();
    assert!(line.message.ends_with("1 waiting for offline CPUs"), "{}", line.message);
    // Like settings that could not be put back, it has no command that would work now.
    let mut o = outcome("put_back_incomplete");
    o.put_back_incomplete = vec![left];
    let text = outcome::summary(&o, outcome::Run::Apply, &style);
    assert!(text.contains("when CPU 3 is online again:  ringwise recover") && !text.contains("echo 3"), "{text}");
    // Status 3 only after recovery has become possible.
    for (ready, offline) in [(false, "3"), (true, "")] {
        let waiting = Some(UnrestoredSettings { transaction: 13, settings: 1, offline: set(offline), ready });
        let verify = Some(Verify { settings: Vec::new(), ..drift() });
        let st = HostStatus { waiting, verify, ..HostStatus::default() };
        assert_eq!(status::needs_attention(&st), ready);
        let text = status::page(&edge3(), &st, StatusOptions::default(), &Style::plain(None));
        let said = if ready {
            "can be restored now that a CPU is online again: ringwise recover"
        } else {
            "when CPU 3 is online again"
        };
        assert!(text.contains(said), "{text}");
        assert_eq!(text.ends_with("Next: ringwise recover\n"), ready, "{text}");
    }
}
