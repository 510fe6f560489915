//! `cargo xtask mutate`: small faults in the pure crates, made by cargo-mutants, each of which a test of its crate must
//! find. A seed selects them; each outcome is kept in `target/mutate/outcomes.jsonl`, so that a run that
//! was interrupted continues. Faults that no test can find are listed in `survivors.toml`, each with its reason.

mod choice;
mod survivors;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::cargo_tool::CargoTool;
use crate::{cmd, paths, tree};
use choice::{Fault, Listed};

/// Another release makes other faults.
pub(crate) const TOOL: CargoTool = CargoTool { name: "cargo-mutants", version: "27.1.0", args: &[] };
/// The crates, and the crates beside their own whose tests are run too.
const CRATES: [(&str, &[&str]); 6] =
    [("plan", &[]), ("knob", &["plan"]), ("flow", &[]), ("kfmt", &[]), ("check", &[]), ("config", &[])];
/// The required share of faults that are caught, in per cent of those that compile.
const LEAST_CAUGHT: f64 = 85.0;
/// Directories that contain no sources of the workspace.
const NOT_COPIED: [&str; 3] = ["target", ".git", "fuzz"];

struct Options {
    krate: Option<String>,
    since: Option<String>,
    count: usize,
    seed: u64,
    minutes: Option<u64>,
    again: bool,
    list: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut o = Self { krate: None, since: None, count: 300, seed: 18, minutes: None, again: false, list: false };
        let mut rest = args.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{option} needs a value"));
            match option.as_str() {
                "--crate" => o.krate = Some(value()?.clone()),
                "--since" => o.since = Some(value()?.clone()),
                "--count" => o.count = value()?.parse().context("--count")?,
                "--seed" => o.seed = value()?.parse().context("--seed")?,
                "--minutes" => o.minutes = Some(value()?.parse().context("--minutes")?),
                "--again" => o.again = true,
                "--list" => o.list = true,
                other => bail!("unknown option {other:?}"),
            }
        }
        if let Some(c) = &o.krate {
            ensure!(CRATES.iter().any(|(name, _)| name == c), "--crate: expected one of {}", names().join(", "));
        }
        Ok(o)
    }
}

fn names() -> Vec<&'static str> {
    CRATES.iter().map(|(name, _)| *name).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Caught,
    Missed,
    /// The tests did not end in time. The fault counts as found, because the tests of the unchanged crate do end.
    Timeout,
    /// Does not compile.
    Unviable,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Missed => "missed",
            Self::Timeout => "timeout",
            Self::Unviable => "unviable",
        }
    }
}

/// A line of `outcomes.jsonl`. A later one replaces an earlier one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Record {
    /// The unchanged crate's tests passed within this time.
    Baseline { krate: String, tests: String, seconds: f64 },
    Fault {
        fault: String,
        outcome: Outcome,
        /// Hash of the file with the fault.
        file: String,
        /// Hash of the crates whose tests ran.
        tests: String,
        seconds: f64,
    },
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let o = Options::parse(args)?;
    let work = Work::new(&o)?;
    let all = choice::all(&work.list()?, &work.tree)?;
    let listed = survivors::read(&paths::root().join(survivors::FILE))?;
    let gone = survivors::without_fault(&listed, &all, o.krate.as_deref());
    let changed = o.since.as_deref().map(changed_since).transpose()?;
    let chosen = choice::choose(all, o.count, o.seed, |file| changed.as_ref().is_none_or(|c| c.contains(file)));
    if let Some(rev) = &o.since {
        println!("mutate: {} faults in files that changed since {rev}", chosen.len());
    }
    let mut found = work.earlier(&chosen)?;
    if !o.list {
        let begun = Instant::now();
        for (i, f) in chosen.iter().enumerate() {
            if found.contains_key(&f.key) {
                continue;
            }
            if o.minutes.is_some_and(|m| begun.elapsed() > Duration::from_secs(60 * m)) {
                break;
            }
            let outcome = work.test(f)?;
            println!("mutate: {}/{} {:8} {}", i + 1, chosen.len(), outcome.word(), f.name);
            found.insert(f.key.clone(), outcome);
        }
    }
    work.write_list(&chosen, &found)?;
    Ok(report(&chosen, &found, &listed, &gone, &o))
}

fn report(
    chosen: &[Fault],
    found: &BTreeMap<String, Outcome>,
    listed: &[Listed],
    gone: &[&Listed],
    o: &Options,
) -> ExitCode {
    let mut count: BTreeMap<Outcome, usize> = BTreeMap::new();
    chosen.iter().filter_map(|f| found.get(&f.key)).for_each(|v| *count.entry(*v).or_default() += 1);
    let n = |outcome| count.get(&outcome).copied().unwrap_or(0);
    let caught = n(Outcome::Caught) + n(Outcome::Timeout);
    let viable = caught + n(Outcome::Missed);
    let percent = if viable == 0 { 100.0 } else { caught as f64 * 100.0 / viable as f64 };
    let missed = chosen.iter().filter(|f| found.get(&f.key) == Some(&Outcome::Missed));
    let (known, new): (Vec<&Fault>, Vec<&Fault>) = missed.partition(|f| survivors::is_listed(listed, f));
    if o.list {
        for f in chosen {
            println!("{:8} {}", found.get(&f.key).map_or("-", |v| v.word()), f.name);
        }
    } else {
        new.iter().for_each(|f| println!("mutate: MISSED {}\n        {}", f.name, f.line));
    }
    for l in gone {
        println!("mutate: {} lists a fault that no longer exists: {}: {}", survivors::FILE, l.file, l.fault);
    }
    let left = chosen.len() - chosen.iter().filter(|f| found.contains_key(&f.key)).count();
    println!(
        "mutate: seed {}: {caught} of {viable} caught ({percent:.1} %), {} of them by time; {} missed, {} of them listed; {} do not \
         compile; {left} not tested yet",
        o.seed,
        n(Outcome::Timeout),
        n(Outcome::Missed),
        known.len(),
        n(Outcome::Unviable),
    );
    let good = percent >= LEAST_CAUGHT && new.is_empty() && gone.is_empty() && left == 0;
    if good || o.list { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Paths as cargo-mutants names them, from the root of the repository.
fn changed_since(rev: &str) -> Result<BTreeSet<String>> {
    let mut c = Command::new("git");
    c.current_dir(paths::root()).args(["diff", "--name-only", rev, "--", "crates"]);
    Ok(cmd::output(&mut c)?.lines().map(String::from).collect())
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The files of a run, below `target/mutate`.
struct Work {
    tool: PathBuf,
    dir: PathBuf,
    tree: PathBuf,
    /// A crate's sources and tests, and those of the crates whose tests run too, as one hash.
    tests: BTreeMap<&'static str, String>,
    only: Option<String>,
}

impl Work {
    fn new(o: &Options) -> Result<Self> {
        let tool = TOOL.ensure()?;
        let dir = paths::target().join("mutate");
        let tree = dir.join("tree");
        fs::create_dir_all(&tree)?;
        if o.again {
            let _ = fs::remove_file(dir.join("outcomes.jsonl"));
        }
        let mut work = Self { tool, dir, tree, tests: BTreeMap::new(), only: o.krate.clone() };
        work.copy_sources()?;
        for (name, with) in CRATES {
            let mut all = Vec::new();
            for c in std::iter::once(&name).chain(with) {
                files(&work.tree.join("crates").join(c), &mut all)?;
            }
            all.sort();
            let bytes: Vec<Vec<u8>> = all.iter().map(fs::read).collect::<Result<_, _>>()?;
            work.tests.insert(name, cmd::hash(&bytes.iter().map(Vec::as_slice).collect::<Vec<_>>()));
        }
        Ok(work)
    }

    /// Once, so that an edit during the run changes nothing; an earlier run may have been killed with a fault in the
    /// copy.
    fn copy_sources(&self) -> Result<()> {
        for entry in fs::read_dir(paths::root())? {
            let name = entry?.file_name();
            if !NOT_COPIED.iter().any(|n| name == *n) {
                tree::mirror(&paths::root().join(&name), &self.tree.join(&name))?;
            }
        }
        Ok(())
    }

    /// cargo-mutants on the copy.
    fn mutants(&self) -> Command {
        let mut c = Command::new(&self.tool);
        self.environment(&mut c).args(["mutants", "--no-config", "--no-shuffle", "--colors=never"]);
        c
    }

    /// The environment, without the variables that rewrite golden results.
    fn environment<'a>(&self, c: &'a mut Command) -> &'a mut Command {
        c.current_dir(&self.tree).env("CARGO_TARGET_DIR", self.dir.join("target")).env_remove("RINGWISE_BLESS");
        c.env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
    }

    /// JSON of all faults that the tool knows to make.
    fn list(&self) -> Result<String> {
        let mut c = self.mutants();
        c.args(["--list", "--json"]);
        for name in names().into_iter().filter(|n| self.only.as_deref().is_none_or(|o| o == *n)) {
            c.args(["-p", &format!("ringwise-{name}")]);
        }
        cmd::output(&mut c)
    }

    fn file_hash(&self, f: &Fault) -> Result<String> {
        Ok(cmd::hash(&[&fs::read(self.tree.join(&f.file))?]))
    }

    fn records(&self) -> Result<Vec<Record>> {
        let text = match fs::read_to_string(self.dir.join("outcomes.jsonl")) {
            Ok(t) => t,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e).context("outcomes.jsonl"),
        };
        // The last line may be incomplete.
        Ok(text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect())
    }

    fn keep(&self, r: &Record) -> Result<()> {
        let mut f = OpenOptions::new().create(true).append(true).open(self.dir.join("outcomes.jsonl"))?;
        Ok(writeln!(f, "{}", serde_json::to_string(r)?)?)
    }

    /// Outcomes that are still valid: of a fault that was found while its file is unchanged, of another one while the
    /// crate and its tests are.
    fn earlier(&self, chosen: &[Fault]) -> Result<BTreeMap<String, Outcome>> {
        let mut last = BTreeMap::new();
        for r in self.records()? {
            if let Record::Fault { fault, outcome, file, tests, .. } = r {
                last.insert(fault, (outcome, file, tests));
            }
        }
        let mut found = BTreeMap::new();
        for f in chosen {
            let Some((outcome, file, tests)) = last.get(&f.key) else { continue };
            let same_file = *file == self.file_hash(f)?;
            if same_file && (matches!(outcome, Outcome::Caught | Outcome::Unviable) || *tests == self.tests[f.krate]) {
                found.insert(f.key.clone(), *outcome);
            }
        }
        Ok(found)
    }

    /// How long the unchanged crate's tests take; they must pass.
    fn baseline(&self, krate: &str) -> Result<f64> {
        for r in self.records()?.into_iter().rev() {
            if let Record::Baseline { krate: c, tests, seconds } = r
                && c == krate
                && tests == self.tests[krate]
            {
                return Ok(seconds);
            }
        }
        let test = || {
            let mut c = cargo();
            self.environment(&mut c).args(["test", "--quiet"]).args(optimized(krate));
            c.args(packages(krate).iter().flat_map(|p| ["-p", p]));
            c
        };
        cmd::output(test().arg("--no-run"))?;
        let begun = Instant::now();
        cmd::output(&mut test()).with_context(|| format!("the tests of {krate} fail without any fault"))?;
        let seconds = begun.elapsed().as_secs_f64();
        self.keep(&Record::Baseline { krate: krate.into(), tests: self.tests[krate].clone(), seconds })?;
        Ok(seconds)
    }

    fn test(&self, f: &Fault) -> Result<Outcome> {
        let limit = (8.0 * self.baseline(f.krate)?).max(120.0).ceil().to_string();
        let begun = Instant::now();
        let mut c = self.mutants();
        c.args(["--in-place", "--baseline=skip", "--timeout", &limit, "--build-timeout", "1200"]);
        // By its place in the file: release 27.1.0 tests faults of struct fields even where `--re` names another one.
        c.args(["-p", &format!("ringwise-{}", f.krate), "--file", &f.file, "--sharding=round-robin", "--shard"]);
        c.arg(format!("{}/{}", f.place.0, f.place.1)).arg("-o").arg(&self.dir);
        c.args(packages(f.krate).iter().flat_map(|p| ["--test-package", p]));
        c.args(optimized(f.krate).iter().map(|o| format!("--cargo-arg={o}")));
        // Its status repeats the result, but without the fault.
        let out = c.output().context("cannot start cargo-mutants")?;
        let outcome = fs::read_to_string(self.dir.join("mutants.out/outcomes.json"))
            .context("cargo-mutants wrote no outcomes")
            .and_then(|text| outcome(&text, &f.name))
            .with_context(|| {
                format!("{}\n{}{}", f.name, String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
            })?;
        let seconds = begun.elapsed().as_secs_f64();
        let (file, tests) = (self.file_hash(f)?, self.tests[f.krate].clone());
        self.keep(&Record::Fault { fault: f.key.clone(), outcome, file, tests, seconds })?;
        Ok(outcome)
    }

    fn write_list(&self, chosen: &[Fault], found: &BTreeMap<String, Outcome>) -> Result<()> {
        let line = |f: &Fault| format!("{:8} {}\n", found.get(&f.key).map_or("-", |v| v.word()), f.name);
        fs::write(self.dir.join("list.txt"), chosen.iter().map(line).collect::<String>())?;
        Ok(())
    }
}

/// Options of cargo. The tests of `plan` take four times as long without any optimization; those of other crates take
/// less time than an optimized build.
fn optimized(krate: &str) -> Vec<String> {
    let runs = |c: &str| packages(krate).contains(&format!("ringwise-{c}"));
    let option = |c: &str| format!("--config=profile.dev.package.ringwise-{c}.opt-level=1");
    if runs("plan") { ["plan", "knob", "model"].map(option).to_vec() } else { Vec::new() }
}

fn packages(krate: &str) -> Vec<String> {
    let with = CRATES.iter().find(|(name, _)| *name == krate).map_or(&[][..], |(_, with)| with);
    std::iter::once(&krate).chain(with).map(|c| format!("ringwise-{c}")).collect()
}

/// What `outcomes.json` of cargo-mutants holds about this fault, which must be the only one in it.
fn outcome(text: &str, name: &str) -> Result<Outcome> {
    #[derive(Deserialize)]
    struct File {
        outcomes: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        scenario: serde_json::Value,
        summary: String,
    }
    let file: File = serde_json::from_str(text).context("outcomes.json")?;
    let [one] = file.outcomes.as_slice() else { bail!("{} faults were tested, not one", file.outcomes.len()) };
    ensure!(one.scenario["Mutant"]["name"] == name, "another fault was tested: {}", one.scenario["Mutant"]["name"]);
    Ok(match one.summary.as_str() {
        "CaughtMutant" => Outcome::Caught,
        "MissedMutant" => Outcome::Missed,
        "Timeout" => Outcome::Timeout,
        "Unviable" => Outcome::Unviable,
        other => bail!("cargo-mutants reports {other:?}"),
    })
}

/// All files below `dir`.
fn files(dir: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() { files(&path, out)? } else { out.push(path) }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_and_its_outcome() {
        let text = |summary: &str| {
            format!(r#"{{"outcomes":[{{"scenario":{{"Mutant":{{"name":"a.rs:1:2: x"}}}},"summary":"{summary}"}}]}}"#)
        };
        assert_eq!(outcome(&text("CaughtMutant"), "a.rs:1:2: x").unwrap(), Outcome::Caught);
        assert_eq!(outcome(&text("Timeout"), "a.rs:1:2: x").unwrap(), Outcome::Timeout);
        assert!(outcome(&text("Success"), "a.rs:1:2: x").is_err());
        assert!(outcome(&text("MissedMutant"), "a.rs:1:3: x").is_err());
        assert!(outcome(r#"{"outcomes":[]}"#, "a.rs:1:2: x").is_err());
    }
}
