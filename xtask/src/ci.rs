//! `cargo xtask ci`: runs every step of `make test` and prints one summary line at the end. With `--all` it runs the
//! whole lab instead of its quick set, and the checks that need more downloads.

use crate::program::{self, Profile};
use crate::setup::{self, Lane};
use crate::{paths, progress};
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A run that takes longer would be killed from outside without a message.
const QUICK: Duration = Duration::from_secs(80 * 60);
/// The whole lab is run by people, who see its progress.
const ALL: Duration = Duration::from_secs(180 * 60);

/// Number of cases of each property test in the whole lane.
const NEW_CASES: &str = "10000";

/// A step: its name, cargo's arguments, the first lane that has it, and whether it needs what `setup` fetches.
struct Step(&'static str, &'static [&'static str], Lane, bool);

const STEPS: &[Step] = &[
    Step("format", &["fmt", "--all", "--check"], Lane::Quick, false),
    Step("layering", &["xtask", "layering"], Lane::Quick, false),
    Step("words", &["xtask", "words"], Lane::Quick, false),
    Step("shellcheck", &["xtask", "shellcheck"], Lane::Quick, false),
    Step("clippy", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], Lane::Quick, false),
    // Passing tests print no line; failures are printed completely.
    Step("tests", &["test", "--workspace", "--no-fail-fast", "--quiet"], Lane::Quick, true),
    // Takes minutes without optimisation.
    Step(
        "simulated hours",
        &["test", "--quiet", "--release", "-p", "ringwise-adapt", "thousand", "--", "--ignored"],
        Lane::All,
        false,
    ),
    Step("panics", &["run", "--quiet", "--profile", "lab", "-p", "ringwise", "--example", "panics"], Lane::All, false),
    Step("figures", &["xtask", "figures"], Lane::Quick, true),
    Step("site", &["xtask", "docs"], Lane::All, false),
    Step("grafana", &["xtask", "grafana"], Lane::All, true),
    Step("helm", &["xtask", "helm"], Lane::All, false),
    Step("helm-cluster", &["xtask", "helm", "--cluster"], Lane::All, false),
    Step("arm64", &["xtask", "package", "--arch", "arm64", "--tests"], Lane::All, true),
    Step("lab-arm64", &["xtask", "lab", "--arch", "arm64"], Lane::All, true),
    Step("fleet", &["xtask", "fleet"], Lane::All, true),
    Step("packages", &["xtask", "package", "--source", "--twice", "--try"], Lane::All, true),
    Step("lab", &["xtask", "lab"], Lane::Quick, true),
];

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let (mut lane, mut again, mut extra, mut only) = (Lane::Quick, false, Vec::new(), Vec::new());
    let mut it = args.iter();
    while let Some(a) = it.next() {
        match a.as_str() {
            "--all" => lane = Lane::All,
            "--again" => again = true,
            "--since" => extra = vec!["--since".to_string(), it.next().context("--since needs a revision")?.clone()],
            "--step" => only.push(it.next().context("--step needs the name of a step")?.as_str()),
            other => bail!("ci: expected --again, --all, --since REV or --step NAME, found {other:?}"),
        }
    }
    if !extra.is_empty() && lane == Lane::Quick {
        bail!("--since selects from the whole lab: add --all");
    }
    let steps = selected(lane, &only)?;
    progress::catch_signals()?;
    let begin = Instant::now();
    forget_skipped()?;
    setup::tools(lane)?;
    setup::rust_components()?;
    let mut failed = Vec::new();
    // Fetching runs at the same time as the first steps.
    std::thread::scope(|threads| -> Result<()> {
        let mut fetching = Some(threads.spawn(|| setup::fetch(lane)));
        let mut building = None;
        for Step(name, args, _, fetched) in &steps {
            if *fetched && let Some(f) = fetching.take() {
                let waits = Instant::now();
                let got = f.join().map_err(|_| anyhow::anyhow!("the thread that fetches panicked"))?;
                println!("== fetched, waited {:.0} s", waits.elapsed().as_secs_f64());
                got?;
            }
            let mut args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
            // Tests wait more than they compute, and linking uses one thread, so the program for the guests is built
            // meanwhile.
            if *name == "tests" {
                let profile = if lane == Lane::All { Profile::Release } else { Profile::Lab };
                building = Some(threads.spawn(move || program::build(profile)));
            }
            if *name == "lab" {
                if let Some(b) = building.take() {
                    b.join().map_err(|_| anyhow::anyhow!("the thread that builds panicked"))??;
                }
                let left = if lane == Lane::All { ALL } else { QUICK }.saturating_sub(begin.elapsed());
                args.push(format!("--minutes={}", left.as_secs() / 60));
                if lane == Lane::Quick {
                    args.push("--quick".to_string());
                    args.extend((!again).then(|| "--skip-unchanged".to_string()));
                }
                args.extend(extra.iter().cloned());
            }
            if !step(name, &args, lane)? {
                failed.push(*name);
            }
        }
        Ok(())
    })?;
    if !failed.is_empty() {
        println!("failed: {}", failed.join(" "));
    }
    let skipped = skipped()?;
    skipped.lines().for_each(|line| println!("test skipped: {line}"));
    println!("took {:.0} min in total", begin.elapsed().as_secs_f64() / 60.0);
    // Whole steps are never skipped. Single tests are skipped if the machine lacks what they need.
    let tests = skipped.lines().count();
    println!("steps: {} passed, {} failed, {tests} skipped", steps.len() - failed.len(), failed.len());
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The steps of a lane; only those named, if any are.
fn selected(lane: Lane, only: &[&str]) -> Result<Vec<&'static Step>> {
    let all: Vec<&Step> = STEPS.iter().filter(|s| s.2 <= lane).collect();
    if let Some(unknown) = only.iter().find(|name| !all.iter().any(|s| s.0 == **name)) {
        let names: Vec<&str> = all.iter().map(|s| s.0).collect();
        bail!("--step: expected one of {}, found {unknown:?}", names.join(", "));
    }
    Ok(all.into_iter().filter(|s| only.is_empty() || only.contains(&s.0)).collect())
}

/// Tests that did not run write a line each (testkit/src/skip.rs).
fn skipped_file() -> std::path::PathBuf {
    paths::target().join("skipped.txt")
}

/// The lines of skipped tests. Without the file no test was skipped; a file that cannot be read is an error, not a
/// count of 0.
fn skipped() -> Result<String> {
    let file = skipped_file();
    match std::fs::read_to_string(&file) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
        other => other.with_context(|| file.display().to_string()),
    }
}

/// Removes the lines of an earlier run.
fn forget_skipped() -> Result<()> {
    let file = skipped_file();
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other.with_context(|| file.display().to_string()),
    }
}

fn step(name: &str, args: &[String], lane: Lane) -> Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    println!("== {name}: cargo {}", args.join(" "));
    let start = Instant::now();
    let mut c = Command::new(&cargo);
    // Some containers may not create namespaces. The whole lane is run only on machines where nothing is missing.
    c.env("RINGWISE_REQUIRE_ALL", if lane == Lane::All { "1" } else { "0" });
    if name == "tests" {
        c.env("RINGWISE_SKIPPED", skipped_file());
    }
    if lane == Lane::All {
        // In this lane, tests that normally try a selection try everything, and property tests try new cases.
        c.env("RINGWISE_TESTS", "all").env("PROPTEST_CASES", NEW_CASES);
        if name == "tests" {
            let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
            println!("== {name}: PROPTEST_CASES={NEW_CASES} PROPTEST_RNG_SEED={seed}");
            c.env("PROPTEST_RNG_SEED", seed.to_string());
        }
    }
    let mut child = c.current_dir(paths::root()).args(args).stdin(Stdio::null()).spawn()?;
    let _child = progress::child(child.id());
    let status = child.wait()?;
    println!("== {name}: {status}, {:.0} s", start.elapsed().as_secs_f64());
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_steps() {
        let names = |lane, only: &[&str]| selected(lane, only).map(|s| s.iter().map(|s| s.0).collect::<Vec<_>>());
        assert_eq!(names(Lane::All, &[]).unwrap().len(), STEPS.len());
        assert_eq!(names(Lane::All, &["packages", "arm64"]).unwrap(), ["arm64", "packages"]);
        assert!(names(Lane::Quick, &["packages"]).is_err());
    }

    /// cargo looks for no tests in crates with one test program: a file that `main.rs` does not name would never run.
    #[test]
    fn every_file_of_tests_is_part_of_the_test_program() {
        let mut seen = 0;
        for krate in std::fs::read_dir(paths::root().join("crates")).unwrap() {
            let tests = krate.unwrap().path().join("tests");
            let Ok(main) = std::fs::read_to_string(tests.join("main.rs")) else { continue };
            for entry in std::fs::read_dir(&tests).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                let is_module = path.extension().is_some_and(|e| e == "rs") && name != "main";
                if is_module || path.join("mod.rs").exists() {
                    assert!(main.contains(&format!("mod {name};")), "{}: never runs", path.display());
                    seen += 1;
                }
                assert!(!path.join("main.rs").exists(), "{}/main.rs: never runs", path.display());
            }
        }
        assert!(seen > 80, "{seen} files");
    }
}
