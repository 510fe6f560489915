//! Documents for programs match their schemas, and schemas do not change unnoticed.

use std::hash::Hasher as _;
use std::path::Path;
use std::process::Command;

use crate::common::plans::edge3_plan;
use crate::common::schema::check;
use crate::common::*;
use ringwise_apply::{
    Ending, Failure, HistoryEntry, Holder, Ignored, Newer, NotPutBack, OnTrial, Outcome, Pending, Refused, RunResult,
    SettingInEffect, TransactionKind, TrialResult, Verify,
};
use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{ChangeWindow, Learned, ManualChange, Match, Origin, Setting};
use ringwise_model::{
    CpuId, CpuSet, DevId, Fact, Goal, Intent, NotSampled, Sample, SampledCpu, SampledInterface, SampledQueue, Snapshot,
    Subject, TrafficSample, Unread,
};
use ringwise_observe::{StallKind, Stuck};
use ringwise_plan::{ProgramCpus, ProgramReport, ProposedFor};
use ringwise_render::json::{Document, snapshot};
use ringwise_render::verify_history::{self, InterruptCount, Observed};
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::build;
use serde_json::{Value, json};

fn holds(name: &str, doc: &Value) {
    let wrong = check(&newest_schema(name), doc);
    assert!(wrong.is_empty(), "{name}: {:#?}", &wrong[..wrong.len().min(10)]);
}

fn run(args: &[&str]) -> Value {
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
    serde_json::from_slice(&o.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&o.stderr)))
}

#[test]
fn snapshots_and_plans_of_every_host() {
    for (name, file) in fixtures() {
        let file = file.display().to_string();
        holds("ringwise.snapshot", &run(&["show", "-j", "--from", &file]));
        holds("ringwise.status", &run(&["-j", "--from", &file]));
        holds("ringwise.check", &run(&["check", "-j", "--fail-on", "never", "--from", &file]));
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(["plan", "-j", "--from", &file]).output().unwrap();
        match o.status.code() {
            Some(0) => holds("ringwise.plan", &serde_json::from_slice(&o.stdout).unwrap()),
            // A host for which no plan is possible is reported as such.
            Some(1) => assert!(!o.stderr.is_empty(), "{name}"),
            other => panic!("{name}: {other:?} {}", String::from_utf8_lossy(&o.stderr)),
        }
    }
}

#[test]
fn capabilities_and_rules() {
    let (_, file) = fixtures().into_iter().find(|(n, _)| n == "lab-router16-newest").unwrap();
    let capabilities = run(&["check", "--capabilities", "-j", "--from", &file.display().to_string()]);
    holds("ringwise.capabilities", &capabilities);
    assert!(capabilities["capabilities"].as_array().is_some_and(|all| all.len() > 10), "{capabilities}");
    let rule = run(&["check", "--explain", "A01", "-j"]);
    holds("ringwise.rule", &rule);
    assert_eq!(rule["id"], "A01");
}

#[test]
fn configuration_files() {
    let d = Dir::named("schemas-config");
    let body = "[host]\ngoal = \"rpc\"\nact_on_load = [\"mq0\"]\n[[interface]]\nmatch = { name = \"eth0\" }\nrings = { rx = 512 }\n";
    let config = d.file("r.toml", &format!("version = 1\n{body}"));
    let checked = run(&["config", "check", &config, "-j"]);
    holds("ringwise.config-check", &checked);
    let counts = ["host_groups", "entries", "settings", "groups"].map(|n| checked[n].as_u64().unwrap());
    assert_eq!((&checked["goal"], counts), (&json!("rpc"), [0, 1, 1, 0]));
    assert_eq!(checked["skipped_without_permission"], json!(["rings"]));
    let empty = d.file("empty.toml", "version = 1\n");
    assert!(run(&["config", "check", &empty, "-j"])["goal"].is_null());
    for (name, file) in fixtures() {
        let shown = run(&["config", "show", &config, "-j", "--from", &file.display().to_string()]);
        holds("ringwise.config-show", &shown);
        assert_eq!((&shown["goal"], &shown["act_on_load"]), (&json!("rpc"), &json!(["mq0"])), "{name}");
    }
    for command in [&["init"][..], &["import"], &["export", "--as", "link", &config]] {
        let refused = run(&[&["config"], command, &["-j"]].concat());
        holds("ringwise.error", &refused);
        assert_eq!(refused["status"], 2, "{refused}");
    }
}

#[test]
fn hand_made_ones_too() {
    holds("ringwise.snapshot", &snapshot(&edge3(), &[]));
    let mut silent = edge3();
    let nic = &mut silent.nics[1];
    (nic.rx_queues, nic.tx_queues, nic.vectors) = (vec![], vec![], vec![]);
    let path = "/sys/class/net/eth1/queues";
    nic.unread = vec![Unread::new(path, Some(13), "permission denied").of(Subject::Queues)];
    let doc = snapshot(&silent, &[]);
    holds("ringwise.snapshot", &doc);
    let found = doc["interfaces"].as_array().unwrap().iter().find(|i| i["name"] == "eth1").expect("eth1 is listed");
    assert_eq!((&found["queues"], &found["queues_unread"]["why"]), (&json!([]), &json!("permission denied")));
    let known = doc["interfaces"].as_array().unwrap().iter().find(|i| i["name"] == "eth2").unwrap();
    assert!(known.get("queues_unread").is_none(), "{known}");
    let mut ruled = edge3();
    let rules =
        ["tcp4 dst-port 443 action 2", "udp6 action -1", "ip4 action -2", "ether vf 1 queue 2", "tcp4 context 1"];
    let rule = |(at, words): (u32, &&str)| (at, ringwise_kfmt::rule::parse_rule(words).unwrap().0);
    let rules = (0..).zip(&rules).map(rule).collect();
    ruled.nics[0].rules = Fact::Known(ringwise_model::Rules { capacity: 64, chooses_location: true, rules });
    holds("ringwise.snapshot", &snapshot(&ruled, &[]));
    let mut plan = edge3_plan(&edge3());
    holds("ringwise.plan", &serde_json::to_value(&plan).unwrap());
    let applied = plan.steps[0].setting.clone();
    let changed = Some(ChangeWindow { after: 1_795_183_330, by: None });
    let hand =
        ManualChange { origin: Origin::ByHand, setting: setting(), applied: applied.clone(), transaction: 3, changed };
    plan.kept = vec![ringwise_plan::KeptChange { hand: hand.clone(), wanted: applied }];
    plan.by_hand = vec![hand];
    let steps = &plan.steps;
    holds("ringwise.adopt", &json!({ "schema": "ringwise.adopt", "version": 2, "settings": steps }));
    let rollback = json!({
        "schema": "ringwise.rollback", "version": 2, "steps": steps, "changed_since": ["eth1 rx-3 rps_cpus"], "notes": ["a note"],
    });
    holds("ringwise.rollback", &rollback);
    let mixed = Intent { goal: Goal::Mixed, sample: Some(sample()), ..Intent::default() };
    let sampled = ringwise_plan::plan(&sampled_host(), &mixed, &[]).unwrap();
    assert_eq!(sampled.sampled.len(), 1);
    let not = Intent { sample: Some(Sample::NotTaken(NotSampled::NotRecorded)), ..mixed };
    let kept = ringwise_plan::plan(&sampled_host(), &not, &[]).unwrap();
    for p in [plan, sampled, kept] {
        holds("ringwise.plan", &serde_json::to_value(p).unwrap());
    }
}

fn sampled_host() -> Snapshot {
    build::host(4, 1).mqnic("eth0", 0, 4).linked().done()
}

/// A second with full frames, on a host with four busy CPUs.
fn sample() -> Sample {
    let cpu = |n| SampledCpu { cpu: CpuId(n), busy_permille: Some(900), interrupt_permille: Some(100) };
    let queue = |n| SampledQueue {
        queue: n,
        packets: Some(250),
        bytes: Some(378_500),
        interrupts: Some(9),
        cpu: Some(CpuId(n)),
    };
    Sample::Taken(TrafficSample {
        duration_ms: 1000,
        cpus: (0..4).map(cpu).collect(),
        interfaces: vec![SampledInterface {
            dev: "eth0".into(),
            frames: Some(1000),
            bytes: Some(1_514_000),
            queues: (0..4).map(queue).collect(),
        }],
    })
}

fn setting() -> Setting {
    Setting::XpsCpus { dev: "eth1".into(), queue: 3, cpus: set("0-3") }
}

fn on_trial(fate: TrialResult) -> OnTrial {
    OnTrial { seconds: 60, until_unix: 1_795_183_387, until_boot_ms: 60_900, fate }
}

fn outcome() -> Outcome {
    let failure = Failure {
        setting: Some(setting()),
        errno: Some(28),
        words: "ENOSPC".into(),
        meaning: "no vector".into(),
        path: Some("/proc/irq/39/smp_affinity_list".into()),
        data: Some("3".into()),
        late: false,
    };
    let doc = json!({
        "schema": "ringwise.outcome", "version": 1, "verdict": "put_back_incomplete", "changed": true,
        "transaction": 13, "applied": [setting()], "already_so": [], "pending": [], "adjusted_by_driver": [],
        "refused": [Refused { asked: setting(), failure: failure.clone() }],
        "ignored": [Ignored { asked: setting(), now: Fact::Absent }], "side_effects": [],
        "failed": failure, "put_back": [], "put_back_incomplete": [NotPutBack {
            address: setting().address().unwrap(), was: setting(), now: Fact::unknown("x", "gone"), why: "gone".into(),
            command: Some("echo 0 > x".into()), offline: set("3"),
        }], "verified": 40, "verified_of": 41, "notes": ["a note"], "took_ms": 900,
        "trial": on_trial(TrialResult::Undone { by: ringwise_apply::UndoneBy::Timer, why: "it was not confirmed within 60 s".into() }),
    });
    serde_json::from_value(doc).unwrap()
}

fn programs() -> ProgramReport {
    let proposed_for = vec![ProposedFor { dev: "eth1".into(), group: Some("latency".into()) }];
    let one = ProgramCpus {
        name: "nginx".into(),
        pids: vec![812],
        proposed_for,
        allowed: set("0-7"),
        proposed: set("3"),
        proposed_for_many: Some(set("2-3")),
        as_proposed: false,
    };
    let unread = Some(ringwise_model::Unread::new("/proc/77/fd", Some(13), "EACCES (Permission denied)"));
    ProgramReport { list: vec![one], unread, unplanned: vec!["eth2 has no link".into()] }
}

#[test]
fn outcomes_verify_history() {
    let o = outcome();
    assert_eq!(o.verdict, RunResult::PutBackIncomplete);
    holds("ringwise.outcome", &serde_json::to_value(&o).unwrap());
    let v = Verify {
        schema: "ringwise.verify".into(),
        version: 1,
        settings: vec![SettingInEffect {
            transaction: 3,
            unix_time: 1_795_183_327,
            adopted: true,
            changed: Some(ChangeWindow { after: 1_795_183_330, by: Some(1_795_183_360) }),
            want: setting(),
            now: Fact::Known(Setting::XpsCpus { dev: "eth1".into(), queue: 3, cpus: CpuSet::new() }),
            how: Match::Differs,
        }],
        unfinished: Some(4),
        running: None,
        trial: Some(Pending {
            transaction: 3,
            trial: on_trial(TrialResult::Pending),
            who: "anna".into(),
            guard: Some(Holder { pid: Some(7), trial_until_unix: Some(9), ..Holder::default() }),
        }),
        made: vec![],
        newer: vec![Newer {
            damaged: false,
            transaction: 5,
            why: "another format".into(),
            path: "/x".into(),
            undo: vec!["echo 1 > /y".into()],
        }],
    };
    let count = |queue: &str, seen_on: &str, polled: bool| InterruptCount {
        dev: "eth1".into(),
        queue: queue.into(),
        planned: set("3"),
        seen_on: Some(set(seen_on)),
        interrupts: Some(7),
        packets: Some(9),
        stuck: None,
        polled,
        polled_on: None,
    };
    let counted = [count("rx-0", "3", false), count("rx-1", "2-3", true)];
    let doc = verify_history::document(&v, &Observed { counted: Some((&counted, 1.5)), programs: Some(&programs()) });
    holds("ringwise.verify", &doc);
    assert_eq!(
        doc["attention"],
        json!(["trial_pending", "settings_changed", "unfinished", "journal_unreadable", "queue_findings"])
    );
    let queues = &doc["counted"]["queues"];
    assert_eq!((&queues[0]["findings"], queues[0]["dev"].as_str()), (&json!([]), Some("eth1")));
    assert_eq!(queues[1]["findings"], json!(["interrupts_elsewhere", "polled_elsewhere"]));
    let mut alone = Verify { settings: vec![], unfinished: None, newer: vec![], ..v.clone() };
    assert_eq!(
        verify_history::document(&alone, &Observed::default())["attention"],
        json!(["trial_pending"]),
        "as applied, on trial"
    );
    assert_eq!(alone.exit_status(), 3);
    alone.trial = None;
    assert_eq!(
        (verify_history::document(&alone, &Observed::default())["attention"].clone(), alone.exit_status()),
        (json!([]), 0)
    );
    let e = HistoryEntry {
        id: 13,
        kind: TransactionKind::Rollback { before: 12 },
        title: ringwise_model::Title::Rollback { of: 12 },
        who: "root".into(),
        command: "ringwise rollback 12".into(),
        argv: Vec::new(),
        requested: None,
        reason: None,
        unix_time: 1_795_183_327,
        this_boot: true,
        elsewhere: Some("it was made on another machine".into()),
        devices: vec!["eth1".into()],
        steps: 3,
        ending: Ending::Closed { why: "another boot".into() },
        trial: Some(on_trial(TrialResult::Confirmed { by: Some("anna".into()) })),
        stuck: vec![
            Stuck { dev: "eth1".into(), queue: 3, how: StallKind::NothingCompleted { ms: 3000, bytes: 3028 } },
            Stuck { dev: "eth1".into(), queue: 4, how: StallKind::TimedOut { times: 1 } },
        ],
        damaged: 2,
        undone_by: None,
        outcome: Some(o),
        undo: vec![],
        path: "/var/lib/ringwise/tx-13.jsonl".into(),
    };
    let doc = Document { schema: "ringwise.history", version: 1, body: json!({ "transactions": [e] }) };
    holds("ringwise.history", &serde_json::to_value(&doc).unwrap());
}

#[test]
fn learned_can_be_listed_and_forgotten() {
    let device = DevId { name: "eth1".into(), ifindex: None, bus_address: None, permanent_mac: None };
    let of = |setting: Setting, what: LearnedWrite| Learned {
        device: device.clone(),
        driver: Some("igb".into()),
        kernel: "6.12.1".into(),
        address: setting.address().unwrap(),
        asked: setting,
        what,
        unix_time: 1_700_000_000,
    };
    let xps = |cpus: &str| Setting::XpsCpus { dev: "eth1".into(), queue: 3, cpus: cpus.parse().unwrap() };
    let channels = Setting::Channels { dev: "eth1".into(), rx: None, tx: None, combined: Some(4) };
    let list = [
        of(channels, LearnedWrite::Refused { errno: 95, words: "Operation not supported".into() }),
        of(xps("3"), LearnedWrite::Ignored { got: xps("") }),
        of(Setting::RssTable { dev: "eth1".into(), table: vec![0, 1] }, LearnedWrite::LinkWentDown { times: 1 }),
    ];
    let dir = std::env::temp_dir().join(format!("ringwise-learned-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("learned.json"), json!({ "format": 1, "learned": list }).to_string()).unwrap();
    let state = dir.display().to_string();
    let doc = run(&["learned", "-j", "--state-dir", &state]);
    holds("ringwise.learned", &doc);
    assert_eq!(doc["learned"].as_array().unwrap().len(), 3);
    let text = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(["learned", "--state-dir", &state]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("refused: Operation not supported")
            && text.contains("reads back as")
            && text.contains("the link went down"),
        "{text}"
    );
    // Another interface is an error, and no entry is removed.
    let other = ["learned", "--forget", "eth7", "--state-dir", &state];
    assert_eq!(Command::new(env!("CARGO_BIN_EXE_ringwise")).args(other).output().unwrap().status.code(), Some(1));
    let doc = run(&["learned", "--forget", "eth1", "-j", "--state-dir", &state]);
    assert_eq!((doc["forgotten"].clone(), doc["learned"].as_array().unwrap().len()), (json!(true), 3));
    assert_eq!(run(&["learned", "-j", "--state-dir", &state])["learned"], json!([]));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let mut doc = snapshot(&edge3(), &[]);
    doc["version"] = json!(2);
    doc["topology"]["online"] = json!(16);
    doc["nics"][0].as_object_mut().unwrap().remove("link");
    let wrong = check(&newest_schema("ringwise.snapshot"), &doc);
    assert_eq!(wrong.len(), 3, "{wrong:#?}");
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    let mut h = ringwise_model::fnv::Fnv::default();
    h.write(bytes);
    h.finish()
}

/// `schemas/LOCK` names every schema with the hash of its text. A released file never changes: what
/// changes gets the next version and a new file. `RINGWISE_BLESS=1` adds lines for new files only.
#[test]
fn a_schema_does_not_change_without_a_new_version() {
    let dir = root().join("schemas");
    let lock = std::fs::read_to_string(dir.join("LOCK")).unwrap_or_default();
    let mut lines: Vec<String> = lock.lines().map(str::to_string).collect();
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|n| n.ends_with(".json"))
        .collect();
    names.sort();
    for n in &names {
        let bytes = std::fs::read(dir.join(n)).unwrap();
        let doc: Value = serde_json::from_slice(&bytes).unwrap();
        let id = Path::new(n).file_stem().unwrap().to_string_lossy().into_owned();
        let version = &doc["properties"]["version"]["const"];
        // The configuration file contains only its version, no schema name.
        let want = match doc["properties"]["schema"]["const"].as_str() {
            Some(name) => format!("{name}.v{version}"),
            None => doc["$id"].as_str().unwrap().to_string(),
        };
        assert!(want.ends_with(&format!(".v{version}")), "{n}: {want}");
        assert_eq!(want, id, "{n} carries another name or version");
        let line = format!("{:016x}  {n}", hash(&bytes));
        match lines.iter().find(|l| l.ends_with(&format!("  {n}"))) {
            Some(l) => {
                assert_eq!(*l, line, "{n} changed: raise the version (a new file), or edit schemas/LOCK on purpose")
            }
            None if ringwise_testkit::golden::blessing() => lines.push(line),
            None => panic!("{n} is not in schemas/LOCK; RINGWISE_BLESS=1 adds it"),
        }
    }
    assert_eq!(lines.len(), names.len(), "schemas/LOCK names a file that is not there");
    if ringwise_testkit::golden::blessing() {
        std::fs::write(dir.join("LOCK"), lines.join("\n") + "\n").unwrap();
    }
}
