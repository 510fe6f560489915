//! Scenarios: shell scripts with a header that names their hosts and kernels, and the results that they print.

use crate::paths;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub name: String,
    pub path: PathBuf,
    hosts: Vec<String>,
    kernels: Vec<String>,
    /// `host@kernel` combinations that are excluded.
    except: Vec<String>,
    /// `host@kernel` where it belongs to the quick set of `make test`.
    quick: Vec<String>,
    /// Names from lab/areas.toml: a change there is a reason to run it.
    pub areas: Vec<String>,
    /// A complaint of the kernel that it causes on purpose.
    pub provokes: Option<String>,
    pub timeout: u64,
    /// Its time limit with `--long`, where it takes more time or more events. The script sees `LONG=1` then.
    pub long: Option<u64>,
    pub needs_mqnic: bool,
    pub needs_cost: bool,
    pub needs_irqbalance: bool,
    pub needs_peers: bool,
    /// It measures without a verdict, so it runs only when `--scenario` names it.
    pub benchmark: bool,
    /// The reason for which a skip is allowed.
    pub may_skip: Option<String>,
}

/// Every scenario, in the order of their names.
pub(crate) fn all() -> Result<Vec<Scenario>> {
    in_dir(&paths::lab().join("scenarios"))
}

/// Those of another directory: `lab/bench/`.
pub(crate) fn in_dir(dir: &Path) -> Result<Vec<Scenario>> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .with_context(|| dir.display().to_string())?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "sh"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path)?;
            header(&text, path.clone()).with_context(|| path.display().to_string())
        })
        .collect()
}

fn header(text: &str, path: PathBuf) -> Result<Scenario> {
    let mut s = Scenario {
        name: path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
        path,
        hosts: vec![],
        kernels: vec![],
        except: vec![],
        quick: vec![],
        areas: vec![],
        provokes: None,
        timeout: 60,
        long: None,
        needs_mqnic: false,
        needs_cost: false,
        needs_irqbalance: false,
        needs_peers: false,
        benchmark: false,
        may_skip: None,
    };
    let words = |v: &str| v.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    for line in text.lines().take_while(|l| l.starts_with('#')) {
        let Some((key, value)) = line.trim_start_matches(['#', ' ']).split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key {
            "hosts" => s.hosts = words(value),
            "kernels" => s.kernels = words(value),
            "except" => s.except = words(value),
            "quick" => s.quick = words(value),
            "areas" => s.areas = words(value),
            "provokes" => s.provokes = Some(value.to_string()),
            "timeout" => s.timeout = value.parse().context("timeout: seconds")?,
            "long" => s.long = Some(value.parse().context("long: seconds")?),
            "needs" if value == "mqnic" => s.needs_mqnic = true,
            "needs" if value == "irqbalance" => s.needs_irqbalance = true,
            "needs" if value == "peers" => s.needs_peers = true,
            "needs" if value == "cost" => s.needs_cost = true,
            "needs" => bail!("needs: expected mqnic, cost, irqbalance or peers, found {value:?}"),
            "lane" if value == "benchmark" => s.benchmark = true,
            "lane" => bail!("lane: expected benchmark, found {value:?}"),
            "may-skip" => s.may_skip = Some(value.to_string()),
            _ => {}
        }
    }
    if s.hosts.is_empty() || s.kernels.is_empty() {
        bail!("the header must have `# hosts:` and `# kernels:`");
    }
    for boot in &s.quick {
        if !boot.split_once('@').is_some_and(|(host, kernel)| s.runs_on(host, kernel)) {
            bail!("quick: expected HOST@KERNEL of a boot where it runs, found {boot:?}");
        }
    }
    Ok(s)
}

impl Scenario {
    pub(crate) fn runs_on(&self, host: &str, kernel: &str) -> bool {
        let in_list = |list: &[String], x: &str| list.iter().any(|w| w == x || w == "all");
        let except = self.except.contains(&format!("{host}@{kernel}"));
        in_list(&self.hosts, host) && in_list(&self.kernels, kernel) && !except
    }

    /// Whether its header names this host. `all` names none.
    pub(crate) fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|h| h == host)
    }

    /// Whether it belongs to the quick set there.
    pub(crate) fn quick_on(&self, host: &str, kernel: &str) -> bool {
        self.quick.contains(&format!("{host}@{kernel}"))
    }
}

/// The result of one scenario.
#[derive(Debug, Default, Clone)]
pub(crate) struct Score {
    pub passed: u32,
    pub failed: u32,
    pub skipped: u32,
    /// One line for each failure.
    pub wrong: Vec<String>,
}

impl Score {
    pub(crate) fn add(&mut self, other: &Score) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.failed += 1;
        self.wrong.push(why);
    }
}

/// Counts the result lines of a scenario that ended with `status`.
pub(crate) fn score(s: &Scenario, output: &str, status: Option<i32>) -> Score {
    let mut n = Score::default();
    for line in output.lines() {
        let line = line.trim_end();
        if line.starts_with("not ok ") {
            n.fail(line.to_string());
        } else if line.starts_with("ok ") {
            n.passed += 1;
        } else if line.starts_with("skip ") {
            if s.may_skip.is_some() {
                n.skipped += 1;
            } else {
                n.fail(format!("{line}  (a skip fails here: no `# may-skip:`)"));
            }
        }
    }
    match status {
        Some(0) => {
            if n.passed + n.failed + n.skipped == 0 {
                n.fail("it checked nothing".into());
            }
        }
        // busybox timeout kills with SIGKILL.
        Some(137) => n.fail(format!("no end after {} s", s.timeout)),
        Some(rc) => n.fail(format!("it exited with status {rc}")),
        None => n.fail("it never ended: the guest hung or died, see console.log".into()),
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(extra: &str) -> Scenario {
        let text = format!("#!/bin/sh\n# hosts: a b\n# kernels: all\n{extra}");
        header(&text, PathBuf::from("x/100-try.sh")).unwrap()
    }

    #[test]
    fn the_header_names_where_it_runs() {
        let s = scenario("# timeout: 7\n# needs: mqnic\n# long: 70\n");
        assert_eq!((s.long, scenario("").long), (Some(70), None));
        assert_eq!((s.name.as_str(), s.timeout, s.needs_mqnic), ("100-try", 7, true));
        assert!(s.runs_on("a", "6.12") && !s.runs_on("c", "6.12"));
        assert!(!s.benchmark && scenario("# lane: benchmark\n").benchmark);
        let s = scenario("# needs: mqnic\n# needs: cost\n");
        assert!(s.needs_mqnic && s.needs_cost, "one line for each");
        let s = scenario("# except: a@6.12 b@5.10\n");
        assert!(!s.runs_on("a", "6.12") && s.runs_on("b", "6.12"));
        assert!(header("# hosts: a\n", PathBuf::new()).is_err());
        let s = scenario("# quick: a@6.12\n# areas: bench flow\n# provokes: NETDEV WATCHDOG\n");
        assert!(s.quick_on("a", "6.12") && !s.quick_on("b", "6.12"));
        assert_eq!((s.areas.join(" ").as_str(), s.provokes.as_deref()), ("bench flow", Some("NETDEV WATCHDOG")));
        assert!(header("# hosts: a\n# kernels: all\n# quick: c@6.12\n", PathBuf::new()).is_err());
    }

    #[test]
    fn numbers_have_three_digits_and_are_unique() {
        let mut seen = std::collections::BTreeMap::new();
        for s in all().unwrap() {
            let number = s.name.split('-').next().unwrap_or_default().to_string();
            assert!(
                number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit()),
                "{}: no three-digit number",
                s.name
            );
            if let Some(other) = seen.insert(number, s.name.clone()) {
                panic!("{other} and {} have the same number", s.name);
            }
        }
    }

    #[test]
    fn a_skip_and_a_silent_scenario_fail() {
        let out = "ok one\nnot ok two # why\nskip three # absent\n";
        let n = score(&scenario(""), out, Some(0));
        assert_eq!((n.passed, n.failed, n.skipped), (1, 2, 0));
        let n = score(&scenario("# may-skip: absent there\n"), out, Some(1));
        assert_eq!((n.passed, n.failed, n.skipped), (1, 2, 1));
        assert_eq!(score(&scenario(""), "", Some(0)).failed, 1);
        assert_eq!(score(&scenario(""), "ok one\n", None).failed, 1);
    }
}
