//! `cargo xtask lab`: plan the boots, run two at a time, print what came of each scenario.

use crate::boot::{Guest, Lost, Mode};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::mqnic::Built;
use crate::scenario::{self, Scenario, Score};
use crate::{demo, host, kernel, program, setup};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

/// Guests at one time: each keeps about one core busy.
const PARALLEL: usize = 2;

#[derive(Debug, Default)]
struct Options {
    host: Option<String>,
    kernel: Option<String>,
    scenario: Option<String>,
    list: bool,
    keep: bool,
    shell: bool,
    program: Option<String>,
}

fn options(args: &[String]) -> Result<Options> {
    let mut o = Options::default();
    let mut it = args.iter();
    while let Some(arg) = it.next() {
        let (key, inline) = match arg.split_once('=') {
            Some((k, v)) => (k, Some(v.to_string())),
            None => (arg.as_str(), None),
        };
        let slot = match key {
            "--host" => &mut o.host,
            "--kernel" => &mut o.kernel,
            "--scenario" => &mut o.scenario,
            "--program" => &mut o.program,
            "--list" => {
                o.list = true;
                continue;
            }
            "--keep" => {
                o.keep = true;
                continue;
            }
            "shell" => {
                o.shell = true;
                continue;
            }
            other => bail!("lab: unknown option {other:?}"),
        };
        let value = inline.or_else(|| it.next().cloned());
        *slot = Some(value.with_context(|| format!("{key} needs a value"))?);
    }
    Ok(o)
}

/// One boot: a host on a kernel with the scenarios that share it.
struct Job<'a> {
    host: &'a Host,
    kernel: &'a Kernel,
    scenarios: Vec<&'a Scenario>,
}

pub fn run(args: &[String]) -> Result<ExitCode> {
    let o = options(args)?;
    if o.shell {
        let host = o.host.as_deref().unwrap_or("router16");
        return demo::guest(host, o.kernel.as_deref().unwrap_or("6.12"), Mode::Shell, o.program.map(Into::into));
    }
    let hosts = host::all()?;
    let kernels = kernel::table()?;
    let scenarios = scenario::all()?;
    known("host", o.host.as_deref(), hosts.iter().map(|h| h.name.as_str()))?;
    known("kernel", o.kernel.as_deref(), kernels.iter().map(|k| k.name.as_str()))?;
    let mut jobs = plan(&o, &hosts, &kernels, &scenarios);
    if jobs.is_empty() {
        bail!("no scenario fits these options");
    }
    // The longest boots first, so that the last one is not alone.
    jobs.sort_by_key(|j| std::cmp::Reverse(8 * j.scenarios.len() as u32 + j.host.cpu.count()));
    if o.list {
        for j in &jobs {
            let names: Vec<&str> = j.scenarios.iter().map(|s| s.name.as_str()).collect();
            println!("{} on {}: {}", j.host.name, j.kernel.name, names.join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    setup::tools()?;
    let ringwise = match &o.program {
        Some(path) => path.into(),
        None => program::build()?,
    };
    let (total, wrong) = work(jobs, &ringwise, o.keep)?;
    // Once more at the end, where people look first.
    for w in &wrong {
        println!("lab: {w}");
    }
    println!("lab: {} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn known<'a>(what: &str, asked: Option<&str>, have: impl Iterator<Item = &'a str>) -> Result<()> {
    let have: Vec<&str> = have.collect();
    match asked {
        Some(a) if !have.contains(&a) => bail!("no {what} {a:?}; there are {}", have.join(", ")),
        _ => Ok(()),
    }
}

fn plan<'a>(o: &Options, hosts: &'a [Host], kernels: &'a [Kernel], scenarios: &'a [Scenario]) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for host in hosts {
        for kernel in kernels {
            let wanted = o.host.as_ref().is_none_or(|h| *h == host.name)
                && o.kernel.as_ref().map_or_else(|| host.kernels.contains(&kernel.name), |k| *k == kernel.name);
            if !wanted {
                continue;
            }
            let scenarios: Vec<&Scenario> = scenarios
                .iter()
                .filter(|s| s.runs_on(&host.name, &kernel.name))
                .filter(|s| o.scenario.as_ref().is_none_or(|t| s.name.contains(t.as_str())))
                .collect();
            if !scenarios.is_empty() {
                jobs.push(Job { host, kernel, scenarios });
            }
        }
    }
    jobs
}

/// Runs all jobs, `PARALLEL` at a time.
fn work(jobs: Vec<Job>, ringwise: &Path, keep: bool) -> Result<(Score, Vec<String>)> {
    // Fetching and building is done first and in turn: apt and make want to be alone.
    let mut queue = Vec::new();
    for job in jobs.into_iter().rev() {
        let guest = Guest::prepare(job.host, job.kernel)?;
        crate::image::ensure(&guest.ready)?;
        if job.scenarios.iter().any(|s| s.needs_irqbalance) {
            crate::irqbalance::ensure()?;
        }
        queue.push((job, guest));
    }
    let queue = Mutex::new(queue);
    let total = Mutex::new((Score::default(), Vec::new()));
    let next = || queue.lock().ok().and_then(|mut q| q.pop());
    std::thread::scope(|threads| {
        for _ in 0..PARALLEL {
            threads.spawn(|| {
                while let Some((job, guest)) = next() {
                    let (text, score) = one(&job, &guest, ringwise, keep);
                    print!("{text}");
                    if let Ok(mut t) = total.lock() {
                        t.0.passed += score.passed;
                        t.0.failed += score.failed;
                        t.0.skipped += score.skipped;
                        let boot = format!("{} on {}", job.host.name, job.kernel.name);
                        let bad = text.lines().filter(|l| failure(l)).map(|l| format!("{boot}: {}", l.trim()));
                        t.1.extend(bad);
                    }
                }
            });
        }
    });
    total.into_inner().ok().context("a boot's thread died")
}

/// Times that a boot is tried, as long as QEMU loses it.
const BOOTS: u32 = 6;

/// One boot, again if QEMU lost it, which is said: see lab/README.md. Scenarios that had ended are not run again.
fn one(job: &Job, guest: &Guest, ringwise: &Path, keep: bool) -> (String, Score) {
    let mut lost = String::new();
    for boot in 1.. {
        let (text, score, why) = once(job, guest, ringwise, keep, boot > 1);
        match why {
            Some(why) if boot < BOOTS => {
                lost += &format!("{} on {}: {}, booting it again\n", job.host.name, guest.ready.release, why.word());
            }
            _ => return (lost + &text, score),
        }
    }
    (lost, Score::default())
}

/// One boot from share directory to score; its report is printed in one piece.
fn once(job: &Job, guest: &Guest, ringwise: &Path, keep: bool, again: bool) -> (String, Score, Option<Lost>) {
    let title = format!("{} on {} ({})", job.host.name, guest.ready.release, job.host.about);
    let mut total = Score::default();
    let mut text = String::new();
    let mut run = Vec::new();
    for s in &job.scenarios {
        match (&guest.test_nic, s.needs_mqnic) {
            // Declared in lab/kernels.toml, so it is no failure.
            (Built::No(why), true) if !job.kernel.test_nic => {
                total.skipped += 1;
                text += &format!("  {:24} skipped: {why}\n", s.name);
            }
            _ => run.push(*s),
        }
    }
    let limit = job.host.boot_limit + run.iter().map(|s| s.timeout).sum::<u64>();
    let filled = if again { guest.go_on(&run) } else { guest.fill(ringwise, Mode::Scenarios, &run) };
    let booted = filled.and_then(|()| guest.run(Mode::Scenarios, Duration::from_secs(limit)));
    let ended = match booted {
        Ok(e) => e,
        Err(e) => {
            total.failed += 1;
            return (format!("{title}: FAILED to boot: {e:#}\n"), total, None);
        }
    };
    let results = guest.share().join("results");
    for s in &run {
        let out = read(&results.join(format!("{}.out", s.name)));
        let rc = read(&results.join(format!("{}.rc", s.name)));
        let mut words = rc.split_whitespace();
        let status = words.next().and_then(|w| w.parse().ok());
        let times: Vec<f64> = words.filter_map(|w| w.parse().ok()).collect();
        let score = scenario::score(s, &out, status);
        let spent = match times[..] {
            [from, to] => format!("{:.1} s", to - from),
            _ => "no end".into(),
        };
        text += &format!(
            "  {:24} {} passed, {} failed, {} skipped ({spent})\n",
            s.name, score.passed, score.failed, score.skipped
        );
        if score.failed > 0 {
            for w in &score.wrong {
                text += &format!("    {w}\n");
            }
            for line in out.lines() {
                text += &format!("    | {line}\n");
            }
        }
        total.passed += score.passed;
        total.failed += score.failed;
        total.skipped += score.skipped;
        let _ = fs::copy(results.join(format!("{}.out", s.name)), guest.dir.join(format!("{}.out", s.name)));
    }
    // What scenarios want to outlive the guest.
    for file in fs::read_dir(results.join("keep")).into_iter().flatten().flatten() {
        let _ = fs::copy(file.path(), guest.dir.join(file.file_name()));
    }
    let dmesg = read(&results.join("dmesg"));
    let console = read(&guest.dir.join("console.log"));
    let _ = fs::write(guest.dir.join("dmesg"), &dmesg);
    for line in dmesg.lines().chain(console.lines()).filter(|l| kernel_complaint(l)).take(5) {
        total.failed += 1;
        text += &format!("  kernel: {line}\n");
    }
    let fate = match ended.guest_status() {
        Some(0) => String::new(),
        Some(n) => {
            total.failed += 1;
            format!(", FAILED: the guest reported {n}")
        }
        None => {
            total.failed += 1;
            let log = guest.dir.join("console.log");
            let qemu = read(&guest.dir.join("qemu.log"));
            let tail: Vec<&str> = console.lines().chain(qemu.lines()).collect();
            for line in tail.iter().skip(tail.len().saturating_sub(15)) {
                text += &format!("    | {line}\n");
            }
            let how = match ended.status {
                Some(_) => "it ended without a status".to_string(),
                None => format!("no end within {limit} s"),
            };
            format!(", FAILED: {how}, see {}", log.display())
        }
    };
    if !keep && total.failed == 0 {
        let _ = fs::remove_dir_all(guest.share());
    }
    let head = format!("{title}: {:.1} s{fate}\n", ended.took.as_secs_f64());
    (head + &text, total, ended.lost)
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A line of a boot's report that says what failed.
fn failure(line: &str) -> bool {
    ["    not ok ", "  kernel: "].iter().any(|s| line.starts_with(s)) || line.contains("FAILED")
}

/// A line that a healthy kernel never logs.
fn kernel_complaint(line: &str) -> bool {
    const SIGNS: &[&str] = &[
        "WARNING: CPU:",
        "WARNING: at",
        "WARNING: possible",
        "BUG: ",
        "Oops",
        "general protection",
        "Kernel panic",
        "blocked for more than",
        "self-detected stall",
        "detected stalls",
        "soft lockup",
        "NETDEV WATCHDOG",
    ];
    SIGNS.iter().any(|s| line.contains(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_both_forms() {
        let words = ["--host", "a", "--kernel=6.12", "--list"].map(String::from);
        let o = options(&words).unwrap();
        assert_eq!((o.host.as_deref(), o.kernel.as_deref()), (Some("a"), Some("6.12")));
        assert!(o.list && !o.keep);
        assert!(options(&["--host".to_string()]).is_err());
        assert!(options(&["--what".to_string()]).is_err());
    }

    #[test]
    fn a_warning_is_seen_and_talk_is_not() {
        assert!(kernel_complaint("[ 1.0] WARNING: CPU: 1 PID: 2 at net/core/dev.c:1"));
        assert!(!kernel_complaint("[ 1.0] mqnic: loading out-of-tree module taints kernel."));
    }
}
