//! `cargo xtask lab`: plans the boots, runs two at a time, and prints the result of each scenario.

use crate::boot::{Guest, Mode};
use crate::green::{Earlier, Record};
use crate::host::Host;
use crate::job::{Job, Outcome, Run};
use crate::kernel::Kernel;
use crate::lane::{self, Choice};
use crate::package::Arch;
use crate::program::Profile;
use crate::scenario::{self, Scenario, Score};
use crate::setup::Lane;
use crate::{demo, host, kernel, program, progress, qemu, setup, times};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Number of guests that run at the same time; each keeps about one core busy.
const PARALLEL: usize = 2;

/// The scenario that checks whether the guest can be trusted.
const LAB_ITSELF: &str = "000-lab";

#[derive(Debug, Default)]
struct Options {
    /// The machine of the guests. With a host it is that of the host.
    arch: Option<String>,
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
    /// Only scenarios with `# long:`, with that time limit.
    long: bool,
    /// Boots that were green and for which nothing has changed since are not run again.
    skip_unchanged: bool,
    shuffle: Option<String>,
    /// For `mutants`: no second guest, each scenario ends at its first failed check, and the results are written to
    /// this file.
    once: Option<String>,
}

impl Options {
    fn arch(&self, hosts: &[Host]) -> Result<Arch> {
        let host = self.host.as_ref().and_then(|name| hosts.iter().find(|h| h.name == *name));
        match (&self.arch, host) {
            (Some(name), None) => Arch::parse(name),
            (Some(name), Some(h)) if Arch::parse(name)? != h.arch => {
                bail!("--arch {name}: the host {} is {}", h.name, h.arch.debian())
            }
            (_, Some(h)) => Ok(h.arch),
            (None, None) => Ok(Arch::default()),
        }
    }
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
            "--arch" => &mut o.arch,
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
            "--long" => {
                o.long = true;
                continue;
            }
            "--skip-unchanged" => {
                o.skip_unchanged = true;
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

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let o = options(args)?;
    let hosts = host::all()?;
    let arch = o.arch(&hosts)?;
    if o.shell {
        let host = o.host.as_deref().unwrap_or("router16");
        let usual = if arch == Arch::Amd64 { "6.12" } else { "6.12-arm64" };
        return demo::guest(host, o.kernel.as_deref().unwrap_or(usual), Mode::Shell, o.program.map(Into::into));
    }
    let kernels = kernel::table()?;
    let mut scenarios = scenario::all()?;
    if o.long {
        scenarios.retain(|s| s.long.is_some());
        scenarios.iter_mut().for_each(|s| s.timeout = s.long.unwrap_or(s.timeout));
    }
    known("host", o.host.as_deref(), hosts.iter().map(|h| h.name.as_str()))?;
    known("kernel", o.kernel.as_deref(), kernels.iter().map(|k| k.name.as_str()))?;
    lane::known_areas(&scenarios)?;
    let choice = match (&o.since, o.quick) {
        (Some(_), true) => bail!("--quick and --since exclude each other"),
        (Some(revision), false) => Choice::Touched(lane::since(revision)?),
        (None, true) => Choice::Quick,
        (None, false) => Choice::All,
    };
    if o.skip_unchanged && !o.quick {
        bail!("--skip-unchanged needs --quick: only results of the quick set are recorded");
    }
    let mut jobs = plan(&o, arch, &choice, &hosts, &kernels, &scenarios);
    if jobs.is_empty() {
        if o.since.is_some() {
            println!("lab: no scenario depends on this change");
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
    if arch != Arch::Amd64
        && let Err(e) = qemu::ensure(arch)
    {
        return without_guests(arch, e);
    }
    let ringwise = match &o.program {
        Some(path) => path.into(),
        // If there is time, the program is tested as it is shipped.
        None => program::for_guests(arch, if o.quick { Profile::Lab } else { Profile::Release })?,
    };
    let minutes = o.minutes.as_deref().map(|m| m.parse().with_context(|| format!("--minutes: not a number: {m:?}")));
    let end = minutes.transpose()?.map(|m: u64| Instant::now() + Duration::from_secs(60 * m));
    let earlier = match (o.quick, o.skip_unchanged) {
        (true, true) => Earlier::Trusted,
        (true, false) => Earlier::Replaced,
        (false, _) => Earlier::Ignored,
    };
    let outcome = work(jobs, &ringwise, o.keep, end, PARALLEL, earlier)?;
    if o.record {
        times::record(&outcome.times, &outcome.score, outcome.lost.len())?;
    }
    report(outcome)
}

/// There is no QEMU for these guests here. That is a failure where nothing may be skipped (`make test-all`).
fn without_guests(arch: Arch, why: anyhow::Error) -> Result<ExitCode> {
    let why = why.context(format!("no QEMU for guests of {}", arch.debian()));
    if std::env::var_os("RINGWISE_REQUIRE_ALL").is_some_and(|v| v == "1") {
        return Err(why);
    }
    println!("lab: skipped: {why:#}");
    report(Outcome { score: Score { skipped: 1, ..Score::default() }, ..Outcome::default() })
}

/// The boots of a lane with guests of one machine: hosts with the names of kernels.
pub(crate) fn boots(lane: Lane, arch: Arch) -> Result<Vec<(Host, String)>> {
    let (hosts, kernels, scenarios) = (host::all()?, kernel::table()?, scenario::all()?);
    if lane == Lane::Demo {
        let router = hosts.into_iter().find(|h| h.name == demo::HOST);
        return Ok(router.map(|h| (h.without_test_nics(), demo::KERNEL.to_string())).into_iter().collect());
    }
    let choice = if lane == Lane::Quick { Choice::Quick } else { Choice::All };
    let all = Options::default();
    let jobs = plan(&all, arch, &choice, &hosts, &kernels, &scenarios);
    Ok(jobs.iter().map(|j| (j.host.clone(), j.kernel.name.clone())).collect())
}

/// If more scenarios than this pass only in their second guest, the run has failed.
const RETRIES: usize = 2;

/// The last lines of a run.
pub(crate) fn report(outcome: Outcome) -> Result<ExitCode> {
    let Outcome { score: mut total, mut wrong, unsteady, retried, lost, unchanged, times } = outcome;
    // Repeated at the end, where people look first.
    times::print(&times);
    println!("lab: {} boots, {} of them lost and repeated", times.boots.len() + lost.len(), lost.len());
    if retried > RETRIES {
        wrong.push(format!("{retried} scenarios passed only in their second guest; at most {RETRIES} are allowed"));
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
    if unchanged > 0 {
        println!("lab: {unchanged} checks not run again: nothing has changed since they passed");
    }
    println!("lab: {} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn known<'a>(what: &str, asked: Option<&str>, have: impl Iterator<Item = &'a str>) -> Result<()> {
    let have: Vec<&str> = have.collect();
    match asked {
        Some(a) if !have.contains(&a) => bail!("no {what} {a:?}; there are {}", have.join(", ")),
        _ => Ok(()),
    }
}

fn plan<'a>(
    o: &'a Options,
    arch: Arch,
    choice: &Choice,
    hosts: &'a [Host],
    kernels: &'a [Kernel],
    scenarios: &'a [Scenario],
) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for host in hosts.iter().filter(|h| h.arch == arch) {
        for kernel in kernels.iter().filter(|k| k.arch == arch) {
            let wanted = o.host.as_ref().is_none_or(|h| *h == host.name)
                && o.kernel.as_ref().map_or_else(|| host.kernels.contains(&kernel.name), |k| *k == kernel.name);
            if !wanted {
                continue;
            }
            // A host of another machine runs only the scenarios that name it.
            let named = |s: &Scenario| arch == Arch::Amd64 || s.names(&host.name);
            let here = || scenarios.iter().filter(|s| named(s) && s.runs_on(&host.name, &kernel.name));
            let mut scenarios: Vec<&Scenario> = here()
                .filter(|s| choice.has(s, host, &kernel.name))
                .filter(|s| o.scenario.as_ref().map_or(!s.benchmark, |t| s.name.contains(t.as_str())))
                .collect();
            if !scenarios.is_empty() {
                // The results of a guest are useless if the lab itself is broken there.
                if matches!(choice, Choice::Touched(_)) && scenarios.iter().all(|s| s.name != LAB_ITSELF) {
                    scenarios.splice(0..0, here().filter(|s| s.name == LAB_ITSELF));
                }
                let once = o.once.as_deref().map(Path::new);
                jobs.push(Job { host, kernel, scenarios, keep: None, once, long: o.long });
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

/// Runs all jobs, `at_once` of them at a time. Jobs that have not run at `end` count as failed.
pub(crate) fn work(
    jobs: Vec<Job>,
    ringwise: &Path,
    keep: bool,
    end: Option<Instant>,
    at_once: usize,
    earlier: Earlier,
) -> Result<Outcome> {
    // Fetching and building come first, one after the other, because apt and make must not run in parallel.
    let mut queue = Vec::new();
    let mut unchanged = 0;
    for job in jobs.into_iter().rev() {
        let cost = job.scenarios.iter().any(|s| s.needs_cost);
        let guest = Guest::prepare(job.host, job.kernel, cost)?;
        crate::image::ensure(&guest.ready)?;
        if job.scenarios.iter().any(|s| s.needs_irqbalance) {
            crate::irqbalance::ensure()?;
        }
        if job.scenarios.iter().any(|s| s.needs_peers) {
            crate::peers::ensure()?;
        }
        let record = if earlier == Earlier::Ignored { None } else { Some(Record::of(&job, &guest, ringwise)?) };
        if let Some(green) = record.as_ref().filter(|_| earlier == Earlier::Trusted).and_then(Record::holds) {
            println!(
                "{} on {}: nothing has changed since its {} checks passed: not booted",
                job.host.name, guest.ready.release, green.passed
            );
            unchanged += green.passed;
            continue;
        }
        queue.push((job, guest, record));
    }
    let queue = Mutex::new(queue);
    let total = Mutex::new(Outcome { unchanged, ..Outcome::default() });
    let next = || queue.lock().ok().and_then(|mut q| q.pop());
    std::thread::scope(|threads| {
        for _ in 0..at_once {
            threads.spawn(|| {
                while let Some((job, guest, record)) = next() {
                    let run = Run { job: &job, guest: &guest, ringwise, keep, end };
                    let start = Instant::now();
                    let o = run.all();
                    if let Some(Err(e)) = record.map(|r| r.keep(&o)) {
                        println!("lab: the result of this boot cannot be saved: {e:#}");
                    }
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
    total.into_inner().ok().context("the thread of a boot panicked")
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
    fn boots_chosen_for_a_change_begin_with_the_lab_itself() {
        let (hosts, kernels, scenarios) = (host::all().unwrap(), kernel::table().unwrap(), scenario::all().unwrap());
        let one = ["640-rss".to_string()].into();
        let choice = Choice::Touched(lane::Touched::Only { areas: [].into(), scenarios: one, hosts: [].into() });
        let o = Options::default();
        let jobs = plan(&o, Arch::Amd64, &choice, &hosts, &kernels, &scenarios);
        assert!(!jobs.is_empty());
        for j in &jobs {
            let names: Vec<&str> = j.scenarios.iter().map(|s| s.name.as_str()).collect();
            assert_eq!(names, ["000-lab", "640-rss"], "{}", j.host.name);
        }
    }

    #[test]
    fn hosts_of_another_machine_run_alone_and_only_what_names_them() {
        let (hosts, kernels, scenarios) = (host::all().unwrap(), kernel::table().unwrap(), scenario::all().unwrap());
        let o = options(&["--host", "small2-arm64"].map(String::from)).unwrap();
        assert_eq!(o.arch(&hosts).unwrap(), Arch::Arm64);
        assert_eq!(Options::default().arch(&hosts).unwrap(), Arch::Amd64);
        assert!(options(&["--arch=arm64", "--host=small2"].map(String::from)).unwrap().arch(&hosts).is_err());
        for (arch, alone) in [(Arch::Amd64, false), (Arch::Arm64, true)] {
            let none = Options::default();
            let jobs = plan(&none, arch, &Choice::All, &hosts, &kernels, &scenarios);
            assert!(!jobs.is_empty() && jobs.iter().all(|j| (j.host.name == "small2-arm64") == alone), "{arch:?}");
            assert!(jobs.iter().all(|j| j.kernel.arch == arch));
        }
        let jobs = plan(&o, Arch::Arm64, &Choice::All, &hosts, &kernels, &scenarios);
        assert!(jobs.iter().all(|j| j.scenarios.iter().all(|s| s.names("small2-arm64"))));
        assert!(jobs.iter().any(|j| j.scenarios.iter().any(|s| s.name == "360-arm64")));
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
}
