//! Reports as different versions of sos on different distributions write them.

use std::process::Command;

use crate::common::root;
use ringwise_testkit::dir::Dir;
use serde_json::{Value, json};

const WHY: &str = "not in a sos report";

/// A report from its text in `fixtures/sos`: `@@ FILE` begins a file, `@> LINK -> TARGET` is a link.
fn report(name: &str) -> Dir {
    let text = std::fs::read_to_string(root().join(format!("fixtures/sos/{name}.txt"))).unwrap();
    let dir = Dir::named(&format!("sos-{name}"));
    let parent = |path: &str| {
        let at = dir.0.join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        at
    };
    let mut file: Option<(&str, String)> = None;
    let write = |file: Option<(&str, String)>| {
        if let Some((path, text)) = file {
            std::fs::write(parent(path), text).unwrap();
        }
    };
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("@@ ") {
            write(file.replace((path, String::new())));
        } else if let Some((link, target)) = line.strip_prefix("@> ").and_then(|l| l.split_once(" -> ")) {
            write(file.take());
            std::os::unix::fs::symlink(target, parent(link)).unwrap();
        } else if let Some((_, text)) = &mut file {
            *text += line;
            text.push('\n');
        }
    }
    write(file);
    dir
}

fn run(args: &[&str]) -> Value {
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise"))
        .args(args)
        .env("LANG", "C.UTF-8")
        .env("RINGWISE_DEVICE_DEADLINE_MS", "60000")
        .output()
        .unwrap();
    serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&o.stderr)))
}

fn shown(dir: &Dir) -> Value {
    run(&["show", "-j", "--from", &dir.0.display().to_string()])
}

fn found(dir: &Dir, rule: &str) -> bool {
    let doc = run(&["check", "-j", "--fail-on", "never", "--from", &dir.0.display().to_string()]);
    let all = doc["findings"].as_array().unwrap().iter();
    all.flat_map(|f| std::iter::once(f).chain(f["consequences"].as_array().into_iter().flatten()))
        .any(|f| f["rule"] == rule)
}

fn nic<'a>(doc: &'a Value, name: &str) -> &'a Value {
    let all = doc["nics"].as_array().unwrap();
    all.iter().find(|n| n["dev"]["name"] == name).unwrap_or_else(|| panic!("{name}: {doc}"))
}

/// Names of the vectors of queues, and the CPUs that each may interrupt.
fn vectors(nic: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
    let queues = nic["vectors"].as_array().unwrap().iter().filter(|v| v["role"]["queues"].is_object());
    queues.map(|v| (text(&v["names"][0]), text(&v["asked"]["known"]))).collect()
}

fn nodes_of_cpus(doc: &Value) -> Value {
    let cpus = doc["topology"]["cpus"].as_object().unwrap();
    cpus.values().map(|c| c["node"]["known"].clone()).collect()
}

/// Whether the names of processes are unknown.
fn programs_are_unread(doc: &Value) -> bool {
    doc["unread"].as_array().unwrap().iter().any(|u| u["what"] == "/proc/*/comm")
}

/// What every layout shows of its interface.
fn same_facts(n: &Value, driver: &str, max: u32, rings: (u32, u32), speed: u32) {
    assert_eq!(n["driver"]["known"], driver);
    assert_eq!(n["channels"]["known"]["combined"], json!({ "now": 2, "max": max }));
    assert_eq!(n["rings"]["known"]["rx"], json!({ "now": rings.0, "max": rings.1 }));
    assert_eq!(n["link"]["speed_mbps"]["known"], speed);
    assert_eq!(n["rx_queues"].as_array().unwrap().len(), 2);
    assert_eq!(n["features"]["known"]["rx-gro"]["on"], true);
    for what in ["rss", "rules", "napi", "queue_coalesce"] {
        assert_eq!(n[what]["unknown"]["why"], WHY, "{what}: {}", n[what]);
    }
}

#[test]
fn rhel_7_with_sos_3() {
    let dir = report("rhel7");
    let doc = shown(&dir);
    let n = nic(&doc, "em1");
    same_facts(n, "ixgbe", 63, (512, 4096), 10_000);
    assert_eq!(n["node"]["known"], 0);
    assert_eq!(nodes_of_cpus(&doc), json!([0, 0, 1, 1]));
    assert_eq!(vectors(n), [("em1-TxRx-0".into(), "0".into()), ("em1-TxRx-1".into(), "2".into())]);
    // ethtool 4.8 prints 0 for what the driver does not have, so only other values are known.
    assert_eq!(n["coalesce"]["known"], json!({ "rx-usecs": 1 }));
    assert_eq!(doc["host"]["kernel"]["known"], "3.10.0-1160.119.1.el7.x86_64");
    // sos 3 copies no files of processes: irqbalance runs here, and its absence must not be reported.
    assert!(doc["host"]["irqbalance"]["unknown"].is_object(), "{}", doc["host"]["irqbalance"]);
    assert!(programs_are_unread(&doc));
    assert!(found(&dir, "A03"), "queue 1 interrupts a CPU of the other node");
}

#[test]
fn rhel_9_with_sos_4() {
    let dir = report("rhel9");
    let doc = shown(&dir);
    let n = nic(&doc, "ens2f0");
    same_facts(n, "ice", 4, (2048, 8160), 25_000);
    assert_eq!(n["node"]["known"], 1);
    assert_eq!(nodes_of_cpus(&doc), json!([0, 0, 1, 1]));
    assert_eq!(vectors(n), [("ice-ens2f0-TxRx-0".into(), "0-1".into()), ("ice-ens2f0-TxRx-1".into(), "1".into())]);
    assert_eq!(n["coalesce"]["known"]["rx-usecs"], 50);
    assert!(doc["host"]["irqbalance"]["known"].is_object(), "{}", doc["host"]["irqbalance"]);
    assert!(!programs_are_unread(&doc));
    assert!(found(&dir, "A03"), "the interface is on node 1, its interrupts on node 0");
}

/// Ubuntu does not install numactl, so the plugin numa does not run: nodes have no files, but lscpu lists their CPUs.
#[test]
fn ubuntu_22_without_numactl() {
    let dir = report("ubuntu22");
    let doc = shown(&dir);
    let n = nic(&doc, "ens1f0np0");
    same_facts(n, "mlx5_core", 63, (1024, 8192), 100_000);
    assert_eq!(n["node"]["known"], 1);
    assert_eq!(nodes_of_cpus(&doc), json!([0, 0, 1, 1]));
    let names = ["mlx5_comp0@pci:0000:81:00.0", "mlx5_comp1@pci:0000:81:00.0"];
    assert_eq!(vectors(n), [(names[0].into(), "2".into()), (names[1].into(), "0-3".into())]);
    assert_eq!(n["pause"]["known"], json!({ "autoneg": false, "rx": true, "tx": true }));
    assert_eq!(doc["host"]["irqbalance"], "absent");
    assert!(!programs_are_unread(&doc));
    assert!(!found(&dir, "A03"), "both interrupts are handled on node 1");
    // An archive contains a directory for the target of cpu0/node0, with nothing in it.
    for node in ["node0", "node1"] {
        std::fs::create_dir_all(dir.0.join("sys/devices/system/node").join(node)).unwrap();
    }
    assert_eq!(nodes_of_cpus(&shown(&dir)), json!([0, 0, 1, 1]));
    // Without lscpu, nothing shows the CPUs of a node.
    std::fs::remove_file(dir.0.join("sos_commands/processor/lscpu")).unwrap();
    assert_eq!(nodes_of_cpus(&shown(&dir)), json!([null, null, null, null]));
}
