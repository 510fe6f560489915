//! Reports of `sos report`: their files are read, and values that they do not contain are unknown, with that reason.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::root;
use ringwise_testkit::dir::Dir;
use serde_json::Value;

const WHY: &str = "not in a sos report";

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringwise"))
        .args(args)
        .env("TZ", "UTC")
        .env("LANG", "C.UTF-8")
        .env("RINGWISE_DEVICE_DEADLINE_MS", "60000")
        .output()
        .unwrap()
}

fn json(args: &[&str]) -> Value {
    let o = run(args);
    serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&o.stderr)))
}

/// A hand-written report, with the file names of sos and the output formats of ethtool, ip and tc.
fn edge7() -> PathBuf {
    root().join("fixtures/sos/edge7")
}

fn nic<'a>(doc: &'a Value, name: &str) -> &'a Value {
    let all = doc["nics"].as_array().unwrap();
    all.iter().find(|n| n["dev"]["name"] == name).unwrap_or_else(|| panic!("{name}: {doc}"))
}

/// Rule and interface of every finding, including consequences.
fn found(doc: &Value) -> Vec<(String, String)> {
    let all = doc["findings"].as_array().unwrap().iter();
    let each = all.flat_map(|f| std::iter::once(f).chain(f["consequences"].as_array().into_iter().flatten()));
    let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
    each.map(|f| (text(&f["rule"]), text(&f["dev"]))).collect()
}

/// A copy in which `change` may alter or remove files.
fn changed(name: &str, change: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>) -> Dir {
    let dir = Dir::named(&format!("sos-{name}"));
    let mut below = vec![PathBuf::new()];
    while let Some(at) = below.pop() {
        for entry in std::fs::read_dir(edge7().join(&at)).unwrap() {
            let entry = entry.unwrap();
            let path = at.join(entry.file_name());
            let (kind, to) = (entry.file_type().unwrap(), dir.0.join(&path));
            if kind.is_dir() {
                std::fs::create_dir_all(&to).unwrap();
                below.push(path);
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), to).unwrap();
            } else if let Some(bytes) = change(&path.display().to_string(), std::fs::read(entry.path()).unwrap()) {
                std::fs::write(to, bytes).unwrap();
            }
        }
    }
    dir
}

fn check(dir: &Path) -> Value {
    json(&["check", "-j", "--fail-on", "never", "--from", &dir.display().to_string()])
}

fn unread(doc: &Value, rule: &str) -> Vec<String> {
    let all = doc["unreadable"].as_array().unwrap().iter().filter(|u| u["rule"] == rule);
    all.map(|u| format!("{}: {}", u["what"].as_str().unwrap(), u["why"].as_str().unwrap())).collect()
}

#[test]
fn what_commands_printed_is_shown() {
    let from = edge7().display().to_string();
    let doc = json(&["show", "-j", "--from", &from]);
    let e = nic(&doc, "eth0");
    let known = |what: &str| e[what]["known"].clone();
    assert_eq!(known("driver"), "ixgbe");
    assert_eq!(e["dev"]["bus_address"], "0000:3b:00.0");
    assert_eq!(e["dev"]["permanent_mac"], "02:00:00:07:00:01");
    assert_eq!(known("node"), 0);
    assert_eq!(known("channels")["combined"], serde_json::json!({ "now": 4, "max": 63 }));
    assert_eq!(known("rings")["rx"], serde_json::json!({ "now": 64, "max": 4096 }));
    assert_eq!(known("coalesce"), serde_json::json!({ "rx-usecs": 1, "tx-usecs": 0 }), "n/a is no value");
    assert_eq!(known("pause"), serde_json::json!({ "autoneg": true, "rx": true, "tx": true }));
    assert_eq!(known("features")["rx-lro"], serde_json::json!({ "on": false, "wanted": false, "fixed": false }));
    assert_eq!(nic(&doc, "eth1")["features"]["known"]["rx-gro"]["on"], false);
    assert_eq!(known("firmware"), "0x800003df, 1.1824.0");
    assert_eq!(e["link"]["speed_mbps"]["known"], 10_000);
    assert_eq!(e["rx_queues"].as_array().unwrap().len(), 4, "as many as there are channels");
    assert_eq!(e["vectors"].as_array().unwrap().len(), 4, "those named after queues; the list of vectors is not there");
    assert_eq!(doc["host"]["kernel"]["known"], "6.12.0-55.el10.x86_64");
    assert_eq!(doc["host"]["rivals"]["known"], serde_json::json!(["irqbalance"]));
    assert_eq!(nic(&doc, "eth0.100")["kind"]["software"]["kind"], "vlan");
    assert_eq!(nic(&doc, "eth0.100")["lower"], serde_json::json!([2]));
    // sos does not collect it: unknown, with the reason.
    for what in ["rss", "rules", "napi", "queue_coalesce"] {
        assert_eq!(e[what]["unknown"]["why"], WHY, "{what}: {}", e[what]);
    }
    for q in e["rx_queues"].as_array().unwrap() {
        assert_eq!(q["rps_cpus"]["unknown"]["why"], WHY);
    }
}

#[test]
fn findings_and_what_could_not_be_read() {
    let doc = check(&edge7());
    let found = found(&doc);
    let has = |rule: &str, dev: &str| found.iter().any(|(r, d)| r == rule && d == dev);
    // Queue 3 of eth0 is far, its queues 1 and 2 share a CPU, GRO is off on eth1 of a router, eth0 pauses.
    for (rule, dev) in [("A03", "eth0"), ("A01", "eth0"), ("M10", "eth1"), ("R1.07", "eth0")] {
        assert!(has(rule, dev), "{rule} {dev}: {found:?}");
    }
    for (rule, dev) in [("A03", "eth1"), ("A01", "eth1"), ("M10", "eth0"), ("R1.07", "eth1")] {
        assert!(!has(rule, dev), "{rule} {dev}: {found:?}");
    }
    assert_eq!(doc["role"]["role"], "forward");
    // Values that no plugin collects never count as fine: RSS, flow rules, RPS, RFS, XPS, PCI registers.
    for rule in ["Q20", "Q28", "Q05", "Q14", "R2.03", "H04", "M05", "Q10"] {
        let why = unread(&doc, rule);
        assert!(!why.is_empty() && why.iter().all(|w| w.ends_with(WHY)), "{rule}: {why:?}");
        assert!(!found.iter().any(|(r, _)| r == rule), "{rule} was found without anything to find it by");
    }
    let o = run(&["check", "--fail-on", "never", "--from", &edge7().display().to_string()]);
    let page = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(page.contains("COULD NOT READ (not counted as passed)") && page.contains(WHY), "{page}");
    assert!(page.contains("Not evaluated, needs two samples"), "{page}");
}

#[test]
fn archives_hold_the_same() {
    let tree = check(&edge7());
    let dir = Dir::named("sos-packed");
    let mut tar = tar::Builder::new(Vec::new());
    tar.follow_symlinks(false);
    tar.append_dir_all("sosreport-edge7-2026-11-20-abcdefg", edge7()).unwrap();
    let plain = dir.0.join("report.tar");
    std::fs::write(&plain, tar.into_inner().unwrap()).unwrap();
    // sos itself packs with xz; the decoder's own test does not need the program.
    let packed = Command::new("xz").arg("--keep").arg(&plain).status().is_ok_and(|s| s.success());
    for path in std::iter::once(plain).chain(packed.then(|| dir.0.join("report.tar.xz"))) {
        let mut doc = check(&path);
        assert_eq!(doc["file"], path.display().to_string());
        doc["file"] = tree["file"].clone();
        assert_eq!(doc, tree, "{}", path.display());
    }
}

/// A device without channels and moderation: the refusal that ethtool printed is the kernel's, so there is nothing of
/// the kind, and it is not "could not read".
#[test]
fn a_refusal_is_an_answer() {
    let dir = changed("refused", |path, bytes| match path {
        "sos_commands/networking/ethtool_-c_eth1" => Some(b"netlink error: Operation not supported\n".to_vec()),
        "sos_commands/networking/ethtool_-a_eth1" => {
            Some(b"Pause parameters for eth1:\nCannot get device pause settings: Operation not supported\n".to_vec())
        }
        _ => Some(bytes),
    });
    let doc = json(&["show", "-j", "--from", &dir.0.display().to_string()]);
    assert_eq!(nic(&doc, "eth1")["coalesce"], "absent");
    assert_eq!(nic(&doc, "eth1")["pause"], "absent");
    assert!(nic(&doc, "eth0")["coalesce"]["known"].is_object());
}

#[test]
fn a_virtual_function_is_one() {
    let list = "3b:00.0 Ethernet controller [0200]: Intel Corporation 82599 [8086:10fb] (rev 01)\n\
                af:00.0 Ethernet controller [0200]: Intel Corporation Ethernet Virtual Function [8086:10ed] (rev 01)\n";
    let dir = changed("vf", |_, bytes| Some(bytes));
    std::fs::create_dir_all(dir.0.join("sos_commands/pci")).unwrap();
    std::fs::write(dir.0.join("sos_commands/pci/lspci_-nnvv"), list).unwrap();
    let doc = json(&["show", "-j", "--from", &dir.0.display().to_string()]);
    assert_eq!((&nic(&doc, "eth0")["kind"], &nic(&doc, "eth1")["kind"]), (&"physical".into(), &"vf".into()));
}

/// Commands run into their time limit, and older versions collect less: what is missing or cut short is unknown, never
/// another value, and nothing is found that the whole report does not show.
#[test]
fn cut_short_or_not_there() {
    let whole: std::collections::BTreeSet<_> = found(&check(&edge7())).into_iter().collect();
    let is_ethtool = |path: &str| path.contains("/ethtool_");
    for (name, cut) in [("gone", 0), ("half", 2), ("third", 3)] {
        let dir = changed(name, |path, bytes| match (is_ethtool(path), cut) {
            (true, 0) => None,
            (true, n) => Some(bytes[..bytes.len() / n].to_vec()),
            _ => Some(bytes),
        });
        let doc = check(&dir.0);
        let now: std::collections::BTreeSet<_> = found(&doc).into_iter().collect();
        assert!(now.is_subset(&whole), "{name}: {:?}", now.difference(&whole).collect::<Vec<_>>());
        let shown = json(&["show", "-j", "--from", &dir.0.display().to_string()]);
        for what in ["channels", "rings"] {
            assert!(nic(&shown, "eth0")[what]["unknown"].is_object(), "{name} {what}: {}", nic(&shown, "eth0")[what]);
        }
    }
    // Without the command output it is a tree with proc and sys, and it is reported as such.
    let dir = changed("files", |path, bytes| (!path.starts_with("sos_commands/")).then_some(bytes));
    let doc = json(&["show", "-j", "--from", &dir.0.display().to_string()]);
    assert_eq!(nic(&doc, "eth0")["channels"]["unknown"]["why"], WHY);
}

#[test]
fn queues_that_are_not_printed_are_unknown_not_none() {
    let dir = changed("queues", |path, bytes| (!path.contains("/ethtool_-l_")).then_some(bytes));
    let from = dir.0.display().to_string();
    for args in [&["show", "--from", &from][..], &["show", "eth0", "--from", &from], &["plan", "--from", &from]] {
        let o = run(args);
        let page = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
        for wrong in ["0 rx", "0 tx", "0 queues", "0/?", "0/0", "no receive queue", "no transmit queue"] {
            assert!(!page.contains(wrong), "{args:?}, {wrong}: {page}");
        }
    }
    let o = run(&["show", "eth0", "--from", &from]);
    assert!(String::from_utf8_lossy(&o.stdout).contains("queues unknown"), "{}", String::from_utf8_lossy(&o.stdout));
}

/// Ports of mlx5 in a report whose `/sys/class/net` was not copied: the bus address of `ethtool -i` assigns the
/// interrupts to the ports.
#[test]
fn bus_info_of_a_report_without_links_decides() {
    let dir = changed("mlx5", |path, bytes| {
        let text = String::from_utf8(bytes).ok()?;
        Some(match path {
            p if p.contains("/ethtool_-i_") => text.replace("driver: ixgbe", "driver: mlx5_core").into_bytes(),
            "proc/interrupts" => {
                let mut out = text;
                for (dev, address) in [("eth0", "0000:3b:00.0"), ("eth1", "0000:af:00.0")] {
                    for q in 0..4 {
                        let name = format!("mlx5_comp{q}@pci:{address}");
                        out = out.replace(&format!("{dev}-TxRx-{q}"), &name);
                    }
                }
                out.into_bytes()
            }
            _ => text.into_bytes(),
        })
    });
    let _ = std::fs::remove_dir_all(dir.0.join("sys/class/net"));
    let doc = json(&["show", "-j", "--from", &dir.0.display().to_string()]);
    for (dev, address) in [("eth0", "0000:3b:00.0"), ("eth1", "0000:af:00.0")] {
        let n = nic(&doc, dev);
        assert_eq!(n["dev"]["bus_address"], address);
        let vectors = n["vectors"].as_array().unwrap();
        let names = vectors.iter().map(|v| v["names"][0].as_str().unwrap());
        assert!(
            !vectors.is_empty() && names.clone().all(|n| n.ends_with(address)),
            "{dev}: {:?}",
            names.collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_report_below_the_named_directory_is_named() {
    let dir = changed("below", |_, bytes| Some(bytes));
    let above = Dir::named("sos-above");
    std::fs::rename(&dir.0, above.0.join("sosreport-edge7")).unwrap();
    let from = above.0.display().to_string();
    let o = run(&["show", "--from", &from]);
    let note = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(note.contains(&format!("reading {from}/sosreport-edge7, the only tree of proc/ and sys/ below")), "{note}");
    assert!(o.status.success());
    std::fs::create_dir_all(above.0.join("other/proc")).unwrap();
    std::fs::write(above.0.join("other/proc/interrupts"), "  CPU0\n").unwrap();
    let o = run(&["show", "--from", &from]);
    let error = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(error.contains("more than one host: other, sosreport-edge7; name one of them"), "{error}");
    assert_eq!(o.status.code(), Some(1));
}

#[test]
fn the_content_of_a_file_that_is_no_recording_is_not_printed() {
    let dir = Dir::named("sos-wrong");
    let path = dir.0.join("passwd");
    std::fs::write(&path, "root:x:0:0:root:/root:/bin/bash\n".repeat(40)).unwrap();
    let o = run(&["show", "--from", &path.display().to_string()]);
    let error = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(error.contains("not a tar archive") && error.contains("Expected a file of ringwise capture"), "{error}");
    assert!(!error.contains("root") && !error.contains("bash"), "{error}");
}
