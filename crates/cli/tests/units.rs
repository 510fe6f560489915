//! Checks the units of `ringwise persist` and of the packages with systemd. Nothing is installed: they are written below a
//! directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringwise_testkit::dir::Dir;
use ringwise_testkit::skipped;

use crate::common::root;

/// Highest exposure levels, of ten; without the sandbox it was 9.6.
const AT_MOST: f64 = 4.0;
/// Of the exporter, which writes nothing and needs no capability.
const EXPORTER_AT_MOST: f64 = 1.6;

/// What `systemd-analyze` reports, or why it cannot run.
fn analyze(args: &[&str], unit: &Path) -> Result<String, String> {
    let o =
        Command::new("systemd-analyze").args(args).arg(unit).output().map_err(|e| format!("systemd-analyze: {e}"))?;
    let all = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    if all.contains("unrecognized option") { Err("systemd-analyze is older than 250".into()) } else { Ok(all) }
}

/// Fails if the unit is more exposed than allowed, or has directives that systemd does not understand.
fn sandboxed(unit: &Path, at_most: f64) -> Result<(), String> {
    let said = analyze(&["security", "--offline=true", "--no-pager"], unit)?;
    let score = said.lines().find_map(|l| l.split_once("Overall exposure level for")?.1.split(": ").nth(1));
    let score: f64 = score.and_then(|s| s.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    println!("{}: {score}", unit.display());
    assert!(score <= at_most, "{said}");
    // Such directives are reported and ignored.
    let wrong = ["Unknown", "Failed to parse", "Invalid", "not absolute", "ignoring"];
    assert!(!wrong.iter().any(|w| said.contains(w)), "{said}");
    Ok(())
}

/// The services that `persist` writes below a directory.
fn written(dir: &Path, options: &[&str]) -> Vec<PathBuf> {
    let root = dir.display().to_string();
    let args = [&["persist", "--yes", "--root", &root], options].concat();
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(&args).output().unwrap();
    assert!(o.status.success(), "{o:?}");
    let units = std::fs::read_dir(dir.join("etc/systemd/system")).unwrap().map(|e| e.unwrap().path());
    units.filter(|p| p.extension().is_some_and(|e| e == "service")).collect()
}

#[test]
fn the_services_are_sandboxed() {
    let dirs = [None, Some("/root/state of ringwise")];
    for (n, state_dir) in dirs.into_iter().enumerate() {
        let state_dir: Vec<&str> = state_dir.iter().flat_map(|s| ["--state-dir", s]).collect();
        for (mode, expected) in [(None, 3), (Some("--daemon"), 1)] {
            let d = Dir::named(&format!("units-{n}-{expected}"));
            let options: Vec<&str> = ["--goal", "rpc"].into_iter().chain(mode).chain(state_dir.clone()).collect();
            let services = written(&d.0, &options);
            assert_eq!(services.len(), expected, "{services:?}");
            for unit in services {
                // For a template, one instance is analyzed.
                let name = unit.file_name().unwrap().to_str().unwrap();
                let instance = unit.with_file_name(name.replace('@', "@eth0"));
                std::fs::rename(&unit, &instance).unwrap();
                if let Err(why) = sandboxed(&instance, AT_MOST) {
                    return skipped("the_services_are_sandboxed", &why);
                }
            }
        }
    }
}

#[test]
fn the_unit_of_a_service_that_does_not_follow_the_load() {
    let d = Dir::named("units-follow-off");
    let [unit] = &written(&d.0, &["--goal", "rpc", "--daemon", "--follow", "off"])[..] else { panic!("one unit") };
    let text = std::fs::read_to_string(unit).unwrap();
    let starts: Vec<&str> = text.lines().filter(|l| l.starts_with("ExecStart=")).collect();
    assert_eq!(starts, ["ExecStart=/usr/sbin/ringwise daemon --follow off"]);
    assert!(!text.contains("CAP_NET_RAW") && !text.contains("CAP_BPF") && !text.contains("LimitMEMLOCK"), "{text}");
    // The option is one of the service.
    let root = d.0.display().to_string();
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise"))
        .args(["persist", "--yes", "--root", &root, "--follow", "off"])
        .output();
    assert_eq!(o.unwrap().status.code(), Some(2));
}

#[test]
fn the_exporter_is_sandboxed() {
    let unit = root().join("packaging/systemd/ringwise-exporter.service");
    if let Err(why) = sandboxed(&unit, EXPORTER_AT_MOST) {
        skipped("the_exporter_is_sandboxed", &why);
    }
}

/// `persist` without `--daemon` ends a service that a boot starts, and reports it before the question.
#[test]
fn persist_reports_that_it_disables_the_service() {
    let d = Dir::named("units-disables");
    let reports = |options: &[&str]| {
        let root = d.0.display().to_string();
        let args = [&["persist", "--yes", "-j", "--root", &root], options].concat();
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(&args).output().unwrap();
        assert!(o.status.success(), "{o:?}");
        let page: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
        assert_eq!(page["notes"].as_array().unwrap().is_empty(), page["disables_service"] == false, "{page}");
        page["disables_service"] == true
    };
    assert!(!reports(&["--goal", "rpc"]), "no service is enabled");
    assert!(!reports(&["--daemon"]));
    assert!(!reports(&["--daemon"]), "the service stays");
    assert!(reports(&["-n"]));
    assert!(reports(&[]));
    assert!(!reports(&[]), "it is disabled already");
}

#[test]
fn persist_refuses_to_print_a_configuration() {
    let d = Dir::named("units-print");
    let root = d.0.display().to_string();
    let args = ["persist", "--yes", "--root", &root, "--goal", "rpc", "--print-config"];
    let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
    assert_eq!(o.status.code(), Some(2), "{o:?}");
    assert!(!d.0.join("etc").exists(), "nothing is written");
}
