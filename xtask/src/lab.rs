//! `cargo xtask lab`: plan the boots, run two at a time, print what came of each scenario.

use crate::boot::{Guest, Lost, Mode};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::lane::{self, Choice};
use crate::module::Built;
use crate::mutants::Checked;
use crate::program::Profile;
use crate::scenario::{self, Scenario, Score};
use crate::setup::Lane;
use crate::{demo, host, kernel, program, progress, setup, times};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use times::Times;

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
    minutes: Option<String>,
    quick: bool,
    since: Option<String>,
    record: bool,
    shuffle: Option<String>,
    /// For `mutants`: no second guest, each scenario ends at its first failed check, and what came of them goes to this file.
    once: Option<String>,
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
            "--minutes" => &mut o.minutes,
            "--since" => &mut o.since,
            "--quick" => {
                o.quick = true;
                continue;
            }
            "--record" => {
                o.record = true;
                continue;
            }
            "--shuffle" => &mut o.shuffle,
            "--once" => &mut o.once,
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
pub struct Job<'a> {
    pub host: &'a Host,
    pub kernel: &'a Kernel,
    pub scenarios: Vec<&'a Scenario>,
    /// Where what scenarios keep goes; none: to the boot's other files.
    pub keep: Option<&'a Path>,
    /// Run it for `mutants`, see `Options`.
    pub once: Option<&'a Path>,
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
    lane::known_areas(&scenarios)?;
    let choice = match (&o.since, o.quick) {
        (Some(_), true) => bail!("--quick and --since exclude each other"),
        (Some(revision), false) => Choice::Touched(lane::since(revision)?),
        (None, true) => Choice::Quick,
        (None, false) => Choice::All,
    };
    let mut jobs = plan(&o, &choice, &hosts, &kernels, &scenarios);
    if jobs.is_empty() {
        if o.since.is_some() {
            println!("lab: no scenario can notice this change");
            return report(Outcome::default());
        }
        bail!("no scenario fits these options");
    }
    // The longest boots first, so that the last one is not alone.
    jobs.sort_by_key(|j| std::cmp::Reverse(j.scenarios.iter().map(|s| s.timeout).sum::<u64>()));
    if let Some(seed) = &o.shuffle {
        let seed = seed.parse().with_context(|| format!("--shuffle: not a number: {seed:?}"))?;
        println!("lab: scenarios in the order of --shuffle {seed}");
        jobs.iter_mut().for_each(|j| shuffle(&mut j.scenarios, seed));
    }
    if o.list {
        for j in &jobs {
            let names: Vec<&str> = j.scenarios.iter().map(|s| s.name.as_str()).collect();
            println!("{} on {}: {}", j.host.name, j.kernel.name, names.join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    progress::catch_signals()?;
    setup::tools(if o.quick { Lane::Quick } else { Lane::All })?;
    let ringwise = match &o.program {
        Some(path) => path.into(),
        // What ships is tested as it ships where there is time for it.
        None => program::build(if o.quick { Profile::Lab } else { Profile::Release })?,
    };
    let minutes = o.minutes.as_deref().map(|m| m.parse().with_context(|| format!("--minutes: not a number: {m:?}")));
    let end = minutes.transpose()?.map(|m: u64| Instant::now() + Duration::from_secs(60 * m));
    let outcome = work(jobs, &ringwise, o.keep, end, PARALLEL)?;
    if o.record {
        times::record(&outcome.times, &outcome.score, outcome.lost.len())?;
    }
    report(outcome)
}

/// The boots of a lane: hosts with the names of kernels.
pub fn boots(lane: Lane) -> Result<Vec<(Host, String)>> {
    let (hosts, kernels, scenarios) = (host::all()?, kernel::table()?, scenario::all()?);
    if lane == Lane::Demo {
        let router = hosts.into_iter().find(|h| h.name == demo::HOST);
        return Ok(router.map(|h| (h.without_test_nics(), demo::KERNEL.to_string())).into_iter().collect());
    }
    let choice = if lane == Lane::Quick { Choice::Quick } else { Choice::All };
    let all = Options::default();
    let jobs = plan(&all, &choice, &hosts, &kernels, &scenarios);
    Ok(jobs.iter().map(|j| (j.host.clone(), j.kernel.name.clone())).collect())
}

/// More scenarios than this that held only in their second guest are a failure: luck is no evidence.
const RETRIES: usize = 2;

/// The lines that close a run.
pub fn report(outcome: Outcome) -> Result<ExitCode> {
    let Outcome { score: mut total, mut wrong, unsteady, retried, lost, times } = outcome;
    // Once more at the end, where people look first.
    times::print(&times);
    println!("lab: {} boots, {} of them lost and made again", times.boots.len() + lost.len(), lost.len());
    if retried > RETRIES {
        wrong.push(format!("{retried} scenarios held only in their second guest; at most {RETRIES} may"));
        total.failed += 1;
    }
    for l in &lost {
        println!("lab: booted again: {l}");
    }
    for w in &unsteady {
        println!("lab: failed the first time: {w}");
    }
    for w in &wrong {
        println!("lab: {w}");
    }
    println!("lab: {} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub fn known<'a>(what: &str, asked: Option<&str>, have: impl Iterator<Item = &'a str>) -> Result<()> {
    let have: Vec<&str> = have.collect();
    match asked {
        Some(a) if !have.contains(&a) => bail!("no {what} {a:?}; there are {}", have.join(", ")),
        _ => Ok(()),
    }
}

fn plan<'a>(
    o: &'a Options,
    choice: &Choice,
    hosts: &'a [Host],
    kernels: &'a [Kernel],
    scenarios: &'a [Scenario],
) -> Vec<Job<'a>> {
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
                .filter(|s| s.runs_on(&host.name, &kernel.name) && choice.has(s, host, &kernel.name))
                .filter(|s| o.scenario.as_ref().map_or(!s.benchmark, |t| s.name.contains(t.as_str())))
                .collect();
            if !scenarios.is_empty() {
                jobs.push(Job { host, kernel, scenarios, keep: None, once: o.once.as_deref().map(Path::new) });
            }
        }
    }
    jobs
}

/// The same order for the same seed and the same length (Fisher and Yates, with a linear congruential generator).
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for left in (2..=items.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let below = u64::try_from(left).unwrap_or(u64::MAX);
        items.swap(left - 1, usize::try_from((state >> 33) % below).unwrap_or(0));
    }
}

/// What came of all boots.
#[derive(Debug, Default)]
pub struct Outcome {
    pub score: Score,
    /// What failed, and did so again.
    wrong: Vec<String>,
    /// What failed in one guest and held in the next.
    unsteady: Vec<String>,
    /// Scenarios that failed in their first guest.
    retried: usize,
    /// Guests that QEMU lost.
    lost: Vec<String>,
    times: Times,
}

/// Runs all jobs, `at_once` of them at a time. What has not run at `end` has failed.
pub fn work(jobs: Vec<Job>, ringwise: &Path, keep: bool, end: Option<Instant>, at_once: usize) -> Result<Outcome> {
    // Fetching and building is done first and in turn: apt and make want to be alone.
    let mut queue = Vec::new();
    for job in jobs.into_iter().rev() {
        let guest = Guest::prepare(job.host, job.kernel)?;
        crate::image::ensure(&guest.ready)?;
        if job.scenarios.iter().any(|s| s.needs_irqbalance) {
            crate::irqbalance::ensure()?;
        }
        if job.scenarios.iter().any(|s| s.needs_peers) {
            crate::peers::ensure()?;
        }
        queue.push((job, guest));
    }
    let queue = Mutex::new(queue);
    let total = Mutex::new(Outcome::default());
    let next = || queue.lock().ok().and_then(|mut q| q.pop());
    std::thread::scope(|threads| {
        for _ in 0..at_once {
            threads.spawn(|| {
                while let Some((job, guest)) = next() {
                    let run = Run { job: &job, guest: &guest, ringwise, keep, end };
                    let start = Instant::now();
                    let o = run.all();
                    let boot = format!("{} on {}", job.host.name, job.kernel.name);
                    let named =
                        |lines: Vec<String>| lines.into_iter().map(|l| format!("{boot}: {l}")).collect::<Vec<_>>();
                    if let Ok(mut t) = total.lock() {
                        t.score.add(&o.score);
                        t.wrong.extend(named(o.wrong));
                        t.unsteady.extend(named(o.unsteady));
                        t.retried += o.retried;
                        t.lost.extend(named(o.lost));
                        t.times.add(&boot, start.elapsed(), o.times.scenarios);
                    }
                }
            });
        }
    });
    total.into_inner().ok().context("a boot's thread died")
}

/// Times that a boot is tried, as long as QEMU loses it.
const BOOTS: usize = 6;

/// What came of one boot.
#[derive(Debug, Default)]
struct Report<'a> {
    text: String,
    parts: Vec<(&'a Scenario, Score)>,
    /// Seconds of the guest's clock for each scenario that ended.
    seconds: Vec<(String, f64)>,
    /// Scenarios that do not run on this kernel.
    skipped: u32,
    /// Lines of the kernel that a healthy one never logs.
    complaints: Vec<String>,
    /// How the guest ended, if not well.
    fate: Option<String>,
    /// By whose fault, and after which time.
    lost: Option<(Lost, Duration)>,
    /// What was said of guests that were booted again.
    again: Vec<String>,
}

/// A boot and what it runs with.
#[derive(Clone, Copy)]
struct Run<'a> {
    job: &'a Job<'a>,
    guest: &'a Guest<'a>,
    ringwise: &'a Path,
    keep: bool,
    /// When all boots have to be over.
    end: Option<Instant>,
}

impl Run<'_> {
    fn name(&self) -> String {
        format!("{} on {}", self.job.host.name, self.guest.ready.release)
    }

    fn left(&self) -> Duration {
        self.end.map_or(Duration::MAX, |e| e.saturating_duration_since(Instant::now()))
    }

    /// One job. Scenarios that fail are run once more in a fresh guest, and both runs are reported: under emulation a
    /// link may take longer than a scenario waits. What fails twice has failed, and so has what the kernel complained of.
    fn all(&self) -> Outcome {
        let mut out = Outcome::default();
        if self.left().is_zero() {
            println!("{}: not booted, the time for all boots is over", self.name());
            out.wrong.push(format!("not booted, {} scenarios not run: the time was over", self.job.scenarios.len()));
            out.score.failed = 1;
            return out;
        }
        println!("{}: booting", self.name());
        let first = self.boots(&self.job.scenarios);
        print!("{}", first.text);
        let retry = |n: &Score| n.failed > 0 && self.job.once.is_none();
        let again: Vec<&Scenario> = first.parts.iter().filter(|(_, n)| retry(n)).map(|(s, _)| *s).collect();
        if let Some(file) = self.job.once {
            let checked: Vec<Checked> = first.parts.iter().map(|(s, n)| Checked::new(&s.name, n)).collect();
            if let Err(e) = serde_json::to_vec(&checked).map_err(Into::into).and_then(|json| fs::write(file, json)) {
                out.wrong.push(format!("{}: {e}", file.display()));
            }
        }
        for (_, n) in first.parts.iter().filter(|(_, n)| !retry(n)) {
            out.score.add(n);
        }
        out.score.skipped += first.skipped;
        out.retried = again.len();
        out.times.scenarios = first.seconds;
        out.wrong.extend(first.complaints);
        out.lost.extend(first.again);
        let mut failed = Vec::new();
        for (s, n) in &first.parts {
            failed.extend(n.wrong.iter().map(|w| format!("{}: {w}", s.name)));
        }
        failed.extend(first.fate);
        if again.is_empty() {
            out.wrong.extend(failed);
        } else {
            let names: Vec<&str> = again.iter().map(|s| s.name.as_str()).collect();
            println!("{}: once more in a fresh guest: {}", self.name(), names.join(" "));
            self.guest.put_aside();
            let second = self.boots(&again);
            print!("{}", second.text);
            out.unsteady.extend(failed);
            for (s, n) in &second.parts {
                out.score.add(n);
                out.wrong.extend(n.wrong.iter().map(|w| format!("{}: {w}", s.name)));
            }
            out.wrong.extend(second.complaints);
            out.wrong.extend(second.fate);
            out.lost.extend(second.again);
        }
        // Each failure has its line, also those that are no check's.
        out.score.failed = u32::try_from(out.wrong.len()).unwrap_or(u32::MAX);
        out
    }

    /// One boot, again if QEMU lost it, which is said: see lab/README.md. Scenarios that had ended are not run again.
    fn boots<'s>(&self, scenarios: &[&'s Scenario]) -> Report<'s> {
        let mut again = Vec::new();
        loop {
            let r = self.once(scenarios, !again.is_empty());
            match &r.lost {
                Some((why, took)) if again.len() + 1 < BOOTS && !self.left().is_zero() => {
                    let said = format!("{why} after {:.0} s", took.as_secs_f64());
                    println!("{}: {said}, booting it again", self.name());
                    again.push(said);
                }
                _ => return Report { again, ..r },
            }
        }
    }

    /// One boot from share directory to score; its report is printed in one piece.
    fn once<'s>(&self, scenarios: &[&'s Scenario], again: bool) -> Report<'s> {
        let Run { job, guest, keep, .. } = *self;
        let title = format!("{} ({})", self.name(), job.host.about);
        let mut r = Report::default();
        let mut run = Vec::new();
        for s in scenarios {
            let needed = [(&guest.test_nic, s.needs_mqnic), (&guest.cost_model, s.needs_cost)];
            let missing = needed.into_iter().find_map(|(built, needed)| match built {
                // Declared in lab/kernels.toml, so it is no failure.
                Built::No(why) if needed && !job.kernel.test_nic => Some(why),
                _ => None,
            });
            match missing {
                Some(why) => {
                    r.skipped += 1;
                    r.text += &format!("  {:24} skipped: {why}\n", s.name);
                }
                None => run.push(*s),
            }
        }
        let full = Duration::from_secs(job.host.boot_limit + run.iter().map(|s| s.timeout).sum::<u64>());
        let limit = full.min(self.left());
        let filled = if again { guest.go_on(&run) } else { guest.fill(self.ringwise, Mode::Scenarios, &run) };
        let filled = filled.and_then(|()| match job.once {
            // lib.sh ends a scenario at its first failed check then.
            Some(_) => Ok(File::options().append(true).open(guest.share().join("host.env"))?.write_all(b"ONCE=1\n")?),
            None => Ok(()),
        });
        let booted = filled.and_then(|()| guest.run(Mode::Scenarios, limit));
        let ended = match booted {
            Ok(e) => e,
            Err(e) => {
                r.text = format!("{title}: FAILED to boot: {e:#}\n");
                r.fate = Some(format!("FAILED to boot: {e:#}"));
                return r;
            }
        };
        r.lost = ended.lost.clone().map(|l| (l, ended.took));
        let results = guest.share().join("results");
        let dmesg = read(&results.join("dmesg"));
        let console = read(&guest.dir.join("console.log"));
        let _ = fs::write(guest.dir.join("dmesg"), &dmesg);
        let mut said: Vec<&str> = dmesg.lines().chain(console.lines()).filter(|l| kernel_complaint(l)).collect();
        said.sort_unstable();
        said.dedup();
        for s in &run {
            let out = read(&results.join(format!("{}.out", s.name)));
            let rc = read(&results.join(format!("{}.rc", s.name)));
            let mut words = rc.split_whitespace();
            let status = words.next().and_then(|w| w.parse().ok());
            let times: Vec<f64> = words.filter_map(|w| w.parse().ok()).collect();
            let mut score = scenario::score(s, &out, status);
            let spent = match times[..] {
                [from, to] => {
                    r.seconds.push((s.name.clone(), to - from));
                    format!("{:.1} s", to - from)
                }
                _ => "no end".into(),
            };
            said.retain(|line| {
                let provoked = s.provokes.as_ref().is_some_and(|p| line.contains(p.as_str()));
                if provoked && within(line, &times) {
                    return false;
                }
                let here = EMULATION.iter().any(|e| line.contains(e)) && within(line, &times);
                if here {
                    score.fail(format!("kernel: {line}"));
                }
                !here
            });
            r.text += &format!(
                "  {:24} {} passed, {} failed, {} skipped ({spent})\n",
                s.name, score.passed, score.failed, score.skipped
            );
            if score.failed > 0 {
                for w in &score.wrong {
                    r.text += &format!("    {w}\n");
                }
                for line in out.lines() {
                    r.text += &format!("    | {line}\n");
                }
            }
            r.parts.push((s, score));
            let _ = fs::copy(results.join(format!("{}.out", s.name)), guest.dir.join(format!("{}.out", s.name)));
        }
        // What scenarios want to outlive the guest.
        for file in fs::read_dir(results.join("keep")).into_iter().flatten().flatten() {
            let _ = fs::copy(file.path(), job.keep.unwrap_or(&guest.dir).join(file.file_name()));
        }
        for line in said.iter().take(5) {
            r.text += &format!("  kernel: {line}\n");
            r.complaints.push(format!("kernel: {line}"));
        }
        match ended.guest_status() {
            Some(0) => {}
            Some(n) => r.fate = Some(format!("FAILED: the guest reported {n}")),
            None => {
                let log = guest.dir.join("console.log");
                let qemu = read(&guest.dir.join("qemu.log"));
                let tail: Vec<&str> = console.lines().chain(qemu.lines()).collect();
                for line in tail.iter().skip(tail.len().saturating_sub(15)) {
                    r.text += &format!("    | {line}\n");
                }
                let how = match ended.status {
                    Some(_) => "it ended without a status".to_string(),
                    None if limit < full => "the time for all boots was over".into(),
                    None => format!("no end within {} s", limit.as_secs()),
                };
                r.fate = Some(format!("FAILED: {how}, see {}", log.display()));
            }
        }
        let fate = r.fate.as_ref().map_or(String::new(), |f| format!(", {f}"));
        let healthy = r.fate.is_none() && r.complaints.is_empty() && r.parts.iter().all(|(_, n)| n.failed == 0);
        if !keep && healthy {
            let _ = fs::remove_dir_all(guest.share());
        }
        r.text = format!("{title}: {:.1} s{fate}\n", ended.took.as_secs_f64()) + &r.text;
        r
    }
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The time since boot of a line of the kernel's log: `[   17.738049] ...`.
fn seconds(line: &str) -> Option<f64> {
    line.strip_prefix('[')?.split_once(']')?.0.trim().parse().ok()
}

/// Was a line of the kernel's log written while a scenario ran from one of these times to the other?
fn within(line: &str, times: &[f64]) -> bool {
    matches!((times, seconds(line)), ([from, to], Some(at)) if (*from..=*to + 1.0).contains(&at))
}

/// Complaints that emulation causes now and then: each counts where it came, like a check that failed. On a slow machine
/// a CPU that goes offline has a task left.
const EMULATION: &[&str] = &["sched_cpu_dying"];

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
    fn a_seed_gives_one_order() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            shuffle(&mut items, seed);
            items
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let mut sorted = order(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u32>>());
    }

    #[test]
    fn a_warning_is_seen_and_talk_is_not() {
        assert!(kernel_complaint("[ 1.0] WARNING: CPU: 1 PID: 2 at net/core/dev.c:1"));
        assert_eq!(seconds("[   17.738049] igb 0000:21:00.0 eth0: NETDEV WATCHDOG: CPU: 2"), Some(17.738049));
        assert_eq!(seconds("lab: up"), None);
        assert!(!kernel_complaint("[ 1.0] mqnic: loading out-of-tree module taints kernel."));
    }
}
