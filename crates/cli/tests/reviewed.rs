//! Plan files and manual changes, as the program handles them. Every test ends before the machine is changed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::fixtures;
use ringwise_testkit::dir::Dir;
use serde_json::{Value, json};

/// Exit status, stdout, stderr.
fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise"))
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("RINGWISE_STATE_DIR", dir.join("state"))
        .output()
        .unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (o.status.code().unwrap_or(-1), text(&o.stdout), text(&o.stderr))
}

fn refused(dir: &Path, status: i32, args: &[&str], words: &[&str]) {
    let (got, out, err) = run(dir, args);
    assert_eq!((got, out.as_str()), (status, ""), "{args:?}: {err}");
    for w in words {
        assert!(err.contains(w), "{args:?} does not say {w:?}: {err}");
    }
    assert!(!dir.join("state").exists(), "{args:?} touched the state directory");
}

fn article48() -> String {
    let (_, file) = fixtures().into_iter().find(|(n, _)| n == "article48").expect("fixtures/hosts/article48");
    file.canonicalize().unwrap().display().to_string()
}

/// A plan file with the ids of the present machine, so that only the rest of the file decides.
fn plan_for_here(dir: &Path, name: &str, args: &[&str]) -> Value {
    let mut all = vec!["plan", "--from"];
    let from = article48();
    all.push(&from);
    all.extend(["--out", name]);
    all.extend(args);
    let (status, _, err) = run(dir, &all);
    assert_eq!(status, 0, "{err}");
    serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
}

fn known(path: &str) -> Value {
    match std::fs::read_to_string(path) {
        Ok(t) => json!({ "known": t.trim() }),
        Err(_) => json!("absent"),
    }
}

#[test]
fn a_plan_file_contains_its_time_and_its_expiry() {
    let dir = Dir::named("reviewed-stamp");
    let doc = plan_for_here(&dir.0, "a.plan", &[]);
    let stamp = &doc["file"];
    assert_eq!(stamp["tool"], env!("CARGO_PKG_VERSION"));
    assert_eq!(stamp["expires_at"].as_u64().unwrap() - stamp["made_at"].as_u64().unwrap(), 86_400);
    let doc = plan_for_here(&dir.0, "b.plan", &["--expires", "never"]);
    assert_eq!(doc["file"]["expires_at"], Value::Null);
    let doc = plan_for_here(&dir.0, "c.plan", &["--expires", "90m"]);
    assert_eq!(doc["file"]["expires_at"].as_u64().unwrap() - doc["file"]["made_at"].as_u64().unwrap(), 5400);
    refused(&dir.0, 2, &["plan", "--expires", "1h"], &["--out"]);
    refused(&dir.0, 2, &["plan", "--out", "d.plan", "--expires", "soon"], &["expected a time", "never"]);
}

#[test]
fn a_file_of_another_host_edited_or_torn_is_refused_before_anything_is_looked_at() {
    let dir = Dir::named("reviewed-other");
    let doc = plan_for_here(&dir.0, "a.plan", &[]);
    // Refused because of another machine, or, if this machine has no id, because of another boot.
    refused(&dir.0, 6, &["apply", "a.plan", "--yes"], &["a.plan was made for another", "ringwise plan --out a.plan"]);
    refused(&dir.0, 6, &["apply", "--plan", "a.plan", "--yes"], &["was made for another"]);
    refused(&dir.0, 6, &["apply", "./a.plan", "-n"], &["was made for another"]);
    let mut edited = doc.clone();
    edited["steps"].as_array_mut().unwrap().pop();
    std::fs::write(dir.0.join("e.plan"), edited.to_string()).unwrap();
    refused(&dir.0, 6, &["apply", "e.plan", "--yes"], &["e.plan was edited after it was written"]);
    // Without the stamp, as the first release wrote it: the ids decide.
    let mut old = doc;
    old.as_object_mut().unwrap().remove("file");
    old["host"]["machine_id"] = json!({ "known": "0123456789abcdef0123456789abcdef" });
    old["host"]["boot_id"] = json!({ "known": "00000000-1111-2222-3333-444444444444" });
    old["host"]["name"] = json!({ "known": "edge4" });
    std::fs::write(dir.0.join("o.plan"), old.to_string()).unwrap();
    refused(&dir.0, 6, &["apply", "o.plan", "--yes"], &["o.plan was made for another"]);
    old["host"]["machine_id"] = known("/etc/machine-id");
    std::fs::write(dir.0.join("p.plan"), old.to_string()).unwrap();
    refused(&dir.0, 6, &["apply", "p.plan", "--yes"], &["another boot of edge4: 00000000-1111-2222-3333-444444444444"]);
    std::fs::write(dir.0.join("torn.plan"), "{\"schema\":").unwrap();
    refused(&dir.0, 1, &["apply", "torn.plan", "--yes"], &["torn.plan is not a plan"]);
    refused(&dir.0, 1, &["apply", "none.plan", "--yes"], &["none.plan: ENOENT (No such file"]);
    refused(&dir.0, 1, &["apply", "a/b", "--yes"], &["a/b: ENOENT (No such file"]);
}

#[test]
fn a_file_and_an_interface_are_distinguished_or_refused() {
    let dir = Dir::named("reviewed-apart");
    plan_for_here(&dir.0, "x.plan", &[]);
    std::fs::copy(dir.0.join("x.plan"), dir.0.join("lo")).unwrap();
    std::fs::copy(dir.0.join("x.plan"), dir.0.join("mine")).unwrap();
    refused(&dir.0, 2, &["apply", "lo", "--yes"], &["lo is an interface and a file", "./lo"]);
    refused(&dir.0, 6, &["apply", "./lo", "--yes"], &["./lo was made for another"]);
    refused(&dir.0, 6, &["apply", "mine", "--yes"], &["mine was made for another"]);
    refused(&dir.0, 2, &["apply", "x.plan", "lo2", "--yes"], &["x.plan is a plan file", "alone"]);
    refused(&dir.0, 2, &["apply", "x.plan", "--goal", "rpc", "--yes"], &["--goal rpc is for a new plan"]);
    refused(&dir.0, 2, &["apply", "x.plan", "--take-over", "--yes"], &["--take-over is for a new plan"]);
    refused(&dir.0, 2, &["apply", "--plan", "x.plan", "--take-over"], &["cannot be used with"]);
    // Neither such a file nor such an interface exists: the argument is read as an interface.
    refused(&dir.0, 1, &["apply", "nosuch0", "--yes"], &["there is no interface \"nosuch0\"", "ringwise show --all"]);
    refused(&dir.0, 6, &["apply"], &["not a terminal", "ringwise apply --yes"]);
    refused(&dir.0, 6, &["apply", "x.plan"], &["not a terminal"]);
}

#[test]
fn adopt_needs_devices_or_all_and_something_in_force() {
    let dir = Dir::named("reviewed-adopt");
    refused(&dir.0, 2, &["adopt"], &["needs the names of interfaces, or --all"]);
    refused(&dir.0, 2, &["adopt", "eth0", "--all"], &["cannot be used with"]);
    refused(&dir.0, 1, &["adopt", "nosuch0", "--yes"], &["there is no interface \"nosuch0\""]);
    let (status, out, _) = run(&dir.0, &["adopt", "--all", "-n"]);
    assert_eq!((status, out.as_str()), (0, "Nothing to adopt: all settings are as applied.\n"));
    let (status, out, _) = run(&dir.0, &["adopt", "--all", "--yes"]);
    assert_eq!(status, 0);
    assert!(out.contains("Nothing was written"), "{out}");
    assert!(!dir.0.join("state").exists());
    assert_eq!(run(&dir.0, &["adopt", "--help"]).0, 0);
}

#[test]
fn an_unreadable_record_needs_attention() {
    let dir = Dir::named("reviewed-unreadable");
    std::fs::write(dir.0.join("state"), "no directory").unwrap();
    let (status, out, _) = run(&dir.0, &["status"]);
    assert_eq!(status, 3, "{out}");
    assert!(out.contains("applied     unknown ("), "{out}");
    let (status, out, _) = run(&dir.0, &["status", "-j"]);
    let doc: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &doc["needs_somebody"]), (3, &json!(true)));
}
