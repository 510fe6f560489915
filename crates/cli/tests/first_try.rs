//! What a new user types first: a bond's name, no goal, `--goal auto`.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::releases::Shared;
use ringwise_discover::{Options, snapshot};
use ringwise_model::{Fact, Snapshot};
use ringwise_sys::{CaptureRecorder, Host};
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Sim, build};
use serde_json::Value;

fn router() -> Snapshot {
    let built = build::host(8, 2).igb("eth0", 0, 4).igb("eth1", 1, 4).virtio("eth2", 0, 2);
    let mut s = built.bond("bond0", "802.3ad", &["eth0", "eth1"]).done();
    s.host.forwarding = Fact::Known(true);
    s
}

fn capture(s: &Snapshot, file: &Path) {
    let sim: Arc<dyn Host> = Arc::new(Sim::new(s));
    let recorder = Arc::new(CaptureRecorder::new(Shared(sim)));
    let recording: Arc<dyn Host> = recorder.clone();
    snapshot(&recording, &Options::all()).unwrap();
    let _ = recording.read_text("/proc/net/sockstat");
    recorder.finish().write_tar(file).unwrap();
}

/// Status, stdout, stderr.
fn ringwise(file: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    let o = c.args(args).arg("--from").arg(file).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (o.status.code(), text(o.stdout), text(o.stderr))
}

#[test]
fn a_bond_means_its_members() {
    let dir = Dir::new();
    let file = dir.0.join("router.tar.gz");
    capture(&router(), &file);
    let (status, out, err) = ringwise(&file, &["plan", "-j", "bond0"]);
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(err, "ringwise: bond0 (bond) has no queues of its own: using eth0, eth1 instead\n");
    let plan: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(plan["considered"], serde_json::json!(["eth0", "eth1"]));
    // Named twice, planned once.
    let (_, again, _) = ringwise(&file, &["plan", "-j", "eth1", "bond0"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["steps"], plan["steps"]);
}

/// What is wrong with the members of a bond is wrong with the bond.
#[test]
fn a_bond_is_checked_with_its_members() {
    let dir = Dir::new();
    let file = dir.0.join("router.tar.gz");
    capture(&router(), &file);
    let found = |devs: &[&str]| {
        let (_, out, err) = ringwise(&file, &[&["check", "-j", "--goal", "balanced"], devs].concat());
        let report: Value = serde_json::from_str(&out).unwrap();
        let ids: Vec<String> =
            report["findings"].as_array().unwrap().iter().map(|f| format!("{} {}", f["rule"], f["dev"])).collect();
        (ids, err)
    };
    let (members, _) = found(&["eth0", "eth1"]);
    let (bond, err) = found(&["bond0"]);
    assert!(!members.is_empty() && members.iter().all(|id| bond.contains(id)), "{members:?} {bond:?}");
    assert!(err.contains("bond0 (bond) has no queues of its own: using eth0, eth1 instead"), "{err}");
    // What is accepted for the bond is accepted for its members.
    let rule = |id: &str| id.split(' ').next().unwrap().trim_matches('"').to_string();
    let baseline = dir.0.join("accepted.json").display().to_string();
    let rules: std::collections::BTreeSet<String> = members.iter().map(|id| rule(id)).collect();
    let accept = |id: &str| {
        let how = ["--reason", "known", "--until", "2999-01-01", "--baseline", &baseline];
        let (status, _, err) = ringwise(&file, &[&["check", "bond0", "--accept", id][..], &how].concat());
        assert_eq!(status, Some(0), "{err}");
    };
    rules.iter().for_each(|id| accept(id));
    let (left, _) = found(&["bond0", "--baseline", &baseline]);
    assert!(left.iter().all(|id| !rules.contains(&rule(id))), "{left:?}");
    let (_, plan, _) = ringwise(&file, &["plan", "bond0"]);
    assert!(!plan.contains("bond0 (not named)") && plan.contains("Considered eth0 eth1."), "{plan}");
}

#[test]
fn the_role_proposes_a_goal() {
    let dir = Dir::new();
    let file = dir.0.join("router.tar.gz");
    capture(&router(), &file);
    let (_, text, err) = ringwise(&file, &["plan"]);
    assert!(text.contains("looks like a router (ip_forward=1, 3 interfaces up)"), "{text}{err}");
    assert!(text.contains("ringwise plan --goal forward"), "{text}");
    assert!(text.starts_with("Plan for sim: goal balanced (default); for a router: --goal forward\n"), "{text}");
    // The goal is given.
    let (_, text, _) = ringwise(&file, &["plan", "--goal", "balanced"]);
    assert!(!text.contains("looks like"), "{text}");

    let (status, auto, err) = ringwise(&file, &["plan", "-j", "--goal", "auto"]);
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(err, "ringwise: goal forward: sim looks like a router (ip_forward=1, 3 interfaces up)\n");
    let (_, forward, _) = ringwise(&file, &["plan", "-j", "--goal", "forward"]);
    assert_eq!(auto, forward);
    let (_, report, err) = ringwise(&file, &["check", "-j", "--fail-on", "never", "--goal", "auto"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["goal"], "forward", "{err}");

    let mut nothing = router();
    nothing.host.forwarding = Fact::Known(false);
    let file = dir.0.join("nothing.tar.gz");
    capture(&nothing, &file);
    let (_, plan, err) = ringwise(&file, &["plan", "-j", "--goal", "auto"]);
    assert!(err.starts_with("ringwise: goal balanced: role not evident (ip_forward=0"), "{err}");
    assert_eq!(serde_json::from_str::<Value>(&plan).unwrap()["intent"]["goal"], "balanced");
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts").join(name)
}

#[test]
fn reserved_cpus_come_first_in_the_drop_in() {
    let (_, page, err) =
        ringwise(&fixture("article48/tree.tar.gz"), &["plan", "--goal", "rpc", "--reserve", "6-11,30-35"]);
    let drop_in = page.split_once("[Service]\n").unwrap_or_else(|| panic!("{page}{err}")).1;
    let lines: Vec<&str> = drop_in.lines().map(str::trim).take(4).collect();
    let first = [
        "# must not share CPUs with interrupts (a database): the reserved CPUs:",
        "CPUAffinity=6-11,30-35",
        "# instead, many processes or threads, or a busy program:",
        "# CPUAffinity=0-5,24-29",
    ];
    assert_eq!(lines, first, "{page}");
    assert!(page.contains("      echo 6-11,30-35 >"), "{page}");
}

/// The plan does not move the interrupts of the other port.
#[test]
fn reserved_cpus_with_interrupts_of_another_interface_are_not_recommended() {
    let args = ["plan", "enp65s0f1np1", "--goal", "rpc", "--reserve", "28-31,60-63"];
    let (_, page, _) = ringwise(&fixture("mlx5/tree.tar.gz"), &args);
    let text = "but the interrupts of enp65s0f0np0, which the plan does not cover, go to CPUs 28-31,60-62";
    assert!(page.contains(text), "{page}");
    assert!(!page.contains("CPUAffinity=28-31,60-63"), "{page}");
}

#[test]
fn the_same_table_has_the_same_modelled_traffic() {
    let file = fixture("lab-router3-6.12/capture.tar.gz");
    let expected = |queues: &str| {
        let args = ["plan", "-j", "--goal", "forward", "--reserve", "0", "--allow-disruption", "--queues", queues];
        let (_, out, err) = ringwise(&file, &args);
        let plan: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {err}"));
        let all = plan["expected"].as_array().unwrap().clone();
        let is_of_traffic = |e: &&Value| e["unit"] == ringwise_plan::MODELLED_LOAD;
        all.iter().find(is_of_traffic).unwrap()["after"].clone()
    };
    // Eight queues of which two share a CPU, weighted, and seven with a CPU each: 18 or 19 of 128 entries for each CPU.
    assert_eq!(expected("8"), expected("7"));
}

#[test]
fn suggestions_keep_the_recording() {
    let file = fixture("lab-router3-6.12/capture.tar.gz");
    let (status, _, err) = ringwise(&file, &["plan", "--reserve", "9"]);
    let from = file.display();
    let want = format!(
        "error: --reserve names CPU 9, which is not online; online CPUs are 0-7\nTry: ringwise show --from {from}\n"
    );
    assert_eq!((status, err), (Some(1), want));
}

#[test]
fn only_heavy_flows_are_listed_as_heavy() {
    let file = Path::new("../../fixtures/hosts/lab-router16-newest/capture.tar.gz");
    let has_heavy = |flows: &str| {
        let (status, out, err) = ringwise(file, &["explain", "--synthetic", flows, "eth1"]);
        assert_eq!(status, Some(0), "{err}");
        out.lines().any(|l| l.starts_with("heavy "))
    };
    assert!(has_heavy("count=1000,zipf=1.1") && !has_heavy("count=1000"));
}
