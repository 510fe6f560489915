//! Host groups of the configuration file, as users see them for one host.

use std::process::{Command, Output};

use crate::common::fixtures;
use ringwise_testkit::dir::Dir;

fn ringwise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap()
}

fn text(o: &Output) -> (Option<i32>, String, String) {
    let t = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (o.status.code(), t(&o.stdout), t(&o.stderr))
}

/// A recorded host with 16 CPUs, eth0 and eth1.
fn host() -> String {
    let (_, file) = fixtures().into_iter().find(|(name, _)| name == "lab-router16-6.12").expect("a fixture");
    file.display().to_string()
}

const GROUPS: &str = "version = 1\n[host]\ngoal = \"rpc\"\nqueues = 2\n[[interface]]\nmatch = { driver = \"igb\" }\n\
                      rings = { rx = 512 }\n[host_group.large]\nmatch = { cpu_count = \">= 16\" }\n\
                      host = { goal = \"forward\" }\n[[host_group.large.interface]]\nmatch = { name = \"eth1\" }\n\
                      rings = { rx = 1024 }\n[host_group.huge]\nmatch = { cpu_count = \"> 1000\" }\nhost = { queues = 8 }\n";

#[test]
fn the_settings_of_one_host_name_its_host_groups() {
    let d = Dir::named("config-groups");
    let file = d.file("g.toml", GROUPS);
    let (code, out, err) = text(&ringwise(&["config", "check", &file]));
    assert!(code == Some(0) && out.contains("2 host groups, 2 interface entries, 2 settings"), "{out}{err}");
    let show = |file: &str| text(&ringwise(&["config", "show", file, "--from", &host()]));
    let (code, out, err) = show(&file);
    assert_eq!(code, Some(0), "{err}");
    let first = format!("# host group large applies ({file} line 9): cpu_count >= 16\nversion = 1\n");
    assert!(out.starts_with(&first), "{out}");
    for words in ["goal = \"forward\"\nqueues = 2\n", "match = { name = \"eth1\" }\nrings = { rx = 1024 }"] {
        assert!(out.contains(words), "{words} is not in\n{out}");
    }
    assert!(out.contains("match = { name = \"eth0\" }\nrings = { rx = 512 }"), "{out}");
    // The printed file has no groups, and means the same on this host.
    let (code, printed, err) =
        text(&ringwise(&["plan", "--print-config", "--config", &file, "--reserve", "0", "--from", &host()]));
    assert!(code == Some(0) && err.contains("the result is for this host only (large)"), "{err}");
    assert!(!printed.contains("host_group"), "{printed}");
    let steps = |args: &[&str]| {
        let o = ringwise(&[&["plan", "-j", "--from", &host()], args].concat());
        let plan: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
        let settings: Vec<_> = plan["steps"].as_array().unwrap().iter().map(|s| s["setting"].clone()).collect();
        (settings, plan["intent"]["host_groups"].clone())
    };
    let (with_groups, names) = steps(&["--config", &file, "--reserve", "0"]);
    assert!(!with_groups.is_empty() && names == serde_json::json!(["large"]), "{names}");
    assert_eq!(steps(&["--config", &d.file("p.toml", &printed)]), (with_groups, serde_json::Value::Null));
    // A goal on the command line contradicts that of a group.
    let args = ["plan", "--config", &file, "--goal", "rpc", "--from", &host()];
    let (code, _, err) = text(&ringwise(&args));
    assert!(code == Some(2) && err.contains("goal forward for host group large"), "{err}");
    let (code, out, err) = text(&ringwise(&[&args[..], &["--override-config"]].concat()));
    assert!(code == Some(0) && out.contains("goal rpc") && out.contains("host group large"), "{out}{err}");
}
