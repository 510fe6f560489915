//! Names that other programs choose cannot forge a line of ringwise, and are unchanged in JSON.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::releases::Shared;
use ringwise_discover::{Options, snapshot};
use ringwise_model::Fact;
use ringwise_sys::{CaptureRecorder, Host};
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Sim, build};
use serde_json::Value;

const FORGED: &str = "OK: all is well";

fn ringwise(args: &[&str]) -> (String, String) {
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (text(o.stdout), text(o.stderr))
}

/// Lines that begin with text from a name, or contain a tab.
fn forged(text: &str) -> Vec<&str> {
    text.lines().filter(|l| l.trim_start().starts_with(FORGED) || l.contains('\t')).collect()
}

#[test]
fn a_process_whose_name_looks_like_a_line_of_ringwise() {
    // The name of the whole process, although a thread writes it. The kernel keeps 15 bytes.
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    std::fs::write("/proc/self/comm", format!("x\n{FORGED}")).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let flow = format!("198.51.100.7:40000-{}/tcp", socket.local_addr().unwrap());
    let (text, err) = ringwise(&["explain", &flow, "lo"]);
    let (json, _) = ringwise(&["explain", &flow, "lo", "-j"]);
    std::fs::write("/proc/self/comm", name.trim_end()).unwrap();
    assert!(forged(&text).is_empty(), "{text}");
    assert!(text.contains("listening of x\\x0aOK: all is we ("), "{text}{err}");
    let doc: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(doc["directions"][0]["socket"]["program"], "x\nOK: all is we");
}

/// A recording of a host and of a driver with such names.
fn capture(file: &Path, host_name: &str) {
    let mut s = build::host(8, 2).igb("eth0", 0, 8).virtio("eth1", 1, 4).done();
    s.host.name = Fact::Known(host_name.into());
    let sim: Arc<dyn Host> = Arc::new(Sim::new(&s));
    let recorder = Arc::new(CaptureRecorder::new(Shared(sim)));
    let recording: Arc<dyn Host> = recorder.clone();
    snapshot(&recording, &Options::all()).unwrap();
    let mut r = recorder.finish();
    for target in r.links.iter_mut().filter(|(p, _)| p.ends_with("/driver")).filter_map(|(_, t)| t.as_mut().ok()) {
        target.push_str(&format!("\n{FORGED}\tindeed"));
    }
    r.write_tar(file).unwrap();
}

#[test]
fn a_host_whose_name_has_several_lines() {
    let dir = Dir::named("names");
    let file = dir.0.join("host.tar.gz");
    let name = format!("edge\n{FORGED}\tindeed");
    capture(&file, &name);
    let from = file.to_str().unwrap();
    let state = dir.0.join("state").display().to_string();
    let commands: &[&[&str]] = &[
        &[],
        &["show"],
        &["show", "-v"],
        &["show", "eth0"],
        &["show", "eth0", "-v"],
        &["plan"],
        &["plan", "-v"],
        &["plan", "--full"],
        &["check"],
        &["check", "-v"],
        &["check", "--capabilities"],
        &["verify"],
        &["explain", "198.51.100.7:40000-192.0.2.1:80/tcp", "eth0"],
        &["plan", "-o", "sh"],
        &["plan", "-o", "diff"],
    ];
    let (mut seen, mut wrong) = (0, Vec::new());
    for c in commands {
        let (out, err) = ringwise(&[c, &["--from", from, "--state-dir", &state][..]].concat());
        let what = format!("ringwise {}", c.join(" "));
        let both = forged(&out).into_iter().chain(forged(&err));
        wrong.extend(both.map(|l| format!("{what}: {l}")));
        assert!(!out.is_empty() || !err.is_empty(), "{what}");
        seen += usize::from((out + &err).contains("edge\\x0aOK: all is well\\x09indeed"));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen >= 8, "the name is in {seen} of them");
    let (json, _) = ringwise(&["show", "-j", "--from", from]);
    let doc: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(doc["host"]["name"]["known"], name.as_str());
}
