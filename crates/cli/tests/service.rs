//! What people and programs see of the service: `status`, `history`, metrics, and a `daemon.json` that is not as it should be.

use std::process::{Command, Output};

use crate::common::schema::check;
use crate::common::*;
use ringwise_apply::{Ending, HistoryEntry, ProcessId, TransactionKind};
use ringwise_daemon::ServiceState;
use ringwise_model::Title;
use ringwise_render::status::{self, HostStatus, StatusOptions};
use ringwise_render::verify_history;
use ringwise_testkit::dir::Dir;
use ringwise_text::Style;
use serde_json::{Value, json};

/// A service that has acted, with pauses.
fn document() -> Value {
    let action = |at: u64,
                  id: Option<u64>,
                  cause: &str,
                  devs: &[&str],
                  settings: usize,
                  ending: &str,
                  why: Option<&str>| {
        json!({
            "unix_time": 1_795_183_327 + at, "transaction": id, "cause": cause, "interfaces": devs, "settings": settings,
            "ending": ending, "why": why,
        })
    };
    json!({
        "schema": "ringwise.daemon", "version": 1, "process": { "pid": 1, "started": 1 }, "boot_id": "b0071d",
        "since_unix": 1_795_183_327, "config": "/etc/ringwise/ringwise.toml", "keeps": 41, "paused": false,
        "pauses": [
            { "interface": "eth1", "until_unix": null, "why": "command" },
            { "interface": "eth2", "until_unix": 1_795_187_000, "why": { "competing": { "program": "irqbalance" } } },
            { "interface": "eth3", "until_unix": 1_795_187_001, "why": { "failed": { "why": "ENOSPC (No space left on device)" } } },
        ],
        "manual": [],
        "actions": [
            action(0, Some(12), "configuration", &["eth1", "eth2"], 41, "kept", None),
            action(60, Some(13), "reset", &["eth1"], 12, "kept", None),
            action(4000, Some(14), "cpus", &["eth1", "eth2"], 3, "restored", Some("ENOSPC (No space left on device)")),
            action(4100, None, "appeared", &["eth3"], 0, "refused", Some("eth3 carries your ssh session")),
        ],
        "totals": { "kept": 2, "failed": 2, "settings": 53, "manual": 1, "overflows": 0, "better_tables": 1, "moved_entries": 7, "taken_back": 1,
            "heard": { "links": 7, "ethtool": 2, "netdev": 4, "uevents": 3, "files": 0 },
            "better_interrupts": 1, "moved_interrupts": 3, "interrupts_taken_back": 2, "better_masks": 1, "changed_masks": 2, "masks_taken_back": 1,
            "better_groups": 1, "changed_groups": 3, "groups_taken_back": 2 },
        "problem": null, "deaf": ["netdev: ENOENT (No such file or directory)"],
        "loads": [
            { "interface": "eth1", "unix_time": 1_795_187_400, "finding": { "would_move": {
                "moves": [{ "entry": 5, "from": 1, "to": 6 }, { "entry": 77, "from": 1, "to": 2 }],
                "before_percent": 91, "predicted_percent": 68 } } },
            { "interface": "eth2", "unix_time": 1_795_187_400, "finding": { "uneven": {
                "cpu": 3, "busy_percent": 71, "mean_percent": 30, "why_not": null } } },
            { "interface": "eth3", "unix_time": 1_795_187_400, "finding": { "elephant": {
                "entry": 9, "queue": 4, "percent": 83 } } },
            { "interface": "eth4", "unix_time": 1_795_187_400, "finding": { "would_regroup": {
                "groups": { "from_latency_queues": 2, "to_latency_queues": 5, "of_queues": 8, "from_policy": "bulk",
                    "to_policy": "cpu", "busy_percent": 62 }, "why_not": null } } },
        ],
        "moves": [
            { "interface": "eth1", "actuator": "table", "reason": "uneven_load", "count": 3 },
            { "interface": "eth1", "actuator": "table", "reason": "too_little_gain", "count": 1 },
            { "interface": "eth4", "actuator": "groups", "reason": "traffic", "count": 3 },
        ],
        "no_table_writes": ["eth2"],
    })
}

fn service(change: impl FnOnce(&mut Value)) -> ServiceState {
    let mut doc = document();
    change(&mut doc);
    serde_json::from_value(doc).unwrap()
}

fn host_status(service: ServiceState) -> HostStatus {
    let verify = serde_json::from_value(
        json!({ "schema": "ringwise.verify", "version": 1, "settings": [], "unfinished": null }),
    );
    HostStatus { verify: Some(verify.unwrap()), service: Some(service), ..HostStatus::default() }
}

fn page(service: ServiceState, style: &Style) -> String {
    status::page(&edge3(), &host_status(service), StatusOptions::default(), style)
}

#[test]
fn status_shows_mode_pauses_and_actions() {
    let style = Style::plain(Some(80));
    let text = page(service(|_| {}), &style);
    golden("status-service.txt", &text);
    assert!(
        !status::needs_attention(&host_status(service(|_| {}))),
        "pauses end by themselves, or a person wants them"
    );
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    let verbose = page(service(|_| {}), &Style { verbose: 1, ..style.clone() });
    assert!(verbose.contains("\nunheard     netdev: ENOENT"), "{verbose}");
    // Colours do not change where lines are wrapped.
    let coloured = page(service(|_| {}), &Style { color: true, ..style.clone() });
    assert!(
        coloured.contains(
            "\npaused      \u{1b}[33meth2 until 15:03:20: irqbalance moved its settings back twice\u{1b}[0m\n"
        )
    );
    let text = page(service(|d| d["paused"] = json!(true)), &style);
    assert!(
        text.contains("\nservice     PAUSED: nothing on this host is kept until you run ringwise daemon\n"),
        "{text}"
    );
}

#[test]
fn a_problem_needs_attention() {
    let troubled = || service(|d| d["problem"] = json!("/etc/ringwise/ringwise.toml: line 3: unknown key"));
    assert!(status::needs_attention(&host_status(troubled())));
    let text = page(troubled(), &Style::plain(Some(80)));
    assert!(text.starts_with("Needs attention: the service cannot keep the layout\n"), "{text}");
    assert!(text.contains("\nproblem     /etc/ringwise/ringwise.toml: line 3: unknown key\n"), "{text}");
    assert!(text.ends_with("\nNext: journalctl -e -u ringwise-daemon\n"), "{text}");
    let unread = HostStatus {
        service: None,
        service_unreadable: Some("/run/ringwise/daemon.json: EACCES".into()),
        ..host_status(troubled())
    };
    assert!(status::needs_attention(&unread), "what is unknown is not shown as good");
    let text = status::page(&edge3(), &unread, StatusOptions::default(), &Style::plain(Some(80)));
    assert!(text.contains("\nservice     unknown (/run/ringwise/daemon.json: EACCES)\n"), "{text}");
}

/// What the service could not restore is the last transaction of the journals until a person recovers it.
#[test]
fn an_incomplete_action_needs_attention_until_it_is_recovered() {
    let incomplete = || {
        service(|d| {
            let last = &mut d["actions"][3];
            (last["ending"], last["transaction"]) = (json!("incomplete"), json!(15));
        })
    };
    let mut st = host_status(incomplete());
    assert!(!status::needs_attention(&st), "the journals say that it was recovered");
    st.half_way = Some(15);
    assert!(status::needs_attention(&st));
    let text = status::page(&edge3(), &st, StatusOptions::default(), &Style::plain(None));
    assert!(text.starts_with("Needs attention: transaction 15 is not fully restored\n"), "{text}");
    assert!(text.contains("transaction 15 on eth3 failed and is NOT fully restored"), "{text}");
}

/// Names with control characters, long texts and long lists.
#[test]
fn a_hostile_file_keeps_to_its_lines() {
    let long = "x".repeat(100_000);
    let many: Vec<Value> = (0..5000).map(|n| json!(format!("eth{n}\u{1b}[2J\n{long}"))).collect();
    let hostile = service(|d| {
        d["config"] = json!(format!("/etc/\u{1b}]0;title\u{7}\nNext: curl evil{long}"));
        d["problem"] = json!(format!("a\r\nservice     mode keep{long}"));
        (d["keeps"], d["since_unix"]) = (json!(u64::MAX), json!(u64::MAX));
        for p in d["pauses"].as_array_mut().unwrap() {
            (p["interface"], p["until_unix"]) = (json!(format!("e\u{9b}31m\u{202e}{long}")), json!(u64::MAX));
        }
        d["pauses"][1]["why"] = json!({ "competing": { "program": format!("\u{8}irq\n{long}") } });
        let pause = d["pauses"][1].clone();
        d["pauses"] = json!(vec![pause; 5000]);
        for a in d["actions"].as_array_mut().unwrap() {
            (a["unix_time"], a["settings"], a["interfaces"]) = (json!(u64::MAX), json!(u64::MAX), json!(many));
        }
        d["actions"][3]["why"] = json!(long);
    });
    for style in [Style::plain(Some(80)), Style::plain(None)] {
        let text = page(hostile.clone(), &style);
        assert!(text.len() < 20_000, "{} bytes", text.len());
        let acts = |c: char| c != '\n' && ringwise_model::words::acts(c);
        assert!(!text.contains(acts), "{text:?}");
        assert_eq!(text.lines().filter(|l| l.starts_with("Next: ")).count(), 1, "{text}");
        assert_eq!(text.lines().filter(|l| l.starts_with("service ")).count(), 1, "{text}");
        assert!(text.contains("4,994 interfaces more"), "{text}");
    }
}

fn entry(id: u64, kind: TransactionKind, title: Title, who: &str) -> HistoryEntry {
    HistoryEntry {
        id,
        kind,
        title,
        who: who.into(),
        command: "ringwise".into(),
        argv: Vec::new(),
        requested: None,
        reason: None,
        unix_time: 1_795_183_327,
        this_boot: true,
        elsewhere: None,
        devices: vec!["eth0".into()],
        steps: 3,
        ending: Ending::Kept,
        undone_by: None,
        trial: None,
        stuck: Vec::new(),
        damaged: 0,
        outcome: None,
        undo: Vec::new(),
        path: "/var/lib/ringwise/tx.jsonl".into(),
    }
}

#[test]
fn a_rollback_is_proposed_for_what_a_person_applied() {
    let goal = || Title::Goal { goal: ringwise_model::Goal::Forward };
    let keep = |id| entry(id, TransactionKind::Apply, Title::Keep { devs: vec!["eth0".into()] }, "ringwise daemon");
    let list = [entry(3, TransactionKind::Apply, goal(), "root"), keep(4), keep(5)];
    assert!(!list[0].is_of_service() && list[1].is_of_service());
    let proposed = |list: &[HistoryEntry]| verify_history::to_undo(list).map(|e| e.id);
    assert_eq!(proposed(&list), Some(3), "it also undoes 4 and 5");
    assert_eq!(proposed(&list[1..]), Some(5));
    let undone = HistoryEntry { undone_by: Some(6), ..list[0].clone() };
    let back = entry(6, TransactionKind::Rollback { before: 3 }, Title::Rollback { of: 3 }, "root");
    assert_eq!(proposed(&[undone, back]), None);
    let text = verify_history::history(&list, false, &Style::plain(Some(80)));
    assert!(text.contains(" ringwise daemon  keep eth0, 3 changes") && text.contains(" root "), "{text}");
}

/// `daemon.json` of this process, as if it were the service.
fn running(dir: &Dir, change: impl FnOnce(&mut Value)) {
    let host = ringwise_sys::Real::new().unwrap();
    let mut doc = document();
    doc["process"] = json!(ProcessId::me(&host).unwrap());
    change(&mut doc);
    dir.file("daemon.json", &doc.to_string());
}

fn ringwise(dir: &Dir, args: &[&str]) -> Output {
    let state = dir.0.display().to_string();
    Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).args(["--state-dir", &state]).output().unwrap()
}

fn status_json(dir: &Dir) -> (Option<i32>, Value) {
    let o = ringwise(dir, &["-j"]);
    let doc: Value = serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {o:?}"));
    let wrong = check(&newest_schema("ringwise.status"), &doc);
    assert!(wrong.is_empty(), "{wrong:#?}");
    (o.status.code(), doc)
}

#[test]
fn documents_of_a_service() {
    let wrong = check(&newest_schema("ringwise.daemon"), &serde_json::to_value(service(|_| {})).unwrap());
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What the service finds about interrupts.
    let interrupt = json!({ "queues": [3], "from_cpu": 3, "to_cpu": 9, "programs_percent": 71 });
    let shared = json!({ "queues": [3, 5], "from_cpu": 3, "to_cpu": 9, "programs_percent": null });
    let off = json!({ "queue": 0, "from_cpus": [], "to_cpus": [2, 3, 4, 5], "busy_cpu": 0 });
    let mask = json!({ "queue": 0, "from_cpus": [2, 3, 4, 5], "to_cpus": [2, 3, 5], "busy_cpu": 4 });
    let groups = |to: u32, policy: &str, busy: Option<u32>| {
        json!({ "from_latency_queues": 2, "to_latency_queues": to, "of_queues": 8, "from_policy": "bulk", "to_policy": policy,
            "busy_percent": busy })
    };
    let (both, policy) = (groups(5, "cpu", Some(62)), groups(2, "cpu", None));
    let findings = [
        json!({ "would_move_interrupt": { "interrupt": interrupt, "before_percent": 100, "predicted_percent": 34 } }),
        json!({ "moved_interrupt": { "interrupt": shared, "before_percent": 82, "predicted_percent": 45 } }),
        json!({ "interrupt_taken_back": { "why": "the loads after the step are unknown" } }),
        json!({ "would_change_mask": { "mask": off, "before_percent": 90, "predicted_percent": 45 } }),
        json!({ "changed_mask": { "mask": mask, "before_percent": 100, "predicted_percent": 14 } }),
        json!({ "mask_taken_back": { "why": "the loads after the step are unknown" } }),
        json!({ "would_regroup": { "groups": both, "why_not": "rule 3 would have to be created" } }),
        json!({ "regrouped": { "groups": policy } }),
        json!({ "groups_taken_back": { "why": "the loads after the step are unknown" } }),
    ];
    let texts = findings.map(|finding| {
        let service = service(|d| d["loads"][0]["finding"] = finding);
        let wrong = check(&newest_schema("ringwise.daemon"), &serde_json::to_value(&service).unwrap());
        assert!(wrong.is_empty(), "{wrong:#?}");
        service.loads[0].finding.to_string()
    });
    assert_eq!(
        texts,
        [
            "it would be better to move the interrupt of receive queue 3 from CPU 3 to 9: CPU 3 is busy for 100 % of its time, \
             71 % with programs; CPU 9 will be busy for 34 % (predicted)",
            "moved the interrupt of receive queues 3, 5 from CPU 3 to 9: CPU 3 serves several queues and is busy for 82 % of its \
             time; the busier of both CPUs will be busy for 45 % (predicted)",
            "moved the last interrupt back to its CPU: the loads after the step are unknown",
            "it would be better to change the RPS mask of receive queue 0 from off to CPUs 2-5: CPU 0 is busy for 90 % of its \
             time; the busiest CPU with packets will be busy for 45 % (predicted)",
            "changed the RPS mask of receive queue 0 from CPUs 2-5 to CPUs 2-3,5: CPU 4 is busy for 100 % of its time; the \
             busiest CPU with packets will be busy for 14 % (predicted)",
            "restored the RPS mask from before the last change: the loads after the step are unknown",
            "other groups of queues would suit the traffic: 5 of 8 queues for latency instead of 2, and policy cpu for the bulk \
             queues instead of bulk, whose CPUs are busy for 62 % of their time; not changed: rule 3 would have to be created",
            "changed the groups of queues: policy cpu for the bulk queues instead of bulk",
            "restored the groups of queues from before the last change: the loads after the step are unknown",
        ]
    );
    let dir = Dir::new();
    let (code, doc) = status_json(&dir);
    assert_eq!((code, &doc["service"], &doc["service_unreadable"]), (Some(0), &Value::Null, &Value::Null));
    running(&dir, |_| {});
    let (code, doc) = status_json(&dir);
    assert_eq!((code, &doc["service"]["keeps"]), (Some(0), &json!(41)));
    let wrong = check(&newest_schema("ringwise.daemon"), &doc["service"]);
    assert!(wrong.is_empty(), "{wrong:#?}");
    running(&dir, |d| d["problem"] = json!("the host cannot be read"));
    let (code, doc) = status_json(&dir);
    assert_eq!((code, &doc["needs_somebody"]), (Some(3), &json!(true)));
    // A service that has ended is not shown.
    running(&dir, |d| (d["problem"], d["process"]["started"]) = (json!("the host cannot be read"), json!(1)));
    let (code, doc) = status_json(&dir);
    assert_eq!((code, &doc["service"]), (Some(0), &Value::Null));
}

#[test]
fn metrics_of_a_service() {
    let (dir, out) = (Dir::new(), Dir::new());
    let to = out.0.display().to_string();
    let page = || {
        let o = ringwise(&dir, &["export", "--check-every", "never", "--textfile", &to]);
        assert_eq!(o.status.code(), Some(0), "{o:?}");
        let text = std::fs::read_to_string(out.0.join("ringwise.prom")).unwrap();
        let of = text.lines().filter(|l| l.starts_with("ringwise_service_"));
        of.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(page(), ["ringwise_service_running 0"]);
    running(&dir, |_| {});
    let expected = [
        "ringwise_service_running 1",
        "ringwise_service_start_time_seconds 1795183327",
        "ringwise_service_problem 0",
        "ringwise_service_paused 0",
        "ringwise_service_pauses{reason=\"command\"} 1",
        "ringwise_service_pauses{reason=\"competing\"} 1",
        "ringwise_service_pauses{reason=\"failed\"} 1",
        "ringwise_service_settings_kept 41",
        "ringwise_service_transactions_total{verdict=\"kept\"} 2",
        "ringwise_service_transactions_total{verdict=\"failed\"} 2",
        "ringwise_service_settings_written_total 53",
        "ringwise_service_manual_changes_total 1",
        "ringwise_service_notifications_lost_total 0",
        "ringwise_service_notifications_total{source=\"links\"} 7",
        "ringwise_service_notifications_total{source=\"ethtool\"} 2",
        "ringwise_service_notifications_total{source=\"netdev\"} 4",
        "ringwise_service_notifications_total{source=\"uevents\"} 3",
        "ringwise_service_notifications_total{source=\"files\"} 0",
        "ringwise_service_uneven_load{device=\"eth1\"} 1",
        "ringwise_service_uneven_load{device=\"eth2\"} 1",
        "ringwise_service_uneven_load{device=\"eth3\"} 1",
        "ringwise_service_moves_total{device=\"eth1\",actuator=\"table\",reason=\"uneven_load\"} 3",
        "ringwise_service_moves_total{device=\"eth1\",actuator=\"table\",reason=\"too_little_gain\"} 1",
        "ringwise_service_moves_total{device=\"eth4\",actuator=\"groups\",reason=\"traffic\"} 3",
        "ringwise_service_table_moves_ended{device=\"eth2\",reason=\"link_went_down\"} 1",
        "ringwise_service_better_tables_total 1",
        "ringwise_service_moved_entries_total 7",
        "ringwise_service_table_changes_taken_back_total 1",
        "ringwise_service_better_interrupts_total 1",
        "ringwise_service_moved_interrupts_total 3",
        "ringwise_service_interrupt_moves_taken_back_total 2",
        "ringwise_service_better_rps_masks_total 1",
        "ringwise_service_changed_rps_masks_total 2",
        "ringwise_service_rps_mask_changes_taken_back_total 1",
        "ringwise_service_better_groups_total 1",
        "ringwise_service_changed_groups_total 3",
        "ringwise_service_group_changes_taken_back_total 2",
        "ringwise_service_last_action_timestamp_seconds 1795187427",
    ];
    assert_eq!(page(), expected);
    dir.file("daemon.json", "{");
    assert!(page().is_empty(), "the exporter prints no number for an unknown value");
}

#[test]
fn a_file_that_is_not_one_of_the_service() {
    let dir = Dir::new();
    for text in ["", "{", "[]", "\u{1b}[2J", "{\"schema\":\"ringwise.daemon\"}"] {
        dir.file("daemon.json", text);
        let (code, doc) = status_json(&dir);
        assert_eq!((code, &doc["service"]), (Some(3), &Value::Null), "{text:?}");
        assert!(doc["service_unreadable"].as_str().is_some_and(|w| w.contains("daemon.json")), "{doc}");
    }
    running(&dir, |d| d["config"] = json!("\u{1b}[2J\u{9b}31m"));
    let o = ringwise(&dir, &["status"]);
    let text = String::from_utf8(o.stdout).unwrap();
    assert!(text.contains("\\x1b[2J\\x9b31m") && !text.contains(['\u{1b}', '\u{9b}']), "{text:?}");
}
