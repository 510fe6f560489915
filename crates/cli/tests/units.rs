//! Checks the units of `ringwise persist` with systemd. Nothing is installed: they are written below a directory.

use std::path::Path;
use std::process::Command;

use ringwise_testkit::dir::Dir;
use ringwise_testkit::skipped;

/// Highest exposure level, of ten; without the sandbox it was 9.6.
const AT_MOST: f64 = 4.0;

/// What `systemd-analyze` reports, or why it cannot run.
fn analyze(args: &[&str], unit: &Path) -> Result<String, String> {
    let o =
        Command::new("systemd-analyze").args(args).arg(unit).output().map_err(|e| format!("systemd-analyze: {e}"))?;
    let all = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    if all.contains("unrecognized option") { Err("systemd-analyze is older than 250".into()) } else { Ok(all) }
}

#[test]
fn the_services_are_sandboxed() {
    let dirs = [None, Some("/root/state of ringwise")];
    for (n, state_dir) in dirs.into_iter().enumerate() {
        let d = Dir::named(&format!("units-{n}"));
        let root = d.0.display().to_string();
        let mut args = vec!["persist", "--yes", "--root", &root, "--goal", "rpc"];
        args.extend(state_dir.iter().flat_map(|s| ["--state-dir", s]));
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(&args).output().unwrap();
        assert!(o.status.success(), "{o:?}");
        let units = d.0.join("etc/systemd/system");
        let services: Vec<_> = std::fs::read_dir(&units).unwrap().map(|e| e.unwrap().path()).collect();
        let services: Vec<_> = services.iter().filter(|p| p.extension().is_some_and(|e| e == "service")).collect();
        assert_eq!(services.len(), 3, "{services:?}");
        for unit in services {
            // For a template, one instance is analyzed.
            let instance = units.join(unit.file_name().unwrap().to_str().unwrap().replace('@', "@eth0"));
            std::fs::rename(unit, &instance).unwrap();
            let said = match analyze(&["security", "--offline=true", "--no-pager"], &instance) {
                Ok(said) => said,
                Err(why) => return skipped("the_services_are_sandboxed", &why.to_string()),
            };
            let score = said.lines().find_map(|l| l.split_once("Overall exposure level for")?.1.split(": ").nth(1));
            let score: f64 = score.and_then(|s| s.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{said}"));
            println!("{}: {score}", instance.display());
            assert!(score <= AT_MOST, "{said}");
            // Directives that this systemd does not understand are reported and ignored.
            let wrong = ["Unknown", "Failed to parse", "Invalid", "not absolute", "ignoring"];
            assert!(!wrong.iter().any(|w| said.contains(w)), "{said}");
        }
    }
}
