//! `cargo xtask fleet`: plays of the Ansible collection over real ssh, against five guests (docs/ansible.md).
//!
//! QEMU forwards a port of 127.0.0.1 to sshd of each guest, and drops everything that a guest sends to other addresses.
//! Commands that check a guest go through its shared directory (`member.rs`), so they work without its network.

mod ansible;
mod member;
mod plays;

use crate::boot::Ended;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::program::{self, Profile};
use crate::scenario::{self, Scenario, Score};
use crate::setup::{self, Lane};
use crate::{host, image, job, kernel, paths, progress, userland};
use ansible::Controller;
use anyhow::{Context, Result, bail};
use member::Member;
use plays::Fleet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const KERNEL: &str = "6.12";

/// The guests. Their inventory is in `plays.rs`, and what prepares them in `lab/fleet/member.sh`.
const MEMBERS: [&str; 5] = ["ordinary", "competing", "refusing", "cut-off", "unprivileged"];

/// All plays together take a quarter of an hour on a quiet machine.
const LIMIT: Duration = Duration::from_secs(90 * 60);
/// How long the guests may take to end after the last play.
const END: Duration = Duration::from_secs(120);
/// How often the guests are booted if QEMU loses one of them.
const BOOTS: usize = 2;

#[derive(Debug, Default)]
struct Options {
    program: Option<PathBuf>,
    keep: bool,
}

fn options(args: &[String]) -> Result<Options> {
    let mut o = Options::default();
    let mut it = args.iter();
    while let Some(arg) = it.next() {
        match arg.as_str() {
            "--program" => o.program = Some(it.next().context("--program needs a value")?.into()),
            "--keep" => o.keep = true,
            other => bail!("fleet: expected --program FILE or --keep, found {other:?}"),
        }
    }
    Ok(o)
}

/// Fetches Ansible and the userland of the guests into the cache. The result is the directory of `ansible-playbook`.
pub(crate) fn fetch() -> Result<PathBuf> {
    userland::ensure(true)?;
    ansible::ensure()
}

/// Whether checks held, each with its line on the terminal.
#[derive(Debug, Default)]
struct Checks {
    score: Score,
}

impl Checks {
    /// `found` is the detail of a check that failed.
    fn check(&mut self, what: &str, holds: bool, found: &str) {
        if holds {
            println!("  ok {what}");
            self.score.passed += 1;
        } else {
            println!("  not ok {what} # {found}");
            self.score.fail(what.to_string());
        }
    }
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let o = options(args)?;
    progress::catch_signals()?;
    setup::tools(Lane::All)?;
    let bin = match fetch() {
        Ok(bin) => bin,
        Err(e) if std::env::var_os("RINGWISE_REQUIRE_ALL").is_some_and(|v| v == "1") => return Err(e),
        Err(e) => {
            println!("fleet: skipped, because there is no Ansible: {e:#}");
            return Ok(report(&Score { skipped: 1, ..Score::default() }));
        }
    };
    let kernels = kernel::table()?;
    let kernel = kernels.iter().find(|k| k.name == KERNEL).with_context(|| format!("no kernel {KERNEL}"))?;
    let dir = paths::lab().join("fleet");
    let template = host::in_dir(&dir)?.into_iter().next().context("lab/fleet has no host")?;
    let scenario = scenario::in_dir(&dir)?.into_iter().next().context("lab/fleet has no script")?;
    let ringwise = o.program.clone().map_or_else(|| program::build(Profile::Release), Ok)?;
    let ringwise = fs::canonicalize(&ringwise).with_context(|| ringwise.display().to_string())?;
    for boot in 1..=BOOTS {
        let hosts = MEMBERS.iter().map(|name| member::host(&template, name)).collect::<Result<Vec<Host>>>()?;
        match once(&o, &bin, &hosts, kernel, &scenario, &ringwise)? {
            Outcome::Lost(why) if boot < BOOTS => println!("fleet: {why}: booting all guests again"),
            Outcome::Lost(why) => bail!("{why}, {BOOTS} times"),
            Outcome::Ended(score) => return Ok(report(&score)),
        }
    }
    bail!("no guest was booted")
}

fn report(score: &Score) -> ExitCode {
    score.wrong.iter().for_each(|w| println!("fleet: failed: {w}"));
    println!("fleet: {} passed, {} failed, {} skipped", score.passed, score.failed, score.skipped);
    if score.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Outcome {
    Ended(Score),
    /// QEMU lost a guest, see lab/README.md.
    Lost(String),
}

/// Boots all guests, runs the plays, and ends the guests.
fn once(
    o: &Options,
    bin: &Path,
    hosts: &[Host],
    kernel: &Kernel,
    scenario: &Scenario,
    ringwise: &Path,
) -> Result<Outcome> {
    let logs = paths::target().join("fleet");
    let controller = Controller::new(bin.to_path_buf(), &logs)?;
    let mut members = Vec::new();
    for (name, host) in MEMBERS.into_iter().zip(hosts) {
        let m = Member::prepare(name, host, kernel)?;
        image::ensure(&m.guest.ready)?;
        m.fill(ringwise, scenario, &controller.public_key())?;
        members.push(m);
    }
    println!("fleet: booting {} guests; the outputs of the plays will be in {}", members.len(), logs.display());
    let begin = Instant::now();
    let mut checks = Checks::default();
    let (played, ended) = std::thread::scope(|threads| {
        let running: Vec<_> = members.iter().map(|m| threads.spawn(|| m.boot(LIMIT))).collect();
        let mut fleet = Fleet::new(&members, &controller, &mut checks, ringwise);
        let played = fleet.run();
        members.iter().for_each(Member::end);
        let end = Instant::now() + END;
        while members.iter().any(|m| !m.has_ended()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(200));
        }
        // A guest that does not end by itself counts as lost.
        progress::end_children();
        let ended: Vec<Result<Ended>> = running
            .into_iter()
            .map(|r| r.join().map_err(|_| anyhow::anyhow!("the thread of a guest panicked"))?)
            .collect();
        (played, ended)
    });
    for (m, e) in members.iter().zip(&ended) {
        if let Ok(Some(lost)) = e.as_ref().map(|e| &e.lost) {
            return Ok(Outcome::Lost(format!("{}: {lost}", m.name)));
        }
    }
    if let Err(e) = played {
        checks.check("all plays ran", false, &format!("{e:#}"));
    }
    println!("the guests");
    for (m, e) in members.iter().zip(ended) {
        judge_end(m, e, scenario, &mut checks);
        if !o.keep && checks.score.failed == 0 {
            let _ = fs::remove_dir_all(m.guest.share()); // only files of a run that passed
        }
    }
    println!("fleet: {:.0} s with {} guests", begin.elapsed().as_secs_f64(), members.len());
    Ok(Outcome::Ended(checks.score))
}

/// How a guest ended: its own status, the script that ran in it, and its kernel's complaints.
fn judge_end(m: &Member, ended: Result<Ended>, scenario: &Scenario, checks: &mut Checks) {
    let results = m.guest.share().join("results");
    let read = |name: String| fs::read_to_string(results.join(name)).unwrap_or_default();
    let rc = read(format!("{}.rc", scenario.name));
    let rc = rc.split_whitespace().next().and_then(|w| w.parse().ok());
    let score = scenario::score(scenario, &read(format!("{}.out", scenario.name)), rc);
    let status = ended.as_ref().ok().and_then(Ended::guest_status);
    let found = match &ended {
        Ok(_) => format!("status {status:?}, {}", score.wrong.join("; ")),
        Err(e) => format!("{e:#}"),
    };
    checks.check(&format!("{}: the guest ends well", m.name), status == Some(0) && score.failed == 0, &found);
    let complaints: Vec<String> =
        read("dmesg".into()).lines().filter(|l| job::kernel_complaint(l)).map(str::to_string).collect();
    checks.check(&format!("{}: its kernel has no complaint", m.name), complaints.is_empty(), &complaints.join("; "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_differ_only_in_name_and_port() {
        let template = host::in_dir(&paths::lab().join("fleet")).unwrap().remove(0);
        let hosts: Vec<Host> = MEMBERS.iter().map(|n| member::host(&template, n).unwrap()).collect();
        for (h, name) in hosts.iter().zip(MEMBERS) {
            assert_eq!(h.name, format!("fleet-{name}"));
            let forwarded = format!("restrict=on,hostfwd=tcp:127.0.0.1:{}-:22", h.ssh_port);
            assert_eq!(h.qemu().iter().filter(|w| w.contains(&forwarded)).count(), 1, "{name}");
            assert!(h.qemu().iter().all(|w| !w.starts_with("user,") || w.contains("restrict=on")), "{name}");
            assert!(h.nic_table().contains(" mgmt0 e1000e "), "{name}");
        }
    }

    #[test]
    fn options_are_read() {
        let o = options(&["--program", "x", "--keep"].map(String::from)).unwrap();
        assert!(o.keep && o.program == Some("x".into()));
        assert!(options(&["--program".into()]).is_err());
        assert!(options(&["--quick".into()]).is_err());
    }
}
