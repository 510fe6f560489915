//! Tests with secrets in every place that a capture and a support archive read: the recording contains all of them, and
//! the archive none.

mod host;
mod plants;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ringwise_intent::{AppliedRecord, STANDING_FILE};
use ringwise_sys::{CaptureRecorder, Captured, Host, Recording};
use ringwise_testkit::dir::Dir;
use serde_json::Value;

use super::*;
use crate::args::{CheckArgs, Common};
use crate::cmd::transaction::store;
use crate::cmd::{capture, support};
use crate::source::Source;
use host::Planted;
use plants::{Archive, Plant, Plants};

fn common(state: &Dir) -> Common {
    Common { quiet: true, state_dir: Some(state.0.clone()), ..Common::default() }
}

/// What `capture` records of this host, and its knowledge for the redaction.
fn captured(host: &Arc<Planted>, common: &Common) -> (Recording, Knowledge) {
    let recorder = Arc::new(CaptureRecorder::new(host::Shared(host.clone())));
    let s = capture::record(&(recorder.clone() as Arc<dyn Host>)).unwrap();
    let mut recording = recorder.finish();
    ringwise_discover::forget_others(&mut recording);
    let text = AppliedRecord::text(&s, &store(common)).expect("something is in effect");
    recording.files.insert(STANDING_FILE.into(), Ok(text.into_bytes()));
    (recording, knowledge(&s, Vec::new()))
}

/// The same for `support`.
fn supported(host: &Arc<Planted>, common: &Common, log: &str) -> (Recording, Knowledge) {
    let recorder = Arc::new(CaptureRecorder::new(host::Shared(host.clone())));
    let shared: Arc<dyn Host> = recorder.clone();
    let s = capture::record(&shared).unwrap();
    let _ = shared.read("/etc/os-release");
    let (papers, people) = support::papers(&shared, &s, common, Ok(log.to_string()));
    (support::together(recorder.finish(), &papers), knowledge(&s, people))
}

fn look(recording: &mut Recording, known: &Knowledge, plants: &Plants) {
    let line = |(p, at): (&Plant, Option<String>)| at.map(|at| format!("{} of {}: {at}", p.kind, p.place));
    let before = Archive::of(recording).search(&plants.list);
    let unseen: Vec<_> =
        plants.list.iter().zip(&before).filter(|(_, at)| at.is_none()).map(|(p, _)| &p.place).collect();
    assert!(unseen.is_empty(), "planted where nothing is read: {unseen:#?}");
    recording.redact_with(known);
    let after = Archive::of(recording).search(&plants.list);
    let left: Vec<_> = plants.list.iter().zip(after).filter_map(line).collect();
    assert!(left.is_empty(), "{} of {} are left: {left:#?}", left.len(), plants.list.len());
}

#[test]
fn a_hundred_secrets_of_twenty_kinds() {
    let state = Dir::new();
    let common = common(&state);
    let mut plants = Plants::default();
    let host = Arc::new(Planted::new(&mut plants));
    host::journal(&host, &state, &mut plants);
    let (mut recording, known) = captured(&host, &common);
    assert!(plants.kinds().len() >= 20 && plants.list.len() >= 90, "{:?}", plants.kinds());
    look(&mut recording, &known, &plants);

    // Repeats the test with the files that only `support` reads.
    host::release(&host, &mut plants);
    host::papers(&state, &mut plants);
    let log = host::log(&host, &mut plants);
    assert!(plants.list.len() >= 150, "{}", plants.list.len());
    let (mut recording, known) = supported(&host, &common, &log);
    assert!(recording.files.contains_key(STANDING_FILE), "what is in effect is part of it");
    look(&mut recording, &known, &plants);
    let log = recording.files.get("/support/kernel.log").unwrap().as_ref().unwrap();
    let log = String::from_utf8_lossy(log);
    assert!(
        log.lines().count() > 10 && log.contains("NETDEV WATCHDOG: eth0 (igb): transmit queue 3 timed out"),
        "{log}"
    );
    assert!(log.contains("Link is Up 1000 Mbps Full Duplex, Flow Control: RX/TX"), "{log}");
}

#[test]
fn the_same_recording_gives_the_same_pseudonyms() {
    let state = Dir::new();
    let mut plants = Plants::default();
    let host = Arc::new(Planted::new(&mut plants));
    host::journal(&host, &state, &mut plants);
    let (recording, known) = captured(&host, &common(&state));
    let redacted = || {
        let mut r = recording.clone();
        r.redact_with(&known);
        r
    };
    assert_eq!(redacted(), redacted());
}

/// Leaves that differ although the second one is no pseudonym.
fn differences(path: &str, a: &Value, b: &Value, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys: BTreeSet<_> = x.keys().chain(y.keys()).collect();
            for k in keys {
                match (x.get(k), y.get(k)) {
                    (Some(a), Some(b)) => differences(&format!("{path}/{k}"), a, b, out),
                    // Keys may contain names too.
                    (Some(_), None) if x.len() == y.len() => {}
                    (None, Some(_)) if x.len() == y.len() && is_pseudonym(k) => {}
                    (a, b) => out.push(format!("{path}/{k}: {a:?} {b:?}")),
                }
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (i, (a, b)) in x.iter().zip(y).enumerate() {
                differences(&format!("{path}/{i}"), a, b, out);
            }
        }
        (Value::String(a), Value::String(b)) if a != b && is_pseudonym(b) => {}
        // Networks keep their prefix length, and binary values their length.
        (Value::String(a), Value::String(b))
            if path.contains("/rules/")
                && a.split_once(" m ").map(|m| m.1) == b.split_once(" m ").map(|m| m.1)
                && a != b
                && (a.contains(" m ") || a.len() == b.len() && path.ends_with("/raw")) => {}
        (a, b) if a == b => {}
        (a, b) => out.push(format!("{path}: {a} {b}")),
    }
}

fn is_pseudonym(text: &str) -> bool {
    let kinds = [
        "host-name-",
        "machine-id-",
        "alias-",
        "alternative-name-",
        "network-mount-",
        "mount-",
        "path-",
        "secret-",
        "argument-",
        "user-name-",
        "section-",
        "flow-rule-",
        "target-",
    ];
    let shapes = ["198.1", "2001:db8", "02:00:00", "0200000000", "00000000-0000-4000-8000-", "fe80::"];
    let id = text.len() == 32 && text.starts_with("000000");
    // A match of a `.link` file, a flag: the key without its value.
    id || kinds.iter().chain(&shapes).any(|k| text.contains(k)) || text.ends_with('=') || text.contains("--")
}

fn same(what: &str, a: &Value, b: &Value) {
    let mut out = Vec::new();
    differences(what, a, b, &mut out);
    assert!(out.is_empty(), "{out:#?}");
}

/// Snapshot, plan and findings of a recording, as JSON.
fn judged(recording: Recording) -> [Value; 3] {
    let host: Arc<dyn Host> = Arc::new(Captured::from(recording));
    let source =
        Source { host, recorded: true, passive: false, nested: None, recording: Default::default(), recorded_by: None };
    let common = Common { quiet: true, ..Common::default() };
    let s = source.snapshot(&ringwise_discover::Options::all(), &common).unwrap();
    let plan = ringwise_plan::plan(&s, &ringwise_model::Intent::default(), &[]);
    let plan = plan.map_err(|e| e.to_string());
    let report = crate::cmd::check::one(&CheckArgs::default(), &source, &common).unwrap();
    let json = |v| serde_json::to_value(v).unwrap();
    [json(&s), serde_json::to_value(&plan).unwrap(), serde_json::to_value(&report).unwrap()]
}

#[test]
fn a_redacted_capture_is_judged_as_the_other() {
    let state = Dir::new();
    let mut plants = Plants::default();
    let host = Arc::new(Planted::new(&mut plants));
    host::journal(&host, &state, &mut plants);
    let (mut recording, known) = captured(&host, &common(&state));
    let [s, plan, report] = judged(recording.clone());
    recording.redact_with(&known);
    let [s2, plan2, report2] = judged(recording);
    same("snapshot", &s, &s2);
    same("plan", &plan, &plan2);
    same("report", &report, &report2);
    assert!(!report["findings"].as_array().unwrap().is_empty(), "{report}");
}

#[test]
fn so_are_the_captures_of_the_lab() {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut captures: Vec<_> =
        std::fs::read_dir(hosts).unwrap().map(|e| e.unwrap().path().join("capture.tar.gz")).collect();
    captures.retain(|p| p.exists());
    captures.sort();
    assert!(captures.len() >= 10);
    for path in captures {
        let recorder = Arc::new(CaptureRecorder::new(Captured::open(&path).unwrap()));
        let s = capture::record(&(recorder.clone() as Arc<dyn Host>)).unwrap();
        let mut recording = recorder.finish();
        let before = judged(recording.clone());
        recording.redact_with(&knowledge(&s, Vec::new()));
        for (what, (a, b)) in ["snapshot", "plan", "report"].iter().zip(before.iter().zip(&judged(recording))) {
            same(&format!("{}: {what}", path.display()), a, b);
        }
    }
}
