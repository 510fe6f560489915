//! `cargo xtask mutants`: faults of the write path (`lab/mutants/*.patch`), each of which a scenario must find.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::scenario::{self, Score};
use crate::{cmd, host, lab, paths, program, tree};

/// The kernel of every run; all hosts boot it.
const KERNEL: &str = "6.12";
/// The sources of the program, all that its build reads.
const SOURCES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "crates", "xtask", "lab/bench/text"];
/// This profile builds in a tenth of the time of a release; only the behaviour of the program matters here.
const PROFILE: [&str; 4] = ["lto=false", "codegen-units=16", "opt-level=1", "incremental=true"];

/// What one scenario did in a run of the lab with `--once`. The lab writes it, so that its report need not be parsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Checked {
    scenario: String,
    passed: u32,
    /// Its `not ok` lines.
    failed_checks: Vec<String>,
    /// Other failures: no end, a status, a complaint of the kernel.
    other: Vec<String>,
}

impl Checked {
    pub(crate) fn new(scenario: &str, score: &Score) -> Self {
        let (failed_checks, other) = score.wrong.iter().cloned().partition(|w| w.starts_with("not ok "));
        Self { scenario: scenario.into(), passed: score.passed, failed_checks, other }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MutantResult {
    /// Killed by this check.
    Killed(String),
    Survived,
    /// The run has no result: no boot, no end, or no check.
    Undecided(String),
}

/// A guest that did not boot, or a scenario that never ended, finds no fault.
fn verdict(found: Option<&Checked>, succeeded: bool) -> MutantResult {
    let Some(c) = found else { return MutantResult::Undecided("the scenario did not run".into()) };
    match (c.failed_checks.first(), c.other.first()) {
        // Only the name of the check is shown, because the detail may be long.
        (Some(check), _) => MutantResult::Killed(check.split(" # ").next().unwrap_or(check).to_string()),
        (None, Some(why)) => MutantResult::Undecided(why.clone()),
        (None, None) if c.passed == 0 => MutantResult::Undecided("nothing was checked".into()),
        (None, None) if !succeeded => MutantResult::Undecided("the lab failed outside of the scenario".into()),
        (None, None) => MutantResult::Survived,
    }
}

/// Where a scenario runs: its full name and the host.
type Place = (String, String);

#[derive(Debug)]
struct Mutant {
    name: String,
    patch: PathBuf,
    place: Place,
}

/// `SCENARIO@HOST` of the header, where the scenario is named without its number.
fn killer(text: &str) -> Result<(&str, &str)> {
    let header = text.lines().take_while(|l| l.starts_with('#'));
    let mut found = header.filter_map(|l| l.trim_start_matches(['#', ' ']).strip_prefix("killed-by:"));
    let value = found.next().context("the header needs `# killed-by: SCENARIO@HOST`")?;
    ensure!(found.next().is_none(), "the header has more than one `# killed-by:`");
    value.trim().split_once('@').context("killed-by: expected SCENARIO@HOST")
}

fn without_number(name: &str) -> &str {
    match name.split_once('-') {
        Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => name,
    }
}

/// All mutants in the order of their names.
fn all() -> Result<Vec<Mutant>> {
    let dir = paths::lab().join("mutants");
    let scenarios = scenario::all()?;
    let hosts = host::all()?;
    let mut patches: Vec<PathBuf> = fs::read_dir(&dir)
        .with_context(|| dir.display().to_string())?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "patch"))
        .collect();
    patches.sort();
    let read = |patch: PathBuf| {
        let text = fs::read_to_string(&patch)?;
        let (short, host) = killer(&text)?;
        lab::known("host", Some(host), hosts.iter().map(|h| h.name.as_str()))?;
        let fits = scenarios.iter().filter(|s| without_number(&s.name) == short && s.runs_on(host, KERNEL));
        let names: Vec<&str> = fits.map(|s| s.name.as_str()).collect();
        let [name] = names[..] else {
            bail!("{} scenarios are called {short:?} on {host} with kernel {KERNEL}, expected one", names.len())
        };
        let place = (name.to_string(), host.to_string());
        let stem = patch.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Mutant { name: stem, patch, place })
    };
    patches.into_iter().map(|p| read(p.clone()).with_context(|| p.display().to_string())).collect()
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some(option) = args.iter().find(|a| a.starts_with('-')) {
        bail!("unknown option {option:?}; usage: cargo xtask mutants [NAME...]");
    }
    let mut mutants = all()?;
    for name in args {
        ensure!(mutants.iter().any(|m| m.name.contains(name.as_str())), "no mutant has a name that contains {name:?}");
    }
    mutants.retain(|m| args.is_empty() || args.iter().any(|a| m.name.contains(a.as_str())));
    let work = Work::new()?;
    work.copy_sources()?;
    let base = work.build("unchanged")?;
    let places: BTreeSet<&Place> = mutants.iter().map(|m| &m.place).collect();
    for place in places {
        let (name, host) = place;
        let (found, took) = work.scenario(place, &base)?;
        match found {
            MutantResult::Survived => println!("mutants: {name}@{host} passes with the unchanged program ({took})"),
            MutantResult::Killed(why) | MutantResult::Undecided(why) => {
                bail!("{name}@{host} fails with the unchanged program: {why}");
            }
        }
    }
    let mut count: BTreeMap<&str, u32> = BTreeMap::new();
    for m in &mutants {
        let (name, host) = &m.place;
        let (word, text) = match work.mutant(m, &base) {
            Ok((MutantResult::Killed(check), took)) => ("killed", format!("killed by {name}@{host} ({took}): {check}")),
            Ok((MutantResult::Survived, took)) => ("survived", format!("SURVIVED {name}@{host} ({took})")),
            Ok((MutantResult::Undecided(why), took)) => {
                ("other", format!("NOT DECIDED by {name}@{host} ({took}): {why}"))
            }
            Err(e) => ("other", format!("NOT DECIDED: {e:#}")),
        };
        *count.entry(word).or_default() += 1;
        println!("mutants: {} {text}", m.name);
    }
    let n = |word| count.get(word).copied().unwrap_or(0);
    let other = if n("other") > 0 { format!(", {} not decided", n("other")) } else { String::new() };
    println!("mutants: {} killed, {} survived{other}", n("killed"), n("survived"));
    Ok(if n("survived") + n("other") == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The directory below `target/` with the copy of the sources and what is built of it.
struct Work {
    tree: PathBuf,
    target: PathBuf,
    programs: PathBuf,
}

impl Work {
    fn new() -> Result<Self> {
        let dir = paths::target().join("mutants");
        let work = Self { tree: dir.join("tree"), target: dir.join("target"), programs: dir.join("programs") };
        fs::create_dir_all(&work.tree)?;
        fs::create_dir_all(&work.programs)?;
        Ok(work)
    }

    /// Files that are equal keep their time, so that only crates with a difference are built again.
    fn copy_sources(&self) -> Result<()> {
        for source in SOURCES {
            tree::mirror(&paths::root().join(source), &self.tree.join(source))
                .with_context(|| format!("copy {source}"))?;
        }
        Ok(())
    }

    fn apply(&self, patch: &Path) -> Result<()> {
        let mut c = Command::new("git");
        // The copy may lie in a repository, where git would look for the paths at its root.
        c.current_dir(&self.tree).env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        c.args(["apply", "--whitespace=nowarn"]).arg(patch);
        cmd::output(&mut c).context("the patch does not apply").map(|_| ())
    }

    /// The program, under a separate name.
    fn build(&self, name: &str) -> Result<PathBuf> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        eprintln!("mutants: building {name}");
        let mut c = Command::new(cargo);
        c.current_dir(&self.tree)
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .env("CARGO_TARGET_DIR", &self.target)
            .args(["build", "--quiet", "--release", "--target", program::TARGET, "-p", "ringwise"]);
        for option in PROFILE {
            c.args(["--config", &format!("profile.release.{option}")]);
        }
        cmd::output(&mut c).with_context(|| format!("building {name}"))?;
        let to = self.programs.join(name);
        fs::copy(self.target.join(program::TARGET).join("release/ringwise"), &to)?;
        Ok(to)
    }

    fn mutant(&self, m: &Mutant, base: &Path) -> Result<(MutantResult, String)> {
        self.copy_sources()?;
        self.apply(&m.patch)?;
        let program = self.build(&m.name)?;
        ensure!(fs::read(&program)? != fs::read(base)?, "the patch does not change the program");
        let done = self.scenario(&m.place, &program);
        fs::remove_file(&program)?;
        done
    }

    /// Runs only the scenario, in a separate lab.
    fn scenario(&self, (name, host): &Place, program: &Path) -> Result<(MutantResult, String)> {
        let results = self.programs.join("results.json");
        remove(&results)?;
        let start = Instant::now();
        let mut c = Command::new(std::env::current_exe()?);
        c.args(["lab", "--host", host, "--kernel", KERNEL, "--scenario", name, "--once"]).arg(&results);
        let out = c.arg("--program").arg(program).output().context("cannot start the lab")?;
        let found: Vec<Checked> = match fs::read(&results) {
            Ok(bytes) => serde_json::from_slice(&bytes).context("the results of the lab")?,
            Err(_) => Vec::new(),
        };
        let checked = found.iter().find(|c| c.scenario == *name);
        let v = verdict(checked, out.status.success());
        if let MutantResult::Undecided(_) = v {
            eprint!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        }
        Ok((v, seconds(start.elapsed())))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).with_context(|| path.display().to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(wrong: &[&str], passed: u32) -> Checked {
        let wrong = wrong.iter().map(ToString::to_string).collect();
        Checked::new("050-guard", &Score { passed, wrong, ..Score::default() })
    }

    #[test]
    fn only_a_failed_check_kills() {
        let killed = checked(&["it exited with status 137", "not ok as before # it differs"], 3);
        assert_eq!(verdict(Some(&killed), false), MutantResult::Killed("not ok as before".into()));
        assert_eq!(verdict(Some(&checked(&[], 3)), true), MutantResult::Survived);
        for undecided in [None, Some(&checked(&["no end after 60 s"], 3)), Some(&checked(&[], 0))] {
            assert!(matches!(verdict(undecided, true), MutantResult::Undecided(_)));
        }
        assert!(matches!(verdict(Some(&checked(&[], 3)), false), MutantResult::Undecided(_)));
    }

    #[test]
    fn the_header_names_scenario_and_host() {
        assert_eq!(killer("# a fault\n# killed-by: guard@small2\n--- a/x\n").unwrap(), ("guard", "small2"));
        assert!(killer("--- a/x\n# killed-by: guard@small2\n").is_err());
        assert!(killer("# killed-by: guard\n").is_err());
        assert_eq!(without_number("050-guard-disk"), "guard-disk");
        assert_eq!(without_number("guard-disk"), "guard-disk");
    }

    #[test]
    fn every_patch_applies_to_the_sources() {
        for m in all().unwrap() {
            let mut c = Command::new("git");
            c.current_dir(paths::root()).args(["apply", "--check"]).arg(&m.patch);
            cmd::output(&mut c).unwrap_or_else(|e| panic!("{}: {e:#}", m.patch.display()));
        }
    }

    #[test]
    fn every_patch_names_one_scenario_that_exists() {
        assert!(all().unwrap().len() >= 12);
    }
}
